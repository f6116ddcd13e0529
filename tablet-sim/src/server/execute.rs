//! Runs one statement on a connection: its faults, its locks, its limits, and its answer.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shardgate_sql::StatementKind;
use shardgate_wire::codec::OkPacket;
use shardgate_wire::{StatusFlags, WireError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::conn::{Connection, End};
use super::err_packet;
use super::results::{ChannelSink, Chunk, Protocol, QUEUE};
use crate::engine::parse::Parsed;
use crate::engine::session::{Done, Outcome, Session};
use crate::error::{SqlError, SqlResult};
use crate::faults::Verdict;

/// What came of waiting.
enum Waited {
    /// The time passed, the lock is held.
    Done,
    Failed(SqlError),
}

impl Connection {
    /// Runs a statement and answers. `more`: another result follows. Whether it went well.
    pub(super) async fn statement(
        &mut self,
        parsed: Parsed,
        protocol: Protocol,
        more: bool,
    ) -> Result<bool, End> {
        let verdict = self.tablet.faults.judge(Some(&parsed.text));
        let database = self.session()?.db.clone();
        self.enlisted.process.begin(
            &parsed.text,
            database.as_deref(),
            verdict.ignore_kill || verdict.black_hole,
        );
        self.tablet.questions.fetch_add(1, Ordering::Relaxed);
        if parsed.class.kind == StatementKind::Select {
            self.tablet.reads.fetch_add(1, Ordering::Relaxed);
        }
        let out = self.statement_inner(parsed, protocol, more, &verdict).await;
        let database = self.session.as_ref().and_then(|s| s.db.clone());
        self.enlisted.process.end(database.as_deref());
        out
    }

    async fn statement_inner(
        &mut self,
        parsed: Parsed,
        protocol: Protocol,
        more: bool,
        verdict: &Verdict,
    ) -> Result<bool, End> {
        if let Some(e) = self.faults_before(verdict).await? {
            return Ok(self.fail(&e));
        }
        if parsed.class.kind == StatementKind::Kill {
            return match self.kill(&parsed) {
                Ok(()) => self.ok(&Done::default(), more).map(|()| true),
                Err(e) => Ok(self.fail(&e)),
            };
        }
        let limit = self.session()?.time_limit(&parsed);
        let deadline = limit.as_ref().map(|(time, _)| Instant::now() + *time);
        if self.session()?.needs_lock(&parsed) {
            match self.write_lock(deadline).await? {
                Waited::Done => {}
                Waited::Failed(e) => {
                    let e = self.limit_error(e, limit.as_ref(), deadline);
                    return Ok(self.fail(&e));
                }
            }
        }
        let out = self.run(parsed, protocol, verdict, deadline).await?;
        match out {
            Ok(Some(done)) => {
                if verdict.lose_ok {
                    return Err(End::Reset);
                }
                self.ok(&done, more).map(|()| true)
            }
            Ok(None) => {
                if verdict.lose_ok {
                    return Err(End::Reset);
                }
                let end = OkPacket {
                    warnings: self.warnings()?,
                    ..OkPacket::with_status(self.status(more)?)
                };
                self.conn.put_rows_end(&end);
                Ok(true)
            }
            Err(e) => {
                let e = self.limit_error(e, limit.as_ref(), deadline);
                Ok(self.fail(&e))
            }
        }
    }

    /// An interruption at the deadline is the deadline's.
    #[allow(clippy::unused_self)] // reads as a step of the statement
    fn limit_error(
        &self,
        e: SqlError,
        limit: Option<&(Duration, SqlError)>,
        deadline: Option<Instant>,
    ) -> SqlError {
        match (limit, deadline) {
            (Some((_, late)), Some(at)) if e.code == 1317 && Instant::now() >= at => late.clone(),
            _ => e,
        }
    }

    /// The faults that strike before a statement runs. An error to answer instead, if one.
    async fn faults_before(&mut self, verdict: &Verdict) -> Result<Option<SqlError>, End> {
        if verdict.black_hole {
            // Deaf to KILL, too. That a client has closed is noticed, so that its place is free again; it cannot tell.
            tokio::select! {
                () = self.stop.cancelled() => {}
                _ = self.conn.watch_closed() => {}
            }
            return Err(End::Quiet);
        }
        if !verdict.delay.is_zero()
            && let Waited::Failed(e) = self.wait(Some(verdict.delay)).await?
        {
            return Ok(Some(e));
        }
        if verdict.reset {
            return Err(End::Reset);
        }
        if verdict.hang
            && let Waited::Failed(e) = self.wait(None).await?
        {
            return Ok(Some(e));
        }
        Ok(verdict.error.clone())
    }

    /// Waits, unless killed or left alone.
    async fn wait(&mut self, time: Option<Duration>) -> Result<Waited, End> {
        let process = std::sync::Arc::clone(&self.enlisted.process);
        let timer = async {
            match time {
                Some(t) => tokio::time::sleep(t).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => Ok(Waited::Done),
            () = process.killed() => Ok(Waited::Failed(SqlError::interrupted())),
            () = process.dead.cancelled() => Err(End::Killed),
            () = self.stop.cancelled() => Err(End::Shutdown),
            gone = self.conn.watch_closed() => Err(End::Wire(gone)),
        }
    }

    async fn write_lock(&mut self, deadline: Option<Instant>) -> Result<Waited, End> {
        let process = std::sync::Arc::clone(&self.enlisted.process);
        let lock = self.tablet.write_lock();
        // Taken at once where it is free: most statements pay nothing for the waits below.
        if let Ok(guard) = std::sync::Arc::clone(&lock).try_lock_owned() {
            self.session()?.take_lock(guard);
            return Ok(Waited::Done);
        }
        let patience = Instant::now() + self.session()?.lock_wait();
        let limit = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let guard = tokio::select! {
            guard = lock.lock_owned() => guard,
            () = tokio::time::sleep_until(patience) => return Ok(Waited::Failed(SqlError::lock_wait())),
            () = limit => return Ok(Waited::Failed(SqlError::interrupted())),
            () = process.killed() => return Ok(Waited::Failed(SqlError::interrupted())),
            () = process.dead.cancelled() => return Err(End::Killed),
            () = self.stop.cancelled() => return Err(End::Shutdown),
            gone = self.conn.watch_closed() => return Err(End::Wire(gone)),
        };
        self.session()?.take_lock(guard);
        Ok(Waited::Done)
    }

    /// Runs a statement on the blocking pool and sends its rows as they come. `None`: rows were sent.
    async fn run(
        &mut self,
        parsed: Parsed,
        protocol: Protocol,
        verdict: &Verdict,
        mut deadline: Option<Instant>,
    ) -> Result<SqlResult<Option<Done>>, End> {
        let (sender, mut receiver) = mpsc::channel(QUEUE);
        let mut sink = ChannelSink::new(sender, protocol);
        sink.pace = verdict.slow_rows;
        sink.stall = verdict.stall;
        let mut session = self.session.take().ok_or(End::Quiet)?;
        let task = tokio::task::spawn_blocking(move || {
            let out = session.execute(&parsed, &mut sink);
            (session, out, sink.finish())
        });
        let mut task = pin!(task);
        let mut rows = 0u64;
        let ended = loop {
            let chunk = tokio::select! {
                biased;
                Some(chunk) = receiver.recv() => chunk,
                ended = &mut task => break ended,
                ended = self.interruption(deadline) => {
                    self.enlisted.process.abort();
                    if let Some(end) = ended {
                        // Let the engine stop before its session is given up.
                        receiver.close();
                        let back = task.await;
                        self.session = back.ok().map(|(session, ..)| session);
                        return Err(end);
                    }
                    // The deadline. The engine ends with its error; until then it may have to be rid of its chunks.
                    deadline = None;
                    continue;
                }
            };
            if let Err(end) = self.send_chunk(&chunk, &mut rows, verdict).await {
                self.enlisted.process.abort();
                receiver.close();
                let back = task.await;
                self.session = back.ok().map(|(session, ..)| session);
                return Err(end);
            }
            // A stream that never pauses must not outrun its deadline.
            if deadline.is_some_and(|at| at <= Instant::now()) {
                self.enlisted.process.abort();
                deadline = None;
            }
        };
        let Ok((session, out, rest)) = ended else {
            return Err(End::Quiet);
        };
        self.session = Some(session);
        // Chunks that came in together with the end.
        while let Ok(chunk) = receiver.try_recv() {
            self.send_chunk(&chunk, &mut rows, verdict).await?;
        }
        match out {
            Ok(Outcome::Ok(done)) => Ok(Ok(Some(done))),
            Ok(Outcome::Rows) => {
                self.send_chunk(&rest, &mut rows, verdict).await?;
                Ok(Ok(None))
            }
            Err(e) => Ok(Err(e)),
        }
    }

    /// Resolves when the running statement must stop; `None` is its deadline.
    async fn interruption(&mut self, deadline: Option<Instant>) -> Option<End> {
        let limit = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let dead = self.enlisted.process.dead.clone();
        tokio::select! {
            () = limit => None,
            () = dead.cancelled() => Some(End::Killed),
            () = self.stop.cancelled() => Some(End::Shutdown),
            gone = self.conn.watch_closed() => Some(End::Wire(gone)),
        }
    }

    /// Sends part of a result. A client that does not read is waited for, unless it is killed.
    async fn send_chunk(&mut self, chunk: &Chunk, rows: &mut u64, verdict: &Verdict) -> Result<(), End> {
        if let Some(columns) = &chunk.columns {
            let status = StatusFlags(if self.session.is_some() {
                self.status(false)?.0
            } else {
                self.last_status
            });
            self.conn.put_columns(columns, status, 0);
        }
        for row in chunk.rows() {
            self.fault_on_row(*rows, verdict).await?;
            *rows += 1;
            self.conn.put_raw(row);
            if self.conn.buffered() >= shardgate_wire::stream::FLUSH_AT {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn fault_on_row(&mut self, rows: u64, verdict: &Verdict) -> Result<(), End> {
        if let Some((after, time)) = verdict.stall
            && rows == after
        {
            self.flush().await?;
            if let Waited::Failed(_) = self.wait(time).await? {
                return Err(End::Killed);
            }
        }
        if let Some(pace) = verdict.slow_rows {
            self.flush().await?;
            if let Waited::Failed(_) = self.wait(Some(pace)).await? {
                return Err(End::Killed);
            }
        }
        Ok(())
    }

    /// Sends what is buffered; a killed connection does not wait for its client.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        let dead = self.enlisted.process.dead.clone();
        tokio::select! {
            sent = self.conn.flush() => sent.map_err(End::Wire),
            () = dead.cancelled() => Err(End::Quiet),
            () = self.stop.cancelled() => Err(End::Quiet),
        }
    }

    fn warnings(&mut self) -> Result<u16, End> {
        Ok(u16::try_from(self.session()?.warnings.len()).unwrap_or(u16::MAX))
    }

    pub(super) fn status(&mut self, more: bool) -> Result<StatusFlags, End> {
        let mut status = StatusFlags(self.session()?.status());
        self.last_status = status.0;
        status.set(StatusFlags::MORE_RESULTS, more);
        Ok(status)
    }

    /// Answers OK.
    pub(super) fn ok(&mut self, done: &Done, more: bool) -> Result<(), End> {
        let ok = OkPacket {
            affected_rows: done.affected,
            last_insert_id: done.insert_id,
            warnings: self.warnings()?,
            info: done.info.clone().into(),
            ..OkPacket::with_status(self.status(more)?)
        };
        self.conn.put_ok(&ok);
        Ok(())
    }

    /// Answers with an error; `false`: it did not go well.
    pub(super) fn fail(&mut self, e: &SqlError) -> bool {
        self.conn.put_err(&err_packet(e));
        false
    }

    /// KILL [HARD | SOFT] [CONNECTION | QUERY] id.
    fn kill(&self, parsed: &Parsed) -> SqlResult<()> {
        let mut at = 1;
        if parsed.is(at, "HARD") || parsed.is(at, "SOFT") {
            at += 1;
        }
        let query_only = parsed.is(at, "QUERY");
        if query_only || parsed.is(at, "CONNECTION") {
            at += 1;
        }
        let id = parsed.word(at).and_then(|w| w.parse().ok());
        let id = id.ok_or_else(|| SqlError::syntax(format!("near '{}'", parsed.word(at).unwrap_or(""))))?;
        self.tablet.kill(id, query_only)
    }

    pub(super) fn session(&mut self) -> Result<&mut Box<Session>, End> {
        self.session.as_mut().ok_or(End::Quiet)
    }
}

/// Why a connection is over, from an error on its socket.
impl From<WireError> for End {
    fn from(e: WireError) -> Self {
        Self::Wire(e)
    }
}
