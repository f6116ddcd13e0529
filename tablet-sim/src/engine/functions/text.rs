//! Text functions. Positions and lengths count characters, as the server's do.

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

use super::super::collate::{self, Collation};
use super::super::value::Value;
use super::{Args, plain, strict};
use crate::error::{SqlError, SqlResult};

/// The longest text a function makes: `max_allowed_packet`'s default.
const MAX_RESULT: usize = 64 << 20;

/// What LIKE and friends compare two characters by.
fn folded(text: &str, collation: Collation) -> Vec<u32> {
    match collation {
        Collation::Ci => text.chars().map(collate::weight).collect(),
        Collation::Bin => text.chars().map(u32::from).collect(),
    }
}

#[allow(clippy::unnecessary_wraps)] // the shape all functions have
fn text(s: String) -> SqlResult<Value> {
    Ok(Value::Text(s))
}

fn count(a: &Args<'_, '_>, i: usize) -> usize {
    usize::try_from(a.int(i).max(0)).unwrap_or(usize::MAX)
}

/// First position of `part` in `whole`, from 1; 0 if none.
fn position(whole: &[u32], part: &[u32], from: usize) -> i64 {
    if part.is_empty() {
        return if from <= whole.len() { from as i64 + 1 } else { 0 };
    }
    whole
        .get(from..)
        .and_then(|rest| rest.windows(part.len()).position(|w| w == part))
        .map_or(0, |p| (p + from) as i64 + 1)
}

pub(super) fn register(conn: &Connection) -> rusqlite::Result<()> {
    parts(conn)?;
    padding(conn)?;
    searching(conn)?;
    encoding(conn)
}

fn parts(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_lower", 1, |a| text(a.text(0).to_lowercase()))?;
    strict(conn, "my_upper", 1, |a| text(a.text(0).to_uppercase()))?;
    strict(conn, "my_length", 1, |a| Ok(Value::Int(a.bytes(0).len() as i64)))?;
    strict(conn, "my_chars", 1, |a| {
        Ok(Value::Int(a.text(0).chars().count() as i64))
    })?;
    strict(conn, "my_left", 2, |a| {
        text(a.text(0).chars().take(count(a, 1)).collect())
    })?;
    strict(conn, "my_right", 2, |a| {
        let whole = a.text(0);
        let skip = whole.chars().count().saturating_sub(count(a, 1));
        text(whole.chars().skip(skip).collect())
    })?;
    strict(conn, "my_substr", 3, |a| {
        let whole: Vec<char> = a.text(0).chars().collect();
        let (at, most) = (a.int(1), count(a, 2));
        let start = match at {
            0 => return text(String::new()),
            1.. => usize::try_from(at - 1).unwrap_or(usize::MAX),
            _ => match whole
                .len()
                .checked_sub(usize::try_from(-at).unwrap_or(usize::MAX))
            {
                Some(start) => start,
                None => return text(String::new()),
            },
        };
        text(whole.iter().skip(start).take(most).collect())
    })?;
    strict(conn, "my_reverse", 1, |a| text(a.text(0).chars().rev().collect()))?;
    strict(conn, "my_replace", 3, |a| {
        let (whole, from) = (a.text(0), a.text(1));
        text(if from.is_empty() {
            whole
        } else {
            whole.replace(&from, &a.text(2))
        })
    })?;
    strict(conn, "my_subindex", 3, |a| {
        let (whole, by, n) = (a.text(0), a.text(1), a.int(2));
        if by.is_empty() || n == 0 {
            return text(String::new());
        }
        let pieces: Vec<&str> = whole.split(by.as_str()).collect();
        let keep = usize::try_from(n.unsigned_abs())
            .unwrap_or(usize::MAX)
            .min(pieces.len());
        text(if n > 0 {
            pieces[..keep].join(&by)
        } else {
            pieces[pieces.len() - keep..].join(&by)
        })
    })?;
    // Mode 0 both, 1 leading, 2 trailing.
    strict(conn, "my_trim", 3, |a| {
        let (whole, what, mode) = (a.text(0), a.text(1), a.int(2));
        let mut rest = whole.as_str();
        if !what.is_empty() {
            while let (0 | 1, Some(r)) = (mode, rest.strip_prefix(what.as_str())) {
                rest = r;
            }
            while let (0 | 2, Some(r)) = (mode, rest.strip_suffix(what.as_str())) {
                rest = r;
            }
        }
        text(rest.to_owned())
    })
}

