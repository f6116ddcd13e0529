//! Several legs: sent side by side, gathered into one answer while they stream.
//!
//! All legs belong to the session's own task: no spawn, no channel. The first fatal error drops the others; what they
//! still run is ended by the reaper through the guards' drop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use shardgate_wire::client::{Head, RowEvent};
use shardgate_wire::{OkPacket, StatusFlags};

use super::answer::{Answer, add_ok};
use super::held::Leased;
use super::payload::{self, Payload};
use super::run::Run;
use super::single::lost;
use super::{ExecError, Statement};
use crate::base::ShardId;
use crate::gather::{Gather, GatherError, GatherLimits, Protocol};
use crate::route::Leg;
use crate::tablet::{Sent, TabletError, server_error};

/// How many rows are sent between two looks at the kill switch.
const ROWS_A_TURN: usize = 1024;

/// Runs a statement on several shards.
pub(super) async fn run(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
) -> Result<Answer, ExecError> {
    let shards: Vec<ShardId> = legs.iter().map(|l| l.shard.clone()).collect();
    let mut leases = run.acquire(&shards, statement.role).await?;
    let guarded = statement.is_write && run.transaction.is_active() && !run.implicit;
    if guarded && let Err(e) = on_all(run, &mut leases, SET_SAVEPOINT).await {
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

/// A statement that fails on one shard must leave nothing on the others, as on one server: so it runs behind a savepoint
/// of the gateway's own wherever the client's transaction goes on after an error.
const SET_SAVEPOINT: &str = "SAVEPOINT `shardgate statement`";
const BACK_TO_SAVEPOINT: &str = "ROLLBACK TO SAVEPOINT `shardgate statement`";

/// How long legs that still send rows may take to end after another leg failed, so that the session keeps them.
const TIDY: Duration = Duration::from_secs(1);

/// Runs a statement of the gateway's own on every leg, side by side.
async fn on_all(run: &mut Run<'_>, leases: &mut [Leased], sql: &'static str) -> Result<(), ExecError> {
    let names = ExecError::names(leases.iter().map(|l| &l.shard));
    let all = leases.iter_mut().map(|lease| async move {
        let done = lease.conn.run(sql.as_bytes(), Sent::No).await;
        done.map(|_| ())
            .map_err(|e| ExecError::tablet(lease.shard.clone(), e))
    });
    let all = futures::future::try_join_all(all);
    match run.limits.until_deadline(all).await {
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
    if open < leases.len() {
        // A server rolled its part back as a whole; the parts of the other legs in hand go the same way.
        abandon_transaction(run, leases).await;
    } else if guarded && on_all(run, leases, BACK_TO_SAVEPOINT).await.is_err() {
        run.transaction
            .fail("a statement failed on one shard and could not be undone on the others".into());
    }
}

/// Rolls back the parts of legs in hand after the transaction ended on one of them.
async fn abandon_transaction(run: &mut Run<'_>, leases: &mut [Leased]) {
    for lease in leases.iter_mut().filter(|l| l.in_transaction) {
        if lease.conn.is_usable() {
            // Not answered in time: its drop hands it to the reaper.
            let _ = run.limits.until_deadline(lease.conn.rollback()).await;
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
        (_, 0) => gathered(run, statement, legs, leases).await,
        _ => {
            let shard = legs[0].shard.clone();
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
    let answered: Vec<AtomicBool> = legs.iter().map(|_| AtomicBool::new(false)).collect();
    let each = legs.iter().zip(leases.iter_mut()).zip(&answered);
    let pending = each.map(|((leg, lease), answered)| async move {
        let head = payload::send(&mut lease.conn, &leg.sql, &leg.params, payload).await;
        answered.store(true, Ordering::Relaxed);
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
        run.limits
            .watch(run.client, all)
            .await
            .map(|heads| decide(statement, legs, heads))
    } else {
        run.limits
            .watch(run.client, futures::future::try_join_all(pending))
            .await
    };
    result.unwrap_or_else(|i| {
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

/// What one turn of reading a leg gave: rows, and the end if it came along.
#[derive(Debug, Default)]
struct Turn {
    rows: Vec<Bytes>,
    end: Option<OkPacket>,
}

/// Rows of all legs become one result.
async fn gathered(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
    leases: &mut [Leased],
) -> Result<Answer, ExecError> {
    let protocol = match statement.payload {
        Payload::Text => Protocol::Text,
        Payload::Prepared(_) => Protocol::Binary,
    };
    let shards = legs.iter().map(|l| l.shard.clone()).collect();
    let mut gather = Gather::new(statement.gather, shards, protocol, GatherLimits::default());
    read_columns(run, statement, leases, &mut gather).await?;
    send_columns(run, statement, &gather);
    let mut ends = vec![None; leases.len()];
    let mut answer = Answer::default();
    while !gather.finished() {
        // The deadline is for the first row that reaches the client, whichever legs have sent some.
        let first = answer.rows == 0;
        let turns = read_turn(run, leases, &gather, first).await?;
        take_turns(turns, leases, &mut gather, &mut ends)?;
        send_rows(run, &mut gather, &mut answer).await?;
    }
    finish(run, leases, &ends, &mut answer).await;
    Ok(answer)
}

async fn read_columns(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leases: &mut [Leased],
    gather: &mut Gather,
) -> Result<(), ExecError> {
    let waiting = ExecError::names(leases.iter().map(|l| &l.shard));
    let reading = leases.iter_mut().map(|lease| async move {
        let columns = lease.conn.wire().read_columns().await;
        columns.map_err(|e| ExecError::tablet(lease.shard.clone(), lease.conn.failed(e, Sent::Maybe)))
    });
    let all = match run
        .limits
        .watch(run.client, futures::future::try_join_all(reading))
        .await
    {
        Ok(all) => all?,
        Err(i) => return Err(run.interrupted(i, waiting, statement.is_write)),
    };
    for (leg, columns) in all.into_iter().enumerate() {
        let plain: Vec<Bytes> = match statement.rename_of(leg) {
            Some(rename) => columns.definitions.iter().map(|d| rename.column(d)).collect(),
            None => columns.definitions,
        };
        gather.leg_columns(leg, &plain)?;
    }
    Ok(())
}

fn send_columns(run: &mut Run<'_>, _statement: &Statement<'_>, gather: &Gather) {
    let status = run.client_status(StatusFlags::empty());
    run.client.put_raw_columns(&gather.output_columns(), status, 0);
}

/// Waits until at least one of the wanted legs has something, then takes what every wanted leg has.
async fn read_turn(
    run: &mut Run<'_>,
    leases: &mut [Leased],
    gather: &Gather,
    first: bool,
) -> Result<Vec<(usize, Result<Turn, TabletError>)>, ExecError> {
    let silent = run.limits.tablet_silent;
    let first_shard = leases[0].shard.clone();
    let mut pending: FuturesUnordered<_> = leases
        .iter_mut()
        .enumerate()
        .filter(|(i, _)| gather.wants(*i))
        .map(|(i, lease)| async move { (i, read_leg(lease).await) })
        .collect();
    if pending.is_empty() {
        let what = "rows are neither wanted nor at hand: this is a defect of the gateway";
        return Err(ExecError::Answer {
            shard: first_shard,
            what,
        });
    }
    let ready = async {
        let mut got: Vec<_> = pending.next().await.into_iter().collect();
        // What else is ready comes along; the rest is asked again: reading a row is cancel-safe.
        while let Some(Some(more)) = futures::FutureExt::now_or_never(pending.next()) {
            got.push(more);
        }
        got
    };
    let limited = async {
        match silent.filter(|_| !first) {
            Some(limit) => tokio::time::timeout(limit, ready).await.map_err(|_| limit),
            None => Ok(ready.await),
        }
    };
    let outcome = if first {
        run.limits.watch(run.client, limited).await
    } else {
        super::watch::Limits {
            deadline: None,
            ..run.limits
        }
        .watch(run.client, limited)
        .await
    };
    drop(pending);
    // Named only now: almost every turn ends well.
    let waiting = || {
        let asked = leases.iter().enumerate().filter(|(i, _)| gather.wants(*i));
        ExecError::names(asked.map(|(_, l)| &l.shard))
    };
    match outcome {
        Ok(Ok(turns)) => Ok(turns),
        Ok(Err(after)) => {
            run.metrics.timeouts.handle("tablet_silent").inc();
            Err(ExecError::Deadline {
                after,
                shards: waiting(),
                note: "; its rows stopped coming",
            })
        }
        Err(i) => Err(run.interrupted(i, waiting(), false)),
    }
}

/// One row, and what else was read along with it. Waits only for the first, so that a drop loses nothing.
async fn read_leg(lease: &mut Leased) -> Result<Turn, TabletError> {
    let mut turn = Turn::default();
    let mut event = lease.conn.wire().next_row().await.map(Some);
    loop {
        match event {
            Ok(Some(RowEvent::Row(row))) => turn.rows.push(row),
            Ok(Some(RowEvent::End(end))) => {
                turn.end = Some(end);
                return Ok(turn);
            }
            Ok(Some(RowEvent::Err(e))) => return Err(TabletError::Server(server_error(&e))),
            Ok(None) => return Ok(turn),
            Err(e) => return Err(lease.conn.failed(e, Sent::Maybe)),
        }
        if turn.rows.len() >= ROWS_A_TURN {
            return Ok(turn);
        }
        event = lease.conn.wire().next_row_buffered();
    }
}

fn take_turns(
    turns: Vec<(usize, Result<Turn, TabletError>)>,
    leases: &[Leased],
    gather: &mut Gather,
    ends: &mut [Option<OkPacket>],
) -> Result<(), ExecError> {
    for (leg, turn) in turns {
        let turn = turn.map_err(|e| ExecError::tablet(leases[leg].shard.clone(), e))?;
        for row in turn.rows {
            gather.push_row(leg, row)?;
        }
        if let Some(end) = turn.end {
            gather.leg_done(leg)?;
            ends[leg] = Some(end);
        }
    }
    Ok(())
}

async fn send_rows(run: &mut Run<'_>, gather: &mut Gather, answer: &mut Answer) -> Result<(), ExecError> {
    while let Some(row) = gather.pop().map_err(|e: GatherError| ExecError::from(e))? {
        run.client.put_raw(&row);
        answer.rows += 1;
        run.flush_if_full().await?;
    }
    Ok(())
}

async fn finish(run: &mut Run<'_>, leases: &mut [Leased], ends: &[Option<OkPacket>], answer: &mut Answer) {
    let mut sum = OkPacket::default();
    for (lease, end) in leases.iter_mut().zip(ends) {
        // A leg without an end was stopped early because the window is full. Its own LIMIT bounds what is left.
        let Some(end) = end else {
            if !matches!(run.limits.watch(run.client, rest_of(lease)).await, Ok(Ok(()))) {
                run.note_error(lease).await;
            }
            continue;
        };
        run.note_status(lease, end.status);
        answer.warnings.extend(run.warnings(lease, end.warnings).await);
        add_ok(&mut sum, end);
    }
    run.metrics.rows_returned.add(answer.rows);
    answer.warning_count = sum.warnings;
    run.put_rows_end(&sum, false);
}

/// Reads a leg to its end.
async fn rest_of(lease: &mut Leased) -> Result<(), TabletError> {
    while read_leg(lease).await?.end.is_none() {}
    Ok(())
}
