//! One connection: reads commands, answers each.

use std::sync::Arc;

use bytes::Bytes;
use shardgate_sql::split_statements;
use shardgate_wire::codec::{ColumnDef, OkPacket, PrepareOk};
use shardgate_wire::{Authenticator, Capabilities, ClientConn, ColumnType, Command, ErrPacket, WireError};
use tokio_util::sync::CancellationToken;

use super::err_packet;
use super::prepared::Statements;
use super::results::{Protocol, column_def};
use crate::engine::parse::Parsed;
use crate::engine::session::{Done, Session};
use crate::error::{SqlError, SqlResult};
use crate::tablet::{Enlisted, Tablet};

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The client said so, or is gone.
    Wire(WireError),
    /// KILL.
    Killed,
    /// The tablet stops.
    Shutdown,
    /// By a reset, for a fault.
    Reset,
    /// Without a word.
    Quiet,
}

/// A client's connection.
pub(super) struct Connection {
    pub(super) tablet: Arc<Tablet>,
    pub(super) conn: ClientConn,
    /// Away on the blocking pool while a statement runs.
    pub(super) session: Option<Box<Session>>,
    pub(super) enlisted: Enlisted,
    pub(super) stop: CancellationToken,
    /// The status last told, for heads of results while the session is away.
    pub(super) last_status: u16,
    statements: Statements,
}

/// Opens the session of a client that has logged in.
async fn open(tablet: &Arc<Tablet>, conn: &ClientConn, id: u32) -> SqlResult<Box<Session>> {
    let user = String::from_utf8_lossy(&conn.login().user).into_owned();
    let host = conn
        .transport()
        .peer_addr()
        .map_or_else(|| "localhost".to_owned(), |a| a.ip().to_string());
    let database = conn.login().database.clone();
    let count_found = conn.can(Capabilities::FOUND_ROWS);
    let tablet = Arc::clone(tablet);
    let opened = tokio::task::spawn_blocking(move || {
        let mut session = Session::open(tablet, id, format!("{user}@{host}"))?;
        session.count_found = count_found;
        if let Some(database) = database {
            session.use_database(&String::from_utf8_lossy(&database))?;
        }
        Ok(Box::new(session))
    });
    opened
        .await
        .unwrap_or_else(|_| Err(SqlError::internal("the session could not be opened")))
}

/// Serves a client until one side ends it.
pub(super) async fn serve(
    tablet: Arc<Tablet>,
    mut conn: ClientConn,
    id: u32,
    users: &impl Authenticator,
    stop: CancellationToken,
) {
    let session = match open(&tablet, &conn, id).await {
        Ok(session) => session,
        Err(e) => {
            conn.put_err(&err_packet(&e));
            // The connection is given up either way.
            let _ = conn.flush().await;
            return;
        }
    };
    let interrupt = session.conn.get_interrupt_handle();
    let enlisted = tablet.enlist(
        id,
        session.account.clone(),
        Arc::clone(&session.shared),
        interrupt,
    );
    enlisted.process.end(session.db.as_deref());
    let mut connection = Connection {
        tablet,
        conn,
        session: Some(session),
        enlisted,
        stop,
        last_status: 0,
        statements: Statements::default(),
    };
    let end = connection.serve(users).await;
    connection.close(end).await;
}

impl Connection {
    async fn serve(&mut self, users: &impl Authenticator) -> End {
        if let Err(end) = self.ok(&Done::default(), false) {
            return end;
        }
        let dead = self.enlisted.process.dead.clone();
        loop {
            if let Err(end) = self.flush().await {
                return end;
            }
            let command = tokio::select! {
                command = self.conn.read_command() => command,
                () = dead.cancelled() => return End::Killed,
                () = self.stop.cancelled() => return End::Shutdown,
            };
            let out = match command {
                Ok(Command::Quit) => return End::Quiet,
                Ok(command) => self.command(command, users).await,
                Err(e @ (WireError::Malformed(_) | WireError::PacketTooLarge { .. })) => {
                    if let Some(packet) = e.client_error() {
                        self.conn.put_err(&packet);
                    }
                    Ok(())
                }
                Err(e) => return End::Wire(e),
            };
            if let Err(end) = out {
                return end;
            }
        }
    }

