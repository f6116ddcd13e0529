//! Which breakers an operator has taken over. Remembered by name: new thresholds make new breakers, and somebody who shut
//! a shard off would find it open again because a number was changed in a file.

use std::collections::HashMap;
use std::sync::Arc;

use shardgate_breaker::{Breaker, Mode, Time};

use crate::base::{ShardId, TabletAlias};

/// The breaker of a shard, or of one of its replicas.
pub(super) type Whose<'a> = (&'a ShardId, Option<&'a TabletAlias>);

/// The modes that operators set.
#[derive(Debug, Default)]
pub(super) struct TakenOver(HashMap<(ShardId, Option<TabletAlias>), Mode>);

impl TakenOver {
    /// A breaker goes. One that there was not leaves what was known of those before it.
    pub(super) fn note(&mut self, whose: Whose<'_>, breaker: Option<&Arc<Breaker>>) {
        let Some(breaker) = breaker else { return };
        if breaker.is_taken_over() {
            self.0.insert(owned(whose), breaker.mode());
        } else {
            self.0.remove(&owned(whose));
        }
    }

    /// A breaker comes.
    pub(super) fn hand_on(&self, whose: Whose<'_>, breaker: Option<&Arc<Breaker>>, now: Time) {
        if self.0.is_empty() {
            return;
        }
        if let (Some(breaker), Some(mode)) = (breaker, self.0.get(&owned(whose))) {
            breaker.set_mode(*mode, now);
        }
    }

    /// Forgets those of shards and replicas that are gone.
    pub(super) fn keep(
        &mut self,
        shards: impl Fn(&ShardId) -> bool,
        replicas: impl Fn(&TabletAlias) -> bool,
    ) {
        self.0.retain(|(id, alias), _| match alias {
            None => shards(id),
            Some(alias) => shards(id) && replicas(alias),
        });
    }
}

fn owned((id, alias): Whose<'_>) -> (ShardId, Option<TabletAlias>) {
    (id.clone(), alias.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Role;
    use crate::base::clock;
    use crate::base::metrics::Metrics;
    use crate::guard::{GuardSettings, Guards};

    fn settings(attempts: u32) -> GuardSettings {
        GuardSettings {
            retry_attempts: attempts,
            ..GuardSettings::default()
        }
    }

    fn breaker(guards: &Guards, alias: &str, role: Role) -> Arc<Breaker> {
        let gate = guards.gate(&ShardId::new("k", "0"), &alias.into(), role);
        Arc::clone(gate.breaker().unwrap())
    }

    fn modes(guards: &Guards) -> [Mode; 3] {
        [("p", Role::Primary), ("a", Role::Replica), ("b", Role::Replica)]
            .map(|(alias, role)| breaker(guards, alias, role).mode())
    }

    /// Whoever shut a shard off by hand had it back after the next reload that changed any threshold.
    #[test]
    fn a_breaker_that_was_taken_over_stays_so_when_thresholds_change() {
        let guards = Guards::new(settings(1), clock::now(), 1, Arc::new(Metrics::default()));
        let now = guards.time(clock::now());
        breaker(&guards, "p", Role::Primary).set_mode(Mode::ForcedOpen, now);
        breaker(&guards, "b", Role::Replica).set_mode(Mode::ForcedClosed, now);
        let set = [Mode::ForcedOpen, Mode::Auto, Mode::ForcedClosed];

        guards.configure(settings(2));
        // Nobody asks for them in between.
        guards.configure(settings(3));
        assert_eq!(modes(&guards), set);
        // Off and on again.
        guards.configure(GuardSettings {
            enabled: false,
            ..settings(3)
        });
        assert!(guards.shard(&ShardId::new("k", "0")).breaker().is_none());
        guards.configure(settings(3));
        assert_eq!(modes(&guards), set);

        breaker(&guards, "p", Role::Primary).set_mode(Mode::Auto, now);
        guards.configure(settings(1));
        assert_eq!(modes(&guards), [Mode::Auto, Mode::Auto, Mode::ForcedClosed]);
        guards.configure(settings(2));
        guards.keep(|_| true, |alias| *alias == "a".into());
        assert_eq!(
            modes(&guards),
            [Mode::Auto; 3],
            "another replica of the same name"
        );
    }
}
