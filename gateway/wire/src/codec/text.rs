//! Rows of the text protocol: cells one after the other, each a length-encoded string or NULL.

use super::read::{Malformed, Reader};
use super::write::{lenenc_len, put_lenenc_str};

/// Where a cell lies in its row's payload: `start..end` of its bytes, or [`Span::NULL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of a NULL.
    pub const NULL: Self = Self {
        start: u32::MAX,
        end: u32::MAX,
    };

    /// Whether the cell is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.start == u32::MAX
    }

    /// The cell's bytes in `row`; `None` for NULL, or if the span is of another row.
    #[must_use]
    pub fn get(self, row: &[u8]) -> Option<&[u8]> {
        row.get(self.start as usize..self.end as usize)
    }
}

/// The cells of a row, in order. Ends after an error.
pub fn cells(row: &[u8]) -> impl Iterator<Item = Result<Option<&[u8]>, Malformed>> {
    let mut r = Reader::new(row);
    std::iter::from_fn(move || {
        if r.is_empty() {
            return None;
        }
        let cell = r.cell("text row");
        if cell.is_err() {
            r = Reader::new(&[]);
        }
        Some(cell)
    })
}

/// Replaces `spans` with the spans of the row's cells, of which there must be exactly `columns`. The vector is the
/// caller's, so that a stream of rows allocates once.
pub fn spans(row: &[u8], columns: usize, spans: &mut Vec<Span>) -> Result<(), Malformed> {
    const WHAT: &str = "text row";
    spans.clear();
    let total = u32::try_from(row.len()).map_err(|_| Malformed(WHAT))?;
    let mut r = Reader::new(row);
    for _ in 0..columns {
        let cell = r.cell(WHAT)?;
        // What is left is never longer than the row, whose length fits.
        let end = total - r.rest().len() as u32;
        spans.push(cell.map_or(Span::NULL, |c| Span {
            start: end - c.len() as u32,
            end,
        }));
    }
    if r.is_empty() {
        Ok(())
    } else {
        Err(Malformed(WHAT))
    }
}

/// Appends a cell.
pub fn put_cell(out: &mut Vec<u8>, cell: Option<&[u8]>) {
    match cell {
        Some(bytes) => put_lenenc_str(out, bytes),
        None => out.push(0xfb),
    }
}

/// The bytes that [`put_cell`] takes for a cell of `len` bytes.
#[must_use]
pub const fn cell_len(len: usize) -> usize {
    lenenc_len(len as u64) + len
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_back_by_cells_and_by_spans(
            row in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..400)), 0..20)
        ) {
            let mut out = Vec::new();
            for c in &row {
                put_cell(&mut out, c.as_deref());
            }
            let want: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
            let got: Vec<Option<&[u8]>> = cells(&out).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(&got, &want);
            let mut at = Vec::new();
            spans(&out, row.len(), &mut at).unwrap();
            let got: Vec<Option<&[u8]>> = at.iter().map(|s| s.get(&out)).collect();
            prop_assert_eq!(&got, &want);
            prop_assert!(spans(&out, row.len() + 1, &mut at).is_err());
        }
    }

    #[test]
    fn a_row_with_too_many_cells_is_malformed() {
        assert!(spans(&[1, b'a', 1, b'b'], 1, &mut Vec::new()).is_err());
    }
}
