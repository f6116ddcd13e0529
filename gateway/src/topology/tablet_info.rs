//! Which server a tablet is, and where.

use shardgate_wire::client::Address;

use crate::base::{Role, ShardId, TabletAlias};

/// Which server a tablet is and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TabletInfo {
    /// Its alias.
    pub alias: TabletAlias,
    /// The shard it serves.
    pub shard: ShardId,
    /// Its role.
    pub role: Role,
    /// Where it listens.
    pub address: Address,
    /// The shard's database on it.
    pub database: String,
}

impl TabletInfo {
    /// Whether connections made for `other` serve this one too: it may have another role, and nothing else.
    #[must_use]
    pub fn same_server(&self, other: &Self) -> bool {
        self.alias == other.alias
            && self.shard == other.shard
            && self.address == other.address
            && self.database == other.database
    }
}
