//! Arithmetic: integers over both signs, exact decimals, and the conversions between number types.

use rusqlite::Connection;

use super::super::decimal::Decimal;
use super::super::types::Ty;
use super::super::value::{self, Value};
use super::{Args, strict};
use crate::error::{SqlError, SqlResult};

/// An integer result in the range its type has; 1690 otherwise.
fn ranged(v: Option<i128>, unsigned: bool, what: &str) -> SqlResult<Value> {
    let fits = |v: &i128| {
        if unsigned {
            u64::try_from(*v).is_ok()
        } else {
            i64::try_from(*v).is_ok()
        }
    };
    match v.filter(fits).and_then(Value::from_i128) {
        Some(v) => Ok(v),
        None => Err(SqlError::arithmetic_range(
            if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" },
            what,
        )),
    }
}

fn integer(a: &Args<'_, '_>, op: char, f: fn(i128, i128) -> Option<i128>) -> SqlResult<Value> {
    let (x, y) = (a.int(0), a.int(1));
    ranged(f(x, y), a.int(2) == 1, &format!("({x} {op} {y})"))
}

#[allow(clippy::unnecessary_wraps)] // the shape all functions have
fn dec(v: Option<Decimal>) -> SqlResult<Value> {
    Ok(v.map_or(Value::Null, |d| Value::text(d.to_string())))
}

fn scale(a: &Args<'_, '_>, i: usize) -> u8 {
    u8::try_from(a.int(i).clamp(0, 30)).unwrap_or(0)
}

pub(super) fn register(conn: &Connection) -> rusqlite::Result<()> {
    integers(conn)?;
    decimals(conn)?;
    doubles(conn)?;
    conversions(conn)
}

/// An argument's 64 bits.
fn bits(a: &Args<'_, '_>, i: usize) -> u64 {
    a.int(i) as u64
}

/// An unsigned result.
fn wide(v: u64) -> SqlResult<Value> {
    ranged(Some(i128::from(v)), true, "")
}

fn integers(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_iadd", 3, |a| integer(a, '+', i128::checked_add))?;
    strict(conn, "my_isub", 3, |a| integer(a, '-', i128::checked_sub))?;
    strict(conn, "my_imul", 3, |a| integer(a, '*', i128::checked_mul))?;
    strict(conn, "my_idiv", 3, |a| {
        if a.int(1) == 0 {
            Ok(Value::Null)
        } else {
            integer(a, 'D', i128::checked_div)
        }
    })?;
    strict(conn, "my_imod", 3, |a| {
        if a.int(1) == 0 {
            Ok(Value::Null)
        } else {
            integer(a, '%', i128::checked_rem)
        }
    })?;
    strict(conn, "my_ineg", 1, |a| {
        let x = a.int(0);
        ranged(Some(-x), false, &format!("-({x})"))
    })?;
    strict(conn, "my_iabs", 2, |a| {
        ranged(Some(a.int(0).abs()), a.int(1) == 1, "abs")
    })?;
    strict(conn, "my_band", 2, |a| wide(bits(a, 0) & bits(a, 1)))?;
    strict(conn, "my_bor", 2, |a| wide(bits(a, 0) | bits(a, 1)))?;
    strict(conn, "my_bxor", 2, |a| wide(bits(a, 0) ^ bits(a, 1)))?;
    strict(conn, "my_bnot", 1, |a| wide(!bits(a, 0)))?;
    strict(conn, "my_shl", 2, |a| {
        wide(
            u32::try_from(bits(a, 1))
                .ok()
                .and_then(|n| bits(a, 0).checked_shl(n))
                .unwrap_or(0),
        )
    })?;
    strict(conn, "my_shr", 2, |a| {
        wide(
            u32::try_from(bits(a, 1))
                .ok()
                .and_then(|n| bits(a, 0).checked_shr(n))
                .unwrap_or(0),
        )
    })
}

