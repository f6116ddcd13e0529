//! `information_schema` through the gateway: a statement that reads it is rewritten to show keyspaces where a shard's
//! server has databases, and runs on one shard of the keyspace it asks about.
//!
//! Estimates (`TABLE_ROWS`, `AUTO_INCREMENT`, sizes) are that one shard's. What would tell of one server among many is
//! refused unless the session chose a shard.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use shardgate_sql::{Classified, ExplainFormat, Lexed, StatementKind, TokenKind};
use shardgate_wire::codec::text::cells;

use super::anywhere::From;
use super::bodies::of_others;
use super::query::Form;
use super::schemata_names::{Asked, Choice};
use super::schemata_views::{About, Known, about, derived, is_alike, spelled, tells_of_others, text};
use super::target::is_virtual;
use super::{Session, SessionError};
use crate::base::{KeyspaceName, ShardName};
use crate::plan::{PlanError, Shard, SystemTable, SystemTables, may_name_system, system_tables};
use crate::vindex::Value;

/// A statement with the servers' own tables replaced, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rewritten {
    /// Its text.
    pub(super) sql: Bytes,
    /// The keyspace it asks about.
    pub(super) keyspace: KeyspaceName,
    /// The shard that answers.
    pub(super) shard: ShardName,
}

impl Session {
    /// What becomes of a statement that reads the servers' own tables; `None` if it reads none.
    pub(super) async fn schemata(
        &mut self,
        lexed: &Lexed<'_>,
        class: &Classified,
        form: Form<'_>,
    ) -> Result<Option<Rewritten>, SessionError> {
        let chosen = self.state.target.keyspace.clone();
        let virtual_ = chosen.as_ref().filter(|k| is_virtual(k.as_str()));
        if let (Some(name), StatementKind::Describe { table }) = (virtual_, class.kind)
            && !lexed.is(table + 1, TokenKind::Dot)
        {
            let name = name.clone();
            return self.describe_virtual(lexed, table, &name).await.map(Some);
        }
        if virtual_.is_none() && !may_name_system(lexed) || !reads(class.kind) {
            return Ok(None);
        }
        let Some(found) = system_tables(lexed, virtual_.map(KeyspaceName::as_str)) else {
            return Err(unsupported(
                "this form of a statement on the servers' own tables",
                "write it as a plain SELECT",
            ));
        };
        if found.tables.is_empty() {
            return Ok(None);
        }
        self.check_tables(&found)?;
        let session = chosen.as_ref().filter(|k| !is_virtual(k.as_str()));
        let asked = Asked::read(lexed, |n| self.param_text(form, n));
        let all: BTreeSet<_> = self.view.catalog.keyspaces().map(|k| k.name.clone()).collect();
        let keyspace = match asked.choose(&all, session) {
            Choice::One(name) => name,
            Choice::Unclear if needs_one_keyspace(&found) => {
                return Err(unsupported(
                    "information_schema of several keyspaces at once",
                    "USE one keyspace, or compare TABLE_SCHEMA with its name",
                ));
            }
            Choice::Any | Choice::Unclear => match session {
                Some(own) => own.clone(),
                None => self
                    .view
                    .catalog
                    .any_keyspace()
                    .ok_or(PlanError::NoKeyspace)?
                    .name
                    .clone(),
            },
        };
        let shard = self.shard_asked(&keyspace).await?;
        self.check_mixed(&found, &keyspace)?;
        let replacements = self.replacements(lexed, &found, &asked, &all, &shard).await?;
        Ok(Some(Rewritten {
            sql: replaced(lexed, &found, &replacements),
            keyspace,
            shard: shard.id.shard,
        }))
    }

    /// `DESCRIBE` of a table in the database of the servers' own that the session chose.
    async fn describe_virtual(
        &mut self,
        lexed: &Lexed<'_>,
        table: usize,
        database: &KeyspaceName,
    ) -> Result<Rewritten, SessionError> {
        let mut sql = lexed.src().to_vec();
        let start = lexed.range(table).start;
        sql.splice(
            start..start,
            format!("{}.", crate::exec::quoted(database.as_str())).into_bytes(),
        );
        let shard = self.any_shard().await?;
        Ok(Rewritten {
            sql: sql.into(),
            keyspace: shard.keyspace,
            shard: shard.shard,
        })
    }

    /// A parameter's value, if it is text.
    fn param_text(&self, form: Form<'_>, number: usize) -> Option<String> {
        let Form::Prepared(bound) = form else { return None };
        match super::values::of_param(bound.value(number), &self.state.charset)? {
            Value::Text(bytes) | Value::Bytes(bytes) => String::from_utf8(bytes.into()).ok(),
            _ => None,
        }
    }

    /// Whether all statements go to one server anyway, by choice or because there is only one.
    pub(super) fn has_one_server(&self) -> bool {
        let shards = self
            .view
            .catalog
            .keyspaces()
            .map(|k| k.shards.len())
            .sum::<usize>();
        self.state.target.shard.is_some() || shards == 1
    }

