//! What clients and ORMs ask about the server, the tables and their own session.

use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fixture, Gateway, Order, Outcome, Pair, answer};

/// For what the gateway answers itself: the same values and counts. Its column definitions are its own.
async fn same_values(pair: &mut Pair, sql: &str) {
    let want = answer::text(&mut pair.reference, sql).await;
    let got = answer::text(&mut pair.gateway, sql).await;
    let seen = |outcome: Outcome| match outcome {
        Ok(a) => Ok((a.cells(), a.affected, a.warnings)),
        Err(e) => Err((e.errno, e.state)),
    };
    assert_eq!(seen(want), seen(got), "{sql}: reference left");
}

async fn filled() -> (Fixture, Gateway, Pair) {
    let fixture = Fixture::scenario().await;
    fixture.everywhere(&["CREATE INDEX by_k ON t (k)"]).await;
    fixture
        .insert(
            "t",
            &[
                (1, "1, 10, 'a'"),
                (2, "2, 20, 'b'"),
                (3, "3, 30, 'c'"),
                (4, "4, 40, 'd'"),
            ],
        )
        .await;
    let gateway = fixture.gateway();
    let pair = fixture.pair(&gateway).await;
    (fixture, gateway, pair)
}

#[tokio::test]
async fn tables_are_described_as_one_server_describes_them() {
    let (_fixture, _gateway, mut pair) = filled().await;
    let same = [
        "SHOW COLUMNS FROM t",
        "SHOW FULL COLUMNS FROM t",
        "DESCRIBE t",
        "SHOW CREATE TABLE t",
    ];
    for sql in same {
        pair.both(sql).await.unwrap();
    }
    // Below a column's name its definition has the name in the table, which is spelled otherwise here.
    let same = [
        "SELECT column_name, data_type, column_type, is_nullable, column_key FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = 't' ORDER BY ordinal_position",
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE()",
    ];
    for sql in same {
        same_values(&mut pair, sql).await;
    }
    let tables = answer::ok(&mut pair.gateway, "SHOW TABLES").await;
    assert_eq!(tables.cells(), [["t"]]);
    assert_eq!(tables.columns[0].name, format!("Tables_in_{KEYSPACE}"));
    let indexes = answer::ok(&mut pair.gateway, "SHOW INDEX FROM t").await;
    assert_eq!(indexes.rows.len(), 2);
    let databases = answer::ok(&mut pair.gateway, "SHOW DATABASES").await.cells();
    assert!(databases.iter().any(|d| d[0] == KEYSPACE), "{databases:?}");
    assert!(
        !databases.iter().any(|d| d[0].starts_with("shard")),
        "a tablet's own names stay its own: {databases:?}"
    );
}

#[tokio::test]
async fn functions_of_the_session_answer_for_the_gateways_session() {
    let (_fixture, gateway, mut pair) = filled().await;
    for sql in [
        "UPDATE t SET v = v + 1 WHERE id IN (1, 2, 3)",
        "SELECT ROW_COUNT()",
        "SELECT id FROM t ORDER BY id LIMIT 3",
        "SELECT FOUND_ROWS()",
        "DELETE FROM t WHERE id = 99",
        "SELECT ROW_COUNT() AS n",
        "SELECT LAST_INSERT_ID()",
    ] {
        same_values(&mut pair, sql).await;
    }
    let mut conn = pair.gateway;
    assert_eq!(
        answer::ok(&mut conn, "SELECT DATABASE()").await.single(),
        KEYSPACE
    );
    let id = answer::ok(&mut conn, "SELECT CONNECTION_ID()").await.single();
    assert_eq!(id, conn.id().to_string());
    let inside = answer::ok(&mut conn, "SELECT CONNECTION_ID(), id FROM t WHERE id = 1")
        .await
        .cells();
    assert_eq!(inside, [[id.as_str(), "1"]]);
    let list = answer::ok(&mut gateway.conn(KEYSPACE).await, "SHOW PROCESSLIST")
        .await
        .cells();
    assert!(list.iter().any(|row| row[0] == id), "{id} is not among {list:?}");
    assert!(
        !answer::ok(&mut conn, "SELECT VERSION()")
            .await
            .single()
            .is_empty()
    );
}

