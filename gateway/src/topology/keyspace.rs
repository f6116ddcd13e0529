//! One keyspace's shards, found by keyspace id or by name.

use std::collections::HashMap;

use super::error::TopologyError;
use crate::base::keyrange::trimmed;
use crate::base::{KeyRange, KeyspaceId, KeyspaceName, Role, ShardId, ShardName};
use crate::config::{Division, Keyspace, Shard, Tablet, check_tiling};
use crate::vindex::Destination;

/// A shard and its tablets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardTopology {
    id: ShardId,
    range: Option<KeyRange>,
    database: String,
    tablets: Vec<Tablet>,
}

impl ShardTopology {
    fn new(keyspace: &KeyspaceName, shard: &Shard) -> Self {
        Self {
            id: ShardId::new(keyspace.clone(), shard.name.clone()),
            range: shard.range.clone(),
            database: shard.database.clone(),
            tablets: shard.tablets.clone(),
        }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> &ShardId {
        &self.id
    }

    /// Its name inside the keyspace.
    #[must_use]
    pub fn name(&self) -> &ShardName {
        &self.id.shard
    }

    /// Its key range; `None` in a keyspace that is not divided by ranges.
    #[must_use]
    pub fn range(&self) -> Option<&KeyRange> {
        self.range.as_ref()
    }

    /// The database on its tablets.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// All its tablets, in the order of the configuration.
    #[must_use]
    pub fn tablets(&self) -> &[Tablet] {
        &self.tablets
    }

    /// The tablet that takes its writes.
    #[must_use]
    pub fn primary(&self) -> Option<&Tablet> {
        self.serving(Role::Primary).next()
    }

    /// Its tablets of a role.
    pub fn serving(&self, role: Role) -> impl Iterator<Item = &Tablet> {
        self.tablets.iter().filter(move |t| t.role == role)
    }
}

/// A keyspace's shards. A shard's index is its place in [`KeyspaceTopology::shards`] and holds within one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyspaceTopology {
    name: KeyspaceName,
    division: Division,
    shards: Vec<ShardTopology>,
    by_name: HashMap<ShardName, usize>,
}

impl KeyspaceTopology {
    /// Checks that key ranges cover every id exactly once.
    pub fn new(keyspace: &Keyspace) -> Result<Self, TopologyError> {
        let name = keyspace.name.clone();
        let mut shards: Vec<_> = keyspace
            .shards
            .iter()
            .map(|s| ShardTopology::new(&name, s))
            .collect();
        if shards.is_empty() {
            return Err(TopologyError::NoShards(name));
        }
        match keyspace.division {
            Division::KeyRanges => tile(&name, &mut shards)?,
            Division::Unsharded if shards.len() > 1 => {
                return Err(TopologyError::Undivided {
                    keyspace: name,
                    shards: shards.len(),
                });
            }
            Division::Unsharded | Division::Named { .. } => {}
        }
        let by_name = shards
            .iter()
            .enumerate()
            .map(|(i, s)| (s.name().clone(), i))
            .collect();
        Ok(Self {
            name,
            division: keyspace.division.clone(),
            shards,
            by_name,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &KeyspaceName {
        &self.name
    }

    /// How its rows are divided.
    #[must_use]
    pub fn division(&self) -> &Division {
        &self.division
    }

    /// Whether rows are divided at all; a keyspace of key ranges may still have but one shard.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.division != Division::Unsharded
    }

    /// Its shards: by key range, or as the configuration lists them.
    #[must_use]
    pub fn shards(&self) -> &[ShardTopology] {
        &self.shards
    }

    /// The index of the shard that holds a keyspace id; `None` in a keyspace that is not divided by ranges.
    #[must_use]
    pub fn shard_for(&self, id: &KeyspaceId) -> Option<usize> {
        // Bounds are compared without trailing zeros, as the check of the tiling does; the id is taken as it is.
        let start = |s: &ShardTopology| {
            s.range
                .as_ref()
                .is_some_and(|r| trimmed(&r.start) <= id.as_bytes())
        };
        let index = self.shards.partition_point(start).checked_sub(1)?;
        let range = self.shards.get(index)?.range.as_ref()?;
        let inside = range.end.0.is_empty() || id.as_bytes() < trimmed(&range.end);
        inside.then_some(index)
    }

    /// The index of a shard, by its name. `80-` also answers to `8000-`, and the only shard of an unsharded keyspace
    /// to `-` and `0`, as in Vitess.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        if let Some(index) = self.by_name.get(name) {
            return Some(*index);
        }
        if self.division == Division::Unsharded {
            return matches!(name, "-" | "0").then_some(0);
        }
        let wanted = KeyRange::parse(name).ok()?;
        let same = |r: &KeyRange| {
            trimmed(&r.start) == trimmed(&wanted.start) && trimmed(&r.end) == trimmed(&wanted.end)
        };
        self.shards
            .iter()
            .position(|s| s.range.as_ref().is_some_and(same))
    }

    /// The index of the shard a vindex's answer points to; `Ok(None)` where no row can be.
    pub fn resolve(&self, destination: &Destination) -> Result<Option<usize>, TopologyError> {
        let found = match destination {
            Destination::None => return Ok(None),
            Destination::KeyspaceId(id) => self.shard_for(id),
            Destination::Shard(name) => self.by_name.get(name).copied(),
        };
        found.map(Some).ok_or_else(|| TopologyError::Uncovered {
            keyspace: self.name.clone(),
            place: match destination {
                Destination::KeyspaceId(id) => id
                    .as_bytes()
                    .iter()
                    .fold("keyspace id ".to_owned(), |text, b| text + &format!("{b:02x}")),
                Destination::Shard(name) => format!("shard `{name}`"),
                Destination::None => String::new(),
            },
        })
    }
}

fn tile(name: &KeyspaceName, shards: &mut [ShardTopology]) -> Result<(), TopologyError> {
    if let Some(shard) = shards.iter().find(|s| s.range.is_none()) {
        return Err(TopologyError::NoRange(shard.id.clone()));
    }
    shards.sort_by(|a, b| start(a).cmp(start(b)));
    let ranges: Vec<_> = shards
        .iter()
        .filter_map(|s| Some((s.name(), s.range()?)))
        .collect();
    let problems = check_tiling(&ranges);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(TopologyError::Ranges {
            keyspace: name.clone(),
            problems,
        })
    }
}

fn start(shard: &ShardTopology) -> &[u8] {
    shard.range().map_or(&[], |r| trimmed(&r.start))
}
