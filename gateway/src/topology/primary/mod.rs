//! Who is primary of a shard: a pure function of what its tablets said last.
//!
//! ```text
//! claims   = it serves, takes writes, and is known to replicate from nobody
//! incumbent claims, nobody else does                  -> it is the primary
//! incumbent claims, another does                      -> look at the incumbent again, if its word is the older one; then:
//!   the incumbent has everything the other has        -> the other is quarantined
//!   the other was primary, and was succeeded          -> likewise: what only it has was lost with its term, and told
//!   it has not, or nobody can tell                    -> split brain
//! incumbent takes no writes or is gone, nobody claims -> vacant
//! incumbent takes no writes or is gone, one claims    -> that one is the primary, unless it lacks something of a living
//!                                                        incumbent, or claimed while the incumbent still wrote
//! incumbent takes no writes or is gone, many claim    -> split brain
//! ```
//!
//! An incumbent keeps its term: nobody takes it away but by not writing any more. A split brain stays one until an operator
//! decides, or until only the incumbent claims and has everything that the others have: one of two diverged servers may
//! die, and the other would serve as if nothing were lost. Nor is a tablet that was succeeded and came back, and lacks anything of
//! the incumbent, its heir: it never stopped claiming, so nobody has promoted it.

mod claim;

use std::collections::BTreeSet;

use claim::Claim;

use super::health::Standing;
use crate::base::TabletAlias;
use crate::base::clock::Instant;

/// Who says which tablet is a shard's primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrimarySource {
    /// The tablets themselves, as the poller sees them.
    #[default]
    Poll,
    /// The configuration: a reload moves it.
    Config,
    /// An orchestrator, over HTTP. Until it speaks, the configuration.
    Api,
}

/// What was decided of a shard so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The primary.
    pub primary: TabletAlias,
    /// Whether it was ever seen to take writes in this term.
    pub confirmed: bool,
    /// Tablets that an operator decided against, until they take no writes any more.
    pub rejected: BTreeSet<TabletAlias>,
    /// Tablets that take writes beside the primary, which has all that they have.
    pub quarantined: BTreeSet<TabletAlias>,
    /// Who took writes beside the primary and went apart from it, until that is settled.
    pub rivals: BTreeSet<TabletAlias>,
    /// Who was primary and was succeeded, until it is seen to take no writes any more.
    pub deposed: BTreeSet<TabletAlias>,
}

impl Term {
    /// The term of a tablet that nobody contests.
    #[must_use]
    pub fn of(primary: TabletAlias) -> Self {
        Self {
            primary,
            confirmed: false,
            rejected: BTreeSet::new(),
            quarantined: BTreeSet::new(),
            rivals: BTreeSet::new(),
            deposed: BTreeSet::new(),
        }
    }

    /// The term of the tablet that follows.
    fn succeeded_by(mut self, heir: &TabletAlias) -> Self {
        self.deposed.insert(self.primary);
        self.deposed.remove(heir);
        self.quarantined.remove(heir);
        Self {
            deposed: self.deposed,
            quarantined: self.quarantined,
            ..Self::of(heir.clone())
        }
    }

    /// Tablets that take writes, or took them, beside the primary: nobody is to read from them.
    pub fn outcasts(&self) -> impl Iterator<Item = &TabletAlias> {
        self.rejected.iter().chain(&self.quarantined).chain(&self.rivals)
    }

    /// The term of a tablet that an operator chose over all others of the shard.
    #[must_use]
    pub fn decided(primary: TabletAlias, all: impl IntoIterator<Item = TabletAlias>) -> Self {
        let rejected = all.into_iter().filter(|alias| *alias != primary).collect();
        Self {
            rejected,
            confirmed: true,
            ..Self::of(primary)
        }
    }
}

/// One tablet of the shard, as last seen; `None` if nobody has looked at it yet.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its alias.
    pub alias: &'a TabletAlias,
    /// What is known of it.
    pub standing: Option<&'a Standing>,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The term from now on.
    pub term: Term,
    /// Whether its primary serves.
    pub leadership: Leadership,
    /// A tablet whose word is too old to judge by.
    pub look_again: Option<TabletAlias>,
    /// Whether the primary is another one that lacks writes which the last one had.
    pub lacks_writes: bool,
}

/// Whether a shard's primary serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It takes writes.
    Writes {
        /// When the look that saw it began.
        seen: Instant,
    },
    /// It takes none, and nobody else is to take them.
    Vacant(Vacancy),
    /// Several tablets took writes and went apart: who is right only an operator knows.
    SplitBrain,
}

