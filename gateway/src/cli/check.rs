//! `shardgate check`: whether a configuration is valid, and on request whether its tablets answer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::{NOT_STARTED, complain, complain_of, runtime, say};
use crate::base::clock;
use crate::config::Config;
use crate::server;
use crate::tablet::{Connection, TabletInfo};
use crate::topology::Topology;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Also connect to every tablet.
    #[arg(long)]
    connect: bool,
}

pub(super) fn run(args: &CheckArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(e) => {
            complain_of(&e);
            return ExitCode::from(NOT_STARTED);
        }
    };
    match Topology::new(1, &config) {
        Ok(topology) => say(topology),
        Err(e) => {
            complain_of(&e);
            return ExitCode::from(NOT_STARTED);
        }
    }
    if !args.connect {
        say(format_args!("{} is valid", args.config.display()));
        return ExitCode::SUCCESS;
    }
    let runtime = match runtime(1) {
        Ok(runtime) => runtime,
        Err(e) => {
            complain(format_args!("the runtime cannot be started: {e}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(connect(&config))
}

/// Connects to all tablets at once and says what each answered.
async fn connect(config: &Config) -> ExitCode {
    let backend = match server::backend(config) {
        Ok(backend) => backend,
        Err(e) => {
            complain(e);
            return ExitCode::from(NOT_STARTED);
        }
    };
    let deadline = clock::now() + config.timeouts.connect;
    let all = server::tablets(config).into_iter().map(|info| {
        let backend = &backend;
        async move {
            let answer = Connection::open(&info, backend, deadline).await;
            (info, answer)
        }
    });
    let mut failed = 0;
    for (info, answer) in futures::future::join_all(all).await {
        match answer {
            Ok(conn) => {
                say(line(
                    &info,
                    &format!("answers, version {}", conn.server_version()),
                ));
                conn.quit().await;
            }
            Err(e) => {
                failed += 1;
                complain(line(&info, &e.to_string()));
            }
        }
    }
    if failed == 0 {
        say("every tablet answers");
    } else {
        complain(format_args!("{failed} tablets do not answer"));
    }
    let mut wrong = false;
    for (keyspace, finding) in server::findings(config).await {
        wrong |= finding.is_error();
        let severity = if finding.is_error() { "error" } else { "warning" };
        complain(format_args!("{severity}: keyspace {keyspace}: {finding}"));
    }
    if failed == 0 && !wrong {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_STARTED)
    }
}

fn line(info: &Arc<TabletInfo>, what: &str) -> String {
    format!(
        "{} ({}, {} of {}): {what}",
        info.alias, info.address, info.role, info.shard
    )
}
