//! INSERT and REPLACE: each row goes to the shard of its sharding column, in the bytes it was written in.

use std::sync::Arc;

use shardgate_sql::{Keyword as K, TokenKind};

use super::catalog::Keyspace;
use super::error::PlanError;
use super::operand::{Operand, Values};
use super::predicate::ColumnRef;
use super::scope::behind_hint;
use super::shard_set::ShardSet;
use super::statement::{Span, Statement};
use super::tables::Named;
use super::write::{keeps_sharding_columns, refuse_reference};
use crate::schema::{Table, TableVindex};
use crate::vindex::{ColumnType, Value, VindexError};

/// The parts of an INSERT as written.
pub(super) struct InsertParts {
    pub(super) table: Named,
    pub(super) columns: Option<Vec<String>>,
    pub(super) source: Source,
    /// Assignments behind ON DUPLICATE KEY UPDATE.
    pub(super) on_duplicate: Option<Span>,
    pub(super) returning: bool,
}

/// Where an INSERT's rows come from.
pub(super) enum Source {
    /// Each row's cells: the span of its parentheses.
    Rows(Vec<Span>),
    /// `SET column = value, ...`: columns and cells.
    Set(Vec<Span>),
    /// A query that begins at this token.
    Query(usize),
}

impl InsertParts {
    /// Reads an INSERT or REPLACE.
    pub(super) fn parse(statement: &Statement<'_>) -> Option<Self> {
        let mut at = behind_hint(statement, statement.all().start + 1);
        while matches!(
            statement.keyword(at),
            Some(K::LowPriority | K::HighPriority | K::Delayed | K::Ignore | K::Into)
        ) {
            at += 1;
        }
        let table = Named::at(statement, at)?;
        at = table.end;
        if statement.is_keyword(at, K::Partition) {
            at = statement.close(at + 1)? + 1;
        }
        let mut columns = None;
        if let Some(close) = statement.close(at).filter(|_| !begins_query(statement, at + 1)) {
            columns = Some(names(statement, at + 1..close)?);
            at = close + 1;
        }
        let (source, end) = match statement.keyword(at)? {
            K::Values | K::Value => rows(statement, at + 1)?,
            K::Set => {
                let end = statement
                    .flat(at + 1..statement.all().end)
                    .find(|t| matches!(statement.keyword(*t), Some(K::On | K::Returning | K::As)))
                    .unwrap_or(statement.all().end);
                (Source::Set(statement.split_commas(at + 1..end)), end)
            }
            _ => (Source::Query(at), at),
        };
        let mut parts = Self {
            table,
            columns,
            source,
            on_duplicate: None,
            returning: false,
        };
        parts.tail(statement, end)?;
        Some(parts)
    }

    /// `[AS new [(a, b)]] [ON DUPLICATE KEY UPDATE ...] [RETURNING ...]`
    fn tail(&mut self, statement: &Statement<'_>, mut at: usize) -> Option<()> {
        let end = statement.all().end;
        if matches!(self.source, Source::Query(_)) {
            at = statement
                .flat(at..end)
                .find(|t| statement.is_keyword(*t, K::On) && statement.is_keyword(t + 1, K::Duplicate))
                .unwrap_or(end);
        } else if statement.is_keyword(at, K::As) {
            at += 2;
            at = statement.close(at).map_or(at, |close| close + 1);
        }
        let returning = |t: &usize| statement.is_keyword(*t, K::Returning);
        if statement.is_keyword(at, K::On) && statement.is_keyword(at + 3, K::Update) {
            let stop = statement.flat(at..end).find(returning).unwrap_or(end);
            self.on_duplicate = Some(at + 4..stop);
            at = stop;
        }
        self.returning = returning(&at);
        (at == end || self.returning).then_some(())
    }
}

fn begins_query(statement: &Statement<'_>, at: usize) -> bool {
    matches!(
        statement.keyword(at),
        Some(K::Select | K::With | K::Table | K::Values)
    ) || statement.is(at, TokenKind::LParen)
}