/// Why a shard has no primary that takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vacancy {
    /// Nobody has looked at it yet.
    NotMeasured,
    /// It does not serve: the poller's reason.
    Gone(String),
    /// It does not answer, or nothing that can be understood, for the poller's reason: slow, or gone, nobody knows.
    Silent(String),
    /// It is read-only.
    ReadOnly,
    /// It is read-only, and the tablet that takes writes in its place lacks some of its transactions.
    Behind(TabletAlias),
}

impl std::fmt::Display for Vacancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotMeasured => f.write_str("its primary was never looked at"),
            Self::Gone(why) | Self::Silent(why) => write!(f, "its primary {why}"),
            Self::ReadOnly => f.write_str("its primary is read-only"),
            Self::Behind(other) => write!(
                f,
                "its primary is read-only, and {other}, which takes writes, lacks some of its transactions"
            ),
        }
    }
}

/// Judges a shard by what its tablets said last.
#[must_use]
pub fn judge(source: PrimarySource, term: &Term, tablets: &[Seen<'_>]) -> Verdict {
    let judged = Judged {
        term,
        incumbent: tablets.iter().find(|t| *t.alias == term.primary).copied(),
        tablets,
    };
    match source {
        PrimarySource::Poll => judged.by_claims(),
        PrimarySource::Config | PrimarySource::Api => judged.appointed(),
    }
}

struct Judged<'a> {
    term: &'a Term,
    incumbent: Option<Seen<'a>>,
    tablets: &'a [Seen<'a>],
}

impl<'a> Judged<'a> {
    /// Somebody else has decided: only whether it serves is to be seen.
    fn appointed(&self) -> Verdict {
        let leadership = match self.claim() {
            Claim::Writes { seen } | Claim::Follows { seen } => Leadership::Writes { seen },
            gone => vacant(&gone),
        };
        verdict(Term::of(self.term.primary.clone()), leadership)
    }

    fn by_claims(&self) -> Verdict {
        let mut term = self.term.clone();
        let claiming: Vec<Seen<'a>> = self
            .tablets
            .iter()
            .filter(|t| *t.alias != self.term.primary && claim::of_other(t).is_some())
            .copied()
            .collect();
        let claims = |alias: &TabletAlias| claiming.iter().any(|t| t.alias == alias);
        // Let go only by their own word: one that is down may come back as it was.
        let still = |alias: &TabletAlias| {
            let standing = self.tablets.iter().find(|t| t.alias == alias).map(|t| t.standing);
            match standing {
                Some(Some(standing)) if standing.serving => claims(alias),
                Some(_) => true,
                None => false,
            }
        };
        term.rejected.retain(still);
        term.quarantined.retain(still);
        term.deposed.retain(still);
        let rivals: Vec<Seen<'a>> = claiming
            .iter()
            .filter(|t| !term.rejected.contains(t.alias))
            .copied()
            .collect();
        match self.claim() {
            Claim::Writes { seen } => match self.heir_by_right(&rivals) {
                Some(heir) => heir,
                None => self.contested(term, seen, &rivals),
            },
            // It writes and replicates, as a pair does whose halves replicate from each other; or it was made to follow
            // another, and nobody made it read-only. Then the other has all that it has.
            Claim::Follows { seen } => match rivals.as_slice() {
                [heir] if self.has_all_of_incumbent(heir) == Some(true) => {
                    self.succeeded(term, &Claim::Follows { seen }, &rivals)
                }
                _ => self.contested(term, seen, &rivals),
            },
            // Nobody knows what it is: it may be the primary.
            Claim::NotMeasured => verdict(term, vacant(&Claim::NotMeasured)),
            gone => self.succeeded(term, &gone, &rivals),
        }
    }

    /// The incumbent takes writes.
    fn contested(&self, mut term: Term, seen: Instant, rivals: &[Seen<'a>]) -> Verdict {
        let mine = self.incumbent.and_then(|t| claim::position(&t));
        let has_all_of = |tablet: &Seen<'_>| match (mine, claim::position(tablet)) {
            (Some(mine), Some(theirs)) => Some(mine.contains(theirs)),
            _ => None,
        };
        let mut look_again = None;
        for rival in rivals {
            // Without positions: a replica that somebody stopped is not one that somebody promoted.
            let contained = has_all_of(rival).unwrap_or_else(|| claim::has_channels(rival))
                || term.deposed.contains(rival.alias);
            if contained && term.quarantined.contains(rival.alias) || term.rivals.contains(rival.alias) {
                continue;
            }
            if claim::of_other(rival).is_some_and(|said| seen < said) {
                // Between its word and the other's it may have been told to write no more.
                look_again = Some(self.term.primary.clone());
            } else if contained {
                term.quarantined.insert(rival.alias.clone());
            } else {
                term.quarantined.remove(rival.alias);
                term.rivals.insert(rival.alias.clone());
            }
        }
        // Who claims no more, and whose writes are all here, is settled.
        let unsettled = |alias: &TabletAlias| {
            rivals.iter().any(|t| t.alias == alias)
                || self
                    .tablets
                    .iter()
                    .any(|t| t.alias == alias && has_all_of(t) != Some(true))
        };
        term.rivals.retain(unsettled);
        let leadership = if term.rivals.is_empty() {
            Leadership::Writes { seen }
        } else {
            Leadership::SplitBrain
        };
        Verdict {
            look_again,
            ..verdict(term, leadership)
        }
    }

