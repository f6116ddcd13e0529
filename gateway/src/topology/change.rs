//! What differs between two topologies: which pools to open, and which to drain.

use super::{Tablet, Topology};
use crate::base::{ShardId, TabletAlias};

/// The difference from one topology to the next. A tablet counts as another one if anything that its connections
/// depend on changed: its address, its shard, or the shard's database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Tablets to begin with.
    pub added: Vec<(ShardId, Tablet)>,
    /// Tablets to let go of.
    pub removed: Vec<(ShardId, Tablet)>,
    /// Tablets that keep their connections and have another role now.
    pub roles: Vec<(ShardId, Tablet)>,
}

impl Changes {
    /// From `old` to `new`.
    #[must_use]
    pub fn between(old: &Topology, new: &Topology) -> Self {
        let mut changes = Self::default();
        for (shard, tablet) in tablets(new) {
            match same_connections(old, new, &tablet.alias) {
                Some(before) if before.role == tablet.role => {}
                Some(_) => changes.roles.push((shard.clone(), tablet.clone())),
                None => changes.added.push((shard.clone(), tablet.clone())),
            }
        }
        for (shard, tablet) in tablets(old) {
            if same_connections(old, new, &tablet.alias).is_none() {
                changes.removed.push((shard.clone(), tablet.clone()));
            }
        }
        changes
    }

    /// Whether nothing changed for any tablet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.roles.is_empty()
    }
}

fn tablets(topology: &Topology) -> impl Iterator<Item = (&ShardId, &Tablet)> {
    topology
        .shards()
        .flat_map(|s| s.tablets().iter().map(move |t| (s.id(), t)))
}

/// The old tablet of that alias, if its connections serve the new one too.
fn same_connections<'a>(old: &'a Topology, new: &Topology, alias: &TabletAlias) -> Option<&'a Tablet> {
    let ((before, was), (after, is)) = (old.tablet(alias)?, new.tablet(alias)?);
    let same =
        before.id() == after.id() && before.database() == after.database() && was.address == is.address;
    same.then_some(was)
}
