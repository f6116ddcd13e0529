//! Comparisons: which form both sides are brought to before they are compared, by their types.

use super::super::collate::Collation;
use super::super::decimal::{Decimal, numeric_prefix};
use super::super::types::{Class, Ty};
use super::super::value::{self, Value};
use super::{Tx, cast};
use crate::error::{SqlError, SqlResult};

/// Both sides in one form, and the collation to compare by.
pub(crate) struct Pair {
    pub(crate) left: Tx,
    pub(crate) right: Tx,
    pub(crate) collation: Option<&'static str>,
}

impl Pair {
    /// `left op right`. The collation stands on the left side: there it wins over any that is written deeper inside
    /// either side, which `SQLite` would otherwise use.
    pub(crate) fn sql(&self, op: &str) -> String {
        match self.collation {
            Some(c) => format!("({} COLLATE {c} {op} {})", self.left.sql, self.right.sql),
            None => format!("({} {op} {})", self.left.sql, self.right.sql),
        }
    }
}

fn collation_of(a: &Tx, b: &Tx) -> Collation {
    match (a.explicit, b.explicit) {
        (true, false) => return a.ty.collation(),
        (false, true) => return b.ty.collation(),
        _ => {}
    }
    match (a.konst.is_some(), b.konst.is_some()) {
        (true, false) => b.ty.collation(),
        (false, true) => a.ty.collation(),
        _ if a.ty.collation() == Collation::Bin || b.ty.collation() == Collation::Bin => Collation::Bin,
        _ => Collation::Ci,
    }
}

/// Brings both sides to one form, as the server's rules for comparison say.
pub(crate) fn pair(a: &Tx, b: &Tx) -> SqlResult<Pair> {
    use Class as C;
    let plain = |left: Tx, right: Tx| {
        Ok(Pair {
            left,
            right,
            collation: None,
        })
    };
    let exact = |a: &Tx, b: &Tx| Pair {
        left: cast::decimal(a),
        right: cast::decimal(b),
        collation: Some("my_dec"),
    };
    match (a.ty.class(), b.ty.class()) {
        (C::Null, _) | (_, C::Null) | (C::Int, C::Int) => plain(a.clone(), b.clone()),
        (C::Int | C::Decimal, C::Int | C::Decimal) => Ok(exact(a, b)),
        (C::Int | C::Decimal | C::Double, C::Int | C::Decimal | C::Double) => {
            plain(cast::double(a), cast::double(b))
        }
        (C::Text, C::Text) => {
            let collation = collation_of(a, b).sqlite();
            Ok(Pair {
                left: a.clone(),
                right: b.clone(),
                collation: Some(collation),
            })
        }
        (C::Text | C::Bytes, C::Text | C::Bytes) => plain(cast::bytes(a), cast::bytes(b)),
        (C::Date | C::DateTime | C::Time, _) | (_, C::Date | C::DateTime | C::Time) => temporal(a, b),
        (C::Text | C::Bytes, _) => number_and_text(b, a).map(flip),
        (_, C::Text | C::Bytes) => number_and_text(a, b),
    }
}

fn flip(p: Pair) -> Pair {
    Pair {
        left: p.right,
        right: p.left,
        collation: p.collation,
    }
}

/// A number beside a text: a column of exact numbers is compared exactly with a constant, all else as doubles.
fn number_and_text(number: &Tx, text: &Tx) -> SqlResult<Pair> {
    if number.konst.is_none()
        && number.ty.class() != Class::Double
        && let Some(k @ (Value::Text(_) | Value::Bytes(_))) = &text.konst
    {
        let t = value::to_text(k, &text.ty).unwrap_or_default();
        let (digits, exponent) = numeric_prefix(t.trim());
        if !exponent {
            let exact = Decimal::prefix(digits);
            let ty = Ty::decimal(digits.len() as u32, u32::from(exact.scale()));
            if exact.scale() == 0
                && let Some(v) = exact.to_i128().and_then(Value::from_i128)
                && number.ty.class() == Class::Int
            {
                return pair(number, &Tx::literal(v, Ty::BIGINT));
            }
            return pair(number, &Tx::literal(Value::text(exact.to_string()), ty));
        }
    }
    Ok(Pair {
        left: cast::double(number),
        right: cast::double(text),
        collation: None,
    })
}

