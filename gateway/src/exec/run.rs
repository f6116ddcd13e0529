//! What a statement needs to run: the session's things, lent for one statement.

use std::sync::Arc;

use bytes::Bytes;
use shardgate_wire::codec::text;
use shardgate_wire::stream::{FLUSH_AT, Room};
use shardgate_wire::{ClientConn, OkPacket, StatusFlags};
use smallvec::SmallVec;

use super::answer::{Answer, Warning};
use super::held::{Held, Leased};
use super::kill::Kill;
use super::transaction::{Characteristics, Transaction};
use super::watch::{Interrupt, Limits};
use super::{ExecError, warnings};
use crate::balance::Fleet;
use crate::base::clock;
use crate::base::metrics::Metrics;
use crate::guard::{Drained, Outcome, Work};
use crate::tablet::{Sent, SettingName, Settings};

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
    /// Whether the transaction is the gateway's own, around one statement on several shards.
    pub implicit: bool,
    /// What it does where a shard has no primary.
    pub vacant: Vacant,
    /// What the statement leaves behind on its connection.
    pub leaves: Leaves,
    /// Settings that the statement may change on its connection behind the gateway's back.
    pub unknown: &'a [SettingName],
    /// How the statement is told apart from other kinds by those who guard tablets.
    pub work: Work,
    /// How many shards are waited for at once; 0 all.
    pub fan_out: usize,
    /// Bytes that gathering the answer may take.
    pub query_memory: usize,
    /// The memory that gathering takes of, with all others.
    pub memory: &'a Arc<Room>,
    /// Whether the client takes an answer from which shards are missing, where that is a part of the true one.
    pub partial: Partial,
    /// Whether anything of the answer has been buffered for the client.
    pub told: Told,
    /// Held while the statement is on its way to a primary it had to wait for: so many of those that wait go at once.
    /// Dropped when the tablet has begun to answer, or before the statement waits again.
    pub drained: SmallVec<[Drained; 1]>,
}

/// What a statement leaves behind on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Leaves {
    /// Counts that must be asked for at once.
    pub counts: bool,
    /// State that nobody knows of, which no other session may see.
    pub state: bool,
}

/// How much of the answer the client has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Told {
    /// Nothing: the statement may still end as if it had only begun.
    #[default]
    Nothing,
    /// Something, be it only buffered.
    Something,
}

/// What a statement does where a shard has no primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Vacant {
    /// It waits for a new one.
    #[default]
    Waits,
    /// It fails at once, since another shard will do as well.
    Fails,
}

/// Whether the client takes an answer from which shards are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Partial {
    /// Any leg that fails fails the statement.
    #[default]
    Refused,
    /// `SCATTER_ERRORS_AS_WARNINGS`.
    Accepted,
}

