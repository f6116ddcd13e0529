//! A shard's database may have another name than its keyspace; clients know only the keyspace.

use bytes::Bytes;
use shardgate_wire::ColumnDef;

/// One shard's database name and the keyspace's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The database on the tablet.
    pub database: Bytes,
    /// The keyspace.
    pub keyspace: Bytes,
}

impl Rename {
    /// Whether the two are the same, so that nothing has to be renamed.
    pub fn is_identity(&self) -> bool {
        self.database == self.keyspace
    }

    /// A column definition as the client should see it. One that cannot be read is passed as it is: whoever looks into
    /// it will say so.
    pub fn column(&self, payload: &Bytes) -> Bytes {
        match ColumnDef::parse(payload) {
            Ok(mut column) if column.schema == self.database => {
                column.schema.clone_from(&self.keyspace);
                let mut out = Vec::with_capacity(payload.len() + self.keyspace.len());
                column.encode(&mut out);
                out.into()
            }
            Ok(_) | Err(_) => payload.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_wire::ColumnType;

    #[test]
    fn only_the_shards_own_database_is_renamed() {
        let rename = Rename {
            database: "shop_03".into(),
            keyspace: "shop".into(),
        };
        let encode = |schema: &'static str| {
            let mut column = ColumnDef::new("id", ColumnType::Long);
            column.schema = schema.into();
            let mut out = Vec::new();
            column.encode(&mut out);
            Bytes::from(out)
        };
        assert_eq!(rename.column(&encode("shop_03")), encode("shop"));
        assert_eq!(rename.column(&encode("other")), encode("other"));
        assert_eq!(
            rename.column(&Bytes::from_static(b"\x03bad")),
            Bytes::from_static(b"\x03bad")
        );
    }
}
