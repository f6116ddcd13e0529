//! How fast a replica applies: later by a fixed time, or no faster than a rate that falls as the replica is read more.
//! The latter is how real replicas come to lag: reads and the applier share one machine.

use std::time::Duration;

use tokio::time::Instant;

/// How far back the read load is averaged.
const MEMORY: Duration = Duration::from_secs(1);
/// The longest wait before the load is looked at again.
const STEP: Duration = Duration::from_millis(25);

/// What holds an applier back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lag {
    /// A transaction is at least this old when it is applied.
    pub(crate) delay: Duration,
    pub(crate) rate: Option<ApplyRate>,
}

/// Transactions a second, by the read load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ApplyRate {
    /// While nobody reads.
    pub(crate) idle: f64,
    /// Reads a second at which nothing is applied any more; `None`: reads cost nothing.
    pub(crate) full_reads: Option<f64>,
}

impl ApplyRate {
    fn at(self, load: f64) -> f64 {
        let left = self.full_reads.map_or(1.0, |full| (1.0 - load / full).max(0.0));
        self.idle * left
    }
}

/// Keeps a rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    tokens: f64,
    at: Instant,
    reads: u64,
    /// Reads a second, lately.
    load: f64,
}

impl Pacer {
    pub(crate) const fn new(reads: u64, now: Instant) -> Self {
        Self {
            tokens: 1.0,
            at: now,
            reads,
            load: 0.0,
        }
    }

    /// Whether the next transaction may be applied; if not, when to ask again. `reads` is how many reads there were
    /// ever.
    #[allow(clippy::cast_precision_loss)] // counts of reads far below 2^52
    pub(crate) fn take(&mut self, rate: ApplyRate, reads: u64, now: Instant) -> Result<(), Duration> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        if passed > 0.0 {
            let seen = reads.saturating_sub(self.reads) as f64 / passed;
            self.load += (seen - self.load) * (1.0 - (-passed / MEMORY.as_secs_f64()).exp());
            (self.at, self.reads) = (now, reads);
            let rate = rate.at(self.load);
            // An applier that was idle makes up for a tenth of a second at most.
            self.tokens = (self.tokens + rate * passed).min((rate / 10.0).max(1.0));
        }
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let rate = rate.at(self.load);
        let wait = Duration::try_from_secs_f64((1.0 - self.tokens) / rate).unwrap_or(STEP);
        Err(wait.clamp(Duration::from_millis(1), STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many transactions are applied in ten seconds under this many reads a second.
    #[allow(clippy::cast_possible_truncation)]
    fn applied(rate: ApplyRate, reads_per_s: u64) -> u32 {
        let begin = Instant::now();
        let mut pacer = Pacer::new(0, begin);
        let (mut now, mut count) = (begin, 0);
        while now < begin + Duration::from_secs(10) {
            let reads = (now - begin).as_millis() as u64 * reads_per_s / 1000;
            match pacer.take(rate, reads, now) {
                Ok(()) => count += 1,
                Err(wait) => now += wait,
            }
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_falls_in_a_line_with_the_reads() {
        let rate = ApplyRate {
            idle: 100.0,
            full_reads: Some(400.0),
        };
        let near = |got: u32, want: u32| got.abs_diff(want) <= want / 10 + 15;
        assert!(near(applied(rate, 0), 1000), "{}", applied(rate, 0));
        // The first second's average still remembers the quiet before.
        assert!(near(applied(rate, 200), 550), "{}", applied(rate, 200));
        assert!(applied(rate, 800) < 120, "{}", applied(rate, 800));
        let free = ApplyRate {
            full_reads: None,
            ..rate
        };
        assert!(near(applied(free, 800), 1000));
    }
}
