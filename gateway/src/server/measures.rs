//! Everything that is counted, together: the metrics tree, breakers as they are, tablets as last seen. And every label
//! that can be known before its first event, at zero, so that the first event is a step and not a new line.

use std::collections::BTreeMap;
use std::sync::Arc;

use shardgate_breaker::{Breaker, Outcome, Reason, Snapshot, State, Time};

use crate::balance::Fleet;
use crate::base::clock::Instant;
use crate::base::codes::CODES;
use crate::base::metrics::{Family, Metrics, Values};
use crate::base::{Role, ShardId};
use crate::exec;
use crate::guard::{self, BufferSnapshot};
use crate::session;
use crate::tablet::TabletInfo;
use crate::topology::{Health, Topology};

/// What pools count of a tablet.
const POOL_EVENTS: [&str; 5] = ["opened", "closed", "refused", "waited", "stale"];
/// What refuses an attempt.
const REFUSED_BY: [&str; 3] = ["breaker", "kind", "share"];
/// What becomes of a wish to try again.
const RETRY_EVENTS: [&str; 2] = ["tried", "no_budget"];
/// Why a client is turned away.
const CONN_REFUSED: [&str; 4] = ["accept", "handshake", "handshake_timeout", "max_connections"];
/// How many kinds of statement are shown at most with their breakers: they come and go, and each is a line.
const MOST_KINDS: usize = 512;
/// Waits that end by themselves, beside the deadlines' layers.
const STALLS: [&str; 2] = ["tablet_silent", "client_stalled"];
/// What becomes of a partial answer.
const PARTIAL: [&str; 2] = ["answered", "not_monotone"];

/// Makes known, at zero, what statements, shards and tablets will count.
pub(super) fn count_from_zero(metrics: &Metrics, tablets: &[Arc<TabletInfo>]) {
    for label in CONN_REFUSED {
        metrics.connections_refused.handle(label);
    }
    for layer in [exec::Layer::Gateway, exec::Layer::Tablet] {
        metrics.timeouts.handle(layer.label());
    }
    for label in STALLS {
        metrics.timeouts.handle(label);
    }
    for label in PARTIAL {
        metrics.partial.handle(label);
    }
    for code in CODES {
        metrics.query_errors.handle(code);
    }
    session::count_kinds_from_zero(metrics);
    for tablet in tablets {
        let (keyspace, shard) = (&tablet.shard.keyspace, &tablet.shard.shard);
        let call = format!("Execute.{keyspace}.{shard}.{}", tablet.role);
        metrics.tablet_call.handle(&call);
        metrics.tablet_call_errors.handle(&call);
        for outcome in Outcome::ALL.into_iter().filter(|o| *o != Outcome::Success) {
            let label = format!("{call}.{}", outcome.label());
            metrics.tablet_call_outcomes.handle(&label);
        }
        for event in POOL_EVENTS {
            metrics.pool.handle(&format!("{}.{event}", tablet.alias));
        }
        let of_shard = format!("{keyspace}.{shard}");
        metrics.buffer.count_from_zero(&of_shard);
        metrics.primary_changes.handle(&of_shard);
        metrics.split_brains.handle(&of_shard);
        metrics.schema_differences.handle(keyspace.as_str());
        for by in REFUSED_BY {
            metrics.refused.handle(&format!("{by}.{}", tablet.shard));
        }
        for event in RETRY_EVENTS {
            metrics.retries.handle(&format!("{}.{event}", tablet.shard));
        }
        guard::count_shard_from_zero(metrics, &tablet.shard);
        if tablet.role == Role::Replica {
            guard::count_replica_from_zero(metrics, &tablet.alias);
        }
    }
}

/// What all is shown from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources<'a> {
    pub(super) metrics: &'a Metrics,
    pub(super) fleet: &'a Fleet,
    pub(super) health: &'a Health,
    pub(super) topology: &'a Topology,
}

/// Everything that is counted, now.
pub(super) fn families(from: Sources<'_>, now: Instant) -> Vec<Family> {
    let mut all = from.metrics.families();
    all.extend(of_pools(from.fleet));
    all.extend(of_buffers(from.fleet, now));
    all.extend(of_health(from.health, from.topology, now));
    all.extend(of_breakers(from, now));
    all
}

#[allow(clippy::cast_precision_loss)] // connections are few
fn of_pools(fleet: &Fleet) -> Vec<Family> {
    let usage = fleet.usage();
    let of = |pick: fn((usize, usize, usize)) -> usize| {
        let all = usage.iter();
        Values::Gauges(
            all.map(|(t, used)| (t.alias.to_string(), pick(*used) as f64))
                .collect(),
        )
    };
    vec![
        Family::new("PoolBusy", "Connections in use.", &["Tablet"], of(|u| u.0)),
        Family::new(
            "PoolWaiting",
            "Requests that wait for a connection.",
            &["Tablet"],
            of(|u| u.1),
        ),
        Family::new("PoolIdle", "Connections that are idle.", &["Tablet"], of(|u| u.2)),
    ]
}

