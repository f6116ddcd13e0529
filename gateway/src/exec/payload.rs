//! How a leg's statement travels: as text, or as a prepared statement's execution.

use bytes::Bytes;
use shardgate_wire::client::Head;
use shardgate_wire::protocol::command;
use shardgate_wire::{ErrPacket, WireError};

use super::held::Leased;
use super::watch::Limits;
use crate::base::clock::{self, Instant};
use crate::guard::{Outcome, Work};
use crate::route::{Leg, LegParams};
use crate::tablet::{Connection, PooledConn, Sent, TabletError, Unused, server_error};

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
    /// Bytes of all values.
    fn bytes(&self) -> usize;
}

/// Sends a leg's statement and reads the first packet of the answer. The attempt begins with the first byte; it ends here
/// too, unless rows follow.
pub(super) async fn send(
    lease: &mut Leased,
    leg: &Leg,
    payload: Payload<'_>,
    (work, limits): (Work, &Limits<'_>),
) -> Result<Head, TabletError> {
    if lease.conn.gate().is_replaced() {
        return Err(lease.conn.superseded(Sent::No));
    }
    let started = clock::now();
    let unused = lease.conn.is_unused();
    lease.attempt = Some(lease.conn.start(work, started)?);
    let conn = &mut lease.conn;
    let head = match payload {
        Payload::Text => query(conn, &leg.sql).await,
        Payload::Prepared(values) => prepared(conn, &leg.sql, values, &leg.params).await,
    };
    let now = clock::now();
    let outcome = outcome(&lease.conn, &head, (unused, now));
    lease.conn.count_call(now.duration_since(started), outcome);
    if let Some(mut attempt) = lease.attempt.take() {
        if matches!(head, Ok(Head::ResultSet { .. })) {
            attempt.responded(lease.conn.gate(), now);
            lease.attempt = Some(attempt);
        } else if outcome == Outcome::Timeout {
            lease.attempt = Some(attempt);
            lease.timed_out_by_itself(limits.tablet);
        } else {
            attempt.record(lease.conn.gate(), outcome, now);
        }
    }
    if !lease.conn.gate().is_replaced() {
        return head;
    }
    let is_answer = match &head {
        Ok(Head::Ok(_) | Head::ResultSet { .. } | Head::LocalInfile(_)) => true,
        // What is wrong there may be right on the new one. It may have done something before it failed, as a procedure does.
        Ok(Head::Err(e)) => !TabletError::Server(server_error(e)).is_sign(lease.role),
        Err(_) => false,
    };
    if !is_answer {
        return head;
    }
    lease.attempt = None;
    Err(lease.conn.superseded(Sent::Maybe))
}

/// What the answer's beginning says of the tablet. A connection that lay idle and is lost at its first use was closed by
/// its server some time ago, which says nothing of the server now.
fn outcome(conn: &PooledConn, head: &Result<Head, TabletError>, (unused, now): (Unused, Instant)) -> Outcome {
    let role = conn.info().role;
    match head {
        Ok(Head::Err(e)) => {
            let error = TabletError::Server(server_error(e));
            conn.gate().judged(error.outcome(role), error.is_sign(role), now)
        }
        Ok(Head::Ok(_) | Head::ResultSet { .. } | Head::LocalInfile(_)) => Outcome::Success,
        Err(TabletError::Lost { .. }) if unused == Unused::Idle => Outcome::Neutral,
        Err(e) => conn.gate().judged(e.outcome(role), e.is_sign(role), now),
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
            // Nothing ran: the server only asks for the statement anew. A procedure that uses such a statement itself has
            // run until then, and is told of `EXECUTE`.
            conn.forget_statement(sql)?;
            execute(conn, sql, values, params).await
        }
        head => Ok(head),
    }
}

fn statement_is_stale(e: &ErrPacket) -> bool {
    match e.code {
        UNKNOWN_STATEMENT => e.message_text().ends_with("given to mysqld_stmt_execute"),
        code => code == NEED_REPREPARE,
    }
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
