//! System variables: what clients read on connecting, and the ones that change how statements run.

use std::collections::BTreeMap;

use super::types::{IntSize, Ty};
use super::value::Value;
use crate::error::{SqlError, SqlResult};

/// How a variable takes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ON or OFF; 1 or 0 by `SELECT @@x`.
    Bool,
    Int,
    /// A number that may have a fraction.
    Real,
    Text,
    /// Cannot be set.
    Fixed,
}

/// Name, kind, default. Those that depend on the tablet are filled in by [`Variables::new`].
const KNOWN: &[(&str, Kind, &str)] = &[
    ("auto_increment_increment", Kind::Int, "1"),
    ("auto_increment_offset", Kind::Int, "1"),
    ("autocommit", Kind::Bool, "1"),
    ("big_tables", Kind::Bool, "0"),
    ("character_set_client", Kind::Text, "utf8mb4"),
    ("character_set_connection", Kind::Text, "utf8mb4"),
    ("character_set_database", Kind::Text, "utf8mb4"),
    ("character_set_results", Kind::Text, "utf8mb4"),
    ("character_set_server", Kind::Text, "utf8mb4"),
    ("character_set_system", Kind::Fixed, "utf8mb3"),
    ("collation_connection", Kind::Text, "utf8mb4_general_ci"),
    ("collation_database", Kind::Text, "utf8mb4_general_ci"),
    ("collation_server", Kind::Text, "utf8mb4_general_ci"),
    ("default_storage_engine", Kind::Text, "InnoDB"),
    ("div_precision_increment", Kind::Fixed, "4"),
    ("foreign_key_checks", Kind::Bool, "1"),
    ("group_concat_max_len", Kind::Int, "1048576"),
    ("gtid_binlog_pos", Kind::Fixed, ""),
    ("gtid_current_pos", Kind::Fixed, ""),
    ("gtid_executed", Kind::Fixed, ""),
    ("gtid_slave_pos", Kind::Fixed, ""),
    ("have_ssl", Kind::Fixed, "DISABLED"),
    ("hostname", Kind::Fixed, "localhost"),
    ("in_transaction", Kind::Fixed, "0"),
    ("init_connect", Kind::Text, ""),
    ("innodb_lock_wait_timeout", Kind::Int, "50"),
    ("interactive_timeout", Kind::Int, "28800"),
    ("last_insert_id", Kind::Int, "0"),
    ("license", Kind::Fixed, "Apache-2.0"),
    ("lock_wait_timeout", Kind::Int, "86400"),
    ("lower_case_table_names", Kind::Fixed, "0"),
    ("max_allowed_packet", Kind::Int, "67108864"),
    ("max_connections", Kind::Int, "151"),
    ("max_execution_time", Kind::Int, "0"),
    ("max_statement_time", Kind::Real, "0"),
    ("net_buffer_length", Kind::Int, "16384"),
    ("net_read_timeout", Kind::Int, "30"),
    ("net_write_timeout", Kind::Int, "60"),
    ("old_mode", Kind::Text, ""),
    ("optimizer_switch", Kind::Text, ""),
    ("performance_schema", Kind::Fixed, "0"),
    ("port", Kind::Fixed, "0"),
    ("protocol_version", Kind::Fixed, "10"),
    ("query_cache_size", Kind::Fixed, "0"),
    ("query_cache_type", Kind::Fixed, "OFF"),
    ("read_only", Kind::Bool, "0"),
    ("server_id", Kind::Int, "1"),
    ("server_uid", Kind::Fixed, ""),
    ("server_uuid", Kind::Fixed, ""),
    ("session_track_schema", Kind::Bool, "1"),
    ("session_track_state_change", Kind::Bool, "0"),
    ("session_track_system_variables", Kind::Text, ""),
    ("socket", Kind::Fixed, ""),
    ("sql_auto_is_null", Kind::Bool, "0"),
    ("sql_big_selects", Kind::Bool, "1"),
    ("sql_log_bin", Kind::Bool, "1"),
    (
        "sql_mode",
        Kind::Text,
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    ),
    ("sql_notes", Kind::Bool, "1"),
    ("sql_quote_show_create", Kind::Bool, "1"),
    ("sql_safe_updates", Kind::Bool, "0"),
    ("sql_select_limit", Kind::Int, "18446744073709551615"),
    ("sql_warnings", Kind::Bool, "0"),
    ("super_read_only", Kind::Bool, "0"),
    ("system_time_zone", Kind::Fixed, "UTC"),
    ("time_zone", Kind::Text, "+00:00"),
    ("timestamp", Kind::Real, "0"),
    ("transaction_isolation", Kind::Text, "REPEATABLE-READ"),
    ("transaction_read_only", Kind::Bool, "0"),
    ("tx_isolation", Kind::Text, "REPEATABLE-READ"),
    ("tx_read_only", Kind::Bool, "0"),
    ("unique_checks", Kind::Bool, "1"),
    ("version", Kind::Fixed, ""),
    ("version_comment", Kind::Fixed, "Shardgate simulated tablet"),
    ("version_compile_machine", Kind::Fixed, "x86_64"),
    ("version_compile_os", Kind::Fixed, "Linux"),
    ("wait_timeout", Kind::Int, "28800"),
    ("warning_count", Kind::Fixed, "0"),
];

