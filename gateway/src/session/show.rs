//! `SHOW`: what the gateway knows better than any tablet it answers itself; the rest one tablet answers, under the
//! keyspace's name.

use std::fmt::Write as _;

use bytes::Bytes;
use shardgate_sql::{Classified, Lexed, Literal, Show, ShowKind, SqlMode, TokenKind, parse_show};
use shardgate_wire::{ColumnDef, OkPacket};

use super::query::Way;
use super::schemata_show::Shown;
use super::table::{Column, Table};
use super::target::Target;
use super::{Session, SessionError};
use crate::base::{ShardId, clock};

impl Session {
    /// Runs a SHOW.
    pub(super) async fn show(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        if class.pin.is_some() {
            return Err(SessionError::Unsupported {
                what: "a SHOW that leaves state behind",
                hint: "SELECT what is to be kept",
            });
        }
        let syntax = || SessionError::Syntax("near SHOW".into());
        let show = parse_show(lexed).ok_or_else(syntax)?;
        if self.show_schemata(lexed, class, &show, way).await? == Shown::Yes {
            return Ok(());
        }
        let table = match &show.kind {
            ShowKind::Databases => self.databases(),
            ShowKind::Warnings => self.warnings_table(false),
            ShowKind::Errors => self.warnings_table(true),
            ShowKind::CountWarnings => self.count_warnings("@@session.warning_count", false),
            ShowKind::CountErrors => self.count_warnings("@@session.error_count", true),
            ShowKind::ProcessList => self.process_list(show.full),
            ShowKind::VitessShards => self.vitess_shards(),
            ShowKind::VitessTablets => self.vitess_tablets(),
            ShowKind::VitessKeyspaces => self.vitess_keyspaces(),
            ShowKind::VitessTarget => self.vitess_target(),
            ShowKind::Variables => return self.show_variables(lexed, &show, way).await,
            ShowKind::Shardgate(topic) => self.show_shardgate(topic)?,
            ShowKind::Tables | ShowKind::TableStatus | ShowKind::Triggers => {
                return self.show_of_database(sql, lexed, class, &show, way).await;
            }
            ShowKind::Columns
            | ShowKind::Index
            | ShowKind::Events
            | ShowKind::OpenTables
            | ShowKind::ProcedureStatus
            | ShowKind::FunctionStatus
            | ShowKind::CreateTable
            | ShowKind::CreateView
            | ShowKind::CreateDatabase
            | ShowKind::CreateOther(_)
            | ShowKind::Status
            | ShowKind::Engines
            | ShowKind::Plugins
            | ShowKind::Privileges
            | ShowKind::Grants
            | ShowKind::Collation
            | ShowKind::CharacterSet
            | ShowKind::Other(_) => return self.planned(sql, lexed, class, way).await,
        };
        if show.filter.is_some() {
            return Err(SessionError::Unsupported {
                what: "WHERE in a SHOW that the gateway answers itself",
                hint: "use LIKE",
            });
        }
        let mut table = table;
        if let Some(tokens) = &show.limit {
            let (offset, count) = limit_of(lexed, tokens).ok_or_else(syntax)?;
            table.window(offset, count);
        }
        self.put_table(table, &show, way)
    }

    /// Buffers a table as a statement's answer.
    pub(super) fn put_table(
        &mut self,
        mut table: Table,
        show: &Show,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        table.filter(show.like.as_deref());
        self.put_rows(&table, way)?;
        // SHOW WARNINGS does not clear what it shows.
        if !matches!(
            show.kind,
            ShowKind::Warnings | ShowKind::Errors | ShowKind::CountWarnings | ShowKind::CountErrors
        ) {
            self.state.warnings.clear();
            self.state.warning_count = 0;
        }
        Ok(())
    }

    /// Buffers rows in the form the statement came in.
    pub(super) fn put_rows(&mut self, table: &Table, way: Way<'_>) -> Result<(), SessionError> {
        let status = self.status(way.more);
        match way.form {
            super::query::Form::Text => table.put(&mut self.client, status),
            super::query::Form::Prepared(_) => table.put_binary(&mut self.client, status)?,
        }
        self.state.row_count = -1;
        self.state.found_rows = table.len() as u64;
        Ok(())
    }

