//! Every row of the table of states.

use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{Breaker, Config, Event, Mode, Outcome, Reason, Refusal, State, Trigger, Work};

use super::support::{Rig, ms, replica, shard};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_signal_opens_and_refuses_with_the_time_left() {
    let mut rig = Rig::new(shard());
    rig.open();
    rig.pass(ms(500));
    let refused = rig.breaker.try_acquire(Work::CONNECT, rig.now).unwrap_err();
    assert_eq!(refused.refusal, Refusal::Open);
    assert_eq!(refused.reason, Reason::ConsecutiveFailures);
    assert_eq!(refused.open_for, ms(500));
    assert_eq!(refused.retry_after, Some(ms(1500)));
    let opened = rig.last();
    assert_eq!((opened.from, opened.to), (State::Closed, State::Open));
    assert_eq!(opened.trigger, Trigger::Signal);
}

#[test]
fn the_gauge_moves_on_time_without_traffic() {
    let mut rig = Rig::new(shard());
    rig.open();
    rig.pass(ms(1999));
    assert_eq!(rig.state(), State::Open);
    rig.pass(ms(1));
    assert_eq!(rig.state(), State::HalfOpen);
    assert_eq!(rig.transitions().len(), 1, "looking changes nothing");
    rig.breaker.tick(rig.now);
    assert_eq!(
        (rig.last().to, rig.last().trigger),
        (State::HalfOpen, Trigger::Cooldown)
    );
}

#[test]
fn three_probes_one_at_a_time_close() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    for passed in 0..3 {
        assert_eq!(rig.breaker.snapshot(rig.now).probes_passed, passed);
        let breaker = Arc::clone(&rig.breaker);
        let probe = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
        assert!(rig.refused());
        probe.record(Outcome::Success, rig.now);
    }
    assert_eq!(
        (rig.last().to, rig.last().trigger),
        (State::Closed, Trigger::ProbesPassed)
    );
    assert_eq!(rig.breaker.snapshot(rig.now).counts.probes_passed, 3);
}

#[test]
fn a_failed_probe_opens_with_the_next_cooldown() {
    for outcome in [
        Outcome::Failure,
        Outcome::Timeout,
        Outcome::Saturation,
        Outcome::PrimaryGone,
    ] {
        let mut rig = Rig::new(shard());
        rig.half_open();
        rig.one(Outcome::Success);
        rig.one(outcome);
        assert_eq!(rig.last().trigger, Trigger::ProbeFailed);
        assert_eq!(
            (rig.state(), rig.last().cooldown),
            (State::Open, SECOND * 4),
            "{outcome:?}"
        );
        rig.pass(SECOND * 4);
        assert_eq!(
            rig.breaker.snapshot(rig.now).probes_passed,
            0,
            "passes do not carry over"
        );
    }
}

#[test]
fn a_neutral_probe_gives_the_permit_back() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    rig.one(Outcome::Neutral);
    assert_eq!(rig.state(), State::HalfOpen);
    rig.many(3, Outcome::Success);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn a_tick_ends_a_lease_without_traffic() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let breaker = Arc::clone(&rig.breaker);
    let hung = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.ticks(SECOND * 2);
    assert_eq!(
        (rig.state(), rig.last().trigger),
        (State::Open, Trigger::LeaseOver)
    );
    drop(hung);
}

/// A probe holds its lease while it waits for a connection. What it waited was taken off its statement's time, so that
/// one which waited long was taken away while it was being answered.
#[test]
fn a_probe_that_waited_has_its_whole_lease_once_it_is_sent() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let breaker = Arc::clone(&rig.breaker);
    let mut probe = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.ticks(ms(1900));
    assert!(probe.sent(rig.now));
    rig.ticks(ms(1900));
    assert_eq!(rig.state(), State::HalfOpen);
    assert!(rig.refused(), "and it is the only one");
    probe.record(Outcome::Success, rig.now);
    assert_eq!(rig.breaker.snapshot(rig.now).probes_passed, 1);

    let mut hung = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.ticks(ms(1000));
    assert!(hung.sent(rig.now));
    rig.ticks(SECOND * 2);
    assert_eq!(
        (rig.state(), rig.last().trigger),
        (State::Open, Trigger::LeaseOver)
    );
    drop(hung);
}

