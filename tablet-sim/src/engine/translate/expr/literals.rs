//! Literals.

use crate::engine::decimal::Decimal;
use crate::engine::translate::Tx;
use crate::engine::types::{IntSize, Ty};
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::Value as AstValue;

/// A literal of the statement.
pub(crate) fn literal(v: &AstValue) -> SqlResult<Tx> {
    Ok(match v {
        AstValue::Number(n, _) => number(n)?,
        AstValue::SingleQuotedString(s)
        | AstValue::DoubleQuotedString(s)
        | AstValue::NationalStringLiteral(s) => Tx::text(s),
        // `gateway/sql` keeps a string that is not UTF-8 as its bytes in hexadecimal.
        AstValue::HexStringLiteral(h) | AstValue::EscapedStringLiteral(h) => {
            let padded = if h.len().is_multiple_of(2) {
                h.clone()
            } else {
                format!("0{h}")
            };
            let bytes: Option<Vec<u8>> = padded
                .as_bytes()
                .chunks(2)
                .map(|c| {
                    std::str::from_utf8(c)
                        .ok()
                        .and_then(|c| u8::from_str_radix(c, 16).ok())
                })
                .collect();
            let bytes = bytes.ok_or_else(|| SqlError::syntax(format!("near 'x'{h}''")))?;
            let len = bytes.len() as u32;
            Tx::literal(Value::Bytes(bytes), Ty::bytes(len))
        }
        AstValue::Boolean(b) => Tx {
            boolean: true,
            ..Tx::int(i64::from(*b))
        },
        AstValue::Null => Tx::null(),
        other => return Err(SqlError::unsupported(format!("the literal {other}"))),
    })
}

pub(super) fn number(n: &str) -> SqlResult<Tx> {
    let bad = || SqlError::syntax(format!("near '{n}'"));
    if n.contains(['e', 'E']) {
        let d: f64 = n.parse().map_err(|_| bad())?;
        if !d.is_finite() {
            return Err(SqlError::new(
                1367,
                *b"22007",
                format!("Illegal double '{n}' value found during parsing"),
            ));
        }
        return Ok(Tx::literal(Value::Double(d), Ty::Double));
    }
    let exact: Decimal = n.parse().map_err(|_| bad())?;
    if exact.scale() == 0
        && !n.contains('.')
        && let Some(v) = exact.to_i128().and_then(Value::from_i128)
    {
        let unsigned = matches!(v, Value::UInt(_));
        return Ok(Tx::literal(
            v,
            Ty::Int {
                size: IntSize::Big,
                unsigned,
                width: n.len() as u32,
            },
        ));
    }
    let ty = Ty::decimal(
        exact.whole_digits() as u32 + u32::from(exact.scale()),
        u32::from(exact.scale()),
    );
    Ok(Tx::literal(Value::text(exact.to_string()), ty))
}
