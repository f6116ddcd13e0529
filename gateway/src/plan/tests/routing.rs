//! Which shards a condition allows. Each hazard here would lose rows if it were read wrongly.

use super::*;

#[test]
fn equality_and_in_pick_shards() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM t WHERE id = 5", "s1"),
            ("SELECT * FROM t WHERE 6 = id", "s2"),
            ("SELECT * FROM t WHERE t.id = 7", "s3"),
            ("SELECT * FROM t WHERE shop.t.id = 7", "s3"),
            ("SELECT * FROM `t` AS x WHERE x.`ID` = 4", "s0"),
            ("SELECT * FROM t WHERE id IN (1, 5, 9)", "s1"),
            ("SELECT * FROM t WHERE id IN (1, 2)", "s1 s2"),
            ("SELECT * FROM t WHERE (id = 1)", "s1"),
            ("SELECT * FROM t WHERE ((id IN (1)) AND ((k > 3)))", "s1"),
            ("SELECT * FROM t WHERE k = 3 AND id = 1 AND v = 2", "s1"),
            ("SELECT * FROM t WHERE id = '5'", "s1"),
            ("SELECT * FROM t WHERE id = 5.0", "s1"),
            ("SELECT * FROM t", ALL),
            ("SELECT * FROM t WHERE k = 5", ALL),
        ],
    );
}

#[test]
fn sets_of_shards_meet_and_unite() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM t WHERE id = 1 AND id = 5", "s1"),
            ("SELECT * FROM t WHERE id IN (1, 2) AND id IN (2, 3)", "s2"),
            ("SELECT * FROM t WHERE id = 1 OR id = 2", "s1 s2"),
            ("SELECT * FROM t WHERE id = 1 OR id = 2 AND k = 3", "s1 s2"),
            ("SELECT * FROM t WHERE (id = 1 OR id = 2) AND id IN (2, 3)", "s2"),
            ("SELECT * FROM t WHERE id = 1 && k = 2 || id = 3", "s1 s3"),
        ],
    );
}

#[test]
fn what_matches_nothing_goes_anywhere_and_still_answers() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM t WHERE id = NULL", "any"),
            ("SELECT COUNT(*) FROM t WHERE id = 1 AND id = 2", "any"),
            ("SELECT * FROM t WHERE id IN (NULL)", "any"),
            ("SELECT * FROM t WHERE id IN (NULL, 3)", "s3"),
            // A server may find rows by the rounded value.
            ("SELECT * FROM t WHERE id = 1.5", ALL),
            ("SELECT * FROM t WHERE id IN (1, 1.5)", ALL),
            ("SELECT * FROM t WHERE 1 = 0", "any"),
            ("SELECT * FROM t WHERE FALSE", "any"),
            ("SELECT * FROM t WHERE 0 OR id = 2", "s2"),
            ("SELECT * FROM t WHERE 1 = 1 AND id = 2", "s2"),
            ("SELECT * FROM t WHERE 1", ALL),
        ],
    );
}

#[test]
fn a_term_that_may_match_elsewhere_scatters() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM t WHERE id = 1 OR k = 2", ALL),
            ("SELECT * FROM t WHERE NOT id = 1", ALL),
            ("SELECT * FROM t WHERE NOT (id = 1)", ALL),
            ("SELECT * FROM t WHERE ! (id = 1)", ALL),
            ("SELECT * FROM t WHERE id <> 1", ALL),
            ("SELECT * FROM t WHERE id <=> 1", ALL),
            ("SELECT * FROM t WHERE id = 1 IS NULL", ALL),
            ("SELECT * FROM t WHERE id = 1 = 0", ALL),
            ("SELECT * FROM t WHERE 0 = id = 1", ALL),
            ("SELECT * FROM t WHERE id = 1 + 1", ALL),
            ("SELECT * FROM t WHERE id = 1 | 2", ALL),
            ("SELECT * FROM t WHERE id = 1 XOR k = 1", ALL),
            ("SELECT * FROM t WHERE id NOT IN (1)", ALL),
            ("SELECT * FROM t WHERE id IN (1) IS FALSE", ALL),
            ("SELECT * FROM t WHERE id IN (1, k)", ALL),
            ("SELECT * FROM t WHERE (id, k) IN ((1, 2))", ALL),
            ("SELECT * FROM t WHERE id BETWEEN 1 AND id = 1", ALL),
            ("SELECT * FROM t WHERE k BETWEEN 1 AND 5 AND id = 1", "s1"),
            ("SELECT * FROM t WHERE k NOT BETWEEN 1 AND 5 AND id = 1", "s1"),
            ("SELECT * FROM t WHERE CASE WHEN k = 1 THEN v AND id = 1 END", ALL),
            (
                "SELECT * FROM t WHERE CASE k WHEN 1 THEN 2 END = 2 AND id = 1",
                "s1",
            ),
            ("SELECT * FROM t WHERE id = @a", ALL),
            ("SELECT * FROM t WHERE id = k", ALL),
            ("SELECT * FROM t WHERE id", ALL),
            ("SELECT * FROM t WHERE id = -1", ALL),
            ("SELECT * FROM t WHERE id = 0x05", ALL),
            ("SELECT * FROM t WHERE id = b'101'", ALL),
            ("SELECT * FROM t WHERE id = '5' '1'", ALL),
            ("SELECT * FROM t WHERE id = _latin1'5'", ALL),
            ("SELECT * FROM t WHERE id LIKE 5", ALL),
        ],
    );
}

