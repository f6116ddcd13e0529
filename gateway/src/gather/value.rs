//! Single values inside rows: how wide they are, and what number they are.

use super::columns::lenenc;
use super::number::Number;

/// Which of the two row formats a result uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// `COM_QUERY`: every value is text.
    Text,
    /// `COM_STMT_EXECUTE`: values by their type.
    Binary,
}

const UNSIGNED: u16 = 32;

/// What a column definition says about the values below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ValueKind {
    pub(super) type_code: u8,
    pub(super) flags: u16,
    pub(super) decimals: u8,
}

/// How long a value is in the binary format.
pub(super) enum Width {
    Fixed(usize),
    /// One length byte, then that many.
    Short,
    /// A length-encoded string.
    Lenenc,
}

impl ValueKind {
    pub(super) fn is_integer(self) -> bool {
        // TINY, SHORT, LONG, LONGLONG, INT24, YEAR. ENUM, SET and BIT come under other codes.
        matches!(self.type_code, 1 | 2 | 3 | 8 | 9 | 13)
    }

    pub(super) fn is_decimal(self) -> bool {
        matches!(self.type_code, 0 | 246)
    }

    pub(super) fn is_exact(self) -> bool {
        self.is_integer() || self.is_decimal()
    }

    pub(super) fn is_unsigned(self) -> bool {
        self.flags & UNSIGNED != 0 || self.type_code == 13
    }

    /// A DECIMAL's digits: its length counts a sign and a point too, where it has them.
    pub(super) fn decimal_digits(self, length: u32) -> u32 {
        length
            .saturating_sub(u32::from(self.decimals > 0))
            .saturating_sub(u32::from(!self.is_unsigned()))
    }

    /// The type's name, for messages.
    pub(super) fn name(self) -> &'static str {
        match self.type_code {
            0 | 246 => "DECIMAL",
            1 => "TINYINT",
            2 => "SMALLINT",
            3 => "INT",
            4 => "FLOAT",
            5 => "DOUBLE",
            6 => "NULL",
            7 => "TIMESTAMP",
            8 => "BIGINT",
            9 => "MEDIUMINT",
            10 | 14 => "DATE",
            11 => "TIME",
            12 => "DATETIME",
            13 => "YEAR",
            15 | 253 | 254 => "a string",
            16 => "BIT",
            245 => "JSON",
            247 => "ENUM",
            248 => "SET",
            249..=252 => "TEXT or BLOB",
            255 => "GEOMETRY",
            _ => "an unknown type",
        }
    }

    pub(super) fn width(self) -> Width {
        match self.type_code {
            1 => Width::Fixed(1),
            2 | 13 => Width::Fixed(2),
            3 | 4 | 9 => Width::Fixed(4),
            5 | 8 => Width::Fixed(8),
            6 => Width::Fixed(0),
            7 | 10 | 11 | 12 | 14 => Width::Short,
            _ => Width::Lenenc,
        }
    }

    /// A value's span at the start of `rest`: where its content begins and where the value ends.
    pub(super) fn binary_span(self, rest: &[u8]) -> Option<(usize, usize)> {
        let (start, end) = match self.width() {
            Width::Fixed(n) => (0, n),
            Width::Short => (1, 1 + usize::from(*rest.first()?)),
            Width::Lenenc => {
                let (len, used) = lenenc(rest)?;
                (used, used.checked_add(usize::try_from(len).ok()?)?)
            }
        };
        (end <= rest.len()).then_some((start, end))
    }

    /// A value as an integer in units of the column's last decimal place: `12.30` at two decimals is 1230. `None` where
    /// it is not such a value or has more than 38 digits.
    pub(super) fn scaled(self, cell: &[u8], protocol: Protocol) -> Option<i128> {
        if self.is_integer() {
            return match protocol {
                Protocol::Text => scaled_text(cell, 0),
                Protocol::Binary => self.binary_int(cell),
            };
        }
        scaled_text(cell, usize::from(self.decimals))
    }

    /// A value as an exact number.
    pub(super) fn number(self, cell: &[u8], protocol: Protocol) -> Option<Number> {
        match protocol {
            Protocol::Binary if self.is_integer() => self.binary_int(cell).map(Number::from_i128),
            Protocol::Text | Protocol::Binary => Number::parse(cell),
        }
    }

    fn binary_int(self, cell: &[u8]) -> Option<i128> {
        let mut wide = [0u8; 8];
        wide.get_mut(..cell.len())?.copy_from_slice(cell);
        let unsigned = u64::from_le_bytes(wide);
        if self.is_unsigned() || cell.is_empty() {
            return Some(i128::from(unsigned));
        }
        let shift = 64 - 8 * cell.len() as u32;
        Some(i128::from(unsigned.wrapping_shl(shift).cast_signed() >> shift))
    }

    /// Writes a number as a value of this type. `None` where it does not fit.
    pub(super) fn encode(self, number: &Number, protocol: Protocol) -> Option<Vec<u8>> {
        if !self.is_integer() || protocol == Protocol::Text {
            return Some(number.to_string().into_bytes());
        }
        let value = number.to_i128()?;
        let Width::Fixed(width) = self.width() else {
            return None;
        };
        let bits = 8 * width as u32;
        let (least, greatest) = if self.is_unsigned() {
            (0, (1i128 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        };
        (least..=greatest)
            .contains(&value)
            .then(|| value.to_le_bytes()[..width].to_vec())
    }
}

/// Reads decimal text as an integer in units of the `scale`-th decimal place.
fn scaled_text(text: &[u8], scale: usize) -> Option<i128> {
    let (negative, body) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut value = 0i128;
    let mut digits = 0usize;
    let mut behind = None;
    for &b in body {
        match b {
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(i128::from(b - b'0'))?;
                digits += 1;
                behind = behind.map(|n: usize| n + 1);
            }
            b'.' if behind.is_none() => behind = Some(0),
            _ => return None,
        }
    }
    if digits == 0 {
        return None;
    }
    for _ in 0..scale.checked_sub(behind.unwrap_or(0))? {
        value = value.checked_mul(10)?;
    }
    Some(if negative { -value } else { value })
}
