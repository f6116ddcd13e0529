//! Three distinct fingerprints, and the one that is to blame.

use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{Breaker, Config, Event, Outcome, Reason, State, Work};

use super::support::{Rig, ms, shard};

const SECOND: Duration = Duration::from_secs(1);

fn blamed(rig: &Rig) -> Option<(u64, Reason)> {
    match rig.last_event() {
        Some(Event::Attributed {
            fingerprint, reason, ..
        }) => Some((fingerprint, reason)),
        _ => None,
    }
}

#[test]
fn one_kind_of_statement_that_times_out_is_blamed_and_the_shard_stays() {
    let rig = Rig::new(shard());
    for _ in 0..3 {
        rig.one_of(7, Outcome::Timeout);
    }
    assert_eq!(blamed(&rig), Some((7, Reason::ConsecutiveTimeouts)));
    for _ in 0..50 {
        rig.one_of(7, Outcome::Timeout);
    }
    assert_eq!(rig.state(), State::Closed);
    assert_eq!(
        rig.breaker.snapshot(rig.now).counts.attributed,
        1,
        "said once, not at each timeout"
    );
}

#[test]
fn when_the_others_time_out_too_the_shard_opens() {
    let mut rig = Rig::new(shard());
    for _ in 0..3 {
        rig.one_of(7, Outcome::Timeout);
    }
    rig.many(3, Outcome::Timeout);
    assert_eq!(rig.reason(), Some(Reason::ConsecutiveTimeouts));
}

#[test]
fn two_kinds_are_not_enough_and_blame_nobody() {
    let mut config = shard();
    config.consecutive_timeouts = 4;
    let rig = Rig::new(config);
    for kind in [1, 2, 1, 2] {
        rig.one_of(kind, Outcome::Timeout);
    }
    assert_eq!((rig.state(), blamed(&rig)), (State::Closed, None));
    rig.one_of(3, Outcome::Timeout);
    assert_eq!(rig.reason(), Some(Reason::ConsecutiveTimeouts));
}

#[test]
fn connection_attempts_are_exempt() {
    let rig = Rig::new(shard());
    for _ in 0..3 {
        let permit = rig.breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
        permit.record(Outcome::Timeout, rig.now);
    }
    assert_eq!(rig.reason(), Some(Reason::ConsecutiveTimeouts));
}

#[test]
fn failures_need_no_distinct_kinds() {
    let rig = Rig::new(shard());
    for _ in 0..5 {
        rig.one_of(1, Outcome::Failure);
    }
    assert_eq!(rig.state(), State::Open);
}

/// Permits of these kinds, held.
fn hold(breaker: &Breaker, rig: &Rig, kinds: &[u64]) -> Vec<shardgate_breaker::OwnedPermit> {
    let _ = breaker;
    kinds
        .iter()
        .map(|k| {
            rig.breaker
                .try_acquire_owned(Work::statement(*k), rig.now)
                .unwrap()
        })
        .collect()
}

#[test]
fn a_stall_of_one_kind_is_blamed_on_it() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    let held = hold(&breaker, &rig, &[7, 7, 7, 7, 1, 2]);
    rig.ticks(ms(400));
    assert_eq!(
        (rig.state(), blamed(&rig)),
        (State::Closed, Some((7, Reason::Stall)))
    );
    let more = hold(&breaker, &rig, &[3, 4, 5]);
    rig.ticks(ms(400));
    assert_eq!(
        rig.reason(),
        Some(Reason::Stall),
        "without it the others stall too"
    );
    drop((held, more));
}

#[test]
fn a_full_pool_is_blamed_on_the_kind_that_holds_over_half_of_it() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    let held = hold(&breaker, &rig, &[7, 7, 7, 1, 2]);
    breaker.observe_pool(0, 5, rig.now);
    for _ in 0..50 {
        rig.ticks(ms(100));
        for permit in &held {
            permit.progressed(rig.now);
        }
    }
    assert_eq!(
        (rig.state(), blamed(&rig)),
        (State::Closed, Some((7, Reason::PoolSaturated)))
    );
}

#[test]
fn timeouts_of_many_kinds_are_blamed_on_the_one_that_holds_the_slots() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    let held = hold(&breaker, &rig, &[7; 12]);
    rig.many(3, Outcome::Timeout);
    assert_eq!(blamed(&rig), Some((7, Reason::ConsecutiveTimeouts)));
    assert_eq!(rig.state(), State::Closed);
    drop(held);
}

#[test]
fn a_slow_tail_of_one_kind_is_blamed_on_it() {
    let mut rig = Rig::new(shard());
    let one = |rig: &Rig, kind: u64, latency: Duration| {
        let permit = rig.breaker.try_acquire(Work::statement(kind), rig.now).unwrap();
        permit.record(Outcome::Success, rig.now.after(latency));
    };
    for _ in 0..40 {
        (1..=4).for_each(|k| one(&rig, k, ms(5)));
        rig.ticks(ms(100));
    }
    for _ in 0..25 {
        (1..=3).for_each(|k| one(&rig, k, ms(5)));
        one(&rig, 7, ms(500));
        rig.ticks(ms(100));
    }
    assert_eq!(
        (rig.state(), blamed(&rig)),
        (State::Closed, Some((7, Reason::Latency)))
    );
}

#[test]
fn a_timeout_rate_left_over_from_a_blamed_kind_does_not_open() {
    let mut config = shard();
    config.consecutive_timeouts = 0;
    let mut rig = Rig::new(config);
    for _ in 0..20 {
        rig.one_of(7, Outcome::Timeout);
        rig.one_of(1, Outcome::Success);
    }
    assert_eq!(blamed(&rig), Some((7, Reason::TimeoutRate)));
    for k in 1..=3 {
        rig.one_of(k, Outcome::Timeout);
    }
    rig.ticks(SECOND);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn the_breaker_of_a_kind_is_opened_from_outside_and_recovers_by_probes() {
    let mut config = Config::fingerprint();
    config.cooldown.jitter = 0;
    let mut rig = Rig::new(config);
    rig.breaker.trip(Reason::Attributed, rig.now);
    assert_eq!(rig.reason(), Some(Reason::Attributed));
    rig.pass(SECOND * 2);
    rig.one_of(7, Outcome::Timeout);
    assert_eq!(rig.last().cooldown, SECOND * 4);
    rig.pass(SECOND * 4);
    (0..3).for_each(|_| rig.one_of(7, Outcome::Success));
    assert_eq!(rig.state(), State::Closed);
    (0..3).for_each(|_| rig.one_of(7, Outcome::Timeout));
    assert_eq!(
        rig.reason(),
        Some(Reason::ConsecutiveTimeouts),
        "its own timeouts open it again"
    );
}

#[test]
fn in_flight_is_known_by_kind() {
    let rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    let held = hold(&breaker, &rig, &[7, 7, 1]);
    assert_eq!(breaker.in_flight_of(Work::statement(7)), (2, 3));
    drop(held);
    assert_eq!(breaker.in_flight_of(Work::statement(7)), (0, 0));
}
