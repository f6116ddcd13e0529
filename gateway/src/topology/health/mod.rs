//! How every tablet is, as last observed: the poller writes, everybody else reads, and nobody waits for anybody.
//!
//! A tablet's state is one immutable [`Standing`], replaced as a whole by its only writer, so a reader sees the outcome,
//! what follows from it and since when as of one moment. The map of tablets is replaced as a whole too, when the
//! configuration changes.

mod standing;
mod transition;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::Notify;

pub(super) use standing::is_leaving;
pub use standing::{Beat, Standing};
pub use transition::{Transition, transitions};

use super::lag::{Lag, LagInputs, lag};
use super::observation::Observation;
use super::tablet_info::TabletInfo;
use crate::base::clock::Instant;
use crate::base::{Role, ShardId, TabletAlias};

/// Hears of every observation, on the poller's task, after it took effect. Must not block: the next poll waits.
pub trait HealthListener: Send + Sync {
    /// Takes one observation.
    fn observed(&self, tablet: &TabletInfo, observation: &Observation);
}

/// How one tablet is.
#[derive(Debug)]
pub struct TabletHealth {
    info: ArcSwap<TabletInfo>,
    /// It takes writes beside the primary, or did: nobody is to read from it.
    quarantined: AtomicBool,
    standing: ArcSwapOption<Standing>,
    wanted: Notify,
}

impl TabletHealth {
    /// A tablet that was never measured.
    #[must_use]
    pub fn new(info: Arc<TabletInfo>) -> Self {
        Self {
            info: ArcSwap::new(info),
            quarantined: AtomicBool::new(false),
            standing: ArcSwapOption::empty(),
            wanted: Notify::new(),
        }
    }

    /// The tablet.
    pub fn info(&self) -> Arc<TabletInfo> {
        self.info.load_full()
    }

    /// The same server under another role: what is known of it stays.
    pub fn set_role(&self, role: Role) {
        let info = self.info.load();
        if info.role != role {
            let renamed = TabletInfo {
                role,
                ..TabletInfo::clone(&info)
            };
            self.info.store(Arc::new(renamed));
        }
    }

    /// Whether it takes writes beside the primary, so that nobody is to read from it.
    pub fn set_quarantined(&self, quarantined: bool) {
        self.quarantined.store(quarantined, Ordering::Release);
    }

    /// What is known of it; `None` if it was never measured.
    #[must_use]
    pub fn standing(&self) -> Option<Arc<Standing>> {
        self.standing.load_full()
    }

    /// Whether it serves.
    #[must_use]
    pub fn serving(&self) -> bool {
        self.standing.load().as_ref().is_some_and(|s| s.serving) && !self.quarantined.load(Ordering::Acquire)
    }

    /// Asks for a poll at once. One demand before the poll has begun is as good as many.
    pub fn demand(&self) {
        self.wanted.notify_one();
    }

    /// Waits until somebody demands a poll. One demand that came before counts.
    pub async fn demanded(&self) {
        self.wanted.notified().await;
    }

    /// Takes in an observation; gives what changed. Only the tablet's poller calls this.
    pub fn record(&self, observation: Observation) -> (Arc<Standing>, Vec<Transition>) {
        let before = self.standing.load_full();
        let after = Arc::new(Standing::next(before.as_deref(), Arc::new(observation)));
        let told = transitions(before.as_deref(), &after);
        self.standing.store(Some(Arc::clone(&after)));
        (after, told)
    }
}

/// Tablets by alias.
pub type Tablets = HashMap<TabletAlias, Arc<TabletHealth>>;

/// How all tablets are.
#[derive(Debug, Default)]
pub struct Health {
    tablets: ArcSwap<Tablets>,
    /// From one look to the next, in milliseconds.
    interval: AtomicU64,
}

impl Health {
    /// Knows no tablet; [`Self::publish`] brings them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the tablets.
    pub fn publish(&self, tablets: Tablets) {
        self.tablets.store(Arc::new(tablets));
    }

    /// Says how often tablets are looked at from now on.
    pub fn set_interval(&self, interval: Duration) {
        let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        self.interval.store(millis, Ordering::Relaxed);
    }

    /// How far a tablet is behind its shard's primary. A primary is never behind.
    #[must_use]
    pub fn lag(&self, tablet: &TabletInfo, now: Instant) -> Lag {
        let tablets = self.tablets.load();
        let standing = tablets.get(&tablet.alias).and_then(|t| t.standing());
        let primary = match tablet.role {
            Role::Primary => None,
            Role::Replica => tablets
                .values()
                .find(|t| t.info().role == Role::Primary && t.info().shard == tablet.shard)
                .and_then(|t| t.standing()),
        };
        let inputs = LagInputs {
            role: tablet.role,
            tablet: standing.as_deref(),
            primary: primary.as_deref(),
            interval: Duration::from_millis(self.interval.load(Ordering::Relaxed)),
        };
        lag(inputs, now)
    }