    fn check_tables(&self, found: &SystemTables) -> Result<(), SessionError> {
        if found
            .tables
            .iter()
            .any(|t| tells_of_others(&t.database, &t.table))
        {
            return Err(of_others());
        }
        if self.has_one_server() {
            return Ok(());
        }
        for table in &found.tables {
            if !is_information_schema(table) {
                if !is_alike(&table.database, &table.table) {
                    return Err(of_one_server());
                }
                continue;
            }
            match about(&table.table) {
                About::Schemas(_) | About::Server => {}
                About::OneServer => return Err(of_one_server()),
                About::Sessions | About::Grants => return Err(of_others()),
            }
        }
        Ok(())
    }

    /// The shard of a keyspace that answers: the one chosen, else one that the session holds anyway, else the first that
    /// answers.
    pub(super) async fn shard_asked(&mut self, keyspace: &KeyspaceName) -> Result<Shard, SessionError> {
        let known = self.keyspace_named(keyspace)?;
        let target = &self.state.target;
        let chosen = target
            .shard
            .clone()
            .filter(|_| target.keyspace.as_ref() == Some(keyspace));
        let held = self.held_shard().filter(|id| id.keyspace == *keyspace);
        let given = chosen
            .or(held.map(|id| id.shard))
            .and_then(|name| known.shard_index(&name));
        let index = match given {
            Some(index) => index,
            None => self.find_answering(&known, From::First).await?,
        };
        let unknown = || SessionError::UnknownDatabase(keyspace.to_string());
        known.shards.get(index).cloned().ok_or_else(unknown)
    }

    /// Next to tables of a keyspace, one shard must hold all that is asked for.
    fn check_mixed(&self, found: &SystemTables, keyspace: &KeyspaceName) -> Result<(), SessionError> {
        let shards = self
            .view
            .catalog
            .keyspace(keyspace.as_str())
            .map_or(0, |k| k.shards.len());
        let target = &self.state.target;
        let chosen = target.shard.is_some() && target.keyspace.as_ref() == Some(keyspace);
        if found.mixed && shards != 1 && !chosen {
            return Err(unsupported(
                "a statement on tables of several shards and on the servers' own tables",
                "read one after the other, or choose a shard: USE keyspace:shard",
            ));
        }
        Ok(())
    }

    /// What stands in for each of the tables.
    async fn replacements(
        &mut self,
        lexed: &Lexed<'_>,
        found: &SystemTables,
        asked: &Asked,
        all: &BTreeSet<KeyspaceName>,
        shard: &Shard,
    ) -> Result<Vec<String>, SessionError> {
        let keyspace = &shard.id.keyspace;
        let known = Known {
            database: &shard.database,
            keyspace: keyspace.as_str(),
        };
        let own = asked.wants_information_schema(all);
        let mut learned: HashMap<String, Vec<String>> = HashMap::new();
        let mut out = Vec::with_capacity(found.tables.len());
        for table in &found.tables {
            let About::Schemas(filter) = about_of(table) else {
                out.push(plain(table));
                continue;
            };
            let key = table.table.to_ascii_uppercase();
            let lists_all = key == "SCHEMATA" && all.len() > 1;
            if !learned.contains_key(&key) {
                let columns = self.columns_of_view(shard, &key).await?;
                learned.insert(key.clone(), columns);
            }
            let columns = learned.get(&key).map_or(&[][..], Vec::as_slice);
            let more = if lists_all {
                self.other_schemata(asked, all, keyspace, columns).await?
            } else {
                Vec::new()
            };
            let columns = spelled(lexed, columns);
            out.push(derived(&table.table, filter, &columns, known, own, &more));
        }
        Ok(out)
    }

    /// The columns of a table of `information_schema`, in order. They differ from version to version.
    async fn columns_of_view(&mut self, shard: &Shard, table: &str) -> Result<Vec<String>, SessionError> {
        let sql = format!(
            "SELECT * FROM information_schema.{} LIMIT 0",
            crate::exec::quoted(table)
        );
        let (columns, _) = self.small_result(&shard.id, sql.as_bytes()).await?;
        let name = |c: &shardgate_wire::ColumnDef| String::from_utf8_lossy(&c.name).into_owned();
        Ok(columns.iter().map(name).collect())
    }

    /// Rows of SCHEMATA for the other keyspaces that are asked for, as lists of expressions.
    async fn other_schemata(
        &mut self,
        asked: &Asked,
        all: &BTreeSet<KeyspaceName>,
        answering: &KeyspaceName,
        columns: &[String],
    ) -> Result<Vec<String>, SessionError> {
        let listed = |k: &&KeyspaceName| asked.listed().is_none_or(|names| names.contains(k.as_str()));
        let others: Vec<_> = all.iter().filter(|k| *k != answering).filter(listed).collect();
        let mut rows = Vec::with_capacity(others.len());
        for keyspace in others {
            let shard = self.shard_asked(keyspace).await?;
            let list: Vec<_> = columns.iter().map(|c| crate::exec::quoted(c)).collect();
            let sql = format!(
                "SELECT {} FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}",
                list.join(", "),
                text(&shard.database)
            );
            let (_, found) = self.small_result(&shard.id, sql.as_bytes()).await?;
            rows.extend(found.first().map(|row| expressions(row, columns, keyspace)));
        }
        Ok(rows)
    }
}

