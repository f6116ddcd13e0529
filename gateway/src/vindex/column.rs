//! A column's declared type, as far as comparing, storing and hashing its values needs it.

use std::fmt;
use std::sync::Arc;

use super::collation::Collation;

/// Width of an integer column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntWidth {
    /// TINYINT, also BOOL.
    Tiny,
    /// SMALLINT.
    Small,
    /// MEDIUMINT.
    Medium,
    /// INT.
    Int,
    /// BIGINT.
    Big,
}

impl IntWidth {
    /// Bits it stores.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Tiny => 8,
            Self::Small => 16,
            Self::Medium => 24,
            Self::Int => 32,
            Self::Big => 64,
        }
    }

    /// Smallest and largest value.
    #[must_use]
    pub const fn bounds(self, unsigned: bool) -> (i128, i128) {
        let bits = self.bits();
        if unsigned {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
    }
}

/// How a string column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringKind {
    /// CHAR(n) or BINARY(n).
    Fixed,
    /// VARCHAR(n) or VARBINARY(n).
    Variable,
    /// The TEXT or BLOB family; its length is in bytes.
    Large,
}

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Any of the integer types.
    Int {
        /// Its width.
        width: IntWidth,
        /// UNSIGNED (ZEROFILL implies it).
        unsigned: bool,
    },
    /// DECIMAL(p, s).
    Decimal {
        /// All digits.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// BIT(n).
    Bit {
        /// Bits.
        bits: u8,
    },
    /// CHAR, VARCHAR and the TEXT family.
    Char {
        /// Layout.
        kind: StringKind,
        /// Declared length: characters, for [`StringKind::Large`] bytes.
        length: u64,
        /// Collation, with its character set.
        collation: Collation,
    },
    /// BINARY, VARBINARY and the BLOB family.
    Binary {
        /// Layout.
        kind: StringKind,
        /// Declared length in bytes.
        length: u64,
    },
    /// DATE.
    Date,
    /// DATETIME(fsp).
    DateTime {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    /// TIMESTAMP(fsp).
    Timestamp {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    /// TIME(fsp).
    Time {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
    /// YEAR.
    Year,
    /// ENUM.
    Enum {
        /// Its members, in order.
        values: Arc<[Box<str>]>,
        /// Collation, with its character set.
        collation: Collation,
    },
    /// SET.
    Set {
        /// Its members, in order.
        values: Arc<[Box<str>]>,
        /// Collation, with its character set.
        collation: Collation,
    },
    /// JSON (on `MariaDB` a LONGTEXT with a check, so it is learned as text there).
    Json,
    /// A type the gateway knows nothing of: geometry, `MariaDB`'s `uuid` and `inet6`, vectors.
    Other(
        /// The server's word for it.
        Arc<str>,
    ),
}

impl ColumnType {
    /// The collation of a character column.
    #[must_use]
    pub fn collation(&self) -> Option<&Collation> {
        match self {
            Self::Char { collation, .. } | Self::Enum { collation, .. } | Self::Set { collation, .. } => {
                Some(collation)
            }
            Self::Int { .. }
            | Self::Decimal { .. }
            | Self::Float
            | Self::Double
            | Self::Bit { .. }
            | Self::Binary { .. }
            | Self::Date
            | Self::DateTime { .. }
            | Self::Timestamp { .. }
            | Self::Time { .. }
            | Self::Year
            | Self::Json
            | Self::Other(_) => None,
        }
    }

    /// Whether it is one of the integer types.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Int { .. })
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |unsigned: &bool| if *unsigned { " unsigned" } else { "" };
        match self {
            Self::Int { width, unsigned } => {
                let name = match width {
                    IntWidth::Tiny => "tinyint",
                    IntWidth::Small => "smallint",
                    IntWidth::Medium => "mediumint",
                    IntWidth::Int => "int",
                    IntWidth::Big => "bigint",
                };
                write!(f, "{name}{}", sign(unsigned))
            }
            Self::Decimal {
                precision,
                scale,
                unsigned,
            } => {
                write!(f, "decimal({precision},{scale}){}", sign(unsigned))
            }
            Self::Float => f.write_str("float"),
            Self::Double => f.write_str("double"),
            Self::Bit { bits } => write!(f, "bit({bits})"),
            Self::Char {
                kind,
                length,
                collation,
            } => {
                let name = match kind {
                    StringKind::Fixed => "char",
                    StringKind::Variable => "varchar",
                    StringKind::Large => "text",
                };
                write!(f, "{name}({length}) collate {collation}")
            }
            Self::Binary { kind, length } => {
                let name = match kind {
                    StringKind::Fixed => "binary",
                    StringKind::Variable => "varbinary",
                    StringKind::Large => "blob",
                };
                write!(f, "{name}({length})")
            }
            Self::Date => f.write_str("date"),
            Self::DateTime { fsp } => write!(f, "datetime({fsp})"),
            Self::Timestamp { fsp } => write!(f, "timestamp({fsp})"),
            Self::Time { fsp } => write!(f, "time({fsp})"),
            Self::Year => f.write_str("year"),
            Self::Enum { values, collation } => write!(f, "enum of {} collate {collation}", values.len()),
            Self::Set { values, collation } => write!(f, "set of {} collate {collation}", values.len()),
            Self::Json => f.write_str("json"),
            Self::Other(name) => f.write_str(name),
        }
    }
}
