//! A shard's replicas: they follow, they lag, they refuse writes.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tablet_sim::{FaultKind, FaultSpec, ShardOptions, SimOptions, SimShard, SimTablet};

use crate::{ask, check, client};

pub(crate) async fn shard(lag: Duration) -> SimShard {
    SimShard::start(ShardOptions {
        name: "s".into(),
        replicas: 2,
        lag,
        primary: SimOptions {
            databases: vec!["shop".into()],
            server_id: 10,
            ..SimOptions::default()
        },
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn replicas_hold_what_the_primary_committed() {
    let shard = shard(Duration::ZERO).await;
    let mut a = client(&shard.primary()).await;
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40), at DATETIME(6) DEFAULT NOW(6))", ""),
            ("BEGIN", ""),
            ("INSERT INTO t (v) VALUES ('lost')", ""),
            ("ROLLBACK", ""),
            ("INSERT INTO t (v) VALUES (RAND()), (UUID())", ""),
            ("SET @x = 'mine'", ""),
            ("INSERT INTO t (v) VALUES (@x), (LAST_INSERT_ID())", ""),
            ("UPDATE t SET v = CONCAT(v, '!') WHERE id = 4", ""),
            ("ALTER TABLE t ADD COLUMN extra INT DEFAULT 1", ""),
        ],
    )
    .await;
    let want = ask(&mut a, "SELECT * FROM t ORDER BY id").await;
    shard.caught_up().await;
    for replica in &shard.replicas() {
        let mut r = client(replica).await;
        assert_eq!(ask(&mut r, "SELECT * FROM t ORDER BY id").await, want);
        assert!(ask(&mut r, "DELETE FROM t").await.starts_with("ERR 1290"));
        assert_eq!(ask(&mut r, "SELECT @@read_only, @@server_id > 10").await, "1|1");
    }
    shard.shutdown().await;
}

#[tokio::test]
async fn a_lag_holds_changes_back_until_it_is_lifted() {
    let shard = shard(Duration::from_hours(1)).await;
    shard
        .primary()
        .execute_local("CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1)")
        .await
        .unwrap();
    let mut r = client(&shard.replicas()[0]).await;
    assert_eq!(ask(&mut r, "SHOW TABLES").await, "");
    let status = ask(&mut r, "SHOW REPLICA STATUS").await;
    assert!(status.contains("|Yes|Yes|"), "{status}");
    shard.set_lag(Duration::ZERO);
    shard.caught_up().await;
    assert_eq!(ask(&mut r, "SELECT id FROM t").await, "1");
    let status = ask(&mut r, "SHOW SLAVE STATUS").await;
    assert!(!status.is_empty());
    assert_eq!(
        ask(&mut client(&shard.primary()).await, "SHOW ALL SLAVES STATUS").await,
        ""
    );
    shard.shutdown().await;
}