/// What only `MySQL` has, and what only `MariaDB` has: a tablet shows what its version would.
const MYSQL_ONLY: &[&str] = &["gtid_executed", "server_uuid", "super_read_only"];
const MARIADB_ONLY: &[&str] = &[
    "gtid_binlog_pos",
    "gtid_current_pos",
    "gtid_slave_pos",
    "server_uid",
];

/// What sessions have no value of their own for: the tablet's as it is now.
const GLOBAL_ONLY: &[&str] = &[
    "gtid_binlog_pos",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_slave_pos",
    "max_connections",
    "read_only",
    "server_id",
    "super_read_only",
];

/// Whether sessions have no value of their own for it.
pub(crate) fn is_global_only(name: &str) -> bool {
    GLOBAL_ONLY.iter().any(|n| n.eq_ignore_ascii_case(name))
}

/// The variables of a session or, as the defaults of new sessions, of the tablet.
#[derive(Clone, Debug)]
pub(crate) struct Variables(BTreeMap<&'static str, String>);

/// What a new tablet's variables start from.
#[derive(Clone, Debug)]
pub(crate) struct Seeds<'a> {
    pub(crate) version: &'a str,
    pub(crate) server_id: u32,
    pub(crate) port: u16,
    pub(crate) uuid: String,
    pub(crate) hostname: &'a str,
}

fn known(name: &str) -> Option<(&'static str, Kind)> {
    KNOWN
        .iter()
        .find(|(n, _, _)| n.eq_ignore_ascii_case(name))
        .map(|(n, k, _)| (*n, *k))
}

impl Variables {
    pub(crate) fn new(seeds: &Seeds<'_>) -> Self {
        let mut all: BTreeMap<&'static str, String> = KNOWN
            .iter()
            .map(|(name, _, value)| (*name, (*value).to_owned()))
            .collect();
        all.insert("version", seeds.version.to_owned());
        all.insert("server_id", seeds.server_id.to_string());
        all.insert("port", seeds.port.to_string());
        all.insert("server_uuid", seeds.uuid.clone());
        all.insert("server_uid", seeds.uuid.clone());
        all.insert("hostname", seeds.hostname.to_owned());
        let foreign = if seeds.version.contains("MariaDB") {
            MYSQL_ONLY
        } else {
            MARIADB_ONLY
        };
        for name in foreign {
            all.remove(name);
        }
        Self(all)
    }

    /// A variable's text, empty if there is no such.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(crate) fn on(&self, name: &str) -> bool {
        self.text(name) == "1"
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// Overwrites without a check: for what the tablet itself reports. What its version does not have stays away.
    pub(crate) fn put(&mut self, name: &'static str, value: impl Into<String>) {
        if let Some(slot) = self.0.get_mut(name) {
            *slot = value.into();
        }
    }

    /// A session's variables, with the tablet's in place of those that sessions have no value of their own for.
    pub(crate) fn over(&self, globals: &Self) -> Self {
        let mut out = self.clone();
        for name in GLOBAL_ONLY {
            out.put(name, globals.text(name));
        }
        out
    }

    fn known(&self, name: &str) -> SqlResult<(&'static str, Kind)> {
        known(name)
            .filter(|(name, _)| self.0.contains_key(name))
            .ok_or_else(|| SqlError::unknown_variable(name))
    }

    /// The value as `SELECT @@name` gives it.
    pub(crate) fn get(&self, name: &str) -> SqlResult<(Value, Ty)> {
        self.get_as(name, None)
    }

    /// The same, with another text in place of the one that is kept.
    pub(crate) fn get_as(&self, name: &str, live: Option<&str>) -> SqlResult<(Value, Ty)> {
        let (name, kind) = self.known(name)?;
        let text = live.unwrap_or_else(|| self.text(name));
        let number = matches!(
            name,
            "in_transaction"
                | "port"
                | "protocol_version"
                | "lower_case_table_names"
                | "query_cache_size"
                | "performance_schema"
                | "div_precision_increment"
                | "warning_count"
        );
        Ok(match kind {
            Kind::Bool => (
                Value::Int(i64::from(text == "1")),
                Ty::Int {
                    size: IntSize::Big,
                    unsigned: false,
                    width: 1,
                },
            ),
            Kind::Int | Kind::Fixed if kind == Kind::Int || number => {
                let n: u64 = text.parse().unwrap_or(0);
                (
                    Value::from_i128(i128::from(n)).unwrap_or(Value::Null),
                    Ty::UBIGINT,
                )
            }
            Kind::Real => {
                let d = text.parse::<f64>().unwrap_or(0.0);
                (Value::text(format!("{d:.6}")), Ty::decimal(20, 6))
            }
            _ => (Value::text(text), Ty::text(text.chars().count() as u32)),
        })
    }

