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

/// How little a shard is to be trusted with a question of no shard in particular; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Doubt {
    /// Its tablet does not serve, or has a breaker that is not plainly closed: it would refuse.
    unwell: bool,
    /// It did not answer when it was asked last.
    silent: bool,
}

impl Doubt {
    const NONE: Self = Self {
        unwell: false,
        silent: false,
    };
}

/// Where among a keyspace's shards the choice begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// At the first: for questions about tables, so that everybody is told the same.
    First,
    /// At one that differs between sessions, so that not all ask the same shard.
    Own,
}

impl Session {
    /// The shard to ask, as far as is known now: of those that look well the first that is not known to be silent.
    pub(super) fn likely_index(&self, keyspace: &Keyspace, from: From) -> usize {
        self.likely_index_but(keyspace, from, &[]).unwrap_or(0)
    }

    /// The same, of those not in a list; `None` if all are.
    fn likely_index_but(&self, keyspace: &Keyspace, from: From, but: &[usize]) -> Option<usize> {
        let shards = &keyspace.shards;
        let start = match from {
            From::First => 0,
            From::Own => self.registration.handle.id as usize % shards.len().max(1),
        };
        let order = (0..shards.len())
            .map(|i| (start + i) % shards.len())
            .filter(|i| !but.contains(i));
        let mut best = None;
        for index in order {
            let doubt = self.doubt(&shards[index].id);
            if best.is_none_or(|(least, _)| doubt < least) {
                best = Some((doubt, index));
            }
            if doubt == Doubt::NONE {
                break;
            }
        }
        best.map(|(_, index)| index)
    }

    /// What speaks against a shard. If it is known to be silent it is looked at again in the background, when that is due.
    fn doubt(&self, shard: &ShardId) -> Doubt {
        let (now, role) = (clock::now(), self.state.target.role);
        let silent = self.shared.lately.trust(shard, role, now) == Trust::Silent;
        if silent && self.shared.lately.look_is_due(shard, role, now) {
            look_again(&self.shared, shard.clone(), role);
        }
        let unwell = !self.shared.fleet.looks_well(shard, role);
        Doubt { unwell, silent }
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
            let Some(index) = self.likely_index_but(keyspace, from, &busy) else {
                break;
            };
            let shard = &keyspace.shards[index];
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
        let last = self.likely_index_but(keyspace, from, &busy);
        Ok(last.unwrap_or_else(|| self.likely_index(keyspace, from)))
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

    /// The shard to ask next for what any can answer, after the one that was chosen gave this error; `None` if it is not one
    /// after which to ask another, or if enough were asked. Only for a read on its own.
    pub(super) fn another_shard(
        &self,
        keyspace: &Keyspace,
        failed: &mut Vec<usize>,
        (shard, error): (&ShardId, &SessionError),
    ) -> Option<ShardId> {
        let SessionError::Exec(error) = error else {
            return None;
        };
        if !never_left(error) || failed.len() + 1 >= MAX_ASKED {
            return None;
        }
        if was_asked(error) == Some(Asked::Yes) {
            let role = self.state.target.role;
            let reason = error.client_error().message;
            self.shared.lately.failed(shard, role, clock::now(), &reason);
        }
        failed.push(keyspace.shard_index(&shard.shard)?);
        let index = self.likely_index_but(keyspace, From::Own, failed)?;
        keyspace.shards.get(index).map(|s| s.id.clone())
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
    pub(super) fn own_keyspace(&self) -> Result<Arc<Keyspace>, SessionError> {
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
        places.sort_by_key(|s| self.doubt(s));
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

/// Whether the question ended before it was sent: nothing of an answer can have reached the client.
fn never_left(error: &ExecError) -> bool {
    match error {
        ExecError::NoTablet { .. } | ExecError::Buffer(_) => true,
        ExecError::Tablet { source, .. } => match source {
            TabletError::Connect { .. }
            | TabletError::Refused { .. }
            | TabletError::PoolFull { .. }
            | TabletError::PoolTimeout { .. }
            | TabletError::LostBeforeSend { .. }
            | TabletError::Draining { .. }
            | TabletError::Guard(_) => true,
            TabletError::Lost { .. } | TabletError::Protocol { .. } | TabletError::Server(_) => false,
        },
        _ => false,
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
