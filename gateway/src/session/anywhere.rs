//! Which shard is asked where any of them can answer.

use std::sync::Arc;
use std::time::Duration;

use super::lately::Trust;
use super::{Session, SessionError, Shared};
use crate::base::{GatewayError, KeyspaceName, Role, ShardId, clock};
use crate::exec::{Deadline, ExecError, Layer};
use crate::guard::{Outcome, Work};
use crate::plan::{Keyspace, PlanError};
use crate::tablet::{Settings, TabletError};

/// How long a shard may take to answer a question that another could answer as well.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How many shards are asked the same question at most.
const MAX_ASKED: usize = 4;

/// Where among a keyspace's shards the choice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// At the first: for questions about tables, so that everybody is told the same.
    First,
    /// At one that differs between sessions, so that not all ask the same shard.
    Own,
}

impl Session {
    /// The shard to ask, as far as is known now: the first of a keyspace's that is not known to be silent.
    pub(super) fn likely_index(&self, keyspace: &Keyspace, from: From) -> usize {
        self.likely_index_but(keyspace, from, &[])
    }

    /// The same, of those not in a list.
    fn likely_index_but(&self, keyspace: &Keyspace, from: From, but: &[usize]) -> usize {
        let shards = &keyspace.shards;
        if shards.len() < 2 {
            return 0;
        }
        let now = clock::now();
        let role = self.state.target.role;
        let start = match from {
            From::First => 0,
            From::Own => self.registration.handle.id as usize % shards.len(),
        };
        let mut order = (0..shards.len())
            .map(|i| (start + i) % shards.len())
            .filter(|i| !but.contains(i));
        let likely = |i: &usize| {
            let shard = &shards[*i].id;
            let silent = self.shared.lately.trust(shard, role, now) == Trust::Silent;
            if silent && self.shared.lately.look_is_due(shard, role, now) {
                look_again(&self.shared, shard.clone(), role);
            }
            !silent
        };
        order.find(likely).unwrap_or(start)
    }

    /// The shard that answers: asks the likely one, unless it answered a moment ago, and waits only a little. One whose
    /// connections are all in use, or which a guard holds back, was not asked: it is passed over, and nothing is held
    /// against it. Where no shard answers, the statement itself will tell why.
    pub(super) async fn find_answering(
        &mut self,
        keyspace: &Keyspace,
        from: From,
    ) -> Result<usize, SessionError> {
        if keyspace.shards.len() < 2 {
            return Ok(0);
        }
        let role = self.state.target.role;
        let mut busy = Vec::new();
        for _ in 0..MAX_ASKED {
            let index = self.likely_index_but(keyspace, from, &busy);
            let Some(shard) = keyspace.shards.get(index) else {
                break;
            };
            if self.shared.lately.trust(&shard.id, role, clock::now()) != Trust::Likely {
                return Ok(index);
            }
            match Box::pin(self.ping(&shard.id)).await {
                Ok(()) => {
                    self.shared.lately.answered(&shard.id, role, clock::now());
                    return Ok(index);
                }
                Err(e) => {
                    if self.note_silence(&shard.id, e)? == Asked::No {
                        busy.push(index);
                    }
                }
            }
        }
        Ok(self.likely_index_but(keyspace, from, &busy))
    }

    /// The shard for a statement that any shard of a keyspace can answer; `None` if there is no choice.
    pub(super) async fn answering_shard(
        &mut self,
        keyspace: &Keyspace,
    ) -> Result<Option<ShardId>, SessionError> {
        if keyspace.shards.len() < 2 || self.held_shard().is_some() {
            return Ok(None);
        }
        let index = self.find_answering(keyspace, From::Own).await?;
        Ok(keyspace.shards.get(index).map(|s| s.id.clone()))
    }

    async fn ping(&mut self, shard: &ShardId) -> Result<(), SessionError> {
        let patience = patience(self.deadline());
        let mut lease = self.borrow(shard, Some(patience), Work::CONNECT).await?;
        let ping = lease.conn.ping(patience.at);
        let pinged = self.ask(shard, Some(patience), ping).await;
        self.give_back(lease, pinged)
    }

    /// A shard to ask something that is about no keyspace: of the session's own, or any.
    pub(super) async fn any_shard(&mut self) -> Result<ShardId, SessionError> {
        if let Some(held) = self.held_shard() {
            return Ok(held);
        }
        let keyspace = self.own_keyspace()?;
        if let Some(shard) = self.chosen_in(&keyspace) {
            return Ok(shard);
        }
        let index = self.find_answering(&keyspace, From::Own).await?;
        let shard = keyspace.shards.get(index).ok_or(PlanError::NoKeyspace)?;
        Ok(shard.id.clone())
    }

    /// The session's keyspace, or any.
    fn own_keyspace(&self) -> Result<Arc<Keyspace>, SessionError> {
        let named = self.state.target.keyspace.as_ref();
        let own = named.and_then(|k| self.view.catalog.keyspace(k.as_str()));
        let keyspace = own.or_else(|| self.view.catalog.any_keyspace());
        Ok(Arc::clone(keyspace.ok_or(PlanError::NoKeyspace)?))
    }

    /// The shard of a keyspace that the session chose.
    fn chosen_in(&self, keyspace: &Keyspace) -> Option<ShardId> {
        let target = &self.state.target;
        let shard = target.shard.as_ref()?;
        if target.keyspace.as_ref() != Some(&keyspace.name) {
            return None;
        }
        let index = keyspace.shard_index(shard)?;
        keyspace.shards.get(index).map(|s| s.id.clone())
    }

