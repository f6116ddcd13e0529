//! What SHOW and DESCRIBE tell about tables.

use super::Words;
use super::send;
use crate::engine::catalog::{PRIMARY, Table};
use crate::engine::collate::Collation;
use crate::engine::information_schema as info;
use crate::engine::listing::{Listing, row};
use crate::engine::parse::Parsed;
use crate::engine::session::{Outcome, Session, Sink};
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn show_columns(table: &Table, full: bool) -> Listing {
    let mut out = Listing::new(if full {
        &[
            "Field",
            "Type",
            "Collation",
            "Null",
            "Key",
            "Default",
            "Extra",
            "Privileges",
            "Comment",
        ]
    } else {
        &["Field", "Type", "Null", "Key", "Default", "Extra"]
    });
    for (i, c) in table.columns.iter().enumerate() {
        let null = if c.nullable { "YES" } else { "NO" };
        let default = match &c.default {
            crate::engine::catalog::Default::Value(v) => crate::engine::value::to_text(v, &c.ty),
            crate::engine::catalog::Default::Now => info::default_text(c),
            crate::engine::catalog::Default::None => None,
        };
        let collation = (!c.ty.is_binary_on_wire()).then(|| c.ty.collation().name());
        out.push(if full {
            row![
                c.name.as_str(),
                c.ty.column_type(),
                collation,
                null,
                table.column_key(i),
                default,
                info::extra(c),
                "select,insert,update,references",
                c.comment.as_str(),
            ]
        } else {
            row![
                c.name.as_str(),
                c.ty.column_type(),
                null,
                table.column_key(i),
                default,
                info::extra(c)
            ]
        });
    }
    out
}

pub(super) fn show_index(table: &Table) -> Listing {
    let mut out = Listing::new(&[
        "Table",
        "#Non_unique",
        "Key_name",
        "#Seq_in_index",
        "Column_name",
        "Collation",
        "#Cardinality",
        "#Sub_part",
        "Packed",
        "Null",
        "Index_type",
        "Comment",
        "Index_comment",
        "Ignored",
    ]);
    for index in &table.indexes {
        for (seq, at) in index.columns.iter().enumerate() {
            let c = &table.columns[*at];
            out.push(row![
                table.name.as_str(),
                u64::from(!index.unique),
                index.name.as_str(),
                seq as u64 + 1,
                c.name.as_str(),
                "A",
                0u64,
                Value::Null,
                Value::Null,
                if c.nullable { "YES" } else { "" },
                "BTREE",
                "",
                "",
                "NO",
            ]);
        }
    }
    out
}

/// The statement that would make the table again.
pub(crate) fn create_text(table: &Table) -> String {
    let mut lines = Vec::new();
    for c in &table.columns {
        let mut line = format!("  `{}` {}", c.name, c.ty.column_type());
        if !c.ty.is_binary_on_wire() && c.ty.collation() == Collation::Bin {
            line.push_str(" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin");
        }
        if !c.nullable {
            line.push_str(" NOT NULL");
        } else if matches!(c.ty, crate::engine::types::Ty::DateTime { timestamp: true, .. }) {
            line.push_str(" NULL");
        }
        if let Some(default) = info::default_text(c) {
            line.push_str(&format!(" DEFAULT {default}"));
        }
        if c.auto_increment {
            line.push_str(" AUTO_INCREMENT");
        } else if c.on_update_now {
            line.push_str(&format!(
                " {}",
                info::extra(c).replacen("on update", "ON UPDATE", 1)
            ));
        }
        if !c.comment.is_empty() {
            line.push_str(&format!(
                " COMMENT {}",
                crate::engine::value::text_literal(&c.comment)
            ));
        }
        lines.push(line);
    }
    for index in &table.indexes {
        let columns: Vec<String> = index
            .columns
            .iter()
            .map(|at| format!("`{}`", table.columns[*at].name))
            .collect();
        let columns = columns.join(",");
        lines.push(match (index.name.as_str(), index.unique) {
            (PRIMARY, _) => format!("  PRIMARY KEY ({columns})"),
            (name, true) => format!("  UNIQUE KEY `{name}` ({columns})"),
            (name, false) => format!("  KEY `{name}` ({columns})"),
        });
    }
    for key in &table.foreign_keys {
        lines.push(format!("  {}", key.describe(&table.schema)));
    }
    for check in &table.checks {
        lines.push(format!("  CONSTRAINT `{}` CHECK ({})", check.name, check.text));
    }
    let next = table.next_auto.load(Ordering::Relaxed);
    let auto = if table.auto_column().is_some() && next > 1 {
        format!(" AUTO_INCREMENT={next}")
    } else {
        String::new()
    };
    let comment = if table.comment.is_empty() {
        String::new()
    } else {
        format!(" COMMENT={}", crate::engine::value::text_literal(&table.comment))
    };
    format!(
        "CREATE TABLE `{}` (\n{}\n) ENGINE=InnoDB{auto} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci{comment}",
        table.name,
        lines.join(",\n")
    )
}

