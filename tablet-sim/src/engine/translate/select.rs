//! SELECT: names come into scope, items get their types, and the whole is put together.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, OrderByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr,
};

use super::super::types::Ty;
use super::order::{order_terms, ordinal};
use super::{OutColumn, Scope, SourceColumn, Translated, Translator, Tx, cast, compare, name_parts};
use crate::error::{SqlError, SqlResult};

impl Translator<'_> {
    /// A whole query, with its CTEs, ORDER BY and LIMIT.
    pub(crate) fn query(&mut self, q: &Query) -> SqlResult<Translated> {
        self.query_as(q, None)
    }

    /// The same, its columns converted to given types (for UNION).
    pub(super) fn query_as(&mut self, q: &Query, types: Option<&[Ty]>) -> SqlResult<Translated> {
        if q.fetch.is_some() || q.for_clause.is_some() || !q.pipe_operators.is_empty() {
            return Err(SqlError::syntax("near 'FETCH'"));
        }
        if !q.locks.is_empty() {
            self.locking = true;
        }
        let ctes = self.ctes.len();
        let with = self.with(q.with.as_ref())?;
        let terms: &[OrderByExpr] = q.order_by.as_ref().map_or(Ok(&[][..]), order_terms)?;
        let limit = Self::limit(q.limit_clause.as_ref())?;
        let out = match q.body.as_ref() {
            SetExpr::Select(select) => self.select(select, terms, &limit, types),
            SetExpr::Query(inner) if terms.is_empty() && limit.is_empty() => self.query_as(inner, types),
            body => self.set_body(body, types).and_then(|mut out| {
                let order = Self::order_by_columns(terms, &out.columns)?;
                if !order.is_empty() || !limit.is_empty() {
                    // A compound of SQLite sorts by its columns only, so it is made a table first.
                    out.sql = format!("SELECT * FROM ({}){order}{limit}", out.sql);
                }
                out.single_row = limit == " LIMIT 1";
                Ok(out)
            }),
        };
        self.ctes.truncate(ctes);
        let mut out = out?;
        if !with.is_empty() {
            out.sql = format!("{with}{}", out.sql);
            out.unlimited = out.unlimited.map(|sql| format!("{with}{sql}"));
        }
        Ok(out)
    }

    /// One SELECT.
    pub(super) fn select(
        &mut self,
        s: &Select,
        order: &[OrderByExpr],
        limit: &str,
        types: Option<&[Ty]>,
    ) -> SqlResult<Translated> {
        refuse_foreign(s)?;
        let outer = (self.aggregate, std::mem::take(&mut self.item_texts));
        self.aggregate = false;
        self.scopes.push(Scope::default());
        let out = self.deeper(|t| t.select_inner(s, order, limit, types, &outer.1));
        self.scopes.pop();
        self.aggregate = outer.0;
        out
    }

    fn select_inner(
        &mut self,
        s: &Select,
        order: &[OrderByExpr],
        limit: &str,
        types: Option<&[Ty]>,
        texts: &[String],
    ) -> SqlResult<Translated> {
        let from = self.from(&s.from)?;
        let mut items = self.items(&s.projection, texts)?;
        if let Some(types) = types {
            for ((_, tx), ty) in items.iter_mut().zip(types) {
                *tx = cast::to(tx, ty)?;
            }
        }
        let distinct = match &s.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return Err(SqlError::syntax("near 'ON'")),
        };
        let mut conditions = Vec::new();
        if let Some(e) = &s.selection {
            let tx = self.in_clause("where clause", false, |t| t.expr(e))?;
            conditions.push(compare::truth(&tx));
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.aliases.clone_from(&items);
        }
        let group = self.group_by(&s.group_by, &items)?;
        let mut having = None;
        if let Some(e) = &s.having {
            if let Some(scope) = self.scopes.last_mut() {
                scope.alias_first = true;
            }
            let tx = self.in_clause("having clause", true, |t| t.expr(e));
            if let Some(scope) = self.scopes.last_mut() {
                scope.alias_first = false;
            }
            let truth = compare::truth(&tx?);
            if group.is_empty() && !self.aggregate {
                // HAVING without groups is another WHERE.
                conditions.push(truth);
            } else {
                having = Some(truth);
            }
        }
        let order = self.order_by(order, &items)?;
        let grouped = !group.is_empty();
        let mut sql = String::from(if distinct { "SELECT DISTINCT " } else { "SELECT " });
        for (i, (_, tx)) in items.iter().enumerate() {
            if i > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&if distinct || types.is_some() {
                tx.collated()
            } else {
                tx.sql.clone()
            });
            sql.push_str(&format!(" AS c{i}"));
        }
        if !from.is_empty() {
            sql.push_str(" FROM ");
            sql.push_str(&from);
        }
        if !conditions.is_empty() {
            sql.push_str(" WHERE ");
            sql.push_str(&conditions.join(" AND "));
        }
        if grouped {
            sql.push_str(" GROUP BY ");
            sql.push_str(&group.join(", "));
        }
        if let Some(having) = having {
            sql.push_str(" HAVING ");
            sql.push_str(&having);
        }
        let counted = s.select_modifiers.as_ref().is_some_and(|m| m.sql_calc_found_rows);
        let unlimited = counted.then(|| sql.clone());
        sql.push_str(&order);
        sql.push_str(limit);
        let columns = items.iter().map(|(name, tx)| out_column(name, tx)).collect();
        let single_row = (self.aggregate && !grouped) || limit == " LIMIT 1" || from.is_empty();
        Ok(Translated {
            sql,
            columns,
            single_row,
            unlimited,
        })
    }

    /// The select list, wildcards written out.
    fn items(&mut self, list: &[SelectItem], texts: &[String]) -> SqlResult<Vec<(String, Tx)>> {
        let mut out = Vec::new();
        for (i, item) in list.iter().enumerate() {
            match item {
                SelectItem::UnnamedExpr(e) => {
                    let tx = self.expr(e)?;
                    let name = match e {
                        Expr::Identifier(name) if !name.value.starts_with('@') => name.value.clone(),
                        Expr::CompoundIdentifier(parts)
                            if !parts.first().is_some_and(|p| p.value.starts_with('@')) =>
                        {
                            parts.last().map(|p| p.value.clone()).unwrap_or_default()
                        }
                        _ => texts.get(i).cloned().unwrap_or_else(|| e.to_string()),
                    };
                    out.push((name, tx));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let tx = self.expr(expr)?;
                    out.push((alias.value.clone(), tx));
                }
                SelectItem::Wildcard(_) => self.wildcard(None, None, &mut out)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    match name_parts(name)?.as_slice() {
                        [table] => self.wildcard(None, Some(table), &mut out)?,
                        [schema, table] => self.wildcard(Some(schema), Some(table), &mut out)?,
                        _ => return Err(SqlError::syntax(format!("near '{name}'"))),
                    }
                }
                other => return Err(SqlError::syntax(format!("near '{other}'"))),
            }
        }
        Ok(out)
    }

    fn wildcard(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        out: &mut Vec<(String, Tx)>,
    ) -> SqlResult<()> {
        let Some(scope) = self.scopes.last() else {
            return Err(SqlError::internal("no scope"));
        };
        let before = out.len();
        let push = |c: &SourceColumn, out: &mut Vec<(String, Tx)>| out.push((c.name.clone(), c.tx.clone()));
        if table.is_none() {
            // What USING joined on comes first, once.
            for name in &scope.joined {
                let found = scope.sources.iter().flat_map(|s| &s.columns);
                if let Some(c) = found
                    .into_iter()
                    .find(|c| !c.merged && c.name.eq_ignore_ascii_case(name))
                {
                    push(c, out);
                }
            }
        }
        let mut seen = false;
        for source in &scope.sources {
            if table.is_some_and(|t| !t.eq_ignore_ascii_case(&source.alias))
                || schema.is_some_and(|s| s != source.schema)
            {
                continue;
            }
            seen = true;
            for c in &source.columns {
                let joined = table.is_none() && scope.joined.iter().any(|j| j.eq_ignore_ascii_case(&c.name));
                if !joined {
                    push(c, out);
                }
            }
        }
        match table {
            Some(t) if !seen => Err(SqlError::new(1051, *b"42S02", format!("Unknown table '{t}'"))),
            None if out.len() == before => Err(SqlError::new(1096, *b"HY000", "No tables used")),
            _ => Ok(()),
        }
    }

    fn group_by(&mut self, group: &GroupByExpr, items: &[(String, Tx)]) -> SqlResult<Vec<String>> {
        let GroupByExpr::Expressions(list, modifiers) = group else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("WITH ROLLUP"));
        }
        let mut out = Vec::new();
        for e in list {
            let tx = match ordinal(e) {
                Some(n) => {
                    let item = usize::try_from(n).ok().and_then(|n| n.checked_sub(1));
                    item.and_then(|n| items.get(n))
                        .map(|(_, tx)| tx.clone())
                        .ok_or_else(|| SqlError::no_column(&n.to_string(), "group statement"))?
                }
                None => self.in_clause("group statement", false, |t| t.expr(e))?,
            };
            // A constant would be taken for a position.
            out.push(if tx.konst.is_some() {
                "'k'".to_owned()
            } else {
                tx.collated()
            });
        }
        Ok(out)
    }
}

pub(super) fn out_column(name: &str, tx: &Tx) -> OutColumn {
    OutColumn {
        name: name.to_owned(),
        ty: tx.ty.clone(),
        nullable: tx.nullable,
        meta: tx.meta(name),
    }
}

/// Clauses of other databases' SELECT.
fn refuse_foreign(s: &Select) -> SqlResult<()> {
    if s.into.is_some() {
        return Err(SqlError::unsupported("SELECT ... INTO"));
    }
    let foreign = s.top.is_some()
        || s.exclude.is_some()
        || s.prewhere.is_some()
        || s.qualify.is_some()
        || !s.lateral_views.is_empty()
        || !s.connect_by.is_empty()
        || !s.cluster_by.is_empty()
        || !s.distribute_by.is_empty()
        || !s.sort_by.is_empty();
    if foreign {
        return Err(SqlError::syntax("near 'SELECT'"));
    }
    if !s.named_window.is_empty() {
        return Err(SqlError::unsupported("window functions"));
    }
    Ok(())
}
