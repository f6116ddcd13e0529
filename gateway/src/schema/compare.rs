//! Where two shards' schemas differ. A statement over shards that differ cannot be answered as one server would, so
//! what is found here is reported by `check` and at start.

use std::fmt;

use super::table::{DatabaseSchema, TableInfo};

/// One difference; "left" and "right" are the two shards in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A table that only the left has.
    OnlyLeft(String),
    /// A table that only the right has.
    OnlyRight(String),
    /// A column differs, or only one side has it.
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the left declares; `None` when it has no such column.
        left: Option<String>,
        /// What the right declares; `None` when it has no such column.
        right: Option<String>,
    },
    /// The same columns in another order, so `SELECT *` differs.
    Order(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyLeft(table) => write!(f, "table `{table}` exists only on the first"),
            Self::OnlyRight(table) => write!(f, "table `{table}` exists only on the second"),
            Self::Column {
                table,
                column,
                left,
                right,
            } => {
                let say = |side: &Option<String>| side.clone().unwrap_or_else(|| "absent".to_owned());
                write!(
                    f,
                    "column `{table}`.`{column}`: {} against {}",
                    say(left),
                    say(right)
                )
            }
            Self::Order(table) => write!(f, "table `{table}`: the same columns in another order"),
        }
    }
}

/// All differences that a client could notice.
#[must_use]
pub fn differences(left: &DatabaseSchema, right: &DatabaseSchema) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, table) in &left.tables {
        match right.tables.get(name) {
            Some(other) => tables(table, other, &mut found),
            None => found.push(Difference::OnlyLeft(name.clone())),
        }
    }
    let missing = right
        .tables
        .keys()
        .filter(|name| !left.tables.contains_key(*name));
    found.extend(missing.cloned().map(Difference::OnlyRight));
    found
}

fn tables(left: &TableInfo, right: &TableInfo, found: &mut Vec<Difference>) {
    let before = found.len();
    for column in left.columns() {
        let (l, r) = (Some(declaration(left, &column.name)), right.column(&column.name));
        let r = r.map(|_| declaration(right, &column.name));
        if l != r {
            found.push(difference(left, &column.name, l, r));
        }
    }
    for column in right.columns().iter().filter(|c| left.column(&c.name).is_none()) {
        found.push(difference(
            left,
            &column.name,
            None,
            Some(declaration(right, &column.name)),
        ));
    }
    let names = |t: &TableInfo| {
        t.columns()
            .iter()
            .map(|c| c.name.to_lowercase())
            .collect::<Vec<_>>()
    };
    if found.len() == before && names(left) != names(right) {
        found.push(Difference::Order(left.name().to_owned()));
    }
}

fn difference(table: &TableInfo, column: &str, left: Option<String>, right: Option<String>) -> Difference {
    Difference::Column {
        table: table.name().to_owned(),
        column: column.to_owned(),
        left,
        right,
    }
}

fn declaration(table: &TableInfo, column: &str) -> String {
    let Some(c) = table.column(column) else {
        return String::new();
    };
    let mut text = c.ty.to_string();
    if let crate::vindex::ColumnType::Enum { values, .. } | crate::vindex::ColumnType::Set { values, .. } =
        &c.ty
    {
        text = format!("{text} {values:?}");
    }
    text.push_str(if c.nullable { " null" } else { " not null" });
    for (flag, word) in [
        (c.primary_key, " primary key"),
        (c.generated, " generated"),
        (c.invisible, " invisible"),
    ] {
        if flag {
            text.push_str(word);
        }
    }
    text
}