/// Under this mode the bars are an operator on strings, not OR: `id = (1 || k)`.
#[test]
fn bars_are_or_only_where_the_sql_mode_says_so() {
    let sql = "SELECT * FROM t WHERE id = 1 || id = 2";
    assert_eq!(session("shop").shards(sql), "s1 s2");
    assert_eq!(session("shop").mode("PIPES_AS_CONCAT").shards(sql), ALL);
}

/// An alias in the select list is not seen by WHERE.
#[test]
fn an_alias_does_not_shadow_a_column_in_where() {
    check(
        &session("shop"),
        &[
            ("SELECT k AS id FROM t WHERE id = 5", "s1"),
            ("SELECT id AS k FROM t WHERE k = 5", ALL),
            ("SELECT k AS id FROM t HAVING id = 5", UNSUPPORTED),
        ],
    );
}

#[test]
fn parameters_route_by_their_values() {
    let sql = "SELECT * FROM t WHERE id = ?";
    assert_eq!(session("shop").params([Value::Int(6)]).shards(sql), "s2");
    assert_eq!(session("shop").params([Value::Null]).shards(sql), "any");
    assert_eq!(session("shop").params([Value::from("7")]).shards(sql), "s3");
    let two = "SELECT * FROM t WHERE k = ? AND id IN (?, ?)";
    assert_eq!(
        session("shop").params([1, 4, 5].map(Value::Int)).shards(two),
        "s0 s1"
    );
    let mut unknown = session("shop");
    unknown.params = vec![None];
    assert_eq!(
        unknown.shards(sql),
        ALL,
        "a value that is not known exactly restricts nothing"
    );
}

#[test]
fn the_last_insert_id_routes() {
    let s = session("shop");
    assert_eq!(
        s.legs("SELECT * FROM t WHERE id = LAST_INSERT_ID()"),
        ["s3: SELECT * FROM t WHERE id = CAST(7 AS UNSIGNED)"]
    );
}

#[test]
fn key_ranges_hold_hashed_ids() {
    check(
        &session("ranges"),
        &[
            ("SELECT * FROM t WHERE id = 1", "-40"),
            ("SELECT * FROM t WHERE id = 3", "40-80"),
            ("SELECT * FROM t WHERE id = 4", "c0-"),
            ("SELECT * FROM t WHERE id IN (1, 2, 3)", "-40 40-80"),
            ("SELECT * FROM t", "-40 40-80 80-c0 c0-"),
        ],
    );
}

#[test]
fn inner_joins_on_sharding_columns_stay_together() {
    check(
        &session("shop"),
        &[
            (
                "SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = 5",
                "s1",
            ),
            (
                "SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.customer_id = 5",
                "s1",
            ),
            (
                "SELECT * FROM customers c, orders o WHERE o.customer_id = c.id AND c.id = 5",
                "s1",
            ),
            (
                "SELECT * FROM orders o JOIN parts l USING (customer_id) WHERE customer_id = 6",
                "s2",
            ),
            (
                "SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id",
                ALL,
            ),
            (
                "SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = 1 OR o.customer_id = 2",
                "s1 s2",
            ),
            (
                "SELECT * FROM customers c JOIN countries n ON n.code = c.name",
                ALL,
            ),
            (
                "SELECT * FROM customers c JOIN countries n ON n.code = c.name WHERE c.id = 3",
                "s3",
            ),
            ("SELECT * FROM countries", "any"),
            // Not on the sharding columns: each row may have its partner anywhere.
            (
                "SELECT * FROM customers c JOIN orders o ON o.order_id = c.id",
                APART,
            ),
            (
                "SELECT * FROM customers c JOIN orders o ON o.order_id = c.id WHERE c.id = 5",
                APART,
            ),
            (
                "SELECT * FROM customers c JOIN orders o ON o.customer_id = c.id OR o.order_id = 1",
                APART,
            ),
            ("SELECT * FROM customers c, orders o", APART),
            // Each pinned to the same shard by value.
            (
                "SELECT * FROM customers c, orders o WHERE c.id = 5 AND o.customer_id = 9",
                "s1",
            ),
            (
                "SELECT * FROM customers c, orders o WHERE c.id = 5 AND o.customer_id = 6",
                APART,
            ),
            (
                "SELECT * FROM customers c, orders o WHERE c.id = 5 OR o.customer_id = 5",
                APART,
            ),
            (
                "SELECT * FROM t a JOIN t b ON a.id = b.id JOIN t c ON b.id = c.id WHERE c.id = 2",
                "s2",
            ),
        ],
    );
}

