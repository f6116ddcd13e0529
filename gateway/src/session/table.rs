//! Small result sets that the gateway makes itself, for `SHOW` and its kin.

use bytes::Bytes;
use shardgate_wire::codec::binary::put_row_from_text;
use shardgate_wire::codec::text::{cells, put_cell};
use shardgate_wire::protocol::ColumnFlags;
use shardgate_wire::{ClientConn, ColumnDef, ColumnType, OkPacket, StatusFlags};

use super::SessionError;
use super::like::like;

/// One column of a [`Table`].
#[derive(Clone, Debug)]
pub(super) struct Column {
    definition: ColumnDef,
}

impl Column {
    /// A text column.
    pub(super) fn text(name: &str) -> Self {
        Self {
            definition: ColumnDef::text(Bytes::copy_from_slice(name.as_bytes()), 255),
        }
    }

    /// A BIGINT column.
    pub(super) fn bigint(name: &str) -> Self {
        Self {
            definition: ColumnDef::bigint(Bytes::copy_from_slice(name.as_bytes())),
        }
    }
}

impl Column {
    /// The columns of `SHOW WARNINGS`, as the servers describe them.
    pub(super) fn of_warnings() -> Vec<Self> {
        let text = |name: &'static str, chars| {
            let mut definition = ColumnDef::text(name, chars);
            definition.flags = ColumnFlags::NOT_NULL;
            // `NOT_FIXED_DEC`: what the servers put where digits have no meaning.
            definition.decimals = 39;
            Self { definition }
        };
        let mut code = ColumnDef::new("Code", ColumnType::Long);
        code.length = 4;
        code.flags = ColumnFlags::NOT_NULL | ColumnFlags::UNSIGNED | ColumnFlags::BINARY | ColumnFlags::NUM;
        vec![text("Level", 7), Self { definition: code }, text("Message", 512)]
    }
}

/// Columns and rows of text.
#[derive(Clone, Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// A table of text columns.
    pub(super) fn of_text(names: &[&str]) -> Self {
        Self::new(names.iter().map(|n| Column::text(n)).collect())
    }

    /// Adds a row of values, none of them NULL.
    pub(super) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(Some).collect());
    }

    /// Adds a row.
    pub(super) fn push_nullable(&mut self, row: Vec<Option<String>>) {
        self.rows.push(row);
    }

    /// Keeps the rows whose first column is like the pattern.
    pub(super) fn filter(&mut self, pattern: Option<&str>) {
        if let Some(pattern) = pattern {
            self.rows.retain(|row| {
                row.first()
                    .and_then(Option::as_deref)
                    .is_some_and(|name| like(name, pattern))
            });
        }
    }

    /// Keeps `count` rows behind the first `offset`.
    pub(super) fn window(&mut self, offset: usize, count: usize) {
        self.rows.drain(..offset.min(self.rows.len()));
        self.rows.truncate(count);
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Buffers it as a result set of the text protocol.
    pub(super) fn put(&self, client: &mut ClientConn, status: StatusFlags) {
        let definitions: Vec<_> = self.columns.iter().map(|c| c.definition.clone()).collect();
        client.put_columns(&definitions, status, 0);
        for row in &self.rows {
            client.put_with(|out| {
                for cell in row {
                    put_cell(out, cell.as_ref().map(String::as_bytes));
                }
            });
        }
        client.put_rows_end(&OkPacket::with_status(status));
    }

    /// Buffers it as a result set of the binary protocol.
    pub(super) fn put_binary(
        &self,
        client: &mut ClientConn,
        status: StatusFlags,
    ) -> Result<(), SessionError> {
        let definitions: Vec<_> = self.columns.iter().map(|c| c.definition.clone()).collect();
        client.put_columns(&definitions, status, 0);
        for row in &self.rows {
            let mut text = Vec::new();
            for cell in row {
                put_cell(&mut text, cell.as_ref().map(String::as_bytes));
            }
            put_binary_row(client, &definitions, &text)?;
        }
        client.put_rows_end(&OkPacket::with_status(status));
        Ok(())
    }
}

/// Buffers a row of the text protocol in binary.
pub(super) fn put_binary_row(
    client: &mut ClientConn,
    columns: &[ColumnDef],
    row: &[u8],
) -> Result<(), SessionError> {
    let malformed = |_| SessionError::Syntax("a row that does not fit its columns".into());
    let cells = cells(row).collect::<Result<Vec<_>, _>>().map_err(malformed)?;
    let mut out = Vec::new();
    put_row_from_text(&mut out, columns, cells).map_err(malformed)?;
    client.put_raw(&out);
    Ok(())
}
