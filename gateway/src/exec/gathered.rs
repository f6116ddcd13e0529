//! Rows of several legs become one result while they stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use shardgate_wire::client::RowEvent;
use shardgate_wire::stream::{FLUSH_AT, Share};
use shardgate_wire::{OkPacket, StatusFlags};

use super::answer::{Answer, add_ok};
use super::held::Leased;
use super::payload::Payload;
use super::run::{Run, Told};
use super::shed::Shed;
use super::single::{Silent, silent_for};
use super::watch::{Deadline, Interrupt, Limits};
use super::{ExecError, Statement};
use crate::base::clock;
use crate::gather::{Gather, GatherError, GatherLimits, Protocol};
use crate::guard::Outcome;
use crate::tablet::{Sent, TabletError, server_error};

/// How many rows are sent between two looks at the kill switch.
const ROWS_A_TURN: usize = 1024;

/// What one turn of reading a leg gave: rows, and the end if it came along.
#[derive(Debug, Default)]
struct Turn {
    rows: Vec<Bytes>,
    end: Option<OkPacket>,
}

/// Rows of all legs become one result. A leg that may be shed and fails is left out, and told of in a warning.
pub(super) async fn gathered(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leases: &mut [Leased],
    shed: &mut Shed<'_>,
) -> Result<Answer, ExecError> {
    let protocol = match statement.payload {
        Payload::Text => Protocol::Text,
        Payload::Prepared(_) => Protocol::Binary,
    };
    let shards = leases.iter().map(|l| l.shard.clone()).collect();
    let mut gather = Gather::new(statement.gather, shards, protocol, GatherLimits::default());
    read_columns(run, statement, leases, &mut gather, shed).await?;
    send_columns(run, &gather);
    let mut ends = vec![None; leases.len()];
    let mut answer = Answer::default();
    let mut share = Share::new(Arc::clone(run.memory));
    while !gather.finished() {
        // The deadline is for the first row that reaches the client, whichever legs have sent some.
        let first = answer.rows == 0;
        let turns = read_turn(run, leases, &gather, (first, shed.is_allowed())).await?;
        take_turns(turns, leases, (&mut gather, &mut ends), shed)?;
        check_memory(run, &gather, leases.len(), &mut share)?;
        send_rows(run, leases, &mut gather, &mut answer).await?;
    }
    if gather.is_filled() {
        // All the rows that were asked for: nothing is missing from it.
        shed.forget();
    } else if shed.is_partial() && ends.iter().all(Option::is_none) {
        return Err(shed.nothing_left());
    }
    finish(run, leases, &ends, (&mut answer, shed)).await?;
    Ok(answer)
}

/// What each statement may hold of rows without a share of the memory that all have.
const OWN: usize = 1 << 20;

/// Rows are few at a time, but each of them may be large.
fn check_memory(run: &Run<'_>, gather: &Gather, legs: usize, share: &mut Share) -> Result<(), GatherError> {
    let held = gather.held();
    let beyond = |limit, bound| GatherError::Memory { legs, limit, bound };
    if held > run.query_memory {
        return Err(beyond(run.query_memory, "limits.query_memory"));
    }
    if held > OWN && !share.cover(held, OWN) {
        return Err(beyond(share.limit(), "limits.total_memory"));
    }
    Ok(())
}

async fn read_columns(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leases: &mut [Leased],
    gather: &mut Gather,
    shed: &mut Shed<'_>,
) -> Result<(), ExecError> {
    let deadline = run.limits.attempt_deadline(clock::now());
    let tablet = run.limits.tablet;
    let waiting = ExecError::names(leases.iter().map(|l| &l.shard));
    let reading = leases.iter_mut().map(|lease| async move {
        let columns = by(deadline, lease.conn.wire().read_columns()).await;
        match columns {
            Ok(Ok(columns)) => Ok(columns),
            Ok(Err(e)) => {
                let error = lease.conn.failed(e, Sent::Maybe);
                lease.settle_error(&error, tablet);
                Err(ExecError::tablet(lease.shard.clone(), error))
            }
            Err(passed) => {
                lease.gave_up(tablet);
                Err(Interrupt::Deadline(passed).into_error(lease.shard.to_string(), ""))
            }
        }
    });
    let all = match run
        .limits
        .watch(run.client, futures::future::join_all(reading))
        .await
    {
        Ok(all) => all,
        Err(i) => return Err(run.interrupted(i, waiting, statement.changes())),
    };
    for (leg, columns) in all.into_iter().enumerate() {
        let columns = match columns {
            Ok(columns) => columns,
            Err(e) => {
                shed.leg(&leases[leg].shard, e)?;
                gather.drop_leg(leg)?;
                continue;
            }
        };
        let plain: Vec<Bytes> = match statement.rename_of(leg) {
            Some(rename) => columns.definitions.iter().map(|d| rename.column(d)).collect(),
            None => columns.definitions,
        };
        gather.leg_columns(leg, &plain)?;
    }
    if !gather.has_columns() {
        return Err(shed.nothing_left());
    }
    Ok(())
}

