//! One look at a tablet, over a connection of the poller's own.
//!
//! A look that is late keeps its connection until the next one. If what it waited for has come by then the connection is
//! used again: opening one costs a server several times what a look does, and hundreds of tablets that are a little late,
//! since the machine is busy, must not make it busier. What a late look finds is thrown away: it says nothing of now. Else it
//! is closed, and the next look opens another.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use shardgate_wire::WireError;
use shardgate_wire::client::TabletConn;

use super::PollSettings;
use super::decode::{self, NamedRow, VARIABLES, channels, facts, heartbeat, status_statements};
use crate::base::clock::{self, Instant};
use crate::tablet::{ask, connection};
use crate::topology::{
    Facts, Heartbeat, Observation, PollError, Replication, TabletInfo, UnknownReplication,
};

/// Rows of a replica's status: one a channel, and nobody has this many.
const MAX_CHANNELS: usize = 64;
/// How long the next look waits for what a late one has not read yet.
const LEFTOVER: Duration = Duration::from_millis(50);

/// Looks at one tablet again and again.
#[derive(Debug)]
pub(super) struct Looker {
    info: Arc<TabletInfo>,
    open: Option<Open>,
    /// The look that was late.
    late: Option<Attempt>,
}

/// The connection, if it can be used again, and what was found.
type Found = (Option<Open>, Result<Facts, PollError>);

/// A look under way.
struct Attempt(Pin<Box<dyn Future<Output = Found> + Send>>);

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").finish_non_exhaustive()
    }
}

impl Looker {
    pub(super) fn new(info: Arc<TabletInfo>) -> Self {
        Self {
            info,
            open: None,
            late: None,
        }
    }

    /// Looks once, within `limit`.
    pub(super) async fn look(&mut self, settings: &Arc<PollSettings>, limit: Duration) -> Observation {
        if let Some(mut late) = self.late.take()
            && let Ok((open, _)) = tokio::time::timeout(LEFTOVER, &mut late.0).await
        {
            self.open = open;
        }
        let at = clock::now();
        let work = attempt(self.open.take(), Arc::clone(&self.info), Arc::clone(settings));
        let attempt = self.late.insert(Attempt(Box::pin(work)));
        let outcome = match tokio::time::timeout_at(at + limit, &mut attempt.0).await {
            Ok((open, found)) => {
                self.late = None;
                self.open = open;
                found
            }
            Err(_) => Err(PollError::Timeout(limit)),
        };
        Observation {
            at,
            took: clock::now().duration_since(at),
            outcome,
        }
    }

    /// Closes in good order.
    pub(super) async fn close(&mut self) {
        if let Some(open) = self.open.take() {
            // A courtesy; a server that does not take it finds the socket closed.
            let _ = tokio::time::timeout(Duration::from_millis(100), open.wire.quit()).await;
        }
    }
}

/// Looks over this connection, or over a new one; the connection if it can be used again.
async fn attempt(kept: Option<Open>, info: Arc<TabletInfo>, settings: Arc<PollSettings>) -> Found {
    if let Some(mut open) = kept.filter(|o| Arc::ptr_eq(&o.settings, &settings))
        && open.wire.is_alive()
    {
        match open.ask().await {
            Ok(facts) => return (Some(open), Ok(facts)),
            // An idle connection may have been closed for reasons of its own: a new one tells.
            Err(PollError::Lost(_)) => {}
            Err(e) => return (None, Err(e)),
        }
    }
    let mut open = match Open::new(&info, &settings).await {
        Ok(open) => open,
        Err(e) => return (None, Err(e)),
    };
    match open.ask().await {
        Ok(facts) => (Some(open), Ok(facts)),
        Err(e) => (None, Err(e)),
    }
}

/// A connection, with what is asked on it.
#[derive(Debug)]
struct Open {
    wire: TabletConn,
    /// It was opened by these; others want another one.
    settings: Arc<PollSettings>,
    /// The statement for the variables that this server has.
    variables: String,
    /// Statements for a replica's status that may still work, the one to use first.
    status: Vec<&'static str>,
    /// When its server was started, if it says.
    booted: Option<Instant>,
    /// See [`Facts::bypasses_read_only`].
    bypasses_read_only: Option<String>,
}

