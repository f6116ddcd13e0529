//! Commands as clients send them.

use bytes::Bytes;

use crate::codec::{ChangeUser, Malformed, Reader};
use crate::protocol::{Capabilities, command};

/// One command. Texts share the packet's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `COM_QUIT`: no answer is expected.
    Quit,
    /// `COM_INIT_DB`: use this database.
    InitDb(Bytes),
    /// `COM_QUERY`: the statement's text, in the client's character set.
    Query(Bytes),
    /// `COM_FIELD_LIST`: a table's columns whose names match the pattern.
    FieldList {
        /// The table.
        table: Bytes,
        /// A LIKE pattern; empty for all.
        wildcard: Bytes,
    },
    /// `COM_STATISTICS`: one line of text, as a bare packet.
    Statistics,
    /// `COM_PROCESS_KILL`.
    ProcessKill(u32),
    /// `COM_PING`.
    Ping,
    /// `COM_CHANGE_USER`: see [`super::ClientConn::change_user`].
    ChangeUser(Box<ChangeUser>),
    /// `COM_STMT_PREPARE`: the statement's text.
    StmtPrepare(Bytes),
    /// `COM_STMT_EXECUTE`: everything behind the command byte, for [`crate::codec::execute`].
    StmtExecute {
        /// Which statement.
        statement_id: u32,
        /// The payload behind the command byte, the statement's id included.
        payload: Bytes,
    },
    /// `COM_STMT_SEND_LONG_DATA`: no answer is expected, not even to a wrong one.
    StmtSendLongData {
        /// Which statement.
        statement_id: u32,
        /// Which parameter, from 0.
        param: u16,
        /// A piece of its value.
        data: Bytes,
    },
    /// `COM_STMT_CLOSE`: no answer is expected.
    StmtClose(u32),
    /// `COM_STMT_RESET`.
    StmtReset(u32),
    /// `COM_SET_OPTION`: 0 turns multi-statements on, 1 off. Answered like the end of a result set.
    SetOption(u16),
    /// `COM_STMT_FETCH`.
    StmtFetch {
        /// Which statement.
        statement_id: u32,
        /// How many rows at most.
        rows: u32,
    },
    /// `COM_RESET_CONNECTION`.
    ResetConnection,
    /// Anything else: 1047, "Unknown command".
    Unknown(u8),
}

impl Command {
    /// Reads a packet, as a client with these capabilities writes it.
    pub fn parse(packet: &Bytes, caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new(packet);
        let code = r.u8("command byte")?;
        let rest = || packet.slice(1..);
        Ok(match code {
            command::QUIT => Self::Quit,
            command::INIT_DB => Self::InitDb(rest()),
            command::QUERY => Self::Query(rest()),
            command::FIELD_LIST => Self::FieldList {
                table: packet.slice_ref(r.nul_str("table name")?),
                wildcard: packet.slice_ref(r.rest()),
            },
            command::STATISTICS => Self::Statistics,
            command::PROCESS_KILL => Self::ProcessKill(r.u32("process id")?),
            command::PING => Self::Ping,
            command::CHANGE_USER => Self::ChangeUser(Box::new(ChangeUser::parse(r.rest(), caps)?)),
            command::STMT_PREPARE => Self::StmtPrepare(rest()),
            command::STMT_EXECUTE => Self::StmtExecute {
                statement_id: r.u32("statement id")?,
                payload: rest(),
            },
            command::STMT_SEND_LONG_DATA => Self::StmtSendLongData {
                statement_id: r.u32("statement id")?,
                param: r.u16("parameter index")?,
                data: packet.slice_ref(r.rest()),
            },
            command::STMT_CLOSE => Self::StmtClose(r.u32("statement id")?),
            command::STMT_RESET => Self::StmtReset(r.u32("statement id")?),
            command::SET_OPTION => Self::SetOption(r.u16("option")?),
            command::STMT_FETCH => Self::StmtFetch {
                statement_id: r.u32("statement id")?,
                rows: r.u32("rows to fetch")?,
            },
            command::RESET_CONNECTION => Self::ResetConnection,
            other => Self::Unknown(other),
        })
    }
}
