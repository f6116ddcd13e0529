//! An INSERT whose rows go to several shards: what is said of its rows is said as one server would say it.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use shardgate_tests::{Fixture, answer};

/// What a statement says of itself: its info text, and its warnings in the order of their rows.
async fn told(conn: &mut Conn, sql: &str) -> (String, u64, Vec<String>) {
    conn.query_drop(sql).await.unwrap();
    let (info, affected) = (conn.info().into_owned(), conn.affected_rows());
    let shown = answer::ok(conn, "SHOW WARNINGS").await;
    let mut warnings: Vec<_> = shown
        .cells()
        .iter()
        .map(|row| without_database(&row.join(" ")))
        .collect();
    warnings.sort();
    (info, affected, warnings)
}

/// A message without the name of the server's own database, which the harness makes up.
fn without_database(message: &str) -> String {
    let Some(end) = message.find("`.`t`") else {
        return message.to_owned();
    };
    let start = message[..end].rfind('`').unwrap_or(end);
    format!("{}{}", &message[..start], &message[end..])
}

#[tokio::test]
async fn rows_are_counted_and_numbered_as_the_client_wrote_them() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut pair = fixture.pair(&gateway).await;
    for conn in [&mut pair.reference, &mut pair.gateway] {
        answer::ok(conn, "SET sql_mode = ''").await;
    }
    for sql in [
        "INSERT INTO t (id, k, v, g) VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')",
        "INSERT INTO t (id, v) VALUES (3, 1), (4, 99999999999), (5, 'x'), (6, -99999999999)",
        "INSERT INTO t (id, g) VALUES (8, 'a'), (9, REPEAT('b', 30)), (11, 'at row 1')",
        "INSERT IGNORE INTO t (id, v) VALUES (1, 1), (2, 2), (12, 'y')",
        "REPLACE INTO t (id, v) VALUES (1, 7), (2, 8), (13, 9)",
        "INSERT INTO t (id, v) VALUES (1, 0), (2, 8), (14, 9) ON DUPLICATE KEY UPDATE v = VALUES(v)",
    ] {
        let want = told(&mut pair.reference, sql).await;
        assert_eq!(told(&mut pair.gateway, sql).await, want, "{sql}");
    }
}

#[tokio::test]
async fn an_error_names_the_row_of_the_clients_statement() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut pair = fixture.pair(&gateway).await;
    for sql in [
        "INSERT INTO t (id, v) VALUES (1, 1), (2, 1), (3, 1), (5, 99999999999)",
        "INSERT INTO t (id, g) VALUES (1, 'a'), (2, 'b'), (4, REPEAT('c', 30))",
    ] {
        let want = answer::refused(&mut pair.reference, sql).await;
        let got = answer::refused(&mut pair.gateway, sql).await;
        assert_eq!((got.errno, &got.message), (want.errno, &want.message), "{sql}");
        assert!(want.message.contains("at row"), "{want:?}");
    }
}