/// What a session may set of the gateway's own can be read again.
#[tokio::test]
async fn the_gateways_own_variables_answer_what_is_in_force() {
    let (_fixture, gateway, _pair) = filled().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    let all = "SELECT @@query_timeout, @@session.workload, @@allow_scatter, @@scatter_errors_as_warnings";
    for (set, expected) in [
        ("", "30000 oltp 0 0"),
        ("SET query_timeout = 1500, allow_scatter = 1", "1500 oltp 1 0"),
        ("SET query_timeout = 90000", "30000 oltp 1 0"),
        (
            "SET workload = 'olap', scatter_errors_as_warnings = ON",
            "90000 olap 1 1",
        ),
        ("SET query_timeout = 0", "0 olap 1 1"),
        ("SET query_timeout = DEFAULT, workload = 'oltp'", "30000 oltp 1 1"),
    ] {
        if !set.is_empty() {
            answer::ok(&mut conn, set).await;
        }
        assert_eq!(
            answer::ok(&mut conn, all).await.cells()[0].join(" "),
            expected,
            "{set}"
        );
    }
}

#[tokio::test]
async fn warnings_of_one_shard_and_of_several_can_be_read_afterwards() {
    let (_fixture, _gateway, mut pair) = filled().await;
    for sql in [
        "SELECT v / 0 FROM t WHERE id = 1",
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "SELECT id, v / 0 FROM t ORDER BY id",
        "SHOW COUNT(*) WARNINGS",
        "SELECT nothing FROM t WHERE id = 1",
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SELECT id FROM t WHERE id = 1",
        "SHOW WARNINGS",
    ] {
        same_values(&mut pair, sql).await;
    }
    answer::ok(&mut pair.gateway, "SELECT v / 0 FROM t").await;
    let warnings = answer::ok(&mut pair.gateway, "SHOW WARNINGS").await;
    assert_eq!(warnings.rows.len(), 4, "{warnings:?}");
}

#[tokio::test]
async fn the_topology_can_be_shown() {
    let (_fixture, _gateway, mut pair) = filled().await;
    let shards = answer::ok(&mut pair.gateway, "SHOW VITESS_SHARDS")
        .await
        .cells()
        .concat()
        .join(" ");
    assert!(
        shards.contains(&format!("{KEYSPACE}/s0")) && shards.contains(&format!("{KEYSPACE}/s1")),
        "{shards}"
    );
    assert_eq!(
        answer::ok(&mut pair.gateway, "SHOW VITESS_TABLETS")
            .await
            .rows
            .len(),
        2
    );
    pair.same("SELECT COUNT(*) FROM t", Order::Fixed).await;
}

/// Clients key their caches by the schema of a column: it is the keyspace, whichever shard answered.
#[tokio::test]
async fn columns_name_the_keyspace_as_their_schema() {
    use mysql_async::prelude::Queryable;
    let (_fixture, _gateway, mut pair) = filled().await;
    for sql in [
        "SELECT id FROM t WHERE id = 1",
        "SELECT id FROM t ORDER BY id",
        "SELECT * FROM t",
    ] {
        let mut result = pair.gateway.query_iter(sql).await.unwrap();
        let schemas: Vec<String> = result
            .columns_ref()
            .iter()
            .map(|c| c.schema_str().into_owned())
            .collect();
        assert!(
            !schemas.is_empty() && schemas.iter().all(|s| s == KEYSPACE),
            "{sql}: {schemas:?}"
        );
        let _rows: Vec<mysql_async::Row> = result.collect().await.unwrap();
    }
}
