//! Several legs: sent side by side, gathered into one answer while they stream.
//!
//! All legs belong to the session's own task: no spawn, no channel. The first fatal error drops the others; what they
//! still run is ended by the reaper through the guards' drop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::client::Head;
use shardgate_wire::{OkPacket, StatusFlags};

use super::answer::{Answer, add_ok};
use super::failover::Failover;
use super::gathered::gathered;
use super::held::Leased;
use super::payload::{self, Payload};
use super::run::Run;
use super::shed::Shed;
use super::single::lost;
use super::watch::Limits;
use super::{ExecError, Rename, Statement, fan};
use crate::base::{ShardId, clock};
use crate::route::Leg;
use crate::tablet::{Sent, server_error};

/// Runs a statement on several shards, all of whose connections it takes first.
pub(super) async fn run(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    shards: &[ShardId],
    legs: &[Leg],
) -> Result<Answer, ExecError> {
    let mut leases = run.acquire(shards, statement.role).await?;
    let guarded = statement.is_write && run.transaction.is_active() && !run.implicit;
    let limits = run.limits;
    if guarded && let Err(e) = on_all(&limits, &mut leases, SET_SAVEPOINT).await {
        run.put_back(leases);
        return Err(e);
    }
    let result = answer(run, statement, legs, &mut leases).await;
    if result.is_err() {
        end_what_stays(&mut leases).await;
        if run.transaction.is_active() {
            tidy_after_error(run, &mut leases, guarded).await;
        }
    }
    run.put_back(leases);
    result
}

/// Whether each leg may go its own way: a read that no transaction, lock or other state of the session ties to
/// connections it holds.
pub(super) fn reads_freely(run: &Run<'_>, statement: &Statement<'_>, legs: &[Leg]) -> bool {
    !statement.is_write
        && !run.transaction.is_active()
        && run.reserve.is_none()
        && run.held.lost().is_none()
        && run.held.reserved().is_none()
        && !legs
            .iter()
            .any(|l| run.held.find(&l.shard, statement.role).is_some())
}

/// A read on its own.
pub(super) async fn read(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
    failover: &mut Failover,
) -> Result<Answer, ExecError> {
    let mut shed = Shed::of(run, statement);
    let asked = fan::ask(run, statement, legs, (&mut shed, failover)).await?;
    run.drained.clear();
    if asked.is_empty() {
        return Err(shed.nothing_left());
    }
    let renames: Vec<Rename>;
    let mut statement = *statement;
    if asked.len() < legs.len() && !statement.renames.is_empty() {
        renames = asked
            .iter()
            .filter_map(|a| statement.renames.get(a.index).cloned())
            .collect();
        statement.renames = &renames;
    }
    let mut leases = Vec::with_capacity(asked.len());
    let mut heads = Vec::with_capacity(asked.len());
    for leg in asked {
        leases.push(leg.lease);
        heads.push(leg.head);
    }
    let result = one_answer(run, &statement, heads, &mut leases, &mut shed).await;
    run.put_back(leases);
    result.map_err(|e| shed.refuse(e))
}

/// A statement that fails on one shard must leave nothing on the others, as on one server: so it runs behind a savepoint
/// of the gateway's own wherever the client's transaction goes on after an error.
const SET_SAVEPOINT: &str = "SAVEPOINT `shardgate statement`";
const BACK_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT `shardgate statement`";

/// How long legs that still send rows may take to end after another leg failed, so that the session keeps them.
const TIDY: Duration = Duration::from_secs(1);

/// Runs a statement of the gateway's own on every leg, side by side.
async fn on_all(limits: &Limits<'_>, leases: &mut [Leased], sql: &'static str) -> Result<(), ExecError> {
    let names = ExecError::names(leases.iter().map(|l| &l.shard));
    let all = leases.iter_mut().map(|lease| async move {
        let done = lease.conn.run(sql.as_bytes(), Sent::No).await;
        done.map(|_| ())
            .map_err(|e| ExecError::tablet(lease.shard.clone(), e))
    });
    let all = futures::future::try_join_all(all);
    match limits.until_deadline(all).await {
        Ok(done) => done.map(|_| ()),
        Err(interrupt) => Err(interrupt.into_error(names, "; nothing was executed")),
    }
}

