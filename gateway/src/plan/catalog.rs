//! What a plan is made against: keyspaces with their tables and shards, as one immutable snapshot.
//!
//! Plans hold the keyspace they were made for, so a plan in flight never sees half of a reload.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::PlanError;
use super::shard_set::ShardSet;
use crate::base::keyrange::trimmed;
use crate::base::{KeyRange, KeyspaceId, KeyspaceName, ShardId, ShardName};
use crate::route::Rename;
use crate::schema::{KeyspaceSchema, Table};
use crate::vindex::Destination;

/// All keyspaces at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    keyspaces: HashMap<KeyspaceName, Arc<Keyspace>>,
    version: u64,
}

/// A keyspace as the planner sees it.
#[derive(Clone, Debug)]
pub struct Keyspace {
    /// Its name.
    pub name: KeyspaceName,
    /// Its tables.
    pub schema: Arc<KeyspaceSchema>,
    /// Its shards, in the order legs are made.
    pub shards: Vec<Shard>,
}

/// A shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Its identity.
    pub id: ShardId,
    /// Its key range; `None` for a named shard.
    pub range: Option<KeyRange>,
    /// The name of its database on its servers.
    pub database: Box<str>,
    /// The same beside the keyspace's, as answers need it.
    pub rename: Rename,
}

impl Shard {
    /// A shard whose rows are in this database.
    #[must_use]
    pub fn new(id: ShardId, range: Option<KeyRange>, database: &str) -> Self {
        let rename = Rename::new(database, id.keyspace.as_str());
        Self {
            id,
            range,
            database: database.into(),
            rename,
        }
    }
}

impl Catalog {
    /// A snapshot of these keyspaces. The version must grow with every change of tables, columns, vschemas or shards:
    /// it is part of a cached plan's key.
    #[must_use]
    pub fn new(version: u64, keyspaces: impl IntoIterator<Item = Keyspace>) -> Self {
        let keyspaces = keyspaces
            .into_iter()
            .map(|k| (k.name.clone(), Arc::new(k)))
            .collect();
        Self { keyspaces, version }
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u64 {
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
        self.keyspaces
            .values()
            .min_by_key(|k| (k.is_sharded(), k.name.clone()))
    }
}

impl Keyspace {
    /// Whether its tables are divided among shards. If not, its one shard runs everything as it comes.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.schema.sharded || self.shards.len() > 1
    }

    /// A table by its exact name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.schema.table(name)
    }

    /// A shard's place in [`Self::shards`].
    #[must_use]
    pub fn shard_index(&self, name: &ShardName) -> Option<usize> {
        self.shards.iter().position(|s| s.id.shard == *name)
    }

    /// The shards that hold a destination: one, or none where the destination is nowhere.
    pub fn shards_of(&self, destination: &Destination) -> Result<ShardSet, PlanError> {
        match destination {
            Destination::None => Ok(ShardSet::empty(self.shards.len())),
            Destination::Shard(name) => {
                let index = self
                    .shard_index(name)
                    .ok_or_else(|| self.missing(format!("`{name}`")))?;
                Ok(ShardSet::one(self.shards.len(), index))
            }
            Destination::KeyspaceId(id) => self.shard_of_id(id),
        }
    }

    /// The shard whose range holds a keyspace id.
    pub fn shard_of_id(&self, id: &KeyspaceId) -> Result<ShardSet, PlanError> {
        let holds = |s: &Shard| s.range.as_ref().is_some_and(|r| holds(r, id));
        let index = self.shards.iter().position(holds);
        let index = index.ok_or_else(|| self.missing(describe_id(id)))?;
        Ok(ShardSet::one(self.shards.len(), index))
    }

    fn missing(&self, shard: String) -> PlanError {
        PlanError::NoSuchShard {
            keyspace: self.name.clone(),
            shard,
        }
    }
}

/// Bounds are compared without trailing zeros, as Vitess does and as the check of the tiling does; the id as it is.
fn holds(range: &KeyRange, id: &KeyspaceId) -> bool {
    let end = trimmed(&range.end);
    trimmed(&range.start) <= id.as_bytes() && (end.is_empty() || id.as_bytes() < end)
}

fn describe_id(id: &KeyspaceId) -> String {
    use std::fmt::Write;
    id.as_bytes()
        .iter()
        .fold(String::from("for keyspace id "), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        })
}