#[allow(clippy::cast_precision_loss)] // bounded by the configuration, far below 2^52
fn of_buffers(fleet: &Fleet, now: Instant) -> Vec<Family> {
    let waiting = fleet.guards().buffer_snapshots(now);
    let of = |pick: fn(&BufferSnapshot) -> usize| {
        let label = |b: &BufferSnapshot| format!("{}.{}", b.shard.keyspace, b.shard.shard);
        Values::Gauges(waiting.iter().map(|b| (label(b), pick(b) as f64)).collect())
    };
    vec![
        Family::new(
            "BufferRequestsInFlight",
            "Requests that wait for a primary now.",
            &["Keyspace", "ShardName"],
            of(|b| b.requests),
        ),
        Family::new(
            "BufferBytesInFlight",
            "Bytes of their statements.",
            &["Keyspace", "ShardName"],
            of(|b| b.bytes),
        ),
    ]
}

fn of_health(health: &Health, topology: &Topology, now: Instant) -> Vec<Family> {
    let (mut serving, mut known, mut lags) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for tablet in topology.shards().flat_map(|s| health.of_shard(s.id())) {
        let info = tablet.info();
        let alias = info.alias.to_string();
        serving.insert(alias.clone(), f64::from(u8::from(tablet.serving())));
        if info.role == Role::Replica {
            let lag = health.lag(&info, now).known();
            known.insert(alias.clone(), f64::from(u8::from(lag.is_some())));
            if let Some(lag) = lag {
                lags.insert(alias, lag.as_secs_f64());
            }
        }
    }
    let gauges = Values::Gauges;
    vec![
        Family::new(
            "TabletServing",
            "Whether a tablet serves: 1 or 0.",
            &["Tablet"],
            gauges(serving),
        ),
        Family::new(
            "ReplicaLagKnown",
            "Whether a replica's lag is known: 1 or 0.",
            &["Replica"],
            gauges(known),
        ),
        Family::new(
            "ReplicaLagSeconds",
            "How far a replica is behind, in seconds; absent while not known.",
            &["Replica"],
            gauges(lags),
        ),
    ]
}

/// The breakers of all shards and replicas; those that were never asked for are closed and have counted nothing.
fn of_breakers(from: Sources<'_>, now: Instant) -> Vec<Family> {
    let guards = from.fleet.guards();
    let at = guards.time(now);
    let shards: BTreeMap<ShardId, _> = guards.shards().into_iter().map(|s| (s.id().clone(), s)).collect();
    let of_shards = from.topology.shards().map(|s| {
        let breaker = shards.get(s.id()).and_then(|g| g.breaker().cloned());
        (s.id().to_string(), snapshot(breaker.as_ref(), at))
    });
    let shards = Scope::of(of_shards);
    let known: BTreeMap<String, Arc<Breaker>> = guards
        .replicas()
        .into_iter()
        .map(|(_, alias, breaker)| (alias.to_string(), breaker))
        .collect();
    let replicas = from.topology.shards().flat_map(|s| s.serving(Role::Replica));
    let kinds = of_kinds(&guards.shards(), at);
    let replicas = Scope::of(replicas.map(|t| {
        let alias = t.alias.to_string();
        let found = snapshot(known.get(&alias), at);
        (alias, found)
    }));
    let [state, trips, probes] = replicas.families();
    let mut all = vec![
        named(
            "ReplicaBreakerState",
            "replica_breaker_state",
            "State of a replica's breaker: 0 closed, 1 open, 2 half-open.",
            &["Replica"],
            state,
        ),
        named(
            "ReplicaBreakerTrips",
            "replica_breaker_trips_total",
            "Times a replica's breaker opened, by reason.",
            &["Replica", "Reason"],
            trips,
        ),
        named(
            "ReplicaBreakerProbe",
            "replica_breaker_probe_total",
            "Probes of a replica's breaker, by result.",
            &["Replica", "Result"],
            probes,
        ),
    ];
    let [state, trips, probes] = shards.families();
    all.extend([
        named(
            "ShardBreakerState",
            "shard_breaker_state",
            "State of a shard's breaker: 0 closed, 1 open, 2 half-open.",
            &["Shard"],
            state,
        ),
        named(
            "ShardBreakerTrips",
            "shard_breaker_trips_total",
            "Times a shard's breaker opened, by reason.",
            &["Shard", "Reason"],
            trips,
        ),
        named(
            "ShardBreakerProbe",
            "shard_breaker_probe_total",
            "Probes of a shard's breaker, by result.",
            &["Shard", "Result"],
            probes,
        ),
        named(
            "QueryBreakerState",
            "query_breaker_state",
            "State of the breaker of a kind of statement on a shard: 0 closed, 1 open, 2 half-open; absent while it has none.",
            &["Shard", "Fingerprint"],
            Values::Gauges(kinds),
        ),
    ]);
    all
}

