//! One leg: the tablet's answer goes to the client as it comes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use shardgate_wire::client::Head;
use shardgate_wire::relay::{RelayEnd, RelayError, RelayLimits, RelayStats, relay_rows};
use shardgate_wire::{OkPacket, StatusFlags};

use super::answer::Answer;
use super::failover::{self, Failover};
use super::held::{Leased, STALL_WINDOW};
use super::payload;
use super::retry::Tries;
use super::run::{Run, Told};
use super::watch::{Interrupt, Limits};
use super::{ExecError, Statement};
use crate::base::{ShardId, clock};
use crate::guard::{Attempt, Gate, Outcome};
use crate::route::Leg;
use crate::tablet::{Connection, Sent, TabletError, server_error};

/// Runs a statement on the one shard that holds the answer.
pub(super) async fn run(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leg: &Leg,
) -> Result<Answer, ExecError> {
    let shard = std::slice::from_ref(&leg.shard);
    let mut failover = Failover::new(run, statement.role);
    let mut tries = Tries::of(run, statement);
    loop {
        let request = || failover::request(statement, std::slice::from_ref(leg));
        failover.admit(run, shard, request).await?;
        let error = match once(run, statement, leg).await {
            Ok(answer) => return Ok(answer),
            Err(e) => e,
        };
        let again = run.told == Told::Nothing
            && (failover.again(run, &error).await || tries.again(run, &leg.shard, &error).await);
        if !again {
            return Err(error);
        }
    }
}

async fn once(run: &mut Run<'_>, statement: &Statement<'_>, leg: &Leg) -> Result<Answer, ExecError> {
    let mut lease = run.acquire_one(&leg.shard, statement.role).await?;
    let result = answer(run, statement, leg, &mut lease).await;
    if let Err(ExecError::Server { .. }) = &result {
        run.note_error(&mut lease).await;
    }
    run.put_back([lease]);
    result
}

async fn answer(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    leg: &Leg,
    lease: &mut Leased,
) -> Result<Answer, ExecError> {
    let mut limits = run.limits.attempt(clock::now());
    let sending = payload::send(lease, leg, statement.payload, (run.work, &limits));
    let head = limits.watch(run.client, sending).await;
    let mut head = match head {
        Ok(head) => head.map_err(|e| lost(&leg.shard, e, statement.changes() && !lease.in_transaction))?,
        Err(i) => {
            run.give_up(lease, i);
            return Err(run.interrupted(i, leg.shard.to_string(), statement.changes()));
        }
    };
    run.drained.clear();
    let mut answer = Answer::default();
    loop {
        let end = match head {
            Head::Ok(ok) => ok_packet(run, statement, lease, (&mut answer, ok)).await?,
            Head::Err(e) => {
                let error = TabletError::Server(server_error(&e));
                let is_write = statement.changes() && !lease.in_transaction;
                return Err(lost(&leg.shard, error, is_write));
            }
            Head::LocalInfile(_) => {
                return Err(ExecError::Answer {
                    shard: leg.shard.clone(),
                    what: "LOAD DATA LOCAL is not supported",
                });
            }
            Head::ResultSet { .. } => result_set(run, statement, lease, (&mut answer, limits)).await?,
        };
        if !end.status.contains(StatusFlags::MORE_RESULTS) {
            return Ok(answer);
        }
        // The deadline was for the first row; from then on a tablet may only be silent for so long.
        limits.deadline = None;
        let reading = silent_for(run.limits.tablet_silent, read_head(&mut lease.conn));
        head = match limits.watch(run.client, reading).await {
            Ok(Ok(head)) => {
                let head = head.and_then(|head| still_primary(lease, statement).map(|()| head));
                head.map_err(|e| lost(&leg.shard, e, statement.changes() && !lease.in_transaction))?
            }
            Ok(Err(Silent)) => return Err(run.tablet_silent(&mut [lease])),
            Err(i) => return Err(run.interrupted(i, leg.shard.to_string(), statement.changes())),
        };
    }
}

/// A statement that changes something may do so as late as with its answer's end, which is passed on only if its tablet is
/// the primary then.
fn still_primary(lease: &mut Leased, statement: &Statement<'_>) -> Result<(), TabletError> {
    if statement.changes() && lease.conn.gate().is_replaced() {
        return Err(lease.conn.superseded(Sent::Maybe));
    }
    Ok(())
}

