//! Faults that other breakers had, each as it was reported.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use shardgate_breaker::{Outcome, Reason, Refusal, ServerError, State, Time, Work};

use super::support::{Rig, ms, shard};

// B1. resilience4j#935, monix#1080: a cancelled probe never came back, and the breaker stayed half-open for ever.
#[test]
fn a_dropped_probe_returns_its_permit() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let breaker = Arc::clone(&rig.breaker);
    let probe = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    assert!(probe.is_probe());
    assert!(rig.refused());
    drop(probe);
    let next = rig.breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    assert!(next.is_probe());
}

#[test]
fn a_hung_probe_loses_its_lease() {
    let mut rig = Rig::new(shard());
    rig.half_open();
    let breaker = Arc::clone(&rig.breaker);
    let hung = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    rig.pass(ms(1999));
    let refused = breaker.try_acquire(Work::CONNECT, rig.now).unwrap_err();
    assert_eq!(
        (refused.refusal, refused.retry_after),
        (Refusal::Probing, Some(ms(1)))
    );
    rig.pass(ms(1));
    assert!(rig.refused());
    assert_eq!(rig.state(), State::Open);
    assert_eq!(rig.last().cooldown, Duration::from_secs(4));
    rig.pass(Duration::from_secs(4));
    let next = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
    assert!(next.is_probe());
    hung.record(Outcome::Failure, rig.now);
    assert_eq!(
        rig.state(),
        State::HalfOpen,
        "the hung probe is of another generation"
    );
}

// B2. resilience4j#1432, Polly#216: all callers that waited for the cooldown were let through together.
#[test]
fn one_of_a_hundred_callers_probes_when_the_cooldown_ends() {
    let mut rig = Rig::new(shard());
    for _ in 0..20 {
        rig.open();
        let end = rig.now.after(rig.last().cooldown);
        let (admitted, refused) = race(&rig, end);
        assert_eq!((admitted, refused), (1, 99));
        // The probe was dropped, so that the next round finds the breaker half-open: begin anew.
        rig.now = end;
        for _ in 0..3 {
            rig.one(Outcome::Success);
        }
        rig.pass(Duration::from_mins(10));
    }
}

fn race(rig: &Rig, now: Time) -> (usize, usize) {
    let (admitted, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (start, end) = (Barrier::new(100), Barrier::new(100));
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                start.wait();
                let permit = rig.breaker.try_acquire(Work::CONNECT, now);
                let count = if permit.is_ok() { &admitted } else { &refused };
                count.fetch_add(1, Ordering::Relaxed);
                // Whoever is admitted holds on until all have asked.
                end.wait();
            });
        }
    });
    (admitted.into_inner(), refused.into_inner())
}

// B3. deno std#7306, Polly#217: a query from before the trip closed the breaker when it ended.
#[test]
fn a_result_of_an_earlier_generation_changes_nothing() {
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Timeout] {
        let mut rig = Rig::new(shard());
        let breaker = Arc::clone(&rig.breaker);
        let slow: Vec<_> = (0..10)
            .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
            .collect();
        rig.half_open();
        let before = breaker.snapshot(rig.now);
        for permit in slow {
            permit.record(outcome, rig.now);
        }
        let after = breaker.snapshot(rig.now);
        assert_eq!(
            (after.state, after.generation),
            (State::HalfOpen, before.generation)
        );
        assert_eq!((after.probes_passed, after.counts.stale), (0, 10));
        let probe = breaker.try_acquire(Work::CONNECT, rig.now).unwrap();
        assert!(probe.is_probe(), "{outcome:?}");
    }
}

// B4. semian#24: a failure that had left the window was counted, and one at the edge was not.
#[test]
fn a_window_is_exact_at_its_edges() {
    let mut config = shard();
    config.consecutive_failures = 0;
    config.min_samples = 3;
    config.error_rate.percent = 100;
    config.error_rate.window = Duration::from_secs(5);
    for start in [0, 1_000, 777_000, 86_400_000 * 400] {
        let mut rig = Rig::new(config.clone());
        for (at, expected) in [
            (0, State::Closed),
            (5000, State::Closed),
            (6000, State::Closed),
            (6100, State::Open),
        ] {
            rig.now = Time::at(ms(start + at));
            rig.one(Outcome::Failure);
            assert_eq!(rig.state(), expected, "{start} + {at} ms");
        }
    }
}

#[test]
fn a_window_is_empty_after_a_long_idle_time() {
    let mut config = shard();
    config.consecutive_failures = 0;
    for idle in [10_000, 20_000, 100_000, 3_600_000, 86_400_000 * 30] {
        let mut rig = Rig::new(config.clone());
        rig.many(19, Outcome::Failure);
        rig.pass(ms(idle));
        rig.many(19, Outcome::Failure);
        assert_eq!(rig.state(), State::Closed, "{idle} ms");
        rig.one(Outcome::Failure);
        assert_eq!(rig.state(), State::Open);
    }
}

// B5. envoy#18950: after the first cycle failures in flight were taken for the next cycle's, and it never opened again.
#[test]
fn fifty_failures_at_once_open_it_in_each_cycle() {
    let mut rig = Rig::new(shard());
    let breaker = Arc::clone(&rig.breaker);
    for cycle in 1..=3 {
        let burst: Vec<_> = (0..50)
            .map(|i| breaker.try_acquire(Work::statement(i + 1), rig.now).unwrap())
            .collect();
        for permit in burst {
            permit.record(Outcome::Failure, rig.now);
        }
        let snapshot = breaker.snapshot(rig.now);
        assert_eq!(snapshot.state, State::Open, "cycle {cycle}");
        assert_eq!(snapshot.counts.trips[Reason::ConsecutiveFailures.index()], cycle);
        rig.pass(snapshot.probe_in.unwrap());
        rig.many(3, Outcome::Success);
        assert_eq!(rig.state(), State::Closed, "cycle {cycle}");
    }
}

// B6. semian#420 #171, mysql_async#96: errors of the statement opened the breaker; a full server counted as nothing.
#[test]
fn errors_of_the_statement_never_trip_and_errors_of_the_server_do() {
    let error = |errno| {
        ServerError {
            errno,
            message: "",
            at_primary: true,
            killed_by_us: false,
        }
        .outcome()
    };
    for (name, outcome, trips) in [
        ("1064", error(1064), None),
        ("1062", error(1062), None),
        ("timeout", Outcome::Timeout, Some(Reason::ConsecutiveTimeouts)),
        ("refused", Outcome::Failure, Some(Reason::ConsecutiveFailures)),
        ("1040 at handshake", error(1040), Some(Reason::PoolSaturated)),
        ("client cancel", Outcome::Neutral, None),
    ] {
        let rig = &mut Rig::new(shard());
        for i in 0..300 {
            let kind = if name.contains("handshake") {
                Work::CONNECT
            } else {
                Work::statement(1 + i % 3)
            };
            rig.pass(ms(20));
            if let Ok(permit) = rig.breaker.try_acquire(kind, rig.now) {
                permit.record(outcome, rig.now);
            }
            if rig.state() != State::Closed {
                break;
            }
        }
        assert_eq!(rig.reason(), trips, "{name}");
    }
}
