//! Routing against a model: no row that matches a predicate may lie on a shard outside the routed set.

use proptest::prelude::*;

use super::*;

/// A predicate over a row's `id` and `k`, either of which may be NULL.
#[derive(Clone, Debug)]
enum Predicate {
    Id(i64),
    IdOf(Vec<Option<i64>>),
    K(i64),
    IdIsK,
    NullSafe(i64),
    IsNull,
    Between(i64, i64),
    Constant(bool),
    Not(Box<Predicate>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Xor(Box<Predicate>, Box<Predicate>),
    Group(Box<Predicate>),
}

#[derive(Clone, Copy, Debug)]
struct Row {
    id: i64,
    k: Option<i64>,
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

impl Predicate {
    /// SQL's three-valued truth.
    fn holds(&self, row: Row) -> Option<bool> {
        match self {
            Self::Id(v) | Self::NullSafe(v) => Some(row.id == *v),
            Self::IdOf(list) if list.contains(&Some(row.id)) => Some(true),
            Self::IdOf(list) if list.contains(&None) => None,
            Self::IdOf(_) => Some(false),
            Self::K(v) => row.k.map(|k| k == *v),
            Self::IdIsK => row.k.map(|k| k == row.id),
            Self::IsNull => Some(row.k.is_none()),
            Self::Between(a, b) => row.k.map(|k| (*a..=*b).contains(&k)),
            Self::Constant(b) => Some(*b),
            Self::Not(p) => p.holds(row).map(|b| !b),
            Self::And(a, b) => and(a.holds(row), b.holds(row)),
            Self::Or(a, b) => and(a.holds(row).map(|v| !v), b.holds(row).map(|v| !v)).map(|v| !v),
            Self::Xor(a, b) => Some(a.holds(row)? != b.holds(row)?),
            Self::Group(p) => p.holds(row),
        }
    }

    /// Whether it binds looser than what it would stand in, so that it needs parentheses.
    fn level(&self) -> u8 {
        match self {
            Self::Or(..) => 0,
            Self::Xor(..) => 1,
            Self::And(..) => 2,
            Self::Not(_) => 3,
            _ => 4,
        }
    }

    fn write(&self, least: u8, out: &mut String) {
        if self.level() < least {
            out.push('(');
            self.write(0, out);
            out.push(')');
            return;
        }
        let leaf = match self {
            Self::Id(v) => format!("id = {v}"),
            Self::IdOf(list) => {
                let list: Vec<_> = list
                    .iter()
                    .map(|v| v.map_or("NULL".into(), |v| v.to_string()))
                    .collect();
                format!("t.id IN ({})", list.join(", "))
            }
            Self::K(v) => format!("{v} = k"),
            Self::IdIsK => "id = k".into(),
            Self::NullSafe(v) => format!("id <=> {v}"),
            Self::IsNull => "k IS NULL".into(),
            Self::Between(a, b) => format!("k BETWEEN {a} AND {b}"),
            Self::Constant(b) => if *b { "1" } else { "FALSE" }.into(),
            Self::Not(p) => {
                out.push_str("NOT ");
                return p.write(3, out);
            }
            Self::And(a, b) => return Self::write_pair(a, " AND ", b, 2, out),
            Self::Or(a, b) => return Self::write_pair(a, " OR ", b, 0, out),
            Self::Xor(a, b) => return Self::write_pair(a, " XOR ", b, 1, out),
            Self::Group(p) => {
                out.push('(');
                p.write(0, out);
                return out.push(')');
            }
        };
        out.push_str(&leaf);
    }

    fn write_pair(a: &Self, operator: &str, b: &Self, level: u8, out: &mut String) {
        a.write(level, out);
        out.push_str(operator);
        b.write(level + 1, out);
    }
}

fn small() -> impl Strategy<Value = i64> {
    0..12i64
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let leaf = prop_oneof![
        4 => small().prop_map(Predicate::Id),
        3 => prop::collection::vec(prop::option::weighted(0.9, small()), 1..4).prop_map(Predicate::IdOf),
        2 => small().prop_map(Predicate::K),
        1 => Just(Predicate::IdIsK),
        1 => small().prop_map(Predicate::NullSafe),
        1 => Just(Predicate::IsNull),
        1 => (small(), small()).prop_map(|(a, b)| Predicate::Between(a, b)),
        1 => any::<bool>().prop_map(Predicate::Constant),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            4 => pair().prop_map(|(a, b)| Predicate::And(a, b)),
            4 => pair().prop_map(|(a, b)| Predicate::Or(a, b)),
            1 => pair().prop_map(|(a, b)| Predicate::Xor(a, b)),
            1 => inner.clone().prop_map(|p| Predicate::Not(Box::new(p))),
            1 => inner.prop_map(|p| Predicate::Group(Box::new(p))),
        ]
    })
}

