//! A client that has been let in: its commands, and the packets that answer them in the form it agreed to.

use bytes::Bytes;

use super::accept::check;
use super::auth::{Authenticator, Claim};
use super::command::Command;
use crate::auth::AuthPlugin;
use crate::codec::login::Attributes;
use crate::codec::{ChangeUser, ColumnDef, EofPacket, ErrPacket, OkPacket, PrepareOk, write};
use crate::error::WireError;
use crate::protocol::{Capabilities, StatusFlags};
use crate::stream::{PacketStream, Share, Transport};

/// Who a client said it is, at login or at its last `COM_CHANGE_USER`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    /// The user name.
    pub user: Vec<u8>,
    /// The database it named.
    pub database: Option<Vec<u8>>,
    /// Collation id.
    pub charset: u16,
    /// Connection attributes, in the client's order.
    pub attributes: Attributes,
}

/// What was settled while connecting.
pub(super) struct Agreed {
    pub(super) capabilities: Capabilities,
    pub(super) connection_id: u32,
    pub(super) salt: [u8; 20],
    pub(super) default_auth: AuthPlugin,
    pub(super) read_ahead: usize,
}

/// A client's connection. `put_*` only buffer; [`ClientConn::flush`] sends. Whoever writes many rows calls
/// [`ClientConn::flush_if_full`] after each, so that a slow client slows the writer and memory stays flat.
pub struct ClientConn {
    pub(crate) stream: PacketStream,
    login: Login,
    agreed: Agreed,
    /// A relay stopped inside a packet: nothing the client would understand can follow.
    pub(crate) mid_packet: bool,
}

