//! Column definitions (`ColumnDefinition41`).

use bytes::Bytes;

use super::read::{Malformed, Reader};
use super::write::put_lenenc_str;
use crate::protocol::{BINARY, ColumnFlags, ColumnType, UTF8MB4};

/// A column as a result set or a prepared statement describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnDef {
    /// Database.
    pub schema: Bytes,
    /// Table, or its alias.
    pub table: Bytes,
    /// Table as created.
    pub org_table: Bytes,
    /// Column, or its alias.
    pub name: Bytes,
    /// Column as created.
    pub org_name: Bytes,
    /// Collation id.
    pub charset: u16,
    /// Greatest length of a value, in bytes.
    pub length: u32,
    /// Type.
    pub column_type: ColumnType,
    /// Flags, see [`ColumnFlags`].
    pub flags: u16,
    /// Digits after the point; 31 for floating ones, 0 for integers and strings.
    pub decimals: u8,
    /// The default value, sent in answer to `COM_FIELD_LIST` only.
    pub default: Option<Bytes>,
}

impl ColumnDef {
    /// A column that belongs to no table, such as an expression's.
    #[must_use]
    pub fn new(name: impl Into<Bytes>, column_type: ColumnType) -> Self {
        let charset = match column_type {
            ColumnType::VarChar
            | ColumnType::VarString
            | ColumnType::String
            | ColumnType::Enum
            | ColumnType::Set
            | ColumnType::Json => UTF8MB4,
            _ => BINARY,
        };
        Self {
            schema: Bytes::new(),
            table: Bytes::new(),
            org_table: Bytes::new(),
            name: name.into(),
            org_name: Bytes::new(),
            charset,
            length: 0,
            column_type,
            flags: 0,
            decimals: 0,
            default: None,
        }
    }

    /// A text column of at most `chars` characters.
    #[must_use]
    pub fn text(name: impl Into<Bytes>, chars: u32) -> Self {
        Self {
            length: chars.saturating_mul(4),
            ..Self::new(name, ColumnType::VarString)
        }
    }

    /// A BIGINT column.
    #[must_use]
    pub fn bigint(name: impl Into<Bytes>) -> Self {
        Self {
            length: 20,
            flags: ColumnFlags::BINARY | ColumnFlags::NUM,
            ..Self::new(name, ColumnType::LongLong)
        }
    }

    /// Whether the column is UNSIGNED.
    #[must_use]
    pub const fn is_unsigned(&self) -> bool {
        self.flags & ColumnFlags::UNSIGNED != 0
    }

    /// Reads a payload; the names share its memory.
    pub fn parse(payload: &Bytes) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let text = |r: &mut Reader<'_>, what| Ok(payload.slice_ref(r.lenenc_str(what)?));
        let _catalog = r.lenenc_str("column catalog")?;
        let schema = text(&mut r, "column schema")?;
        let table = text(&mut r, "column table")?;
        let org_table = text(&mut r, "column org_table")?;
        let name = text(&mut r, "column name")?;
        let org_name = text(&mut r, "column org_name")?;
        let mut fixed = Reader::new(r.lenenc_str("column fixed part")?);
        let charset = fixed.u16("column charset")?;
        let length = fixed.u32("column length")?;
        let column_type = ColumnType::from_u8(fixed.u8("column type")?).ok_or(Malformed("column type"))?;
        let flags = fixed.u16("column flags")?;
        let decimals = fixed.u8("column decimals")?;
        let default = if r.is_empty() {
            None
        } else {
            r.cell("column default")?.map(|d| payload.slice_ref(d))
        };
        Ok(Self {
            schema,
            table,
            org_table,
            name,
            org_name,
            charset,
            length,
            column_type,
            flags,
            decimals,
            default,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lenenc_str(out, b"def");
        for s in [
            &self.schema,
            &self.table,
            &self.org_table,
            &self.name,
            &self.org_name,
        ] {
            put_lenenc_str(out, s);
        }
        out.push(0x0c);
        out.extend_from_slice(&self.charset.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.push(self.column_type as u8);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.push(self.decimals);
        out.extend_from_slice(&[0, 0]);
        if let Some(default) = &self.default {
            put_lenenc_str(out, default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_definition_is_read_and_written_back() {
        // SELECT id FROM shop.t AS a, MariaDB 10.11: INT NOT NULL PRIMARY KEY.
        let bytes = Bytes::from_static(
            b"\x03def\x04shop\x01a\x01t\x02id\x02id\x0c\x3f\x00\x0b\x00\x00\x00\x03\x03\x50\x00\x00\x00",
        );
        let c = ColumnDef::parse(&bytes).unwrap();
        assert_eq!(
            (&*c.schema, &*c.table, &*c.org_table),
            (&b"shop"[..], &b"a"[..], &b"t"[..])
        );
        assert_eq!(
            (c.column_type, c.length, c.charset, c.flags),
            (ColumnType::Long, 11, 63, 0x5003)
        );
        let mut out = Vec::new();
        c.encode(&mut out);
        assert_eq!(out, bytes);
    }
}
