//! SHOW and DESCRIBE.

mod tables;

use crate::engine::collate::{self, Collation};
use crate::engine::information_schema as info;
use crate::engine::listing::{Listing, row};
use crate::engine::parse::Parsed;
use crate::engine::query::value_cell;
use crate::engine::session::{Outcome, Session, Sink};
use crate::engine::translate::{Facts, Translator};
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::Statement;
use tables::show_columns;
use tables::show_index;

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
                self.vars.over(&self.tablet.globals())
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
                "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, INDEX, ALTER, SHOW DATABASES, \
                 CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION CLIENT ON *.* TO `{user}`@`%`"
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
