//! The binary `shardgate-bench`: what the gateway costs and what it withstands, measured side by side with the
//! alternatives on the same machine in the same run.
//!
//! Everything it starts (servers, relay, gateways) is private, on loopback, and gone when it ends, however it ends.
//! The servers come from the harness of the end-to-end tests.

mod client;
mod crowd;
mod memory;
mod promise;
mod report;
mod scenario;
mod stage;
mod throughput;
mod usage;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures the gateway beside its alternatives.
#[derive(Debug, Parser)]
#[command(name = "shardgate-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Rate, latency and processor time of the gateway, of HAProxy as a TCP relay, and of no proxy at all.
    Throughput(throughput::Options),
    /// Memory that a large result adds to the gateway while its client reads slowly.
    Memory(memory::Options),
    /// One shard of many takes 40 s for everything, then is well again.
    SlowShard(scenario::SlowShard),
    /// One kind of query turns from 5 ms into 2 s, in front of a pool of twenty connections.
    SlowQuery(scenario::SlowQuery),
    /// A trigger that is soon gone, and clients that hang up and try again.
    Metastable(scenario::Metastable),
    /// Thousands of clients whose shard has no primary: what waits, how long, and what it costs.
    Crowd(crowd::Options),
    /// Some shards change their primary under reads and writes; every write is looked for afterwards.
    Reparent(scenario::Reparented),
}

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    /// A connection of the load failed.
    #[error("{target}: {source}")]
    Load {
        /// What was being measured.
        target: String,
        /// How.
        source: shardgate_wire::WireError,
    },
    /// An answer is not what was asked for: its figures would mean nothing.
    #[error("{target}: {what}")]
    Answer {
        /// What was being measured.
        target: String,
        /// What is wrong.
        what: String,
    },
    /// Something of the operating system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// How it failed.
        source: std::io::Error,
    },
    /// A load task ended early.
    #[error("a client of the load ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// An option that cannot be.
    #[error("{0}")]
    Option(&'static str),
    /// A scenario did not show what it is to show.
    #[error("{scenario} broke its promises:\n  {broken}")]
    Promises {
        /// Which.
        scenario: &'static str,
        /// Each promise, and what was measured.
        broken: String,
    },
}

/// What the commands run on.
fn runtime(command: &Bench) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    let mut builder = match command {
        // One thread: a load that is spread over the processors takes them from what it measures.
        Bench::Throughput(_) | Bench::Memory(_) | Bench::Crowd(_) => Builder::new_current_thread(),
        // Simulated tablets live in this process and must answer while something here waits for a gateway to start.
        Bench::SlowShard(_) | Bench::SlowQuery(_) | Bench::Metastable(_) | Bench::Reparent(_) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(2);
            builder
        }
    };
    builder.enable_all().build()
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = runtime(&cli.command)
        .map_err(|source| BenchError::Io {
            what: "starting".into(),
            source,
        })
        .and_then(|runtime| match cli.command {
            Bench::Throughput(options) => runtime.block_on(throughput::run(&options)),
            Bench::Memory(options) => runtime.block_on(memory::run(&options)),
            Bench::Crowd(options) => runtime.block_on(crowd::run(&options)),
            Bench::SlowShard(it) => runtime.block_on(scenario::run(&it, &it.options)),
            Bench::SlowQuery(it) => runtime.block_on(scenario::run(&it, &it.options)),
            Bench::Metastable(it) => runtime.block_on(scenario::run(&it, &it.options)),
            Bench::Reparent(it) => runtime.block_on(scenario::run(&it, &it.options)),
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("shardgate-bench: {e}");
            ExitCode::FAILURE
        }
    }
}