fn decimals(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_dadd", 2, |a| dec(Some(a.decimal(0).add(&a.decimal(1)))))?;
    strict(conn, "my_dsub", 2, |a| dec(Some(a.decimal(0).sub(&a.decimal(1)))))?;
    strict(conn, "my_dmul", 2, |a| dec(Some(a.decimal(0).mul(&a.decimal(1)))))?;
    strict(conn, "my_ddiv", 3, |a| {
        dec(a.decimal(0).div(&a.decimal(1), scale(a, 2)))
    })?;
    strict(conn, "my_dmod", 2, |a| dec(a.decimal(0).rem(&a.decimal(1))))?;
    strict(conn, "my_ddivw", 2, |a| {
        match a.decimal(0).div_whole(&a.decimal(1)) {
            Some(q) => ranged(q.to_i128(), false, "DIV"),
            None => Ok(Value::Null),
        }
    })?;
    strict(conn, "my_dneg", 1, |a| dec(Some(a.decimal(0).neg())))?;
    strict(conn, "my_dabs", 1, |a| dec(Some(a.decimal(0).abs())))?;
    strict(conn, "my_dfloor", 1, |a| dec(Some(a.decimal(0).floor())))?;
    strict(conn, "my_dceil", 1, |a| dec(Some(a.decimal(0).ceil())))?;
    strict(conn, "my_dround", 2, |a| {
        let n = a.int(1).clamp(-80, 30);
        dec(Some(match u8::try_from(n) {
            Ok(n) => a.decimal(0).rounded(n),
            Err(_) => a.decimal(0).rounded_tens(u8::try_from(-n).unwrap_or(0)),
        }))
    })?;
    strict(conn, "my_dtrunc", 2, |a| {
        let n = a.int(1).clamp(-80, 30);
        dec(Some(match u8::try_from(n) {
            Ok(n) => a.decimal(0).truncated(n),
            Err(_) => {
                let unit = Decimal::from_i128(10i128.pow(u32::try_from(-n).unwrap_or(0).min(38)));
                a.decimal(0)
                    .div_whole(&unit)
                    .unwrap_or_else(|| Decimal::from_i128(0))
                    .mul(&unit)
            }
        }))
    })
}

fn doubles(conn: &Connection) -> rusqlite::Result<()> {
    #[allow(clippy::unnecessary_wraps)] // the shape all functions have
    fn finite(v: f64) -> SqlResult<Value> {
        Ok(if v.is_finite() {
            Value::Double(v)
        } else {
            Value::Null
        })
    }
    strict(conn, "my_fround", 2, |a| {
        let factor = 10f64.powi(i32::try_from(a.int(1).clamp(-300, 300)).unwrap_or(0));
        let x = a.double(0);
        let scaled = x * factor;
        finite(if scaled.is_finite() {
            scaled.round_ties_even() / factor
        } else {
            x
        })
    })?;
    strict(conn, "my_frange", 2, |a| {
        let v = a.double(0);
        if v.is_finite() {
            Ok(Value::Double(v))
        } else {
            Err(SqlError::arithmetic_range("DOUBLE", &a.text(1)))
        }
    })?;
    strict(conn, "my_fmod", 2, |a| finite(a.double(0) % a.double(1)))?;
    strict(conn, "my_pow", 2, |a| {
        let v = a.double(0).powf(a.double(1));
        if v.is_infinite() {
            return Err(SqlError::arithmetic_range("DOUBLE", "pow"));
        }
        finite(v)
    })?;
    strict(conn, "my_math", 2, |a| {
        let x = a.double(1);
        finite(match a.text(0).as_str() {
            "sqrt" => x.sqrt(),
            "exp" => x.exp(),
            "ln" => {
                if x <= 0.0 {
                    f64::NAN
                } else {
                    x.ln()
                }
            }
            "log2" => {
                if x <= 0.0 {
                    f64::NAN
                } else {
                    x.log2()
                }
            }
            "log10" => {
                if x <= 0.0 {
                    f64::NAN
                } else {
                    x.log10()
                }
            }
            "sin" => x.sin(),
            "cos" => x.cos(),
            "tan" => x.tan(),
            "asin" => x.asin(),
            "acos" => x.acos(),
            "atan" => x.atan(),
            "radians" => x.to_radians(),
            "degrees" => x.to_degrees(),
            "floor" => x.floor(),
            "ceil" => x.ceil(),
            "trunc" => x.trunc(),
            other => return Err(SqlError::internal(format!("unknown function {other}"))),
        })
    })
}