/// Nothing came for too long.
pub(super) struct Silent;

pub(super) async fn silent_for<T>(
    limit: Option<Duration>,
    what: impl Future<Output = T>,
) -> Result<T, Silent> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, what).await.map_err(|_| Silent),
        None => Ok(what.await),
    }
}

async fn read_head(conn: &mut Connection) -> Result<Head, TabletError> {
    let head = conn.wire().read_head().await;
    head.map_err(|e| conn.failed(e, Sent::Maybe))
}

/// A statement without rows is done.
async fn ok_packet(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    lease: &mut Leased,
    (answer, ok): (&mut Answer, OkPacket),
) -> Result<OkPacket, ExecError> {
    let more = ok.status.contains(StatusFlags::MORE_RESULTS);
    run.told = Told::Something;
    finish(run, statement, lease, (answer, &ok)).await?;
    answer.affected_rows = Some(ok.affected_rows);
    // Where it cannot be asked, what the server says of the statement is likelier than what was true before it.
    if ok.last_insert_id != 0
        && run
            .generated_id(lease)
            .await
            .is_none_or(|id| id == ok.last_insert_id)
    {
        answer.last_insert_id = ok.last_insert_id;
    }
    run.put_ok(&ok, more);
    Ok(ok)
}

/// Columns and rows pass; the end is written anew.
async fn result_set(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    lease: &mut Leased,
    (answer, limits): (&mut Answer, Limits<'_>),
) -> Result<OkPacket, ExecError> {
    let shard = lease.shard.clone();
    let reading = async {
        let columns = lease.conn.wire().read_columns().await;
        columns.map_err(|e| lease.conn.failed(e, Sent::Maybe))
    };
    let columns = match limits.watch(run.client, reading).await {
        Ok(Ok(columns)) => columns,
        Ok(Err(e)) => {
            lease.settle(e.outcome(lease.role));
            return Err(lost(&shard, e, statement.changes() && !lease.in_transaction));
        }
        Err(i) => {
            run.give_up(lease, i);
            return Err(run.interrupted(i, shard.to_string(), statement.changes()));
        }
    };
    run.told = Told::Something;
    let status = run.client_status(StatusFlags::empty());
    run.client.put_column_count(columns.definitions.len() as u64);
    for definition in &columns.definitions {
        match statement.rename_of(0) {
            Some(rename) => run.client.put_with(|out| rename.put_column(definition, out)),
            None => run.client.put_raw(definition),
        }
    }
    run.client.put_columns_end(status, 0);
    lease.conn.wire().give_back(columns);
    let end = relay(run, statement, lease, (answer, limits)).await?;
    let more = end.status.contains(StatusFlags::MORE_RESULTS);
    finish(run, statement, lease, (answer, &end)).await?;
    answer.affected_rows = None;
    run.put_rows_end(&end, more);
    Ok(end)
}

async fn relay(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    lease: &mut Leased,
    (answer, limits): (&mut Answer, Limits<'_>),
) -> Result<OkPacket, ExecError> {
    let relay_limits = RelayLimits {
        tablet_silent: run.limits.tablet_silent,
        client_stalled: run.limits.client_stalled,
    };
    let mut stats = RelayStats::default();
    let started = AtomicBool::new(false);
    let gate = Arc::clone(lease.conn.gate());
    let result = {
        let relaying = relay_rows(lease.conn.wire(), run.client, relay_limits, &mut stats, |_| {
            started.store(true, Ordering::Relaxed);
        });
        let stream = Stream {
            started: &started,
            attempt: &mut lease.attempt,
            gate: &gate,
        };
        stream.until_end(relaying, &limits).await
    };
    answer.rows += stats.rows;
    run.metrics.rows_returned.add(stats.rows);
    let is_write = statement.changes() && !lease.in_transaction;
    match result {
        Ok(Ok(RelayEnd::End(end))) => {
            lease.settle(Outcome::Success);
            still_primary(lease, statement).map_err(|e| lost(&lease.shard, e, is_write))?;
            Ok(end)
        }
        Ok(Ok(RelayEnd::Err(e))) => {
            let error = server_error(&e);
            lease.settle_error(&TabletError::Server(error.clone()), run.limits.tablet);
            let shard = lease.shard.clone();
            Err(ExecError::Server { shard, error })
        }
        Ok(Err(RelayError::Tablet { source, .. })) => {
            let error = lease.conn.failed(source, Sent::Maybe);
            lease.settle(error.outcome(lease.role));
            Err(lost(&lease.shard, error, is_write))
        }
        Ok(Err(RelayError::TabletSilent { .. })) => Err(run.tablet_silent(&mut [lease])),
        Ok(Err(RelayError::Client(_))) => Err(ExecError::ClientGone),
        Ok(Err(RelayError::ClientStalled)) => {
            run.metrics.timeouts.handle("client_stalled").inc();
            let limit = run.limits.client_stalled.unwrap_or_default();
            Err(ExecError::ClientStalled(limit))
        }
        Err(i) => {
            run.give_up(lease, i);
            Err(run.interrupted(i, lease.shard.to_string(), statement.changes()))
        }
    }
}

/// Rows on their way from a tablet to the client.
struct Stream<'a> {
    /// Whether the first rows went out.
    started: &'a AtomicBool,
    attempt: &'a mut Option<Attempt>,
    gate: &'a Gate,
}

impl Stream<'_> {
    /// Waits for a relay. The deadline holds until the first rows went out; from then on the relay's own limits hold.
    async fn until_end<T>(
        self,
        relaying: impl Future<Output = T>,
        limits: &Limits<'_>,
    ) -> Result<T, Interrupt> {
        tokio::pin!(relaying);
        let mut deadline_holds = true;
        // Made only for a stream that is not over at once.
        let mut settles = None;
        let mut noted = false;
        loop {
            let step = std::future::poll_fn(|cx| match relaying.as_mut().poll(cx) {
                Poll::Ready(end) => Poll::Ready(Some(end)),
                Poll::Pending if !noted && self.started.load(Ordering::Relaxed) => {
                    noted = true;
                    Poll::Ready(None)
                }
                Poll::Pending => Poll::Pending,
            });
            tokio::select! {
                biased;
                end = step => match end {
                    Some(end) => return Ok(end),
                    None => {
                        deadline_holds = false;
                        settles = Some(Box::pin(tokio::time::sleep(STALL_WINDOW)));
                    }
                },
                kill = limits.kill.thrown() => return Err(Interrupt::Killed(kill)),
                passed = limits.expired(), if deadline_holds => return Err(Interrupt::Deadline(passed)),
                () = wait(&mut settles), if settles.is_some() => {
                    settles = None;
                    if let Some(attempt) = self.attempt.take() {
                        attempt.record(self.gate, Outcome::Success, clock::now());
                    }
                }
            }
        }
    }
}

