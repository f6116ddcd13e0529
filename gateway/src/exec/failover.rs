//! Waiting for a primary, and sending again what a vanished one provably did not execute.
//!
//! Only work that holds nothing waits: a session with an open transaction or a lock of its own would make others wait for
//! it. The first statement behind BEGIN holds nothing yet.

use smallvec::SmallVec;

use super::commit::rollback;
use super::run::{Run, Told, Vacant};
use super::transaction::Transaction;
use super::{ExecError, Payload, Statement};
use crate::base::{Role, ShardId};
use crate::guard::{Admission, Drained, Guards, Request, Ticket};
use crate::route::Leg;
use crate::tablet::{Proof, TabletError};

/// How often a statement is sent again at most. Each time something else has become of the primary, so this is a stop for
/// a primary that comes and goes.
const MOST: u32 = 4;

/// A statement on its way to primaries that may be replaced under it.
#[derive(Debug)]
pub struct Failover {
    waits: bool,
    /// Changes of primaries counted when it was sent.
    moves: u64,
    left: u32,
    /// The transaction as it was, if this is the first statement of it.
    fresh: Option<Transaction>,
    /// Dropped when the statement is over: the next ones that waited go.
    drained: SmallVec<[Drained; 1]>,
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
        let guards = run.fleet.guards();
        let waits = run.vacant == Vacant::Waits && role == Role::Primary && run.held.is_empty();
        let fresh = (waits && run.transaction.is_active() && !run.implicit).then(|| run.transaction.clone());
        Self {
            waits,
            moves: guards.moves(),
            left: MOST,
            fresh,
            drained: SmallVec::new(),
        }
    }

    /// Waits until each of the shards has a primary that may be asked, as far as anybody knows.
    pub async fn admit(
        &mut self,
        run: &mut Run<'_>,
        (role, shards): (Role, &[ShardId]),
        request: impl Fn() -> Request,
    ) -> Result<(), ExecError> {
        if role == Role::Replica || !run.fleet.guards().any_asks() {
            return Ok(());
        }
        let request = request();
        for shard in shards {
            let buffer = run.fleet.guards().buffer(shard);
            if !self.waits {
                match buffer.forbids(request.is_write) {
                    Some(refused) => return Err(refused.into()),
                    None => continue,
                }
            }
            if let Admission::Wait(ticket) = buffer.admit(request, crate::base::clock::now())? {
                let drained = wait(run, shard, ticket).await?;
                self.drained.push(drained);
            }
        }
        self.moves = run.fleet.guards().moves();
        Ok(())
    }

    /// Whether the statement, which ended with this error, is to be sent again: it was not executed, and there is another
    /// primary, or will be. What it left of a transaction that began with it is taken back.
    pub async fn again(&mut self, run: &mut Run<'_>, error: &ExecError) -> bool {
        if !self.waits || self.left == 0 || run.told == Told::Something {
            return false;
        }
        if !is_sent_again(run.fleet.guards(), error, self.moves) {
            return false;
        }
        if !run.held.is_empty() && self.fresh.is_none() {
            return false;
        }
        if let Some(fresh) = &self.fresh {
            rollback(run.held, &run.limits).await;
            *run.transaction = fresh.clone();
        }
        self.left -= 1;
        self.drained.clear();
        true
    }
}

/// Whether what failed so was not executed, and another try would find another primary or wait for one.
pub(super) fn is_sent_again(guards: &Guards, error: &ExecError, moves: u64) -> bool {
    match proof(error) {
        Some((_, Proof::NotSent)) => true,
        Some((shard, Proof::PrimaryGone)) => {
            let buffer = guards.buffer(shard);
            buffer.is_buffering() || buffer.moved_since(moves)
        }
        Some((_, Proof::Refused | Proof::Answered | Proof::Unknown)) | None => false,
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
        _ => None,
    }
}

async fn wait(run: &mut Run<'_>, shard: &ShardId, ticket: Ticket) -> Result<Drained, ExecError> {
    match run.limits.watch(run.client, ticket.wait()).await {
        Ok(drained) => Ok(drained?),
        Err(interrupt) => {
            run.count_timeout(interrupt);
            Err(interrupt.into_error(
                shard.to_string(),
                "; it waited for a primary and nothing was executed",
            ))
        }
    }
}