    async fn close(mut self, end: End) {
        if let Some(mut session) = self.session.take() {
            // Closing undoes what was not committed; on the blocking pool, since it touches the file.
            let closed = tokio::task::spawn_blocking(move || session.rollback()).await;
            if let Ok(Err(e)) = closed {
                tracing::warn!(error = %e, "rollback at the end of a session failed");
            }
        }
        let message = match end {
            End::Killed => Some(SqlError::new(1927, *b"70100", "Connection was killed")),
            // A process that dies says nothing: its sockets are closed.
            End::Shutdown if self.tablet.is_down() => None,
            End::Shutdown => Some(SqlError::new(1053, *b"08S01", "Server shutdown in progress")),
            End::Reset => {
                self.conn.reset();
                return;
            }
            End::Wire(e) => {
                tracing::trace!(error = %e, "connection ended");
                None
            }
            End::Quiet => None,
        };
        if let Some(e) = message {
            self.conn.put_err(&err_packet(&e));
        }
        // A client that does not read must not hold up the end.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(200), async {
            let _ = self.conn.flush().await;
            let _ = self.conn.shutdown().await;
        })
        .await;
    }

    async fn command(&mut self, command: Command, users: &impl Authenticator) -> Result<(), End> {
        // A frozen process answers nothing at all. Statements and pings look for themselves.
        let looks = matches!(
            command,
            Command::Query(_) | Command::StmtExecute { .. } | Command::Ping | Command::Quit
        );
        if !looks && self.tablet.faults.swallows_connections() {
            tokio::select! {
                () = self.stop.cancelled() => {}
                _ = self.conn.watch_closed() => {}
            }
            return Err(End::Quiet);
        }
        match command {
            Command::Quit => Err(End::Quiet),
            Command::Query(text) => self.query(&text).await,
            Command::InitDb(name) => {
                let used = self.session()?.use_database(&String::from_utf8_lossy(&name));
                self.answer(used)
            }
            Command::Ping => self.ping().await,
            Command::Statistics => {
                let line = format!(
                    "Uptime: {}  Threads: {}  Questions: {}",
                    self.tablet.uptime(),
                    self.tablet.connections(),
                    self.tablet.questions.load(std::sync::atomic::Ordering::Relaxed)
                );
                self.conn.put_raw(line.as_bytes());
                Ok(())
            }
            Command::FieldList { table, wildcard } => self.field_list(&table, &wildcard).await,
            Command::ProcessKill(id) => {
                let killed = self.tablet.kill(u64::from(id), false);
                self.answer(killed)
            }
            Command::SetOption(option) => {
                if option > 1 {
                    return self.answer(Err(SqlError::new(1047, *b"08S01", "Unknown command")));
                }
                self.conn.set_multi_statements(option == 0);
                let end = OkPacket::with_status(self.status(false)?);
                self.conn.put_rows_end(&end);
                Ok(())
            }
            Command::ResetConnection => {
                self.statements.clear();
                let reset = self.session()?.reset();
                self.answer(reset)
            }
            Command::ChangeUser(request) => {
                self.conn.change_user(*request, users).await?;
                self.statements.clear();
                let database = self.conn.login().database.clone();
                let session = self.session()?;
                let mut out = session.reset();
                session.db = None;
                if let (Ok(()), Some(name)) = (&out, database.filter(|d| !d.is_empty())) {
                    out = session.use_database(&String::from_utf8_lossy(&name));
                }
                self.answer(out)
            }
            Command::StmtPrepare(text) => self.prepare(&text).await,
            Command::StmtExecute {
                statement_id,
                payload,
            } => {
                let backslashes = !self
                    .session()?
                    .vars
                    .text("sql_mode")
                    .contains("NO_BACKSLASH_ESCAPES");
                match self.statements.bind(statement_id, &payload, backslashes) {
                    Ok(parsed) => self.statement(parsed, Protocol::Binary, false).await.map(|_| ()),
                    Err(e) => self.answer(Err(e)),
                }
            }
            Command::StmtSendLongData {
                statement_id,
                param,
                data,
            } => {
                self.statements.long_data(statement_id, param, &data);
                Ok(())
            }
            Command::StmtClose(id) => {
                self.statements.close(id);
                Ok(())
            }
            Command::StmtReset(id) => {
                let reset = self.statements.reset(id);
                self.answer(reset)
            }
            Command::StmtFetch { statement_id, .. } => {
                let message = format!("The statement ({statement_id}) has no open cursor.");
                self.answer(Err(SqlError::new(1421, *b"HY000", message)))
            }
            Command::Unknown(_) => {
                self.conn
                    .put_err(&ErrPacket::new(1047, *b"08S01", "Unknown command"));
                Ok(())
            }
        }
    }

    /// OK or the error.
    fn answer(&mut self, out: SqlResult<()>) -> Result<(), End> {
        match out {
            Ok(()) => self.ok(&Done::default(), false),
            Err(e) => {
                self.fail(&e);
                Ok(())
            }
        }
    }

    async fn ping(&mut self) -> Result<(), End> {
        let verdict = self.tablet.faults.judge(None);
        if verdict.black_hole || verdict.hang {
            tokio::select! {
                () = self.stop.cancelled() => {}
                _ = self.conn.watch_closed() => {}
            }
            return Err(End::Quiet);
        }
        if verdict.reset {
            return Err(End::Reset);
        }
        tokio::time::sleep(verdict.delay).await;
        match verdict.error {
            Some(e) => self.answer(Err(e)),
            None => self.answer(Ok(())),
        }
    }

    async fn query(&mut self, text: &[u8]) -> Result<(), End> {
        let options = self.session()?.lex_options();
        let ranges = if self.conn.can(Capabilities::MULTI_STATEMENTS) {
            match split_statements(text, &options) {
                Ok(ranges) if !ranges.is_empty() => ranges,
                Ok(_) => std::iter::once(0..text.len()).collect(),
                Err(e) => return self.answer(Err(SqlError::syntax(e))),
            }
        } else {
            std::iter::once(0..text.len()).collect()
        };
        let last = ranges.len() - 1;
        for (i, range) in ranges.into_iter().enumerate() {
            // A statement before may have changed how the next is read.
            let options = self.session()?.lex_options();
            let went_well = match Parsed::new(&text[range], options) {
                Ok(parsed) => self.statement(parsed, Protocol::Text, i < last).await?,
                Err(e) => self.fail(&e),
            };
            if !went_well {
                break;
            }
        }
        Ok(())
    }

    /// A query's columns, told on the blocking pool.
    async fn columns_of(&mut self, parsed: Parsed) -> Result<SqlResult<Vec<ColumnDef>>, End> {
        let mut session = self.session.take().ok_or(End::Quiet)?;
        let told = tokio::task::spawn_blocking(move || {
            let out = session.describe_result(&parsed);
            (session, out)
        })
        .await;
        let Ok((session, out)) = told else {
            return Err(End::Quiet);
        };
        self.session = Some(session);
        Ok(out.map(|metas| metas.unwrap_or_default().iter().map(column_def).collect()))
    }

    async fn prepare(&mut self, text: &[u8]) -> Result<(), End> {
        let options = self.session()?.lex_options();
        let parsed = match Parsed::new(text, options) {
            Ok(parsed) => parsed,
            Err(e) => return self.answer(Err(e)),
        };
        let columns = match self.columns_of(parsed.clone()).await? {
            Ok(columns) => columns,
            Err(e) => return self.answer(Err(e)),
        };
        let placeholders = parsed.placeholders;
        let id = match self.statements.add(parsed) {
            Ok(id) => id,
            Err(e) => return self.answer(Err(e)),
        };
        let encoded = |column: &ColumnDef| {
            let mut out = Vec::new();
            column.encode(&mut out);
            Bytes::from(out)
        };
        let param = encoded(&ColumnDef {
            charset: 63,
            ..ColumnDef::new("?", ColumnType::VarString)
        });
        let params = vec![param; placeholders];
        let columns: Vec<Bytes> = columns.iter().map(encoded).collect();
        let status = self.status(false)?;
        let ok = PrepareOk {
            statement_id: id,
            ..PrepareOk::default()
        };
        self.conn.put_prepare_ok(ok, &params, &columns, status);
        Ok(())
    }

    async fn field_list(&mut self, table: &[u8], wildcard: &[u8]) -> Result<(), End> {
        let quoted = String::from_utf8_lossy(table).replace('`', "``");
        let options = self.session()?.lex_options();
        let parsed = match Parsed::new(format!("SELECT * FROM `{quoted}`").as_bytes(), options) {
            Ok(parsed) => parsed,
            Err(e) => return self.answer(Err(e)),
        };
        let columns = match self.columns_of(parsed).await? {
            Ok(columns) => columns,
            Err(e) => return self.answer(Err(e)),
        };
        let pattern = String::from_utf8_lossy(wildcard);
        for column in columns {
            let name = String::from_utf8_lossy(&column.name);
            let wanted = pattern.is_empty()
                || crate::engine::collate::like(
                    &name,
                    &pattern,
                    Some('\\'),
                    crate::engine::collate::Collation::Ci,
                );
            if wanted {
                self.conn.put_column(&column);
            }
        }
        let end = OkPacket::with_status(self.status(false)?);
        self.conn.put_rows_end(&end);
        Ok(())
    }
}
