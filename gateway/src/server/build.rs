//! From the configuration's types to those of the rooms that use them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shardgate_wire::auth::Password;
use shardgate_wire::client::Address;
use shardgate_wire::tls::{ClientTls, Verify};

use super::StartError;
use crate::balance::Fleet;
use crate::base::ShardId;
use crate::config::{Config, TabletAddress, TabletTlsMode, TabletVerify, TransactionMode};
use crate::exec;
use crate::guard::{BufferSettings, GuardSettings};
use crate::session::{PreparedLimits, SessionOptions};
use crate::tablet::{Backend, PollSettings, PoolOptions, ReaperOptions, TabletInfo};

/// The tablets of all shards.
pub(crate) fn tablets(config: &Config) -> Vec<Arc<TabletInfo>> {
    let mut out = Vec::new();
    for (name, keyspace) in &config.keyspaces {
        for shard in &keyspace.shards {
            for tablet in &shard.tablets {
                out.push(Arc::new(TabletInfo {
                    alias: tablet.alias.clone(),
                    shard: ShardId {
                        keyspace: name.clone(),
                        shard: shard.name.clone(),
                    },
                    role: tablet.role,
                    address: address(&tablet.address),
                    database: shard.database.clone(),
                }));
            }
        }
    }
    out
}

pub(super) fn address(address: &TabletAddress) -> Address {
    match address {
        TabletAddress::Tcp { host, port } => Address::tcp(host.clone(), *port),
        TabletAddress::Unix(path) => Address::Unix(path.into()),
    }
}

/// How the gateway logs in at tablets.
pub(crate) fn backend(config: &Config) -> Result<Backend, StartError> {
    Ok(Backend {
        user: config.backend.user.clone(),
        password: Password::new(config.backend.password.expose()),
        tls: tablet_tls(config)?,
        found_rows: false,
        max_packet: config.limits.max_packet.max(1 << 24),
        statement_limit: statement_limit(config),
    })
}

/// A little over an attempt's time: the gateway speaks first, and the tablet only where the gateway cannot.
fn statement_limit(config: &Config) -> Option<Duration> {
    let timeouts = &config.timeouts;
    let attempt = timeouts.queryserver_config_query_timeout;
    (!attempt.is_zero()).then(|| attempt + timeouts.kill_grace)
}

fn tablet_tls(config: &Config) -> Result<Option<ClientTls>, StartError> {
    let tls = &config.tablet_tls;
    if tls.mode == TabletTlsMode::Off {
        return Ok(None);
    }
    let verify = match tls.verify {
        TabletVerify::None => Verify::None,
        TabletVerify::Authority => Verify::Authority,
        TabletVerify::Full => Verify::Full,
    };
    let failed = |e: shardgate_wire::WireError| StartError::Tls(e.to_string());
    let mut made = ClientTls::new(verify, tls.ca_file.as_deref()).map_err(failed)?;
    if let Some(name) = &tls.server_name {
        made = made.server_name(name).map_err(failed)?;
    }
    Ok(Some(if tls.mode == TabletTlsMode::Preferred {
        made.preferred()
    } else {
        made
    }))
}

/// Bounds of each tablet's pool.
pub(super) fn pool_options(config: &Config) -> PoolOptions {
    PoolOptions {
        size: config.pool.size,
        max_waiters: config.pool.waiters,
        idle_check: config.pool.idle_check,
        max_idle: config.pool.max_idle,
        max_lifetime: config.pool.max_lifetime,
        connect_timeout: config.timeouts.connect,
        max_reserved: config.pool.max_reserved,
        prepared_statements: config.pool.prepared_statements,
    }
}

/// How tablets are looked at.
pub(super) fn poll_settings(config: &Config, backend: Backend) -> PollSettings {
    PollSettings {
        backend,
        interval: config.poller.interval,
        timeout: config.poller.timeout,
        first_timeout: config.timeouts.connect,
        heartbeat_table: config.poller.quoted_heartbeat_table(),
    }
}

/// Thresholds of the guards.
pub(super) fn guard_settings(config: &Config) -> GuardSettings {
    let guard = &config.guard;
    let threads = match config.server.worker_threads {
        0 => std::thread::available_parallelism().map_or(4, std::num::NonZero::get),
        n => n,
    };
    // Every attempt in flight or waiting is to be tracked, and every worker to have counters of its own.
    let sized = |mut column: shardgate_breaker::Config| {
        column.dry_run = guard.dry_run;
        column.stripes = threads + 1;
        column.tracked = (config.pool.size + config.pool.waiters)
            .next_power_of_two()
            .max(64);
        column
    };
    let mut kind = shardgate_breaker::Config::fingerprint();
    kind.dry_run = guard.dry_run;
    kind.cooldown = config.shard_breaker.cooldown;
    kind.probe = config.shard_breaker.probe;
    GuardSettings {
        enabled: guard.breakers,
        shard: sized(config.shard_breaker.clone()),
        replica: sized(config.replica_breaker.clone()),
        kind,
        ejection_cap: guard.ejection_cap,
        max_pool_share: guard.max_pool_share,
        budget: shardgate_breaker::BudgetConfig {
            percent: guard.retry_percent,
            per_second: guard.retry_per_second,
        },
        retry_attempts: guard.retry_attempts,
    }
}

