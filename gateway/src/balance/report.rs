//! Shards, tablets and breakers as tables: one source for `SHOW SHARDGATE ...`, the HTTP side and the command line.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{Breaker, Snapshot};

use super::Fleet;
use crate::base::clock::Instant;
use crate::base::{Role, TabletAlias};
use crate::tablet::TabletInfo;
use crate::topology::{Health, Lag};

/// Columns and rows of text; `None` is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The columns' names.
    pub columns: Vec<&'static str>,
    /// The rows, each as long as the columns.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Report {
    /// Without rows.
    #[must_use]
    pub fn new(columns: &[&'static str]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }
}

/// Columns aligned, for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.columns.iter().map(|c| c.to_uppercase()).collect();
        let body = self.rows.iter().map(|row| {
            row.iter()
                .map(|c| c.clone().unwrap_or_else(|| "-".into()))
                .collect()
        });
        let all: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
        aligned(&all, f)
    }
}

/// Writes rows with their columns aligned.
pub fn aligned(rows: &[Vec<String>], f: &mut impl fmt::Write) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        cells.map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        writeln!(f, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// One breaker and whose it is.
#[derive(Clone, Debug)]
pub struct Named {
    /// `shard`, `replica` or `kind`.
    pub scope: &'static str,
    /// The shard, or the replica's alias.
    pub name: String,
    /// Of a kind of statement, which.
    pub kind: Option<u64>,
    /// How it is.
    pub snapshot: Snapshot,
}

/// What reports are made from, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reporter<'a> {
    /// The tablets and their guards.
    pub fleet: &'a Fleet,
    /// How the tablets are.
    pub health: &'a Health,
    /// The moment.
    pub now: Instant,
}