/// What a poller asks a tablet, in the words of each server: it is told what is so, whatever was set meanwhile.
#[tokio::test]
async fn a_tablet_tells_its_role_identity_and_position_as_servers_do() {
    let shard = shard(Duration::ZERO).await;
    let (primary, replica) = (shard.primary(), shard.replicas()[0].clone());
    let (mut p, mut r) = (client(&primary).await, client(&replica).await);
    check(
        &mut p,
        &[
            ("SELECT @@gtid_current_pos", ""),
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
        ],
    )
    .await;
    check(
        &mut p,
        &[("INSERT INTO t VALUES (1)", ""), ("SHOW ALL SLAVES STATUS", "")],
    )
    .await;
    shard.caught_up().await;
    check(
        &mut p,
        &[
            (
                "SELECT @@global.read_only, @@server_id, @@hostname",
                "0|10|s-primary",
            ),
            (
                "SELECT @@gtid_current_pos, @@gtid_binlog_pos, @@gtid_slave_pos",
                "0-10-2|0-10-2|",
            ),
            ("SELECT @@super_read_only", "ERR 1193..."),
            ("SHOW VARIABLES LIKE 'read_only'", "read_only|OFF"),
            (
                "SHOW GLOBAL VARIABLES LIKE 'gtid_%pos'",
                "gtid_binlog_pos|0-10-2/gtid_current_pos|0-10-2/gtid_slave_pos|",
            ),
        ],
    )
    .await;
    check(
        &mut r,
        &[
            ("SELECT @@read_only, @@server_id, @@hostname", "1|11|s-replica-1"),
            (
                "SELECT @@gtid_current_pos, @@gtid_slave_pos, @@gtid_binlog_pos",
                "0-10-2|0-10-2|0-10-2",
            ),
        ],
    )
    .await;
    assert_ne!(
        ask(&mut p, "SELECT @@server_uid").await,
        ask(&mut r, "SELECT @@server_uid").await
    );
    primary.set_read_only(true);
    check(
        &mut p,
        &[
            ("SELECT @@read_only", "1"),
            ("SHOW VARIABLES LIKE 'read_only'", "read_only|ON"),
        ],
    )
    .await;
    let line: Option<mysql_async::Row> = r.query_first("SHOW ALL SLAVES STATUS").await.unwrap();
    let line = line.unwrap();
    let told = |name: &str| crate::shown(&line[name]);
    assert_eq!(told("Slave_IO_Running"), "Yes");
    assert_eq!(told("Slave_SQL_Running"), "Yes");
    assert_eq!(told("Seconds_Behind_Master"), "0");
    assert_eq!(told("Master_Port"), primary.addr().port().to_string());
    assert_eq!(
        (told("Gtid_IO_Pos"), told("Gtid_Slave_Pos")),
        ("0-10-2".into(), "0-10-2".into())
    );
    shard.shutdown().await;
    let mysql = SimTablet::start(SimOptions {
        databases: vec!["shop".into()],
        server_version: "8.0.36".into(),
        read_only: true,
        ..SimOptions::default()
    })
    .await
    .unwrap();
    let mut m = client(&mysql).await;
    check(
        &mut m,
        &[
            ("SELECT @@read_only, @@super_read_only, @@gtid_executed", "1|1|"),
            ("SELECT @@gtid_current_pos", "ERR 1193..."),
        ],
    )
    .await;
    mysql
        .execute_local("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        .await
        .unwrap();
    let uuid = ask(&mut m, "SELECT @@server_uuid").await;
    assert_eq!(ask(&mut m, "SELECT @@gtid_executed").await, format!("{uuid}:1"));
}

#[tokio::test]
async fn an_apply_rate_makes_a_read_replica_lag_and_its_end_lets_it_catch_up() {
    let shard = shard(Duration::ZERO).await;
    let (primary, replica) = (shard.primary(), shard.replicas()[0].clone());
    let mut p = client(&primary).await;
    check(&mut p, &[("CREATE TABLE t (id INT PRIMARY KEY)", "")]).await;
    shard.caught_up().await;
    let slow = FaultSpec {
        apply_per_s: Some(50),
        reads_per_s: Some(1),
        ..FaultSpec::new(FaultKind::Lag)
    };
    replica.faults().replace(&[slow]).unwrap();
    let mut r = client(&replica).await;
    // Far more reads than one a second: nothing is applied any more, beyond what the load's average let through.
    let stop = tokio_util::sync::CancellationToken::new();
    let reads = {
        let stop = stop.clone();
        tokio::spawn(async move {
            while !stop.is_cancelled() {
                ask(&mut r, "SELECT 1").await;
            }
        })
    };
    for id in 0..60 {
        check(&mut p, &[(&format!("INSERT INTO t VALUES ({id})"), "")]).await;
    }
    shard.replicas()[1].faults().clear();
    assert_ne!(replica.gtid(), primary.gtid());
    stop.cancel();
    reads.await.unwrap();
    replica.faults().clear();
    shard.caught_up().await;
    assert_eq!(replica.gtid(), primary.gtid());
    shard.shutdown().await;
}