/// A whole number clamped to 64 bits, as CAST does.
#[allow(clippy::unnecessary_wraps)] // the shape all functions have
fn clamped(v: i128, unsigned: bool) -> SqlResult<Value> {
    let v = if unsigned {
        // A negative number becomes its two's complement.
        if v < 0 {
            i128::from(v.max(i128::from(i64::MIN)) as i64 as u64)
        } else {
            v.min(i128::from(u64::MAX))
        }
    } else {
        v.clamp(i128::from(i64::MIN), i128::from(i64::MAX))
    };
    Ok(Value::from_i128(v).unwrap_or(Value::Null))
}

fn conversions(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_i2t", 1, |a| Ok(Value::text(a.int(0).to_string())))?;
    strict(conn, "my_i2d", 1, |a| Ok(Value::Double(a.double(0))))?;
    strict(conn, "my_i2i", 2, |a| {
        let v = a.int(0);
        if a.int(1) == 1 {
            return clamped(v, true);
        }
        // CAST(x AS SIGNED) of a large unsigned value keeps its bits.
        let bits = u64::try_from(v).map_or_else(|_| i64::try_from(v).unwrap_or(0), |u| u as i64);
        Ok(Value::Int(bits))
    })?;
    strict(conn, "my_dec2d", 1, |a| Ok(Value::Double(a.decimal(0).to_f64())))?;
    strict(conn, "my_dec2i", 2, |a| {
        let d = a.decimal(0);
        let edge = if d.is_negative() { i128::MIN } else { i128::MAX };
        let v = d.to_i128().unwrap_or(edge);
        if a.int(1) == 1 && v < 0 {
            Ok(Value::Int(0))
        } else {
            clamped(v, a.int(1) == 1)
        }
    })?;
    strict(conn, "my_d2i", 2, |a| {
        clamped(a.double(0).round_ties_even() as i128, a.int(1) == 1)
    })?;
    strict(conn, "my_d2t", 1, |a| {
        Ok(Value::text(value::double_text(a.double(0))))
    })?;
    strict(conn, "my_f2t", 1, |a| {
        Ok(Value::text(value::float_text(a.double(0) as f32)))
    })?;
    strict(conn, "my_d2dec", 1, |a| dec(Decimal::from_f64(a.double(0))))?;
    strict(conn, "my_t2d", 1, |a| {
        Ok(Value::Double(value::text_number(&a.text(0))))
    })?;
    strict(conn, "my_t2dec", 1, |a| dec(Some(Decimal::prefix(&a.text(0)))))?;
    strict(conn, "my_t2i", 2, |a| {
        // CAST of a text reads its leading whole number only.
        let text = a.text(0);
        let text = text.trim_start();
        let sign = usize::from(text.starts_with(['-', '+']));
        let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let whole = Decimal::prefix(&text[..sign + digits]);
        let edge = if whole.is_negative() { i128::MIN } else { i128::MAX };
        clamped(whole.to_i128().unwrap_or(edge), a.int(1) == 1)
    })?;
    // DECIMAL(p,s) as CAST makes it: rounded, and bent into range.
    strict(conn, "my_fit", 3, |a| {
        let (p, s) = (u8::try_from(a.int(1).clamp(1, 65)).unwrap_or(65), scale(a, 2));
        let d = a.decimal(0).rounded(s);
        if d.whole_digits() > usize::from(p - s) {
            let edge = Decimal::largest(p, s);
            return dec(Some(if d.is_negative() { edge.neg() } else { edge }));
        }
        dec(Some(d))
    })?;
    strict(conn, "my_float", 1, |a| {
        Ok(Value::Double(f64::from(a.double(0) as f32)))
    })?;
    strict(conn, "my_dt2n", 1, |a| {
        dec(Some(value::temporal_number(&a.text(0))))
    })?;
    strict(conn, "my_tm2n", 2, |a| {
        let micros = i64::try_from(a.int(0)).unwrap_or(0);
        dec(Some(value::to_decimal(
            &Value::Int(micros),
            &Ty::Time { fsp: scale(a, 1) },
        )))
    })
}