async fn wait(timer: &mut Option<Pin<Box<tokio::time::Sleep>>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

/// What is the same behind an OK and behind rows: the transaction's state, and warnings while they can be had.
async fn finish(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    lease: &mut Leased,
    (answer, end): (&mut Answer, &OkPacket),
) -> Result<(), ExecError> {
    run.note_status(lease, end.status);
    answer.warning_count = end.warnings;
    if !end.status.contains(StatusFlags::MORE_RESULTS) {
        answer.warnings = run.warnings(lease, end.warnings).await;
        if run.leaves.counts {
            let asked = run.ask_counts(lease, answer).await;
            asked.map_err(|why| without_counts(statement, lease, &why))?;
        }
    }
    Ok(())
}

/// The error of a statement that was executed, and whose counts cannot be had.
fn without_counts(statement: &Statement<'_>, lease: &Leased, why: &str) -> ExecError {
    let reason = format!("what FOUND_ROWS() and LAST_INSERT_ID() answer after it could not be asked: {why}");
    let shard = lease.shard.clone();
    if statement.changes() && !lease.in_transaction {
        return ExecError::UnknownOutcome {
            shards: shard.to_string(),
            reason,
        };
    }
    ExecError::tablet(
        shard,
        TabletError::Lost {
            tablet: lease.conn.info().alias.clone(),
            reason,
        },
    )
}

/// A tablet's error on a leg. For a write that was sent outside a transaction, losing the answer means that its outcome is
/// unknown; inside one, that it is rolled back with the rest.
pub(super) fn lost(shard: &ShardId, error: TabletError, is_write: bool) -> ExecError {
    if is_write && error.outcome_unknown() {
        return ExecError::UnknownOutcome {
            shards: shard.to_string(),
            reason: error.to_string(),
        };
    }
    ExecError::tablet(shard.clone(), error)
}