/// A list of columns; each may be qualified by its table.
fn names(statement: &Statement<'_>, span: Span) -> Option<Vec<String>> {
    let columns = statement.split_commas(span);
    columns
        .iter()
        .map(|c| ColumnRef::parse(statement, c).map(|c| c.column))
        .collect()
}

/// `(..), (..)`, each with ROW before it or not. Gives what is behind too.
fn rows(statement: &Statement<'_>, mut at: usize) -> Option<(Source, usize)> {
    let mut rows = Vec::new();
    loop {
        at += usize::from(statement.is_keyword(at, K::Row));
        let close = statement.close(at)?;
        rows.push(at..close + 1);
        if !statement.is(close + 1, TokenKind::Comma) {
            return Some((Source::Rows(rows), close + 1));
        }
        at = close + 2;
    }
}

/// One row: the tokens to send, and the values that place it.
#[derive(Clone, Debug)]
struct Row {
    span: Span,
    /// One operand for each vindex; `None` where a secondary one's column is left out and NULL.
    keys: Box<[Option<Operand>]>,
    /// The `AUTO_INCREMENT` column's value, if the table has such a column.
    number: Option<Operand>,
}

/// A planned INSERT of rows.
#[derive(Clone, Debug)]
pub(super) struct InsertRows {
    keyspace: Arc<Keyspace>,
    table: Arc<Table>,
    rows: Vec<Row>,
    /// The `AUTO_INCREMENT` column.
    numbered: Option<String>,
    zero_is_a_number: bool,
}

impl InsertRows {
    /// Plans the rows of an INSERT into a sharded table.
    pub(super) fn plan(
        statement: &Statement<'_>,
        keyspace: &Arc<Keyspace>,
        table: &Arc<Table>,
        parts: &InsertParts,
    ) -> Result<Self, PlanError> {
        refuse_reference(keyspace, table)?;
        if let Some(assignments) = &parts.on_duplicate {
            keeps_sharding_columns(statement, keyspace, assignments, &[(&table.name, table)])?;
        }
        let numbered = table
            .info
            .as_ref()
            .and_then(|i| i.columns().iter().find(|c| c.auto_increment));
        let layout = Layout {
            table,
            columns: columns(statement, keyspace, table, parts)?,
            numbered: numbered.map(|c| c.name.as_str()),
        };
        let rows = match &parts.source {
            Source::Rows(rows) => rows
                .iter()
                .enumerate()
                .map(|(n, span)| {
                    let cells = statement.split_commas(span.start + 1..span.end - 1);
                    layout.row(statement, n, span.clone(), &cells)
                })
                .collect::<Result<Vec<_>, _>>()?,
            Source::Set(assignments) => {
                vec![layout.row(statement, 0, 0..0, &cells_of(statement, assignments))?]
            }
            Source::Query(at) => {
                vec![layout.row(statement, 0, 0..0, &selected(statement, keyspace, *at)?)?]
            }
        };
        Ok(Self {
            keyspace: Arc::clone(keyspace),
            table: Arc::clone(table),
            rows,
            numbered: numbered.map(|c| c.name.clone()),
            zero_is_a_number: no_auto_value_on_zero(statement),
        })
    }

    /// The tokens of each row.
    pub(super) fn spans(&self) -> impl Iterator<Item = &Span> {
        self.rows.iter().map(|r| &r.span)
    }

    /// For each row the place of its shard in the keyspace.
    pub(super) fn place(&self, values: &Values<'_>) -> Result<Vec<usize>, PlanError> {
        self.rows
            .iter()
            .enumerate()
            .map(|(n, row)| self.place_row(n, row, values))
            .collect()
    }