    /// The value as SHOW VARIABLES prints it.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let here = KNOWN.iter().filter(|(name, ..)| self.0.contains_key(name));
        here.map(|(name, kind, _)| {
            let text = self.text(name);
            let shown = match kind {
                Kind::Bool => (if text == "1" { "ON" } else { "OFF" }).to_owned(),
                Kind::Real => format!("{:.6}", text.parse::<f64>().unwrap_or(0.0)),
                _ => text.to_owned(),
            };
            (*name, shown)
        })
    }

    /// Sets a variable; `None` means its default, taken from `defaults`.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>, defaults: &Self) -> SqlResult<()> {
        let (name, kind) = self.known(name)?;
        let Some(value) = value else {
            self.0.insert(name, defaults.text(name).to_owned());
            return Ok(());
        };
        let checked = check(name, kind, value)?;
        match name {
            // Two names for one thing.
            "transaction_isolation" | "tx_isolation" => {
                self.0.insert("transaction_isolation", checked.clone());
                self.0.insert("tx_isolation", checked);
            }
            "transaction_read_only" | "tx_read_only" => {
                self.0.insert("transaction_read_only", checked.clone());
                self.0.insert("tx_read_only", checked);
            }
            _ => {
                self.0.insert(name, checked);
            }
        }
        Ok(())
    }
}

fn check(name: &'static str, kind: Kind, value: &str) -> SqlResult<String> {
    let wrong = || SqlError::wrong_value(name, value);
    match kind {
        Kind::Fixed => Err(SqlError::new(
            1238,
            *b"HY000",
            format!("Variable '{name}' is a read only variable"),
        )),
        Kind::Bool => match value.to_ascii_uppercase().as_str() {
            "1" | "ON" | "TRUE" => Ok("1".to_owned()),
            "0" | "OFF" | "FALSE" => Ok("0".to_owned()),
            _ => Err(wrong()),
        },
        Kind::Int => {
            let n: i128 = value.parse().map_err(|_| {
                SqlError::new(
                    1232,
                    *b"42000",
                    format!("Incorrect argument type to variable '{name}'"),
                )
            })?;
            Ok(n.clamp(0, i128::from(u64::MAX)).to_string())
        }
        Kind::Real => {
            let d: f64 = value.parse().map_err(|_| {
                SqlError::new(
                    1232,
                    *b"42000",
                    format!("Incorrect argument type to variable '{name}'"),
                )
            })?;
            if d.is_finite() && d >= 0.0 {
                Ok(d.to_string())
            } else {
                Err(wrong())
            }
        }
        Kind::Text => check_text(name, value),
    }
}

fn check_text(name: &'static str, value: &str) -> SqlResult<String> {
    let wrong = || SqlError::wrong_value(name, value);
    match name {
        "sql_mode" => {
            let mode = shardgate_sql::SqlMode::parse(value).map_err(|_| wrong())?;
            if mode.oracle() {
                return Err(SqlError::unsupported("sql_mode ORACLE"));
            }
            Ok(mode.to_string())
        }
        "transaction_isolation" | "tx_isolation" => {
            let upper = value.to_ascii_uppercase().replace(' ', "-");
            match upper.as_str() {
                "READ-UNCOMMITTED" | "READ-COMMITTED" | "REPEATABLE-READ" | "SERIALIZABLE" => Ok(upper),
                _ => Err(wrong()),
            }
        }
        "time_zone" => match value.to_ascii_uppercase().as_str() {
            "SYSTEM" | "+00:00" | "+0:00" | "UTC" => Ok(value.to_owned()),
            _ => Err(SqlError::unsupported(format!("time_zone = '{value}'"))),
        },
        "character_set_client"
        | "character_set_connection"
        | "character_set_results"
        | "character_set_server"
        | "character_set_database" => charset(value).map(|_| value.to_ascii_lowercase()),
        _ => Ok(value.to_owned()),
    }
}

/// A connection's character set: only those whose bytes this server reads as they are.
pub(crate) fn charset(name: &str) -> SqlResult<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "utf8mb4" => Ok("utf8mb4"),
        "utf8" | "utf8mb3" => Ok("utf8mb3"),
        "ascii" => Ok("ascii"),
        "binary" => Ok("binary"),
        // Sent on connecting by clients that then send ASCII or UTF-8.
        "latin1" => Ok("latin1"),
        other => Err(SqlError::new(
            1115,
            *b"42000",
            format!("Unknown character set: '{other}'"),
        )),
    }
}
