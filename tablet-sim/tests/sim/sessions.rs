//! Transactions, locks, KILL: what sessions see of each other.

use std::time::Duration;

use mysql_async::prelude::Queryable;

use crate::{ask, check, client, failed, tablet};

#[tokio::test]
async fn a_transaction_is_seen_when_it_commits_and_not_before() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT PRIMARY KEY, v INT)", ""),
            ("BEGIN", ""),
            ("INSERT INTO t VALUES (1, 1)", ""),
        ],
    )
    .await;
    assert_eq!(ask(&mut b, "SELECT COUNT(*) FROM t").await, "0");
    check(&mut a, &[("SELECT COUNT(*) FROM t", "1"), ("COMMIT", "")]).await;
    assert_eq!(ask(&mut b, "SELECT COUNT(*) FROM t").await, "1");
    check(
        &mut a,
        &[
            ("BEGIN", ""),
            ("DELETE FROM t", ""),
            ("ROLLBACK", ""),
            ("SELECT COUNT(*) FROM t", "1"),
        ],
    )
    .await;
}

#[tokio::test]
async fn repeatable_reads_repeat_and_committed_reads_do_not() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
            ("BEGIN", ""),
            ("SELECT COUNT(*) FROM t", "0"),
        ],
    )
    .await;
    assert_eq!(ask(&mut b, "INSERT INTO t VALUES (1)").await, "");
    check(
        &mut a,
        &[
            ("SELECT COUNT(*) FROM t", "0"),
            ("COMMIT", ""),
            ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", ""),
            ("BEGIN", ""),
            ("SELECT COUNT(*) FROM t", "1"),
        ],
    )
    .await;
    assert_eq!(ask(&mut b, "INSERT INTO t VALUES (2)").await, "");
    check(&mut a, &[("SELECT COUNT(*) FROM t", "2"), ("COMMIT", "")]).await;
}

#[tokio::test]
async fn savepoints_undo_what_came_after_them() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
            ("BEGIN", ""),
            ("SAVEPOINT early", ""),
            ("INSERT INTO t VALUES (1)", ""),
            ("SAVEPOINT s", ""),
            ("INSERT INTO t VALUES (2)", ""),
            ("INSERT INTO t VALUES (3), (1)", "ERR 1062..."),
            ("SELECT GROUP_CONCAT(id) FROM t", "1,2"),
            ("ROLLBACK TO SAVEPOINT s", ""),
            ("SELECT GROUP_CONCAT(id) FROM t", "1"),
            ("RELEASE SAVEPOINT s", ""),
            ("ROLLBACK TO s", "ERR 1305 SAVEPOINT s does not exist"),
            ("ROLLBACK TO early", ""),
            ("COMMIT", ""),
            ("SELECT COUNT(*) FROM t", "0"),
            ("SET autocommit = 0", ""),
            ("INSERT INTO t VALUES (5)", ""),
            ("ROLLBACK", ""),
            ("SELECT COUNT(*) FROM t", "0"),
            ("SET autocommit = 1", ""),
            ("START TRANSACTION READ ONLY", ""),
            ("INSERT INTO t VALUES (5)", "ERR 1792..."),
            ("COMMIT", ""),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_writer_waits_for_another_and_gives_up_with_1205() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
            ("BEGIN", ""),
            ("INSERT INTO t VALUES (1)", ""),
        ],
    )
    .await;
    check(
        &mut b,
        &[
            ("SET innodb_lock_wait_timeout = 0", ""),
            ("INSERT INTO t VALUES (2)", "ERR 1205..."),
        ],
    )
    .await;
    assert_eq!(ask(&mut b, "SET innodb_lock_wait_timeout = 60").await, "");
    let waiting = tokio::spawn(async move {
        let out = ask(&mut b, "INSERT INTO t VALUES (2)").await;
        (b, out)
    });
    assert_eq!(ask(&mut a, "COMMIT").await, "");
    let (_, out) = waiting.await.unwrap();
    assert_eq!(out, "");
    assert_eq!(ask(&mut a, "SELECT COUNT(*) FROM t").await, "2");
}

#[tokio::test]
async fn a_client_that_goes_away_gives_up_its_transaction() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT PRIMARY KEY)", ""),
            ("BEGIN", ""),
            ("INSERT INTO t VALUES (1)", ""),
        ],
    )
    .await;
    drop(a);
    check(
        &mut b,
        &[("INSERT INTO t VALUES (1)", ""), ("SELECT COUNT(*) FROM t", "1")],
    )
    .await;
}

