//! Each hazard of the stock dialect and of reading text as something it is not, as a table of statements and the
//! trees they must give. A wrong tree here is a row looked for on the wrong shard.

use sqlparser::ast::{BinaryOperator, Expr, SelectItem, SetExpr, Statement, UnaryOperator, Value};

use super::{ParseError, parse};
use crate::{LexOptions, SqlMode, lex};

fn options(mode: &str) -> LexOptions {
    LexOptions {
        mode: SqlMode::parse(mode).unwrap(),
        ..LexOptions::default()
    }
}

fn parsed(sql: &[u8], mode: &str) -> Result<Statement, ParseError> {
    parse(&lex(sql, &options(mode)).unwrap())
}

/// The first select item's expression, every operator in parentheses.
fn shape(expr: &str, mode: &str) -> String {
    let sql = format!("SELECT {expr}");
    match parsed(sql.as_bytes(), mode) {
        Ok(statement) => show(&first_item(&statement)),
        Err(error) => format!("error: {error}"),
    }
}

fn first_item(statement: &Statement) -> Expr {
    let Statement::Query(query) = statement else {
        panic!("{statement}")
    };
    let SetExpr::Select(select) = query.body.as_ref() else {
        panic!("{statement}")
    };
    match &select.projection[..] {
        [
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. },
            ..,
        ] => expr.clone(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn show(expr: &Expr) -> String {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            let op = match op {
                BinaryOperator::MyIntegerDivide => "DIV".to_owned(),
                BinaryOperator::StringConcat => "||".to_owned(),
                BinaryOperator::PGBitwiseShiftLeft => "<<".to_owned(),
                BinaryOperator::PGBitwiseShiftRight => ">>".to_owned(),
                BinaryOperator::BitwiseXor => "^".to_owned(),
                op => op.to_string(),
            };
            format!("({} {op} {})", show(left), show(right))
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => format!("(NOT {})", show(expr)),
        Expr::UnaryOp {
            op: UnaryOperator::BangNot,
            expr,
        } => format!("(!{})", show(expr)),
        Expr::UnaryOp { op, expr } => format!("({op} {})", show(expr)),
        Expr::Nested(expr) => show(expr),
        Expr::Tuple(items) => format!("({})", list(items)),
        Expr::Cast { expr, data_type, .. } => format!("cast({} AS {data_type})", show(expr)),
        Expr::Collate { expr, collation } => format!("({} COLLATE {collation})", show(expr)),
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => {
            format!(
                "({}{} BETWEEN {} AND {})",
                show(expr),
                not(*negated),
                show(low),
                show(high)
            )
        }
        Expr::In {
            expr,
            negated,
            target,
            ..
        } => match target {
            sqlparser::ast::InTarget::List(items) => {
                format!("({}{} IN ({}))", show(expr), not(*negated), list(items))
            }
            other => format!("({}{} IN {other})", show(expr), not(*negated)),
        },
        Expr::Like {
            expr,
            negated,
            pattern,
            ..
        } => format!("({}{} LIKE {})", show(expr), not(*negated), show(pattern)),
        Expr::RLike {
            expr,
            negated,
            pattern,
            ..
        } => {
            format!("({}{} REGEXP {})", show(expr), not(*negated), show(pattern))
        }
        Expr::IsNull(expr) => format!("({} IS NULL)", show(expr)),
        Expr::IsNotNull(expr) => format!("({} IS NOT NULL)", show(expr)),
        Expr::IsTrue(expr) => format!("({} IS TRUE)", show(expr)),
        Expr::IsNotTrue(expr) => format!("({} IS NOT TRUE)", show(expr)),
        Expr::IsFalse(expr) => format!("({} IS FALSE)", show(expr)),
        Expr::IsNotFalse(expr) => format!("({} IS NOT FALSE)", show(expr)),
        Expr::IsUnknown(expr) => format!("({} IS UNKNOWN)", show(expr)),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => format!("'{text}'"),
            other => other.to_string(),
        },
        Expr::Interval(interval) => format!(
            "interval({} {})",
            show(&interval.value),
            interval
                .leading_field
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default()
        ),
        other => other.to_string(),
    }
}

fn list(items: &[Expr]) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn not(negated: bool) -> &'static str {
    if negated { " NOT" } else { "" }
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    for (mode, sql, tree) in cases {
        assert_eq!(shape(sql, mode), *tree, "{sql} under {mode:?}");
    }
}

