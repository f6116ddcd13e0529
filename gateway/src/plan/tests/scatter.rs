//! SELECTs over several shards: what each shard is sent and how the rows gather.

use super::*;
use crate::route::{Aggregate, GatherBody, KeyColumn, Limit, Monotone, NotMonotone};

fn steps(s: &Session, sql: &str) -> String {
    let bound = s.bind(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    bound
        .gather
        .steps()
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" | ")
}

fn first_text(s: &Session, sql: &str) -> String {
    s.legs(sql)[0].split_once(": ").unwrap().1.to_owned()
}

#[test]
fn plain_rows_are_concatenated_and_the_statement_is_not_touched() {
    let sql = Bytes::from_static(b"SELECT  id, /* all */ g FROM t  ;");
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    let catalog = catalog();
    let keyspace = KeyspaceName::from("shop");
    let input = PlanInput {
        statement: &lexed,
        catalog: &catalog,
        keyspace: Some(&keyspace),
        shard: None,
    };
    let bound = plan(&input)
        .unwrap()
        .bind(&BindInput {
            sql: &sql,
            statement: &lexed,
            params: &[],
            facts: &SessionFacts::default(),
            now: Duration::ZERO,
            charset: "utf8mb4",
            prefer: None,
        })
        .unwrap();
    assert_eq!(bound.legs.len(), 4);
    assert!(
        bound
            .legs
            .iter()
            .all(|l| l.sql.as_ptr() == sql.as_ptr() && l.params == LegParams::All)
    );
    assert!(bound.gather.is_relay());
    assert_eq!(bound.monotone, Monotone::Yes);
}

#[test]
fn a_limit_with_an_offset_is_one_larger_limit_for_the_shards() {
    let s = session("shop");
    for (sql, text, limit) in [
        ("SELECT * FROM t LIMIT 5", "SELECT * FROM t LIMIT 5", (0, 5)),
        (
            "SELECT * FROM t LIMIT 2 OFFSET 3",
            "SELECT * FROM t LIMIT 5",
            (3, 2),
        ),
        ("SELECT * FROM t LIMIT 3, 2", "SELECT * FROM t LIMIT 5", (3, 2)),
        (
            "SELECT * FROM t LIMIT 18446744073709551615 OFFSET 5",
            "SELECT * FROM t LIMIT 18446744073709551615",
            (5, u64::MAX),
        ),
        ("SELECT * FROM t LIMIT 0", "SELECT * FROM t LIMIT 0", (0, 0)),
        (
            "SELECT * FROM t LIMIT 2 OFFSET 3 FOR UPDATE",
            "SELECT * FROM t LIMIT 5 FOR UPDATE",
            (3, 2),
        ),
    ] {
        assert_eq!(first_text(&s, sql), text);
        let bound = s.bind(sql).unwrap();
        assert_eq!(
            bound.gather.limit,
            Some(Limit {
                offset: limit.0,
                count: limit.1
            })
        );
    }
}

#[test]
fn a_prepared_limit_keeps_only_the_parameters_that_still_have_a_place() {
    let s = session("shop").params([9, 3, 2, 8].map(Value::Int));
    let bound = s.bind("SELECT * FROM t WHERE k = ? LIMIT ?, ?").unwrap();
    assert_eq!(&bound.legs[0].sql[..], b"SELECT * FROM t WHERE k = ? LIMIT 5");
    assert_eq!(bound.legs[0].params, LegParams::List([0].into()));
    let bound = s.bind("SELECT * FROM t WHERE k = ? LIMIT ?").unwrap();
    assert_eq!(bound.legs[0].params, LegParams::All);
    assert_eq!(bound.gather.limit, Some(Limit { offset: 0, count: 3 }));
    let negative = session("shop").params([Value::Int(-1)]);
    assert_eq!(negative.shards("SELECT * FROM t LIMIT ?"), "SG2014 1210");
}

#[test]
fn one_shard_does_its_own_limit() {
    let s = session("shop");
    let sql = "SELECT * FROM t WHERE id = 5 ORDER BY g LIMIT 2 OFFSET 3";
    assert_eq!(s.legs(sql), [format!("s1: {sql}")]);
    assert!(s.bind(sql).unwrap().gather.is_relay());
}

