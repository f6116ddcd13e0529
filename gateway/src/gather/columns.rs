//! Column definitions as raw payloads: read where needed, compared between legs, never rebuilt.

use bytes::Bytes;

use super::value::ValueKind;

/// `NOT_NULL_FLAG`, the only flag a server may set or clear by what the optimizer saw in the rows.
const NOT_NULL: u16 = 1;
/// The part behind the six strings: its length byte, then charset, length, type, flags, decimals, two spare.
const FIXED: usize = 13;

/// One column's definition, read in place.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnView<'a> {
    pub(super) table: &'a [u8],
    pub(super) org_table: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) org_name: &'a [u8],
    pub(super) charset: u16,
    pub(super) length: u32,
    pub(super) type_code: u8,
    pub(super) flags: u16,
    pub(super) decimals: u8,
}

impl<'a> ColumnView<'a> {
    /// Reads a definition's payload.
    pub(super) fn parse(payload: &'a [u8]) -> Option<Self> {
        let mut rest = payload;
        let mut text = || {
            let (len, used) = lenenc(rest)?;
            let end = used.checked_add(usize::try_from(len).ok()?)?;
            let value = rest.get(used..end)?;
            rest = rest.get(end..)?;
            Some(value)
        };
        let _catalog = text()?;
        // Shards may keep their rows in databases of different names: the schema is not compared.
        let _schema = text()?;
        let (table, org_table, name, org_name) = (text()?, text()?, text()?, text()?);
        let fixed: &[u8; FIXED] = rest.get(..FIXED)?.try_into().ok()?;
        let [_, c0, c1, l0, l1, l2, l3, type_code, f0, f1, decimals, _, _] = *fixed;
        Some(Self {
            table,
            org_table,
            name,
            org_name,
            charset: u16::from_le_bytes([c0, c1]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            type_code,
            flags: u16::from_le_bytes([f0, f1]),
            decimals,
        })
    }

    /// How its values are written.
    pub(super) fn kind(&self) -> ValueKind {
        ValueKind {
            type_code: self.type_code,
            flags: self.flags,
            decimals: self.decimals,
        }
    }

    /// Its name, for messages.
    pub(super) fn display_name(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    /// The table column's name where there is one: a hidden column's own name is the gateway's.
    pub(super) fn source_name(&self) -> String {
        let name = if self.org_name.is_empty() {
            self.name
        } else {
            self.org_name
        };
        String::from_utf8_lossy(name).into_owned()
    }

    /// What differs between two legs' definitions of one column, if anything does.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let of = |what: &str| Some(format!("{what} of `{}`", self.display_name()));
        if self.name != other.name || self.org_name != other.org_name {
            return Some(format!(
                "`{}` against `{}`",
                self.display_name(),
                other.display_name()
            ));
        }
        if self.table != other.table || self.org_table != other.org_table {
            return of("table");
        }
        if self.type_code != other.type_code || self.decimals != other.decimals {
            return of("type");
        }
        if self.length != other.length {
            return of("length");
        }
        if self.charset != other.charset {
            return of("character set");
        }
        if (self.flags ^ other.flags) & !NOT_NULL != 0 {
            return of("flags");
        }
        None
    }
}

/// Clears the NOT NULL flag of a definition whose sibling does not have it. Returns the payload itself where there is
/// nothing to clear.
pub(super) fn clear_not_null_unless(keep: bool, payload: &Bytes) -> Bytes {
    let Some(view) = ColumnView::parse(payload).filter(|v| !keep && v.flags & NOT_NULL != 0) else {
        return payload.clone();
    };
    let mut copy = payload.to_vec();
    if let Some(at) = flags_offset(payload)
        && let Some(slot) = copy.get_mut(at..at + 2)
    {
        slot.copy_from_slice(&(view.flags & !NOT_NULL).to_le_bytes());
    }
    Bytes::from(copy)
}

/// Whether the definition says NOT NULL.
pub(super) fn is_not_null(payload: &[u8]) -> bool {
    ColumnView::parse(payload).is_some_and(|v| v.flags & NOT_NULL != 0)
}

fn flags_offset(payload: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    for _ in 0..6 {
        let (len, used) = lenenc(payload.get(at..)?)?;
        at = at.checked_add(used)?.checked_add(usize::try_from(len).ok()?)?;
    }
    Some(at + 8)
}

/// A length-encoded integer and how many bytes it took. NULL (0xFB) is not one.
pub(super) fn lenenc(b: &[u8]) -> Option<(u64, usize)> {
    let wide = |n: usize| {
        let mut v = [0u8; 8];
        v.get_mut(..n)?.copy_from_slice(b.get(1..=n)?);
        Some((u64::from_le_bytes(v), n + 1))
    };
    match *b.first()? {
        n @ 0..=0xfa => Some((u64::from(n), 1)),
        0xfc => wide(2),
        0xfd => wide(3),
        0xfe => wide(8),
        0xfb | 0xff => None,
    }
}

/// Appends a length-encoded string.
pub(super) fn put_lenenc_str(out: &mut Vec<u8>, s: &[u8]) {
    match s.len() as u64 {
        n @ 0..=0xfa => out.push(n as u8),
        n @ 0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&n.to_le_bytes()[..2]);
        }
        n @ 0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&n.to_le_bytes()[..3]);
        }
        n => {
            out.push(0xfe);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
    out.extend_from_slice(s);
}
