//! Reading answers, packet by packet. Every read here is cancel-safe up to the packet it waits for, except the ones
//! that gather several packets ([`TabletConn::read_columns`], [`TabletConn::read_prepared`]): dropped half way they leave the
//! connection busy, which is what [`TabletConn::is_idle`] tells.

use bytes::Bytes;

use super::conn::{Phase, TabletConn};
use crate::codec::{EofPacket, ErrPacket, OkPacket, PrepareOk, Reader};
use crate::error::WireError;
use crate::protocol::{Capabilities, MAX_FRAME, StatusFlags};

/// The first packet of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Head {
    /// Done; without `MORE_RESULTS` in its status the connection is idle again.
    Ok(OkPacket),
    /// The server refused; the connection is idle again.
    Err(ErrPacket),
    /// The server wants this file: [`TabletConn::send_infile`], then [`TabletConn::end_infile`].
    LocalInfile(Bytes),
    /// Column definitions, then rows follow.
    ResultSet {
        /// How many columns.
        columns: u64,
    },
}

/// A result set's columns, as the server sent them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The definitions' payloads; [`crate::ColumnDef::parse`] reads one.
    pub definitions: Vec<Bytes>,
    /// A cursor was opened and no rows follow: the next [`TabletConn::next_row`] gives the end at once. Known this
    /// early only from servers without `CLIENT_DEPRECATE_EOF`.
    pub cursor: bool,
}

/// A row, or what stands in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowEvent {
    /// A row's payload.
    Row(Bytes),
    /// No more rows; without `MORE_RESULTS` in its status the connection is idle again.
    End(OkPacket),
    /// The server gave up; the connection is idle again.
    Err(ErrPacket),
}

/// The whole answer to a prepare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// Id and counts.
    pub ok: PrepareOk,
    /// Parameters' definitions, as the server sent them.
    pub params: Vec<Bytes>,
    /// Columns' definitions, as the server sent them.
    pub columns: Vec<Bytes>,
}

/// Room for so many definitions is kept by a connection, 32 bytes each.
const KEEP_DEFINITIONS: usize = 64;

impl TabletConn {
    /// Reads the first packet of an answer.
    pub async fn read_head(&mut self) -> Result<Head, WireError> {
        self.expect(Phase::Head)?;
        let packet = self.stream.read_packet().await?;
        match packet.first() {
            None => Err(WireError::Malformed("an empty answer")),
            Some(&ErrPacket::HEADER) => Ok(Head::Err(self.take_err(&packet)?)),
            Some(&OkPacket::HEADER) => Ok(Head::Ok(self.take_end(&packet)?)),
            // COM_SET_OPTION is answered as rows end.
            Some(&OkPacket::EOF_HEADER) if is_end(&packet, self.deprecates_eof()) => {
                Ok(Head::Ok(self.take_end(&packet)?))
            }
            Some(&0xfb) => {
                self.phase = Phase::Infile;
                Ok(Head::LocalInfile(packet.slice(1..)))
            }
            Some(_) => {
                let columns = Reader::new(&packet).lenenc("column count")?;
                self.phase = Phase::Columns { left: columns };
                Ok(Head::ResultSet { columns })
            }
        }
    }

    /// Reads the column definitions behind [`Head::ResultSet`]. If the server gives up among them, that is
    /// [`WireError::Server`] and the connection is idle again.
    pub async fn read_columns(&mut self) -> Result<Columns, WireError> {
        let Phase::Columns { mut left } = self.phase else {
            return Err(WireError::State("no column definitions are due"));
        };
        // The count is the server's word only: memory follows what comes.
        let mut definitions = std::mem::take(&mut self.definitions);
        definitions.reserve(usize::try_from(left).unwrap_or(usize::MAX).min(1024));
        while left > 0 {
            definitions.push(self.read_definition().await?);
            left -= 1;
            self.phase = Phase::Columns { left };
        }
        self.phase = Phase::Rows;
        let cursor = !self.deprecates_eof() && self.read_columns_eof().await?;
        Ok(Columns { definitions, cursor })
    }

    /// Gives definitions back that were used up: the next ones are read into the same memory, if it is not much.
    pub fn give_back(&mut self, columns: Columns) {
        let mut definitions = columns.definitions;
        definitions.clear();
        if definitions.capacity() <= KEEP_DEFINITIONS {
            self.definitions = definitions;
        }
    }

