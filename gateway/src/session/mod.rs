//! One client connection: the command loop, what the client set, its transaction, its prepared statements.

mod accepted;
mod allowed;
mod anywhere;
mod bodies;
mod borrow;
mod charset;
mod command;
mod counted;
mod error;
mod explain;
mod kind_times;
mod lately;
pub mod like;
mod literal;
mod pins;
mod planned;
mod planning;
mod prepare;
mod prepared;
mod query;
mod reach;
pub mod registry;
mod schemata;
mod schemata_names;
mod schemata_show;
mod schemata_views;
mod set;
mod shared;
mod show;
mod show_shardgate;
mod state;
mod table;
mod target;
mod transact;
mod values;

pub use accepted::Accepted;
pub use counted::{CountedHandles, count_kinds_from_zero};
pub use error::SessionError;
pub use kind_times::{KindTime, KindTimes};
pub use lately::Lately;
pub use prepared::PreparedLimits;
pub use registry::{Registration, SessionHandle, SessionRegistry};
pub use shared::{Relearn, SessionOptions, Shared, Users, View};
pub use target::{Target, TargetError};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_wire::stream::Share;
use shardgate_wire::{ClientConn, ErrPacket, OkPacket, WireError};

use self::shared::limit;
use self::state::SessionState;
use crate::base::{ClientError, GatewayError};
use crate::exec::{Alarm, Deadline, Ending, ExecError, Kill, Layer, Limits, rollback};

/// One connected, authenticated client.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    view: Arc<View>,
    client: ClientConn,
    registration: Registration,
    /// Rings for the session, whatever it waits for.
    alarm: Alarm,
    state: SessionState,
    /// How the statement in hand was executed, for the metrics.
    executed: counted::Executed,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The client said QUIT or asked for RELEASE.
    Quit,
    /// The client closed its connection, or the connection failed.
    Gone,
    /// Somebody killed it.
    Killed,
    /// It was idle for too long.
    Idle,
    /// The gateway stops.
    Stopping,
    /// What it sent is not the protocol.
    Protocol,
    /// It did not read its answers.
    Stalled,
}

