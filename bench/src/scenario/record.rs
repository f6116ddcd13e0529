//! What became of each request, by the moment it was meant to be sent: a load that waits for answers before it goes on
//! would not see the requests that a stuck server never let it send.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

/// How finely time is told apart.
pub(crate) const SLICE: Duration = Duration::from_millis(500);
/// The longest latency told apart, in microseconds.
const LONGEST: u64 = 120_000_000;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With its rows.
    Answered,
    /// With an error, by its code: the gateway's own where there is one.
    Failed(String),
    /// Every connection was taken: not sent at all.
    Shed,
    /// The run ended first.
    Unanswered,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) kind: usize,
    /// When it was meant to be sent.
    pub(crate) intended: Instant,
    /// How long it took from then on.
    pub(crate) latency: Duration,
    /// How long its client waited once it had been sent.
    pub(crate) waited: Duration,
    pub(crate) outcome: Outcome,
}

/// The requests of one kind in one slice.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) sent: u64,
    /// Answered within the limit.
    pub(crate) good: u64,
    pub(crate) failed: BTreeMap<String, u64>,
    /// Of answers with rows, in microseconds.
    pub(crate) answered: Histogram<u32>,
    /// Of errors, in microseconds.
    pub(crate) refused: Histogram<u32>,
    /// The longest that a client waited.
    pub(crate) worst: Duration,
}

impl Slice {
    pub(crate) fn new() -> Self {
        Self {
            sent: 0,
            good: 0,
            failed: BTreeMap::new(),
            answered: histogram(),
            refused: histogram(),
            worst: Duration::ZERO,
        }
    }

    /// Adds another's requests.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.good += other.good;
        for (code, n) in &other.failed {
            *self.failed.entry(code.clone()).or_default() += n;
        }
        // Made alike, so they fit.
        let _ = self.answered.add(&other.answered);
        let _ = self.refused.add(&other.refused);
        self.worst = self.worst.max(other.worst);
    }

    /// The share that was answered within the limit; of nothing, all.
    #[allow(clippy::cast_precision_loss)] // counts far below 2^52
    pub(crate) fn goodput(&self) -> f64 {
        if self.sent == 0 {
            return 1.0;
        }
        self.good as f64 / self.sent as f64
    }

    /// A quantile of the answers' latencies, in milliseconds; none without answers.
    pub(crate) fn answered_ms(&self, quantile: f64) -> Option<f64> {
        millis(&self.answered, quantile)
    }

    /// A quantile of the errors' latencies, in milliseconds; none without errors.
    pub(crate) fn refused_ms(&self, quantile: f64) -> Option<f64> {
        millis(&self.refused, quantile)
    }
}

fn histogram() -> Histogram<u32> {
    // Bounds and digits that the type allows; one of its own defaults otherwise.
    Histogram::new_with_bounds(1, LONGEST, 2).unwrap_or_else(|_| {
        let mut plain = Histogram::<u32>::new(2).unwrap_or_else(|_| unreachable!("two digits are allowed"));
        plain.auto(true);
        plain
    })
}

#[allow(clippy::cast_precision_loss)] // microseconds far below 2^52
fn millis(histogram: &Histogram<u32>, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile) as f64 / 1000.0)
}

/// A part of a run, as offsets from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

impl Window {
    pub(crate) const fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// All requests of a run.
#[derive(Debug)]
pub(crate) struct Record {
    began: Instant,
    /// An answer that comes later than this is no good to anybody.
    limit: Duration,
    pub(crate) kinds: Vec<&'static str>,
    /// By kind, by time.
    slices: Vec<Vec<Slice>>,
}

impl Record {
    pub(crate) fn new(kinds: Vec<&'static str>, limit: Duration, began: Instant) -> Self {
        Self {
            began,
            limit,
            slices: vec![Vec::new(); kinds.len()],
            kinds,
        }
    }