impl Open {
    async fn new(info: &TabletInfo, settings: &Arc<PollSettings>) -> Result<Self, PollError> {
        let login = connection::login(&settings.backend);
        let mut wire = TabletConn::connect(&info.address, &login)
            .await
            .map_err(unreachable)?;
        let names = VARIABLES.map(|v| format!("'{v}'")).join(", ");
        let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})");
        let mut known = Vec::new();
        let mut version = String::new();
        for (name, value) in pairs(&mut wire, &sql).await? {
            if name == "version" {
                version = value;
            }
            if let Some(known_name) = VARIABLES.iter().find(|v| **v == name) {
                known.push(format!("@@global.{known_name} AS {known_name}"));
            }
        }
        if known.is_empty() {
            return Err(PollError::Strange("the server shows no variables".into()));
        }
        let uptime = pairs(&mut wire, "SHOW GLOBAL STATUS LIKE 'Uptime'").await?;
        let seconds = uptime.first().and_then(|(_, value)| value.parse().ok());
        let bypasses_read_only = bypasses_read_only(&mut wire).await?;
        Ok(Self {
            wire,
            settings: Arc::clone(settings),
            variables: format!("SELECT {}", known.join(", ")),
            status: status_statements(&version).to_vec(),
            bypasses_read_only,
            booted: seconds.and_then(|s| clock::now().checked_sub(Duration::from_secs(s))),
        })
    }

    async fn ask(&mut self) -> Result<Facts, PollError> {
        let rows = rows(&mut self.wire, &self.variables, 1).await.map_err(failed)?;
        let variables = rows
            .first()
            .ok_or_else(|| PollError::Strange("the server shows no variables".into()))?;
        let replication = self.replication().await?;
        let heartbeat = self.heartbeat().await?;
        let uptime = self.booted.map(|b| clock::now().duration_since(b));
        if self.bypasses_read_only.is_some() {
            // Until somebody revokes it.
            self.bypasses_read_only = bypasses_read_only(&mut self.wire).await?;
        }
        let bypasses = self.bypasses_read_only.clone();
        facts(variables, replication, heartbeat, uptime, bypasses)
    }

    /// The newest heartbeat, where a table for it is configured. A table that cannot be read is not a dead server.
    async fn heartbeat(&mut self) -> Result<Option<Heartbeat>, PollError> {
        let Some(table) = &self.settings.heartbeat_table else {
            return Ok(None);
        };
        let sql = format!("SELECT MAX(ts) AS ts FROM {table}");
        match rows(&mut self.wire, &sql, 1).await {
            Ok(rows) => Ok(Some(heartbeat(&rows))),
            Err(WireError::Server(e)) => Ok(Some(Heartbeat::Unreadable {
                errno: e.code,
                message: e.message_text().into_owned(),
            })),
            Err(e) => Err(failed(e)),
        }
    }

    /// The replica's status, by the first statement that the server knows. A missing privilege is not a dead server.
    async fn replication(&mut self) -> Result<Replication, PollError> {
        while let Some(sql) = self.status.first() {
            match rows(&mut self.wire, sql, MAX_CHANNELS).await {
                Ok(rows) => return Ok(channels(&rows)),
                Err(WireError::Server(e)) if e.code == 1227 => {
                    let why = UnknownReplication::Denied(e.message_text().into_owned());
                    return Ok(Replication::Unknown(why));
                }
                // A syntax error, or a statement not supported.
                Err(WireError::Server(e)) if matches!(e.code, 1064 | 1235) => {
                    self.status.remove(0);
                }
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(Replication::Unknown(UnknownReplication::Unsupported))
    }
}

/// See [`Facts::bypasses_read_only`].
async fn bypasses_read_only(wire: &mut TabletConn) -> Result<Option<String>, PollError> {
    match rows(wire, "SHOW GRANTS", ask::MAX_GRANTS).await {
        Ok(grants) => Ok(decode::bypasses_read_only(
            grants.iter().filter_map(NamedRow::first),
        )),
        // One that does not show them.
        Err(WireError::Server(_)) => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

async fn rows(wire: &mut TabletConn, sql: &str, max: usize) -> Result<Vec<NamedRow>, WireError> {
    let (columns, rows) = ask::result(wire, sql.as_bytes(), max).await?;
    Ok(rows.iter().map(|row| NamedRow::new(&columns, row)).collect())
}

/// Names and values of a SHOW.
async fn pairs(wire: &mut TabletConn, sql: &str) -> Result<Vec<(String, String)>, PollError> {
    let found = rows(wire, sql, VARIABLES.len()).await.map_err(failed)?;
    Ok(found.into_iter().filter_map(NamedRow::into_pair).collect())
}

/// An error of a connection that was never usable.
fn unreachable(e: WireError) -> PollError {
    match e {
        WireError::Io(e) => PollError::Unreachable(e.to_string()),
        other => failed(other),
    }
}

/// An error of a connection in use.
fn failed(e: WireError) -> PollError {
    match e {
        WireError::Server(e) => PollError::Denied {
            errno: e.code,
            message: e.message_text().into_owned(),
        },
        WireError::Io(_) | WireError::Closed | WireError::Truncated => PollError::Lost(e.to_string()),
        WireError::PacketTooLarge { .. }
        | WireError::OutOfOrder { .. }
        | WireError::Malformed(_)
        | WireError::AccessDenied { .. }
        | WireError::Unsupported(_)
        | WireError::Tls(_)
        | WireError::State(_) => PollError::Strange(e.to_string()),
    }
}
