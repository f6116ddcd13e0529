//! The figures as a table a person reads.

use std::fmt::Write as _;
use std::time::Duration;

use super::load::Turn;
use super::work::Work;
use crate::BenchError;
use crate::promise;
use crate::stage::{Front, Stage, Target};
use crate::usage::Cpu;

/// One target's figures for one kind of load.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) target: Target,
    /// Answers a second, by round.
    rates: Vec<f64>,
    latencies: Vec<u64>,
    /// The proxy's processor time over all rounds.
    pub(super) cpu: Cpu,
    /// The proxy's resident memory at the end.
    pub(super) resident: Option<u64>,
}

/// All targets' figures for one kind of load.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) work: Work,
    pub(super) lines: Vec<Line>,
}

#[allow(clippy::cast_precision_loss)] // counts of answers and nanoseconds far below 2^52
impl Line {
    /// Nothing measured yet.
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            rates: Vec::new(),
            latencies: Vec::new(),
            cpu: Cpu::default(),
            resident: None,
        }
    }

    /// Adds a round.
    pub(super) fn add(&mut self, turn: Turn) {
        let seconds = turn.took.as_secs_f64().max(f64::MIN_POSITIVE);
        self.rates.push(turn.latencies.len() as f64 / seconds);
        self.latencies.extend(turn.latencies);
    }

    /// The median over the rounds of this line's rate to another's.
    fn ratio(&self, base: &Self) -> f64 {
        median(
            self.rates
                .iter()
                .zip(&base.rates)
                .map(|(own, base)| own / base)
                .collect(),
        )
    }

    /// Processor seconds for this many answers.
    fn seconds_per(&self, time: Duration, answers: f64) -> f64 {
        time.as_secs_f64() * answers / (self.latencies.len().max(1) as f64)
    }
}

/// What the columns mean.
pub(super) fn heading(stage: &Stage, rounds: u32, length: Duration) -> Result<(), BenchError> {
    let names: Vec<_> = stage.targets.iter().map(|t| t.name.as_str()).collect();
    let text = format!(
        "{} in turns, {rounds} rounds of {length:?} each; {} shards.\n\
         Rate: median round. Ratios: to haproxy in the same round, median. CPU: the proxy's own, all rounds.\n",
        names.join(", "),
        stage.shards,
    );
    promise::print(&text)
}

/// Prints a section.
#[allow(clippy::cast_precision_loss)] // as above
pub(super) fn print(section: &Section) -> Result<(), BenchError> {
    let (unit, answers) = section.work.unit();
    let mut text = format!(
        "\n{}\n{:<11}{:>10}{:>7}{:>10}{:>10}{:>13}{:>8}{:>8}{:>7}{:>9}\n",
        section.work,
        "",
        "rate/s",
        "ratio",
        "p50 us",
        "p99 us",
        format!("CPU s/{unit}"),
        "user",
        "system",
        "ratio",
        "RSS MiB",
    );
    let relay = section.lines.iter().find(|l| l.target.front == Front::Relay);
    for line in &section.lines {
        let mut latencies = line.latencies.clone();
        latencies.sort_unstable();
        let at = |part: f64| quantile(&latencies, part) as f64 / 1000.0;
        let rate = median(line.rates.clone());
        let ratio = relay.map_or_else(|| "-".into(), |relay| format!("{:.3}", line.ratio(relay)));
        let _ = write!(
            text,
            "{:<11}{rate:>10.precision$}{ratio:>7}{:>10.0}{:>10.0}",
            line.target.name,
            at(0.5),
            at(0.99),
            precision = if rate < 100.0 { 2 } else { 0 },
        );
        if let Some(resident) = line.resident {
            let per = |time| line.seconds_per(time, answers);
            let total = per(line.cpu.total());
            let ratio = relay.map_or_else(
                || "-".into(),
                |r| format!("{:.2}", total / r.seconds_per(r.cpu.total(), answers)),
            );
            let _ = write!(
                text,
                "{total:>13.3}{:>8.3}{:>8.3}{ratio:>7}{:>9.1}",
                per(line.cpu.user),
                per(line.cpu.system),
                resident as f64 / f64::from(1 << 20),
            );
        }
        text.push('\n');
    }
    promise::print(&text)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len(), values.get(middle)) {
        (0, _) | (_, None) => f64::NAN,
        (n, Some(upper)) if n.is_multiple_of(2) => f64::midpoint(values[middle - 1], *upper),
        (_, Some(value)) => *value,
    }
}

/// The value that this part of a sorted list does not exceed.
#[allow(clippy::cast_precision_loss, clippy::cast_sign_loss)] // lengths far below 2^52, parts in 0..=1
fn quantile(sorted: &[u64], part: f64) -> u64 {
    let at = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert!((median(vec![4.0, 1.0, 2.0, 100.0]) - 3.0).abs() < 1e-9);
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn a_quantile_is_a_value_of_the_list() {
        let list: Vec<u64> = (1..=100).collect();
        assert_eq!(
            (quantile(&list, 0.5), quantile(&list, 0.99), quantile(&list, 1.0)),
            (50, 99, 100)
        );
        assert_eq!(quantile(&[7], 0.5), 7);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