#[test]
fn symbols_and_words_bind_as_on_the_server() {
    check(&[
        ("", "a || b && c", "(a OR (b AND c))"),
        ("", "a AND b || c", "((a AND b) OR c)"),
        ("", "a XOR b", "(a XOR b)"),
        ("", "a OR b XOR c AND d", "(a OR (b XOR (c AND d)))"),
        ("", "a XOR b XOR c", "((a XOR b) XOR c)"),
        ("", "NOT a = b", "(NOT (a = b))"),
        ("", "NOT a AND b", "((NOT a) AND b)"),
        ("", "NOT a XOR b", "((NOT a) XOR b)"),
        ("", "NOT a BETWEEN b AND c", "(NOT (a BETWEEN b AND c))"),
        ("", "! a = b", "((!a) = b)"),
        ("", "!a + 1", "((!a) + 1)"),
        ("", "!!a", "(!(!a))"),
        ("", "a=!b", "(a = (!b))"),
        ("", "1 | 2 ^ 3 << 1", "(1 | ((2 ^ 3) << 1))"),
        ("", "a & b + c", "(a & (b + c))"),
        ("", "a << 1 + 2", "(a << (1 + 2))"),
        ("", "a | b = c", "((a | b) = c)"),
        ("", "2 * 3 ^ 1", "(2 * (3 ^ 1))"),
        ("", "-2 ^ 1", "((- 2) ^ 1)"),
        ("", "~a & b", "((~ a) & b)"),
        ("", "a MOD b", "(a % b)"),
        ("", "7 MOD 4 * 2", "((7 % 4) * 2)"),
        ("", "a DIV b + c", "((a DIV b) + c)"),
        ("", "MOD(a, b)", "MOD(a, b)"),
        ("", "5--3", "(5 - (- 3))"),
        ("", "BINARY a = 'x'", "(cast(a AS BINARY) = 'x')"),
        ("", "BINARY a + 1", "(cast(a AS BINARY) + 1)"),
        (
            "",
            "a = BINARY b COLLATE utf8mb4_bin",
            "(a = cast((b COLLATE utf8mb4_bin) AS BINARY))",
        ),
        ("", "a = b COLLATE utf8mb4_bin", "(a = (b COLLATE utf8mb4_bin))"),
        ("", "- a COLLATE utf8mb4_bin", "(- (a COLLATE utf8mb4_bin))"),
        ("", "a->'$.x' = 1", "((a -> '$.x') = 1)"),
    ]);
}

#[test]
fn comparisons_and_predicates_bind_as_on_the_server() {
    check(&[
        ("", "a = b IN (1, 2)", "(a = (b IN (1, 2)))"),
        ("", "a IN (1) = b", "((a IN (1)) = b)"),
        ("", "a = b LIKE c", "(a = (b LIKE c))"),
        ("", "a LIKE b + 1", "(a LIKE (b + 1))"),
        ("", "a = b IS NULL", "((a = b) IS NULL)"),
        ("", "a <=> NULL IS NULL", "((a <=> NULL) IS NULL)"),
        ("", "a BETWEEN 1 AND 2 AND c", "((a BETWEEN 1 AND 2) AND c)"),
        ("", "a BETWEEN 1 AND 2 = c", "((a BETWEEN 1 AND 2) = c)"),
        ("", "a BETWEEN 1 + 1 AND b | 2", "(a BETWEEN (1 + 1) AND (b | 2))"),
        ("", "a NOT BETWEEN 1 AND 2 OR b", "((a NOT BETWEEN 1 AND 2) OR b)"),
        ("", "a < b = c", "((a < b) = c)"),
        ("", "NOT EXISTS (SELECT 1)", "NOT EXISTS (SELECT 1)"),
        ("", "a + INTERVAL 1 + 1 DAY", "(a + interval((1 + 1) DAY))"),
        ("", "INTERVAL (1) DAY + a", "(interval(1 DAY) + a)"),
        ("", "INTERVAL(5, 1, 10) + 1", "(INTERVAL(5, 1, 10) + 1)"),
        ("", "@a := 1 OR 0", "(@a := (1 OR 0))"),
        ("", "1 + @a := 5", "(1 + (@a := 5))"),
    ]);
}

#[test]
fn the_sql_mode_decides_what_pipes_not_and_quotes_are() {
    check(&[
        ("PIPES_AS_CONCAT", "a || b AND c", "((a || b) AND c)"),
        ("PIPES_AS_CONCAT", "a || b ^ c", "((a || b) ^ c)"),
        ("PIPES_AS_CONCAT", "-a || b", "((- a) || b)"),
        ("PIPES_AS_CONCAT", "a = b || c", "(a = (b || c))"),
        ("HIGH_NOT_PRECEDENCE", "NOT a = b", "((!a) = b)"),
        (
            "HIGH_NOT_PRECEDENCE",
            "NOT a BETWEEN b AND c",
            "((!a) BETWEEN b AND c)",
        ),
        ("", "\"x\"", "'x'"),
        ("ANSI_QUOTES", "\"x\"", "`x`"),
        ("ANSI_QUOTES", "\"x\"\"y\" = 'z'", "(`x\"y` = 'z')"),
        ("", r"'a\\' = 'b'", r"('a\' = 'b')"),
        ("NO_BACKSLASH_ESCAPES", r"'a\' = 'b'", r"('a\' = 'b')"),
    ]);
    assert_eq!(parsed(b"SELECT 1", "ORACLE"), Err(ParseError::Mode("ORACLE")));
}

