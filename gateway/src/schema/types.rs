//! A column's type, from the words of `information_schema`.

use std::sync::Arc;

use super::rows::ColumnRow;
use crate::vindex::{Collation, ColumnType, IntWidth, StringKind};

/// The type a row of `information_schema.COLUMNS` declares. What is not known becomes [`ColumnType::Other`], which
/// nothing routes by.
#[must_use]
pub fn parse_type(row: &ColumnRow) -> ColumnType {
    let word = row.data_type.to_ascii_lowercase();
    let full = row.column_type.to_ascii_lowercase();
    let unsigned = full.contains(" unsigned") || full.contains(" zerofill");
    let int = |width| ColumnType::Int { width, unsigned };
    let fsp = fsp(row, &full);
    match word.as_str() {
        "tinyint" | "bool" | "boolean" | "int1" => int(IntWidth::Tiny),
        "smallint" | "int2" => int(IntWidth::Small),
        "mediumint" | "int3" => int(IntWidth::Medium),
        "int" | "integer" | "int4" => int(IntWidth::Int),
        "bigint" | "int8" => int(IntWidth::Big),
        "decimal" | "numeric" | "dec" | "fixed" => decimal(row, &full, unsigned),
        "float" => ColumnType::Float,
        "double" | "real" => ColumnType::Double,
        "bit" => ColumnType::Bit {
            bits: arguments(&full)
                .first()
                .copied()
                .unwrap_or(1)
                .try_into()
                .unwrap_or(64),
        },
        "char" => text(row, &full, StringKind::Fixed),
        "varchar" => text(row, &full, StringKind::Variable),
        "tinytext" | "text" | "mediumtext" | "longtext" => text(row, &full, StringKind::Large),
        "binary" => bytes(row, &full, StringKind::Fixed),
        "varbinary" => bytes(row, &full, StringKind::Variable),
        "tinyblob" | "blob" | "mediumblob" | "longblob" => bytes(row, &full, StringKind::Large),
        "date" => ColumnType::Date,
        "datetime" => ColumnType::DateTime { fsp },
        "timestamp" => ColumnType::Timestamp { fsp },
        "time" => ColumnType::Time { fsp },
        "year" => ColumnType::Year,
        "enum" => members(row).map_or_else(
            || other(row),
            |values| ColumnType::Enum {
                values,
                collation: collation(row),
            },
        ),
        "set" => members(row).map_or_else(
            || other(row),
            |values| ColumnType::Set {
                values,
                collation: collation(row),
            },
        ),
        "json" => ColumnType::Json,
        _ => other(row),
    }
}

fn other(row: &ColumnRow) -> ColumnType {
    ColumnType::Other(row.column_type.as_str().into())
}

/// The numbers in the parentheses behind the type's name.
fn arguments(full: &str) -> Vec<u64> {
    let inside = full
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .map_or("", |(inside, _)| inside);
    inside.split(',').map_while(|n| n.trim().parse().ok()).collect()
}

fn decimal(row: &ColumnRow, full: &str, unsigned: bool) -> ColumnType {
    let arguments = arguments(full);
    let precision = row.numeric_precision.or(arguments.first().copied()).unwrap_or(10);
    let scale = row.numeric_scale.or(arguments.get(1).copied()).unwrap_or(0);
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), Ok(scale)) => ColumnType::Decimal {
            precision,
            scale,
            unsigned,
        },
        _ => other(row),
    }
}

fn fsp(row: &ColumnRow, full: &str) -> u8 {
    let fsp = row
        .datetime_precision
        .or_else(|| arguments(full).first().copied())
        .unwrap_or(0);
    u8::try_from(fsp).unwrap_or(6)
}

fn collation(row: &ColumnRow) -> Collation {
    // Without a name it is one nobody knows: nothing is equal for sure.
    Collation::new(
        row.collation.as_deref().unwrap_or("unknown"),
        row.charset.as_deref(),
    )
}

fn text(row: &ColumnRow, full: &str, kind: StringKind) -> ColumnType {
    // `CHAR(n) CHARACTER SET binary` is shown as BINARY; a text column without a collation is not one we know.
    if row.collation.is_none() {
        return other(row);
    }
    let declared = arguments(full).first().copied();
    let length = match kind {
        StringKind::Fixed | StringKind::Variable => row.char_length.or(declared).unwrap_or(1),
        StringKind::Large => row.octet_length.or(row.char_length).unwrap_or(255),
    };
    ColumnType::Char {
        kind,
        length,
        collation: collation(row),
    }
}

fn bytes(row: &ColumnRow, full: &str, kind: StringKind) -> ColumnType {
    let declared = arguments(full).first().copied();
    ColumnType::Binary {
        kind,
        length: row.octet_length.or(row.char_length).or(declared).unwrap_or(1),
    }
}

fn members(row: &ColumnRow) -> Option<Arc<[Box<str>]>> {
    parse_members(&row.column_type).map(Into::into)
}

/// The members in `enum('a','b''c')` or `set(..)`; `None` when it does not read as a list of quoted texts.
#[must_use]
pub fn parse_members(column_type: &str) -> Option<Vec<Box<str>>> {
    let mut rest = column_type.split_once('(')?.1;
    let mut members = Vec::new();
    loop {
        let (member, behind) = quoted(rest.trim_start())?;
        members.push(member);
        match behind.trim_start().split_at_checked(1)? {
            (",", next) => rest = next,
            (")", _) => return Some(members),
            _ => return None,
        }
    }
}

/// A text in single quotes, where a doubled quote stands for one; and what is behind it.
fn quoted(text: &str) -> Option<(Box<str>, &str)> {
    let body = text.strip_prefix('\'')?;
    let mut out = String::new();
    let mut from = 0;
    loop {
        let quote = from + body.get(from..)?.find('\'')?;
        out.push_str(body.get(from..quote)?);
        if body.get(quote + 1..)?.starts_with('\'') {
            out.push('\'');
            from = quote + 2;
        } else {
            return Some((out.into(), body.get(quote + 1..)?));
        }
    }
}