    /// How far each replica of a shard is behind, by alias.
    #[must_use]
    pub fn lags(&self, shard: &ShardId, now: Instant) -> Vec<(TabletAlias, Lag)> {
        let replicas = self.of_shard(shard).into_iter();
        replicas
            .filter(|t| t.info().role == Role::Replica)
            .map(|t| t.info())
            .map(|info| (info.alias.clone(), self.lag(&info, now)))
            .collect()
    }

    /// All tablets, at one moment.
    #[must_use]
    pub fn tablets(&self) -> Arc<Tablets> {
        self.tablets.load_full()
    }

    /// One tablet, to keep on hot paths for as long as it is part of the topology.
    #[must_use]
    pub fn tablet(&self, alias: &TabletAlias) -> Option<Arc<TabletHealth>> {
        self.tablets.load().get(alias).cloned()
    }

    /// Whether a tablet serves. One never measured does not, nor one that is not known.
    #[must_use]
    pub fn serving(&self, alias: &TabletAlias) -> bool {
        self.tablets.load().get(alias).is_some_and(|t| t.serving())
    }

    /// Why a tablet does not serve, for messages; `None` if it does.
    #[must_use]
    pub fn why_not(&self, alias: &TabletAlias) -> Option<String> {
        let tablet = self.tablet(alias);
        if tablet
            .as_ref()
            .is_some_and(|t| t.quarantined.load(Ordering::Acquire))
        {
            return Some("quarantined: it takes writes beside the primary".to_owned());
        }
        match tablet.map(|t| t.standing()) {
            Some(Some(standing)) => standing.why_not(),
            Some(None) => Some("never measured yet".to_owned()),
            None => Some("not part of the topology".to_owned()),
        }
    }

    /// Demands an immediate poll of all of a shard's tablets.
    pub fn demand(&self, shard: &ShardId) {
        for tablet in self.tablets.load().values() {
            if tablet.info().shard == *shard {
                tablet.demand();
            }
        }
    }

    /// The tablets of a shard, by alias.
    #[must_use]
    pub fn of_shard(&self, shard: &ShardId) -> Vec<Arc<TabletHealth>> {
        let mut found: Vec<_> = self
            .tablets
            .load()
            .values()
            .filter(|t| t.info().shard == *shard)
            .cloned()
            .collect();
        found.sort_by(|a, b| a.info().alias.cmp(&b.info().alias));
        found
    }
}

#[cfg(test)]
mod tests {
    use shardgate_wire::client::Address;

    use super::super::observation::PollError;
    use super::*;
    use crate::base::clock;

    fn info(alias: &str, shard: &str, role: Role) -> Arc<TabletInfo> {
        Arc::new(TabletInfo {
            alias: alias.into(),
            shard: ShardId::new("k", shard),
            role,
            address: Address::tcp("h", 1),
            database: "k".into(),
        })
    }

    fn published(aliases: &[(&str, &str)]) -> Health {
        let health = Health::new();
        let tablets = aliases.iter().map(|(alias, shard)| {
            let tablet = TabletHealth::new(info(alias, shard, Role::Primary));
            (TabletAlias::from(*alias), Arc::new(tablet))
        });
        health.publish(tablets.collect());
        health
    }

    #[test]
    fn unknown_and_unmeasured_tablets_do_not_serve_and_say_why() {
        let health = published(&[("a", "0")]);
        assert!(!health.serving(&"a".into()) && !health.serving(&"b".into()));
        assert_eq!(health.why_not(&"a".into()).unwrap(), "never measured yet");
        assert_eq!(health.why_not(&"b".into()).unwrap(), "not part of the topology");
        let refused = Observation {
            at: clock::now(),
            took: Duration::ZERO,
            outcome: Err(PollError::Unreachable("refused".into())),
        };
        health.tablet(&"a".into()).unwrap().record(refused);
        assert_eq!(health.why_not(&"a".into()).unwrap(), "cannot be reached: refused");
    }

    #[test]
    fn another_role_keeps_what_is_known_of_the_server() {
        let old = TabletHealth::new(info("a", "0", Role::Replica));
        old.record(Observation {
            at: clock::now(),
            took: Duration::ZERO,
            outcome: Err(PollError::Lost("gone".into())),
        });
        old.set_role(Role::Primary);
        assert_eq!(old.info().role, Role::Primary);
        assert_eq!(old.standing().unwrap().failures, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_demand_reaches_the_tablets_of_its_shard_and_is_not_lost() {
        let health = published(&[("a", "0"), ("b", "0"), ("c", "1")]);
        // Nobody waits yet; two demands are one poll.
        health.demand(&ShardId::new("k", "0"));
        health.demand(&ShardId::new("k", "0"));
        let waits = |alias: &str| {
            let tablet = health.tablet(&alias.into()).unwrap();
            async move {
                tokio::time::timeout(Duration::from_secs(1), tablet.demanded())
                    .await
                    .is_ok()
            }
        };
        assert!(waits("a").await && waits("b").await);
        assert!(!waits("a").await && !waits("c").await);
    }
}
