//! How tablets are looked at.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units::{self, show_duration};

/// The shortest interval: shorter ones are load without news.
const SHORTEST: Duration = Duration::from_millis(50);

/// Who says which tablet is a shard's primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrimarySource {
    /// The tablets, as the poller sees them.
    #[default]
    Poll,
    /// This file; a reload moves it.
    Config,
    /// An orchestrator, over HTTP.
    Api,
}

/// `[poller]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Poller {
    /// How often each tablet is looked at, give or take a tenth: whether it answers, whether it takes writes, what it
    /// replicates. Default `500ms`; at least `50ms`. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub interval: Duration,
    /// How long one look may take, the time to connect included where the connection was lost; after two late answers in
    /// a row, or a refused connection, a tablet no longer serves. Default `250ms`; at least `10ms`, at most `10s`. The
    /// first look at a tablet has `timeouts.connect` if that is longer. A connection on which nothing came for twice as
    /// long (up to eight times, where one after another is lost) is given up for another. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub timeout: Duration,
    /// A table `database.table` on every tablet, into which somebody writes the time on each primary many times a second
    /// (`pt-heartbeat --utc --interval 0.1`, Vitess's heartbeat writer), in a column `ts`: replication carries it to the
    /// replicas, whose lag follows from it. The gateway only reads it. Default: empty, which takes the lag from the
    /// replicas' own status, in whole seconds. Applied by a reload.
    pub heartbeat_table: String,
    /// Who says which tablet is a shard's primary. `poll`: the tablets themselves; one that takes writes and replicates
    /// nothing, once the last primary takes none. `config`: this file, and a reload. `api`: an orchestrator, by
    /// `PUT /api/shards/KEYSPACE/SHARD/primary`; until then, this file. Default `poll`. Applied by a reload.
    pub primary_source: PrimarySource,
}

impl Default for Poller {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(500),
            timeout: Duration::from_millis(250),
            heartbeat_table: String::new(),
            primary_source: PrimarySource::default(),
        }
    }
}

impl Poller {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.interval < SHORTEST {
            problems.add(
                "poller.interval",
                format!("must be at least {}", show_duration(SHORTEST)),
            );
        }
        if self.timeout < Duration::from_millis(10) || self.timeout > Duration::from_secs(10) {
            problems.add("poller.timeout", "must be 10ms to 10s");
        }
        if !self.heartbeat_table.is_empty() && self.quoted_heartbeat_table().is_none() {
            let message = "must be `database.table`, of letters, digits, `_`, `$` and `-`";
            problems.add("poller.heartbeat_table", message);
        }
    }

    /// The heartbeat table as a statement names it; `None` if there is none.
    #[must_use]
    pub fn quoted_heartbeat_table(&self) -> Option<String> {
        let (database, table) = self.heartbeat_table.split_once('.')?;
        let valid = |name: &str| {
            (1..=64).contains(&name.chars().count())
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
        };
        (valid(database) && valid(table)).then(|| format!("`{database}`.`{table}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_table_is_named_with_its_database() {
        let quoted = |name: &str| {
            let poller = Poller {
                heartbeat_table: name.to_owned(),
                ..Poller::default()
            };
            poller.quoted_heartbeat_table()
        };
        assert_eq!(quoted("meta.heartbeat").as_deref(), Some("`meta`.`heartbeat`"));
        for bad in ["", "heartbeat", "a.b.c", ".b", "a.", "a.b`; DROP TABLE c"] {
            assert_eq!(quoted(bad), None, "{bad}");
        }
    }
}
