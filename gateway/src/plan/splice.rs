//! Changes to a statement's text, by token. What no edit names goes out byte for byte as it came.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::Lexed;

use super::facts::{Fact, SessionFacts};
use super::moment::MomentCall;
use super::statement::Span;

/// The alias prefix of columns appended for ordering.
pub(super) const HIDDEN_PREFIX: &str = "__sg_key_";

/// Longer aliases are refused by the servers, which count 256 characters.
const MAX_ALIAS: usize = 256;

/// When an edit applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    Always,
    /// Only where the statement goes to more than one shard.
    Scattered,
}

/// What goes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// The name of the shard's database.
    Database,
    /// The name of the shard's database as a string: `DATABASE()` next to the servers' own tables.
    DatabaseText,
    /// A session function's value.
    Fact(Fact),
    /// The statement's moment.
    Moment(MomentCall),
    /// ` AS` and the text of these tokens as a name: what the column was called before it was edited.
    Alias(Span),
    /// `, ` and the text of these tokens as the n-th hidden column.
    Hidden(Span, u16),
    /// How many rows each shard gives: LIMIT and OFFSET in one.
    Limit,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Edit {
    /// The tokens replaced; empty: inserted behind the token before.
    pub(super) tokens: Span,
    pub(super) when: When,
    pub(super) what: What,
}

impl Edit {
    pub(super) fn replace(tokens: Span, what: What) -> Self {
        Self {
            tokens,
            when: When::Always,
            what,
        }
    }

    /// Inserts behind token `at - 1`.
    pub(super) fn insert(at: usize, what: What) -> Self {
        Self {
            tokens: at..at,
            when: When::Always,
            what,
        }
    }

    pub(super) fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    fn bytes(&self, lexed: &Lexed<'_>) -> Range<usize> {
        if self.tokens.is_empty() {
            let at = self
                .tokens
                .start
                .checked_sub(1)
                .map_or(0, |before| lexed.range(before).end);
            return at..at;
        }
        lexed.span(self.tokens.clone())
    }
}

/// What edits are rendered with.
#[derive(Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) scattered: bool,
    pub(super) database: &'c str,
    pub(super) facts: &'c SessionFacts,
    pub(super) now: Duration,
    /// The number for [`What::Limit`].
    pub(super) limit: u64,
}

/// The edits of one statement, in order of their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Edits {
    edits: Vec<Edit>,
}

impl Edits {
    pub(super) fn push(&mut self, edit: Edit) {
        // Stable: edits at one place apply in the order they were made.
        let at = self
            .edits
            .partition_point(|e| e.tokens.start <= edit.tokens.start);
        self.edits.insert(at, edit);
    }

    /// Where tokens are replaced, and when.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, When)> + '_ {
        self.edits
            .iter()
            .filter(|e| !e.tokens.is_empty())
            .map(|e| (e.tokens.start, e.when))
    }

    fn active(&self, scattered: bool) -> impl Iterator<Item = &Edit> {
        self.edits
            .iter()
            .filter(move |e| e.when == When::Always || scattered)
    }

    /// Whether the text differs from shard to shard.
    pub(super) fn by_shard(&self) -> bool {
        self.edits
            .iter()
            .any(|e| matches!(e.what, What::Database | What::DatabaseText))
    }

    /// Whether a token is replaced. Edits never overlap, so only the last one that begins at or before it can cover it.
    pub(super) fn replaces(&self, token: usize, scattered: bool) -> bool {
        let behind = self.edits.partition_point(|e| e.tokens.start <= token);
        let before = self.edits.get(..behind).unwrap_or_default().iter().rev();
        let mut covering =
            before.take_while(|e| e.tokens.start == token || e.tokens.end > token || e.tokens.is_empty());
        covering.any(|e| e.tokens.contains(&token) && (e.when == When::Always || scattered))
    }

    pub(super) fn is_empty(&self, scattered: bool) -> bool {
        self.active(scattered).next().is_none()
    }

    /// The whole text. The original buffer where nothing changes.
    pub(super) fn text(&self, sql: &Bytes, lexed: &Lexed<'_>, context: &Context<'_>) -> Bytes {
        if self.is_empty(context.scattered) {
            return sql.clone();
        }
        let mut out = Vec::with_capacity(sql.len() + 64);
        self.render(lexed, 0..lexed.src().len(), context, &mut out);
        Bytes::from(out)
    }

    /// Appends a range of the original's bytes with the edits inside it.
    pub(super) fn render(
        &self,
        lexed: &Lexed<'_>,
        bytes: Range<usize>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
    ) {
        let copy = |range: Range<usize>, out: &mut Vec<u8>| {
            out.extend_from_slice(lexed.src().get(range).unwrap_or_default());
        };
        let mut at = bytes.start;
        let from = self.edits.partition_point(|e| e.bytes(lexed).start < bytes.start);
        let edits = self.edits.get(from..).unwrap_or_default().iter();
        for edit in edits.filter(|e| e.when == When::Always || context.scattered) {
            let place = edit.bytes(lexed);
            if place.end > bytes.end {
                break;
            }
            if place.start < at {
                continue;
            }
            copy(at..place.start, out);
            edit.what.write(lexed, context, out);
            at = place.end;
        }
        copy(at..bytes.end, out);
    }
}

impl What {
    fn write(&self, lexed: &Lexed<'_>, context: &Context<'_>, out: &mut Vec<u8>) {
        let source = |span: &Span| lexed.src().get(lexed.span(span.clone())).unwrap_or_default();
        match self {
            Self::Database => write_name(context.database.as_bytes(), out),
            Self::DatabaseText => super::facts::write_string(context.database, out),
            Self::Fact(fact) => fact.write(context.facts, out),
            Self::Moment(call) => call.write(context.now, out),
            // A server cuts the name it makes up, but refuses an alias as long.
            Self::Alias(span) if source(span).len() > MAX_ALIAS => {}
            Self::Alias(span) => {
                out.extend_from_slice(b" AS ");
                write_name(source(span), out);
            }
            Self::Hidden(span, n) => {
                out.extend_from_slice(b", ");
                out.extend_from_slice(source(span));
                out.extend_from_slice(format!(" AS {HIDDEN_PREFIX}{n}").as_bytes());
            }
            Self::Limit => out.extend_from_slice(context.limit.to_string().as_bytes()),
        }
    }
}

/// Writes a name in backticks, which quote under every `sql_mode`.
fn write_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(b'`');
    for byte in name {
        out.push(*byte);
        if *byte == b'`' {
            out.push(b'`');
        }
    }
    out.push(b'`');
}

/// Which client parameters go along with these spans of the text, given the tokens of all placeholders.
pub(super) fn params_of(params: &[u32], spans: &[Span], edits: &Edits, scattered: bool) -> Box<[u16]> {
    let mut kept = Vec::new();
    for span in spans {
        let from = params.partition_point(|token| (*token as usize) < span.start);
        let inside = params
            .iter()
            .enumerate()
            .skip(from)
            .take_while(|(_, token)| (**token as usize) < span.end);
        kept.extend(
            inside
                .filter(|(_, t)| !edits.replaces(**t as usize, scattered))
                .map(|(n, _)| n as u16),
        );
    }
    kept.into()
}
