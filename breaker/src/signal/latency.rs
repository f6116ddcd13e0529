//! p95 and p99 of a window, and the slow baseline they are held against.

use std::time::Duration;

use crate::Time;
use crate::config::Latency;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Writer};
use crate::time::nanos;

/// Buckets a power of two is cut into: a percentile is at most 12 % too high.
const PARTS: u32 = 8;
/// The first power of two told apart: 2^14 ns, 16 us.
const FIRST: u32 = 14;
/// Powers of two told apart: up to 2^37 ns, 137 s.
const POWERS: u32 = if cfg!(loom) { 1 } else { 23 };
const BUCKETS: usize = (PARTS * POWERS) as usize;
/// Keeps the next allocation off the last counter's cache line.
const PADDING: usize = if cfg!(loom) { 0 } else { 16 };
/// A baseline is young until it learned from so many windows.
const YOUTH: u32 = 10;
/// A window that begins when somebody first asks.
const NOT_BEGUN: u64 = u64::MAX;
/// A window that gets too few samples waits this many times its length, then is thrown away.
const PATIENCE: u32 = 15;

/// One stripe's samples of the window that is being filled and of the one before.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Number of the window in the high half, count in the low: a new window starts at zero without a sweep.
    cells: Box<[AtomicU64]>,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self {
            cells: (0..2 * BUCKETS + PADDING).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    #[inline]
    pub(crate) fn add(&self, writer: Writer, window: u32, latency: u64) {
        let half = (window as usize & 1) * BUCKETS;
        let Some(cell) = self.cells.get(half + bucket(latency)) else {
            return;
        };
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let next = match count_of(seen, window) {
                0 if is_later(seen, window) => return,
                count => u64::from(window) << 32 | u64::from(count.saturating_add(1)),
            };
            if writer == Writer::Sole {
                return cell.store(next, Ordering::Relaxed);
            }
            match cell.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(current) => seen = current,
            }
        }
    }
}

#[inline]
const fn count_of(bits: u64, window: u32) -> u32 {
    if (bits >> 32) as u32 == window {
        bits as u32
    } else {
        0
    }
}

/// Whether a count is of a window after this one: whoever brings a sample so late brings it too late.
const fn is_later(bits: u64, window: u32) -> bool {
    let distance = ((bits >> 32) as u32).wrapping_sub(window);
    bits as u32 != 0 && distance != 0 && distance < 1 << 31
}

#[inline]
fn bucket(latency: u64) -> usize {
    let power = (latency | 1).ilog2().max(FIRST);
    let part = (latency >> (power - 3)) as u32 & (PARTS - 1);
    let part = if latency < 1 << FIRST { 0 } else { part };
    (((power - FIRST) * PARTS + part) as usize).min(BUCKETS - 1)
}

/// The upper edge of a bucket.
fn upper(bucket: usize) -> u64 {
    let (power, part) = (bucket as u32 / PARTS + FIRST, u64::from(bucket as u32 % PARTS));
    (1 << power) + ((part + 1) << (power - 3))
}

/// Percentiles of one window that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) number: u32,
    pub(crate) p95: u64,
    pub(crate) p99: u64,
}

/// The windows and the baseline of one breaker.
#[derive(Debug)]
pub(crate) struct Baseline {
    config: Latency,
    /// Number of the window that is being filled.
    window: AtomicU32,
    began: AtomicU64,
    /// Slow averages in nanoseconds; 0 = unknown.
    p95: AtomicU64,
    p99: AtomicU64,
    /// Windows that were learned from; not counted beyond [`YOUTH`].
    learned: AtomicU32,
    /// p95 of the last full window.
    last: AtomicU64,
}

impl Baseline {
    pub(crate) fn new(config: Latency) -> Self {
        Self {
            config,
            window: AtomicU32::new(0),
            began: AtomicU64::new(NOT_BEGUN),
            p95: AtomicU64::new(0),
            p99: AtomicU64::new(0),
            learned: AtomicU32::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// The window to record in.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window.load(Ordering::Relaxed)
    }

    /// The slow average of p95.
    pub(crate) fn p95(&self) -> Option<Duration> {
        known(&self.p95)
    }

    /// The slow average of p99.
    pub(crate) fn p99(&self) -> Option<Duration> {
        known(&self.p99)
    }

    /// p95 of the last full window.
    pub(crate) fn last(&self) -> Option<Duration> {
        known(&self.last)
    }

    /// What is too slow, in nanoseconds: so many times the baseline, and at least the floor over it.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        let baseline = self.p95.load(Ordering::Relaxed);
        if baseline == 0 || self.config.factor == 0 {
            return u64::MAX;
        }
        let times = baseline.saturating_mul(u64::from(self.config.factor));
        times.max(baseline.saturating_add(nanos(self.config.floor)))
    }