#[test]
fn a_probe_whose_lease_ended_before_it_was_sent_is_none() {
    for noticed in [true, false] {
        let mut rig = Rig::new(shard());
        rig.half_open();
        let breaker = Arc::clone(&rig.breaker);
        let mut late = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
        rig.pass(SECOND * 2);
        if noticed {
            breaker.tick(rig.now);
        }
        assert!(!late.sent(rig.now));
        drop(late);
        let again = breaker.try_acquire(Work::CONNECT, rig.now);
        assert_eq!(again.is_ok_and(|p| p.is_probe()), !noticed);
    }
}

#[test]
fn a_probe_that_succeeds_after_its_lease_has_failed_whoever_noticed_first() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let breaker = Arc::clone(&rig.breaker);
    let late = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.pass(SECOND * 2);
    late.record(Outcome::Success, rig.now);
    assert_eq!(
        (rig.state(), rig.last().trigger),
        (State::Open, Trigger::LeaseOver)
    );
}

#[test]
fn the_cooldown_doubles_to_a_minute_and_steps_down_once_a_healthy_minute() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let mut cooldowns = vec![];
    for _ in 0..7 {
        rig.one(Outcome::Failure);
        cooldowns.push(rig.last().cooldown.as_secs());
        rig.pass(rig.last().cooldown);
    }
    assert_eq!(cooldowns, [4, 8, 16, 32, 60, 60, 60]);
    for (healthy, cooldown) in [(59, 60), (60, 32), (120, 16), (119, 16), (600, 2)] {
        rig.many(3, Outcome::Success);
        assert_eq!(rig.state(), State::Closed);
        rig.pass(SECOND * healthy);
        rig.open();
        // Each trip takes the next cooldown too: a step up for each step down.
        assert_eq!(rig.last().cooldown.as_secs(), cooldown, "after {healthy} s");
        rig.pass(rig.last().cooldown);
    }
}

#[test]
fn jitter_lengthens_by_up_to_a_quarter_and_differs_between_breakers() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let breaker = Breaker::new(Config::shard(), seed, Arc::new(())).unwrap();
        let now = shardgate_breaker::Time::from_nanos(1);
        breaker.trip(Reason::Buffer, now);
        let wait = breaker.snapshot(now).probe_in.unwrap();
        assert!((SECOND * 2..=ms(2501)).contains(&wait), "{wait:?}");
        seen.insert(wait);
    }
    assert!(seen.len() > 40, "{seen:?}");
}

#[test]
fn an_operator_overrides_every_state() {
    let mut rig = Rig::new(shard());
    rig.breaker.set_mode(Mode::ForcedOpen, rig.now);
    let refused = rig.breaker.try_acquire(Work::CONNECT, rig.now).unwrap_err();
    assert_eq!((refused.refusal, refused.retry_after), (Refusal::Forced, None));
    rig.ticks(SECOND * 100);
    assert_eq!(
        rig.state(),
        State::Open,
        "time does not close what an operator opened"
    );
    rig.breaker.renew(rig.now);
    assert!(rig.refused(), "nor does a new primary");
    rig.breaker.set_mode(Mode::Auto, rig.now);
    assert_eq!(rig.state(), State::HalfOpen, "it recovers by probes");
    rig.breaker.set_mode(Mode::ForcedClosed, rig.now);
    rig.many(100, Outcome::Failure);
    assert_eq!(rig.state(), State::Closed);
    rig.breaker.set_mode(Mode::Auto, rig.now);
    rig.many(4, Outcome::Failure);
    assert_eq!(
        rig.state(),
        State::Closed,
        "what was counted while forced is forgotten"
    );
    rig.one(Outcome::Failure);
    assert_eq!(rig.state(), State::Open);
}

#[test]
fn dry_run_counts_and_refuses_nothing() {
    let mut config = shard();
    config.dry_run = true;
    let mut rig = Rig::new(config);
    rig.many(12, Outcome::Failure);
    assert_eq!((rig.state(), rig.breaker.mode()), (State::Closed, Mode::DryRun));
    let counts = rig.breaker.snapshot(rig.now).counts;
    assert_eq!((counts.would_trip, counts.refused), (2, 0));
    assert_eq!(counts.trips.iter().sum::<u64>(), 0);
    let would = Event::WouldTrip {
        at: rig.now,
        reason: Reason::ConsecutiveFailures,
    };
    assert_eq!(rig.last_event(), Some(would));
}

