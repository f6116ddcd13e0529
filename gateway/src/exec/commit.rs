//! Ending a transaction on every shard it is open on.
//!
//! There is no two-phase commit: shards are committed one after the other, in the order they joined. If one fails after
//! another succeeded, the client is told exactly which shards committed, which did not, and of which nobody knows.

use shardgate_wire::stream::Probe;

use super::error::{CommitReport, Unwilling};
use super::held::{Held, Leased};
use super::watch::Limits;
use crate::base::{GatewayError, Role};
use crate::exec::ExecError;
use crate::guard::BufferRefused;
use crate::tablet::{Sent, TabletError};

/// Commits everywhere. A commit is never cut short by the client or by KILL; only the deadline bounds the wait.
pub async fn commit(held: &mut Held, limits: &Limits<'_>) -> Result<(), ExecError> {
    let mut open = held.take_transaction();
    if let Some(refused) = open
        .iter()
        .filter(|l| l.role == Role::Primary)
        .find_map(forbidden)
    {
        roll_back_all(open, held, limits).await;
        return Err(ExecError::CommitRefused(refused));
    }
    if let Some((unwilling, why)) = unwilling(&mut open) {
        return Err(nothing_committed((unwilling, why), open, held, limits).await);
    }
    // The last statement of each shard is known to have succeeded; so the first COMMIT is the one most likely to fail.
    let mut report = CommitReport::default();
    while !open.is_empty() {
        let mut lease = open.remove(0);
        if lease.conn.gate().is_replaced() {
            let failure = Failure::Tablet(lease.conn.superseded(Sent::No));
            let alone = report.committed.is_empty() && open.is_empty();
            let rest = Rest {
                open,
                held,
                limits,
                alone,
            };
            return Err(incomplete(failure, lease, report, rest).await);
        }
        let failure = match limits.until_deadline(lease.conn.commit()).await {
            // Committed, perhaps, on a server that is the primary no longer.
            Ok(Ok(_)) if lease.conn.gate().is_replaced() => {
                Failure::Tablet(lease.conn.superseded(Sent::Maybe))
            }
            Ok(Ok(_)) => {
                report.committed.push(lease.shard.clone());
                lease.in_transaction = false;
                held.put(lease);
                continue;
            }
            Ok(Err(e)) => Failure::Tablet(e),
            Err(_) => Failure::NoAnswer,
        };
        let alone = report.committed.is_empty() && open.is_empty();
        return Err(incomplete(
            failure,
            lease,
            report,
            Rest {
                open,
                held,
                limits,
                alone,
            },
        )
        .await);
    }
    Ok(())
}

fn forbidden(lease: &Leased) -> Option<BufferRefused> {
    lease.conn.gate().shard().buffer().forbids(true)
}

/// Of several shards one that will not commit, and why. Seen without asking it, before another commits.
fn unwilling(open: &mut Vec<Leased>) -> Option<(Leased, Unwilling)> {
    if open.len() < 2 {
        return None;
    }
    let why = |lease: &mut Leased| {
        let gate = lease.conn.gate();
        if gate.is_replaced() {
            Some(Unwilling::Replaced)
        } else if lease.role == Role::Primary && gate.shard().buffer().is_without_primary() {
            Some(Unwilling::Vacant)
        } else if !lease.conn.is_usable() || lease.conn.probe() == Probe::Closed {
            Some(Unwilling::Closed)
        } else {
            None
        }
    };
    let (at, why) = open
        .iter_mut()
        .enumerate()
        .find_map(|(at, lease)| Some((at, why(lease)?)))?;
    Some((open.remove(at), why))
}

async fn nothing_committed(
    (unwilling, why): (Leased, Unwilling),
    others: Vec<Leased>,
    held: &mut Held,
    limits: &Limits<'_>,
) -> ExecError {
    let error = ExecError::NothingCommitted {
        shard: unwilling.shard.clone(),
        why,
        others: ExecError::names(others.iter().map(|l| &l.shard)),
    };
    // Closed, it is rolled back by its server; it may not answer.
    drop_lease(unwilling, held);
    roll_back_all(others, held, limits).await;
    error
}

enum Failure {
    Tablet(TabletError),
    NoAnswer,
}

/// What is left when a commit fails.
struct Rest<'a, 'b> {
    open: Vec<Leased>,
    held: &'a mut Held,
    limits: &'a Limits<'b>,
    /// Whether the failed shard was the only one.
    alone: bool,
}

async fn incomplete(
    failure: Failure,
    lease: Leased,
    mut report: CommitReport,
    rest: Rest<'_, '_>,
) -> ExecError {
    let shard = lease.shard.clone();
    let (known, reason) = match &failure {
        Failure::Tablet(e) => (!e.outcome_unknown(), e.client_error().to_string()),
        Failure::NoAnswer => (false, "no answer to COMMIT within the deadline".to_owned()),
    };
    let nothing_committed = report.committed.is_empty();
    if known {
        report.rolled_back.push(shard.clone());
    } else {
        report.unknown.push(shard.clone());
    }
    if known && lease.conn.is_usable() {
        // A server that takes no writes any more refuses the COMMIT and leaves the transaction open.
        let mut lease = lease;
        roll_back_one(&mut lease, rest.limits).await;
        settle(rest.held, lease);
    } else {
        // Dropped: rolled back by its server, or reaped if it still owes an answer.
        drop_lease(lease, rest.held);
    }
    for mut other in rest.open {
        report.rolled_back.push(other.shard.clone());
        roll_back_one(&mut other, rest.limits).await;
        settle(rest.held, other);
    }
    report.reason.clone_from(&reason);
    match (known, rest.alone || nothing_committed, failure) {
        (true, true, Failure::Tablet(e)) => ExecError::tablet(shard, e),
        (false, true, _) if rest.alone => ExecError::UnknownOutcome {
            shards: shard.to_string(),
            reason,
        },
        _ => ExecError::PartialCommit(report),
    }
}

/// Rolls back everywhere. Never fails for the client: what cannot be told ROLLBACK is closed, and rolled back by its
/// server.
pub async fn rollback(held: &mut Held, limits: &Limits<'_>) {
    let open = held.take_transaction();
    roll_back_all(open, held, limits).await;
}

async fn roll_back_all(open: Vec<Leased>, held: &mut Held, limits: &Limits<'_>) {
    for mut lease in open {
        roll_back_one(&mut lease, limits).await;
        settle(held, lease);
    }
}

/// Puts a rolled-back connection back where it belongs: a lost or busy one is dropped, which closes or reaps it.
fn settle(held: &mut Held, mut lease: Leased) {
    lease.in_transaction = false;
    if lease.conn.is_usable() {
        held.put(lease);
    } else if let Some(claim) = &lease.reserved {
        held.lose(claim.what);
    }
}

async fn roll_back_one(lease: &mut Leased, limits: &Limits<'_>) {
    if !lease.conn.is_usable() {
        return;
    }
    // Not answered in time: the connection still owes an answer, so its drop hands it to the reaper.
    let _ = limits.until_deadline(lease.conn.rollback()).await;
}

/// Closes a connection, and with it what it holds of the session.
fn drop_lease(lease: Leased, held: &mut Held) {
    if let Some(claim) = &lease.reserved {
        held.lose(claim.what);
    }
    if lease.conn.owes_answer() {
        drop(lease);
    } else {
        lease.conn.discard();
    }
}
