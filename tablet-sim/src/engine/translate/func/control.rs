//! IF, COALESCE, GREATEST and what else chooses among its arguments.

use super::any_null;
use super::sqls;
use crate::engine::translate::expr::choose;
use crate::engine::translate::{Tx, cast, compare};
use crate::engine::types::{Class, Ty};
use crate::error::{SqlError, SqlResult};

/// IF, IFNULL and the like.
pub(super) fn control(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
    Ok(Some(match (name, a) {
        ("IF", [c, x, y]) => choose(&[compare::truth(c)], &[x.clone(), y.clone()])?,
        ("IFNULL" | "NVL", [x, y]) => coalesce(&[x.clone(), y.clone()])?,
        ("COALESCE", [_, ..]) => coalesce(a)?,
        ("NULLIF", [x, y]) => {
            let same = compare::pair(x, y)?.sql("=");
            Tx::new(
                format!("(CASE WHEN {same} THEN NULL ELSE {} END)", x.sql),
                x.ty.clone(),
                true,
            )
        }
        ("ISNULL", [x]) => Tx::boolean(format!("({} IS NULL)", x.sql), false),
        ("GREATEST", [_, _, ..]) => extreme(a, "max")?,
        ("LEAST", [_, _, ..]) => extreme(a, "min")?,
        ("FIELD", [x, list @ ..]) if !list.is_empty() => {
            let mut conditions = Vec::new();
            let mut results = Vec::new();
            for (i, item) in list.iter().enumerate() {
                conditions.push(compare::pair(x, item)?.sql("="));
                results.push(Tx::int(i as i64 + 1));
            }
            results.push(Tx::int(0));
            choose(&conditions, &results)?
        }
        ("ELT", [n, list @ ..]) if !list.is_empty() => {
            let n = cast::integer(n, false);
            let conditions: Vec<String> = (1..=list.len()).map(|i| format!("({} = {i})", n.sql)).collect();
            let mut results: Vec<Tx> = list.iter().map(cast::text).collect();
            results.push(Tx::null());
            choose(&conditions, &results)?
        }
        ("STRCMP", [x, y]) => {
            let p = compare::pair(&cast::text(x), &cast::text(y))?;
            let sql = format!(
                "(CASE WHEN {} THEN 0 WHEN {} THEN -1 WHEN {} THEN 1 END)",
                p.sql("="),
                p.sql("<"),
                p.sql(">")
            );
            Tx::new(sql, Ty::BIGINT, x.nullable || y.nullable)
        }
        ("ANY_VALUE", [x]) => Tx {
            column: None,
            ..x.clone()
        },
        ("BENCHMARK" | "GET_LOCK" | "RELEASE_LOCK" | "IS_FREE_LOCK" | "LOAD_FILE", _) => {
            return Err(SqlError::unsupported(format!("{name}()")));
        }
        _ => return Ok(None),
    }))
}

pub(super) fn coalesce(a: &[Tx]) -> SqlResult<Tx> {
    let ty = a.iter().fold(Ty::Null, |ty, x| cast::common(&ty, &x.ty));
    let parts: Vec<Tx> = a.iter().map(|x| cast::to(x, &ty)).collect::<SqlResult<_>>()?;
    let nullable = a.iter().all(|x| x.nullable);
    let sql = if parts.len() == 1 {
        parts[0].sql.clone()
    } else {
        format!("coalesce({})", sqls(&parts))
    };
    Ok(Tx::new(sql, ty, nullable))
}

pub(super) fn extreme(a: &[Tx], function: &str) -> SqlResult<Tx> {
    let mut ty = a.iter().fold(Ty::Null, |ty, x| cast::common(&ty, &x.ty));
    let numbers = |x: &Tx| matches!(x.ty.class(), Class::Int | Class::Decimal | Class::Double);
    if ty.class() == Class::Text && a.iter().any(numbers) {
        ty = Ty::Double;
    }
    let parts: Vec<Tx> = a.iter().map(|x| cast::to(x, &ty)).collect::<SqlResult<_>>()?;
    // SQLite's max(a,b) takes its collation from the first argument.
    let mut sql = parts.iter().map(|p| p.sql.clone()).collect::<Vec<_>>();
    if let Some(first) = sql.first_mut() {
        *first = parts[0].collated();
    }
    Ok(Tx::new(format!("{function}({})", sql.join(",")), ty, any_null(a)))
}
