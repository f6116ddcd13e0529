use std::sync::Arc;
use std::time::Duration;

use super::super::observation::{
    Channel, Facts, Identity, Observation, PollError, Replication, Thread, UnknownReplication,
};
use super::super::position::Position;
use super::*;
use crate::base::clock;

/// A shard's tablets as their looks come in, one every ten milliseconds.
struct Story {
    now: Instant,
    term: Term,
    source: PrimarySource,
    tablets: Vec<(TabletAlias, Option<Standing>)>,
}

#[derive(Clone, Copy)]
enum Is {
    /// Takes writes, replicates nothing.
    Writable,
    ReadOnly,
    /// Read-only and replicating.
    Replica,
    /// Takes writes and replicates.
    WritableReplica,
    /// Takes writes; was told to replicate and then to stop.
    Stopped,
    /// Takes writes; what it replicates it does not say.
    Unknown,
}

fn facts(is: Is, position: &str) -> Facts {
    let channel = |thread| Channel {
        name: String::new(),
        source_host: "h".into(),
        source_port: 1,
        io: thread,
        sql: thread,
        seconds_behind: None,
        error: String::new(),
    };
    let replication = match is {
        Is::Writable | Is::ReadOnly => Replication::Channels(Vec::new()),
        Is::Replica | Is::WritableReplica => Replication::Channels(vec![channel(Thread::Running)]),
        Is::Stopped => Replication::Channels(vec![channel(Thread::Stopped)]),
        Is::Unknown => Replication::Unknown(UnknownReplication::Unsupported),
    };
    Facts {
        read_only: matches!(is, Is::ReadOnly | Is::Replica),
        super_read_only: None,
        replication,
        position: (!position.is_empty()).then(|| Position::of_mariadb(position).unwrap()),
        heartbeat: None,
        identity: Identity::default(),
        uptime: None,
        bypasses_read_only: None,
    }
}

impl Story {
    /// The first is the primary of the term.
    fn new(aliases: &[&str]) -> Self {
        Self {
            now: clock::now(),
            term: Term::of(aliases[0].into()),
            source: PrimarySource::Poll,
            tablets: aliases.iter().map(|a| (TabletAlias::from(*a), None)).collect(),
        }
    }

    fn look(&mut self, alias: &str, outcome: Result<Facts, PollError>) -> Verdict {
        let observation = Arc::new(Observation {
            at: self.now,
            took: Duration::from_millis(1),
            outcome,
        });
        self.now += Duration::from_millis(10);
        let entry = self
            .tablets
            .iter_mut()
            .find(|(a, _)| a.as_str() == alias)
            .unwrap();
        entry.1 = Some(Standing::next(entry.1.as_ref(), observation));
        let seen: Vec<Seen<'_>> = self
            .tablets
            .iter()
            .map(|(alias, standing)| Seen {
                alias,
                standing: standing.as_ref(),
            })
            .collect();
        let verdict = judge(self.source, &self.term, &seen);
        self.term = verdict.term.clone();
        verdict
    }

    fn is(&mut self, alias: &str, is: Is, position: &str) -> Verdict {
        self.look(alias, Ok(facts(is, position)))
    }

    /// The same of a server that logs all that it executes and replicates.
    fn logs(&mut self, alias: &str, is: Is, position: &str, log: &str) -> Verdict {
        let mut facts = facts(is, position);
        facts.position = facts.position.map(|p| p.with_log(log));
        self.look(alias, Ok(facts))
    }

    fn refuses(&mut self, alias: &str) -> Verdict {
        self.look(alias, Err(PollError::Unreachable("refused".into())))
    }

    fn late(&mut self, alias: &str) -> Verdict {
        self.look(alias, Err(PollError::Timeout(Duration::from_millis(250))))
    }
}

fn writes(verdict: &Verdict) -> Option<&str> {
    matches!(verdict.leadership, Leadership::Writes { .. }).then(|| verdict.term.primary.as_str())
}

fn quarantined(verdict: &Verdict) -> Vec<&str> {
    verdict.term.quarantined.iter().map(TabletAlias::as_str).collect()
}

