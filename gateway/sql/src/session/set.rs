//! SET.

use std::borrow::Cow;
use std::ops::Range;

use super::{end, name_or_string, text};
use crate::classify::IsolationLevel;
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::literal::Literal;
use crate::token::TokenKind;

/// One assignment of a SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetItem {
    /// `name = value`, `SESSION name = value`, `@@global.name = value`.
    Variable {
        /// The scope written, or that of the last scope keyword before.
        scope: SetScope,
        /// The name in small letters. A variable of a component keeps its dot.
        name: String,
        /// The tokens of the value.
        value: Range<usize>,
    },
    /// `@name = value`
    UserVariable {
        /// The name in small letters, as servers compare it.
        name: String,
        /// The tokens of the value.
        value: Range<usize>,
    },
    /// `NAMES charset [COLLATE collation]`
    Names {
        /// The charset; `None` for DEFAULT.
        charset: Option<String>,
        /// The collation.
        collation: Option<String>,
    },
    /// `CHARACTER SET charset`
    CharacterSet {
        /// The charset; `None` for DEFAULT.
        charset: Option<String>,
    },
    /// `TRANSACTION ISOLATION LEVEL ..., READ ONLY`
    Transaction {
        /// `Unwritten` is the next transaction only.
        scope: SetScope,
        /// The isolation level.
        isolation: Option<IsolationLevel>,
        /// `Some(true)` for READ ONLY, `Some(false)` for READ WRITE.
        read_only: Option<bool>,
    },
}

/// Whose variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetScope {
    /// Not said, which means the session for a variable.
    Unwritten,
    /// SESSION or LOCAL
    Session,
    /// GLOBAL
    Global,
    /// PERSIST
    Persist,
    /// `PERSIST_ONLY`
    PersistOnly,
}

