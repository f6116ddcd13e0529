//! Every row of the table of signals: what opens, what does not, and the re-check.

use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{Config, Outcome, Reason, Refusal, State, Work};

use super::support::{Rig, ms, replica, shard};

const SECOND: Duration = Duration::from_secs(1);

fn both(mut check: impl FnMut(Rig)) {
    check(Rig::new(shard()));
    check(Rig::new(replica()));
}

/// A config in which only what is switched on again can trip.
fn without_rows(mut config: Config) -> Config {
    config.consecutive_failures = 0;
    config.consecutive_timeouts = 0;
    config
}

#[test]
fn five_failures_in_a_row_open() {
    both(|mut rig| {
        rig.many(4, Outcome::Failure);
        rig.one(Outcome::Success);
        rig.many(4, Outcome::Failure);
        rig.one(Outcome::Neutral);
        rig.one(Outcome::Timeout);
        assert_eq!(rig.state(), State::Closed);
        rig.one(Outcome::Failure);
        assert_eq!(rig.reason(), Some(Reason::ConsecutiveFailures));
    });
}

#[test]
fn three_timeouts_in_a_row_open() {
    both(|mut rig| {
        rig.many(2, Outcome::Timeout);
        rig.one(Outcome::Success);
        rig.many(2, Outcome::Timeout);
        assert_eq!(rig.state(), State::Closed);
        rig.one(Outcome::Timeout);
        assert_eq!(rig.reason(), Some(Reason::ConsecutiveTimeouts));
    });
}

#[test]
fn an_error_rate_opens_at_its_threshold_and_from_twenty_samples() {
    for (config, percent, window) in [(shard(), 50, 10), (replica(), 25, 30)] {
        let mut rig = Rig::new(without_rows(config.clone()));
        rig.many(19, Outcome::Failure);
        assert_eq!(rig.state(), State::Closed, "too few samples");
        rig.one(Outcome::Failure);
        assert_eq!(rig.reason(), Some(Reason::ErrorRate));

        let mut rig = Rig::new(without_rows(config.clone()));
        rig.many(100 - percent, Outcome::Success);
        rig.many(percent - 1, Outcome::Failure);
        assert_eq!(rig.state(), State::Closed, "below the threshold");
        rig.one(Outcome::Failure);
        assert_eq!(rig.state(), State::Open);

        let mut rig = Rig::new(without_rows(config));
        rig.many(19, Outcome::Failure);
        rig.pass(SECOND * window);
        rig.many(19, Outcome::Failure);
        assert_eq!(rig.state(), State::Closed, "outside the window");
    }
}

#[test]
fn a_timeout_rate_opens_at_half() {
    for config in [shard(), replica()] {
        let mut rig = Rig::new(without_rows(config));
        for _ in 0..9 {
            rig.one(Outcome::Success);
            rig.one(Outcome::Timeout);
        }
        rig.one(Outcome::Success);
        assert_eq!(rig.state(), State::Closed);
        rig.one(Outcome::Timeout);
        assert_eq!(rig.reason(), Some(Reason::TimeoutRate));
    }
}

#[test]
fn a_rate_is_judged_by_a_tick_too() {
    let mut rig = Rig::new(without_rows(shard()));
    rig.many(19, Outcome::Failure);
    rig.one(Outcome::Success);
    assert_eq!(rig.state(), State::Closed, "a success judges nothing");
    rig.breaker.tick(rig.now);
    assert_eq!(rig.reason(), Some(Reason::ErrorRate));
}

#[test]
fn a_stall_opens_within_half_a_second() {
    both(|mut rig| {
        let breaker = Arc::clone(&rig.breaker);
        rig.pass(SECOND * 1000); // idle before: silence is not a stall
        let permits: Vec<_> = (0..5)
            .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
            .collect();
        rig.pass(ms(299));
        breaker.tick(rig.now);
        assert_eq!(rig.state(), State::Closed);
        rig.pass(ms(1));
        breaker.tick(rig.now);
        assert_eq!(rig.reason(), Some(Reason::Stall));
        drop(permits);
    });
}

#[test]
fn four_pending_or_any_progress_is_no_stall() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    let permits: Vec<_> = (0..4)
        .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
        .collect();
    rig.ticks(SECOND);
    assert_eq!(rig.state(), State::Closed, "four");
    let more: Vec<_> = (4..9)
        .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
        .collect();
    for _ in 0..10 {
        permits[0].progressed(rig.now);
        rig.ticks(ms(200));
    }
    assert_eq!(rig.state(), State::Closed, "one progresses");
    drop(more);
    drop(permits);
    assert_eq!(breaker.snapshot(rig.now).in_flight, 0);
}

#[test]
fn a_stall_is_held_against_ten_times_the_usual_p99() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    for i in 0..40 {
        let permit = breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap();
        permit.record(Outcome::Success, rig.now.after(ms(100)));
    }
    rig.ticks(SECOND * 3);
    let permits: Vec<_> = (0..8)
        .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
        .collect();
    rig.ticks(ms(1000));
    assert_eq!(rig.state(), State::Closed);
    rig.ticks(ms(300));
    assert_eq!(rig.reason(), Some(Reason::Stall));
    drop(permits);
}

