//! What a statement needs to run: the session's things, lent for one statement.

use std::sync::Arc;

use bytes::Bytes;
use shardgate_wire::codec::text;
use shardgate_wire::stream::FLUSH_AT;
use shardgate_wire::{ClientConn, OkPacket, StatusFlags};

use super::answer::{Answer, Warning};
use super::held::{Held, Leased};
use super::transaction::{Transaction, TransactionState};
use super::watch::{Interrupt, Limits};
use super::{ExecError, warnings};
use crate::balance::Fleet;
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId};
use crate::tablet::{Pool, PooledConn, Sent, SettingName, Settings, TabletError};

/// Whether a transaction may span shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionMode {
    /// A statement for a second shard is refused.
    Single,
    /// Shards are committed one after the other.
    #[default]
    Multi,
}

/// The session's things for one statement.
#[derive(Debug)]
pub struct Run<'a> {
    /// Tablets and their pools.
    pub fleet: &'a Fleet,
    /// Counters.
    pub metrics: &'a Metrics,
    /// The client.
    pub client: &'a mut ClientConn,
    /// Connections the session keeps.
    pub held: &'a mut Held,
    /// The session's transaction.
    pub transaction: &'a mut Transaction,
    /// The session's settings.
    pub settings: &'a Settings,
    /// What may end the statement early.
    pub limits: Limits<'a>,
    /// Whether a transaction may span shards.
    pub mode: TransactionMode,
    /// The session's own status flags; `MORE_RESULTS` if another statement follows.
    pub status: StatusFlags,
    /// Whether the client counts found rows.
    pub found_rows: bool,
    /// What session state this statement leaves on its connection, if any.
    pub reserve: Option<&'static str>,
    /// Whether the statement leaves counts behind that must be asked for at once.
    pub leaves_counts: bool,
    /// Settings that the statement may change on its connection behind the gateway's back.
    pub unknown: &'a [SettingName],
}

