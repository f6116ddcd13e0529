//! Reparents of a simulated shard: a planned promotion, a promotion after the primary was killed, and one that never
//! comes. Each leaves the tablets as real ones would be left, with gaps as long as asked for.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::SimShard;
use crate::handle::{SimError, SimTablet};

/// The longest gap: an hour.
const MAX_MS: u64 = 3_600_000;

/// How the primary changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReparentKind {
    /// The primary becomes read-only, a replica catches up and is promoted, the old primary follows it.
    Planned,
    /// The primary is killed, the most advanced replica applies what it has received and is promoted. The old primary
    /// stays dead; restarted, it comes back as what it was.
    Emergency,
    /// The primary is lost and nobody is promoted.
    Failed,
}

/// How a failed reparent loses the primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// It becomes read-only.
    #[default]
    ReadOnly,
    /// It is killed.
    Killed,
}

/// A reparent, as JSON or in code.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reparent {
    /// How.
    pub kind: ReparentKind,
    /// The alias of the tablet to promote; the most advanced if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Milliseconds, at least, from the last write that the old primary takes to the first that the new one takes.
    #[serde(default)]
    pub gap_ms: u64,
    /// Milliseconds from the promotion until the other tablets follow the new primary.
    #[serde(default)]
    pub repoint_ms: u64,
    /// How long a planned reparent waits for the replica, in milliseconds; 10 s if not given. Then the primary takes
    /// writes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up_ms: Option<u64>,
    /// How many of the last transactions never reached a replica, when the primary is killed: what asynchronous
    /// replication loses.
    #[serde(default)]
    pub lose: u64,
    /// How a failed reparent loses the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Loss>,
    /// After a failed reparent, when the same primary takes writes again, in milliseconds; never if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_after_ms: Option<u64>,
}

impl Reparent {
    /// A reparent of this kind without gaps.
    #[must_use]
    pub const fn new(kind: ReparentKind) -> Self {
        Self {
            kind,
            to: None,
            gap_ms: 0,
            repoint_ms: 0,
            catch_up_ms: None,
            lose: 0,
            by: None,
            back_after_ms: None,
        }
    }

    /// With this gap.
    #[must_use]
    pub fn gap(self, gap: Duration) -> Self {
        Self {
            gap_ms: u64::try_from(gap.as_millis()).unwrap_or(MAX_MS),
            ..self
        }
    }

    fn check(&self) -> Result<(), ReparentError> {
        let bad = |why: &str| Err(ReparentError::Invalid(why.to_owned()));
        let failed = self.kind == ReparentKind::Failed;
        if !failed && (self.by.is_some() || self.back_after_ms.is_some()) {
            return bad("`by` and `back_after_ms` are for a failed reparent");
        }
        if failed && (self.to.is_some() || self.gap_ms > 0 || self.repoint_ms > 0) {
            return bad("a failed reparent promotes nobody: it has neither `to` nor gaps");
        }
        if self.lose > 0 && self.kind != ReparentKind::Emergency {
            return bad("`lose` is for an emergency reparent");
        }
        if self.catch_up_ms.is_some() && self.kind != ReparentKind::Planned {
            return bad("`catch_up_ms` is for a planned reparent");
        }
        let waits = [
            Some(self.gap_ms),
            Some(self.repoint_ms),
            self.catch_up_ms,
            self.back_after_ms,
        ];
        if waits.into_iter().flatten().any(|ms| ms > MAX_MS) {
            return bad("a wait may be an hour at most");
        }
        Ok(())
    }
}

/// Why a reparent did not happen. The shard is as before, unless said otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ReparentError {
    /// What was asked for makes no sense.
    #[error("reparent: {0}")]
    Invalid(String),
    /// One at a time.
    #[error("a reparent of this shard is running")]
    Busy,
    /// There is no such replica, or none at all.
    #[error("no replica to promote: {0}")]
    NoReplica(String),
    /// The replica did not catch up. After a kill the primary is dead all the same.
    #[error("{0} did not catch up")]
    NotCaughtUp(String),
    /// The engine refused.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Something that happened, and when.
#[derive(Clone, Debug, Serialize)]
pub struct ReparentEvent {
    /// Milliseconds after the reparent began.
    pub at_ms: u64,
    /// What.
    pub what: String,
}

/// What a reparent did.
#[derive(Clone, Debug, Serialize)]
pub struct ReparentReport {
    /// How.
    pub kind: ReparentKind,
    /// The old primary.
    pub from: String,
    /// The new one; none after a failed reparent.
    pub to: Option<String>,
    /// Milliseconds in which nobody took writes; none if nobody does.
    pub gap_ms: Option<u64>,
    /// Step by step.
    pub events: Vec<ReparentEvent>,
}

/// Keeps the report while the reparent runs.
struct Diary {
    began: Instant,
    report: ReparentReport,
}

impl Diary {
    fn note(&mut self, what: impl fmt::Display) {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(at_ms, %what, "reparent");
        self.report.events.push(ReparentEvent {
            at_ms,
            what: what.to_string(),
        });
    }

    fn writable(&mut self, lost: Instant) {
        self.report.gap_ms = Some(u64::try_from(lost.elapsed().as_millis()).unwrap_or(u64::MAX));
    }
}

