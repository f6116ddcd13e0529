//! Column types and flags as column definitions and statement parameters carry them.

macro_rules! column_types {
    ($($(#[$d:meta])* $name:ident = $value:expr;)*) => {
        /// A column's type (`enum_field_types`).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum ColumnType {
            $($(#[$d])* $name = $value,)*
        }
        impl ColumnType {
            /// The type of a byte; `None` if no server has such a type.
            #[must_use]
            pub const fn from_u8(b: u8) -> Option<Self> {
                match b {
                    $($value => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

column_types! {
    /// DECIMAL of servers before 5.0.
    Decimal = 0x00;
    /// TINYINT.
    Tiny = 0x01;
    /// SMALLINT.
    Short = 0x02;
    /// INT.
    Long = 0x03;
    /// FLOAT.
    Float = 0x04;
    /// DOUBLE.
    Double = 0x05;
    /// The type of NULL.
    Null = 0x06;
    /// TIMESTAMP.
    Timestamp = 0x07;
    /// BIGINT.
    LongLong = 0x08;
    /// MEDIUMINT.
    Int24 = 0x09;
    /// DATE.
    Date = 0x0a;
    /// TIME.
    Time = 0x0b;
    /// DATETIME.
    DateTime = 0x0c;
    /// YEAR.
    Year = 0x0d;
    /// Internal DATE.
    NewDate = 0x0e;
    /// VARCHAR.
    VarChar = 0x0f;
    /// BIT.
    Bit = 0x10;
    /// Internal TIMESTAMP.
    Timestamp2 = 0x11;
    /// Internal DATETIME.
    DateTime2 = 0x12;
    /// Internal TIME.
    Time2 = 0x13;
    /// An array, inside the server only.
    TypedArray = 0x14;
    /// VECTOR of `MySQL` 9.
    Vector = 0xf2;
    /// Not a type: an invalid one.
    Invalid = 0xf3;
    /// Not a type: BOOL inside the server.
    Bool = 0xf4;
    /// JSON.
    Json = 0xf5;
    /// DECIMAL.
    NewDecimal = 0xf6;
    /// ENUM.
    Enum = 0xf7;
    /// SET.
    Set = 0xf8;
    /// TINYBLOB, TINYTEXT.
    TinyBlob = 0xf9;
    /// MEDIUMBLOB, MEDIUMTEXT.
    MediumBlob = 0xfa;
    /// LONGBLOB, LONGTEXT.
    LongBlob = 0xfb;
    /// BLOB, TEXT.
    Blob = 0xfc;
    /// VARCHAR, VARBINARY.
    VarString = 0xfd;
    /// CHAR, BINARY; ENUM and SET in results.
    String = 0xfe;
    /// Spatial types.
    Geometry = 0xff;
}

/// How a value of a type is laid out in the binary protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryShape {
    /// Nothing.
    Null,
    /// That many bytes, little endian.
    Fixed(u8),
    /// One length byte, then that many bytes of date and time.
    Temporal,
    /// A length-encoded string.
    LenEnc,
}

impl ColumnType {
    /// The layout of a value of this type in binary rows and in statement parameters.
    #[must_use]
    pub const fn binary_shape(self) -> BinaryShape {
        match self {
            Self::Null => BinaryShape::Null,
            Self::Tiny => BinaryShape::Fixed(1),
            Self::Short | Self::Year => BinaryShape::Fixed(2),
            Self::Long | Self::Int24 | Self::Float => BinaryShape::Fixed(4),
            Self::LongLong | Self::Double => BinaryShape::Fixed(8),
            Self::Date
            | Self::NewDate
            | Self::DateTime
            | Self::DateTime2
            | Self::Timestamp
            | Self::Timestamp2
            | Self::Time
            | Self::Time2 => BinaryShape::Temporal,
            Self::Decimal
            | Self::VarChar
            | Self::Bit
            | Self::TypedArray
            | Self::Vector
            | Self::Invalid
            | Self::Bool
            | Self::Json
            | Self::NewDecimal
            | Self::Enum
            | Self::Set
            | Self::TinyBlob
            | Self::MediumBlob
            | Self::LongBlob
            | Self::Blob
            | Self::VarString
            | Self::String
            | Self::Geometry => BinaryShape::LenEnc,
        }
    }

    /// TINYINT to BIGINT and YEAR.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::Tiny | Self::Short | Self::Long | Self::Int24 | Self::LongLong | Self::Year
        )
    }
}

/// A column's flags (`*_FLAG`), 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ColumnFlags;

impl ColumnFlags {
    /// NOT NULL.
    pub const NOT_NULL: u16 = 1;
    /// Part of the primary key.
    pub const PRI_KEY: u16 = 1 << 1;
    /// Part of a unique key.
    pub const UNIQUE_KEY: u16 = 1 << 2;
    /// Part of another key.
    pub const MULTIPLE_KEY: u16 = 1 << 3;
    /// A BLOB or TEXT.
    pub const BLOB: u16 = 1 << 4;
    /// UNSIGNED.
    pub const UNSIGNED: u16 = 1 << 5;
    /// ZEROFILL.
    pub const ZEROFILL: u16 = 1 << 6;
    /// Of the binary collation.
    pub const BINARY: u16 = 1 << 7;
    /// An ENUM.
    pub const ENUM: u16 = 1 << 8;
    /// `AUTO_INCREMENT`.
    pub const AUTO_INCREMENT: u16 = 1 << 9;
    /// A TIMESTAMP.
    pub const TIMESTAMP: u16 = 1 << 10;
    /// A SET.
    pub const SET: u16 = 1 << 11;
    /// Without a default.
    pub const NO_DEFAULT_VALUE: u16 = 1 << 12;
    /// Set to NOW on update.
    pub const ON_UPDATE_NOW: u16 = 1 << 13;
    /// A number.
    pub const NUM: u16 = 1 << 15;
}
