//! How far real replicas are behind, by their own status and by heartbeats: scenarios L1 and L2.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use serde_json::Value;
use shardgate_tests::fixture::TABLE_T;
use shardgate_tests::{Fixture, Gateway, Layout, MariaDb, answer, wait};

const LIMIT: Duration = Duration::from_secs(30);

/// A primary and a replica that follows it.
struct Replicated {
    primary: MariaDb,
    replica: MariaDb,
    fixture: Fixture,
}

impl Replicated {
    async fn start() -> Self {
        let primary = MariaDb::start_with(&["--log-bin", "--server-id=1"]);
        let replica = MariaDb::start_with(&["--server-id=2", "--read-only=1"]);
        let reference = MariaDb::shared(0);
        let fixture = Fixture::on(Layout::Unsharded, reference, &[&primary], &[TABLE_T]).await;
        let mut conn = replica.conn().await;
        let follow = format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', \
             MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1",
            primary.addr().port()
        );
        for sql in [follow.as_str(), "START SLAVE"] {
            conn.query_drop(sql).await.unwrap();
        }
        let this = Self {
            primary,
            replica,
            fixture,
        };
        this.caught_up().await;
        this
    }

    async fn position(server: &MariaDb) -> String {
        let mut conn = server.conn().await;
        answer::ok(&mut conn, "SELECT @@gtid_current_pos").await.single()
    }

    async fn caught_up(&self) {
        let wanted = Self::position(&self.primary).await;
        wait::until("the replica to catch up", LIMIT, || async {
            (Self::position(&self.replica).await == wanted).then_some(())
        })
        .await;
    }

    fn gateway(&self, sections: &str) -> Gateway {
        let first = format!(
            "{{ alias = \"shop---a\", address = \"{}\" }}",
            self.fixture.proxies[0].addr()
        );
        let both = format!(
            "{first}, {{ alias = \"shop---b\", address = \"{}\", role = \"replica\" }}",
            self.replica.addr()
        );
        let config = self.fixture.config_with(sections);
        assert!(config.contains(&first), "{config}");
        Gateway::serve(&config.replace(&first, &both))
    }

    async fn on_replica(&self, sql: &str) {
        let mut conn = self.replica.conn().await;
        conn.query_drop(sql).await.unwrap();
    }
}

async fn health_of(gateway: &Gateway, alias: &str) -> Value {
    let (status, body) = gateway.http("GET", "/debug/health").await;
    assert_eq!(status, 200, "{body}");
    let all: Value = serde_json::from_str(&body).expect("strict JSON");
    all["shards"]["shop/-"][alias].clone()
}

async fn until_unknown(gateway: &Gateway, reason: &str) {
    wait::until(reason, LIMIT, || async {
        let seen = health_of(gateway, "shop---b").await;
        (seen["lag_unknown"] == reason).then_some(())
    })
    .await;
}

/// Waits until the replica's lag is known and in this range of seconds.
async fn until_lag(gateway: &Gateway, from: f64, to: f64) {
    wait::until(&format!("a lag of {from} to {to} s"), LIMIT, || async {
        let lag = health_of(gateway, "shop---b").await["lag_seconds"].as_f64()?;
        assert!(lag >= 0.0, "never negative: {lag}");
        (from..=to).contains(&lag).then_some(())
    })
    .await;
}

/// L1 [vitess#9307, proxysql#3897]
#[tokio::test]
async fn a_replica_whose_io_thread_is_stopped_is_unknown_and_its_primary_is_not_judged() {
    let shard = Replicated::start().await;
    let gateway = shard.gateway("");
    until_lag(&gateway, 0.0, 0.5).await;
    let seen = health_of(&gateway, "shop---b").await;
    let channel = &seen["answered"]["replication"][0];
    assert_eq!(
        (&channel["io"], &channel["sql"]),
        (&"running".into(), &"running".into())
    );
    let primary = health_of(&gateway, "shop---a").await;
    assert_eq!(
        primary["answered"]["gtid_position"],
        seen["answered"]["gtid_position"]
    );

    shard.on_replica("STOP SLAVE IO_THREAD").await;
    until_unknown(&gateway, "replication_stopped").await;
    let (_, vars) = gateway.http("GET", "/debug/vars").await;
    let vars: Value = serde_json::from_str(&vars).unwrap();
    assert_eq!(vars["LagUnknown"]["shop.-.replication_stopped"], 1);
    assert_eq!(vars["LagUnknown"]["shop.-.heartbeat_dead"], 0);
    shard.on_replica("START SLAVE").await;
    until_lag(&gateway, 0.0, 0.5).await;

    // A replica's settings left behind on a primary: it replicates from nobody, and is not judged by it.
    let mut conn = shard.primary.conn().await;
    conn.query_drop("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody'")
        .await
        .unwrap();
    wait::until("the dead settings", LIMIT, || async {
        let seen = health_of(&gateway, "shop---a").await;
        (seen["answered"]["replication"][0]["io"] == "stopped").then_some(())
    })
    .await;
    let primary = health_of(&gateway, "shop---a").await;
    assert_eq!(
        (&primary["lag_seconds"], &primary["serving"]),
        (&0.0.into(), &true.into())
    );
}

/// L2 [vitess#2687]: the writer's clock is ten seconds ahead. And a dead heartbeat is not a dead fleet.
#[tokio::test]
async fn heartbeats_measure_lag_whatever_their_writers_clock_and_their_end_is_told() {
    const BEAT: &str = "REPLACE INTO meta.heartbeat VALUES \
                        (DATE_FORMAT(UTC_TIMESTAMP(6) + INTERVAL 10 SECOND, '%Y-%m-%dT%H:%i:%s.%f'), 1)";
    let shard = Replicated::start().await;
    let mut conn = shard.primary.conn().await;
    for sql in [
        "CREATE DATABASE meta",
        "CREATE TABLE meta.heartbeat (ts VARCHAR(26) NOT NULL, server_id INT UNSIGNED PRIMARY KEY)",
        BEAT,
    ] {
        conn.query_drop(sql).await.unwrap();
    }
    shard.caught_up().await;
    let beats = tokio::spawn(async move {
        loop {
            conn.query_drop(BEAT).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let gateway = shard.gateway("[poller]\ninterval = \"200ms\"\nheartbeat_table = \"meta.heartbeat\"\n");
    until_lag(&gateway, 0.0, 0.4).await;
    shard.on_replica("STOP SLAVE SQL_THREAD").await;
    until_lag(&gateway, 1.5, 60.0).await;
    shard.on_replica("START SLAVE").await;
    until_lag(&gateway, 0.0, 0.4).await;

    beats.abort();
    until_unknown(&gateway, "heartbeat_dead").await;
    assert_eq!(health_of(&gateway, "shop---b").await["serving"], true);
    assert_eq!(health_of(&gateway, "shop---a").await["lag_seconds"], 0.0);
    // Told when the replica is looked at next.
    wait::until("the dead heartbeat in the log", LIMIT, || async {
        let log = gateway.process().stderr();
        let told = log.lines().find(|l| l.contains("no replica's lag is known"))?;
        told.contains("heartbeat_dead").then_some(())
    })
    .await;
}
