//! Promises that several scenarios make.

use std::fmt;
use std::time::Duration;

use super::Run;
use super::record::{SLICE, Slice, Window, median};
use crate::promise::Promise;

/// Of requests that the fault is none of.
const GOODPUT: f64 = 0.97;
const P99: f64 = 1.2;
/// A clock that ticks in milliseconds cannot tell less.
const TICK_MS: f64 = 1.0;
/// Of all requests, once it is over.
const RECOVERED: f64 = 0.95;
const RECOVERY: Duration = Duration::from_secs(10);
/// Connections of a tablet beside the pool's: polls, kills, schema.
const SPARE: usize = 5;
const POOL: usize = 20;

/// No client waits longer than the gateway's limit allows, less the run's own worst timer lag.
pub(crate) fn nobody_waits(run: &Run, bar: Duration) -> Promise {
    let all = Window {
        from: Duration::ZERO,
        to: run.phases.after().to,
    };
    let kinds = 0..run.record.kinds.len();
    let worst = kinds
        .map(|k| run.record.over(k, all).worst)
        .max()
        .unwrap_or_default();
    let bar = bar + run.seen.timer_lag;
    Promise::new(
        format!("{}: no client waits past the deadline", run.variant),
        format!(
            "at most {} ms; bar {} ms, {} of which are this run's timer lag",
            worst.as_millis(),
            bar.as_millis(),
            run.seen.timer_lag.as_millis()
        ),
        worst <= bar,
    )
}

/// No statement runs on a tablet a second after its deadline.
pub(crate) fn nothing_abandoned(run: &Run, deadline: Duration) -> Promise {
    let bar = deadline + Duration::from_secs(1) + run.seen.timer_lag;
    Promise::new(
        format!(
            "{}: no abandoned statement runs on a tablet 1 s after its deadline",
            run.variant
        ),
        format!(
            "at most {} ms; bar {} ms",
            run.longest_statement.as_millis(),
            bar.as_millis()
        ),
        run.longest_statement <= bar,
    )
}

/// A tablet is left with no more connections than its pool has, and a few beside it.
pub(crate) fn nothing_leaks(run: &Run) -> Promise {
    let bar = POOL + SPARE;
    Promise::new(
        format!("{}: no connection to a tablet leaks", run.variant),
        format!("{} left at most; bar {bar}", run.connections_left),
        run.connections_left <= bar,
    )
}

/// Requests of a kind that has nothing to do with the fault do not notice it: in the median of rounds of the same
/// configuration, if there are several.
pub(crate) fn unharmed(rounds: &[&Run], kind: usize) -> Promise {
    let Some(first) = rounds.first() else {
        return Promise::new("a run", "none", false);
    };
    let goodputs = rounds
        .iter()
        .map(|run| run.record.over(kind, run.phases.fault()).goodput());
    let goodput = goodputs.fold(1.0, f64::min);
    let seen: Option<Vec<Tail>> = rounds.iter().map(|run| Tail::of(run, kind)).collect();
    let middle = |of: fn(&Tail) -> f64| median(seen.iter().flatten().map(of).collect());
    let kept = middle(Tail::ratio).is_some_and(|ratio| ratio <= P99)
        || middle(Tail::more).is_some_and(|more| more <= TICK_MS);
    let tails: Vec<String> = seen.iter().flatten().map(ToString::to_string).collect();
    Promise::new(
        format!(
            "{}: \"{}\" does not notice the fault",
            first.variant,
            name(first, kind)
        ),
        format!(
            "{:.1} % answered in time, bar {:.0} %; p99 {}, bar {P99} x",
            goodput * 100.0,
            GOODPUT * 100.0,
            tails.join("; ")
        ),
        kept && goodput >= GOODPUT,
    )
}

/// The slowest requests of a kind before and in a fault, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Tail {
    usual: f64,
    now: f64,
    /// What the machine itself was later by in the fault, out and back.
    lag: f64,
}

impl Tail {
    fn of(run: &Run, kind: usize) -> Option<Self> {
        let (before, during) = (run.phases.before(), run.phases.fault());
        let lag = run
            .seen
            .steady_lag(during)
            .saturating_sub(run.seen.steady_lag(before))
            * 2;
        Some(Self {
            usual: run.record.steady_p99(kind, before)?,
            now: run.record.steady_p99(kind, during)?,
            lag: lag.as_secs_f64() * 1000.0,
        })
    }

    fn more(&self) -> f64 {
        self.now - self.lag - self.usual
    }

    fn ratio(&self) -> f64 {
        (self.now - self.lag) / self.usual
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { usual, now, lag } = self;
        write!(
            f,
            "{now:.1} ms beside {usual:.1} ms before and {lag:.1} ms of timer lag"
        )
    }
}

/// After the fault everything is answered again, within ten seconds, and all breakers are closed.
pub(crate) fn recovered(run: &Run) -> Promise {
    let after = run.phases.after();
    let slices = usize::try_from(after.length().as_millis() / SLICE.as_millis()).unwrap_or(0);
    let good = |n: usize| {
        let from = after.from + SLICE * u32::try_from(n).unwrap_or(u32::MAX);
        let mut all = Slice::new();
        for kind in 0..run.record.kinds.len() {
            all.merge(&run.record.over(
                kind,
                Window {
                    from,
                    to: from + SLICE,
                },
            ));
        }
        all.goodput() >= RECOVERED
    };
    // The first slice from which on every one is good. The last may hold requests that the end cut off.
    let last_bad = (0..slices.saturating_sub(1)).rev().find(|n| !good(*n));
    let answered = SLICE * u32::try_from(last_bad.map_or(0, |n| n + 1)).unwrap_or(u32::MAX);
    let closed = run
        .seen
        .samples
        .iter()
        .rev()
        .find(|s| s.open + s.half_open + s.queries_cut > 0.0)
        .map_or(Duration::ZERO, |s| s.at.saturating_sub(after.from));
    let took = answered.max(closed);
    Promise::new(
        format!(
            "{}: well again within {} s of the fault's end",
            run.variant,
            RECOVERY.as_secs()
        ),
        format!(
            "goodput over {:.0} % after {:.1} s, breakers closed after {:.1} s{}",
            RECOVERED * 100.0,
            answered.as_secs_f64(),
            closed.as_secs_f64(),
            if run.seen.samples.iter().any(|s| s.states) {
                ""
            } else {
                ", so far as the gateway tells: it tells none"
            }
        ),
        took <= RECOVERY && slices > 0 && run.seen.samples.iter().any(|s| s.states),
    )
}

fn name(run: &Run, kind: usize) -> &'static str {
    run.record.kinds.get(kind).copied().unwrap_or("?")
}
