//! Statements that are not about rows: DDL, what is not understood, and what any shard can answer.

use std::sync::Arc;

use shardgate_sql::{DdlObject, Keyword as K, TokenKind, classify};

use super::catalog::Keyspace;
use super::error::PlanError;
use super::planned::{Plan, Route};
use super::planner::{Planner, Why};
use super::reach::tables_within_reach;
use super::rewrite::{Rewrite, passes_untouched, renames};
use super::splice::Edits;
use super::tables::is_system;
use crate::route::StatementClass;

impl Planner<'_, '_> {
    pub(super) fn ddl(&self, object: DdlObject, temporary: bool) -> Result<Plan, PlanError> {
        let keyspace = self
            .named_keyspace()?
            .or(self.session.cloned())
            .ok_or(PlanError::NoKeyspace)?;
        let given = self.given(&keyspace)?;
        if object == DdlObject::Database {
            return Err(Self::not_understood(
                &keyspace,
                "databases belong to the configuration",
            ));
        }
        let stored = matches!(object, DdlObject::View | DdlObject::Routine | DdlObject::Other);
        if stored && renames(&keyspace) && self.statement.all().any(|at| self.is_keyspace_at(at)) {
            return Err(Self::not_understood(
                &keyspace,
                "a qualified name inside a stored definition",
            ));
        }
        if given.is_none() {
            let selects = || {
                let mut all = self.statement.all();
                all.any(|at| self.statement.is_keyword(at, K::Select))
            };
            let what = match object {
                _ if temporary => Some("a temporary table"),
                DdlObject::View => Some("a view"),
                DdlObject::Table if selects() => Some("CREATE TABLE ... SELECT"),
                _ if selects() => Some("a stored definition with a SELECT"),
                _ => None,
            };
            if let Some(what) = what {
                return Err(Self::one_shard_only(&keyspace, what));
            }
        }
        let mut edits = Edits::default();
        Rewrite {
            statement: self.statement,
            edits: &mut edits,
        }
        .every_qualifier(&keyspace);
        let route = given.map_or(Route::Every, Route::Shard);
        Ok(self.plan_of(&keyspace, StatementClass::Write, route, edits, true))
    }

    /// The keyspace that a statement names before its tables.
    fn named_keyspace(&self) -> Result<Option<Arc<Keyspace>>, PlanError> {
        let mut found: Option<&Arc<Keyspace>> = None;
        for at in self.statement.all().filter(|at| self.is_qualifier(*at)) {
            let name = self.statement.name(at).unwrap_or_default();
            let Some(keyspace) = self.input.catalog.keyspace(&name) else {
                continue;
            };
            match found {
                Some(other) if other.name != keyspace.name => {
                    return Err(PlanError::CrossKeyspace(
                        other.name.clone(),
                        keyspace.name.clone(),
                    ));
                }
                _ => found = Some(keyspace),
            }
        }
        Ok(found.cloned())
    }

    fn is_qualifier(&self, at: usize) -> bool {
        self.statement.is(at + 1, TokenKind::Dot) && !(at > 0 && self.statement.is(at - 1, TokenKind::Dot))
    }

    pub(super) fn is_keyspace_at(&self, at: usize) -> bool {
        self.is_qualifier(at)
            && self
                .statement
                .name(at)
                .is_some_and(|n| self.input.catalog.keyspace(&n).is_some())
    }

    /// A statement that is not understood passes as it is where one shard is given and nothing in it needs a change.
    pub(super) fn untouched(&self, class: StatementClass, why: Why) -> Result<Plan, PlanError> {
        let keyspace = self.session.ok_or(PlanError::NoKeyspace)?;
        let Some(shard) = self.given(keyspace)? else {
            return Err(Self::not_understood(keyspace, why));
        };
        let kind = classify(self.statement.lexed).kind;
        tables_within_reach(self.statement.lexed, kind, self.input.catalog)?;
        let is_keyspace = |name: &str| self.input.catalog.keyspace(name).is_some() && !is_system(name);
        passes_untouched(self.statement, is_keyspace, keyspace).map_err(|_| {
            Self::not_understood(keyspace, "a qualified name in a statement that is not understood")
        })?;
        Ok(self.plan_of(keyspace, class, Route::Shard(shard), Edits::default(), false))
    }

    /// A statement that is understood and means one server: passes as it is where one shard is given.
    pub(super) fn on_one_shard(&self, class: StatementClass, what: Why) -> Result<Plan, PlanError> {
        let keyspace = self.session.ok_or(PlanError::NoKeyspace)?;
        match self.given(keyspace)? {
            Some(_) => self.untouched(class, what),
            None => Err(Self::one_shard_only(keyspace, what)),
        }
    }

    fn one_shard_only(keyspace: &Keyspace, what: Why) -> PlanError {
        PlanError::Unsupported {
            what: what.into(),
            keyspace: keyspace.name.clone(),
            hint: format!("choose one shard first: USE {}:<shard>", keyspace.name).into(),
        }
    }

    /// A statement that every shard answers alike, such as `SHOW COLUMNS FROM keyspace.table`: any one is asked.
    pub(super) fn any_shard(&self) -> Result<Plan, PlanError> {
        let keyspace = match self.named_keyspace()? {
            Some(keyspace) => keyspace,
            None => Arc::clone(
                self.session
                    .or_else(|| self.input.catalog.any_keyspace())
                    .ok_or(PlanError::NoKeyspace)?,
            ),
        };
        let route = self.given(&keyspace)?.map_or(Route::Any, Route::Shard);
        let mut edits = Edits::default();
        Rewrite {
            statement: self.statement,
            edits: &mut edits,
        }
        .every_qualifier(&keyspace);
        Ok(self.plan_of(&keyspace, StatementClass::Read, route, edits, false))
    }
}
