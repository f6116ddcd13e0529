//! Follows a server's answer packet by packet: which are rows, and which is the last.

use shardgate_wire::codec::{EofPacket, OkPacket, PrepareOk};
use shardgate_wire::protocol::{MAX_FRAME, command};
use shardgate_wire::{Capabilities, ErrPacket, StatusFlags, WireError};

/// `COM_BINLOG_DUMP` and `COM_BINLOG_DUMP_GTID`: events without end.
const BINLOG_DUMP: [u8; 2] = [0x12, 0x1e];

/// What a packet of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// More follows.
    Part,
    /// A row; more follows.
    Row,
    /// The last packet.
    End,
    /// The last packet, an error.
    Failed,
}

#[derive(Clone, Copy, Debug)]
enum Expect {
    Head,
    /// So many definitions, then, for clients that get it, an EOF; then rows.
    Columns(u64),
    ColumnsEof,
    Rows,
    PrepareHead,
    /// So many packets and nothing else.
    Count(u64),
    /// Definitions until an end.
    FieldList,
    Text,
    /// Packets until the server closes.
    Stream,
}

/// An answer as far as it has been seen.
#[derive(Debug)]
pub(super) struct Answer {
    expect: Expect,
    caps: Capabilities,
    /// The session's status as last told.
    pub(super) status: Option<StatusFlags>,
    /// The id of the statement that was prepared.
    pub(super) prepared: Option<u32>,
}

impl Answer {
    /// The answer to a command; `None`: there is none.
    pub(super) fn to(code: u8, caps: Capabilities) -> Option<Self> {
        let expect = match code {
            command::QUIT | command::STMT_CLOSE | command::STMT_SEND_LONG_DATA => return None,
            command::STMT_PREPARE => Expect::PrepareHead,
            command::FIELD_LIST => Expect::FieldList,
            command::STATISTICS => Expect::Text,
            command::STMT_FETCH => Expect::Rows,
            code if BINLOG_DUMP.contains(&code) => Expect::Stream,
            _ => Expect::Head,
        };
        Some(Self {
            expect,
            caps,
            status: None,
            prepared: None,
        })
    }

    fn deprecates_eof(&self) -> bool {
        self.caps.contains(Capabilities::DEPRECATE_EOF)
    }

    /// Takes the next packet.
    pub(super) fn see(&mut self, packet: &[u8]) -> Result<Seen, WireError> {
        let first = *packet.first().ok_or(WireError::Malformed("an empty packet"))?;
        let failed = first == ErrPacket::HEADER;
        match self.expect {
            Expect::Text => Ok(if failed { Seen::Failed } else { Seen::End }),
            Expect::Stream => Ok(if failed { Seen::Failed } else { Seen::Part }),
            _ if failed && !matches!(self.expect, Expect::Count(_)) => Ok(Seen::Failed),
            Expect::Head => self.head(first, packet),
            Expect::PrepareHead => self.prepare_head(packet),
            Expect::Count(left) => {
                self.expect = Expect::Count(left.saturating_sub(1));
                Ok(if left <= 1 { Seen::End } else { Seen::Part })
            }
            Expect::Columns(left) => {
                self.expect = match (left, self.deprecates_eof()) {
                    (2.., _) => Expect::Columns(left - 1),
                    (_, true) => Expect::Rows,
                    (_, false) => Expect::ColumnsEof,
                };
                Ok(Seen::Part)
            }
            Expect::ColumnsEof => {
                let status = EofPacket::parse(packet)?.status;
                if status.contains(StatusFlags::CURSOR_EXISTS) {
                    return Ok(self.end(status));
                }
                self.expect = Expect::Rows;
                Ok(Seen::Part)
            }
            Expect::Rows | Expect::FieldList if self.is_end(packet) => self.ended(packet),
            Expect::Rows => Ok(Seen::Row),
            Expect::FieldList => Ok(Seen::Part),
        }
    }