    /// Ends the window if it is due and has enough samples. Called by `tick` alone.
    pub(crate) fn turn<'a>(
        &self,
        stripes: &(impl Iterator<Item = &'a Samples> + Clone),
        min_samples: u32,
        now: Time,
    ) -> Option<Window> {
        let began = match self.began.load(Ordering::Relaxed) {
            NOT_BEGUN => {
                self.began.store(now.as_nanos(), Ordering::Relaxed);
                now
            }
            nanos => Time::from_nanos(nanos),
        };
        let age = now.since(began);
        if age < self.config.window {
            return None;
        }
        let number = self.window();
        let half = (number as usize & 1) * BUCKETS;
        let halves = || stripes.clone().filter_map(|s| s.cells.get(half..half + BUCKETS));
        let total: u64 = halves()
            .flatten()
            .map(|c| u64::from(count_of(c.load(Ordering::Relaxed), number)))
            .sum();
        let enough = total >= u64::from(min_samples);
        if !enough && age < self.config.window * PATIENCE {
            return None;
        }
        self.began.store(now.as_nanos(), Ordering::Relaxed);
        self.window.store(number.wrapping_add(1), Ordering::Relaxed);
        let mut counts = [0u64; BUCKETS];
        for cells in halves() {
            for (count, cell) in counts.iter_mut().zip(cells) {
                *count += u64::from(count_of(cell.load(Ordering::Relaxed), number));
            }
        }
        enough.then(|| Window {
            number,
            p95: percentile(&counts, 95),
            p99: percentile(&counts, 99),
        })
    }