/// Waits for something until a deadline, if there is one.
async fn by<T>(deadline: Option<Deadline>, what: impl Future<Output = T>) -> Result<T, Deadline> {
    match deadline {
        Some(passed) => tokio::time::timeout_at(passed.at, what).await.map_err(|_| passed),
        None => Ok(what.await),
    }
}

fn send_columns(run: &mut Run<'_>, gather: &Gather) {
    run.told = Told::Something;
    let status = run.client_status(StatusFlags::empty());
    run.client.put_raw_columns(&gather.output_columns(), status, 0);
}

type Turns = Vec<(usize, Result<Turn, ExecError>)>;

/// Waits until at least one of the wanted legs has something, then takes what every wanted leg has. `first` says that no
/// row has reached the client yet, `may_shed` that legs from which nothing comes may be left out.
async fn read_turn(
    run: &mut Run<'_>,
    leases: &mut [Leased],
    gather: &Gather,
    (first, may_shed): (bool, bool),
) -> Result<Turns, ExecError> {
    let tablet = run.limits.tablet;
    let idle = leases.iter_mut().enumerate().filter(|(i, _)| !gather.wants(*i));
    idle.for_each(|(_, lease)| lease.waits_for_others(run.work));
    let mut pending: FuturesUnordered<_> = leases
        .iter_mut()
        .enumerate()
        .filter(|(i, _)| gather.wants(*i))
        .map(|(i, lease)| async move { (i, read_leg(lease, tablet).await) })
        .collect();
    if pending.is_empty() {
        drop(pending);
        let what = "rows are neither wanted nor at hand: this is a defect of the gateway";
        return Err(ExecError::Answer {
            shard: leases[0].shard.clone(),
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
    // A deadline holds to the first row; a tablet may be silent for so long from then on.
    let silent = run.limits.tablet_silent.filter(|_| !first);
    let limits = match (first, may_shed) {
        (true, true) => run.limits.attempt(clock::now()),
        (true, false) => run.limits,
        (false, _) => Limits {
            deadline: None,
            ..run.limits
        },
    };
    let limited = async {
        match silent {
            Some(limit) => tokio::time::timeout(limit, ready).await.map_err(|_| limit),
            None => Ok(ready.await),
        }
    };
    let outcome = limits.watch(run.client, limited).await;
    drop(pending);
    let turn = |i: usize, turn: Result<Turn, TabletError>| {
        (i, turn.map_err(|e| ExecError::tablet(leases[i].shard.clone(), e)))
    };
    let interrupt = match outcome {
        Ok(Ok(turns)) => return Ok(turns.into_iter().map(|(i, t)| turn(i, t)).collect()),
        Ok(Err(_)) => None,
        Err(i) => Some(i),
    };
    let asked = leases.iter_mut().enumerate().filter(|(i, _)| gather.wants(*i));
    let (at, mut asked): (Vec<usize>, Vec<&mut Leased>) = asked.unzip();
    let names = ExecError::names(asked.iter().map(|l| &l.shard));
    let one = |lease: &mut Leased, interrupt: Option<Interrupt>| match interrupt {
        None => run.tablet_silent(&mut [lease]),
        Some(i) => {
            run.give_up(lease, i);
            run.interrupted(i, lease.shard.to_string(), false)
        }
    };
    match interrupt {
        None | Some(Interrupt::Deadline(_)) if may_shed => Ok(at
            .into_iter()
            .zip(asked)
            .map(|(i, lease)| (i, Err(one(lease, interrupt))))
            .collect()),
        None => Err(run.tablet_silent(&mut asked)),
        Some(i) => {
            for lease in &mut asked {
                run.give_up(lease, i);
            }
            Err(run.interrupted(i, names, false))
        }
    }
}

/// One row, and what else was read along with it. Waits only for the first, so that a drop loses nothing.
async fn read_leg(lease: &mut Leased, tablet: Option<Duration>) -> Result<Turn, TabletError> {
    let mut turn = Turn::default();
    let mut event = lease.conn.wire().next_row().await.map(Some);
    loop {
        match event {
            Ok(Some(RowEvent::Row(row))) => turn.rows.push(row),
            Ok(Some(RowEvent::End(end))) => {
                turn.end = Some(end);
                lease.settle(Outcome::Success);
                return Ok(turn);
            }
            Ok(Some(RowEvent::Err(e))) => {
                let error = TabletError::Server(server_error(&e));
                lease.settle_error(&error, tablet);
                return Err(error);
            }
            Ok(None) => {
                lease.streams_well();
                return Ok(turn);
            }
            Err(e) => {
                let error = lease.conn.failed(e, Sent::Maybe);
                lease.settle(error.outcome(lease.role));
                return Err(error);
            }
        }
        if turn.rows.len() >= ROWS_A_TURN {
            lease.streams_well();
            return Ok(turn);
        }
        event = lease.conn.wire().next_row_buffered();
    }
}

fn take_turns(
    turns: Turns,
    leases: &[Leased],
    (gather, ends): (&mut Gather, &mut [Option<OkPacket>]),
    shed: &mut Shed<'_>,
) -> Result<(), ExecError> {
    for (leg, turn) in turns {
        let turn = match turn {
            Ok(turn) => turn,
            Err(e) => {
                shed.leg(&leases[leg].shard, e)?;
                gather.drop_leg(leg)?;
                continue;
            }
        };
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

async fn send_rows(
    run: &mut Run<'_>,
    leases: &mut [Leased],
    gather: &mut Gather,
    answer: &mut Answer,
) -> Result<(), ExecError> {
    while let Some(row) = gather.pop().map_err(|e: GatherError| ExecError::from(e))? {
        run.client.put_raw(&row);
        answer.rows += 1;
        if run.client.buffered() >= FLUSH_AT {
            // From here on the client's pace decides how soon the legs are read, which no tablet is to be blamed for.
            leases.iter_mut().for_each(Leased::streamed);
            run.flush_if_full().await?;
        }
    }
    Ok(())
}

async fn finish(
    run: &mut Run<'_>,
    leases: &mut [Leased],
    ends: &[Option<OkPacket>],
    (answer, shed): (&mut Answer, &mut Shed<'_>),
) -> Result<(), ExecError> {
    let mut sum = OkPacket::default();
    for (lease, end) in leases.iter_mut().zip(ends) {
        let Some(end) = end else {
            leave(run, lease).await?;
            continue;
        };
        run.note_status(lease, end.status);
        answer.warnings.extend(run.warnings(lease, end.warnings).await);
        add_ok(&mut sum, end);
    }
    run.metrics.rows_returned.add(answer.rows);
    sum.warnings = sum.warnings.saturating_add(shed.warn(&mut answer.warnings));
    answer.warning_count = sum.warnings;
    run.put_rows_end(&sum, false);
    Ok(())
}

/// Lets go of a leg that was stopped early: because the window is full, when its own LIMIT bounds what is left and that is
/// mostly here already, or because it was left out. What does not end soon is dropped, and reaped; what the session keeps
/// has until the statement's deadline, and takes the transaction with it if that passes.
async fn leave(run: &mut Run<'_>, lease: &mut Leased) -> Result<(), ExecError> {
    if !lease.conn.owes_answer() {
        return Ok(());
    }
    let limits = run.limits.afterwards(clock::now());
    let most = if lease.stays() { None } else { Some(LEAVE) };
    let rest = async {
        loop {
            match silent_for(limits.tablet_silent, read_leg(lease, limits.tablet)).await {
                Ok(Ok(turn)) if turn.end.is_some() => return true,
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(Silent) => return false,
            }
        }
    };
    let rest = silent_for(most, rest);
    if !matches!(limits.watch(run.client, rest).await, Ok(Ok(true))) {
        run.note_error(lease).await;
    }
    if lease.in_transaction && !lease.conn.is_usable() {
        let shard = &lease.shard;
        let why = format!("{shard} would not end sending rows that nobody needs any more");
        return Err(ExecError::TransactionLost(why));
    }
    Ok(())
}

/// How long the rest of a leg that nobody wants may take to arrive, so that its connection need not be closed.
const LEAVE: Duration = Duration::from_millis(50);
