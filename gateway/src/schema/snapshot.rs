//! The published view: every keyspace's tables with their routing and columns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::table::{ColumnInfo, DatabaseSchema, TableInfo};
use crate::base::{KeyspaceId, KeyspaceName};
use crate::config::vschema::{Placement, VSchema};
use crate::config::{Division, Keyspace};
use crate::vindex::{ColumnType, NamedCut, Vindex};

/// A vindex on a table's column.
#[derive(Clone, Debug, PartialEq)]
pub struct TableVindex {
    /// The column, as the vschema or configuration spells it.
    pub column: String,
    /// The vindex's name in the vschema, or its kind for a column named by the configuration.
    pub name: String,
    /// The vindex.
    pub vindex: Vindex,
    /// The column's type, where learned; without it nothing is known of equality, so reads scatter.
    pub ty: Option<ColumnType>,
}

/// Where a table's rows live.
#[derive(Clone, Debug, PartialEq)]
pub enum Routing {
    /// By vindexes; the first places new rows.
    Sharded(Vec<TableVindex>),
    /// The same rows on every shard.
    Reference {
        /// Where they are written.
        source: Option<String>,
    },
    /// All rows in the shard that holds this id.
    Pinned(KeyspaceId),
    /// The keyspace has one shard.
    Unsharded,
    /// In a sharded keyspace, but neither the vschema nor the configuration says how its rows are divided.
    Unknown,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Where its rows live.
    pub routing: Routing,
    /// Its columns, where learned from the tablets.
    pub info: Option<Arc<TableInfo>>,
    /// Column names the vschema declares to be the whole list.
    pub authoritative_columns: Option<Vec<String>>,
}

impl Table {
    /// A learned column, by its name in any case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnInfo> {
        self.info.as_ref()?.column(name)
    }

    /// The vindex that places new rows.
    #[must_use]
    pub fn primary_vindex(&self) -> Option<&TableVindex> {
        self.vindexes().first()
    }

    /// All its vindexes, the primary one first.
    #[must_use]
    pub fn vindexes(&self) -> &[TableVindex] {
        match &self.routing {
            Routing::Sharded(vindexes) => vindexes,
            Routing::Reference { .. } | Routing::Pinned(_) | Routing::Unsharded | Routing::Unknown => &[],
        }
    }

    /// The cheapest vindex on a column, by its name in any case.
    #[must_use]
    pub fn vindex_on(&self, column: &str) -> Option<&TableVindex> {
        let on_column = self
            .vindexes()
            .iter()
            .filter(|v| v.column.eq_ignore_ascii_case(column));
        on_column.min_by_key(|v| v.vindex.cost())
    }
}

/// A keyspace's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyspaceSchema {
    /// Its name.
    pub name: KeyspaceName,
    /// Whether it has more than one shard.
    pub sharded: bool,
    /// Whether its tables are found only by a qualified name or after `USE`.
    pub require_explicit_routing: bool,
    tables: HashMap<String, Arc<Table>>,
}

impl KeyspaceSchema {
    /// The schema of a configured keyspace.
    #[must_use]
    pub fn of(keyspace: &Keyspace, learned: &DatabaseSchema) -> Self {
        let named = match &keyspace.division {
            Division::Named { column, cut } => Some((column.as_str(), cut)),
            Division::Unsharded | Division::KeyRanges => None,
        };
        Self::new(keyspace.name.clone(), keyspace.vschema.as_ref(), named, learned)
    }

    /// Combines the vschema (or the configuration's cut of named shards by a column) with what was learned.
    #[must_use]
    pub fn new(
        name: KeyspaceName,
        vschema: Option<&VSchema>,
        named: Option<(&str, &NamedCut)>,
        learned: &DatabaseSchema,
    ) -> Self {
        let sharded = named.is_some() || vschema.is_some_and(|v| v.sharded);
        let mut tables = HashMap::new();
        for (table, info) in &learned.tables {
            let routing = if sharded {
                by_column(info, named)
            } else {
                Routing::Unsharded
            };
            let entry = Table {
                name: table.clone(),
                routing,
                info: Some(Arc::clone(info)),
                authoritative_columns: None,
            };
            tables.insert(table.clone(), entry);
        }
        for (table, declared) in vschema.iter().flat_map(|v| &v.tables) {
            let info = learned.tables.get(table);
            let columns = declared
                .column_list_authoritative
                .then(|| declared.columns.clone());
            let entry = Table {
                name: table.clone(),
                routing: routing(&declared.placement, info.map(AsRef::as_ref)),
                info: info.cloned(),
                authoritative_columns: columns,
            };
            tables.insert(table.clone(), entry);
        }
        let tables = tables
            .into_iter()
            .map(|(name, table)| (name, Arc::new(table)))
            .collect();
        let require_explicit_routing = vschema.is_some_and(|v| v.require_explicit_routing);
        Self {
            name,
            sharded,
            require_explicit_routing,
            tables,
        }
    }