impl SimShard {
    /// Changes the primary, and returns when that is done. Dropped half way, the shard stays half way: whoever may be
    /// dropped runs this on a task of its own.
    pub async fn reparent(&self, how: &Reparent) -> Result<ReparentReport, ReparentError> {
        how.check()?;
        let _running = self
            .inner
            .reparenting
            .try_lock()
            .map_err(|_| ReparentError::Busy)?;
        let old = self.primary();
        let mut diary = Diary {
            began: Instant::now(),
            report: ReparentReport {
                kind: how.kind,
                from: old.alias().to_owned(),
                to: None,
                gap_ms: None,
                events: Vec::new(),
            },
        };
        match how.kind {
            ReparentKind::Planned => self.planned(how, &old, &mut diary).await?,
            ReparentKind::Emergency => self.emergency(how, &old, &mut diary).await?,
            ReparentKind::Failed => failed(how, &old, &mut diary).await,
        }
        Ok(diary.report)
    }

    async fn planned(&self, how: &Reparent, old: &SimTablet, diary: &mut Diary) -> Result<(), ReparentError> {
        let new = self.candidate(how)?;
        old.set_read_only(true);
        let lost = Instant::now();
        diary.note(format_args!("{} is read-only", old.alias()));
        let limit = Duration::from_millis(how.catch_up_ms.unwrap_or(10_000));
        if !matches!(tokio::time::timeout(limit, new.caught_up()).await, Ok(true)) {
            old.set_read_only(false);
            return Err(ReparentError::NotCaughtUp(new.alias().to_owned()));
        }
        diary.note(format_args!("{} has caught up", new.alias()));
        tokio::time::sleep_until(lost + Duration::from_millis(how.gap_ms)).await;
        self.promote(&new, lost, diary).await;
        tokio::time::sleep(Duration::from_millis(how.repoint_ms)).await;
        self.repoint(&new, diary).await
    }

    async fn emergency(
        &self,
        how: &Reparent,
        old: &SimTablet,
        diary: &mut Diary,
    ) -> Result<(), ReparentError> {
        let new = self.candidate(how)?;
        old.kill().await;
        let lost = Instant::now();
        diary.note(format_args!("{} is dead", old.alias()));
        let end = |t: &SimTablet| t.tablet().replication_log().end().sequence;
        // What a replica has applied it has received.
        let applied = self.living().iter().map(end).max().unwrap_or(0);
        let received = end(old).saturating_sub(how.lose).max(applied);
        for replica in self.living() {
            if let Some(applier) = replica.tablet().applier()
                && !applier.finish(received).await
                && replica.alias() == new.alias()
            {
                return Err(ReparentError::NotCaughtUp(new.alias().to_owned()));
            }
        }
        diary.note(format_args!(
            "{} has applied what it received, up to {received}",
            new.alias()
        ));
        tokio::time::sleep_until(lost + Duration::from_millis(how.gap_ms)).await;
        self.promote(&new, lost, diary).await;
        tokio::time::sleep(Duration::from_millis(how.repoint_ms)).await;
        self.repoint(&new, diary).await
    }

    async fn promote(&self, new: &SimTablet, lost: Instant, diary: &mut Diary) {
        new.unfollow().await;
        new.set_read_only(false);
        diary.writable(lost);
        if let Some(place) = self.tablets().position(|t| t.alias() == new.alias()) {
            *self.place() = place;
        }
        diary.note(format_args!("{} takes writes", new.alias()));
        diary.report.to = Some(new.alias().to_owned());
    }

    /// Makes the living tablets follow the new primary.
    async fn repoint(&self, new: &SimTablet, diary: &mut Diary) -> Result<(), ReparentError> {
        for tablet in self.living() {
            tablet.follow(new, self.lag()).await?;
            diary.note(format_args!("{} follows {}", tablet.alias(), new.alias()));
        }
        Ok(())
    }

    /// The replicas that run.
    fn living(&self) -> Vec<SimTablet> {
        let all = self.replicas().into_iter();
        all.filter(|t| !t.is_down()).collect()
    }

    /// Who is to be promoted: the one named, or the most advanced.
    fn candidate(&self, how: &Reparent) -> Result<SimTablet, ReparentError> {
        let mut living = self.living();
        // Of equals the first: the last maximum wins, so the order is turned.
        living.reverse();
        let found = match &how.to {
            Some(alias) => living.into_iter().find(|t| t.alias() == alias),
            None => living
                .into_iter()
                .max_by_key(|t| t.tablet().replication_log().end().sequence),
        };
        found
            .ok_or_else(|| ReparentError::NoReplica(how.to.clone().unwrap_or_else(|| "none runs".to_owned())))
    }

    /// Makes a tablet that was left behind, or has been restarted, a replica of the primary: read-only, and following.
    /// If it holds what the primary does not, it says so by error 1236 in SHOW SLAVE STATUS and applies nothing.
    pub async fn rejoin(&self, alias: &str) -> Result<(), ReparentError> {
        let primary = self.primary();
        let tablet = self
            .tablet(alias)
            .filter(|t| t.alias() != primary.alias())
            .ok_or_else(|| ReparentError::NoReplica(alias.to_owned()))?;
        tablet.set_read_only(true);
        Ok(tablet.follow(&primary, self.lag()).await?)
    }
}

async fn failed(how: &Reparent, old: &SimTablet, diary: &mut Diary) {
    let by = how.by.unwrap_or_default();
    match by {
        Loss::ReadOnly => old.set_read_only(true),
        Loss::Killed => old.kill().await,
    }
    let lost = Instant::now();
    diary.note(match by {
        Loss::ReadOnly => format!("{} is read-only", old.alias()),
        Loss::Killed => format!("{} is dead", old.alias()),
    });
    let Some(back) = how.back_after_ms else { return };
    tokio::time::sleep_until(lost + Duration::from_millis(back)).await;
    match by {
        Loss::ReadOnly => old.set_read_only(false),
        Loss::Killed => old.restart().await,
    }
    diary.writable(lost);
    diary.note(format_args!("{} takes writes again", old.alias()));
}
