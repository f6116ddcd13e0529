//! Scenarios: what a fault does to those who did not cause it, with each protection alone, with none, and with all.
//!
//! A scenario runs once for each configuration ([`variant`]): a while without the fault, the fault, a while after it.
//! The load is open-loop ([`load`]) at half of a capacity measured in the same run, so that it says something on any
//! machine. Each scenario's promises are those of the last configuration, all protections together.

pub(crate) mod arena;
mod bars;
pub(crate) mod load;
mod metastable;
pub(crate) mod observe;
pub(crate) mod record;
mod reparent;
mod slow_query;
mod slow_shard;
pub(crate) mod stopwatch;
pub(crate) mod variant;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use shardgate_tests::Gateway;
use tokio::time::Instant;

pub(crate) use metastable::Metastable;
pub(crate) use reparent::Reparented;
pub(crate) use slow_query::SlowQuery;
pub(crate) use slow_shard::SlowShard;

use self::arena::{Arena, KEYSPACE};
use self::load::{Arrivals, Kind, Manners, Plan};
use self::observe::{Observed, Observer};
use self::record::{Record, Window};
use self::variant::Variant;
use crate::promise::{self, Promise};
use crate::report::{self, Report};
use crate::{BenchError, stage};

/// What every scenario can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The gateway's binary; by default the one beside this program.
    #[arg(long = "gateway", value_name = "FILE")]
    gateway: Option<PathBuf>,
    /// Only these configurations; promises are checked where their configuration runs.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Variant>,
    /// Requests a second; by default half of what the gateway answers at most, and 300 at most.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=5000))]
    rate: Option<u32>,
    /// A short run, for checks of every change.
    #[arg(long)]
    quick: bool,
    /// Writes all figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes a page with plots to this file; it needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of the load.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How long each part of a run lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phases {
    /// Connections are opened and plans made before anything counts.
    pub(crate) warm_up: Duration,
    pub(crate) before: Duration,
    pub(crate) fault: Duration,
    pub(crate) after: Duration,
}

impl Phases {
    pub(crate) fn before(&self) -> Window {
        Window {
            from: self.warm_up,
            to: self.warm_up + self.before,
        }
    }

    pub(crate) fn fault(&self) -> Window {
        let from = self.before().to;
        Window {
            from,
            to: from + self.fault,
        }
    }

    pub(crate) fn after(&self) -> Window {
        let from = self.fault().to;
        Window {
            from,
            to: from + self.after,
        }
    }
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) variant: Variant,
    pub(crate) phases: Phases,
    pub(crate) record: Record,
    pub(crate) seen: Observed,
    /// How long the longest statement ran on any tablet, at the worst moment.
    pub(crate) longest_statement: Duration,
    /// The most connections on a tablet once all had ended.
    pub(crate) connections_left: usize,
}

/// What tells one scenario from another.
pub(crate) trait Scenario: Sync {
    fn name(&self) -> &'static str;
    /// What happens, in a sentence.
    fn story(&self) -> String;
    fn shards(&self) -> usize;
    /// Replicas of each.
    fn replicas(&self) -> usize {
        0
    }
    /// How long a healthy tablet takes for a statement.
    fn service(&self) -> Duration;
    fn phases(&self, quick: bool) -> Phases;
    fn kinds(&self) -> Vec<Kind>;
    fn manners(&self) -> Manners;
    /// The configurations to compare.
    fn variants(&self) -> Vec<Variant> {
        Variant::EVERY.to_vec()
    }
    /// The fault begins.
    fn strike(&self, arena: &Arena) -> Result<(), BenchError>;
    /// Further measurements after a run, with its gateway or with one of the binary: promises of their own.
    fn examine(
        &self,
        _arena: &Arena,
        _gateway: &Gateway,
        _binary: &Path,
        _variant: Variant,
    ) -> impl Future<Output = Result<Vec<Promise>, BenchError>> {
        std::future::ready(Ok(Vec::new()))
    }
    /// What is promised of these runs.
    fn promises(&self, runs: &[Run]) -> Vec<Promise>;
}