impl Run<'_> {
    /// A connection to each of the shards, opened side by side, ready for the statement: settings applied, transaction
    /// joined. All or none.
    pub async fn acquire(&mut self, shards: &[ShardId], role: Role) -> Result<Vec<Leased>, ExecError> {
        self.check_transaction(shards)?;
        let mut ready: Vec<Option<Leased>> = Vec::with_capacity(shards.len());
        for shard in shards {
            ready.push(self.held.take(shard, role));
        }
        let missing = self.missing_pools(shards, role, &ready)?;
        let opening = if self.transaction.is_active() {
            self.transaction.opening_statements()
        } else {
            Vec::new()
        };
        let result = {
            let (settings, deadline) = (self.settings, self.limits.at());
            let join = join_all(
                shards,
                &mut ready,
                missing,
                Joining {
                    settings,
                    deadline,
                    opening: &opening,
                    role,
                },
            );
            self.limits.watch(self.client, join).await
        };
        let failed = match result {
            Ok(Ok(())) => match self.reserve_all(&mut ready) {
                Ok(()) => return Ok(ready.into_iter().flatten().collect()),
                Err(e) => e,
            },
            Ok(Err(e)) => e,
            Err(interrupt) => interrupt.into_error(ExecError::names(shards), "; nothing was executed"),
        };
        self.put_back(ready.into_iter().flatten());
        Err(failed)
    }

    /// Gives connections back after a statement. One that was lost takes the transaction with it.
    pub fn put_back(&mut self, leases: impl IntoIterator<Item = Leased>) {
        for mut lease in leases {
            for name in self.unknown {
                lease.conn.forget_setting(name);
            }
            if lease.in_transaction && !lease.conn.is_usable() {
                self.transaction.fail(format!("{} was lost", lease.shard));
                continue;
            }
            if lease.conn.is_usable() {
                self.held.put(lease);
            }
        }
    }

    /// After an OK or the end of rows in a transaction: whether the server still has it open.
    pub fn note_status(&mut self, lease: &mut Leased, status: StatusFlags) {
        if !lease.in_transaction || status.contains(StatusFlags::IN_TRANS) {
            return;
        }
        lease.in_transaction = false;
        lease.conn.transaction_ended();
        if self.held.transaction_shards().next().is_none() {
            self.transaction.end();
        } else {
            self.transaction
                .fail(format!("{} ended its part of it", lease.shard));
        }
    }

    /// After an error in a transaction: asks the server whether it still has it open. An error packet does not say, and
    /// a deadlock's victim is rolled back as a whole.
    pub async fn note_error(&mut self, lease: &mut Leased) {
        if !lease.in_transaction || !lease.conn.is_usable() {
            return;
        }
        let asked = self
            .limits
            .until_deadline(lease.conn.run(b"DO 0", Sent::No))
            .await;
        let Ok(Ok(ok)) = asked else { return };
        if ok.status.contains(StatusFlags::IN_TRANS) {
            return;
        }
        lease.in_transaction = false;
        lease.conn.transaction_ended();
        // What a single server does to its whole transaction happens to the others' parts too.
        super::commit::rollback(self.held, &self.limits).await;
        self.transaction.end();
    }

    /// Fetches a statement's warnings before its connection is let go.
    pub async fn warnings(&mut self, lease: &mut Leased, count: u16) -> Vec<Warning> {
        if count == 0 {
            return Vec::new();
        }
        match self
            .limits
            .watch(self.client, warnings::fetch(&mut lease.conn))
            .await
        {
            Ok(Ok(list)) => list,
            // The statement is done; that its warnings cannot be had does not undo it.
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// Asks what the statement just left on its connection, before the connection is let go: the counts that
    /// `FOUND_ROWS()` and `LAST_INSERT_ID()` answer next.
    pub async fn ask_counts(&mut self, lease: &mut Leased, answer: &mut Answer) {
        let asking = lease.conn.query(b"SELECT FOUND_ROWS(), LAST_INSERT_ID()", 1);
        let Ok(Ok(rows)) = self.limits.watch(self.client, asking).await else {
            return;
        };
        let Some(row) = rows.first() else { return };
        let mut numbers = text::cells(row).map(|c| std::str::from_utf8(c.ok()??).ok()?.parse::<u64>().ok());
        answer.found_rows = numbers.next().flatten();
        answer.last_insert_id = numbers.next().flatten().unwrap_or(answer.last_insert_id);
    }

    /// The status for the client of an answer that ends the statement.
    pub fn client_status(&self, tablet: StatusFlags) -> StatusFlags {
        let mut status = super::answer::client_status(self.status, tablet);
        status.set(StatusFlags::IN_TRANS, self.transaction.is_active());
        status
    }

    /// Buffers an OK for the client.
    pub fn put_ok(&mut self, tablet: &OkPacket, more: bool) {
        let mut status = self.client_status(tablet.status);
        if more {
            status |= StatusFlags::MORE_RESULTS;
        }
        self.client.put_ok(&OkPacket {
            status,
            session_state: Bytes::new(),
            ..tablet.clone()
        });
    }

    /// Buffers the end of a result set's rows for the client.
    pub fn put_rows_end(&mut self, tablet: &OkPacket, more: bool) {
        let mut status = self.client_status(tablet.status);
        if more {
            status |= StatusFlags::MORE_RESULTS;
        }
        let warnings = tablet.warnings;
        self.client.put_rows_end(&OkPacket {
            warnings,
            ..OkPacket::with_status(status)
        });
    }

    /// Sends what is buffered if it is much; a client that does not take it is given up.
    pub async fn flush_if_full(&mut self) -> Result<(), ExecError> {
        if self.client.buffered() < FLUSH_AT {
            return Ok(());
        }
        let flushing = async {
            tokio::select! {
                biased;
                done = self.client.flush() => done.map_err(|_| ExecError::ClientGone),
                kill = self.limits.kill.thrown() => Err(ExecError::Killed(kill)),
            }
        };
        match self.limits.client_stalled {
            Some(limit) => {
                let stalled = |_| {
                    self.metrics.timeouts.handle("client_stalled").inc();
                    ExecError::ClientStalled(limit)
                };
                tokio::time::timeout(limit, flushing).await.map_err(stalled)?
            }
            None => flushing.await,
        }
    }

    /// The error of an interrupted wait.
    pub fn interrupted(&self, interrupt: Interrupt, shards: String, is_write: bool) -> ExecError {
        if let Interrupt::Deadline(_) = interrupt {
            self.metrics.timeouts.handle("gateway").inc();
        }
        let note = if is_write {
            "; the write may or may not have been executed"
        } else {
            ""
        };
        interrupt.into_error(shards, note)
    }

    /// Claims the connections for the session before the statement leaves state on them, so that it never has to be
    /// taken back.
    fn reserve_all(&self, ready: &mut [Option<Leased>]) -> Result<(), ExecError> {
        let Some(what) = self.reserve else { return Ok(()) };
        for lease in ready.iter_mut().flatten().filter(|l| l.reserved.is_none()) {
            let claim = lease
                .conn
                .reserve(what)
                .ok_or_else(|| ExecError::TooManyReserved {
                    tablet: lease.conn.info().alias.to_string(),
                    limit: lease.conn.max_reserved(),
                })?;
            lease.reserved = Some(claim);
            lease.conn.taint();
        }
        Ok(())
    }

    fn check_transaction(&self, shards: &[ShardId]) -> Result<(), ExecError> {
        if let TransactionState::Failed(reason) = self.transaction.state() {
            return Err(ExecError::TransactionLost(reason.clone()));
        }
        if self.mode == TransactionMode::Single && self.transaction.is_active() {
            let first = self.held.transaction_shards().next().or(shards.first());
            if let Some(first) = first
                && let Some(second) = shards.iter().find(|s| *s != first)
            {
                return Err(ExecError::SecondShard {
                    first: first.clone(),
                    second: second.clone(),
                });
            }
        }
        Ok(())
    }

    fn missing_pools(
        &mut self,
        shards: &[ShardId],
        role: Role,
        ready: &[Option<Leased>],
    ) -> Result<Vec<Option<Arc<Pool>>>, ExecError> {
        let pool = |shard: &ShardId| {
            let found = self.fleet.pool(shard, role, self.found_rows);
            found.ok_or_else(|| ExecError::NoTablet {
                shard: shard.clone(),
                role: role.as_str(),
            })
        };
        shards
            .iter()
            .zip(ready)
            .map(|(s, r)| if r.is_some() { Ok(None) } else { pool(s).map(Some) })
            .collect()
    }
}

/// How a connection joins a statement.
#[derive(Clone, Copy)]
struct Joining<'a> {
    settings: &'a Settings,
    deadline: Option<crate::base::clock::Instant>,
    opening: &'a [String],
    role: Role,
}

