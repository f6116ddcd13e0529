//! What a plan is made against: keyspaces with their tables and shards, as one immutable snapshot.
//!
//! Plans hold the keyspace they were made for, so a plan in flight never sees half of a reload.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::PlanError;
use super::shard_set::ShardSet;
use crate::base::{KeyspaceId, KeyspaceName};
use crate::schema::{DatabaseSchema, KeyspaceSchema, SchemaSnapshot, Table};
use crate::topology::{KeyspaceTopology, ShardTopology, Topology};
use crate::vindex::Destination;

/// All keyspaces at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    keyspaces: BTreeMap<KeyspaceName, Arc<Keyspace>>,
    version: (u64, u64),
}

/// A keyspace as the planner sees it.
#[derive(Clone, Debug)]
pub struct Keyspace {
    /// Its tables.
    pub schema: Arc<KeyspaceSchema>,
    /// Its shards.
    pub topology: Arc<KeyspaceTopology>,
}

impl Catalog {
    /// Joins what is known of shards with what is known of tables. A keyspace without known tables has none.
    #[must_use]
    pub fn new(topology: &Topology, schema: &SchemaSnapshot) -> Self {
        let join = |topology: &Arc<KeyspaceTopology>| {
            let name = topology.name().clone();
            let known = schema.keyspace(name.as_str()).cloned();
            let schema = known
                .unwrap_or_else(|| KeyspaceSchema::new(name, None, None, &DatabaseSchema::default()).into());
            Keyspace {
                schema,
                topology: Arc::clone(topology),
            }
        };
        Self::of(
            (topology.version(), schema.version()),
            topology.keyspaces().map(join),
        )
    }

    /// A snapshot of these keyspaces under a version.
    #[must_use]
    pub fn of(version: (u64, u64), keyspaces: impl IntoIterator<Item = Keyspace>) -> Self {
        let keyspaces = keyspaces.into_iter().map(|k| (k.name().clone(), Arc::new(k)));
        Self {
            keyspaces: keyspaces.collect(),
            version,
        }
    }

    /// The versions of topology and schema it was made of: part of a cached plan's key.
    #[must_use]
    pub fn version(&self) -> (u64, u64) {
        self.version
    }

    /// A keyspace by its name.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// All keyspaces, in no order.
    pub fn keyspaces(&self) -> impl Iterator<Item = &Arc<Keyspace>> {
        self.keyspaces.values()
    }

    /// Any keyspace, for statements that need none: the same one each time, an unsharded one if there is one.
    #[must_use]
    pub fn any_keyspace(&self) -> Option<&Arc<Keyspace>> {
        self.keyspaces.values().min_by_key(|k| k.is_sharded())
    }
}

impl Keyspace {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &KeyspaceName {
        self.topology.name()
    }

    /// Its shards, in the order legs are made.
    #[must_use]
    pub fn shards(&self) -> &[ShardTopology] {
        self.topology.shards()
    }

    /// Whether its tables are divided among shards. If not, its one shard runs everything as it comes.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.topology.is_sharded()
    }

    /// A table by its exact name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.schema.table(name)
    }

    /// The shards that hold a destination: one, or none where the destination is nowhere.
    pub fn shards_of(&self, destination: &Destination) -> Result<ShardSet, PlanError> {
        let count = self.shards().len();
        match self.topology.resolve(destination) {
            Ok(Some(index)) => Ok(ShardSet::one(count, index)),
            Ok(None) => Ok(ShardSet::empty(count)),
            Err(uncovered) => Err(PlanError::NoSuchShard {
                keyspace: self.name().clone(),
                shard: uncovered.to_string(),
            }),
        }
    }

    /// The shard that holds a keyspace id.
    pub fn shard_of_id(&self, id: &KeyspaceId) -> Result<ShardSet, PlanError> {
        self.shards_of(&Destination::KeyspaceId(id.clone()))
    }
}
