//! Rows as one buffer and spans into it; hidden columns are cut off without decoding the rest.

use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

use super::columns::{lenenc, put_lenenc_str};
use super::value::{Protocol, ValueKind};

/// Where a row's cells are: `None` is NULL.
pub(super) type Cells = SmallVec<[Option<Range<usize>>; 16]>;

/// Reads rows of one result.
#[derive(Clone, Debug)]
pub(super) struct RowReader {
    protocol: Protocol,
    kinds: Box<[ValueKind]>,
    hidden: usize,
}

/// A row and where its hidden columns begin.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) payload: Bytes,
    /// Offset of the first hidden cell; the payload's length if there is none.
    cut: usize,
}

impl RowReader {
    pub(super) fn new(protocol: Protocol, kinds: Box<[ValueKind]>, hidden: usize) -> Self {
        Self {
            protocol,
            kinds,
            hidden,
        }
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn kind(&self, column: usize) -> Option<ValueKind> {
        self.kinds.get(column).copied()
    }

    pub(super) fn columns(&self) -> usize {
        self.kinds.len()
    }

    /// Finds every cell of a row. `None` where the row is malformed.
    pub(super) fn read(&self, payload: Bytes, cells: &mut Cells) -> Option<Row> {
        cells.clear();
        let visible = self.kinds.len().checked_sub(self.hidden)?;
        let mut cut = payload.len();
        let mut at = match self.protocol {
            Protocol::Text => 0,
            Protocol::Binary => {
                let start = 1 + bitmap_len(self.kinds.len());
                (payload.len() >= start && payload.first() == Some(&0)).then_some(start)?
            }
        };
        for (i, kind) in self.kinds.iter().enumerate() {
            if i == visible {
                cut = at;
            }
            let rest = payload.get(at..)?;
            let (cell, used) = self.cell(&payload, i, *kind, rest)?;
            cells.push(cell.map(|(start, end)| at + start..at + end));
            at += used;
        }
        (at == payload.len()).then_some(Row { payload, cut })
    }

    #[allow(clippy::type_complexity)] // a span and a length, used once
    fn cell(
        &self,
        payload: &[u8],
        column: usize,
        kind: ValueKind,
        rest: &[u8],
    ) -> Option<(Option<(usize, usize)>, usize)> {
        match self.protocol {
            Protocol::Text if rest.first() == Some(&0xfb) => Some((None, 1)),
            Protocol::Text => {
                let (len, used) = lenenc(rest)?;
                let end = used.checked_add(usize::try_from(len).ok()?)?;
                (end <= rest.len()).then_some((Some((used, end)), end))
            }
            Protocol::Binary if is_null(payload, column) => Some((None, 0)),
            Protocol::Binary => kind
                .binary_span(rest)
                .map(|(start, end)| (Some((start, end)), end)),
        }
    }

    /// The row without its hidden columns. Shares the buffer wherever the bytes before the cut stay as they are.
    pub(super) fn strip(&self, row: Row) -> Bytes {
        if self.hidden == 0 {
            return row.payload;
        }
        match self.protocol {
            Protocol::Text => row.payload.slice(..row.cut),
            Protocol::Binary => self.strip_binary(&row),
        }
    }

    /// The NULL bitmap covers hidden columns too: it gets shorter, and its spare bits must be zero.
    fn strip_binary(&self, row: &Row) -> Bytes {
        let visible = self.kinds.len() - self.hidden;
        let old_start = 1 + bitmap_len(self.kinds.len());
        let mut out = Vec::with_capacity(row.cut);
        out.push(0);
        out.resize(1 + bitmap_len(visible), 0);
        for column in (0..visible).filter(|c| is_null(&row.payload, *c)) {
            set_null(&mut out, column);
        }
        out.extend_from_slice(row.payload.get(old_start..row.cut).unwrap_or_default());
        Bytes::from(out)
    }

    /// Builds a row of values already encoded by their kinds, without length prefixes.
    pub(super) fn build(&self, values: &[Option<Vec<u8>>]) -> Bytes {
        let mut out = Vec::new();
        if self.protocol == Protocol::Binary {
            out.push(0);
            out.resize(1 + bitmap_len(values.len()), 0);
        }
        for (column, (value, kind)) in values.iter().zip(&self.kinds).enumerate() {
            match (value, self.protocol) {
                (None, Protocol::Text) => out.push(0xfb),
                (None, Protocol::Binary) => set_null(&mut out, column),
                (Some(v), Protocol::Binary) if kind.is_integer() => out.extend_from_slice(v),
                (Some(v), Protocol::Text | Protocol::Binary) => put_lenenc_str(&mut out, v),
            }
        }
        Bytes::from(out)
    }
}

/// Bytes of the NULL bitmap of a binary row: two bits are reserved in front.
const fn bitmap_len(columns: usize) -> usize {
    (columns + 9) / 8
}

fn is_null(payload: &[u8], column: usize) -> bool {
    payload
        .get(1 + (column + 2) / 8)
        .is_some_and(|b| b & (1 << ((column + 2) % 8)) != 0)
}

fn set_null(payload: &mut [u8], column: usize) {
    if let Some(b) = payload.get_mut(1 + (column + 2) / 8) {
        *b |= 1 << ((column + 2) % 8);
    }
}
