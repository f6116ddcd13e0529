//! Counters with their names, labels and meanings: what `/debug/vars` and `/metrics` show is made from one list, so that
//! neither can forget what the other has.

use std::collections::BTreeMap;

use super::{BufferMetrics, Counters, Gauges, Metrics, TimingReading, Timings};

/// One name with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name in `/debug/vars`: Vitess's where Vitess has one.
    pub name: &'static str,
    /// Its name in `/metrics` where that does not follow from [`Self::name`], with the suffix.
    pub exported: Option<&'static str>,
    /// What it counts.
    pub help: &'static str,
    /// The names of its labels, in order; the values' texts are the labels joined by dots.
    pub labels: &'static [&'static str],
    /// The label whose text may hold dots itself: those before it are cut off from the left, those behind it from the
    /// right.
    pub wide: usize,
    /// The values.
    pub values: Values,
}

/// Values of a family.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One number that only grows.
    Counter(u64),
    /// One number.
    Gauge(i64),
    /// Numbers that only grow, by labels.
    Counters(BTreeMap<String, u64>),
    /// Numbers, by labels.
    Gauges(BTreeMap<String, f64>),
    /// Durations, by labels.
    Timings(BTreeMap<String, TimingReading>),
}

impl Family {
    /// A family whose name in `/metrics` follows from its name.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        values: Values,
    ) -> Self {
        Self {
            name,
            exported: None,
            help,
            labels,
            wide: 0,
            values,
        }
    }

    /// The same with another label that may hold dots.
    #[must_use]
    pub fn wide(self, wide: usize) -> Self {
        Self { wide, ..self }
    }

    /// Its name in `/metrics`, with the suffix that says its unit or that it only grows.
    #[must_use]
    pub fn exported_name(&self) -> String {
        if let Some(name) = self.exported {
            return name.to_owned();
        }
        let suffix = match self.values {
            Values::Counter(_) | Values::Counters(_) => "_total",
            Values::Gauge(_) | Values::Gauges(_) => "",
            Values::Timings(_) => "_seconds",
        };
        format!("shardgate_{}{suffix}", snake(self.name))
    }

    /// The names of its labels in `/metrics`, in order.
    #[must_use]
    pub fn label_names(&self) -> Vec<String> {
        self.labels.iter().map(|name| snake(name)).collect()
    }

    /// The labels that a value's text stands for, in the order of [`Self::label_names`].
    #[must_use]
    pub fn cells<'a>(&self, text: &'a str) -> Vec<&'a str> {
        if self.labels.is_empty() {
            return Vec::new();
        }
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let mut rest = text;
        for _ in 0..self.wide.min(self.labels.len().saturating_sub(1)) {
            let (first, more) = rest.split_once('.').unwrap_or((rest, ""));
            before.push(first);
            rest = more;
        }
        for _ in self.wide + 1..self.labels.len() {
            let (more, last) = rest.rsplit_once('.').unwrap_or((rest, ""));
            behind.push(last);
            rest = more;
        }
        before.push(rest);
        before.extend(behind.into_iter().rev());
        before
    }
}

/// `VttabletCallErrorCount` as `vttablet_call_error_count`.
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn counters(values: &Counters) -> Values {
    Values::Counters(values.snapshot())
}

fn gauges(values: &Gauges) -> Values {
    // Gauges here count requests, percents and milliseconds, far below 2^52.
    #[allow(clippy::cast_precision_loss)]
    let number = |n: i64| n as f64;
    let all = values.snapshot().into_iter();
    Values::Gauges(all.map(|(label, n)| (label, number(n))).collect())
}

fn timings(values: &Timings) -> Values {
    Values::Timings(values.snapshot())
}

