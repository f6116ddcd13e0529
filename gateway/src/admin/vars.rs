//! `/debug/vars`: every counter as strict JSON, in Vitess's shapes.
//!
//! A Vitess timing is an object of `TotalCount`, `TotalTime` (nanoseconds) and `Histograms`, one histogram a label; a
//! histogram maps bucket bounds in nanoseconds to counts and ends with `inf`, `Count` and `Time`.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::base::metrics::{BUCKETS, Family, TimingReading, Values};

/// Renders all families.
pub(super) fn render(families: &[Family]) -> String {
    // Keys are texts and writing to memory does not fail, so this cannot either.
    serde_json::to_string(&Page(families)).unwrap_or_default()
}

#[derive(Debug)]
struct Page<'a>(&'a [Family]);

impl Serialize for Page<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|family| (family.name, Shown(&family.values))))
    }
}

#[derive(Debug)]
struct Shown<'a>(&'a Values);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Values::Counter(n) => n.serialize(serializer),
            Values::Gauge(n) => n.serialize(serializer),
            Values::Counters(all) => all.serialize(serializer),
            // Not finite is not JSON; serde writes null.
            Values::Gauges(all) => all.serialize(serializer),
            Values::Timings(all) => timings(all, serializer),
        }
    }
}

fn timings<S: Serializer>(all: &BTreeMap<String, TimingReading>, serializer: S) -> Result<S::Ok, S::Error> {
    let count: u64 = all.values().map(|r| r.count).sum();
    let time = all.values().map(|r| r.total_nanos).fold(0, u64::saturating_add);
    let histograms: BTreeMap<&str, Histogram<'_>> =
        all.iter().map(|(k, r)| (k.as_str(), Histogram(r))).collect();
    let mut out = serializer.serialize_map(Some(3))?;
    out.serialize_entry("TotalCount", &count)?;
    out.serialize_entry("TotalTime", &time)?;
    out.serialize_entry("Histograms", &histograms)?;
    out.end()
}

#[derive(Debug)]
struct Histogram<'a>(&'a TimingReading);

impl Serialize for Histogram<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reading = self.0;
        let mut out = serializer.serialize_map(Some(BUCKETS.len() + 3))?;
        for (bound, n) in BUCKETS.iter().zip(&reading.cumulative) {
            out.serialize_entry(&bound.as_nanos(), n)?;
        }
        out.serialize_entry("inf", &reading.cumulative[BUCKETS.len()])?;
        out.serialize_entry("Count", &reading.count)?;
        out.serialize_entry("Time", &reading.total_nanos)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use serde_json::{Value, json};

    use crate::base::metrics::Metrics;

    fn vars(m: &Metrics) -> Value {
        serde_json::from_str(&render(&m.families())).unwrap()
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
        assert_eq!(vars(&m)["QueryErrors"]["quote\" newline\n nul\0"], 1);
    }
}
