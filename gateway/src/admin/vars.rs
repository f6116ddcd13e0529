//! `/debug/vars`: every counter as strict JSON, in Vitess's shapes.
//!
//! A Vitess timing is an object of `TotalCount`, `TotalTime` (nanoseconds) and `Histograms`, one histogram a label; a
//! histogram maps bucket bounds in nanoseconds to counts and ends with `inf`, `Count` and `Time`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::base::metrics::{BUCKETS, Family, TimingReading, Values};

/// Renders all families.
pub(super) fn render(families: &[Family]) -> Value {
    let render = |family: &Family| {
        let value = match &family.values {
            Values::Counter(n) => json!(n),
            Values::Gauge(n) => json!(n),
            Values::Counters(all) => counters(all),
            // Not finite is not JSON; serde writes null.
            Values::Gauges(all) => Value::Object(all.iter().map(|(k, v)| (k.clone(), json!(v))).collect()),
            Values::Timings(all) => timings(all),
        };
        (family.name.to_owned(), value)
    };
    Value::Object(families.iter().map(render).collect())
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

    use crate::base::metrics::Metrics;

    fn vars(m: &Metrics) -> Value {
        render(&m.families())
    }

    #[test]
    fn a_timing_has_vitess_shape_and_is_there_before_traffic() {
        let m = Metrics::default();
        let empty = vars(&m);
        assert_eq!(
            empty["QueryTimings"],
            json!({"TotalCount": 0, "TotalTime": 0, "Histograms": {}})
        );
        m.query_timings.handle("Select").record(Duration::from_millis(2));
        let one = vars(&m);
        assert_eq!(one["QueryTimings"]["TotalCount"], 1);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["1000000"], 0);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["5000000"], 1);
        assert_eq!(one["QueryTimings"]["Histograms"]["Select"]["inf"], 1);
    }

    #[test]
    fn labels_with_any_bytes_are_strict_json() {
        let m = Metrics::default();
        m.query_errors.handle("quote\" newline\n nul\0").inc();
        let text = vars(&m).to_string();
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["QueryErrors"]["quote\" newline\n nul\0"], 1);
    }
}
