//! One shard of many takes forty seconds for everything, then is well again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shardgate_tablet_sim::{FaultKind, FaultSpec};
use shardgate_tests::Gateway;

use super::arena::{Arena, KINDS, ROWS};
use super::load::{Chance, Kind, Manners};
use super::observe::trips;
use super::record::Window;
use super::stopwatch::{beside, cost, until_tripped, until_well};
use super::variant::Variant;
use super::{Phases, Run, Scenario, bars};
use crate::BenchError;
use crate::promise::Promise;

/// How slow the slow shard is.
const SLOW: Duration = Duration::from_secs(40);
/// The shard that is slow.
const VICTIM: usize = 1;

/// Kinds of requests, by their place.
const HEALTHY: usize = 0;
const SCATTER: usize = 2;

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct SlowShard {
    #[command(flatten)]
    pub(crate) options: super::Options,
    /// Shards, one of which is slow.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=256))]
    pub(crate) shards: u16,
}

/// Statements about one row: a few shapes, since a real load has more than one and breakers want to see several.
fn targeted(
    shards: u64,
    shard: impl Fn(&mut Chance) -> u64 + Send + Sync + 'static,
) -> Arc<dyn Fn(&mut Chance) -> String + Send + Sync> {
    Arc::new(move |chance| {
        let id = chance.below(ROWS) * shards + shard(chance);
        let columns = ["v", "id, v", "k, v", "id, k", "v, k, id"];
        let columns = columns[chance.below(columns.len() as u64) as usize];
        format!("SELECT {columns} FROM t WHERE id = {id}")
    })
}

impl SlowShard {
    fn victims(&self) -> Kind {
        Kind {
            name: "slow shard",
            share: 0.3,
            sql: targeted(u64::from(self.shards), |_| VICTIM as u64),
            journal: None,
        }
    }
}

impl Scenario for SlowShard {
    fn name(&self) -> &'static str {
        "slow-shard"
    }

    fn story(&self) -> String {
        format!(
            "{} shards answer in 3 ms; one of them takes 40 s for everything, then is well again. Requests for single \
             rows of the others, of the slow one, and scatters over all.",
            self.shards
        )
    }

    fn shards(&self) -> usize {
        usize::from(self.shards)
    }

    fn service(&self) -> Duration {
        Duration::from_millis(3)
    }

    fn phases(&self, quick: bool) -> Phases {
        let seconds = Duration::from_secs;
        Phases {
            // Each shard has connections of its own to open.
            warm_up: seconds(1) + Duration::from_millis(40) * u32::from(self.shards),
            before: seconds(if quick { 4 } else { 8 }),
            fault: seconds(if quick { 6 } else { 12 }),
            after: seconds(12),
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        let shards = u64::from(self.shards);
        let others = move |chance: &mut Chance| {
            let shard = chance.below(shards - 1);
            shard + u64::from(shard >= VICTIM as u64)
        };
        vec![
            Kind {
                name: "other shards",
                share: 0.6,
                sql: targeted(shards, others),
                journal: None,
            },
            self.victims(),
            Kind {
                name: "scatter",
                // A scatter costs as many requests as there are shards.
                share: 0.1 * (10.0 / f64::from(self.shards)).min(1.0),
                sql: Arc::new(|chance| format!("SELECT id, v FROM t WHERE k = {}", chance.below(KINDS))),
                journal: None,
            },
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
        arena.faults(arena.shard(VICTIM)?, &[FaultSpec::latency(SLOW).on("FROM t")])
    }

    async fn examine(
        &self,
        arena: &Arena,
        _gateway: &Gateway,
        binary: &Path,
        variant: Variant,
    ) -> Result<Vec<Promise>, BenchError> {
        if variant != Variant::All {
            return Ok(Vec::new());
        }
        let mut out = Vec::new();
        // One that knows this load alone: the run's own holds a stall against what was usual under scatters over all
        // shards, ten times their p99.
        let gateway = arena.gateway(binary, variant);
        let mut kind = self.victims();
        kind.share = 1.0;
        let asked = format!("SELECT v FROM t WHERE id = {VICTIM}");
        for (name, bar) in [("a black hole", 600), ("refused connections", 50)] {
            let during = async {
                until_well(gateway.addr(), &asked, Duration::from_secs(90)).await?;
                // Five windows: what is usual is not what a cold gateway did.
                tokio::time::sleep(Duration::from_secs(10)).await;
                let before = trips(gateway.admin()).await.unwrap_or_default();
                let victim = arena.shard(VICTIM)?;
                if name == "a black hole" {
                    arena.faults(victim, &[FaultSpec::new(FaultKind::BlackHole)])?;
                } else {
                    victim.primary().kill().await;
                }
                let opened = until_tripped(gateway.admin(), &before, Duration::from_secs(10)).await;
                let costs = match opened {
                    Some(_) => cost(gateway.addr(), &asked).await?,
                    None => None,
                };
                arena.heal()?;
                if victim.primary().is_down() {
                    victim.primary().restart().await;
                }
                Ok((opened, costs))
            };
            let (opened, costs) = beside(gateway.addr(), vec![kind.clone()], 100.0, during).await?;
            out.push(Promise::new(
                format!("at 100 requests/s the breaker opens within {bar} ms of {name}"),
                opened.as_ref().map_or_else(
                    || "never".into(),
                    |(took, reason)| format!("{} ms, for {reason}", took.as_millis()),
                ),
                opened.is_some_and(|(took, _)| took <= Duration::from_millis(bar)),
            ));
            out.push(Promise::new(
                format!("with it open for {name}, a refusal costs at most 1 ms more than an answer of the gateway's own"),
                costs.map_or_else(
                    || "not refused".into(),
                    |(refused, own)| format!("{} us beside {} us", refused.as_micros(), own.as_micros()),
                ),
                costs.is_some_and(|(refused, own)| refused <= own + Duration::from_millis(1)),
            ));
        }
        Ok(out)
    }

    fn promises(&self, runs: &[Run]) -> Vec<Promise> {
        let mut out = Vec::new();
        for run in runs {
            if matches!(run.variant, Variant::Timeouts | Variant::All) {
                out.push(bars::nobody_waits(run, Duration::from_millis(1050)));
                out.push(bars::nothing_abandoned(run, Duration::from_millis(800)));
                out.push(bars::nothing_leaks(run));
            }
            if run.variant == Variant::All {
                out.push(plateau(run));
                out.push(bars::unharmed(&[run], HEALTHY));
                out.push(bars::recovered(run));
            }
        }
        out
    }
}

/// Scatters in the second half of the fault are no slower than one bounded wait, whatever the shard takes.
fn plateau(run: &Run) -> Promise {
    let fault = run.phases.fault();
    let late = Window {
        from: fault.from + fault.length() / 2,
        ..fault
    };
    let worst = run.record.over(SCATTER, late).worst;
    let bar = Duration::from_millis(1050) + run.seen.timer_lag;
    Promise::new(
        format!("{}: scatters do not track the slow shard", run.variant),
        format!(
            "at most {} ms late in the fault; bar {} ms",
            worst.as_millis(),
            bar.as_millis()
        ),
        worst <= bar,
    )
}
