//! The tablet connections a session keeps between statements: those of its transaction, and those that hold state of
//! its own (temporary tables, locks, variables that do not replay).

use std::time::Duration;

use shardgate_sql::Flavor;

use super::transaction::Transaction;
use crate::balance::Fleet;
use crate::base::clock::Instant;
use crate::base::{Role, ShardId, clock};
use crate::guard::{Attempt, Outcome, Parking, Work};
use crate::tablet::{PooledConn, Reservation, TabletError, limit_name};

/// One connection in a session's hands.
#[derive(Debug)]
pub struct Leased {
    /// The shard it leads to.
    pub shard: ShardId,
    /// The role it was chosen for.
    pub role: Role,
    /// The connection.
    pub conn: PooledConn,
    /// Whether the session's transaction is open on it.
    pub in_transaction: bool,
    /// The claim by which it stays with the session although no transaction is open.
    pub reserved: Option<Reservation>,
    /// The attempt that runs on it, until its outcome is known.
    pub attempt: Option<Attempt>,
    /// What runs on it and when it began, if its attempt was settled as soon as the answer began.
    begun: Option<Begun>,
}

/// A statement whose attempt was settled before its answer was over.
#[derive(Debug)]
struct Begun {
    work: Work,
    started: Instant,
    /// It holds its connection all the same.
    _parking: Parking,
}

impl Leased {
    /// A connection that was just taken from its pool.
    pub fn fresh(shard: ShardId, role: Role, conn: PooledConn) -> Self {
        Self {
            shard,
            role,
            conn,
            in_transaction: false,
            reserved: None,
            attempt: None,
            begun: None,
        }
    }

    /// The attempt on it is over. One that was settled when its answer began counts once more, if the rest of it fails.
    pub fn settle(&mut self, outcome: Outcome) {
        let now = clock::now();
        let begun = self.begun.take();
        let attempt = self.attempt.take().or_else(|| {
            let begun = begun.filter(|_| outcome != Outcome::Success)?;
            Some(self.conn.gate().start_held(begun.work, now))
        });
        if let Some(attempt) = attempt {
            attempt.record(self.conn.gate(), outcome, now);
        }
    }

    /// It has begun to answer, and what it waits for now is another shard: left open, its attempt would look like one of a
    /// tablet that holds statements up.
    pub fn waits_for_others(&mut self, work: Work) {
        let Some(started) = self.attempt.as_ref().map(Attempt::started) else {
            return;
        };
        self.settle(Outcome::Success);
        self.begun = Some(Begun {
            work,
            started,
            _parking: self.conn.gate().park(work),
        });
    }

    /// The attempt on it ended with this error.
    pub fn settle_error(&mut self, error: &TabletError, tablet_timeout: Option<Duration>) {
        match error.outcome(self.role) {
            Outcome::Timeout => self.timed_out_by_itself(tablet_timeout),
            outcome => self.settle(outcome),
        }
    }

    /// The server ended the statement by a limit of its own. That is held against it only if it had a fair chance, and not
    /// if the limit was the client's.
    pub fn timed_out_by_itself(&mut self, tablet_timeout: Option<Duration>) {
        let of_client = [Flavor::MariaDb, Flavor::MySql]
            .into_iter()
            .any(|flavor| self.conn.applied().get(&limit_name(flavor)).is_some());
        if of_client {
            self.settle(Outcome::Neutral);
        } else {
            self.gave_up(tablet_timeout);
        }
    }

    /// More rows came; once they have come for a while the attempt has succeeded, since from then on the client's pace
    /// decides.
    pub fn streams_well(&mut self) {
        let now = clock::now();
        let gate = self.conn.gate();
        match &self.attempt {
            Some(attempt) if now.duration_since(attempt.started()) < STALL_WINDOW => {
                attempt.progressed(gate, now);
            }
            Some(_) => self.settle(Outcome::Success),
            None => {
                let long_ago = |begun: &mut Begun| now.duration_since(begun.started) >= STALL_WINDOW;
                drop(self.begun.take_if(long_ago));
            }
        }
    }

    /// Rows of it went to the client: what becomes of the rest is no longer the tablet's doing alone.
    pub fn streamed(&mut self) {
        self.settle(Outcome::Success);
    }

    /// The attempt on it was given up because a deadline passed.
    pub fn gave_up(&mut self, tablet_timeout: Option<Duration>) {
        let now = clock::now();
        if let Some(attempt) = self.attempt.take() {
            attempt.gave_up(self.conn.gate(), tablet_timeout, now);
        } else if let Some(begun) = &self.begun {
            self.settle(Attempt::given_up(begun.started, tablet_timeout, now));
        }
    }