/// After a statement failed on some leg: lets the legs that the session keeps end, be it for its transaction or for a lock
/// or another state of its own. One that does not end in time is reaped, and takes with it what it held.
async fn end_what_stays(leases: &mut [Leased]) {
    let rest = leases
        .iter_mut()
        .filter(|l| l.stays() && l.conn.owes_answer())
        .map(|l| l.conn.drain());
    let _ = tokio::time::timeout(TIDY, futures::future::join_all(rest)).await;
}

/// Makes the transaction's parts agree again after a statement failed on some of its legs, or loses the transaction.
async fn tidy_after_error(run: &mut Run<'_>, leases: &mut [Leased], guarded: bool) {
    for lease in leases.iter_mut() {
        run.note_error(lease).await;
    }
    let open = leases.iter().filter(|l| l.in_transaction).count();
    let limits = run.limits.afterwards(clock::now());
    if open < leases.len() {
        // A server rolled its part back as a whole; the parts of the other legs in hand go the same way.
        abandon_transaction(&limits, leases).await;
    } else if guarded && on_all(&limits, leases, BACK_TO_SAVEPOINT).await.is_err() {
        run.transaction
            .fail("a statement failed on one shard and could not be undone on the others".into());
    }
}

/// Rolls back the parts of legs in hand after the transaction ended on one of them.
async fn abandon_transaction(limits: &Limits<'_>, leases: &mut [Leased]) {
    for lease in leases.iter_mut().filter(|l| l.in_transaction) {
        if lease.conn.is_usable() {
            // Not answered in time: its drop hands it to the reaper.
            let _ = limits.until_deadline(lease.conn.rollback()).await;
        }
        lease.in_transaction = false;
    }
}

async fn answer(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
    leases: &mut [Leased],
) -> Result<Answer, ExecError> {
    let heads = send_all(run, statement, legs, leases).await?;
    // What is held together, in a transaction or by state, is not answered in part.
    let mut shed = Shed::nothing(run.metrics);
    one_answer(run, statement, heads, leases, &mut shed).await
}

/// The legs' answers as one.
async fn one_answer(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    heads: Vec<Head>,
    leases: &mut [Leased],
    shed: &mut Shed<'_>,
) -> Result<Answer, ExecError> {
    let mut oks = Vec::new();
    let mut sets = 0;
    for (leg, (lease, head)) in leases.iter().zip(heads).enumerate() {
        match head {
            Head::Ok(ok) => oks.push(ok),
            Head::ResultSet { .. } => sets += 1,
            Head::Err(e) => {
                let mut error = server_error(&e);
                if let Some(text) = statement.divided.and_then(|d| d.message(leg, &error.message)) {
                    error.message = text.into();
                }
                return Err(ExecError::Server {
                    shard: lease.shard.clone(),
                    error,
                });
            }
            Head::LocalInfile(_) => {
                let what = "LOAD DATA LOCAL is not supported";
                return Err(ExecError::Answer {
                    shard: lease.shard.clone(),
                    what,
                });
            }
        }
    }
    match (sets, oks.len()) {
        (0, _) => added_up(run, statement, leases, &oks).await,
        (_, 0) => gathered(run, statement, leases, shed).await,
        _ => {
            let shard = leases[0].shard.clone();
            Err(ExecError::Answer {
                shard,
                what: "some shards answered with rows and others without",
            })
        }
    }
}

/// Sends every leg's statement and reads the first packet of every answer, side by side. Outside a transaction a read's
/// first error drops the other legs; elsewhere all are waited for, since what they did must be known.
async fn send_all(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
    leases: &mut [Leased],
) -> Result<Vec<Head>, ExecError> {
    let payload: Payload<'_> = statement.payload;
    let is_write = statement.is_write;
    let wait_for_all = is_write || leases.iter().any(Leased::stays);
    let work = run.work;
    let limits = run.limits.attempt(clock::now());
    let answered: Vec<AtomicBool> = legs.iter().map(|_| AtomicBool::new(false)).collect();
    let each = legs.iter().zip(leases.iter_mut()).zip(&answered);
    let all_answered = || answered.iter().all(|a| a.load(Ordering::Relaxed));
    let pending = each.map(|((leg, lease), answered)| async move {
        let head = payload::send(lease, leg, payload, (work, &limits)).await;
        answered.store(true, Ordering::Relaxed);
        if !all_answered() {
            lease.waits_for_others(work);
        }
        match head {
            Ok(Head::Err(e)) if !wait_for_all => Err(ExecError::Server {
                shard: leg.shard.clone(),
                error: server_error(&e),
            }),
            head => head.map_err(|e| lost(&leg.shard, e, is_write && !lease.in_transaction)),
        }
    });
    let result = if wait_for_all {
        let all = futures::future::join_all(pending);
        limits
            .watch(run.client, all)
            .await
            .map(|heads| decide(statement, legs, heads))
    } else {
        limits
            .watch(run.client, futures::future::try_join_all(pending))
            .await
    };
    result.unwrap_or_else(|i| {
        for (lease, _) in leases
            .iter_mut()
            .zip(&answered)
            .filter(|(_, done)| !done.load(Ordering::Relaxed))
        {
            run.give_up(lease, i);
        }
        let silent = legs
            .iter()
            .zip(&answered)
            .filter(|(_, done)| !done.load(Ordering::Relaxed));
        let waiting = ExecError::names(silent.map(|(leg, _)| &leg.shard));
        Err(run.interrupted(i, waiting, is_write))
    })
}