    /// Reads the EOF packet behind column definitions; whether a cursor was opened, so that no rows follow.
    pub(super) async fn read_columns_eof(&mut self) -> Result<bool, WireError> {
        self.phase = Phase::ColumnsEof;
        let eof = EofPacket::parse(&self.read_definition().await?)?;
        let cursor = eof.status.contains(StatusFlags::CURSOR_EXISTS);
        self.phase = if cursor { Phase::CursorEnd } else { Phase::Rows };
        self.early_end = OkPacket {
            warnings: eof.warnings,
            ..OkPacket::with_status(eof.status)
        };
        Ok(cursor)
    }

    /// Reads the next row or the end. Also for rows behind `COM_STMT_FETCH`.
    pub async fn next_row(&mut self) -> Result<RowEvent, WireError> {
        if let Some(end) = self.cursor_end() {
            return Ok(RowEvent::End(end));
        }
        self.expect(Phase::Rows)?;
        let packet = self.stream.read_packet().await?;
        self.row_event(packet)
    }

    /// Like [`TabletConn::next_row`], but only from what was read already: `None` if that holds no whole packet.
    pub fn next_row_buffered(&mut self) -> Result<Option<RowEvent>, WireError> {
        if let Some(end) = self.cursor_end() {
            return Ok(Some(RowEvent::End(end)));
        }
        self.expect(Phase::Rows)?;
        match self.stream.next_buffered()? {
            Some(packet) => self.row_event(packet).map(Some),
            None => Ok(None),
        }
    }

    fn row_event(&mut self, packet: Bytes) -> Result<RowEvent, WireError> {
        match packet.first() {
            Some(&ErrPacket::HEADER) => Ok(RowEvent::Err(self.take_err(&packet)?)),
            Some(_) if is_end(&packet, self.deprecates_eof()) => Ok(RowEvent::End(self.take_end(&packet)?)),
            Some(_) => Ok(RowEvent::Row(packet)),
            None => Err(WireError::Malformed("an empty row")),
        }
    }

    /// The end of a result set whose rows stay in a cursor, where it came with the columns.
    pub(crate) fn cursor_end(&mut self) -> Option<OkPacket> {
        if self.phase != Phase::CursorEnd {
            return None;
        }
        let end = std::mem::take(&mut self.early_end);
        self.ended(end.status);
        Some(end)
    }

    /// Reads the answer to a prepare.
    pub async fn read_prepared(&mut self) -> Result<Result<Prepared, ErrPacket>, WireError> {
        self.expect(Phase::Prepare)?;
        let packet = self.stream.read_packet().await?;
        if packet.first() == Some(&ErrPacket::HEADER) {
            return Ok(Err(self.take_err(&packet)?));
        }
        let ok = PrepareOk::parse(&packet)?;
        self.phase = Phase::PrepareDefs;
        let params = self.read_definitions(ok.params).await?;
        let columns = self.read_definitions(ok.columns).await?;
        self.phase = Phase::Idle;
        Ok(Ok(Prepared { ok, params, columns }))
    }

    async fn read_definitions(&mut self, count: u16) -> Result<Vec<Bytes>, WireError> {
        let mut list = Vec::with_capacity(usize::from(count).min(1024));
        for _ in 0..count {
            list.push(self.read_definition().await?);
        }
        if count > 0 && !self.deprecates_eof() {
            EofPacket::parse(&self.read_definition().await?)?;
        }
        Ok(list)
    }

    /// Reads a definition or the EOF packet behind definitions. A server that gives up among them sends an error
    /// instead, which no definition can be taken for.
    async fn read_definition(&mut self) -> Result<Bytes, WireError> {
        let packet = self.stream.read_packet().await?;
        if packet.first() == Some(&ErrPacket::HEADER) {
            return Err(WireError::Server(Box::new(self.take_err(&packet)?)));
        }
        Ok(packet)
    }

    /// Reads the answer to `COM_FIELD_LIST`: definitions, as the server sent them.
    pub async fn read_field_list(&mut self) -> Result<Result<Vec<Bytes>, ErrPacket>, WireError> {
        self.expect(Phase::FieldList)?;
        let mut list = Vec::new();
        loop {
            let packet = self.stream.read_packet().await?;
            if packet.first() == Some(&ErrPacket::HEADER) {
                return Ok(Err(self.take_err(&packet)?));
            }
            if is_end(&packet, self.deprecates_eof()) {
                self.take_end(&packet)?;
                return Ok(Ok(list));
            }
            list.push(packet);
        }
    }

