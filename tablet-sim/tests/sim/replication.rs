//! A shard's replicas: they follow, they lag, they refuse writes.

use std::time::Duration;

use shardgate_tablet_sim::{ShardOptions, SimOptions, SimShard};

use crate::{ask, check, client};

async fn shard(lag: Duration) -> SimShard {
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
    let mut a = client(&shard.primary).await;
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
    for replica in &shard.replicas {
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
        .primary
        .execute_local("CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1)")
        .await
        .unwrap();
    let mut r = client(&shard.replicas[0]).await;
    assert_eq!(ask(&mut r, "SHOW TABLES").await, "");
    let status = ask(&mut r, "SHOW REPLICA STATUS").await;
    assert!(status.contains("|Yes|Yes|"), "{status}");
    shard.set_lag(Duration::ZERO);
    shard.caught_up().await;
    assert_eq!(ask(&mut r, "SELECT id FROM t").await, "1");
    let status = ask(&mut r, "SHOW SLAVE STATUS").await;
    assert!(!status.is_empty());
    assert_eq!(
        ask(&mut client(&shard.primary).await, "SHOW ALL SLAVES STATUS").await,
        ""
    );
    shard.shutdown().await;
}
