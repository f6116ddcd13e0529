//! Edits that a statement needs wherever it goes: the shard's own database name for the keyspace's, and the session's
//! answers for session functions. Also the moment, where several shards must agree on it.

use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{Keyword as K, Lexed, TokenKind};

use super::catalog::Keyspace;
use super::facts::{Fact, SessionFacts};
use super::items::items;
use super::moment::MomentCall;
use super::splice::{Context, Edit, Edits, What, When};
use super::statement::{Span, Statement};
use super::tables::{Names, Query};

/// Why an edit cannot be made exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inexact {
    /// A `keyspace.` whose meaning is not certain.
    Qualifier,
}

/// What edits are made for.
pub(super) struct Rewrite<'r, 'a> {
    pub(super) statement: &'r Statement<'a>,
    pub(super) edits: &'r mut Edits,
}

impl Rewrite<'_, '_> {
    /// Replaces session functions, and the moment where the statement scatters.
    pub(super) fn functions(&mut self, names: &Names) {
        let mut at = self.statement.all().start;
        while at < self.statement.all().end {
            let Some((width, when, what)) = self.function_at(at, names) else {
                at += 1;
                continue;
            };
            self.edits.push(Edit::replace(at..at + width, what).when(when));
            at += width;
        }
    }

    /// Lets columns that are called by their own text, which edits change, keep the names the client gave them.
    pub(super) fn keep_names(&mut self, queries: &[Query]) {
        let changed: Vec<_> = self.edits.places().collect();
        for query in queries {
            // An UPDATE's list looks alike, but names no columns.
            if !self.statement.is_keyword(query.scope.span.start, K::Select) {
                continue;
            }
            for item in items(self.statement, query.scope.items.clone()) {
                // A plain column is called by its last part, whatever it is qualified by.
                if item.alias.is_none() && item.column.is_none() && !item.star {
                    self.keep_name(&item.span, &changed);
                }
            }
        }
    }

    fn function_at(&self, at: usize, names: &Names) -> Option<(usize, When, What)> {
        if let Some((fact, width)) = Fact::at(self.statement, at) {
            let of_server = names.system && !names.information_schema && names.keyspace.is_none();
            let of_server = fact == Fact::Database && of_server;
            let what = if of_server {
                What::DatabaseText
            } else {
                What::Fact(fact)
            };
            return Some((width, When::Always, what));
        }
        let call = MomentCall::at(self.statement, at).ok().flatten()?;
        Some((call.width, When::Scattered, What::Moment(call)))
    }

    fn keep_name(&mut self, item: &Span, changed: &[(usize, When)]) {
        let mut inside = changed
            .iter()
            .filter(|(at, _)| item.contains(at))
            .map(|(_, when)| *when)
            .peekable();
        if inside.peek().is_none() {
            return;
        }
        let when = if inside.any(|w| w == When::Always) {
            When::Always
        } else {
            When::Scattered
        };
        self.edits
            .push(Edit::insert(item.end, What::Alias(item.clone())).when(when));
    }

    /// Replaces `keyspace.` before tables and in `keyspace.table.column`, where shards' databases are called otherwise.
    pub(super) fn qualifiers(&mut self, keyspace: &Keyspace, of_tables: impl IntoIterator<Item = usize>) {
        if !renames(keyspace) {
            return;
        }
        let mut tokens: Vec<usize> = of_tables
            .into_iter()
            .filter(|at| is_name(self.statement, *at, keyspace))
            .collect();
        let columns = self
            .statement
            .all()
            .filter(|at| is_name(self.statement, *at, keyspace) && self.is_column(*at));
        tokens.extend(columns);
        tokens.sort_unstable();
        tokens.dedup();
        for at in tokens {
            self.edits.push(Edit::replace(at..at + 1, What::Database));
        }
    }

    /// `keyspace.table.column`
    fn is_column(&self, at: usize) -> bool {
        let dot = |n: usize| self.statement.is(at + n, TokenKind::Dot);
        let named = self.statement.name(at + 4).is_some() || self.statement.is(at + 4, TokenKind::Star);
        !(at > 0 && self.statement.is(at - 1, TokenKind::Dot)) && dot(1) && dot(3) && named
    }

    /// Replaces every `keyspace.` of a statement in which it can stand only before a table.
    pub(super) fn every_qualifier(&mut self, keyspace: &Keyspace) {
        let before_dot = |at: &usize| {
            is_name(self.statement, *at, keyspace)
                && self.statement.is(at + 1, TokenKind::Dot)
                && !(*at > 0 && self.statement.is(at - 1, TokenKind::Dot))
        };
        let tokens: Vec<usize> = self.statement.all().filter(before_dot).collect();
        self.qualifiers(keyspace, tokens);
    }
}

/// Whether a shard's database has another name than the keyspace.
pub(super) fn renames(keyspace: &Keyspace) -> bool {
    keyspace
        .shards
        .iter()
        .any(|s| *s.database != *keyspace.name.as_str())
}

fn is_name(statement: &Statement<'_>, at: usize, keyspace: &Keyspace) -> bool {
    statement
        .name(at)
        .is_some_and(|name| name == keyspace.name.as_str())
}

/// Checks a statement that was not understood: it may pass untouched only if it names no keyspace.
pub(super) fn passes_untouched(
    statement: &Statement<'_>,
    is_keyspace: impl Fn(&str) -> bool,
    own: &Keyspace,
) -> Result<(), Inexact> {
    let names = statement.all().filter(|at| statement.is(at + 1, TokenKind::Dot));
    for name in names
        .filter_map(|at| statement.name(at))
        .filter(|name| is_keyspace(name))
    {
        if name != own.name.as_str() || renames(own) {
            return Err(Inexact::Qualifier);
        }
    }
    Ok(())
}

/// A statement's bytes with session functions as literals, for statements that are not planned (`SET @x =
/// LAST_INSERT_ID()`). The very buffer where there is none.
#[must_use]
pub fn with_session_facts(sql: &Bytes, lexed: &Lexed<'_>, facts: &SessionFacts) -> Bytes {
    let Ok(statement) = Statement::new(lexed, 0) else {
        return sql.clone();
    };
    let mut edits = Edits::default();
    for at in statement.all() {
        if let Some((fact, width)) = Fact::at(&statement, at) {
            edits.push(Edit::replace(at..at + width, What::Fact(fact)));
        }
    }
    let context = Context {
        scattered: false,
        database: "",
        facts,
        now: Duration::ZERO,
        limit: 0,
    };
    edits.text(sql, lexed, &context)
}
