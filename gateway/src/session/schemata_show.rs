//! `SHOW` about schemata: keyspaces where servers would show databases, and a refusal where one server's word would be
//! taken for all of them.

use bytes::Bytes;
use shardgate_sql::{Classified, Lexed, Show, ShowKind, TokenKind, lex};
use shardgate_wire::codec::text::{cells, put_cell};

use super::bodies::check_show_kind;
use super::like::like;
use super::query::Way;
use super::schemata_views::text;
use super::target::is_virtual;
use super::{Session, SessionError};
use crate::exec::quoted;
use crate::plan::{Shard, with_session_facts};

/// Rows over which a WHERE is evaluated at most: they travel inside a statement.
const MAX_FILTERED: usize = 1_000;

/// Whether a SHOW is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// It is.
    Yes,
    /// It is somebody else's.
    NotYet,
}

impl Session {
    /// Answers a SHOW whose answer has names of schemata in it, or refuses it where it is about one server.
    pub(super) async fn show_schemata(
        &mut self,
        lexed: &Lexed<'_>,
        class: &Classified,
        show: &Show,
        way: Way<'_>,
    ) -> Result<Shown, SessionError> {
        check_show_kind(&show.kind)?;
        match &show.kind {
            ShowKind::Databases if show.filter.is_some() => self.databases_where(lexed, show, way).await?,
            ShowKind::CreateDatabase => return self.create_database(show, way).await,
            ShowKind::Events
            | ShowKind::OpenTables
            | ShowKind::ProcedureStatus
            | ShowKind::FunctionStatus => {
                return self.show_own_rows(lexed, show, way).await;
            }
            ShowKind::Columns | ShowKind::Index => return self.show_of_table(lexed, class, show, way).await,
            ShowKind::Tables | ShowKind::TableStatus if show.database.is_none() => {
                return self.show_virtual(lexed, class, show, way).await;
            }
            ShowKind::Other(word) if word == "PACKAGE" => return self.show_own_rows(lexed, show, way).await,
            ShowKind::Other(word) if !is_alike(word) && !self.has_one_server() => {
                return Err(SessionError::Unsupported {
                    what: "a SHOW that tells of one server among many",
                    hint: "choose a shard first: USE keyspace:shard",
                });
            }
            _ => return Ok(Shown::NotYet),
        }
        Ok(Shown::Yes)
    }

    /// `SHOW DATABASES WHERE ...`: the condition is any server's to judge.
    async fn databases_where(
        &mut self,
        lexed: &Lexed<'_>,
        show: &Show,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let mut names: Vec<String> = self
            .view
            .catalog
            .keyspaces()
            .map(|k| k.name.to_string())
            .collect();
        names.push("information_schema".into());
        names.sort();
        let rows: Vec<_> = names.iter().map(|name| vec![Some(name.clone())]).collect();
        let columns = ["Database".to_owned()];
        let kept = self.judged(lexed, show, &columns, &rows).await?;
        let mut table = super::table::Table::of_text(&["Database"]);
        for name in kept.into_iter().filter_map(|i| names.get(i)) {
            table.push([name.clone()]);
        }
        self.put_rows(&table, way)
    }

    /// Which of these rows a SHOW's WHERE keeps.
    async fn judged(
        &mut self,
        lexed: &Lexed<'_>,
        show: &Show,
        columns: &[String],
        rows: &[Vec<Option<String>>],
    ) -> Result<Vec<usize>, SessionError> {
        let Some(filter) = &show.filter else {
            return Ok((0..rows.len()).collect());
        };
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        if rows.len() > MAX_FILTERED {
            return Err(SessionError::Unsupported {
                what: "WHERE over so many rows in a SHOW that the gateway answers itself",
                hint: "use LIKE, or ask information_schema",
            });
        }
        let condition = lexed.src().get(lexed.span(filter.clone())).unwrap_or_default();
        let sql = Bytes::from(judging(columns, rows, condition));
        let options = self.view.lex_options(self.state.sql_mode);
        let sql = match lex(&sql, &options) {
            Ok(lexed) => with_session_facts(&sql, &lexed, &self.facts()),
            Err(e) => return Err(SessionError::Syntax(e.to_string())),
        };
        let shard = self.any_shard().await?;
        let (_, kept) = self.small_result(&shard, &sql).await?;
        let number = |row: &Bytes| std::str::from_utf8(cells(row).next()?.ok()??).ok()?.parse().ok();
        Ok(kept.iter().filter_map(number).collect())
    }

    /// The keyspace that a SHOW names, else the session's, and the shard of it that answers.
    async fn shard_shown(&mut self, named: Option<&str>) -> Result<Option<Shard>, SessionError> {
        let own = self.state.target.keyspace.as_ref().map(ToString::to_string);
        let Some(keyspace) = named
            .map(str::to_owned)
            .or(own)
            .and_then(|n| self.view.catalog.keyspace(&n))
            .map(|k| k.name.clone())
        else {
            return Ok(None);
        };
        self.shard_asked(&keyspace).await.map(Some)
    }

