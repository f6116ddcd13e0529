//! Every interleaving of a few threads, by `loom`: run with `breaker/loom`.
//!
//! The pieces are checked one by one, where the orderings are decided, and the whole breaker with a bound on preemptions.

use std::sync::Arc as StdArc;
use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::config::{Cooldown, Probe};
use crate::signal::pending::Slots;
use crate::signal::streak::Streak;
use crate::signal::window::{Ring, Shape};
use crate::state::{Admission, Machine};
use crate::sync::Writer;
use crate::{
    Breaker, BudgetConfig, Config, EjectionCap, Mode, Outcome, Reason, RetryBudget, State, Time, Trigger,
    Work,
};

const SECOND: Duration = Duration::from_secs(1);

fn machine() -> Machine {
    let cooldown = Cooldown {
        base: SECOND,
        max: SECOND * 4,
        jitter: 0,
        healthy: SECOND * 60,
    };
    let probe = Probe {
        successes: 1,
        lease: SECOND,
    };
    Machine::new(cooldown, probe, Mode::Auto, 1)
}

const fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn opened() -> Machine {
    let machine = machine();
    assert!(machine.trip(0, Reason::Buffer, at(1), &mut |_| {}));
    machine
}

fn is_probe(machine: &Machine, now: Time) -> bool {
    matches!(machine.admit(now, |_| {}), Admission::Probe { .. })
}

/// Runs both at once and gives back what each returned.
fn both<T: 'static>(a: impl FnOnce() -> T + 'static, b: impl FnOnce() -> T + 'static) -> (T, T) {
    let other = thread::spawn(a);
    let mine = b();
    (other.join().unwrap(), mine)
}

#[test]
fn one_of_two_callers_probes_when_the_cooldown_ends() {
    loom::model(|| {
        let machine = Arc::new(opened());
        let same = Arc::clone(&machine);
        let (a, b) = both(move || is_probe(&same, at(2)), {
            let machine = Arc::clone(&machine);
            move || is_probe(&machine, at(2))
        });
        assert!(a ^ b, "{a} {b}");
    });
}

#[test]
fn a_probe_that_is_given_back_is_never_lost() {
    loom::model(|| {
        let machine = Arc::new(opened());
        let Admission::Probe { generation, lease } = machine.admit(at(2), |_| {}) else {
            panic!("the first caller probes");
        };
        let same = Arc::clone(&machine);
        let (_, taken) = both(
            move || {
                same.release(generation, lease);
                false
            },
            {
                let machine = Arc::clone(&machine);
                move || is_probe(&machine, at(2))
            },
        );
        assert!(
            taken != is_probe(&machine, at(2)),
            "either it was taken then, or it is free now"
        );
    });
}

#[test]
fn a_probe_whose_lease_was_renewed_is_not_taken_away_by_the_old_one() {
    loom::model(|| {
        let machine = Arc::new(opened());
        let Admission::Probe { generation, lease } = machine.admit(at(2), |_| {}) else {
            panic!("the first caller probes");
        };
        let same = Arc::clone(&machine);
        // Sent just before its lease ends, while somebody else sees it end.
        let sent = Time::from_nanos(2_999_000_000);
        let (renewed, _) = both(move || same.renew_lease(generation, lease, sent), {
            let machine = Arc::clone(&machine);
            move || {
                machine.tick(at(3), &mut |_| {});
                None
            }
        });
        let word = machine.word();
        match renewed {
            Some(lease) => {
                assert_eq!((word.state, word.generation), (State::HalfOpen, generation));
                assert_eq!((lease, machine.lease(word)), (3999, Some(sent.after(SECOND))));
            }
            None => assert_eq!((word.state, word.generation), (State::Open, generation + 1)),
        }
    });
}

#[test]
fn a_probe_that_passes_while_its_lease_ends_moves_the_state_once() {
    loom::model(|| {
        let machine = Arc::new(opened());
        let Admission::Probe { generation, lease } = machine.admit(at(2), |_| {}) else {
            panic!("the first caller probes");
        };
        let told = Arc::new(AtomicUsize::new(0));
        let count = |told: &Arc<AtomicUsize>| {
            let told = Arc::clone(told);
            move |_| {
                told.fetch_add(1, Ordering::Relaxed);
            }
        };
        let (same, mut tell) = (Arc::clone(&machine), count(&told));
        let pass = move || {
            same.pass(generation, 1, at(3), &mut tell);
            same.release(generation, lease);
        };
        let (same, mut tell) = (Arc::clone(&machine), count(&told));
        both(pass, move || same.tick(at(3), &mut tell));
        let word = machine.word();
        assert_ne!(word.state, State::HalfOpen);
        assert_eq!(
            (word.generation, told.load(Ordering::Relaxed)),
            (generation + 1, 1)
        );
        assert!(machine.mark(word).is_some());
    });
}

