use proptest::prelude::*;

use super::{Digest, Fingerprint};
use crate::{LexOptions, LiteralClass, lex};

fn of(sql: &str) -> Fingerprint {
    Fingerprint::of(&lex(sql.as_bytes(), &LexOptions::default()).unwrap())
}

fn digest(sql: &str) -> String {
    Digest::of(&lex(sql.as_bytes(), &LexOptions::default()).unwrap()).text
}

#[test]
fn statements_that_differ_in_values_share_a_key() {
    for (left, right) in [
        (
            "SELECT a FROM t WHERE id = 1",
            "select  a FROM t /* c */ WHERE id=2",
        ),
        (
            "SELECT a FROM t WHERE b = 'x' LIMIT 5, 10",
            "SELECT a FROM t WHERE b = 'y''z' LIMIT 1, 2",
        ),
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (2, \"b\")"),
        (
            "UPDATE t SET a = 1.5 WHERE b IN (1, 2)",
            "UPDATE t SET a = 2.5 WHERE b IN (3, 4)",
        ),
        ("SELECT a + 1 AS b FROM t", "SELECT a + 2 AS b FROM t"),
        (
            "SELECT a FROM (SELECT b FROM u WHERE c = 1) x",
            "SELECT a FROM (SELECT b FROM u WHERE c = 2) x",
        ),
        (
            "SELECT COUNT(*) FROM t HAVING COUNT(*) > 1",
            "SELECT COUNT(*) FROM t HAVING COUNT(*) > 2",
        ),
        (
            "SELECT a FROM t WHERE b = YEAR(3)",
            "SELECT a FROM t WHERE b = YEAR(4)",
        ),
    ] {
        assert_eq!(of(left), of(right), "{left} and {right}");
    }
}

#[test]
fn a_value_that_is_syntax_or_names_a_column_is_in_the_key() {
    for (left, right) in [
        ("SELECT a, b FROM t ORDER BY 1", "SELECT a, b FROM t ORDER BY 2"),
        (
            "SELECT a, b FROM t ORDER BY (1)",
            "SELECT a, b FROM t ORDER BY (2)",
        ),
        (
            "SELECT a, COUNT(*) FROM t GROUP BY 1",
            "SELECT a, COUNT(*) FROM t GROUP BY 2",
        ),
        ("SELECT a + 1 FROM t", "SELECT a + 2 FROM t"),
        ("SELECT VALUES(a), 1 FROM t", "SELECT VALUES(a), 2 FROM t"),
        ("SELECT f(1) FROM t", "SELECT f(2) FROM t"),
        (
            "SELECT (SELECT b FROM u WHERE c = 1) FROM t",
            "SELECT (SELECT b FROM u WHERE c = 2) FROM t",
        ),
        ("SELECT a 'x' FROM t", "SELECT a 'y' FROM t"),
        ("SELECT a AS 'x' FROM t", "SELECT a AS 'y' FROM t"),
        (
            "SELECT a FROM t WHERE b = CAST(c AS DECIMAL(10,2))",
            "SELECT a FROM t WHERE b = CAST(c AS DECIMAL(10,3))",
        ),
        (
            "SELECT a FROM t WHERE b = CAST(c AS CHAR(1))",
            "SELECT a FROM t WHERE b = CAST(c AS CHAR(2))",
        ),
        (
            "SELECT a FROM t WHERE b = CONVERT(c, CHAR(1))",
            "SELECT a FROM t WHERE b = CONVERT(c, CHAR(2))",
        ),
        (
            "SELECT a FROM t WHERE b = NOW(1)",
            "SELECT a FROM t WHERE b = NOW(2)",
        ),
        (
            "SELECT a FROM t WHERE b LIKE 'x' ESCAPE '|'",
            "SELECT a FROM t WHERE b LIKE 'x' ESCAPE '!'",
        ),
        (
            "SELECT GROUP_CONCAT(a SEPARATOR ',') AS x FROM t",
            "SELECT GROUP_CONCAT(a SEPARATOR ';') AS x FROM t",
        ),
        (
            "SELECT a FROM t WHERE b = 'x' 'y'",
            "SELECT a FROM t WHERE b = 'x' 'z'",
        ),
        (
            "SELECT a FROM t WHERE b->'$.x' = 1",
            "SELECT a FROM t WHERE b->'$.y' = 1",
        ),
        (
            "SELECT a FROM t WHERE b = INTERVAL 1 DAY + c",
            "SELECT a FROM t WHERE b = INTERVAL 1 HOUR + c",
        ),
        ("SET a = 1", "SET a = 2"),
    ] {
        assert_ne!(of(left), of(right), "{left} and {right}");
    }
}