/// A bare name in ON is a column of that join's operands, whatever other tables have one of that name.
#[test]
fn bare_names_in_on_are_of_its_operands() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM orders JOIN customers ON customer_id = id", ALL),
            (
                "SELECT * FROM orders JOIN customers ON customer_id = id WHERE customer_id = 5",
                "s1",
            ),
            (
                "SELECT * FROM orders JOIN customers ON customer_id = id JOIN t ON t.id = orders.customer_id",
                ALL,
            ),
            (
                "SELECT * FROM orders o JOIN customers ON customer_id = id JOIN t ON t.v = o.total",
                APART,
            ),
            (
                "SELECT * FROM orders o JOIN customers ON id = 5 JOIN t ON o.customer_id = t.id",
                APART,
            ),
            (
                "SELECT * FROM (SELECT 5 AS id, 4 AS n) d JOIN orders o ON d.n = o.total AND id = 5 \
                 JOIN t ON t.id = o.customer_id",
                ALL,
            ),
        ],
    );
}

/// Behind USING and NATURAL a bare name is both sides' column, which only columns that are compared as they are mapped are.
#[test]
fn a_column_of_two_sides_is_known_only_if_both_are() {
    check(
        &session("shop"),
        &[
            (
                "SELECT * FROM orders JOIN parts USING (customer_id) WHERE customer_id = 5",
                "s1",
            ),
            (
                "SELECT * FROM customers JOIN t USING (id) JOIN numbered USING (id) WHERE id = 6",
                "s2",
            ),
            ("SELECT * FROM customers NATURAL JOIN t WHERE id = 5", "s1"),
            (
                "SELECT * FROM (SELECT 5 AS id) r JOIN t USING (id) WHERE id = '5'",
                ALL,
            ),
            (
                "SELECT * FROM (SELECT 5 AS id) r NATURAL JOIN t WHERE id = '5'",
                ALL,
            ),
            (
                "SELECT * FROM (SELECT 5 AS id) r JOIN t USING (id) JOIN customers USING (id)",
                APART,
            ),
        ],
    );
}

/// Whether `T` is `t` is the server's affair.
#[test]
fn aliases_that_differ_in_case_are_not_taken_for_each_other() {
    check(
        &session("shop"),
        &[
            (
                "SELECT c.id, (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE c.id = 5",
                "s1",
            ),
            (
                "SELECT c.id, (SELECT COUNT(*) FROM t C WHERE c.id = 5) FROM customers c WHERE c.id = 5",
                APART,
            ),
        ],
    );
}

/// The ON of a LEFT JOIN does not restrict the left table: rows without a partner are answered too.
#[test]
fn outer_joins_restrict_only_the_side_that_may_be_missing() {
    check(
        &session("shop"),
        &[
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND c.id = 5",
                ALL,
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.customer_id = 5",
                ALL,
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.id = 5",
                "s1",
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
                ALL,
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = 5 WHERE c.id = 9",
                "s1",
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = 5 WHERE c.id = 6",
                APART,
            ),
            (
                "SELECT * FROM customers c LEFT JOIN orders o ON c.id = 5 WHERE c.id = 5",
                APART,
            ),
            (
                "SELECT * FROM customers c RIGHT JOIN orders o ON o.customer_id = c.id WHERE o.customer_id = 5",
                "s1",
            ),
            (
                "SELECT * FROM customers c RIGHT JOIN orders o ON o.customer_id = c.id AND o.customer_id = 5",
                ALL,
            ),
            (
                "SELECT * FROM orders o LEFT JOIN parts l USING (customer_id) WHERE o.customer_id = 5",
                "s1",
            ),
            // Unqualified behind an outer USING, the column is whichever side has a row.
            (
                "SELECT * FROM orders o RIGHT JOIN parts l USING (customer_id) WHERE customer_id = 5",
                ALL,
            ),
            // A copy on every shard with partners on one: each shard would answer it with NULLs.
            (
                "SELECT * FROM countries n LEFT JOIN customers c ON c.name = n.code",
                APART,
            ),
            (
                "SELECT * FROM countries n LEFT JOIN customers c ON c.id = 5",
                "s1",
            ),
        ],
    );
}