#[test]
fn literals_are_what_their_bytes_say() {
    check(&[
        ("", "'it''s'", "'it's'"),
        ("", "'a' 'b'", "'ab'"),
        ("", "'a' AS 'b'", "'a'"),
        ("", "_utf8mb4'x'", "_utf8mb4 'x'"),
        ("", "N'x'", "N'x'"),
        ("", "x'4a' + 0x4b", "(X'4a' + X'4b')"),
        ("", "b'01' + 0b10", "(B'01' + B'10')"),
        ("", "DATE '2020-01-01'", "DATE '2020-01-01'"),
        ("", "{d '2020-01-01'}", "{d '2020-01-01'}"),
        // A column and its alias, not literals of a type.
        ("", "text 'a'", "text"),
        ("", "year 'a'", "year"),
        ("", "`date` 'a'", "`date`"),
        ("", "1e5abc", "1e5"),
        ("", "\\N", "NULL"),
    ]);
    let nul = first_item(&parsed(b"SELECT 'a\0b'", "").unwrap());
    assert_eq!(show(&nul), "'a\0b'");
    // A consumer that looks for a string must not find half of one.
    let not_utf8 = first_item(&parsed(b"SELECT '\xff\xfe'", "").unwrap());
    assert!(matches!(not_utf8, Expr::Value(v) if v.value == Value::EscapedStringLiteral("fffe".into())));
    assert_eq!(parsed(b"SELECT \xff", ""), Err(ParseError::NotUtf8));
}

#[test]
fn comments_change_the_tree_only_where_the_server_runs_them() {
    check(&[
        ("", "a /*!99999 OR 1=1 */", "a"),
        ("", "a /*! OR 1=1 */", "(a OR (1 = 1))"),
        ("", "a /*!50100 OR 1=1 */", "(a OR (1 = 1))"),
        // MariaDB's own numbers begin at 100000; these are MySQL's.
        ("", "a /*!80000 OR 1=1 */", "a"),
        ("", "a /*M!100100 OR 1=1 */", "(a OR (1 = 1))"),
        ("", "a /*!99999 /* nested */ OR 1=1 */ AND b", "(a AND b)"),
        ("", "a /* OR 1=1 */", "a"),
        ("", "a -- OR 1=1", "a"),
        ("", "a # OR 1=1", "a"),
        ("", "a --1", "(a - (- 1))"),
        ("", "'/* ' AND b OR '*/'", "(('/* ' AND b) OR '*/')"),
    ]);
}

#[test]
fn a_word_of_another_dialect_is_a_name() {
    check(&[
        ("", "top (5) x", "top(5)"),
        ("", "sample + ilike", "(sample + ilike)"),
        ("", "t.select", "t.select"),
    ]);
    let Statement::Query(query) = parsed(b"SELECT 1 FROM a FULL JOIN b ON 1 = 1", "").unwrap() else {
        panic!()
    };
    let SetExpr::Select(select) = *query.body else {
        panic!()
    };
    assert_eq!(select.from[0].relation.to_string(), "a FULL");
    assert_eq!(
        select.from[0].joins[0].to_string(),
        " JOIN b ON 1 = 1".trim_start()
    );
}

#[test]
fn what_is_not_certain_is_refused() {
    for sql in [
        // The server binds these to the left or to the right as it pleases.
        "SELECT a LIKE b NOT IN (1)",
        "SELECT a BETWEEN 1 AND 2 IN (3)",
        "SELECT a IN (1) IN (1)",
        "SELECT a FROM",
        "SELECT from t",
        "SELECT a b c FROM t",
        "SELECT 1 SELECT 2",
        "SELECT 1; SELECT 2",
        "SELECT a SOUNDS LIKE b",
        "SELECT _utf8mb4 FROM t",
        "SELECT a FROM t FETCH FIRST 1 ROWS ONLY",
        "SELECT {fn now()}",
        "SELECT a FROM t1 JOIN t2 LEFT JOIN t3 ON t2.a = t3.a ON t1.a = t2.a",
    ] {
        assert!(parsed(sql.as_bytes(), "").is_err(), "{sql}");
    }
}

