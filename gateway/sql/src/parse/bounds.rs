//! Bounds on the shape of a tree, checked before one is built.
//!
//! The parser's own limit counts recursion while parsing. It does not see left-deep chains (`a + b + c ...`,
//! `SELECT .. UNION SELECT ..`), which it builds in a loop, and which then overflow the stack of whoever walks or
//! drops them.

use super::ParseError;
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

/// How many operators may be open at once, over all levels of parentheses. AND and OR do not count: their chains
/// are balanced.
const CHAIN: usize = 512;

/// How many set operations a statement may have.
const SET_OPERATIONS: usize = 256;

/// How many parentheses may be open at once.
const PARENS: usize = 64;

pub(super) fn check(lexed: &Lexed<'_>) -> Result<(), ParseError> {
    let mut levels = vec![0usize];
    let mut open = 0usize;
    let mut set_operations = 0usize;
    for token in lexed.tokens() {
        let set_operation = is_set_operation(token.keyword);
        set_operations += usize::from(set_operation);
        if token.kind == TokenKind::LParen {
            levels.push(0);
        } else if token.kind == TokenKind::RParen && levels.len() > 1 {
            open -= levels.pop().unwrap_or(0);
        } else if let Some(here) = levels.last_mut() {
            if token.kind == TokenKind::Comma || set_operation || ends_chain(token.keyword) {
                open -= std::mem::take(here);
            } else if is_operator(token.kind, token.keyword) {
                *here += 1;
                open += 1;
            }
        }
        if open > CHAIN || levels.len() > PARENS || set_operations > SET_OPERATIONS {
            return Err(ParseError::TooDeep);
        }
    }
    Ok(())
}

fn is_set_operation(keyword: Option<Keyword>) -> bool {
    matches!(
        keyword,
        Some(Keyword::Union | Keyword::Except | Keyword::Intersect)
    )
}

fn ends_chain(keyword: Option<Keyword>) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        Some(
            K::Select
                | K::From
                | K::Where
                | K::Having
                | K::On
                | K::Order
                | K::Group
                | K::Limit
                | K::Set
                | K::And
                | K::Or
                | K::When
                | K::Then
                | K::Else
                | K::Join
                | K::Values
        )
    )
}

fn is_operator(kind: TokenKind, keyword: Option<Keyword>) -> bool {
    use Keyword as K;
    use TokenKind as T;
    match kind {
        T::Word => matches!(
            keyword,
            Some(
                K::Xor
                    | K::Div
                    | K::Mod
                    | K::Is
                    | K::In
                    | K::Like
                    | K::Rlike
                    | K::Regexp
                    | K::Between
                    | K::Collate
                    | K::Member
            )
        ),
        T::Eq
        | T::NullSafeEq
        | T::NotEq
        | T::Lt
        | T::LtEq
        | T::Gt
        | T::GtEq
        | T::ShiftLeft
        | T::ShiftRight
        | T::Plus
        | T::Minus
        | T::Star
        | T::Slash
        | T::Percent
        | T::Amp
        | T::Pipe
        | T::PipePipe
        | T::Caret
        | T::Arrow
        | T::LongArrow => true,
        _ => false,
    }
}
