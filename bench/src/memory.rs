//! What a large result adds to the gateway's memory while its client reads slowly.
//!
//! Each case has a gateway of its own, so that none profits from memory another has touched; they run side by side,
//! since each mostly waits. The kernel itself keeps the peak.

use std::fmt::Write as _;
use std::path::PathBuf;

use tokio::task::JoinSet;

use crate::BenchError;
use crate::client::{Client, Pace, Read};
use crate::promise;
use crate::stage::{self, Front, SHARDED, Stage, Target, WHOLE};
use crate::usage::{Resident, forget_peak};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The gateway's binary; by default the one beside this program.
    #[arg(long = "gateway", value_name = "FILE")]
    gateway: Option<PathBuf>,
    /// Rows of the result.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// How fast the client reads, in bytes a second.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Shards of the sharded keyspace.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: u16,
}

/// One way of asking.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    keyspace: &'static str,
    sql: &'static str,
    prepared: bool,
}

const ALL: &str = "SELECT id, k, name, price FROM big";
const ORDERED: &str = "SELECT id, k, name, price FROM big ORDER BY id";

const CASES: [Case; 6] = [
    case("one shard, text", WHOLE, ALL, false),
    case("one shard, prepared", WHOLE, ALL, true),
    case("scatter, text", SHARDED, ALL, false),
    case("scatter, prepared", SHARDED, ALL, true),
    case("scatter, ordered, text", SHARDED, ORDERED, false),
    case("scatter, ordered, prepared", SHARDED, ORDERED, true),
];

const fn case(name: &'static str, keyspace: &'static str, sql: &'static str, prepared: bool) -> Case {
    Case {
        name,
        keyspace,
        sql,
        prepared,
    }
}

/// Measures and prints.
pub(crate) async fn run(options: &Options) -> Result<(), BenchError> {
    let named: Vec<PathBuf> = options.gateway.iter().cloned().collect();
    let binary = stage::gateways(&named)?;
    let binaries: Vec<PathBuf> = binary.iter().cycle().take(CASES.len()).cloned().collect();
    let stage = Stage::build(&binaries, usize::from(options.shards), options.rows).await?;
    let gateways = stage.targets.iter().filter(|t| t.front == Front::Gateway);
    let mut running = JoinSet::new();
    for (n, (case, target)) in CASES.into_iter().zip(gateways).enumerate() {
        let (target, rate, rows) = (target.clone(), options.rate, options.rows);
        running.spawn(async move { (n, measure(case, &target, rate, rows).await) });
    }
    let mut lines = Vec::new();
    while let Some(done) = running.join_next().await {
        let (n, line) = done?;
        lines.push((n, line?));
    }
    lines.sort_by_key(|(n, _)| *n);
    print(&lines, options)
}

/// A case's figures.
#[derive(Clone, Copy, Debug)]
struct Line {
    case: Case,
    before: Resident,
    after: Resident,
    read: Read,
}

async fn measure(case: Case, target: &Target, rate: u64, rows: u64) -> Result<Line, BenchError> {
    let pid = target.pid.ok_or(BenchError::Option("a gateway has a process"))?;
    let load = |source| BenchError::Load {
        target: case.name.into(),
        source,
    };
    let mut client = Client::connect(target.addr, case.keyspace).await.map_err(load)?;
    // What is opened once and stays is not the result's doing.
    client.send("SELECT id FROM t WHERE k = 1").await.map_err(load)?;
    client.read(Pace::Free).await.map_err(load)?;
    forget_peak(pid)?;
    let before = Resident::of(pid)?;
    if case.prepared {
        client.prepare(case.sql).await.map_err(load)?;
        client.execute(None).await.map_err(load)?;
    } else {
        client.send(case.sql).await.map_err(load)?;
    }
    let read = client.read(Pace::Slow(rate)).await.map_err(load)?;
    if read.rows != rows {
        return Err(BenchError::Answer {
            target: case.name.into(),
            what: format!("{} rows instead of {rows}", read.rows),
        });
    }
    let after = Resident::of(pid)?;
    Ok(Line {
        case,
        before,
        after,
        read,
    })
}

#[allow(clippy::cast_precision_loss)] // bytes far below 2^52
fn print(lines: &[(usize, Line)], options: &Options) -> Result<(), BenchError> {
    let mut text = format!(
        "{} rows read at {} bytes a second; {} shards. Resident memory in MiB.\n{:<28}{:>9}{:>9}{:>9}{:>9}\n",
        options.rows, options.rate, options.shards, "", "before", "peak", "added", "result"
    );
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    for (_, line) in lines {
        let _ = writeln!(
            text,
            "{:<28}{:>9.1}{:>9.1}{:>9.1}{:>9.1}",
            line.case.name,
            mib(line.before.now),
            mib(line.after.peak),
            mib(line.after.peak.saturating_sub(line.before.now)),
            mib(line.read.bytes),
        );
    }
    promise::print(&text)
}