/// The shards a SELECT may read; all for "any", which must be empty anyway.
fn routed(session: &Session, sql: &str) -> Option<Vec<String>> {
    let bound = session.bind(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    if bound.to == BoundTo::Any {
        return None;
    }
    Some(bound.legs.iter().map(|l| l.shard.shard.to_string()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_matching_row_lies_outside_the_routed_shards(p in predicate(), k in prop::option::of(small())) {
        let s = session_of_property();
        let mut condition = String::new();
        p.write(0, &mut condition);
        let sql = format!("SELECT * FROM t WHERE {condition}");
        let shards = routed(s, &sql);
        for id in 0..12 {
            if p.holds(Row { id, k }) != Some(true) {
                continue;
            }
            let home = format!("s{}", id % 4);
            match &shards {
                None => prop_assert!(false, "{} matches id {} but goes anywhere", sql, id),
                Some(shards) => prop_assert!(shards.contains(&home), "{} matches id {} outside {:?}", sql, id, shards),
            }
        }
    }

    /// Joined rows are found on the shards a join is sent to, if each shard joins only its own rows.
    #[test]
    fn a_join_sent_to_shards_finds_every_pair(
        on in predicate(), filter in predicate(), left in any::<bool>(), colocated in any::<bool>(),
        a in small(), b in small(), ka in small(), kb in small(),
    ) {
        let s = session_of_property();
        let (mut on_text, mut where_text) = (String::new(), String::new());
        on.write(3, &mut on_text);
        filter.write(3, &mut where_text);
        let name = |text: String, table: &str| {
            text.replace("t.id", "id").replace("id ", &format!("{table}.id ")).replace(" k", &format!(" {table}.k"))
        };
        let on_text = name(on_text, "y");
        let where_text = name(where_text, "x");
        let together = if colocated { "x.id = y.id AND " } else { "" };
        let join = if left { "LEFT JOIN" } else { "JOIN" };
        let sql = format!("SELECT * FROM t x {join} t y ON {together}{on_text} WHERE {where_text}");
        let Ok(bound) = s.bind(&sql) else { return Ok(()) };

        let (x, y) = (Row { id: a, k: Some(ka) }, Row { id: b, k: Some(kb) });
        let joins = on.holds(y) == Some(true) && (!colocated || x.id == y.id);
        let kept = filter.holds(x) == Some(true);
        if !kept || !(joins || left) {
            return Ok(());
        }
        let shards: Vec<_> = bound.legs.iter().map(|l| l.shard.shard.to_string()).collect();
        let home = |row: Row| format!("s{}", row.id % 4);
        prop_assert!(bound.to != BoundTo::Any, "{}", sql);
        prop_assert!(shards.contains(&home(x)), "{}: {:?}", sql, shards);
        if joins {
            prop_assert_eq!(home(x), home(y), "{} joins rows of two shards", sql);
        }
    }

    #[test]
    fn no_text_makes_the_planner_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..30)) {
        let s = session_of_property();
        let sql = words.join(" ");
        if let Ok(lexed) = lex(sql.as_bytes(), &LexOptions::default()) {
            drop(lexed);
            let _ = s.bind(&sql);
        }
    }
}

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "t",
    "id",
    "=",
    "1",
    "(",
    ")",
    ",",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "CASE",
    "END",
    "UNION",
    "ORDER BY",
    "GROUP BY",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "USING",
    "INSERT INTO",
    "VALUES",
    "SET",
    "UPDATE",
    "DELETE",
    "AS",
    "x",
    ".",
    "*",
    "COUNT(",
    "NOW()",
    "LAST_INSERT_ID()",
    "?",
    "NULL",
    "WITH",
    "'s'",
    "DUPLICATE KEY UPDATE",
    "ROW",
    "RETURNING",
    "LATERAL",
    "INTERVAL",
    "shop",
    "mall",
    "FOR UPDATE",
    "-",
    ";",
    "ROWS",
];

/// Building the catalog takes longer than a plan: it is done once.
fn session_of_property() -> &'static Session {
    static SESSION: std::sync::OnceLock<Session> = std::sync::OnceLock::new();
    SESSION.get_or_init(|| session("shop"))
}
