//! One command of the protocol: which there are, and how each is answered.

use bytes::Bytes;
use shardgate_wire::codec::ChangeUser;
use shardgate_wire::codec::session_state::put_schema;
use shardgate_wire::{ClientConn, ColumnDef, Command, OkPacket};

use super::{More, Session, SessionEnd, SessionError, Target, shown};
use crate::exec::Kill;

impl Session {
    /// Runs one command and buffers its answer. An error of a statement is part of the answer; `Err` ends the session.
    pub(super) async fn command(&mut self, command: Command) -> Result<(), SessionEnd> {
        let name = command_name(&command);
        let info = match &command {
            Command::Query(sql) | Command::StmtPrepare(sql) => Some(sql.clone()),
            Command::StmtExecute { statement_id, .. } => {
                self.state.prepared.get(*statement_id).map(|s| s.sql.clone())
            }
            _ => None,
        };
        self.registration.handle.enter(name, info);
        let result = match command {
            Command::Quit => return Err(SessionEnd::Quit),
            Command::Query(sql) => return self.query(sql).await,
            Command::InitDb(name) => self.use_target(&shown(&name), More::No),
            Command::Ping => {
                self.put_plain_ok();
                Ok(())
            }
            Command::Statistics => {
                let line = self.statistics();
                self.client.put_raw(line.as_bytes());
                Ok(())
            }
            Command::FieldList { table, wildcard } => self.field_list(&table, &wildcard).await,
            Command::ProcessKill(id) => self.kill(u64::from(id), Kill::Connection, More::No),
            Command::SetOption(option) => self.set_option(option),
            Command::ResetConnection => {
                self.reset().await;
                self.put_plain_ok();
                Ok(())
            }
            Command::ChangeUser(request) => return self.change_user(*request).await,
            Command::StmtPrepare(sql) => self.prepare(sql).await,
            Command::StmtExecute {
                statement_id,
                payload,
            } => self.execute_prepared(statement_id, &payload).await,
            Command::StmtSendLongData {
                statement_id,
                param,
                data,
            } => {
                self.state.prepared.add_long_data(statement_id, param, &data);
                return Ok(());
            }
            Command::StmtClose(id) => {
                self.state.prepared.close(id);
                return Ok(());
            }
            Command::StmtReset(id) => self.reset_statement(id),
            // No cursor is ever opened: an execution that asks for one is answered with all its rows, as the protocol
            // lets a server do.
            Command::StmtFetch { statement_id, .. } => Err(SessionError::NoCursor(statement_id)),
            Command::Unknown(_) => Err(SessionError::UnknownCommand),
        };
        match result {
            Ok(()) => Ok(()),
            Err(e) => self.put_error(&e),
        }
    }

    /// An OK that leaves `ROW_COUNT()` and warnings alone: PING and its kin are not statements.
    fn put_plain_ok(&mut self) {
        let status = self.state.status();
        self.client.put_ok(&OkPacket::with_status(status));
    }

    /// `USE`, `COM_INIT_DB`: another target. Nothing is sent anywhere.
    pub(super) fn use_target(&mut self, text: &str, more: More) -> Result<(), SessionError> {
        let target = Target::parse(text, &self.state.target)?;
        target.check(&self.view)?;
        let bound = self.state.transaction.is_active() || self.state.held.reserved().is_some();
        if bound && target.role != self.state.target.role {
            return Err(SessionError::Unsupported {
                what: "another role in the middle of a transaction or of session state",
                hint: "COMMIT or ROLLBACK first, or use a connection of its own",
            });
        }
        self.state.target = target;
        self.show_target();
        let mut changes = Vec::new();
        put_schema(&mut changes, self.state.target.to_string().as_bytes());
        self.put_ok_with(changes, more);
        Ok(())
    }

    /// `KILL`, `COM_PROCESS_KILL`.
    pub(super) fn kill(&mut self, id: u64, kill: Kill, more: More) -> Result<(), SessionError> {
        let found = u32::try_from(id).ok().and_then(|id| self.shared.sessions.get(id));
        let other = found.ok_or(SessionError::UnknownThread(id))?;
        if other.user() != self.registration.handle.user() {
            return Err(SessionError::NotOwner(id));
        }
        other.kill.throw(kill);
        // Whoever kills itself is answered as anybody else whose statement is killed.
        if let Some(e) = super::pending_kill(&self.registration.handle.kill) {
            return Err(e);
        }
        self.put_ok(more);
        Ok(())
    }

