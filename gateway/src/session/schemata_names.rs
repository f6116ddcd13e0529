//! Which keyspace a query on `information_schema` asks about: read off the comparisons of its schema columns.
//!
//! One tablet answers, so the gateway must know whose. A name that is missed can only make a listing shorter than one
//! server's, never wrong; what names several keyspaces is not guessed about.

use std::collections::BTreeSet;

use shardgate_sql::{Keyword as K, Lexed, Literal, TokenKind};

use super::like::like;
use crate::base::KeyspaceName;

/// Columns of `information_schema` that hold the name of a schema.
const SCHEMA_COLUMNS: &[&str] = &[
    "CONSTRAINT_SCHEMA",
    "EVENT_OBJECT_SCHEMA",
    "EVENT_SCHEMA",
    "F_TABLE_SCHEMA",
    "G_TABLE_SCHEMA",
    "INDEX_SCHEMA",
    "REFERENCED_TABLE_SCHEMA",
    "ROUTINE_SCHEMA",
    "SCHEMA_NAME",
    "SEQUENCE_SCHEMA",
    "SPECIFIC_SCHEMA",
    "TABLE_SCHEMA",
    "TRIGGER_SCHEMA",
    "UNIQUE_CONSTRAINT_SCHEMA",
    "VIEW_SCHEMA",
];

/// Whether a column holds names of schemas.
pub(super) fn is_schema_column(name: &str) -> bool {
    SCHEMA_COLUMNS.iter().any(|c| c.eq_ignore_ascii_case(name))
}

/// Whether a column of `information_schema` is known to hold no schema's name. Aliases may.
fn is_known_otherwise(name: &[u8]) -> bool {
    let endings: [&[u8]; 5] = [b"_NAME", b"_TYPE", b"_CATALOG", b"_KEY", b"_COMMENT"];
    name == b"ENGINE" || (name != b"SCHEMA_NAME" && endings.iter().any(|e| name.ends_with(e)))
}

/// What a query compares its schema columns with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Names that a schema column must equal.
    names: BTreeSet<String>,
    /// Patterns that it must be like.
    patterns: Vec<String>,
    /// Whether it must equal `DATABASE()`.
    own: bool,
    /// Whether it must equal a parameter that has no value yet.
    unknown: bool,
    /// Other strings, which may or may not be compared with one.
    others: BTreeSet<String>,
}

/// Whose tablets answer a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This keyspace's.
    One(KeyspaceName),
    /// Any: nothing of a keyspace is asked for.
    Any,
    /// The query names several keyspaces, or none where there are several.
    Unclear,
}

impl Asked {
    /// Reads a statement. `param` gives a parameter's value, if it has one that is text.
    pub(super) fn read(lexed: &Lexed<'_>, param: impl Fn(usize) -> Option<String>) -> Self {
        let mut reader = Reader {
            lexed,
            param,
            asked: Self::default(),
            used: BTreeSet::new(),
        };
        for at in 0..lexed.len() {
            reader.column(at);
        }
        reader.rest();
        reader.asked
    }

    /// Whose tablets can answer.
    pub(super) fn choose(&self, all: &BTreeSet<KeyspaceName>, session: Option<&KeyspaceName>) -> Choice {
        let fallback = || match session {
            Some(own) => Choice::One(own.clone()),
            None => Choice::Any,
        };
        let named: BTreeSet<KeyspaceName> = self.keyspaces(all, session);
        match named.len() {
            1 => return named.into_iter().next().map_or(Choice::Any, Choice::One),
            0 => {}
            _ => return Choice::Unclear,
        }
        if self.unknown || self.own || !self.names.is_empty() || !self.patterns.is_empty() {
            return fallback();
        }
        let mut others = self.others.iter().filter_map(|n| all.get(n.as_str()));
        match (others.next(), others.next()) {
            (Some(one), None) => return Choice::One(one.clone()),
            (Some(_), Some(_)) => return Choice::Unclear,
            (None, _) => {}
        }
        if session.is_none() && all.len() > 1 {
            return Choice::Unclear;
        }
        fallback()
    }

    /// The keyspaces that schema columns are compared with.
    fn keyspaces(
        &self,
        all: &BTreeSet<KeyspaceName>,
        session: Option<&KeyspaceName>,
    ) -> BTreeSet<KeyspaceName> {
        let mut found: BTreeSet<_> = self
            .names
            .iter()
            .filter_map(|n| all.get(n.as_str()))
            .cloned()
            .collect();
        found.extend(session.filter(|_| self.own).cloned());
        for pattern in &self.patterns {
            let matches = |k: &&KeyspaceName| like(k.as_str(), pattern);
            let matching: BTreeSet<_> = all.iter().filter(matches).cloned().collect();
            // As without a pattern, the session's own is enough if it is among them.
            match session.filter(|own| matching.contains(*own)) {
                Some(own) => {
                    found.insert(own.clone());
                }
                None => found.extend(matching),
            }
        }
        found
    }