    pub(crate) fn add(&mut self, done: &Done) {
        let at = slice_of(done.intended.saturating_duration_since(self.began));
        let Some(slices) = self.slices.get_mut(done.kind) else {
            return;
        };
        while slices.len() <= at {
            slices.push(Slice::new());
        }
        let slice = &mut slices[at];
        slice.sent += 1;
        slice.worst = slice.worst.max(done.waited);
        let micros = u64::try_from(done.latency.as_micros())
            .unwrap_or(LONGEST)
            .clamp(1, LONGEST);
        let failed = match &done.outcome {
            Outcome::Answered => {
                slice.good += u64::from(done.latency <= self.limit);
                slice.answered.saturating_record(micros);
                return;
            }
            Outcome::Failed(code) => {
                slice.refused.saturating_record(micros);
                code.as_str()
            }
            Outcome::Shed => "not sent",
            Outcome::Unanswered => "unanswered",
        };
        *slice.failed.entry(failed.to_owned()).or_default() += 1;
    }

    /// One kind's requests that were meant for a window.
    pub(crate) fn over(&self, kind: usize, window: Window) -> Slice {
        let mut out = Slice::new();
        for slice in self.parts(kind, window) {
            out.merge(slice);
        }
        out
    }

    /// The same, slice by slice.
    pub(crate) fn parts(&self, kind: usize, window: Window) -> &[Slice] {
        let all = self.slices.get(kind).map_or(&[][..], Vec::as_slice);
        let (from, to) = (slice_of(window.from), slice_of(window.to).min(all.len()));
        all.get(from.min(to)..to).unwrap_or(&[])
    }

    /// How many slices there are.
    pub(crate) fn len(&self) -> usize {
        self.slices.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The median over pieces of two seconds of their 99th percentiles, in milliseconds: one hiccup of a shared machine
    /// moves one piece only.
    pub(crate) fn steady_p99(&self, kind: usize, window: Window) -> Option<f64> {
        let pieces: Vec<f64> = self
            .parts(kind, window)
            .chunks(4)
            .filter_map(|chunk| {
                let mut piece = Slice::new();
                for slice in chunk {
                    piece.merge(slice);
                }
                piece.answered_ms(0.99)
            })
            .collect();
        median(pieces)
    }
}

/// The one in the middle, or between the two in the middle; `None` of nothing.
pub(crate) fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let (lower, upper) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some(f64::midpoint(*lower, *upper))
}

fn slice_of(offset: Duration) -> usize {
    usize::try_from(offset.as_millis() / SLICE.as_millis()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 9.0]), Some(4.0));
        assert_eq!(median(vec![9.0, 2.0, 1.0, 4.0]), Some(3.0));
    }

    #[tokio::test]
    async fn requests_count_where_they_were_meant_to_be_sent() {
        let began = Instant::now();
        let ms = Duration::from_millis;
        let mut record = Record::new(vec!["a"], ms(1000), began);
        let done = |at, latency, outcome| Done {
            kind: 0,
            intended: began + ms(at),
            latency: ms(latency),
            waited: ms(latency),
            outcome,
        };
        record.add(&done(100, 20, Outcome::Answered));
        record.add(&done(400, 1500, Outcome::Answered));
        record.add(&done(600, 3, Outcome::Failed("SG2103".into())));
        record.add(&done(900, 0, Outcome::Shed));
        let first = record.over(
            0,
            Window {
                from: ms(0),
                to: ms(500),
            },
        );
        assert_eq!((first.sent, first.good), (2, 1));
        assert_eq!(first.worst, ms(1500));
        let second = record.over(
            0,
            Window {
                from: ms(500),
                to: ms(5000),
            },
        );
        assert_eq!((second.sent, second.good), (2, 0));
        assert_eq!(second.failed["SG2103"] + second.failed["not sent"], 2);
        assert!(second.answered_ms(0.5).is_none() && second.refused_ms(0.5).is_some_and(|ms| ms < 3.1));
        assert_eq!(
            record
                .over(
                    0,
                    Window {
                        from: ms(5000),
                        to: ms(9000)
                    }
                )
                .sent,
            0
        );
    }
}
