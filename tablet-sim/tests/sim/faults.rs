//! Faults: each strikes what it names, and nothing after it is cleared.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tablet_sim::{FaultKind, FaultSpec, SimOptions, SimTablet};

use crate::{ask, client, tablet};

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

/// One HTTP request; status line and body.
async fn http(addr: std::net::SocketAddr, method: &str, body: &str) -> (String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!(
        "{method} /sim/one/faults HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap_or("").to_owned(), body.to_owned())
}

#[tokio::test]
async fn faults_are_set_listed_and_taken_away_over_http() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let router = axum::Router::new().nest(
        "/sim/one/faults",
        shardgate_tablet_sim::faults_router(tablet.clone()),
    );
    tokio::spawn(async move { axum::serve(listener, router).await });
    let (status, body) = http(
        addr,
        "PUT",
        r#"{"kind":"error","code":1205,"statement":"select 3"}"#,
    )
    .await;
    assert!(status.contains("200"), "{status} {body}");
    assert!(ask(&mut conn, "SELECT 3").await.starts_with("ERR 1205"));
    let (status, body) = http(addr, "PUT", r#"[{"kind":"hang"},{"kind":"latency","millis":5}]"#).await;
    assert!(
        status.contains("400") && body.contains("millis"),
        "{status} {body}"
    );
    let (_, body) = http(addr, "GET", "").await;
    assert!(
        body.contains(r#""struck":1"#),
        "a refused request changes nothing: {body}"
    );
    let (status, _) = http(addr, "DELETE", "").await;
    assert!(status.contains("200"));
    assert_eq!(ask(&mut conn, "SELECT 3").await, "3");
}