    /// The keyspaces of which a listing of all schemas must tell; `None`: all.
    pub(super) fn listed(&self) -> Option<&BTreeSet<String>> {
        (!self.names.is_empty() && self.patterns.is_empty() && !self.own && !self.unknown)
            .then_some(&self.names)
    }

    /// Whether `information_schema` itself is to be among the schemas.
    pub(super) fn wants_information_schema(&self, all: &BTreeSet<KeyspaceName>) -> bool {
        let certain = self.own || self.names.iter().any(|n| all.contains(n.as_str()));
        !certain
            || !self.patterns.is_empty()
            || self.unknown
            || self
                .names
                .iter()
                .any(|n| n.eq_ignore_ascii_case("information_schema"))
    }
}

/// The right side of a comparison.
enum Operand {
    Text(String),
    Own,
    Unknown,
    Other,
}

struct Reader<'r, 'a, P> {
    lexed: &'r Lexed<'a>,
    param: P,
    asked: Asked,
    /// Literals that are accounted for.
    used: BTreeSet<usize>,
}

impl<P: Fn(usize) -> Option<String>> Reader<'_, '_, P> {
    /// Reads what a schema column at this token is compared with.
    fn column(&mut self, at: usize) {
        let lexed = self.lexed;
        let is_column = lexed
            .name(at)
            .is_some_and(|n| std::str::from_utf8(&n).is_ok_and(is_schema_column));
        if !is_column || lexed.is(at + 1, TokenKind::Dot) {
            return;
        }
        let negated = lexed.is_keyword(at + 1, K::Not);
        let next = at + 1 + usize::from(negated);
        match (lexed.kind(next), lexed.keyword(next)) {
            (Some(TokenKind::Eq | TokenKind::NullSafeEq), _) => self.equals(next + 1),
            (Some(TokenKind::NotEq), _) => {
                self.operand(next + 1);
            }
            (_, Some(K::In)) => self.list(next + 1, negated),
            (_, Some(K::Like)) => {
                let operand = self.operand(next + 1).0;
                if let (false, Operand::Text(pattern)) = (negated, operand) {
                    self.asked.patterns.push(pattern);
                }
            }
            _ => {}
        }
        self.before(at);
    }

    /// `'shop' = t.table_schema`
    fn before(&mut self, column: usize) {
        let lexed = self.lexed;
        let mut head = column;
        while head >= 2 && lexed.is(head - 1, TokenKind::Dot) {
            head -= 2;
        }
        let compares = head
            .checked_sub(1)
            .is_some_and(|at| matches!(lexed.kind(at), Some(TokenKind::Eq | TokenKind::NullSafeEq)));
        let Some(last) = head.checked_sub(2).filter(|_| compares) else {
            return;
        };
        let first = if lexed.is(last, TokenKind::RParen) {
            last.saturating_sub(2)
        } else {
            last
        };
        self.equals(first);
    }

    fn equals(&mut self, at: usize) {
        match self.operand(at).0 {
            Operand::Text(name) => {
                self.asked.names.insert(name);
            }
            Operand::Own => self.asked.own = true,
            Operand::Unknown => self.asked.unknown = true,
            Operand::Other => {}
        }
    }

    fn list(&mut self, open: usize, negated: bool) {
        if !self.lexed.is(open, TokenKind::LParen) {
            return;
        }
        let mut at = open + 1;
        loop {
            if negated {
                self.operand(at);
            } else {
                self.equals(at);
            }
            let next = self.operand(at).1;
            if !self.lexed.is(next, TokenKind::Comma) {
                return;
            }
            at = next + 1;
        }
    }

    /// The operand that begins at a token, and the token behind it.
    fn operand(&mut self, at: usize) -> (Operand, usize) {
        let lexed = self.lexed;
        let own = lexed.is_word(at, "database") || lexed.is_word(at, "schema");
        if own && lexed.is(at + 1, TokenKind::LParen) && lexed.is(at + 2, TokenKind::RParen) {
            return (Operand::Own, at + 3);
        }
        let at = at + usize::from(lexed.is(at, TokenKind::Introducer));
        let operand = self.value(at);
        if !matches!(operand, Operand::Other) {
            self.used.insert(at);
        }
        (operand, at + 1)
    }

