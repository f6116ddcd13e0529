//! The path of every query allocates nothing.

use std::time::Duration;

use shardgate_breaker::{Outcome, State, Work};

use super::support::{Rig, replica, shard};

#[test]
fn asking_recording_refusing_and_ticking_allocate_nothing() {
    for config in [shard(), replica()] {
        let breaker = shardgate_breaker::Breaker::new(config, 1, std::sync::Arc::new(())).unwrap();
        let mut now = shardgate_breaker::Time::from_nanos(1);
        // A thread's number is made at its first attempt.
        drop(breaker.try_acquire(Work::CONNECT, now));
        let info = allocation_counter::measure(|| {
            for outcome in [
                Outcome::Success,
                Outcome::Neutral,
                Outcome::Timeout,
                Outcome::Failure,
            ] {
                for i in 0..200 {
                    now = now.after(Duration::from_millis(5));
                    if let Ok(mut permit) = breaker.try_acquire(Work::statement(1 + i % 40), now) {
                        assert!(permit.sent(now));
                        permit.responded(now);
                        permit.record(outcome, now);
                    }
                    breaker.tick(now);
                }
            }
        });
        assert_eq!(breaker.state(now), State::Open, "the walk went through refusals");
        assert_eq!(info.count_total, 0, "{info:?}");
    }
}

#[test]
fn a_permit_that_owns_its_breaker_allocates_nothing() {
    let rig = Rig::new(shard());
    drop(rig.breaker.try_acquire_owned(Work::CONNECT, rig.now));
    let info = allocation_counter::measure(|| {
        if let Ok(permit) = rig.breaker.try_acquire_owned(Work::CONNECT, rig.now) {
            permit.record(Outcome::Success, rig.now);
        }
    });
    assert_eq!(info.count_total, 0, "{info:?}");
}