/// The breakers of kinds of statement, as many as are shown; first those that refuse something.
fn of_kinds(shards: &[Arc<guard::ShardGuard>], at: Time) -> BTreeMap<String, f64> {
    let mut all: Vec<(State, String)> = shards
        .iter()
        .flat_map(|shard| {
            let kinds = shard.kinds().all().into_iter();
            kinds.map(move |(kind, breaker)| (breaker.state(at), format!("{}.{kind:016x}", shard.id())))
        })
        .collect();
    all.sort_unstable_by(|(a, one), (b, other)| {
        (*a == State::Closed, one).cmp(&(*b == State::Closed, other))
    });
    let shown = all.into_iter().take(MOST_KINDS);
    shown.map(|(state, name)| (name, number(state))).collect()
}

const fn number(state: State) -> f64 {
    match state {
        State::Closed => 0.0,
        State::Open => 1.0,
        State::HalfOpen => 2.0,
    }
}

fn named(
    name: &'static str,
    exported: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    values: Values,
) -> Family {
    Family {
        exported: Some(exported),
        ..Family::new(name, help, labels, values)
    }
}

fn snapshot(breaker: Option<&Arc<Breaker>>, at: Time) -> Option<Snapshot> {
    breaker.map(|b| b.snapshot(at))
}

/// The breakers of one scope.
#[derive(Debug, Default)]
struct Scope {
    states: BTreeMap<String, f64>,
    trips: BTreeMap<String, u64>,
    probes: BTreeMap<String, u64>,
}

impl Scope {
    fn of(breakers: impl Iterator<Item = (String, Option<Snapshot>)>) -> Self {
        let mut all = Self::default();
        for (name, found) in breakers {
            let state = found.as_ref().map_or(0.0, |s| number(s.state));
            let counts = found.map(|s| s.counts).unwrap_or_default();
            for reason in Reason::ALL {
                let n = counts.trips[reason.index()];
                all.trips.insert(format!("{name}.{}", reason.label()), n);
            }
            all.probes.insert(format!("{name}.success"), counts.probes_passed);
            all.probes.insert(format!("{name}.fail"), counts.probes_failed);
            all.states.insert(name, state);
        }
        all
    }