/// The shortest time a failing session is given to take its last error packet.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Session {
    /// A session of a client that has logged in and still waits for its OK; `target` is the database it named.
    pub fn new(
        shared: Arc<Shared>,
        mut client: ClientConn,
        registration: Registration,
        target: Target,
    ) -> Self {
        client.set_share(Share::new(Arc::clone(&shared.memory)));
        let view = shared.view.load_full();
        let state = SessionState::new(target, view.lex.mode, view.options.prepared);
        let mut session = Self {
            shared,
            view,
            client,
            registration,
            alarm: Alarm::default(),
            state,
            executed: counted::Executed::Local,
        };
        session.apply_login_charset();
        session.show_target();
        session
    }

    /// Serves the client until it leaves or has to.
    pub async fn run(mut self) -> SessionEnd {
        let status = self.state.status();
        self.client.put_ok(&OkPacket::with_status(status));
        let end = match self.flush().await {
            Ok(()) => self.serve().await,
            Err(end) => end,
        };
        self.leave(end).await;
        end
    }

    async fn serve(&mut self) -> SessionEnd {
        loop {
            let command = match self.next_command().await {
                Ok(command) => command,
                Err(end) => return end,
            };
            self.take_view();
            self.registration.handle.kill.begin_command();
            if let Err(end) = self.command(command).await {
                return end;
            }
            self.registration.handle.enter("Sleep", None);
            if let Err(end) = self.flush().await {
                return end;
            }
        }
    }

    /// What the command that begins is planned by. The count of the view's holders is left alone unless it is a new one:
    /// all sessions would change it at every command.
    fn take_view(&mut self) {
        let view = self.shared.view.load();
        if !Arc::ptr_eq(&view, &self.view) {
            self.view = Arc::clone(&view);
        }
    }

    /// Waits for a command, for as long as an idle client may.
    async fn next_command(&mut self) -> Result<shardgate_wire::Command, SessionEnd> {
        loop {
            let idle = self.idle_limit();
            let grace = self.stop_grace();
            let read = tokio::select! {
                biased;
                read = self.client.read_command() => read,
                end = must_end(&self.registration.handle.kill, grace) => return Err(end),
                () = elapsed(&self.alarm, idle) => return Err(SessionEnd::Idle),
            };
            match read {
                Ok(command) => return Ok(command),
                Err(e) if e.keeps_connection() => {
                    // The connection stands at the next packet: the client is told, and may go on.
                    if let Some(packet) = e.client_error() {
                        self.client.put_err(&packet);
                    }
                    self.flush().await?;
                }
                Err(WireError::Io(_) | WireError::Closed | WireError::Truncated) => {
                    return Err(SessionEnd::Gone);
                }
                Err(e) => {
                    if let Some(packet) = e.client_error() {
                        self.client.put_err(&packet);
                        self.flush().await?;
                    }
                    return Err(SessionEnd::Protocol);
                }
            }
        }
    }

    /// How long the session may go on once the gateway is to stop: not at all outside a transaction.
    fn stop_grace(&self) -> Duration {
        if self.state.transaction.is_active() {
            self.view.options.shutdown_grace
        } else {
            Duration::ZERO
        }
    }

    fn idle_limit(&self) -> Option<Duration> {
        let options = &self.view.options;
        let reserved = self
            .state
            .held
            .reserved()
            .and_then(|_| limit(options.reserved_idle));
        match (limit(options.client_idle), reserved) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Sends what is buffered; a client that does not take it is given up.
    async fn flush(&mut self) -> Result<(), SessionEnd> {
        let flushing = self.client.flush();
        let sent = match limit(self.view.options.client_stall_timeout) {
            Some(stall) => self
                .alarm
                .within(stall, flushing)
                .await
                .ok_or(SessionEnd::Stalled)?,
            None => flushing.await,
        };
        sent.map_err(|_| SessionEnd::Gone)
    }

    /// Buffers an error for the client and keeps it for `SHOW WARNINGS`.
    fn put_error(&mut self, error: &SessionError) -> Result<(), SessionEnd> {
        if let SessionError::Exec(e) = error
            && e.ends_session()
        {
            return Err(match e {
                ExecError::ClientStalled(_) => SessionEnd::Stalled,
                ExecError::Killed(_) => SessionEnd::Killed,
                _ => SessionEnd::Gone,
            });
        }
        if let Some(code) = error.code() {
            self.shared.metrics.query_errors.handle(code).inc();
        }
        let ClientError {
            errno,
            sqlstate,
            message,
        } = error.client_error();
        self.client
            .put_err(&ErrPacket::new(errno, sqlstate, message.clone()));
        self.state.note_error(errno, message.into_owned());
        Ok(())
    }

    /// Buffers a plain OK of the gateway's own.
    fn put_ok(&mut self, more: More) {
        self.state.note_local();
        let status = self.status(more);
        self.client.put_ok(&OkPacket::with_status(status));
    }

    /// Buffers an OK that tells a client which follows such changes what changed in its session.
    fn put_ok_with(&mut self, session_state: Vec<u8>, more: More) {
        self.state.note_local();
        let ok = OkPacket {
            session_state: session_state.into(),
            ..OkPacket::with_status(self.status(more))
        };
        self.client.put_ok(&ok);
    }

    fn status(&self, more: More) -> shardgate_wire::StatusFlags {
        let mut status = self.state.status();
        status.set(shardgate_wire::StatusFlags::MORE_RESULTS, more == More::Yes);
        status
    }

    /// What may end the next statement early.
    fn limits(&self, timeout: Duration) -> Limits<'_> {
        limits_of(
            (&self.registration.handle.kill, &self.alarm),
            &self.view.options,
            timeout,
        )
    }

    fn show_target(&self) {
        let name = self.state.target.to_string();
        self.registration
            .handle
            .set_database((!name.is_empty()).then_some(name));
    }

    /// Rolls back and says goodbye.
    async fn leave(&mut self, end: SessionEnd) {
        tracing::debug!(connection = self.registration.handle.id, end = ?end, "session ends");
        let timeout = self.view.options.query_timeout.max(Duration::from_secs(1));
        let wakers = (&self.registration.handle.kill, &self.alarm);
        let limits = limits_of(wakers, &self.view.options, timeout);
        let in_transaction = self.state.transaction.is_active();
        rollback(&mut self.state.held, &limits).await;
        self.state.held.clear();
        let last = match end {
            // Nobody else's word: the grace is over.
            SessionEnd::Killed if self.registration.handle.kill.is_stopping() => Some(ErrPacket::new(
                1105,
                *b"HY000",
                "SG1107: the gateway is shutting down and waits no longer; a statement that was running may or may not \
                 have been executed, an open transaction is rolled back",
            )),
            SessionEnd::Killed => Some(ErrPacket::new(1927, *b"70100", "Connection was killed")),
            SessionEnd::Stopping if in_transaction => Some(ErrPacket::new(
                1105,
                *b"HY000",
                "SG1107: the gateway is shutting down; the open transaction is rolled back",
            )),
            SessionEnd::Stopping => Some(ErrPacket::new(
                1105,
                *b"HY000",
                "SG1107: the gateway is shutting down; nothing was executed",
            )),
            SessionEnd::Idle => Some(ErrPacket::new(
                4031,
                *b"HY000",
                "The client was disconnected by the server because of inactivity.",
            )),
            SessionEnd::Quit | SessionEnd::Gone | SessionEnd::Protocol | SessionEnd::Stalled => None,
        };
        if let Some(packet) = last {
            self.client.put_err(&packet);
        }
        // A courtesy with a bound: whoever does not take it finds the socket closed.
        let _ = tokio::time::timeout(LAST_WORDS, async {
            self.client.flush().await?;
            self.client.shutdown().await
        })
        .await;
    }
}

