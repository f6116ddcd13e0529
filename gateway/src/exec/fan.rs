//! The legs of a read outside a transaction: each opens its connection, asks, and is tried again on its own.
//!
//! No leg waits for another's connection: a shard that does not answer costs its own leg alone. All guards are asked
//! first, so that a refusal costs nobody anything.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use shardgate_wire::client::Head;

use super::acquire::{Joining, SLOT_WAIT, Way, find_way, ready_conn, sooner};
use super::failover::{self, Failover};
use super::held::Leased;
use super::payload::{self, Payload};
use super::retry::Tries;
use super::run::Run;
use super::shed::Shed;
use super::single::lost;
use super::watch::{Deadline, Interrupt, Limits};
use super::{ExecError, Statement};
use crate::balance::Fleet;
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId};
use crate::guard::Work;
use crate::route::Leg;
use crate::tablet::{Settings, server_error};

/// After one leg's time was over, how long the others are heard whose time is over now too: they began together, and
/// each of them is a timeout of its own shard.
const HEARING: Duration = Duration::from_millis(5);

/// A leg that has begun to answer.
pub(super) struct Asked {
    /// Which leg.
    pub(super) index: usize,
    /// Its connection.
    pub(super) lease: Leased,
    /// How its answer begins.
    pub(super) head: Head,
}

/// What every leg needs.
struct Asking<'a> {
    fleet: &'a Fleet,
    metrics: &'a Metrics,
    settings: &'a Settings,
    limits: Limits<'a>,
    /// When the command has to be answered with what is there.
    overall: Option<Deadline>,
    work: Work,
    role: Role,
    found_rows: bool,
    payload: Payload<'a>,
    tries: Tries,
    failover: &'a Failover,
}

/// The legs whose shards have a primary. Whoever has to wait for one waits before anything is taken: else one shard's
/// failover would hold all others' connections.
async fn admit<'a>(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &'a [Leg],
    (shed, failover): (&mut Shed<'_>, &mut Failover),
) -> Result<Vec<(usize, &'a Leg)>, ExecError> {
    let mut admitted = Vec::with_capacity(legs.len());
    for (index, leg) in legs.iter().enumerate() {
        let request = || failover::request(statement, std::slice::from_ref(leg));
        match failover.admit_one(run, &leg.shard, request).await {
            Ok(()) => admitted.push((index, leg)),
            Err(e @ ExecError::Buffer(_)) => shed.leg(&leg.shard, e)?,
            Err(e) => return Err(e),
        }
    }
    Ok(admitted)
}

type Ways<'a> = Vec<(usize, &'a Leg, Way)>;

/// The ways to the legs' tablets. Who refuses is left out where that may be; else the refusals of all are told.
fn ways<'a>(
    run: &Run<'_>,
    statement: &Statement<'_>,
    admitted: Vec<(usize, &'a Leg)>,
    (shed, now): (&mut Shed<'_>, Instant),
) -> Result<Ways<'a>, ExecError> {
    let mut ways = Vec::with_capacity(admitted.len());
    let mut refused = Vec::new();
    for (index, leg) in admitted {
        let refusal = match run.way(&leg.shard, statement.role, now) {
            Ok(way) => {
                ways.push((index, leg, way));
                continue;
            }
            Err(e) => e,
        };
        if shed.is_allowed() {
            shed.leg(&leg.shard, refusal)?;
        } else {
            refused.push((leg.shard.clone(), refusal));
        }
    }
    if let Some(error) = ExecError::join(refused) {
        return Err(shed.refuse(error));
    }
    Ok(ways)
}

