//! From the engine's rows to packets, chunk by chunk through a bounded channel.
//!
//! The engine runs on a blocking thread and stops when the channel is full, so a slow client slows it and memory stays
//! flat. A small result never touches the channel: it comes back with the end of the statement.

use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::ColumnDef;
use shardgate_wire::codec::binary::put_row_from_text;
use shardgate_wire::codec::text::put_cell;
use tokio::sync::mpsc;

use crate::engine::collate::Collation;
use crate::engine::session::Sink;
use crate::engine::types::ColumnMeta;
use crate::error::{SqlError, SqlResult};

/// A chunk goes out when it holds this many bytes.
const CHUNK: usize = 64 * 1024;
/// How many chunks may wait.
pub(super) const QUEUE: usize = 4;

/// Part of a result.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    /// The head, in the first chunk.
    pub(super) columns: Option<Vec<ColumnDef>>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Chunk {
    /// The rows' payloads.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let row = &self.bytes[from..*end];
            from = *end;
            row
        })
    }
}

/// Which protocol rows are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Text,
    Binary,
}

/// A column's description for the client.
pub(super) fn column_def(meta: &ColumnMeta) -> ColumnDef {
    let column_type =
        shardgate_wire::ColumnType::from_u8(meta.ty.code()).unwrap_or(shardgate_wire::ColumnType::VarString);
    let bytes = |s: &str| Bytes::copy_from_slice(s.as_bytes());
    ColumnDef {
        schema: bytes(&meta.schema),
        table: bytes(&meta.table),
        org_table: bytes(&meta.org_table),
        name: bytes(&meta.name),
        org_name: bytes(&meta.org_name),
        // Texts are told to be in the connection's collation, whatever the column's own.
        charset: if meta.ty.is_binary_on_wire() {
            63
        } else {
            Collation::Ci.id()
        },
        length: meta.ty.wire_length(),
        flags: meta.flags,
        decimals: meta.ty.wire_decimals(),
        ..ColumnDef::new(Bytes::new(), column_type)
    }
}

/// Where the engine puts its rows.
pub(super) struct ChannelSink {
    sender: mpsc::Sender<Chunk>,
    protocol: Protocol,
    columns: Vec<ColumnDef>,
    chunk: Chunk,
    sent: u64,
    /// A fault: each row this late.
    pub(super) pace: Option<Duration>,
    /// A fault: after so many rows a pause, or no end.
    pub(super) stall: Option<(u64, Option<Duration>)>,
}

impl ChannelSink {
    pub(super) fn new(sender: mpsc::Sender<Chunk>, protocol: Protocol) -> Self {
        Self {
            sender,
            protocol,
            columns: Vec::new(),
            chunk: Chunk::default(),
            sent: 0,
            pace: None,
            stall: None,
        }
    }

    /// What is left after the last row.
    pub(super) fn finish(self) -> Chunk {
        self.chunk
    }

    fn send(&mut self) -> SqlResult<()> {
        let chunk = std::mem::take(&mut self.chunk);
        // The receiver goes away when the client does.
        self.sender
            .blocking_send(chunk)
            .map_err(|_| SqlError::interrupted())
    }
}

impl Sink for ChannelSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()> {
        self.columns = columns.iter().map(column_def).collect();
        self.chunk.columns = Some(self.columns.clone());
        Ok(())
    }

    fn row(&mut self, cells: &[Option<Vec<u8>>]) -> SqlResult<()> {
        match self.protocol {
            Protocol::Text => {
                for cell in cells {
                    put_cell(&mut self.chunk.bytes, cell.as_deref());
                }
            }
            Protocol::Binary => {
                put_row_from_text(
                    &mut self.chunk.bytes,
                    &self.columns,
                    cells.iter().map(Option::as_deref),
                )
                .map_err(|e| SqlError::internal(format!("row in the binary protocol: {e:?}")))?;
            }
        }
        self.chunk.ends.push(self.chunk.bytes.len());
        self.sent += 1;
        // With a fault on the rows each is its own chunk, and the task that sends them keeps the time.
        let single = self.pace.is_some() || self.stall.is_some();
        if single || self.chunk.bytes.len() >= CHUNK {
            self.send()
        } else {
            Ok(())
        }
    }
}
