//! One fault that is set: what it does, and which statements it matches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};

use super::spec::{FaultKind, FaultSpec, InvalidFault, MAX_MS, kind_name};
use crate::error::SqlError;
use crate::repl::{ApplyRate, Lag};
use crate::rng::Rng;

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
    Lag(Lag),
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) spec: FaultSpec,
    pub(super) effect: Effect,
    matcher: Option<Regex>,
    rate: f64,
    struck: AtomicU64,
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
        K::SlowRows => &["ms"],
        K::Lag => &["ms", "apply_per_s", "reads_per_s"],
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
        ("apply_per_s", spec.apply_per_s.is_some()),
        ("reads_per_s", spec.reads_per_s.is_some()),
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
        K::Lag => Effect::Lag(lag(spec)?),
    })
}

fn lag(spec: &FaultSpec) -> Result<Lag, String> {
    let rate = match (spec.apply_per_s, spec.reads_per_s) {
        (None, None) => None,
        (None, Some(_)) => return Err("`reads_per_s` needs `apply_per_s`".to_owned()),
        (Some(_), Some(0)) => return Err("`reads_per_s` must be at least 1".to_owned()),
        (Some(idle), full) => Some(ApplyRate {
            idle: f64::from(idle),
            full_reads: full.map(f64::from),
        }),
    };
    if spec.ms.is_none() && rate.is_none() {
        return Err("`ms` is missing, or `apply_per_s`".to_owned());
    }
    Ok(Lag {
        delay: Duration::from_millis(spec.ms.unwrap_or(0)),
        rate,
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
            (r#"{"kind":"lag"}"#, "`apply_per_s`"),
            (r#"{"kind":"lag","ms":1,"reads_per_s":5}"#, "`apply_per_s`"),
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
