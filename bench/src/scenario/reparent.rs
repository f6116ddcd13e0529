//! Some of many shards change their primary under steady reads and writes; every write is looked for afterwards.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use shardgate_tablet_sim::{Reparent, ReparentKind, ReparentReport};
use shardgate_tests::Gateway;
use tokio::task::JoinHandle;

use super::arena::{Arena, KEYSPACE, ROWS, sim};
use super::load::{Chance, Journal, Kind, Manners};
use super::observe::buffer_counts;
use super::record::{SLICE, Slice, Window};
use super::variant::Variant;
use super::{Phases, Run, Scenario, bars};
use crate::BenchError;
use crate::promise::Promise;

/// Kinds of requests, by their place.
const MOVED: [usize; 2] = [0, 1];
const OTHERS: [usize; 2] = [2, 3];

/// How the primaries change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// Read-only, a replica catches up and is promoted.
    Planned,
    /// Killed; a replica is promoted.
    Emergency,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Reparented {
    #[command(flatten)]
    pub(crate) options: super::Options,
    /// Shards, each of a primary and a replica.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    shards: u16,
    /// How many of them change their primary, all at once.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=32))]
    moved: u16,
    /// How.
    #[arg(long, value_enum, default_value_t = How::Planned)]
    how: How,
    /// How long nobody takes writes, at least, in milliseconds.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(..=15_000))]
    gap_ms: u64,
    /// How many times, each with shards and a gateway of its own.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    #[arg(skip)]
    state: Mutex<State>,
}

/// What a run leaves for its examination.
#[derive(Debug, Default)]
struct State {
    journal: Arc<Mutex<Journal>>,
    reparents: Vec<JoinHandle<Result<ReparentReport, String>>>,
    /// The longest time without a primary, of each run.
    gaps: Vec<Duration>,
}

impl Reparented {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shards that move are the first ones.
    fn moved(&self) -> u64 {
        u64::from(self.moved.min(self.shards - 1))
    }

    fn kind(&self, name: &'static str, moved: bool, writes: bool) -> Kind {
        let (shards, first) = (u64::from(self.shards), self.moved());
        let (from, count) = if moved {
            (0, first)
        } else {
            (first, shards - first)
        };
        let id = move |chance: &mut Chance| chance.below(ROWS) * shards + from + chance.below(count);
        let sql: Arc<dyn Fn(&mut Chance) -> String + Send + Sync> = if writes {
            // Half of 64 bits: no two alike.
            Arc::new(move |chance| {
                let id = id(chance);
                format!("INSERT INTO w (id, token) VALUES ({id}, {})", chance.next() >> 1)
            })
        } else {
            Arc::new(move |chance| format!("SELECT v FROM t WHERE id = {}", id(chance)))
        };
        Kind {
            name,
            share: if moved { 0.3 } else { 0.2 },
            sql,
            journal: writes.then(|| Arc::clone(&self.state().journal)),
        }
    }

    /// What every shard holds against what was acknowledged.
    async fn exactly_once(&self, arena: &Arena, variant: Variant) -> Result<Promise, BenchError> {
        let mut held: BTreeMap<String, u64> = BTreeMap::new();
        for shard in &arena.cluster.shards {
            let rows = shard
                .primary()
                .query_local(&format!("SELECT token FROM {KEYSPACE}.w"))
                .await;
            for token in rows.map_err(sim)?.into_iter().flatten().flatten() {
                *held.entry(token).or_default() += 1;
            }
        }
        let journal = std::mem::take(
            &mut *self
                .state()
                .journal
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let lost = journal
            .acknowledged
            .iter()
            .filter(|t| !held.contains_key(*t))
            .count();
        let doubled = held.values().filter(|n| **n > 1).count();
        let sent: HashSet<&String> = journal.sent.iter().collect();
        let strange = held.keys().filter(|t| !sent.contains(t)).count();
        Ok(Promise::new(
            format!("{variant}: every acknowledged write is there once, and no other"),
            format!(
                "{} acknowledged, {lost} lost, {doubled} doubled, {strange} never sent",
                journal.acknowledged.len()
            ),
            lost + doubled + strange == 0 && !journal.acknowledged.is_empty(),
        ))
    }

    fn promises_of(&self, run: &Run, gap: Duration) -> Vec<Promise> {
        let all = Window {
            from: run.phases.before().from,
            to: run.phases.after().to,
        };
        let mut seen = Slice::new();
        for kind in MOVED {
            seen.merge(&run.record.over(kind, all));
        }
        let failed: u64 = seen.failed.values().sum();
        let mut out = vec![Promise::new(
            format!("{}: {}", run.variant, self.tolerated()),
            format!("{:?} of {}", seen.failed, seen.sent),
            match self.how {
                How::Planned => failed == 0,
                // What a pool can have on its way when its server dies.
                How::Emergency => {
                    failed <= 20 * self.moved() && seen.failed.keys().all(|code| code.starts_with("SG24"))
                }
            },
        )];
        let bar = gap + Duration::from_millis(250) + run.seen.timer_lag;
        out.push(Promise::new(
            format!("{}: nobody waits longer than the gap and 250 ms", run.variant),
            format!(
                "at most {} ms; gap {} ms, timer lag {} ms",
                seen.worst.as_millis(),
                gap.as_millis(),
                run.seen.timer_lag.as_millis()
            ),
            seen.worst <= bar,
        ));
        out.push(Self::resumed(run, gap));
        out
    }

    fn tolerated(&self) -> &'static str {
        match self.how {
            How::Planned => "no request fails",
            How::Emergency => "only what was on its way to the killed primary fails, as outcome unknown",
        }
    }

