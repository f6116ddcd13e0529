//! Date and time functions, over the texts that dates live as.

use rusqlite::Connection;

use super::super::decimal::Decimal;
use super::super::temporal::{self, DateTime, MICROS};
use super::super::value::Value;
use super::{Args, strict};
use crate::error::{SqlError, SqlResult};

fn fsp(a: &Args<'_, '_>, i: usize) -> u8 {
    u8::try_from(a.int(i).clamp(0, 6)).unwrap_or(0)
}

fn date(a: &Args<'_, '_>, i: usize) -> Option<DateTime> {
    DateTime::parse(&a.text(i))
}

#[allow(clippy::unnecessary_wraps)] // the shape all functions have
fn maybe<T>(v: Option<T>, f: impl FnOnce(T) -> Value) -> SqlResult<Value> {
    Ok(v.map_or(Value::Null, f))
}

fn number(v: u32) -> Value {
    Value::Int(i64::from(v))
}

/// Microseconds or months of one unit; the flag says months.
fn unit(name: &str) -> Option<(bool, i64)> {
    Some(match name {
        "MICROSECOND" => (false, 1),
        "SECOND" => (false, MICROS),
        "MINUTE" => (false, 60 * MICROS),
        "HOUR" => (false, 3600 * MICROS),
        "DAY" => (false, 86_400 * MICROS),
        "WEEK" => (false, 7 * 86_400 * MICROS),
        "MONTH" => (true, 1),
        "QUARTER" => (true, 3),
        "YEAR" => (true, 12),
        _ => return None,
    })
}

pub(super) fn register(conn: &Connection) -> rusqlite::Result<()> {
    conversions(conn)?;
    parts(conn)?;
    arithmetic(conn)
}

fn conversions(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_t2date", 1, |a| {
        maybe(date(a, 0), |d| Value::Text(d.date_text()))
    })?;
    strict(conn, "my_t2dt", 2, |a| {
        let digits = fsp(a, 1);
        maybe(date(a, 0).and_then(|d| d.rounded(digits)), |d| {
            Value::Text(d.text(digits))
        })
    })?;
    strict(conn, "my_t2tm", 2, |a| {
        let digits = fsp(a, 1);
        maybe(temporal::parse_time(&a.text(0)), |m| {
            Value::Int(temporal::round_micros(m, digits))
        })
    })?;
    strict(conn, "my_dt2tm", 1, |a| {
        maybe(date(a, 0), |d| Value::Int(d.time_micros()))
    })?;
    strict(conn, "my_tm2t", 2, |a| {
        Ok(Value::Text(temporal::time_text(
            i64::try_from(a.int(0)).unwrap_or(0),
            fsp(a, 1),
        )))
    })?;
    strict(conn, "my_tmround", 2, |a| {
        Ok(Value::Int(temporal::round_micros(
            i64::try_from(a.int(0)).unwrap_or(0),
            fsp(a, 1),
        )))
    })?;
    strict(conn, "my_unix", 1, |a| {
        maybe(date(a, 0), |d| {
            Value::text(
                Decimal::from_i128(i128::from(d.micros()))
                    .div(&million(), 6)
                    .unwrap_or_else(million)
                    .to_string(),
            )
        })
    })?;
    strict(conn, "my_from_unix", 2, |a| {
        let digits = fsp(a, 1);
        let micros = a
            .decimal(0)
            .mul(&million())
            .to_i128()
            .and_then(|m| i64::try_from(m).ok());
        let at = micros
            .filter(|m| *m >= 0)
            .and_then(DateTime::from_micros)
            .and_then(|d| d.rounded(digits));
        maybe(at, |d| Value::Text(d.text(digits)))
    })?;
    strict(conn, "my_datefmt", 2, |a| {
        maybe(date(a, 0), |d| Value::Text(d.format(&a.text(1))))
    })
}

fn million() -> Decimal {
    Decimal::from_i128(i128::from(MICROS))
}