    /// Reads the answer to `COM_STATISTICS`.
    pub async fn read_text(&mut self) -> Result<Bytes, WireError> {
        self.expect(Phase::Text)?;
        let packet = self.stream.read_packet().await?;
        self.phase = Phase::Idle;
        Ok(packet)
    }

    /// Sends a piece of the file that [`Head::LocalInfile`] asked for; an empty piece is not sent.
    pub async fn send_infile(&mut self, data: &[u8]) -> Result<(), WireError> {
        self.expect(Phase::Infile)?;
        if !data.is_empty() {
            self.stream.put_packet(data);
        }
        self.stream.flush().await
    }

    /// Ends the file; the answer's head follows.
    pub async fn end_infile(&mut self) -> Result<(), WireError> {
        self.expect(Phase::Infile)?;
        self.stream.put_packet(&[]);
        self.phase = Phase::Head;
        self.stream.flush().await
    }

    /// Reads an answer that is an OK or an error, which becomes [`WireError::Server`].
    pub async fn read_ok(&mut self) -> Result<OkPacket, WireError> {
        match self.read_head().await? {
            Head::Ok(ok) => Ok(ok),
            Head::Err(e) => Err(WireError::Server(Box::new(e))),
            Head::LocalInfile(_) | Head::ResultSet { .. } => {
                Err(WireError::State("an OK was due, a result set came"))
            }
        }
    }

    /// Runs a statement and throws its rows away; gives the last result's end. For what the gateway itself says.
    pub async fn run(&mut self, sql: &[u8]) -> Result<OkPacket, WireError> {
        self.send_query(sql).await?;
        loop {
            let end = match self.read_head().await? {
                Head::Ok(ok) => ok,
                Head::Err(e) => return Err(WireError::Server(Box::new(e))),
                Head::LocalInfile(_) => {
                    self.end_infile().await?;
                    continue;
                }
                Head::ResultSet { .. } => {
                    self.read_columns().await?;
                    self.drain_rows().await?
                }
            };
            if !end.status.contains(StatusFlags::MORE_RESULTS) {
                return Ok(end);
            }
        }
    }

    async fn drain_rows(&mut self) -> Result<OkPacket, WireError> {
        loop {
            match self.next_row().await? {
                RowEvent::Row(_) => {}
                RowEvent::End(end) => return Ok(end),
                RowEvent::Err(e) => return Err(WireError::Server(Box::new(e))),
            }
        }
    }

    pub(crate) const fn deprecates_eof(&self) -> bool {
        self.server.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    fn expect(&self, phase: Phase) -> Result<(), WireError> {
        if self.phase == phase {
            Ok(())
        } else {
            Err(WireError::State("another part of the answer is due"))
        }
    }

    /// Reads an error packet: it ends everything, further results included.
    pub(crate) fn take_err(&mut self, packet: &[u8]) -> Result<ErrPacket, WireError> {
        let err = ErrPacket::parse(packet)?;
        self.phase = Phase::Idle;
        Ok(err)
    }

    /// Reads an OK or EOF packet that ends a result.
    pub(crate) fn take_end(&mut self, packet: &[u8]) -> Result<OkPacket, WireError> {
        // Some servers still end a few answers by EOF packets though that was deprecated; an OK is never this short.
        let end = if packet.first() == Some(&EofPacket::HEADER) && packet.len() <= 5 {
            let eof = EofPacket::parse(packet)?;
            OkPacket {
                warnings: eof.warnings,
                ..OkPacket::with_status(eof.status)
            }
        } else {
            OkPacket::parse(packet, self.server.capabilities)?
        };
        self.ended(end.status);
        Ok(end)
    }

    fn ended(&mut self, status: StatusFlags) {
        self.server.status = status;
        let more = status.contains(StatusFlags::MORE_RESULTS);
        self.phase = if more { Phase::Head } else { Phase::Idle };
    }
}

/// Whether a whole packet in a row's place is the end of the rows. A row whose first cell is longer than 16 MB begins
/// with the same byte, but fills its first frame.
pub(crate) fn is_end(packet: &[u8], deprecates_eof: bool) -> bool {
    packet.first() == Some(&EofPacket::HEADER)
        && if deprecates_eof {
            packet.len() < MAX_FRAME
        } else {
            packet.len() < 9
        }
}
