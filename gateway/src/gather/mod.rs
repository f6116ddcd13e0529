//! Several legs' answers in, one answer out: a state machine without I/O.
//!
//! `exec` owns the sockets and drives it: it hands over each leg's column definitions, reads a leg only while
//! [`Gather::wants`] it, pushes rows, pops what may go to the client, and stops all legs once [`Gather::finished`].
//! What is buffered is bounded by [`GatherLimits`] and one read of each leg.
//!
//! | state | left by |
//! |---|---|
//! | waiting for columns | every leg not dropped has given its definitions, all alike |
//! | rows | all legs done and nothing buffered, or the window full |
//! | finished | |

mod aggregate;
mod columns;
mod error;
mod merge;
mod number;
mod row;
#[cfg(test)]
mod tests;
mod value;
mod window;

use std::collections::VecDeque;

use bytes::Bytes;

pub use error::GatherError;
pub use value::Protocol;

use self::aggregate::Aggregates;
use self::columns::ColumnView;
use self::merge::{Merge, ResolvedKey};
use self::row::{Cells, RowReader};
use self::window::Window;
use crate::base::ShardId;
use crate::route::{GatherBody, GatherPlan, KeyColumn, SortKey};

/// Digits a sort key may have, so that it fits 128 bits.
const MAX_KEY_DIGITS: u32 = 38;

/// How much is buffered at most before a leg is no longer read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatherLimits {
    /// Memory that the rows buffered of one leg of an ordered merge take before it is no longer read; one read may
    /// exceed it. Small, since there may be many legs and the sockets' own buffers read ahead. Default 16 KiB.
    pub leg_bytes: usize,
    /// Bytes of rows waiting to be popped. Default 256 KiB.
    pub output_bytes: usize,
}

impl Default for GatherLimits {
    fn default() -> Self {
        Self {
            leg_bytes: 16 << 10,
            output_bytes: 256 << 10,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LegState {
    Columns,
    Rows,
    Done,
}

#[derive(Debug)]
struct Leg {
    shard: ShardId,
    state: LegState,
}

#[derive(Debug)]
enum Body {
    /// Before all columns are known.
    Waiting,
    Concat {
        rows: VecDeque<Bytes>,
        bytes: usize,
    },
    Merge(Merge),
    Aggregate(Aggregates),
}

/// The gathering of one statement's answers.
#[derive(Debug)]
pub struct Gather {
    plan: GatherPlan,
    limits: GatherLimits,
    legs: Box<[Leg]>,
    /// The first leg's definitions, and which leg that was.
    columns: Option<(usize, Box<[Bytes]>)>,
    /// Per column, whether every leg says NOT NULL.
    not_null: Box<[bool]>,
    reader: RowReader,
    cells: Cells,
    body: Body,
    window: Window,
}

impl Gather {
    /// Starts gathering the answers of these shards, one leg each, in this order.
    #[must_use]
    pub fn new(plan: &GatherPlan, shards: Vec<ShardId>, protocol: Protocol, limits: GatherLimits) -> Self {
        let leg = |shard| Leg {
            shard,
            state: LegState::Columns,
        };
        Self {
            plan: plan.clone(),
            limits,
            legs: shards.into_iter().map(leg).collect(),
            columns: None,
            not_null: Box::default(),
            reader: RowReader::new(protocol, Box::default(), 0),
            cells: Cells::new(),
            body: Body::Waiting,
            window: Window::new(plan.limit),
        }
    }

    /// Takes a leg's column definitions (raw payloads, without the count packet before and the EOF behind them).
    pub fn leg_columns(&mut self, leg: usize, definitions: &[Bytes]) -> Result<(), GatherError> {
        if self.leg(leg)?.state != LegState::Columns {
            return Err(GatherError::Order("columns given twice"));
        }
        self.agree(leg, definitions)?;
        self.legs[leg].state = LegState::Rows;
        self.start_body_if_ready()
    }

    /// Gives up a leg whose answer is not waited for any more (a partial answer).
    pub fn drop_leg(&mut self, leg: usize) -> Result<(), GatherError> {
        self.leg(leg)?;
        self.legs[leg].state = LegState::Done;
        if let Body::Merge(merge) = &mut self.body {
            merge.done(leg);
        }
        self.start_body_if_ready()
    }

    /// Whether all columns are known, so that the answer's head can be sent.
    #[must_use]
    pub fn has_columns(&self) -> bool {
        !matches!(self.body, Body::Waiting)
    }

    /// The answer's column definitions, hidden ones cut off. Empty before [`Self::has_columns`].
    #[must_use]
    pub fn output_columns(&self) -> Vec<Bytes> {
        let Some((_, definitions)) = self.columns.as_ref().filter(|_| self.has_columns()) else {
            return Vec::new();
        };
        let visible = definitions.len().saturating_sub(usize::from(self.plan.hidden));
        let pairs = definitions.iter().zip(&self.not_null).take(visible);
        pairs
            .map(|(payload, keep)| columns::clear_not_null_unless(*keep, payload))
            .collect()
    }

    /// Whether the answer has all the rows its LIMIT asks for: no leg could add one.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.window.is_full()
    }

    /// Whether the leg should be read now. A leg that is not wanted is left alone: its server feels the back-pressure.
    #[must_use]
    pub fn wants(&self, leg: usize) -> bool {
        let Some(state) = self.legs.get(leg).map(|l| l.state) else {
            return false;
        };
        match (state, &self.body) {
            (LegState::Done, _) | (LegState::Rows, Body::Waiting) => false,
            (LegState::Columns, _) | (LegState::Rows, Body::Aggregate(_)) => true,
            (LegState::Rows, Body::Concat { bytes, .. }) => *bytes < self.limits.output_bytes,
            (LegState::Rows, Body::Merge(merge)) => merge.buffered(leg) < self.limits.leg_bytes,
        }
    }

    /// Takes one row of a leg.
    pub fn push_row(&mut self, leg: usize, payload: Bytes) -> Result<(), GatherError> {
        if self.leg(leg)?.state != LegState::Rows {
            return Err(GatherError::Order("a row before its columns or behind the end"));
        }
        let taken = match &mut self.body {
            Body::Waiting => return Err(GatherError::Order("a row before all columns")),
            Body::Concat { rows, bytes } => {
                if self.window.admit() {
                    *bytes += payload.len() + size_of::<Bytes>();
                    rows.push_back(payload);
                }
                Some(())
            }
            Body::Merge(merge) => match self.reader.read(payload, &mut self.cells) {
                Some(row) => merge.push(leg, row, &self.cells, &self.reader),
                None => None,
            },
            Body::Aggregate(aggregates) => match self.reader.read(payload, &mut self.cells) {
                Some(row) => aggregates.push(leg, &row.payload, &self.cells, &self.reader)?,
                None => None,
            },
        };
        taken.ok_or_else(|| GatherError::Malformed {
            shard: self.legs[leg].shard.clone(),
            what: "row",
        })
    }

    /// Bytes of the rows that wait to be popped.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.body {
            Body::Waiting | Body::Aggregate(_) => 0,
            Body::Concat { bytes, .. } => *bytes,
            Body::Merge(merge) => merge.held(),
        }
    }