    /// `SHOW CREATE DATABASE` of a keyspace: one shard's word, under the keyspace's name.
    async fn create_database(&mut self, show: &Show, way: Way<'_>) -> Result<Shown, SessionError> {
        let Some(name) = show.name.as_deref().filter(|n| !is_virtual(n)) else {
            return Ok(Shown::NotYet);
        };
        let unknown = || SessionError::UnknownDatabase(name.to_owned());
        let shard = self.shard_shown(Some(name)).await?.ok_or_else(unknown)?;
        let database = quoted(&shard.database);
        let (columns, rows) = self
            .small_result(&shard.id, format!("SHOW CREATE DATABASE {database}").as_bytes())
            .await?;
        let rename = |cell: &str| {
            if cell == &*shard.database {
                name.to_owned()
            } else {
                cell.replacen(&database, &quoted(name), 1)
            }
        };
        let rows: Vec<_> = rows.iter().map(|row| mapped(row, rename)).collect();
        self.put_result(&columns, &rows, way)?;
        Ok(Shown::Yes)
    }

    /// Events and routines: of all databases of a server only the shard's own.
    async fn show_own_rows(
        &mut self,
        lexed: &Lexed<'_>,
        show: &Show,
        way: Way<'_>,
    ) -> Result<Shown, SessionError> {
        let Some(shard) = self.shard_shown(show.database.as_deref()).await? else {
            return Err(crate::plan::PlanError::NoKeyspace.into());
        };
        let kind = match show.kind {
            ShowKind::Events => format!("EVENTS FROM {}", quoted(&shard.database)),
            ShowKind::OpenTables => format!("OPEN TABLES FROM {}", quoted(&shard.database)),
            ShowKind::ProcedureStatus => "PROCEDURE STATUS".to_owned(),
            ShowKind::Other(_) if lexed.is_word(2, "body") => "PACKAGE BODY STATUS".to_owned(),
            ShowKind::Other(_) => "PACKAGE STATUS".to_owned(),
            _ => "FUNCTION STATUS".to_owned(),
        };
        let (columns, rows) = self
            .small_result(&shard.id, format!("SHOW {kind}").as_bytes())
            .await?;
        let own =
            |row: &Vec<Option<String>>| row.first().and_then(Option::as_deref) == Some(&*shard.database);
        let named = |row: &Vec<Option<String>>| match (&show.like, row.get(1)) {
            (Some(pattern), Some(Some(name))) => like(name, pattern),
            (Some(_), _) => false,
            (None, _) => true,
        };
        let mut rows: Vec<_> = rows.iter().map(strings).filter(own).filter(named).collect();
        for name in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = Some(shard.id.keyspace.to_string());
        }
        let headers: Vec<_> = columns
            .iter()
            .map(|c| String::from_utf8_lossy(&c.name).into_owned())
            .collect();
        let kept = self.judged(lexed, show, &headers, &rows).await?;
        let rows: Vec<_> = kept
            .into_iter()
            .filter_map(|i| rows.get(i))
            .map(encoded)
            .collect();
        self.put_result(&columns, &rows, way)?;
        Ok(Shown::Yes)
    }

    /// `SHOW COLUMNS FROM table FROM keyspace`, with the shard's name of the keyspace; and of a table in the database
    /// of the servers' own that the session chose.
    async fn show_of_table(
        &mut self,
        lexed: &Lexed<'_>,
        class: &Classified,
        show: &Show,
        way: Way<'_>,
    ) -> Result<Shown, SessionError> {
        let own = self.state.target.keyspace.clone();
        let virtual_ = own.filter(|k| show.database.is_none() && is_virtual(k.as_str()));
        let (at, database) = match (database_token(lexed), virtual_) {
            (Some(at), _) => {
                let Some(name) = show.database.as_deref().filter(|n| !is_virtual(n)) else {
                    return Ok(Shown::NotYet);
                };
                let unknown = || SessionError::UnknownDatabase(name.to_owned());
                let shard = self.shard_shown(Some(name)).await?.ok_or_else(unknown)?;
                (lexed.range(at), quoted(&shard.database))
            }
            (None, Some(name)) => {
                let Some(table) = table_token(lexed) else {
                    return Ok(Shown::NotYet);
                };
                let start = lexed.range(table).start;
                (start..start, format!("{}.", quoted(name.as_str())))
            }
            (None, None) => return Ok(Shown::NotYet),
        };
        let mut sql = lexed.src().to_vec();
        sql.splice(at, database.into_bytes());
        self.show_as(sql.into(), class, show, way).await
    }

    /// `SHOW TABLES` where the session chose a database of the servers' own.
    async fn show_virtual(
        &mut self,
        lexed: &Lexed<'_>,
        class: &Classified,
        show: &Show,
        way: Way<'_>,
    ) -> Result<Shown, SessionError> {
        let own = self.state.target.keyspace.clone();
        let Some(name) = own.filter(|k| is_virtual(k.as_str())) else {
            return Ok(Shown::NotYet);
        };
        let verb = |at: &usize| lexed.is_word(*at, "tables") || lexed.is_word(*at, "status");
        let Some(verb) = (1..lexed.len()).find(verb) else {
            return Ok(Shown::NotYet);
        };
        let behind = lexed.range(verb).end;
        let mut sql = lexed.src().to_vec();
        sql.splice(
            behind..behind,
            format!(" FROM {}", quoted(name.as_str())).into_bytes(),
        );
        self.show_as(sql.into(), class, show, way).await
    }

    /// Runs a SHOW in other words on a shard of the keyspace it is about.
    async fn show_as(
        &mut self,
        sql: Bytes,
        class: &Classified,
        show: &Show,
        way: Way<'_>,
    ) -> Result<Shown, SessionError> {
        let shard = match self.shard_shown(show.database.as_deref()).await? {
            Some(shard) => shard.id,
            None => self.any_shard().await?,
        };
        let options = self.view.lex_options(self.state.sql_mode);
        let lexed = lex(&sql, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let plan = self.plan_for(&lexed, Some(&shard.keyspace), Some(&shard.shard))?;
        self.run_plan(&plan, &sql, &lexed, class, way).await?;
        Ok(Shown::Yes)
    }
}

