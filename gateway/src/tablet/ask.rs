//! The gateway's own questions on a connection: small answers, read whole.

use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::client::{Head, RowEvent, TabletConn};
use shardgate_wire::codec::text;
use shardgate_wire::protocol::command;
use shardgate_wire::{ColumnDef, OkPacket, WireError};

use super::TabletError;
use super::connection::{Connection, Sent, server_error};
use crate::base::clock::Instant;

/// Rows of a user's grants.
pub(super) const MAX_GRANTS: usize = 4096;

impl Connection {
    /// Runs a statement of the gateway's own that answers with OK, or whose rows are of no interest.
    pub async fn run(&mut self, sql: &[u8], sent: Sent) -> Result<OkPacket, TabletError> {
        match self.wire.run(sql).await {
            Ok(ok) => Ok(ok),
            Err(e) => Err(self.failed(e, sent)),
        }
    }

    /// Like [`Self::run`], given up at a deadline.
    pub async fn simple(&mut self, sql: &str, deadline: Instant) -> Result<(), TabletError> {
        match tokio::time::timeout_at(deadline, self.run(sql.as_bytes(), Sent::Maybe)).await {
            Ok(result) => result.map(|_| ()),
            Err(_) => Err(TabletError::Lost {
                tablet: self.info.alias.clone(),
                reason: "no answer in time".into(),
            }),
        }
    }

    /// Runs a small query of the gateway's own; gives at most `max_rows` rows of the text protocol.
    pub async fn query(&mut self, sql: &[u8], max_rows: usize) -> Result<Vec<Bytes>, TabletError> {
        match query(&mut self.wire, sql, max_rows).await {
            Ok(rows) => Ok(rows),
            Err(e) => Err(self.failed(e, Sent::Maybe)),
        }
    }

    /// How long its server has been running, as the server says; `None` if it does not say.
    pub async fn uptime(&mut self) -> Option<Duration> {
        let (_, rows) = self.result(b"SHOW GLOBAL STATUS LIKE 'Uptime'", 1).await.ok()?;
        let value = text::cells(rows.first()?).nth(1)?.ok()??;
        std::str::from_utf8(value)
            .ok()?
            .parse()
            .ok()
            .map(Duration::from_secs)
    }

    /// The privilege by which its user may write through `read_only`; `None` if it has none, or the server does not say.
    pub async fn bypasses_read_only(&mut self) -> Option<String> {
        let rows = self.query(b"SHOW GRANTS", MAX_GRANTS).await.ok()?;
        let grants = rows
            .iter()
            .filter_map(|row| text::cells(row).next()?.ok().flatten())
            .filter_map(|grant| std::str::from_utf8(grant).ok());
        super::poller::bypasses_read_only(grants)
    }

    /// Runs a query for a small result, read whole: its columns, and at most `max_rows` rows of the text protocol.
    pub async fn result(
        &mut self,
        sql: &[u8],
        max_rows: usize,
    ) -> Result<(Vec<ColumnDef>, Vec<Bytes>), TabletError> {
        match result(&mut self.wire, sql, max_rows).await {
            Ok(value) => Ok(value),
            Err(e) => Err(self.failed(e, Sent::Maybe)),
        }
    }

    /// The columns of a table whose names match, as `COM_FIELD_LIST` gives them.
    pub async fn field_list(&mut self, table: &[u8], wildcard: &[u8]) -> Result<Vec<ColumnDef>, TabletError> {
        let asked = async {
            self.wire
                .send(command::FIELD_LIST, &[table, b"\0", wildcard])
                .await?;
            self.wire.read_field_list().await
        };
        let listed = match asked.await {
            Ok(Ok(list)) => list.iter().map(ColumnDef::parse).collect::<Result<Vec<_>, _>>(),
            Ok(Err(e)) => return Err(TabletError::Server(server_error(&e))),
            Err(e) => return Err(self.failed(e, Sent::Maybe)),
        };
        listed.map_err(|e| self.failed(e.into(), Sent::Maybe))
    }

    /// Runs a query of the gateway's own for one value: its column, and its text; `None` for NULL.
    pub async fn query_one(&mut self, sql: &[u8]) -> Result<(ColumnDef, Option<Bytes>), TabletError> {
        match query_one(&mut self.wire, sql).await {
            Ok(value) => Ok(value),
            Err(e) => Err(self.failed(e, Sent::Maybe)),
        }
    }

    /// Asks whether the server is there.
    pub async fn ping(&mut self, deadline: Instant) -> Result<(), TabletError> {
        let ping = async {
            self.wire.send(command::PING, &[]).await?;
            self.wire.read_ok().await
        };
        match tokio::time::timeout_at(deadline, ping).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(self.failed(e, Sent::No)),
            // The answer is still due, which is how the caller tells silence from a closed connection.
            Err(_) => Err(TabletError::LostBeforeSend {
                tablet: self.info.alias.clone(),
                reason: "no answer to a ping".into(),
            }),
        }
    }
}

pub(super) async fn query(
    wire: &mut TabletConn,
    sql: &[u8],
    max_rows: usize,
) -> Result<Vec<Bytes>, WireError> {
    result(wire, sql, max_rows).await.map(|(_, rows)| rows)
}

/// Columns and rows; rows past the bound are read and thrown away. A statement without rows has no columns.
pub(super) async fn result(
    wire: &mut TabletConn,
    sql: &[u8],
    max_rows: usize,
) -> Result<(Vec<ColumnDef>, Vec<Bytes>), WireError> {
    wire.send_query(sql).await?;
    let columns = match wire.read_head().await? {
        Head::ResultSet { .. } => wire.read_columns().await?,
        Head::Err(e) => return Err(WireError::Server(Box::new(e))),
        Head::Ok(_) => return Ok((Vec::new(), Vec::new())),
        Head::LocalInfile(_) => return Err(WireError::State("rows were due")),
    };
    let columns = columns
        .definitions
        .iter()
        .map(ColumnDef::parse)
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    loop {
        match wire.next_row().await? {
            RowEvent::Row(row) => {
                if rows.len() < max_rows {
                    rows.push(row);
                }
            }
            RowEvent::End(_) => return Ok((columns, rows)),
            RowEvent::Err(e) => return Err(WireError::Server(Box::new(e))),
        }
    }
}

async fn query_one(wire: &mut TabletConn, sql: &[u8]) -> Result<(ColumnDef, Option<Bytes>), WireError> {
    let (mut columns, rows) = result(wire, sql, 1).await?;
    if columns.is_empty() {
        return Err(WireError::Malformed("no columns"));
    }
    let column = columns.swap_remove(0);
    let Some(row) = rows.first() else {
        return Ok((column, None));
    };
    let value = text::cells(row).next().transpose()?.flatten();
    Ok((column, value.map(|v| row.slice_ref(v))))
}