/// What a variable is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetValue<'a> {
    /// DEFAULT
    Default,
    /// NULL
    Null,
    /// TRUE or FALSE
    Bool(bool),
    /// A literal.
    Literal(Literal<'a>),
    /// A number with a minus.
    Negative(Literal<'a>),
    /// A bare word or quoted name: `ON`, `utf8mb4`, `STRICT_ALL_TABLES`.
    Word(Cow<'a, [u8]>),
    /// Anything else.
    Expression,
}

/// Reads a SET. `SET PASSWORD`, `SET ROLE`, `SET STATEMENT` and `SET RESOURCE GROUP` are not known here.
pub fn parse_set(lexed: &Lexed<'_>) -> Option<Vec<SetItem>> {
    if !lexed.is_keyword(0, Keyword::Set) {
        return None;
    }
    let mut items = Vec::new();
    let mut scope = SetScope::Unwritten;
    let mut at = 1;
    loop {
        if let Some(written) = lexed.keyword(at).and_then(scope_of)
            && !assigns(lexed, at + 1)
        {
            scope = written;
            at += 1;
        }
        if lexed.is_keyword(at, Keyword::Transaction) && !assigns(lexed, at + 1) {
            // It takes all that follows, and stands alone.
            let transaction = transaction(lexed, at + 1, scope)?;
            return items.is_empty().then(|| vec![transaction]);
        }
        let (item, next) = item(lexed, at, scope)?;
        items.push(item);
        if next >= end(lexed) {
            return Some(items);
        }
        if !lexed.is(next, TokenKind::Comma) {
            return None;
        }
        at = next + 1;
    }
}

fn assigns(lexed: &Lexed<'_>, at: usize) -> bool {
    matches!(lexed.kind(at), Some(TokenKind::Eq | TokenKind::Assign))
}

fn scope_of(keyword: Keyword) -> Option<SetScope> {
    Some(match keyword {
        Keyword::Session | Keyword::Local => SetScope::Session,
        Keyword::Global => SetScope::Global,
        Keyword::Persist => SetScope::Persist,
        Keyword::PersistOnly => SetScope::PersistOnly,
        _ => return None,
    })
}

/// One item and the index behind it.
fn item(lexed: &Lexed<'_>, at: usize, scope: SetScope) -> Option<(SetItem, usize)> {
    use Keyword as K;
    let assigned = assigns(lexed, at + 1);
    match lexed.keyword(at) {
        Some(K::Names) if !assigned => names(lexed, at + 1),
        Some(K::Charset) if !assigned => character_set(lexed, at + 1),
        Some(K::Character | K::Char) if lexed.is_keyword(at + 1, K::Set) => character_set(lexed, at + 2),
        Some(K::Password | K::Role | K::Statement) => None,
        _ => assignment(lexed, at, scope),
    }
}

fn names(lexed: &Lexed<'_>, at: usize) -> Option<(SetItem, usize)> {
    let charset = name_or_string(lexed, at)?;
    let charset = not_default(lexed, at, charset);
    if charset.is_some() && lexed.is_keyword(at + 1, Keyword::Collate) {
        let collation = name_or_string(lexed, at + 2)?;
        let collation = not_default(lexed, at + 2, collation);
        return Some((SetItem::Names { charset, collation }, at + 3));
    }
    Some((
        SetItem::Names {
            charset,
            collation: None,
        },
        at + 1,
    ))
}

fn character_set(lexed: &Lexed<'_>, at: usize) -> Option<(SetItem, usize)> {
    let charset = name_or_string(lexed, at)?;
    let charset = not_default(lexed, at, charset);
    Some((SetItem::CharacterSet { charset }, at + 1))
}

fn not_default(lexed: &Lexed<'_>, at: usize, name: String) -> Option<String> {
    (!lexed.is_keyword(at, Keyword::Default)).then_some(name)
}

fn assignment(lexed: &Lexed<'_>, at: usize, scope: SetScope) -> Option<(SetItem, usize)> {
    let name = lexed.variable(at).or_else(|| lexed.name(at))?;
    let mut name = text(&name)?.to_ascii_lowercase();
    let mut next = at + 1;
    let user = lexed.is(at, TokenKind::UserVariable);
    let mut scope = scope;
    if lexed.is(at, TokenKind::SystemVariable) {
        // `@@name` is the session's; its scope is its own and not that of a keyword before.
        let (written, rest) = name.split_once('.').unwrap_or(("", &name));
        (scope, name) = match written {
            "session" | "local" => (SetScope::Session, rest.to_owned()),
            "global" => (SetScope::Global, rest.to_owned()),
            "persist" => (SetScope::Persist, rest.to_owned()),
            "persist_only" => (SetScope::PersistOnly, rest.to_owned()),
            _ => (SetScope::Session, name),
        };
    } else if lexed.is(next, TokenKind::Dot) {
        name = format!("{name}.{}", text(&lexed.name(next + 1)?)?.to_ascii_lowercase());
        next += 2;
    }
    if !assigns(lexed, next) {
        return None;
    }
    let value = next + 1..value_end(lexed, next + 1);
    if value.is_empty() {
        return None;
    }
    let behind = value.end;
    let item = if user {
        SetItem::UserVariable { name, value }
    } else {
        SetItem::Variable { scope, name, value }
    };
    Some((item, behind))
}

/// Where the value ends that begins with token `at`: at a comma outside parentheses.
fn value_end(lexed: &Lexed<'_>, at: usize) -> usize {
    let mut depth = 0u32;
    for index in at..end(lexed) {
        match lexed.kind(index) {
            Some(TokenKind::LParen) => depth += 1,
            Some(TokenKind::RParen) => depth = depth.saturating_sub(1),
            Some(TokenKind::Comma) if depth == 0 => return index,
            _ => {}
        }
    }
    end(lexed)
}

fn transaction(lexed: &Lexed<'_>, at: usize, scope: SetScope) -> Option<SetItem> {
    use Keyword as K;
    let (mut isolation, mut read_only) = (None, None);
    let mut at = at;
    loop {
        let word = |ahead: usize| lexed.keyword(at + ahead);
        at += match (word(0), word(1)) {
            (Some(K::Isolation), Some(K::Level)) if isolation.is_none() => {
                let (level, length) = match (word(2), word(3)) {
                    (Some(K::Read), Some(K::Uncommitted)) => (IsolationLevel::ReadUncommitted, 4),
                    (Some(K::Read), Some(K::Committed)) => (IsolationLevel::ReadCommitted, 4),
                    (Some(K::Repeatable), Some(K::Read)) => (IsolationLevel::RepeatableRead, 4),
                    (Some(K::Serializable), _) => (IsolationLevel::Serializable, 3),
                    _ => return None,
                };
                isolation = Some(level);
                length
            }
            (Some(K::Read), Some(mode @ (K::Only | K::Write))) if read_only.is_none() => {
                read_only = Some(mode == K::Only);
                2
            }
            _ => return None,
        };
        if at >= end(lexed) {
            return Some(SetItem::Transaction {
                scope,
                isolation,
                read_only,
            });
        }
        if !lexed.is(at, TokenKind::Comma) {
            return None;
        }
        at += 1;
    }
}

impl<'a> Lexed<'a> {
    /// The value that the tokens of a [`SetItem`] stand for, as far as they are no expression.
    pub fn set_value(&self, value: &Range<usize>) -> SetValue<'a> {
        let at = value.start;
        match value.len() {
            1 => match (self.keyword(at), self.literal(at)) {
                (_, Some(literal)) => SetValue::Literal(literal),
                (Some(Keyword::Default), _) => SetValue::Default,
                (Some(Keyword::Null), _) => SetValue::Null,
                (Some(Keyword::True), _) => SetValue::Bool(true),
                (Some(Keyword::False), _) => SetValue::Bool(false),
                _ => self.name(at).map_or(SetValue::Expression, SetValue::Word),
            },
            2 if self.is(at, TokenKind::Minus) => match self.literal(at + 1) {
                Some(number @ (Literal::Int(_) | Literal::Decimal(_) | Literal::Float(_))) => {
                    SetValue::Negative(number)
                }
                _ => SetValue::Expression,
            },
            _ => SetValue::Expression,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LexOptions, lex};

    fn set(sql: &str) -> Option<Vec<SetItem>> {
        parse_set(&lex(sql.as_bytes(), &LexOptions::default()).unwrap())
    }

    fn shown(sql: &str) -> String {
        let lexed = lex(sql.as_bytes(), &LexOptions::default()).unwrap();
        let show = |item: &SetItem| match item {
            SetItem::Variable { scope, name, value } => {
                format!("{scope:?} {name} {:?}", lexed.set_value(value))
            }
            SetItem::UserVariable { name, value } => format!("@{name} {:?}", lexed.set_value(value)),
            other => format!("{other:?}"),
        };
        parse_set(&lexed)
            .unwrap()
            .iter()
            .map(show)
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn each_form_of_assignment_is_read() {
        for (sql, expected) in [
            ("SET autocommit = 0", "Unwritten autocommit Literal(Int(0))"),
            ("set Autocommit := ON;", "Unwritten autocommit Word([79, 78])"),
            ("SET @@autocommit = TRUE", "Session autocommit Bool(true)"),
            ("SET @@SESSION.Sql_Mode = DEFAULT", "Session sql_mode Default"),
            ("SET LOCAL x = NULL", "Session x Null"),
            (
                "SET @a = 1, @`B` := 'x'",
                "@a Literal(Int(1)); @b Literal(String([120]))",
            ),
            ("SET x = -1", "Unwritten x Negative(Int(1))"),
            (
                "SET x = IF(1, 2, 3), y = 4",
                "Unwritten x Expression; Unwritten y Literal(Int(4))",
            ),
            // A scope keyword holds for what follows; at signs do not.
            (
                "SET GLOBAL x = 1, y = 2",
                "Global x Literal(Int(1)); Global y Literal(Int(2))",
            ),
            (
                "SET GLOBAL x = 1, @@y = 2",
                "Global x Literal(Int(1)); Session y Literal(Int(2))",
            ),
            (
                "SET @@global.x = 1, y = 2",
                "Global x Literal(Int(1)); Unwritten y Literal(Int(2))",
            ),
            ("SET PERSIST x = 1", "Persist x Literal(Int(1))"),
            ("SET names = 1", "Unwritten names Literal(Int(1))"),
            (
                "SET hot.key_buffer_size = 1",
                "Unwritten hot.key_buffer_size Literal(Int(1))",
            ),
            ("SET transaction = 1", "Unwritten transaction Literal(Int(1))"),
        ] {
            assert_eq!(shown(sql), expected, "{sql}");
        }
    }

    #[test]
    fn charsets_and_transactions_are_read() {
        let names = |charset: Option<&str>, collation: Option<&str>| {
            Some(vec![SetItem::Names {
                charset: charset.map(Into::into),
                collation: collation.map(Into::into),
            }])
        };
        assert_eq!(set("SET NAMES utf8mb4"), names(Some("utf8mb4"), None));
        assert_eq!(
            set("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'"),
            names(Some("utf8mb4"), Some("utf8mb4_bin"))
        );
        assert_eq!(set("SET NAMES DEFAULT"), names(None, None));
        assert_eq!(set("SET NAMES binary"), names(Some("binary"), None));
        let latin1 = Some(vec![SetItem::CharacterSet {
            charset: Some("latin1".into()),
        }]);
        assert_eq!(set("SET CHARACTER SET latin1"), latin1);
        assert_eq!(set("SET CHARSET 'latin1'"), latin1);
        assert_eq!(
            set("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
            Some(vec![SetItem::Transaction {
                scope: SetScope::Session,
                isolation: Some(IsolationLevel::ReadCommitted),
                read_only: Some(true),
            }])
        );
        assert_eq!(
            set("SET TRANSACTION READ WRITE"),
            Some(vec![SetItem::Transaction {
                scope: SetScope::Unwritten,
                isolation: None,
                read_only: Some(false)
            }])
        );
        assert_eq!(set("SET NAMES utf8mb4, @a = 1").map(|items| items.len()), Some(2));
    }

    #[test]
    fn what_is_not_known_is_not_half_read() {
        for sql in [
            "SET",
            "SET a",
            "SET a =",
            "SET a = 1,",
            "SET a = 1, , b = 2",
            "SET NAMES utf8mb4 junk",
            "SET PASSWORD = 'x'",
            "SET ROLE admin",
            "SET TRANSACTION ISOLATION LEVEL",
            "SET TRANSACTION READ ONLY, READ WRITE",
            "SET a = 1, TRANSACTION READ ONLY",
        ] {
            assert_eq!(set(sql), None, "{sql}");
        }
    }
}