#[test]
fn a_planned_promotion_moves_the_term_whatever_is_seen_first() {
    for old_first in [true, false] {
        let mut s = Story::new(&["a", "b"]);
        s.is("b", Is::Replica, "0-1-5");
        assert_eq!(writes(&s.is("a", Is::Writable, "0-1-5")), Some("a"));
        if old_first {
            let v = s.is("a", Is::ReadOnly, "0-1-9");
            assert_eq!(v.leadership, Leadership::Vacant(Vacancy::ReadOnly));
            assert_eq!(writes(&s.is("b", Is::Writable, "0-1-9")), Some("b"));
        } else {
            // The old one's word is older than the new one's: nothing is decided before it is asked again.
            let v = s.is("b", Is::Writable, "0-1-5");
            assert_eq!(
                (writes(&v), v.look_again.as_ref().unwrap().as_str()),
                (Some("a"), "a")
            );
            assert_eq!(quarantined(&v), [""; 0]);
            let v = s.is("a", Is::ReadOnly, "0-1-5");
            assert_eq!((writes(&v), v.lacks_writes), (Some("b"), false));
        }
        // The old one follows.
        let v = s.is("a", Is::Replica, "0-1-9");
        assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec![]));
    }
}

#[test]
fn a_killed_primary_is_succeeded_and_quarantined_when_it_comes_back_writable() {
    let mut s = Story::new(&["a", "b", "c"]);
    s.is("c", Is::Replica, "0-1-4");
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-7");
    let v = s.refuses("a");
    assert!(
        matches!(v.leadership, Leadership::Vacant(Vacancy::Gone(_))),
        "{v:?}"
    );
    let v = s.is("b", Is::Writable, "0-1-5");
    // What the old one had and nobody received is lost, and told.
    assert_eq!((writes(&v), v.lacks_writes), (Some("b"), true));
    s.is("b", Is::Writable, "0-2-9");
    let v = s.is("a", Is::Writable, "0-1-7");
    assert_eq!(v.look_again.as_ref().unwrap().as_str(), "b");
    for position in ["0-2-10", "0-2-11"] {
        let v = s.is("b", Is::Writable, position);
        assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec!["a"]));
        // It stays so, and nobody has to be asked again for it.
        let v = s.is("a", Is::Writable, "0-1-7");
        assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec!["a"]));
        assert_eq!(v.look_again, None);
    }
    let v = s.is("a", Is::Replica, "0-2-11");
    assert_eq!(quarantined(&v), [""; 0]);
}

#[test]
fn a_primary_that_is_only_late_keeps_its_term_until_it_is_silent_and_another_claims() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-5");
    assert_eq!(writes(&s.late("a")), Some("a"));
    let v = s.late("a");
    assert!(
        matches!(v.leadership, Leadership::Vacant(Vacancy::Silent(_))),
        "{v:?}"
    );
    assert_eq!(s.is("b", Is::Replica, "0-1-5").term.primary.as_str(), "a");
    assert_eq!(writes(&s.is("b", Is::Writable, "0-1-5")), Some("b"));
    assert_eq!(writes(&s.late("a")), Some("b"));
}

#[test]
fn the_same_primary_comes_back() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-5");
    s.refuses("a");
    assert_eq!(writes(&s.is("a", Is::Writable, "0-1-5")), Some("a"));
    s.is("a", Is::ReadOnly, "0-1-5");
    assert_eq!(writes(&s.is("a", Is::Writable, "0-1-5")), Some("a"));
}