    /// A table, by its exact name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// All tables, in no order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }
}

fn routing(placement: &Placement, info: Option<&TableInfo>) -> Routing {
    match placement {
        Placement::Sharded(vindexes) => {
            let with_type = |v: &crate::config::vschema::ColumnVindex| TableVindex {
                column: v.column.clone(),
                name: v.name.clone(),
                vindex: v.vindex.clone(),
                ty: info.and_then(|i| i.column(&v.column)).map(|c| c.ty.clone()),
            };
            Routing::Sharded(vindexes.iter().map(with_type).collect())
        }
        Placement::Reference { source } => Routing::Reference {
            source: source.clone(),
        },
        Placement::Pinned(id) => Routing::Pinned(id.clone()),
        Placement::Unsharded => Routing::Unsharded,
    }
}

/// A table of named shards that has the sharding column is divided by it. A view is not: what it shows may combine
/// rows of several shards.
fn by_column(info: &TableInfo, named: Option<(&str, &NamedCut)>) -> Routing {
    let Some((column, cut)) = named.filter(|_| !info.is_view()) else {
        return Routing::Unknown;
    };
    match info.column(column) {
        Some(found) => Routing::Sharded(vec![TableVindex {
            column: found.name.clone(),
            name: cut.kind().to_owned(),
            vindex: Vindex::named(cut.clone()),
            ty: Some(found.ty.clone()),
        }]),
        None => Routing::Unknown,
    }
}

/// What a name without a keyspace stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// One table of one keyspace.
    One(KeyspaceName, Arc<Table>),
    /// Several keyspaces have such a table.
    Ambiguous(Vec<KeyspaceName>),
    /// No keyspace has it, or only those that require explicit routing.
    Nowhere,
}

/// All keyspaces, immutable and numbered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaSnapshot {
    version: u64,
    keyspaces: BTreeMap<KeyspaceName, Arc<KeyspaceSchema>>,
}

impl SchemaSnapshot {
    /// A snapshot of these keyspaces under a version.
    #[must_use]
    pub fn new(version: u64, keyspaces: impl IntoIterator<Item = KeyspaceSchema>) -> Self {
        let keyspaces = keyspaces
            .into_iter()
            .map(|k| (k.name.clone(), Arc::new(k)))
            .collect();
        Self { version, keyspaces }
    }

    /// The next version, with one keyspace replaced or added: after DDL.
    #[must_use]
    pub fn with_keyspace(&self, keyspace: KeyspaceSchema) -> Self {
        let mut keyspaces = self.keyspaces.clone();
        keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        Self {
            version: self.version + 1,
            keyspaces,
        }
    }

    /// Its number; a later snapshot has a greater one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A keyspace.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<&Arc<KeyspaceSchema>> {
        self.keyspaces.get(name)
    }

    /// All keyspaces, by name.
    pub fn keyspaces(&self) -> impl Iterator<Item = &Arc<KeyspaceSchema>> {
        self.keyspaces.values()
    }

    /// The table a name without a keyspace stands for, as in Vitess: it must be the only one of that name.
    #[must_use]
    pub fn find(&self, table: &str) -> Found {
        let open = self.keyspaces.values().filter(|k| !k.require_explicit_routing);
        let mut hits: Vec<_> = open.filter_map(|k| k.table(table).map(|t| (k, t))).collect();
        match (hits.pop(), hits.is_empty()) {
            (None, _) => Found::Nowhere,
            (Some((keyspace, table)), true) => Found::One(keyspace.name.clone(), Arc::clone(table)),
            (Some((last, _)), false) => hits
                .iter()
                .map(|(k, _)| *k)
                .chain([last])
                .map(|k| k.name.clone())
                .collect::<Vec<_>>()
                .into(),
        }
    }
}

impl From<Vec<KeyspaceName>> for Found {
    fn from(names: Vec<KeyspaceName>) -> Self {
        Self::Ambiguous(names)
    }
}