    fn is_keyspace(&self, name: Option<&str>) -> bool {
        name.is_some_and(|n| self.view.catalog.keyspace(n).is_some())
    }

    fn databases(&self) -> Table {
        let mut table = Table::of_text(&["Database"]);
        let mut names: Vec<String> = self
            .view
            .catalog
            .keyspaces()
            .map(|k| k.name.to_string())
            .collect();
        names.push("information_schema".into());
        names.sort();
        for name in names {
            table.push([name]);
        }
        table
    }

    fn warnings_table(&self, errors_only: bool) -> Table {
        let mut table = Table::new(Column::of_warnings());
        for w in self
            .state
            .warnings
            .iter()
            .filter(|w| !errors_only || w.level == "Error")
        {
            table.push([w.level.clone(), w.code.to_string(), w.message.clone()]);
        }
        table
    }

    fn count_warnings(&self, name: &str, errors_only: bool) -> Table {
        let mut table = Table::new(vec![Column::bigint(name)]);
        let count = if errors_only {
            self.state.warnings.iter().filter(|w| w.level == "Error").count()
        } else {
            usize::from(self.state.warning_count)
        };
        table.push([count.to_string()]);
        table
    }

    fn process_list(&self, full: bool) -> Table {
        let mut table = Table::new(vec![
            Column::bigint("Id"),
            Column::text("User"),
            Column::text("Host"),
            Column::text("db"),
            Column::text("Command"),
            Column::bigint("Time"),
            Column::text("State"),
            Column::text("Info"),
        ]);
        let now = clock::now();
        let own = self.registration.handle.user();
        for session in self
            .shared
            .sessions
            .list()
            .into_iter()
            .filter(|s| s.user() == own)
        {
            let p = session.process();
            // Without FULL the servers show the first hundred characters.
            let info = p.info.map(|sql| {
                let text = String::from_utf8_lossy(&sql).into_owned();
                if full {
                    text
                } else {
                    text.chars().take(100).collect()
                }
            });
            table.push_nullable(vec![
                Some(session.id.to_string()),
                Some(session.user().to_string()),
                Some(session.host.clone()),
                p.database,
                Some(p.command.to_owned()),
                Some(now.duration_since(p.since).as_secs().to_string()),
                Some(p.state.to_owned()),
                info,
            ]);
        }
        table
    }

    fn vitess_shards(&self) -> Table {
        let mut table = Table::of_text(&["Shards"]);
        let mut names: Vec<String> = self
            .view
            .catalog
            .keyspaces()
            .flat_map(|k| k.shards.iter().map(|s| s.id.to_string()))
            .collect();
        names.sort();
        for name in names {
            table.push([name]);
        }
        table
    }

    fn vitess_tablets(&self) -> Table {
        let mut table = Table::of_text(&[
            "Cell",
            "Keyspace",
            "Shard",
            "TabletType",
            "State",
            "Alias",
            "Hostname",
        ]);
        for (info, _) in self.shared.fleet.usage() {
            table.push([
                // Cells are Vitess's; here all tablets are in one place.
                String::new(),
                info.shard.keyspace.to_string(),
                info.shard.shard.to_string(),
                info.role.as_str().to_ascii_uppercase(),
                if self.shared.health.serving(&info.alias) {
                    "SERVING"
                } else {
                    "NOT_SERVING"
                }
                .to_owned(),
                info.alias.to_string(),
                info.address.to_string(),
            ]);
        }
        table
    }

    fn vitess_keyspaces(&self) -> Table {
        let mut table = Table::of_text(&["Database"]);
        let mut names: Vec<String> = self
            .view
            .catalog
            .keyspaces()
            .map(|k| k.name.to_string())
            .collect();
        names.sort();
        for name in names {
            table.push([name]);
        }
        table
    }

    fn vitess_target(&self) -> Table {
        let mut table = Table::of_text(&["Target"]);
        table.push([self.state.target.to_string()]);
        table
    }

