//! Looks at every tablet, one task each, and publishes what it saw.
//!
//! A look is a few small statements over a connection of the poller's own: never a pool's, since a look must not wait
//! behind queries, and a full pool must not look like a dead server. Looks come at an interval with jitter, so that many
//! gateways do not ask in step, and at once on demand, when somebody has reason to believe that a tablet changed.
//!
//! The driver for values is not used here. Dropping one of its connections in the middle of an answer, which is what a
//! timeout does, leaves a task behind that waits for the rest of the answer: under a tablet that accepts and never
//! answers each poll would leak a task and a socket. A connection of the gateway's own protocol is closed by its drop.

mod decode;
mod look;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, TabletInfo};
use crate::base::clock::{self, Instant};
use crate::base::metrics::{Counter, Metrics};
use crate::base::{Role, ShardId, TabletAlias};
use crate::topology::health::{Tablets, Transition};
use crate::topology::{
    Health, HealthListener, Lag, Observation, PollError, TabletHealth, UnknownLag, all_unknown,
};
pub(super) use decode::bypasses_read_only;
use look::Looker;

/// The least time from one look's beginning to the next one's: demands cannot make a poller spin.
const LEAST_GAP: Duration = Duration::from_millis(20);

/// An interval is stretched or shortened by up to this part of it.
const JITTER_PERCENT: u64 = 10;

/// How tablets are looked at.
#[derive(Clone, Debug)]
pub struct PollSettings {
    /// How the poller logs in.
    pub backend: Backend,
    /// From one look to the next.
    pub interval: Duration,
    /// How long a look may take, connecting included.
    pub timeout: Duration,
    /// The same for the very first look at a tablet, before which it serves nobody.
    pub first_timeout: Duration,
    /// The table that holds heartbeats, with its database, quoted; `None` if there is none.
    pub heartbeat_table: Option<String>,
}

/// All pollers.
pub struct Pollers {
    health: Arc<Health>,
    listeners: Vec<Arc<dyn HealthListener>>,
    metrics: Arc<Metrics>,
    settings: ArcSwap<PollSettings>,
    running: Mutex<HashMap<TabletAlias, Running>>,
    /// Shards none of whose replicas' lag is known, and why.
    unknown: Mutex<HashMap<ShardId, UnknownLag>>,
    tasks: TaskTracker,
    stopped: CancellationToken,
}

impl std::fmt::Debug for Pollers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pollers")
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Running {
    tablet: Arc<TabletHealth>,
    stop: CancellationToken,
}

/// Tablets that were looked at and are not yet published.
#[derive(Debug)]
pub struct Prepared {
    settings: Arc<PollSettings>,
    tablets: Tablets,
    fresh: Vec<Watch>,
}

/// A tablet, who looks at it, and what is counted.
#[derive(Debug)]
struct Watch {
    tablet: Arc<TabletHealth>,
    looker: Looker,
    counters: Counters,
}

#[derive(Debug)]
struct Counters {
    polls: Arc<Counter>,
    failures: Vec<(&'static str, Arc<Counter>)>,
}

impl Counters {
    fn new(metrics: &Metrics, alias: &TabletAlias) -> Self {
        let failure = |label: &'static str| {
            let counter = metrics.poll_failures.handle(&format!("{alias}.{label}"));
            (label, counter)
        };
        Self {
            polls: metrics.polls.handle(alias.as_str()),
            failures: PollError::LABELS.into_iter().map(failure).collect(),
        }
    }

    fn count(&self, observation: &Observation) {
        self.polls.inc();
        if let Err(e) = &observation.outcome
            && let Some((_, counter)) = self.failures.iter().find(|(label, _)| *label == e.label())
        {
            counter.inc();
        }
    }
}

impl Pollers {
    /// No pollers yet; [`Self::prepare`] and [`Self::install`] bring them. They run on `tasks` until `stopped`.
    pub fn new(
        health: Arc<Health>,
        listeners: Vec<Arc<dyn HealthListener>>,
        metrics: Arc<Metrics>,
        settings: PollSettings,
        (tasks, stopped): (TaskTracker, CancellationToken),
    ) -> Self {
        Self {
            health,
            listeners,
            metrics,
            settings: ArcSwap::from_pointee(settings),
            running: Mutex::default(),
            unknown: Mutex::default(),
            tasks,
            stopped,
        }
    }