impl std::fmt::Debug for ClientConn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConn")
            .field("connection_id", &self.agreed.connection_id)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl ClientConn {
    pub(super) const fn new(stream: PacketStream, login: Login, agreed: Agreed) -> Self {
        Self {
            stream,
            login,
            agreed,
            mid_packet: false,
        }
    }

    /// Who the client said it is.
    #[must_use]
    pub const fn login(&self) -> &Login {
        &self.login
    }

    /// What both sides can do.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.agreed.capabilities
    }

    /// Whether both sides can do all of `caps`.
    #[must_use]
    pub const fn can(&self, caps: Capabilities) -> bool {
        self.agreed.capabilities.contains(caps)
    }

    /// Turns multi-statements on or off (`COM_SET_OPTION`).
    pub fn set_multi_statements(&mut self, on: bool) {
        self.agreed.capabilities.set(Capabilities::MULTI_STATEMENTS, on);
    }

    /// The id in the greeting.
    #[must_use]
    pub const fn connection_id(&self) -> u32 {
        self.agreed.connection_id
    }

    /// The stream underneath, for its addresses and for faults.
    #[must_use]
    pub const fn transport(&self) -> &Transport {
        self.stream.transport()
    }

    /// Large commands take a share of a room that others take from too, until the next one is to be read. One for which
    /// there is none is thrown away, which [`Self::read_command`] tells by [`WireError::NoRoom`].
    pub fn set_share(&mut self, share: Share) {
        self.stream.set_share(share);
    }

    /// Reads the next command. Cancel-safe. Where [`WireError::keeps_connection`] the connection is usable: answer
    /// [`WireError::client_error`] and go on. After any other error it is done for.
    pub async fn read_command(&mut self) -> Result<Command, WireError> {
        self.stream.reset_seq();
        self.stream.rest();
        let packet = self.stream.read_packet().await?;
        Ok(Command::parse(&packet, self.agreed.capabilities)?)
    }

    /// Resolves with the reason when the client is gone, for use next to a running command. What the client sends
    /// meanwhile waits, up to the configured bound, for the next [`ClientConn::read_command`]; beyond it, or while
    /// it fills the bound, nothing is read and only a failing write tells that the client is gone. Cancel-safe.
    pub async fn watch_closed(&mut self) -> WireError {
        self.stream.closed(self.agreed.read_ahead).await
    }

    /// Authenticates the user of a `COM_CHANGE_USER`; the client is asked for a new answer to a new salt where it
    /// can be. On success [`ClientConn::login`] is the new one and the caller sends the OK. On
    /// [`WireError::AccessDenied`] the client was told and must be disconnected, as servers do.
    pub async fn change_user(
        &mut self,
        request: ChangeUser,
        users: &impl Authenticator,
    ) -> Result<(), WireError> {
        let can_switch = self.can(Capabilities::PLUGIN_AUTH);
        let plugin = if can_switch {
            AuthPlugin::from_name(&request.plugin)
        } else {
            Some(AuthPlugin::Native)
        };
        let claim = Claim {
            plugin,
            answer: request.auth,
            salt: self.agreed.salt,
            can_switch,
            always_switch: true,
        };
        let database = request.database.as_deref();
        check(
            &mut self.stream,
            users,
            &request.user,
            database,
            claim,
            self.agreed.default_auth,
        )
        .await?;
        self.login = Login {
            user: request.user,
            database: request.database,
            charset: request.charset.unwrap_or(self.login.charset),
            attributes: request.attributes,
        };
        Ok(())
    }

    /// Buffers an OK.
    pub fn put_ok(&mut self, ok: &OkPacket) {
        let caps = self.agreed.capabilities;
        self.stream
            .put_packet_with(|out| ok.encode(out, OkPacket::HEADER, caps));
    }

    /// Buffers an error.
    pub fn put_err(&mut self, err: &ErrPacket) {
        self.stream.put_packet_with(|out| err.encode(out));
    }

    /// Buffers the first packet of a result set.
    pub fn put_column_count(&mut self, columns: u64) {
        self.stream.put_packet_with(|out| write::put_lenenc(out, columns));
    }

    /// Buffers a column definition.
    pub fn put_column(&mut self, column: &ColumnDef) {
        self.stream.put_packet_with(|out| column.encode(out));
    }

    /// Buffers a payload as it is: a tablet's column definition, a row, a line of statistics.
    pub fn put_raw(&mut self, payload: &[u8]) {
        self.stream.put_packet(payload);
    }

    /// Buffers a payload that `write` appends.
    pub fn put_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.stream.put_packet_with(write);
    }

    /// Buffers the EOF packet behind column or parameter definitions, if this client gets one.
    pub fn put_columns_end(&mut self, status: StatusFlags, warnings: u16) {
        if !self.can(Capabilities::DEPRECATE_EOF) {
            self.stream
                .put_packet_with(|out| EofPacket { warnings, status }.encode(out));
        }
    }

    /// Buffers a whole head of a result set: count, definitions, their end.
    pub fn put_columns(&mut self, columns: &[ColumnDef], status: StatusFlags, warnings: u16) {
        self.put_column_count(columns.len() as u64);
        for column in columns {
            self.put_column(column);
        }
        self.put_columns_end(status, warnings);
    }

    /// Like [`ClientConn::put_columns`], with definitions as a tablet sent them.
    pub fn put_raw_columns(&mut self, columns: &[Bytes], status: StatusFlags, warnings: u16) {
        self.put_column_count(columns.len() as u64);
        for column in columns {
            self.put_raw(column);
        }
        self.put_columns_end(status, warnings);
    }

    /// Buffers the end of a result set's rows: an OK or an EOF packet, as agreed. Also the answer to
    /// `COM_SET_OPTION`, and the end of `COM_FIELD_LIST` and `COM_STMT_FETCH`.
    pub fn put_rows_end(&mut self, end: &OkPacket) {
        let caps = self.agreed.capabilities;
        if caps.contains(Capabilities::DEPRECATE_EOF) {
            self.stream
                .put_packet_with(|out| end.encode(out, OkPacket::EOF_HEADER, caps));
        } else {
            let eof = EofPacket {
                warnings: end.warnings,
                status: end.status,
            };
            self.stream.put_packet_with(|out| eof.encode(out));
        }
    }

    /// Buffers the head of a result set whose rows wait in a cursor: definitions, then one end packet with
    /// `CURSOR_EXISTS` in its status and no rows.
    pub fn put_cursor_opened(&mut self, columns: &[Bytes], end: &OkPacket) {
        self.put_column_count(columns.len() as u64);
        for column in columns {
            self.put_raw(column);
        }
        self.put_rows_end(end);
    }

    /// Buffers the whole answer to `COM_STMT_PREPARE`. The counts in `ok` are replaced by the lists' lengths.
    pub fn put_prepare_ok(
        &mut self,
        ok: PrepareOk,
        params: &[Bytes],
        columns: &[Bytes],
        status: StatusFlags,
    ) {
        let count = |list: &[Bytes]| u16::try_from(list.len()).unwrap_or(u16::MAX);
        let ok = PrepareOk {
            params: count(params),
            columns: count(columns),
            ..ok
        };
        self.stream.put_packet_with(|out| ok.encode(out));
        for list in [params, columns] {
            for definition in list {
                self.put_raw(definition);
            }
            if !list.is_empty() {
                self.put_columns_end(status, 0);
            }
        }
    }

    /// How many bytes wait to be flushed.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.stream.buffered()
    }

    /// Sends everything buffered. Cancel-safe.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        if self.mid_packet {
            return Err(WireError::State(
                "the client is in the middle of a packet that will not be completed",
            ));
        }
        self.stream.flush().await
    }

    /// Sends what is buffered if it is much.
    pub async fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.buffered() >= crate::stream::FLUSH_AT {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Closes in good order.
    pub async fn shutdown(&mut self) -> Result<(), WireError> {
        self.stream.shutdown().await
    }

    /// Closes with a reset instead of an orderly end.
    pub fn reset(self) {
        let _ = self.stream.transport().reset_on_drop();
    }
}
