//! One connection to one tablet, with what is known to be set on it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::auth::Password;
use shardgate_wire::client::{ConnectOptions, Prepared, TabletConn};
use shardgate_wire::codec::text;
use shardgate_wire::protocol::{Capabilities, StatusFlags, command};
use shardgate_wire::stream::Probe;
use shardgate_wire::tls::ClientTls;
use shardgate_wire::{ErrPacket, OkPacket, WireError};

use super::statements::StatementCache;
use super::{Base, NoConnection, SettingName, Settings, TabletError};
use crate::base::ClientError;
use crate::base::clock::{self, Instant};
pub use crate::topology::TabletInfo;

/// Prepared statements kept on one connection.
const STATEMENTS: usize = 128;

/// How the gateway logs in at tablets.
#[derive(Clone, Debug)]
pub struct Backend {
    /// User name.
    pub user: String,
    /// Password.
    pub password: Password,
    /// TLS; `None` for none.
    pub tls: Option<ClientTls>,
    /// Whether affected rows count found instead of changed ones (`CLIENT_FOUND_ROWS`).
    pub found_rows: bool,
    /// The longest packet taken from a tablet, in bytes.
    pub max_packet: usize,
    /// The limit to which tablets are to hold statements by themselves; `None` for none.
    pub statement_limit: Option<Duration>,
}

/// Which server answered when a connection was opened: a KILL goes only to the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerIdentity {
    /// `@@server_id`, `@@hostname` and `@@port` as text.
    values: Vec<Option<Bytes>>,
    version: String,
}

/// What a connection is doing that its drop must respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Nothing special.
    Plain,
    /// A transaction is open on it.
    Transaction,
    /// A COMMIT was sent on it and not answered.
    Commit,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) wire: TabletConn,
    pub(super) info: Arc<TabletInfo>,
    identity: ServerIdentity,
    applied: Settings,
    /// What it has had from the beginning, beyond the server's defaults.
    base: Base,
    statements: StatementCache,
    opened: Instant,
    idle_since: Instant,
    usage: Use,
    /// It holds state that is not in `applied`: it is closed instead of pooled.
    tainted: bool,
    /// The socket or the protocol failed.
    broken: bool,
}

