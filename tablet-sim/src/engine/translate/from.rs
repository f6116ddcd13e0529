//! FROM: tables, derived tables, joins.

use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::super::catalog::Table;
use super::super::types::ColumnMeta;
use super::super::value::quote;
use super::{Cte, OutColumn, Source, SourceColumn, Translator, Tx, compare, name_parts};
use crate::error::{SqlError, SqlResult};

/// How the two sides of a join fill up what they do not find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Inner,
    Left,
    Right,
}

impl Translator<'_> {
    /// The FROM clause; its tables come into the innermost scope.
    pub(super) fn from(&mut self, list: &[TableWithJoins]) -> SqlResult<String> {
        let mut parts = Vec::new();
        for item in list {
            if let ([only], [], TableFactor::Table { name, .. }) =
                (list, item.joins.as_slice(), &item.relation)
                && only.joins.is_empty()
                && name_parts(name)?
                    .as_slice()
                    .iter()
                    .map(|n| n.to_ascii_lowercase())
                    .eq(["dual".to_owned()])
            {
                return Ok(String::new());
            }
            parts.push(self.joined(item)?);
        }
        Ok(parts.join(", "))
    }

    fn joined(&mut self, item: &TableWithJoins) -> SqlResult<String> {
        let first = self.sources();
        let mut sql = self.factor(&item.relation)?;
        for join in &item.joins {
            sql = self.join(&sql, join, first)?;
        }
        Ok(sql)
    }

    fn sources(&self) -> usize {
        self.scopes.last().map_or(0, |s| s.sources.len())
    }

    fn join(&mut self, left: &str, join: &Join, first: usize) -> SqlResult<String> {
        use JoinOperator as J;
        let (side, constraint) = match &join.join_operator {
            J::Join(c) | J::Inner(c) | J::CrossJoin(c) | J::StraightJoin(c) => (Side::Inner, c),
            J::Left(c) | J::LeftOuter(c) => (Side::Left, c),
            J::Right(c) | J::RightOuter(c) => (Side::Right, c),
            other => {
                return Err(SqlError::unsupported(
                    format!("the join {other:?}").split('(').next().unwrap_or(""),
                ));
            }
        };
        let middle = self.sources();
        let right = self.factor(&join.relation)?;
        let end = self.sources();
        match side {
            Side::Left => self.make_nullable(middle, end),
            Side::Right => self.make_nullable(first, middle),
            Side::Inner => {}
        }
        let on = match constraint {
            JoinConstraint::None => None,
            JoinConstraint::On(e) => {
                let tx = self.in_clause("on clause", false, |t| t.expr(e))?;
                Some(compare::truth(&tx))
            }
            JoinConstraint::Using(names) => {
                let names = names
                    .iter()
                    .map(|n| name_parts(n).map(|p| p.last().copied().unwrap_or("").to_owned()))
                    .collect::<SqlResult<Vec<_>>>()?;
                self.using(&names, side, (first, middle, end))?
            }
            JoinConstraint::Natural => {
                let names = self.shared_names(first, middle, end);
                self.using(&names, side, (first, middle, end))?
            }
            JoinConstraint::UsingAlias(..) => return Err(SqlError::syntax("near 'AS'")),
        };
        let word = match side {
            // A plain JOIN would let SQLite move later conditions across outer joins in ways MySQL does not.
            Side::Inner => "JOIN",
            Side::Left => "LEFT JOIN",
            Side::Right => "RIGHT JOIN",
        };
        Ok(match on {
            Some(on) => format!("{left} {word} {right} ON {on}"),
            None if side == Side::Inner => format!("{left} JOIN {right}"),
            None => return Err(SqlError::syntax("near 'JOIN'")),
        })
    }

    fn make_nullable(&mut self, from: usize, to: usize) {
        if let Some(scope) = self.scopes.last_mut() {
            for column in scope
                .sources
                .iter_mut()
                .take(to)
                .skip(from)
                .flat_map(|s| &mut s.columns)
            {
                column.tx.nullable = true;
                if let Some(meta) = &mut column.tx.column {
                    meta.flags &= !super::super::types::flag::NOT_NULL;
                }
            }
        }
    }

    fn shared_names(&self, first: usize, middle: usize, end: usize) -> Vec<String> {
        let Some(scope) = self.scopes.last() else {
            return Vec::new();
        };
        let columns = |from: usize, to: usize| {
            scope
                .sources
                .iter()
                .take(to)
                .skip(from)
                .flat_map(|s| &s.columns)
                .filter(|c| !c.merged)
        };
        columns(first, middle)
            .filter(|l| columns(middle, end).any(|r| r.name.eq_ignore_ascii_case(&l.name)))
            .map(|c| c.name.clone())
            .collect()
    }

    /// The condition of USING; each name then stands for one column only.
    fn using(
        &mut self,
        names: &[String],
        side: Side,
        (first, middle, end): (usize, usize, usize),
    ) -> SqlResult<Option<String>> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(None);
        };
        let find = |scope: &super::Scope, name: &str, from: usize, to: usize| {
            let mut found = None;
            for (i, source) in scope.sources.iter().enumerate().take(to).skip(from) {
                for (j, column) in source.columns.iter().enumerate() {
                    if !column.merged && column.name.eq_ignore_ascii_case(name) {
                        if found.is_some() {
                            return Err(SqlError::ambiguous(name, "from clause"));
                        }
                        found = Some((i, j));
                    }
                }
            }
            found.ok_or_else(|| SqlError::no_column(name, "from clause"))
        };
        let mut conditions = Vec::new();
        for name in names {
            let (li, lj) = find(scope, name, first, middle)?;
            let (ri, rj) = find(scope, name, middle, end)?;
            let pair = compare::pair(
                &scope.sources[li].columns[lj].tx,
                &scope.sources[ri].columns[rj].tx,
            )?;
            conditions.push(pair.sql("="));
            let hidden = if side == Side::Right { (li, lj) } else { (ri, rj) };
            scope.sources[hidden.0].columns[hidden.1].merged = true;
            if !scope.joined.iter().any(|j| j.eq_ignore_ascii_case(name)) {
                scope.joined.push(name.clone());
            }
        }
        Ok((!conditions.is_empty())
            .then(|| conditions.join(" AND "))
            .or(Some("1".to_owned())))
    }

    fn factor(&mut self, factor: &TableFactor) -> SqlResult<String> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                partitions,
                version: None,
                ..
            } => {
                if !partitions.is_empty() {
                    return Err(SqlError::unsupported("PARTITION"));
                }
                self.table_factor(name, alias.as_ref())
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                ..
            } => {
                let Some(alias) = alias else {
                    return Err(SqlError::new(
                        1248,
                        *b"42000",
                        "Every derived table must have its own alias",
                    ));
                };
                // A derived table does not see its neighbours.
                let mine = self.scopes.pop();
                let inner = self.nested(subquery);
                self.scopes.extend(mine);
                let inner = inner?;
                self.bring_in("", &alias.name.value, derived(&inner.columns, alias)?)?;
                Ok(format!("({}) AS {}", inner.sql, quote(&alias.name.value)))
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => Ok(format!("({})", self.joined(table_with_joins)?)),
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn table_factor(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> SqlResult<String> {
        if let [only] = name_parts(name)?.as_slice()
            && let Some(cte) = self
                .ctes
                .iter()
                .rev()
                .find(|c| c.name.eq_ignore_ascii_case(only))
                .cloned()
        {
            let shown = alias.map_or(*only, |a| a.name.value.as_str()).to_owned();
            let Cte { sqlite, columns, .. } = cte;
            let columns = columns
                .iter()
                .enumerate()
                .map(|(i, c)| derived_column(&shown, i, c))
                .collect();
            self.bring_in("", &shown, columns)?;
            return Ok(format!("{} AS {}", quote(&sqlite), quote(&shown)));
        }
        let (schema, table_name) = self.table_name(name)?;
        let table = self.catalog.table(&schema, &table_name)?.clone();
        self.tables.push((schema.clone(), table_name));
        let shown = alias
            .map_or(table.name.as_str(), |a| a.name.value.as_str())
            .to_owned();
        self.bring_in(&schema, &shown, table_columns(&table, &shown))?;
        Ok(format!("{} AS {}", table.sqlite(), quote(&shown)))
    }

    /// Adds a source to the innermost scope.
    fn bring_in(&mut self, schema: &str, alias: &str, columns: Vec<SourceColumn>) -> SqlResult<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Err(SqlError::internal("no scope"));
        };
        if scope.sources.iter().any(|s| s.alias.eq_ignore_ascii_case(alias)) {
            return Err(SqlError::new(
                1066,
                *b"42000",
                format!("Not unique table/alias: '{alias}'"),
            ));
        }
        scope.sources.push(Source {
            schema: schema.to_owned(),
            alias: alias.to_owned(),
            columns,
        });
        Ok(())
    }
}

