//! Waiting for a primary, and sending again what a vanished one provably did not execute.
//!
//! Only work that holds nothing waits: a session with an open transaction or a lock of its own would make others wait for
//! it, and so would a statement that has taken connections of other shards. The first statement behind BEGIN holds
//! nothing yet.

use super::commit::rollback;
use super::run::{Run, Told, Vacant};
use super::transaction::Transaction;
use super::{ExecError, Payload, Statement};
use crate::base::{Role, ShardId, clock};
use crate::guard::{Admission, Guards, Request, Ticket};
use crate::route::Leg;
use crate::tablet::{Proof, TabletError};

/// How often a statement is sent again at most. Each time something else has become of the primary, so this is a stop for
/// a primary that comes and goes.
const MOST: u32 = 4;

/// A statement on its way to primaries that may be replaced under it.
#[derive(Debug)]
pub struct Failover {
    role: Role,
    waits: bool,
    /// Changes of primaries counted when it was sent.
    moves: u64,
    left: u32,
    /// The transaction as it was, if this is the first statement of it.
    fresh: Option<Transaction>,
}

/// What a statement is to the buffers.
pub(super) fn request(statement: &Statement<'_>, legs: &[Leg]) -> Request {
    let values = match statement.payload {
        Payload::Text => 0,
        Payload::Prepared(values) => values.bytes(),
    };
    Request {
        is_write: statement.changes(),
        bytes: values + legs.iter().map(|leg| leg.sql.len()).sum::<usize>(),
    }
}

impl Failover {
    /// A statement for tablets of this role, that has not been sent.
    pub fn new(run: &Run<'_>, role: Role) -> Self {
        let waits = run.vacant == Vacant::Waits && role == Role::Primary && run.held.is_empty();
        let fresh = (waits && run.transaction.is_active() && !run.implicit).then(|| run.transaction.clone());
        Self {
            role,
            waits,
            moves: run.fleet.guards().moves(),
            left: MOST,
            fresh,
        }
    }

    /// Waits until each of the shards has a primary that may be asked, as far as anybody knows. Nothing is held meanwhile.
    pub async fn admit(
        &mut self,
        run: &mut Run<'_>,
        shards: &[ShardId],
        request: impl Fn() -> Request,
    ) -> Result<(), ExecError> {
        for shard in shards {
            self.admit_one(run, shard, &request).await?;
        }
        Ok(())
    }

    /// [`Self::admit`] of one shard of several.
    pub(super) async fn admit_one(
        &mut self,
        run: &mut Run<'_>,
        shard: &ShardId,
        request: impl Fn() -> Request,
    ) -> Result<(), ExecError> {
        // Before it waits, and before it is sent again: others may be waiting for its turn to be over.
        run.drained.clear();
        self.moves = run.fleet.guards().moves();
        if self.role == Role::Replica || !run.fleet.guards().any_asks() {
            return Ok(());
        }
        let (request, buffer) = (request(), run.fleet.guards().buffer(shard));
        if !self.waits {
            return match buffer.forbids(request.is_write) {
                Some(refused) => Err(refused.into()),
                None => Ok(()),
            };
        }
        if let Admission::Wait(ticket) = buffer.admit(request, clock::now())? {
            wait(run, shard, ticket).await?;
            // What ended the wait may be that there are several primaries.
            if let Some(refused) = buffer.forbids(request.is_write) {
                return Err(refused.into());
            }
            self.moves = run.fleet.guards().moves();
        }
        Ok(())
    }

    /// Whether the statement, which ended with this error, is to be sent again: it was not executed, and there is another
    /// primary, or will be. What it left of a transaction that began with it is taken back.
    pub async fn again(&mut self, run: &mut Run<'_>, error: &ExecError) -> bool {
        let ruled_out = !self.waits || self.left == 0 || run.told == Told::Something || run.reserve.is_some();
        if ruled_out || !self.is_sent_again(run.fleet.guards(), error) {
            return false;
        }
        if let Some(fresh) = &self.fresh {
            rollback(run.held, &run.limits).await;
            if run.held.is_empty() {
                *run.transaction = fresh.clone();
            }
        }
        self.left -= 1;
        run.held.is_empty()
    }

    /// Whether what failed so was not executed, and another try would find another primary or wait for one.
    pub(super) fn is_sent_again(&self, guards: &Guards, error: &ExecError) -> bool {
        if self.role == Role::Replica {
            return false;
        }
        match proof(error) {
            Some((_, Proof::NotSent)) => true,
            Some((shard, Proof::PrimaryGone)) => {
                let buffer = guards.buffer(shard);
                buffer.is_buffering() || buffer.moved_since(self.moves)
            }
            Some((_, Proof::Refused | Proof::Answered | Proof::Unknown)) | None => false,
        }
    }
}

/// What an error proves, and of which shard's leg; `None` if it is not a tablet's. Of several legs' the first, which is
/// the one the client would get: of those the others, what they did is undone.
fn proof(error: &ExecError) -> Option<(&ShardId, Proof)> {
    match error {
        ExecError::Tablet { shard, source } => Some((shard, source.proof(Role::Primary))),
        ExecError::Server { shard, error } => {
            let error = TabletError::Server(error.clone());
            Some((shard, error.proof(Role::Primary)))
        }
        ExecError::Several { first, .. } => proof(first),
        ExecError::NotMonotone { source, .. } | ExecError::AllLegsFailed { source } => proof(source),
        _ => None,
    }
}

async fn wait(run: &mut Run<'_>, shard: &ShardId, ticket: Ticket) -> Result<(), ExecError> {
    match run.limits.watch(run.client, ticket.wait()).await {
        Ok(drained) => {
            run.drained.push(drained?);
            Ok(())
        }
        Err(interrupt) => {
            run.count_timeout(interrupt);
            Err(interrupt.into_error(
                shard.to_string(),
                "; it waited for a primary and nothing was executed",
            ))
        }
    }
}