/// SHOWs of which every server says the same.
fn is_alike(word: &str) -> bool {
    ["AUTHORS", "CONTRIBUTORS", "LOCALES"].contains(&word)
}

/// The query that gives the numbers of the rows for which a condition holds.
fn judging(columns: &[String], rows: &[Vec<Option<String>>], condition: &[u8]) -> Vec<u8> {
    let row = |(number, row): (usize, &Vec<Option<String>>)| {
        let value = |(column, cell): (&String, &Option<String>)| {
            let value = cell.as_deref().map_or("NULL".to_owned(), text);
            format!("{value} AS {}", quoted(column))
        };
        let values: Vec<_> = columns.iter().zip(row).map(value).collect();
        format!("SELECT {number} AS __sg_row, {}", values.join(", "))
    };
    let rows: Vec<_> = rows.iter().enumerate().map(row).collect();
    let mut out = format!(
        "SELECT __sg_row FROM ({}) AS __sg_rows WHERE ",
        rows.join(" UNION ALL ")
    )
    .into_bytes();
    out.extend_from_slice(condition);
    out
}

/// The token of the keyspace in `SHOW COLUMNS FROM table FROM keyspace`.
fn database_token(lexed: &Lexed<'_>) -> Option<usize> {
    let table = table_token(lexed)?;
    let from = table + if lexed.is(table + 1, TokenKind::Dot) { 3 } else { 1 };
    is_from(lexed, from).then_some(from + 1)
}

/// The token of the table in `SHOW COLUMNS FROM table`.
fn table_token(lexed: &Lexed<'_>) -> Option<usize> {
    (1..lexed.len()).find(|at| is_from(lexed, *at)).map(|at| at + 1)
}

fn is_from(lexed: &Lexed<'_>, at: usize) -> bool {
    use shardgate_sql::Keyword as K;
    matches!(lexed.keyword(at), Some(K::From | K::In))
}

fn strings(row: &Bytes) -> Vec<Option<String>> {
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).into_owned();
    cells(row).map(|cell| cell.ok().flatten().map(text)).collect()
}

fn encoded(row: &Vec<Option<String>>) -> Bytes {
    let mut out = Vec::new();
    for cell in row {
        put_cell(&mut out, cell.as_ref().map(String::as_bytes));
    }
    out.into()
}

fn mapped(row: &Bytes, change: impl Fn(&str) -> String) -> Bytes {
    let changed: Vec<_> = strings(row)
        .into_iter()
        .map(|cell| cell.map(|c| change(&c)))
        .collect();
    encoded(&changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::LexOptions;

    #[test]
    fn the_keyspace_behind_a_table_is_found() {
        for (sql, expected) in [
            ("SHOW FULL COLUMNS FROM orders FROM shop LIKE 'a'", Some("shop")),
            ("SHOW KEYS IN `lookup`.orders IN `shop`", Some("`shop`")),
            ("SHOW INDEX FROM shop.orders", None),
            ("SHOW COLUMNS FROM orders WHERE Field IN ('a')", None),
        ] {
            let options = LexOptions::default();
            let lexed = lex(sql.as_bytes(), &options).unwrap();
            let found = database_token(&lexed).map(|at| String::from_utf8_lossy(lexed.text(at)).into_owned());
            assert_eq!(found.as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn a_condition_is_judged_over_rows_as_values() {
        let rows = [vec![Some("shop".to_owned()), None]];
        let sql = judging(&["Db".into(), "a`b".into()], &rows, b"Db = 'shop'");
        assert_eq!(
            String::from_utf8(sql).unwrap(),
            "SELECT __sg_row FROM (SELECT 0 AS __sg_row, _utf8mb4'shop' AS `Db`, NULL AS `a``b`) AS __sg_rows WHERE \
             Db = 'shop'"
        );
    }
}
