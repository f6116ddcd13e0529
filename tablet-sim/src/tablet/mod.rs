//! A tablet's inside: its database file, its catalog, its sessions, its place in replication.

mod process;
mod replication;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use process::{Enlisted, Process};

use crate::engine::catalog::Catalog;
use crate::engine::temporal::DateTime;
use crate::engine::types::Ty;
use crate::engine::value::Value;
use crate::engine::vars::{Seeds, Variables};
use crate::error::{SqlError, SqlResult};
use crate::faults::{Faults, Layer};
use crate::repl::{Applier, Log};
use crate::rng::Rng;

/// The variables that are looked up when they are asked for.
const LIVE: [&str; 6] = [
    "gtid_binlog_pos",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_slave_pos",
    "read_only",
    "super_read_only",
];

/// What a tablet is made from.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) alias: String,
    pub(crate) server_id: u32,
    pub(crate) seed: u64,
    pub(crate) version: String,
    pub(crate) port: u16,
    /// Whether its process starts read-only: what it is again after a restart.
    pub(crate) read_only: bool,
}

impl Identity {
    fn uuid(&self) -> String {
        let mut rng = Rng::new(self.seed ^ u64::from(self.server_id));
        format!(
            "{:08x}-0000-1000-8000-{:012x}",
            rng.next_u64() >> 32,
            rng.next_u64() >> 16
        )
    }

    /// The variables that the process starts with.
    fn variables(&self) -> Variables {
        Variables::new(&Seeds {
            version: &self.version,
            server_id: self.server_id,
            port: self.port,
            uuid: self.uuid(),
            hostname: &self.alias,
        })
    }
}

/// The tablet.
#[derive(Debug)]
pub(crate) struct Tablet {
    identity: Identity,
    dir: TempDir,
    catalog: RwLock<Arc<Catalog>>,
    globals: RwLock<Variables>,
    write_lock: Arc<tokio::sync::Mutex<()>>,
    read_only: AtomicBool,
    /// Held for reading while a transaction commits: who sets read-only waits for those that were let through.
    commits: RwLock<()>,
    /// Its process is gone: killed, and not restarted.
    down: watch::Sender<bool>,
    /// Whether it accepts connections.
    listening: watch::Sender<bool>,
    processes: Mutex<BTreeMap<u32, Arc<Process>>>,
    next_id: AtomicU32,
    pub(crate) faults: Arc<Faults>,
    log: Arc<Log>,
    applier: Mutex<Option<Arc<Applier>>>,
    started: Mutex<Instant>,
    pub(crate) questions: AtomicU64,
    /// Reads that clients have asked for: what slows an applier with a rate.
    pub(crate) reads: AtomicU64,
}

impl Tablet {
    pub(crate) fn new(identity: Identity, databases: &[String]) -> SqlResult<Arc<Self>> {
        let dir = tempfile::Builder::new()
            .prefix("shardgate-sim-")
            .tempdir()
            .map_err(|e| SqlError::internal(format!("cannot make a directory for the rows: {e}")))?;
        let globals = identity.variables();
        let mut catalog = Catalog::default();
        for name in databases {
            catalog.schemas.insert(name.clone(), BTreeMap::default());
        }
        let faults = Faults::new(identity.seed, Layer::Tablet);
        let read_only = AtomicBool::new(identity.read_only);
        let tablet = Arc::new(Self {
            identity,
            dir,
            catalog: RwLock::new(Arc::new(catalog)),
            globals: RwLock::new(globals),
            write_lock: Arc::default(),
            read_only,
            commits: RwLock::default(),
            down: watch::channel(false).0,
            listening: watch::channel(true).0,
            processes: Mutex::default(),
            next_id: AtomicU32::new(1),
            faults,
            log: Arc::default(),
            applier: Mutex::default(),
            started: Mutex::new(Instant::now()),
            questions: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        });
        tablet.connect()?.execute_batch("PRAGMA journal_mode=WAL")?;
        Ok(tablet)
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("tablet.db")
    }