    fn families(self) -> [Values; 3] {
        [
            Values::Gauges(self.states),
            Values::Counters(self.trips),
            Values::Counters(self.probes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::clock;
    use crate::config::Config;
    use crate::guard::Guards;
    use crate::server::{backend, build, tablets};
    use crate::tablet::Reaper;
    use crate::topology::TabletHealth;

    const FILE: &str = r#"
[[users]]
name = "u"
password_hash = ""
[keyspaces.k]
named = { by = "modulo", column = "id" }
[[keyspaces.k.shards]]
name = "s0"
tablets = [{ alias = "a.1", address = "h:1" }, { alias = "a.2", address = "h:2", role = "replica" }]
[[keyspaces.k.shards]]
name = "s1"
tablets = [{ alias = "b", address = "h:3" }]
"#;

    fn config() -> Config {
        Config::parse(FILE, Path::new(".")).unwrap()
    }

    fn all() -> Vec<Family> {
        let config = config();
        let metrics = Arc::new(Metrics::default());
        let (_reaper, handle) = Reaper::new(build::reaper_options(&config), &metrics);
        let settings = build::guard_settings(&config);
        let guards = Guards::new(settings, clock::now(), 1, Arc::clone(&metrics));
        let options = build::pool_options(&config);
        let health = Arc::new(Health::new());
        let fleet = Fleet::new(
            (backend(&config).unwrap(), options),
            handle,
            Arc::new(guards),
            Arc::clone(&health),
            Arc::clone(&metrics),
        );
        fleet.update(tablets(&config));
        let seen = tablets(&config)
            .into_iter()
            .map(|info| (info.alias.clone(), Arc::new(TabletHealth::new(info))));
        health.publish(seen.collect());
        count_from_zero(&metrics, &tablets(&config));
        let sources = Sources {
            metrics: &metrics,
            fleet: &fleet,
            health: &health,
            topology: &Topology::new(1, &config).unwrap(),
        };
        families(sources, clock::now())
    }

    #[test]
    fn the_page_lists_every_name_with_its_labels_and_no_other() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
        let page = std::fs::read_to_string(page).unwrap();
        let table = &page[..page.find("## Labels").unwrap()];
        let listed: Vec<&str> = table.lines().filter(|l| l.starts_with("| `")).skip(1).collect();
        let label = |family: &Family| {
            let names = family.label_names().into_iter();
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let expected: Vec<String> = all()
            .iter()
            .map(|f| {
                format!(
                    "| `{}` | `{}` | {} | {} |",
                    f.name,
                    f.exported_name(),
                    label(f),
                    f.help
                )
            })
            .collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn no_family_is_empty_but_what_comes_and_goes() {
        for family in all() {
            let empty = match &family.values {
                Values::Counter(_) | Values::Gauge(_) => false,
                Values::Counters(values) => values.is_empty(),
                Values::Gauges(values) => values.is_empty(),
                Values::Timings(values) => values.is_empty(),
            };
            // Polls are made known by the pollers, which do not run here; unknown lag is no number.
            let expected = matches!(
                family.name,
                "Polls" | "PollFailures" | "LagUnknown" | "ReplicaLagSeconds" | "QueryBreakerState"
            );
            assert_eq!(empty, expected, "{}", family.name);
        }
    }

    #[test]
    fn kinds_with_breakers_are_shown_those_that_refuse_first() {
        let metrics = Arc::new(Metrics::default());
        let guards = Guards::new(build::guard_settings(&config()), clock::now(), 1, metrics);
        let at = guards.time(clock::now());
        let shards: Vec<_> = (0..4)
            .map(|n| guards.shard(&ShardId::new("k", format!("s.{n}").as_str())))
            .collect();
        for shard in &shards {
            for kind in 1..=200 {
                shard
                    .kinds()
                    .timed_out(guard::Work::statement(kind), at, || Arc::new(()));
            }
        }
        shards[3].kinds().blame(200, at, || Arc::new(()));
        let shown = of_kinds(&shards, at);
        assert_eq!(shown.len(), MOST_KINDS);
        assert_eq!(shown.get("k/s.3.00000000000000c8"), Some(&1.0));
        assert_eq!(shown.values().filter(|state| **state > 0.0).count(), 1);
        let family = named("X", "x", "", &["Shard", "Fingerprint"], Values::Gauges(shown));
        assert_eq!(family.label_names()[0], "shard");
        assert_eq!(family.cells("k/s.3.00000000000000c8")[0], "k/s.3");
    }

    #[test]
    fn what_can_be_known_before_its_first_event_is_at_zero() {
        let all = all();
        let known = |name: &str, label: &str| {
            let family = all.iter().find(|f| f.name == name).unwrap();
            match &family.values {
                Values::Counters(values) => assert_eq!(values.get(label), Some(&0), "{name} {label}"),
                Values::Gauges(values) => assert_eq!(values.get(label), Some(&0.0), "{name} {label}"),
                Values::Timings(values) => assert_eq!(values.get(label).map(|r| r.count), Some(0), "{name}"),
                Values::Counter(_) | Values::Gauge(_) => panic!("{name} has no labels"),
            }
        };
        for (name, label) in [
            ("QueryTimings", "Select"),
            ("QueryExecutions", "SELECT.Scatter.PRIMARY"),
            ("QueryRoutes", "INSERT.MultiShard.PRIMARY"),
            ("QueryExecutions", "DDL.DirectDDL.PRIMARY"),
            ("QueryErrors", "SG2103"),
            ("TabletCallOutcomes", "Execute.k.s0.replica.timeout"),
            ("PartialAnswers", "not_monotone"),
            ("Reaped", "kill_query"),
            ("Breakers", "shard.k/s0.trips.stall"),
            ("Breakers", "replica.a.2.suppressed"),
            ("Breakers", "kind.k/s1.trips.attributed"),
            ("VttabletCall", "Execute.k.s0.replica"),
            ("VttabletCallErrorCount", "Execute.k.s1.primary"),
            ("BufferRequestsBuffered", "k.s1"),
            ("BufferRequestsEvicted", "k.s0.WindowExceeded"),
            ("Pool", "a.1.refused"),
            ("Refused", "breaker.k/s0"),
            ("Retries", "k/s1.no_budget"),
            ("Timeouts", "tablet"),
            ("ConnRefused", "max_connections"),
            ("ReplicaBreakerState", "a.2"),
            ("ReplicaBreakerTrips", "a.2.lag"),
            ("ReplicaBreakerProbe", "a.2.fail"),
            ("ShardBreakerState", "k/s0"),
            ("ShardBreakerTrips", "k/s1.error_rate"),
            ("TabletServing", "a.1"),
        ] {
            known(name, label);
        }
    }
}