fn parts(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_part", 2, |a| {
        let name = a.text(0);
        maybe(date(a, 1), |d| match name.as_str() {
            "YEAR" => Value::Int(i64::from(d.year)),
            "QUARTER" => number((d.month - 1) / 3 + 1),
            "MONTH" => number(d.month),
            "DAY" => number(d.day),
            "HOUR" => number(d.hour),
            "MINUTE" => number(d.minute),
            "SECOND" => number(d.second),
            "MICROSECOND" => number(d.micro),
            "DAYOFWEEK" => number(d.weekday() + 1),
            "WEEKDAY" => number((d.weekday() + 6) % 7),
            "DAYOFYEAR" => number(d.day_of_year()),
            "TO_DAYS" => Value::Int(d.days() + 719_528),
            "LAST_DAY" => Value::Text(
                DateTime::date_only(d.year, d.month, temporal::days_in_month(d.year, d.month)).date_text(),
            ),
            "DAYNAME" => temporal::day_name(d.weekday()).map_or(Value::Null, Value::text),
            "MONTHNAME" => temporal::month_name(d.month).map_or(Value::Null, Value::text),
            _ => Value::Null,
        })
    })?;
    strict(conn, "my_tmpart", 2, |a| {
        let all = a.int(1).unsigned_abs();
        let seconds = all / u128::from(MICROS.unsigned_abs());
        let part = match a.text(0).as_str() {
            "HOUR" => seconds / 3600,
            "MINUTE" => seconds / 60 % 60,
            "SECOND" => seconds % 60,
            _ => all % u128::from(MICROS.unsigned_abs()),
        };
        Ok(Value::Int(i64::try_from(part).unwrap_or(0)))
    })?;
    strict(conn, "my_week", 2, |a| {
        let mode = u32::try_from(a.int(1)).unwrap_or(0) & 7;
        maybe(date(a, 0), |d| number(d.week(mode).0))
    })?;
    strict(conn, "my_yearweek", 2, |a| {
        let mode = u32::try_from(a.int(1)).unwrap_or(0) & 7;
        maybe(date(a, 0), |d| {
            let (week, year) = d.week(mode | 2);
            Value::Int(i64::from(year) * 100 + i64::from(week))
        })
    })
}

fn arithmetic(conn: &Connection) -> rusqlite::Result<()> {
    // my_dtadd(when, amount, unit, form): form is the digits of a second, or -1 for a date.
    strict(conn, "my_dtadd", 4, |a| {
        let Some(start) = date(a, 0) else {
            return Ok(Value::Null);
        };
        let name = a.text(2);
        let Some((months, size)) = unit(&name) else {
            return Err(SqlError::unsupported(format!("INTERVAL {name}")));
        };
        let moved = if months {
            a.decimal(1)
                .to_i128()
                .and_then(|n| i64::try_from(n).ok())
                .and_then(|n| start.add_months(n.checked_mul(size)?))
        } else {
            // Only seconds take a fraction; other units are rounded first.
            let amount = if name == "SECOND" {
                a.decimal(1)
            } else {
                a.decimal(1).rounded(0)
            };
            let micros = amount.mul(&Decimal::from_i128(i128::from(size))).to_i128();
            micros
                .and_then(|m| i64::try_from(m).ok())
                .and_then(|m| start.add_micros(m))
        };
        let form = a.int(3);
        maybe(moved, |d| {
            Value::Text(if form < 0 {
                d.date_text()
            } else {
                d.text(fsp(a, 3))
            })
        })
    })?;
    strict(conn, "my_tmadd", 3, |a| {
        let name = a.text(2);
        let Some((false, size)) = unit(&name) else {
            return Err(SqlError::unsupported(format!("INTERVAL {name} on TIME")));
        };
        let micros = a
            .decimal(1)
            .mul(&Decimal::from_i128(i128::from(size)))
            .to_i128()
            .unwrap_or(0)
            + a.int(0);
        let top = i128::from(temporal::MAX_TIME);
        Ok(Value::from_i128(micros.clamp(-top, top)).unwrap_or(Value::Null))
    })?;
    strict(conn, "my_datediff", 2, |a| {
        maybe(date(a, 0).zip(date(a, 1)), |(x, y)| {
            Value::Int(x.days() - y.days())
        })
    })?;
    // TIMESTAMPDIFF(unit, from, to): whole units, cut towards zero.
    strict(conn, "my_tsdiff", 3, |a| {
        let name = a.text(0);
        let Some((months, size)) = unit(&name) else {
            return Err(SqlError::unsupported(format!("TIMESTAMPDIFF {name}")));
        };
        maybe(date(a, 1).zip(date(a, 2)), |(from, to)| {
            if !months {
                return Value::Int((to.micros() - from.micros()) / size);
            }
            let (early, late, sign) = if from <= to { (from, to, 1) } else { (to, from, -1) };
            let mut n =
                i64::from(late.year - early.year) * 12 + i64::from(late.month) - i64::from(early.month);
            if (late.day, late.time_micros()) < (early.day, early.time_micros()) {
                n -= 1;
            }
            Value::Int(sign * (n / size))
        })
    })?;
    strict(conn, "my_from_days", 1, |a| {
        let (y, m, d) = temporal::civil_from_days(i64::try_from(a.int(0)).unwrap_or(0) - 719_528);
        Ok(Value::Text(DateTime::date_only(y, m, d).date_text()))
    })?;
    strict(conn, "my_sec_to_time", 1, |a| {
        let top = i128::from(temporal::MAX_TIME);
        let micros = a
            .decimal(0)
            .mul(&million())
            .to_i128()
            .unwrap_or(0)
            .clamp(-top, top);
        Ok(Value::from_i128(micros).unwrap_or(Value::Null))
    })
}