    /// Looks once, and all at once, at those of these tablets that are not looked at yet. Bounded by the time of a first
    /// look; a tablet that does not answer is prepared all the same, and does not serve.
    pub async fn prepare(&self, tablets: Vec<Arc<TabletInfo>>, settings: PollSettings) -> Prepared {
        let settings = Arc::new(settings);
        let known = self.health.tablets();
        let mut all = Tablets::new();
        let mut looks = Vec::new();
        for info in tablets {
            let alias = info.alias.clone();
            let tablet = match known.get(&alias) {
                // Its role may be another one, which whoever follows the primaries sets.
                Some(old) if old.info().same_server(&info) => {
                    all.insert(alias, Arc::clone(old));
                    continue;
                }
                Some(_) | None => Arc::new(TabletHealth::new(Arc::clone(&info))),
            };
            all.insert(alias.clone(), Arc::clone(&tablet));
            let watch = Watch {
                counters: Counters::new(&self.metrics, &alias),
                looker: Looker::new(info),
                tablet,
            };
            looks.push(self.first_look(watch, &settings));
        }
        let fresh = futures::future::join_all(looks).await;
        Prepared {
            settings,
            tablets: all,
            fresh,
        }
    }

    async fn first_look(&self, mut watch: Watch, settings: &Arc<PollSettings>) -> Watch {
        let limit = settings.first_timeout.max(settings.timeout);
        let observation = watch.looker.look(settings, limit).await;
        self.publish(&watch, observation);
        watch
    }

    /// Publishes what was prepared, beside what there is, and begins to look at it.
    pub fn install(self: &Arc<Self>, prepared: Prepared) -> Tablets {
        let Prepared {
            settings,
            tablets,
            fresh,
        } = prepared;
        self.health.set_interval(settings.interval);
        self.settings.store(settings);
        let mut union = (*self.health.tablets()).clone();
        union.extend(tablets.iter().map(|(alias, t)| (alias.clone(), Arc::clone(t))));
        self.health.publish(union);
        // The old interval may be long: those that stay look now, by the new settings.
        for tablet in tablets.values() {
            tablet.demand();
        }
        for tablet in tablets.values() {
            self.count_from_zero(&tablet.info().shard);
        }
        for watch in fresh {
            self.start(watch);
        }
        tablets
    }

    fn count_from_zero(&self, shard: &ShardId) {
        for reason in UnknownLag::ALL {
            let _ = self.metrics.lag_unknown.handle(&lag_label(shard, reason));
        }
    }

    /// Ends the pollers of all tablets but these, and forgets what was known of those.
    pub fn retire_all_but(&self, tablets: Tablets) {
        self.running().retain(|alias, running| {
            let stays = tablets
                .get(alias)
                .is_some_and(|t| Arc::ptr_eq(t, &running.tablet));
            if !stays {
                running.stop.cancel();
            }
            stays
        });
        self.unknown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|shard, _| tablets.values().any(|t| t.info().shard == *shard));
        self.health.publish(tablets);
    }

    fn start(self: &Arc<Self>, watch: Watch) {
        let stop = self.stopped.child_token();
        let running = Running {
            tablet: Arc::clone(&watch.tablet),
            stop: stop.clone(),
        };
        let alias = watch.tablet.info().alias.clone();
        if let Some(before) = self.running().insert(alias, running) {
            before.stop.cancel();
        }
        self.tasks.spawn(run(Arc::clone(self), watch, stop));
    }

    /// A poisoned lock means a panic between two whole changes of a map: what is there is whole.
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<TabletAlias, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, watch: &Watch, observation: Observation) {
        watch.counters.count(&observation);
        let info = watch.tablet.info();
        let (standing, transitions) = watch.tablet.record(observation);
        for transition in &transitions {
            log(&info, transition);
        }
        for listener in &self.listeners {
            listener.observed(&info, &standing.last);
        }
        if info.role == Role::Replica {
            self.watch_lag(&info.shard);
        }
    }

    /// Tells when no replica's lag of a shard is known any more, and when one is again.
    fn watch_lag(&self, shard: &ShardId) {
        let lags: Vec<Lag> = self
            .health
            .lags(shard, clock::now())
            .into_iter()
            .map(|(_, lag)| lag)
            .collect();
        let reason = all_unknown(&lags);
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        match (unknown.get(shard).copied(), reason) {
            (before, Some(reason)) if before != Some(reason) => {
                unknown.insert(shard.clone(), reason);
                self.metrics.lag_unknown.handle(&lag_label(shard, reason)).inc();
                tracing::warn!(%shard, reason = reason.label(), "no replica's lag is known");
            }
            (Some(_), None) => {
                unknown.remove(shard);
                tracing::info!(%shard, reason = "lag_known", "a replica's lag is known again");
            }
            (None | Some(_), _) => {}
        }
    }
}

