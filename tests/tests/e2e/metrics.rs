//! What is counted, as operators' tools read it: scenario P4.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fixture, Gateway, TabletSim, answer, sim, tools};

async fn vars(gateway: &Gateway) -> Value {
    let (status, body) = gateway.http("GET", "/debug/vars").await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap_or_else(|e| panic!("not strict JSON: {e}: {body}"))
}

/// Numbers that may fall. All others are counters.
const GAUGES: [&str; 17] = [
    "ConnCount",
    "PoolBusy",
    "PoolWaiting",
    "PoolIdle",
    "TabletServing",
    "ReplicaLagKnown",
    "ReplicaLagSeconds",
    "ReplicaBreakerState",
    "ShardBreakerState",
    "QueryBreakerState",
    "BufferSize",
    "BufferLastFailoverDurationMs",
    "BufferUtilizationSum",
    "BufferUtilizationDryRunSum",
    "BufferLastRequestsInFlightMax",
    "BufferLastRequestsDryRunMax",
    "BufferUtilization",
];

fn counters(vars: &Value) -> BTreeMap<&str, &Value> {
    let all = vars.as_object().unwrap().iter();
    all.map(|(name, value)| (name.as_str(), value))
        .filter(|(name, value)| !GAUGES.contains(name) && (value.is_number() || value.is_object()))
        .collect()
}

/// Every counter, by its path.
fn numbers(path: &str, value: &Value, into: &mut BTreeMap<String, f64>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                numbers(&format!("{path}.{key}"), value, into);
            }
        }
        Value::Number(n) => {
            into.insert(path.to_owned(), n.as_f64().unwrap());
        }
        other => panic!("{path}: {other}"),
    }
}

fn counted(vars: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for (name, value) in counters(vars) {
        numbers(name, value, &mut all);
    }
    all
}

/// Nothing is gone, nothing is new, nothing fell.
fn only_grew(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) {
    for (path, was) in before {
        let is = after.get(path).unwrap_or_else(|| panic!("{path} is gone"));
        assert!(is >= was, "{path}: {was} then {is}");
    }
    let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
    assert!(new.is_empty(), "were not there at zero: {new:?}");
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
        only_grew(&counted(&before), &counted(&after));
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

#[tokio::test]
async fn a_page_has_the_names_that_it_is_asked_for() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let (status, body) = gateway
        .http(
            "GET",
            "/debug/vars?name[]=ConnCount&name[]=RowsReturned&name[]=Nonsense",
        )
        .await;
    assert_eq!(status, 200, "{body}");
    let some: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(some, serde_json::json!({"RowsReturned": 0, "ConnCount": 0}));
    let (status, body) = gateway.http("GET", "/metrics?name[]=shardgate_conn_count").await;
    assert_eq!(status, 200, "{body}");
    let values: Vec<&str> = body.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(values, ["shardgate_conn_count 0"]);
    let (status, body) = gateway.http("GET", "/metrics?name=shardgate_conn_count").await;
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("no such parameter: name"), "{body}");
}

/// Statements of every sort, most of them wrong somewhere, until told to stop; how many.
async fn hammer(gateway: Arc<Gateway>, number: usize, over: Arc<AtomicBool>) -> u64 {
    let mut made = 0;
    let mut conn = gateway.conn(KEYSPACE).await;
    while !over.load(Ordering::Relaxed) {
        let id = number + 8 * (usize::try_from(made).unwrap() % 6);
        for sql in [
            format!("SELECT v FROM t WHERE id = {id}"),
            "SELECT COUNT(*) FROM t".to_owned(),
            "SELECT X'FF00', 'nul\0byte', \"quoted\n\" FROM t".to_owned(),
            format!("UPDATE t SET v = v + 1 WHERE id = {id}"),
            format!("INSERT INTO t VALUES ({id}, 1, 1)"),
            "SELECT `no such \"column` FROM t".to_owned(),
            "SELECT v FROM nowhere".to_owned(),
            "NOT A STATEMENT \u{1F600}".to_owned(),
            format!("SELECT k FROM t WHERE id = {id} AND v > -1"),
            "BEGIN".to_owned(),
            format!("DELETE FROM t WHERE id = {}", 1000 + id),
            "COMMIT".to_owned(),
            "SHOW TABLES".to_owned(),
        ] {
            let _whatever = answer::text(&mut conn, &sql).await;
            made += 1;
        }
    }
    made
}

/// P4 [vitess#12872 #6194]: the same while clients come and go, breakers open and statements time out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_only_grow_and_none_appears_while_many_clients_fail() {
    let tablets: Vec<_> = (0..2)
        .map(|n| {
            let rows: Vec<String> = (0..50).map(|i| format!("({}, {i}, {i})", i * 2 + n)).collect();
            let init = format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);\nINSERT INTO t VALUES {};\n",
                rows.join(", ")
            );
            TabletSim::start(&format!("s{n}"), &init)
        })
        .collect();
    let config = "[timeouts]\nmysql_server_query_timeout = \"300ms\"\nqueryserver_config_query_timeout = \"150ms\"\n\
                  [shard_breaker]\ncooldown = \"200ms\"\ncooldown_jitter = 0\n";
    let gateway = Arc::new(Gateway::serve(&sim::config(&tablets, config)));
    let fresh = vars(&gateway).await;
    for (name, value) in counters(&fresh) {
        // These shards have no replicas.
        let filled = name.starts_with("Replica") || value.as_object().is_none_or(|labels| !labels.is_empty());
        assert!(filled, "{name} is empty");
    }
    // What the gateway itself does has begun: it looks at its tablets and keeps their connections.
    let quiet = |path: &str| {
        !["Polls.", "PollFailures.", "Pool.", "ConnAccepted", "LagUnknown."]
            .iter()
            .any(|own| path.starts_with(own))
    };
    let fresh = counted(&fresh);
    for (path, n) in &fresh {
        assert!(
            *n == 0.0 || !quiet(path),
            "{path} is {n} before the first statement"
        );
    }

    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..8)
        .map(|n| tokio::spawn(hammer(Arc::clone(&gateway), n, Arc::clone(&over))))
        .collect();
    let mut before = fresh;
    for round in 0..40 {
        match round {
            10 => tablets[1].fault(r#"{"kind":"hang","statement":"from t"}"#).await,
            25 => tablets[1].lift().await,
            _ => {}
        }
        let after = counted(&vars(&gateway).await);
        only_grew(&before, &after);
        before = after;
        let (status, text) = gateway.http("GET", "/metrics").await;
        assert_eq!(status, 200);
        assert!(!text.contains("NaN"), "{text}");
        tokio::time::sleep(std::time::Duration::from_millis(40)).await;
    }
    over.store(true, Ordering::Relaxed);
    let mut made = 0;
    for client in clients {
        made += client.await.unwrap();
    }
    let after = counted(&vars(&gateway).await);
    only_grew(&before, &after);
    let total = after["QueryTimings.TotalCount"];
    // What clients ask when they connect is counted too.
    assert!(
        total >= f64::from(u32::try_from(made).unwrap()),
        "{total} of {made}"
    );
    assert!(after["Timeouts.tablet"] > 0.0 && after["QueryErrors.SG2003"] > 0.0);
    // The kinds that hang, or the whole shard: whichever was seen first.
    let refused = ["breaker", "kind"].map(|by| after[&format!("Refused.{by}.shop/s1")]);
    assert!(refused.iter().sum::<f64>() > 0.0, "{refused:?}");
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
