//! From our tokens to `sqlparser`'s tree.
//!
//! `sqlparser` never sees the text: it is handed tokens made from ours, each with its byte offsets as its span, so
//! that any part of the tree points back into the original bytes. Expressions are parsed by our own rules (see
//! `expr`), because the stock MySQL dialect binds `&&`, `||`, XOR, shifts, `!`, `MOD` and `BINARY` wrongly, and a
//! wrong tree routes rows to the wrong shard. Literal values in the tree are a convenience; a value that decides
//! anything is read with [`Lexed::literal`] from the original bytes.
//!
//! What is not certain is refused. The caller then runs the statement untouched where the shard is given, and
//! answers "unsupported" elsewhere.

mod bounds;
mod convert;
mod dialect;
mod expr;
#[cfg(test)]
mod tests;

use std::ops::Range;

use sqlparser::ast::Statement;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

use crate::lexed::Lexed;
use dialect::ShardgateDialect;

/// How deep a statement may nest. Each level costs a few kilobytes of stack.
const DEPTH: usize = 48;

/// Why a statement has no tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The parser does not know it. It may still be good SQL.
    #[error("not understood: {0}")]
    Syntax(String),
    /// It nests deeper, or has longer chains of operators, than a tree may have.
    #[error("nested too deeply")]
    TooDeep,
    /// A name in it is not UTF-8.
    #[error("a name is not UTF-8")]
    NotUtf8,
    /// The session's `sql_mode` has another grammar.
    #[error("statements under sql_mode {0} are not understood")]
    Mode(&'static str),
}

/// Parses one statement. A semicolon may end it.
///
/// In the tree:
/// * a span's columns are byte offsets, see [`span_to_range`];
/// * `@name` and `@@name` are identifiers that begin with `@` and have no quote style;
/// * any other quoted identifier has the quote style `` ` ``, whatever quotes were written;
/// * `"x"` is a `SingleQuotedString` (or an identifier, under `ANSI_QUOTES`); strings in a row are one value whose span
///   covers them all; a string that is not UTF-8 is an `EscapedStringLiteral` of its bytes in hexadecimal;
/// * `_charset'x'` is `Prefixed`; bits are a `SingleQuotedByteStringLiteral`;
/// * `&&` and `||` are `And` and `Or` (or `StringConcat`); `!`, and `NOT` under `HIGH_NOT_PRECEDENCE`, is `BangNot`;
///   `BINARY x` is a `Cast`; `x DIV y` is `MyIntegerDivide`; `x MOD y` is `Modulo`;
/// * long chains of AND or OR are balanced, not left-deep, so that a tree's depth is bounded.
pub fn parse(lexed: &Lexed<'_>) -> Result<Statement, ParseError> {
    let mode = lexed.options().mode;
    if mode.oracle() {
        return Err(ParseError::Mode("ORACLE"));
    }
    bounds::check(lexed)?;
    let tokens = convert::tokens(lexed)?;
    let dialect = ShardgateDialect { mode };
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(DEPTH)
        .with_tokens_with_locations(tokens);
    let statement = parser.parse_statement().map_err(ParseError::from)?;
    let _ = parser.consume_token(&Token::SemiColon);
    match parser.peek_token_ref() {
        end if end.token == Token::EOF => Ok(statement),
        rest => Err(ParseError::Syntax(format!("unexpected {}", rest.token))),
    }
}

impl From<ParserError> for ParseError {
    fn from(error: ParserError) -> Self {
        match error {
            ParserError::RecursionLimitExceeded => Self::TooDeep,
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => Self::Syntax(text),
        }
    }
}

/// The bytes that a span of the tree covers. `None` for a span that the parser left empty.
pub fn span_to_range(span: Span) -> Option<Range<usize>> {
    if span.start.line == 0 || span.end.line == 0 {
        return None;
    }
    let start = usize::try_from(span.start.column).ok()?.checked_sub(1)?;
    let end = usize::try_from(span.end.column).ok()?.checked_sub(1)?;
    (start <= end).then_some(start..end)
}