    /// Shards to try settings on, the best first. What an expression in them says may depend on the keyspace, so
    /// `elsewhere` is whether others will do as well.
    pub(super) fn places_to_try(&self, elsewhere: Elsewhere) -> Result<Vec<ShardId>, SessionError> {
        if let Some(held) = self.held_shard() {
            return Ok(vec![held]);
        }
        let own = self.own_keyspace()?;
        let chosen = self.chosen_in(&own);
        let mut places = Vec::new();
        match (&chosen, elsewhere) {
            (Some(chosen), Elsewhere::No) => return Ok(vec![chosen.clone()]),
            (Some(chosen), Elsewhere::Yes) => places.push(chosen.clone()),
            (None, _) => {}
        }
        let first = self.likely_index(&own, From::Own);
        let n = own.shards.len();
        let of_own = (0..n).filter_map(|i| own.shards.get((first + i) % n));
        places.extend(
            of_own
                .map(|s| s.id.clone())
                .filter(|s| Some(s) != chosen.as_ref()),
        );
        if elsewhere == Elsewhere::Yes {
            let mut others: Vec<_> = self
                .view
                .catalog
                .keyspaces()
                .filter(|k| k.name != own.name)
                .filter_map(|k| k.shards.get(self.likely_index(k, From::Own)))
                .map(|s| s.id.clone())
                .collect();
            others.sort();
            // One of each is enough, between those that seem well and those that do not.
            places.append(&mut others);
        }
        let (role, now) = (self.state.target.role, clock::now());
        places.sort_by_key(|s| self.shared.lately.trust(s, role, now) == Trust::Silent);
        places.truncate(MAX_ASKED);
        Ok(places)
    }

    /// Notes that a shard did not answer a question that another may answer, if it was asked at all. Gives the error back
    /// where asking another would be no use: a server's own answer, a client that is gone, a kill, a deadline.
    pub(super) fn note_silence(&self, shard: &ShardId, error: SessionError) -> Result<Asked, SessionError> {
        let SessionError::Exec(e) = &error else {
            return Err(error);
        };
        match was_asked(e) {
            None => return Err(error),
            Some(Asked::No) => {
                tracing::debug!(%shard, error = %e, "not asked; questions that any shard can answer go elsewhere");
                return Ok(Asked::No);
            }
            Some(Asked::Yes) => {}
        }
        let reason = error.client_error().message;
        let role = self.state.target.role;
        self.shared.lately.failed(shard, role, clock::now(), &reason);
        Ok(Asked::Yes)
    }

    /// A keyspace by its name.
    pub(super) fn keyspace_named(&self, name: &KeyspaceName) -> Result<Arc<Keyspace>, SessionError> {
        let found = self.view.catalog.keyspace(name.as_str());
        found
            .cloned()
            .ok_or_else(|| SessionError::UnknownDatabase(name.to_string()))
    }
}

/// Whether a shard that gave no answer was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It was, and is silent.
    Yes,
    /// The question never left the gateway.
    No,
}

/// Whether a shard was asked before this error; `None` where another would answer no better.
fn was_asked(error: &ExecError) -> Option<Asked> {
    match error {
        ExecError::Tablet { source, .. } => Some(match source {
            TabletError::PoolFull { .. }
            | TabletError::PoolTimeout { .. }
            | TabletError::Draining { .. }
            | TabletError::Guard(_) => Asked::No,
            _ => Asked::Yes,
        }),
        ExecError::NoTablet { .. } | ExecError::Deadline { .. } => Some(Asked::Yes),
        _ => None,
    }
}

/// When a question must be answered that another shard could answer as well, within the command's own limit.
pub(super) fn patience(command: Option<Deadline>) -> Deadline {
    let own = Deadline {
        at: clock::now() + PATIENCE,
        after: PATIENCE,
        layer: Layer::Gateway,
    };
    command.filter(|d| d.at <= own.at).unwrap_or(own)
}

/// Whether shards of other keyspaces may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    Yes,
    No,
}

/// Looks in the background whether a silent shard answers again.
fn look_again(gateway: &Arc<Shared>, shard: ShardId, role: Role) {
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        let by = clock::now() + PATIENCE;
        let Some(pool) = gateway.fleet.pool(&shard, role, false) else {
            return;
        };
        let Ok(pass) = pool.enter(Work::CONNECT, clock::now()) else {
            return;
        };
        let Ok(mut conn) = pool.checkout(pass, &Settings::default(), Some(by)).await else {
            return;
        };
        let Ok(attempt) = conn.start(Work::CONNECT, clock::now()) else {
            return;
        };
        let gate = Arc::clone(conn.gate());
        match conn.ping(by).await {
            Ok(()) => {
                attempt.record(&gate, Outcome::Success, clock::now());
                gateway.lately.answered(&shard, role, clock::now());
            }
            Err(_) if conn.owes_answer() => attempt.gave_up(&gate, Some(PATIENCE), clock::now()),
            Err(e) => attempt.record(&gate, e.outcome(conn.info().role), clock::now()),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_was_not_asked_is_not_called_silent() {
        let tablet = || "s0".into();
        let of = |source| {
            let shard = ShardId {
                keyspace: "k".into(),
                shard: "-80".into(),
            };
            was_asked(&ExecError::tablet(shard, source))
        };
        let (size, waiters, waited) = (1, 1, PATIENCE);
        for source in [
            TabletError::PoolFull {
                tablet: tablet(),
                size,
                waiters,
            },
            TabletError::PoolTimeout {
                tablet: tablet(),
                waited,
            },
            TabletError::Draining { tablet: tablet() },
        ] {
            assert_eq!(of(source), Some(Asked::No));
        }
        let connect = TabletError::Connect {
            tablet: tablet(),
            reason: "refused".into(),
            by: crate::tablet::NoConnection::Unreachable,
        };
        assert_eq!(of(connect), Some(Asked::Yes));
        assert_eq!(was_asked(&ExecError::ClientGone), None);
    }
}
