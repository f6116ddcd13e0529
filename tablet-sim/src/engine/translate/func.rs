//! Functions by name: aggregates, texts, numbers, the session's facts.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, OrderByExpr,
};

use super::super::types::{Class, IntSize, TextKind, Ty};
use super::super::value::{Value, text_literal};
use super::expr::choose;
use super::operators::{modulo, whole_divide};
use super::{Translator, Tx, cast, compare};
use crate::error::{SqlError, SqlResult};

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

    fn aggregate_call(&mut self, name: &str, call: &Call<'_>) -> SqlResult<Option<Tx>> {
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
        let alias_first = self.scopes.last_mut().is_some_and(|s| std::mem::take(&mut s.alias_first));
        let clause = self.clause;
        let out = self.in_clause(clause, false, |t| t.aggregate_inner(name, call));
        if let Some(scope) = self.scopes.last_mut() {
            scope.alias_first = alias_first;
        }
        out.map(Some)
    }

    fn aggregate_inner(&mut self, name: &str, call: &Call<'_>) -> SqlResult<Tx> {
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

    fn count(&mut self, call: &Call<'_>) -> SqlResult<Tx> {
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
                            let ci = u8::from(x.ty.collation() == super::super::collate::Collation::Ci);
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

    fn group_concat(&mut self, call: &Call<'_>) -> SqlResult<Tx> {
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

/// IF, IFNULL and the like.
fn control(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
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

fn coalesce(a: &[Tx]) -> SqlResult<Tx> {
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

fn extreme(a: &[Tx], function: &str) -> SqlResult<Tx> {
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

fn numeric(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
    let math = |f: &str, x: &Tx| {
        Tx::new(
            format!("my_math('{f}',{})", cast::double(x).sql),
            Ty::Double,
            true,
        )
    };
    Ok(Some(match (name, a) {
        ("ABS", [x]) => match x.ty.class() {
            Class::Int => Tx::new(
                format!("my_iabs({},{})", x.sql, u8::from(x.ty.is_unsigned())),
                x.ty.clone(),
                x.nullable,
            ),
            Class::Decimal => Tx::new(format!("my_dabs({})", x.sql), x.ty.clone(), x.nullable),
            _ => Tx::new(format!("abs({})", cast::double(x).sql), Ty::Double, x.nullable),
        },
        ("SIGN", [x]) => {
            let p = compare::pair(x, &Tx::int(0))?;
            Tx::new(
                format!("(({}) - ({}))", p.sql(">"), p.sql("<")),
                Ty::BIGINT,
                x.nullable,
            )
        }
        ("FLOOR", [x]) => whole(x, "floor"),
        ("CEIL" | "CEILING", [x]) => whole(x, "ceil"),
        ("ROUND", [x]) => round(x, &Tx::int(0), "my_dround", "my_fround"),
        ("ROUND", [x, n]) => round(x, n, "my_dround", "my_fround"),
        ("TRUNCATE", [x, n]) if matches!(x.ty.class(), Class::Int | Class::Decimal | Class::Null) => {
            round(x, n, "my_dtrunc", "")
        }
        ("MOD", [x, y]) => modulo(x, y)?,
        ("DIV", [x, y]) => whole_divide(x, y)?,
        ("POW" | "POWER", [x, y]) => Tx::new(
            format!("my_pow({},{})", cast::double(x).sql, cast::double(y).sql),
            Ty::Double,
            true,
        ),
        ("SQRT", [x]) => math("sqrt", x),
        ("EXP", [x]) => math("exp", x),
        ("LN" | "LOG", [x]) => math("ln", x),
        ("LOG2", [x]) => math("log2", x),
        ("LOG10", [x]) => math("log10", x),
        ("SIN", [x]) => math("sin", x),
        ("COS", [x]) => math("cos", x),
        ("TAN", [x]) => math("tan", x),
        ("ASIN", [x]) => math("asin", x),
        ("ACOS", [x]) => math("acos", x),
        ("ATAN", [x]) => math("atan", x),
        ("RADIANS", [x]) => math("radians", x),
        ("DEGREES", [x]) => math("degrees", x),
        _ => return Ok(None),
    }))
}

fn whole(x: &Tx, name: &str) -> Tx {
    match x.ty.class() {
        Class::Int => Tx {
            column: None,
            ..x.clone()
        },
        Class::Decimal => {
            let (digits, _) = x.ty.digits();
            let d = format!("my_d{name}({})", x.sql);
            if digits < 18 {
                Tx::new(format!("my_dec2i({d},0)"), Ty::BIGINT, x.nullable)
            } else {
                Tx::new(d, Ty::decimal(digits + 1, 0), x.nullable)
            }
        }
        _ => Tx::new(
            format!("my_math('{name}',{})", cast::double(x).sql),
            Ty::Double,
            x.nullable,
        ),
    }
}

fn round(x: &Tx, n: &Tx, exact: &str, double: &str) -> Tx {
    let nullable = x.nullable || n.nullable;
    let places = n.konst.as_ref().and_then(Value::as_i128);
    let digits = cast::integer(n, false).sql;
    match x.ty.class() {
        Class::Int if places.is_some_and(|p| p >= 0) => Tx {
            column: None,
            ..x.clone()
        },
        Class::Int => Tx::new(
            format!(
                "my_dec2i({exact}({},{digits}),{})",
                cast::decimal(x).sql,
                u8::from(x.ty.is_unsigned())
            ),
            x.ty.clone(),
            nullable,
        ),
        Class::Decimal => {
            let (whole, scale) = x.ty.digits();
            match places {
                Some(p) => {
                    let kept = u32::try_from(p.max(0)).unwrap_or(0).min(scale);
                    let sql = if p > i128::from(kept) {
                        x.sql.clone()
                    } else {
                        format!("{exact}({},{digits})", x.sql)
                    };
                    Tx::new(sql, Ty::decimal(whole + 1 + kept, kept), nullable)
                }
                // The scale cannot be known before the rows are: as many digits as the argument has.
                None => Tx::new(
                    format!("my_dround({exact}({},{digits}),{scale})", x.sql),
                    Ty::decimal(whole + 1 + scale, scale),
                    nullable,
                ),
            }
        }
        _ => Tx::new(
            format!("{double}({},{digits})", cast::double(x).sql),
            Ty::Double,
            nullable,
        ),
    }
}

fn textual(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
    let nullable = any_null(a);
    let texts: Vec<Tx> = a.iter().map(cast::text).collect();
    let len = |i: usize| texts.get(i).map_or(0, |t| t.ty.chars());
    let int = |i: usize| cast::integer(&a[i], false).sql;
    let ci = |i: usize| {
        u8::from(
            a[i].ty.class() != Class::Bytes && a[i].ty.collation() == super::super::collate::Collation::Ci,
        )
    };
    let same = |sql: String, len: u32| {
        let ty = match &texts[0].ty {
            Ty::Text { kind, collation, .. } => Ty::Text {
                kind: *kind,
                len,
                collation: *collation,
            },
            other => other.clone(),
        };
        Tx::new(sql, ty, nullable)
    };
    let refuse_bytes = || {
        if a.first().is_some_and(|x| x.ty.class() == Class::Bytes) {
            return Err(SqlError::unsupported(format!("{name}() of bytes")));
        }
        Ok(())
    };
    Ok(Some(match (name, a) {
        ("CONCAT", [_, ..]) => {
            let total = texts.iter().fold(0u32, |n, t| n.saturating_add(t.ty.chars()));
            if texts.iter().any(|t| t.ty.class() == Class::Bytes) {
                let joined = texts
                    .iter()
                    .map(|t| cast::bytes(t).sql)
                    .collect::<Vec<_>>()
                    .join(" || ");
                return Ok(Some(Tx::new(
                    format!("CAST({joined} AS BLOB)"),
                    Ty::bytes(total),
                    nullable,
                )));
            }
            let joined = texts
                .iter()
                .map(|t| t.sql.as_str())
                .collect::<Vec<_>>()
                .join(" || ");
            same(format!("({joined})"), total)
        }
        ("CONCAT_WS", [_, _, ..]) => {
            let total = texts.iter().fold(0u32, |n, t| n.saturating_add(t.ty.chars()));
            let seps = len(0).saturating_mul(texts.len() as u32);
            Tx {
                nullable: a[0].nullable,
                ..Tx::new(
                    format!("my_concat_ws({})", sqls(&texts)),
                    Ty::text(total.saturating_add(seps)),
                    true,
                )
            }
        }
        ("LOWER" | "LCASE", [_]) if refuse_bytes().is_ok() => {
            same(format!("my_lower({})", texts[0].sql), len(0))
        }
        ("UPPER" | "UCASE", [_]) if refuse_bytes().is_ok() => {
            same(format!("my_upper({})", texts[0].sql), len(0))
        }
        ("LENGTH" | "OCTET_LENGTH", [_]) => {
            Tx::new(format!("my_length({})", texts[0].sql), Ty::BIGINT, nullable)
        }
        ("CHAR_LENGTH" | "CHARACTER_LENGTH", [x]) => {
            let f = if x.ty.class() == Class::Bytes {
                "my_length"
            } else {
                "my_chars"
            };
            Tx::new(format!("{f}({})", texts[0].sql), Ty::BIGINT, nullable)
        }
        ("BIT_LENGTH", [_]) => Tx::new(format!("(8 * my_length({}))", texts[0].sql), Ty::BIGINT, nullable),
        (
            "LEFT" | "RIGHT" | "SUBSTRING" | "SUBSTR" | "MID" | "LPAD" | "RPAD" | "REVERSE" | "REPLACE"
            | "REPEAT" | "SUBSTRING_INDEX" | "TRIM" | "LTRIM" | "RTRIM" | "INSERT",
            [_, ..],
        ) => {
            refuse_bytes()?;
            return text_part(name, a, &texts, nullable).map(Some);
        }
        ("SPACE", [_]) => Tx::new(format!("my_repeat(' ',{})", int(0)), Ty::text(1 << 16), true),
        ("INSTR", [_, _]) => Tx::new(
            format!("my_instr({},{},{},1)", texts[0].sql, texts[1].sql, ci(0)),
            Ty::BIGINT,
            nullable,
        ),
        ("LOCATE" | "POSITION", [_, _]) => Tx::new(
            format!("my_instr({},{},{},1)", texts[1].sql, texts[0].sql, ci(1)),
            Ty::BIGINT,
            nullable,
        ),
        ("LOCATE", [_, _, _]) => Tx::new(
            format!("my_instr({},{},{},{})", texts[1].sql, texts[0].sql, ci(1), int(2)),
            Ty::BIGINT,
            nullable,
        ),
        ("FIND_IN_SET", [_, _]) => Tx::new(
            format!("my_find_in_set({},{},{})", texts[0].sql, texts[1].sql, ci(0)),
            Ty::BIGINT,
            nullable,
        ),
        ("HEX", [x]) => {
            let arg = if x.ty.class() == Class::Int {
                cast::integer(x, true).sql
            } else {
                texts[0].sql.clone()
            };
            Tx::new(
                format!("my_hex({arg})"),
                Ty::text(len(0).saturating_mul(8)),
                nullable,
            )
        }
        ("UNHEX", [_]) => Tx::new(format!("my_unhex({})", texts[0].sql), Ty::bytes(len(0)), true),
        ("ASCII", [_]) => Tx::new(format!("my_ascii({})", texts[0].sql), Ty::BIGINT, nullable),
        ("FORMAT", [x, n]) => {
            let rounded = if matches!(x.ty.class(), Class::Int | Class::Decimal) {
                cast::decimal(x).sql
            } else {
                format!("my_d2dec({})", cast::double(x).sql)
            };
            let places = n
                .konst
                .as_ref()
                .and_then(Value::as_i128)
                .unwrap_or(0)
                .clamp(0, 30);
            Tx::new(
                format!("my_group(my_dround({rounded},{places}))"),
                Ty::text(64),
                nullable,
            )
        }
        ("CHARSET", [x]) => Tx::text(if x.ty.is_binary_on_wire() {
            "binary"
        } else {
            "utf8mb4"
        }),
        ("COLLATION", [x]) => Tx::text(if x.ty.is_binary_on_wire() {
            "binary"
        } else {
            x.ty.collation().name()
        }),
        _ => return Ok(None),
    }))
}

/// Functions that give a part or a variation of their first text.
fn text_part(name: &str, a: &[Tx], texts: &[Tx], nullable: bool) -> SqlResult<Tx> {
    let whole = texts[0].ty.chars();
    let int = |i: usize| cast::integer(&a[i], false).sql;
    let konst = |i: usize| {
        a.get(i)
            .and_then(|x| x.konst.as_ref())
            .and_then(Value::as_i128)
            .map(|v| u32::try_from(v.max(0)).unwrap_or(u32::MAX))
    };
    let collation = texts[0].ty.collation();
    let make = |sql: String, len: u32, nullable: bool| {
        let kind = match &texts[0].ty {
            Ty::Text { kind, .. } => *kind,
            _ => TextKind::Varchar,
        };
        Ok(Tx::new(sql, Ty::Text { kind, len, collation }, nullable))
    };
    let t = |i: usize| texts[i].sql.as_str();
    match (name, a.len()) {
        ("LEFT", 2) => make(
            format!("my_left({},{})", t(0), int(1)),
            konst(1).unwrap_or(whole).min(whole),
            nullable,
        ),
        ("RIGHT", 2) => make(
            format!("my_right({},{})", t(0), int(1)),
            konst(1).unwrap_or(whole).min(whole),
            nullable,
        ),
        ("SUBSTRING" | "SUBSTR" | "MID", 2) => make(
            format!("my_substr({},{},9223372036854775807)", t(0), int(1)),
            whole,
            nullable,
        ),
        ("SUBSTRING" | "SUBSTR" | "MID", 3) => {
            let len = konst(2).unwrap_or(whole).min(whole);
            make(
                format!("my_substr({},{},{})", t(0), int(1), int(2)),
                len,
                nullable,
            )
        }
        ("LPAD" | "RPAD", 2) => make(
            format!("my_{}({},{},' ')", name.to_lowercase(), t(0), int(1)),
            konst(1).unwrap_or(1 << 16),
            true,
        ),
        ("LPAD" | "RPAD", 3) => make(
            format!("my_{}({},{},{})", name.to_lowercase(), t(0), int(1), t(2)),
            konst(1).unwrap_or(1 << 16),
            true,
        ),
        ("REVERSE", 1) => make(format!("my_reverse({})", t(0)), whole, nullable),
        ("REPLACE", 3) => make(
            format!("my_replace({},{},{})", t(0), t(1), t(2)),
            whole.saturating_mul(texts[2].ty.chars().max(1)),
            nullable,
        ),
        ("REPEAT", 2) => make(
            format!("my_repeat({},{})", t(0), int(1)),
            whole.saturating_mul(konst(1).unwrap_or(1 << 10)),
            true,
        ),
        ("SUBSTRING_INDEX", 3) => make(
            format!("my_subindex({},{},{})", t(0), t(1), int(2)),
            whole,
            nullable,
        ),
        ("TRIM", 1) => make(format!("my_trim({},' ',0)", t(0)), whole, nullable),
        ("LTRIM", 1) => make(format!("my_trim({},' ',1)", t(0)), whole, nullable),
        ("RTRIM", 1) => make(format!("my_trim({},' ',2)", t(0)), whole, nullable),
        ("INSERT", _) => Err(SqlError::unsupported("INSERT()")),
        _ => Err(SqlError::argument_count(name)),
    }
}
