//! The command line: one file a subcommand.

mod check;
#[cfg(feature = "demo")]
mod demo;
mod serve;
mod stop;
mod tablets;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command ends with: 0 done, 1 failed while running, 2 not started because the configuration or an argument
/// is wrong.
pub const NOT_STARTED: u8 = 2;

/// Shardgate: a scatter-gather gateway for sharded `MySQL` and `MariaDB`.
#[derive(Debug, Parser)]
#[command(name = "shardgate", version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway over simulated shards in this process, with data to try it on.
    #[cfg(feature = "demo")]
    Demo(demo::DemoArgs),
    /// Run the gateway that a configuration file describes.
    Serve(serve::ServeArgs),
    /// Check a configuration file and print the topology it describes.
    Check(check::CheckArgs),
    /// Print what a running gateway knows of its tablets.
    Tablets(tablets::TabletsArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Tablets(args) => tablets::run(&args),
    }
}

/// Starts logging to standard error, filtered as `filter` says (`info`, `shardgate=debug`, ...); `RUST_LOG` wins.
fn start_logging(filter: &str) {
    let from_env = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = from_env.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(filter));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // A second start in one process (tests) keeps the first subscriber.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .try_init();
}

/// The runtime all commands run on.
fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if threads > 0 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build()
}

/// Prints a line for people. One that nobody reads, of a closed pipe, is no error.
fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints an error under its code.
fn complain_of(error: &dyn crate::base::GatewayError) {
    match error.code() {
        Some(code) => complain(format_args!("{code}: {error}")),
        None => complain(error),
    }
}

/// Prints what went wrong.
fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
