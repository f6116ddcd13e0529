//! The same everyday work over four MariaDB servers, with key ranges and with shards cut by hand.

use mysql_async::Params;
use shardgate_tests::{Fixture, Layout, Order, Pair, answer};

const CUSTOMERS: &str = "CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(40) NOT NULL, \
    balance DECIMAL(10,2), visits INT UNSIGNED NOT NULL, created_at DATETIME NOT NULL)";
const ROWS: i64 = 400;

async fn filled(layout: Layout) -> (Fixture, shardgate_tests::Gateway, Pair) {
    let fixture = Fixture::new(layout, 4, &[CUSTOMERS]).await;
    let gateway = fixture.gateway();
    let mut pair = fixture.pair(&gateway).await;
    for first in (1..=ROWS).step_by(100) {
        let rows: Vec<String> = (first..first + 100)
            .map(|id| format!("({id}, 'name {id}', {id}.25, {}, '2024-01-01 00:00:00')", id % 7))
            .collect();
        let insert = format!("INSERT INTO customers VALUES {}", rows.join(", "));
        assert_eq!(pair.both(&insert).await.unwrap().affected, 100);
    }
    (fixture, gateway, pair)
}

async fn everyday(layout: Layout) {
    let (fixture, _gateway, mut pair) = filled(layout).await;
    each_row_lies_on_one_shard(&fixture).await;
    reads(&mut pair).await;
    writes(&mut pair).await;
    transactions(&mut pair).await;
    each_row_lies_on_one_shard(&fixture).await;
}

/// The shards together hold the reference's rows, each once, and no shard is left empty.
async fn each_row_lies_on_one_shard(fixture: &Fixture) {
    let sql = "SELECT * FROM customers ORDER BY id";
    let mut together = Vec::new();
    for shard in &fixture.shards {
        let rows = answer::ok(&mut shard.conn().await, sql).await.cells();
        assert!(!rows.is_empty(), "{} is empty", shard.name);
        together.extend(rows);
    }
    together.sort_by_key(|row| row[0].parse::<i64>().unwrap());
    let all = answer::ok(&mut fixture.reference.conn().await, sql).await.cells();
    assert_eq!(together, all);
}

async fn reads(pair: &mut Pair) {
    let free = [
        "SELECT * FROM customers WHERE id = 42",
        "SELECT * FROM customers WHERE id = '42'",
        "SELECT name FROM customers WHERE id = 42 AND visits = 0",
        "SELECT name FROM customers WHERE id IN (1, 2, 3, 4, 5, 6, 7, 8)",
        "SELECT id FROM customers WHERE id = 1 OR id = 399",
        "SELECT * FROM customers",
        "SELECT c.name AS n, c.balance * 2 AS twice FROM customers c WHERE c.visits > 4",
        "SELECT id FROM customers WHERE id = -1",
    ];
    for sql in free {
        pair.same(sql, Order::Free).await;
    }
    let fixed = [
        "SELECT * FROM customers ORDER BY id",
        "SELECT name FROM customers ORDER BY id DESC LIMIT 5",
        "SELECT name, visits FROM customers ORDER BY visits DESC, id LIMIT 7 OFFSET 3",
        "SELECT COUNT(*) FROM customers",
        "SELECT COUNT(*) AS n, COUNT(balance), SUM(visits), MIN(id), MAX(visits) FROM customers",
        "SELECT COUNT(*), SUM(visits), MIN(id), MAX(id) FROM customers WHERE id < 0",
        "SELECT SUM(visits) FROM customers WHERE id IN (1, 2, 3)",
    ];
    for sql in fixed {
        pair.same(sql, Order::Fixed).await;
    }
    pair.same_prepared(
        "SELECT * FROM customers WHERE id = ?",
        Params::from((77,)),
        Order::Free,
    )
    .await;
    pair.same_prepared(
        "SELECT id FROM customers WHERE visits >= ? ORDER BY id LIMIT ?",
        Params::from((3, 10)),
        Order::Fixed,
    )
    .await;
}

async fn writes(pair: &mut Pair) {
    let statements = [
        "UPDATE customers SET visits = visits + 1 WHERE id = 10",
        "UPDATE customers SET balance = NULL WHERE id IN (11, 12, 13, 14)",
        "UPDATE customers SET visits = 100 WHERE visits = 6",
        "DELETE FROM customers WHERE id = 20",
        "DELETE FROM customers WHERE id IN (21, 22, 23)",
        "REPLACE INTO customers VALUES (10, 'ten', 1.00, 1, '2024-01-01 00:00:00')",
        "INSERT INTO customers (visits, created_at, name, id) VALUES (1, '2024-01-01', 'late', 1001)",
        "INSERT INTO customers VALUES (1001, 'again', 0, 0, '2024-01-01')",
        "SELECT missing FROM customers WHERE id = 1",
        "SELECT 1 FROM",
    ];
    for sql in statements {
        let _alike = pair.both(sql).await;
        pair.same("SELECT * FROM customers ORDER BY id", Order::Fixed)
            .await;
    }
}

async fn transactions(pair: &mut Pair) {
    for end in ["ROLLBACK", "COMMIT"] {
        let statements = [
            "BEGIN",
            "UPDATE customers SET name = 'one' WHERE id = 1",
            "SAVEPOINT here",
            "UPDATE customers SET name = 'all' WHERE visits > 2",
            "ROLLBACK TO here",
            "DELETE FROM customers WHERE id IN (30, 31, 32, 33, 34)",
            end,
        ];
        for sql in statements {
            pair.both(sql).await.unwrap();
            pair.same("SELECT * FROM customers ORDER BY id", Order::Fixed)
                .await;
        }
    }
}

#[tokio::test]
async fn key_ranges_over_four_servers_answer_as_one_server() {
    everyday(Layout::KeyRanges(4)).await;
}

#[tokio::test]
async fn shards_chosen_by_modulo_over_four_servers_answer_as_one_server() {
    everyday(Layout::Modulo(4)).await;
}

#[tokio::test]
async fn each_unsupported_scatter_says_so() {
    let (_fixture, _gateway, mut pair) = filled(Layout::Modulo(4)).await;
    let unsupported = [
        "SELECT visits, COUNT(*) FROM customers GROUP BY visits",
        "SELECT DISTINCT visits FROM customers",
        "SELECT AVG(visits) FROM customers",
        "SELECT COUNT(DISTINCT visits) FROM customers",
        "SELECT id FROM customers ORDER BY name",
        "SELECT visits FROM customers HAVING visits > 2",
        "SELECT id FROM customers UNION SELECT visits FROM customers",
        "SELECT a.id FROM customers a JOIN customers b ON a.visits = b.visits",
        "SELECT id FROM customers WHERE visits = (SELECT MAX(visits) FROM customers)",
        "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM customers",
    ];
    for sql in unsupported {
        let refusal = answer::refused(&mut pair.gateway, sql).await;
        assert_eq!(
            (refusal.errno, refusal.state.as_str()),
            (1235, "42000"),
            "{sql}: {refusal}"
        );
        assert!(refusal.message.contains("SG"), "{sql}: {refusal}");
    }
    pair.same("SELECT COUNT(*) FROM customers", Order::Fixed).await;
}
