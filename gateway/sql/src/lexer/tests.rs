use proptest::prelude::*;

use super::lex;
use crate::{Flavor, LexError, LexOptions, SqlMode, TokenKind as K, VersionComment};

fn options(mode: &str) -> LexOptions {
    LexOptions {
        mode: SqlMode::parse(mode).unwrap(),
        ..LexOptions::default()
    }
}

fn mysql(version: u32) -> LexOptions {
    LexOptions {
        server_version: version,
        flavor: Flavor::MySql,
        ..LexOptions::default()
    }
}

/// The tokens' texts, joined by `|`.
fn cut(sql: &str, options: &LexOptions) -> String {
    match lex(sql.as_bytes(), options) {
        Ok(lexed) => {
            let texts = (0..lexed.len()).map(|at| String::from_utf8_lossy(lexed.text(at)));
            texts.collect::<Vec<_>>().join("|")
        }
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn check(mode: &str, cases: &[(&str, &str)]) {
    for (sql, tokens) in cases {
        assert_eq!(cut(sql, &options(mode)), *tokens, "{sql}");
    }
}

#[test]
fn words_and_numbers_are_cut_as_on_the_server() {
    check(
        "",
        &[
            ("a.b .c", "a|.|b|.|c"),
            (
                "1a 2 3.5 .5 6. 7.e1 8e9 1e+3 1e 1e+ 0x1G 0xab 0b2 0b11",
                "1a|2|3.5|.5|6.|7.e1|8e9|1e+3|1e|1e|+|0x1G|0xab|0b2|0b11",
            ),
            // Behind a name and its dot comes a name.
            ("a.5b t.1e5 `a`.b `a`.5", "a|.|5b|t|.|1e5|`a`|.|b|`a`|.5"),
            ("1e5abc 1.a 1..5", "1e5|abc|1.|a|1.|.5"),
            ("$x _y é", "$x|_y|é"),
            (
                "X'41' x'' b'01' n'a' N'a' xx'a'",
                "X'41'|x''|b'01'|n'a'|N'a'|xx|'a'",
            ),
            (
                "_utf8mb4'a' _latin1 x'41' _nothing'a'",
                "_utf8mb4|'a'|_latin1|x'41'|_nothing|'a'",
            ),
            (
                "@a @`b``c` @'d' @@x @@session.`y` @a.b @",
                "@a|@`b``c`|@'d'|@@x|@@session.`y`|@a.b|@",
            ),
            ("x'1'", "error: malformed hexadecimal literal at offset 0"),
            ("b'2'", "error: malformed bit literal at offset 0"),
            ("@@ x", "error: malformed system variable at offset 0"),
        ],
    );
}

#[test]
fn a_word_that_must_be_a_name_is_no_keyword() {
    let lexed = lex(b"select.a t.select select `select` from", &LexOptions::default()).unwrap();
    let keywords: Vec<_> = lexed
        .tokens()
        .iter()
        .map(|token| token.keyword.is_some())
        .collect();
    assert_eq!(
        keywords,
        [false, false, false, false, false, false, true, false, true]
    );
}

#[test]
fn operators_are_cut_as_on_the_server() {
    check(
        "",
        &[
            ("a<=>b<>c!=d<=e>=f<<g>>h", "a|<=>|b|<>|c|!=|d|<=|e|>=|f|<<|g|>>|h"),
            ("a&&b||c&d|e^~f", "a|&&|b||||c|&|d|||e|^|~|f"),
            ("a->'$.b'->>'$.c' := :", "a|->|'$.b'|->>|'$.c'|:=|:"),
            ("5--3 5- -3 a=!b !!c", "5|-|-|3|5|-|-|3|a|=|!|b|!|!|c"),
            ("a [1]", "error: unexpected byte 0x5b at offset 2"),
            ("a \0", "error: unexpected byte 0x00 at offset 2"),
            ("\\N \\x", "error: unexpected byte 0x5c at offset 3"),
        ],
    );
    // The lexer of older MySQL servers swallows both bytes and reads `=`.
    assert_eq!(
        lex(b"a=!b", &mysql(50_700)).unwrap_err(),
        LexError::Ambiguous {
            what: "run of comparison characters",
            at: 1
        }
    );
}

#[test]
fn strings_end_where_the_server_ends_them() {
    check(
        "",
        &[
            (r"'a\'b' c", r"'a\'b'|c"),
            (r"'a\\' c", r"'a\\'|c"),
            ("'it''s' 'a' 'b'", "'it''s'|'a'|'b'"),
            (r#""a\"b""c" 'x"y'"#, r#""a\"b""c"|'x"y'"#),
            ("'nul\0' b", "'nul\0'|b"),
            ("`a``b` `\\`", "`a``b`|`\\`"),
            ("'open", "error: unterminated string that starts at offset 0"),
            (r"'open\'", "error: unterminated string that starts at offset 0"),
            (r"'open\", "error: unterminated string that starts at offset 0"),
            (
                "`open",
                "error: unterminated quoted identifier that starts at offset 0",
            ),
        ],
    );
    check(
        "NO_BACKSLASH_ESCAPES",
        &[
            (r"'a\' b", r"'a\'|b"),
            (r"'a\'' b", "error: unterminated string that starts at offset 0"),
        ],
    );
    let kind = |mode| lex(b"\"a\\\"\"", &options(mode)).map(|lexed| lexed.tokens()[0].kind);
    assert_eq!(
        kind("ANSI_QUOTES"),
        Err(LexError::Unterminated {
            what: "quoted identifier",
            at: 0
        })
    );
    assert_eq!(
        lex(b"\"a\\\"", &options("ANSI_QUOTES")).unwrap().kind(0),
        Some(K::QuotedIdent)
    );
    assert_eq!(lex(b"\"a\"", &options("")).unwrap().kind(0), Some(K::String));
}

#[test]
fn comments_are_gaps() {
    check(
        "",
        &[
            ("a/* b */c/**/d", "a|c|d"),
            ("a -- b\nc --\td", "a|c"),
            ("a --b", "a|-|-|b"),
            ("a --", "a"),
            ("a # b\nc #d", "a|c"),
            ("a /* /* */ b", "a|b"),
            ("a /*/ b */ c", "a|c"),
            ("SELECT /*+ hint */ a /*+ comment */", "SELECT|/*+ hint */|a"),
            ("a /* open", "error: unterminated comment that starts at offset 2"),
            ("a */ b", "a|*|/|b"),
            ("a # b\0c", "error: unexpected byte 0x00 at offset 5"),
        ],
    );
}

#[test]
fn a_version_comment_is_code_only_where_the_server_says_so() {
    let maria = LexOptions::default();
    let cases = [
        ("a /*!b*/ c", "a|b|c", "a|b|c"),
        ("a /*!50000 b*/ c", "a|b|c", "a|b|c"),
        ("a /*!50000b*/ c", "a|b|c", "a|b|c"),
        // MySQL's numbers, which MariaDB leaves alone.
        ("a /*!50700 b*/ c", "a|c", "a|b|c"),
        ("a /*!80000 b*/ c", "a|c", "a|b|c"),
        ("a /*!99999 b*/ c", "a|c", "a|c"),
        ("a /*M!b*/ c", "a|b|c", "a|c"),
        ("a /*M!50700 b*/ c", "a|b|c", "a|c"),
        ("a /*M!100100 b*/ c", "a|b|c", "a|c"),
        ("a /*M!999999 b*/ c", "a|c", "a|c"),
        // Four digits are no version but a number.
        ("a /*!5000 b*/ c", "a|5000|b|c", "a|5000|b|c"),
        // A comment may nest in one that is skipped, and in one that is not.
        ("a /*!99999 x /* y */ z */ c", "a|c", "a|c"),
        ("a /*!50000 x /* y */ z */ c", "a|x|z|c", "a|x|z|c"),
        ("a /*!50000 '*/' */ c", "a|'*/'|c", "a|'*/'|c"),
        // In one that runs, another that runs does not nest.
        (
            "a /*!50000 b /*!50000 c */ d */ e",
            "a|b|c|d|*|/|e",
            "a|b|c|d|*|/|e",
        ),
    ];
    for (sql, on_maria, on_mysql) in cases {
        assert_eq!(cut(sql, &maria), on_maria, "{sql}");
        assert_eq!(cut(sql, &mysql(80_036)), on_mysql, "{sql}");
    }
    assert_eq!(cut("a /*!100100 b*/ c", &maria), "a|b|c");
    assert!(cut("a /*!100100 b*/ c", &mysql(80_036)).contains("read differently"));
    assert!(cut("a /*!50000 b", &maria).contains("unterminated version comment that starts at offset 2"));
    assert!(cut("a /*!99999 b", &maria).contains("unterminated version comment"));
    assert!(cut("a /*!50000 ; b */", &maria).contains("semicolon inside"));
}

#[test]
fn version_comments_are_reported() {
    let lexed = lex(b"a /*!50000 b*/ /*!99999 c*/ /*M!d*/", &LexOptions::default()).unwrap();
    let expected = [
        (2, 14, Some(50_000), true),
        (15, 27, Some(99_999), false),
        (28, 35, None, true),
    ]
    .map(|(start, end, version, executed)| VersionComment {
        start,
        end,
        version,
        executed,
    });
    assert_eq!(lexed.version_comments(), expected);
}

/// Bytes that the lexer treats in special ways, more often than chance would have them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special =
        prop::sample::select(b"'\"`\\/*!-#;@.:=<>&|^~(){},+%0123459eExXbBnN_$ \n\t\0M\xff\xc3".to_vec());
    proptest::collection::vec(prop_oneof![4 => special, 1 => any::<u8>()], 0..60)
}

fn any_options() -> impl Strategy<Value = LexOptions> {
    let mode = prop::sample::select(vec![
        "",
        "ANSI_QUOTES",
        "NO_BACKSLASH_ESCAPES",
        "ANSI,NO_BACKSLASH_ESCAPES",
    ]);
    (mode, any::<bool>()).prop_map(|(mode, maria)| {
        if maria {
            options(mode)
        } else {
            LexOptions {
                mode: options(mode).mode,
                ..mysql(80_036)
            }
        }
    })
}

proptest! {
    #[test]
    fn any_bytes_lex_or_fail_and_spans_tile_them(bytes in bytes(), options in any_options()) {
        if let Ok(lexed) = lex(&bytes, &options) {
            let mut behind = 0;
            for at in 0..lexed.len() {
                let range = lexed.range(at);
                prop_assert!(behind <= range.start && range.start < range.end && range.end <= bytes.len());
                // Between tokens there is nothing but gaps, which lex to nothing on their own.
                if lexed.version_comments().is_empty() {
                    let gap = lex(&bytes[behind..range.start], &options);
                    prop_assert!(gap.is_ok_and(|gap| gap.is_empty()));
                }
                prop_assert_eq!(lexed.token_at(range.start), Some(at));
                let _ = (lexed.literal(at), lexed.name(at), lexed.variable(at), lexed.matching_paren(at));
                behind = range.end;
            }
            let _ = (crate::classify(&lexed), crate::split_lexed(&lexed), lexed.directives());
            let _ = (crate::parse_set(&lexed), crate::parse_show(&lexed), crate::parse_use(&lexed), crate::parse_kill(&lexed));
        }
    }

    #[test]
    fn any_words_classify_and_parse_or_fail(words in words()) {
        let sql = words.join(" ");
        if let Ok(lexed) = lex(sql.as_bytes(), &LexOptions::default()) {
            let _ = (crate::classify(&lexed), crate::parse(&lexed), crate::parse_set(&lexed), crate::parse_show(&lexed));
        }
    }

    #[test]
    fn a_quoted_string_decodes_to_what_went_in(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut sql = vec![b'\''];
        for byte in &value {
            match byte {
                b'\'' | b'\\' => sql.extend([b'\\', *byte]),
                0 => sql.extend(b"\\0"),
                byte => sql.push(*byte),
            }
        }
        sql.push(b'\'');
        let lexed = lex(&sql, &LexOptions::default()).unwrap();
        prop_assert_eq!(lexed.len(), 1);
        prop_assert_eq!(lexed.string_value(0..sql.len()).unwrap().into_owned(), value);
    }
}

fn words() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(
        prop::sample::select(vec![
            "SELECT",
            "FROM",
            "WHERE",
            "INSERT INTO",
            "UPDATE",
            "DELETE",
            "SET",
            "SHOW",
            "WITH",
            "UNION",
            "ORDER BY",
            "GROUP BY",
            "LIMIT",
            "JOIN",
            "ON",
            "AS",
            "VALUES",
            "IN",
            "LIKE",
            "BETWEEN",
            "NOT",
            "AND",
            "OR",
            "XOR",
            "IS",
            "NULL",
            "CASE",
            "WHEN",
            "THEN",
            "END",
            "EXISTS",
            "INTERVAL",
            "DAY",
            "CAST",
            "BINARY",
            "COLLATE",
            "(",
            ")",
            "(",
            ")",
            ",",
            ".",
            "*",
            "+",
            "-",
            "=",
            "!",
            "~",
            ":=",
            "@a",
            "@@b",
            "a",
            "b",
            "1",
            "'x'",
            "?",
            "DATE",
            "EXTRACT",
            "TRIM",
            "SUBSTRING",
            "POSITION",
            "CONVERT",
            "MATCH",
            "AGAINST",
            "{",
            "}",
            "FOR",
            "LOCK",
            "MODE",
            "SHARE",
            "CREATE TABLE",
            "EXPLAIN",
            "KILL",
            "USE",
            "_utf8mb4",
        ]),
        0..24,
    )
}
