//! What a session leaves on pooled connections, and what a transaction over shards leaves behind when a part of it fails.

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::TABLE_T;
use shardgate_tests::fixture::{KEYSPACE, pool};
use shardgate_tests::{Fixture, Gateway, Layout, MariaDb, Order, TabletSim, answer};

/// Two shards; ids 0 and 2 on the first, 1 and 3 on the second; one connection to each, so that sessions share it.
async fn one_connection() -> (Fixture, Gateway) {
    let fixture = Fixture::scenario().await;
    fixture
        .insert(
            "t",
            &[
                (0, "0, 0, 'a'"),
                (1, "1, 10, 'b'"),
                (2, "2, 20, 'c'"),
                (3, "3, 30, 'd'"),
            ],
        )
        .await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(1)));
    (fixture, gateway)
}

/// A statement that failed on one shard left its rows on the others, and COMMIT kept them.
#[tokio::test]
async fn a_write_that_fails_on_one_shard_of_a_transaction_leaves_nothing_on_the_others() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    conn.query_drop("BEGIN").await.unwrap();
    conn.query_drop("UPDATE t SET v = 1 WHERE id = 0").await.unwrap();
    let refusal = answer::refused(
        &mut conn,
        "INSERT INTO t VALUES (4, 4, 40, 'e'), (1, 1, 1, 'dup')",
    )
    .await;
    assert_eq!(refusal.errno, 1062, "{refusal}");
    conn.query_drop("COMMIT").await.unwrap();
    let rows = answer::ok(&mut conn, "SELECT id, v FROM t ORDER BY id")
        .await
        .cells();
    assert_eq!(rows, [["0", "1"], ["1", "10"], ["2", "20"], ["3", "30"]]);
}

/// `SET NAMES DEFAULT` is the server's character set, which is not what the next session's connection must have.
#[tokio::test]
async fn a_connection_goes_back_to_the_handshakes_character_set_and_not_to_the_servers() {
    let server = MariaDb::start_with(&[
        "--character-set-server=latin1",
        "--collation-server=latin1_swedish_ci",
    ]);
    let reference = MariaDb::shared(0);
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, g VARCHAR(20) CHARACTER SET utf8mb4)";
    let fixture = Fixture::on(Layout::Unsharded, reference, &[&server], &[table]).await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(1)));
    let mut first = gateway.conn(KEYSPACE).await;
    first.query_drop("SET NAMES latin1").await.unwrap();
    first.query_drop("SELECT 1").await.unwrap();
    first.disconnect().await.unwrap();
    let mut second = gateway.conn(KEYSPACE).await;
    second
        .query_drop("INSERT INTO t VALUES (1, 'né 漢')")
        .await
        .unwrap();
    assert_eq!(
        answer::ok(&mut second, "SELECT HEX(g) FROM t").await.single(),
        "6EC3A920E6BCA2"
    );
    assert_eq!(answer::ok(&mut second, "SELECT g FROM t").await.single(), "né 漢");
}

/// The same text read under `ANSI_QUOTES` is another statement; a connection kept one and gave it to the next session.
#[tokio::test]
async fn a_statement_prepared_under_another_sql_mode_is_another_statement() {
    let (_fixture, gateway) = one_connection().await;
    let sql = r#"SELECT "g" FROM t WHERE id = ?"#;
    let mut ansi = gateway.conn(KEYSPACE).await;
    ansi.query_drop("SET sql_mode = 'ANSI_QUOTES'").await.unwrap();
    let column: Option<String> = ansi.exec_first(sql, (0,)).await.unwrap();
    assert_eq!(column.as_deref(), Some("a"));
    let mut plain = gateway.conn(KEYSPACE).await;
    let text: Option<String> = plain.exec_first(sql, (0,)).await.unwrap();
    assert_eq!(text.as_deref(), Some("g"));
}

/// COMMIT answered OK without reaching the server, which rolled the procedure's transaction back later.
#[tokio::test]
async fn a_transaction_that_a_procedure_opened_is_committed_by_commit() {
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY)";
    let fixture = Fixture::new(Layout::Unsharded, 1, &[table]).await;
    fixture
        .everywhere(&["CREATE PROCEDURE p() BEGIN START TRANSACTION; INSERT INTO t VALUES (7); END"])
        .await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    conn.query_drop("CALL p()").await.unwrap();
    conn.query_drop("COMMIT").await.unwrap();
    conn.disconnect().await.unwrap();
    let mut other = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut other, "SELECT COUNT(*) FROM t").await.single(),
        "1"
    );
}