    /// The leg's rows have ended.
    pub fn leg_done(&mut self, leg: usize) -> Result<(), GatherError> {
        if self.leg(leg)?.state == LegState::Columns {
            return Err(GatherError::Order("a leg ended before its columns"));
        }
        self.legs[leg].state = LegState::Done;
        if let Body::Merge(merge) = &mut self.body {
            merge.done(leg);
        }
        Ok(())
    }

    /// The next row of the answer, if one can be given by what is known so far.
    pub fn pop(&mut self) -> Result<Option<Bytes>, GatherError> {
        let all_done = self.all_done();
        match &mut self.body {
            Body::Concat { rows, bytes } => {
                let row = rows.pop_front();
                *bytes -= row.as_ref().map_or(0, |r| r.len() + size_of::<Bytes>());
                Ok(row)
            }
            Body::Merge(merge) => {
                while !self.window.is_full() {
                    let Some(row) = merge.pop() else { break };
                    if self.window.admit() {
                        return Ok(Some(self.reader.strip(row)));
                    }
                }
                Ok(None)
            }
            Body::Aggregate(aggregates) if all_done && !aggregates.is_given() => {
                if let Some((leg, rows)) = aggregates.odd_leg() {
                    return Err(GatherError::RowCount {
                        shard: self.legs[leg].shard.clone(),
                        rows,
                    });
                }
                let row = aggregates.pop(&self.reader)?;
                Ok(row.filter(|_| self.window.admit()))
            }
            Body::Waiting | Body::Aggregate(_) => Ok(None),
        }
    }

    /// Whether the answer is complete: every row was popped, and legs still sending can be cancelled.
    #[must_use]
    pub fn finished(&self) -> bool {
        match &self.body {
            Body::Waiting => false,
            Body::Concat { rows, .. } => rows.is_empty() && (self.window.is_full() || self.all_done()),
            Body::Merge(merge) => self.window.is_full() || (self.all_done() && merge.is_empty()),
            Body::Aggregate(aggregates) => self.all_done() && aggregates.is_given(),
        }
    }

