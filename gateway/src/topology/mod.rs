//! The live view: which shards a keyspace has, and which tablets serve them.
//!
//! A query is planned and run against one [`Topology`], an immutable snapshot, so that a reload in the middle never
//! shows it half of the old and half of the new. A snapshot covers every keyspace id exactly once or is not made at
//! all: with a gap, a scatter would silently leave rows out.
//!
//! [`health`] is the other half: how each tablet was when it was last looked at.

mod change;
mod error;
pub mod health;
mod keyspace;
mod lag;
mod observation;
mod position;
mod primary;
mod show;
mod tablet_info;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use change::Changes;
pub use error::TopologyError;
pub use health::{Health, HealthListener, TabletHealth};
pub use keyspace::{KeyspaceTopology, ShardTopology};
pub use lag::{Lag, LagInputs, UnknownLag, all_unknown, lag};
pub use observation::{
    Channel, Facts, Heartbeat, Identity, Observation, PollError, Replication, Thread, UnknownReplication,
};
pub use position::{Gtid, Position};
pub use primary::{Leadership, PrimarySource, Seen, Term, Vacancy, Verdict, judge};
pub use tablet_info::TabletInfo;
pub use view::TopologyView;

pub use crate::config::{Tablet, TabletAddress};

use crate::base::{KeyspaceName, ShardId, TabletAlias};
use crate::config::Config;

/// All keyspaces with their shards and tablets, immutable and numbered.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    version: u64,
    keyspaces: BTreeMap<KeyspaceName, Arc<KeyspaceTopology>>,
}

impl Topology {
    /// The topology a configuration describes. Ranges are checked here too, so that no other way of making a
    /// configuration can bring a gap in.
    pub fn new(version: u64, config: &Config) -> Result<Self, TopologyError> {
        let keyspaces = config.keyspaces.values();
        let built = keyspaces.map(|k| Ok((k.name.clone(), Arc::new(KeyspaceTopology::new(k)?))));
        Ok(Self {
            version,
            keyspaces: built.collect::<Result<_, _>>()?,
        })
    }

    /// Its number; a later snapshot has a greater one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A keyspace.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<&Arc<KeyspaceTopology>> {
        self.keyspaces.get(name)
    }

    /// All keyspaces, by name.
    pub fn keyspaces(&self) -> impl Iterator<Item = &Arc<KeyspaceTopology>> {
        self.keyspaces.values()
    }

    /// A shard, by its identity.
    #[must_use]
    pub fn shard(&self, id: &ShardId) -> Option<&ShardTopology> {
        let keyspace = self.keyspaces.get(&id.keyspace)?;
        keyspace.shards().get(keyspace.index_of(id.shard.as_str())?)
    }

    /// All shards of all keyspaces.
    pub fn shards(&self) -> impl Iterator<Item = &ShardTopology> {
        self.keyspaces.values().flat_map(|k| k.shards())
    }

    /// A tablet and the shard it serves, by its alias.
    #[must_use]
    pub fn tablet(&self, alias: &TabletAlias) -> Option<(&ShardTopology, &Tablet)> {
        self.shards()
            .find_map(|s| s.tablets().iter().find(|t| t.alias == *alias).map(|t| (s, t)))
    }
}