/// `SET @id = LAST_INSERT_ID()` was worked out on whatever connection was free.
#[tokio::test]
async fn a_set_reads_the_sessions_own_answers_and_keeps_their_types() {
    let table = "CREATE TABLE a (id BIGINT PRIMARY KEY AUTO_INCREMENT, x INT)";
    let fixture = Fixture::new(Layout::Unsharded, 1, &[table]).await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(1)));
    let mut pair = fixture.pair(&gateway).await;
    let mut other = gateway.conn(KEYSPACE).await;
    pair.both("INSERT INTO a (x) VALUES (1)").await.unwrap();
    other
        .query_drop("INSERT INTO a (x) VALUES (2), (3)")
        .await
        .unwrap();
    for set in [
        "SET @id = LAST_INSERT_ID()",
        "SET @root = SQRT(2)",
        "SET @bytes = UNHEX('FF00')",
        "SET @n = NULL",
    ] {
        pair.both(set).await.unwrap();
    }
    pair.same(
        "SELECT @id + 0 AS id, @root * @root AS two, HEX(@bytes) AS bytes, @n IS NULL AS n",
        Order::Fixed,
    )
    .await;
}

/// A quoted name was spliced bare behind `@@session.` and could carry an assignment of its own.
#[tokio::test]
async fn a_variables_name_cannot_carry_another_assignment() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    for name in [
        "sql_notes = 1, @@global.max_connections",
        "sql_notes=1, sql_mode",
        "x y",
    ] {
        let refusal = answer::refused(&mut conn, &format!("SET `{name}` = 5")).await;
        assert_eq!(refusal.errno, 1193, "{name}: {refusal}");
    }
}

/// What was locked stayed locked on a connection that others were then given.
#[tokio::test]
async fn nothing_that_locks_a_whole_server_reaches_a_pooled_connection() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(&format!("{KEYSPACE}:s0")).await;
    for sql in [
        "FLUSH TABLES WITH READ LOCK",
        "FLUSH TABLES t FOR EXPORT",
        "SHUTDOWN",
        "SET @x = GET_LOCK('a', 1)",
        "GET DIAGNOSTICS @n = NUMBER",
    ] {
        let refusal = answer::refused(&mut conn, sql).await;
        assert_eq!(refusal.errno, 1235, "{sql}: {refusal}");
    }
    conn.query_drop("UPDATE t SET v = v WHERE id = 0").await.unwrap();
}

/// The session went on over pooled connections as if its lock were still there.
#[tokio::test]
async fn a_session_whose_lock_was_lost_is_told_until_it_is_reset() {
    let (fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(&format!("{KEYSPACE}:s0")).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT GET_LOCK('a', 0)").await.single(),
        "1"
    );
    let mut admin = fixture.shards[0].conn().await;
    let held: Vec<u64> = admin.query("SELECT IS_USED_LOCK('a')").await.unwrap();
    admin.query_drop(format!("KILL {}", held[0])).await.unwrap();
    let first = answer::refused(&mut conn, "SELECT v FROM t WHERE id = 0").await;
    let second = answer::refused(&mut conn, "SELECT v FROM t WHERE id = 0").await;
    assert!(second.message.contains("SG2407"), "{first}, then {second}");
    conn.reset().await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 0")
            .await
            .single(),
        "0"
    );
}

/// The session stayed on its shard for good, and held table locks that it had given up.
#[tokio::test]
async fn a_session_that_gave_up_its_state_goes_where_it_likes() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    for (keep, give_up) in [
        ("LOCK TABLES t READ", "UNLOCK TABLES"),
        ("CREATE TEMPORARY TABLE mine (i INT)", "DROP TEMPORARY TABLE mine"),
        ("HANDLER t OPEN", "HANDLER t CLOSE"),
    ] {
        answer::ok(&mut conn, &format!("USE `{KEYSPACE}:s0`")).await;
        answer::ok(&mut conn, keep).await;
        answer::ok(&mut conn, &format!("USE `{KEYSPACE}`")).await;
        let refusal = answer::refused(&mut conn, "SELECT v FROM t WHERE id = 1").await;
        assert!(refusal.message.contains("SG2405"), "{keep}: {refusal}");
        assert!(refusal.message.contains("reset"), "{keep}: {refusal}");
        answer::ok(&mut conn, &format!("USE `{KEYSPACE}:s0`")).await;
        answer::ok(&mut conn, give_up).await;
        answer::ok(&mut conn, &format!("USE `{KEYSPACE}`")).await;
        assert_eq!(
            answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
            "4",
            "{give_up}"
        );
    }
    // What a statement left that the server refused is nothing.
    answer::ok(&mut conn, &format!("USE `{KEYSPACE}:s0`")).await;
    answer::refused(&mut conn, "CREATE TEMPORARY TABLE mine (i NONSENSE)").await;
    answer::ok(&mut conn, &format!("USE `{KEYSPACE}`")).await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
}

/// `SET TRANSACTION` speaks of one transaction: in autocommit, of the next statement.
#[tokio::test]
async fn set_transaction_holds_for_one_statement_in_autocommit() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    conn.query_drop("SET TRANSACTION READ ONLY").await.unwrap();
    let refusal = answer::refused(&mut conn, "UPDATE t SET v = 5 WHERE id = 0").await;
    assert_eq!(refusal.errno, 1792, "{refusal}");
    conn.query_drop("UPDATE t SET v = 5 WHERE id = 0").await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 0")
            .await
            .single(),
        "5"
    );
}