#[test]
fn joins_without_a_condition_are_not_put_off() {
    let sql = b"SELECT 1 FROM a JOIN b LEFT JOIN c ON a.x = c.x";
    let Statement::Query(query) = parsed(sql, "").unwrap() else {
        panic!()
    };
    let SetExpr::Select(select) = *query.body else {
        panic!()
    };
    let joins: Vec<_> = select.from[0].joins.iter().map(ToString::to_string).collect();
    assert_eq!(joins, ["JOIN b", "LEFT JOIN c ON a.x = c.x"]);
}

#[test]
fn spans_are_byte_offsets() {
    let sql = "SELECT /* ö */ `ö`, 'ä' = _utf8mb4 'ß', t.name FROM t";
    let statement = parsed(sql.as_bytes(), "").unwrap();
    let Statement::Query(query) = &statement else {
        panic!()
    };
    let SetExpr::Select(select) = query.body.as_ref() else {
        panic!()
    };
    let texts: Vec<_> = select
        .projection
        .iter()
        .map(|item| &sql[super::span_to_range(sqlparser::ast::Spanned::span(item)).unwrap()])
        .collect();
    assert_eq!(texts, ["`ö`", "'ä' = _utf8mb4 'ß'", "t.name"]);
}

#[test]
fn depth_is_bounded_and_long_chains_are_not_deep() {
    // Run on a small stack: what would overflow must have been refused.
    let run = || {
        for (open, close) in [
            ("(", ")"),
            ("NOT ", ""),
            ("!", ""),
            ("- ", ""),
            ("f(", ")"),
            ("(SELECT ", ")"),
            ("CASE WHEN ", " THEN 1 END"),
        ] {
            for depth in [1, 20, 45, 100, 5_000] {
                let sql = format!("SELECT {}1{}", open.repeat(depth), close.repeat(depth));
                let parsed = parsed(sql.as_bytes(), "");
                assert!(
                    depth < 45 || parsed.is_ok() || parsed == Err(ParseError::TooDeep),
                    "{open} {parsed:?}"
                );
                assert!(depth > 20 || parsed.is_ok(), "{open} {parsed:?}");
            }
        }
        for operator in ["OR", "AND"] {
            let sql = format!(
                "SELECT 1 FROM t WHERE {}",
                vec!["a = 1"; 20_000].join(&format!(" {operator} "))
            );
            drop(parsed(sql.as_bytes(), "").unwrap().clone());
        }
        for operator in ["+", "XOR", "= 1 +", "||", "DIV"] {
            let sql = format!("SELECT {}", vec!["1"; 10_000].join(&format!(" {operator} ")));
            let long = parsed(sql.as_bytes(), "PIPES_AS_CONCAT");
            assert_eq!(long, Err(ParseError::TooDeep), "{operator}");
        }
        let unions = vec!["SELECT 1"; 10_000].join(" UNION ");
        assert_eq!(parsed(unions.as_bytes(), ""), Err(ParseError::TooDeep));
        let rows = format!("INSERT INTO t VALUES {}", vec!["(1 + 1, 2)"; 10_000].join(", "));
        assert!(parsed(rows.as_bytes(), "").is_ok());
    };
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

/// `sqlparser` tries some forms first one way and then another. Nested, that must not double at each level.
#[test]
fn nesting_takes_no_more_than_its_length() {
    let forms = [
        ("a IN ((", "))", "1"),
        ("POSITION(", ")", "a"),
        ("POSITION(", " IN b)", "a"),
        ("SUBSTRING(", " FROM 1)", "a"),
        ("TRIM(BOTH ", " FROM a)", "b"),
        ("INTERVAL (", ") DAY", "1"),
        ("CASE ", " WHEN 1 THEN 1 END", "1"),
        ("CASE ", "", "1"),
        ("CAST(", " AS CHAR)", "1"),
        ("CONVERT(", ", CHAR)", "1"),
        ("f(", "", "1"),
        ("(SELECT * FROM ", ")", "t"),
        ("(SELECT * FROM (", "))", "t"),
        ("EXISTS (SELECT ", ")", "1"),
        ("EXISTS (", ")", "SELECT 1"),
        ("(", " UNION SELECT 1)", "SELECT 1"),
        ("NOT a.", "", "b"),
        ("not-", "", "b"),
        ("a = ANY (SELECT ", ")", "1"),
        ("MATCH (", ")", "a"),
    ];
    for (open, close, middle) in forms {
        for head in [
            "SELECT ",
            "SELECT * FROM ",
            "SELECT * FROM t WHERE ",
            "INSERT INTO t VALUES (",
            "UPDATE t SET a = ",
        ] {
            let sql = format!("{head}{}{middle}{}", open.repeat(30), close.repeat(30));
            let _ = parsed(sql.as_bytes(), "");
        }
    }
}
