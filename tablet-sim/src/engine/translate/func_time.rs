//! Date and time functions. The session's zone is UTC, and a statement has one time.

use sqlparser::ast::{Expr, Interval};

use super::super::temporal::DateTime;
use super::super::types::{Class, Ty};
use super::super::value::Value;
use super::expr::unnested;
use super::{Translator, Tx, cast};
use crate::error::{SqlError, SqlResult};

const DATETIME6: Ty = Ty::DateTime {
    fsp: 6,
    timestamp: false,
};

fn datetime(fsp: u8) -> Ty {
    Ty::DateTime {
        fsp,
        timestamp: false,
    }
}

/// A unit's name, singular and in capitals.
fn unit_name(text: &str) -> String {
    let upper = text.trim().to_ascii_uppercase();
    upper
        .strip_suffix('S')
        .map_or_else(|| upper.clone(), str::to_owned)
}

/// A unit given as an argument, which parses as a column's name.
fn unit_argument(e: &Expr) -> SqlResult<String> {
    match unnested(e) {
        Expr::Identifier(name) => Ok(unit_name(&name.value)),
        other => Err(SqlError::syntax(format!("near '{other}'"))),
    }
}

/// Digits of a second that a value has, or may have.
fn fraction_digits(x: &Tx) -> u8 {
    match (&x.ty, &x.konst) {
        (Ty::DateTime { fsp, .. } | Ty::Time { fsp }, _) => *fsp,
        (Ty::Text { .. }, Some(Value::Text(t))) => {
            t.rsplit_once('.').map_or(0, |(_, f)| f.trim_end().len().min(6)) as u8
        }
        (Ty::Text { .. } | Ty::Double | Ty::Float, _) => 6,
        (Ty::Decimal { scale, .. }, _) => (*scale).min(6),
        _ => 0,
    }
}

