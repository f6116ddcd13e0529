//! Everyday statements and what a server answers to them.

mod cases;

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Row, params};

use cases::{READS, SCHEMA, WRITES};

use crate::{ask, check, client, tablet};

#[tokio::test]
async fn everyday_statements_answer_as_a_server_answers() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(&mut conn, SCHEMA).await;
    check(&mut conn, READS).await;
    check(&mut conn, WRITES).await;
    conn.disconnect().await.unwrap();
    tablet.shutdown().await;
}

#[tokio::test]
async fn columns_are_described_with_their_types_and_flags() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(&mut conn, SCHEMA).await;
    let result = conn
        .query_iter("SELECT c.id, c.email AS mail, total, placed_at, COUNT(*) OVER_ALL FROM customers c, orders GROUP BY 1")
        .await
        .unwrap();
    let columns = result.columns().unwrap().to_vec();
    result.drop_result().await.unwrap();
    let id = &columns[0];
    assert_eq!(id.column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
    assert!(id.flags().contains(
        ColumnFlags::NOT_NULL_FLAG
            | ColumnFlags::PRI_KEY_FLAG
            | ColumnFlags::UNSIGNED_FLAG
            | ColumnFlags::AUTO_INCREMENT_FLAG
    ));
    assert_eq!(
        (id.schema_str(), id.table_str(), id.org_table_str()),
        ("shop".into(), "c".into(), "customers".into())
    );
    let mail = &columns[1];
    assert_eq!(
        (mail.name_str(), mail.org_name_str()),
        ("mail".into(), "email".into())
    );
    assert_eq!(
        (mail.column_type(), mail.character_set(), mail.column_length()),
        (ColumnType::MYSQL_TYPE_VAR_STRING, 45, 480)
    );
    let total = &columns[2];
    assert_eq!(
        (total.column_type(), total.decimals(), total.column_length()),
        (ColumnType::MYSQL_TYPE_NEWDECIMAL, 2, 12)
    );
    assert_eq!(
        (columns[3].column_type(), columns[3].decimals()),
        (ColumnType::MYSQL_TYPE_DATETIME, 3)
    );
    assert_eq!(
        (columns[4].column_type(), columns[4].character_set()),
        (ColumnType::MYSQL_TYPE_LONGLONG, 63)
    );
}

#[tokio::test]
#[allow(clippy::type_complexity)] // one row, written out once
async fn prepared_statements_carry_every_type_both_ways() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    conn.query_drop(
        "CREATE TABLE p (i BIGINT, u BIGINT UNSIGNED, d DECIMAL(20,5), f DOUBLE, s VARCHAR(50), b BLOB, t DATETIME(6), n INT)",
    )
    .await
    .unwrap();
    let row = (
        i64::MIN,
        u64::MAX,
        "123456789012345.12345",
        0.1f64,
        "it's \\ \"x\" ?",
        vec![0u8, 255, 39, 92],
        "2024-02-29 01:02:03.000004",
        Option::<i32>::None,
    );
    conn.exec_drop("INSERT INTO p VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row.clone())
        .await
        .unwrap();
    let back: Vec<(i64, u64, String, f64, String, Vec<u8>, String, Option<i32>)> = conn
        .exec(
            "SELECT i, u, d, f, s, b, CAST(t AS CHAR), n FROM p WHERE s = ? AND u = ?",
            (row.4, row.1),
        )
        .await
        .unwrap();
    assert_eq!(back.len(), 1);
    let b = &back[0];
    assert_eq!((b.0, b.1, b.2.as_str(), b.3), (row.0, row.1, row.2, row.3));
    assert_eq!(
        (b.4.as_str(), b.5.as_slice(), b.6.as_str(), b.7),
        (row.4, row.5.as_slice(), row.6, None)
    );
    let n: Option<u64> = conn
        .exec_first("SELECT COUNT(*) FROM p LIMIT ?", (10,))
        .await
        .unwrap();
    assert_eq!(n, Some(1));
    let named: Option<Row> = conn
        .exec_first("SELECT :a + :b AS total", params! { "a" => 2, "b" => 3 })
        .await
        .unwrap();
    assert_eq!(named.unwrap().get::<i64, _>("total"), Some(5));
    assert!(
        conn.exec_drop("SELECT * FROM gone WHERE x = ?", (1,))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn several_statements_in_one_command_stop_at_the_first_error() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let mut result = conn
        .query_iter("SELECT 1; CREATE TABLE m (a INT); INSERT INTO m VALUES (1),(2); SELECT a FROM m")
        .await
        .unwrap();
    let mut sets = Vec::new();
    while !result.is_empty() || result.affected_rows() > 0 || result.columns().is_some() {
        let affected = result.affected_rows();
        let rows: Vec<Row> = result.collect().await.unwrap();
        sets.push((affected, rows.len()));
    }
    drop(result);
    assert_eq!(
        sets.iter().map(|(_, rows)| *rows).collect::<Vec<_>>(),
        [1, 0, 0, 2]
    );
    let stopped = ask(&mut conn, "SELECT 1; SELECT nosuch; INSERT INTO m VALUES (9)").await;
    assert!(stopped.starts_with("ERR 1054"), "{stopped}");
    let mut other = client(&tablet).await;
    assert_eq!(ask(&mut other, "SELECT COUNT(*) FROM m").await, "2");
}

#[tokio::test]
async fn a_long_result_arrives_whole() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i, REPEAT('x', 50) FROM n";
    let rows: Vec<(u64, String)> = conn.query(sql).await.unwrap();
    assert_eq!(rows.len(), 30_000);
    assert!(
        rows.iter()
            .enumerate()
            .all(|(at, (i, s))| *i == at as u64 + 1 && s.len() == 50)
    );
}

