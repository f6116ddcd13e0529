//! One look at a tablet, over a connection of the poller's own.
//!
//! A look that is late goes on, so that its connection can be used again: opening one costs a server several times what a
//! look does, and hundreds of tablets that are late, since the machine is busy, must not keep it busy. What a late look
//! finds is thrown away: it says nothing of now. One that takes longer than our patience is given up, for its connection
//! may be lost without a word, and the next look opens another. The first time this is soon, so that a tablet that lost no
//! more than a connection is late only once; each further time we wait for twice as long, up to a bound.

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
/// How long an attempt may take before it is given up, in halves of the time a look may take. A look that begins where this
/// one was late has the other half for a connection of its own.
const PATIENCE: u32 = 3;
/// The same when attempt after attempt was given up. A server that is back is seen this much later at worst.
const MOST_PATIENCE: u32 = 16;

/// Looks at one tablet again and again.
#[derive(Debug)]
pub(super) struct Looker {
    info: Arc<TabletInfo>,
    open: Option<Open>,
    /// What was late and goes on.
    late: Option<Attempt>,
    /// How long an attempt may take before it is given up: between [`PATIENCE`] and [`MOST_PATIENCE`].
    patience: u32,
}

/// The connection, if it can be used again, and what was found.
type Found = (Option<Open>, Result<Facts, PollError>);

/// A look under way.
struct Attempt {
    began: Instant,
    work: Pin<Box<dyn Future<Output = Found> + Send>>,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt")
            .field("began", &self.began)
            .finish_non_exhaustive()
    }
}

impl Looker {
    pub(super) fn new(info: Arc<TabletInfo>) -> Self {
        Self {
            info,
            open: None,
            late: None,
            patience: PATIENCE,
        }
    }

    /// Looks once, within `limit`.
    pub(super) async fn look(&mut self, settings: &Arc<PollSettings>, limit: Duration) -> Observation {
        let at = clock::now();
        let outcome = tokio::time::timeout_at(at + limit, self.find(settings)).await;
        Observation {
            at,
            took: clock::now().duration_since(at),
            outcome: outcome.unwrap_or(Err(PollError::Timeout(limit))),
        }
    }

    /// Finds what is there now. A caller that does not wait for it leaves it as the late one.
    async fn find(&mut self, settings: &Arc<PollSettings>) -> Result<Facts, PollError> {
        if let Some(late) = &self.late {
            let given_up = late.began + (settings.timeout / 2).saturating_mul(self.patience);
            if tokio::time::timeout_at(given_up, self.finish_late())
                .await
                .is_err()
            {
                self.late = None;
                self.patience = (self.patience * 2).min(MOST_PATIENCE);
            }
        }
        let work = attempt(self.open.take(), Arc::clone(&self.info), Arc::clone(settings));
        let now = self.late.insert(Attempt {
            began: clock::now(),
            work: Box::pin(work),
        });
        let (open, found) = (&mut now.work).await;
        self.late = None;
        self.open = open;
        self.patience = PATIENCE;
        found
    }

    /// Goes on with what was late, if anything was, until it ends. It can be dropped at any time and called again.
    pub(super) async fn finish_late(&mut self) {
        if let Some(late) = &mut self.late {
            let (open, _) = (&mut late.work).await;
            self.late = None;
            self.open = open;
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
        | WireError::NoRoom { .. }
        | WireError::OutOfOrder { .. }
        | WireError::Malformed(_)
        | WireError::AccessDenied { .. }
        | WireError::Unsupported(_)
        | WireError::Tls(_)
        | WireError::State(_) => PollError::Strange(e.to_string()),
    }
}