    /// The incumbent takes no writes.
    fn succeeded(&self, mut term: Term, gone: &Claim, claiming: &[Seen<'a>]) -> Verdict {
        if !term.rivals.is_empty() {
            return verdict(term, Leadership::SplitBrain);
        }
        // One that claimed while the incumbent wrote, or was succeeded by it, was not promoted in its place.
        let pretends = |t: &Seen<'_>| {
            let known = term.quarantined.contains(t.alias) || term.deposed.contains(t.alias);
            known
                && !self
                    .has_all_of_incumbent(t)
                    .unwrap_or_else(|| !claim::has_channels(t))
        };
        let (pretenders, heirs): (Vec<Seen<'a>>, Vec<Seen<'a>>) =
            claiming.iter().copied().partition(pretends);
        match heirs.as_slice() {
            [] => match pretenders.first() {
                Some(behind) if *gone == Claim::ReadOnly => {
                    let behind = Vacancy::Behind(behind.alias.clone());
                    verdict(term, Leadership::Vacant(behind))
                }
                Some(_) | None => verdict(term, vacant(gone)),
            },
            [heir] => {
                let lacks_writes = self.has_all_of_incumbent(heir) == Some(false);
                if lacks_writes && *gone == Claim::ReadOnly {
                    let behind = Vacancy::Behind(heir.alias.clone());
                    term.quarantined.insert(heir.alias.clone());
                    return verdict(term, Leadership::Vacant(behind));
                }
                let seen = heir.standing.and_then(|s| s.answered.as_ref()).map(|o| o.at);
                let leadership = seen.map_or_else(|| vacant(gone), |seen| Leadership::Writes { seen });
                Verdict {
                    lacks_writes,
                    ..verdict(term.succeeded_by(heir.alias), leadership)
                }
            }
            many => {
                term.rivals.extend(many.iter().map(|t| t.alias.clone()));
                verdict(term, Leadership::SplitBrain)
            }
        }
    }

    /// Whether a tablet has every transaction that the incumbent had, by their last words; `None` if nobody can tell.
    fn has_all_of_incumbent(&self, tablet: &Seen<'_>) -> Option<bool> {
        let had = self.incumbent.and_then(|t| claim::position(&t))?;
        Some(claim::position(tablet)?.contains(had))
    }

    /// Before any term was confirmed the incumbent is only what the file says, which may be from before a failover: of
    /// two that take writes the one with more of them is the primary.
    fn heir_by_right(&self, rivals: &[Seen<'a>]) -> Option<Verdict> {
        let [heir] = rivals else { return None };
        let mine = self.incumbent.and_then(|t| claim::position(&t))?;
        let ahead = self.has_all_of_incumbent(heir)? && !mine.contains(claim::position(heir)?);
        if self.term.confirmed || !self.term.rivals.is_empty() || !ahead {
            return None;
        }
        let seen = heir.standing?.answered.as_ref()?.at;
        let mut term = Term::of(heir.alias.clone());
        term.confirmed = true;
        term.quarantined.insert(self.term.primary.clone());
        term.deposed.insert(self.term.primary.clone());
        Some(verdict(term, Leadership::Writes { seen }))
    }

    fn claim(&self) -> Claim {
        self.incumbent.map_or(Claim::NotMeasured, |t| Claim::of(&t))
    }
}

fn vacant(claim: &Claim) -> Leadership {
    Leadership::Vacant(match claim {
        Claim::Gone(why) => Vacancy::Gone(why.clone()),
        Claim::Silent(why) => Vacancy::Silent(why.clone()),
        Claim::ReadOnly => Vacancy::ReadOnly,
        Claim::NotMeasured | Claim::Writes { .. } | Claim::Follows { .. } => Vacancy::NotMeasured,
    })
}

fn verdict(mut term: Term, leadership: Leadership) -> Verdict {
    term.confirmed |= matches!(leadership, Leadership::Writes { .. });
    Verdict {
        term,
        leadership,
        look_again: None,
        lacks_writes: false,
    }
}

#[cfg(test)]
mod tests;
