//! A trigger that is soon gone, and clients that hang up and try again: whether the overload they make outlives it.

use std::sync::Arc;
use std::time::Duration;

use shardgate_tablet_sim::FaultSpec;

use super::arena::{Arena, KINDS, ROWS};
use super::load::{Kind, Manners};
use super::variant::Variant;
use super::{Phases, Run, Scenario, bars};
use crate::BenchError;
use crate::promise::Promise;

/// Twenty connections of 40 ms make 500 requests a second; slowed to a second each, twenty.
const SERVICE: Duration = Duration::from_millis(40);
const TRIGGER: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Metastable {
    #[command(flatten)]
    pub(crate) options: super::Options,
}

impl Scenario for Metastable {
    fn name(&self) -> &'static str {
        "metastable"
    }

    fn story(&self) -> String {
        "One shard whose twenty connections are half used. For a while every statement takes a second instead of 40 ms; \
         clients hang up after 500 ms and try again, up to four times."
            .into()
    }

    fn shards(&self) -> usize {
        1
    }

    fn service(&self) -> Duration {
        SERVICE
    }

    fn phases(&self, quick: bool) -> Phases {
        let seconds = Duration::from_secs;
        Phases {
            warm_up: seconds(1),
            before: seconds(if quick { 3 } else { 6 }),
            fault: seconds(if quick { 4 } else { 8 }),
            after: seconds(if quick { 12 } else { 15 }),
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        let columns = ["v", "id, v", "k, v", "id, k"];
        vec![
            Kind {
                name: "rows by id",
                share: 0.7,
                sql: Arc::new(move |chance| {
                    let columns = columns[chance.below(columns.len() as u64) as usize];
                    format!("SELECT {columns} FROM t WHERE id = {}", chance.below(ROWS))
                }),
                journal: None,
            },
            Kind {
                name: "rows by kind",
                share: 0.3,
                sql: Arc::new(|chance| format!("SELECT id, v FROM t WHERE k = {}", chance.below(KINDS))),
                journal: None,
            },
        ]
    }

    fn manners(&self) -> Manners {
        Manners {
            patience: Duration::from_millis(500),
            retries: 4,
            backoff: Duration::from_millis(20),
        }
    }

    fn strike(&self, arena: &Arena) -> Result<(), BenchError> {
        arena.faults(arena.shard(0)?, &[FaultSpec::latency(TRIGGER).on("FROM t")])
    }

    fn promises(&self, runs: &[Run]) -> Vec<Promise> {
        let mut out = Vec::new();
        for run in runs {
            if run.variant == Variant::All {
                out.push(bars::recovered(run));
                out.push(bars::nothing_leaks(run));
                out.push(bars::nothing_abandoned(run, Duration::from_millis(800)));
            }
        }
        out
    }
}
