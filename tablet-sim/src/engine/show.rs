//! SHOW and DESCRIBE.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlparser::ast::Statement;

use super::catalog::{PRIMARY, Table};
use super::collate::{self, Collation};
use super::information_schema as info;
use super::listing::{Listing, row};
use super::parse::Parsed;
use super::query::value_cell;
use super::session::{Outcome, Session, Sink};
use super::translate::{Facts, Translator};
use super::value::Value;
use crate::error::{SqlError, SqlResult};

/// What follows SHOW, word by word.
struct Words<'a> {
    parsed: &'a Parsed,
    at: usize,
}

impl<'a> Words<'a> {
    fn take(&mut self, word: &str) -> bool {
        let hit = self.parsed.is(self.at, word);
        self.at += usize::from(hit);
        hit
    }

    fn take_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|w| self.take(w))
    }

    fn name(&mut self) -> SqlResult<&'a str> {
        let word = self.parsed.words.get(self.at).filter(|w| w.kind.is_name());
        self.at += 1;
        word.map(|w| w.text.as_str())
            .ok_or_else(|| SqlError::syntax("near ''"))
    }

    fn is_dot(&self) -> bool {
        self.parsed
            .words
            .get(self.at)
            .is_some_and(|w| w.kind == shardgate_sql::TokenKind::Dot)
    }

    /// `table`, `db.table`, `table FROM db`.
    fn table(&mut self) -> SqlResult<(Option<String>, String)> {
        let first = self.name()?.to_owned();
        if self.is_dot() {
            self.at += 1;
            return Ok((Some(first), self.name()?.to_owned()));
        }
        if self.take_any(&["FROM", "IN"]) {
            return Ok((Some(self.name()?.to_owned()), first));
        }
        Ok((None, first))
    }
}

impl Session {
    pub(super) fn show(&mut self, parsed: &Parsed, sink: &mut dyn Sink) -> SqlResult<Outcome> {
        let mut words = Words { parsed, at: 1 };
        let full = words.take("FULL");
        words.take("EXTENDED");
        let global = words.take("GLOBAL");
        let _ = words.take_any(&["SESSION", "LOCAL"]);
        let listing = self.show_listing(&mut words, full, global)?;
        self.filtered(parsed, words.at, listing, sink)
    }

    fn show_listing(&mut self, words: &mut Words<'_>, full: bool, global: bool) -> SqlResult<Listing> {
        if words.take_any(&["DATABASES", "SCHEMAS"]) {
            return Ok(self.show_databases());
        }
        if words.take("TABLES") {
            return self.show_tables(words, full);
        }
        if words.take("TABLE") {
            if !words.take("STATUS") {
                return Err(SqlError::syntax("near 'TABLE'"));
            }
            return self.show_table_status(words);
        }
        if words.take_any(&["COLUMNS", "FIELDS"]) {
            let _ = words.take_any(&["FROM", "IN"]);
            let (schema, name) = words.table()?;
            let table = self.shown_table(schema, &name)?;
            return Ok(show_columns(&table, full));
        }
        if words.take_any(&["INDEX", "INDEXES", "KEYS"]) {
            let _ = words.take_any(&["FROM", "IN"]);
            let (schema, name) = words.table()?;
            return Ok(show_index(&*self.shown_table(schema, &name)?));
        }
        if words.take("CREATE") {
            return self.show_create(words);
        }
        if words.take("VARIABLES") {
            let vars = if global {
                self.tablet.globals()
            } else {
                self.vars.clone()
            };
            let mut out = Listing::new(&["Variable_name", "Value"]);
            for (name, value) in vars.shown() {
                out.push(row![name, value]);
            }
            return Ok(out);
        }
        if words.take("STATUS") {
            let mut out = Listing::new(&["Variable_name", "Value"]);
            for (name, value) in self.tablet.status() {
                out.push(row![name, value]);
            }
            return Ok(out);
        }
        if words.take_any(&["WARNINGS", "ERRORS"]) {
            return Ok(self.show_warnings(words.parsed.mentions("ERRORS")));
        }
        if words.take("PROCESSLIST") {
            return Ok(self.processlist(full));
        }
        self.show_rest(words)
    }