    /// `SHOW TABLES` and its kin of a database: one tablet's answer, with the keyspace's name where the shard's database
    /// has another.
    async fn show_of_database(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        show: &Show,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let own = self.state.target.keyspace.as_ref().map(ToString::to_string);
        let asked = show.database.clone().or(own);
        let Some(name) = asked.filter(|n| self.is_keyspace(Some(n))) else {
            return self.planned(sql, lexed, class, way).await;
        };
        let Some(keyspace) = self.view.catalog.keyspace(&name).cloned() else {
            return Ok(());
        };
        let same = keyspace.shards.iter().all(|s| *s.database == *name);
        let target = Target {
            keyspace: Some(keyspace.name.clone()),
            ..self.state.target.clone()
        };
        if same && target == self.state.target && show.database.is_none() {
            return self.planned(sql, lexed, class, way).await;
        }
        let shard = self.shard_asked(&keyspace.name).await?;
        let database = shard.database.to_string();
        let statement = rendered(lexed, show, &database, self.state.sql_mode);
        let (mut columns, rows) = self.small_result(&shard.id, statement.as_bytes()).await?;
        for column in &mut columns {
            rename_header(column, &database, &name);
        }
        self.put_result(&columns, &rows, way)
    }

    /// Variables of one tablet, with the gateway's own in their place.
    async fn show_variables(
        &mut self,
        lexed: &Lexed<'_>,
        show: &Show,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let shard = self.any_shard().await?;
        let (columns, rows) = self.small_result(&shard, lexed.src()).await?;
        let version = self.view.options.server_version.clone();
        let own = |name: &str| -> Option<String> {
            match name {
                "autocommit" if !show.global => Some(if self.state.autocommit { "ON" } else { "OFF" }.into()),
                "version" => Some(version.clone()),
                "version_comment" => Some("Shardgate".into()),
                _ => None,
            }
        };
        let rows: Vec<Bytes> = rows.iter().map(|row| with_own_value(row, own)).collect();
        self.put_result(&columns, &rows, way)
    }

    /// Reads a small result of one tablet whole.
    pub(super) async fn small_result(
        &mut self,
        shard: &ShardId,
        sql: &[u8],
    ) -> Result<(Vec<ColumnDef>, Vec<Bytes>), SessionError> {
        let deadline = self.deadline();
        let mut lease = self.borrow(shard, deadline, self.work_of(sql)).await?;
        let result = self
            .ask(shard, deadline, lease.conn.result(sql, MAX_ROWS + 1))
            .await;
        let (columns, rows) = self.give_back(lease, result)?;
        if rows.len() > MAX_ROWS {
            return Err(SessionError::TooManyRows(MAX_ROWS));
        }
        Ok((columns, rows))
    }

    /// Buffers a tablet's small result that was read whole.
    pub(super) fn put_result(
        &mut self,
        columns: &[ColumnDef],
        rows: &[Bytes],
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let status = self.status(way.more);
        self.client.put_columns(columns, status, 0);
        for row in rows {
            match way.form {
                super::query::Form::Text => self.client.put_raw(row),
                super::query::Form::Prepared(_) => {
                    super::table::put_binary_row(&mut self.client, columns, row)?;
                }
            }
        }
        self.client.put_rows_end(&OkPacket::with_status(status));
        self.state.note_local();
        self.state.row_count = -1;
        self.state.found_rows = rows.len() as u64;
        Ok(())
    }

    /// The columns of a table, for `COM_FIELD_LIST`.
    pub(super) async fn columns_of(
        &mut self,
        table: &Bytes,
        wildcard: &Bytes,
    ) -> Result<Vec<ColumnDef>, SessionError> {
        let target = self.state.target.clone();
        let name = target
            .keyspace
            .as_ref()
            .ok_or(crate::plan::PlanError::NoKeyspace)?;
        let shard = self.shard_asked(name).await?;
        let deadline = self.deadline();
        let work = self.work_of(b"SHOW FIELDS FROM t");
        let mut lease = self.borrow(&shard.id, deadline, work).await?;
        let asking = lease.conn.field_list(table, wildcard);
        let columns = self.ask(&shard.id, deadline, asking).await;
        let columns = self.give_back(lease, columns)?;
        let keyspace = target.keyspace.map(|k| k.to_string()).unwrap_or_default();
        Ok(columns
            .into_iter()
            .map(|mut c| {
                if *c.schema == *shard.database.as_bytes() {
                    c.schema = Bytes::from(keyspace.clone().into_bytes());
                }
                c
            })
            .collect())
    }
}