#[test]
fn two_that_went_apart_are_a_split_brain_until_somebody_decides() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-5");
    s.is("b", Is::Writable, "0-2-8");
    let v = s.is("a", Is::Writable, "0-1-7");
    assert_eq!(v.leadership, Leadership::SplitBrain);
    // Neither the death of one nor of the other decides.
    assert_eq!(s.refuses("a").leadership, Leadership::SplitBrain);
    s.is("a", Is::Writable, "0-1-7");
    assert_eq!(s.refuses("b").leadership, Leadership::SplitBrain);
    s.is("b", Is::Writable, "0-2-8");
    assert_eq!(
        s.is("a", Is::Writable, "0-1-7").leadership,
        Leadership::SplitBrain
    );
    // An operator does; the other is out until it takes no writes any more.
    s.term = Term::decided("b".into(), ["a".into(), "b".into()]);
    let v = s.is("b", Is::Writable, "0-2-9");
    assert_eq!(writes(&v), Some("b"));
    assert_eq!(
        v.term.outcasts().map(TabletAlias::as_str).collect::<Vec<_>>(),
        ["a"]
    );
    s.is("a", Is::Writable, "0-1-7");
    let v = s.is("b", Is::Writable, "0-2-9");
    assert_eq!(writes(&v), Some("b"));
    // Also while it is down.
    s.refuses("a");
    assert_eq!(s.term.rejected.len(), 1);
    s.is("a", Is::Replica, "0-2-9");
    assert!(s.term.rejected.is_empty() && s.term.primary.as_str() == "b");
}

/// It had fewer writes than the primary, and was taken for a part of it.
#[test]
fn a_rival_with_fewer_writes_is_a_split_brain_too() {
    let mut s = Story::new(&["a", "b"]);
    s.logs("b", Is::Replica, "0-1-5", "0-1-5");
    s.logs("a", Is::Writable, "0-1-6", "0-1-6");
    s.logs("b", Is::Writable, "0-1-5", "0-1-5");
    let v = s.logs("a", Is::Writable, "0-1-7", "0-1-7");
    assert_eq!((writes(&v), quarantined(&v)), (Some("a"), vec!["b"]));
    s.logs("b", Is::Writable, "0-2-6", "0-1-5,0-2-6");
    let v = s.logs("a", Is::Writable, "0-1-8", "0-1-8");
    assert_eq!(v.leadership, Leadership::SplitBrain);
}

/// Its last writes were lost with its term: that it has them still is no reason to refuse those of its successor.
#[test]
fn a_succeeded_primary_is_quarantined_whatever_it_has_until_it_gives_up() {
    let mut s = Story::new(&["a", "b"]);
    s.logs("b", Is::Replica, "0-1-5", "0-1-5");
    s.logs("a", Is::Writable, "0-1-7", "0-1-7");
    s.refuses("a");
    let v = s.logs("b", Is::Writable, "0-1-5", "0-1-5");
    assert_eq!((writes(&v), v.lacks_writes), (Some("b"), true));
    for position in ["0-1-8", "0-1-9"] {
        s.logs("a", Is::Writable, position, position);
        let v = s.logs("b", Is::Writable, "0-2-20", "0-1-5,0-2-20");
        assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec!["a"]));
    }
    s.logs("a", Is::Replica, "0-2-20", "0-1-5,0-2-20");
    s.logs("b", Is::Writable, "0-2-21", "0-1-5,0-2-21");
    // Whoever writes to it now does so beside a primary that it followed.
    s.logs("a", Is::Writable, "0-1-21", "0-1-21,0-2-20");
    let v = s.logs("b", Is::Writable, "0-2-22", "0-1-5,0-2-22");
    assert_eq!(v.leadership, Leadership::SplitBrain);
}

/// It got the clients' writes once its successor was gone, and the promotion of another was a split brain.
#[test]
fn a_succeeded_primary_that_lacks_writes_is_no_heir() {
    let mut s = Story::new(&["a", "b", "c"]);
    s.is("c", Is::Replica, "0-1-7");
    s.is("b", Is::Replica, "0-1-7");
    s.is("a", Is::Writable, "0-1-7");
    s.refuses("a");
    s.is("b", Is::Writable, "0-1-7");
    s.is("a", Is::Writable, "0-1-7");
    let v = s.is("b", Is::Writable, "0-2-9");
    assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec!["a"]));
    let v = s.refuses("b");
    assert!(
        matches!(v.leadership, Leadership::Vacant(Vacancy::Gone(_))),
        "{v:?}"
    );
    let v = s.is("c", Is::Writable, "0-2-9");
    assert_eq!((writes(&v), quarantined(&v)), (Some("c"), vec!["a"]));
    // Where nothing was written meanwhile it is as good as any.
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Writable, "0-1-7");
    s.refuses("a");
    s.is("b", Is::Writable, "0-1-7");
    s.is("a", Is::Writable, "0-1-7");
    assert_eq!(writes(&s.is("b", Is::Writable, "0-1-7")), Some("b"));
    assert_eq!(writes(&s.refuses("b")), Some("a"));
}