    fn show_rest(&mut self, words: &mut Words<'_>) -> SqlResult<Listing> {
        if words.take_any(&["ENGINES"]) || words.take("STORAGE") && words.take("ENGINES") {
            return Ok(info::engines());
        }
        if words.take("CHARSET") || words.take("CHARACTER") && words.take("SET") {
            let mut out = info::character_sets();
            for ((name, _), shown) in
                out.columns
                    .iter_mut()
                    .zip(["Charset", "Default collation", "Description", "Maxlen"])
            {
                shown.clone_into(name);
            }
            return Ok(out);
        }
        if words.take("COLLATION") {
            let mut out = info::collations();
            for ((name, _), shown) in
                out.columns
                    .iter_mut()
                    .zip(["Collation", "Charset", "Id", "Default", "Compiled", "Sortlen"])
            {
                shown.clone_into(name);
            }
            return Ok(out);
        }
        if words.take("GRANTS") {
            words.at = words.parsed.words.len();
            let user = self.account.split('@').next().unwrap_or("").to_owned();
            let mut out = Listing::new(&[&format!("Grants for {user}@%")]);
            out.push(row![format!(
                "GRANT ALL PRIVILEGES ON *.* TO `{user}`@`%` WITH GRANT OPTION"
            )]);
            return Ok(out);
        }
        if words.take("PLUGINS") {
            return Ok(Listing::new(&["Name", "Status", "Type", "Library", "License"]));
        }
        if words.take("OPEN") && words.take("TABLES") {
            return Ok(Listing::new(&["Database", "Table", "#In_use", "#Name_locked"]));
        }
        if words.take("TRIGGERS") {
            return Ok(Listing::new(&[
                "Trigger",
                "Event",
                "Table",
                "Statement",
                "Timing",
            ]));
        }
        if words.take_any(&["PROCEDURE", "FUNCTION"]) && words.take("STATUS") {
            return Ok(Listing::new(&["Db", "Name", "Type", "Definer"]));
        }
        if words.take("COUNT") {
            let errors = words.parsed.mentions("ERRORS");
            words.at = words.parsed.words.len();
            let count = self.show_warnings(errors).rows.len() as u64;
            let mut out = Listing::new(&[if errors {
                "#@@session.error_count"
            } else {
                "#@@session.warning_count"
            }]);
            out.push(row![count]);
            return Ok(out);
        }
        let all = words.take("ALL");
        if words.take_any(&["SLAVE", "SLAVES", "REPLICA", "REPLICAS"]) {
            if words.take("STATUS") {
                let modern = words.parsed.mentions("REPLICA") || words.parsed.mentions("REPLICAS");
                return Ok(self.tablet.replica_status(all, modern));
            }
            if words.take("HOSTS") {
                return Ok(Listing::new(&["#Server_id", "Host", "#Port", "#Master_id"]));
            }
        }
        if (words.take_any(&["MASTER", "BINLOG"]) && words.take("STATUS"))
            || (words.take("BINARY") && words.take("LOG") && words.take("STATUS"))
        {
            return Ok(self.tablet.binlog_status());
        }
        Err(SqlError::unsupported(words.parsed.shown()))
    }

    /// Sends a listing through its LIKE, WHERE and LIMIT.
    fn filtered(
        &mut self,
        parsed: &Parsed,
        mut at: usize,
        mut listing: Listing,
        sink: &mut dyn Sink,
    ) -> SqlResult<Outcome> {
        if parsed.is(at, "LIKE") {
            let pattern = parsed.word(at + 1).unwrap_or("").to_owned();
            listing.rows.retain(|row| match row.first() {
                Some(Value::Text(t)) => collate::like(t, &pattern, Some('\\'), Collation::Ci),
                _ => false,
            });
            at += 2;
        }
        if parsed.is(at, "WHERE") {
            return self.queried(parsed, at, &listing, sink);
        }
        if parsed.is(at, "LIMIT") {
            let count = parsed
                .word(at + 1)
                .and_then(|n| n.parse().ok())
                .unwrap_or(usize::MAX);
            listing.rows.truncate(count);
            at += 2;
        }
        if parsed
            .words
            .get(at)
            .is_some_and(|w| w.kind != shardgate_sql::TokenKind::Semicolon)
        {
            return Err(SqlError::syntax(format!(
                "near '{}'",
                parsed.word(at).unwrap_or("")
            )));
        }
        send(&listing, sink)
    }

