//! How a leg's statement travels: as text, or as a prepared statement's execution.

use bytes::Bytes;
use shardgate_breaker::{Outcome, ServerError};
use shardgate_wire::client::Head;
use shardgate_wire::protocol::command;
use shardgate_wire::{ErrPacket, WireError};

use crate::base::{Role, clock};
use crate::route::LegParams;
use crate::tablet::{Connection, PooledConn, Sent, TabletError};

/// `ER_UNKNOWN_STMT_HANDLER`: the server does not have the statement (any more).
const UNKNOWN_STATEMENT: u16 = 1243;
/// `ER_NEED_REPREPARE`: the schema changed under it.
const NEED_REPREPARE: u16 = 1615;

/// The form in which a statement came and its answer goes back.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// `COM_QUERY`.
    Text,
    /// `COM_STMT_EXECUTE` with these parameters.
    Prepared(&'a dyn EncodeParams),
}

/// Parameters of a prepared statement's execution, as the session keeps them.
pub trait EncodeParams: std::fmt::Debug + Send + Sync {
    /// What follows the command byte of `COM_STMT_EXECUTE`, for a statement of this id that takes these parameters.
    fn encode(&self, statement_id: u32, which: &LegParams) -> Vec<u8>;
}

/// Sends a leg's statement and reads the first packet of the answer.
pub(super) async fn send(
    conn: &mut PooledConn,
    sql: &Bytes,
    params: &LegParams,
    payload: Payload<'_>,
) -> Result<Head, TabletError> {
    let started = clock::now();
    let head = match payload {
        Payload::Text => query(conn, sql).await,
        Payload::Prepared(values) => prepared(conn, sql, values, params).await,
    };
    conn.count_call(clock::now().duration_since(started), outcome(conn, &head));
    head
}

/// What the answer's beginning says of the tablet.
fn outcome(conn: &PooledConn, head: &Result<Head, TabletError>) -> Outcome {
    let at_primary = conn.info().role == Role::Primary;
    match head {
        Ok(Head::Err(e)) => ServerError {
            errno: e.code,
            message: &e.message_text(),
            at_primary,
            killed_by_us: false,
        }
        .outcome(),
        Err(TabletError::Server(e)) => ServerError {
            errno: e.errno,
            message: &e.message,
            at_primary,
            killed_by_us: false,
        }
        .outcome(),
        Ok(Head::Ok(_) | Head::ResultSet { .. } | Head::LocalInfile(_)) => Outcome::Success,
        Err(_) => Outcome::Failure,
    }
}

async fn query(conn: &mut Connection, sql: &Bytes) -> Result<Head, TabletError> {
    let asked = async {
        conn.wire().send_query(sql).await?;
        conn.wire().read_head().await
    };
    let result = asked.await;
    result.map_err(|e| conn.failed(e, Sent::Maybe))
}

async fn prepared(
    conn: &mut Connection,
    sql: &Bytes,
    values: &dyn EncodeParams,
    params: &LegParams,
) -> Result<Head, TabletError> {
    match execute(conn, sql, values, params).await? {
        Head::Err(e) if statement_is_stale(&e) => {
            // Nothing ran: the server only asks for the statement anew.
            conn.forget_statement(sql)?;
            execute(conn, sql, values, params).await
        }
        head => Ok(head),
    }
}

fn statement_is_stale(e: &ErrPacket) -> bool {
    matches!(e.code, UNKNOWN_STATEMENT | NEED_REPREPARE)
}

async fn execute(
    conn: &mut Connection,
    sql: &Bytes,
    values: &dyn EncodeParams,
    params: &LegParams,
) -> Result<Head, TabletError> {
    let (id, _) = conn.prepare(sql).await?;
    let body = values.encode(id, params);
    let asked: Result<Head, WireError> = async {
        conn.wire().send(command::STMT_EXECUTE, &[&body]).await?;
        conn.wire().read_head().await
    }
    .await;
    asked.map_err(|e| conn.failed(e, Sent::Maybe))
}
