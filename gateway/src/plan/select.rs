//! What becomes of a SELECT that goes to several shards: how its rows gather, or why it cannot.

use shardgate_sql::{Keyword as K, TokenKind};

use super::functions::{self, Called};
use super::items::{Item, items};
use super::limit::LimitClause;
use super::order::{Order, OrderError};
use super::splice::Edit;
use super::statement::{Span, Statement};
use super::tables::Query;
use crate::route::{Aggregate, GatherBody, Monotone, NotMonotone};

/// How a scattered SELECT gathers.
#[derive(Clone, Debug)]
pub(super) struct SelectShape {
    pub(super) body: GatherBody,
    pub(super) limit: Option<LimitClause>,
    pub(super) hidden: u16,
    pub(super) edits: Vec<Edit>,
    pub(super) pinned: Vec<u32>,
    pub(super) monotone: Monotone,
}

/// A construct that cannot be gathered exactly, and what to do instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) what: std::borrow::Cow<'static, str>,
    pub(super) hint: &'static str,
}

pub(super) const BY_SHARDING_COLUMN: &str = "restrict it to one shard by equality or IN on the sharding column, or run it on each shard after `USE keyspace:shard`";

pub(super) fn refuse<T>(
    what: impl Into<std::borrow::Cow<'static, str>>,
    hint: &'static str,
) -> Result<T, Refusal> {
    Err(Refusal {
        what: what.into(),
        hint,
    })
}

/// Works out how the outermost SELECT gathers.
pub(super) fn shape(statement: &Statement<'_>, queries: &[Query]) -> Result<SelectShape, Refusal> {
    let Some(query) = queries.first().filter(|q| q.scope.span == statement.all()) else {
        return refuse("a query in parentheses, WITH or UNION", BY_SHARDING_COLUMN);
    };
    clauses(query)?;
    nothing_odd(statement, queries)?;
    let items = items(statement, query.scope.items.clone());
    let limit = match &query.scope.limit {
        Some(span) => match LimitClause::parse(statement, span) {
            Some(limit) => Some(limit),
            None => {
                return refuse(
                    "this form of LIMIT",
                    "write LIMIT with plain numbers or parameters",
                );
            }
        },
        None => None,
    };
    if let Some(functions) = aggregates(statement, &items)? {
        return Ok(aggregate_shape(functions, limit));
    }
    rows_shape(statement, query, &items, limit)
}

/// Clauses that combine rows of different shards.
fn clauses(query: &Query) -> Result<(), Refusal> {
    let marks = &query.scope.marks;
    if marks.set_operation {
        return refuse(
            "UNION, EXCEPT or INTERSECT",
            "run its SELECTs one by one and combine the rows",
        );
    }
    if marks.distinct {
        return refuse(
            "SELECT DISTINCT",
            "restrict it by the sharding column, or drop duplicates in the application",
        );
    }
    if marks.group_by {
        return refuse(
            "GROUP BY",
            "restrict it to one shard by the sharding column, or group in the application",
        );
    }
    if marks.having {
        return refuse("HAVING", "write conditions on rows in WHERE");
    }
    if marks.window {
        return refuse("WINDOW", BY_SHARDING_COLUMN);
    }
    if marks.calc_found_rows {
        return refuse("SQL_CALC_FOUND_ROWS", "ask with a second SELECT COUNT(*)");
    }
    if marks.into {
        return refuse("SELECT ... INTO", BY_SHARDING_COLUMN);
    }
    if marks.unknown {
        return refuse(
            "a clause behind the SELECT that is not understood",
            BY_SHARDING_COLUMN,
        );
    }
    Ok(())
}

/// Whatever hides inside expressions: assignments, windows, aggregates and functions nobody knows.
pub(super) fn nothing_odd(statement: &Statement<'_>, queries: &[Query]) -> Result<(), Refusal> {
    for at in statement.all() {
        if statement.is(at, TokenKind::Assign) {
            return refuse(
                "assigning a user variable with `:=`",
                "use SET, or compute it in the application",
            );
        }
        if owner(queries, at).is_some_and(|q| q > 0) && functions::is_random(statement, at) {
            return refuse(
                "a random function inside a subquery",
                "each shard would draw its own value",
            );
        }
        if functions::is_seeded(statement, at) {
            return refuse(
                "RAND with a seed",
                "each shard would begin the sequence anew; RAND() without one can be used",
            );
        }
        if matches!(
            statement.keyword(at),
            Some(K::Union | K::Except | K::Intersect | K::With)
        ) {
            return refuse("UNION, EXCEPT, INTERSECT or WITH", BY_SHARDING_COLUMN);
        }
    }
    odd_calls(statement, queries, statement.all())
}

/// Calls in a span that are not computed row by row.
pub(super) fn odd_calls(statement: &Statement<'_>, queries: &[Query], span: Span) -> Result<(), Refusal> {
    // The outermost query's own aggregates are looked at one by one later, those inside a subquery here.
    let own_list = queries.first().map(|q| q.scope.items.clone()).unwrap_or_default();
    let mut from = span.start;
    while let Some((at, call)) = functions::first_not_scalar(statement, from..span.end) {
        from = at + 1;
        match call {
            Called::Aggregate if owner(queries, at) == Some(0) && own_list.contains(&at) => {}
            Called::Aggregate if counts_own_rows(statement, queries, at) => {}
            Called::Unknown if functions::is_alias(statement, at) => {}
            Called::Aggregate => return refuse("an aggregate outside the select list", BY_SHARDING_COLUMN),
            Called::Window | Called::Scalar => {
                return refuse(
                    "a window function",
                    "compute it in the application, or restrict the query to one shard",
                );
            }
            Called::Unknown => {
                let name = String::from_utf8_lossy(statement.lexed.text(at)).into_owned();
                return refuse(
                    format!("function `{name}`, which is not known to depend on its row alone,"),
                    BY_SHARDING_COLUMN,
                );
            }
        }
    }
    Ok(())
}