#[test]
fn a_rival_that_gave_up_with_all_its_writes_taken_over_is_settled() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-5");
    s.is("b", Is::Writable, "0-1-5,1-2-1");
    assert_eq!(
        s.is("a", Is::Writable, "0-1-6").leadership,
        Leadership::SplitBrain
    );
    s.is("b", Is::ReadOnly, "0-1-5,1-2-1");
    assert_eq!(
        s.is("a", Is::Writable, "0-1-7").leadership,
        Leadership::SplitBrain
    );
    assert_eq!(writes(&s.is("a", Is::Writable, "0-1-7,1-2-1")), Some("a"));
}

#[test]
fn two_heirs_are_a_split_brain() {
    let mut s = Story::new(&["a", "b", "c"]);
    s.is("a", Is::ReadOnly, "0-1-5");
    s.is("b", Is::Replica, "0-1-5");
    s.is("c", Is::Writable, "0-1-5");
    s.term = Term::of("a".into());
    assert_eq!(
        s.is("b", Is::Writable, "0-1-5").leadership,
        Leadership::SplitBrain
    );
}

#[test]
fn a_stopped_replica_takes_no_living_primarys_term() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Stopped, "0-1-3");
    assert_eq!(writes(&s.is("a", Is::Writable, "0-1-5")), Some("a"));
    // Maintenance: read-only, and the other lacks what it has.
    let v = s.is("a", Is::ReadOnly, "0-1-5");
    assert_eq!(v.leadership, Leadership::Vacant(Vacancy::Behind("b".into())));
    assert_eq!((v.term.primary.as_str(), quarantined(&v)), ("a", vec!["b"]));
    assert_eq!(writes(&s.is("a", Is::Writable, "0-1-6")), Some("a"));
}

#[test]
fn without_positions_a_stopped_replica_is_no_rival_and_a_promoted_one_is() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Stopped, "");
    let v = s.is("a", Is::Writable, "");
    assert_eq!((writes(&v), quarantined(&v)), (Some("a"), vec!["b"]));
    s.is("b", Is::Writable, "");
    assert_eq!(s.is("a", Is::Writable, "").leadership, Leadership::SplitBrain);
}

#[test]
fn who_replicates_or_does_not_say_claims_nothing() {
    for is in [Is::Replica, Is::WritableReplica, Is::Unknown] {
        let mut s = Story::new(&["a", "b"]);
        s.is("a", Is::Writable, "0-1-5");
        s.is("b", is, "0-1-5");
        s.refuses("a");
        let v = s.is("b", is, "0-1-5");
        assert!(
            matches!(v.leadership, Leadership::Vacant(Vacancy::Gone(_))),
            "{v:?}"
        );
    }
}

/// Two servers that replicate from each other, or a primary that does not say.
#[test]
fn an_incumbent_that_replicates_keeps_its_term_until_another_claims() {
    for is in [Is::WritableReplica, Is::Unknown] {
        let mut s = Story::new(&["a", "b"]);
        s.is("b", Is::Replica, "0-1-5");
        assert_eq!(writes(&s.is("a", is, "0-1-5")), Some("a"));
    }
    // The other has all that it has: it was made to follow.
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::WritableReplica, "0-1-5");
    assert_eq!(writes(&s.is("b", Is::Writable, "0-1-5")), Some("b"));
    // The other is a replica that somebody stopped.
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-4");
    s.is("a", Is::WritableReplica, "0-1-5");
    s.is("b", Is::Stopped, "0-1-4");
    let v = s.is("a", Is::WritableReplica, "0-1-6");
    assert_eq!((writes(&v), quarantined(&v)), (Some("a"), vec!["b"]));
}

