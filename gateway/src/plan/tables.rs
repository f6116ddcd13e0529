//! Which tables a statement names, and the keyspace they are all in.

use std::sync::Arc;

use shardgate_sql::{Keyword as K, TokenKind};

use super::catalog::{Catalog, Keyspace};
use super::error::PlanError;
use super::from::{Factor, From};
use super::scope::Scope;
use super::statement::{Span, Statement};

/// Databases that every server has and no keyspace may be called.
const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "sys"];

/// A scope with its FROM clause read.
pub(super) struct Query {
    pub(super) scope: Scope,
    pub(super) from: From,
}

/// The names of a statement's tables, resolved.
pub(super) struct Names {
    /// The keyspace of all its tables; `None` if it names none of any keyspace.
    pub(super) keyspace: Option<Arc<Keyspace>>,
    /// Whether it names tables of the servers' own databases.
    pub(super) system: bool,
    /// Whether `information_schema` is among these. What clients read of it has keyspaces' names in it already.
    pub(super) information_schema: bool,
    ctes: Vec<Cte>,
}

/// A common table expression and where its name is known.
#[derive(Clone, Debug)]
struct Cte {
    name: String,
    /// Behind its own body (in it too, if recursive) up to the end of the query it belongs to.
    visible: Span,
}

/// A table's name as written outside of any FROM clause.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// The token of its `keyspace.`, if it has one.
    pub(super) qualifier: Option<usize>,
    /// The name.
    pub(super) table: String,
    /// The token behind it.
    pub(super) end: usize,
}

impl Named {
    /// Reads `table` or `keyspace.table` at a token.
    pub(super) fn at(statement: &Statement<'_>, at: usize) -> Option<Self> {
        let first = statement.name(at)?;
        if !statement.is(at + 1, TokenKind::Dot) {
            return Some(Self {
                qualifier: None,
                table: first,
                end: at + 1,
            });
        }
        Some(Self {
            qualifier: Some(at),
            table: statement.name(at + 2)?,
            end: at + 3,
        })
    }
}

/// What a factor of a FROM clause is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FactorKind {
    /// A table of the statement's keyspace.
    Table,
    /// A table of the servers' own databases.
    System,
    /// A derived table, a common table expression, DUAL: holds no rows of its own.
    Derived,
}

impl Names {
    /// The common table expressions only.
    pub(super) fn of_ctes(statement: &Statement<'_>) -> Self {
        Self {
            keyspace: None,
            system: false,
            information_schema: false,
            ctes: ctes(statement),
        }
    }

    /// Finds the one keyspace of all tables in FROM clauses and of those named elsewhere.
    pub(super) fn resolve(
        statement: &Statement<'_>,
        catalog: &Catalog,
        session: Option<&Arc<Keyspace>>,
        queries: &[Query],
        others: &[Named],
    ) -> Result<Self, PlanError> {
        let mut names = Self::of_ctes(statement);
        for factor in queries.iter().flat_map(|q| &q.from.factors) {
            if factor.table.is_some() && !names.is_cte(factor) {
                names.add(statement, catalog, session, factor.qualifier)?;
            }
        }
        for named in others {
            names.add(statement, catalog, session, named.qualifier)?;
        }
        Ok(names)
    }

    fn add(
        &mut self,
        statement: &Statement<'_>,
        catalog: &Catalog,
        session: Option<&Arc<Keyspace>>,
        qualifier: Option<usize>,
    ) -> Result<(), PlanError> {
        let keyspace = match qualifier.and_then(|at| statement.name(at)) {
            Some(name) if is_system(&name) => {
                self.system = true;
                self.information_schema |= name.eq_ignore_ascii_case("information_schema");
                return Ok(());
            }
            Some(name) => catalog.keyspace(&name).ok_or(PlanError::UnknownKeyspace(name))?,
            None => session.ok_or(PlanError::NoKeyspace)?,
        };
        match &self.keyspace {
            Some(known) if known.name != keyspace.name => Err(PlanError::CrossKeyspace(
                known.name.clone(),
                keyspace.name.clone(),
            )),
            Some(_) => Ok(()),
            None => {
                self.keyspace = Some(Arc::clone(keyspace));
                Ok(())
            }
        }
    }

    fn is_cte(&self, factor: &Factor) -> bool {
        let known = |cte: &Cte| factor.table.as_ref() == Some(&cte.name) && cte.visible.contains(&factor.at);
        factor.qualifier.is_none() && self.ctes.iter().any(known)
    }

    /// What a factor is.
    pub(super) fn kind(&self, statement: &Statement<'_>, factor: &Factor) -> FactorKind {
        match (&factor.table, factor.qualifier.and_then(|at| statement.name(at))) {
            (None, _) => FactorKind::Derived,
            (Some(_), Some(name)) if is_system(&name) => FactorKind::System,
            (Some(_), None) if self.is_cte(factor) => FactorKind::Derived,
            (Some(_), _) => FactorKind::Table,
        }
    }
}

pub(super) fn is_system(name: &str) -> bool {
    SYSTEM.iter().any(|s| s.eq_ignore_ascii_case(name))
}

/// `WITH [RECURSIVE] name [(columns)] AS (...), ...`
fn ctes(statement: &Statement<'_>) -> Vec<Cte> {
    let mut found = Vec::new();
    for with in statement.all().filter(|at| statement.is_keyword(*at, K::With)) {
        let recursive = statement.is_keyword(with + 1, K::Recursive);
        let closing = |at: &usize| statement.is(*at, TokenKind::RParen);
        let end = statement
            .flat(with..statement.all().end)
            .find(closing)
            .unwrap_or(statement.all().end);
        let mut at = with + 1 + usize::from(recursive);
        while let Some(name) = statement.name(at) {
            at = statement.close(at + 1).map_or(at + 1, |close| close + 1);
            let Some(close) = statement
                .close(at + 1)
                .filter(|_| statement.is_keyword(at, K::As))
            else {
                break;
            };
            found.push(Cte {
                name,
                visible: if recursive { at } else { close }..end,
            });
            if !statement.is(close + 1, TokenKind::Comma) {
                break;
            }
            at = close + 2;
        }
    }
    found
}
