//! What one attempt pays: asking and recording a success, beside other breakers in the same run.
//!
//! Ours has every default signal on and is handed `now`; the others run their cheapest policy. On two threads each
//! iteration counts once a thread: the time is what one thread pays while another does the same.
//!
//! Run: `cargo bench -p shardgate-breaker --features comparison`.

#![allow(missing_docs)] // criterion's macros make items of their own

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use criterion::measurement::{Measurement, WallTime};
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use failsafe::{Config as FailsafeConfig, StateMachine, backoff, failure_policy};
use recloser::Recloser;
use shardgate_breaker::{Breaker, Config, Mode, Outcome, Time, Work};

const THREADS: usize = 2;
/// Nanoseconds between two attempts of one thread, as the breaker's clock sees them.
const STEP: u64 = 1_000;

fn ours(breaker: &Breaker, i: u64) {
    let now = Time::from_nanos(1_000_000_000 + i * STEP);
    let work = Work::statement(1 + i % 7);
    match breaker.try_acquire(work, now) {
        Ok(permit) => permit.record(Outcome::Success, now.after(Duration::from_nanos(500))),
        Err(rejected) => {
            black_box(rejected);
        }
    }
}

fn shard() -> Breaker {
    match Breaker::new(Config::shard(), 1, Arc::new(())) {
        Ok(breaker) => breaker,
        Err(error) => unreachable!("the defaults are valid: {error}"),
    }
}

fn failsafe_breaker() -> StateMachine<impl failsafe::FailurePolicy, ()> {
    let policy = failure_policy::consecutive_failures(5, backoff::constant(Duration::from_secs(2)));
    FailsafeConfig::new().failure_policy(policy).build()
}

fn recloser_breaker() -> Recloser {
    Recloser::custom()
        .error_rate(0.5)
        .closed_len(100)
        .half_open_len(3)
        .open_wait(Duration::from_secs(2))
        .build()
}

/// One thread, then two threads that share the breaker.
fn measure(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, attempt: impl Fn(u64) + Sync) {
    group.bench_function(format!("{name}/1 thread"), |b| {
        let mut i = 0;
        b.iter(|| {
            i += 1;
            attempt(black_box(i));
        });
    });
    group.bench_function(format!("{name}/2 threads"), |b| {
        b.iter_custom(|iterations| together(iterations, |_, i| attempt(i)));
    });
}

/// The mean of the time each thread took for its iterations; an attempt is given the thread's number and its own.
fn together(iterations: u64, attempt: impl Fn(usize, u64) + Sync) -> Duration {
    let (start, clock) = (Barrier::new(THREADS), WallTime);
    let one = |thread| {
        start.wait();
        let began = clock.start();
        for i in 0..iterations {
            attempt(thread, black_box(i));
        }
        clock.end(began)
    };
    let one = &one;
    let total: Duration = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || one(n))).collect();
        threads.into_iter().filter_map(|t| t.join().ok()).sum()
    });
    total / THREADS as u32
}

fn allow_and_success(c: &mut Criterion) {
    let mut group = c.benchmark_group("allow + success");
    let breaker = shard();
    measure(&mut group, "shardgate", |i| ours(&breaker, i));
    let failsafe = failsafe_breaker();
    measure(&mut group, "failsafe", |_| {
        if failsafe.is_call_permitted() {
            failsafe.on_success();
        }
    });
    let recloser = recloser_breaker();
    measure(&mut group, "recloser", |i| {
        let _ = black_box(recloser.call(|| Ok::<u64, ()>(i)));
    });
    // What the machine itself takes for a second thread.
    let apart = [shard(), shard()];
    group.bench_function("shardgate/2 threads, a breaker each", |b| {
        b.iter_custom(|iterations| together(iterations, |thread, i| ours(&apart[thread], i)));
    });
    group.finish();
}

fn refuse(c: &mut Criterion) {
    let mut group = c.benchmark_group("refuse");
    let breaker = shard();
    breaker.set_mode(Mode::ForcedOpen, Time::ZERO);
    measure(&mut group, "shardgate", |i| ours(&breaker, i));
    group.finish();
}

fn tick(c: &mut Criterion) {
    let breaker = shard();
    let mut now = Time::from_nanos(1);
    c.bench_function("tick", |b| {
        b.iter(|| {
            now = now.after(Duration::from_millis(100));
            breaker.tick(now);
        });
    });
}

criterion_group! {
    name = hot_path;
    config = Criterion::default()
        .sample_size(60)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = allow_and_success, refuse, tick
}
criterion_main!(hot_path);