#[test]
fn order_keys_are_found_or_appended() {
    let s = session("shop");
    for (sql, text, gather) in [
        (
            "SELECT id, k FROM t ORDER BY k",
            "SELECT id, k FROM t ORDER BY k",
            "merge by column 2 asc",
        ),
        (
            "SELECT id, k FROM t ORDER BY 2 DESC, 1",
            "SELECT id, k FROM t ORDER BY 2 DESC, 1",
            "merge by column 2 desc, column 1 asc",
        ),
        (
            "SELECT id AS k FROM t ORDER BY k",
            "SELECT id AS k FROM t ORDER BY k",
            "merge by column 1 asc",
        ),
        (
            "SELECT v+1 x FROM t ORDER BY x",
            "SELECT v+1 x FROM t ORDER BY x",
            "merge by column 1 asc",
        ),
        (
            "SELECT t.k FROM t ORDER BY k",
            "SELECT t.k FROM t ORDER BY k",
            "merge by column 1 asc",
        ),
        (
            "SELECT g FROM t ORDER BY id DESC",
            "SELECT g, id AS __sg_key_0 FROM t ORDER BY id DESC",
            "merge by hidden 1 desc | strip 1 hidden",
        ),
        (
            "SELECT * FROM t ORDER BY k, t.id LIMIT 3 OFFSET 1",
            "SELECT *, k AS __sg_key_0, t.id AS __sg_key_1 FROM t ORDER BY k, t.id LIMIT 4",
            "merge by hidden 1 asc, hidden 2 asc | limit 3 offset 1 | strip 2 hidden",
        ),
        // The alias `k` is another column, so the qualified one is not it.
        (
            "SELECT id AS k FROM t ORDER BY t.k",
            "SELECT id AS k, t.k AS __sg_key_0 FROM t ORDER BY t.k",
            "merge by hidden 1 asc | strip 1 hidden",
        ),
        (
            "SELECT id FROM t ORDER BY NULL",
            "SELECT id FROM t ORDER BY NULL",
            "concat",
        ),
        (
            "SELECT *, k FROM t ORDER BY k",
            "SELECT *, k, k AS __sg_key_0 FROM t ORDER BY k",
            "merge by hidden 1 asc | strip 1 hidden",
        ),
    ] {
        assert_eq!(first_text(&s, sql), text);
        assert_eq!(steps(&s, sql), gather, "{sql}");
    }
}

#[test]
fn an_ordinal_counts_result_columns_even_behind_a_star() {
    let bound = session("shop").bind("SELECT * FROM t ORDER BY 3").unwrap();
    let GatherBody::Merge(keys) = &bound.gather.body else {
        panic!("{:?}", bound.gather)
    };
    assert_eq!(keys[0].column, KeyColumn::Output(2));
}

#[test]
fn aggregates_alone_combine() {
    use Aggregate::{Count, Max, Min, Sum};
    let s = session("shop");
    let bound = s
        .bind("SELECT COUNT(*), sum(v) total, MIN(k) AS a, MAX(k+1), COUNT(g) FROM t WHERE v > 3")
        .unwrap();
    assert_eq!(
        bound.gather.body,
        GatherBody::Aggregate([Count, Sum, Min, Max, Count].into_iter().collect())
    );
    assert_eq!(bound.monotone, Monotone::No(NotMonotone::Aggregate));
    assert_eq!(
        first_text(&s, "SELECT COUNT(*) FROM t LIMIT 1 OFFSET 1"),
        "SELECT COUNT(*) FROM t LIMIT 2"
    );
}

#[test]
fn only_answers_that_stay_right_without_a_shard_are_monotone() {
    let s = session("shop");
    let monotone = |sql: &str| s.bind(sql).unwrap().monotone;
    assert_eq!(monotone("SELECT * FROM t WHERE k > 3"), Monotone::Yes);
    assert_eq!(monotone("SELECT * FROM t LIMIT 3"), Monotone::Yes);
    assert_eq!(monotone("SELECT * FROM t ORDER BY id"), Monotone::Yes);
    assert_eq!(
        monotone("SELECT * FROM t ORDER BY id LIMIT 3"),
        Monotone::No(NotMonotone::OrderedLimit)
    );
    assert_eq!(
        monotone("SELECT * FROM t LIMIT 3 OFFSET 1"),
        Monotone::No(NotMonotone::Offset)
    );
    assert_eq!(
        monotone("SELECT * FROM t FOR UPDATE"),
        Monotone::No(NotMonotone::LockingRead)
    );
    assert_eq!(
        monotone("DELETE FROM t WHERE k = 1"),
        Monotone::No(NotMonotone::Write)
    );
}