impl Translator<'_> {
    /// A value as text that date functions read.
    fn moment(tx: &Tx) -> SqlResult<Tx> {
        Ok(match tx.ty.class() {
            Class::Date | Class::DateTime | Class::Text | Class::Null => tx.clone(),
            Class::Time => return Err(SqlError::unsupported("a TIME as a date")),
            _ => cast::temporal(tx, &DATETIME6)?,
        })
    }

    pub(super) fn time_function(&mut self, name: &str, args: &[&Expr]) -> SqlResult<Option<Tx>> {
        if let Some(tx) = self.now_function(name, args)? {
            return Ok(Some(tx));
        }
        Ok(Some(match (name, args) {
            ("DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE", [x, y]) => {
                let minus = name.contains("SUB");
                match unnested(y) {
                    Expr::Interval(interval) => self.interval(x, interval, minus)?,
                    _ if name.ends_with("DATE") => {
                        let amount = self.expr(y)?;
                        self.shift(x, &amount, "DAY", minus)?
                    }
                    other => return Err(SqlError::syntax(format!("near '{other}'"))),
                }
            }
            ("TIMESTAMPADD", [unit, n, x]) => {
                let unit = unit_argument(unit)?;
                let amount = self.expr(n)?;
                self.shift(x, &amount, &unit, false)?
            }
            ("TIMESTAMPDIFF", [unit, from, to]) => {
                let unit = unit_argument(unit)?;
                let (from, to) = (self.expr(from)?, self.expr(to)?);
                let sql = format!(
                    "my_tsdiff('{unit}',{},{})",
                    Self::moment(&from)?.sql,
                    Self::moment(&to)?.sql
                );
                Tx::new(sql, Ty::BIGINT, true)
            }
            ("DATEDIFF", [x, y]) => {
                let (x, y) = (self.expr(x)?, self.expr(y)?);
                Tx::new(
                    format!("my_datediff({},{})", Self::moment(&x)?.sql, Self::moment(&y)?.sql),
                    Ty::BIGINT,
                    true,
                )
            }
            ("DATE_FORMAT", [x, pattern]) => {
                let (x, pattern) = (self.expr(x)?, cast::text(&self.expr(pattern)?));
                let sql = format!("my_datefmt({},{})", Self::moment(&x)?.sql, pattern.sql);
                Tx::new(sql, Ty::text(pattern.ty.chars().saturating_mul(10)), true)
            }
            ("DATE", [x]) => {
                let x = self.expr(x)?;
                Tx {
                    konst: None,
                    column: None,
                    nullable: true,
                    ..cast::temporal(&x, &Ty::Date)?
                }
            }
            ("TIME", [x]) => {
                let x = self.expr(x)?;
                let fsp = fraction_digits(&x);
                Tx {
                    konst: None,
                    column: None,
                    nullable: true,
                    ..cast::temporal(&x, &Ty::Time { fsp })?
                }
            }
            ("TIMESTAMP", [x]) => {
                let x = self.expr(x)?;
                let fsp = fraction_digits(&x);
                Tx {
                    konst: None,
                    column: None,
                    nullable: true,
                    ..cast::temporal(&x, &datetime(fsp))?
                }
            }
            ("UNIX_TIMESTAMP", [x]) => {
                let x = self.expr(x)?;
                let fsp = fraction_digits(&x);
                let exact = format!("my_unix({})", Self::moment(&x)?.sql);
                if fsp == 0 {
                    Tx::new(format!("my_dec2i({exact},0)"), Ty::BIGINT, true)
                } else {
                    Tx::new(
                        format!("my_dround({exact},{fsp})"),
                        Ty::decimal(12 + u32::from(fsp), u32::from(fsp)),
                        true,
                    )
                }
            }
            ("FROM_UNIXTIME", [x]) => {
                let x = self.expr(x)?;
                let fsp = match x.ty.class() {
                    Class::Int => 0,
                    Class::Decimal => x.ty.digits().1.min(6) as u8,
                    _ => 6,
                };
                Tx::new(
                    format!("my_from_unix({},{fsp})", cast::decimal(&x).sql),
                    datetime(fsp),
                    true,
                )
            }
            ("FROM_UNIXTIME", [x, pattern]) => {
                let (x, pattern) = (self.expr(x)?, cast::text(&self.expr(pattern)?));
                let sql = format!(
                    "my_datefmt(my_from_unix({},6),{})",
                    cast::decimal(&x).sql,
                    pattern.sql
                );
                Tx::new(sql, Ty::text(pattern.ty.chars().saturating_mul(10)), true)
            }
            ("FROM_DAYS", [x]) => {
                let x = cast::integer(&self.expr(x)?, false);
                Tx::new(format!("my_from_days({})", x.sql), Ty::Date, true)
            }
            ("SEC_TO_TIME", [x]) => {
                let x = self.expr(x)?;
                let fsp = x.ty.digits().1.min(6) as u8;
                Tx::new(
                    format!("my_sec_to_time({})", cast::decimal(&x).sql),
                    Ty::Time { fsp },
                    true,
                )
            }
            ("TIME_TO_SEC", [x]) => {
                let x = cast::temporal(&self.expr(x)?, &Ty::Time { fsp: 0 })?;
                Tx::new(format!("({} / 1000000)", x.sql), Ty::BIGINT, true)
            }
            ("WEEK" | "YEARWEEK", [x, rest @ ..]) if rest.len() < 2 => {
                let x = self.expr(x)?;
                let mode = match rest.first() {
                    Some(m) => cast::integer(&self.expr(m)?, false).sql,
                    None => "0".to_owned(),
                };
                let f = if name == "WEEK" { "my_week" } else { "my_yearweek" };
                Tx::new(format!("{f}({},{mode})", Self::moment(&x)?.sql), Ty::BIGINT, true)
            }
            ("WEEKOFYEAR", [x]) => {
                let x = self.expr(x)?;
                Tx::new(format!("my_week({},3)", Self::moment(&x)?.sql), Ty::BIGINT, true)
            }
            ("LAST_DAY", [x]) => {
                let x = self.expr(x)?;
                Tx::new(
                    format!("my_part('LAST_DAY',{})", Self::moment(&x)?.sql),
                    Ty::Date,
                    true,
                )
            }
            ("DAYNAME" | "MONTHNAME", [x]) => {
                let x = self.expr(x)?;
                Tx::new(
                    format!("my_part('{name}',{})", Self::moment(&x)?.sql),
                    Ty::text(9),
                    true,
                )
            }
            (
                "YEAR" | "QUARTER" | "MONTH" | "DAY" | "DAYOFMONTH" | "HOUR" | "MINUTE" | "SECOND"
                | "MICROSECOND" | "DAYOFWEEK" | "WEEKDAY" | "DAYOFYEAR" | "TO_DAYS",
                [x],
            ) => self.extract(if name == "DAYOFMONTH" { "DAY" } else { name }, x)?,
            (
                "STR_TO_DATE" | "CONVERT_TZ" | "MAKEDATE" | "MAKETIME" | "ADDTIME" | "SUBTIME" | "TIMEDIFF"
                | "TIME_FORMAT",
                _,
            ) => return Err(SqlError::unsupported(format!("{name}()"))),
            _ => return Ok(None),
        }))
    }

    /// `NOW()` and its relatives: literals of the statement's time.
    fn now_function(&mut self, name: &str, args: &[&Expr]) -> SqlResult<Option<Tx>> {
        let now = self.facts.now();
        let fsp = |e: Option<&&Expr>| match e {
            None => Ok(0),
            Some(e) => super::order::ordinal(e)
                .and_then(|n| u8::try_from(n).ok())
                .filter(|n| *n <= 6)
                .ok_or_else(|| SqlError::syntax(format!("near '{e}'"))),
        };
        // The statement's time is cut, not rounded.
        let cut = |fsp: u8| {
            let unit = 10u32.pow(6 - u32::from(fsp));
            DateTime {
                micro: now.micro / unit * unit,
                ..now
            }
        };
        if args.len() > 1 {
            return Ok(None);
        }
        Ok(Some(match name {
            "NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "SYSDATE" | "UTC_TIMESTAMP" => {
                let fsp = fsp(args.first())?;
                Tx::literal(Value::text(cut(fsp).text(fsp)), datetime(fsp))
            }
            "CURDATE" | "CURRENT_DATE" | "UTC_DATE" if args.is_empty() => {
                Tx::literal(Value::text(now.date_text()), Ty::Date)
            }
            "CURTIME" | "CURRENT_TIME" | "UTC_TIME" => {
                let fsp = fsp(args.first())?;
                Tx::literal(Value::Int(cut(fsp).time_micros()), Ty::Time { fsp })
            }
            "UNIX_TIMESTAMP" if args.is_empty() => Tx::int(now.micros().div_euclid(1_000_000)),
            _ => return Ok(None),
        }))
    }

    /// `EXTRACT(unit FROM x)` and the functions named like units.
    pub(super) fn extract(&mut self, field: &str, x: &Expr) -> SqlResult<Tx> {
        let unit = if field == "TO_DAYS" {
            field.to_owned()
        } else {
            unit_name(field)
        };
        let x = self.expr(x)?;
        if unit == "WEEK" {
            return Ok(Tx::new(
                format!("my_week({},0)", Self::moment(&x)?.sql),
                Ty::BIGINT,
                true,
            ));
        }
        let clock = matches!(unit.as_str(), "HOUR" | "MINUTE" | "SECOND" | "MICROSECOND");
        if x.ty.class() == Class::Time {
            if !clock {
                return Err(SqlError::unsupported(format!("EXTRACT({unit}) of a TIME")));
            }
            return Ok(Tx::new(
                format!("my_tmpart('{unit}',{})", x.sql),
                Ty::BIGINT,
                x.nullable,
            ));
        }
        let known = clock
            || matches!(
                unit.as_str(),
                "YEAR" | "QUARTER" | "MONTH" | "DAY" | "DAYOFWEEK" | "WEEKDAY" | "DAYOFYEAR" | "TO_DAYS"
            );
        if !known {
            return Err(SqlError::unsupported(format!("EXTRACT({unit})")));
        }
        if clock && x.ty.class() == Class::Text {
            // A text may be a time of day alone.
            let time = cast::temporal(&x, &Ty::Time { fsp: 6 })?;
            return Ok(Tx::new(
                format!("my_tmpart('{unit}',{})", time.sql),
                Ty::BIGINT,
                true,
            ));
        }
        Ok(Tx::new(
            format!("my_part('{unit}',{})", Self::moment(&x)?.sql),
            Ty::BIGINT,
            true,
        ))
    }

    /// `x + INTERVAL n unit`.
    pub(super) fn interval(&mut self, x: &Expr, interval: &Interval, minus: bool) -> SqlResult<Tx> {
        let unit = interval.leading_field.as_ref().map(|f| unit_name(&f.to_string()));
        let unit = unit.ok_or_else(|| SqlError::syntax("near 'INTERVAL'"))?;
        if interval.last_field.is_some() {
            return Err(SqlError::unsupported("a compound INTERVAL"));
        }
        let amount = self.expr(&interval.value)?;
        self.shift(x, &amount, &unit, minus)
    }

    fn shift(&mut self, x: &Expr, amount: &Tx, unit: &str, minus: bool) -> SqlResult<Tx> {
        if unit.contains('_') {
            return Err(SqlError::unsupported(format!("INTERVAL {unit}")));
        }
        let x = self.expr(x)?;
        let amount = cast::decimal(amount);
        let n = if minus {
            format!("my_dneg({})", amount.sql)
        } else {
            amount.sql.clone()
        };
        if x.ty.class() == Class::Time {
            return Ok(Tx::new(
                format!("my_tmadd({},{n},'{unit}')", x.sql),
                x.ty.clone(),
                true,
            ));
        }
        let clock = matches!(unit, "HOUR" | "MINUTE" | "SECOND" | "MICROSECOND");
        let fraction = if unit == "MICROSECOND" {
            6
        } else {
            amount.ty.digits().1.min(6) as u8
        };
        let fraction = if clock { fraction } else { 0 };
        let ty = match &x.ty {
            Ty::Date if !clock => Ty::Date,
            Ty::Date => datetime(fraction),
            Ty::DateTime { fsp, .. } => datetime((*fsp).max(fraction)),
            _ => {
                // A text keeps its own look: a date stays a date.
                let date_like = matches!(&x.konst, Some(Value::Text(t)) if t.len() <= 10 && !t.contains(':'));
                if date_like && !clock {
                    Ty::Date
                } else {
                    datetime(fraction)
                }
            }
        };
        let form = match &ty {
            Ty::DateTime { fsp, .. } => i32::from(*fsp),
            _ => -1,
        };
        Ok(Tx::new(
            format!("my_dtadd({},{n},'{unit}',{form})", Self::moment(&x)?.sql),
            ty,
            true,
        ))
    }
}