fn limits_of<'a>(
    (kill, alarm): (&'a crate::exec::KillSwitch, &'a Alarm),
    options: &SessionOptions,
    timeout: Duration,
) -> Limits<'a> {
    Limits {
        kill,
        alarm,
        deadline: limit(timeout).map(|after| Deadline {
            at: crate::base::clock::now() + after,
            after,
            layer: Layer::Gateway,
        }),
        tablet: limit(options.tablet_timeout),
        tablet_silent: limit(options.tablet_stall_timeout),
        client_stalled: limit(options.client_stall_timeout),
    }
}

/// Whether another result of the same command follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

/// Waits until a session that runs no command must end, because it was killed or because the gateway stops; in the latter
/// case it may go on for the grace.
async fn must_end(kill: &crate::exec::KillSwitch, grace: Duration) -> SessionEnd {
    match kill.ending().await {
        Ending::Killed => SessionEnd::Killed,
        Ending::Stopping => tokio::select! {
            biased;
            () = kill.connection_killed() => SessionEnd::Killed,
            () = tokio::time::sleep(grace) => SessionEnd::Stopping,
        },
    }
}

async fn elapsed(alarm: &Alarm, limit: Option<Duration>) {
    match limit {
        Some(limit) => alarm.at(crate::base::clock::now() + limit).await,
        None => std::future::pending().await,
    }
}

/// Text of a client as it is shown to people: what is not UTF-8 is replaced.
fn shown(text: &Bytes) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A kill thrown while no statement listens is obeyed at the next good point.
fn pending_kill(kill: &crate::exec::KillSwitch) -> Option<SessionError> {
    kill.pending()
        .map(|k: Kill| SessionError::Exec(ExecError::Killed(k)))
}
