//! Our tokens as `sqlparser`'s, spans kept.

use std::fmt::Write as _;

use sqlparser::keywords::Keyword as ParserKeyword;
use sqlparser::tokenizer::{Location, Span, Token as ParserToken, TokenWithSpan, Word};

use super::ParseError;
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::literal::Literal;
use crate::token::TokenKind;

pub(super) fn tokens(lexed: &Lexed<'_>) -> Result<Vec<TokenWithSpan>, ParseError> {
    let mut tokens = Vec::with_capacity(lexed.len());
    let mut at = 0;
    while at < lexed.len() {
        let mut end = at + 1;
        if is_share_mode(lexed, at) {
            tokens.push(TokenWithSpan {
                token: ParserToken::make_keyword("FOR"),
                span: span(lexed, at, end),
            });
            tokens.push(TokenWithSpan {
                token: ParserToken::make_keyword("SHARE"),
                span: span(lexed, end, at + 4),
            });
            at += 4;
            continue;
        }
        if !is_dropped(lexed, at) {
            // A string behind a string is the same string, going on.
            if is_string(lexed, at) {
                while lexed.is(end, TokenKind::String) {
                    end += 1;
                }
            }
            tokens.push(TokenWithSpan {
                token: token(lexed, at, end)?,
                span: span(lexed, at, end),
            });
        }
        at = end;
    }
    Ok(tokens)
}

fn is_string(lexed: &Lexed<'_>, at: usize) -> bool {
    matches!(
        lexed.kind(at),
        Some(TokenKind::String | TokenKind::NationalString)
    )
}

/// `LOCK IN SHARE MODE`, which `sqlparser` knows as `FOR SHARE`.
fn is_share_mode(lexed: &Lexed<'_>, at: usize) -> bool {
    let words = [Keyword::Lock, Keyword::In, Keyword::Share, Keyword::Mode];
    words
        .iter()
        .enumerate()
        .all(|(ahead, word)| lexed.is_keyword(at + ahead, *word))
}

/// Keywords of other dialects that MySQL lets stand as an alias, and of clauses that no consumer of the tree handles:
/// `FROM a FULL JOIN b` is a table `a` called `full`.
fn is_hidden(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::Full
            | K::Fetch
            | K::Global
            | K::Local
            | K::Materialized
            | K::Filter
            | K::Format
            | K::Nulls
            | K::At
            | K::Wait
    )
}

/// Whether the token says nothing about which rows and columns, and `sqlparser` would stumble over it: hints, and
/// modifiers of the verb. They still travel, as the original bytes do.
fn is_dropped(lexed: &Lexed<'_>, at: usize) -> bool {
    use Keyword as K;
    match lexed.keyword(at) {
        Some(K::LowPriority | K::Quick | K::Ignore) => {
            // No verb has more than three modifiers.
            let verb = (0..at).rev().take(4).find(|before| {
                !matches!(
                    lexed.keyword(*before),
                    Some(K::LowPriority | K::Quick | K::Ignore)
                ) && !lexed.is(*before, TokenKind::Hint)
            });
            let verb = verb.filter(|verb| *verb == 0 || !lexed.is_keyword(verb - 1, K::For));
            verb.is_some_and(|verb| matches!(lexed.keyword(verb), Some(K::Update | K::Delete)))
        }
        Some(K::SqlCache) => true,
        _ => lexed.is(at, TokenKind::Hint),
    }
}

fn span(lexed: &Lexed<'_>, at: usize, end: usize) -> Span {
    let range = lexed.span(at..end);
    let location = |offset: usize| Location {
        line: 1,
        column: offset as u64 + 1,
    };
    Span {
        start: location(range.start),
        end: location(range.end),
    }
}

