//! INSERT, UPDATE, DELETE.

use super::*;

#[test]
fn rows_go_to_their_shards_in_their_own_bytes() {
    let s = session("shop");
    assert_eq!(
        s.legs("INSERT  INTO t (k, id) VALUES (10, 1),( 20 ,2 ), (30,5) ON DUPLICATE KEY UPDATE v = v + 1"),
        [
            "s1: INSERT  INTO t (k, id) VALUES (10, 1), (30,5) ON DUPLICATE KEY UPDATE v = v + 1",
            "s2: INSERT  INTO t (k, id) VALUES ( 20 ,2 ) ON DUPLICATE KEY UPDATE v = v + 1",
        ]
    );
    for (sql, shards) in [
        ("INSERT INTO t VALUES (5, 1, 2, 'x')", "s1"),
        ("INSERT t (ID) VALUE (6)", "s2"),
        ("REPLACE INTO t SET k = 3, id = 7", "s3"),
        ("INSERT IGNORE INTO shop.t (t.id) VALUES ('8')", "s0"),
        ("INSERT INTO t (id) VALUES (1), (5), (9)", "s1"),
        ("INSERT INTO t (id) VALUES (LAST_INSERT_ID())", "s3"),
        ("INSERT INTO numbered (id, n) VALUES (1, 5)", "s1"),
        (
            "INSERT INTO t (id, k) SELECT 5, total FROM orders WHERE customer_id = 9",
            "s1",
        ),
        (
            "INSERT INTO t (id, k) SELECT 5, total FROM orders WHERE customer_id = 6",
            APART,
        ),
        ("INSERT INTO t (id, k) SELECT 5, total FROM orders", APART),
        (
            "INSERT INTO t (id, k) SELECT customer_id, total FROM orders WHERE customer_id = 5",
            "SG2011 1235",
        ),
        ("INSERT INTO t SELECT * FROM t", UNSUPPORTED),
        (
            "INSERT INTO t (id, k) VALUES (5, (SELECT MAX(total) FROM orders WHERE customer_id = 1))",
            "s1",
        ),
        (
            "INSERT INTO t (id, k) VALUES (5, (SELECT MAX(total) FROM orders))",
            APART,
        ),
    ] {
        assert_eq!(s.shards(sql), shards, "{sql}");
    }
}

#[test]
fn parameters_go_with_their_rows() {
    let s = session("shop").params([1, 10, 2, 20, 5, 50, 7].map(Value::Int));
    let bound = s
        .bind("INSERT INTO t (id, k) VALUES (?, ?), (?, ?), (?, ?) ON DUPLICATE KEY UPDATE v = ?")
        .unwrap();
    let params: Vec<_> = bound
        .legs
        .iter()
        .map(|l| (l.shard.shard.as_str(), l.params.clone()))
        .collect();
    assert_eq!(
        params,
        [
            ("s1", LegParams::List([0, 1, 4, 5, 6].into())),
            ("s2", LegParams::List([2, 3, 6].into()))
        ]
    );
    assert!(bound.multi_shard_write);
    assert_eq!(bound.insert_id_leg, 0, "the last row's leg tells the insert id");
}

#[test]
fn a_row_whose_place_is_not_certain_is_refused() {
    check(
        &session("shop"),
        &[
            ("INSERT INTO t (k) VALUES (1)", "SG2007 1105"),
            ("INSERT INTO t () VALUES ()", "SG2007 1105"),
            ("INSERT INTO t SET k = 1", "SG2007 1105"),
            ("INSERT INTO t (id) VALUES (NULL)", "SG2010 1105"),
            ("INSERT INTO t (id) VALUES (DEFAULT)", "SG2011 1235"),
            ("INSERT INTO t (id) VALUES (1 + 1)", "SG2011 1235"),
            ("INSERT INTO t (id) VALUES ('abc')", "SG2010 1105"),
            ("INSERT INTO t (id, k) VALUES (1)", "SG2013 1136"),
            ("INSERT INTO t VALUES (1, 2)", "SG2013 1136"),
            (
                "INSERT INTO t (id, k) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = 3",
                "SG2008 1235",
            ),
            ("INSERT INTO numbered (id) VALUES (1)", "SG2009 1235"),
            ("INSERT INTO numbered (id, n) VALUES (1, NULL)", "SG2009 1235"),
            ("INSERT INTO numbered (id, n) VALUES (1, 0)", "SG2009 1235"),
            ("INSERT INTO numbered VALUES (1, DEFAULT)", "SG2009 1235"),
            ("INSERT INTO t (id) VALUES (1), (2) RETURNING id", UNSUPPORTED),
            ("INSERT INTO t (id, k) VALUES (1, f()), (2, 3)", UNSUPPORTED),
            ("INSERT INTO countries VALUES ('de')", UNSUPPORTED),
            ("INSERT INTO t (id) VALUES (1) /*!50000 , (2) */", UNSUPPORTED),
        ],
    );
    assert_eq!(
        session("shop")
            .mode("NO_AUTO_VALUE_ON_ZERO")
            .shards("INSERT INTO numbered VALUES (1, 0)"),
        "s1"
    );
}

