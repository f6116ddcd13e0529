//! What any shard can answer is answered while any shard can, whichever of the others is stopped or dead.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Gateway, TabletSim, answer, sim, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// Three shards, and a gateway that looks at its tablets this often.
fn shards(interval: &str) -> (Vec<TabletSim>, Gateway) {
    let tablets: Vec<_> = (0..3)
        .map(|n| TabletSim::start(&format!("s{n}"), "CREATE TABLE t (id BIGINT PRIMARY KEY);"))
        .collect();
    let config = sim::config(&tablets, &format!("[poller]\ninterval = \"{interval}\"\n"));
    let gateway = Gateway::serve(&config);
    (tablets, gateway)
}

/// What belongs to no shard, asked by as many fresh sessions as would begin at each shard twice.
async fn everybody_is_answered(gateway: &Gateway, within: Duration) {
    for _ in 0..6 {
        let mut conn = gateway.conn(KEYSPACE).await;
        let began = Instant::now();
        let prepared = wait::within("PREPARE", LIMIT, conn.prep("SELECT 1 + ?")).await;
        assert!(prepared.is_ok(), "{prepared:?}");
        assert!(began.elapsed() < within, "PREPARE took {:?}", began.elapsed());
        for sql in ["SELECT 1", "SELECT @@sql_mode <> 'x'", "DO 1"] {
            let began = Instant::now();
            let answered = wait::within(sql, LIMIT, answer::text(&mut conn, sql)).await;
            assert!(answered.is_ok(), "{sql}: {answered:?}");
            assert!(began.elapsed() < within, "{sql} took {:?}", began.elapsed());
        }
    }
}

/// A fresh session's `SELECT 1` failed with SG2301 until a look told that the server was gone.
#[tokio::test]
async fn a_killed_shard_fails_nothing_that_another_can_answer() {
    let (tablets, gateway) = shards("60s");
    everybody_is_answered(&gateway, LIMIT).await;
    tablets[1].process().signal("KILL");
    tablets[1].process().ended(LIMIT).await;
    // No look tells of it: whoever chose it is answered by another.
    everybody_is_answered(&gateway, LIMIT).await;
}

/// A stopped server still accepts connections: each session that chose it waited until its patience was over.
#[tokio::test]
async fn a_stopped_shard_costs_nobody_anything_once_it_is_seen() {
    let (tablets, gateway) = shards("100ms");
    everybody_is_answered(&gateway, LIMIT).await;
    tablets[1].process().signal("STOP");
    wait::until("the stopped tablet to be seen", LIMIT, || async {
        let (_, body) = gateway.http("GET", "/api/tablets").await;
        body.contains("NOT_SERVING").then_some(())
    })
    .await;
    everybody_is_answered(&gateway, Duration::from_millis(900)).await;
    tablets[1].process().signal("CONT");
}
