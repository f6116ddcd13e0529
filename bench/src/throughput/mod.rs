//! Rate, latency and processor time beside the alternatives.
//!
//! The targets take turns within each round, in an order that rotates, so that whatever else the machine does falls
//! on all alike; rates are compared within a round and the median round counts. Processor time is summed over all
//! rounds, since the kernel counts it in steps of ten milliseconds.

mod load;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use self::load::Crew;
use self::report::{Line, Section};
use self::work::Work;
use crate::BenchError;
use crate::stage::{self, Stage, Target};
use crate::usage::{Cpu, Resident};

/// What to measure and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A gateway's binary; by default the one beside this program. Given twice or more, the builds are compared.
    #[arg(long = "gateway", value_name = "FILE")]
    gateways: Vec<PathBuf>,
    /// Rounds; each measures every target once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..1000))]
    rounds: u32,
    /// How long each target is measured in a round, in seconds.
    #[arg(long, default_value_t = 0.4)]
    seconds: f64,
    /// Shards of the sharded keyspace.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: u16,
    /// Rows of the large result.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
}

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Point selects as text.
    Text,
    /// Point selects as prepared statements.
    Prepared,
    /// A large result.
    Rows,
    /// A select that every shard has a part of.
    Scatter,
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> Result<(), BenchError> {
    let length = Duration::try_from_secs_f64(options.seconds)
        .ok()
        .filter(|d| !d.is_zero())
        .ok_or(BenchError::Option("--seconds must be a positive number"))?;
    let gateways = stage::gateways(&options.gateways)?;
    let stage = Stage::build(&gateways, usize::from(options.shards), options.rows).await?;
    report::heading(&stage, options.rounds, length)?;
    for work in chosen(options) {
        let section = measure(&stage, work, options.rounds, length).await?;
        report::print(&section)?;
    }
    Ok(())
}

fn chosen(options: &Options) -> Vec<Work> {
    let rows = options.rows;
    let all = [
        (Kind::Text, Work::Text { clients: 8 }),
        (Kind::Text, Work::Text { clients: 64 }),
        (Kind::Prepared, Work::Prepared { clients: 8 }),
        (Kind::Prepared, Work::Prepared { clients: 64 }),
        (Kind::Scatter, Work::Scatter { clients: 8 }),
        (Kind::Rows, Work::TextRows { rows }),
        (Kind::Rows, Work::PreparedRows { rows }),
    ];
    let wanted = |kind: &Kind| options.only.is_empty() || options.only.contains(kind);
    all.into_iter()
        .filter(|(kind, _)| wanted(kind))
        .map(|(_, work)| work)
        .collect()
}

async fn measure(stage: &Stage, work: Work, rounds: u32, length: Duration) -> Result<Section, BenchError> {
    let mut crews = Vec::new();
    let mut lines = Vec::new();
    for target in &stage.targets {
        let mut crew = Crew::gather(target, stage.shards, work).await?;
        // Connections of pools are opened and plans made before anything counts.
        crew.run(length / 4).await?;
        crews.push(crew);
        lines.push(Line::new(target.clone()));
    }
    for round in 0..rounds as usize {
        for n in 0..crews.len() {
            let n = (n + round) % crews.len();
            let before = cpu(&stage.targets[n])?;
            let turn = crews[n].run(length).await?;
            lines[n].cpu += cpu(&stage.targets[n])?.since(before);
            lines[n].add(turn);
        }
    }
    for line in &mut lines {
        if let Some(pid) = line.target.pid {
            line.resident = Some(Resident::of(pid)?.now);
        }
    }
    Ok(Section { work, lines })
}

fn cpu(target: &Target) -> Result<Cpu, BenchError> {
    target.pid.map_or(Ok(Cpu::default()), Cpu::of)
}
