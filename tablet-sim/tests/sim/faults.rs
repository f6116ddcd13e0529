//! Faults: each strikes what it names, and nothing after it is cleared.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tablet_sim::{FaultKind, FaultSpec, SimOptions, SimTablet, faults_router, timeline_router};

use crate::{ask, client, http, serve, tablet};

#[tokio::test]
async fn an_error_strikes_the_statements_it_names() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let spec = FaultSpec {
        sqlstate: Some("40001".into()),
        ..FaultSpec::error(1213).on("select 7").times(1)
    };
    tablet.faults().add(&spec).unwrap();
    assert_eq!(ask(&mut conn, "SELECT 8").await, "8");
    assert_eq!(ask(&mut conn, "SELECT 7").await, "ERR 1213 injected error 1213");
    assert_eq!(ask(&mut conn, "SELECT 7").await, "7");
    assert_eq!(tablet.faults().list()[0].struck, 1);
}

#[tokio::test]
async fn the_same_seed_strikes_the_same_statements() {
    let mut runs = Vec::new();
    for seed in [5, 5, 6] {
        let tablet = SimTablet::start(SimOptions {
            seed,
            databases: vec!["shop".into()],
            ..SimOptions::default()
        })
        .await
        .unwrap();
        let mut conn = client(&tablet).await;
        tablet
            .faults()
            .add(&FaultSpec::error(1105).on("SELECT 1").at_rate(0.5))
            .unwrap();
        let mut run = String::new();
        for _ in 0..40 {
            run.push(if ask(&mut conn, "SELECT 1").await == "1" {
                '.'
            } else {
                'x'
            });
        }
        run.push_str(&ask(&mut conn, "SELECT RAND()").await);
        runs.push(run);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[tokio::test]
async fn latency_delays_and_a_hang_ends_with_kill() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    tablet
        .faults()
        .replace(&[FaultSpec::latency(Duration::from_millis(80)).on("SELECT 1")])
        .unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(ask(&mut a, "SELECT 1").await, "1");
    assert!(before.elapsed() >= Duration::from_millis(80));
    tablet
        .faults()
        .replace(&[FaultSpec::new(FaultKind::Hang).on("SELECT 2")])
        .unwrap();
    let id = a.id();
    let hanging = tokio::spawn(async move { ask(&mut a, "SELECT 2").await });
    while tablet.faults().list()[0].struck == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(ask(&mut b, &format!("KILL QUERY {id}")).await, "");
    assert!(hanging.await.unwrap().starts_with("ERR 1317"));
}

#[tokio::test]
async fn refused_and_reset_connections_fail_and_come_back() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    tablet
        .faults()
        .replace(&[FaultSpec::new(FaultKind::Refuse)])
        .unwrap();
    let opts = || {
        mysql_async::OptsBuilder::default()
            .tcp_port(tablet.addr().port())
            .user(Some("root"))
    };
    // The listening socket closes a moment after the fault is set.
    while let Ok(conn) = mysql_async::Conn::new(opts()).await {
        conn.disconnect().await.unwrap();
    }
    assert_eq!(ask(&mut a, "SELECT 1").await, "1", "open connections stay");
    tablet.faults().clear();
    while mysql_async::Conn::new(opts()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tablet
        .faults()
        .replace(&[FaultSpec::new(FaultKind::Reset).on("SELECT 1")])
        .unwrap();
    assert!(ask(&mut a, "SELECT 1").await.starts_with("FAILED"));
}

#[tokio::test]
async fn a_lost_ok_leaves_the_commit_done() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    a.query_drop("CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    tablet
        .faults()
        .replace(&[FaultSpec::new(FaultKind::LoseOk).on("COMMIT")])
        .unwrap();
    a.query_drop("BEGIN").await.unwrap();
    a.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
    assert!(a.query_drop("COMMIT").await.is_err());
    assert_eq!(ask(&mut client(&tablet).await, "SELECT id FROM t").await, "1");
}

#[tokio::test]
async fn read_only_stops_writes_and_rows_can_be_slow() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    a.query_drop("CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    a.query_drop("INSERT INTO t VALUES (1),(2),(3)").await.unwrap();
    tablet
        .faults()
        .replace(&[FaultSpec::new(FaultKind::ReadOnly)])
        .unwrap();
    assert!(
        ask(&mut a, "INSERT INTO t VALUES (4)")
            .await
            .starts_with("ERR 1290")
    );
    assert_eq!(ask(&mut a, "SELECT @@read_only").await, "1");
    let slow = FaultSpec {
        ms: Some(30),
        ..FaultSpec::new(FaultKind::SlowRows)
    };
    tablet.faults().replace(&[slow.on("FROM t")]).unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(ask(&mut a, "SELECT id FROM t ORDER BY id").await, "1/2/3");
    assert!(before.elapsed() >= Duration::from_millis(90));
    let stall = FaultSpec {
        after_rows: Some(2),
        ms: Some(50),
        ..FaultSpec::new(FaultKind::Stall)
    };
    tablet.faults().replace(&[stall]).unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(ask(&mut a, "SELECT id FROM t ORDER BY id").await, "1/2/3");
    assert!(before.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn faults_are_set_listed_and_taken_away_over_http() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let addr = serve(axum::Router::new().nest("/sim/one/faults", faults_router(tablet.clone()))).await;
    let http = |method, body| http(addr, method, "/sim/one/faults", body);
    let (status, body) = http("PUT", r#"{"kind":"error","code":1205,"statement":"select 3"}"#).await;
    assert!(status.contains("200"), "{status} {body}");
    assert!(ask(&mut conn, "SELECT 3").await.starts_with("ERR 1205"));
    let (status, body) = http("PUT", r#"[{"kind":"hang"},{"kind":"latency","millis":5}]"#).await;
    assert!(
        status.contains("400") && body.contains("millis"),
        "{status} {body}"
    );
    let (_, body) = http("GET", "").await;
    assert!(
        body.contains(r#""struck":1"#),
        "a refused request changes nothing: {body}"
    );
    let (status, _) = http("DELETE", "").await;
    assert!(status.contains("200"));
    assert_eq!(ask(&mut conn, "SELECT 3").await, "3");
}

#[tokio::test]
async fn a_timeline_set_over_http_runs_and_is_reported() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let routes = axum::Router::new()
        .nest("/timeline", timeline_router(tablet.clone()))
        .nest("/faults", faults_router(tablet.clone()));
    let addr = serve(routes).await;
    let steps = r#"[{"at_ms":0,"set":{"kind":"error","code":1205}},{"at_ms":3600000,"clear":"all"}]"#;
    let (status, body) = http(addr, "PUT", "/timeline", steps).await;
    assert!(status.contains("200"), "{status} {body}");
    while ask(&mut conn, "SELECT 1").await == "1" {}
    assert!(ask(&mut conn, "SELECT 1").await.starts_with("ERR 1205"));
    let (_, body) = http(addr, "GET", "/timeline", "").await;
    let told: serde_json::Value = serde_json::from_str(&body).unwrap();
    let (one, two) = (&told["timeline"]["steps"][0], &told["timeline"]["steps"][1]);
    assert!(
        told["timeline"]["running"] == true && one["done"] == true && two["done"] == false,
        "{body}"
    );
    assert_eq!(two["clear"], "all");
    let (status, body) = http(
        addr,
        "PUT",
        "/timeline",
        r#"[{"at_ms":0,"set":{"kind":"stall"}}]"#,
    )
    .await;
    assert!(
        status.contains("400") && body.contains("after_rows"),
        "{status} {body}"
    );
    let (_, body) = http(addr, "GET", "/timeline", "").await;
    assert!(
        body.contains("3600000"),
        "a refused timeline leaves the old one: {body}"
    );
    // Who heals a tablet means it: nothing sets faults again.
    http(addr, "DELETE", "/faults", "").await;
    assert!(tablet.faults().timeline().is_none() && tablet.faults().list().is_empty());
}

/// A COMMIT that comes after read-only was set is refused, and its rows are gone: nobody is told of a write that the
/// next primary does not have.
#[tokio::test]
async fn a_commit_after_read_only_was_set_is_refused_and_rolled_back() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    a.query_drop("CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    a.query_drop("BEGIN").await.unwrap();
    a.query_drop("INSERT INTO t VALUES (1)").await.unwrap();
    assert_eq!(ask(&mut b, "SET GLOBAL read_only = 1").await, "");
    assert!(ask(&mut a, "COMMIT").await.starts_with("ERR 1290"));
    assert_eq!(ask(&mut a, "ROLLBACK").await, "");
    assert_eq!(ask(&mut b, "SELECT @@read_only").await, "1");
    assert_eq!(
        ask(&mut b, "SET SESSION sql_mode = '', GLOBAL read_only = 0, @x = 5").await,
        ""
    );
    assert_eq!(ask(&mut b, "SELECT @@sql_mode, @@read_only, @x").await, "|0|5");
    assert_eq!(ask(&mut a, "SELECT COUNT(*) FROM t").await, "0");
    assert_eq!(ask(&mut a, "INSERT INTO t VALUES (2)").await, "");
}
