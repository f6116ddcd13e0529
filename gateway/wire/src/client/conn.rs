//! A session on a tablet. It knows whether it is idle: only between a finished answer and the next command. A caller
//! that gives up in the middle leaves it busy, and a pool must not take it back.

use bytes::Bytes;

use crate::codec::OkPacket;
use crate::error::WireError;
use crate::protocol::{Capabilities, StatusFlags, command};
use crate::stream::{PacketStream, Probe, Transport};

/// What the server said of itself and of the session.
pub(super) struct Server {
    pub(super) version: String,
    pub(super) connection_id: u32,
    pub(super) capabilities: Capabilities,
    pub(super) status: StatusFlags,
}

/// What the connection waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Nothing: a command may be sent.
    Idle,
    /// The first packet of an answer (OK, error, or a result set's column count).
    Head,
    /// This many column definitions.
    Columns { left: u64 },
    /// The EOF packet behind them.
    ColumnsEof,
    /// Rows or their end.
    Rows,
    /// A relay was given up inside a row: nothing can be read any more.
    InsideRow,
    /// Rows were announced and their end has been read already: a cursor was opened.
    CursorEnd,
    /// The first packet of the answer to a prepare.
    Prepare,
    /// Definitions behind a prepare.
    PrepareDefs,
    /// Column definitions until an end packet (`COM_FIELD_LIST`).
    FieldList,
    /// One packet of text (`COM_STATISTICS`).
    Text,
    /// The server waits for a file.
    Infile,
}

/// A connection to a tablet.
pub struct TabletConn {
    pub(crate) stream: PacketStream,
    pub(super) server: Server,
    pub(crate) phase: Phase,
    /// The end that was read early, see [`Phase::CursorEnd`].
    pub(super) early_end: OkPacket,
    /// Room for definitions, see [`TabletConn::give_back`].
    pub(super) definitions: Vec<Bytes>,
}

impl std::fmt::Debug for TabletConn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TabletConn")
            .field("connection_id", &self.server.connection_id)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl TabletConn {
    pub(super) fn new(stream: PacketStream, server: Server) -> Self {
        Self {
            stream,
            server,
            phase: Phase::Idle,
            early_end: OkPacket::default(),
            definitions: Vec::new(),
        }
    }

    /// The server's version, as in its greeting (`MariaDB` puts `5.5.5-` in front).
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server.version
    }

    /// The connection's id on the server: what KILL takes.
    #[must_use]
    pub const fn connection_id(&self) -> u32 {
        self.server.connection_id
    }

    /// What both sides can do.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.server.capabilities
    }

    /// The session's status, as the last OK or end of rows told it.
    #[must_use]
    pub const fn status(&self) -> StatusFlags {
        self.server.status
    }

    /// The stream underneath, for its addresses.
    #[must_use]
    pub const fn transport(&self) -> &Transport {
        self.stream.transport()
    }

    /// Whether the last answer was read to its end, so that a command may be sent. False also for good once a command
    /// or an answer was cut off: such a connection must be closed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && self.stream.unread() == 0
    }

    /// Looks, without waiting, whether an idle connection is still good: the server has neither closed it nor sent a
    /// parting error.
    pub fn is_alive(&mut self) -> bool {
        self.phase == Phase::Idle && self.stream.probe() == Probe::Quiet
    }

    /// Resolves when an idle server closes the connection or says something unasked. Cancel-safe.
    pub async fn watch_idle(&mut self) -> WireError {
        match self.stream.fill().await {
            Ok(()) => WireError::State("the server spoke unasked"),
            Err(e) => e,
        }
    }

    /// Sends a command whose payload is `parts` joined, and flushes. If this is dropped before it is done the
    /// connection stays busy for good.
    pub async fn send(&mut self, command: u8, parts: &[&[u8]]) -> Result<(), WireError> {
        self.queue(command, parts)?;
        self.stream.flush().await
    }

    /// Buffers a command without sending it: with those that have no answer (`COM_STMT_CLOSE`,
    /// `COM_STMT_SEND_LONG_DATA`) several travel together with the next.
    pub fn queue(&mut self, command: u8, parts: &[&[u8]]) -> Result<(), WireError> {
        if !self.is_idle() {
            return Err(WireError::State("a command while an answer is due"));
        }
        self.stream.reset_seq();
        self.phase = answer_phase(command);
        self.stream.put_packet_with(|out| {
            out.push(command);
            for part in parts {
                out.extend_from_slice(part);
            }
        });
        Ok(())
    }

    /// Sends a statement.
    pub async fn send_query(&mut self, sql: &[u8]) -> Result<(), WireError> {
        self.send(command::QUERY, &[sql]).await
    }

    /// How many bytes wait to be flushed.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.stream.buffered()
    }

    /// Sends what [`TabletConn::queue`] buffered.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        self.stream.flush().await
    }

    /// Says `COM_QUIT` and closes, in good order.
    pub async fn quit(mut self) -> Result<(), WireError> {
        self.stream.reset_seq();
        self.stream.put_packet(&[command::QUIT]);
        self.stream.flush().await?;
        self.stream.shutdown().await
    }
}

/// What a command is answered by.
const fn answer_phase(code: u8) -> Phase {
    match code {
        command::STMT_CLOSE | command::STMT_SEND_LONG_DATA | command::QUIT => Phase::Idle,
        command::STMT_PREPARE => Phase::Prepare,
        command::STMT_FETCH => Phase::Rows,
        command::FIELD_LIST => Phase::FieldList,
        command::STATISTICS => Phase::Text,
        _ => Phase::Head,
    }
}
