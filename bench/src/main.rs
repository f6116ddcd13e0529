//! The binary `shardgate-bench`: what the gateway costs and what it withstands, measured side by side with the
//! alternatives on the same machine in the same run.
//!
//! Everything it starts (servers, relay, gateways) is private, on loopback, and gone when it ends, however it ends.
//! The servers come from the harness of the end-to-end tests.

mod client;
mod memory;
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
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // One thread: a load that is spread over the processors takes them from what it measures.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime
        .map_err(|source| BenchError::Io {
            what: "starting".into(),
            source,
        })
        .and_then(|runtime| match cli.command {
            Bench::Throughput(options) => runtime.block_on(throughput::run(&options)),
            Bench::Memory(options) => runtime.block_on(memory::run(&options)),
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("shardgate-bench: {e}");
            ExitCode::FAILURE
        }
    }
}