/// Any error of a scatter cost the session its lock: the gateway dropped the connection that held it.
#[tokio::test]
async fn a_failing_scatter_leaves_the_sessions_lock_where_it_is() {
    let (_fixture, gateway) = one_connection().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    let locked = answer::ok(&mut conn, "SELECT GET_LOCK('kept', 0)").await.single();
    assert_eq!(locked, "1");
    for sql in [
        "SELECT nocol FROM t",
        "SELECT id FROM t ORDER BY g",
        "SELECT MIN(g) FROM t",
    ] {
        answer::refused(&mut conn, sql).await;
        let held = answer::ok(&mut conn, "SELECT IS_USED_LOCK('kept') IS NOT NULL")
            .await
            .single();
        assert_eq!(held, "1", "after {sql}");
    }
}

#[tokio::test]
async fn show_warnings_keeps_to_its_limit() {
    let (fixture, gateway) = one_connection().await;
    let mut pair = fixture.pair(&gateway).await;
    for limit in ["0", "1", "2", "1, 1", "1 OFFSET 1"] {
        pair.both("SELECT 1 / 0, 2 / 0, 3 / 0").await.unwrap();
        let sql = format!("SHOW WARNINGS LIMIT {limit}");
        let want = answer::ok(&mut pair.reference, &sql).await.cells();
        assert_eq!(answer::ok(&mut pair.gateway, &sql).await.cells(), want, "{sql}");
    }
}

/// It showed the account by which the gateway logs in, with the hash of its password.
#[tokio::test]
async fn nobody_is_shown_the_gateways_own_grants() {
    let (_fixture, gateway) = one_connection().await;
    for target in [KEYSPACE.to_owned(), format!("{KEYSPACE}:s0")] {
        let refusal = answer::refused(&mut gateway.conn(&target).await, "SHOW GRANTS").await;
        assert_eq!(refusal.errno, 1235, "{target}: {refusal}");
    }
}

/// Two shards of eight rows each, the second behind a proxy that lets rows pass this slowly.
async fn with_slow_rows(ms: u32) -> (Fixture, MariaDb, TabletSim, Gateway) {
    let server = MariaDb::start();
    let slow = TabletSim::proxy(server.addr());
    let fixture = Fixture::on(
        Layout::Modulo(2),
        MariaDb::shared(0),
        &[MariaDb::shared(1), &server],
        &[TABLE_T],
    )
    .await;
    let values: Vec<String> = (0..16).map(|id| format!("{id}, {id}, 'a'")).collect();
    let rows: Vec<(i64, &str)> = (0..).zip(values.iter().map(String::as_str)).collect();
    fixture.insert("t", &rows).await;
    let (direct, proxied) = (fixture.proxies[1].addr(), slow.addr());
    let gateway = Gateway::serve(
        &fixture
            .config()
            .replace(&direct.to_string(), &proxied.to_string()),
    );
    slow.fault(&format!(
        r#"{{"kind":"slow_rows","ms":{ms},"statement":"from t"}}"#
    ))
    .await;
    (fixture, server, slow, gateway)
}

/// A deadline is for the first row: what the gateway asks behind the last one used to find it passed, so `FOUND_ROWS()` was
/// the number of rows sent, warnings were none, and a transaction was lost.
#[tokio::test]
async fn what_follows_rows_that_outlast_their_deadline_is_asked_all_the_same() {
    let (_fixture, _server, _slow, gateway) = with_slow_rows(120).await;
    let mut conn = gateway.conn(&format!("{KEYSPACE}:s1")).await;
    let limited = "SELECT /*vt+ QUERY_TIMEOUT_MS=400 */";
    let rows = answer::ok(
        &mut conn,
        &format!("{limited} SQL_CALC_FOUND_ROWS id FROM t LIMIT 5"),
    )
    .await;
    assert_eq!(rows.rows.len(), 5);
    assert_eq!(answer::ok(&mut conn, "SELECT FOUND_ROWS()").await.single(), "8");

    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 100 WHERE id = 1").await;
    let rows = answer::ok(&mut conn, &format!("{limited} CAST('x' AS SIGNED) FROM t")).await;
    assert_eq!(rows.rows.len(), 8);
    let warnings = answer::ok(&mut conn, "SHOW WARNINGS").await.cells();
    assert_eq!(
        (warnings.len(), warnings[0][1].as_str()),
        (8, "1292"),
        "{warnings:?}"
    );
    answer::ok(&mut conn, "COMMIT").await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1")
            .await
            .single(),
        "100"
    );
}

/// A read that was answered took its transaction with it, if a shard had rows left that nobody needed and sent them slowly.
#[tokio::test]
async fn a_window_that_is_full_does_not_cost_the_transaction() {
    let (_fixture, _server, _slow, gateway) = with_slow_rows(250).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 100 WHERE id IN (1, 2)").await;
    let rows = answer::ok(&mut conn, "SELECT id FROM t LIMIT 8").await;
    assert_eq!(rows.rows.len(), 8);
    answer::ok(&mut conn, "COMMIT").await;
    let sum = answer::ok(&mut conn, "SELECT SUM(v) FROM t WHERE id IN (1, 2)").await;
    assert_eq!(sum.single(), "200");
}
