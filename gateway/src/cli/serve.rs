//! `shardgate serve`: the gateway that a configuration file describes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::stop::{Asked, Signals};
use super::{NOT_STARTED, complain, complain_of, runtime, say, start_logging};
use crate::config::Config;
use crate::server::Gateway;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(super) fn run(args: &ServeArgs) -> ExitCode {
    let config = match Config::load(&args.config) {
        Ok(config) => config,
        Err(e) => {
            complain_of(&e);
            return ExitCode::from(NOT_STARTED);
        }
    };
    start_logging(&config.server.log);
    let runtime = match runtime(config.server.worker_threads) {
        Ok(runtime) => runtime,
        Err(e) => {
            complain(format_args!("the runtime cannot be started: {e}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(serve(config, args.config.clone()))
}

async fn serve(config: Config, file: PathBuf) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => {
            complain(format_args!("signals cannot be listened to: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let gateway = match Gateway::start(config, Some(file), axum::Router::new()).await {
        Ok(gateway) => gateway,
        Err(e) => {
            complain(e);
            return ExitCode::from(NOT_STARTED);
        }
    };
    say(format_args!("mysql {}", gateway.mysql_addr()));
    say(format_args!("admin {}", gateway.admin_addr()));
    loop {
        match signals.next().await {
            Asked::Stop => break,
            Asked::Reload => {
                if let Err(e) = gateway.reload().await {
                    tracing::error!(error = %e, "the configuration was not reloaded; the old one stays");
                }
            }
        }
    }
    tracing::info!("stopping");
    tokio::select! {
        () = gateway.shutdown() => {}
        // Asked a second time, it stops without grace.
        _ = signals.next() => {}
    }
    ExitCode::SUCCESS
}
