//! Follows each shard's primary: every look at a tablet is judged, and whoever has to know is told.
//!
//! The terms of all shards, and the configuration they are laid over, are changed under one lock: by the pollers, by an
//! orchestrator, and by a reload. Nothing waits inside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admin::AppointError;
use crate::balance::Fleet;
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId, TabletAlias};
use crate::config::{self, Config};
use crate::guard::News;
use crate::topology::{
    Health, HealthListener, Leadership, Observation, PrimarySource, Seen, TabletHealth, TabletInfo, Term,
    TopologyView, Vacancy, Verdict, judge,
};

/// Who is primary of each shard.
pub(super) struct Follower {
    health: Arc<Health>,
    fleet: Arc<Fleet>,
    topology: Arc<TopologyView>,
    metrics: Arc<Metrics>,
    state: Mutex<Following>,
}

/// What is known, and what it is laid over.
pub(super) struct Following {
    /// As the file has it.
    config: Arc<Config>,
    source: PrimarySource,
    shards: HashMap<ShardId, Followed>,
}

#[derive(Debug)]
struct Followed {
    term: Term,
    /// The last verdict, for the log.
    leadership: Option<Leadership>,
}

impl Follower {
    pub(super) fn new(
        (health, fleet, topology): (Arc<Health>, Arc<Fleet>, Arc<TopologyView>),
        config: Arc<Config>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let mut following = Following {
            source: source(&config),
            config: Arc::clone(&config),
            shards: HashMap::new(),
        };
        following.adopt(config);
        Self {
            health,
            fleet,
            topology,
            metrics,
            state: Mutex::new(following),
        }
    }

    /// A poisoned lock means a panic between two whole changes.
    pub(super) fn lock(&self) -> MutexGuard<'_, Following> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A configuration with the tablets' roles as they are now, unless it says itself which they are.
    pub(super) fn effective(&self, config: &Config) -> Config {
        match source(config) {
            PrimarySource::Config => config.clone(),
            PrimarySource::Poll | PrimarySource::Api => self.lock().laid_over(config),
        }
    }

    /// Judges all shards by what is known of their tablets.
    pub(super) fn review(&self) {
        let mut following = self.lock();
        let shards: Vec<ShardId> = following.shards.keys().cloned().collect();
        for shard in shards {
            self.judge(&mut following, &shard);
        }
    }

    /// An operator, or an orchestrator, says which tablet is a shard's primary, against whatever its tablets say.
    pub(super) fn appoint(&self, shard: &ShardId, tablet: &TabletAlias) -> Result<(), AppointError> {
        let mut following = self.lock();
        if following.source == PrimarySource::Config {
            return Err(AppointError::ByConfiguration);
        }
        let tablets = self.health.of_shard(shard);
        let followed = following
            .shards
            .get_mut(shard)
            .ok_or(AppointError::UnknownShard)?;
        if !tablets.iter().any(|t| t.info().alias == *tablet) {
            return Err(AppointError::UnknownTablet);
        }
        let before = followed.term.primary.clone();
        let aliases = tablets.iter().map(|t| t.info().alias.clone());
        followed.term = Term::decided(tablet.clone(), aliases);
        tracing::warn!(%shard, reason = "appointed", from = %before, to = %tablet, "the primary was appointed");
        if before != *tablet {
            self.move_roles(&following, shard);
        }
        self.judge(&mut following, shard);
        drop(following);
        self.health.demand(shard);
        Ok(())
    }

    /// The roles of all tablets, as the terms have them, to everybody who goes by them.
    fn move_roles(&self, following: &Following, shard: &ShardId) {
        let effective = following.laid_over(&following.config);
        if let Err(e) = self.topology.reload(&effective) {
            // Cannot be: the same shards with other roles.
            tracing::error!(error = %e, "the topology cannot follow a primary");
        }
        let tablets = super::tablets(&effective);
        self.set_roles(&tablets);
        self.fleet.update(tablets);
        self.has_moved(following, shard);
    }

    /// Another tablet of the shard is the primary now, and everybody goes by it.
    pub(super) fn has_moved(&self, following: &Following, shard: &ShardId) {
        let guards = self.fleet.guards();
        // What is still on its way to the old one says nothing of the new one.
        guards.shard(shard).renew(guards.time(clock::now()));
        if let Some(followed) = following.shards.get(shard) {
            guards.buffer(shard).appointed(&followed.term.primary);
        }
        self.metrics.primary_changes.handle(&label(shard)).inc();
    }

    /// The roles of tablets that are looked at.
    pub(super) fn set_roles(&self, tablets: &[Arc<TabletInfo>]) {
        for info in tablets {
            if let Some(tablet) = self.health.tablet(&info.alias) {
                tablet.set_role(info.role);
            }
        }
    }

    fn judge(&self, following: &mut Following, shard: &ShardId) {
        let tablets = self.health.of_shard(shard);
        let source = following.source;
        let Some(followed) = following.shards.get_mut(shard) else {
            return;
        };
        let infos: Vec<_> = tablets.iter().map(|t| (t.info(), t.standing())).collect();
        let seen: Vec<Seen<'_>> = infos
            .iter()
            .map(|(info, standing)| Seen {
                alias: &info.alias,
                standing: standing.as_deref(),
            })
            .collect();
        let verdict = judge(source, &followed.term, &seen);
        let moved = verdict.term.primary != followed.term.primary;
        self.tell(shard, followed, &verdict);
        if let Some(alias) = &verdict.look_again
            && let Some(tablet) = self.health.tablet(alias)
        {
            tablet.demand();
        }
        for tablet in &tablets {
            let outcast = verdict.term.outcasts().any(|alias| *alias == tablet.info().alias);
            tablet.set_quarantined(outcast);
        }
        followed.term = verdict.term;
        followed.leadership = Some(verdict.leadership.clone());
        let term = followed.term.clone();
        if moved {
            self.move_roles(following, shard);
        }
        // Last: whoever waited goes to the pools that are there now.
        let now = clock::now();
        let news = match may_bypass(&tablets) {
            Some(privilege) => News::MayBypass { privilege },
            None => news(&term, verdict.leadership, now),
        };
        self.fleet.guards().buffer(shard).told(news, now);
    }