impl Reporter<'_> {
    /// A line a shard.
    #[must_use]
    pub fn shards(&self) -> Report {
        let mut report = Report::new(&[
            "keyspace",
            "shard",
            "state",
            "primary",
            "read_only",
            "replicas_serving",
            "breaker",
            "reason",
        ]);
        let breakers = self.breakers();
        let usage = self.fleet.usage();
        let mut at = 0;
        // Sorted by shard, then role: each shard's tablets lie together, its primary first.
        while let Some((first, _)) = usage.get(at) {
            let of = usage[at..].iter().take_while(|(t, _)| t.shard == first.shard);
            let tablets: Vec<&Arc<TabletInfo>> = of.map(|(t, _)| t).collect();
            at += tablets.len();
            let primary = tablets.iter().find(|t| t.role == Role::Primary);
            let serving = primary.is_some_and(|t| self.health.serving(&t.alias));
            let replicas = tablets.iter().filter(|t| t.role == Role::Replica);
            let up = replicas.clone().filter(|t| self.health.serving(&t.alias)).count();
            let name = first.shard.to_string();
            let breaker = breakers.iter().find(|b| b.scope == "shard" && b.name == name);
            report.rows.push(vec![
                Some(first.shard.keyspace.to_string()),
                Some(first.shard.shard.to_string()),
                Some(state(serving).to_owned()),
                primary.map(|t| t.alias.to_string()),
                primary.and_then(|t| self.read_only(t)),
                Some(format!("{up}/{}", replicas.count())),
                breaker.map(|b| b.snapshot.state.label().to_owned()),
                breaker
                    .and_then(|b| b.snapshot.reason)
                    .map(|r| r.label().to_owned()),
            ]);
        }
        report
    }

    /// A line a tablet, of one keyspace or role if asked for.
    #[must_use]
    pub fn tablets(&self, keyspace: Option<&str>, role: Option<Role>) -> Report {
        let mut report = Report::new(&[
            "tablet",
            "keyspace",
            "shard",
            "role",
            "address",
            "state",
            "read_only",
            "lag_ms",
            "lag_unknown",
            "breaker",
            "busy",
            "waiting",
            "idle",
            "why",
        ]);
        let breakers: HashMap<(&str, String), Snapshot> = self
            .breakers()
            .into_iter()
            .filter(|b| b.kind.is_none())
            .map(|b| ((b.scope, b.name), b.snapshot))
            .collect();
        for (tablet, (busy, waiting, idle)) in self.fleet.usage() {
            let wanted = keyspace.is_none_or(|k| tablet.shard.keyspace.as_str() == k)
                && role.is_none_or(|r| tablet.role == r);
            if !wanted {
                continue;
            }
            let breaker = match tablet.role {
                Role::Primary => breakers.get(&("shard", tablet.shard.to_string())),
                Role::Replica => breakers.get(&("replica", tablet.alias.to_string())),
            };
            let serving = self.health.serving(&tablet.alias);
            let (lag, unknown) = match self.health.lag(&tablet, self.now) {
                // What it said last is no longer so.
                Lag::Known(_) if !serving => (None, None),
                Lag::Known(lag) => (Some(lag.as_millis().to_string()), None),
                Lag::Unknown(reason) => (None, Some(reason.label().to_owned())),
            };
            report.rows.push(vec![
                Some(tablet.alias.to_string()),
                Some(tablet.shard.keyspace.to_string()),
                Some(tablet.shard.shard.to_string()),
                Some(tablet.role.to_string()),
                Some(tablet.address.to_string()),
                Some(state(serving).to_owned()),
                self.read_only(&tablet).filter(|_| serving),
                lag,
                unknown,
                breaker.map(|s| s.state.label().to_owned()),
                Some(busy.to_string()),
                Some(waiting.to_string()),
                Some(idle.to_string()),
                self.health.why_not(&tablet.alias),
            ]);
        }
        report
    }

    /// A line a shard: what becomes of requests while its primary is away.
    #[must_use]
    pub fn buffer(&self) -> Report {
        let mut report = Report::new(&[
            "keyspace", "shard", "state", "cause", "since_ms", "requests", "bytes", "primary", "why",
        ]);
        let primaries = self.fleet.usage();
        for shown in self.fleet.guards().buffer_snapshots(self.now) {
            let mut of_shard = primaries
                .iter()
                .map(|(t, _)| t)
                .filter(|t| t.shard == shown.shard);
            let primary = of_shard.find(|t| t.role == Role::Primary);
            report.rows.push(vec![
                Some(shown.shard.keyspace.to_string()),
                Some(shown.shard.shard.to_string()),
                Some(shown.phase.to_owned()),
                shown.cause.map(str::to_owned),
                shown.buffering_for.map(|d| d.as_millis().to_string()),
                Some(shown.requests.to_string()),
                Some(shown.bytes.to_string()),
                primary.map(|t| t.alias.to_string()),
                shown.why,
            ]);
        }
        report
    }

    /// A line a breaker.
    #[must_use]
    pub fn breaker_report(&self) -> Report {
        let mut report = Report::new(&[
            "name",
            "scope",
            "kind",
            "state",
            "mode",
            "reason",
            "open_seconds",
            "probe_in_seconds",
            "in_flight",
            "trips",
            "refused",
        ]);
        let seconds = |d: Duration| format!("{:.1}", d.as_secs_f64());
        for Named {
            scope,
            name,
            kind,
            snapshot: s,
        } in self.breakers()
        {
            report.rows.push(vec![
                Some(name),
                Some(scope.to_owned()),
                kind.map(|k| format!("{k:016x}")),
                Some(s.state.label().to_owned()),
                Some(s.mode.label().to_owned()),
                s.reason.map(|r| r.label().to_owned()),
                (!s.open_for.is_zero()).then(|| seconds(s.open_for)),
                s.probe_in.map(seconds),
                Some(s.in_flight.to_string()),
                Some(s.counts.trips.iter().sum::<u64>().to_string()),
                Some(s.counts.refused.to_string()),
            ]);
        }
        report
    }

    /// All breakers: of every shard with the kinds of statement on it, then of every replica. None if breakers are off.
    #[must_use]
    pub fn breakers(&self) -> Vec<Named> {
        let guards = self.fleet.guards();
        let at = guards.time(self.now);
        let mut all = Vec::new();
        let mut replicas: Vec<(TabletAlias, Arc<Breaker>)> = Vec::new();
        let mut last = None;
        for (tablet, _) in self.fleet.usage() {
            let guard = guards.shard(&tablet.shard);
            if last.as_ref() != Some(&tablet.shard) {
                last = Some(tablet.shard.clone());
                if let Some(breaker) = guard.breaker() {
                    all.push(Named {
                        scope: "shard",
                        name: tablet.shard.to_string(),
                        kind: None,
                        snapshot: breaker.snapshot(at),
                    });
                }
                let mut kinds = guard.kinds().all();
                kinds.sort_by_key(|(kind, _)| *kind);
                all.extend(kinds.into_iter().map(|(kind, breaker)| Named {
                    scope: "kind",
                    name: tablet.shard.to_string(),
                    kind: Some(kind),
                    snapshot: breaker.snapshot(at),
                }));
            }
            if tablet.role == Role::Replica {
                // Made now if nobody asked for it yet.
                let gate = guards.gate(&tablet.shard, &tablet.alias, tablet.role);
                replicas.extend(gate.breaker().map(|b| (tablet.alias.clone(), Arc::clone(b))));
            }
        }
        all.extend(replicas.into_iter().map(|(alias, breaker)| Named {
            scope: "replica",
            name: alias.to_string(),
            kind: None,
            snapshot: breaker.snapshot(at),
        }));
        all
    }

    /// The breaker of a shard, by its name, or of a replica, by its alias.
    #[must_use]
    pub fn breaker(&self, scope: &str, name: &str) -> Option<Arc<Breaker>> {
        let guards = self.fleet.guards();
        let usage = self.fleet.usage();
        let of = |found: fn(&TabletInfo, &str) -> bool| usage.iter().find(|(t, _)| found(t, name));
        let tablet = match scope {
            "shard" => of(|t, name| t.role == Role::Primary && t.shard.to_string() == name),
            "replica" => of(|t, name| t.role == Role::Replica && t.alias.as_str() == name),
            _ => None,
        };
        let (tablet, _) = tablet?;
        let gate = guards.gate(&tablet.shard, &tablet.alias, tablet.role);
        gate.breaker().cloned()
    }

    fn read_only(&self, tablet: &TabletInfo) -> Option<String> {
        let standing = self.health.tablet(&tablet.alias)?.standing()?;
        let writable = standing.facts()?.writable();
        Some(if writable { "no" } else { "yes" }.to_owned())
    }
}

const fn state(serving: bool) -> &'static str {
    if serving { "SERVING" } else { "NOT_SERVING" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_printed_aligned_with_a_dash_for_null() {
        let report = Report {
            columns: vec!["a", "long"],
            rows: vec![
                vec![Some("xyz".into()), None],
                vec![Some("é".into()), Some("1".into())],
            ],
        };
        assert_eq!(report.to_string(), "A    LONG\nxyz  -\né    1\n");
    }
}