impl Connection {
    /// Connects, logs in and asks who answers.
    pub async fn open(
        info: &Arc<TabletInfo>,
        backend: &Backend,
        deadline: Instant,
    ) -> Result<Self, TabletError> {
        let opening = async {
            let mut wire = TabletConn::connect(&info.address, &options(info, backend)).await?;
            let identity = ask_identity(&mut wire).await?;
            let base = set_limit(&mut wire, backend.statement_limit).await?;
            Ok::<_, WireError>((wire, identity, base))
        };
        let (wire, identity, base) = match tokio::time::timeout_at(deadline, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(WireError::Server(e))) => {
                return Err(TabletError::Refused {
                    tablet: info.alias.clone(),
                    errno: e.code,
                    message: e.message_text().into_owned(),
                });
            }
            Ok(Err(e)) => {
                return Err(TabletError::Connect {
                    tablet: info.alias.clone(),
                    by: match e {
                        WireError::Io(_) | WireError::Closed | WireError::Truncated => {
                            NoConnection::Unreachable
                        }
                        _ => NoConnection::NotAgreed,
                    },
                    reason: e.to_string(),
                });
            }
            Err(_) => {
                let reason = "no connection within the time allowed".into();
                return Err(TabletError::Connect {
                    tablet: info.alias.clone(),
                    reason,
                    by: NoConnection::TimedOut,
                });
            }
        };
        let now = clock::now();
        Ok(Self {
            wire,
            info: Arc::clone(info),
            identity,
            applied: Settings::default(),
            base,
            statements: StatementCache::new(STATEMENTS),
            opened: now,
            idle_since: now,
            usage: Use::Plain,
            tainted: false,
            broken: false,
        })
    }

    /// Keeps at most this many prepared statements.
    #[must_use]
    pub fn keeping_statements(self, capacity: usize) -> Self {
        Self {
            statements: StatementCache::new(capacity),
            ..self
        }
    }

    /// The tablet.
    pub fn info(&self) -> &Arc<TabletInfo> {
        &self.info
    }

    /// Which server answered.
    pub fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    /// The connection's id on its server: what KILL takes.
    pub fn thread_id(&self) -> u32 {
        self.wire.connection_id()
    }

    /// The server's version.
    pub fn server_version(&self) -> &str {
        self.wire.server_version()
    }

    /// The protocol underneath. Errors of calls made through it are to be told to [`Self::failed`].
    pub fn wire(&mut self) -> &mut TabletConn {
        &mut self.wire
    }

    /// The settings known to hold on it.
    pub fn applied(&self) -> &Settings {
        &self.applied
    }

    /// When it was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Since when it is idle.
    pub fn idle_since(&self) -> Instant {
        self.idle_since
    }

    /// Notes that it goes back to its pool.
    pub fn mark_idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Notes that it holds state which the gateway does not keep track of; it will be closed, not pooled.
    pub fn taint(&mut self) {
        self.tainted = true;
    }

    /// Whether it may serve somebody else: idle, with nothing open on it that the gateway or its server knows of.
    pub fn is_clean(&self) -> bool {
        !self.broken && !self.tainted && self.usage == Use::Plain && self.wire.is_idle() && self.is_settled()
    }

    /// Whether its server says that no transaction is open and each statement commits by itself.
    fn is_settled(&self) -> bool {
        let status = self.wire.status();
        status.contains(StatusFlags::AUTOCOMMIT) && !status.contains(StatusFlags::IN_TRANS)
    }

    /// Whether a statement can be sent on it.
    pub fn is_usable(&self) -> bool {
        !self.broken && self.wire.is_idle()
    }

    /// Whether a statement still runs on it.
    pub fn owes_answer(&self) -> bool {
        !self.broken && !self.wire.is_idle()
    }

    /// Whether a COMMIT was sent on it and not answered.
    pub fn carries_commit(&self) -> bool {
        self.usage == Use::Commit
    }

    /// Looks, without waiting, whether the server closed it or spoke unasked.
    pub fn probe(&mut self) -> Probe {
        if self.wire.is_alive() {
            Probe::Quiet
        } else {
            Probe::Closed
        }
    }

    /// Makes an error of the wire one of the tablet's. `sent` says whether the statement's first byte may have left.
    pub fn failed(&mut self, error: WireError, sent: Sent) -> TabletError {
        if let WireError::Server(e) = error {
            return TabletError::Server(server_error(&e));
        }
        self.broken = true;
        let tablet = self.info.alias.clone();
        let reason = error.to_string();
        match (&error, sent) {
            (
                WireError::Malformed(_)
                | WireError::OutOfOrder { .. }
                | WireError::State(_)
                | WireError::PacketTooLarge { .. },
                _,
            ) => TabletError::Protocol { tablet, reason },
            (_, Sent::No) => TabletError::LostBeforeSend { tablet, reason },
            (_, Sent::Maybe) => TabletError::Lost { tablet, reason },
        }
    }

    /// Another tablet has become the primary: it is not used again. What it was sent, and answered since, may be its own
    /// alone.
    pub fn superseded(&mut self, sent: Sent) -> TabletError {
        self.broken = true;
        let tablet = self.info.alias.clone();
        let reason = "another tablet has become the primary".to_owned();
        match sent {
            Sent::No => TabletError::LostBeforeSend { tablet, reason },
            Sent::Maybe => TabletError::Lost { tablet, reason },
        }
    }

    /// Brings it to a session's settings.
    pub async fn apply(&mut self, settings: &Settings) -> Result<(), TabletError> {
        let Some(sql) = self.applied.difference(settings, &self.base) else {
            return Ok(());
        };
        // Until the server has answered nothing is known to hold.
        let was_tainted = std::mem::replace(&mut self.tainted, true);
        self.run(sql.as_bytes(), Sent::No).await?;
        self.tainted = was_tainted;
        self.applied.clone_from(settings);
        Ok(())
    }

    /// Forgets what was set under a name: the statement that just ran may have set it to anything.
    pub fn forget_setting(&mut self, name: &SettingName) {
        self.applied.unset(name);
    }

    /// Opens a transaction by these statements. If one of them fails the connection is of no further use: nobody may
    /// take it for one with a transaction open.
    pub async fn begin(&mut self, statements: &[String]) -> Result<(), TabletError> {
        self.usage = Use::Transaction;
        for sql in statements {
            let result = self.run(sql.as_bytes(), Sent::No).await;
            if let Err(e) = result {
                self.broken = true;
                return Err(e);
            }
        }
        Ok(())
    }

    /// Notes that a transaction was found open on it which the gateway did not open.
    pub fn transaction_found(&mut self) {
        self.usage = Use::Transaction;
    }

    /// Commits the transaction. A connection dropped while this runs is not killed.
    pub async fn commit(&mut self) -> Result<OkPacket, TabletError> {
        self.usage = Use::Commit;
        let result = self.run(b"COMMIT", Sent::Maybe).await;
        if self.wire.is_idle() {
            self.usage = if result.is_ok() {
                Use::Plain
            } else {
                Use::Transaction
            };
        }
        result
    }

    /// Rolls the transaction back.
    pub async fn rollback(&mut self) -> Result<OkPacket, TabletError> {
        let ok = self.run(b"ROLLBACK", Sent::Maybe).await?;
        self.usage = Use::Plain;
        Ok(ok)
    }

    /// Notes that the server ended the transaction by itself (a deadlock's victim, an implicit commit).
    pub fn transaction_ended(&mut self) {
        self.usage = Use::Plain;
    }

    /// The server's id of a text, preparing it if this connection has not; the whole answer comes along if it was
    /// prepared just now.
    pub async fn prepare(&mut self, text: &Bytes) -> Result<(u32, Option<Prepared>), TabletError> {
        if let Some(id) = self.statements.get(self.applied.reading(), text) {
            return Ok((id, None));
        }
        let prepared = self.prepare_anew(text).await?;
        Ok((prepared.ok.statement_id, Some(prepared)))
    }

    /// Prepares a text whether or not this connection has it, so that its columns are the current ones.
    pub async fn prepare_anew(&mut self, text: &Bytes) -> Result<Prepared, TabletError> {
        let asked = async {
            self.wire.send(command::STMT_PREPARE, &[text]).await?;
            self.wire.read_prepared().await
        };
        let prepared = match asked.await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(e)) => return Err(TabletError::Server(server_error(&e))),
            Err(e) => return Err(self.failed(e, Sent::No)),
        };
        let reading = self.applied.reading();
        if let Some(old) = self
            .statements
            .insert(reading, text.clone(), prepared.ok.statement_id)
        {
            self.close_statement(old)?;
        }
        Ok(prepared)
    }

    /// Forgets a text whose statement the server no longer holds (1243) or wants prepared again (1615).
    pub fn forget_statement(&mut self, text: &Bytes) -> Result<(), TabletError> {
        match self.statements.remove(self.applied.reading(), text) {
            Some(id) => self.close_statement(id),
            None => Ok(()),
        }
    }

    /// `COM_STMT_CLOSE` has no answer and travels with the next command.
    fn close_statement(&mut self, id: u32) -> Result<(), TabletError> {
        let queued = self.wire.queue(command::STMT_CLOSE, &[&id.to_le_bytes()]);
        queued.map_err(|e| self.failed(e, Sent::No))
    }

    /// Reads and throws away what the server still owes. Ends when it is idle or lost.
    pub async fn drain(&mut self) {
        if self.wire.discard_answer().await.is_err() {
            self.broken = true;
        }
    }

    /// Closes in good order, without waiting long for the socket.
    pub async fn quit(self) {
        if !self.broken {
            // Closing is a courtesy; a server that does not take it finds the socket closed.
            let _ = tokio::time::timeout(Duration::from_millis(100), self.wire.quit()).await;
        }
    }
}