/// How requests wait for a primary.
pub(super) fn buffer_settings(config: &Config) -> BufferSettings {
    let buffer = &config.buffer;
    BufferSettings {
        enabled: buffer.enable_buffer,
        dry_run: buffer.buffer_dry_run,
        size: buffer.buffer_size,
        bytes: buffer.buffer_bytes,
        window: buffer.buffer_window,
        max_failover_duration: buffer.buffer_max_failover_duration,
        min_time_between_failovers: buffer.buffer_min_time_between_failovers,
        drain_concurrency: match buffer.buffer_drain_concurrency {
            0 => (config.pool.size / 2).max(1),
            n => n,
        },
        only: buffer.buffer_keyspace_shards.clone(),
    }
}

/// Whether pools have to be made anew: connections that are open keep what they logged in with.
pub(super) fn pools_change(old: &Config, new: &Config) -> bool {
    old.backend != new.backend
        || old.tablet_tls != new.tablet_tls
        || old.limits.max_packet != new.limits.max_packet
        || pool_options(old) != pool_options(new)
        || statement_limit(old) != statement_limit(new)
        || guard_settings(old) != guard_settings(new)
}

pub(super) fn reaper_options(config: &Config) -> ReaperOptions {
    ReaperOptions {
        grace: config.timeouts.kill_grace,
        abandoned_max: config.pool.abandoned_max,
        ..ReaperOptions::default()
    }
}

/// What the configuration says to sessions.
pub(super) fn session_options(config: &Config, tablets: Option<&str>) -> SessionOptions {
    let timeouts = &config.timeouts;
    SessionOptions {
        server_version: server_version(config, tablets),
        transaction_mode: match config.server.transaction_mode {
            TransactionMode::Single => exec::TransactionMode::Single,
            TransactionMode::Multi => exec::TransactionMode::Multi,
        },
        query_timeout: timeouts.mysql_server_query_timeout,
        tablet_timeout: timeouts.queryserver_config_query_timeout,
        fan_out: config.guard.fan_out,
        no_scatter: config.guard.no_scatter,
        ddl_timeout: timeouts.ddl,
        olap_timeout: timeouts.olap,
        tablet_stall_timeout: timeouts.tablet_stall_timeout,
        client_stall_timeout: timeouts.client_stall_timeout,
        client_idle: timeouts.client_idle,
        handshake_timeout: timeouts.handshake,
        reserved_idle: config.pool.reserved_idle,
        shutdown_grace: config.server.shutdown_grace,
        prepared: PreparedLimits {
            statements: config.limits.max_prepared_statements,
            long_data: config.limits.long_data,
        },
        max_settings: config.limits.session_settings,
        query_memory: config.limits.query_memory,
    }
}

/// What the gateway says it is: what the configuration says, else what the tablets are, so that clients speak the dialect
/// that the tablets understand.
pub(super) fn server_version(config: &Config, tablets: Option<&str>) -> String {
    match (config.server.server_version.as_str(), tablets) {
        ("", Some(version)) => format!("{version}-shardgate"),
        ("", None) => "8.0.36-shardgate".to_owned(),
        (configured, _) => configured.to_owned(),
    }
}

/// Keyspaces, shards and tablets for people and programs.
pub(super) fn topology_json(config: &Config, fleet: &Fleet) -> Value {
    let usage = fleet.usage();
    let keyspaces: serde_json::Map<String, Value> = config
        .keyspaces
        .iter()
        .map(|(name, keyspace)| {
            let shards: Vec<Value> = keyspace
                .shards
                .iter()
                .map(|shard| {
                    let tablets: Vec<Value> = usage
                        .iter()
                        .filter(|(t, _)| t.shard.keyspace == *name && t.shard.shard == shard.name)
                        .map(|(t, (busy, waiting, idle))| {
                            json!({
                                "alias": t.alias.as_str(),
                                "role": t.role.as_str(),
                                "address": t.address.to_string(),
                                "connections": { "busy": busy, "waiting": waiting, "idle": idle },
                            })
                        })
                        .collect();
                    json!({ "name": shard.name.as_str(), "database": shard.database, "tablets": tablets })
                })
                .collect();
            (name.to_string(), json!({ "shards": shards }))
        })
        .collect();
    json!({ "keyspaces": keyspaces })
}
