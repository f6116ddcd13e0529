//! Connections for a statement: found, checked against what the session holds, and made ready.

use std::sync::Arc;
use std::time::Duration;

use super::ExecError;
use super::held::Leased;
use super::run::{Run, TransactionMode};
use super::transaction::TransactionState;
use crate::balance::Fleet;
use crate::base::clock::{self, Instant};
use crate::base::{Role, ShardId};
use crate::guard::{Pass, Work};
use crate::tablet::{Pool, PooledConn, Settings, TabletError};

impl Run<'_> {
    /// A connection to each of the shards, opened side by side, ready for the statement: settings applied, transaction
    /// joined. All or none.
    pub async fn acquire(&mut self, shards: &[ShardId], role: Role) -> Result<Vec<Leased>, ExecError> {
        self.drop_replaced();
        self.check_transaction(shards)?;
        self.check_reserved(shards)?;
        // All are asked before anything is sent to any. Pools first: what was taken out of the session's hands must find its way back.
        let missing = self.missing_pools(shards, role)?;
        let waits_short = shards.len() > 1 || !self.held.is_empty();
        let mut ready: Vec<Option<Leased>> = Vec::with_capacity(shards.len());
        for shard in shards {
            ready.push(self.held.take(shard, role));
        }
        let opening = if self.transaction.is_active() {
            self.transaction.opening_statements()
        } else {
            Vec::new()
        };
        let result = {
            let settings = self.settings;
            let deadline = self.limits.at();
            let slot_by = if waits_short {
                Some(sooner(deadline, SLOT_WAIT))
            } else {
                deadline
            };
            let join = join_all(
                shards,
                &mut ready,
                missing,
                Joining {
                    settings,
                    slot_by,
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
            Err(interrupt) => {
                self.count_timeout(interrupt);
                interrupt.into_error(ExecError::names(shards), "; nothing was executed")
            }
        };
        self.put_back(ready.into_iter().flatten());
        Err(failed)
    }

    /// [`Self::acquire`] of one shard, which is what most statements need.
    pub async fn acquire_one(&mut self, shard: &ShardId, role: Role) -> Result<Leased, ExecError> {
        let shards = std::slice::from_ref(shard);
        self.drop_replaced();
        self.check_transaction(shards)?;
        self.check_reserved(shards)?;
        let way = self.missing_pool(shard, role, clock::now())?;
        let deadline = self.limits.at();
        let slot_by = if self.held.is_empty() {
            deadline
        } else {
            Some(sooner(deadline, SLOT_WAIT))
        };
        let mut ready = self.held.take(shard, role);
        let opening = if self.transaction.is_active() {
            self.transaction.opening_statements()
        } else {
            Vec::new()
        };
        let how = Joining {
            settings: self.settings,
            slot_by,
            opening: &opening,
            role,
        };
        let joining = join_one(shard, &mut ready, way, how);
        let failed = match self.limits.watch(self.client, joining).await {
            Ok(Ok(())) => match (self.reserve_all(std::slice::from_mut(&mut ready)), ready.take()) {
                (Ok(()), Some(lease)) => return Ok(lease),
                (Ok(()), None) => ExecError::NoTablet {
                    shard: shard.clone(),
                    role: role.as_str(),
                },
                (Err(e), lease) => {
                    ready = lease;
                    e
                }
            },
            Ok(Err(e)) => e,
            Err(interrupt) => {
                self.count_timeout(interrupt);
                interrupt.into_error(shard.to_string(), "; nothing was executed")
            }
        };
        self.put_back(ready);
        Err(failed)
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

    /// Lets go of connections to primaries that are none any more.
    fn drop_replaced(&mut self) {
        if !self.held.is_empty() {
            self.held.drop_replaced(self.fleet, self.transaction);
        }
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

    /// State that lives on one connection, against where the statement goes.
    fn check_reserved(&self, shards: &[ShardId]) -> Result<(), ExecError> {
        if let Some(what) = self.held.lost() {
            return Err(ExecError::StateLost(what));
        }
        let Some(held) = self.held.reserved() else {
            return Ok(());
        };
        let Some(what) = held.reserved.as_ref().map(|claim| claim.what) else {
            return Ok(());
        };
        match shards.iter().find(|s| **s != held.shard) {
            Some(asked) if changes_what_names_mean(what) => {
                let (held, asked) = (held.shard.clone(), asked.clone());
                Err(ExecError::PinnedElsewhere { what, held, asked })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn missing_pools(&self, shards: &[ShardId], role: Role) -> Result<Vec<Option<Way>>, ExecError> {
        let now = clock::now();
        shards
            .iter()
            .map(|shard| self.missing_pool(shard, role, now))
            .collect()
    }

    fn missing_pool(&self, shard: &ShardId, role: Role, now: Instant) -> Result<Option<Way>, ExecError> {
        if let Some(held) = self.held.find(shard, role) {
            held.conn.gate().enter_held(now).map_err(|e| {
                self.metrics
                    .refused
                    .handle(&format!("{}.{shard}", e.label()))
                    .inc();
                ExecError::tablet(shard.clone(), TabletError::Guard(e))
            })?;
            return Ok(None);
        }
        self.way(shard, role, now).map(Some)
    }

    /// The pool that leads to a shard, and the leave to use it.
    pub(super) fn way(&self, shard: &ShardId, role: Role, now: Instant) -> Result<Way, ExecError> {
        find_way(self.fleet, (shard, role, self.found_rows), self.work, now)
    }
}

/// A pool, and the leave to use it.
pub(super) type Way = (Arc<Pool>, Pass);

/// The pool that leads to a shard's tablets of a role, and the leave to use it.
pub(super) fn find_way(
    fleet: &Fleet,
    (shard, role, found_rows): (&ShardId, Role, bool),
    work: Work,
    now: Instant,
) -> Result<Way, ExecError> {
    let pool = fleet
        .pool(shard, role, found_rows)
        .ok_or_else(|| ExecError::NoTablet {
            shard: shard.clone(),
            role: role.as_str(),
        })?;
    let error = match pool.enter(work, now) {
        Ok(pass) => return Ok((pool, pass)),
        Err(e) => ExecError::tablet(shard.clone(), e),
    };
    if role == Role::Primary {
        return Err(error);
    }
    // Somebody else has its one probe, or it opened a moment ago: a sibling may be well.
    let other = fleet
        .pool_but(shard, role, found_rows, Some(&pool.info().alias))
        .ok_or(error)?;
    let pass = other
        .enter(work, now)
        .map_err(|e| ExecError::tablet(shard.clone(), e))?;
    Ok((other, pass))
}

/// How long a session that holds one slot, or wants several, waits for another: two such sessions could wait for each
/// other, so this wait has a limit of its own.
pub const SLOT_WAIT: Duration = Duration::from_secs(2);

/// The deadline, or `limit` from now if that is sooner.
pub(super) fn sooner(deadline: Option<Instant>, limit: Duration) -> Instant {
    let own = clock::now() + limit;
    deadline.map_or(own, |d| d.min(own))
}

/// State under which a table's name means something else on the connection that holds it.
fn changes_what_names_mean(what: &str) -> bool {
    matches!(what, "a temporary table" | "table locks" | "an open HANDLER")
}

/// How a connection joins a statement.
#[derive(Clone, Copy)]
pub(super) struct Joining<'a> {
    pub(super) settings: &'a Settings,
    pub(super) slot_by: Option<Instant>,
    pub(super) opening: &'a [String],
    pub(super) role: Role,
}

/// Fills every place of `ready`, all legs side by side. On failure what was there stays in its place.
async fn join_all(
    shards: &[ShardId],
    ready: &mut [Option<Leased>],
    missing: Vec<Option<Way>>,
    how: Joining<'_>,
) -> Result<(), ExecError> {
    if let ([shard], [place]) = (shards, &mut *ready) {
        // The common case, without the machinery of many.
        let way = missing.into_iter().next().flatten();
        return join_one(shard, place, way, how).await;
    }
    let legs = shards.iter().zip(ready.iter_mut()).zip(missing);
    let all = legs.map(|((shard, place), way)| join_one(shard, place, way, how));
    futures::future::try_join_all(all).await.map(|_| ())
}

async fn join_one(
    shard: &ShardId,
    place: &mut Option<Leased>,
    way: Option<Way>,
    how: Joining<'_>,
) -> Result<(), ExecError> {
    let tag = |e: TabletError| ExecError::tablet(shard.clone(), e);
    let lease = match (way, place.as_mut()) {
        (Some(way), _) => {
            let conn = ready_conn(way, how).await.map_err(tag)?;
            place.insert(Leased::fresh(shard.clone(), how.role, conn))
        }
        (None, Some(held)) => {
            held.conn.apply(how.settings).await.map_err(tag)?;
            held
        }
        (None, None) => return Ok(()),
    };
    if !how.opening.is_empty() && !lease.in_transaction {
        // Noted only when it is open: a connection on which this fails or is cut short is of no further use, and nothing
        // of the client's has run on it.
        lease.conn.begin(how.opening).await.map_err(tag)?;
        lease.in_transaction = true;
    }
    Ok(())
}

/// A pooled connection with the session's settings. What an earlier session set may be impossible to take back; that is
/// not this session's fault, so a connection that refuses is replaced by a fresh one.
pub(super) async fn ready_conn((pool, pass): Way, how: Joining<'_>) -> Result<PooledConn, TabletError> {
    let mut conn = pool.checkout(pass, how.settings, how.slot_by).await?;
    let is_clean = conn.applied().is_empty();
    match conn.apply(how.settings).await {
        Ok(()) => return Ok(conn),
        Err(e) if is_clean => return Err(e),
        Err(_) => {}
    }
    let work = conn.work();
    conn.discard();
    let pass = pool.enter(work, clock::now())?;
    let mut conn = pool.checkout_fresh(pass, how.slot_by).await?;
    conn.apply(how.settings).await?;
    Ok(conn)
}
