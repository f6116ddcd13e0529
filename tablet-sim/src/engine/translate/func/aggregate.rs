//! Aggregates.

use super::Call;
use crate::engine::translate::{Translator, Tx, cast};
use crate::engine::types::{Class, TextKind, Ty};
use crate::engine::value::text_literal;
use crate::error::{SqlError, SqlResult};

impl Translator<'_> {
    pub(super) fn aggregate_call(&mut self, name: &str, call: &Call<'_>) -> SqlResult<Option<Tx>> {
        let known = matches!(
            name,
            "COUNT"
                | "SUM"
                | "AVG"
                | "MIN"
                | "MAX"
                | "GROUP_CONCAT"
                | "STD"
                | "STDDEV"
                | "STDDEV_POP"
                | "STDDEV_SAMP"
                | "VARIANCE"
                | "VAR_POP"
                | "VAR_SAMP"
                | "BIT_AND"
                | "BIT_OR"
                | "BIT_XOR"
        );
        if !known {
            return Ok(None);
        }
        if !self.aggregates_allowed {
            return Err(SqlError::new(1111, *b"HY000", "Invalid use of group function"));
        }
        self.aggregate = true;
        // Inside an aggregate a name is a column, even where HAVING would take it for a select item.
        let alias_first = self
            .scopes
            .last_mut()
            .is_some_and(|s| std::mem::take(&mut s.alias_first));
        let clause = self.clause;
        let out = self.in_clause(clause, false, |t| t.aggregate_inner(name, call));
        if let Some(scope) = self.scopes.last_mut() {
            scope.alias_first = alias_first;
        }
        out.map(Some)
    }

    pub(super) fn aggregate_inner(&mut self, name: &str, call: &Call<'_>) -> SqlResult<Tx> {
        if name == "COUNT" {
            return self.count(call);
        }
        if name == "GROUP_CONCAT" {
            return self.group_concat(call);
        }
        let [arg] = call.args.as_slice() else {
            return Err(SqlError::argument_count(name));
        };
        let x = self.expr(arg)?;
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let exact = matches!(
            x.ty.class(),
            Class::Int | Class::Decimal | Class::Null | Class::Date | Class::DateTime | Class::Time
        );
        let (whole, scale) = x.ty.digits();
        Ok(match name {
            "SUM" if exact => Tx::new(
                format!("my_sum({distinct}{})", cast::decimal(&x).collated()),
                Ty::decimal(whole + scale + 22, scale),
                true,
            ),
            "SUM" => Tx::new(
                format!("sum({distinct}{})", cast::double(&x).sql),
                Ty::Double,
                true,
            ),
            "AVG" if exact => {
                let scale = (scale + 4).min(30);
                let d = cast::decimal(&x);
                let sql = if call.distinct {
                    // DISTINCT allows one argument, so the average is made of a sum and a count.
                    format!(
                        "my_ddiv(my_sum(DISTINCT {0}),my_i2t(count(DISTINCT {0})),{scale})",
                        d.collated()
                    )
                } else {
                    format!("my_avg({},{scale})", d.sql)
                };
                Tx::new(sql, Ty::decimal(whole + scale, scale), true)
            }
            "AVG" => Tx::new(
                format!("avg({distinct}{})", cast::double(&x).sql),
                Ty::Double,
                true,
            ),
            "MIN" | "MAX" => {
                if matches!(x.ty, Ty::Enum(..)) {
                    // As the server does, by the text.
                    let t = Tx {
                        ty: Ty::text(x.ty.chars()),
                        ..x
                    };
                    return Ok(Tx::new(
                        format!("{}({})", name.to_lowercase(), t.collated()),
                        t.ty.clone(),
                        true,
                    ));
                }
                Tx::new(
                    format!("{}({})", name.to_lowercase(), x.collated()),
                    x.ty.clone(),
                    true,
                )
            }
            "BIT_AND" | "BIT_OR" | "BIT_XOR" => Tx::new(
                format!("my_{}({})", name.to_lowercase(), cast::integer(&x, true).sql),
                Ty::UBIGINT,
                false,
            ),
            _ => {
                let inner = match name {
                    "STDDEV_SAMP" => "my_std_samp",
                    "VAR_SAMP" => "my_var_samp",
                    "VARIANCE" | "VAR_POP" => "my_var_pop",
                    _ => "my_std_pop",
                };
                if call.distinct {
                    return Err(SqlError::syntax("near 'DISTINCT'"));
                }
                Tx::new(format!("{inner}({})", cast::double(&x).sql), Ty::Double, true)
            }
        })
    }

    pub(super) fn count(&mut self, call: &Call<'_>) -> SqlResult<Tx> {
        if call.star {
            return Ok(Tx::new("count(*)", Ty::BIGINT, false));
        }
        let args: Vec<Tx> = call.args.iter().map(|a| self.expr(a)).collect::<SqlResult<_>>()?;
        let sql = match args.as_slice() {
            [x] if call.distinct => format!("count(DISTINCT {})", x.collated()),
            [x] => format!("count({})", x.sql),
            many if call.distinct && !many.is_empty() => {
                let keys: Vec<String> = many
                    .iter()
                    .map(|x| match x.ty.class() {
                        Class::Text => {
                            let ci = u8::from(x.ty.collation() == crate::engine::collate::Collation::Ci);
                            format!("my_key({},{ci})", x.sql)
                        }
                        Class::Decimal => format!("my_key({},2)", x.sql),
                        _ => cast::text(x).sql,
                    })
                    .collect();
                format!("count(DISTINCT my_tuple({}))", keys.join(","))
            }
            _ => return Err(SqlError::syntax("near 'COUNT('")),
        };
        Ok(Tx::new(sql, Ty::BIGINT, false))
    }

    pub(super) fn group_concat(&mut self, call: &Call<'_>) -> SqlResult<Tx> {
        let args: Vec<Tx> = call
            .args
            .iter()
            .map(|a| self.expr(a).map(|x| cast::text(&x)))
            .collect::<SqlResult<_>>()?;
        if args.is_empty() {
            return Err(SqlError::syntax("near 'GROUP_CONCAT('"));
        }
        let separator = call.separator.clone().unwrap_or_else(|| ",".to_owned());
        let head = text_literal(&format!("{}:{separator}", separator.len()));
        let value = args
            .iter()
            .map(|a| a.sql.as_str())
            .collect::<Vec<_>>()
            .join(" || ");
        let order = self.order_by(call.order, &[])?;
        let collation = args[0].ty.sqlite_collation().unwrap_or("my_ci");
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        if call.distinct && !order.is_empty() {
            return Err(SqlError::unsupported("GROUP_CONCAT with DISTINCT and ORDER BY"));
        }
        let ty = Ty::Text {
            kind: TextKind::Text(4),
            len: 1 << 20,
            collation: args[0].ty.collation(),
        };
        Ok(Tx::new(
            format!("my_gconcat({distinct}({head} || {value}) COLLATE {collation}{order})"),
            ty,
            true,
        ))
    }
}
