//! COUNT, SUM, MIN and MAX over all rows: one row a leg, combined exactly.
//!
//! Types and metadata are the legs' own: `SUM` of integers is a DECIMAL on every shard as it is on one server, and
//! stays one.

use bytes::Bytes;

use super::GatherError;
use super::number::{MAX_DIGITS, Number};
use super::row::{Cells, RowReader};
use super::value::ValueKind;
use crate::route::Aggregate;

#[derive(Debug)]
struct Column {
    function: Aggregate,
    kind: ValueKind,
    value: Option<Number>,
}

/// The combined row so far.
#[derive(Debug)]
pub(super) struct Aggregates {
    columns: Box<[Column]>,
    rows: Box<[u64]>,
    given: bool,
}

impl Aggregates {
    /// Checks that every function can combine the type the legs answer with.
    pub(super) fn new(legs: usize, functions: &[Aggregate], reader: &RowReader) -> Result<Self, GatherError> {
        if functions.len() != reader.columns() {
            return Err(GatherError::Order(
                "an aggregate's columns are not those of its legs",
            ));
        }
        let column = |(i, function): (usize, &Aggregate)| {
            let kind = reader.kind(i).ok_or(GatherError::Order("missing column"))?;
            let fits = match function {
                Aggregate::Count => kind.is_integer(),
                Aggregate::Sum | Aggregate::Min | Aggregate::Max => kind.is_exact(),
            };
            if fits {
                Ok(Column {
                    function: *function,
                    kind,
                    value: None,
                })
            } else {
                Err(GatherError::AggregateType {
                    function: function.as_str(),
                    kind: kind.name(),
                })
            }
        };
        let columns = functions
            .iter()
            .enumerate()
            .map(column)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            columns,
            rows: vec![0; legs].into(),
            given: false,
        })
    }

    /// Takes a leg's row; `Ok(None)` where it is malformed.
    pub(super) fn push(
        &mut self,
        leg: usize,
        payload: &Bytes,
        cells: &Cells,
        reader: &RowReader,
    ) -> Result<Option<()>, GatherError> {
        if let Some(count) = self.rows.get_mut(leg) {
            *count += 1;
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let Some(span) = cell else { continue };
            let bytes = payload.get(span.clone()).unwrap_or_default();
            let Some(number) = column.kind.number(bytes, reader.protocol()) else {
                return Ok(None);
            };
            column.combine(number)?;
        }
        Ok(Some(()))
    }

    /// The leg whose number of rows is not that of the first leg, or not one.
    pub(super) fn odd_leg(&self) -> Option<(usize, u64)> {
        let expected = (*self.rows.first()?).min(1);
        self.rows
            .iter()
            .enumerate()
            .find(|(_, n)| **n != expected)
            .map(|(leg, n)| (leg, *n))
    }

    /// The one row, once. None where the legs sent none (`LIMIT 0`).
    pub(super) fn pop(&mut self, reader: &RowReader) -> Result<Option<Bytes>, GatherError> {
        if std::mem::replace(&mut self.given, true) || self.rows.iter().all(|n| *n == 0) {
            return Ok(None);
        }
        let encode = |c: &Column| c.value.as_ref().map(|n| c.encode(n, reader)).transpose();
        let values = self.columns.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(reader.build(&values)))
    }

    pub(super) fn is_given(&self) -> bool {
        self.given
    }
}

impl Column {
    fn combine(&mut self, number: Number) -> Result<(), GatherError> {
        let value = match self.value.take() {
            None => number,
            Some(so_far) => match self.function {
                Aggregate::Count | Aggregate::Sum => so_far.add(&number),
                Aggregate::Min => so_far.min(number),
                Aggregate::Max => so_far.max(number),
            },
        };
        if value.precision() > MAX_DIGITS {
            return Err(GatherError::OutOfRange {
                function: self.function.as_str(),
            });
        }
        self.value = Some(value);
        Ok(())
    }

    fn encode(&self, number: &Number, reader: &RowReader) -> Result<Vec<u8>, GatherError> {
        self.kind
            .encode(number, reader.protocol())
            .ok_or(GatherError::OutOfRange {
                function: self.function.as_str(),
            })
    }
}