fn padding(conn: &Connection) -> rusqlite::Result<()> {
    fn padded(a: &Args<'_, '_>, left: bool) -> SqlResult<Value> {
        let (whole, width, with) = (a.text(0), a.int(1), a.text(2));
        let Some(width) = usize::try_from(width).ok().filter(|w| *w <= MAX_RESULT / 4) else {
            return Ok(Value::Null);
        };
        let have = whole.chars().count();
        if have >= width {
            return text(whole.chars().take(width).collect());
        }
        if with.is_empty() {
            return Ok(Value::Null);
        }
        let fill: String = with.chars().cycle().take(width - have).collect();
        text(if left { fill + &whole } else { whole + &fill })
    }
    strict(conn, "my_lpad", 3, |a| padded(a, true))?;
    strict(conn, "my_rpad", 3, |a| padded(a, false))?;
    strict(conn, "my_repeat", 2, |a| {
        let (whole, n) = (a.text(0), count(a, 1));
        match whole.len().checked_mul(n) {
            Some(size) if size <= MAX_RESULT => text(whole.repeat(n)),
            _ => Ok(Value::Null),
        }
    })?;
    plain(
        conn,
        "my_concat_ws",
        -1,
        FunctionFlags::SQLITE_DETERMINISTIC,
        |a| {
            if a.is_null(0) {
                return Ok(Value::Null);
            }
            let parts: Vec<String> = (1..a.len())
                .filter(|i| !a.is_null(*i))
                .map(|i| a.text(i))
                .collect();
            text(parts.join(&a.text(0)))
        },
    )?;
    // FORMAT(x, d): groups of three, over an exact number that is rounded already.
    strict(conn, "my_group", 1, |a| {
        let whole = a.text(0);
        let (sign, body) = whole.strip_prefix('-').map_or(("", whole.as_str()), |b| ("-", b));
        let (digits, rest) = body.split_at(body.find('.').unwrap_or(body.len()));
        let mut out = String::from(sign);
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                out.push(',');
            }
            out.push(c);
        }
        text(out + rest)
    })
}

fn searching(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_like", 4, |a| {
        let escape = a.text(2).chars().next();
        Ok(Value::Int(i64::from(collate::like(
            &a.text(0),
            &a.text(1),
            escape,
            a.collation(3),
        ))))
    })?;
    strict(conn, "my_instr", 4, |a| {
        let collation = a.collation(2);
        let from = a.int(3);
        let Some(from) = usize::try_from(from - 1).ok() else {
            return Ok(Value::Int(0));
        };
        Ok(Value::Int(position(
            &folded(&a.text(0), collation),
            &folded(&a.text(1), collation),
            from,
        )))
    })?;
    strict(conn, "my_find_in_set", 3, |a| {
        let (needle, list, collation) = (a.text(0), a.text(1), a.collation(2));
        if list.is_empty() {
            return Ok(Value::Int(0));
        }
        let at = list
            .split(',')
            .position(|item| collation.compare(item, &needle).is_eq());
        Ok(Value::Int(at.map_or(0, |p| p as i64 + 1)))
    })
}

fn encoding(conn: &Connection) -> rusqlite::Result<()> {
    strict(conn, "my_hex", 1, |a| {
        use std::fmt::Write as _;
        if let ValueRef::Integer(v) = a.raw(0) {
            return text(format!("{v:X}"));
        }
        let mut out = String::new();
        for b in a.bytes(0) {
            let _ = write!(out, "{b:02X}"); // a String takes everything
        }
        text(out)
    })?;
    strict(conn, "my_unhex", 1, |a| {
        let mut digits = a.bytes(0);
        if !digits.len().is_multiple_of(2) {
            digits.insert(0, b'0');
        }
        let mut out = Vec::with_capacity(digits.len() / 2);
        for pair in digits.chunks_exact(2) {
            match ((pair[0] as char).to_digit(16), (pair[1] as char).to_digit(16)) {
                (Some(h), Some(l)) => out.push((h * 16 + l) as u8),
                _ => return Ok(Value::Null),
            }
        }
        Ok(Value::Bytes(out))
    })?;
    strict(conn, "my_ascii", 1, |a| {
        Ok(Value::Int(a.bytes(0).first().map_or(0, |b| i64::from(*b))))
    })?;
    strict(conn, "my_b2t", 1, |a| match String::from_utf8(a.bytes(0)) {
        Ok(t) => text(t),
        Err(_) => Err(SqlError::new(
            1300,
            *b"HY000",
            format!(
                "Invalid utf8mb4 character string: '{}'",
                a.text(0).escape_default()
            ),
        )),
    })
}
