//! Prepared statements over time: schema changes, many of them, many sessions.

use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row};
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fixture, Gateway, Order, Pair, answer};

async fn filled() -> (Fixture, Gateway, Pair) {
    let fixture = Fixture::scenario().await;
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
async fn a_statement_prepared_before_a_schema_change_works_after_it() {
    let (_fixture, _gateway, mut pair) = filled().await;
    let one = "SELECT * FROM t WHERE id = ?";
    let all = "SELECT * FROM t ORDER BY id";
    let mut prepared = Vec::new();
    for conn in [&mut pair.reference, &mut pair.gateway] {
        prepared.push((conn.prep(one).await.unwrap(), conn.prep(all).await.unwrap()));
    }
    pair.both("ALTER TABLE t ADD COLUMN extra INT DEFAULT 5")
        .await
        .unwrap();
    let mut seen = Vec::new();
    for (conn, (one, all)) in [&mut pair.reference, &mut pair.gateway]
        .into_iter()
        .zip(&prepared)
    {
        let rows: Vec<Row> = conn.exec(one, (2,)).await.unwrap();
        let more: Vec<Row> = conn.exec(all, ()).await.unwrap();
        seen.push(rows.into_iter().chain(more).map(Row::unwrap).collect::<Vec<_>>());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[1][0].len(), 5);
    pair.same(all, Order::Fixed).await;
}

#[tokio::test]
async fn more_statements_than_a_tablet_connection_keeps_all_stay_usable() {
    let (_fixture, _gateway, mut pair) = filled().await;
    let mut statements = Vec::new();
    for n in 0..600 {
        let sql = format!("SELECT v + {n} FROM t WHERE id = ?");
        statements.push(pair.gateway.prep(sql).await.unwrap());
    }
    for round in 0..2 {
        for (n, statement) in statements.iter().enumerate().step_by(7) {
            let got: Option<i64> = pair.gateway.exec_first(statement, (2,)).await.unwrap();
            assert_eq!(got, Some(20 + i64::try_from(n).unwrap()), "round {round}");
        }
    }
}

#[tokio::test]
async fn sessions_that_share_a_pool_keep_their_statements_apart() {
    let (_fixture, gateway, _pair) = filled().await;
    let tasks: Vec<_> = (0..12)
        .map(|n: i64| {
            let conn = gateway.conn(KEYSPACE);
            async move {
                let mut conn = conn.await;
                let mine = conn
                    .prep(format!("SELECT id + {n} FROM t WHERE id = ?"))
                    .await
                    .unwrap();
                for turn in 0..40_i64 {
                    let id = turn % 4 + 1;
                    let got: Option<i64> = conn.exec_first(&mine, (id,)).await.unwrap();
                    assert_eq!(got, Some(id + n));
                }
            }
        })
        .collect();
    futures::future::join_all(tasks).await;
}

#[tokio::test]
async fn null_and_text_parameters_route_like_their_literals() {
    let (_fixture, _gateway, mut pair) = filled().await;
    let sql = "SELECT * FROM t WHERE id = ?";
    pair.same_prepared(sql, Params::from(("2",)), Order::Free).await;
    pair.same_prepared(sql, Params::from((None::<i64>,)), Order::Free)
        .await;
    pair.same_prepared(sql, Params::from((2.0_f64,)), Order::Free)
        .await;
    pair.same_prepared(
        "SELECT * FROM t WHERE g = ? ORDER BY id",
        Params::from(("A",)),
        Order::Fixed,
    )
    .await;
    answer::ok(&mut pair.gateway, "SELECT 1").await;
}