/// Whether a statement's first byte may have reached the server when an error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Certainly not: nothing of the client's statement was sent.
    No,
    /// Maybe.
    Maybe,
}

/// A server's error as the client will see it.
pub fn server_error(e: &ErrPacket) -> ClientError {
    ClientError::new(e.code, e.sqlstate, e.message_text().into_owned())
}

fn options(info: &TabletInfo, backend: &Backend) -> ConnectOptions {
    let mut options = login(backend);
    options.database = Some(info.database.clone());
    options.capabilities.set(Capabilities::CONNECT_WITH_DB, true);
    options
}

/// A login without a database.
pub(super) fn login(backend: &Backend) -> ConnectOptions {
    let mut options = ConnectOptions::new(backend.user.clone(), backend.password.clone());
    options.tls.clone_from(&backend.tls);
    options.max_packet = backend.max_packet;
    options.attributes = vec![("program_name".into(), "shardgate".into())];
    options
        .capabilities
        .set(Capabilities::FOUND_ROWS, backend.found_rows);
    options
}

/// Has the server hold statements to a limit. One that knows no such limit goes without.
async fn set_limit(wire: &mut TabletConn, limit: Option<Duration>) -> Result<Base, WireError> {
    let Some(limit) = limit else { return Ok(Base::NONE) };
    let base = Base::limit(wire.server_version(), limit);
    let Some(sql) = base.sql() else {
        return Ok(Base::NONE);
    };
    wire.send_query(sql.as_bytes()).await?;
    match wire.read_ok().await {
        Ok(_) => Ok(base),
        Err(WireError::Server(_)) => Ok(Base::NONE),
        Err(e) => Err(e),
    }
}

async fn ask_identity(wire: &mut TabletConn) -> Result<ServerIdentity, WireError> {
    let rows = super::ask::query(wire, b"SELECT @@server_id, @@hostname, @@port", 1).await?;
    let row = rows.first().ok_or(WireError::Malformed("no row"))?;
    let values = text::cells(row)
        .map(|cell| cell.map(|c| c.map(Bytes::copy_from_slice)))
        .collect::<Result<_, _>>()?;
    Ok(ServerIdentity {
        values,
        version: wire.server_version().to_owned(),
    })
}