#[test]
fn what_cannot_be_gathered_exactly_says_so_with_a_hint() {
    let s = session("shop");
    for (sql, what) in [
        ("SELECT DISTINCT k FROM t", "SELECT DISTINCT"),
        ("SELECT k, COUNT(*) FROM t GROUP BY k", "GROUP BY"),
        (
            "SELECT /*+ NO_INDEX_MERGE(t) */ DISTINCT k FROM t",
            "SELECT DISTINCT",
        ),
        ("SELECT k FROM t HAVING k > 3", "HAVING"),
        ("SELECT g FROM t ORDER BY 2, k", "ORDER BY this ordinal"),
        (
            "SELECT (SELECT RAND()) r FROM t",
            "a random function inside a subquery",
        ),
        ("SELECT COUNT(*), g FROM t", "aggregates next to other columns"),
        ("SELECT COUNT(*) + 1 FROM t", "an expression over aggregates"),
        ("SELECT IFNULL(SUM(v), 0) FROM t", "an expression over aggregates"),
        ("SELECT AVG(v) FROM t", "AVG"),
        ("SELECT COUNT(DISTINCT v) FROM t", "COUNT(DISTINCT ...)"),
        ("SELECT GROUP_CONCAT(g) FROM t", "GROUP_CONCAT"),
        (
            "SELECT SUM(v) OVER (ORDER BY id) FROM t",
            "an expression over aggregates",
        ),
        (
            "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM t",
            "a window function",
        ),
        ("SELECT SQL_CALC_FOUND_ROWS * FROM t", "SQL_CALC_FOUND_ROWS"),
        ("SELECT id INTO @x FROM t", "SELECT ... INTO"),
        ("SELECT * FROM t ORDER BY k + 1", "ORDER BY an expression"),
        ("SELECT * FROM t ORDER BY RAND()", "ORDER BY an expression"),
        ("SELECT *, v AS k FROM t ORDER BY k", "ORDER BY a name"),
        ("SELECT * FROM t UNION SELECT 1, 2, 3, 4", "UNION"),
        ("SELECT my_function(id) FROM t", "function `my_function`"),
        ("SELECT @a := id FROM t", "assigning a user variable"),
        ("(SELECT * FROM t)", "must live on one shard"),
        ("SELECT * FROM t LIMIT 1 ROWS EXAMINED 5", "not understood"),
        ("SELECT * FROM t WHERE k = 1 OFFSET 1 ROWS", "not understood"),
        (
            "SELECT * FROM t ORDER BY id FETCH FIRST 3 ROWS ONLY",
            "not understood",
        ),
        ("SELECT * FROM t FOR UPDATE SKIP LOCKED LIMIT 1", ""),
    ] {
        if what.is_empty() {
            continue;
        }
        let error = s.error(sql);
        assert_eq!(error.errno(), (1235, *b"42000"), "{sql}: {error}");
        let text = error.to_string();
        assert!(
            text.contains(what) && text.contains("nothing was executed"),
            "{sql}: {text}"
        );
        // The same on one shard is the shard's own business.
        let pinned = sql
            .replace("FROM t", "FROM t WHERE id = 5")
            .replace("WHERE id = 5 WHERE", "WHERE id = 5 AND");
        assert_eq!(s.shards(&pinned), "s1", "{pinned}");
    }
}

#[test]
fn known_functions_of_a_row_may_scatter() {
    check(
        &session("shop"),
        &[
            (
                "SELECT UPPER(g), RAND(), UUID(), IF(k IN (1, 2), CAST(v AS CHAR(5)), COALESCE(g, 'x')) FROM t",
                ALL,
            ),
            (
                "SELECT * FROM t USE INDEX FOR ORDER BY (k) WHERE k BETWEEN 1 AND 5 ORDER BY k",
                ALL,
            ),
            (
                "SELECT * FROM t FORCE INDEX (k) IGNORE INDEX FOR JOIN (a, b) WHERE v = 1",
                ALL,
            ),
            ("SELECT * FROM t PARTITION (p0, p1) AS x WHERE x.k = 1", ALL),
            (
                "SELECT STRAIGHT_JOIN SUBSTRING(g FROM 2), TRIM(BOTH 'x' FROM g), EXTRACT(DAY FROM g) FROM t",
                ALL,
            ),
            ("SELECT DATE_ADD(NOW(), INTERVAL 1 DAY) FROM t", ALL),
            (
                "SELECT (SELECT SUM(o.total) FROM orders o WHERE o.customer_id = c.id) s FROM customers c",
                ALL,
            ),
            // The sum is over the outer query's rows.
            (
                "SELECT (SELECT SUM(c.id) FROM orders o WHERE o.customer_id = c.id) s FROM customers c",
                UNSUPPORTED,
            ),
        ],
    );
}

/// A shard shows how it would run its part; all shards' parts are alike.
#[test]
fn explain_goes_to_one_shard_of_its_statement() {
    let s = session("shop");
    for (sql, leg) in [
        (
            "EXPLAIN SELECT * FROM t WHERE id = 6",
            "s2: EXPLAIN SELECT * FROM t WHERE id = 6",
        ),
        (
            "EXPLAIN SELECT g FROM t ORDER BY k",
            "s0: EXPLAIN SELECT g, k AS __sg_key_0 FROM t ORDER BY k",
        ),
        (
            "DESC DELETE FROM t WHERE id IN (2, 3)",
            "s2: DESC DELETE FROM t WHERE id IN (2, 3)",
        ),
        (
            "EXPLAIN INSERT INTO t (id) VALUES (3)",
            "s3: EXPLAIN INSERT INTO t (id) VALUES (3)",
        ),
    ] {
        assert_eq!(s.legs(sql), [leg]);
        let bound = s.bind(sql).unwrap();
        assert!(bound.gather.is_relay() && !bound.class.is_write());
    }
    assert_eq!(s.shards("EXPLAIN SELECT k FROM t GROUP BY k"), UNSUPPORTED);
    assert_eq!(s.shards("ANALYZE SELECT * FROM t"), UNSUPPORTED);
    assert_eq!(s.shards("ANALYZE UPDATE t SET v = 1 WHERE id = 1"), "s1");
    assert!(
        s.bind("ANALYZE UPDATE t SET v = 1 WHERE id = 1")
            .unwrap()
            .class
            .is_write()
    );
}