    fn head(&mut self, first: u8, packet: &[u8]) -> Result<Seen, WireError> {
        match first {
            OkPacket::HEADER => self.ended_by_ok(packet),
            // COM_SET_OPTION is answered as rows end; COM_CHANGE_USER by a switch of plugins, which is no end.
            OkPacket::EOF_HEADER if self.is_end(packet) => self.ended(packet),
            0xfb => Err(WireError::Unsupported("LOAD DATA LOCAL through the proxy".into())),
            _ => {
                let columns = shardgate_wire::codec::Reader::new(packet).lenenc("column count")?;
                self.expect = Expect::Columns(columns);
                Ok(Seen::Part)
            }
        }
    }

    fn prepare_head(&mut self, packet: &[u8]) -> Result<Seen, WireError> {
        let ok = PrepareOk::parse(packet)?;
        self.prepared = Some(ok.statement_id);
        let list = |n: u16| u64::from(n) + u64::from(n > 0 && !self.deprecates_eof());
        let left = list(ok.params) + list(ok.columns);
        self.expect = Expect::Count(left);
        Ok(if left == 0 { Seen::End } else { Seen::Part })
    }

    fn is_end(&self, packet: &[u8]) -> bool {
        if self.deprecates_eof() {
            packet.first() == Some(&OkPacket::EOF_HEADER) && packet.len() < MAX_FRAME
        } else {
            EofPacket::is_eof(packet)
        }
    }

    /// The end of rows, in either form.
    fn ended(&mut self, packet: &[u8]) -> Result<Seen, WireError> {
        if EofPacket::is_eof(packet) && !self.deprecates_eof() {
            let status = EofPacket::parse(packet)?.status;
            return Ok(self.end(status));
        }
        self.ended_by_ok(packet)
    }

    fn ended_by_ok(&mut self, packet: &[u8]) -> Result<Seen, WireError> {
        let status = OkPacket::parse(packet, self.caps)?.status;
        Ok(self.end(status))
    }

    fn end(&mut self, status: StatusFlags) -> Seen {
        self.status = Some(status);
        if status.contains(StatusFlags::MORE_RESULTS) {
            self.expect = Expect::Head;
            return Seen::Part;
        }
        Seen::End
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(code: u8, caps: Capabilities, packets: &[&[u8]]) -> Vec<Seen> {
        let mut answer = Answer::to(code, caps).unwrap();
        packets.iter().map(|p| answer.see(p).unwrap()).collect()
    }

    /// An end of rows as an EOF packet, and as an OK packet under that header.
    const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
    const END: &[u8] = &[0xfe, 0, 0, 2, 0, 0, 0];
    const OK: &[u8] = &[0, 1, 0, 2, 0, 0, 0];
    const MORE: &[u8] = &[0xfe, 0, 0, 8, 0, 0, 0];

    #[test]
    fn rows_are_counted_and_the_last_packet_is_known() {
        use Seen::{End, Failed, Part, Row};
        let new = Capabilities::DEPRECATE_EOF;
        let old = Capabilities::empty();
        // A row whose first cell has 2^24 bytes or more begins as an end does.
        let (column, row, fe): (&[u8], &[u8], &[u8]) = (b"def", b"\x011", &[0xfe; 9]);
        let two: &[u8] = &[2];
        let error: &[u8] = &[0xff, 1, 2];
        assert_eq!(seen(command::QUERY, new, &[OK]), [End]);
        assert_eq!(seen(command::QUERY, new, &[error]), [Failed]);
        assert_eq!(
            seen(command::QUERY, new, &[two, column, column, row, row, END]),
            [Part, Part, Part, Row, Row, End]
        );
        assert_eq!(
            seen(command::QUERY, old, &[two, column, column, EOF, row, fe, EOF]),
            [Part, Part, Part, Part, Row, Row, End]
        );
        assert_eq!(
            seen(command::QUERY, new, &[two, column, column, row, MORE, OK]),
            [Part, Part, Part, Row, Part, End]
        );
        assert_eq!(
            seen(command::QUERY, new, &[two, column, column, row, error])[4],
            Failed
        );
        let prepared: &[u8] = &[0, 9, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0];
        assert_eq!(
            seen(command::STMT_PREPARE, new, &[prepared, column, column, column])[2..],
            [Part, End]
        );
        assert_eq!(
            seen(
                command::STMT_PREPARE,
                old,
                &[prepared, column, column, EOF, column, EOF]
            )[4..],
            [Part, End]
        );
        assert!(Answer::to(command::STMT_CLOSE, new).is_none());
    }
}
