//! One kind of query turns from 5 ms into 2 s, in front of one pool of twenty connections.

use std::sync::Arc;
use std::time::Duration;

use shardgate_tablet_sim::FaultSpec;

use super::arena::{Arena, KINDS, ROWS};
use super::load::{Kind, Manners};
use super::variant::Variant;
use super::{Phases, Run, Scenario, bars};
use crate::BenchError;
use crate::promise::Promise;

const SLOW: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct SlowQuery {
    #[command(flatten)]
    pub(crate) options: super::Options,
}

fn kind(name: &'static str, share: f64, text: &'static str, below: u64) -> Kind {
    Kind {
        name,
        share,
        sql: Arc::new(move |chance| text.replace('?', &chance.below(below).to_string())),
        journal: None,
    }
}

impl Scenario for SlowQuery {
    fn name(&self) -> &'static str {
        "slow-query"
    }

    fn story(&self) -> String {
        "One shard, twenty connections, statements of 5 ms; one kind of statement, a fifth of the load, takes 2 s for a \
         while."
            .into()
    }

    fn shards(&self) -> usize {
        1
    }

    fn service(&self) -> Duration {
        Duration::from_millis(5)
    }

    fn phases(&self, quick: bool) -> Phases {
        let seconds = Duration::from_secs;
        Phases {
            warm_up: seconds(1),
            before: seconds(if quick { 4 } else { 8 }),
            fault: seconds(if quick { 6 } else { 12 }),
            after: seconds(12),
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            kind("rows by id", 0.4, "SELECT v FROM t WHERE id = ?", ROWS),
            kind("rows by kind", 0.2, "SELECT id, v FROM t WHERE k = ?", KINDS),
            kind("range", 0.2, "SELECT id FROM t WHERE id > ? LIMIT 3", ROWS),
            kind("report", 0.2, "SELECT k, v FROM t WHERE v = ? ORDER BY k", ROWS),
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
        arena.faults(arena.shard(0)?, &[FaultSpec::latency(SLOW).on("ORDER BY k")])
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
                out.extend((0..3).map(|other| bars::unharmed(&[run], other)));
                out.push(bars::recovered(run));
            }
        }
        out
    }
}