/// The columns of a stored table under an alias.
pub(crate) fn table_columns(table: &Table, alias: &str) -> Vec<SourceColumn> {
    let column = |(i, c): (usize, &super::super::catalog::Column)| {
        let meta = ColumnMeta {
            schema: table.schema.clone(),
            table: alias.to_owned(),
            org_table: table.name.clone(),
            name: c.name.clone(),
            org_name: c.name.clone(),
            ty: c.ty.clone(),
            flags: table.flags(i),
        };
        let sql = format!("{}.{}", quote(alias), quote(&c.name));
        let tx = Tx {
            column: Some(Box::new(meta)),
            ..Tx::new(sql, c.ty.clone(), c.nullable)
        };
        SourceColumn {
            name: c.name.clone(),
            tx,
            merged: false,
        }
    };
    table.columns.iter().enumerate().map(column).collect()
}

fn derived_column(alias: &str, i: usize, c: &OutColumn) -> SourceColumn {
    let tx = Tx::new(format!("{}.c{i}", quote(alias)), c.ty.clone(), c.nullable);
    let meta = ColumnMeta {
        table: alias.to_owned(),
        org_name: c.name.clone(),
        ..ColumnMeta::computed(c.name.clone(), c.ty.clone(), c.nullable)
    };
    SourceColumn {
        name: c.name.clone(),
        tx: Tx {
            column: Some(Box::new(meta)),
            ..tx
        },
        merged: false,
    }
}

fn derived(columns: &[OutColumn], alias: &TableAlias) -> SqlResult<Vec<SourceColumn>> {
    let mut out: Vec<SourceColumn> = columns
        .iter()
        .enumerate()
        .map(|(i, c)| derived_column(&alias.name.value, i, c))
        .collect();
    if !alias.columns.is_empty() {
        if alias.columns.len() != out.len() {
            return Err(SqlError::syntax(format!("near '{alias}'")));
        }
        for (column, name) in out.iter_mut().zip(&alias.columns) {
            column.name.clone_from(&name.name.value);
        }
    }
    for (i, column) in out.iter().enumerate() {
        if out[..i].iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
            return Err(SqlError::new(
                1060,
                *b"42S21",
                format!("Duplicate column name '{}'", column.name),
            ));
        }
    }
    Ok(out)
}
