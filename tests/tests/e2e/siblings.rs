//! What sessions that share tablets' connections must not hear of each other, and what they say of themselves there.

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fixture, Gateway, Layout, answer};

/// One shard behind one pooled connection, which all sessions use in turn.
async fn one_connection(statements: &[&str]) -> (Fixture, Gateway) {
    let tables = [
        TABLE_T,
        "CREATE TABLE a (id BIGINT PRIMARY KEY AUTO_INCREMENT, v INT)",
    ];
    let fixture = Fixture::new(Layout::Unsharded, 1, &tables).await;
    fixture.shards[0].run(statements).await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(1)));
    (fixture, gateway)
}

/// What a stored function leaves on a connection is nobody else's: variables, settings, temporary tables, locks.
#[tokio::test]
async fn what_a_stored_function_leaves_is_seen_by_no_other_session() {
    let (_fixture, gateway) = one_connection(&[
        "CREATE FUNCTION marks(x INT) RETURNS INT BEGIN SET @marked = x; SET SESSION time_zone = '+07:00'; \
         RETURN x; END",
        "CREATE FUNCTION locks() RETURNS INT RETURN GET_LOCK('one', 0)",
    ])
    .await;
    let mut a = gateway.conn(KEYSPACE).await;
    let mut b = gateway.conn(KEYSPACE).await;
    assert_eq!(answer::ok(&mut a, "SELECT marks(42)").await.single(), "42");
    let seen = answer::ok(&mut b, "SELECT @marked, @@session.time_zone")
        .await
        .cells();
    assert_eq!(seen, [["NULL", "SYSTEM"]]);
    answer::ok(&mut a, "SET @kept = marks(7)").await;
    let seen = answer::ok(&mut b, "SELECT @marked, @@session.time_zone")
        .await
        .cells();
    assert_eq!(seen, [["NULL", "SYSTEM"]]);
    assert_eq!(answer::ok(&mut a, "SELECT @kept").await.single(), "7");
    // A lock that outlasted its statement on a shared connection would be everybody's.
    assert_eq!(answer::ok(&mut a, "SELECT locks()").await.single(), "1");
    assert_eq!(
        answer::ok(&mut b, "SELECT IS_FREE_LOCK('one')").await.single(),
        "1"
    );
}

/// `LAST_INSERT_ID()` in what runs on the tablet is the session's, and so is what it leaves.
#[tokio::test]
async fn last_insert_ids_are_a_sessions_own() {
    let (_fixture, gateway) = one_connection(&[
        "CREATE FUNCTION mine() RETURNS BIGINT RETURN LAST_INSERT_ID()",
        "CREATE PROCEDURE adds() BEGIN INSERT INTO a (v) VALUES (9); END",
        "CREATE TABLE child (id BIGINT PRIMARY KEY AUTO_INCREMENT, parent BIGINT)",
        "CREATE TRIGGER theirs BEFORE INSERT ON child FOR EACH ROW SET NEW.parent = LAST_INSERT_ID()",
        "CREATE PROCEDURE tells() BEGIN SELECT LAST_INSERT_ID(); END",
    ])
    .await;
    let mut a = gateway.conn(KEYSPACE).await;
    let mut b = gateway.conn(KEYSPACE).await;
    let own = "SELECT LAST_INSERT_ID()";
    answer::ok(&mut a, "INSERT INTO a (v) VALUES (1)").await;
    answer::ok(&mut b, "INSERT INTO a (v) VALUES (2)").await;
    assert_eq!(answer::ok(&mut a, "SELECT mine()").await.single(), "1");
    assert_eq!(answer::ok(&mut b, "SELECT mine()").await.single(), "2");
    answer::ok(&mut a, "INSERT INTO child () VALUES ()").await;
    let parents = "SELECT parent FROM child";
    assert_eq!(answer::ok(&mut a, parents).await.single(), "1");
    assert_eq!(
        answer::ok(&mut a, "INSERT INTO a (v) VALUES (3) RETURNING id")
            .await
            .single(),
        "3"
    );
    assert_eq!(answer::ok(&mut a, own).await.single(), "3");
    // Where nothing was generated the id stays the session's, whoever had the connection before.
    for sql in [
        "INSERT INTO t VALUES (50, 1, 1, 'x') RETURNING id",
        "DELETE FROM t WHERE id = 50 RETURNING id",
        "SELECT SQL_CALC_FOUND_ROWS id FROM a LIMIT 1",
    ] {
        answer::ok(&mut b, sql).await;
        assert_eq!(answer::ok(&mut b, own).await.single(), "2", "{sql}");
    }
    answer::ok(&mut b, "SET sql_select_limit = 0").await;
    answer::ok(&mut b, "INSERT INTO a (v) VALUES (4)").await;
    answer::ok(&mut b, "SET sql_select_limit = DEFAULT").await;
    assert_eq!(answer::ok(&mut b, own).await.single(), "4");
    drop(b);
    // CALL keeps the only connection from here on.
    assert_eq!(answer::ok(&mut a, "CALL tells()").await.single(), "3");
    answer::ok(&mut a, "CALL adds()").await;
    assert_eq!(answer::ok(&mut a, own).await.single(), "5");
}