#[test]
fn a_pool_without_room_for_five_seconds_opens_and_a_free_slot_passes_the_re_check() {
    both(|mut rig| {
        let breaker = Arc::clone(&rig.breaker);
        let mut permits: Vec<_> = (0..4)
            .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
            .collect();
        breaker.observe_pool(0, 1, rig.now);
        rig.ticks(ms(4900));
        breaker.observe_pool(0, 0, rig.now);
        breaker.observe_pool(0, 3, rig.now);
        rig.ticks(ms(4900));
        assert_eq!(rig.state(), State::Closed, "there was a moment without waiters");
        rig.ticks(ms(100));
        assert_eq!(rig.reason(), Some(Reason::PoolSaturated));
        permits.clear();
        rig.pass(SECOND * 2);
        rig.one(Outcome::Success);
        assert_eq!(rig.state(), State::Open, "no slot is free");
        breaker.observe_pool(1, 0, rig.now);
        rig.pass(SECOND * 4);
        rig.many(3, Outcome::Success);
        assert_eq!(rig.state(), State::Closed);
    });
}

/// Queries of one latency for a while, 50 a second.
fn load(rig: &mut Rig, latency: Duration, span: Duration) {
    let end = rig.now.after(span);
    while rig.now < end && rig.state() == State::Closed {
        for _ in 0..5 {
            let breaker = Arc::clone(&rig.breaker);
            let kind = rig.kind();
            let mut permit = breaker.try_acquire(kind, rig.now).unwrap();
            permit.responded(rig.now.after(latency));
            permit.record(Outcome::Success, rig.now.after(latency));
        }
        rig.ticks(ms(100));
    }
}

#[test]
fn p95_opens_at_five_times_its_baseline_and_a_probe_within_it_closes() {
    both(|mut rig| {
        load(&mut rig, ms(10), SECOND * 20);
        load(&mut rig, ms(40), SECOND * 5);
        assert_eq!(rig.state(), State::Closed, "four times");
        load(&mut rig, ms(80), SECOND * 5);
        assert_eq!(rig.reason(), Some(Reason::Latency));
        let baseline = rig.breaker.snapshot(rig.now).baseline_p95;
        rig.ticks(SECOND * 2);
        let breaker = Arc::clone(&rig.breaker);
        let slow = breaker.try_acquire(Work::statement(1), rig.now).unwrap();
        rig.pass(ms(80));
        slow.record(Outcome::Success, rig.now);
        assert_eq!(rig.state(), State::Open, "the probe was as slow");
        rig.ticks(SECOND * 4);
        rig.many(3, Outcome::Success);
        assert_eq!(rig.state(), State::Closed);
        assert_eq!(rig.breaker.snapshot(rig.now).baseline_p95, baseline, "frozen");
    });
}

#[test]
fn p95_needs_twenty_milliseconds_over_the_baseline() {
    let mut rig = Rig::new(shard());
    load(&mut rig, ms(1), SECOND * 20);
    load(&mut rig, ms(15), SECOND * 5);
    assert_eq!(rig.state(), State::Closed);
    load(&mut rig, ms(30), SECOND * 5);
    assert_eq!(rig.reason(), Some(Reason::Latency));
}

#[test]
fn a_replica_as_slow_as_its_siblings_stays() {
    let mut rig = Rig::new(replica());
    load(&mut rig, ms(10), SECOND * 20);
    rig.breaker.observe_siblings(Some(ms(70)));
    load(&mut rig, ms(100), SECOND * 5);
    assert_eq!(rig.state(), State::Closed);
    rig.breaker.observe_siblings(Some(ms(12)));
    load(&mut rig, ms(100), SECOND * 5);
    assert_eq!(rig.reason(), Some(Reason::Latency));
}

#[test]
fn a_program_that_stood_still_blames_nobody_and_one_without_a_pulse_does() {
    for outcomes in [[20, 0, 0], [0, 5, 0], [0, 0, 8]] {
        for pulse in [false, true] {
            let mut rig = if pulse {
                Rig::with_pulse(shard())
            } else {
                Rig::new(shard())
            };
            load(&mut rig, ms(10), SECOND * 20);
            let breaker = Arc::clone(&rig.breaker);
            let mut under_way = outcomes.map(|count| {
                let kinds = (0..count).map(|_| rig.kind()).collect::<Vec<_>>();
                let start = |kind| breaker.try_acquire(kind, rig.now).unwrap();
                kinds.into_iter().map(start).collect::<Vec<_>>()
            });
            // Nothing runs, and then everything is late at once: answers, deadlines, and the tick.
            rig.pass(ms(1500));
            for permit in under_way[0].drain(..) {
                permit.record(Outcome::Success, rig.now);
            }
            for permit in under_way[1].drain(..) {
                permit.record(Outcome::Timeout, rig.now);
            }
            rig.tick();
            rig.ticks(ms(200));
            drop(under_way);
            load(&mut rig, ms(10), SECOND * 3);
            let expected = if pulse { State::Closed } else { State::Open };
            assert_eq!(rig.state(), expected, "{outcomes:?}, pulse: {pulse}");
        }
    }
}