impl Run<'_> {
    /// Gives connections back after a statement. One that was lost takes the transaction with it.
    pub fn put_back(&mut self, leases: impl IntoIterator<Item = Leased>) {
        for mut lease in leases {
            for name in self.unknown {
                lease.conn.forget_setting(name);
            }
            if self.leaves.state {
                lease.conn.taint();
            }
            self.held.take_back(lease, self.transaction);
        }
    }

    /// After an OK or the end of rows in a transaction: whether the server still has it open.
    pub fn note_status(&mut self, lease: &mut Leased, status: StatusFlags) {
        if status.contains(StatusFlags::IN_TRANS) {
            if !lease.in_transaction {
                // A procedure, or a statement prepared by SQL, opened one: it is the session's, and COMMIT must find it.
                if !self.transaction.is_active() {
                    self.transaction.begin(Characteristics::default());
                }
                lease.in_transaction = true;
                lease.conn.transaction_found();
            }
            return;
        }
        if !lease.in_transaction {
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
        let limits = self.limits.afterwards(clock::now());
        let asked = limits.until_deadline(lease.conn.run(b"DO 0", Sent::No)).await;
        let Ok(Ok(ok)) = asked else { return };
        if ok.status.contains(StatusFlags::IN_TRANS) {
            return;
        }
        lease.in_transaction = false;
        lease.conn.transaction_ended();
        // What a single server does to its whole transaction happens to the others' parts too.
        super::commit::rollback(self.held, &limits).await;
        self.transaction.end();
    }

    /// Fetches a statement's warnings before its connection is let go.
    pub async fn warnings(&mut self, lease: &mut Leased, count: u16) -> Vec<Warning> {
        if count == 0 {
            return Vec::new();
        }
        let limits = self.limits.afterwards(clock::now());
        match limits.watch(self.client, warnings::fetch(&mut lease.conn)).await {
            Ok(Ok(list)) => list,
            // The statement is done; that its warnings cannot be had does not undo it.
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    /// Asks what the statement just left on its connection, before the connection is let go: the counts that
    /// `FOUND_ROWS()` and `LAST_INSERT_ID()` answer next. Why they cannot be had, if so: they must not be guessed.
    pub async fn ask_counts(&mut self, lease: &mut Leased, answer: &mut Answer) -> Result<(), String> {
        let asking = lease
            .conn
            .query(b"SELECT FOUND_ROWS(), LAST_INSERT_ID() LIMIT 1", 1);
        let limits = self.limits.afterwards(clock::now());
        let rows = match limits.watch(self.client, asking).await {
            Ok(rows) => rows.map_err(|e| e.to_string())?,
            Err(interrupt) => return Err(interrupt.into_error(lease.shard.to_string(), "").to_string()),
        };
        let row = rows.first().map_or(&b""[..], |row| row);
        let mut numbers = text::cells(row).map(|c| std::str::from_utf8(c.ok()??).ok()?.parse::<u64>().ok());
        let (Some(Some(found_rows)), Some(Some(id))) = (numbers.next(), numbers.next()) else {
            return Err("they are no numbers".to_owned());
        };
        answer.found_rows = Some(found_rows);
        answer.last_insert_id = id;
        Ok(())
    }

    /// What `LAST_INSERT_ID()` answers on this connection: an OK packet also tells an id that the client gave itself, which
    /// the function does not.
    pub async fn generated_id(&mut self, lease: &mut Leased) -> Option<u64> {
        let asking = lease.conn.query_one(b"SELECT LAST_INSERT_ID() LIMIT 1");
        let limits = self.limits.afterwards(clock::now());
        let (_, value) = limits.watch(self.client, asking).await.ok()?.ok()?;
        let value = value?;
        std::str::from_utf8(&value).ok()?.parse().ok()
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
        self.count_timeout(interrupt);
        // Inside a transaction nothing has been committed, and the lost part is rolled back.
        let unknown = is_write && (!self.transaction.is_active());
        if unknown && let Interrupt::Killed(Kill::Query) = interrupt {
            let reason = "it was killed before its answer came".to_owned();
            return ExecError::UnknownOutcome { shards, reason };
        }
        let note = if unknown {
            "; the write may or may not have been executed"
        } else {
            ""
        };
        interrupt.into_error(shards, note)
    }

    /// The attempt on a connection ended without its answer: held against the tablet only if a deadline passed.
    pub(super) fn give_up(&self, lease: &mut Leased, interrupt: Interrupt) {
        match interrupt {
            Interrupt::Deadline(_) => lease.gave_up(self.limits.tablet),
            // Nobody waits any more: it says nothing of the tablet.
            Interrupt::Killed(_) | Interrupt::ClientGone => drop(lease.attempt.take()),
        }
    }

    /// Tablets that had sent rows sent no more, while somebody read.
    pub(super) fn tablet_silent(&self, leases: &mut [&mut Leased]) -> ExecError {
        self.metrics.timeouts.handle("tablet_silent").inc();
        for lease in &mut *leases {
            let now = clock::now();
            let attempt = lease.attempt.take();
            // A stream that had gone well for a while was settled already; now it goes badly.
            let attempt = attempt.unwrap_or_else(|| lease.conn.gate().start_held(self.work, now));
            attempt.record(lease.conn.gate(), Outcome::Timeout, now);
        }
        ExecError::TabletSilent {
            after: self.limits.tablet_silent.unwrap_or_default(),
            shards: ExecError::names(leases.iter().map(|l| &l.shard)),
        }
    }

    pub(super) fn count_timeout(&self, interrupt: Interrupt) {
        if let Interrupt::Deadline(passed) = interrupt {
            self.metrics.timeouts.handle(passed.layer.label()).inc();
        }
    }
}