#[test]
fn two_threads_that_see_one_signal_trip_once() {
    loom::model(|| {
        let machine = Arc::new(machine());
        let same = Arc::clone(&machine);
        let (a, b) = both(move || same.trip(0, Reason::Stall, at(1), &mut |_| {}), {
            let machine = Arc::clone(&machine);
            move || machine.trip(0, Reason::ErrorRate, at(1), &mut |_| {})
        });
        assert!(a ^ b);
        let word = machine.word();
        assert_eq!((word.state, word.generation, word.level), (State::Open, 1, 1));
        assert_eq!(machine.mark(word), Some(at(2)));
    });
}

#[test]
fn a_mark_written_late_never_speaks_for_a_later_generation() {
    loom::model(|| {
        let machine = Arc::new(machine());
        let same = Arc::clone(&machine);
        both(
            move || {
                same.trip(0, Reason::Stall, at(1), &mut |_| {});
            },
            {
                let machine = Arc::clone(&machine);
                move || machine.renew(at(9), &mut |_| {})
            },
        );
        let word = machine.word();
        let expected = match (word.state, word.generation) {
            // Tripped, then the new term.
            (State::HalfOpen, 2) => at(9),
            // The new term, then a trip of the old generation, which is none. It was closed from the beginning.
            (State::Closed, 1) => at(0),
            other => panic!("{other:?}"),
        };
        assert_eq!(machine.mark(word), Some(expected));
    });
}

#[test]
fn a_late_probe_of_one_term_does_not_stand_in_the_way_of_the_next() {
    loom::model(|| {
        let machine = Arc::new(opened());
        let same = Arc::clone(&machine);
        both(
            move || {
                let _ = same.admit(at(2), |_| {});
            },
            {
                let machine = Arc::clone(&machine);
                move || machine.renew(at(2), &mut |_| {})
            },
        );
        let word = machine.word();
        assert_eq!(word.state, State::HalfOpen);
        // A probe of this generation may be out, one of an earlier may not count as one.
        let first = is_probe(&machine, at(2));
        let out = machine.lease(machine.word()).is_some();
        assert!(first || out);
        assert!(!is_probe(&machine, at(2)));
    });
}

#[test]
fn an_operator_and_a_signal_leave_a_consistent_state() {
    loom::model(|| {
        let machine = Arc::new(machine());
        let same = Arc::clone(&machine);
        both(
            move || {
                same.trip(0, Reason::Stall, at(1), &mut |_| {});
            },
            {
                let machine = Arc::clone(&machine);
                move || {
                    machine.set_mode(Mode::ForcedClosed, at(1), &mut |_| {});
                }
            },
        );
        let word = machine.word();
        assert_eq!((word.mode, word.state), (Mode::ForcedClosed, State::Closed));
        assert!(machine.mark(word).is_some());
        machine.reopen(word.generation, None, Trigger::ProbeFailed, at(1), &mut |_| {});
        assert_eq!(machine.word(), word);
    });
}

#[test]
fn a_streak_counts_each_event_of_its_generation() {
    loom::model(|| {
        let streak = Arc::new(Streak::new());
        let same = Arc::clone(&streak);
        let (a, b) = both(move || same.add(1).max(same.add(1)), {
            let streak = Arc::clone(&streak);
            move || streak.add(1)
        });
        assert_eq!(streak.get(1), 3);
        assert_eq!(a.max(b), 3, "somebody saw the threshold");
    });
}

#[test]
fn an_old_generation_never_resets_a_streak() {
    loom::model(|| {
        let streak = Arc::new(Streak::new());
        streak.add(1);
        let same = Arc::clone(&streak);
        both(
            move || {
                same.add(2);
                same.add(2);
            },
            {
                let streak = Arc::clone(&streak);
                move || {
                    streak.add(1);
                    streak.end(1);
                }
            },
        );
        assert_eq!(streak.get(2), 2);
    });
}

