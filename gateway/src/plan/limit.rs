//! LIMIT and OFFSET of a scattered SELECT: every shard gives offset + count rows, the gateway skips.

use shardgate_sql::{Keyword as K, TokenKind};

use super::error::PlanError;
use super::operand::{Operand, Values};
use super::splice::{Edit, What, When};
use super::statement::{Span, Statement};
use crate::route::Limit;
use crate::vindex::Value;

/// A LIMIT clause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LimitClause {
    count: Operand,
    offset: Option<Operand>,
    span: Span,
}

impl LimitClause {
    /// Reads `n`, `offset, n` or `n OFFSET offset`; `None` for anything else.
    pub(super) fn parse(statement: &Statement<'_>, span: &Span) -> Option<Self> {
        let number = |at: usize| {
            let kind = statement.lexed.kind(at)?;
            let number = matches!(kind, TokenKind::Int | TokenKind::Placeholder);
            number.then(|| Operand::parse(statement, &(at..at + 1))).flatten()
        };
        let (first, span) = (span.start, span.clone());
        match span.len() {
            1 => Some(Self {
                count: number(first)?,
                offset: None,
                span,
            }),
            3 if statement.is(first + 1, TokenKind::Comma) => Some(Self {
                count: number(first + 2)?,
                offset: Some(number(first)?),
                span,
            }),
            3 if statement.is_keyword(first + 1, K::Offset) => Some(Self {
                count: number(first)?,
                offset: Some(number(first + 2)?),
                span,
            }),
            _ => None,
        }
    }

    /// Whether rows are skipped.
    pub(super) fn has_offset(&self) -> bool {
        self.offset.is_some()
    }

    /// The edit that lets each shard give as many rows as the answer may need of it.
    pub(super) fn edit(&self) -> Option<Edit> {
        self.offset
            .map(|_| Edit::replace(self.span.clone(), What::Limit).when(When::Scattered))
    }

    /// The window for these values.
    pub(super) fn window(&self, values: &Values<'_>) -> Result<Limit, PlanError> {
        Ok(Limit {
            offset: self.offset.map_or(Ok(0), |o| row_count(o, values))?,
            count: row_count(self.count, values)?,
        })
    }
}

fn row_count(operand: Operand, values: &Values<'_>) -> Result<u64, PlanError> {
    let count = match operand.value(values) {
        Some(Value::Int(v)) => u64::try_from(v).ok(),
        Some(Value::UInt(v)) => Some(v),
        Some(Value::Text(digits)) => std::str::from_utf8(&digits).ok().and_then(|d| d.parse().ok()),
        Some(Value::Null | Value::Decimal(_) | Value::Float(_) | Value::Bytes(_)) | None => None,
    };
    count.ok_or(PlanError::Arguments("LIMIT"))
}