    fn set_option(&mut self, option: u16) -> Result<(), SessionError> {
        match option {
            0 | 1 => {
                self.client.set_multi_statements(option == 0);
                let status = self.state.status();
                self.client.put_rows_end(&OkPacket::with_status(status));
                Ok(())
            }
            _ => Err(SessionError::UnknownCommand),
        }
    }

    fn reset_statement(&mut self, id: u32) -> Result<(), SessionError> {
        if !self.state.prepared.reset(id) {
            return Err(super::prepared::PreparedError::Unknown(id).into());
        }
        self.put_plain_ok();
        Ok(())
    }

    /// Everything as after login, but the target.
    pub(super) async fn reset(&mut self) {
        self.roll_back_open().await;
        self.state.held.clear();
        let target = std::mem::take(&mut self.state.target);
        self.state = super::SessionState::new(target, self.view.lex.mode, self.view.options.prepared);
        self.apply_login_charset();
    }

    /// `COM_CHANGE_USER`: a fresh session of another user on the same connection.
    async fn change_user(&mut self, request: ChangeUser) -> Result<(), SessionEnd> {
        self.reset().await;
        let users = std::sync::Arc::clone(&self.view.users);
        let handshake = self.client.change_user(request, &*users);
        let changed = tokio::time::timeout(self.view.options.handshake_timeout, handshake).await;
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(SessionEnd::Gone),
            Err(_) => return Err(SessionEnd::Protocol),
        }
        let login = self.client.login();
        let database = login
            .database
            .as_deref()
            .map(|d| String::from_utf8_lossy(d).into_owned());
        let user = String::from_utf8_lossy(&login.user).into_owned();
        self.registration.handle.set_user(user);
        self.state.target = Target::default();
        self.apply_login_charset();
        let chosen = match database.filter(|d| !d.is_empty()) {
            Some(name) => self.use_target(&name, More::No),
            None => {
                self.put_plain_ok();
                Ok(())
            }
        };
        self.show_target();
        match chosen {
            Ok(()) => Ok(()),
            Err(e) => self.put_error(&e),
        }
    }

    /// The line that `mysqladmin status` shows.
    fn statistics(&self) -> String {
        let m = &self.shared.metrics;
        let questions: u64 = m.query_timings.snapshot().values().map(|t| t.count).sum();
        format!(
            "Uptime: {}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  Open tables: 0",
            self.shared.uptime().as_secs(),
            self.shared.sessions.len(),
        )
    }

    /// `COM_FIELD_LIST`: what `SHOW COLUMNS` knows, as definitions. Clients ask it to complete names.
    async fn field_list(&mut self, table: &Bytes, wildcard: &Bytes) -> Result<(), SessionError> {
        let columns: Vec<ColumnDef> = self.columns_of(table, wildcard).await?;
        for column in &columns {
            self.client.put_column(column);
        }
        let status = self.state.status();
        self.client.put_rows_end(&OkPacket::with_status(status));
        Ok(())
    }
}

/// The name of a command as the servers' process list shows it.
fn command_name(command: &Command) -> &'static str {
    match command {
        Command::Quit => "Quit",
        Command::InitDb(_) => "Init DB",
        Command::Query(_) => "Query",
        Command::FieldList { .. } => "Field List",
        Command::Statistics => "Statistics",
        Command::ProcessKill(_) => "Kill",
        Command::Ping => "Ping",
        Command::ChangeUser(_) => "Change user",
        Command::StmtPrepare(_) => "Prepare",
        Command::StmtExecute { .. } => "Execute",
        Command::StmtSendLongData { .. } => "Long Data",
        Command::StmtClose(_) => "Close stmt",
        Command::StmtReset(_) => "Reset stmt",
        Command::SetOption(_) => "Set option",
        Command::StmtFetch { .. } => "Fetch",
        Command::ResetConnection => "Reset Connection",
        Command::Unknown(_) => "Error",
    }
}

/// Whether the client agreed on found rows at login.
pub(super) fn found_rows(client: &ClientConn) -> bool {
    client.can(shardgate_wire::Capabilities::FOUND_ROWS)
}
