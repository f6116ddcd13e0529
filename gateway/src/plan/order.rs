//! ORDER BY of a scattered SELECT: each shard sorts, the gateway merges by the same keys.
//!
//! A key that the client selects is read where it stands; any other is appended to the shards' select lists under a
//! name of the gateway's and cut off again. Whether a key's type can be merged is seen when the columns arrive.

use shardgate_sql::{Keyword as K, Literal};
use smallvec::SmallVec;

use super::items::Item;
use super::predicate::ColumnRef;
use super::splice::{Edit, What, When};
use super::statement::{Span, Statement};
use crate::route::{KeyColumn, SortKey};

/// How to merge.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    pub(super) keys: SmallVec<[SortKey; 2]>,
    pub(super) edits: Vec<Edit>,
    pub(super) hidden: u16,
    /// Literals that the keys were read from: another ordinal is another plan.
    pub(super) pinned: Vec<u32>,
}

/// A sort key that cannot be merged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OrderError {
    /// Neither a column, nor an alias, nor an ordinal.
    Expression,
    /// An ordinal outside the select list.
    Ordinal,
    /// An alias that several items have, or one that a `*` may have as well.
    Ambiguous,
}

impl Order {
    /// Reads an ORDER BY; `list_end` is the token behind the select list.
    pub(super) fn parse(
        statement: &Statement<'_>,
        span: &Span,
        items: &[Item],
        list_end: usize,
    ) -> Result<Self, OrderError> {
        let mut order = Self::default();
        for term in statement.split_commas(span.clone()) {
            let (key, descending) = direction(statement, term);
            if key.len() == 1 && statement.is_keyword(key.start, K::Null) {
                continue;
            }
            let column = order.column(statement, &key, items, list_end)?;
            order.keys.push(SortKey { column, descending });
        }
        Ok(order)
    }

    fn column(
        &mut self,
        statement: &Statement<'_>,
        key: &Span,
        items: &[Item],
        list_end: usize,
    ) -> Result<KeyColumn, OrderError> {
        if key.len() == 1
            && let Some(Literal::Int(ordinal)) = statement.lexed.literal(key.start)
        {
            self.pinned.push(key.start as u32);
            let ordinal = u16::try_from(ordinal).ok().and_then(|n| n.checked_sub(1));
            // A hidden column must not be what an ordinal of the client's falls on.
            let inside = |n: &u16| usize::from(*n) < items.len() || items.iter().any(|i| i.star);
            return ordinal
                .filter(inside)
                .map(KeyColumn::Output)
                .ok_or(OrderError::Ordinal);
        }
        let wanted = ColumnRef::parse(statement, key).ok_or(OrderError::Expression)?;
        let source = match find(&wanted, items)? {
            Some(place) => match output(items, place) {
                Some(column) => return Ok(column),
                // Behind a `*` an item's place is not known, so it is selected once more.
                None if items[place].column.is_some() => items[place].expression.clone(),
                None => return Err(OrderError::Ambiguous),
            },
            None => key.clone(),
        };
        // `keyspace.table.column`: the shard may know the keyspace by another name, and the table's name is enough.
        let source = if source.len() == 5 {
            source.start + 2..source.end
        } else {
            source
        };
        let column = KeyColumn::Hidden(self.hidden);
        self.edits
            .push(Edit::insert(list_end, What::Hidden(source, self.hidden)).when(When::Scattered));
        self.hidden += 1;
        Ok(column)
    }
}

fn direction(statement: &Statement<'_>, term: Span) -> (Span, bool) {
    match term.end.checked_sub(1).and_then(|last| statement.keyword(last)) {
        Some(K::Asc) => (term.start..term.end - 1, false),
        Some(K::Desc) => (term.start..term.end - 1, true),
        _ => (term, false),
    }
}

/// The item that a column in ORDER BY means, as the servers look for it: an alias first, then a selected column.
fn find(wanted: &ColumnRef, items: &[Item]) -> Result<Option<usize>, OrderError> {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    if wanted.table.is_none() {
        let aliased = |i: &Item| i.alias.as_ref().is_some_and(|a| same(a, &wanted.column));
        let mut places = items
            .iter()
            .enumerate()
            .filter(|(_, i)| aliased(i))
            .map(|(place, _)| place);
        if let Some(place) = places.next() {
            let star = items.iter().any(|i| i.star);
            // `SELECT *, a AS k ... ORDER BY k`: the table's `k` may be in the star.
            return if places.next().is_some() || star {
                Err(OrderError::Ambiguous)
            } else {
                Ok(Some(place))
            };
        }
    }
    let selected = |i: &Item| {
        i.alias.is_none()
            && i.column.as_ref().is_some_and(|c| {
                let table = wanted.table.is_none() || wanted.table == c.table;
                same(&c.column, &wanted.column) && table
            })
    };
    let mut places = items.iter().enumerate().filter(|(_, i)| selected(i));
    let Some((place, first)) = places.next() else {
        return Ok(None);
    };
    if places.any(|(_, i)| i.column != first.column) {
        return Err(OrderError::Ambiguous);
    }
    Ok(Some(place))
}

/// An item's column, if no `*` before it hides where that is.
fn output(items: &[Item], place: usize) -> Option<KeyColumn> {
    let before = items.get(..place)?;
    let known = !before.iter().any(|i| i.star) && u16::try_from(place).is_ok();
    known.then_some(KeyColumn::Output(place as u16))
}