    fn tell(&self, shard: &ShardId, followed: &Followed, verdict: &Verdict) {
        let (before, after) = (&followed.term, &verdict.term);
        if before.primary != after.primary {
            tracing::warn!(
                %shard, reason = "primary_changed", from = %before.primary, to = %after.primary,
                lacks_writes = verdict.lacks_writes, "another tablet is the primary"
            );
        }
        for alias in after.quarantined.difference(&before.quarantined) {
            tracing::warn!(%shard, tablet = %alias, reason = "quarantined", "takes writes beside the primary; it serves nobody");
        }
        for alias in before.quarantined.difference(&after.quarantined) {
            tracing::info!(%shard, tablet = %alias, reason = "quarantine_ended", "takes no writes beside the primary any more");
        }
        let split = |l: Option<&Leadership>| l == Some(&Leadership::SplitBrain);
        match (
            split(followed.leadership.as_ref()),
            split(Some(&verdict.leadership)),
        ) {
            (false, true) => {
                self.metrics.split_brains.handle(&label(shard)).inc();
                let rivals: Vec<&str> = after.rivals.iter().map(TabletAlias::as_str).collect();
                tracing::error!(
                    %shard, reason = "split_brain", primary = %after.primary, rivals = rivals.join(", "),
                    "several tablets took writes and went apart; writes are refused until an operator decides"
                );
            }
            (true, false) => {
                tracing::warn!(%shard, reason = "split_brain_ended", primary = %after.primary, "writes are taken again");
            }
            (true, true) | (false, false) => {}
        }
    }
}

impl Following {
    /// Takes in another configuration: terms of shards and tablets that are still there go on. The shards that have another
    /// primary by it.
    pub(super) fn adopt(&mut self, config: Arc<Config>) -> Vec<ShardId> {
        let source = source(&config);
        let before: HashMap<ShardId, TabletAlias> = self
            .shards
            .iter()
            .map(|(id, followed)| (id.clone(), followed.term.primary.clone()))
            .collect();
        let mut shards = HashMap::new();
        for info in super::tablets(&config) {
            if info.role != Role::Primary {
                continue;
            }
            let known = self.shards.remove(&info.shard);
            let still_there = |term: &Term| {
                super::tablets(&config)
                    .iter()
                    .any(|t| t.shard == info.shard && t.alias == term.primary)
            };
            let followed = match known {
                Some(known) if source != PrimarySource::Config && still_there(&known.term) => known,
                known => Followed {
                    term: Term::of(info.alias.clone()),
                    leadership: known.and_then(|k| k.leadership),
                },
            };
            shards.insert(info.shard.clone(), followed);
        }
        self.shards = shards;
        self.source = source;
        self.config = config;
        let moved = |(id, followed): (&ShardId, &Followed)| {
            let other = before.get(id).is_some_and(|p| *p != followed.term.primary);
            other.then(|| id.clone())
        };
        self.shards.iter().filter_map(moved).collect()
    }

    /// A configuration with the roles of the terms.
    pub(super) fn laid_over(&self, config: &Config) -> Config {
        let mut config = config.clone();
        for (name, keyspace) in &mut config.keyspaces {
            for shard in &mut keyspace.shards {
                let id = ShardId::new(name.clone(), shard.name.clone());
                let Some(followed) = self.shards.get(&id) else {
                    continue;
                };
                if !shard.tablets.iter().any(|t| t.alias == followed.term.primary) {
                    continue;
                }
                for tablet in &mut shard.tablets {
                    tablet.role = if tablet.alias == followed.term.primary {
                        Role::Primary
                    } else {
                        Role::Replica
                    };
                }
            }
        }
        config
    }
}

impl HealthListener for Follower {
    fn observed(&self, tablet: &TabletInfo, _: &Observation) {
        self.judge(&mut self.lock(), &tablet.shard);
    }
}

fn source(config: &Config) -> PrimarySource {
    match config.poller.primary_source {
        config::PrimarySource::Poll => PrimarySource::Poll,
        config::PrimarySource::Config => PrimarySource::Config,
        config::PrimarySource::Api => PrimarySource::Api,
    }
}

fn label(shard: &ShardId) -> String {
    format!("{}.{}", shard.keyspace, shard.shard)
}

fn news(term: &Term, leadership: Leadership, now: Instant) -> News {
    let since = now;
    match leadership {
        Leadership::Writes { seen } => News::Writes {
            primary: term.primary.clone(),
            seen,
        },
        Leadership::SplitBrain => News::SplitBrain,
        Leadership::Vacant(vacancy) => {
            let why = vacancy.to_string();
            match vacancy {
                Vacancy::NotMeasured | Vacancy::Silent(_) => News::Unknown { why },
                Vacancy::Gone(_) => News::Gone { why, since },
                Vacancy::ReadOnly | Vacancy::Behind(_) => News::ReadOnly { why, since },
            }
        }
    }
}

/// The privilege by which the gateway's user would write to a replaced primary. Where a shard has one tablet nobody
/// replaces it.
fn may_bypass(tablets: &[Arc<TabletHealth>]) -> Option<String> {
    if tablets.len() < 2 {
        return None;
    }
    tablets
        .iter()
        .find_map(|t| t.standing()?.facts()?.bypasses_read_only.clone())
}
