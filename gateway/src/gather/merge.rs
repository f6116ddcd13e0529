//! The ordered merge: legs arrive sorted, the least head goes out next.
//!
//! Nothing can go out while a leg that may still send rows has none buffered, since its next row might be the least.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use smallvec::SmallVec;

use super::row::{Cells, Row, RowReader};
use super::value::ValueKind;

/// A row's keys, mapped so that ascending order of the mapped numbers is the order asked for.
type Key = SmallVec<[i128; 2]>;

/// A key's column in the legs' rows, by position.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedKey {
    pub(super) column: usize,
    pub(super) kind: ValueKind,
    pub(super) descending: bool,
}

#[derive(Debug, Default)]
struct Queue {
    rows: VecDeque<(Key, Row)>,
    bytes: usize,
    done: bool,
}

/// The merge's state.
#[derive(Debug)]
pub(super) struct Merge {
    keys: Box<[ResolvedKey]>,
    queues: Box<[Queue]>,
    heads: BinaryHeap<Reverse<(Key, usize)>>,
    /// Legs that may still send rows and have none buffered.
    starved: usize,
}

impl Merge {
    pub(super) fn new(legs: usize, keys: Box<[ResolvedKey]>) -> Self {
        let queues: Box<[Queue]> = (0..legs).map(|_| Queue::default()).collect();
        Self {
            keys,
            queues,
            heads: BinaryHeap::with_capacity(legs),
            starved: legs,
        }
    }

    /// Takes a row; `None` where a key is not the number its column's type promises.
    pub(super) fn push(&mut self, leg: usize, row: Row, cells: &Cells, reader: &RowReader) -> Option<()> {
        let mut key = Key::new();
        for k in &self.keys {
            // NULL is below every number: keys have at most 38 digits, which i128::MIN lies beyond.
            let value = match cells.get(k.column)? {
                None => i128::MIN,
                Some(span) => k.kind.scaled(row.payload.get(span.clone())?, reader.protocol())?,
            };
            key.push(if k.descending { !value } else { value });
        }
        let queue = self.queues.get_mut(leg)?;
        if queue.rows.is_empty() {
            self.heads.push(Reverse((key.clone(), leg)));
            self.starved -= usize::from(!queue.done);
        }
        queue.bytes += size_of_entry(&row);
        queue.rows.push_back((key, row));
        Some(())
    }

    pub(super) fn done(&mut self, leg: usize) {
        if let Some(queue) = self.queues.get_mut(leg)
            && !queue.done
        {
            queue.done = true;
            self.starved -= usize::from(queue.rows.is_empty());
        }
    }

    pub(super) fn held(&self) -> usize {
        self.queues.iter().map(|q| q.bytes).sum()
    }

    pub(super) fn buffered(&self, leg: usize) -> usize {
        self.queues.get(leg).map_or(0, |q| q.bytes)
    }

    pub(super) fn pop(&mut self) -> Option<Row> {
        if self.starved > 0 {
            return None;
        }
        let Reverse((_, leg)) = self.heads.pop()?;
        let queue = self.queues.get_mut(leg)?;
        let (_, row) = queue.rows.pop_front()?;
        queue.bytes -= size_of_entry(&row);
        match queue.rows.front() {
            Some((key, _)) => self.heads.push(Reverse((key.clone(), leg))),
            None => self.starved += usize::from(!queue.done),
        }
        Some(row)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }
}

/// What a buffered row holds of memory: short rows are outweighed by what is kept beside them.
fn size_of_entry(row: &Row) -> usize {
    row.payload.len() + size_of::<(Key, Row)>()
}
