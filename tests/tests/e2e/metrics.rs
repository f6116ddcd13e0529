//! What is counted, as operators' tools read it: scenario P4.

use std::process::Command;

use serde_json::Value;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fixture, Gateway, answer, tools};

async fn vars(gateway: &Gateway) -> Value {
    let (status, body) = gateway.http("GET", "/debug/vars").await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap_or_else(|e| panic!("not strict JSON: {e}: {body}"))
}

/// The families that are counters: nothing in them may ever fall.
const GROWING: [&str; 12] = [
    "QueryTimings",
    "QueryExecutions",
    "QueryRoutes",
    "QueryErrors",
    "VttabletCall",
    "VttabletCallErrorCount",
    "TabletCallOutcomes",
    "Timeouts",
    "Pool",
    "RowsReturned",
    "ConnAccepted",
    "BufferRequestsBuffered",
];

fn only_grew(path: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            for (key, value) in b {
                let now = a.get(key).unwrap_or_else(|| panic!("{path}.{key} is gone"));
                only_grew(&format!("{path}.{key}"), value, now);
            }
        }
        (b, a) => assert!(a.as_f64() >= b.as_f64() && a.is_number(), "{path}: {b} then {a}"),
    }
}

/// P4 [vitess#12872 #6194]
#[tokio::test]
async fn counters_are_strict_json_from_before_the_first_statement_and_only_grow() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let fresh = vars(&gateway).await;
    for shard in ["s0", "s1"] {
        let call = format!("Execute.{KEYSPACE}.{shard}.primary");
        assert_eq!(fresh["VttabletCall"]["Histograms"][&call]["Count"], 0, "{fresh}");
        assert_eq!(fresh["VttabletCallErrorCount"][&call], 0);
        assert_eq!(fresh["BufferRequestsBuffered"][format!("{KEYSPACE}.{shard}")], 0);
    }
    assert_eq!(fresh["QueryTimings"]["TotalCount"], 0);

    let mut conn = gateway.conn(KEYSPACE).await;
    let strange = [
        "SELECT X'FF00'",
        "SELECT 'it''s', \"quoted\"",
        "SELECT 'line\nline'",
        "SELECT 'nul\0byte' FROM t",
        "SELECT `no such \"column` FROM t",
        "SELECT COUNT(*) FROM t",
        "SELECT * FROM t WHERE id = 1",
        "SELECT * FROM t WHERE id IN (1, 3)",
        "NOT A STATEMENT \u{1F600}",
    ];
    let mut before = fresh;
    for sql in strange {
        let _whatever = answer::text(&mut conn, sql).await;
        let after = vars(&gateway).await;
        for family in GROWING {
            only_grew(family, &before[family], &after[family]);
        }
        before = after;
    }
    assert_eq!(before["QueryExecutions"]["SELECT.Scatter.PRIMARY"], 3, "{before}");
    assert_eq!(before["QueryRoutes"]["SELECT.Scatter.PRIMARY"], 6);
    assert_eq!(
        before["VttabletCallErrorCount"][format!("Execute.{KEYSPACE}.s0.primary")],
        0
    );
    assert!(before["QueryTimings"]["Histograms"]["Select"]["Count"].as_u64() >= Some(7));
}

/// The line that operators are told to type.
#[tokio::test]
async fn curl_and_jq_read_the_counters() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
    let script = r#""$1" -s "http://$2/debug/vars" | "$3" '{buffered: .BufferRequestsBuffered, timeouts: .QueryTimings}'"#;
    let (curl, jq) = (tools::program("curl"), tools::program("jq"));
    let admin = gateway.admin().to_string();
    let line = move || {
        Command::new("/bin/sh")
            .args(["-c", script, "line"])
            .arg(curl)
            .arg(admin)
            .arg(jq)
            .output()
    };
    let out = tokio::task::spawn_blocking(line).await.unwrap().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let picked: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(picked["buffered"]["shop.s0"], 0, "{picked}");
    assert!(picked["timeouts"]["TotalCount"].as_u64() > Some(0), "{picked}");
    assert!(picked["timeouts"]["TotalTime"].is_u64() && picked["timeouts"]["Histograms"].is_object());
}

#[tokio::test]
async fn prometheus_finds_every_breaker_at_zero() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let (status, text) = gateway.http("GET", "/metrics").await;
    assert_eq!(status, 200);
    for expected in [
        "shard_breaker_state{shard=\"shop/s0\"} 0",
        "shard_breaker_trips_total{shard=\"shop/s1\",reason=\"error_rate\"} 0",
        "shard_breaker_trips_total{shard=\"shop/s1\",reason=\"health_check\"} 0",
        "shard_breaker_probe_total{shard=\"shop/s1\",result=\"success\"} 0",
        "# TYPE replica_breaker_state gauge",
        "# TYPE replica_breaker_trips_total counter",
        "shardgate_tablet_serving{tablet=\"shop-s0-a\"} 1",
    ] {
        assert!(text.lines().any(|l| l == expected), "{expected}\n{text}");
    }
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{line}");
    }
}
