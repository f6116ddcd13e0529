//! The types of columns and expressions, and how a client is told about them.
//!
//! `SQLite` gives a value a class only when it is computed; `MySQL` knows each expression's type before the first row.
//! The translator therefore carries a [`Ty`] with every expression, and values live in `SQLite` in one fixed form per
//! type:
//!
//! | type | in `SQLite` |
//! |---|---|
//! | integers | INTEGER; above `i64::MAX` eight big-endian bytes, which sort behind every INTEGER |
//! | DECIMAL | TEXT with exactly the scale's digits, collation `my_dec` |
//! | FLOAT, DOUBLE | REAL |
//! | texts, ENUM, JSON | TEXT |
//! | BINARY, BLOB | BLOB |
//! | DATE, DATETIME, TIMESTAMP | TEXT in the server's own form, fraction padded to the type's digits |
//! | TIME | INTEGER microseconds |

mod column;
mod integer;

use std::sync::Arc;

pub(crate) use column::{ColumnMeta, flag};
pub(crate) use integer::IntSize;

use super::collate::Collation;

/// Which of the text types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Char,
    Varchar,
    /// TINYTEXT, TEXT, MEDIUMTEXT, LONGTEXT, by the bytes of their length field.
    Text(u8),
}

/// Which of the byte types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BytesKind {
    Binary,
    Varbinary,
    /// TINYBLOB, BLOB, MEDIUMBLOB, LONGBLOB, by the bytes of their length field.
    Blob(u8),
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ty {
    Null,
    Int {
        size: IntSize,
        unsigned: bool,
        width: u32,
    },
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
    },
    Float,
    Double,
    /// `len` counts characters.
    Text {
        kind: TextKind,
        len: u32,
        collation: Collation,
    },
    /// `len` counts bytes.
    Bytes {
        kind: BytesKind,
        len: u32,
    },
    Enum(Arc<[String]>, Collation),
    Json,
    Date,
    DateTime {
        fsp: u8,
        timestamp: bool,
    },
    Time {
        fsp: u8,
    },
    Year,
}

/// The coarse kinds that conversion and comparison tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Null,
    Int,
    Decimal,
    Double,
    Text,
    Bytes,
    Date,
    DateTime,
    Time,
}

/// Decimals field of a value whose digits vary.
const NOT_FIXED: u8 = 31;

impl Ty {
    /// What COUNT, LENGTH and most integer functions give.
    pub(crate) const BIGINT: Self = Self::Int {
        size: IntSize::Big,
        unsigned: false,
        width: 21,
    };
    /// Unsigned 64 bits.
    pub(crate) const UBIGINT: Self = Self::Int {
        size: IntSize::Big,
        unsigned: true,
        width: 20,
    };
    /// What a comparison gives.
    pub(crate) const BOOL: Self = Self::Int {
        size: IntSize::Big,
        unsigned: false,
        width: 1,
    };

    pub(crate) const fn text(len: u32) -> Self {
        Self::Text {
            kind: TextKind::Varchar,
            len,
            collation: Collation::Ci,
        }
    }

    pub(crate) const fn bytes(len: u32) -> Self {
        Self::Bytes {
            kind: BytesKind::Varbinary,
            len,
        }
    }

    pub(crate) fn decimal(precision: u32, scale: u32) -> Self {
        let scale = scale.min(u32::from(super::decimal::MAX_SCALE)) as u8;
        let precision =
            precision.clamp(u32::from(scale).max(1), u32::from(super::decimal::MAX_PRECISION)) as u8;
        Self::Decimal {
            precision,
            scale,
            unsigned: false,
        }
    }

    pub(crate) const fn class(&self) -> Class {
        match self {
            Self::Null => Class::Null,
            Self::Int { .. } | Self::Year => Class::Int,
            Self::Decimal { .. } => Class::Decimal,
            Self::Float | Self::Double => Class::Double,
            Self::Text { .. } | Self::Enum(..) | Self::Json => Class::Text,
            Self::Bytes { .. } => Class::Bytes,
            Self::Date => Class::Date,
            Self::DateTime { .. } => Class::DateTime,
            Self::Time { .. } => Class::Time,
        }
    }

