//! UPDATE and DELETE: where their rows are found, and what they may not change.

use shardgate_sql::{Keyword as K, TokenKind};

use super::catalog::Keyspace;
use super::error::PlanError;
use super::from::From;
use super::predicate::ColumnRef;
use super::scope::{Scope, behind_hint, scan_clauses, scan_items};
use super::statement::{Span, Statement};
use super::tables::{FactorKind, Names, Query};
use crate::schema::{Routing, Table};

/// The body of an UPDATE or DELETE as a scope, and the targets of a multi-table DELETE.
pub(super) struct WriteScope {
    pub(super) scope: Scope,
    pub(super) targets: Span,
}

/// Reads `UPDATE references SET ...`.
pub(super) fn update_scope(statement: &Statement<'_>) -> Option<WriteScope> {
    let start = verb(statement, K::Update)?;
    let mut at = behind_hint(statement, start + 1);
    while matches!(statement.keyword(at), Some(K::LowPriority | K::Ignore)) {
        at += 1;
    }
    let set = statement
        .flat(at..statement.all().end)
        .find(|t| statement.is_keyword(*t, K::Set))?;
    let mut scope = Scope {
        from: at..set,
        ..Scope::default()
    };
    let end = scan_items(statement, &mut scope, set + 1);
    scope.span = start..end;
    Some(WriteScope { scope, targets: 0..0 })
}

/// Reads `DELETE FROM t ...`, `DELETE a, b FROM references ...`, `DELETE FROM a, b USING references ...`.
pub(super) fn delete_scope(statement: &Statement<'_>) -> Option<WriteScope> {
    let start = verb(statement, K::Delete)?;
    let mut at = behind_hint(statement, start + 1);
    while matches!(statement.keyword(at), Some(K::LowPriority | K::Ignore | K::Quick)) {
        at += 1;
    }
    let from = statement
        .flat(at..statement.all().end)
        .find(|t| statement.is_keyword(*t, K::From))?;
    let mut scope = Scope {
        from_at: Some(from),
        ..Scope::default()
    };
    let end = scan_clauses(statement, &mut scope, from + 1);
    scope.span = start..end;
    let mut targets = at..from;
    let using = |t: &usize| statement.is_keyword(*t, K::Using) && !statement.is(t + 1, TokenKind::LParen);
    if let Some(using) = statement.flat(scope.from.clone()).find(using) {
        targets = scope.from.start..using;
        scope.from = using + 1..scope.from.end;
    }
    Some(WriteScope { scope, targets })
}

fn verb(statement: &Statement<'_>, verb: K) -> Option<usize> {
    statement
        .flat(statement.all())
        .find(|at| statement.is_keyword(*at, verb))
}

/// What keeps an UPDATE or DELETE from running on several shards, each by itself.
pub(super) fn refusal_of_several(query: &Query, targets: &Span) -> Option<(&'static str, &'static str)> {
    if query.from.factors.len() > 1 || !targets.is_empty() {
        return Some((
            "a multi-table UPDATE or DELETE",
            "restrict every table to one shard by its sharding column, or change one table at a time",
        ));
    }
    if query.scope.limit.is_some() {
        return Some((
            "UPDATE or DELETE with LIMIT",
            "restrict it to one shard by the sharding column, or leave LIMIT out",
        ));
    }
    if query.scope.marks.unknown {
        return Some(("RETURNING", "restrict it to one shard by the sharding column"));
    }
    None
}

/// Checks an UPDATE's or ON DUPLICATE KEY UPDATE's assignments against the sharding columns of a table.
pub(super) fn keeps_sharding_columns(
    statement: &Statement<'_>,
    keyspace: &Keyspace,
    assignments: &Span,
    tables: &[(&str, &Table)],
) -> Result<(), PlanError> {
    for (_, table) in tables {
        let is_generated = |column: &str| table.column(column).is_some_and(|c| c.generated);
        if let Some(vindex) = table.vindexes().iter().find(|v| is_generated(&v.column)) {
            // Whatever it is computed from may be what is assigned.
            let (table, column) = (table.name.clone(), vindex.column.clone());
            return Err(PlanError::ChangesShardingColumn { table, column });
        }
    }
    for assignment in statement.split_commas(assignments.clone()) {
        let eq = statement
            .flat(assignment.clone())
            .find(|at| statement.is(*at, TokenKind::Eq) || statement.is(*at, TokenKind::Assign));
        let column = eq.and_then(|eq| ColumnRef::parse(statement, &(assignment.start..eq)));
        let Some(column) = column else {
            let what = "an assignment to something else than a column".into();
            return Err(PlanError::NotUnderstood {
                keyspace: keyspace.name.clone(),
                what,
            });
        };
        for (alias, table) in tables {
            let meant = column
                .table
                .as_ref()
                .is_none_or(|t| t.eq_ignore_ascii_case(alias));
            let sharding = table
                .vindexes()
                .iter()
                .find(|v| v.column.eq_ignore_ascii_case(&column.column));
            if let Some(vindex) = sharding.filter(|_| meant) {
                let (table, column) = (table.name.clone(), vindex.column.clone());
                return Err(PlanError::ChangesShardingColumn { table, column });
            }
        }
    }
    Ok(())
}

/// The sharded tables of a FROM clause with the names their columns go by. Writing next to a reference table is
/// refused: which one is written cannot be told apart everywhere, and all copies would have to change.
pub(super) fn written_tables<'k>(
    statement: &Statement<'_>,
    keyspace: &'k Keyspace,
    names: &Names,
    from: &From,
) -> Result<Vec<(String, &'k Table)>, PlanError> {
    let mut tables = Vec::new();
    for factor in &from.factors {
        let (FactorKind::Table, Some(name)) = (names.kind(statement, factor), &factor.table) else {
            continue;
        };
        let table = super::locate::known_table(keyspace, name)?;
        refuse_reference(keyspace, table)?;
        tables.push((factor.alias.clone().unwrap_or_else(|| name.clone()), &**table));
    }
    Ok(tables)
}

pub(super) fn refuse_reference(keyspace: &Keyspace, table: &Table) -> Result<(), PlanError> {
    match table.routing {
        Routing::Reference { .. } => Err(PlanError::Unsupported {
            what: format!("writing to reference table `{}`", table.name).into(),
            keyspace: keyspace.name.clone(),
            hint: "write it on each shard after `USE keyspace:shard`".into(),
        }),
        Routing::Sharded(_) | Routing::Pinned(_) | Routing::Unsharded | Routing::Unknown => Ok(()),
    }
}
