//! Functions over texts.

use super::any_null;
use super::sqls;
use crate::engine::translate::{Tx, cast};
use crate::engine::types::{Class, TextKind, Ty};
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};

pub(super) fn textual(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
    let nullable = any_null(a);
    let texts: Vec<Tx> = a.iter().map(cast::text).collect();
    let len = |i: usize| texts.get(i).map_or(0, |t| t.ty.chars());
    let int = |i: usize| cast::integer(&a[i], false).sql;
    let ci = |i: usize| {
        u8::from(
            a[i].ty.class() != Class::Bytes && a[i].ty.collation() == crate::engine::collate::Collation::Ci,
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
pub(super) fn text_part(name: &str, a: &[Tx], texts: &[Tx], nullable: bool) -> SqlResult<Tx> {
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
