//! Faults on demand: what goes wrong, for which statements, how often.
//!
//! A fault is described by a [`FaultSpec`], the same by library call and as JSON over HTTP. Several may be set at once;
//! each statement meets all that match it. Chance comes from the tablet's seed: the same seed and the same order of
//! statements give the same run.

mod http;
mod rule;
mod spec;
mod timeline;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

pub use http::{FaultPanel, faults_router, timeline_router};
pub use spec::{FaultKind, FaultSpec, InvalidFault};
pub use timeline::{Clear, InvalidTimeline, StepStatus, Timeline, TimelineStatus, TimelineStep};

use crate::error::SqlError;
use crate::repl::Lag;
use crate::rng::Rng;
use rule::{Effect, Rule};
use timeline::Playing;

/// What one statement meets, all faults taken together.
#[allow(clippy::struct_excessive_bools)] // independent facts, each asked for alone
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// Wait this long before anything.
    pub(crate) delay: Duration,
    /// Never answer, until killed.
    pub(crate) hang: bool,
    /// Never answer, and hear nothing either.
    pub(crate) black_hole: bool,
    /// Cut the connection instead of running it.
    pub(crate) reset: bool,
    /// Answer this instead of running it.
    pub(crate) error: Option<SqlError>,
    /// Wait this long before each row.
    pub(crate) slow_rows: Option<Duration>,
    /// Send this many rows, then wait (`None`: for ever).
    pub(crate) stall: Option<(u64, Option<Duration>)>,
    /// KILL does not reach it.
    pub(crate) ignore_kill: bool,
    /// Run it, then cut the connection instead of saying OK.
    pub(crate) lose_ok: bool,
}

/// A tablet's faults.
#[derive(Debug)]
pub struct Faults {
    rules: RwLock<Vec<Arc<Rule>>>,
    rng: Mutex<Rng>,
    refuse: watch::Sender<bool>,
    lag: watch::Sender<Option<Lag>>,
    seed: u64,
    layer: Layer,
    playing: Mutex<Option<Playing>>,
    runtime: Option<tokio::runtime::Handle>,
}

/// What the faults lie over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The simulated tablet itself.
    Tablet,
    /// The way to a real server, whose replication is its own.
    Proxy,
}

/// A fault that is set, and how often it struck.
#[derive(Clone, Debug, Serialize)]
pub struct FaultStatus {
    /// What was asked for.
    #[serde(flatten)]
    pub spec: FaultSpec,
    /// How many statements or connections it has struck.
    pub struck: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64, layer: Layer) -> Arc<Self> {
        Arc::new(Self {
            rules: RwLock::default(),
            rng: Mutex::new(Rng::new(seed ^ 0xfa17)),
            refuse: watch::channel(false).0,
            lag: watch::channel(None).0,
            seed,
            layer,
            playing: Mutex::default(),
            runtime: tokio::runtime::Handle::try_current().ok(),
        })
    }

    /// Sets these faults in place of all that were set. All are checked before any takes effect.
    pub fn replace(&self, specs: &[FaultSpec]) -> Result<(), InvalidFault> {
        let rules = specs
            .iter()
            .map(|s| self.rule(s))
            .collect::<Result<Vec<_>, _>>()?;
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        self.refresh();
        Ok(())
    }

    /// Adds a fault to those that are set.
    pub fn add(&self, spec: &FaultSpec) -> Result<(), InvalidFault> {
        let rule = self.rule(spec)?;
        self.rules
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(rule);
        self.refresh();
        Ok(())
    }

    /// A fault that has been checked, not set yet.
    fn rule(&self, spec: &FaultSpec) -> Result<Arc<Rule>, InvalidFault> {
        if self.layer == Layer::Proxy && spec.kind == FaultKind::Lag {
            return Err(InvalidFault {
                kind: "lag".to_owned(),
                reason: "a proxy has no say in the replication of the server behind it".to_owned(),
            });
        }
        Rule::new(spec).map(Arc::new)
    }

    /// Takes the faults of one kind away.
    pub fn clear_kind(&self, kind: FaultKind) {
        self.rules
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|r| r.spec.kind != kind);
        self.refresh();
    }

    /// Takes all faults away. A hanging statement goes on hanging until it is killed.
    pub fn clear(&self) {
        self.rules.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.refresh();
    }

    /// The faults that are set.
    #[must_use]
    pub fn list(&self) -> Vec<FaultStatus> {
        self.snapshot()
            .iter()
            .map(|r| FaultStatus {
                spec: r.spec.clone(),
                struck: r.struck(),
            })
            .collect()
    }

    fn snapshot(&self) -> Vec<Arc<Rule>> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn refresh(&self) {
        let rules = self.snapshot();
        self.refuse
            .send_replace(rules.iter().any(|r| matches!(r.effect, Effect::Refuse)));
        let lag = rules.iter().rev().find_map(|r| match r.effect {
            Effect::Lag(lag) => Some(lag),
            _ => None,
        });
        self.lag.send_replace(lag);
    }

    /// Whether new connections are to be refused, as it changes.
    pub(crate) fn refusing(&self) -> watch::Receiver<bool> {
        self.refuse.subscribe()
    }

    /// The replication lag that a fault asks for, as it changes.
    pub(crate) fn lag(&self) -> watch::Receiver<Option<Lag>> {
        self.lag.subscribe()
    }

    pub(crate) fn read_only(&self) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.iter().any(|r| matches!(r.effect, Effect::ReadOnly))
    }

    /// Whether a new connection falls into a black hole.
    pub(crate) fn swallows_connections(&self) -> bool {
        self.snapshot()
            .iter()
            .any(|r| matches!(r.effect, Effect::BlackHole) && r.is_for_everything())
    }

    /// What a statement meets. `None` is a command without a text, such as a ping.
    pub(crate) fn judge(&self, statement: Option<&[u8]>) -> Verdict {
        let mut out = Verdict::default();
        let rules = self.snapshot();
        if rules.is_empty() {
            return out;
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in &rules {
            if !rule.strikes(statement, &mut rng) {
                continue;
            }
            match &rule.effect {
                Effect::Latency { low, high } => out.delay += rule::between(*low, *high, rng.unit()),
                Effect::LongTail { median, p99 } => out.delay += rule::long_tail(*median, *p99, &mut rng),
                Effect::Hang => out.hang = true,
                Effect::BlackHole => out.black_hole = true,
                Effect::Reset => out.reset = true,
                Effect::Error(e) => out.error = out.error.or_else(|| Some(e.clone())),
                Effect::SlowRows(time) => out.slow_rows = Some(*time),
                Effect::Stall { rows, time } => out.stall = Some((*rows, *time)),
                Effect::IgnoreKill => out.ignore_kill = true,
                Effect::LoseOk => out.lose_ok = true,
                Effect::Refuse | Effect::ReadOnly | Effect::Lag(_) => {}
            }
        }
        out
    }
}