/// At least one side is a date or time.
fn temporal(a: &Tx, b: &Tx) -> SqlResult<Pair> {
    use Class as C;
    let is_temporal = |t: &Tx| matches!(t.ty.class(), C::Date | C::DateTime | C::Time);
    let is_number = |t: &Tx| matches!(t.ty.class(), C::Int | C::Decimal | C::Double);
    if (is_number(a) && a.konst.is_none()) || (is_number(b) && b.konst.is_none()) {
        return Ok(Pair {
            left: cast::double(a),
            right: cast::double(b),
            collation: None,
        });
    }
    let target = match (is_temporal(a), is_temporal(b)) {
        (true, true) => match (a.ty.class(), b.ty.class()) {
            (C::Time, C::Time) => cast::common(&a.ty, &b.ty),
            (C::Time, _) | (_, C::Time) => return Err(SqlError::unsupported("a TIME compared with a date")),
            _ => cast::common(&a.ty, &b.ty),
        },
        (true, false) => wide_enough(&a.ty, b),
        (false, _) => wide_enough(&b.ty, a),
    };
    let side = |t: &Tx| -> SqlResult<Tx> {
        let out = cast::temporal(t, &target)?;
        if out.ty == Ty::Null
            && let Some(k) = t.konst.as_ref().filter(|k| !k.is_null())
        {
            let shown = value::to_text(k, &t.ty).unwrap_or_default();
            let kind = value::kind_name(&target).to_uppercase();
            return Err(SqlError::new(
                1525,
                *b"HY000",
                format!("Incorrect {kind} value: '{shown}'"),
            ));
        }
        Ok(out)
    };
    Ok(Pair {
        left: side(a)?,
        right: side(b)?,
        collation: (target.class() != C::Time).then_some("BINARY"),
    })
}

/// The type of `ty`'s kind that holds the other side without loss.
fn wide_enough(ty: &Ty, other: &Tx) -> Ty {
    let shown = other.konst.as_ref().and_then(|k| value::to_text(k, &other.ty));
    let fraction = |t: &str| t.rsplit_once('.').map_or(0, |(_, f)| f.trim_end().len().min(6)) as u8;
    match ty {
        Ty::Time { fsp } => Ty::Time {
            fsp: shown.as_deref().map_or(6, fraction).max(*fsp),
        },
        Ty::DateTime { fsp, .. } => Ty::DateTime {
            fsp: shown.as_deref().map_or(6, fraction).max(*fsp),
            timestamp: false,
        },
        _ => {
            // A plain date stays one; with a time of day both sides must be points in time.
            match shown {
                Some(t) if !t.contains(':') && t.len() <= 10 => Ty::Date,
                Some(t) => Ty::DateTime {
                    fsp: fraction(&t),
                    timestamp: false,
                },
                None => Ty::DateTime {
                    fsp: 6,
                    timestamp: false,
                },
            }
        }
    }
}

/// The value as a condition: what is true in `WHERE x`.
pub(crate) fn truth(tx: &Tx) -> String {
    if tx.boolean {
        return tx.sql.clone();
    }
    match tx.ty.class() {
        Class::Null => "NULL".to_owned(),
        Class::Int | Class::Time => format!("({} <> 0)", tx.sql),
        Class::Decimal => format!("({} COLLATE my_dec <> '0')", tx.sql),
        Class::Date | Class::DateTime => format!("({} IS NOT NULL)", tx.sql),
        _ => format!("({} <> 0.0)", cast::double(tx).sql),
    }
}