#[test]
fn a_new_primary_is_probed_at_once() {
    let mut rig = Rig::new(shard());
    rig.open();
    rig.breaker.renew(rig.now);
    assert_eq!(
        (rig.state(), rig.last().trigger),
        (State::HalfOpen, Trigger::NewTerm)
    );
    let breaker = Arc::clone(&rig.breaker);
    let of_the_old = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.breaker.renew(rig.now);
    let of_the_new = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    assert!(
        of_the_new.is_probe(),
        "the old one's probe does not stand in the way"
    );
    of_the_old.record(Outcome::Failure, rig.now);
    assert_eq!(rig.state(), State::HalfOpen);
    drop(of_the_new);
}

#[test]
fn a_new_primary_does_not_wait_for_samples_that_were_asked_of_the_old_one() {
    let mut rig = Rig::new(shard());
    for _ in 0..3 {
        rig.breaker.observe_health(false, rig.now);
    }
    assert_eq!(rig.reason(), Some(Reason::HealthCheck));
    rig.breaker.renew(rig.now);
    assert_eq!(
        (rig.state(), rig.last().trigger),
        (State::HalfOpen, Trigger::NewTerm)
    );
    // Nor are the old one's failed looks a part of its row.
    rig.breaker.observe_health(false, rig.now);
    rig.many(3, Outcome::Success);
    assert_eq!(rig.state(), State::Closed);
    rig.breaker.observe_health(false, rig.now);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn a_closed_breaker_forgets_the_old_primary_and_stays_closed() {
    let mut rig = Rig::new(shard());
    rig.many(4, Outcome::Failure);
    rig.breaker.renew(rig.now);
    rig.many(4, Outcome::Failure);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn closing_resets_the_windows() {
    let mut config = shard();
    config.consecutive_failures = 0;
    let mut rig = Rig::new(config);
    rig.many(20, Outcome::Failure);
    assert_eq!(rig.reason(), Some(Reason::ErrorRate));
    rig.pass(SECOND * 2);
    rig.many(3, Outcome::Success);
    rig.many(19, Outcome::Failure);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn a_due_probe_is_wanted_and_the_poller_makes_it_after_a_silent_cooldown() {
    let mut rig = Rig::new(shard());
    rig.open();
    assert!(!rig.breaker.wants_probe(rig.now));
    rig.pass(SECOND * 2);
    assert!(rig.breaker.wants_probe(rig.now));
    rig.breaker.tick(rig.now);
    assert!(rig.breaker.wants_probe(rig.now) && !rig.breaker.wants_polled_probe(rig.now));
    rig.pass(SECOND * 2);
    assert!(rig.breaker.wants_polled_probe(rig.now));
    let breaker = Arc::clone(&rig.breaker);
    let probe = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    assert!(!rig.breaker.wants_probe(rig.now));
    probe.record(Outcome::Success, rig.now);
    assert!(rig.breaker.wants_probe(rig.now) && !rig.breaker.wants_polled_probe(rig.now));
}

#[test]
fn a_replica_starts_slowly_after_it_closed_and_only_then() {
    let mut rig = Rig::new(replica());
    assert_eq!(rig.breaker.weight(rig.now), 100);
    rig.half_open();
    assert_eq!(rig.breaker.weight(rig.now), 0);
    rig.many(3, Outcome::Success);
    for (after, weight) in [(0, 10), (15, 55), (29, 97), (30, 100)] {
        assert_eq!(
            rig.breaker.weight(rig.now.after(SECOND * after)),
            weight,
            "{after} s"
        );
    }
}

#[test]
fn a_trip_from_outside_opens_and_reopens() {
    let mut rig = Rig::new(shard());
    rig.breaker.trip(Reason::Buffer, rig.now);
    assert_eq!((rig.state(), rig.reason()), (State::Open, Some(Reason::Buffer)));
    rig.pass(SECOND * 2);
    rig.breaker.tick(rig.now);
    rig.breaker.trip(Reason::Buffer, rig.now);
    assert_eq!((rig.state(), rig.last().cooldown), (State::Open, SECOND * 4));
}

#[test]
fn a_clock_that_steps_back_neither_panics_nor_opens() {
    let mut rig = Rig::new(shard());
    rig.many(10, Outcome::Success);
    let late = rig.now;
    rig.now = shardgate_breaker::Time::ZERO;
    rig.many(10, Outcome::Success);
    rig.breaker.tick(rig.now);
    rig.many(5, Outcome::Failure);
    assert_eq!(rig.state(), State::Open);
    rig.now = late;
    rig.breaker.tick(late);
}
