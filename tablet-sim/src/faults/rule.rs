//! One fault: how it is described, checked, and matched.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::error::SqlError;
use crate::rng::Rng;

/// The longest wait a fault may ask for: a day.
const MAX_MS: u64 = 86_400_000;

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
    /// The replica applies what is at least `ms` old.
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
    kind: String,
    reason: String,
}

#[derive(Debug)]
pub(super) enum Effect {
    Latency { low: Duration, high: Duration },
    LongTail { median: Duration, p99: Duration },
    Hang,
    Error(SqlError),
    Refuse,
    Reset,
    BlackHole,
    SlowRows(Duration),
    Stall { rows: u64, time: Option<Duration> },
    IgnoreKill,
    LoseOk,
    ReadOnly,
    Lag(Duration),
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) spec: FaultSpec,
    pub(super) effect: Effect,
    matcher: Option<Regex>,
    rate: f64,
    struck: AtomicU64,
}

fn kind_name(kind: FaultKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(s)) => s,
        _ => format!("{kind:?}"),
    }
}

impl Rule {
    pub(super) fn new(spec: &FaultSpec) -> Result<Self, InvalidFault> {
        let bad = |reason: String| InvalidFault {
            kind: kind_name(spec.kind),
            reason,
        };
        check_fields(spec).map_err(bad)?;
        let effect = effect(spec).map_err(bad)?;
        let rate = spec.rate.unwrap_or(1.0);
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(bad("`rate` must lie above 0 and not above 1".to_owned()));
        }
        if spec.times == Some(0) {
            return Err(bad("`times` must be at least 1".to_owned()));
        }
        let matcher = match (&spec.statement, &spec.regex) {
            (Some(_), Some(_)) => return Err(bad("give `statement` or `regex`, not both".to_owned())),
            (Some(text), None) => RegexBuilder::new(&regex::escape(text))
                .case_insensitive(true)
                .build()
                .ok(),
            (None, Some(pattern)) => Some(Regex::new(pattern).map_err(|e| bad(format!("`regex`: {e}")))?),
            (None, None) => None,
        };
        Ok(Self {
            spec: spec.clone(),
            effect,
            matcher,
            rate,
            struck: AtomicU64::new(0),
        })
    }

    pub(super) fn struck(&self) -> u64 {
        self.struck.load(Ordering::Relaxed)
    }

    pub(super) const fn is_for_everything(&self) -> bool {
        self.matcher.is_none()
    }

    /// Whether this statement is struck; counts it if so.
    pub(super) fn strikes(&self, statement: Option<&[u8]>, rng: &mut Rng) -> bool {
        let matches = match (&self.matcher, statement) {
            (None, _) => true,
            (Some(m), Some(text)) => m.is_match(text),
            (Some(_), None) => false,
        };
        if !matches || (self.rate < 1.0 && rng.unit() >= self.rate) {
            return false;
        }
        let times = self.spec.times.unwrap_or(u64::MAX);
        self.struck
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < times).then_some(n + 1)
            })
            .is_ok()
    }
}

/// A field that the kind has no use for is a mistake of the caller.
fn check_fields(spec: &FaultSpec) -> Result<(), String> {
    use FaultKind as K;
    let allowed: &[&str] = match spec.kind {
        K::Latency => &["ms", "min_ms", "max_ms", "median_ms", "p99_ms"],
        K::Error => &["code", "sqlstate", "message"],
        K::SlowRows | K::Lag => &["ms"],
        K::Stall => &["ms", "after_rows"],
        K::Hang | K::Refuse | K::Reset | K::BlackHole | K::IgnoreKill | K::LoseOk | K::ReadOnly => &[],
    };
    let per_statement = !matches!(spec.kind, K::Refuse | K::ReadOnly | K::Lag);
    let given = [
        ("ms", spec.ms.is_some()),
        ("min_ms", spec.min_ms.is_some()),
        ("max_ms", spec.max_ms.is_some()),
        ("median_ms", spec.median_ms.is_some()),
        ("p99_ms", spec.p99_ms.is_some()),
        ("code", spec.code.is_some()),
        ("sqlstate", spec.sqlstate.is_some()),
        ("message", spec.message.is_some()),
        ("after_rows", spec.after_rows.is_some()),
    ];
    for (name, given) in given {
        if given && !allowed.contains(&name) {
            return Err(format!("`{name}` has no meaning for this kind"));
        }
    }
    let matching = [
        ("statement", spec.statement.is_some()),
        ("regex", spec.regex.is_some()),
        ("rate", spec.rate.is_some()),
        ("times", spec.times.is_some()),
    ];
    for (name, given) in matching {
        if given && !per_statement {
            return Err(format!(
                "`{name}` has no meaning for this kind, which is not about single statements"
            ));
        }
    }
    let waits = [spec.ms, spec.min_ms, spec.max_ms, spec.median_ms, spec.p99_ms];
    if waits.into_iter().flatten().any(|ms| ms > MAX_MS) {
        return Err(format!("a wait may be {MAX_MS} ms at most"));
    }
    Ok(())
}

