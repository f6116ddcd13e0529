//! TABLES and COLUMNS.

use std::sync::Arc;

use crate::engine::catalog::{Column, Default, Table};
use crate::engine::collate::Collation;
use crate::engine::listing::{Listing, row};
use crate::engine::types::{Class, IntSize, TextKind, Ty};
use crate::engine::value::{Value, text_literal, to_text};

pub(super) fn tables_list(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "TABLE_TYPE",
        "ENGINE",
        "#VERSION",
        "ROW_FORMAT",
        "#TABLE_ROWS",
        "#AVG_ROW_LENGTH",
        "#DATA_LENGTH",
        "#INDEX_LENGTH",
        "#AUTO_INCREMENT",
        "CREATE_TIME",
        "UPDATE_TIME",
        "TABLE_COLLATION",
        "CREATE_OPTIONS",
        "TABLE_COMMENT",
    ]);
    for t in tables {
        let next = t
            .auto_column()
            .map(|_| t.next_auto.load(std::sync::atomic::Ordering::Relaxed));
        out.push(row![
            "def",
            t.schema.as_str(),
            t.name.as_str(),
            "BASE TABLE",
            "InnoDB",
            10u64,
            "Dynamic",
            0u64,
            0u64,
            0u64,
            0u64,
            next,
            Value::Null,
            Value::Null,
            Collation::Ci.name(),
            "",
            t.comment.as_str(),
        ]);
    }
    out
}

/// `COLUMN_DEFAULT` as MariaDB writes it: an expression, so a text stands in quotes.
pub(crate) fn default_text(c: &Column) -> Option<String> {
    match &c.default {
        Default::Now => Some(now_text(&c.ty)),
        Default::Value(v) => {
            let text = to_text(v, &c.ty).unwrap_or_default();
            Some(match c.ty.class() {
                Class::Int | Class::Decimal | Class::Double => text,
                _ => text_literal(&text),
            })
        }
        Default::None if c.nullable => Some("NULL".to_owned()),
        Default::None => None,
    }
}

pub(super) fn now_text(ty: &Ty) -> String {
    match ty {
        Ty::DateTime { fsp, .. } if *fsp > 0 => format!("current_timestamp({fsp})"),
        _ => "current_timestamp()".to_owned(),
    }
}

/// EXTRA.
pub(crate) fn extra(c: &Column) -> String {
    if c.auto_increment {
        return "auto_increment".to_owned();
    }
    if c.on_update_now {
        format!("on update {}", now_text(&c.ty))
    } else {
        String::new()
    }
}

pub(super) fn columns(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "#ORDINAL_POSITION",
        "COLUMN_DEFAULT",
        "IS_NULLABLE",
        "DATA_TYPE",
        "#CHARACTER_MAXIMUM_LENGTH",
        "#CHARACTER_OCTET_LENGTH",
        "#NUMERIC_PRECISION",
        "#NUMERIC_SCALE",
        "#DATETIME_PRECISION",
        "CHARACTER_SET_NAME",
        "COLLATION_NAME",
        "COLUMN_TYPE",
        "COLUMN_KEY",
        "EXTRA",
        "PRIVILEGES",
        "COLUMN_COMMENT",
        "IS_GENERATED",
        "GENERATION_EXPRESSION",
    ]);
    for t in tables {
        for (i, c) in t.columns.iter().enumerate() {
            let text = matches!(c.ty, Ty::Text { .. } | Ty::Enum(..) | Ty::Json);
            let bytes = matches!(c.ty, Ty::Bytes { .. });
            let chars = match &c.ty {
                Ty::Text {
                    kind: TextKind::Text(n),
                    ..
                } => Some((1u64 << (8 * u64::from(*n))) - 1),
                Ty::Text { .. } | Ty::Enum(..) | Ty::Bytes { .. } => Some(u64::from(c.ty.chars())),
                Ty::Json => Some(u64::from(u32::MAX)),
                _ => None,
            };
            let octets = chars.map(|n| {
                if bytes
                    || matches!(
                        c.ty,
                        Ty::Json
                            | Ty::Text {
                                kind: TextKind::Text(_),
                                ..
                            }
                    )
                {
                    n
                } else {
                    n * 4
                }
            });
            let (precision, scale) = match &c.ty {
                // MariaDB counts an unsigned BIGINT's digits one higher.
                Ty::Int {
                    size: IntSize::Big,
                    unsigned: true,
                    ..
                } => (Some(20), Some(0)),
                Ty::Int { size, unsigned, .. } => (Some(u64::from(size.digits(*unsigned))), Some(0)),
                Ty::Decimal { precision, scale, .. } => {
                    (Some(u64::from(*precision)), Some(u64::from(*scale)))
                }
                Ty::Float => (Some(12), None),
                Ty::Double => (Some(22), None),
                _ => (None, None),
            };
            let fraction = match &c.ty {
                Ty::DateTime { fsp, .. } | Ty::Time { fsp } => Some(u64::from(*fsp)),
                _ => None,
            };
            out.push(row![
                "def",
                t.schema.as_str(),
                t.name.as_str(),
                c.name.as_str(),
                i as u64 + 1,
                default_text(c),
                if c.nullable { "YES" } else { "NO" },
                c.ty.data_type(),
                chars,
                octets,
                precision,
                scale,
                fraction,
                text.then_some("utf8mb4"),
                text.then(|| c.ty.collation().name()),
                c.ty.column_type(),
                t.column_key(i),
                extra(c),
                "select,insert,update,references",
                c.comment.as_str(),
                "NEVER",
                Value::Null,
            ]);
        }
    }
    out
}
