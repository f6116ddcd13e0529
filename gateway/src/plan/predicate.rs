//! Conditions as far as they say where rows live: equality and IN on sharding columns, through AND, OR and
//! parentheses. Every other term is opaque and restricts nothing.
//!
//! A term counts only if its tokens match exactly; `NOT id = 5`, `id = 5 IS NULL`, `BINARY id = 5` or `id + 0 = 5`
//! match nothing here. What must be right is how a condition falls apart into terms, so the splitting follows the
//! servers' grammar: OR below XOR below AND, the AND of a BETWEEN, CASE ... END.

use shardgate_sql::{Keyword as K, TokenKind};

use super::operand::Operand;
use super::statement::{Span, Statement};

/// Nesting deeper than this is opaque.
const MAX_DEPTH: usize = 64;

/// A column as written: `id`, `o.id` or `commerce.orders.id`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ColumnRef {
    pub(super) keyspace: Option<String>,
    pub(super) table: Option<String>,
    pub(super) column: String,
}

/// A sharding column of one table of the statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Which table instance.
    pub(super) instance: usize,
    /// Which of its vindexes.
    pub(super) vindex: usize,
}

/// What a condition says of where rows live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    /// Nothing.
    Opaque,
    /// A constant; false or NULL restricts to no row at all.
    Constant(Operand),
    /// Two constants compared for equality.
    SameConstants(Operand, Operand),
    /// FALSE or NULL.
    Never,
    /// A sharding column equals one of these.
    In(Target, Vec<Operand>),
    /// Two sharding columns are equal.
    Same(Vec<Target>, Vec<Target>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

/// Which tables' sharding columns a column may be; empty for none of them. All that are given are equal.
pub(super) type Resolve<'r> = &'r dyn Fn(&ColumnRef) -> Vec<Target>;

/// Reads a condition.
pub(super) fn condition(statement: &Statement<'_>, span: Span, resolve: Resolve<'_>) -> Condition {
    Reader {
        statement,
        resolve,
        or_is_concat: statement.lexed.options().mode.pipes_as_concat(),
    }
    .any(span, 0)
}

impl ColumnRef {
    /// Reads a span that is exactly one column.
    pub(super) fn parse(statement: &Statement<'_>, span: &Span) -> Option<Self> {
        let name = |n: usize| statement.name(span.start + n);
        let dot = |n: usize| statement.is(span.start + n, TokenKind::Dot);
        match span.len() {
            1 => Some(Self {
                keyspace: None,
                table: None,
                column: name(0)?,
            }),
            3 if dot(1) => Some(Self {
                keyspace: None,
                table: Some(name(0)?),
                column: name(2)?,
            }),
            5 if dot(1) && dot(3) => Some(Self {
                keyspace: Some(name(0)?),
                table: Some(name(2)?),
                column: name(4)?,
            }),
            _ => None,
        }
    }
}

struct Reader<'r, 's, 'a> {
    statement: &'s Statement<'a>,
    resolve: Resolve<'r>,
    or_is_concat: bool,
}

