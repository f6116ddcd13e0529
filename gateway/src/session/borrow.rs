//! Tablet connections for the gateway's own questions on a session's behalf.

use std::time::Duration;

use super::{Session, SessionError};
use crate::base::{ShardId, clock};
use crate::exec::{Deadline, ExecError, Leased, Limits, SLOT_WAIT};
use crate::guard::Work;
use crate::tablet::TabletError;

impl Session {
    /// A connection for the gateway's own questions, with the session's settings: one that the session holds, or a pooled
    /// one. It goes back by [`Self::give_back`], whatever the answer was.
    pub(super) async fn borrow(
        &mut self,
        shard: &ShardId,
        deadline: Option<Deadline>,
    ) -> Result<Leased, SessionError> {
        let settings = self.state.settings.clone();
        if let Some(mut lease) = self.state.held.take_any(shard) {
            let applied = self.ask(shard, deadline, lease.conn.apply(&settings)).await;
            if let Err(e) = applied {
                self.give_back(lease);
                return Err(e);
            }
            return Ok(lease);
        }
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
            let pass = pool.enter(Work::CONNECT, clock::now())?;
            let mut conn = pool.checkout(pass, &settings, slot_by).await?;
            conn.apply(&settings).await?;
            Ok::<_, TabletError>(conn)
        };
        let conn = self.ask(shard, deadline, opening).await?;
        Ok(Leased::fresh(shard.clone(), role, conn))
    }

    /// Takes back a connection that [`Self::borrow`] gave. One that was lost takes with it what it held.
    pub(super) fn give_back(&mut self, lease: Leased) {
        if lease.conn.is_usable() {
            self.state.held.put(lease);
            return;
        }
        if lease.in_transaction {
            self.state.transaction.fail(format!("{} was lost", lease.shard));
        }
        if let Some(claim) = &lease.reserved {
            self.state.held.lose(claim.what);
        }
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
            ..super::limits_of(&self.registration.handle.kill, &self.view.options, Duration::ZERO)
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
