//! Values that a plan refers to without knowing them: the literal at a token, a parameter, a session function.

use shardgate_sql::{Keyword, Literal, TokenKind};

use super::facts::{Fact, SessionFacts};
use super::statement::{Span, Statement};
use crate::vindex::Value;

/// Where a value comes from when the plan is bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    /// The literal at this token, with a minus sign before it or not.
    Literal { token: u32, negative: bool },
    /// The n-th parameter, from 0.
    Param(u32),
    /// The NULL keyword.
    Null,
    /// A session function.
    Fact(Fact),
}

/// Values the client sent for placeholders. `None`: a value whose exact type or characters are not known, so that it
/// cannot decide a route.
pub type Params<'a> = &'a [Option<Value>];

/// What binding has at hand.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) statement: &'a shardgate_sql::Lexed<'a>,
    pub(super) params: Params<'a>,
    pub(super) facts: &'a SessionFacts,
    /// `character_set_client`: what the bytes of string literals mean.
    pub(super) charset: &'a str,
}

impl Operand {
    /// Reads a span that is exactly one value.
    pub(super) fn parse(statement: &Statement<'_>, span: &Span) -> Option<Self> {
        let first = span.start;
        if let Some((fact, width)) = Fact::at(statement, first)
            && width == span.len()
        {
            return Some(Self::Fact(fact));
        }
        match span.len() {
            1 if statement.is_keyword(first, Keyword::Null) => Some(Self::Null),
            1 => Self::literal(statement, first, false),
            2 if statement.is(first, TokenKind::Minus) => Self::literal(statement, first + 1, true),
            _ => None,
        }
    }

    fn literal(statement: &Statement<'_>, at: usize, negative: bool) -> Option<Self> {
        let kind = statement.lexed.kind(at)?;
        match kind {
            TokenKind::Placeholder if !negative => Some(Self::Param(statement.param_number(at) as u32)),
            TokenKind::Int | TokenKind::Decimal | TokenKind::Float => Some(Self::Literal {
                token: at as u32,
                negative,
            }),
            TokenKind::String | TokenKind::NationalString | TokenKind::Hex if !negative => {
                Some(Self::Literal {
                    token: at as u32,
                    negative,
                })
            }
            _ => None,
        }
    }

    /// The value, or `None` where it is not known exactly.
    pub(super) fn value(self, values: &Values<'_>) -> Option<Value> {
        match self {
            Self::Null => Some(Value::Null),
            Self::Param(n) => values.params.get(n as usize)?.clone(),
            Self::Fact(fact) => fact.value(values.facts),
            Self::Literal { token, negative } => literal_value(values, token as usize, negative),
        }
    }
}

fn literal_value(values: &Values<'_>, token: usize, negative: bool) -> Option<Value> {
    let signed = |text: &str| {
        if negative {
            format!("-{text}")
        } else {
            text.to_owned()
        }
    };
    match values.statement.literal(token)? {
        Literal::Int(v) if negative => Some(Value::integer(&format!("-{v}"))),
        Literal::Int(v) => Some(i64::try_from(v).map_or(Value::UInt(v), Value::Int)),
        Literal::Decimal(text) => Some(Value::Decimal(signed(text).into())),
        Literal::Float(text) => signed(text).parse().ok().map(Value::Float),
        Literal::String(bytes) => Value::text(values.charset, &bytes),
        Literal::NationalString(bytes) => Value::text("utf8mb3", &bytes),
        Literal::Hex(bytes) => Some(Value::Bytes(bytes.into())),
        Literal::Bit(_) | Literal::Placeholder => None,
    }
}