/// The innermost query around a token.
fn owner(queries: &[Query], at: usize) -> Option<usize> {
    queries.iter().rposition(|q| q.scope.span.contains(&at))
}

/// An aggregate in a subquery belongs to the outer query if it names only that one's columns. `COUNT(*)` and columns
/// qualified by a table of the subquery cannot.
fn counts_own_rows(statement: &Statement<'_>, queries: &[Query], at: usize) -> bool {
    let (Some(owner), Some(close)) = (owner(queries, at).filter(|o| *o > 0), statement.close(at + 1)) else {
        return false;
    };
    let inner = at + 2..close;
    if inner.len() == 1 && statement.is(inner.start, TokenKind::Star) {
        return true;
    }
    let column = super::predicate::ColumnRef::parse(statement, &inner);
    let table = column.and_then(|c| c.table);
    table.is_some_and(|t| {
        queries[owner]
            .from
            .factors
            .iter()
            .any(|f| f.alias.as_ref() == Some(&t))
    })
}

/// The aggregates of a select list that is made of nothing else; `None` if there are none.
fn aggregates(statement: &Statement<'_>, items: &[Item]) -> Result<Option<Vec<Aggregate>>, Refusal> {
    let calls = |item: &Item| {
        item.span
            .clone()
            .any(|at| functions::called(statement, at) == Some(Called::Aggregate))
    };
    let own = |item: &&Item| calls(item) && !is_subquery(statement, item);
    let count = items.iter().filter(own).count();
    if count == 0 {
        return Ok(None);
    }
    if count != items.len() {
        return refuse(
            "aggregates next to other columns",
            "select either rows or aggregates over all rows, in two statements",
        );
    }
    items
        .iter()
        .map(|item| aggregate(statement, item))
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

fn is_subquery(statement: &Statement<'_>, item: &Item) -> bool {
    statement
        .group(&item.expression)
        .is_some_and(|inner| statement.is_keyword(inner.start, K::Select))
}

fn aggregate(statement: &Statement<'_>, item: &Item) -> Result<Aggregate, Refusal> {
    let name = item.expression.start;
    let text = String::from_utf8_lossy(statement.lexed.text(name)).to_ascii_uppercase();
    let inner = statement.group(&(name + 1..item.expression.end));
    let plain =
        functions::called(statement, name) == Some(Called::Aggregate) && functions::adjacent(statement, name);
    let (Some(inner), true) = (inner, plain) else {
        return refuse(
            "an expression over aggregates",
            "select the plain aggregates and compute with them in the application",
        );
    };
    if matches!(statement.keyword(inner.start), Some(K::Distinct | K::Distinctrow)) {
        return refuse(format!("{text}(DISTINCT ...)"), BY_SHARDING_COLUMN);
    }
    match text.as_str() {
        "COUNT" => Ok(Aggregate::Count),
        "SUM" => Ok(Aggregate::Sum),
        "MIN" => Ok(Aggregate::Min),
        "MAX" => Ok(Aggregate::Max),
        "AVG" => refuse("AVG", "select SUM and COUNT of the column and divide"),
        _ => refuse(text, BY_SHARDING_COLUMN),
    }
}

fn aggregate_shape(functions: Vec<Aggregate>, limit: Option<LimitClause>) -> SelectShape {
    SelectShape {
        body: GatherBody::Aggregate(functions.into()),
        edits: limit.iter().filter_map(LimitClause::edit).collect(),
        limit,
        hidden: 0,
        pinned: Vec::new(),
        monotone: Monotone::No(NotMonotone::Aggregate),
    }
}

fn rows_shape(
    statement: &Statement<'_>,
    query: &Query,
    items: &[Item],
    limit: Option<LimitClause>,
) -> Result<SelectShape, Refusal> {
    let order = match &query.scope.order {
        Some(span) => order(statement, span, items, query.scope.items.end)?,
        None => Order::default(),
    };
    let monotone = if query.scope.marks.locking {
        Monotone::No(NotMonotone::LockingRead)
    } else if limit.as_ref().is_some_and(LimitClause::has_offset) {
        Monotone::No(NotMonotone::Offset)
    } else if limit.is_some() && !order.keys.is_empty() {
        Monotone::No(NotMonotone::OrderedLimit)
    } else {
        Monotone::Yes
    };
    let mut edits = order.edits;
    edits.extend(limit.iter().filter_map(LimitClause::edit));
    let body = if order.keys.is_empty() {
        GatherBody::Concat
    } else {
        GatherBody::Merge(order.keys)
    };
    Ok(SelectShape {
        body,
        limit,
        hidden: order.hidden,
        edits,
        pinned: order.pinned,
        monotone,
    })
}

fn order(statement: &Statement<'_>, span: &Span, items: &[Item], list_end: usize) -> Result<Order, Refusal> {
    Order::parse(statement, span, items, list_end).or_else(|error| match error {
        OrderError::Expression => refuse(
            "ORDER BY an expression",
            "order by an integer column, select the expression under an alias, or sort in the application",
        ),
        OrderError::Ordinal => refuse("ORDER BY this ordinal", "order by a column's name"),
        OrderError::Ambiguous => refuse(
            "ORDER BY a name that several columns of the select list may have",
            "give the column an alias of its own, without `*` next to it",
        ),
    })
}