#[tokio::test]
async fn numbers_of_enums_and_fractions_of_texts_are_kept() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(
        &mut conn,
        &[
            ("CREATE TABLE e (v ENUM('z','y','x'))", ""),
            ("INSERT INTO e VALUES ('x'), ('z'), (2), (NULL)", ""),
            ("SELECT v, v + 0 FROM e ORDER BY v", "NULL|NULL/z|1/y|2/x|3"),
            (
                "SELECT UNIX_TIMESTAMP('2024-01-01 00:00:00.5'), TIME('10:11:12.345')",
                "1704067200.5|10:11:12.345",
            ),
        ],
    )
    .await;
}

/// Two columns renamed by one statement used to come out empty: the copy found columns by name.
#[tokio::test]
async fn columns_keep_their_rows_through_any_renaming() {
    let tablet = tablet().await;
    let mut conn = client(&tablet).await;
    check(
        &mut conn,
        &[
            (
                "CREATE TABLE p (id INT PRIMARY KEY, v VARCHAR(10), w INT, KEY by_w (w))",
                "",
            ),
            ("INSERT INTO p VALUES (1, 'a', 5), (2, 'b', 6)", ""),
            (
                "ALTER TABLE p CHANGE w ww BIGINT FIRST, RENAME COLUMN v TO vv, ADD COLUMN n INT DEFAULT 7",
                "",
            ),
            ("SELECT * FROM p WHERE ww > 5", "6|2|b|7"),
            ("ALTER TABLE p RENAME COLUMN vv TO ww2, RENAME COLUMN n TO vv", ""),
            ("SELECT * FROM p ORDER BY id", "5|1|a|7/6|2|b|7"),
            ("SHOW INDEX FROM p WHERE Key_name = 'by_w'", "p|1|by_w|1|ww|..."),
        ],
    )
    .await;
}

#[tokio::test]
async fn thousands_of_rows_load_in_one_go() {
    let tablet = tablet().await;
    let rows: Vec<String> = (1..=5000)
        .map(|i| format!("({i}, 'customer {i}', {i}.25)"))
        .collect();
    let script = format!(
        "CREATE TABLE shop.big (id BIGINT PRIMARY KEY, name VARCHAR(40), total DECIMAL(10,2)); \
         INSERT INTO shop.big VALUES {}",
        rows.join(",")
    );
    let before = tokio::time::Instant::now();
    tablet.execute_local(&script).await.unwrap();
    println!("5000 rows in {:?}", before.elapsed());
    assert_eq!(
        tablet
            .query_local("SELECT COUNT(*), SUM(total) FROM shop.big")
            .await
            .unwrap(),
        [[Some("5000".to_owned()), Some("12503750.00".to_owned())]]
    );
}