/// Waits until a session runs a statement that contains this text.
async fn running(conn: &mut mysql_async::Conn, text: &str) {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE '%{text}%' AND ID <> CONNECTION_ID()"
    );
    while ask(conn, &sql).await != "1" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn kill_query_stops_a_statement_and_leaves_its_connection() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    let id = a.id();
    let busy = tokio::spawn(async move {
        let slept = ask(&mut a, "SELECT SLEEP(600)").await;
        let counted = ask(
            &mut a,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        )
        .await;
        let after = ask(&mut a, "SELECT 1").await;
        (slept, counted, after)
    });
    for text in ["SLEEP(600)", "RECURSIVE"] {
        running(&mut b, text).await;
        assert_eq!(ask(&mut b, &format!("KILL QUERY {id}")).await, "");
    }
    let (slept, counted, after) = busy.await.unwrap();
    assert!(slept.starts_with("ERR 1317"), "{slept}");
    assert!(counted.starts_with("ERR 1317"), "{counted}");
    assert_eq!(after, "1");
    assert!(ask(&mut b, "KILL 4000000000").await.starts_with("ERR 1094"));
}

#[tokio::test]
async fn kill_ends_a_connection_and_undoes_its_transaction() {
    let tablet = tablet().await;
    let (mut a, mut b) = (client(&tablet).await, client(&tablet).await);
    check(
        &mut a,
        &[
            ("CREATE TABLE t (id INT)", ""),
            ("BEGIN", ""),
            ("INSERT INTO t VALUES (1)", ""),
        ],
    )
    .await;
    let id = a.id();
    assert_eq!(ask(&mut b, &format!("KILL {id}")).await, "");
    check(
        &mut b,
        &[("INSERT INTO t VALUES (2)", ""), ("SELECT COUNT(*) FROM t", "1")],
    )
    .await;
    assert!(a.query_drop("SELECT 1").await.is_err());
}

#[tokio::test]
async fn a_statement_limit_ends_a_slow_statement() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    check(
        &mut a,
        &[
            ("SET max_statement_time = 0.05", ""),
            ("SELECT SLEEP(600)", "ERR 1969..."),
            ("SET max_statement_time = 0", ""),
            ("SET max_execution_time = 50", ""),
            ("SELECT SLEEP(600)", "ERR 3024..."),
            ("SELECT 1", "1"),
        ],
    )
    .await;
}

/// A statement whose client did not read when its limit passed used to wait for ever: its engine for room in the queue,
/// its connection for the engine.
#[tokio::test]
async fn a_limit_ends_a_result_that_nobody_reads() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    a.query_drop("SET max_statement_time = 0.2").await.unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, REPEAT('x', 2000) FROM n";
    let result = a.query_iter(endless).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ended = result.drop_result().await.unwrap_err();
    assert!(failed(&ended).starts_with("ERR 1969"), "{ended}");
    assert_eq!(ask(&mut a, "SELECT 1").await, "1");
}

#[tokio::test]
async fn a_reset_connection_is_as_new_and_keeps_its_database() {
    let tablet = tablet().await;
    let mut a = client(&tablet).await;
    check(
        &mut a,
        &[
            ("SET @x = 5, autocommit = 0", ""),
            ("SELECT @x, @@autocommit", "5|0"),
        ],
    )
    .await;
    assert!(a.reset().await.unwrap());
    check(&mut a, &[("SELECT @x, @@autocommit, DATABASE()", "NULL|1|shop")]).await;
    check(
        &mut a,
        &[
            ("SET sql_mode = 'ANSI_QUOTES'", ""),
            ("SELECT \"x\" FROM (SELECT 1 AS x) d", "1"),
            ("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", ""),
            ("SET nosuch = 1", "ERR 1193 Unknown system variable 'nosuch'"),
            ("SET version = 'x'", "ERR 1238..."),
        ],
    )
    .await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    use shardgate_tablet_sim::{SimOptions, SimTablet};
    let tablet = SimTablet::start(SimOptions {
        max_connections: 1,
        ..SimOptions::default()
    })
    .await
    .unwrap();
    let opts = || {
        mysql_async::OptsBuilder::default()
            .tcp_port(tablet.addr().port())
            .user(Some("root"))
    };
    let first = mysql_async::Conn::new(opts()).await.unwrap();
    let refused = mysql_async::Conn::new(opts()).await.unwrap_err();
    assert!(failed(&refused).starts_with("ERR 1040"), "{refused}");
    first.disconnect().await.unwrap();
}
