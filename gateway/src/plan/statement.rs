//! A statement's tokens with what planning asks of them again and again: matching parentheses, placeholders by
//! number, lists split at one depth.
//!
//! Planning reads tokens rather than a syntax tree. What passes through must be spliced by token anyway, a scope or
//! a table cannot hide in a node nobody visits, and a plan that refers to token indices can be bound again to every
//! statement of the same fingerprint. All it has to understand are the places that decide where rows live; whatever
//! does not match such a place exactly is opaque, and opaque means all shards or a refusal.

use std::ops::Range;

use shardgate_sql::{Keyword, Lexed, TokenKind};

/// A range of token indices.
pub(super) type Span = Range<usize>;

/// Not the index of a parenthesis.
const NONE: u32 = u32::MAX;

/// The tokens of one statement.
pub(super) struct Statement<'a> {
    pub(super) lexed: &'a Lexed<'a>,
    /// For each `(` the index of its `)`.
    close: Vec<u32>,
    /// Token indices of the placeholders.
    params: Vec<u32>,
    /// Its first token: behind EXPLAIN, where that is in front.
    start: usize,
    /// Behind its last token: without trailing semicolons.
    end: usize,
}

/// Parentheses that do not match.
#[derive(Debug)]
pub(super) struct Unbalanced;

impl<'a> Statement<'a> {
    /// The statement that begins at token `start`.
    pub(super) fn new(lexed: &'a Lexed<'a>, start: usize) -> Result<Self, Unbalanced> {
        let mut close = vec![NONE; lexed.len()];
        let (mut open, mut params) = (Vec::new(), Vec::new());
        for (at, token) in lexed.tokens().iter().enumerate() {
            match token.kind {
                TokenKind::LParen => open.push(at),
                TokenKind::RParen => {
                    let from = open.pop().ok_or(Unbalanced)?;
                    close[from] = at as u32;
                }
                TokenKind::Placeholder => params.push(at as u32),
                _ => {}
            }
        }
        if !open.is_empty() {
            return Err(Unbalanced);
        }
        let trailing = lexed
            .tokens()
            .iter()
            .rev()
            .take_while(|t| t.kind == TokenKind::Semicolon)
            .count();
        Ok(Self {
            lexed,
            close,
            params,
            start,
            end: (lexed.len() - trailing).max(start),
        })
    }

    /// All its tokens but trailing semicolons.
    pub(super) fn all(&self) -> Span {
        self.start..self.end
    }

    pub(super) fn is(&self, at: usize, kind: TokenKind) -> bool {
        at < self.end && self.lexed.is(at, kind)
    }

    pub(super) fn keyword(&self, at: usize) -> Option<Keyword> {
        if at < self.end {
            self.lexed.keyword(at)
        } else {
            None
        }
    }

    pub(super) fn is_keyword(&self, at: usize, keyword: Keyword) -> bool {
        self.keyword(at) == Some(keyword)
    }

    /// The index of the `)` that closes the `(` at `open`.
    pub(super) fn close(&self, open: usize) -> Option<usize> {
        self.close
            .get(open)
            .copied()
            .filter(|c| *c != NONE)
            .map(|c| c as usize)
    }

    /// How many placeholders stand before token `at`: the number of the placeholder that it is.
    pub(super) fn param_number(&self, at: usize) -> usize {
        self.params.partition_point(|p| (*p as usize) < at)
    }

    /// The tokens of all placeholders, in order.
    pub(super) fn params(&self) -> &[u32] {
        &self.params
    }

    /// A name that may stand for a table, a column or an alias: quoted, or a word that no server reserves.
    pub(super) fn name(&self, at: usize) -> Option<String> {
        if at >= self.end || self.keyword(at).is_some_and(Keyword::is_reserved) {
            return None;
        }
        String::from_utf8(self.lexed.name(at)?.into_owned()).ok()
    }

    /// The tokens of a span that stand in no parentheses opened within it. A group shows as its `(` alone.
    pub(super) fn flat(&self, span: Span) -> Flat<'_, 'a> {
        Flat {
            statement: self,
            at: span.start,
            end: span.end.min(self.end),
        }
    }

    /// Splits a span at the commas that stand in no parentheses.
    pub(super) fn split_commas(&self, span: Span) -> Vec<Span> {
        if span.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        let mut start = span.start;
        for at in self
            .flat(span.clone())
            .filter(|at| self.is(*at, TokenKind::Comma))
        {
            parts.push(start..at);
            start = at + 1;
        }
        parts.push(start..span.end);
        parts
    }

    /// Whether a span is one group: `( ... )`. Gives what is inside.
    pub(super) fn group(&self, span: &Span) -> Option<Span> {
        let inner_end = span.end.checked_sub(1)?;
        (self.is(span.start, TokenKind::LParen) && self.close(span.start) == Some(inner_end))
            .then(|| span.start + 1..inner_end)
    }
}

/// See [`Statement::flat`].
pub(super) struct Flat<'s, 'a> {
    statement: &'s Statement<'a>,
    at: usize,
    end: usize,
}

impl Iterator for Flat<'_, '_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        self.at = match self.statement.close(at) {
            Some(close) => close + 1,
            None => at + 1,
        };
        Some(at)
    }
}