    pub(crate) const fn is_unsigned(&self) -> bool {
        matches!(
            self,
            Self::Int { unsigned: true, .. } | Self::Decimal { unsigned: true, .. } | Self::Year
        )
    }

    /// The collation texts of this type compare by.
    pub(crate) const fn collation(&self) -> Collation {
        match self {
            Self::Text { collation, .. } | Self::Enum(_, collation) => *collation,
            Self::Json => Collation::Bin,
            _ => Collation::Ci,
        }
    }

    /// The `SQLite` collation an ordering of this type needs; nothing where the natural order is right.
    pub(crate) const fn sqlite_collation(&self) -> Option<&'static str> {
        match self.class() {
            Class::Text => Some(self.collation().sqlite()),
            Class::Decimal => Some("my_dec"),
            // Written out, so that none from deeper inside an expression is used.
            Class::Date | Class::DateTime => Some("BINARY"),
            _ => None,
        }
    }

    /// Digits in front of and behind the point when seen as an exact number.
    pub(crate) fn digits(&self) -> (u32, u32) {
        match self {
            Self::Int {
                size,
                unsigned,
                width,
            } => {
                let full = u32::from(size.digits(*unsigned));
                // A constant's width says how large it can be.
                (
                    if *size == IntSize::Big && *width < full {
                        (*width).max(1)
                    } else {
                        full
                    },
                    0,
                )
            }
            Self::Year => (4, 0),
            Self::Decimal { precision, scale, .. } => (u32::from(*precision - *scale), u32::from(*scale)),
            Self::Date => (8, 0),
            Self::DateTime { fsp, .. } => (14, u32::from(*fsp)),
            Self::Time { fsp } => (7, u32::from(*fsp)),
            Self::Null => (1, 0),
            _ => (20, 0),
        }
    }

    /// Characters a value takes as text.
    pub(crate) fn chars(&self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Int { width, .. } => *width,
            Self::Decimal {
                precision,
                scale,
                unsigned,
            } => u32::from(*precision) + u32::from(*scale > 0) + u32::from(!unsigned),
            Self::Float => 12,
            Self::Double => 22,
            Self::Text { len, .. } | Self::Bytes { len, .. } => *len,
            Self::Enum(values, _) => values.iter().map(|v| v.chars().count() as u32).max().unwrap_or(0),
            Self::Json => u32::MAX / 4,
            Self::Date => 10,
            Self::DateTime { fsp, .. } => 19 + fsp_chars(*fsp),
            Self::Time { fsp } => 10 + fsp_chars(*fsp),
            Self::Year => 4,
        }
    }

    /// The type's number on the wire.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Null => 6,
            Self::Int { size, .. } => size.code(),
            Self::Decimal { .. } => 246,
            Self::Float => 4,
            Self::Double => 5,
            Self::Text {
                kind: TextKind::Varchar,
                ..
            }
            | Self::Bytes {
                kind: BytesKind::Varbinary,
                ..
            } => 253,
            Self::Text {
                kind: TextKind::Char, ..
            }
            | Self::Bytes {
                kind: BytesKind::Binary,
                ..
            }
            | Self::Enum(..) => 254,
            Self::Text {
                kind: TextKind::Text(_),
                ..
            }
            | Self::Bytes {
                kind: BytesKind::Blob(_),
                ..
            } => 252,
            Self::Json => 245,
            Self::Date => 10,
            Self::DateTime { timestamp: false, .. } => 12,
            Self::DateTime { timestamp: true, .. } => 7,
            Self::Time { .. } => 11,
            Self::Year => 13,
        }
    }

    /// Column length on the wire: bytes at the connection's four a character.
    pub(crate) fn wire_length(&self) -> u32 {
        match self {
            Self::Text { .. } | Self::Enum(..) => self.chars().saturating_mul(4),
            Self::Json => u32::MAX,
            _ => self.chars(),
        }
    }

    /// Whether values are bytes without a charset on the wire.
    pub(crate) const fn is_binary_on_wire(&self) -> bool {
        !matches!(self, Self::Text { .. } | Self::Enum(..))
    }

    /// Decimals field on the wire.
    pub(crate) const fn wire_decimals(&self) -> u8 {
        match self {
            Self::Decimal { scale, .. } => *scale,
            Self::Float | Self::Double => NOT_FIXED,
            Self::DateTime { fsp, .. } | Self::Time { fsp } => *fsp,
            _ => 0,
        }
    }

    /// Flags that follow from the type alone.
    pub(crate) fn flags(&self) -> u16 {
        let mut flags = match self {
            Self::Int { .. } | Self::Decimal { .. } | Self::Float | Self::Double | Self::Null => {
                flag::BINARY | flag::NUM
            }
            Self::Year => flag::UNSIGNED | flag::ZEROFILL | flag::NUM,
            Self::Text {
                kind: TextKind::Text(_),
                ..
            } => flag::BLOB,
            Self::Text { .. } => 0,
            Self::Bytes {
                kind: BytesKind::Blob(_),
                ..
            }
            | Self::Json => flag::BLOB | flag::BINARY,
            Self::Bytes { .. } | Self::Date | Self::Time { .. } | Self::DateTime { .. } => flag::BINARY,
            Self::Enum(..) => flag::ENUM,
        };
        if self.is_unsigned() {
            flags |= flag::UNSIGNED;
        }
        if self.collation() == Collation::Bin && matches!(self, Self::Text { .. } | Self::Enum(..)) {
            flags |= flag::BINARY;
        }
        flags
    }

    /// `DATA_TYPE` of the information schema.
    pub(crate) const fn data_type(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int { size, .. } => size.name(),
            Self::Decimal { .. } => "decimal",
            Self::Float => "float",
            Self::Double => "double",
            Self::Text {
                kind: TextKind::Char, ..
            } => "char",
            Self::Text {
                kind: TextKind::Varchar,
                ..
            } => "varchar",
            Self::Text {
                kind: TextKind::Text(n),
                ..
            } => match n {
                1 => "tinytext",
                2 => "text",
                3 => "mediumtext",
                _ => "longtext",
            },
            Self::Bytes {
                kind: BytesKind::Binary,
                ..
            } => "binary",
            Self::Bytes {
                kind: BytesKind::Varbinary,
                ..
            } => "varbinary",
            Self::Bytes {
                kind: BytesKind::Blob(n),
                ..
            } => match n {
                1 => "tinyblob",
                2 => "blob",
                3 => "mediumblob",
                _ => "longblob",
            },
            Self::Enum(..) => "enum",
            Self::Json => "json",
            Self::Date => "date",
            Self::DateTime { timestamp: false, .. } => "datetime",
            Self::DateTime { timestamp: true, .. } => "timestamp",
            Self::Time { .. } => "time",
            Self::Year => "year",
        }
    }

    /// `COLUMN_TYPE` of the information schema, as SHOW CREATE TABLE spells it.
    pub(crate) fn column_type(&self) -> String {
        let name = self.data_type();
        let unsigned = if matches!(self, Self::Year) || !self.is_unsigned() {
            ""
        } else {
            " unsigned"
        };
        match self {
            Self::Int {
                width,
                size,
                unsigned: u,
            } => {
                // Only `tinyint(1)` keeps its width in current servers; others show it where it was written.
                let natural = size.width(*u);
                if *size == IntSize::Tiny && *width == 1 {
                    format!("{name}(1){unsigned}")
                } else {
                    format!("{name}({}){unsigned}", if *width == 0 { natural } else { *width })
                }
            }
            Self::Decimal { precision, scale, .. } => format!("{name}({precision},{scale}){unsigned}"),
            Self::Text {
                kind: TextKind::Char | TextKind::Varchar,
                len,
                ..
            }
            | Self::Bytes {
                kind: BytesKind::Binary | BytesKind::Varbinary,
                len,
            } => format!("{name}({len})"),
            Self::Enum(values, _) => {
                let list: Vec<String> = values
                    .iter()
                    .map(|v| format!("'{}'", v.replace('\'', "''")))
                    .collect();
                format!("enum({})", list.join(","))
            }
            Self::DateTime { fsp, .. } | Self::Time { fsp } if *fsp > 0 => format!("{name}({fsp})"),
            Self::Year => "year(4)".to_owned(),
            _ => name.to_owned(),
        }
    }
}

const fn fsp_chars(fsp: u8) -> u32 {
    if fsp == 0 { 0 } else { fsp as u32 + 1 }
}
