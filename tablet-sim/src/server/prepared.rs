//! Prepared statements: their texts, parameter types and long data, all bounded.

use std::collections::HashMap;

use shardgate_wire::ColumnType;
use shardgate_wire::codec::binary::{Value as BinaryValue, put_text};
use shardgate_wire::codec::execute::{Execute, Param, ParamType};

use crate::engine::parse::Parsed;
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};

/// `max_prepared_stmt_count`'s default, here per connection.
const MAX_STATEMENTS: usize = 16_382;
/// The most long data a statement may collect: `max_allowed_packet`.
const MAX_LONG_DATA: usize = 64 << 20;

/// The decimals of a value whose digits are not fixed.
const NOT_FIXED: u8 = 31;

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) parsed: Parsed,
    types: Vec<ParamType>,
    long: HashMap<usize, Vec<u8>>,
    long_bytes: usize,
}

/// A connection's prepared statements.
#[derive(Debug, Default)]
pub(super) struct Statements {
    all: HashMap<u32, Prepared>,
    next: u32,
}

fn unknown(id: u32, what: &str) -> SqlError {
    SqlError::new(
        1243,
        *b"HY000",
        format!("Unknown prepared statement handler ({id}) given to {what}"),
    )
}

impl Statements {
    pub(super) fn add(&mut self, parsed: Parsed) -> SqlResult<u32> {
        if self.all.len() >= MAX_STATEMENTS {
            return Err(SqlError::new(
                1461,
                *b"42000",
                format!(
                    "Can't create more than max_prepared_stmt_count statements (current value: {MAX_STATEMENTS})"
                ),
            ));
        }
        if parsed.placeholders > usize::from(u16::MAX) {
            return Err(SqlError::new(
                1390,
                *b"HY000",
                "Prepared statement contains too many placeholders",
            ));
        }
        self.next = self.next.wrapping_add(1).max(1);
        let prepared = Prepared {
            parsed,
            types: Vec::new(),
            long: HashMap::new(),
            long_bytes: 0,
        };
        self.all.insert(self.next, prepared);
        Ok(self.next)
    }

    pub(super) fn close(&mut self, id: u32) {
        self.all.remove(&id);
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    pub(super) fn reset(&mut self, id: u32) -> SqlResult<()> {
        let prepared = self
            .all
            .get_mut(&id)
            .ok_or_else(|| unknown(id, "mysqld_stmt_reset"))?;
        prepared.long.clear();
        prepared.long_bytes = 0;
        Ok(())
    }

    /// Keeps a piece of a long parameter; a wrong one is ignored until the statement runs, as the protocol has it.
    pub(super) fn long_data(&mut self, id: u32, param: u16, data: &[u8]) {
        let Some(prepared) = self.all.get_mut(&id) else {
            return;
        };
        prepared.long_bytes = prepared.long_bytes.saturating_add(data.len());
        if usize::from(param) < prepared.parsed.placeholders && prepared.long_bytes <= MAX_LONG_DATA {
            prepared
                .long
                .entry(usize::from(param))
                .or_default()
                .extend_from_slice(data);
        }
    }

    /// The statement with its parameters filled in.
    pub(super) fn bind(&mut self, id: u32, payload: &[u8], backslashes: bool) -> SqlResult<Parsed> {
        let prepared = self
            .all
            .get_mut(&id)
            .ok_or_else(|| unknown(id, "mysqld_stmt_execute"))?;
        let Prepared {
            parsed,
            types,
            long,
            long_bytes,
        } = prepared;
        if *long_bytes > MAX_LONG_DATA {
            return Err(SqlError::new(
                1153,
                *b"08S01",
                "Got a packet bigger than 'max_allowed_packet' bytes",
            ));
        }
        let wrong = |e| {
            SqlError::new(
                1210,
                *b"HY000",
                format!("Incorrect arguments to mysqld_stmt_execute ({e:?})"),
            )
        };
        let execute =
            Execute::parse(payload, parsed.placeholders, types, |i| long.contains_key(&i)).map_err(wrong)?;
        let mut literals = Vec::with_capacity(execute.params.len());
        for (i, (param, ty)) in execute.params.iter().zip(types.iter()).enumerate() {
            literals.push(match param {
                Param::Null => "NULL".to_owned(),
                Param::LongData => {
                    let data = long.get(&i).map_or(&[][..], Vec::as_slice);
                    text_literal(data, is_binary(ty.column_type), backslashes)
                }
                Param::Value(_) => {
                    let value = param.decode(*ty).map_err(wrong)?;
                    match value {
                        // Shown with six digits only, but meant with all.
                        Some(BinaryValue::Float(f)) => format!("{:e}", f64::from(f)),
                        Some(BinaryValue::Double(f)) => format!("{f:e}"),
                        Some(value) => {
                            let mut text = Vec::new();
                            put_text(&mut text, &value, NOT_FIXED);
                            literal(*ty, &text, backslashes)
                        }
                        None => "NULL".to_owned(),
                    }
                }
            });
        }
        long.clear();
        *long_bytes = 0;
        parsed.filled(&literals)
    }
}

const fn is_binary(ty: ColumnType) -> bool {
    matches!(
        ty,
        ColumnType::Blob
            | ColumnType::TinyBlob
            | ColumnType::MediumBlob
            | ColumnType::LongBlob
            | ColumnType::Bit
    )
}

/// A parameter's value as a literal of the statement.
fn literal(ty: ParamType, text: &[u8], backslashes: bool) -> String {
    let shown = || String::from_utf8_lossy(text).into_owned();
    match ty.column_type {
        t if t.is_integer() => shown(),
        ColumnType::Decimal | ColumnType::NewDecimal => shown(),
        t => text_literal(text, is_binary(t), backslashes),
    }
}

/// Bytes that are text become a quoted string, others hexadecimal.
fn text_literal(bytes: &[u8], binary: bool, backslashes: bool) -> String {
    match std::str::from_utf8(bytes) {
        // A client sends its texts as BLOB, too, if it does not know the column; only what is no text needs care.
        Ok(text) if !binary || !text.contains('\0') => {
            let doubled = text.replace('\'', "''");
            let escaped = if backslashes {
                doubled.replace('\\', "\\\\")
            } else {
                doubled
            };
            format!("'{escaped}'")
        }
        _ if bytes.is_empty() => "''".to_owned(),
        _ => Value::Bytes(bytes.to_vec()).literal(),
    }
}