    /// Throws away what the window holds: it is of a time that is not to be judged.
    pub(crate) fn discard(&self, now: Time) {
        self.began.store(now.as_nanos(), Ordering::Relaxed);
        self.window.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a window's percentile without learning from it: what the baseline is held against must not follow it.
    pub(crate) fn show(&self, window: Window) {
        self.last.store(window.p95, Ordering::Relaxed);
    }

    /// Lets the baseline follow a window: 1 - e^(-span/memory), first order, since the spans are a hundredth of the memory.
    /// In its youth it is the mean of all windows: the first, in which connections are opened, must not stand for minutes.
    pub(crate) fn learn(&self, window: Window, span: Duration) {
        let learned = self.learned.load(Ordering::Relaxed);
        let slow = (span.as_secs_f64() / self.config.memory.as_secs_f64()).min(1.0);
        let weight = if learned < YOUTH {
            self.learned.store(learned + 1, Ordering::Relaxed);
            slow.max(1.0 / f64::from(learned + 1))
        } else {
            slow
        };
        for (average, sample) in [(&self.p95, window.p95), (&self.p99, window.p99)] {
            let next = follow(average.load(Ordering::Relaxed), sample, weight);
            average.store(next.max(1), Ordering::Relaxed);
        }
    }

    /// How long the window that is being filled has lasted.
    pub(crate) fn age(&self, now: Time) -> Duration {
        now.since(Time::from_nanos(self.began.load(Ordering::Relaxed)))
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // nanoseconds of latency are far below 2^53 and positive
fn follow(old: u64, sample: u64, weight: f64) -> u64 {
    (old as f64 * (1.0 - weight) + sample as f64 * weight) as u64
}

fn known(average: &AtomicU64) -> Option<Duration> {
    match average.load(Ordering::Relaxed) {
        0 => None,
        nanos => Some(Duration::from_nanos(nanos)),
    }
}

fn percentile(counts: &[u64; BUCKETS], percent: u64) -> u64 {
    let total: u64 = counts.iter().sum();
    let rank = (total * percent).div_ceil(100);
    let mut seen = 0;
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return upper(bucket);
        }
    }
    upper(BUCKETS - 1)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn baseline() -> (Baseline, [Samples; 2]) {
        (
            Baseline::new(crate::Config::shard().latency),
            [Samples::new(), Samples::new()],
        )
    }

    const fn ms(n: u64) -> u64 {
        n * 1_000_000
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_latency_within_an_eighth(latency in (1u64 << FIRST)..(1 << 36)) {
            let top = upper(bucket(latency));
            prop_assert!(top > latency && top <= latency + latency / 8 + 1, "{} {}", latency, top);
        }
    }

    #[test]
    fn extremes_have_a_bucket() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket((1 << FIRST) - 1), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_window_waits_for_samples_and_is_read_over_all_stripes() {
        let (baseline, stripes) = baseline();
        assert_eq!(baseline.turn(&stripes.iter(), 20, Time::ZERO), None);
        for i in 0..19 {
            stripes[i % 2].add(Writer::Shared, baseline.window(), ms(10));
        }
        let at = |s: u64| Time::from_nanos(ms(s * 1000));
        assert_eq!(baseline.turn(&stripes.iter(), 20, at(2)), None, "too few");
        stripes[0].add(Writer::Shared, baseline.window(), ms(100));
        assert_eq!(
            baseline.turn(&stripes.iter(), 20, Time::from_nanos(ms(1999))),
            None,
            "too early"
        );
        let window = baseline.turn(&stripes.iter(), 20, at(3)).unwrap();
        assert!((ms(10)..ms(12)).contains(&window.p95), "{window:?}");
        assert!((ms(100)..ms(113)).contains(&window.p99), "{window:?}");
        for _ in 0..20 {
            stripes[0].add(Writer::Shared, baseline.window(), ms(1));
        }
        assert!(
            baseline.turn(&stripes.iter(), 20, at(5)).unwrap().p99 < ms(2),
            "cleared"
        );
    }

    #[test]
    fn a_window_of_too_few_samples_is_thrown_away_in_the_end() {
        let (baseline, stripes) = baseline();
        assert_eq!(baseline.turn(&stripes.iter(), 20, Time::ZERO), None);
        stripes[0].add(Writer::Shared, baseline.window(), ms(10));
        assert_eq!(
            baseline.turn(&stripes.iter(), 20, Time::from_nanos(ms(31_000))),
            None
        );
        assert_eq!(baseline.window(), 1);
    }

    #[test]
    fn the_limit_is_five_times_the_baseline_and_at_least_the_floor_over_it() {
        let (baseline, _) = baseline();
        assert_eq!(baseline.limit(), u64::MAX, "unknown");
        let window = |p95| Window {
            number: 0,
            p95,
            p99: p95,
        };
        baseline.learn(window(ms(1)), Duration::from_secs(2));
        assert_eq!(baseline.limit(), ms(21));
        baseline.p95.store(ms(100), Ordering::Relaxed);
        assert_eq!(baseline.limit(), ms(500));
    }

    fn within(found: Option<Duration>, low: u64, high: u64) {
        let found = found.unwrap();
        assert!(
            (Duration::from_millis(low)..Duration::from_millis(high)).contains(&found),
            "{found:?}"
        );
    }

    #[test]
    fn the_baseline_follows_slowly() {
        let (baseline, _) = baseline();
        let window = |p95| Window {
            number: 0,
            p95,
            p99: p95,
        };
        for _ in 0..10 {
            baseline.learn(window(ms(10)), Duration::from_secs(2));
        }
        for _ in 0..15 {
            baseline.learn(window(ms(20)), Duration::from_secs(2));
        }
        within(baseline.p95(), 10, 12);
    }

    #[test]
    fn the_first_window_counts_no_more_than_the_others() {
        let (baseline, _) = baseline();
        let window = |p95, p99| Window { number: 0, p95, p99 };
        baseline.learn(window(ms(50), ms(200)), Duration::from_secs(2));
        within(baseline.p99(), 200, 201);
        for _ in 0..9 {
            baseline.learn(window(ms(2), ms(4)), Duration::from_secs(2));
        }
        within(baseline.p95(), 6, 7);
        within(baseline.p99(), 23, 24);
    }

    #[test]
    fn the_first_window_is_the_whole_baseline_however_long_it_was() {
        for seconds in [2, 25, 3600] {
            let (baseline, _) = baseline();
            let window = Window {
                number: 0,
                p95: ms(30),
                p99: ms(60),
            };
            baseline.learn(window, Duration::from_secs(seconds));
            assert_eq!(baseline.p95(), Some(Duration::from_millis(30)), "{seconds} s");
        }
    }

    #[test]
    fn the_first_window_begins_when_somebody_first_looks() {
        let (baseline, stripes) = baseline();
        let hour = Time::at(Duration::from_hours(1));
        for _ in 0..20 {
            stripes[0].add(Writer::Shared, baseline.window(), ms(10));
        }
        assert_eq!(baseline.turn(&stripes.iter(), 20, hour), None);
        let window = hour.after(Duration::from_secs(2));
        assert!(baseline.turn(&stripes.iter(), 20, window).is_some());
    }
}
