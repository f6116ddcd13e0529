//! Tablet connections for the gateway's own questions on a session's behalf.

use std::time::Duration;

use shardgate_sql::lex;

use super::kind_times::kind_of;
use super::{Session, SessionError};
use crate::base::{ShardId, clock};
use crate::exec::{Deadline, ExecError, Leased, Limits, SLOT_WAIT};
use crate::guard::{Outcome, Work};
use crate::tablet::TabletError;

impl Session {
    /// A connection for the gateway's own questions, with the session's settings: one that the session holds, or a pooled
    /// one. An attempt is begun on it, which [`Self::give_back`] ends.
    pub(super) async fn borrow(
        &mut self,
        shard: &ShardId,
        deadline: Option<Deadline>,
        work: Work,
    ) -> Result<Leased, SessionError> {
        let settings = self.state.settings.clone();
        let mut lease = match self.state.held.take_any(shard) {
            Some(held) => held,
            // Boxed: rare, and large.
            None => Box::pin(self.borrow_pooled(shard, deadline, work)).await?,
        };
        let ready = match lease.conn.start(work, clock::now()) {
            Ok(attempt) => {
                lease.attempt = Some(attempt);
                self.ask(shard, deadline, lease.conn.apply(&settings)).await
            }
            Err(e) => Err(ExecError::tablet(shard.clone(), e).into()),
        };
        match ready {
            Ok(()) => Ok(lease),
            Err(e) => self.give_back(lease, Err(e)),
        }
    }

    async fn borrow_pooled(
        &mut self,
        shard: &ShardId,
        deadline: Option<Deadline>,
        work: Work,
    ) -> Result<Leased, SessionError> {
        let settings = self.state.settings.clone();
        let role = self.state.target.role;
        let found = self
            .shared
            .fleet
            .pool(shard, role, super::command::found_rows(&self.client));
        let pool = found.ok_or_else(|| ExecError::NoTablet {
            shard: shard.clone(),
            role: role.as_str(),
        })?;
        let mut slot_by = deadline.map(|d| d.at);
        if !self.state.held.is_empty() {
            // Whoever holds a slot must not wait long for another.
            let soon = clock::now() + SLOT_WAIT;
            slot_by = Some(slot_by.map_or(soon, |at| at.min(soon)));
        }
        let opening = async {
            let pass = pool.enter(work, clock::now())?;
            pool.checkout(pass, &settings, slot_by).await
        };
        let conn = self.ask(shard, deadline, opening).await?;
        Ok(Leased::fresh(shard.clone(), role, conn))
    }

    /// Takes back a connection that [`Self::borrow`] gave, with what came of the question: the attempt on it ends by that.
    /// Gives the answer on.
    pub(super) fn give_back<T>(
        &mut self,
        mut lease: Leased,
        answer: Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let tablet = super::shared::limit(self.view.options.tablet_timeout);
        match &answer {
            Ok(_) => lease.settle(Outcome::Success),
            Err(SessionError::Exec(ExecError::Tablet { source, .. })) => lease.settle_error(source, tablet),
            Err(SessionError::Exec(ExecError::Server { error, .. })) => {
                lease.settle_error(&TabletError::Server(error.clone()), tablet);
            }
            Err(SessionError::Exec(ExecError::Deadline { passed, .. })) => lease.gave_up(Some(passed.after)),
            // The client's end, a kill, a value that will not do: it says nothing of the tablet.
            Err(_) => drop(lease.attempt.take()),
        }
        self.state.held.take_back(lease, &mut self.state.transaction);
        answer
    }

    /// How a question is told apart by those who guard tablets. What a client asks for may take long for reasons of its
    /// own, so it counts as the kind of statement that it is.
    pub(super) fn work_of(&self, sql: &[u8]) -> Work {
        let options = self.view.lex_options(self.state.sql_mode);
        lex(sql, &options).map_or(Work::CONNECT, |lexed| Work::statement(kind_of(&lexed)))
    }

    /// When the command that runs now must have its answer.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.limits(self.view.options.query_timeout).deadline
    }

    /// Waits for a tablet's answer, until a deadline, a kill, or the client's end.
    pub(super) async fn ask<T>(
        &mut self,
        shard: &ShardId,
        deadline: Option<Deadline>,
        what: impl Future<Output = Result<T, TabletError>>,
    ) -> Result<T, SessionError> {
        let limits = Limits {
            deadline,
            ..super::limits_of(
                (&self.registration.handle.kill, &self.alarm),
                &self.view.options,
                Duration::ZERO,
            )
        };
        match limits.watch(&mut self.client, what).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(ExecError::tablet(shard.clone(), e).into()),
            Err(interrupt) => Err(interrupt
                .into_error(shard.to_string(), "; nothing was executed")
                .into()),
        }
    }
}