    /// Whether it stays with the session when the statement is over.
    pub fn stays(&self) -> bool {
        self.in_transaction || self.reserved.is_some()
    }
}

/// How long a stream must have gone on for its attempt to count as a success, whatever becomes of it: from then on it is
/// the client's pace that it goes by.
pub(super) const STALL_WINDOW: Duration = Duration::from_millis(300);

/// The connections a session keeps.
#[derive(Debug, Default)]
pub struct Held {
    leases: Vec<Leased>,
    lost: Option<&'static str>,
}

impl Held {
    /// Takes out the connection to a shard, to use it.
    pub fn take(&mut self, shard: &ShardId, role: Role) -> Option<Leased> {
        let at = self
            .leases
            .iter()
            .position(|l| l.shard == *shard && l.role == role)?;
        Some(self.leases.remove(at))
    }

    /// The connection to a shard, if one is held.
    pub fn find(&self, shard: &ShardId, role: Role) -> Option<&Leased> {
        self.leases.iter().find(|l| l.shard == *shard && l.role == role)
    }

    /// Any connection to a shard, to use it.
    pub fn take_any(&mut self, shard: &ShardId) -> Option<Leased> {
        let at = self.leases.iter().position(|l| l.shard == *shard)?;
        Some(self.leases.remove(at))
    }

    /// Notes that a connection was lost which held session state: what the client believes is there is gone.
    pub fn lose(&mut self, what: &'static str) {
        self.lost = Some(what);
    }

    /// What was lost, until the session is reset.
    pub fn lost(&self) -> Option<&'static str> {
        self.lost
    }

    /// Puts a connection back if it stays; otherwise it goes back to its pool.
    pub fn put(&mut self, mut lease: Leased) {
        // Whatever was not settled says nothing, and must not count as pending from now on.
        lease.attempt = None;
        lease.begun = None;
        if lease.stays() {
            self.leases.push(lease);
        }
    }

    /// Takes a connection back after use. One that was lost takes with it what it held: the transaction, the session's
    /// state.
    pub fn take_back(&mut self, lease: Leased, transaction: &mut Transaction) {
        if lease.conn.is_usable() {
            self.put(lease);
            return;
        }
        if lease.in_transaction {
            transaction.fail(format!("{} was lost", lease.shard));
        }
        if let Some(claim) = &lease.reserved {
            self.lose(claim.what);
        }
    }

    /// Lets go of connections to primaries that another tablet has replaced, with all that they hold: a server that was
    /// primary may still take writes, and nobody would ever see them again.
    pub fn drop_replaced(&mut self, fleet: &Fleet, transaction: &mut Transaction) {
        let (kept, replaced): (Vec<Leased>, Vec<Leased>) =
            std::mem::take(&mut self.leases).into_iter().partition(|l| {
                // One that is the primary again has been another one's replica meanwhile.
                l.role != Role::Primary
                    || fleet.is_primary(&l.shard, &l.conn.info().alias) && !l.conn.gate().is_replaced()
            });
        self.leases = kept;
        for lease in replaced {
            if lease.in_transaction {
                transaction.fail(format!("{} has another primary", lease.shard));
            }
            if let Some(claim) = &lease.reserved {
                self.lose(claim.what);
            }
            lease.conn.discard();
        }
    }

    /// Takes out every connection that the transaction is open on, in the order they joined.
    pub fn take_transaction(&mut self) -> Vec<Leased> {
        let (taken, kept) = std::mem::take(&mut self.leases)
            .into_iter()
            .partition(|l| l.in_transaction);
        self.leases = kept;
        taken
    }

    /// The shards the transaction is open on.
    pub fn transaction_shards(&self) -> impl Iterator<Item = &ShardId> {
        self.leases.iter().filter(|l| l.in_transaction).map(|l| &l.shard)
    }

    /// The first connection that holds session state.
    pub fn reserved(&self) -> Option<&Leased> {
        self.leases.iter().find(|l| l.reserved.is_some())
    }

    /// Gives up the claims of the session's state, which is gone. Its connections stay for the transaction that is open on
    /// them; others go, and are not used again.
    pub fn release_reserved(&mut self) {
        for lease in &mut self.leases {
            lease.reserved = None;
        }
        self.leases.retain(Leased::stays);
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Lets go of everything: open transactions are rolled back by their servers as the connections close.
    pub fn clear(&mut self) {
        self.lost = None;
        for lease in self.leases.drain(..) {
            lease.conn.discard();
        }
    }

    /// Every connection held.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Leased> {
        self.leases.iter_mut()
    }
}
