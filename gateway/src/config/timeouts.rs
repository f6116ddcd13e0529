//! How long things may take. The gateway's own limit lies outside the tablets', so that the inner one speaks first
//! and its connection stays usable.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units::{self, show_duration};

/// `[timeouts]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// A command's time in the gateway, from its arrival to its first row. A statement or a session may
    /// tighten or lift it. Default `30s`; 0 no limit. Applied to new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub mysql_server_query_timeout: Duration,
    /// One attempt's time on a tablet; must be shorter than `mysql_server_query_timeout`. Default `25s`; 0 no limit,
    /// which needs the other to be 0 too. Applied to new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub queryserver_config_query_timeout: Duration,
    /// The time of DDL, in place of both of the above. Default 0: no limit. Applied to new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub ddl: Duration,
    /// The time of a command under `SET workload = 'olap'`, in place of the first two. Default 0: no limit. Applied to
    /// new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub olap: Duration,
    /// From the first byte to a usable connection to a tablet, TLS and login included. Default `2s`; must not be 0.
    /// Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub connect: Duration,
    /// How long a client may take to log in. Default `10s`; must not be 0. Applied to new connections by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub handshake: Duration,
    /// A client connection without a command for this long is closed. Default `8h`; 0 never. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub client_idle: Duration,
    /// After the first row: how long a client may read nothing while rows wait for it. Default `60s`; 0 for ever.
    /// Applied to new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub client_stall_timeout: Duration,
    /// After the first row: how long a tablet may send nothing while the gateway reads. Default `30s`; 0 for ever.
    /// Applied to new commands by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub tablet_stall_timeout: Duration,
    /// After `KILL QUERY`, how long a query may take to die before its connection is killed. Default `500ms`; 0 kills
    /// the connection at once. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub kill_grace: Duration,
    /// How long learning one tablet's schema may take. Default `10s`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub schema_load: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            mysql_server_query_timeout: Duration::from_secs(30),
            queryserver_config_query_timeout: Duration::from_secs(25),
            ddl: Duration::ZERO,
            olap: Duration::ZERO,
            connect: Duration::from_secs(2),
            handshake: Duration::from_secs(10),
            client_idle: Duration::from_hours(8),
            client_stall_timeout: Duration::from_mins(1),
            tablet_stall_timeout: Duration::from_secs(30),
            kill_grace: Duration::from_millis(500),
            schema_load: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let (outer, inner) = (
            self.mysql_server_query_timeout,
            self.queryserver_config_query_timeout,
        );
        let inverted = !outer.is_zero() && (inner.is_zero() || inner >= outer);
        if inverted {
            let inner = if inner.is_zero() {
                "unlimited".to_owned()
            } else {
                show_duration(inner)
            };
            let message = format!(
                "{inner} on the tablet is not shorter than mysql_server_query_timeout = {} in the gateway: the gateway \
                 would give up first, leave the query running on the tablet and spend the connection on a kill; the \
                 tablet's limit must end it before",
                show_duration(outer)
            );
            problems.add("timeouts.queryserver_config_query_timeout", message);
        }
        for (name, value) in [
            ("connect", self.connect),
            ("handshake", self.handshake),
            ("schema_load", self.schema_load),
        ] {
            if value.is_zero() {
                problems.add(
                    format!("timeouts.{name}"),
                    "must not be 0: nothing may wait for ever here",
                );
            }
        }
    }
}
