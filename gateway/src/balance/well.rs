//! Which shards look well, for whoever has a choice between shards.

use super::{Fleet, Member};
use crate::base::{Role, ShardId};

impl Fleet {
    /// Whether a shard has a tablet of a role that served when it was last looked at and whose breaker is plainly closed: a
    /// probe belongs to statements that have no choice.
    #[must_use]
    pub fn looks_well(&self, shard: &ShardId, role: Role) -> bool {
        let members = self.members.load();
        let Some(shard) = members.shards.get(shard) else {
            return false;
        };
        let well = |member: &Member| {
            let closed = member.gate().breaker().is_none_or(|b| b.is_plainly_closed());
            closed && self.health.serving(&member.info.alias)
        };
        match role {
            Role::Primary => shard.primary.as_ref().is_some_and(|m| well(m)),
            Role::Replica => shard.replicas.iter().any(|m| well(m)),
        }
    }
}
