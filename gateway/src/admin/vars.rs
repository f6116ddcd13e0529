//! `/debug/vars`: every counter as strict JSON, in Vitess's shapes.
//!
//! A Vitess timing is an object of `TotalCount`, `TotalTime` (nanoseconds) and `Histograms`, one histogram a label; a
//! histogram maps bucket bounds in nanoseconds to counts and ends with `inf`, `Count` and `Time`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::base::metrics::{BUCKETS, Metrics, TimingReading};

/// Renders the whole tree.
pub(super) fn render(m: &Metrics) -> Value {
    let mut out = Map::new();
    out.insert("QueryTimings".into(), timings(&m.query_timings.snapshot()));
    out.insert("VttabletCall".into(), timings(&m.tablet_call.snapshot()));
    out.insert(
        "VttabletCallErrorCount".into(),
        counters(&m.tablet_call_errors.snapshot()),
    );
    out.insert("QueryRoutes".into(), counters(&m.query_routes.snapshot()));
    out.insert("QueryErrors".into(), counters(&m.query_errors.snapshot()));
    out.insert("Timeouts".into(), counters(&m.timeouts.snapshot()));
    out.insert("Reaped".into(), counters(&m.reaped.snapshot()));
    out.insert("Breakers".into(), counters(&m.breakers.snapshot()));
    out.insert("Refused".into(), counters(&m.refused.snapshot()));
    out.insert("Retries".into(), counters(&m.retries.snapshot()));
    out.insert("PartialAnswers".into(), counters(&m.partial.snapshot()));
    out.insert("Pool".into(), counters(&m.pool.snapshot()));
    out.insert(
        "SchemaDifferences".into(),
        counters(&m.schema_differences.snapshot()),
    );
    out.insert("Polls".into(), counters(&m.polls.snapshot()));
    out.insert("PollFailures".into(), counters(&m.poll_failures.snapshot()));
    out.insert("LagUnknown".into(), counters(&m.lag_unknown.snapshot()));
    out.insert("RowsReturned".into(), json!(m.rows_returned.get()));
    out.insert("ConnCount".into(), json!(m.connections.get()));
    out.insert("ConnAccepted".into(), json!(m.connections_accepted.get()));
    out.insert("ConnRefused".into(), counters(&m.connections_refused.snapshot()));
    Value::Object(out)
}

fn counters(values: &BTreeMap<String, u64>) -> Value {
    Value::Object(values.iter().map(|(k, v)| (k.clone(), json!(v))).collect())
}

fn timings(values: &BTreeMap<String, TimingReading>) -> Value {
    let count: u64 = values.values().map(|r| r.count).sum();
    let time: u64 = values
        .values()
        .map(|r| r.total_nanos)
        .fold(0, u64::saturating_add);
    let histograms: Map<String, Value> = values.iter().map(|(k, r)| (k.clone(), histogram(r))).collect();
    json!({ "TotalCount": count, "TotalTime": time, "Histograms": histograms })
}

fn histogram(r: &TimingReading) -> Value {
    let mut out = Map::new();
    for (bound, n) in BUCKETS.iter().zip(&r.cumulative) {
        out.insert(bound.as_nanos().to_string(), json!(n));
    }
    out.insert("inf".into(), json!(r.cumulative[BUCKETS.len()]));
    out.insert("Count".into(), json!(r.count));
    out.insert("Time".into(), json!(r.total_nanos));
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_timing_has_vitess_shape_and_is_there_before_traffic() {
        let m = Metrics::default();
        let empty = render(&m);
        assert_eq!(
            empty["QueryTimings"],
            json!({"TotalCount": 0, "TotalTime": 0, "Histograms": {}})
        );
        m.query_timings.handle("Select").record(Duration::from_millis(2));
        let one = render(&m);
        assert_eq!(one["QueryTimings"]["TotalCount"], 1);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["1000000"], 0);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["5000000"], 1);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["inf"], 1);
    }

    #[test]
    fn labels_with_any_bytes_are_strict_json() {
        let m = Metrics::default();
        m.query_errors.handle("quote\" newline\n nul\0").inc();
        let text = render(&m).to_string();
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["QueryErrors"]["quote\" newline\n nul\0"], 1);
    }
}