/// Everyday statements leave nothing behind: their connections are used again.
#[tokio::test]
async fn everyday_statements_keep_their_connection() {
    let (fixture, gateway) = one_connection(&[]).await;
    let mut a = gateway.conn(KEYSPACE).await;
    answer::ok(&mut a, "SELECT COUNT(*) FROM t").await;
    let opened = async || {
        let (_, vars) = gateway.http("GET", "/debug/vars?name[]=Pool").await;
        let vars: serde_json::Value = serde_json::from_str(&vars).unwrap();
        vars["Pool"]["shop---a.opened"].as_u64().unwrap()
    };
    let before = opened().await;
    for sql in [
        "INSERT INTO a (v) VALUES (1), (2)",
        "INSERT IGNORE t (id, v) VALUES (7, 7)",
        "REPLACE INTO t (id, v) VALUES (7, 8)",
        "INSERT INTO a (v) SELECT COALESCE(v, 0) FROM t WHERE id IN (7)",
        "UPDATE t SET v = v + 1 WHERE id = 7",
        "INSERT INTO t (id, v) VALUES (7, 1) ON DUPLICATE KEY UPDATE v = VALUES(v)",
        "DELETE FROM t WHERE id = 7 RETURNING id",
    ] {
        answer::ok(&mut a, sql).await;
    }
    assert_eq!(opened().await, before);
    drop(fixture);
}

/// A prepared statement means what its names meant when it was prepared, whatever is used since.
#[tokio::test]
async fn a_prepared_statement_stays_where_it_was_prepared() {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[TABLE_T]).await;
    fixture
        .insert("t", &[(0, "0, 0, 'a'"), (1, "1, 1, 'b'"), (2, "2, 2, 'c'")])
        .await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    let all = conn.prep("SELECT COUNT(*) FROM t WHERE v >= ?").await.unwrap();
    let count: Option<u32> = conn.exec_first(&all, (0,)).await.unwrap();
    assert_eq!(count, Some(3));
    answer::ok(&mut conn, "USE `shop:s1`").await;
    let count: Option<u32> = conn.exec_first(&all, (0,)).await.unwrap();
    assert_eq!(count, Some(3));
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "1"
    );
    let here = conn.prep("SELECT COUNT(*) FROM t WHERE v >= ?").await.unwrap();
    answer::ok(&mut conn, "USE shop").await;
    let count: Option<u32> = conn.exec_first(&here, (0,)).await.unwrap();
    assert_eq!(count, Some(1));
}

/// What would be another thing on each shard, or another session's, is refused.
#[tokio::test]
async fn what_only_one_server_can_tell_is_refused_over_shards() {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[TABLE_T]).await;
    fixture
        .everywhere(&[
            "CREATE SEQUENCE sq",
            "CREATE FUNCTION many() RETURNS INT RETURN (SELECT COUNT(*) FROM t)",
        ])
        .await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    for sql in [
        "INSERT INTO t (id, v) VALUES (1, NEXTVAL(sq))",
        "INSERT INTO t (id, v) VALUES (1, NEXT VALUE FOR sq)",
        "SELECT NEXTVAL(sq) FROM t WHERE id = 1",
        "SELECT GET_LOCK('x', 0) FROM t WHERE id = 1",
        "UPDATE t SET v = NEXTVAL(sq) WHERE id = 1",
        "SELECT LASTVAL(sq)",
        "SELECT PREVIOUS VALUE FOR sq",
        "SET @x = many()",
        "SET @x = (SELECT many())",
        "SELECT RAND(3) FROM t",
        "SELECT id FROM t WHERE MATCH(g) AGAINST('x')",
        "SET @@tx_isolation = 'READ-UNCOMMITTED'",
        "SELECT 1; SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 'a'",
    ] {
        let error = conn.query_drop(sql).await.expect_err(sql);
        assert!(
            error.to_string().contains("1235") || error.to_string().contains("SG"),
            "{sql}: {error}"
        );
        answer::ok(&mut conn, "SET sql_mode = DEFAULT").await;
    }
    assert_eq!(answer::ok(&mut conn, "SELECT NEXTVAL(sq)").await.single(), "1");
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1").await;
    for sql in [
        "SET SESSION TRANSACTION READ ONLY",
        "SET SESSION tx_isolation = 'READ-COMMITTED'",
    ] {
        answer::refused(&mut conn, sql).await;
    }
    answer::ok(&mut conn, "COMMIT").await;
    answer::ok(&mut conn, "SET SESSION TRANSACTION READ ONLY").await;
}

/// A server makes literals one of `character_set_connection`, so that is what rows are placed by.
#[tokio::test]
async fn rows_are_placed_by_the_text_that_is_stored() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET collation_connection = latin1_bin").await;
    answer::ok(&mut conn, "SET character_set_connection = utf8mb4").await;
    let seen = answer::ok(&mut conn, "SELECT 'a' = 'A', @@collation_connection")
        .await
        .cells();
    assert_eq!(seen, [["1", "utf8mb4_general_ci"]]);
}