/// A replica that somebody stopped while the primary wrote is no heir when the primary restarts.
#[test]
fn who_claimed_beside_a_writing_primary_does_not_succeed_it() {
    for position in ["0-1-3", ""] {
        for late in [false, true] {
            let mut s = Story::new(&["a", "b"]);
            s.is("b", Is::Stopped, position);
            let mine = if position.is_empty() { "" } else { "0-1-5" };
            let v = s.is("a", Is::Writable, mine);
            assert_eq!((writes(&v), quarantined(&v)), (Some("a"), vec!["b"]));
            let v = if late {
                s.late("a");
                s.late("a")
            } else {
                s.refuses("a")
            };
            assert!(matches!(v.leadership, Leadership::Vacant(_)), "{v:?}");
            let v = s.is("b", Is::Stopped, position);
            assert_eq!((v.term.primary.as_str(), quarantined(&v)), ("a", vec!["b"]));
            assert_eq!(writes(&s.is("a", Is::Writable, mine)), Some("a"));
        }
    }
}

/// A gateway that starts with a file from before a failover.
#[test]
fn at_the_start_the_one_with_more_writes_is_the_primary() {
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Writable, "0-2-9");
    let v = s.is("a", Is::Writable, "0-1-5");
    assert_eq!((writes(&v), quarantined(&v)), (Some("b"), vec!["a"]));
    // Not once the term was confirmed: then two take writes.
    let mut s = Story::new(&["a", "b"]);
    s.is("b", Is::Replica, "0-1-5");
    s.is("a", Is::Writable, "0-1-5");
    s.is("b", Is::Writable, "0-2-9");
    let v = s.is("a", Is::Writable, "0-1-5");
    assert_eq!(v.leadership, Leadership::SplitBrain);
    assert_eq!(
        v.term.outcasts().map(TabletAlias::as_str).collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn nobody_takes_the_term_of_a_primary_that_was_never_looked_at() {
    let mut s = Story::new(&["a", "b"]);
    let v = s.is("b", Is::Writable, "0-1-5");
    assert_eq!(v.leadership, Leadership::Vacant(Vacancy::NotMeasured));
    let v = s.is("a", Is::ReadOnly, "0-1-5");
    assert_eq!(writes(&v), Some("b"));
}

#[test]
fn an_appointed_primary_is_judged_by_itself_alone() {
    for source in [PrimarySource::Config, PrimarySource::Api] {
        let mut s = Story::new(&["a", "b"]);
        s.source = source;
        s.is("b", Is::Writable, "0-2-9");
        assert_eq!(writes(&s.is("a", Is::Writable, "0-1-5")), Some("a"));
        assert_eq!(
            s.is("a", Is::ReadOnly, "0-1-5").leadership,
            Leadership::Vacant(Vacancy::ReadOnly)
        );
        assert_eq!(s.refuses("a").term.primary.as_str(), "a");
    }
}

/// However looks come in: at most one tablet is ever said to take writes, and the term never goes to one that does not.
#[test]
fn terms_go_only_to_those_who_claim_them() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let kinds = [
        Is::Writable,
        Is::ReadOnly,
        Is::Replica,
        Is::WritableReplica,
        Is::Stopped,
        Is::Unknown,
    ];
    for _ in 0..300 {
        let mut s = Story::new(&["a", "b", "c"]);
        for _ in 0..40 {
            let alias = ["a", "b", "c"][random(3) as usize];
            let before = s.term.clone();
            let v = match random(10) {
                0 => s.refuses(alias),
                1 | 2 => s.late(alias),
                _ => {
                    let is = kinds[random(6) as usize];
                    let position = format!("0-{}-{}", 1 + random(3), random(20));
                    s.is(alias, is, &position)
                }
            };
            let of = |alias: &TabletAlias| {
                let found = s.tablets.iter().find(|(a, _)| a == alias).unwrap();
                found.1.as_ref()
            };
            if v.term.primary != before.primary {
                let heir = of(&v.term.primary).unwrap();
                assert!(heir.serving && heir.facts().unwrap().writable());
                assert!(before.rivals.is_empty() && !before.rejected.contains(&v.term.primary));
            }
            if let Leadership::Writes { .. } = v.leadership {
                let primary = of(&v.term.primary).unwrap();
                assert!(primary.serving && primary.facts().unwrap().writable());
                assert!(v.term.rivals.is_empty());
            }
            assert!(!v.term.outcasts().any(|alias| *alias == v.term.primary));
        }
    }
}