impl Metrics {
    /// Everything that is counted, in the order in which it is shown.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let mut all = self.of_queries();
        all.extend(self.of_tablets());
        all.extend(self.buffer.families());
        all
    }

    /// What clients see.
    fn of_queries(&self) -> Vec<Family> {
        vec![
            Family::new(
                "QueryTimings",
                "Whole statements, from the framed command to the last byte of the answer.",
                &["Query"],
                timings(&self.query_timings),
            ),
            Family::new(
                "QueryExecutions",
                "Statements, by query type, plan type and tablet type.",
                &["Query", "Plan", "Tablet"],
                Values::Counters(self.queries.executions()),
            ),
            Family::new(
                "QueryRoutes",
                "Legs that statements were sent as, by query type, plan type and tablet type.",
                &["Query", "Plan", "Tablet"],
                Values::Counters(self.queries.routes()),
            ),
            Family::new(
                "QueryErrors",
                "Statements answered with an error of the gateway's own, by code.",
                &["Code"],
                counters(&self.query_errors),
            ),
            Family::new(
                "RowsReturned",
                "Rows sent to clients.",
                &[],
                Values::Counter(self.rows_returned.get()),
            ),
            Family::new(
                "Timeouts",
                "Deadlines that passed, by the layer that held them.",
                &["Layer"],
                counters(&self.timeouts),
            ),
            Family::new(
                "Refused",
                "Attempts refused before anything was sent, by what refused them.",
                &["By", "Shard"],
                counters(&self.refused),
            )
            .wide(1),
            Family::new(
                "Retries",
                "Retries of reads: tried, or refused for want of budget.",
                &["Shard", "Event"],
                counters(&self.retries),
            ),
            Family::new(
                "PartialAnswers",
                "Partial answers: given, or refused since it would have been a wrong one.",
                &["Event"],
                counters(&self.partial),
            ),
            Family::new(
                "ConnCount",
                "Client connections that are open.",
                &[],
                Values::Gauge(self.connections.get()),
            ),
            Family::new(
                "ConnAccepted",
                "Client connections accepted.",
                &[],
                Values::Counter(self.connections_accepted.get()),
            ),
            Family::new(
                "Standstills",
                "Times that the gateway itself stood still.",
                &[],
                Values::Counter(self.standstills.get()),
            ),
            Family::new(
                "StandstillMs",
                "The time of all standstills, in milliseconds.",
                &[],
                Values::Counter(self.standstill_ms.get()),
            ),
            Family::new(
                "ConnRefused",
                "Client connections refused, by reason.",
                &["Reason"],
                counters(&self.connections_refused),
            ),
        ]
    }

    /// What tablets do.
    fn of_tablets(&self) -> Vec<Family> {
        vec![
            Family::new(
                "VttabletCall",
                "Attempts on tablets, to the first packet of the answer.",
                &["Operation", "Keyspace", "ShardName", "DbType"],
                timings(&self.tablet_call),
            )
            .wide(1),
            Family::new(
                "VttabletCallErrorCount",
                "Attempts that failed and that the tablet is to blame for.",
                &["Operation", "Keyspace", "ShardName", "DbType"],
                counters(&self.tablet_call_errors),
            )
            .wide(1),
            Family::new(
                "TabletCallOutcomes",
                "Attempts that did not succeed, by what they say of the tablet.",
                &["Operation", "Keyspace", "ShardName", "DbType", "Outcome"],
                counters(&self.tablet_call_outcomes),
            )
            .wide(1),
            Family::new(
                "Reaped",
                "Abandoned connections, by what ended them.",
                &["End"],
                counters(&self.reaped),
            ),
            Family::new(
                "Breakers",
                "What breakers did: scope, name and event.",
                &["Event"],
                counters(&self.breakers),
            ),
            Family::new("Pool", "Pool events.", &["Tablet", "Event"], counters(&self.pool)),
            Family::new(
                "SchemaDifferences",
                "Differences found between shards' tables.",
                &["Keyspace"],
                counters(&self.schema_differences),
            ),
            Family::new("Polls", "Looks at tablets.", &["Tablet"], counters(&self.polls)),
            Family::new(
                "PollFailures",
                "Looks that told nothing, by reason.",
                &["Tablet", "Reason"],
                counters(&self.poll_failures),
            ),
            Family::new(
                "LagUnknown",
                "Times that no replica's lag of a shard was known any more, by reason.",
                &["Keyspace", "ShardName", "Reason"],
                counters(&self.lag_unknown),
            ),
            Family::new(
                "PrimaryChanges",
                "Times that another tablet became a shard's primary.",
                &["Keyspace", "ShardName"],
                counters(&self.primary_changes),
            ),
            Family::new(
                "SplitBrains",
                "Times that several tablets of a shard took writes and went apart.",
                &["Keyspace", "ShardName"],
                counters(&self.split_brains),
            ),
        ]
    }
}

