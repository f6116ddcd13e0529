//! Statements about the session, read from their tokens: SET, USE, KILL, SHOW.
//!
//! The gateway answers these itself, so it needs their parts and not a tree. Each function gives `None` for text it
//! does not know; the caller then refuses the statement rather than half-obey it.

mod set;
mod show;

pub use set::{SetItem, SetScope, SetValue, parse_set};
pub use show::{Show, ShowKind, parse_show};

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::literal::Literal;
use crate::token::TokenKind;

/// What a KILL asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillRequest {
    /// The connection's id.
    pub id: u64,
    /// Whether only its running statement should end.
    pub query_only: bool,
}

/// Reads `KILL [CONNECTION | QUERY] id`. Killing by user, by query id, or by an expression is not known.
pub fn parse_kill(lexed: &Lexed<'_>) -> Option<KillRequest> {
    let query_only = lexed.is_keyword(1, Keyword::Query);
    let at = if query_only || lexed.is_keyword(1, Keyword::Connection) {
        2
    } else {
        1
    };
    let Some(Literal::Int(id)) = lexed.literal(at) else {
        return None;
    };
    ends(lexed, at + 1).then_some(KillRequest { id, query_only })
}

/// Reads `USE target`: the target's text. Quoted, it is the name; bare, it is all the bytes behind USE, so that
/// `USE commerce:-40@replica` needs no quotes.
pub fn parse_use(lexed: &Lexed<'_>) -> Option<String> {
    let end = end(lexed);
    if !lexed.is_keyword(0, Keyword::Use) || end < 2 {
        return None;
    }
    if end == 2 {
        return text(lexed.name(1).as_deref().unwrap_or_else(|| lexed.text(1)));
    }
    let bytes = &lexed.src()[lexed.span(1..end)];
    // No space, so no comment either, but for one without any.
    let plain = |byte: &u8| !byte.is_ascii() || (byte.is_ascii_graphic() && !b"`'\"*".contains(byte));
    if !bytes.iter().all(plain) {
        return None;
    }
    text(bytes)
}

/// The index behind the last token that is not a semicolon.
fn end(lexed: &Lexed<'_>) -> usize {
    lexed.len()
        - usize::from(
            lexed
                .tokens()
                .last()
                .is_some_and(|token| token.kind == TokenKind::Semicolon),
        )
}

/// Whether nothing stands from token `at` on.
fn ends(lexed: &Lexed<'_>, at: usize) -> bool {
    at >= end(lexed)
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// A name, or a string used as one.
fn name_or_string(lexed: &Lexed<'_>, at: usize) -> Option<String> {
    match lexed.literal(at) {
        Some(Literal::String(value)) => text(&value),
        Some(_) => None,
        None => text(&lexed.name(at)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LexOptions, lex};

    #[test]
    fn kill_names_a_connection() {
        let kill = |sql: &str| parse_kill(&lex(sql.as_bytes(), &LexOptions::default()).unwrap());
        assert_eq!(
            kill("KILL 7"),
            Some(KillRequest {
                id: 7,
                query_only: false
            })
        );
        assert_eq!(
            kill("kill connection 7;"),
            Some(KillRequest {
                id: 7,
                query_only: false
            })
        );
        assert_eq!(
            kill("KILL QUERY 18446744073709551615"),
            Some(KillRequest {
                id: u64::MAX,
                query_only: true
            })
        );
        for sql in [
            "KILL",
            "KILL QUERY",
            "KILL QUERY ID 7",
            "KILL 7 8",
            "KILL 7 + 1",
            "KILL USER bob",
            "KILL -1",
        ] {
            assert_eq!(kill(sql), None, "{sql}");
        }
    }

    #[test]
    fn a_target_needs_no_quotes() {
        let target = |sql: &str| parse_use(&lex(sql.as_bytes(), &LexOptions::default()).unwrap());
        for (sql, expected) in [
            ("USE commerce", "commerce"),
            ("use `commerce:-40@replica` ;", "commerce:-40@replica"),
            ("USE `a``b`", "a`b"),
            ("USE commerce:-40", "commerce:-40"),
            ("USE commerce:5e-60@primary", "commerce:5e-60@primary"),
            ("USE commerce:80-@replica;", "commerce:80-@replica"),
            ("USE commerce@replica", "commerce@replica"),
            ("USE commerce/c0-", "commerce/c0-"),
            ("USE @replica", "@replica"),
            ("USE order", "order"),
        ] {
            assert_eq!(target(sql).as_deref(), Some(expected), "{sql}");
        }
        for sql in ["USE", "USE a b", "USE a:`b`", "USE a : b", "USE a/**/b"] {
            assert_eq!(target(sql), None, "{sql}");
        }
    }
}
