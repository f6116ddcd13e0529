//! An unsharded keyspace: any SQL that the server understands, answered by it, with a session that holds together over
//! a pool of connections.

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fixture, Gateway, Layout, Order, Pair, answer};

async fn filled() -> (Fixture, Gateway, Pair) {
    let tables = [
        TABLE_T,
        "CREATE TABLE a (id BIGINT PRIMARY KEY AUTO_INCREMENT, x INT, note VARCHAR(30), at TIMESTAMP NULL)",
        "INSERT INTO t SELECT seq, seq % 3, seq * 10, CHAR(97 + seq % 5) FROM seq_1_to_20",
    ];
    let fixture = Fixture::new(Layout::Unsharded, 1, &tables).await;
    let gateway = fixture.gateway();
    let pair = fixture.pair(&gateway).await;
    (fixture, gateway, pair)
}

#[tokio::test]
async fn what_a_scatter_refuses_an_unsharded_keyspace_answers() {
    let (_fixture, _gateway, mut pair) = filled().await;
    for sql in [
        "SELECT k, COUNT(*), AVG(v), GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY k HAVING COUNT(*) > 1 ORDER BY k",
        "SELECT DISTINCT g FROM t ORDER BY g",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM t ORDER BY k, n",
        "SELECT id FROM t UNION SELECT v FROM t ORDER BY 1 LIMIT 5",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        "SELECT x.id FROM t x JOIN t y ON x.v = y.id WHERE y.k = 1 ORDER BY x.id",
        "SELECT id FROM t WHERE v > (SELECT AVG(v) FROM t) ORDER BY g DESC, id",
        "SELECT JSON_OBJECT('a', MAX(id)) FROM t",
        "SELECT COUNT(*) FROM t WHERE g REGEXP '^[a-c]$'",
    ] {
        pair.same(sql, Order::Fixed).await;
    }
}

#[tokio::test]
async fn generated_keys_and_functions_of_the_session_are_as_on_one_server() {
    let (_fixture, _gateway, mut pair) = filled().await;
    for sql in [
        "INSERT INTO a (x) VALUES (1)",
        "INSERT INTO a (x) VALUES (2), (3), (4)",
        "INSERT INTO a (id, x) VALUES (50, 5)",
        "INSERT INTO a (x) SELECT id FROM t WHERE id < 4",
    ] {
        pair.both(sql).await.unwrap();
        for asked in [
            "SELECT LAST_INSERT_ID() AS n",
            "SELECT x, id FROM a WHERE id = LAST_INSERT_ID()",
        ] {
            let want = answer::ok(&mut pair.reference, asked).await.cells();
            assert_eq!(
                want,
                answer::ok(&mut pair.gateway, asked).await.cells(),
                "{asked} after {sql}"
            );
        }
    }
    pair.same("SELECT id, x FROM a ORDER BY id", Order::Fixed).await;
}

#[tokio::test]
async fn what_lives_on_one_connection_stays_with_its_session() {
    let (_fixture, gateway, mut pair) = filled().await;
    for sql in [
        "CREATE TEMPORARY TABLE mine (n INT)",
        "INSERT INTO mine VALUES (1), (2)",
        "SELECT SUM(n) FROM mine",
        "SELECT GET_LOCK('harness-lock', 0) AS l",
        "SELECT IS_USED_LOCK('harness-lock') IS NOT NULL AS used",
        "SELECT @counter := 5 AS c",
        "SELECT @counter + 1 AS c",
        "PREPARE s FROM 'SELECT id + ? AS sum FROM t WHERE id = 3'",
        "SET @plus = 4",
        "EXECUTE s USING @plus",
        "DEALLOCATE PREPARE s",
        "LOCK TABLES t READ",
        "SELECT v FROM t WHERE id = 2",
        "UNLOCK TABLES",
        "SELECT v INTO @v FROM t WHERE id = 1",
        "SELECT @v AS v",
        "DROP TEMPORARY TABLE mine",
        "SELECT RELEASE_LOCK('harness-lock') AS l",
    ] {
        pair.both(sql).await.unwrap();
        // Another session keeps the pool's other connections busy in between.
        answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT COUNT(*) FROM t").await;
    }
}

#[tokio::test]
async fn a_session_that_leaves_takes_its_locks_and_temporary_tables_along() {
    let (_fixture, gateway, _pair) = filled().await;
    for _ in 0..30 {
        let mut conn = gateway.conn(KEYSPACE).await;
        answer::ok(&mut conn, "CREATE TEMPORARY TABLE mine (n INT)").await;
        let lock = format!("SELECT GET_LOCK('{KEYSPACE}-left', 10)");
        assert_eq!(answer::ok(&mut conn, &lock).await.single(), "1");
        answer::ok(&mut conn, "BEGIN").await;
        answer::ok(&mut conn, "UPDATE t SET v = v + 1 WHERE id = 1").await;
        drop(conn);
    }
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1")
            .await
            .single(),
        "10"
    );
    assert!(conn.query_drop("SELECT * FROM mine").await.is_err());
}

#[tokio::test]
async fn procedures_views_and_several_results_pass() {
    let (_fixture, _gateway, mut pair) = filled().await;
    for sql in [
        "CREATE VIEW big AS SELECT id FROM t WHERE v > 100",
        "SELECT COUNT(*) FROM big",
        "CREATE PROCEDURE twice(IN n INT) BEGIN SELECT n * 2 AS d; SELECT id FROM t WHERE id = n; END",
    ] {
        pair.both(sql).await.unwrap();
    }
    let mut all = Vec::new();
    for conn in [&mut pair.reference, &mut pair.gateway] {
        let mut result = conn.query_iter("CALL twice(3)").await.unwrap();
        let first: Vec<i64> = result.collect().await.unwrap();
        let second: Vec<i64> = result.collect().await.unwrap();
        result.drop_result().await.unwrap();
        all.push((first, second));
    }
    assert_eq!(all, [(vec![6], vec![3]), (vec![6], vec![3])]);
    pair.same("SELECT COUNT(*) FROM t", Order::Fixed).await;
}