impl BufferMetrics {
    fn families(&self) -> Vec<Family> {
        let b = self;
        vec![
            Family::new(
                "BufferSize",
                "Requests that may be buffered at once in the whole gateway.",
                &[],
                Values::Gauge(b.size.get()),
            ),
            Family::new(
                "BufferStarts",
                "Times that a shard began to buffer.",
                &["Keyspace", "ShardName"],
                counters(&b.starts),
            ),
            Family::new(
                "BufferStops",
                "Times that a shard ceased to buffer, by reason.",
                &["Keyspace", "ShardName", "Reason"],
                counters(&b.stops),
            ),
            Family::new(
                "BufferFailoverDurationSumMs",
                "The time of all bufferings, in milliseconds.",
                &["Keyspace", "ShardName"],
                counters(&b.failover_duration_sum_ms),
            ),
            Family::new(
                "BufferLastFailoverDurationMs",
                "The time of the last buffering, in milliseconds.",
                &["Keyspace", "ShardName"],
                gauges(&b.last_failover_duration_ms),
            ),
            Family::new(
                "BufferUtilizationSum",
                "The fullest that a buffer was, in percent, summed over bufferings.",
                &["Keyspace", "ShardName"],
                gauges(&b.utilization_sum),
            ),
            Family::new(
                "BufferUtilizationDryRunSum",
                "The same had it not been a dry run.",
                &["Keyspace", "ShardName"],
                counters(&b.utilization_dry_run_sum),
            ),
            Family::new(
                "BufferRequestsBuffered",
                "Requests that were buffered.",
                &["Keyspace", "ShardName"],
                counters(&b.requests_buffered),
            ),
            Family::new(
                "BufferRequestsBufferedDryRun",
                "Requests that would have been buffered.",
                &["Keyspace", "ShardName"],
                counters(&b.requests_buffered_dry_run),
            ),
            Family::new(
                "BufferRequestsDrained",
                "Buffered requests that went on.",
                &["Keyspace", "ShardName"],
                counters(&b.requests_drained),
            ),
            Family::new(
                "BufferRequestsEvicted",
                "Buffered requests that were given up, by reason.",
                &["Keyspace", "ShardName", "Reason"],
                counters(&b.requests_evicted),
            ),
            Family::new(
                "BufferRequestsSkipped",
                "Times that a request, or the failure that told of a lost primary, found no buffering to join or begin, by reason.",
                &["Keyspace", "ShardName", "Reason"],
                counters(&b.requests_skipped),
            ),
            Family::new(
                "BufferLastRequestsInFlightMax",
                "Most requests buffered at once in the last buffering.",
                &["Keyspace", "ShardName"],
                gauges(&b.last_requests_in_flight_max),
            ),
            Family::new(
                "BufferLastRequestsDryRunMax",
                "The same had it not been a dry run.",
                &["Keyspace", "ShardName"],
                gauges(&b.last_requests_dry_run_max),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(labels: &'static [&'static str], wide: usize) -> Family {
        Family::new("X", "", labels, Values::Counter(0)).wide(wide)
    }

    #[test]
    fn names_follow_from_vitess_names() {
        let m = Metrics::default();
        let names: Vec<String> = m.families().iter().map(Family::exported_name).collect();
        for name in [
            "shardgate_vttablet_call_seconds",
            "shardgate_vttablet_call_error_count_total",
            "shardgate_conn_count",
            "shardgate_buffer_requests_buffered_total",
        ] {
            assert!(names.iter().any(|n| n == name), "{name}: {names:?}");
        }
    }

    #[test]
    fn labels_are_cut_apart_around_the_one_that_may_hold_dots() {
        let cut = |labels, wide, text: &'static str| family(labels, wide).cells(text);
        assert_eq!(cut(&["Tablet", "Event"], 0, "a.b.c.opened"), ["a.b.c", "opened"]);
        assert_eq!(
            cut(&["Operation", "Keyspace", "ShardName"], 1, "Execute.k.s.-80"),
            ["Execute", "k.s", "-80"]
        );
        assert_eq!(cut(&["Code"], 0, "SG2101"), ["SG2101"]);
        assert_eq!(cut(&["Tablet", "Event"], 0, "odd"), ["odd", ""]);
        assert!(cut(&[], 0, "x").is_empty());
    }

    #[test]
    fn every_counter_of_a_shards_buffer_is_there_before_there_is_one() {
        let m = BufferMetrics::default();
        m.count_from_zero("commerce.-80");
        for family in m.families() {
            match family.values {
                Values::Counters(all) => assert!(
                    !all.is_empty() && all.values().all(|n| *n == 0),
                    "{}",
                    family.name
                ),
                Values::Gauges(all) => assert_eq!(all.len(), 1, "{}", family.name),
                Values::Gauge(n) => assert_eq!(n, 0),
                Values::Counter(_) | Values::Timings(_) => panic!("{}", family.name),
            }
        }
    }
}
