//! CAST and the types it names.

use crate::engine::translate::{Translator, Tx, cast};
use crate::engine::types::{Class, Ty};
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{CeilFloorKind, DataType, ExactNumberInfo, Expr};

impl Translator<'_> {
    pub(super) fn cast(&mut self, e: &Expr, ty: &DataType) -> SqlResult<Tx> {
        let x = self.expr(e)?;
        let ty = Self::cast_type(ty)?;
        Ok(match ty.class() {
            Class::Int => {
                let out = cast::integer(&x, ty.is_unsigned());
                Tx {
                    ty,
                    column: None,
                    konst: None,
                    ..out
                }
            }
            Class::Decimal => {
                let Ty::Decimal { precision, scale, .. } = ty else {
                    return Err(SqlError::internal("cast"));
                };
                let d = cast::decimal(&x);
                Tx::new(format!("my_fit({},{precision},{scale})", d.sql), ty, x.nullable)
            }
            Class::Double => Tx {
                konst: None,
                ..cast::double(&x)
            },
            Class::Text => {
                let t = cast::characters(&x);
                match ty {
                    Ty::Text { len, .. } if len != u32::MAX => {
                        Tx::new(format!("my_left({},{len})", t.sql), Ty::text(len), x.nullable)
                    }
                    _ => Tx {
                        column: None,
                        konst: None,
                        ..t
                    },
                }
            }
            Class::Bytes => Tx {
                column: None,
                konst: None,
                ..cast::bytes(&x)
            },
            _ => {
                let out = cast::temporal(&x, &ty)?;
                Tx {
                    konst: None,
                    column: None,
                    nullable: true,
                    ..out
                }
            }
        })
    }

    /// A type as CAST names them.
    pub(super) fn cast_type(ty: &DataType) -> SqlResult<Ty> {
        Ok(match ty {
            DataType::Signed
            | DataType::SignedInteger
            | DataType::Int(None)
            | DataType::Integer(None)
            | DataType::BigInt(None) => Ty::BIGINT,
            DataType::Unsigned | DataType::UnsignedInteger => Ty::UBIGINT,
            DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => match info {
                ExactNumberInfo::None => Ty::decimal(10, 0),
                ExactNumberInfo::Precision(p) => Ty::decimal(*p as u32, 0),
                ExactNumberInfo::PrecisionAndScale(p, s) => {
                    Ty::decimal(*p as u32, u32::try_from(*s).unwrap_or(0))
                }
            },
            DataType::Double(_) | DataType::DoublePrecision | DataType::Real | DataType::Float(_) => {
                Ty::Double
            }
            DataType::Char(len) | DataType::Character(len) => match len {
                Some(sqlparser::ast::CharacterLength::IntegerLength { length, .. }) => {
                    Ty::text(u32::try_from(*length).unwrap_or(u32::MAX))
                }
                _ => Ty::text(u32::MAX),
            },
            DataType::Binary(None) => Ty::bytes(u32::MAX),
            DataType::Date => Ty::Date,
            DataType::Datetime(fsp) | DataType::Timestamp(fsp, _) => Ty::DateTime {
                fsp: fsp.unwrap_or(0).min(6) as u8,
                timestamp: false,
            },
            DataType::Time(fsp, _) => Ty::Time {
                fsp: fsp.unwrap_or(0).min(6) as u8,
            },
            other => return Err(SqlError::unsupported(format!("CAST AS {other}"))),
        })
    }

    pub(super) fn ceil_floor(&mut self, x: &Expr, field: &CeilFloorKind, name: &str) -> SqlResult<Tx> {
        match field {
            CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime) => {
                self.named(if name == "ceil" { "CEIL" } else { "FLOOR" }, &[x])
            }
            _ => Err(SqlError::argument_count(name)),
        }
    }
}
