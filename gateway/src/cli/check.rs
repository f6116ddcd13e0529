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
    let (mut failed, mut wrong) = (0, false);
    for (info, answer) in futures::future::join_all(all).await {
        match answer {
            Ok(mut conn) => {
                say(line(
                    &info,
                    &format!("answers, version {}", plain(conn.server_version())),
                ));
                let asked = tokio::time::timeout_at(deadline, conn.bypasses_read_only()).await;
                if let Ok(Some(privilege)) = asked {
                    wrong |= is_replicated(config, &info);
                    complain(line(
                        &info,
                        &format!(
                            "the user of [backend] may write through read_only ({privilege}): a primary that was \
                             replaced would go on taking its writes; revoke that"
                        ),
                    ));
                }
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
        complain(match failed {
            1 => "1 tablet does not answer".to_owned(),
            _ => format!("{failed} tablets do not answer"),
        });
    }
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

/// Whether its shard has other tablets, one of which may replace it.
fn is_replicated(config: &Config, info: &TabletInfo) -> bool {
    let tablets = server::tablets(config);
    tablets.iter().filter(|t| t.shard == info.shard).count() > 1
}

/// A version without what MariaDB puts before its own in the greeting, for the sake of old replicas.
fn plain(version: &str) -> &str {
    version.strip_prefix("5.5.5-").unwrap_or(version)
}

fn line(info: &Arc<TabletInfo>, what: &str) -> String {
    format!(
        "{} ({}, {} of {}): {what}",
        info.alias, info.address, info.role, info.shard
    )
}
