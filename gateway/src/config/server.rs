//! What the gateway says it is, and how it behaves as one server.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units;

/// How transactions over several shards are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransactionMode {
    /// A transaction may touch one shard; a second one is refused.
    Single,
    /// Any number of shards, committed one after the other. If one fails, the error says exactly what committed.
    #[default]
    Multi,
}

/// `[server]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// What `VERSION()` and the greeting say; clients choose their dialect by it, so it should resemble the tablets'.
    /// Default: empty, which means the version of the first tablet that answered, with `-shardgate` behind it. Applied
    /// to new connections by a reload.
    pub server_version: String,
    /// `single` or `multi`: whether a transaction may touch more than one shard. Default `multi`. Applied to new
    /// sessions by a reload.
    pub transaction_mode: TransactionMode,
    /// After SIGTERM, how long running transactions may take to end before their connections are closed. Default
    /// `10s`; 0 closes at once. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub shutdown_grace: Duration,
    /// What is logged: `error`, `warn`, `info`, `debug`, `trace`, or a filter by room such as
    /// `info,shardgate::session=debug`. Default `info`. Not changed by a reload.
    pub log: String,
    /// Threads that serve clients. Default 0: as many as the machine has cores. Not changed by a reload.
    pub worker_threads: usize,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            server_version: String::new(),
            transaction_mode: TransactionMode::default(),
            shutdown_grace: Duration::from_secs(10),
            log: "info".to_owned(),
            worker_threads: 0,
        }
    }
}

impl Server {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let version = &self.server_version;
        // It travels as a NUL-terminated text, and drivers parse three numbers at its start.
        let numbers = version
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .next()
            .unwrap_or_default();
        let three = numbers.split('.').filter(|n| !n.is_empty()).count() >= 3;
        let valid = three && version.len() <= 60 && version.bytes().all(|b| b.is_ascii_graphic());
        if !(version.is_empty() || valid) {
            let message =
                "must begin with three numbers, as in `8.0.36-shardgate`, in at most 60 printable characters";
            problems.add("server.server_version", message);
        }
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&self.log) {
            problems.add("server.log", format!("is not a log filter: {error}"));
        }
        if self.worker_threads > 1024 {
            problems.add("server.worker_threads", "must be at most 1024");
        }
    }
}
