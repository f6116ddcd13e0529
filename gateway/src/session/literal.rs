//! Values as SQL that replays exactly, whatever `sql_mode` and character set hold when it is replayed.

use shardgate_sql::{Literal, SetValue};
use shardgate_wire::protocol::BINARY;
use shardgate_wire::{ColumnDef, ColumnType};

use super::Session;

impl Session {
    /// A value that a tablet worked out, as a literal of the same type.
    pub(super) fn value_sql(&self, column: &ColumnDef, value: &[u8], is_user: bool) -> String {
        let text = || String::from_utf8_lossy(value).into_owned();
        match column.column_type {
            ColumnType::Tiny
            | ColumnType::Short
            | ColumnType::Int24
            | ColumnType::Long
            | ColumnType::LongLong
            | ColumnType::Year => {
                if is_user && column.is_unsigned() {
                    return format!("CAST({} AS UNSIGNED)", text());
                }
                text()
            }
            ColumnType::Decimal | ColumnType::NewDecimal => text(),
            // An exponent keeps it approximate.
            ColumnType::Float | ColumnType::Double => {
                let text = text();
                if text.contains(['e', 'E']) {
                    text
                } else {
                    format!("{text}e0")
                }
            }
            _ if column.charset == BINARY && is_user => format!("x'{}'", hex(value)),
            _ => self.string_sql(value),
        }
    }

    /// A literal as SQL that means the same under every `sql_mode`.
    pub(super) fn literal_sql(&self, value: &SetValue<'_>) -> String {
        match value {
            SetValue::Default => "DEFAULT".into(),
            SetValue::Null | SetValue::Expression => "NULL".into(),
            SetValue::Bool(b) => u8::from(*b).to_string(),
            SetValue::Word(word) => self.string_sql(word),
            SetValue::Negative(literal) => format!("-{}", self.plain_literal(literal)),
            SetValue::Literal(literal) => self.plain_literal(literal),
        }
    }

    fn plain_literal(&self, literal: &Literal<'_>) -> String {
        match literal {
            Literal::String(bytes) => self.string_sql(bytes),
            other => other_sql(other),
        }
    }

    fn string_sql(&self, bytes: &[u8]) -> String {
        let plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'\'' | b'\\') || *b == b' ';
        if bytes.iter().all(plain) {
            return format!("'{}'", String::from_utf8_lossy(bytes));
        }
        let hex = hex(bytes);
        format!("_{} x'{hex}'", self.state.charset)
    }
}

/// A value of a SET as text, for messages and for words.
pub(super) fn literal_text(value: &SetValue<'_>) -> String {
    match value {
        SetValue::Default => "DEFAULT".into(),
        SetValue::Null => "NULL".into(),
        SetValue::Bool(b) => b.to_string(),
        SetValue::Word(word) | SetValue::Literal(Literal::String(word)) => {
            String::from_utf8_lossy(word).into_owned()
        }
        SetValue::Literal(literal) => other_sql(literal),
        SetValue::Negative(literal) => format!("-{}", other_sql(literal)),
        SetValue::Expression => "an expression".into(),
    }
}

/// A literal that is not a plain string, as SQL.
fn other_sql(literal: &Literal<'_>) -> String {
    match literal {
        Literal::Int(n) => n.to_string(),
        Literal::Decimal(text) | Literal::Float(text) => (*text).to_owned(),
        Literal::String(bytes) | Literal::NationalString(bytes) => format!("_utf8mb4 x'{}'", hex(bytes)),
        Literal::Hex(bytes) | Literal::Bit(bytes) => format!("x'{}'", hex(bytes)),
        Literal::Placeholder => "?".to_owned(),
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{b:02x}");
            out
        })
}
