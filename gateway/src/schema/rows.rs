//! From rows of `information_schema` to tables: a pure function of what the tablets answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::SchemaError;
use super::table::{ColumnInfo, DatabaseSchema, TableInfo};
use super::types::parse_type;

const COLUMNS: &str = "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, \
     CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, \
     CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_TYPE, COLUMN_KEY, EXTRA \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ";

/// The statement whose rows [`ColumnRow::from_cells`] reads: all columns of a database, in their declared order.
#[must_use]
pub fn columns_sql(database: &str) -> String {
    format!(
        "{COLUMNS}{} ORDER BY TABLE_NAME, ORDINAL_POSITION",
        literal(database)
    )
}

/// The statement that lists a database's tables with their kind, in two columns.
#[must_use]
pub fn tables_sql(database: &str) -> String {
    format!(
        "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
        literal(database)
    )
}

/// The statement that lists the tables of a database that have triggers, as far as the user may know of them.
#[must_use]
pub fn triggers_sql(database: &str) -> String {
    format!(
        "SELECT DISTINCT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {}",
        literal(database)
    )
}

/// A literal that is right under every `sql_mode`: hexadecimal, unless nothing in the name could need an escape.
fn literal(text: &str) -> String {
    if text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$'))
    {
        return format!("'{text}'");
    }
    let hex = text
        .bytes()
        .fold(String::new(), |hex, b| hex + &format!("{b:02x}"));
    format!("CONVERT(0x{hex} USING utf8mb4)")
}

/// One row of `information_schema.COLUMNS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnRow {
    /// `TABLE_NAME`.
    pub table: String,
    /// `COLUMN_NAME`.
    pub column: String,
    /// Whether `COLUMN_DEFAULT` is more than the implicit NULL.
    pub has_default: bool,
    /// `IS_NULLABLE`.
    pub nullable: bool,
    /// `DATA_TYPE`.
    pub data_type: String,
    /// `CHARACTER_MAXIMUM_LENGTH`.
    pub char_length: Option<u64>,
    /// `CHARACTER_OCTET_LENGTH`.
    pub octet_length: Option<u64>,
    /// `NUMERIC_PRECISION`.
    pub numeric_precision: Option<u64>,
    /// `NUMERIC_SCALE`.
    pub numeric_scale: Option<u64>,
    /// `DATETIME_PRECISION`.
    pub datetime_precision: Option<u64>,
    /// `CHARACTER_SET_NAME`.
    pub charset: Option<String>,
    /// `COLLATION_NAME`.
    pub collation: Option<String>,
    /// `COLUMN_TYPE`.
    pub column_type: String,
    /// `COLUMN_KEY`.
    pub key: String,
    /// `EXTRA`, lower case.
    pub extra: String,
}

impl ColumnRow {
    /// Reads the cells of one row of [`columns_sql`], as text.
    pub fn from_cells<'a>(cells: impl IntoIterator<Item = Option<&'a [u8]>>) -> Result<Self, SchemaError> {
        let mut cells = cells
            .into_iter()
            .map(|c| c.map(|c| String::from_utf8_lossy(c).into_owned()));
        let mut next = || cells.next().flatten();
        let number = |cell: Option<String>| cell.and_then(|c| c.parse::<u64>().ok());
        let table = next().unwrap_or_default();
        let column = next().unwrap_or_default();
        let default = next();
        let row = Self {
            // MariaDB writes the implicit default of a nullable column as the word NULL, unquoted.
            has_default: default.is_some_and(|d| d != "NULL"),
            nullable: next().is_some_and(|c| c.eq_ignore_ascii_case("yes")),
            data_type: next().unwrap_or_default(),
            char_length: number(next()),
            octet_length: number(next()),
            numeric_precision: number(next()),
            numeric_scale: number(next()),
            datetime_precision: number(next()),
            charset: next(),
            collation: next(),
            column_type: next().unwrap_or_default(),
            key: next().unwrap_or_default(),
            extra: next().unwrap_or_default().to_ascii_lowercase(),
            table,
            column,
        };
        row.checked()
    }

    fn checked(self) -> Result<Self, SchemaError> {
        let required = [
            ("TABLE_NAME", &self.table),
            ("COLUMN_NAME", &self.column),
            ("DATA_TYPE", &self.data_type),
            ("COLUMN_TYPE", &self.column_type),
        ];
        let missing = required
            .iter()
            .find(|(_, value)| value.is_empty())
            .map(|(field, _)| *field);
        match missing {
            Some(field) => Err(SchemaError::Row {
                field,
                table: self.table,
                column: self.column,
            }),
            None => Ok(self),
        }
    }

    fn info(&self) -> ColumnInfo {
        // `DEFAULT_GENERATED` marks an expression as default, not a generated column.
        let generated = self.extra.contains("virtual")
            || self.extra.contains("stored")
            || self.extra.contains("persistent");
        ColumnInfo {
            name: self.column.clone(),
            ty: parse_type(self),
            nullable: self.nullable,
            has_default: self.has_default || self.extra.contains("default_generated"),
            auto_increment: self.extra.contains("auto_increment"),
            primary_key: self.key.eq_ignore_ascii_case("pri"),
            generated,
            invisible: self.extra.contains("invisible"),
        }
    }
}

/// The names of the views among rows of [`tables_sql`].
pub fn views<'a>(rows: impl IntoIterator<Item = Vec<Option<&'a [u8]>>>) -> BTreeSet<String> {
    let text = |cell: Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned();
    let view = |row: Vec<Option<&[u8]>>| match row.as_slice() {
        [name, kind, ..] if text(*kind).to_ascii_uppercase().contains("VIEW") => Some(text(*name)),
        _ => None,
    };
    rows.into_iter().filter_map(view).collect()
}

/// Puts tables together from rows in [`columns_sql`]'s order; `views` names the tables that are views, `triggers` those
/// that have triggers.
pub fn learn(
    rows: impl IntoIterator<Item = ColumnRow>,
    views: &BTreeSet<String>,
    triggers: &BTreeSet<String>,
) -> DatabaseSchema {
    let mut columns: BTreeMap<String, Vec<ColumnInfo>> = BTreeMap::new();
    for row in rows {
        let info = row.info();
        columns.entry(row.table).or_default().push(info);
    }
    let table = |(name, columns): (String, Vec<ColumnInfo>)| {
        let view = views.contains(&name);
        let has_triggers = triggers.contains(&name);
        let info = TableInfo::new(name.clone(), columns, view).with_triggers(has_triggers);
        (name, Arc::new(info))
    };
    DatabaseSchema {
        tables: columns.into_iter().map(table).collect(),
    }
}