fn token(lexed: &Lexed<'_>, at: usize, end: usize) -> Result<ParserToken, ParseError> {
    use ParserToken as P;
    use TokenKind as T;
    let Some(kind) = lexed.kind(at) else {
        return Ok(P::EOF);
    };
    Ok(match kind {
        T::Word => match lexed.keyword(at) {
            Some(Keyword::Null) => P::make_keyword("NULL"),
            Some(keyword) if !is_hidden(keyword) => P::make_word(utf8(lexed.text(at))?, None),
            _ => name(utf8(lexed.text(at))?.to_owned(), None),
        },
        T::QuotedIdent => {
            let text = lexed.name(at).unwrap_or_default();
            name(utf8(&text)?.to_owned(), Some('`'))
        }
        T::Introducer => name(utf8(lexed.text(at))?.to_owned(), None),
        T::UserVariable => variable(lexed, at, "@")?,
        T::SystemVariable => variable(lexed, at, "@@")?,
        T::String => text(lexed, at, end, P::SingleQuotedString),
        T::NationalString => text(lexed, at, end, P::NationalStringLiteral),
        T::Hex => P::HexStringLiteral(digits(lexed.text(at))?),
        T::Bit => P::SingleQuotedByteStringLiteral(digits(lexed.text(at))?),
        T::Int | T::Decimal | T::Float => P::Number(utf8(lexed.text(at))?.to_owned(), false),
        T::Placeholder => P::Placeholder("?".to_owned()),
        T::PipePipe if lexed.options().mode.pipes_as_concat() => P::StringConcat,
        T::PipePipe => P::make_keyword("OR"),
        T::AmpAmp => P::make_keyword("AND"),
        _ => symbol(kind),
    })
}

fn symbol(kind: TokenKind) -> ParserToken {
    use ParserToken as P;
    use TokenKind as T;
    match kind {
        T::Comma => P::Comma,
        T::Dot => P::Period,
        T::Semicolon => P::SemiColon,
        T::Colon => P::Colon,
        T::Assign => P::Assignment,
        T::LParen => P::LParen,
        T::RParen => P::RParen,
        T::LBrace => P::LBrace,
        T::RBrace => P::RBrace,
        T::Eq => P::Eq,
        T::NullSafeEq => P::Spaceship,
        T::NotEq => P::Neq,
        T::Lt => P::Lt,
        T::LtEq => P::LtEq,
        T::Gt => P::Gt,
        T::GtEq => P::GtEq,
        T::ShiftLeft => P::ShiftLeft,
        T::ShiftRight => P::ShiftRight,
        T::Plus => P::Plus,
        T::Minus => P::Minus,
        T::Star => P::Mul,
        T::Slash => P::Div,
        T::Percent => P::Mod,
        T::Amp => P::Ampersand,
        T::Pipe => P::Pipe,
        T::Caret => P::Caret,
        T::Tilde => P::Tilde,
        T::Bang => P::ExclamationMark,
        T::Arrow => P::Arrow,
        T::LongArrow => P::LongArrow,
        // The rest were handled by the caller; a token no grammar has makes the parser refuse.
        _ => P::DoubleSharp,
    }
}

/// A word that is no keyword to the parser, whatever `sqlparser` would think of it.
fn name(value: String, quote_style: Option<char>) -> ParserToken {
    ParserToken::Word(Word {
        value,
        quote_style,
        keyword: ParserKeyword::NoKeyword,
    })
}

fn variable(lexed: &Lexed<'_>, at: usize, prefix: &str) -> Result<ParserToken, ParseError> {
    let text = lexed.variable(at).unwrap_or_default();
    Ok(name(format!("{prefix}{}", utf8(&text)?), None))
}

fn text(lexed: &Lexed<'_>, at: usize, end: usize, make: fn(String) -> ParserToken) -> ParserToken {
    let mut value = Vec::new();
    for part in at..end {
        if let Some(Literal::String(part) | Literal::NationalString(part)) = lexed.literal(part) {
            value.extend_from_slice(&part);
        }
    }
    match String::from_utf8(value) {
        Ok(value) => make(value),
        Err(error) => {
            let mut hex = String::new();
            for byte in error.as_bytes() {
                // Writing to a string cannot fail.
                let _ = write!(hex, "{byte:02x}");
            }
            ParserToken::EscapedStringLiteral(hex)
        }
    }
}

/// The digits of `x'..'`, `0x..`, `b'..'` or `0b..`.
fn digits(text: &[u8]) -> Result<String, ParseError> {
    let text = text.get(2..).unwrap_or_default();
    Ok(utf8(text.strip_suffix(b"'").unwrap_or(text))?.to_owned())
}

fn utf8(bytes: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(bytes).map_err(|_| ParseError::NotUtf8)
}