/// Asks every leg, as many at once as may be. In the order of the legs; those that were shed are left out.
pub(super) async fn ask(
    run: &mut Run<'_>,
    statement: &Statement<'_>,
    legs: &[Leg],
    (shed, failover): (&mut Shed<'_>, &mut Failover),
) -> Result<Vec<Asked>, ExecError> {
    let admitted = admit(run, statement, legs, (shed, failover)).await?;
    let now = clock::now();
    let ways = ways(run, statement, admitted, (shed, now))?;
    let asking = Asking {
        fleet: run.fleet,
        metrics: run.metrics,
        settings: run.settings,
        limits: run.limits,
        overall: Limits {
            tablet: None,
            ..run.limits
        }
        .attempt_deadline(now),
        work: run.work,
        role: statement.role,
        found_rows: run.found_rows,
        payload: statement.payload,
        tries: Tries::of(run, statement),
        failover,
    };
    let width = if run.fan_out == 0 {
        legs.len().max(1)
    } else {
        run.fan_out
    };
    let limits = run.limits;
    let mut got = Collected {
        asked: Vec::with_capacity(legs.len()),
        failed: Vec::new(),
        open: vec![true; legs.len()],
        work: run.work,
    };
    let gathering = async {
        let mut waiting = ways.into_iter();
        let mut answers = FuturesUnordered::new();
        for (index, leg, way) in waiting.by_ref().take(width) {
            answers.push(asking.leg(index, leg, way));
        }
        while let Some((index, result)) = answers.next().await {
            if let Some((index, leg, way)) = waiting.next() {
                answers.push(asking.leg(index, leg, way));
            }
            let Some(fatal) = got.take(index, &legs[index].shard, result, (&asking, shed)) else {
                continue;
            };
            // Those who failed at the same time are heard, then the rest is let go.
            let late = matches!(fatal, ExecError::Deadline { .. });
            got.failed.push((legs[index].shard.clone(), fatal));
            let hearing = if late { HEARING } else { Duration::ZERO };
            let _ = tokio::time::timeout(hearing, async {
                while let Some((index, result)) = answers.next().await {
                    if let Some(e) = got.take(index, &legs[index].shard, result, (&asking, shed)) {
                        got.failed.push((legs[index].shard.clone(), e));
                    }
                }
            })
            .await;
            break;
        }
    };
    if let Err(interrupt) = limits.watch(run.client, gathering).await {
        return Err(run.interrupted(interrupt, got.unanswered(legs), false));
    }
    if got.failed.is_empty() {
        got.asked.sort_by_key(|a| a.index);
        return Ok(got.asked);
    }
    let failed = std::mem::take(&mut got.failed);
    // Whoever waited in vain is told of all who did not answer, not of the first whose clock ran out.
    let late = failed.iter().find_map(|(_, e)| match e {
        ExecError::Deadline { passed, .. } => Some(*passed),
        _ => None,
    });
    let error = match late {
        Some(passed)
            if failed
                .iter()
                .all(|(_, e)| matches!(e, ExecError::Deadline { .. })) =>
        {
            ExecError::Deadline {
                passed,
                shards: got.unanswered(legs),
                note: "",
            }
        }
        Some(_) | None => ExecError::join(failed).unwrap_or(ExecError::ClientGone),
    };
    Err(shed.refuse(error))
}

/// What came in so far.
struct Collected {
    asked: Vec<Asked>,
    failed: Vec<(ShardId, ExecError)>,
    /// For each leg, whether it has not answered.
    open: Vec<bool>,
    work: Work,
}

impl Collected {
    /// Takes a leg's result; gives back an error that ends the statement.
    fn take(
        &mut self,
        index: usize,
        shard: &ShardId,
        result: Result<Asked, ExecError>,
        (asking, shed): (&Asking<'_>, &mut Shed<'_>),
    ) -> Option<ExecError> {
        let error = match result {
            Ok(mut asked) => {
                self.open[index] = false;
                if self.open.contains(&true) {
                    asked.lease.waits_for_others(self.work);
                }
                self.asked.push(asked);
                return None;
            }
            Err(e) => e,
        };
        if !matches!(error, ExecError::Deadline { .. }) {
            self.open[index] = false;
        }
        // What only waits for a primary is not missing yet.
        if shed.is_allowed() && !asking.failover.is_sent_again(asking.fleet.guards(), &error) {
            return shed.leg(shard, error).err();
        }
        Some(error)
    }

    fn unanswered(&self, legs: &[Leg]) -> String {
        let open = legs.iter().zip(&self.open).filter(|(_, open)| **open);
        ExecError::names(open.map(|(leg, _)| &leg.shard))
    }
}

impl Asking<'_> {
    async fn leg(&self, index: usize, leg: &Leg, way: Way) -> (usize, Result<Asked, ExecError>) {
        let mut tries = self.tries;
        let mut way = way;
        loop {
            let error = match self.once(leg, way).await {
                Ok((lease, head)) => return (index, Ok(Asked { index, lease, head })),
                Err(e) => e,
            };
            if self.failover.is_sent_again(self.fleet.guards(), &error) {
                // The statement waits for a primary as a whole, and holds nothing meanwhile.
                return (index, Err(error));
            }
            let deadline = self.overall.map(|d| d.at);
            let again = tries.schedule(self.fleet.guards(), self.metrics, &leg.shard, &error, deadline);
            let Some(wait) = again else {
                return (index, Err(error));
            };
            tokio::time::sleep(wait).await;
            way = match self.way(leg) {
                Ok(way) => way,
                // The first failure says more than that it may not be tried again.
                Err(_) => return (index, Err(error)),
            };
        }
    }

    fn way(&self, leg: &Leg) -> Result<Way, ExecError> {
        let to = (&leg.shard, self.role, self.found_rows);
        find_way(self.fleet, to, self.work, clock::now())
    }

    async fn once(&self, leg: &Leg, way: Way) -> Result<(Leased, Head), ExecError> {
        let how = Joining {
            settings: self.settings,
            slot_by: Some(sooner(self.overall.map(|d| d.at), SLOT_WAIT)),
            opening: &[],
            role: self.role,
        };
        let conn = self
            .within(self.overall, &leg.shard, ready_conn(way, how))
            .await?
            .map_err(|e| ExecError::tablet(leg.shard.clone(), e))?;
        let mut lease = Leased::fresh(leg.shard.clone(), self.role, conn);
        let deadline = self.limits.attempt_deadline(clock::now());
        let sending = payload::send(&mut lease, leg, self.payload, (self.work, &self.limits));
        let head = match self.within(deadline, &leg.shard, sending).await {
            Ok(head) => head.map_err(|e| lost(&leg.shard, e, false))?,
            Err(e) => {
                lease.gave_up(self.limits.tablet);
                return Err(e);
            }
        };
        match head {
            Head::Err(e) => Err(ExecError::Server {
                shard: leg.shard.clone(),
                error: server_error(&e),
            }),
            head => Ok((lease, head)),
        }
    }

    async fn within<T>(
        &self,
        deadline: Option<Deadline>,
        shard: &ShardId,
        what: impl Future<Output = T>,
    ) -> Result<T, ExecError> {
        let Some(passed) = deadline else {
            return Ok(what.await);
        };
        tokio::time::timeout_at(passed.at, what).await.map_err(|_| {
            self.metrics.timeouts.handle(passed.layer.label()).inc();
            Interrupt::Deadline(passed).into_error(shard.to_string(), "")
        })
    }
}
