//! UPDATE, DELETE and INSERT become plans.

use super::error::PlanError;
use super::insert::{InsertParts, InsertRows, Source};
use super::locate::{Locations, known_table, unknown_table};
use super::planned::{Plan, Route, Several};
use super::planner::{Made, Planner, apart, unsupported};
use super::rewrite::renames;
use super::select::{self, Refusal};
use super::tables::{FactorKind, Query, is_system};
use super::write::{self, WriteScope};
use crate::route::StatementClass;
use crate::schema::Routing;

impl Planner<'_, '_> {
    pub(super) fn write(&self, read: Option<WriteScope>) -> Result<Plan, PlanError> {
        let class = StatementClass::Write;
        let Some(read) = read else {
            return self.untouched(class, "its clauses");
        };
        let assignments = read.scope.items.clone();
        let queries = match self.queries(Some(read.scope)) {
            Ok(queries) => queries,
            Err(why) => return self.untouched(class, why),
        };
        let names = self.names(&queries, &[])?;
        let own = queries.first().map_or(&[][..], |q| &q.from.factors);
        if let Some(factor) = own
            .iter()
            .find(|f| names.kind(self.statement, f) == FactorKind::System)
        {
            return Err(self.denied(factor.qualifier));
        }
        let Some(keyspace) = names.keyspace.clone() else {
            return self.untouched(class, "it names no table");
        };
        if renames(&keyspace) && read.targets.clone().any(|at| self.is_keyspace_at(at)) {
            return Err(Self::not_understood(
                &keyspace,
                "a qualified name among the tables to delete from",
            ));
        }
        let made = Made::new(class, &queries, &names);
        if let Some(shard) = self.given(&keyspace)? {
            return Ok(self.finish(&keyspace, Route::Shard(shard), made));
        }
        self.refuse_shared(&keyspace)?;
        let Some(query) = queries.first() else {
            return self.untouched(class, "its clauses");
        };
        let tables = write::written_tables(self.statement, &keyspace, &names, &query.from)?;
        let tables: Vec<_> = tables
            .iter()
            .map(|(alias, table)| (alias.as_str(), *table))
            .collect();
        write::keeps_sharding_columns(self.statement, &keyspace, &assignments, &tables)?;
        let locations = Locations::build(self.statement, &keyspace, &names, &queries)?;
        if locations.is_empty() {
            return Err(Self::not_understood(&keyspace, "it changes no sharded table"));
        }
        let refusal =
            write::refusal_of_several(query, &read.targets).map(|(what, hint)| select::refuse(what, hint));
        let several = refusal
            .unwrap_or(Ok(()))
            .and_then(|()| self.moments_are_plain())
            .and_then(|()| select::nothing_odd(self.statement, &queries));
        let several = several
            .map(|()| Several::Write)
            .map_err(|r| unsupported(&keyspace, r));
        let apart = apart(&keyspace, &locations, "an UPDATE or DELETE of joined tables");
        Ok(self.finish(
            &keyspace,
            Route::Rows {
                locations: Box::new(locations),
                several,
                apart,
            },
            made,
        ))
    }

    pub(super) fn insert(&self) -> Result<Plan, PlanError> {
        let class = StatementClass::Write;
        let Some(parts) = InsertParts::parse(self.statement) else {
            return self.untouched(class, "its clauses");
        };
        let queries = match self.queries(None) {
            Ok(queries) => queries,
            Err(why) => return self.untouched(class, why),
        };
        let names = self.names(&queries, std::slice::from_ref(&parts.table))?;
        let target = parts.table.qualifier.and_then(|at| self.statement.name(at));
        if target.is_some_and(|name| is_system(&name)) {
            return Err(self.denied(parts.table.qualifier));
        }
        let Some(keyspace) = names.keyspace.clone() else {
            return self.untouched(class, "it names no table");
        };
        let mut made = Made::new(class, &queries, &names);
        made.qualifiers.extend(parts.table.qualifier);
        if let Some(shard) = self.given(&keyspace)? {
            return Ok(self.finish(&keyspace, Route::Shard(shard), made));
        }
        self.refuse_shared(&keyspace)?;
        let table = known_table(&keyspace, &parts.table.table)?;
        if let Routing::Unknown | Routing::Unsharded = table.routing {
            return Err(unknown_table(&keyspace, &parts.table.table));
        }
        let pinned = match &table.routing {
            Routing::Pinned(id) => keyspace.shard_of_id(id)?.iter().next(),
            _ => None,
        };
        if let (Some(shard), true) = (pinned, queries.is_empty()) {
            return Ok(self.finish(&keyspace, Route::Shard(shard), made));
        }
        let locations = Locations::build(self.statement, &keyspace, &names, &queries)?;
        let rows = Box::new(InsertRows::plan(self.statement, &keyspace, table, &parts)?);
        let route = if matches!(parts.source, Source::Query(_)) || !locations.is_empty() {
            if rows.spans().count() != 1 {
                let refusal = Refusal {
                    what: "a subquery among several rows of an INSERT".into(),
                    hint: "insert row by row",
                };
                return Err(unsupported(&keyspace, refusal));
            }
            let apart = apart(&keyspace, &locations, "INSERT ... SELECT");
            Route::InsertSelect {
                rows,
                locations: Box::new(locations),
                apart,
            }
        } else {
            let several = self
                .several_rows(&parts, &queries)
                .map_err(|r| unsupported(&keyspace, r));
            Route::Insert { rows, several }
        };
        Ok(self.finish(&keyspace, route, made))
    }

    /// What keeps an INSERT's rows from being divided.
    fn several_rows(&self, parts: &InsertParts, queries: &[Query]) -> Result<(), Refusal> {
        if parts.returning {
            return select::refuse(
                "INSERT ... RETURNING of rows",
                "insert the rows of one shard at a time",
            );
        }
        // Rows are cut out one by one: the frame of a version comment around some of them would be torn.
        if self.statement.lexed.version_comments().iter().any(|c| c.executed) {
            return select::refuse("an INSERT with version comments", "leave the comments out");
        }
        self.moments_are_plain()?;
        let values = parts.table.end..self.statement.all().end;
        select::odd_calls(self.statement, queries, values)
    }

    /// The error for a database of the servers' own that a statement would write to.
    fn denied(&self, qualifier: Option<usize>) -> PlanError {
        let name = qualifier.and_then(|at| self.statement.name(at));
        PlanError::DatabaseDenied(name.unwrap_or_default())
    }
}