/// Offset and count of `LIMIT count`, `LIMIT offset, count`, `LIMIT count OFFSET offset`.
fn limit_of(lexed: &Lexed<'_>, tokens: &std::ops::Range<usize>) -> Option<(usize, usize)> {
    let number = |at: usize| match lexed.literal(tokens.start + at)? {
        Literal::Int(n) => usize::try_from(n).ok(),
        _ => None,
    };
    match tokens.len() {
        1 => Some((0, number(0)?)),
        3 if lexed.is(tokens.start + 1, TokenKind::Comma) => Some((number(0)?, number(2)?)),
        3 if lexed.is_word(tokens.start + 1, "offset") => Some((number(2)?, number(0)?)),
        _ => None,
    }
}

/// How many rows of a tablet's SHOW are read at most.
const MAX_ROWS: usize = 100_000;

/// A SHOW about a database, with the shard's own database named.
fn rendered(lexed: &Lexed<'_>, show: &Show, database: &str, mode: SqlMode) -> String {
    let full = if show.full { "FULL " } else { "" };
    let kind = match show.kind {
        ShowKind::TableStatus => "TABLE STATUS",
        ShowKind::Triggers => "TRIGGERS",
        _ => "TABLES",
    };
    let mut out = format!("SHOW {full}{kind} FROM {}", crate::exec::quoted(database));
    if let Some(like) = &show.like {
        // The grammar takes a plain string only, so it is quoted as the session's own statements are.
        let quoted = like.replace('\'', "''");
        let quoted = if mode.no_backslash_escapes() {
            quoted
        } else {
            quoted.replace('\\', "\\\\")
        };
        let _ = write!(out, " LIKE '{quoted}'");
    }
    if let Some(filter) = &show.filter {
        let text = String::from_utf8_lossy(&lexed.src()[lexed.span(filter.clone())]).into_owned();
        let _ = write!(out, " WHERE {text}");
    }
    out
}

/// `Tables_in_shop_03 (pattern)` becomes `Tables_in_shop (pattern)`.
fn rename_header(column: &mut ColumnDef, database: &str, keyspace: &str) {
    let name = String::from_utf8_lossy(&column.name).into_owned();
    let old = format!("Tables_in_{database}");
    if let Some(rest) = name.strip_prefix(&old) {
        column.name = format!("Tables_in_{keyspace}{rest}").into();
    }
    if *column.schema == *database.as_bytes() {
        column.schema = Bytes::copy_from_slice(keyspace.as_bytes());
    }
}

/// A row of name and value, with the value replaced where the gateway has its own.
fn with_own_value(row: &Bytes, own: impl Fn(&str) -> Option<String>) -> Bytes {
    use shardgate_wire::codec::text::{cells, put_cell};
    let mut parts = cells(row);
    let (Some(Ok(Some(name))), Some(Ok(_))) = (parts.next(), parts.next()) else {
        return row.clone();
    };
    let Some(value) = std::str::from_utf8(name)
        .ok()
        .and_then(|n| own(&n.to_ascii_lowercase()))
    else {
        return row.clone();
    };
    let mut out = Vec::new();
    put_cell(&mut out, Some(name));
    put_cell(&mut out, Some(value.as_bytes()));
    out.into()
}

/// The keyspace before a dot at a table's name.
pub(super) fn qualifier_at(lexed: &Lexed<'_>, table: usize) -> Option<String> {
    let name = lexed.name(table)?;
    lexed
        .is(table + 1, TokenKind::Dot)
        .then(|| String::from_utf8_lossy(&name).into_owned())
}

/// The keyspace that a SHOW names, in its FROM or before a table's name.
pub(super) fn keyspace_named(lexed: &Lexed<'_>) -> Option<String> {
    parse_show(lexed)?.database
}