/// The heads of a write's legs, or its most useful error: an unknown outcome first, then a server's own error, then the
/// rest. DDL is not undone where it succeeded, so its error names those shards.
fn decide(
    statement: &Statement<'_>,
    legs: &[Leg],
    heads: Vec<Result<Head, ExecError>>,
) -> Result<Vec<Head>, ExecError> {
    let failed = |head: &Result<Head, ExecError>| !matches!(head, Ok(Head::Ok(_) | Head::ResultSet { .. }));
    if statement.is_ddl && heads.iter().any(failed) && !heads.iter().all(failed) {
        let (bad, good): (Vec<_>, Vec<_>) = legs.iter().zip(&heads).partition(|(_, head)| failed(head));
        let reason = bad.first().map_or_else(String::new, |(_, head)| match head {
            Ok(Head::Err(e)) => e.to_string(),
            Ok(_) => String::new(),
            Err(e) => e.to_string(),
        });
        return Err(ExecError::PartialDdl {
            done: ExecError::names(good.iter().map(|(l, _)| &l.shard)),
            failed: ExecError::names(bad.iter().map(|(l, _)| &l.shard)),
            reason,
        });
    }
    let rank = |e: &ExecError| match e {
        ExecError::UnknownOutcome { .. } => 0,
        ExecError::Server { .. } => 1,
        _ => 2,
    };
    let mut worst: Option<ExecError> = None;
    let mut good = Vec::with_capacity(heads.len());
    for head in heads {
        match head {
            Ok(head) => good.push(head),
            Err(e) if worst.as_ref().is_none_or(|w| rank(&e) < rank(w)) => worst = Some(e),
            Err(_) => {}
        }
    }
    worst.map_or(Ok(good), Err)
}

/// Statements without rows: one OK for all.
async fn added_up(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leases: &mut [Leased],
    oks: &[OkPacket],
) -> Result<Answer, ExecError> {
    let mut sum = OkPacket::default();
    let mut answer = Answer::default();
    for (leg, (lease, ok)) in leases.iter_mut().zip(oks).enumerate() {
        if ok.status.contains(StatusFlags::MORE_RESULTS) {
            let what = "several results from several shards";
            return Err(ExecError::Answer {
                shard: lease.shard.clone(),
                what,
            });
        }
        run.note_status(lease, ok.status);
        let mut warnings = run.warnings(lease, ok.warnings).await;
        let mut ok = ok.clone();
        if let Some(divided) = statement.divided {
            for warning in &mut warnings {
                if let Some(text) = divided.message(leg, &warning.message) {
                    warning.message = text;
                }
            }
            if ok.info.is_empty() {
                let info = divided.info(leg, ok.affected_rows, ok.warnings);
                ok.info = info.map(Bytes::from).unwrap_or_default();
            }
        }
        answer.warnings.extend(warnings);
        add_ok(&mut sum, &ok);
    }
    // The rows of a sharded table bring their ids along: none was generated, so LAST_INSERT_ID() stays as it was.
    sum.last_insert_id = oks.get(statement.insert_id_leg).map_or(0, |ok| ok.last_insert_id);
    answer.affected_rows = Some(sum.affected_rows);
    answer.warning_count = sum.warnings;
    answer.ok = Some(sum);
    Ok(answer)
}