#[test]
fn updates_and_deletes_go_where_their_rows_are() {
    check(
        &session("shop"),
        &[
            ("UPDATE t SET v = v + 1 WHERE id = 5", "s1"),
            (
                "UPDATE LOW_PRIORITY t AS x SET x.v = 1 WHERE x.id IN (1, 2)",
                "s1 s2",
            ),
            ("UPDATE t SET v = 1", ALL),
            ("DELETE FROM t WHERE id = 6", "s2"),
            ("DELETE FROM t AS x WHERE x.id = 6", "s2"),
            ("DELETE QUICK FROM t WHERE k = 1", ALL),
            ("DELETE FROM t WHERE id = 5 ORDER BY k LIMIT 1", "s1"),
            ("DELETE FROM t WHERE k = 5 LIMIT 1", UNSUPPORTED),
            ("UPDATE t SET v = 1 WHERE k = 5 ORDER BY id LIMIT 1", UNSUPPORTED),
            ("UPDATE t SET id = 5 WHERE id = 5", "SG2008 1235"),
            ("UPDATE t x SET k = 1, x.ID = 2", "SG2008 1235"),
            (
                "UPDATE customers c JOIN orders o ON o.customer_id = c.id SET o.total = 1 WHERE c.id = 3",
                "s3",
            ),
            (
                "UPDATE customers c JOIN orders o ON o.customer_id = c.id SET o.total = 1",
                UNSUPPORTED,
            ),
            (
                "UPDATE customers c JOIN orders o ON o.customer_id = c.id SET o.customer_id = 1 WHERE c.id = 3",
                "SG2008 1235",
            ),
            (
                "DELETE c, o FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = 3",
                "s3",
            ),
            (
                "DELETE FROM c, o USING customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = 3",
                "s3",
            ),
            (
                "DELETE c FROM customers c JOIN orders o ON o.customer_id = c.id",
                UNSUPPORTED,
            ),
            (
                "UPDATE t SET v = (SELECT MAX(total) FROM orders) WHERE id = 1",
                APART,
            ),
            ("UPDATE t SET v = f(k)", UNSUPPORTED),
            ("DELETE FROM t WHERE k = 1 RETURNING id", UNSUPPORTED),
            ("UPDATE countries SET code = 'x'", UNSUPPORTED),
            ("DELETE FROM t WHERE id = 1 OR NOT id = 2", ALL),
        ],
    );
    let bound = session("shop").bind("UPDATE t SET v = 1").unwrap();
    assert!(bound.multi_shard_write && bound.class.is_write());
    assert!(
        !session("shop")
            .bind("UPDATE t SET v = 1 WHERE id = 1")
            .unwrap()
            .multi_shard_write
    );
}

#[test]
fn locking_reads_are_known_as_such() {
    use crate::route::StatementClass;
    let class = |sql: &str| session("shop").bind(sql).unwrap().class;
    assert_eq!(class("SELECT * FROM t FOR UPDATE"), StatementClass::LockingRead);
    assert_eq!(
        class("SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE"),
        StatementClass::LockingRead
    );
    assert_eq!(class("SELECT * FROM t"), StatementClass::Read);
}

/// The work must grow with the statement, not with its square.
#[test]
fn large_inserts_are_divided_in_linear_time() {
    use std::fmt::Write;
    let mut sql = String::from("INSERT INTO t (id, k, v) VALUES ");
    for id in 0..30_000 {
        write!(
            sql,
            "{}({id}, ?, LAST_INSERT_ID())",
            if id == 0 { "" } else { "," }
        )
        .unwrap();
    }
    let s = session("shop").params(std::iter::repeat_n(Value::Int(1), 30_000));
    let bound = s.bind(&sql).unwrap();
    let kept: usize = bound
        .legs
        .iter()
        .map(|l| match &l.params {
            LegParams::List(list) => list.len(),
            LegParams::All => 0,
        })
        .sum();
    assert_eq!((bound.legs.len(), kept), (4, 30_000));
}