    fn place_row(&self, n: usize, row: &Row, values: &Values<'_>) -> Result<usize, PlanError> {
        if let (Some(number), Some(column)) = (row.number, &self.numbered) {
            self.check_number(number, column, values)?;
        }
        let mut place: Option<ShardSet> = None;
        for (vindex, key) in self.table.vindexes().iter().zip(&row.keys) {
            let secondary = place.is_some();
            let Some(key) = key else { continue };
            let value = key.value(values).ok_or_else(|| self.expression(&vindex.column))?;
            if secondary && value.is_null() {
                continue;
            }
            let column = vindex.ty.as_ref().ok_or_else(|| self.unknown_columns())?;
            let set = self.shard_of(n, vindex, column, &value)?;
            match &place {
                Some(first) if *first != set => return Err(self.disagree(n, &vindex.column)),
                Some(_) => {}
                None => place = Some(set),
            }
        }
        let shard = place.and_then(|set| set.iter().next());
        shard.ok_or_else(|| PlanError::NoSuchShard {
            keyspace: self.keyspace.name.clone(),
            shard: "for this row".into(),
        })
    }

    fn shard_of(
        &self,
        n: usize,
        vindex: &TableVindex,
        column: &ColumnType,
        value: &Value,
    ) -> Result<ShardSet, PlanError> {
        let placed = vindex.vindex.place(column, value);
        let destination = placed.map_err(|reason| PlanError::Placement {
            table: self.table.name.clone(),
            row: n + 1,
            column: vindex.column.clone(),
            reason,
        })?;
        self.keyspace.shards_of(&destination)
    }

    /// NULL, and zero but for one `sql_mode`, ask the server for the next number.
    fn check_number(&self, number: Operand, column: &str, values: &Values<'_>) -> Result<(), PlanError> {
        let given = match number.value(values) {
            Some(Value::Int(0) | Value::UInt(0)) => self.zero_is_a_number,
            Some(Value::Int(_) | Value::UInt(_)) => true,
            // A text or decimal may still become zero; only plain digits are certain.
            Some(Value::Text(text)) => text.first().is_some_and(|b| (b'1'..=b'9').contains(b)),
            Some(Value::Null | Value::Decimal(_) | Value::Float(_) | Value::Bytes(_)) | None => false,
        };
        let error = || PlanError::AutoIncrement {
            table: self.table.name.clone(),
            column: column.to_owned(),
        };
        if given { Ok(()) } else { Err(error()) }
    }

    /// A secondary vindex routes reads: a row where it points elsewhere would not be found by it.
    fn disagree(&self, n: usize, column: &str) -> PlanError {
        let why = "the table's vindexes give different shards";
        PlanError::Placement {
            table: self.table.name.clone(),
            row: n + 1,
            column: column.to_owned(),
            reason: VindexError::Inexact { why },
        }
    }

    fn expression(&self, column: &str) -> PlanError {
        PlanError::ShardingExpression {
            table: self.table.name.clone(),
            column: column.to_owned(),
        }
    }

    fn unknown_columns(&self) -> PlanError {
        PlanError::UnknownColumns {
            table: self.table.name.clone(),
        }
    }
}

fn no_auto_value_on_zero(statement: &Statement<'_>) -> bool {
    shardgate_sql::SqlMode::parse("NO_AUTO_VALUE_ON_ZERO")
        .is_ok_and(|mode| statement.lexed.options().mode.contains(mode))
}

/// Where an INSERT's columns are.
struct Layout<'l> {
    table: &'l Table,
    columns: Vec<String>,
    numbered: Option<&'l str>,
}