    /// A connection to the rows. They need not outlive the process, so nothing is synced.
    pub(crate) fn connect(&self) -> SqlResult<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(self.file(), flags)?;
        conn.execute_batch(
            "PRAGMA synchronous=OFF; PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA busy_timeout=5000; \
             PRAGMA recursive_triggers=ON",
        )?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    }

    pub(crate) fn alias(&self) -> &str {
        &self.identity.alias
    }

    pub(crate) fn seed(&self) -> u64 {
        self.identity.seed
    }

    pub(crate) fn version(&self) -> &str {
        &self.identity.version
    }

    pub(crate) fn write_lock(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.write_lock)
    }

    /// The wall clock, for `NOW()` and what follows from it.
    #[allow(clippy::disallowed_methods)] // the simulator's one reading of the wall clock
    #[allow(clippy::unused_self)] // a tablet's clock may be set one day
    pub(crate) fn wall(&self) -> DateTime {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(0);
        DateTime::from_micros(micros).unwrap_or_else(|| DateTime::date_only(1970, 1, 1))
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn publish(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    pub(crate) fn globals(&self) -> Variables {
        let mut out = self
            .globals
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for name in LIVE {
            if let Some(text) = self.live(name) {
                out.put(name, text);
            }
        }
        out
    }

    /// One variable as it is now; [`Self::globals`] copies all of them.
    pub(crate) fn global(&self, name: &str) -> SqlResult<(Value, Ty)> {
        let live = self.live(&name.to_ascii_lowercase());
        let globals = self.globals.read().unwrap_or_else(PoisonError::into_inner);
        globals.get_as(name, live.as_deref())
    }

    /// What is not kept but looked up.
    fn live(&self, name: &str) -> Option<String> {
        match name {
            // Whoever asks may do anything here, and is refused all the same.
            "read_only" | "super_read_only" => Some(if self.is_read_only() { "1" } else { "0" }.to_owned()),
            _ => self.position(name),
        }
    }

    pub(crate) fn set_global(&self, name: &str, value: Option<&str>) -> SqlResult<()> {
        let mut globals = self.globals.write().unwrap_or_else(PoisonError::into_inner);
        globals.set(name, value, &self.identity.variables())?;
        let (read_only, all) = (globals.on("read_only"), globals.on("super_read_only"));
        drop(globals);
        match name {
            "read_only" => self.set_read_only(read_only),
            "super_read_only" if all => self.set_read_only(true),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed) || self.faults.read_only()
    }

    /// Once this returns nobody commits any more: those that were let through have ended, which takes no longer than a
    /// commit.
    pub(crate) fn set_read_only(&self, on: bool) {
        let _none_commits = self.commits.write().unwrap_or_else(PoisonError::into_inner);
        self.read_only.store(on, Ordering::Relaxed);
    }

    /// To be held from the question whether the tablet is read-only to the end of the commit.
    pub(crate) fn committing(&self) -> RwLockReadGuard<'_, ()> {
        self.commits.read().unwrap_or_else(PoisonError::into_inner)
    }

    // Its process.

    pub(crate) fn is_down(&self) -> bool {
        *self.down.borrow()
    }

    /// Whether its process is gone, as it changes.
    pub(crate) fn down(&self) -> watch::Receiver<bool> {
        self.down.subscribe()
    }

    /// The process dies: what was committed stays, whatever else it knew is lost.
    pub(crate) fn die(&self) {
        self.down.send_replace(true);
    }

    /// The process starts anew, as it was configured.
    pub(crate) fn start_again(&self) {
        *self.globals.write().unwrap_or_else(PoisonError::into_inner) = self.identity.variables();
        self.set_read_only(self.identity.read_only);
        self.next_id.store(1, Ordering::Relaxed);
        self.questions.store(0, Ordering::Relaxed);
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.down.send_replace(false);
    }

    pub(crate) fn set_listening(&self, on: bool) {
        self.listening
            .send_if_modified(|now| std::mem::replace(now, on) != on);
    }

    /// Whether it accepts connections, as it changes.
    pub(crate) fn listening(&self) -> watch::Receiver<bool> {
        self.listening.subscribe()
    }

    pub(crate) fn status(&self) -> Vec<(&'static str, String)> {
        let running = self.processes().iter().filter(|p| p.statement.is_some()).count();
        vec![
            ("Questions", self.questions.load(Ordering::Relaxed).to_string()),
            ("Threads_connected", self.connections().to_string()),
            ("Threads_running", running.to_string()),
            ("Uptime", self.uptime().to_string()),
        ]
    }

    pub(crate) fn uptime(&self) -> u64 {
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.elapsed().as_secs()
    }
}
