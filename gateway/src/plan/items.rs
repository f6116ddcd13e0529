//! A select list: its items, their aliases, and what a name in ORDER BY means by it.

use shardgate_sql::{Keyword as K, TokenKind};

use super::predicate::ColumnRef;
use super::statement::{Span, Statement};

/// One item of a select list.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// All its tokens.
    pub(super) span: Span,
    /// Its expression, without alias.
    pub(super) expression: Span,
    /// Its alias.
    pub(super) alias: Option<String>,
    /// Whether it stands for any number of columns.
    pub(super) star: bool,
    /// The column it is, if it is nothing else.
    pub(super) column: Option<ColumnRef>,
}

/// Reads a select list.
pub(super) fn items(statement: &Statement<'_>, span: Span) -> Vec<Item> {
    statement
        .split_commas(span)
        .into_iter()
        .map(|span| item(statement, span))
        .collect()
}

fn item(statement: &Statement<'_>, span: Span) -> Item {
    let (expression, alias) = split_alias(statement, &span);
    let star = span.end > span.start
        && statement.is(span.end - 1, TokenKind::Star)
        && (span.len() == 1 || statement.is(span.end - 2, TokenKind::Dot));
    let column = ColumnRef::parse(statement, &expression);
    Item {
        span,
        expression,
        alias,
        star,
        column,
    }
}

/// An alias is a name or string behind AS, or one right behind the end of an operand.
fn split_alias(statement: &Statement<'_>, span: &Span) -> (Span, Option<String>) {
    let none = || (span.clone(), None);
    let Some(last) = span.end.checked_sub(1).filter(|last| *last > span.start) else {
        return none();
    };
    let Some(alias) = name_or_string(statement, last) else {
        return none();
    };
    if statement.is_keyword(last - 1, K::As) {
        return (span.start..last - 1, Some(alias));
    }
    let interval = statement
        .flat(span.clone())
        .any(|at| statement.is_keyword(at, K::Interval));
    let keyword = statement.keyword(last);
    let word = keyword == Some(K::End) || (keyword.is_some() && interval);
    if word || !ends_operand(statement, last - 1) {
        return none();
    }
    // Strings in a row are one string.
    let continued = statement.is(last, TokenKind::String) && is_string(statement, last - 1);
    if continued {
        none()
    } else {
        (span.start..last, Some(alias))
    }
}

fn is_string(statement: &Statement<'_>, at: usize) -> bool {
    statement.is(at, TokenKind::String) || statement.is(at, TokenKind::NationalString)
}

fn name_or_string(statement: &Statement<'_>, at: usize) -> Option<String> {
    if statement.is(at, TokenKind::String) {
        let text = statement.lexed.string_value(statement.lexed.range(at))?;
        return Some(String::from_utf8_lossy(&text).into_owned());
    }
    statement.name(at)
}

/// Whether an operand may end with this token, so that a name behind it is an alias.
fn ends_operand(statement: &Statement<'_>, at: usize) -> bool {
    let kind = statement.lexed.kind(at);
    match statement.keyword(at) {
        Some(
            K::Null
            | K::True
            | K::False
            | K::End
            | K::CurrentUser
            | K::CurrentTimestamp
            | K::CurrentDate
            | K::CurrentTime
            | K::Localtime
            | K::Localtimestamp
            | K::UtcDate
            | K::UtcTime
            | K::UtcTimestamp,
        ) => true,
        Some(keyword) => !keyword.is_reserved(),
        None => kind.is_some_and(|k| {
            k.is_name()
                || k.is_literal()
                || matches!(
                    k,
                    TokenKind::RParen | TokenKind::UserVariable | TokenKind::SystemVariable
                )
        }),
    }
}
