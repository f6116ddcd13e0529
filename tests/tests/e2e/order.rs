//! Order and limit over shards: scenario O4.

use mysql_async::Params;
use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fixture, Layout, MariaDb, Order, answer};

const ROWS: [(i64, &str); 10] = [
    (1, "1, 5, 'a'"),
    (2, "2, 4, 'b'"),
    (3, "1, 3, 'c'"),
    (4, "2, 2, 'd'"),
    (5, "1, 1, 'e'"),
    (6, "2, NULL, 'f'"),
    (7, "NULL, 7, 'g'"),
    (8, "NULL, 8, NULL"),
    (9, "3, 9, 'i'"),
    (10, "3, 9, 'j'"),
];

/// O4 [vitess#3738].
#[tokio::test]
async fn limit_and_offset_over_shards_answer_as_one_server() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &ROWS).await;
    let gateway = fixture.gateway();
    let mut pair = fixture.pair(&gateway).await;

    let answer = pair
        .same("SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 3", Order::Fixed)
        .await;
    assert_eq!(answer.cells(), [["4"], ["5"]]);
    let same = [
        "SELECT id FROM t ORDER BY id LIMIT 3, 2",
        "SELECT id FROM t ORDER BY id LIMIT 18446744073709551615 OFFSET 5",
        "SELECT id FROM t ORDER BY id LIMIT 18446744073709551615 OFFSET 18446744073709551615",
        "SELECT id FROM t ORDER BY id LIMIT 0",
        "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 100",
        "SELECT id FROM t ORDER BY id DESC LIMIT 4",
        "SELECT g FROM t ORDER BY id LIMIT 4",
        "SELECT g, v FROM t ORDER BY v DESC, id DESC LIMIT 3 OFFSET 1",
        "SELECT id, k FROM t ORDER BY k, id",
        "SELECT id, k AS n FROM t ORDER BY n DESC, 1 LIMIT 6",
        "SELECT * FROM t ORDER BY id LIMIT 7",
    ];
    for sql in same {
        pair.same(sql, Order::Fixed).await;
    }
    for (offset, count) in [(0, 3), (3, 2), (9, 5), (10, 1), (0, 0)] {
        let sql = "SELECT id FROM t ORDER BY id LIMIT ?, ?";
        pair.same_prepared(sql, Params::from((offset, count)), Order::Fixed)
            .await;
        let sql = "SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?";
        pair.same_prepared(sql, Params::from((count, offset)), Order::Fixed)
            .await;
    }
}

/// The second half of O4: how much a shard is asked for.
#[tokio::test]
async fn each_shard_is_asked_for_limit_and_offset_together_without_an_offset() {
    let server = MariaDb::start_with(&["--log-output=TABLE", "--general-log=1"]);
    let fixture = Fixture::on(Layout::Modulo(2), MariaDb::shared(0), &[&server], &[TABLE_T]).await;
    fixture.insert("t", &ROWS).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 3").await;
    let seen: Vec<String> = server
        .conn()
        .await
        .query(
            "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log \
             WHERE command_type IN ('Query', 'Execute') AND argument LIKE '%FROM t ORDER BY id%' \
             AND argument NOT LIKE '%general_log%'",
        )
        .await
        .unwrap();
    assert_eq!(seen.len(), 2, "{seen:?}");
    for sql in seen {
        let limit = sql
            .to_uppercase()
            .split_once("LIMIT")
            .map(|(_, l)| l.trim().to_owned());
        assert!(
            limit.as_deref() == Some("5") || limit.as_deref() == Some("0, 5"),
            "{sql}"
        );
    }
}

#[tokio::test]
async fn an_unordered_limit_gives_that_many_of_the_rows() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &ROWS).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    for (limit, want) in [
        ("LIMIT 7", 7),
        ("LIMIT 3 OFFSET 2", 3),
        ("LIMIT 20", 10),
        ("LIMIT 5 OFFSET 8", 2),
    ] {
        let rows = answer::ok(&mut conn, &format!("SELECT id FROM t {limit}"))
            .await
            .cells();
        assert_eq!(rows.len(), want, "{limit}: {rows:?}");
        let mut distinct = rows.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), want, "{limit}: {rows:?}");
    }
}