fn effect(spec: &FaultSpec) -> Result<Effect, String> {
    use FaultKind as K;
    let ms = Duration::from_millis;
    let needed = |v: Option<u64>, name: &str| v.map(ms).ok_or_else(|| format!("`{name}` is missing"));
    Ok(match spec.kind {
        K::Latency => match (spec.ms, spec.min_ms, spec.max_ms, spec.median_ms, spec.p99_ms) {
            (Some(t), None, None, None, None) => Effect::Latency {
                low: ms(t),
                high: ms(t),
            },
            (None, Some(low), Some(high), None, None) if low <= high => Effect::Latency {
                low: ms(low),
                high: ms(high),
            },
            (None, None, None, Some(median), Some(p99)) if median >= 1 && median <= p99 => Effect::LongTail {
                median: ms(median),
                p99: ms(p99),
            },
            _ => {
                return Err(
                    "give `ms`, or `min_ms` and a `max_ms` not below it, or `median_ms` (1 at least) and a \
                            `p99_ms` not below it"
                        .to_owned(),
                );
            }
        },
        K::Hang => Effect::Hang,
        K::Error => {
            let code = spec.code.filter(|c| *c > 0).ok_or("`code` is missing")?;
            let state = spec.sqlstate.as_deref().unwrap_or("HY000");
            let state: [u8; 5] = state
                .as_bytes()
                .try_into()
                .ok()
                .filter(|s: &[u8; 5]| s.iter().all(u8::is_ascii_alphanumeric))
                .ok_or("`sqlstate` must be five letters or digits")?;
            let message = spec
                .message
                .clone()
                .unwrap_or_else(|| format!("injected error {code}"));
            Effect::Error(SqlError::new(code, state, message))
        }
        K::Refuse => Effect::Refuse,
        K::Reset => Effect::Reset,
        K::BlackHole => Effect::BlackHole,
        K::SlowRows => Effect::SlowRows(needed(spec.ms, "ms")?),
        K::Stall => Effect::Stall {
            rows: spec.after_rows.ok_or("`after_rows` is missing")?,
            time: spec.ms.map(ms),
        },
        K::IgnoreKill => Effect::IgnoreKill,
        K::LoseOk => Effect::LoseOk,
        K::ReadOnly => Effect::ReadOnly,
        K::Lag => Effect::Lag(needed(spec.ms, "ms")?),
    })
}

/// The point between two durations.
pub(super) fn between(low: Duration, high: Duration, unit: f64) -> Duration {
    low + (high.saturating_sub(low)).mul_f64(unit)
}

/// A log-normal wait with this median and this 99th percentile (2.326 deviations up), cut at ten times the latter.
pub(super) fn long_tail(median: Duration, p99: Duration, rng: &mut Rng) -> Duration {
    let sigma = (p99.as_secs_f64() / median.as_secs_f64()).ln() / 2.326;
    // Box and Muller; the first draw must not be zero.
    let (u, v) = (1.0 - rng.unit(), rng.unit());
    let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
    let seconds = median.as_secs_f64() * (sigma * normal).exp();
    Duration::from_secs_f64(seconds.min(p99.as_secs_f64() * 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Rule, String> {
        let spec: FaultSpec = serde_json::from_str(json).map_err(|e| e.to_string())?;
        Rule::new(&spec).map_err(|e| e.to_string())
    }

    #[test]
    fn a_field_that_means_nothing_is_refused_by_name() {
        assert!(parse(r#"{"kind":"latency","ms":5}"#).is_ok());
        for (json, word) in [
            (r#"{"kind":"latency","ms":5,"colour":1}"#, "colour"),
            (r#"{"kind":"hang","ms":5}"#, "`ms`"),
            (r#"{"kind":"latency","min_ms":9,"max_ms":5}"#, "max_ms"),
            (r#"{"kind":"error"}"#, "`code`"),
            (r#"{"kind":"refuse","statement":"x"}"#, "`statement`"),
            (r#"{"kind":"hang","rate":0.0}"#, "`rate`"),
            (r#"{"kind":"hang","regex":"("}"#, "regex"),
            (r#"{"kind":"earthquake"}"#, "earthquake"),
        ] {
            let message = parse(json).map(|_| ()).unwrap_err();
            assert!(message.contains(word), "{json}: {message}");
        }
    }

    #[test]
    fn a_rule_strikes_what_it_names_as_often_as_it_says() {
        let rule = parse(r#"{"kind":"hang","statement":"from orders","times":2}"#).unwrap();
        let mut rng = Rng::new(1);
        assert!(!rule.strikes(Some(b"SELECT 1"), &mut rng));
        assert!(rule.strikes(Some(b"select * FROM Orders"), &mut rng));
        assert!(!rule.strikes(None, &mut rng));
        assert!(rule.strikes(Some(b"select * from orders"), &mut rng));
        assert!(!rule.strikes(Some(b"select * from orders"), &mut rng));
        assert_eq!(rule.struck(), 2);
    }

    #[test]
    fn a_long_tail_has_its_median_and_its_percentile() {
        let mut rng = Rng::new(7);
        let (median, p99) = (Duration::from_millis(10), Duration::from_millis(200));
        let mut all: Vec<Duration> = (0..20_000).map(|_| long_tail(median, p99, &mut rng)).collect();
        all.sort();
        let near = |d: Duration, want: Duration| {
            let ratio = d.as_secs_f64() / want.as_secs_f64();
            (0.8..1.25).contains(&ratio)
        };
        assert!(
            near(all[10_000], median) && near(all[19_800], p99),
            "{:?} {:?}",
            all[10_000],
            all[19_800]
        );
    }
}
