//! Functions by name: aggregates, texts, numbers, the session's facts.

mod aggregate;
mod control;
mod numeric;
mod text;

use crate::engine::translate::{Translator, Tx, cast};
use crate::engine::types::{IntSize, Ty};
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use control::control;
use numeric::numeric;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, OrderByExpr,
};
use text::textual;

/// A call's parts, taken out of the tree.
struct Call<'e> {
    args: Vec<&'e Expr>,
    star: bool,
    distinct: bool,
    order: &'e [OrderByExpr],
    separator: Option<String>,
}

fn call(f: &Function) -> SqlResult<Call<'_>> {
    let mut out = Call {
        args: Vec::new(),
        star: false,
        distinct: false,
        order: &[],
        separator: None,
    };
    if f.over.is_some() {
        return Err(SqlError::unsupported("window functions"));
    }
    if f.filter.is_some() || f.null_treatment.is_some() || !f.within_group.is_empty() {
        return Err(SqlError::syntax(format!("near '{f}'")));
    }
    let list = match &f.args {
        FunctionArguments::None => return Ok(out),
        FunctionArguments::List(list) => list,
        FunctionArguments::Subquery(_) => return Err(SqlError::syntax(format!("near '{f}'"))),
    };
    out.distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
    for arg in &list.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => out.args.push(e),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => out.star = true,
            _ => return Err(SqlError::syntax(format!("near '{f}'"))),
        }
    }
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(terms) => out.order = terms,
            FunctionArgumentClause::Separator(v) => {
                out.separator = v.value.clone().into_string();
            }
            other => return Err(SqlError::unsupported(other)),
        }
    }
    Ok(out)
}

fn sqls(args: &[Tx]) -> String {
    args.iter().map(|a| a.sql.as_str()).collect::<Vec<_>>().join(",")
}

fn any_null(args: &[Tx]) -> bool {
    args.iter().any(|a| a.nullable)
}

impl Translator<'_> {
    pub(super) fn function(&mut self, f: &Function) -> SqlResult<Tx> {
        let name = f.name.to_string().to_ascii_uppercase();
        let call = call(f)?;
        if let Some(tx) = self.aggregate_call(&name, &call)? {
            return Ok(tx);
        }
        if call.star || call.distinct || !call.order.is_empty() {
            return Err(SqlError::syntax(format!("near '{f}'")));
        }
        self.named(&name, &call.args)
    }

    /// A function that is no aggregate.
    pub(super) fn named(&mut self, name: &str, args: &[&Expr]) -> SqlResult<Tx> {
        if let Some(tx) = self.fact(name, args)? {
            return Ok(tx);
        }
        if let Some(tx) = self.time_function(name, args)? {
            return Ok(tx);
        }
        if let ("VALUES" | "VALUE", [Expr::Identifier(column)], Some(row)) = (name, args, &self.inserted) {
            let found = row.iter().find(|(n, _)| n.eq_ignore_ascii_case(&column.value));
            return found
                .map(|(_, tx)| tx.clone())
                .ok_or_else(|| SqlError::no_column(&column.value, "field list"));
        }
        if name == "BINARY"
            && let [x] = args
        {
            return self.binary_prefix(x);
        }
        let txs: Vec<Tx> = args.iter().map(|a| self.expr(a)).collect::<SqlResult<_>>()?;
        if let Some(tx) = control(name, &txs)? {
            return Ok(tx);
        }
        if let Some(tx) = numeric(name, &txs)? {
            return Ok(tx);
        }
        if let Some(tx) = textual(name, &txs)? {
            return Ok(tx);
        }
        Err(SqlError::no_function(self.facts.database().unwrap_or(""), name))
    }

    /// What the session knows, as constants.
    fn fact(&mut self, name: &str, args: &[&Expr]) -> SqlResult<Option<Tx>> {
        let wide = |v: u64| {
            let value = Value::from_i128(i128::from(v)).unwrap_or(Value::Null);
            Tx {
                konst: None,
                ..Tx::literal(value, Ty::UBIGINT)
            }
        };
        Ok(Some(match (name, args) {
            ("VERSION", []) => Tx::text(self.facts.version()),
            ("DATABASE" | "SCHEMA", []) => match self.facts.database() {
                Some(db) => Tx::text(db),
                None => Tx::literal(Value::Null, Ty::text(64)),
            },
            ("CONNECTION_ID", []) => wide(self.facts.connection_id()),
            ("USER" | "SESSION_USER" | "SYSTEM_USER", []) => Tx::text(self.facts.account()),
            ("CURRENT_USER", []) => {
                let user = self.facts.account().split('@').next().unwrap_or("");
                Tx::text(&format!("{user}@%"))
            }
            ("LAST_INSERT_ID", []) => wide(self.facts.last_insert_id()),
            ("LAST_INSERT_ID", [x]) => {
                let x = cast::integer(&self.expr(x)?, true);
                Tx::new(format!("my_last_id({})", x.sql), Ty::UBIGINT, true)
            }
            ("FOUND_ROWS", []) => wide(self.facts.found_rows()),
            ("ROW_COUNT", []) => Tx {
                konst: None,
                ..Tx::int(self.facts.row_count())
            },
            ("SLEEP", [x]) => {
                let x = cast::double(&self.expr(x)?);
                Tx::new(
                    format!("my_sleep({})", x.sql),
                    Ty::Int {
                        size: IntSize::Int,
                        unsigned: false,
                        width: 1,
                    },
                    false,
                )
            }
            ("RAND", []) => Tx::new("my_rand()", Ty::Double, false),
            ("UUID", []) => Tx::new("my_uuid()", Ty::text(36), false),
            ("PI", []) => Tx::new("3.141592653589793", Ty::Double, false),
            _ => return Ok(None),
        }))
    }
}