#[test]
fn subqueries_stay_with_the_row_they_are_asked_for() {
    check(
        &session("shop"),
        &[
            (
                "SELECT * FROM customers c WHERE c.id = 5 AND EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
                "s1",
            ),
            (
                "SELECT * FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
                ALL,
            ),
            (
                "SELECT c.id, (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c",
                ALL,
            ),
            (
                "SELECT * FROM customers WHERE id = 5 AND id IN (SELECT customer_id FROM orders WHERE customer_id = 9)",
                "s1",
            ),
            (
                "SELECT * FROM customers WHERE id IN (SELECT customer_id FROM orders)",
                APART,
            ),
            (
                "SELECT * FROM customers WHERE id = 5 AND id IN (SELECT customer_id FROM orders)",
                APART,
            ),
            ("SELECT * FROM (SELECT * FROM t WHERE id = 6) x", "s2"),
            ("SELECT * FROM (SELECT * FROM t) x WHERE x.id = 6", APART),
            (
                "SELECT * FROM t WHERE id = 1 UNION SELECT * FROM t WHERE id = 5",
                "s1",
            ),
            (
                "SELECT * FROM t WHERE id = 1 UNION SELECT * FROM t WHERE id = 2",
                APART,
            ),
            (
                "(SELECT * FROM t WHERE id = 1) UNION ALL (SELECT * FROM t WHERE id = 5) ORDER BY 1 LIMIT 1",
                "s1",
            ),
            ("WITH x AS (SELECT * FROM t WHERE id = 3) SELECT * FROM x", "s3"),
            ("WITH x AS (SELECT * FROM t) SELECT * FROM x", APART),
            // Inside its own body the name still is the table's.
            ("WITH t AS (SELECT * FROM t WHERE id = 3) SELECT * FROM t", "s3"),
            ("WITH t AS (SELECT * FROM t) SELECT * FROM t WHERE id = 3", APART),
            (
                "WITH RECURSIVE r AS (SELECT id FROM t WHERE id = 3 UNION ALL SELECT id + 1 FROM r) SELECT * FROM r",
                "s3",
            ),
            (
                "SELECT * FROM t WHERE id = 2 AND k IN (WITH t AS (SELECT 1 AS x) SELECT x FROM t)",
                "s2",
            ),
            (
                "SELECT (WITH x AS (SELECT 1 AS a) SELECT a FROM x), y.* FROM x y",
                "SG2003 1146",
            ),
            // An inner condition on the outer row does not restrict the inner table.
            (
                "SELECT * FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE c.id = 5)",
                APART,
            ),
            (
                "SELECT 1 FROM customers WHERE id = 2 AND (SELECT MAX(v) FROM t) > 3",
                APART,
            ),
        ],
    );
}

#[test]
fn text_next_to_an_integer_key_is_read_as_the_server_does() {
    check(
        &session("shop"),
        &[
            ("SELECT * FROM t WHERE id = '5abc'", ALL),
            ("SELECT * FROM t WHERE id = ''", ALL),
            ("SELECT * FROM t WHERE id = '9223372036854775808'", ALL),
        ],
    );
}

#[test]
fn unreadable_clauses_are_refused_where_rows_are_divided_and_passed_where_they_are_not() {
    let odd = "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$')) j";
    assert_eq!(session("shop").shards(odd), "SG2002 1235");
    assert_eq!(session("lookup").legs(odd), [format!("-: {odd}")]);
    assert_eq!(session("shop").target("s2").legs(odd), [format!("s2: {odd}")]);
}

/// Deep nesting must neither overflow the stack nor take quadratic time.
#[test]
fn deeply_nested_statements_are_planned_or_refused() {
    let deep = |n: usize| format!("SELECT * FROM t WHERE {}id = 1{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(session("shop").shards(&deep(20)), "s1");
    assert_eq!(session("shop").shards(&deep(20_000)), ALL);
    let joins = format!("SELECT * FROM {}t{}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(session("shop").shards(&joins), "SG2002 1235");
    let many = format!("SELECT * FROM t{}", ", t".repeat(20_000));
    assert_eq!(session("shop").shards(&many), "SG2002 1235");
}
