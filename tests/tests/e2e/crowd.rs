//! Many sessions over few tablet connections, some of them leaving in the middle: nobody sees another's answer,
//! settings, variables or transaction.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fixture, Gateway, Layout, answer, wait};

const CLIENTS: i64 = 16;
const TURNS: i64 = 40;

/// A small generator: the same seed gives the same run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

async fn session(gateway: &Gateway, me: i64) -> Conn {
    let mut conn = gateway.conn(KEYSPACE).await;
    conn.query_drop(format!("SET @me = {me}")).await.unwrap();
    conn
}

/// One client's turns; each answer carries a number that only its question held.
async fn client(gateway: &Gateway, me: i64) {
    let mut dice = Dice(u64::try_from(me).unwrap() * 7919 + 1);
    let mut conn = session(gateway, me).await;
    for turn in 0..TURNS {
        let token = me * 1_000_000 + turn;
        let id = i64::try_from(dice.roll(50)).unwrap();
        match dice.roll(8) {
            0 => {
                let row: Option<(i64, i64)> = conn
                    .query_first(format!("SELECT {token}, id FROM t WHERE id = {id}"))
                    .await
                    .unwrap();
                assert_eq!(row, Some((token, id)));
            }
            1 => {
                let rows: Vec<(i64, i64)> = conn
                    .query(format!("SELECT {token}, id FROM t WHERE id < 50 ORDER BY id"))
                    .await
                    .unwrap();
                assert!(rows.len() == 50 && rows.iter().all(|r| r.0 == token));
            }
            2 => {
                let row: Option<(i64, i64)> = conn
                    .exec_first("SELECT ?, id FROM t WHERE id = ?", (token, id))
                    .await
                    .unwrap();
                assert_eq!(row, Some((token, id)));
            }
            3 => {
                let row: Option<(i64, i64)> = conn
                    .query_first(format!("SELECT @me, id FROM t WHERE id = {id}"))
                    .await
                    .unwrap();
                assert_eq!(row, Some((me, id)));
            }
            4 => {
                // A transaction of its own row, over and back: its value never changes.
                conn.query_drop("BEGIN").await.unwrap();
                conn.query_drop(format!("UPDATE t SET v = {token} WHERE id = {}", 100 + me))
                    .await
                    .unwrap();
                let sql = format!("SELECT v FROM t WHERE id = {}", 100 + me);
                assert_eq!(conn.query_first(&sql).await.unwrap(), Some(token));
                conn.query_drop("ROLLBACK").await.unwrap();
                assert_eq!(conn.query_first(&sql).await.unwrap(), Some(0_i64));
            }
            5 => {
                let failed = conn
                    .query_drop(format!("SELECT nothing_{token} FROM t WHERE id = {id}"))
                    .await;
                let text = failed.unwrap_err().to_string();
                assert!(text.contains(&format!("nothing_{token}")), "{text}");
            }
            6 => {
                // Leaves in the middle of an answer, without a word.
                let mut rows = conn.query_iter("SELECT * FROM t").await.unwrap();
                let _one: Option<Row> = rows.next().await.unwrap();
                drop(rows);
                drop(conn);
                conn = session(gateway, me).await;
            }
            _ => {
                // Leaves while its statement runs, inside a transaction.
                conn.query_drop("BEGIN").await.unwrap();
                conn.query_drop(format!("UPDATE t SET v = -1 WHERE id = {}", 100 + me))
                    .await
                    .unwrap();
                let slow = conn.query_drop(format!("SELECT SLEEP(5), id FROM t WHERE id = {id}"));
                let _gone = tokio::time::timeout(Duration::from_millis(dice.roll(30)), slow).await;
                drop(conn);
                conn = session(gateway, me).await;
            }
        }
    }
    conn.disconnect().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_over_few_tablet_connections_never_see_each_other() {
    let fixture = Fixture::new(Layout::Modulo(2), 2, &[TABLE_T]).await;
    let rows: Vec<(i64, &str)> = (0..50)
        .chain(100..100 + CLIENTS)
        .map(|id| (id, "0, 0, NULL"))
        .collect();
    fixture.insert("t", &rows).await;
    // Each open transaction keeps a connection on each shard it touched; the rest share what is left.
    let size = usize::try_from(CLIENTS).unwrap() + 2;
    let gateway = Gateway::serve(&fixture.config_with(&format!("{}waiters = 200\n", pool(size))));
    let clients = (0..CLIENTS).map(|me| client(&gateway, me));
    wait::within(
        "the crowd",
        Duration::from_mins(2),
        futures::future::join_all(clients),
    )
    .await;

    // Nothing of those who left is still there: no transaction holds a row, and no statement runs.
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET innodb_lock_wait_timeout = 5").await;
    assert_eq!(answer::ok(&mut conn, "SELECT SUM(v) FROM t").await.single(), "0");
    assert_eq!(
        answer::ok(&mut conn, "UPDATE t SET v = 1").await.affected,
        50 + CLIENTS.unsigned_abs()
    );
    for shard in &fixture.shards {
        wait::until("the shard to be idle", Duration::from_secs(5), || async {
            shard.running().await.is_empty().then_some(())
        })
        .await;
    }
}
