//! Reparents: who takes writes afterwards, what each tablet holds, and what it says of itself.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tablet_sim::{Loss, Reparent, ReparentError, ReparentKind, SimShard, shard_router};

use crate::replication::shard;
use crate::{ask, client, http, serve, shown};

async fn filled(lag: Duration) -> SimShard {
    let shard = shard(lag).await;
    let load = "CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1)";
    shard.primary().execute_local(load).await.unwrap();
    shard
}

/// One column of a tablet's replication status; empty if it follows nobody.
async fn status(conn: &mut mysql_async::Conn, name: &str) -> String {
    let line: Option<mysql_async::Row> = conn.query_first("SHOW SLAVE STATUS").await.unwrap();
    line.map(|l| shown(&l[name])).unwrap_or_default()
}

#[tokio::test]
async fn a_planned_reparent_moves_the_writes_and_everybody_follows() {
    let shard = filled(Duration::ZERO).await;
    let (old, other) = (shard.primary(), shard.replicas()[1].clone());
    let how = Reparent {
        to: Some("s-replica-1".into()),
        ..Reparent::new(ReparentKind::Planned).gap(Duration::from_millis(60))
    };
    let report = shard.reparent(&how).await.unwrap();
    assert_eq!(
        (report.from.as_str(), report.to.as_deref()),
        ("s-primary", Some("s-replica-1"))
    );
    assert!(report.gap_ms.is_some_and(|gap| gap >= 60), "{report:?}");
    let new = shard.primary();
    assert_eq!(new.alias(), "s-replica-1");
    let mut conn = client(&new).await;
    assert_eq!(ask(&mut conn, "SELECT @@read_only").await, "0");
    assert_eq!(ask(&mut conn, "SHOW SLAVE STATUS").await, "");
    assert_eq!(ask(&mut conn, "INSERT INTO t VALUES (2)").await, "");
    shard.caught_up().await;
    for tablet in [&old, &other] {
        let mut conn = client(tablet).await;
        assert_eq!(ask(&mut conn, "SELECT id FROM t ORDER BY id").await, "1/2");
        assert!(
            ask(&mut conn, "INSERT INTO t VALUES (3)")
                .await
                .starts_with("ERR 1290")
        );
        assert_eq!(
            status(&mut conn, "Master_Port").await,
            new.addr().port().to_string()
        );
        assert_eq!(ask(&mut conn, "SELECT @@gtid_current_pos").await, "0-11-3");
    }
    // And back again.
    let back = Reparent {
        to: Some("s-primary".into()),
        ..Reparent::new(ReparentKind::Planned)
    };
    shard.reparent(&back).await.unwrap();
    assert_eq!(ask(&mut client(&old).await, "INSERT INTO t VALUES (4)").await, "");
    shard.caught_up().await;
    assert_eq!(ask(&mut client(&new).await, "SELECT COUNT(*) FROM t").await, "3");
    assert_eq!(
        ask(&mut client(&new).await, "SELECT @@gtid_current_pos").await,
        "0-10-4"
    );
    shard.shutdown().await;
}

#[tokio::test]
async fn a_planned_reparent_to_a_replica_that_lags_gives_the_writes_back() {
    let shard = filled(Duration::from_hours(1)).await;
    let how = Reparent {
        catch_up_ms: Some(20),
        ..Reparent::new(ReparentKind::Planned)
    };
    let refused = shard.reparent(&how).await;
    assert!(
        matches!(refused, Err(ReparentError::NotCaughtUp(_))),
        "{refused:?}"
    );
    assert_eq!(
        ask(&mut client(&shard.primary()).await, "INSERT INTO t VALUES (2)").await,
        ""
    );
    shard.shutdown().await;
}

#[tokio::test]
async fn a_killed_primary_is_replaced_by_a_replica_that_has_all_it_acknowledged() {
    // The lag is in applying only: what was committed has been received.
    let shard = filled(Duration::from_hours(1)).await;
    let old = shard.primary();
    let mut held = client(&old).await;
    held.query_drop("BEGIN").await.unwrap();
    held.query_drop("INSERT INTO t VALUES (9)").await.unwrap();
    let report = shard
        .reparent(&Reparent::new(ReparentKind::Emergency))
        .await
        .unwrap();
    assert_eq!(report.to.as_deref(), Some("s-replica-1"));
    assert!(held.query_drop("COMMIT").await.is_err());
    assert!(tokio::net::TcpStream::connect(old.addr()).await.is_err());
    let mut conn = client(&shard.primary()).await;
    assert_eq!(ask(&mut conn, "SELECT id FROM t ORDER BY id").await, "1");
    assert_eq!(ask(&mut conn, "INSERT INTO t VALUES (2)").await, "");
    // It comes back as it was configured: writable, and nobody's replica. That is what must be guarded against.
    old.restart().await;
    let mut stale = client(&old).await;
    assert_eq!(ask(&mut stale, "SELECT @@read_only").await, "0");
    assert_eq!(ask(&mut stale, "SELECT id FROM t").await, "1");
    shard.rejoin("s-primary").await.unwrap();
    shard.set_lag(Duration::ZERO);
    shard.caught_up().await;
    assert_eq!(ask(&mut stale, "SELECT id FROM t ORDER BY id").await, "1/2");
    assert_eq!(ask(&mut stale, "SELECT @@read_only").await, "1");
    shard.shutdown().await;
}

