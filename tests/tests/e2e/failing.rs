//! A shard that fails in the middle, or altogether: scenario P3.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use shardgate_tests::client::python;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fault, Fixture, Gateway, answer, mariadb, wait};

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
    let gateway = Gateway::serve(&fixture.config_with("[buffer]\nenable_buffer = false\n"));
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

/// What clients do before their first own statement, and what belongs to no shard, asked one fixed shard: while that one
/// hung, nobody could log in to use the others.
#[tokio::test]
async fn clients_log_in_and_use_the_other_shards_while_any_one_hangs() {
    for (hanging, served, fault) in [
        (0, 1, Fault::BlackHole),
        (1, 2, Fault::BlackHole),
        (0, 1, Fault::Stall),
        (1, 2, Fault::Stall),
    ] {
        let fixture = Fixture::scenario().await;
        fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
        let gateway = fixture.gateway();
        // Each shard has a pooled connection, which goes silent.
        let mut conn = gateway.conn(KEYSPACE).await;
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
        fixture.fault(hanging, fault.clone()).await;
        let began = Instant::now();
        for n in 0..6 {
            let session = async {
                let mut conn = gateway.conn(KEYSPACE).await;
                for sql in [
                    "SET NAMES utf8mb4",
                    "SET autocommit = 1",
                    &format!("SET wait_timeout = {}", 100 + n),
                    "SET sql_mode = 'STRICT_TRANS_TABLES'",
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    "SET @greeting = 'hello'",
                    "SELECT CONNECTION_ID()",
                    "SELECT @@version_comment LIMIT 1",
                    "SELECT @greeting",
                    &format!("SELECT v FROM t WHERE id = {served}"),
                    "SHOW TABLES",
                    "SHOW VARIABLES LIKE 'wait_timeout'",
                    "DESCRIBE t",
                    "SELECT COUNT(*) FROM information_schema.TABLES",
                ] {
                    let what = format!("{sql} with shard {hanging} under {fault:?}");
                    wait::within(&what, Duration::from_secs(5), answer::ok(&mut conn, sql)).await;
                }
                let prepared: Option<i32> = conn
                    .exec_first("SELECT v FROM t WHERE id = ?", (served,))
                    .await
                    .unwrap();
                assert_eq!(prepared, Some(served));
            };
            wait::within("a session", Duration::from_secs(10), session).await;
        }
        // One bounded wait or two until the gateway knows, then none; the limit of a statement is 30 s.
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_driver_logs_in_while_a_shard_hangs_and_the_shard_is_asked_again_once_it_answers() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
    let gateway = fixture.gateway();
    fixture.fault(0, Fault::BlackHole).await;
    let args = [mariadb::APP_USER, mariadb::APP_PASSWORD, KEYSPACE];
    let out = python::run("log_in.py", gateway.addr(), &args).await;
    assert_eq!(out.trim(), "4 logins");
    let log = || gateway.process().stderr();
    assert!(
        log().contains("questions that any shard can answer go elsewhere"),
        "{}",
        log()
    );
    fixture.proxies[0].lift().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    wait::until(
        "the shard to be found answering",
        Duration::from_secs(20),
        || async {
            let mut conn = gateway.conn(KEYSPACE).await;
            answer::ok(&mut conn, "SELECT 1").await;
            log().contains("answers again").then_some(())
        },
    )
    .await;
    answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2").await;
}

/// What a server would refuse is refused, also where the gateway remembers what was accepted.
#[tokio::test]
async fn a_remembered_set_still_sets_and_a_bad_one_still_fails() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    for _ in 0..2 {
        let mut conn = gateway.conn(KEYSPACE).await;
        for (sql, read, value) in [
            ("SET NAMES latin1", "@@character_set_client", "latin1"),
            (
                "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
                "@@collation_connection",
                "utf8mb4_bin",
            ),
            ("SET wait_timeout = 77", "@@wait_timeout", "77"),
            ("SET sql_mode = 'ANSI_QUOTES'", "@@sql_mode", "ANSI_QUOTES"),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "@@tx_isolation",
                "SERIALIZABLE",
            ),
        ] {
            answer::ok(&mut conn, sql).await;
            let got = answer::ok(&mut conn, &format!("SELECT {read}")).await;
            assert_eq!(got.single(), value, "{sql}");
        }
        // ANSI_QUOTES holds for how statements are read.
        assert_eq!(
            answer::ok(&mut conn, "SELECT COUNT(\"id\") FROM t")
                .await
                .single(),
            "0"
        );
        for (sql, errno) in [
            ("SET NAMES utf8mb4 COLLATE latin1_bin", 1253),
            ("SET nonsense = 1", 1193),
            ("SET sql_mode = 'NONSENSE'", 1231),
        ] {
            assert_eq!(answer::refused(&mut conn, sql).await.errno, errno, "{sql}");
        }
    }
}