#[test]
fn other_differences_are_in_the_key() {
    for (left, right) in [
        ("SELECT a FROM t WHERE id = 1", "SELECT a FROM t WHERE id = '1'"),
        (
            "SELECT a FROM t WHERE id = 1",
            "SELECT a FROM t WHERE id = 18446744073709551615",
        ),
        ("SELECT a FROM t WHERE id = 1", "SELECT a FROM t WHERE id = 1.0"),
        ("SELECT a FROM t WHERE id = 1", "SELECT a FROM T WHERE id = 1"),
        (
            "SELECT a FROM t WHERE id IN (1)",
            "SELECT a FROM t WHERE id IN (1, 2)",
        ),
        (
            "SELECT a FROM t WHERE id = count(1)",
            "SELECT a FROM t WHERE id = count (1)",
        ),
        ("SELECT `a b` FROM t", "SELECT `a` b FROM t"),
        ("SELECT /*+ NO_ICP(t) */ a FROM t", "SELECT a FROM t"),
        (
            "SELECT a FROM t WHERE a IS NULL",
            "SELECT a FROM t WHERE a IS TRUE",
        ),
    ] {
        assert_ne!(of(left), of(right), "{left} and {right}");
    }
}

#[test]
fn literals_are_listed_with_their_tokens() {
    let print = of("SELECT a FROM t WHERE b = -7 AND c = 'x' AND d = ? ORDER BY 1");
    let listed: Vec<_> = print
        .literals()
        .iter()
        .map(|slot| (slot.token, slot.class))
        .collect();
    assert_eq!(
        listed,
        [
            (8, LiteralClass::Int),
            (12, LiteralClass::String),
            (16, LiteralClass::Placeholder)
        ]
    );
    assert_eq!(print.slot_of(12), Some(1));
    assert_eq!(print.slot_of(19), None);
    assert_eq!(
        String::from_utf8_lossy(print.key()),
        "SELECT a FROM t WHERE b = - ?i AND c = ?s AND d = ?p ORDER BY 1"
    );
}

#[test]
fn a_digest_shows_no_value_and_counts_none() {
    assert_eq!(
        digest("select a from t where id in (1, -2, 'x')"),
        "SELECT a FROM t WHERE id IN (?)"
    );
    assert_eq!(
        digest("INSERT INTO t (a, b) VALUES (1, 'secret'), (2, NULL), (-3, DEFAULT)"),
        "INSERT INTO t (a, b) VALUES (?)"
    );
    assert_eq!(
        digest("INSERT INTO t VALUES (1, f(2)), (3, f(4))"),
        "INSERT INTO t VALUES (?, f(?))"
    );
    assert_eq!(digest("SET PASSWORD = 'secret'"), "SET PASSWORD = ?");
    assert_eq!(
        digest("SELECT 1 AS 'x', t.`b` FROM t ORDER BY 2"),
        "SELECT ? AS ?, t.`b` FROM t ORDER BY ?"
    );
    let long = format!("SELECT {}", "a, ".repeat(5_000));
    assert!(digest(&long).len() < 2_100);
}

#[test]
fn a_digest_of_more_rows_is_the_same() {
    let of = |sql: &str| Digest::of(&lex(sql.as_bytes(), &LexOptions::default()).unwrap()).hash;
    assert_eq!(
        of("INSERT INTO t VALUES (1,2)"),
        of("INSERT INTO t VALUES (1,2),(3,4),(5,6)")
    );
    assert_ne!(of("INSERT INTO t VALUES (1,2)"), of("INSERT INTO u VALUES (1,2)"));
}

proptest! {
    /// Where it would not hold, a splice point of one statement would be applied to another.
    #[test]
    fn equal_keys_mean_equal_tokens(left in statement(), right in statement()) {
        let options = LexOptions::default();
        let (left, right) = (lex(left.as_bytes(), &options), lex(right.as_bytes(), &options));
        if let (Ok(left), Ok(right)) = (left, right) {
            let (a, b) = (Fingerprint::of(&left), Fingerprint::of(&right));
            if a == b {
                prop_assert_eq!(a.literals(), b.literals());
                let kinds = |lexed: &crate::Lexed<'_>| lexed.tokens().iter().map(|t| t.kind).collect::<Vec<_>>();
                let slots: Vec<_> = a.literals().iter().map(|slot| slot.token as usize).collect();
                prop_assert_eq!(kinds(&left), kinds(&right));
                for at in (0..left.len()).filter(|at| !slots.contains(at)) {
                    prop_assert!(left.text(at).eq_ignore_ascii_case(right.text(at)));
                }
            }
        }
    }

    #[test]
    fn any_bytes_have_a_fingerprint(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(lexed) = lex(&bytes, &LexOptions::default()) {
            let _ = Fingerprint::of(&lexed);
            let _ = Digest::of(&lexed);
        }
    }
}

/// Statements of few words, so that equal keys are common.
fn statement() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "1", "2", "'x'", "'y'", "a", "A", "(", ")", ",", "AS", "as", "ORDER BY", "FROM", "+", "-", ".",
        "1.5", "f(", "x'41'", "NULL", "`a`", "``", "\"q\"", "@v", "_utf8", "N'x'", "?",
    ]);
    let gap = prop::sample::select(vec!["", " ", "/**/"]);
    proptest::collection::vec((word, gap), 0..6).prop_map(|parts| {
        parts
            .into_iter()
            .fold("SELECT ".to_owned(), |sql, (word, gap)| sql + word + gap)
    })
}