#[tokio::test]
async fn a_primary_with_writes_that_reached_nobody_cannot_rejoin() {
    let shard = filled(Duration::from_hours(1)).await;
    let old = shard.primary();
    assert_eq!(ask(&mut client(&old).await, "INSERT INTO t VALUES (7)").await, "");
    let how = Reparent {
        lose: 1,
        ..Reparent::new(ReparentKind::Emergency)
    };
    shard.reparent(&how).await.unwrap();
    assert_eq!(
        ask(&mut client(&shard.primary()).await, "SELECT id FROM t").await,
        "1"
    );
    assert_eq!(
        ask(&mut client(&shard.primary()).await, "INSERT INTO t VALUES (8)").await,
        ""
    );
    old.restart().await;
    shard.rejoin("s-primary").await.unwrap();
    let mut conn = client(&old).await;
    while status(&mut conn, "Slave_IO_Running").await != "No" {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&mut conn, "Last_IO_Errno").await, "1236");
    assert_eq!(ask(&mut conn, "SELECT id FROM t ORDER BY id").await, "1/7");
    shard.shutdown().await;
}

#[tokio::test]
async fn a_failed_reparent_promotes_nobody_and_the_same_primary_may_come_back() {
    let shard = filled(Duration::ZERO).await;
    let lost = Reparent::new(ReparentKind::Failed);
    let report = shard.reparent(&lost).await.unwrap();
    assert_eq!((report.to, report.gap_ms), (None, None));
    let primary = shard.primary();
    assert!(
        ask(&mut client(&primary).await, "INSERT INTO t VALUES (2)")
            .await
            .starts_with("ERR 1290")
    );
    let mut replica = client(&shard.replicas()[0]).await;
    let back = Reparent {
        by: Some(Loss::Killed),
        back_after_ms: Some(30),
        ..lost
    };
    let report = shard.reparent(&back).await.unwrap();
    assert!(report.gap_ms.is_some_and(|gap| gap >= 30));
    // A restarted server forgets that read-only was set at run time.
    assert_eq!(
        ask(&mut client(&primary).await, "INSERT INTO t VALUES (2)").await,
        ""
    );
    shard.caught_up().await;
    assert_eq!(ask(&mut replica, "SELECT id FROM t ORDER BY id").await, "1/2");
    assert_eq!(status(&mut replica, "Slave_IO_Running").await, "Yes");
    shard.shutdown().await;
}

#[tokio::test]
async fn replicas_of_a_dead_primary_say_that_they_are_connecting() {
    let shard = filled(Duration::ZERO).await;
    let mut replica = client(&shard.replicas()[0]).await;
    shard.primary().kill().await;
    assert_eq!(status(&mut replica, "Slave_IO_Running").await, "Connecting");
    assert_eq!(status(&mut replica, "Seconds_Behind_Master").await, "NULL");
    assert_eq!(status(&mut replica, "Last_IO_Errno").await, "2003");
    shard.shutdown().await;
}

#[tokio::test]
async fn a_shard_is_reparented_over_http() {
    let shard = filled(Duration::ZERO).await;
    // Of equally advanced replicas the first is promoted.
    shard.caught_up().await;
    let addr = serve(axum::Router::new().nest("/shard", shard_router(&shard))).await;
    let (status, body) = http(addr, "POST", "/shard/reparent", r#"{"kind":"failed","gap_ms":5}"#).await;
    assert!(status.contains("400") && body.contains("gap"), "{status} {body}");
    let (status, body) = http(
        addr,
        "POST",
        "/shard/reparent",
        r#"{"kind":"emergency","gap_ms":20}"#,
    )
    .await;
    assert!(
        status.contains("200") && body.contains("s-primary is dead"),
        "{status} {body}"
    );
    let (_, body) = http(addr, "GET", "/shard", "").await;
    let told: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(told["primary"], "s-replica-1");
    assert_eq!(
        (&told["tablets"][0]["down"], &told["tablets"][1]["read_only"]),
        (&true.into(), &false.into())
    );
    let (status, _) = http(addr, "POST", "/shard/tablets/s-primary/restart", "").await;
    assert!(status.contains("200"));
    let (status, body) = http(addr, "POST", "/shard/tablets/s-primary/rejoin", "").await;
    assert!(
        status.contains("200") && !body.contains(r#""down":true"#),
        "{body}"
    );
    let fault = r#"{"kind":"latency","ms":1}"#;
    let (status, _) = http(addr, "PUT", "/shard/tablets/s-replica-2/faults", fault).await;
    assert!(status.contains("200"));
    assert_eq!(shard.tablet("s-replica-2").unwrap().faults().list().len(), 1);
    shard.shutdown().await;
}
