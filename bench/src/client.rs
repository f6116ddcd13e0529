//! The load's clients: lean, over the wire's own client side, so that what is measured is not the load.

use std::net::SocketAddr;
use std::time::Duration;

use shardgate_tests::mariadb::{APP_PASSWORD, APP_USER};
use shardgate_wire::auth::Password;
use shardgate_wire::protocol::command;
use shardgate_wire::{Address, ConnectOptions, Head, RowEvent, TabletConn, WireError};
use tokio::time::Instant;

/// `COM_STMT_EXECUTE` behind the statement's id: no cursor, once.
const EXECUTE_HEAD: [u8; 5] = [0, 1, 0, 0, 0];
/// One parameter, not NULL, its type told: a signed BIGINT.
const ONE_BIGINT: [u8; 4] = [0, 1, 8, 0];

/// What was read of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Rows.
    pub(crate) rows: u64,
    /// Their payloads' bytes.
    pub(crate) bytes: u64,
}

/// How fast an answer is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// As fast as it comes.
    Free,
    /// At most this many bytes a second.
    Slow(u64),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    conn: TabletConn,
    statement: Option<u32>,
}

impl Client {
    /// Logs in as the application.
    pub(crate) async fn connect(addr: SocketAddr, database: &str) -> Result<Self, WireError> {
        let mut options = ConnectOptions::new(APP_USER, Password::new(APP_PASSWORD));
        options.database = Some(database.to_owned());
        options
            .capabilities
            .set(shardgate_wire::Capabilities::CONNECT_WITH_DB, true);
        let address = Address::tcp(addr.ip().to_string(), addr.port());
        let conn = TabletConn::connect(&address, &options).await?;
        Ok(Self {
            conn,
            statement: None,
        })
    }

    /// Prepares the statement that [`Self::execute`] runs.
    pub(crate) async fn prepare(&mut self, sql: &str) -> Result<(), WireError> {
        self.conn.send(command::STMT_PREPARE, &[sql.as_bytes()]).await?;
        match self.conn.read_prepared().await? {
            Ok(prepared) => {
                self.statement = Some(prepared.ok.statement_id);
                Ok(())
            }
            Err(e) => Err(WireError::Server(Box::new(e))),
        }
    }

    /// Sends a statement as text.
    pub(crate) async fn send(&mut self, sql: &str) -> Result<(), WireError> {
        self.conn.send_query(sql.as_bytes()).await
    }

    /// Sends the prepared statement with at most one parameter.
    pub(crate) async fn execute(&mut self, param: Option<i64>) -> Result<(), WireError> {
        let id = self.statement.ok_or(WireError::State("nothing is prepared"))?;
        let (id, value) = (id.to_le_bytes(), param.unwrap_or_default().to_le_bytes());
        let mut parts: Vec<&[u8]> = vec![&id, &EXECUTE_HEAD];
        if param.is_some() {
            parts.extend([&ONE_BIGINT[..], &value]);
        }
        self.conn.send(command::STMT_EXECUTE, &parts).await
    }

    /// Sends a statement and reads its answer, rows or none.
    pub(crate) async fn ask(&mut self, sql: &str) -> Result<Read, WireError> {
        self.send(sql).await?;
        self.answer(Pace::Free).await
    }

    /// Reads an answer with rows to its end.
    pub(crate) async fn read(&mut self, pace: Pace) -> Result<Read, WireError> {
        match self.conn.read_head().await? {
            Head::ResultSet { .. } => self.rows(pace).await,
            Head::Err(e) => Err(WireError::Server(Box::new(e))),
            Head::Ok(_) | Head::LocalInfile(_) => Err(WireError::State("rows were due")),
        }
    }

    /// Reads an answer to its end, rows or none.
    async fn answer(&mut self, pace: Pace) -> Result<Read, WireError> {
        match self.conn.read_head().await? {
            Head::ResultSet { .. } => self.rows(pace).await,
            Head::Ok(_) => Ok(Read::default()),
            Head::Err(e) => Err(WireError::Server(Box::new(e))),
            Head::LocalInfile(_) => Err(WireError::State("a file was asked for")),
        }
    }

    async fn rows(&mut self, pace: Pace) -> Result<Read, WireError> {
        self.conn.read_columns().await?;
        let began = Instant::now();
        let mut read = Read::default();
        loop {
            let row = match self.conn.next_row_buffered()? {
                Some(event) => event,
                None => self.conn.next_row().await?,
            };
            match row {
                RowEvent::Row(row) => {
                    read.rows += 1;
                    read.bytes += row.len() as u64;
                    if let Pace::Slow(rate) = pace {
                        keep_pace(began, read.bytes, rate).await;
                    }
                    drop(row);
                }
                RowEvent::End(_) => return Ok(read),
                RowEvent::Err(e) => return Err(WireError::Server(Box::new(e))),
            }
        }
    }
}

/// Waits while more was read than the rate allows by now.
async fn keep_pace(began: Instant, bytes: u64, rate: u64) {
    // In steps, since timers are no finer than a millisecond.
    const STEP: Duration = Duration::from_millis(2);
    let due = Duration::from_micros(bytes.saturating_mul(1_000_000) / rate.max(1));
    if due > began.elapsed() + STEP {
        tokio::time::sleep_until(began + due).await;
    }
}