/// A row's cells as SQL, the schema's name replaced.
fn expressions(row: &Bytes, columns: &[String], keyspace: &KeyspaceName) -> String {
    let values: Vec<_> = cells(row)
        .zip(columns)
        .map(|(cell, column)| match cell {
            _ if column.eq_ignore_ascii_case("SCHEMA_NAME") => text(keyspace.as_str()),
            Ok(Some(bytes)) => text(&String::from_utf8_lossy(bytes)),
            Ok(None) | Err(_) => "NULL".to_owned(),
        })
        .collect();
    values.join(", ")
}

/// Which statements may read the servers' own tables.
fn reads(kind: StatementKind) -> bool {
    use StatementKind as S;
    match kind {
        S::Select | S::Insert | S::Replace | S::Update | S::Delete | S::Do => true,
        S::Explain { format, .. } => format != ExplainFormat::Shardgate,
        _ => false,
    }
}

/// Whether a table is read of which each keyspace has its own part. SCHEMATA tells of all.
fn needs_one_keyspace(found: &SystemTables) -> bool {
    let of_schemas = |t: &&SystemTable| matches!(about_of(t), About::Schemas(_));
    found
        .tables
        .iter()
        .filter(of_schemas)
        .any(|t| !t.table.eq_ignore_ascii_case("SCHEMATA"))
}

fn is_information_schema(table: &SystemTable) -> bool {
    table.database.eq_ignore_ascii_case("information_schema")
}

fn about_of(table: &SystemTable) -> About {
    if is_information_schema(table) {
        about(&table.table)
    } else {
        About::OneServer
    }
}

/// A table's full name, whatever database its session chose.
fn plain(table: &SystemTable) -> String {
    format!("{}.{}", table.database, crate::exec::quoted(&table.table))
}

/// The statement with each table replaced. Columns that name the database lose that: what they are in has none now.
fn replaced(lexed: &Lexed<'_>, found: &SystemTables, replacements: &[String]) -> Bytes {
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for (table, text) in found.tables.iter().zip(replacements) {
        let alias = if table.renamed || !text.starts_with('(') {
            String::new()
        } else {
            format!(" AS {}", crate::exec::quoted(&table.table))
        };
        edits.push((lexed.span(table.tokens.clone()), format!("{text}{alias}")));
    }
    for at in &found.qualifiers {
        edits.push((lexed.range(*at).start..lexed.range(at + 2).start, String::new()));
    }
    edits.sort_by_key(|(range, _)| range.start);
    let src = lexed.src();
    let mut out = Vec::with_capacity(src.len() + edits.iter().map(|(_, t)| t.len()).sum::<usize>());
    let mut behind = 0;
    for (range, text) in edits {
        out.extend_from_slice(src.get(behind..range.start).unwrap_or_default());
        out.extend_from_slice(text.as_bytes());
        behind = range.end;
    }
    out.extend_from_slice(src.get(behind..).unwrap_or_default());
    out.into()
}

fn unsupported(what: &'static str, hint: &'static str) -> SessionError {
    SessionError::Unsupported { what, hint }
}

fn of_one_server() -> SessionError {
    unsupported(
        "a table that tells of one server among many",
        "choose a shard first: USE keyspace:shard",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    fn rewritten(sql: &str, session: Option<&str>) -> String {
        let options = LexOptions::default();
        let lexed = lex(sql.as_bytes(), &options).unwrap();
        let found = system_tables(&lexed, session).unwrap();
        let replacements: Vec<_> = found
            .tables
            .iter()
            .map(|t| match about_of(t) {
                About::Schemas(_) => format!("({})", t.table),
                _ => plain(t),
            })
            .collect();
        String::from_utf8(replaced(&lexed, &found, &replacements).to_vec()).unwrap()
    }

    #[test]
    fn tables_are_replaced_and_keep_their_aliases() {
        assert_eq!(
            rewritten(
                "SELECT information_schema.tables.table_name, c.* FROM information_schema.tables JOIN \
                 `information_schema`.columns c /* all */ WHERE c.table_name = tables.table_name",
                None
            ),
            "SELECT tables.table_name, c.* FROM (tables) AS `tables` JOIN (columns) c /* all */ WHERE c.table_name = \
             tables.table_name"
        );
    }

    #[test]
    fn bare_names_are_given_their_database() {
        assert_eq!(
            rewritten("SELECT * FROM engines, tables t", Some("information_schema")),
            "SELECT * FROM information_schema.`engines`, (tables) t"
        );
    }

    #[test]
    fn a_row_becomes_expressions() {
        let mut row = Vec::new();
        for cell in [Some(&b"def"[..]), Some(b"shop_00"), None] {
            shardgate_wire::codec::text::put_cell(&mut row, cell);
        }
        let columns = ["CATALOG_NAME", "SCHEMA_NAME", "SQL_PATH"].map(str::to_owned);
        assert_eq!(
            expressions(&row.into(), &columns, &"shop".into()),
            "_utf8mb4'def', _utf8mb4'shop', NULL"
        );
    }
}
