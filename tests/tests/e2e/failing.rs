//! A shard that fails in the middle, or altogether: scenario P3.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fault, Fixture, answer, wait};

/// P3 [vitess#20382]: an error after rows were sent is an error packet, not a cut connection or a short answer.
#[tokio::test]
async fn an_error_of_one_shard_after_rows_of_another_reaches_the_client() {
    let fixture = Fixture::scenario().await;
    let rows: Vec<(i64, String)> = (0..100).map(|n| (n * 2, format!("1, 1, '{n}'"))).collect();
    let rows: Vec<(i64, &str)> = rows.iter().map(|(id, rest)| (*id, rest.as_str())).collect();
    fixture.insert("t", &rows).await;
    fixture.insert("t", &[(1, "1, 1, 'locked'")]).await;
    let gateway = fixture.gateway();

    // Another transaction holds the row of the second shard, so its leg answers 1205 in the end.
    let mut holder = fixture.shards[1].conn().await;
    holder.query_drop("BEGIN").await.unwrap();
    holder.query_drop("SELECT * FROM t FOR UPDATE").await.unwrap();

    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET innodb_lock_wait_timeout = 1").await;
    let query = answer::refused(&mut conn, "SELECT * FROM t FOR UPDATE");
    let refusal = wait::within("the failed answer", Duration::from_secs(20), query).await;
    assert_eq!(
        (refusal.errno, refusal.state.as_str()),
        (1205, "HY000"),
        "{refusal}"
    );
    holder.query_drop("ROLLBACK").await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "101"
    );
}

#[tokio::test]
async fn a_shard_that_refuses_connections_fails_its_queries_and_no_others() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "2"
    );
    fixture.fault(1, Fault::Refuse).await;
    for sql in [
        "SELECT COUNT(*) FROM t",
        "SELECT * FROM t",
        "SELECT v FROM t WHERE id = 1",
    ] {
        let query = answer::refused(&mut conn, sql);
        let refusal = wait::within(sql, Duration::from_secs(10), query).await;
        assert!(
            refusal.message.contains("shop/s1"),
            "the shard is named: {refusal}"
        );
        let dropping = [1040, 1053, 1205, 1213, 2006, 2013];
        assert!(!dropping.contains(&refusal.errno), "{refusal}");
        assert!(
            !["08", "0A", "40", "57"].contains(&&refusal.state[..2]),
            "{refusal}"
        );
    }
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "2"
    );
    fixture.proxies[1].lift().await;
    wait::until("the shard to serve again", Duration::from_secs(20), || async {
        let mut conn = gateway.conn(KEYSPACE).await;
        answer::text(&mut conn, "SELECT COUNT(*) FROM t").await.ok()
    })
    .await;
}

/// A write whose acknowledgement is lost was perhaps done; saying anything else would be a wrong answer. (R4's kind.)
#[tokio::test]
async fn a_lost_acknowledgement_is_told_as_unknown_and_the_write_is_not_repeated() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
    fixture
        .fault(0, Fault::LoseReplyAfter("INSERT INTO t".to_owned()))
        .await;
    let query = answer::refused(&mut conn, "INSERT INTO t VALUES (2, 1, 1, 'x')");
    let refusal = wait::within("the lost reply", Duration::from_secs(20), query).await;
    assert_eq!(refusal.errno, 1105, "{refusal}");
    assert!(refusal.message.contains("unknown"), "{refusal}");
    fixture.proxies[0].lift().await;
    let mut direct = fixture.shards[0].conn().await;
    assert_eq!(
        answer::ok(&mut direct, "SELECT COUNT(*) FROM t").await.single(),
        "1"
    );
}
