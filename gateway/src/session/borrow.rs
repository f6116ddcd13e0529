//! Tablet connections for the gateway's own questions on a session's behalf.

use super::{Session, SessionError};
use crate::base::ShardId;
use crate::exec::{ExecError, Leased, SLOT_WAIT};
use crate::tablet::TabletError;

impl Session {
    /// A shard to try settings on: of the session's keyspace, or any.
    pub(super) fn any_shard(&self) -> Result<ShardId, SessionError> {
        if let Some(held) = self.held_shard() {
            return Ok(held);
        }
        let target = &self.state.target;
        let own = target
            .keyspace
            .as_ref()
            .and_then(|k| self.view.catalog.keyspace(k.as_str()));
        let keyspace = own.or_else(|| self.view.catalog.any_keyspace());
        let keyspace = keyspace.ok_or(crate::plan::PlanError::NoKeyspace)?;
        let index = target
            .shard
            .as_ref()
            .and_then(|s| keyspace.shard_index(s))
            .unwrap_or(0);
        let shard = keyspace
            .shards
            .get(index)
            .ok_or(crate::plan::PlanError::NoKeyspace)?;
        Ok(shard.id.clone())
    }

    /// A connection for the gateway's own questions, with the session's settings: one that the session holds, or a pooled
    /// one. It goes back by [`Self::give_back`], whatever the answer was.
    pub(super) async fn borrow(&mut self, shard: &ShardId) -> Result<Leased, SessionError> {
        let settings = self.state.settings.clone();
        if let Some(mut lease) = self.state.held.take_any(shard) {
            let applied = self.ask(shard, lease.conn.apply(&settings)).await;
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
        let mut wait = self.view.options.query_timeout;
        if !self.state.held.is_empty() {
            // Whoever holds a slot must not wait long for another.
            wait = if wait.is_zero() {
                SLOT_WAIT
            } else {
                wait.min(SLOT_WAIT)
            };
        }
        let deadline = self.limits(wait).at();
        let opening = async {
            let mut conn = pool.checkout(&settings, deadline).await?;
            conn.apply(&settings).await?;
            Ok::<_, TabletError>(conn)
        };
        let conn = self.ask(shard, opening).await?;
        Ok(Leased {
            shard: shard.clone(),
            role,
            conn,
            in_transaction: false,
            reserved: None,
        })
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

    /// Waits for a tablet's answer, within the session's limits.
    pub(super) async fn ask<T>(
        &mut self,
        shard: &ShardId,
        what: impl Future<Output = Result<T, TabletError>>,
    ) -> Result<T, SessionError> {
        let limits = super::limits_of(
            &self.registration.handle.kill,
            &self.view.options,
            self.view.options.query_timeout,
        );
        match limits.watch(&mut self.client, what).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(ExecError::tablet(shard.clone(), e).into()),
            Err(interrupt) => Err(interrupt
                .into_error(shard.to_string(), "; nothing was executed")
                .into()),
        }
    }
}