/// Looks at one tablet until it is told to stop.
async fn run(pollers: Arc<Pollers>, mut watch: Watch, stop: CancellationToken) {
    let random = RandomState::new();
    let mut began = clock::now();
    // Pollers that begin together must not stay in step, so the first wait is a part of the interval.
    let mut next = began + part_of(pollers.settings.load().interval, random.hash_one(0));
    for turn in 1_u64.. {
        let late = async {
            watch.looker.finish_late().await;
            std::future::pending::<std::convert::Infallible>().await
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = due(&watch.tablet, next, began) => {}
            never = late => match never {},
        }
        began = clock::now();
        let settings = pollers.settings.load_full();
        tokio::select! {
            () = stop.cancelled() => break,
            observation = watch.looker.look(&settings, settings.timeout) => pollers.publish(&watch, observation),
        }
        next = began + stretched(settings.interval, random.hash_one(turn));
    }
    watch.looker.close().await;
}

/// Waits for the next look: until its time, or until somebody demands it.
async fn due(tablet: &TabletHealth, next: Instant, began: Instant) {
    tokio::select! {
        () = tokio::time::sleep_until(next) => {}
        () = tablet.demanded() => tokio::time::sleep_until(began + LEAST_GAP).await,
    }
}

/// The interval, longer or shorter by up to a tenth, as `random` says.
fn stretched(interval: Duration, random: u64) -> Duration {
    let percent = 100 - JITTER_PERCENT + random % (2 * JITTER_PERCENT + 1);
    interval.saturating_mul(percent as u32) / 100
}

/// Between nothing and the whole of the interval, as `random` says.
fn part_of(interval: Duration, random: u64) -> Duration {
    interval.saturating_mul((random % 101) as u32) / 100
}

/// `keyspace.shard.reason`.
fn lag_label(shard: &ShardId, reason: UnknownLag) -> String {
    format!("{}.{}.{}", shard.keyspace, shard.shard, reason.label())
}

fn log(info: &TabletInfo, transition: &Transition) {
    tracing::info!(
        tablet = %info.alias,
        shard = %info.shard,
        role = %info.role,
        reason = transition.reason(),
        detail = transition.detail(),
        "a tablet changed"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_stretched_by_a_tenth_at_most() {
        let interval = Duration::from_millis(500);
        let all: Vec<Duration> = (0..1000).map(|random| stretched(interval, random)).collect();
        assert_eq!(all.iter().min(), Some(&Duration::from_millis(450)));
        assert_eq!(all.iter().max(), Some(&Duration::from_millis(550)));
        assert_eq!(part_of(interval, 0), Duration::ZERO);
        assert_eq!(part_of(interval, 100), interval);
        assert_eq!(stretched(Duration::MAX, 20), Duration::MAX / 100);
    }

    #[tokio::test(start_paused = true)]
    async fn demands_cannot_make_a_poller_spin() {
        let info = TabletInfo {
            alias: "a".into(),
            shard: ShardId::new("k", "0"),
            role: Role::Primary,
            address: shardgate_wire::client::Address::tcp("h", 1),
            database: "k".into(),
        };
        let tablet = TabletHealth::new(Arc::new(info));
        let start = clock::now();
        let mut began = start;
        for _ in 0..10 {
            tablet.demand();
            due(&tablet, start + Duration::from_mins(1), began).await;
            began = clock::now();
        }
        assert_eq!(began.duration_since(start), LEAST_GAP * 10);
    }
}