/// Runs a scenario, reports, and says whether its promises were kept.
pub(crate) async fn run(scenario: &impl Scenario, options: &Options) -> Result<(), BenchError> {
    let named: Vec<PathBuf> = options.gateway.iter().cloned().collect();
    let binary = stage::gateways(&named)?
        .into_iter()
        .next()
        .ok_or(BenchError::Option("no gateway"))?;
    let wanted = |v: &Variant| options.only.is_empty() || options.only.contains(v);
    let variants: Vec<Variant> = scenario.variants().into_iter().filter(wanted).collect();
    let phases = scenario.phases(options.quick);
    let bar = progress(millis(phases.after().to) * variants.len() as u64);
    bar.set_message("starting the shards");
    let mut show = Show {
        scenario,
        arena: arena(scenario).await?,
        phases,
        rate: f64::from(options.rate.unwrap_or(0)),
        seed: options.seed,
        bar,
    };
    if options.rate.is_none() {
        show.rate = show.half_capacity(&binary).await?;
    }
    let mut runs = Vec::new();
    let mut promises = Vec::new();
    for (n, variant) in variants.into_iter().enumerate() {
        if n > 0 {
            // Nothing that a run leaves is in the next one.
            show.arena.cluster.shutdown().await;
            show.arena = arena(scenario).await?;
        }
        let gateway = show.arena.gateway(&binary, variant);
        runs.push(show.run(&gateway, variant).await?);
        show.bar.set_message(format!("{variant}: looking closer"));
        promises.extend(scenario.examine(&show.arena, &gateway, &binary, variant).await?);
    }
    show.bar.finish_and_clear();
    show.arena.cluster.shutdown().await;
    let mut all = scenario.promises(&runs);
    all.append(&mut promises);
    let report = Report {
        name: scenario.name(),
        story: scenario.story(),
        rate: show.rate,
        shards: scenario.shards(),
        runs,
        promises: all,
    };
    report::write(&report, options.json.as_deref(), options.html.as_deref())?;
    promise::verdict(report.name, &report.promises)
}

async fn arena(scenario: &impl Scenario) -> Result<Arena, BenchError> {
    Arena::build(scenario.shards(), scenario.replicas(), scenario.service()).await
}

fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The template is fixed; a wrong one would only look plain.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A scenario as it is being run.
struct Show<'a, S> {
    scenario: &'a S,
    arena: Arena,
    phases: Phases,
    rate: f64,
    seed: u64,
    bar: ProgressBar,
}

impl<S: Scenario> Show<'_, S> {
    fn plan(&self, gateway: &Gateway) -> Plan {
        Plan {
            addr: gateway.addr(),
            database: KEYSPACE,
            kinds: self.scenario.kinds(),
            rate: self.rate,
            arrivals: Arrivals::ByChance,
            manners: self.scenario.manners(),
            seed: self.seed,
        }
    }

    async fn half_capacity(&self, binary: &Path) -> Result<f64, BenchError> {
        self.bar.set_message("measuring the capacity");
        let variant = self
            .scenario
            .variants()
            .into_iter()
            .nth(1)
            .unwrap_or(Variant::All);
        let gateway = self.arena.gateway(binary, variant);
        let plan = self.plan(&gateway);
        // The first answers pay for connections and plans.
        load::capacity(&plan, Duration::from_millis(500)).await?;
        let capacity = load::capacity(&plan, Duration::from_secs(2)).await?;
        Ok((capacity / 2.0).clamp(10.0, 300.0).floor())
    }

    /// One configuration's run.
    async fn run(&self, gateway: &Gateway, variant: Variant) -> Result<Run, BenchError> {
        let plan = self.plan(gateway);
        let names = plan.kinds.iter().map(|k| k.name).collect();
        let began = Instant::now();
        let end = began + self.phases.after().to;
        let record = Arc::new(Mutex::new(Record::new(names, Duration::from_secs(1), began)));
        let observer = Observer::start(gateway.admin(), began);
        let load = tokio::spawn(load::run(plan, Arc::clone(&record), end));
        let longest_statement = self.play(began, variant).await?;
        load.await?;
        let seen = observer.finish();
        // What was given up is being closed.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let empty = Record::new(Vec::new(), Duration::ZERO, began);
        let record = std::mem::replace(&mut *record.lock().unwrap_or_else(PoisonError::into_inner), empty);
        Ok(Run {
            variant,
            phases: self.phases,
            record,
            seen,
            longest_statement,
            connections_left: self.arena.most_connections(),
        })
    }

    /// Brings the fault and takes it away; how long a statement ran at most on any tablet.
    async fn play(&self, began: Instant, variant: Variant) -> Result<Duration, BenchError> {
        let at_start = self.bar.position();
        let mut longest = Duration::ZERO;
        let parts = [
            (self.phases.before(), "healthy"),
            (self.phases.fault(), "the fault"),
            (self.phases.after(), "after it"),
        ];
        for (n, (window, what)) in parts.into_iter().enumerate() {
            match n {
                0 => {}
                1 => self.scenario.strike(&self.arena)?,
                _ => self.arena.heal()?,
            }
            while began.elapsed() < window.to {
                self.bar.set_message(format!("{variant}: {what}"));
                self.bar.set_position(at_start + millis(began.elapsed()));
                longest = longest.max(self.arena.longest_running());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(longest)
    }
}