    /// A listing with a WHERE is a query over it.
    fn queried(
        &mut self,
        parsed: &Parsed,
        at: usize,
        listing: &Listing,
        sink: &mut dyn Sink,
    ) -> SqlResult<Outcome> {
        let Some(start) = parsed.offset(at) else {
            return Err(SqlError::syntax("near 'WHERE'"));
        };
        let mut text = b"SELECT * FROM `show`.`listing` ".to_vec();
        text.extend_from_slice(&parsed.text[start..]);
        let Statement::Query(query) = parsed.tree_of(&text)? else {
            return Err(SqlError::syntax("near 'WHERE'"));
        };
        let mut catalog = (*self.tablet.catalog()).clone();
        self.put_listing(&mut catalog, "show", "listing", listing)?;
        let translated = Translator::new(&catalog, &*self as &dyn Facts).query(&query)?;
        let types: Vec<_> = listing.columns.iter().map(|(_, ty)| ty.clone()).collect();
        let rows = self.collect(&translated.sql, &types)?;
        send(
            &Listing {
                columns: listing.columns.clone(),
                rows,
            },
            sink,
        )
    }

    pub(super) fn describe(&mut self, parsed: &Parsed, at: usize, sink: &mut dyn Sink) -> SqlResult<Outcome> {
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

    fn shown_table(&self, schema: Option<String>, name: &str) -> SqlResult<Arc<Table>> {
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

    fn show_databases(&self) -> Listing {
        let mut out = Listing::new(&["Database"]);
        let catalog = self.tablet.catalog();
        let mut names: Vec<&str> = catalog.schemas.keys().map(String::as_str).collect();
        names.push("information_schema");
        names.sort_unstable();
        for name in names {
            out.push(row![name]);
        }
        out
    }

    fn show_schema(&self, words: &mut Words<'_>) -> SqlResult<String> {
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

    fn show_tables(&self, words: &mut Words<'_>, full: bool) -> SqlResult<Listing> {
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

    fn show_table_status(&self, words: &mut Words<'_>) -> SqlResult<Listing> {
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

    fn show_create(&self, words: &mut Words<'_>) -> SqlResult<Listing> {
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

    fn show_warnings(&self, errors_only: bool) -> Listing {
        let mut out = Listing::new(&["Level", "#Code", "Message"]);
        for w in self
            .warnings
            .iter()
            .filter(|w| !errors_only || w.level == "Error")
        {
            out.push(row![w.level, u64::from(w.code), w.message.as_str()]);
        }
        out
    }

    pub(crate) fn processlist(&self, full: bool) -> Listing {
        let mut out = Listing::new(&[
            "#Id", "User", "Host", "db", "Command", "#Time", "State", "Info", "Progress",
        ]);
        for p in self.tablet.processes() {
            let info = p
                .statement
                .map(|s| if full { s } else { s.chars().take(100).collect() });
            let (user, host) = p.account.split_once('@').unwrap_or((&p.account, ""));
            out.push(row![
                u64::from(p.id),
                user,
                host,
                p.database,
                p.command,
                p.seconds,
                "",
                info,
                "0.000",
            ]);
        }
        out
    }
}

fn send(listing: &Listing, sink: &mut dyn Sink) -> SqlResult<Outcome> {
    sink.columns(&listing.metas())?;
    for row in &listing.rows {
        let cells: Vec<Option<Vec<u8>>> = row
            .iter()
            .zip(&listing.columns)
            .map(|(v, (_, ty))| value_cell(v, ty))
            .collect();
        sink.row(&cells)?;
    }
    Ok(Outcome::Rows)
}

fn show_columns(table: &Table, full: bool) -> Listing {
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
            super::catalog::Default::Value(v) => super::value::to_text(v, &c.ty),
            super::catalog::Default::Now => info::default_text(c),
            super::catalog::Default::None => None,
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

fn show_index(table: &Table) -> Listing {
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
        } else if matches!(c.ty, super::types::Ty::DateTime { timestamp: true, .. }) {
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
            line.push_str(&format!(" COMMENT {}", super::value::text_literal(&c.comment)));
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
        format!(" COMMENT={}", super::value::text_literal(&table.comment))
    };
    format!(
        "CREATE TABLE `{}` (\n{}\n) ENGINE=InnoDB{auto} DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci{comment}",
        table.name,
        lines.join(",\n")
    )
}