#[test]
fn a_bucket_loses_nothing_when_it_is_begun_anew_by_two() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(Shape::exactly(10, 2)));
        let now = Time::from_nanos;
        ring.add(0, now(0));
        let same = Arc::clone(&ring);
        // Slice 2 takes the bucket of slice 0.
        both(
            move || {
                same.add(0, now(20));
                same.add(0, now(30));
            },
            {
                let ring = Arc::clone(&ring);
                move || ring.add(0, now(25))
            },
        );
        assert_eq!(ring.sum(0, now(30), 2), 3);
    });
}

#[test]
fn a_late_thread_never_takes_a_bucket_back() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(Shape::exactly(10, 2)));
        let now = Time::from_nanos;
        let same = Arc::clone(&ring);
        both(
            move || {
                same.add(0, now(25));
                same.add(1, now(25));
            },
            {
                let ring = Arc::clone(&ring);
                // One whose clock is behind, and one of a generation that is over.
                move || ring.add(0, now(5))
            },
        );
        assert_eq!(ring.sum(1, now(25), 2), 1);
    });
}

#[test]
fn a_slot_has_one_holder() {
    loom::model(|| {
        let slots = Arc::new(Slots::new(1));
        let same = Arc::clone(&slots);
        let (a, b) = both(move || same.take(Writer::Shared, 1, at(1)), {
            let slots = Arc::clone(&slots);
            move || slots.take(Writer::Shared, 2, at(1))
        });
        assert!(a.is_some() ^ b.is_some());
        slots.give_back(0);
        assert_eq!(slots.in_use(), 0);
        assert!(slots.take(Writer::Shared, 3, at(1)).is_some());
    });
}

#[test]
fn the_last_place_under_the_cap_is_taken_once() {
    loom::model(|| {
        let cap = Arc::new(EjectionCap::new(50));
        cap.join();
        cap.join();
        let same = Arc::clone(&cap);
        let (a, b) = both(move || same.reserve(), {
            let cap = Arc::clone(&cap);
            move || cap.reserve()
        });
        assert!(a ^ b);
        assert_eq!(cap.out(), 1);
    });
}

/// A breaker of few atomics: no windows, no table of attempts but two slots.
fn small() -> Config {
    let mut config = Config::fingerprint();
    config.consecutive_failures = 2;
    config.consecutive_timeouts = 0;
    config.timeout_rate.percent = 0;
    config.latency.factor = 0;
    config.cooldown.jitter = 0;
    config.cooldown.base = SECOND;
    config.probe.successes = 1;
    config.tracked = 2;
    config
}

fn bounded(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

#[test]
fn two_failures_at_once_open_once_and_leave_nothing_in_flight() {
    bounded(|| {
        let breaker = StdArc::new(Breaker::new(small(), 1, StdArc::new(())).unwrap());
        let fail = |breaker: StdArc<Breaker>| {
            move || {
                if let Ok(permit) = breaker.try_acquire(Work::CONNECT, at(1)) {
                    permit.record(Outcome::Failure, at(1));
                }
            }
        };
        both(fail(StdArc::clone(&breaker)), fail(StdArc::clone(&breaker)));
        let snapshot = breaker.snapshot(at(1));
        assert_eq!((snapshot.state, snapshot.in_flight), (State::Open, 0));
        assert_eq!(snapshot.counts.trips.iter().sum::<u64>(), 1);
    });
}

#[test]
fn a_dropped_probe_and_a_result_of_an_earlier_generation_leave_the_probe_free() {
    bounded(|| {
        let breaker = StdArc::new(Breaker::new(small(), 1, StdArc::new(())).unwrap());
        let old = breaker.try_acquire_owned(Work::CONNECT, at(1)).unwrap();
        breaker.trip(Reason::Buffer, at(1));
        let probe = breaker.try_acquire_owned(Work::CONNECT, at(2)).unwrap();
        both(move || drop(probe), move || old.record(Outcome::Failure, at(2)));
        assert_eq!(breaker.state(at(2)), State::HalfOpen);
        assert!(breaker.try_acquire(Work::CONNECT, at(2)).unwrap().is_probe());
    });
}

#[test]
fn the_last_retry_is_granted_at_most_once() {
    bounded(|| {
        // One retry for the one attempt.
        let budget = Arc::new(RetryBudget::new(BudgetConfig {
            percent: 100,
            per_second: 0,
        }));
        budget.attempt(at(1));
        let same = Arc::clone(&budget);
        let (a, b) = both(move || same.charge(at(1)), {
            let budget = Arc::clone(&budget);
            move || budget.charge(at(1))
        });
        assert!(!(a && b));
        assert_eq!(budget.spent(at(1)), u64::from(a) + u64::from(b));
    });
}
