//! Small tables made on the spot: what SHOW prints and what the information schema holds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::catalog::{Column, Default, Table};
use super::types::{ColumnMeta, Ty};
use super::value::Value;

/// Column names with types, and rows.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) columns: Vec<(String, Ty)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A cell from what is at hand.
pub(crate) trait Cell {
    fn cell(self) -> Value;
}

impl Cell for &str {
    fn cell(self) -> Value {
        Value::text(self)
    }
}
impl Cell for String {
    fn cell(self) -> Value {
        Value::Text(self)
    }
}
impl Cell for i64 {
    fn cell(self) -> Value {
        Value::Int(self)
    }
}
impl Cell for u64 {
    fn cell(self) -> Value {
        Value::from_i128(i128::from(self)).unwrap_or(Value::Null)
    }
}
impl Cell for Value {
    fn cell(self) -> Value {
        self
    }
}
impl<T: Cell> Cell for Option<T> {
    fn cell(self) -> Value {
        self.map_or(Value::Null, Cell::cell)
    }
}

/// A row of cells.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::engine::listing::Cell::cell($cell)),*] };
}
pub(crate) use row;

impl Listing {
    /// Columns by name; a name that begins with `#` is an integer's.
    pub(crate) fn new(names: &[&str]) -> Self {
        let column = |name: &&str| match name.strip_prefix('#') {
            Some(name) => (name.to_owned(), Ty::UBIGINT),
            None => ((*name).to_owned(), Ty::text(1024)),
        };
        Self {
            columns: names.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, row: Vec<Value>) {
        self.rows.push(row);
    }

    pub(crate) fn metas(&self) -> Vec<ColumnMeta> {
        self.columns
            .iter()
            .map(|(name, ty)| ColumnMeta::computed(name.clone(), ty.clone(), true))
            .collect()
    }

    /// The listing as a table of the catalog, so that it can be queried.
    pub(crate) fn as_table(&self, schema: &str, name: &str) -> Table {
        let column = |(name, ty): &(String, Ty)| Column {
            name: name.clone(),
            ty: ty.clone(),
            nullable: true,
            default: Default::None,
            auto_increment: false,
            on_update_now: false,
            from: None,
            comment: String::new(),
        };
        Table {
            schema: schema.to_owned(),
            name: name.to_owned(),
            columns: self.columns.iter().map(column).collect(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            comment: String::new(),
            next_auto: Arc::new(AtomicU64::new(1)),
        }
    }
}