/// Fills every place of `ready`, all legs side by side. On failure what was there stays in its place.
async fn join_all(
    shards: &[ShardId],
    ready: &mut [Option<Leased>],
    missing: Vec<Option<Arc<Pool>>>,
    how: Joining<'_>,
) -> Result<(), ExecError> {
    if let ([shard], [place]) = (shards, &mut *ready) {
        // The common case, without the machinery of many.
        let pool = missing.into_iter().next().flatten();
        return join_one(shard, place, pool, how).await;
    }
    let legs = shards.iter().zip(ready.iter_mut()).zip(missing);
    let all = legs.map(|((shard, place), pool)| join_one(shard, place, pool, how));
    futures::future::try_join_all(all).await.map(|_| ())
}

async fn join_one(
    shard: &ShardId,
    place: &mut Option<Leased>,
    pool: Option<Arc<Pool>>,
    how: Joining<'_>,
) -> Result<(), ExecError> {
    let tag = |e: TabletError| ExecError::tablet(shard.clone(), e);
    if let Some(pool) = pool {
        let conn: PooledConn = pool.checkout(how.settings, how.deadline).await.map_err(tag)?;
        let shard = shard.clone();
        *place = Some(Leased {
            shard,
            role: how.role,
            conn,
            in_transaction: false,
            reserved: None,
        });
    }
    let Some(lease) = place.as_mut() else {
        return Ok(());
    };
    lease.conn.apply(how.settings).await.map_err(tag)?;
    if !how.opening.is_empty() && !lease.in_transaction {
        // Noted first: if this fails half way, the connection must not look as if nothing were open on it.
        lease.in_transaction = true;
        lease.conn.begin(how.opening).await.map_err(tag)?;
    }
    Ok(())
}