impl Session {
    pub(in crate::engine) fn describe(
        &mut self,
        parsed: &Parsed,
        at: usize,
        sink: &mut dyn Sink,
    ) -> SqlResult<Outcome> {
        let mut words = Words { parsed, at };
        let (schema, name) = words.table()?;
        let mut listing = show_columns(&*self.shown_table(schema, &name)?, false);
        if let Some(column) = parsed.word(words.at).filter(|w| *w != ";") {
            listing
                .rows
                .retain(|row| matches!(row.first(), Some(Value::Text(t)) if t.eq_ignore_ascii_case(column)));
        }
        send(&listing, sink)
    }

    pub(super) fn shown_table(&self, schema: Option<String>, name: &str) -> SqlResult<Arc<Table>> {
        let schema = match schema {
            Some(s) => s,
            None => self.db.clone().ok_or_else(SqlError::no_database_selected)?,
        };
        if schema.eq_ignore_ascii_case("information_schema") {
            let catalog = self.catalog_for_query()?;
            return catalog.table("information_schema", &name.to_lowercase()).cloned();
        }
        self.tablet.catalog().table(&schema, name).cloned()
    }

    pub(super) fn show_schema(&self, words: &mut Words<'_>) -> SqlResult<String> {
        let name = if words.take_any(&["FROM", "IN"]) {
            words.name()?.to_owned()
        } else {
            self.db.clone().ok_or_else(SqlError::no_database_selected)?
        };
        if !name.eq_ignore_ascii_case("information_schema")
            && !self.tablet.catalog().schemas.contains_key(&name)
        {
            return Err(SqlError::unknown_database(&name));
        }
        Ok(name)
    }

    pub(super) fn show_tables(&self, words: &mut Words<'_>, full: bool) -> SqlResult<Listing> {
        let schema = self.show_schema(words)?;
        let head = format!("Tables_in_{schema}");
        let names = [head.as_str(), "Table_type"];
        let mut out = Listing::new(if full { &names } else { &names[..1] });
        let catalog = self.tablet.catalog();
        for name in catalog.schemas.get(&schema).into_iter().flat_map(|s| s.keys()) {
            out.push(if full {
                row![name.as_str(), "BASE TABLE"]
            } else {
                row![name.as_str()]
            });
        }
        Ok(out)
    }

    pub(super) fn show_table_status(&self, words: &mut Words<'_>) -> SqlResult<Listing> {
        let schema = self.show_schema(words)?;
        let mut out = Listing::new(&[
            "Name",
            "Engine",
            "#Version",
            "Row_format",
            "#Rows",
            "#Auto_increment",
            "Collation",
            "Comment",
        ]);
        let catalog = self.tablet.catalog();
        for t in catalog.schemas.get(&schema).into_iter().flat_map(|s| s.values()) {
            let rows = self
                .conn
                .query_row(&format!("SELECT count(*) FROM {}", t.sqlite()), [], |r| {
                    r.get::<_, i64>(0)
                })?;
            let next = t.auto_column().map(|_| t.next_auto.load(Ordering::Relaxed));
            out.push(row![
                t.name.as_str(),
                "InnoDB",
                10u64,
                "Dynamic",
                rows,
                next,
                Collation::Ci.name(),
                t.comment.as_str(),
            ]);
        }
        Ok(out)
    }

    pub(super) fn show_create(&self, words: &mut Words<'_>) -> SqlResult<Listing> {
        if words.take_any(&["DATABASE", "SCHEMA"]) {
            let name = words.name()?;
            if !self.tablet.catalog().schemas.contains_key(name) {
                return Err(SqlError::unknown_database(name));
            }
            let mut out = Listing::new(&["Database", "Create Database"]);
            out.push(row![
                name,
                format!("CREATE DATABASE `{name}` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */"),
            ]);
            return Ok(out);
        }
        if !words.take("TABLE") {
            return Err(SqlError::unsupported(words.parsed.shown()));
        }
        let (schema, name) = words.table()?;
        let table = self.shown_table(schema, &name)?;
        let mut out = Listing::new(&["Table", "Create Table"]);
        out.push(row![table.name.as_str(), create_text(&table)]);
        Ok(out)
    }
}
