//! What all sessions share.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use shardgate_sql::{LexOptions, SqlMode};
use shardgate_wire::auth::Credential;
use shardgate_wire::server::{Authenticator, Identity};
use shardgate_wire::stream::Room;

use super::accepted::Accepted;
use super::counted::CountedHandles;
use super::kind_times::KindTimes;
use super::lately::Lately;
use super::prepared::PreparedLimits;
use super::registry::SessionRegistry;
use crate::balance::Fleet;
use crate::base::KeyspaceName;
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::exec::TransactionMode;
use crate::plan::{Catalog, PlanCache};
use crate::topology::Health;

/// What a configuration says to sessions; a reload replaces it as a whole.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// `VERSION()`, also in the greeting.
    pub server_version: String,
    /// Whether a transaction may span shards.
    pub transaction_mode: TransactionMode,
    /// How long a command may take to its first row; zero lifts the limit.
    pub query_timeout: Duration,
    /// How long one attempt on a tablet may take; zero for as long as the command.
    pub tablet_timeout: Duration,
    /// The first for DDL.
    pub ddl_timeout: Duration,
    /// The same for sessions with `workload = 'olap'`.
    pub olap_timeout: Duration,
    /// How long a tablet may send nothing once rows flow; zero lifts the limit.
    pub tablet_stall_timeout: Duration,
    /// How long a client may take nothing; zero lifts the limit.
    pub client_stall_timeout: Duration,
    /// How long a client may say nothing; zero lifts the limit.
    pub client_idle: Duration,
    /// How long logging in anew (`COM_CHANGE_USER`) may take.
    pub handshake_timeout: Duration,
    /// How long a client may say nothing while it keeps a tablet connection to itself; zero lifts the limit.
    pub reserved_idle: Duration,
    /// How long open transactions may go on once the gateway is to stop.
    pub shutdown_grace: Duration,
    /// How many shards a statement waits for at once; zero for all.
    pub fan_out: usize,
    /// Whether statements for several shards are refused unless they say that they may be run.
    pub no_scatter: bool,
    /// Bounds of prepared statements.
    pub prepared: PreparedLimits,
    /// Bytes of settings and user variables a session may have.
    pub max_settings: usize,
    /// Bytes that gathering one statement's answer may take.
    pub query_memory: usize,
}

/// Who may log in, by name.
#[derive(Clone, Debug, Default)]
pub struct Users(HashMap<Vec<u8>, Credential>);

impl Users {
    /// These users.
    pub fn new(users: impl IntoIterator<Item = (String, Credential)>) -> Self {
        Self(
            users
                .into_iter()
                .map(|(name, credential)| (name.into_bytes(), credential))
                .collect(),
        )
    }
}

impl Authenticator for Users {
    fn credential(&self, who: &Identity<'_>) -> Option<Credential> {
        self.0.get(who.user).cloned()
    }
}

/// Everything that statements are planned by, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Keyspaces, tables, shards.
    pub catalog: Arc<Catalog>,
    /// The configuration's word.
    pub options: Arc<SessionOptions>,
    /// Who may log in.
    pub users: Arc<Users>,
    /// Which servers the tablets are, and the `sql_mode` their sessions start with.
    pub lex: LexOptions,
}

impl View {
    /// How a session with this `sql_mode` reads statements.
    pub fn lex_options(&self, mode: SqlMode) -> LexOptions {
        LexOptions { mode, ..self.lex }
    }
}

/// Learns a keyspace's tables anew, after DDL; bounded in time by itself.
pub type Relearn = Box<dyn Fn(KeyspaceName) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What all sessions share.
pub struct Shared {
    /// What statements are planned by.
    pub view: ArcSwap<View>,
    /// Tablets and their pools.
    pub fleet: Arc<Fleet>,
    /// How each tablet was when it was last looked at.
    pub health: Arc<Health>,
    /// Which kinds of statement take up the tablets' time.
    pub kind_times: KindTimes,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Those of each kind of statement.
    pub counted: CountedHandles,
    /// Who is connected.
    pub sessions: Arc<SessionRegistry>,
    /// Plans made before.
    pub plans: PlanCache,
    /// Memory that large statements and the gathering of answers take, all together.
    pub memory: Arc<Room>,
    /// Settings that tablets took.
    pub accepted: Accepted,
    /// What was lately seen of shards.
    pub lately: Lately,
    /// Learns tables anew.
    pub relearn: Relearn,
    /// When the gateway started.
    pub started: Instant,
}

impl Shared {
    /// How long the gateway runs.
    pub fn uptime(&self) -> Duration {
        clock::now().duration_since(self.started)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// A limit where zero means none.
pub(super) fn limit(duration: Duration) -> Option<Duration> {
    (!duration.is_zero()).then_some(duration)
}
