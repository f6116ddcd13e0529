//! `/metrics`: the same in Prometheus' text format, version 0.0.4.
//!
//! Written here rather than by a client library: the values live in one tree already, in Vitess's shapes, and a library
//! would want them a second time in its own. What is left is escaping and the order of a histogram's lines.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::fmt::Write as _;

use crate::base::metrics::{BUCKETS, Family, TimingReading, Values};

/// The content type of [`render`]'s text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders all families.
pub(super) fn render(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families {
        let name = family.exported_name();
        let kind = match family.values {
            Values::Counter(_) | Values::Counters(_) => "counter",
            Values::Gauge(_) | Values::Gauges(_) => "gauge",
            Values::Timings(_) => "histogram",
        };
        // Writing to a text cannot fail.
        let _ = writeln!(out, "# HELP {name} {}", family.help.replace('\\', "\\\\"));
        let _ = writeln!(out, "# TYPE {name} {kind}");
        let mut labels = Labels::of(family);
        match &family.values {
            Values::Counter(n) => line(&mut out, &name, "", n),
            Values::Gauge(n) => line(&mut out, &name, "", n),
            Values::Counters(all) => {
                for (text, n) in all {
                    line(&mut out, &name, labels.write(text), n);
                }
            }
            Values::Gauges(all) => {
                for (text, n) in all {
                    line(&mut out, &name, labels.write(text), n);
                }
            }
            Values::Timings(all) => {
                for (text, reading) in all {
                    histogram(&mut out, &name, labels.write(text), reading);
                }
            }
        }
    }
    out
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = if labels.is_empty() {
        writeln!(out, "{name} {value}")
    } else {
        writeln!(out, "{name}{{{labels}}} {value}")
    };
}

fn histogram(out: &mut String, name: &str, labels: &str, reading: &TimingReading) {
    let comma = if labels.is_empty() { "" } else { "," };
    let bucket = |out: &mut String, bound: std::fmt::Arguments<'_>, n: u64| {
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {n}");
    };
    for (bound, n) in BUCKETS.iter().zip(&reading.cumulative) {
        bucket(out, format_args!("{}", bound.as_secs_f64()), *n);
    }
    // Read once more than the count, a bucket may be ahead of it: the last one is the count by definition.
    let all = reading.cumulative[BUCKETS.len()];
    bucket(out, format_args!("+Inf"), all);
    let seconds = std::time::Duration::from_nanos(reading.total_nanos).as_secs_f64();
    line(out, &format!("{name}_sum"), labels, seconds);
    line(out, &format!("{name}_count"), labels, all);
}

/// Writes the labels of a family's values, one value after the other into the same text.
#[derive(Debug)]
struct Labels<'a> {
    family: &'a Family,
    names: Vec<String>,
    text: String,
}

impl<'a> Labels<'a> {
    fn of(family: &'a Family) -> Self {
        Self {
            family,
            names: family.label_names(),
            text: String::new(),
        }
    }

    fn write(&mut self, value: &str) -> &str {
        self.text.clear();
        for (name, cell) in self.names.iter().zip(self.family.cells(value)) {
            let comma = if self.text.is_empty() { "" } else { "," };
            let _ = write!(self.text, "{comma}{name}=\"");
            escape(&mut self.text, cell);
            self.text.push('"');
        }
        &self.text
    }
}

fn escape(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::metrics::Metrics;

    #[test]
    fn a_histogram_is_cumulative_in_seconds_with_its_labels_apart() {
        let m = Metrics::default();
        let call = m.tablet_call.handle("Execute.commerce.-80.primary");
        call.record(Duration::from_millis(2));
        call.record(Duration::from_mins(1));
        let text = render(&m.families());
        let labels = "operation=\"Execute\",keyspace=\"commerce\",shard_name=\"-80\",db_type=\"primary\"";
        for expected in [
            "# TYPE shardgate_vttablet_call_seconds histogram".to_owned(),
            format!("shardgate_vttablet_call_seconds_bucket{{{labels},le=\"0.001\"}} 0"),
            format!("shardgate_vttablet_call_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("shardgate_vttablet_call_seconds_bucket{{{labels},le=\"+Inf\"}} 2"),
            format!("shardgate_vttablet_call_seconds_sum{{{labels}}} 60.002"),
            format!("shardgate_vttablet_call_seconds_count{{{labels}}} 2"),
            "shardgate_conn_count 0".to_owned(),
        ] {
            assert!(text.lines().any(|l| l == expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let m = Metrics::default();
        m.query_errors.handle("a\"b\\c\nd").inc();
        let text = render(&m.families());
        assert!(
            text.contains("shardgate_query_errors_total{code=\"a\\\"b\\\\c\\nd\"} 1\n"),
            "{text}"
        );
    }
}
