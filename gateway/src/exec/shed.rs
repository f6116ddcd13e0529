//! Legs that an answer does without: when, and what the client is told.
//!
//! Only a client that asked for it gets an answer from which shards are missing, and only where fewer shards give a
//! subset of the true answer. Everybody else gets the failure; who asked and cannot have it also gets the reason.

use super::answer::Warning;
use super::run::Partial;
use super::{ExecError, Run, Statement};
use crate::base::GatewayError;
use crate::base::ShardId;
use crate::base::metrics::Metrics;
use crate::route::Monotone;

/// The legs of one statement that failed and are left out.
#[derive(Debug)]
pub(super) struct Shed<'a> {
    allowed: Option<Monotone>,
    metrics: &'a Metrics,
    missing: Vec<(ShardId, ExecError)>,
}

impl<'a> Shed<'a> {
    /// What this client and this plan allow.
    pub(super) fn of(run: &Run<'a>, statement: &Statement<'_>) -> Self {
        let asked = run.partial == Partial::Accepted && !run.transaction.is_active();
        Self {
            allowed: asked.then_some(statement.monotone),
            metrics: run.metrics,
            missing: Vec::new(),
        }
    }

    /// Nothing may be left out.
    pub(super) fn nothing(metrics: &'a Metrics) -> Self {
        Self {
            allowed: None,
            metrics,
            missing: Vec::new(),
        }
    }

    /// Whether legs may be left out.
    pub(super) fn is_allowed(&self) -> bool {
        matches!(self.allowed, Some(Monotone::Yes))
    }

    /// Leaves a leg out, or says why it cannot be.
    pub(super) fn leg(&mut self, shard: &ShardId, error: ExecError) -> Result<(), ExecError> {
        if !self.is_allowed() || error.is_the_commands_own() {
            return Err(self.refuse(error));
        }
        self.missing.push((shard.clone(), error));
        Ok(())
    }

    /// A failure for a client whose plan allows no partial answer: with the reason, if it asked for one.
    pub(super) fn refuse(&self, error: ExecError) -> ExecError {
        match self.allowed {
            Some(Monotone::No(reason)) if !error.is_the_commands_own() => {
                self.metrics.partial.handle("not_monotone").inc();
                ExecError::NotMonotone {
                    reason,
                    source: Box::new(error),
                }
            }
            Some(_) | None => error,
        }
    }

    /// The error of an answer to which no shard contributes.
    pub(super) fn nothing_left(&mut self) -> ExecError {
        match ExecError::join(std::mem::take(&mut self.missing)) {
            Some(source) => ExecError::AllLegsFailed {
                source: Box::new(source),
            },
            None => ExecError::Killed(super::Kill::Query),
        }
    }

    /// Whether any leg is missing.
    pub(super) fn is_partial(&self) -> bool {
        !self.missing.is_empty()
    }

    /// The answer is complete without them.
    pub(super) fn forget(&mut self) {
        self.missing.clear();
    }

    /// One warning for each missing shard; tells how many.
    pub(super) fn warn(&mut self, warnings: &mut Vec<Warning>) -> u16 {
        let missing = std::mem::take(&mut self.missing);
        if !missing.is_empty() {
            self.metrics.partial.handle("answered").inc();
        }
        let count = u16::try_from(missing.len()).unwrap_or(u16::MAX);
        for (shard, error) in missing {
            let cause = error.client_error();
            warnings.push(Warning {
                level: "Warning".to_owned(),
                code: 1105,
                message: format!(
                    "SG2108: some or all rows of {shard} are missing from this answer: {}",
                    cause.message
                ),
            });
        }
        count
    }
}
