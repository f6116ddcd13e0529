//! Breakers as JSON, and an operator's hand on them.

use serde_json::{Value, json};
use shardgate_breaker::{Mode, Reason, Snapshot};

use crate::admin::{Force, ForceError};
use crate::balance::{Named, Report, Reporter};
use crate::session::KindTimes;

/// Kinds of statement listed.
const KINDS: usize = 100;

/// Every breaker, and the kinds of statement by the time that they held connections.
pub(super) fn breakers_json(reporter: &Reporter<'_>, kinds: &KindTimes) -> Value {
    let breakers: Vec<Value> = reporter
        .breakers()
        .iter()
        .map(|named| named_json(named, kinds))
        .collect();
    let queries: Vec<Value> = kinds
        .top(KINDS)
        .into_iter()
        .map(|k| {
            json!({
                "kind": format!("{:016x}", k.kind),
                "statement": k.text,
                "statements": k.statements,
                "errors": k.errors,
                "held_seconds": k.held.as_secs_f64(),
            })
        })
        .collect();
    json!({ "breakers": breakers, "queries": queries })
}

fn named_json(named: &Named, kinds: &KindTimes) -> Value {
    let mut out = snapshot_json(&named.snapshot);
    if let Value::Object(fields) = &mut out {
        fields.insert("scope".into(), json!(named.scope));
        fields.insert("name".into(), json!(named.name));
        if let Some(kind) = named.kind {
            fields.insert("kind".into(), json!(format!("{kind:016x}")));
            fields.insert("statement".into(), json!(kinds.text_of(kind)));
        }
    }
    out
}

fn snapshot_json(s: &Snapshot) -> Value {
    json!({
        "state": s.state.label(),
        "mode": s.mode.label(),
        "reason": s.reason.map(Reason::label),
        "generation": s.generation,
        "open_seconds": s.open_for.as_secs_f64(),
        "probe_in_seconds": s.probe_in.map(|d| d.as_secs_f64()),
        "probes_passed": s.probes_passed,
        "in_flight": s.in_flight,
        "weight": s.weight,
        "p95_seconds": s.p95.map(|d| d.as_secs_f64()),
        "baseline_p95_seconds": s.baseline_p95.map(|d| d.as_secs_f64()),
        "trips": s.counts.trips.iter().sum::<u64>(),
        "refused": s.counts.refused,
        "suppressed": s.counts.suppressed,
    })
}

/// Takes a breaker over, or hands it back.
pub(super) fn force(
    reporter: &Reporter<'_>,
    scope: &str,
    name: &str,
    mode: Force,
) -> Result<Value, ForceError> {
    let guards = reporter.fleet.guards();
    if !guards.settings().enabled {
        return Err(ForceError::Off);
    }
    let breaker = reporter.breaker(scope, name).ok_or(ForceError::Unknown)?;
    let at = guards.time(reporter.now);
    let mode = match mode {
        Force::Open => Mode::ForcedOpen,
        Force::Closed => Mode::ForcedClosed,
        Force::Auto => Mode::Auto,
        Force::DryRun => Mode::DryRun,
    };
    breaker.set_mode(mode, at);
    let mut out = snapshot_json(&breaker.snapshot(at));
    if let Value::Object(fields) = &mut out {
        fields.insert("scope".into(), json!(scope));
        fields.insert("name".into(), json!(name));
    }
    Ok(out)
}

/// A report as columns and rows.
pub(super) fn report_json(report: &Report) -> Value {
    json!({ "columns": report.columns, "rows": report.rows })
}
