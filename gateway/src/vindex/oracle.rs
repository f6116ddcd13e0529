//! Routing against a server's own equality: rows placed by one literal must be found by every literal that the server
//! calls equal to it. The answers were recorded from a server; the literals are those that trap conversions, padding
//! and collations.

use std::collections::BTreeMap;

use super::*;

const RECORDED: &str = include_str!("testdata/server-equality.txt");

/// The literals, in the order the file counts them.
fn values() -> Vec<Value> {
    let decimal = |s: &str| Value::Decimal(s.into());
    let bytes = |b: &[u8]| Value::Bytes(b.into());
    let numbers = [
        Value::Int(0),
        Value::Int(5),
        Value::Int(-5),
        Value::Int(127),
        Value::Int(128),
        Value::UInt(u64::MAX),
        Value::Int(i64::MIN),
        Value::Int(i64::MAX),
        Value::Int(1 << 53),
        Value::Int((1 << 53) + 1),
        Value::Int(2024),
        decimal("5.0"),
        decimal("5.5"),
        decimal("18446744073709551616"),
        decimal("-0.0"),
        Value::Float(5.0),
        Value::Float(5.5),
        Value::Float(9_007_199_254_740_992.0),
        Value::Float(-0.0),
        Value::Float(1e300),
        bytes(&[5]),
        bytes(b"a"),
        bytes(b"a\0\0"),
        bytes(&[0xff]),
    ];
    let texts = [
        "",
        "0",
        "5",
        "05",
        "5.0",
        " 5",
        "5 ",
        "5abc",
        "-5",
        "-0",
        "+5",
        "127",
        "128",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551615",
        "a",
        "A",
        "a ",
        "a  ",
        " a",
        "á",
        "Á",
        "a\u{301}",
        "b",
        "bob",
        "BOB",
        "BÖB",
        "bob ",
        "s",
        "ß",
        "ss",
        "i",
        "ı",
        "I",
        "y",
        "ü",
        "ü ",
        "å",
        "[",
        "]",
        "Å",
        "a\t",
        "a\0",
        "a\u{180e}",
        "€",
        "😀",
        "И",
        "й",
        "2024",
        "2024-02-29",
        "2024-2-29",
        "20240229",
        "2024-02-29 00:00:00",
        "2024-02-29 10:11:12",
        "2024-01-01",
        "1",
        "2",
        "l·l",
        "æ",
        "ae",
        "?",
    ];
    numbers
        .into_iter()
        .chain(texts.into_iter().map(Value::from))
        .collect()
}

/// The type of a column that the file names by its DDL.
fn column(ddl: &str) -> ColumnType {
    let text = |kind| {
        let collation = Collation::new(ddl.rsplit(' ').next().unwrap(), None);
        ColumnType::Char {
            kind,
            length: 9,
            collation,
        }
    };
    let int = |width, unsigned| ColumnType::Int { width, unsigned };
    let members: [Box<str>; 4] = ["a".into(), "b".into(), "bob".into(), "2024".into()];
    match ddl.split([' ', '(']).next().unwrap() {
        "bigint" => int(IntWidth::Big, ddl.ends_with("unsigned")),
        "tinyint" => int(IntWidth::Tiny, false),
        "decimal" => ColumnType::Decimal {
            precision: 20,
            scale: 0,
            unsigned: false,
        },
        "binary" => ColumnType::Binary {
            kind: StringKind::Fixed,
            length: 3,
        },
        "varbinary" => ColumnType::Binary {
            kind: StringKind::Variable,
            length: 9,
        },
        "date" => ColumnType::Date,
        "datetime" => ColumnType::DateTime { fsp: 0 },
        "year" => ColumnType::Year,
        "enum" => ColumnType::Enum {
            values: members.into(),
            collation: Collation::new("utf8mb4_general_ci", None),
        },
        "varchar" => text(StringKind::Variable),
        "char" => text(StringKind::Fixed),
        other => panic!("{other}"),
    }
}

/// Columns with, by literal, the rows that equal it.
fn recorded() -> Vec<(&'static str, BTreeMap<usize, Vec<usize>>)> {
    let mut columns: Vec<(&str, BTreeMap<usize, Vec<usize>>)> = Vec::new();
    for line in RECORDED.lines().filter(|l| !l.starts_with('#')) {
        match line.strip_prefix("  ").and_then(|l| l.split_once(": ")) {
            None => columns.push((line, BTreeMap::new())),
            Some((_, "error")) => {}
            Some((literal, rows)) => {
                let rows = rows.split(' ').map(|k| k.parse().unwrap()).collect();
                columns
                    .last_mut()
                    .unwrap()
                    .1
                    .insert(literal.parse().unwrap(), rows);
            }
        }
    }
    columns
}

#[test]
fn what_a_server_calls_equal_is_found_where_it_was_placed() {
    let values = values();
    let (mut routed, mut found) = (0, 0);
    for kind in [
        "hash",
        "numeric",
        "reverse_bits",
        "xxhash",
        "binary",
        "binary_md5",
        "unicode_loose_xxhash",
        "unicode_loose_md5",
    ] {
        let vindex = Vindex::new(kind, &BTreeMap::new(), None).unwrap();
        for (ddl, matches) in recorded() {
            let column = column(ddl);
            for (j, literal) in values.iter().enumerate() {
                let Routed::To(destination) = vindex.route(&column, literal) else {
                    continue;
                };
                routed += 1;
                for &k in matches.get(&j).into_iter().flatten() {
                    // A row whose place cannot be told is refused, so it is nowhere to be missed.
                    if let Ok(place) = vindex.place(&column, &values[k]) {
                        found += 1;
                        assert_eq!(
                            place, destination,
                            "{ddl} {kind}: row {:?} by {literal:?}",
                            values[k]
                        );
                    }
                }
            }
        }
    }
    // Scattering everything would pass the rest.
    assert!(
        routed > 3_500 && found > 2_000,
        "{routed} literals routed, {found} rows compared"
    );
}