impl Reader<'_, '_, '_> {
    /// A whole condition: terms joined by OR.
    fn any(&self, span: Span, depth: usize) -> Condition {
        let tokens: Vec<usize> = self.statement.flat(span.clone()).collect();
        let has = |found: fn(&Self, usize) -> bool| tokens.iter().any(|at| found(self, *at));
        let confusing =
            has(|r, at| r.statement.is_keyword(at, K::Xor) || r.statement.is(at, TokenKind::Assign));
        if depth == MAX_DEPTH || span.is_empty() || confusing || !self.cases_end(&tokens) {
            return Condition::Opaque;
        }
        let is_or = |at| {
            self.statement.is_keyword(at, K::Or)
                || (self.statement.is(at, TokenKind::PipePipe) && !self.or_is_concat)
        };
        let mut arms = self
            .split(&span, &tokens, is_or)
            .into_iter()
            .map(|arm| self.all(arm, depth));
        match arms.len() {
            1 => arms.next().unwrap_or(Condition::Opaque),
            _ => Condition::Or(arms.collect()),
        }
    }

    /// Terms joined by AND.
    fn all(&self, span: Span, depth: usize) -> Condition {
        let tokens: Vec<usize> = self.statement.flat(span.clone()).collect();
        let mut betweens = 0usize;
        let mut ands = Vec::new();
        let mut case_depth = 0usize;
        for at in &tokens {
            match self.statement.keyword(*at) {
                Some(K::Case) => case_depth += 1,
                Some(K::End) => case_depth = case_depth.saturating_sub(1),
                Some(K::Between) if case_depth == 0 => betweens += 1,
                Some(K::And) if case_depth == 0 && betweens > 0 => betweens -= 1,
                Some(K::And) if case_depth == 0 => ands.push(*at),
                _ if case_depth == 0 && self.statement.is(*at, TokenKind::AmpAmp) => ands.push(*at),
                _ => {}
            }
        }
        let mut terms = self
            .split(&span, &ands, |_| true)
            .into_iter()
            .map(|term| self.term(term, depth));
        match terms.len() {
            1 => terms.next().unwrap_or(Condition::Opaque),
            _ => Condition::And(terms.collect()),
        }
    }

    /// END is no reserved word, so a column may be called so: only where CASE and END pair up is their extent known.
    fn cases_end(&self, tokens: &[usize]) -> bool {
        let count = |keyword| {
            tokens
                .iter()
                .filter(|at| self.statement.is_keyword(**at, keyword))
                .count()
        };
        let cases = count(K::Case);
        cases == 0 || cases == count(K::End)
    }

    /// Splits at separators that stand in no CASE.
    fn split(&self, span: &Span, tokens: &[usize], is_separator: impl Fn(usize) -> bool) -> Vec<Span> {
        let mut parts = Vec::new();
        let (mut start, mut case_depth) = (span.start, 0usize);
        let has_case = tokens.iter().any(|at| self.statement.is_keyword(*at, K::Case));
        for &at in tokens {
            match self.statement.keyword(at) {
                Some(K::Case) => case_depth += 1,
                Some(K::End) if has_case => case_depth = case_depth.saturating_sub(1),
                _ if case_depth == 0 && is_separator(at) => {
                    parts.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
        }
        parts.push(start..span.end);
        parts
    }

    fn term(&self, span: Span, depth: usize) -> Condition {
        if let Some(inner) = self.statement.group(&span) {
            return self.any(inner, depth + 1);
        }
        if span.len() == 1 && matches!(self.statement.keyword(span.start), Some(K::False | K::Null)) {
            return Condition::Never;
        }
        if let Some(constant) = Operand::parse(self.statement, &span) {
            return Condition::Constant(constant);
        }
        self.equality(&span)
            .or_else(|| self.list(&span))
            .unwrap_or(Condition::Opaque)
    }

    /// `column = value`, `value = column`, `column = column`, `value = value`.
    fn equality(&self, span: &Span) -> Option<Condition> {
        let eq = self
            .statement
            .flat(span.clone())
            .find(|at| self.statement.is(*at, TokenKind::Eq))?;
        let (left, right) = (span.start..eq, eq + 1..span.end);
        match (self.column(&left), self.column(&right)) {
            (Some(a), Some(b)) => Some(Condition::Same(a, b)),
            (Some(column), None) => Some(Self::is_one_of(
                column,
                &[Operand::parse(self.statement, &right)?],
            )),
            (None, Some(column)) => Some(Self::is_one_of(column, &[Operand::parse(self.statement, &left)?])),
            (None, None) => Some(Condition::SameConstants(
                Operand::parse(self.statement, &left)?,
                Operand::parse(self.statement, &right)?,
            )),
        }
    }

    /// `column IN (value, ...)`.
    fn list(&self, span: &Span) -> Option<Condition> {
        let is_in = |at: &usize| self.statement.is_keyword(*at, K::In);
        let in_ = self.statement.flat(span.clone()).find(is_in)?;
        let column = self.column(&(span.start..in_))?;
        let inner = self.statement.group(&(in_ + 1..span.end))?;
        let values = self.statement.split_commas(inner);
        let values = values
            .iter()
            .map(|v| Operand::parse(self.statement, v))
            .collect::<Option<Vec<_>>>()?;
        (!values.is_empty()).then(|| Self::is_one_of(column, &values))
    }

    fn column(&self, span: &Span) -> Option<Vec<Target>> {
        ColumnRef::parse(self.statement, span).map(|c| (self.resolve)(&c))
    }

    /// A column that may be several tables' (`USING` made them equal) restricts each of them.
    fn is_one_of(targets: Vec<Target>, values: &[Operand]) -> Condition {
        let mut all: Vec<_> = targets
            .into_iter()
            .map(|t| Condition::In(t, values.to_vec()))
            .collect();
        match all.len() {
            0 => Condition::Opaque,
            1 => all.swap_remove(0),
            _ => Condition::And(all),
        }
    }
}
