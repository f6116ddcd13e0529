//! What was lately seen of each shard, for questions that any shard can answer.
//!
//! A question of no shard in particular must not wait for one that hangs, or one bad shard keeps every client from
//! logging in. Which one is asked is decided by what was seen a moment ago: an answer in time, or none. A shard without
//! one is asked last, until a look in the background finds it answering again. Statements that belong to a shard never
//! look here.

use std::time::Duration;

use dashmap::DashMap;

use crate::base::clock::Instant;
use crate::base::{Role, ShardId};

/// How long an answer vouches for its shard.
const VOUCHES: Duration = Duration::from_secs(1);

/// How long after a failure, and after each look, the next look is due.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What was seen last, and when.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Answering(Instant),
    Silent(Instant),
}

/// How much a shard is to be trusted with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It answered a moment ago.
    Sure,
    /// Nothing bad is known of it.
    Likely,
    /// It did not answer when it was asked last.
    Silent,
}

/// What was lately seen of each shard's tablets of a role. As many entries as there are shards.
#[derive(Debug, Default)]
pub struct Lately {
    seen: DashMap<(ShardId, Role), Seen>,
}

impl Lately {
    /// What is known of a shard.
    pub(super) fn trust(&self, shard: &ShardId, role: Role, now: Instant) -> Trust {
        match self.seen.get(&(shard.clone(), role)).as_deref() {
            Some(Seen::Answering(at)) if now.duration_since(*at) < VOUCHES => Trust::Sure,
            Some(Seen::Answering(_)) | None => Trust::Likely,
            Some(Seen::Silent(_)) => Trust::Silent,
        }
    }

    /// It answered.
    pub(super) fn answered(&self, shard: &ShardId, role: Role, now: Instant) {
        let before = self.seen.insert((shard.clone(), role), Seen::Answering(now));
        if let Some(Seen::Silent(_)) = before {
            tracing::info!(%shard, role = role.as_str(), "answers again; questions that any shard can answer may go there");
        }
    }

    /// It did not, for this reason.
    pub(super) fn failed(&self, shard: &ShardId, role: Role, now: Instant, reason: &str) {
        let before = self.seen.insert((shard.clone(), role), Seen::Silent(now));
        if !matches!(before, Some(Seen::Silent(_))) {
            tracing::warn!(%shard, role = role.as_str(), reason, "no answer; questions that any shard can answer go elsewhere");
        }
    }

    /// Whether it is time to look at a silent shard again; says yes to one caller of many.
    pub(super) fn look_is_due(&self, shard: &ShardId, role: Role, now: Instant) -> bool {
        let Some(mut seen) = self.seen.get_mut(&(shard.clone(), role)) else {
            return false;
        };
        match *seen {
            Seen::Silent(at) if now.duration_since(at) >= LOOK_AGAIN => {
                *seen = Seen::Silent(now);
                true
            }
            Seen::Silent(_) | Seen::Answering(_) => false,
        }
    }

    /// Forgets shards that are gone.
    pub(crate) fn keep(&self, exists: impl Fn(&ShardId) -> bool) {
        self.seen.retain(|(shard, _), _| exists(shard));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> ShardId {
        ShardId {
            keyspace: "k".into(),
            shard: "-80".into(),
        }
    }

    #[test]
    fn an_answer_vouches_for_a_moment_and_silence_until_an_answer() {
        let (lately, shard, at) = (Lately::default(), shard(), crate::base::clock::now());
        let trust = |after: u64| lately.trust(&shard, Role::Primary, at + Duration::from_millis(after));
        assert_eq!(trust(0), Trust::Likely);
        lately.answered(&shard, Role::Primary, at);
        assert_eq!((trust(999), trust(1000)), (Trust::Sure, Trust::Likely));
        lately.failed(&shard, Role::Primary, at, "silent");
        assert_eq!(trust(3_600_000), Trust::Silent);
        assert_eq!(lately.trust(&shard, Role::Replica, at), Trust::Likely);
        lately.answered(&shard, Role::Primary, at);
        assert_eq!(trust(0), Trust::Sure);
    }

    #[test]
    fn one_caller_of_many_looks_again() {
        let (lately, shard, at) = (Lately::default(), shard(), crate::base::clock::now());
        lately.failed(&shard, Role::Primary, at, "silent");
        let due = |after: u64| lately.look_is_due(&shard, Role::Primary, at + Duration::from_secs(after));
        assert_eq!(
            [due(4), due(5), due(5), due(9), due(10)],
            [false, true, false, false, true]
        );
    }
}
