//! All figures as JSON.

use serde_json::{Value, json};

use super::Report;
use super::table::phases;
use crate::scenario::Run;
use crate::scenario::record::{SLICE, Slice, Window};

pub(super) fn render(report: &Report) -> String {
    let promises = report.promises.iter();
    let all = json!({
        "scenario": report.name,
        "story": report.story,
        "shards": report.shards,
        "rate_per_s": report.rate,
        "kept": report.promises.iter().all(|p| p.kept),
        "promises": promises
            .map(|p| json!({ "promise": p.text, "measured": p.measured, "kept": p.kept }))
            .collect::<Vec<_>>(),
        "runs": report.runs.iter().map(run).collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

fn run(run: &Run) -> Value {
    let kinds = run.record.kinds.iter().enumerate().map(|(kind, name)| {
        let over: serde_json::Map<_, _> = phases(run)
            .into_iter()
            .map(|(phase, window)| (phase.to_owned(), slice(&run.record.over(kind, window))))
            .collect();
        let end = SLICE * u32::try_from(run.record.len()).unwrap_or(u32::MAX);
        let whole = Window {
            from: std::time::Duration::ZERO,
            to: end,
        };
        let slices: Vec<_> = run.record.parts(kind, whole).iter().map(slice).collect();
        json!({ "kind": name, "phases": over, "slices": slices })
    });
    let samples = run.seen.samples.iter().map(|s| {
        json!({
            "at_ms": millis(s.at), "open": s.open, "half_open": s.half_open, "queries_cut": s.queries_cut,
            "busy": s.busy, "waiting": s.waiting, "buffered": s.buffered,
        })
    });
    json!({
        "configuration": run.variant.to_string(),
        "fault_ms": [millis(run.phases.fault().from), millis(run.phases.fault().to)],
        "slice_ms": millis(SLICE),
        "timer_lag_ms": millis(run.seen.timer_lag),
        "longest_statement_ms": millis(run.longest_statement),
        "connections_left": run.connections_left,
        "kinds": kinds.collect::<Vec<_>>(),
        "gateway": samples.collect::<Vec<_>>(),
    })
}

fn slice(slice: &Slice) -> Value {
    json!({
        "sent": slice.sent, "good": slice.good, "failed": slice.failed,
        "p50_ms": slice.answered_ms(0.5), "p90_ms": slice.answered_ms(0.9), "p99_ms": slice.answered_ms(0.99),
        "error_p50_ms": slice.refused_ms(0.5), "longest_ms": millis(slice.worst),
    })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
