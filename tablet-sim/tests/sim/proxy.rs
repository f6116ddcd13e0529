//! The fault layer in front of a server. Here that server is a simulated tablet without faults of its own; the
//! end-to-end tests have a real one.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use shardgate_tablet_sim::{FaultKind, FaultSpec, ProxyOptions, SimProxy, SimTablet};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::{ask, client, client_at, tablet};

async fn proxied() -> (SimTablet, SimProxy, Conn) {
    let tablet = tablet().await;
    tablet
        .execute_local("CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1),(2),(3)")
        .await
        .unwrap();
    let proxy = SimProxy::start(ProxyOptions {
        to: tablet.addr().to_string(),
        ..ProxyOptions::default()
    })
    .await
    .unwrap();
    let conn = client_at(proxy.addr()).await;
    (tablet, proxy, conn)
}

fn set(proxy: &SimProxy, faults: &[FaultSpec]) {
    proxy.faults().replace(faults).unwrap();
}

async fn struck(proxy: &SimProxy) {
    while proxy.faults().list()[0].struck == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn without_faults_everything_passes() {
    let (tablet, proxy, mut conn) = proxied().await;
    assert_eq!(ask(&mut conn, "SELECT id FROM t ORDER BY id").await, "1/2/3");
    let rows: Vec<i32> = conn
        .exec("SELECT id FROM t WHERE id > ? ORDER BY id", (1,))
        .await
        .unwrap();
    assert_eq!(rows, [2, 3]);
    assert!(ask(&mut conn, "SELECT nothing").await.starts_with("ERR 1054"));
    let mut both = conn.query_iter("SELECT 1; SELECT 2").await.unwrap();
    assert_eq!(both.collect::<i32>().await.unwrap(), [1]);
    assert_eq!(both.collect::<i32>().await.unwrap(), [2]);
    both.drop_result().await.unwrap();
    conn.reset().await.unwrap();
    conn.change_user(mysql_async::ChangeUserOpts::default())
        .await
        .unwrap();
    conn.ping().await.unwrap();
    assert_eq!(
        ask(&mut conn, "SELECT CONNECTION_ID()").await,
        conn.id().to_string()
    );
    assert_eq!((proxy.connections(), tablet.connections()), (1, 1));
    conn.disconnect().await.unwrap();
    while tablet.connections() > 0 || proxy.connections() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    proxy.shutdown().await;
}

#[tokio::test]
async fn faults_before_a_statement_keep_it_from_the_server() {
    let (tablet, proxy, mut conn) = proxied().await;
    set(&proxy, &[FaultSpec::error(1205).on("insert").times(1)]);
    assert!(
        ask(&mut conn, "INSERT INTO t VALUES (4)")
            .await
            .starts_with("ERR 1205")
    );
    set(&proxy, &[FaultSpec::error(1213).on("id = ?")]);
    let failed = conn
        .exec_drop("UPDATE t SET id = 9 WHERE id = ?", (1,))
        .await
        .unwrap_err();
    assert!(crate::failed(&failed).starts_with("ERR 1213"));
    set(&proxy, &[FaultSpec::latency(Duration::from_millis(60))]);
    let before = Instant::now();
    assert_eq!(ask(&mut conn, "SELECT COUNT(*) FROM t").await, "3");
    assert!(before.elapsed() >= Duration::from_millis(60));
    set(&proxy, &[FaultSpec::new(FaultKind::Reset).on("SELECT 7")]);
    assert!(ask(&mut conn, "SELECT 7").await.starts_with("FAILED"));
    set(&proxy, &[FaultSpec::new(FaultKind::Refuse)]);
    while let Ok(stream) = tokio::net::TcpStream::connect(proxy.addr()).await {
        drop(stream);
    }
    assert!(
        proxy
            .faults()
            .add(&FaultSpec {
                ms: Some(1),
                ..FaultSpec::new(FaultKind::Lag)
            })
            .is_err()
    );
    drop(tablet);
}

#[tokio::test]
async fn a_hang_ends_with_kill_unless_it_is_deaf() {
    let (_tablet, proxy, mut conn) = proxied().await;
    let mut other = client_at(proxy.addr()).await;
    let id = conn.id();
    set(&proxy, &[FaultSpec::new(FaultKind::Hang).on("SELECT 2")]);
    let hanging = tokio::spawn(async move { (ask(&mut conn, "SELECT 2").await, conn) });
    struck(&proxy).await;
    while ask(&mut other, &format!("KILL QUERY {id}")).await.is_empty() && !hanging.is_finished() {
        tokio::task::yield_now().await;
    }
    let (answer, mut conn) = hanging.await.unwrap();
    assert!(answer.starts_with("ERR 1317"), "{answer}");
    // What the server itself runs is killed by the server.
    set(&proxy, &[FaultSpec::new(FaultKind::IgnoreKill).on("SLEEP(0.2)")]);
    let deaf = tokio::spawn(async move { (ask(&mut conn, "SELECT SLEEP(0.2)").await, conn) });
    struck(&proxy).await;
    assert_eq!(ask(&mut other, &format!("KILL QUERY {id}")).await, "");
    let (answer, mut conn) = deaf.await.unwrap();
    assert_eq!(answer, "0");
    proxy.faults().clear();
    let asleep = tokio::spawn(async move { ask(&mut conn, "SELECT SLEEP(60)").await });
    while !ask(&mut other, "SHOW PROCESSLIST").await.contains("SLEEP(60)") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(ask(&mut other, &format!("KILL {id}")).await, "");
    let answer = asleep.await.unwrap();
    assert!(!answer.starts_with('0'), "{answer}");
}

#[tokio::test]
async fn rows_are_slow_or_stop_where_they_are_told_to() {
    let (_tablet, proxy, mut conn) = proxied().await;
    let slow = FaultSpec {
        ms: Some(25),
        ..FaultSpec::new(FaultKind::SlowRows)
    };
    set(&proxy, &[slow.on("FROM t")]);
    let before = Instant::now();
    assert_eq!(ask(&mut conn, "SELECT id FROM t ORDER BY id").await, "1/2/3");
    assert!(before.elapsed() >= Duration::from_millis(75));
    let stall = FaultSpec {
        after_rows: Some(2),
        ..FaultSpec::new(FaultKind::Stall)
    };
    set(&proxy, &[stall]);
    let mut rows = conn.query_iter("SELECT id FROM t ORDER BY id").await.unwrap();
    assert_eq!(rows.next().await.unwrap().unwrap().get::<i32, _>(0), Some(1));
    assert_eq!(rows.next().await.unwrap().unwrap().get::<i32, _>(0), Some(2));
    let third = tokio::time::timeout(Duration::from_millis(80), rows.next()).await;
    assert!(third.is_err(), "{third:?}");
}

#[tokio::test]
async fn a_lost_ok_is_a_write_that_happened() {
    let (tablet, proxy, mut conn) = proxied().await;
    set(&proxy, &[FaultSpec::new(FaultKind::LoseOk).on("COMMIT")]);
    conn.query_drop("BEGIN").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (4)").await.unwrap();
    assert!(conn.query_drop("COMMIT").await.is_err());
    assert_eq!(
        ask(&mut client(&tablet).await, "SELECT COUNT(*) FROM t").await,
        "4"
    );
}

#[tokio::test]
async fn read_only_refuses_writes_and_commits_of_them() {
    let (tablet, proxy, mut conn) = proxied().await;
    conn.query_drop("BEGIN").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (5)").await.unwrap();
    set(&proxy, &[FaultSpec::new(FaultKind::ReadOnly)]);
    assert!(ask(&mut conn, "COMMIT").await.starts_with("ERR 1290"));
    assert!(ask(&mut conn, "DELETE FROM t").await.starts_with("ERR 1290"));
    assert_eq!(ask(&mut conn, "SELECT COUNT(*) FROM t").await, "3");
    conn.query_drop("BEGIN").await.unwrap();
    assert_eq!(ask(&mut conn, "COMMIT").await, "", "nothing was written");
    proxy.faults().clear();
    assert_eq!(ask(&mut conn, "INSERT INTO t VALUES (6)").await, "");
    assert_eq!(
        ask(&mut client(&tablet).await, "SELECT COUNT(*) FROM t").await,
        "4"
    );
}

#[tokio::test]
async fn a_black_hole_swallows_commands_and_connections() {
    let (_tablet, proxy, mut conn) = proxied().await;
    set(&proxy, &[FaultSpec::new(FaultKind::BlackHole)]);
    let answer = tokio::time::timeout(Duration::from_millis(40), conn.query_drop("SELECT 1")).await;
    assert!(answer.is_err(), "{answer:?}");
    let mut fresh = tokio::net::TcpStream::connect(proxy.addr()).await.unwrap();
    let greeting = tokio::time::timeout(Duration::from_millis(40), fresh.read_u8()).await;
    assert!(greeting.is_err(), "{greeting:?}");
    proxy.faults().clear();
    assert_eq!(ask(&mut client_at(proxy.addr()).await, "SELECT 1").await, "1");
}