    fn leg(&self, leg: usize) -> Result<&Leg, GatherError> {
        self.legs.get(leg).ok_or(GatherError::Order("no such leg"))
    }

    fn all_done(&self) -> bool {
        self.legs.iter().all(|l| l.state == LegState::Done)
    }

    /// Compares a leg's definitions with the first leg's.
    fn agree(&mut self, leg: usize, definitions: &[Bytes]) -> Result<(), GatherError> {
        let shard = &self.legs[leg].shard;
        let malformed = || GatherError::Malformed {
            shard: shard.clone(),
            what: "column definition",
        };
        let Some((first, known)) = &self.columns else {
            if definitions.iter().any(|d| ColumnView::parse(d).is_none()) {
                return Err(malformed());
            }
            self.not_null = definitions.iter().map(|d| columns::is_not_null(d)).collect();
            self.columns = Some((leg, definitions.into()));
            return Ok(());
        };
        let differ = |what| GatherError::ColumnsDiffer {
            left: self.legs[*first].shard.clone(),
            right: shard.clone(),
            what,
        };
        if known.len() != definitions.len() {
            return Err(differ(format!(
                "{} against {} columns",
                known.len(),
                definitions.len()
            )));
        }
        for (i, (a, b)) in known.iter().zip(definitions).enumerate() {
            let (Some(a), Some(b)) = (ColumnView::parse(a), ColumnView::parse(b)) else {
                return Err(malformed());
            };
            if let Some(what) = a.difference(&b) {
                return Err(differ(what));
            }
            self.not_null[i] &= columns::is_not_null(&definitions[i]);
        }
        Ok(())
    }

    fn start_body_if_ready(&mut self) -> Result<(), GatherError> {
        if self.has_columns() || self.legs.iter().any(|l| l.state == LegState::Columns) {
            return Ok(());
        }
        let Some((_, definitions)) = &self.columns else {
            return Ok(());
        };
        let kinds: Box<[_]> = definitions
            .iter()
            .filter_map(|d| ColumnView::parse(d))
            .map(|v| v.kind())
            .collect();
        let hidden = usize::from(self.plan.hidden);
        if hidden > kinds.len() {
            return Err(GatherError::Order("more hidden columns than columns"));
        }
        self.reader = RowReader::new(self.reader.protocol(), kinds, hidden);
        let legs = self.legs.len();
        self.body = match &self.plan.body {
            GatherBody::Concat if hidden > 0 => {
                return Err(GatherError::Order("hidden columns without a merge"));
            }
            GatherBody::Concat => Body::Concat {
                rows: VecDeque::new(),
                bytes: 0,
            },
            GatherBody::Merge(keys) => Body::Merge(Merge::new(legs, resolve(keys, definitions, hidden)?)),
            GatherBody::Aggregate(functions) => {
                Body::Aggregate(Aggregates::new(legs, functions, &self.reader)?)
            }
        };
        self.mark_dropped();
        Ok(())
    }

    /// Legs dropped before the merge existed have to be told to it.
    fn mark_dropped(&mut self) {
        if let Body::Merge(merge) = &mut self.body {
            let done = self
                .legs
                .iter()
                .enumerate()
                .filter(|(_, l)| l.state == LegState::Done);
            done.for_each(|(leg, _)| merge.done(leg));
        }
    }
}

/// Finds the keys' positions and checks that their types can be merged.
fn resolve(
    keys: &[SortKey],
    definitions: &[Bytes],
    hidden: usize,
) -> Result<Box<[ResolvedKey]>, GatherError> {
    let visible = definitions.len() - hidden;
    let resolve = |key: &SortKey| {
        let (column, end) = match key.column {
            KeyColumn::Output(n) => (usize::from(n), visible),
            KeyColumn::Hidden(n) => (visible + usize::from(n), definitions.len()),
        };
        let view = definitions
            .get(column)
            .filter(|_| column < end)
            .and_then(|d| ColumnView::parse(d));
        let view = view.ok_or(GatherError::Order("a sort key outside the row"))?;
        let kind = view.kind();
        let wide = kind.is_decimal() && kind.decimal_digits(view.length) > MAX_KEY_DIGITS;
        if !kind.is_exact() || wide {
            let kind = if wide {
                "a DECIMAL of more than 38 digits"
            } else {
                kind.name()
            };
            return Err(GatherError::KeyType {
                name: view.source_name(),
                kind,
            });
        }
        Ok(ResolvedKey {
            column,
            kind,
            descending: key.descending,
        })
    };
    keys.iter().map(resolve).collect()
}
