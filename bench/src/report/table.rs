//! The figures as a table a person reads.

use std::fmt::Write as _;

use super::Report;
use crate::scenario::Run;
use crate::scenario::record::{Slice, Window};

// Writing to a String cannot fail.
pub(super) fn render(report: &Report) -> String {
    let mut text = format!(
        "{}: {}\n{} shards, {:.0} requests/s, meant to be sent at fixed times; good: answered within 1 s of that.\n",
        report.name, report.story, report.shards, report.rate
    );
    let _ = writeln!(
        text,
        "\n{:<15}{:<22}{:<8}{:>7}{:>8}{:>9}{:>9}{:>10}{:>11}  failed",
        "", "", "", "sent", "good", "p50 ms", "p99 ms", "error p50", "longest ms"
    );
    for run in &report.runs {
        for (kind, name) in run.record.kinds.iter().enumerate() {
            for (n, (phase, window)) in phases(run).into_iter().enumerate() {
                let variant = if kind == 0 && n == 0 {
                    run.variant.to_string()
                } else {
                    String::new()
                };
                let name = if n == 0 { name } else { "" };
                let _ = writeln!(
                    text,
                    "{variant:<15}{name:<22}{phase:<8}{}",
                    line(&run.record.over(kind, window))
                );
            }
        }
    }
    text.push('\n');
    for promise in &report.promises {
        let _ = write!(text, "{promise}");
    }
    text
}

/// The parts of a run, by name.
pub(super) fn phases(run: &Run) -> [(&'static str, Window); 3] {
    [
        ("before", run.phases.before()),
        ("fault", run.phases.fault()),
        ("after", run.phases.after()),
    ]
}

fn line(slice: &Slice) -> String {
    let ms = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.1}"));
    let failed: Vec<String> = slice
        .failed
        .iter()
        .map(|(code, n)| format!("{code} x {n}"))
        .collect();
    format!(
        "{:>7}{:>7.1}%{:>9}{:>9}{:>10}{:>11}  {}",
        slice.sent,
        slice.goodput() * 100.0,
        ms(slice.answered_ms(0.5)),
        ms(slice.answered_ms(0.99)),
        ms(slice.refused_ms(0.5)),
        slice.worst.as_millis(),
        failed.join(", ")
    )
}