#[test]
fn lag_never_opens_a_shard() {
    let rig = Rig::new(shard());
    for _ in 0..100 {
        rig.breaker.observe_lag(Some(SECOND * 60), rig.now);
    }
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn three_samples_of_lag_open_a_replica_and_samples_under_re_entry_close_it() {
    let mut rig = Rig::new(replica());
    let lag = |rig: &Rig, millis: u64| rig.breaker.observe_lag(Some(ms(millis)), rig.now);
    for sample in [900, 800, 799, 800, 5000] {
        lag(&rig, sample);
    }
    rig.breaker.observe_lag(None, rig.now);
    assert_eq!(
        rig.state(),
        State::Closed,
        "unknown neither counts nor breaks the row"
    );
    lag(&rig, 800);
    assert_eq!(rig.reason(), Some(Reason::Lag));
    rig.ticks(SECOND * 2);
    let refused = rig.breaker.try_acquire(Work::CONNECT, rig.now).unwrap_err();
    assert_eq!(
        refused.refusal,
        Refusal::Sampling,
        "no query probes a replica that is behind"
    );
    assert!(!rig.breaker.wants_probe(rig.now));
    for sample in [120, 300, 119, 0] {
        lag(&rig, sample);
        assert_eq!(rig.state(), State::HalfOpen);
    }
    lag(&rig, 119);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn a_sample_over_hard_while_half_open_opens_again() {
    let mut rig = Rig::new(replica());
    for _ in 0..3 {
        rig.breaker.observe_lag(Some(SECOND), rig.now);
    }
    rig.ticks(SECOND * 2);
    rig.breaker.observe_lag(Some(SECOND), rig.now);
    assert_eq!((rig.state(), rig.last().cooldown), (State::Open, SECOND * 4));
}

#[test]
fn three_failed_checks_open_and_five_passed_ones_close() {
    both(|mut rig| {
        let check = |rig: &Rig, passed| rig.breaker.observe_health(passed, rig.now);
        for passed in [false, false, true, false, false] {
            check(&rig, passed);
        }
        assert_eq!(rig.state(), State::Closed);
        check(&rig, false);
        assert_eq!(rig.reason(), Some(Reason::HealthCheck));
        for _ in 0..4 {
            check(&rig, true);
        }
        rig.ticks(SECOND * 2);
        assert_eq!(rig.state(), State::HalfOpen);
        check(&rig, true);
        assert_eq!(
            rig.state(),
            State::Closed,
            "those that passed while it was open count"
        );
    });
}

#[test]
fn zero_turns_each_signal_off() {
    let mut config = replica();
    config.consecutive_failures = 0;
    config.consecutive_timeouts = 0;
    config.error_rate.percent = 0;
    config.timeout_rate.percent = 0;
    config.stall.pending = 0;
    config.pool_saturated = Duration::ZERO;
    config.latency.factor = 0;
    config.lag.samples = 0;
    config.health.fall = 0;
    let mut rig = Rig::new(config);
    let breaker = Arc::clone(&rig.breaker);
    let pending: Vec<_> = (0..9)
        .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
        .collect();
    breaker.observe_pool(0, 9, rig.now);
    load(&mut rig, ms(1), SECOND * 20);
    load(&mut rig, ms(900), SECOND * 20);
    for outcome in [Outcome::Failure, Outcome::Timeout, Outcome::Saturation] {
        rig.many(100, outcome);
        rig.ticks(SECOND);
        rig.many(100, outcome);
    }
    for _ in 0..9 {
        breaker.observe_lag(Some(SECOND * 9), rig.now);
        breaker.observe_health(false, rig.now);
    }
    rig.ticks(SECOND * 10);
    assert_eq!(rig.state(), State::Closed);
    assert!(rig.transitions().is_empty());
    drop(pending);
}

// Threads count each in a place of its own, without a lock: nothing may get lost between them, also when there are more
// threads than places, and when one thread asks and another records.
#[test]
fn what_many_threads_count_is_exact() {
    let mut rig = Rig::new(without_rows(shard()));
    let (threads, each) = (8, 250);
    let breaker = &rig.breaker;
    let now = rig.now;
    let permits = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for kind in 0..threads {
            let permits = &permits;
            scope.spawn(move || {
                for _ in 0..each {
                    let mine = breaker.try_acquire(Work::statement(kind + 1), now).unwrap();
                    let other = permits.lock().unwrap().pop();
                    permits.lock().unwrap().push(mine);
                    if let Some(other) = other {
                        other.record(Outcome::Success, now);
                    }
                }
            });
        }
    });
    for permit in permits.into_inner().unwrap() {
        permit.record(Outcome::Success, now);
    }
    assert_eq!(breaker.snapshot(now).in_flight, 0);
    let all = threads * each;
    rig.many(all as usize - 1, Outcome::Failure);
    assert_eq!(rig.state(), State::Closed);
    rig.one(Outcome::Failure);
    assert_eq!(rig.reason(), Some(Reason::ErrorRate), "half, to the last one");
}
