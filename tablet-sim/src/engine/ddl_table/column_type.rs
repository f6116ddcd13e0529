//! The types that CREATE TABLE names.

use super::known_collation;
use super::set_collation;
use crate::engine::collate::Collation;
use crate::engine::types::{BytesKind, IntSize, TextKind, Ty};
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{CharacterLength, DataType, EnumMember, ExactNumberInfo};

pub(super) fn exact(info: &ExactNumberInfo, unsigned: bool) -> SqlResult<Ty> {
    let (p, s) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, u64::try_from(*s).unwrap_or(0)),
    };
    if p > 65 || s > 30 || s > p {
        return Err(SqlError::new(
            1426,
            *b"42000",
            format!("Too big precision {p} or scale {s} specified. Maximum is 65 and 30."),
        ));
    }
    Ok(Ty::Decimal {
        precision: (p as u8).max(1),
        scale: s as u8,
        unsigned,
    })
}

pub(super) fn int(size: IntSize, unsigned: bool, width: Option<u64>) -> Ty {
    let width = width.and_then(|w| u32::try_from(w).ok()).filter(|w| *w <= 255);
    Ty::Int {
        size,
        unsigned,
        width: width.unwrap_or_else(|| size.width(unsigned)),
    }
}

pub(super) fn chars(len: Option<&CharacterLength>, default: u32) -> u32 {
    match len {
        Some(CharacterLength::IntegerLength { length, .. }) => u32::try_from(*length).unwrap_or(u32::MAX),
        _ => default,
    }
}

pub(super) fn fsp(n: Option<u64>) -> SqlResult<u8> {
    match n {
        None => Ok(0),
        Some(n @ 0..=6) => Ok(n as u8),
        Some(n) => Err(SqlError::new(
            1426,
            *b"42000",
            format!("Too big precision {n} specified. Maximum is 6."),
        )),
    }
}

pub(super) fn text(kind: TextKind, len: u32) -> Ty {
    Ty::Text {
        kind,
        len,
        collation: Collation::Ci,
    }
}

/// A type as CREATE TABLE names it.
pub(super) fn column_type(ty: &DataType) -> SqlResult<Ty> {
    use DataType as D;
    use IntSize as S;
    Ok(match ty {
        D::TinyInt(w) => int(S::Tiny, false, *w),
        D::TinyIntUnsigned(w) => int(S::Tiny, true, *w),
        D::UTinyInt => int(S::Tiny, true, None),
        D::SmallInt(w) | D::Int2(w) => int(S::Small, false, *w),
        D::SmallIntUnsigned(w) | D::Int2Unsigned(w) => int(S::Small, true, *w),
        D::USmallInt => int(S::Small, true, None),
        D::MediumInt(w) => int(S::Medium, false, *w),
        D::MediumIntUnsigned(w) => int(S::Medium, true, *w),
        D::Int(w) | D::Integer(w) | D::Int4(w) => int(S::Int, false, *w),
        D::IntUnsigned(w) | D::IntegerUnsigned(w) | D::Int4Unsigned(w) => int(S::Int, true, *w),
        D::BigInt(w) | D::Int8(w) => int(S::Big, false, *w),
        D::BigIntUnsigned(w) | D::Int8Unsigned(w) => int(S::Big, true, *w),
        D::UBigInt => int(S::Big, true, None),
        D::Bool | D::Boolean => int(S::Tiny, false, Some(1)),
        D::Decimal(i) | D::Dec(i) | D::Numeric(i) => exact(i, false)?,
        D::DecimalUnsigned(i) | D::DecUnsigned(i) => exact(i, true)?,
        D::Float(ExactNumberInfo::None) | D::Float4 => Ty::Float,
        D::Float(ExactNumberInfo::Precision(p)) if *p <= 24 => Ty::Float,
        D::Float(ExactNumberInfo::Precision(_))
        | D::Double(ExactNumberInfo::None)
        | D::DoublePrecision
        | D::Real
        | D::Float8 => Ty::Double,
        D::Char(len) | D::Character(len) => text(TextKind::Char, chars(len.as_ref(), 1)),
        D::Varchar(len) | D::CharacterVarying(len) | D::CharVarying(len) | D::Nvarchar(len) => {
            text(TextKind::Varchar, chars(len.as_ref(), 1))
        }
        D::TinyText => text(TextKind::Text(1), 255),
        D::Text => text(TextKind::Text(2), 65_535),
        D::MediumText => text(TextKind::Text(3), 16_777_215),
        D::LongText => text(TextKind::Text(4), u32::MAX),
        D::Binary(len) => Ty::Bytes {
            kind: BytesKind::Binary,
            len: len.map_or(1, |l| l as u32),
        },
        D::Varbinary(len) => Ty::Bytes {
            kind: BytesKind::Varbinary,
            len: match len {
                Some(sqlparser::ast::BinaryLength::IntegerLength { length }) => *length as u32,
                _ => 1,
            },
        },
        D::TinyBlob => Ty::Bytes {
            kind: BytesKind::Blob(1),
            len: 255,
        },
        D::Blob(_) => Ty::Bytes {
            kind: BytesKind::Blob(2),
            len: 65_535,
        },
        D::MediumBlob => Ty::Bytes {
            kind: BytesKind::Blob(3),
            len: 16_777_215,
        },
        D::LongBlob => Ty::Bytes {
            kind: BytesKind::Blob(4),
            len: u32::MAX,
        },
        D::JSON => Ty::Json,
        D::Date => Ty::Date,
        D::Datetime(n) => Ty::DateTime {
            fsp: fsp(*n)?,
            timestamp: false,
        },
        D::Timestamp(n, _) => Ty::DateTime {
            fsp: fsp(*n)?,
            timestamp: true,
        },
        D::Time(n, _) => Ty::Time { fsp: fsp(*n)? },
        D::Enum(members, _) => {
            let names = members
                .iter()
                .map(|m| match m {
                    EnumMember::Name(n) => Ok(n.clone()),
                    EnumMember::NamedValue(..) => Err(SqlError::syntax("near 'ENUM'")),
                })
                .collect::<SqlResult<Vec<_>>>()?;
            Ty::Enum(names.into(), Collation::Ci)
        }
        D::Collate(inner, name) => {
            let mut ty = column_type(inner)?;
            set_collation(&mut ty, known_collation(&name.to_string())?);
            ty
        }
        D::Custom(name, _) if name.to_string().eq_ignore_ascii_case("year") => Ty::Year,
        other => return Err(SqlError::unsupported(format!("the column type {other}"))),
    })
}
