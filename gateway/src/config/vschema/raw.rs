//! The JSON as Vitess writes it, field by field. Names come in both spellings that protobuf's JSON knows.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

/// A map that refuses a key given twice, which JSON allows and silently keeps the last of.
#[derive(Debug)]
pub(super) struct UniqueMap<T>(pub(super) BTreeMap<String, T>);

impl<T> Default for UniqueMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = UniqueMap<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut map = BTreeMap::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("`{key}` is given twice")));
                    }
                    map.insert(key, entries.next_value()?);
                }
                Ok(UniqueMap(map))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Keyspace {
    pub(super) sharded: bool,
    pub(super) vindexes: UniqueMap<Vindex>,
    pub(super) tables: UniqueMap<Table>,
    #[serde(alias = "requireExplicitRouting")]
    pub(super) require_explicit_routing: bool,
    #[serde(alias = "foreignKeyMode")]
    pub(super) foreign_key_mode: ForeignKeyMode,
    #[serde(alias = "multiTenantSpec")]
    pub(super) multi_tenant_spec: Option<serde_json::Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum ForeignKeyMode {
    #[default]
    Unspecified,
    Disallow,
    Unmanaged,
    Managed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vindex {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) params: UniqueMap<String>,
    #[serde(default)]
    pub(super) owner: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Table {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(alias = "columnVindexes")]
    pub(super) column_vindexes: Vec<ColumnVindex>,
    #[serde(alias = "autoIncrement")]
    pub(super) auto_increment: Option<AutoIncrement>,
    pub(super) columns: Vec<Column>,
    pub(super) pinned: String,
    #[serde(alias = "columnListAuthoritative")]
    pub(super) column_list_authoritative: bool,
    pub(super) source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnVindex {
    #[serde(default)]
    pub(super) column: String,
    #[serde(default)]
    pub(super) columns: Vec<String>,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AutoIncrement {
    pub(super) column: String,
    pub(super) sequence: String,
}

/// Types and collations are learned from the tablets, so of these only the names are used; the other fields must
/// still be known ones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) name: String,
    #[serde(default, rename = "type")]
    _kind: serde::de::IgnoredAny,
    #[serde(default, rename = "invisible")]
    _invisible: bool,
    #[serde(default, rename = "default")]
    _default: String,
    #[serde(default, rename = "collation_name", alias = "collationName")]
    _collation_name: String,
    #[serde(default, rename = "size")]
    _size: i32,
    #[serde(default, rename = "scale")]
    _scale: i32,
    #[serde(default, rename = "nullable")]
    _nullable: Option<bool>,
    #[serde(default, rename = "values")]
    _values: Vec<String>,
}
