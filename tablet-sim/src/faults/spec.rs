//! How a fault is described: the same as JSON and in code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest wait a fault may ask for: a day.
pub(super) const MAX_MS: u64 = 86_400_000;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Statements wait before they run: `ms`, or uniformly `min_ms` to `max_ms`, or with a long tail `median_ms` and
    /// `p99_ms`.
    Latency,
    /// Statements never answer; KILL ends them.
    Hang,
    /// Statements fail with `code` (and `sqlstate`, `message`) without running.
    Error,
    /// New connections are refused; those that are open stay.
    Refuse,
    /// The connection is reset instead of running the statement.
    Reset,
    /// Nothing is answered and nothing heard, not even a closed connection or a KILL. Without `statement` or `regex`
    /// new connections get no greeting either.
    BlackHole,
    /// Rows come `ms` apart.
    SlowRows,
    /// After `after_rows` rows nothing comes for `ms`; without `ms`, ever.
    Stall,
    /// KILL does not reach the statement.
    IgnoreKill,
    /// The statement runs, then the connection is reset instead of saying so. For COMMIT and for writes.
    LoseOk,
    /// Writes fail with 1290.
    ReadOnly,
    /// The replica applies what is at least `ms` old; and, with `apply_per_s`, at most so many transactions a second,
    /// fewer the more it is read, none at `reads_per_s` reads a second.
    Lag,
}

/// A fault, as JSON or in code. A field that its kind has no use for is refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Milliseconds at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ms: Option<u64>,
    /// Milliseconds at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// Half of the waits are shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
    /// One wait in a hundred is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<u64>,
    /// Error number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Five characters; `HY000` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    /// The error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Rows that still come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_rows: Option<u64>,
    /// Transactions a second that a replica applies while nobody reads from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_per_s: Option<u32>,
    /// Reads a second at which a replica applies nothing any more; in between the rate falls in a straight line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_per_s: Option<u32>,
    /// Only statements that contain this text, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// Only statements that match this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The share of matching statements struck, above 0 up to 1; all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// How many statements are struck before the fault is spent; no end if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

impl FaultSpec {
    /// A fault of this kind with nothing else said.
    #[must_use]
    pub const fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            ms: None,
            min_ms: None,
            max_ms: None,
            median_ms: None,
            p99_ms: None,
            code: None,
            sqlstate: None,
            message: None,
            after_rows: None,
            apply_per_s: None,
            reads_per_s: None,
            statement: None,
            regex: None,
            rate: None,
            times: None,
        }
    }

    /// Every statement waits this long.
    #[must_use]
    pub fn latency(time: Duration) -> Self {
        Self {
            ms: Some(u64::try_from(time.as_millis()).unwrap_or(MAX_MS)),
            ..Self::new(FaultKind::Latency)
        }
    }

    /// Every statement fails with this error number.
    #[must_use]
    pub fn error(code: u16) -> Self {
        Self {
            code: Some(code),
            ..Self::new(FaultKind::Error)
        }
    }

    /// Only statements that contain this text, in any case.
    #[must_use]
    pub fn on(self, text: impl Into<String>) -> Self {
        Self {
            statement: Some(text.into()),
            ..self
        }
    }

    /// Only this share of them.
    #[must_use]
    pub fn at_rate(self, rate: f64) -> Self {
        Self {
            rate: Some(rate),
            ..self
        }
    }

    /// Only that many of them.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self {
            times: Some(times),
            ..self
        }
    }
}

/// Why a fault cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault `{kind}`: {reason}")]
pub struct InvalidFault {
    pub(super) kind: String,
    pub(super) reason: String,
}

/// The kind's name in JSON.
pub(super) fn kind_name(kind: FaultKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(s)) => s,
        _ => format!("{kind:?}"),
    }
}
