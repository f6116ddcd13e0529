//! The ejection cap over the replicas of one shard.

use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{EjectionCap, Event, Mode, Outcome, Reason, State};

use super::support::{Rig, replica};

const SECOND: Duration = Duration::from_secs(1);

fn siblings(count: usize) -> (Arc<EjectionCap>, Vec<Rig>) {
    let cap = Arc::new(EjectionCap::new(50));
    let rigs = (0..count).map(|_| Rig::with_cap(replica(), &cap)).collect();
    (cap, rigs)
}

#[test]
fn at_the_cap_a_replica_stays_closed_with_the_least_weight() {
    let (cap, mut rigs) = siblings(4);
    for rig in &mut rigs {
        rig.many(5, Outcome::Failure);
    }
    let states: Vec<_> = rigs.iter().map(Rig::state).collect();
    assert_eq!(states, [State::Open, State::Open, State::Closed, State::Closed]);
    assert_eq!(cap.out(), 2);
    let kept = &rigs[2];
    assert_eq!(kept.breaker.weight(kept.now), 10);
    assert_eq!(kept.breaker.snapshot(kept.now).counts.suppressed, 1);
    assert!(matches!(
        kept.last_event(),
        Some(Event::Suppressed {
            reason: Reason::ConsecutiveFailures,
            ..
        })
    ));
    assert_eq!(
        kept.breaker.weight(kept.now.after(SECOND * 2)),
        100,
        "for one cooldown"
    );
}

#[test]
fn closing_makes_room_under_the_cap() {
    let (cap, mut rigs) = siblings(2);
    rigs[0].half_open();
    rigs[0].many(3, Outcome::Success);
    assert_eq!(cap.out(), 0);
    rigs[1].open();
    assert_eq!(cap.out(), 1);
}

#[test]
fn lag_and_health_are_not_bound() {
    let (cap, rigs) = siblings(4);
    for rig in &rigs {
        for _ in 0..3 {
            rig.breaker.observe_lag(Some(SECOND), rig.now);
        }
        assert_eq!(rig.reason(), Some(Reason::Lag));
    }
    assert_eq!(cap.out(), 4);
    let (_, rigs) = siblings(2);
    for rig in &rigs {
        (0..3).for_each(|_| rig.breaker.observe_health(false, rig.now));
        assert_eq!(rig.reason(), Some(Reason::HealthCheck));
    }
}

#[test]
fn operators_and_the_end_of_a_replica_are_accounted_for() {
    let (cap, mut rigs) = siblings(4);
    rigs[0].breaker.set_mode(Mode::ForcedOpen, rigs[0].now);
    rigs[1].open();
    assert_eq!((cap.members(), cap.out()), (4, 2));
    rigs[0].breaker.set_mode(Mode::ForcedClosed, rigs[0].now);
    assert_eq!(cap.out(), 1);
    rigs.remove(1);
    assert_eq!((cap.members(), cap.out()), (3, 0));
}