    /// Writes of the moved shards are served again within a second of the promotion.
    fn resumed(run: &Run, gap: Duration) -> Promise {
        let fault = run.phases.fault();
        let promoted = fault.from + gap;
        let parts = run.record.parts(
            MOVED[0],
            Window {
                from: promoted + Duration::from_secs(1),
                to: run.phases.after().to,
            },
        );
        let bad = parts.iter().filter(|s| s.goodput() < 0.95).count();
        Promise::new(
            format!(
                "{}: writes are served again within 1 s of the promotion",
                run.variant
            ),
            format!(
                "{bad} of {} pieces of {} ms after that are not",
                parts.len(),
                SLICE.as_millis()
            ),
            bad == 0 && !parts.is_empty(),
        )
    }
}

impl Scenario for Reparented {
    fn name(&self) -> &'static str {
        "reparent"
    }

    fn story(&self) -> String {
        let how = match self.how {
            How::Planned => "become read-only and hand over to their replicas",
            How::Emergency => "are killed and replaced by their replicas",
        };
        format!(
            "Of {} shards under reads and writes the primaries of {} {how}; for {} ms nobody takes their writes.",
            self.shards,
            self.moved(),
            self.gap_ms
        )
    }

    fn shards(&self) -> usize {
        usize::from(self.shards)
    }

    fn replicas(&self) -> usize {
        1
    }

    fn service(&self) -> Duration {
        Duration::from_millis(3)
    }

    fn variants(&self) -> Vec<Variant> {
        vec![Variant::Defaults; usize::from(self.rounds)]
    }

    fn phases(&self, quick: bool) -> Phases {
        let seconds = Duration::from_secs;
        Phases {
            warm_up: seconds(1),
            before: seconds(if quick { 3 } else { 6 }),
            fault: Duration::from_millis(self.gap_ms) + seconds(2),
            after: seconds(if quick { 4 } else { 8 }),
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            self.kind("writes, moved shards", true, true),
            self.kind("reads, moved shards", true, false),
            self.kind("writes, other shards", false, true),
            self.kind("reads, other shards", false, false),
        ]
    }

    fn manners(&self) -> Manners {
        Manners {
            patience: Duration::from_mins(1),
            retries: 0,
            backoff: Duration::ZERO,
        }
    }

    fn strike(&self, arena: &Arena) -> Result<(), BenchError> {
        let kind = match self.how {
            How::Planned => ReparentKind::Planned,
            How::Emergency => ReparentKind::Emergency,
        };
        let how = Reparent::new(kind).gap(Duration::from_millis(self.gap_ms));
        for n in 0..usize::from(self.moved.min(self.shards - 1)) {
            let (shard, how) = (arena.shard(n)?.clone(), how.clone());
            let run = tokio::spawn(async move { shard.reparent(&how).await.map_err(|e| e.to_string()) });
            self.state().reparents.push(run);
        }
        Ok(())
    }

    async fn examine(
        &self,
        arena: &Arena,
        gateway: &Gateway,
        _binary: &Path,
        variant: Variant,
    ) -> Result<Vec<Promise>, BenchError> {
        let running = std::mem::take(&mut self.state().reparents);
        let mut longest = Duration::ZERO;
        for reparent in running {
            let report = reparent.await?.map_err(|what| BenchError::Answer {
                target: "reparent".into(),
                what,
            })?;
            longest = longest.max(Duration::from_millis(report.gap_ms.unwrap_or(0)));
        }
        self.state().gaps.push(longest);
        let mut out = vec![self.exactly_once(arena, variant).await?];
        let counts = buffer_counts(gateway.admin()).await.unwrap_or_default();
        out.push(Promise::new(
            "the counters of buffered requests rise and settle",
            format!(
                "{} buffered, {} drained, {} evicted",
                counts.buffered, counts.drained, counts.evicted
            ),
            counts.buffered > 0 && counts.buffered == counts.drained + counts.evicted,
        ));
        Ok(out)
    }

    fn promises(&self, runs: &[Run]) -> Vec<Promise> {
        let gaps = std::mem::take(&mut self.state().gaps);
        let mut out: Vec<Promise> = runs
            .iter()
            .zip(gaps)
            .flat_map(|(run, gap)| self.promises_of(run, gap))
            .collect();
        let rounds: Vec<&Run> = runs.iter().collect();
        out.extend(OTHERS.map(|kind| bars::unharmed(&rounds, kind)));
        out
    }
}