    /// A literal's value.
    fn value(&self, at: usize) -> Operand {
        let bytes = match self.lexed.literal(at) {
            Some(Literal::String(bytes) | Literal::NationalString(bytes)) => bytes.into_owned(),
            Some(Literal::Hex(bytes)) => bytes,
            Some(Literal::Placeholder) => {
                let is_param = |t: &usize| self.lexed.is(*t, TokenKind::Placeholder);
                let number = (0..at).filter(is_param).count();
                return (self.param)(number).map_or(Operand::Unknown, Operand::Text);
            }
            _ => return Operand::Other,
        };
        String::from_utf8(bytes).map_or(Operand::Other, Operand::Text)
    }

    /// Strings that are compared with no column that is known to be another.
    fn rest(&mut self) {
        for at in 0..self.lexed.len() {
            if self.used.contains(&at) || self.is_of_another_column(at) {
                continue;
            }
            if let Operand::Text(text) = self.value(at) {
                self.asked.others.insert(text);
            }
        }
    }

    fn is_of_another_column(&self, at: usize) -> bool {
        let Some(operator) = at.checked_sub(1) else {
            return false;
        };
        let compares = matches!(
            self.lexed.kind(operator),
            Some(TokenKind::Eq | TokenKind::NullSafeEq | TokenKind::NotEq)
        ) || self.lexed.is_keyword(operator, K::Like);
        let column = operator.checked_sub(1).and_then(|c| self.lexed.name(c));
        compares && column.is_some_and(|c| is_known_otherwise(&c.to_ascii_uppercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    fn all() -> BTreeSet<KeyspaceName> {
        [KeyspaceName::from("shop"), KeyspaceName::from("lookup")].into()
    }

    fn choice(sql: &str, session: Option<&str>) -> Choice {
        let options = LexOptions::default();
        let lexed = lex(sql.as_bytes(), &options).unwrap();
        let param = |n: usize| ["shop", "t"].get(n).map(|s| (*s).to_owned());
        let session = session.map(KeyspaceName::from);
        Asked::read(&lexed, param).choose(&all(), session.as_ref())
    }

    #[test]
    fn the_keyspace_compared_with_answers() {
        let shop = Choice::One("shop".into());
        for rest in [
            "table_schema = 'shop'",
            "t.TABLE_SCHEMA = _utf8mb4'shop' AND table_name = 'lookup'",
            "'shop' = information_schema.t.table_schema",
            "table_schema IN ('mysql', 'shop')",
            "table_schema = ? AND table_name = ?",
            "table_schema LIKE 'sh%'",
            "(table_schema, table_name) IN (('shop', 'customers'))",
            "LOWER(table_schema) = 'shop'",
            "x.s = 'shop' AND x.table_name = 'lookup'",
        ] {
            let sql = format!("SELECT * FROM information_schema.tables t WHERE {rest}");
            assert_eq!(choice(&sql, Some("lookup")), shop, "{rest}");
            assert_eq!(choice(&sql, None), shop, "{rest}");
        }
    }

    #[test]
    fn otherwise_the_sessions_own_answers() {
        for rest in [
            "table_schema = DATABASE()",
            "schema() = table_schema",
            "table_schema NOT IN ('shop', 'mysql')",
            "table_schema <> 'shop'",
            "table_name = 'shop'",
            "table_schema LIKE '%'",
            "table_schema = 'nowhere'",
        ] {
            let sql = format!("SELECT * FROM information_schema.tables WHERE {rest}");
            assert_eq!(
                choice(&sql, Some("lookup")),
                Choice::One("lookup".into()),
                "{rest}"
            );
        }
    }

    #[test]
    fn several_keyspaces_are_not_guessed_about() {
        for rest in [
            "table_schema IN ('shop', 'lookup')",
            "table_schema = 'shop' OR table_schema = DATABASE()",
            "CONCAT(table_schema) IN ('shop', 'lookup')",
        ] {
            let sql = format!("SELECT * FROM information_schema.tables WHERE {rest}");
            assert_eq!(choice(&sql, Some("lookup")), Choice::Unclear, "{rest}");
        }
        assert_eq!(
            choice("SELECT * FROM information_schema.tables", None),
            Choice::Unclear
        );
        let sql = "SELECT * FROM information_schema.tables WHERE table_schema LIKE '%'";
        assert_eq!(choice(sql, None), Choice::Unclear);
    }

    #[test]
    fn the_servers_own_schema_is_shown_unless_another_is_asked_for() {
        let wants = |sql: &str| {
            let options = LexOptions::default();
            let lexed = lex(sql.as_bytes(), &options).unwrap();
            Asked::read(&lexed, |_| None).wants_information_schema(&all())
        };
        assert!(wants("SELECT * FROM tables"));
        assert!(wants(
            "SELECT * FROM tables WHERE table_schema IN ('shop', 'INFORMATION_SCHEMA')"
        ));
        assert!(!wants("SELECT * FROM tables WHERE table_schema = 'shop'"));
        assert!(!wants("SELECT * FROM tables WHERE table_schema = DATABASE()"));
    }
}