impl Layout<'_> {
    fn row(&self, statement: &Statement<'_>, n: usize, span: Span, cells: &[Span]) -> Result<Row, PlanError> {
        if cells.len() != self.columns.len() && !cells.is_empty() {
            return Err(PlanError::ColumnCount { row: n + 1 });
        }
        let vindexes = self.table.vindexes().iter().enumerate();
        let keys = vindexes
            .map(|(i, v)| self.key(statement, cells, i, &v.column))
            .collect::<Result<_, _>>()?;
        let number = match self.numbered {
            Some(column) => Some(self.number(statement, cells, column)?),
            None => None,
        };
        Ok(Row { span, keys, number })
    }

    fn cell<'c>(&self, cells: &'c [Span], column: &str) -> Option<&'c Span> {
        cells.get(self.columns.iter().position(|c| c.eq_ignore_ascii_case(column))?)
    }

    fn key(
        &self,
        statement: &Statement<'_>,
        cells: &[Span],
        index: usize,
        column: &str,
    ) -> Result<Option<Operand>, PlanError> {
        let (table, name) = (self.table.name.clone(), column.to_owned());
        match self.cell(cells, column) {
            Some(cell) => {
                let operand = Operand::parse(statement, cell);
                operand
                    .map(Some)
                    .ok_or(PlanError::ShardingExpression { table, column: name })
            }
            // A secondary vindex's column that becomes NULL says nothing of the row's place.
            None if index > 0 && self.is_null_by_default(column) => Ok(None),
            None => Err(PlanError::MissingShardingColumn { table, column: name }),
        }
    }

    fn is_null_by_default(&self, column: &str) -> bool {
        self.table
            .column(column)
            .is_some_and(|c| c.nullable && !c.has_default)
    }

    fn number(&self, statement: &Statement<'_>, cells: &[Span], column: &str) -> Result<Operand, PlanError> {
        let operand = self
            .cell(cells, column)
            .and_then(|cell| Operand::parse(statement, cell));
        operand.ok_or_else(|| PlanError::AutoIncrement {
            table: self.table.name.clone(),
            column: column.to_owned(),
        })
    }
}

/// The select list of `INSERT ... SELECT` as the cells of one row: if the sharding column is a constant there, all rows
/// go to one shard.
fn selected(statement: &Statement<'_>, keyspace: &Keyspace, at: usize) -> Result<Vec<Span>, PlanError> {
    let scopes = super::scope::select_scopes(statement);
    let first = scopes
        .first()
        .filter(|s| s.span.start == at && !s.marks.set_operation);
    let items = first
        .map(|s| super::items::items(statement, s.items.clone()))
        .unwrap_or_default();
    if items.is_empty() || items.iter().any(|i| i.star) {
        return Err(PlanError::Unsupported {
            what: "INSERT ... SELECT".into(),
            keyspace: keyspace.name.clone(),
            hint: "select every column by name with the sharding column as a constant, or read and insert in two steps"
                .into(),
        });
    }
    Ok(items.into_iter().map(|i| i.expression).collect())
}

/// An INSERT's columns: as written, else as learned, else as the vschema declares them.
fn columns(
    statement: &Statement<'_>,
    keyspace: &Keyspace,
    table: &Table,
    parts: &InsertParts,
) -> Result<Vec<String>, PlanError> {
    if let Source::Set(assignments) = &parts.source {
        let name = |assignment: &Span| {
            let eq = assignment_eq(statement, assignment)?;
            ColumnRef::parse(statement, &(assignment.start..eq)).map(|c| c.column)
        };
        return assignments
            .iter()
            .map(name)
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| PlanError::NotUnderstood {
                keyspace: keyspace.name.clone(),
                what: "an assignment to something else than a column".into(),
            });
    }
    if let Some(columns) = &parts.columns {
        return Ok(columns.clone());
    }
    let learned = table.info.as_ref().map(|info| {
        info.columns()
            .iter()
            .filter(|c| !c.invisible)
            .map(|c| c.name.clone())
            .collect::<Vec<_>>()
    });
    learned
        .or_else(|| table.authoritative_columns.clone())
        .ok_or_else(|| PlanError::UnknownColumns {
            table: table.name.clone(),
        })
}

fn assignment_eq(statement: &Statement<'_>, assignment: &Span) -> Option<usize> {
    statement
        .flat(assignment.clone())
        .find(|at| statement.is(*at, TokenKind::Eq) || statement.is(*at, TokenKind::Assign))
}

fn cells_of(statement: &Statement<'_>, assignments: &[Span]) -> Vec<Span> {
    let cell = |a: &Span| assignment_eq(statement, a).map_or(a.end..a.end, |eq| eq + 1..a.end);
    assignments.iter().map(cell).collect()
}
