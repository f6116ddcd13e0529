//! A shard's database may have another name than its keyspace; clients know only the keyspace.
//!
//! Each answer's column definitions name the database, so this is on every statement's path: the names are kept as the
//! bytes that are sent, and a definition is copied around the one name that changes, not parsed.

use bytes::Bytes;

/// One shard's database name and the keyspace's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The database on the tablet.
    database: Bytes,
    /// The keyspace.
    keyspace: Bytes,
}

/// How every column definition begins: the catalog's name, which is always this one, and its length.
const CATALOG: &[u8] = b"\x03def";

impl Rename {
    /// The names of a database and of the keyspace it belongs to.
    #[must_use]
    pub fn new(database: &str, keyspace: &str) -> Self {
        Self {
            database: Bytes::copy_from_slice(database.as_bytes()),
            keyspace: Bytes::copy_from_slice(keyspace.as_bytes()),
        }
    }

    /// Whether the two are the same, so that nothing has to be renamed.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.database == self.keyspace
    }

    /// A column definition as the client should see it.
    #[must_use]
    pub fn column(&self, payload: &Bytes) -> Bytes {
        if self.split(payload).is_none() {
            return payload.clone();
        }
        let mut out = Vec::with_capacity(payload.len() + self.keyspace.len());
        self.put_column(payload, &mut out);
        out.into()
    }

    /// Appends a column definition as the client should see it. One that cannot be read is passed as it is: whoever
    /// looks into it will say so.
    pub fn put_column(&self, payload: &[u8], out: &mut Vec<u8>) {
        match self.split(payload) {
            Some((length, rest)) => {
                out.extend_from_slice(CATALOG);
                out.push(length);
                out.extend_from_slice(&self.keyspace);
                out.extend_from_slice(rest);
            }
            None => out.extend_from_slice(payload),
        }
    }

    /// If a definition is of a column in the database: the length of the keyspace's name, and what follows the
    /// database's. Names of both are at most 64 characters, so that a length is one byte.
    fn split<'a>(&self, payload: &'a [u8]) -> Option<(u8, &'a [u8])> {
        let own = u8::try_from(self.database.len()).ok().filter(|n| *n < 0xfb)?;
        let new = u8::try_from(self.keyspace.len()).ok().filter(|n| *n < 0xfb)?;
        let (length, rest) = payload.strip_prefix(CATALOG)?.split_first()?;
        if *length != own {
            return None;
        }
        Some((new, rest.strip_prefix(&self.database[..])?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_wire::{ColumnDef, ColumnType};

    #[test]
    fn only_the_shards_own_database_is_renamed() {
        let rename = Rename::new("shop_03", "shop");
        let encode = |schema: &'static str| {
            let mut column = ColumnDef::new("id", ColumnType::Long);
            column.schema = schema.into();
            let mut out = Vec::new();
            column.encode(&mut out);
            Bytes::from(out)
        };
        for (from, to) in [
            ("shop_03", "shop"),
            ("shop_0", "shop_0"),
            ("shop_03x", "shop_03x"),
            ("other", "other"),
            ("", ""),
        ] {
            assert_eq!(rename.column(&encode(from)), encode(to), "{from}");
        }
        for unreadable in [&b"\x03bad"[..], b"\x03def", b"\x03def\x07shop", b""] {
            let unreadable = Bytes::from_static(unreadable);
            assert_eq!(rename.column(&unreadable), unreadable);
        }
    }
}
