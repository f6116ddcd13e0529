//! A tablet's inside: its database file, its catalog, its sessions, its place in replication.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::{Connection, InterruptHandle, OpenFlags};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::catalog::Catalog;
use crate::engine::functions::Shared;
use crate::engine::listing::{Listing, row};
use crate::engine::temporal::DateTime;
use crate::engine::value::Value;
use crate::engine::vars::{Seeds, Variables};
use crate::error::{SqlError, SqlResult};
use crate::faults::Faults;
use crate::repl::{Applier, Event, Log};
use crate::rng::Rng;

/// What a tablet is made from.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) alias: String,
    pub(crate) server_id: u32,
    pub(crate) seed: u64,
    pub(crate) version: String,
    pub(crate) port: u16,
}

/// A session as others see it.
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) account: String,
    shared: Arc<Shared>,
    interrupt: InterruptHandle,
    /// Wakes what waits in a statement when it is killed.
    wake: Notify,
    /// The connection was killed.
    pub(crate) dead: CancellationToken,
    doing: Mutex<Doing>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Doing {
    database: Option<String>,
    statement: Option<String>,
    since: Instant,
    /// A fault makes the running statement deaf to KILL.
    deaf: bool,
}

impl Process {
    fn doing(&self) -> std::sync::MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement begins.
    pub(crate) fn begin(&self, statement: &[u8], database: Option<&str>, deaf: bool) {
        self.shared.clear_kill();
        let shown = String::from_utf8_lossy(&statement[..statement.len().min(4096)]).into_owned();
        let mut doing = self.doing();
        *doing = Doing {
            database: database.map(str::to_owned),
            statement: Some(shown),
            since: Instant::now(),
            deaf,
        };
    }

    /// It has ended.
    pub(crate) fn end(&self, database: Option<&str>) {
        let mut doing = self.doing();
        *doing = Doing {
            database: database.map(str::to_owned),
            statement: None,
            since: Instant::now(),
            deaf: false,
        };
    }

    /// Kills the running statement, if there is one that listens.
    pub(crate) fn kill_query(&self) {
        let doing = self.doing();
        if doing.statement.is_some() && !doing.deaf {
            self.shared.kill(|| self.interrupt.interrupt());
            self.wake.notify_waiters();
        }
    }

    /// The same, for what must end whether it listens or not: a client that is gone, a shutdown.
    pub(crate) fn abort(&self) {
        self.shared.kill(|| self.interrupt.interrupt());
        self.wake.notify_waiters();
    }

    fn kill_connection(&self) {
        let deaf = self.doing().deaf;
        if !deaf {
            self.kill_query();
            self.dead.cancel();
        }
    }

    /// Resolves when the running statement is killed. Cancel-safe.
    pub(crate) async fn killed(&self) {
        loop {
            let wake = self.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            if self.shared.is_killed() {
                return;
            }
            wake.await;
        }
    }
}

/// A line of SHOW PROCESSLIST.
pub(crate) struct ProcessLine {
    pub(crate) id: u32,
    pub(crate) account: String,
    pub(crate) database: Option<String>,
    pub(crate) command: &'static str,
    pub(crate) seconds: u64,
    pub(crate) statement: Option<String>,
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
    processes: Mutex<BTreeMap<u32, Arc<Process>>>,
    next_id: AtomicU32,
    pub(crate) faults: Arc<Faults>,
    log: Arc<Log>,
    applier: Mutex<Option<Arc<Applier>>>,
    started: Instant,
    pub(crate) questions: AtomicU64,
}

impl Tablet {
    pub(crate) fn new(identity: Identity, databases: &[String]) -> SqlResult<Arc<Self>> {
        let dir = tempfile::Builder::new()
            .prefix("shardgate-sim-")
            .tempdir()
            .map_err(|e| SqlError::internal(format!("cannot make a directory for the rows: {e}")))?;
        let mut rng = Rng::new(identity.seed ^ u64::from(identity.server_id));
        let uuid = format!(
            "{:08x}-0000-1000-8000-{:012x}",
            rng.next_u64() >> 32,
            rng.next_u64() >> 16
        );
        let globals = Variables::new(&Seeds {
            version: &identity.version,
            server_id: identity.server_id,
            port: identity.port,
            uuid,
        });
        let mut catalog = Catalog::default();
        for name in databases {
            catalog.schemas.insert(name.clone(), BTreeMap::default());
        }
        let faults = Faults::new(identity.seed);
        let tablet = Arc::new(Self {
            identity,
            dir,
            catalog: RwLock::new(Arc::new(catalog)),
            globals: RwLock::new(globals),
            write_lock: Arc::default(),
            read_only: AtomicBool::new(false),
            processes: Mutex::default(),
            next_id: AtomicU32::new(1),
            faults,
            log: Arc::default(),
            applier: Mutex::default(),
            started: Instant::now(),
            questions: AtomicU64::new(0),
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
        out.put("read_only", if self.is_read_only() { "1" } else { "0" });
        let gtid = |sequence: u64| {
            if sequence == 0 {
                String::new()
            } else {
                format!("0-{}-{sequence}", self.source_id())
            }
        };
        let (own, _) = self.log.end();
        match self.applier() {
            Some(applier) => {
                let applied = gtid(applier.progress().sequence);
                out.put("gtid_slave_pos", applied.clone());
                out.put("gtid_current_pos", applied);
            }
            None => {
                out.put("gtid_binlog_pos", gtid(own));
                out.put("gtid_current_pos", gtid(own));
            }
        }
        out
    }

    /// The server id in GTIDs: the primary's.
    fn source_id(&self) -> u32 {
        self.applier()
            .and_then(|a| a.source().rsplit('#').next().and_then(|n| n.parse().ok()))
            .unwrap_or(self.identity.server_id)
    }

    pub(crate) fn set_global(&self, name: &str, value: Option<&str>) -> SqlResult<()> {
        let mut globals = self.globals.write().unwrap_or_else(PoisonError::into_inner);
        let defaults = Variables::new(&Seeds {
            version: &self.identity.version,
            server_id: self.identity.server_id,
            port: self.identity.port,
            uuid: globals.text("server_uuid").to_owned(),
        });
        globals.set(name, value, &defaults)?;
        if name == "read_only" {
            self.read_only.store(globals.on("read_only"), Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed) || self.faults.read_only()
    }

    pub(crate) fn set_read_only(&self, on: bool) {
        self.read_only.store(on, Ordering::Relaxed);
    }

    // Sessions.

    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Enters a session into the list; the guard takes it out.
    pub(crate) fn enlist(
        self: &Arc<Self>,
        id: u32,
        account: String,
        shared: Arc<Shared>,
        interrupt: InterruptHandle,
    ) -> Enlisted {
        let doing = Doing {
            database: None,
            statement: None,
            since: Instant::now(),
            deaf: false,
        };
        let process = Arc::new(Process {
            id,
            account,
            shared,
            interrupt,
            wake: Notify::new(),
            dead: CancellationToken::new(),
            doing: Mutex::new(doing),
        });
        self.list().insert(id, Arc::clone(&process));
        Enlisted {
            tablet: Arc::clone(self),
            process,
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connections(&self) -> usize {
        self.list().len()
    }

    pub(crate) fn processes(&self) -> Vec<ProcessLine> {
        self.list()
            .values()
            .map(|p| {
                let doing = p.doing();
                ProcessLine {
                    id: p.id,
                    account: p.account.clone(),
                    database: doing.database.clone(),
                    command: if doing.statement.is_some() {
                        "Query"
                    } else {
                        "Sleep"
                    },
                    seconds: doing.since.elapsed().as_secs(),
                    statement: doing.statement.clone(),
                }
            })
            .collect()
    }

    /// KILL.
    pub(crate) fn kill(&self, id: u64, query_only: bool) -> SqlResult<()> {
        let found = u32::try_from(id)
            .ok()
            .and_then(|id| self.list().get(&id).cloned());
        let process =
            found.ok_or_else(|| SqlError::new(1094, *b"HY000", format!("Unknown thread id: {id}")))?;
        if query_only {
            process.kill_query();
        } else {
            process.kill_connection();
        }
        Ok(())
    }

    // Replication.

    pub(crate) fn log(&self, events: Vec<Event>) {
        self.log.append(events);
    }

    pub(crate) fn replication_log(&self) -> Arc<Log> {
        Arc::clone(&self.log)
    }

    pub(crate) fn applier(&self) -> Option<Arc<Applier>> {
        self.applier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_applier(&self, applier: Option<Arc<Applier>>) {
        *self.applier.lock().unwrap_or_else(PoisonError::into_inner) = applier;
    }

    pub(crate) fn status(&self) -> Vec<(&'static str, String)> {
        let running = self.processes().iter().filter(|p| p.statement.is_some()).count();
        vec![
            ("Questions", self.questions.load(Ordering::Relaxed).to_string()),
            ("Threads_connected", self.connections().to_string()),
            ("Threads_running", running.to_string()),
            ("Uptime", self.started.elapsed().as_secs().to_string()),
        ]
    }

    pub(crate) fn uptime(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    pub(crate) fn binlog_status(&self) -> Listing {
        let mut out = Listing::new(&["File", "#Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]);
        if self.applier().is_none() {
            out.push(row!["sim-bin.000001", self.log.end().1, "", ""]);
        }
        out
    }

    /// SHOW REPLICA STATUS, in the words of the statement's age.
    pub(crate) fn replica_status(&self, all: bool, modern: bool) -> Listing {
        let (source, replica) = if modern {
            ("Source", "Replica")
        } else {
            ("Master", "Slave")
        };
        let mut names: Vec<String> = Vec::new();
        if all {
            names.push("Connection_name".to_owned());
        }
        for name in [
            format!("{replica}_IO_State"),
            format!("{source}_Host"),
            format!("{source}_User"),
            format!("#{source}_Port"),
            format!("{source}_Log_File"),
            format!("#Read_{source}_Log_Pos"),
            format!("Relay_{source}_Log_File"),
            format!("{replica}_IO_Running"),
            format!("{replica}_SQL_Running"),
            "#Last_Errno".to_owned(),
            "Last_Error".to_owned(),
            format!("#Exec_{source}_Log_Pos"),
            format!("#Seconds_Behind_{source}"),
            "#Last_IO_Errno".to_owned(),
            "Last_IO_Error".to_owned(),
            "#Last_SQL_Errno".to_owned(),
            "Last_SQL_Error".to_owned(),
            format!("#{source}_Server_Id"),
            "Using_Gtid".to_owned(),
            "Gtid_IO_Pos".to_owned(),
            "#SQL_Delay".to_owned(),
        ] {
            names.push(name);
        }
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut out = Listing::new(&refs);
        let Some(applier) = self.applier() else {
            return out;
        };
        let progress = applier.progress();
        let (sequence, end) = applier.log_end();
        let (code, text) = progress.error.as_ref().map_or((0, String::new()), |e| {
            (u64::from(e.code), e.message.clone().into_owned())
        });
        let running = if progress.error.is_none() { "Yes" } else { "No" };
        let address = applier.source().split('#').next().unwrap_or("");
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
        let id = u64::from(self.source_id());
        let gtid = if sequence == 0 {
            String::new()
        } else {
            format!("0-{id}-{sequence}")
        };
        let mut line = if all { row![""] } else { Vec::new() };
        line.extend(row![
            "Waiting for source to send event",
            host,
            "root",
            port.parse::<u64>().unwrap_or(0),
            "sim-bin.000001",
            end,
            "sim-bin.000001",
            "Yes",
            running,
            code,
            text.as_str(),
            progress.position,
            applier
                .seconds_behind()
                .map_or(Value::Null, |s| Value::Int(i64::try_from(s).unwrap_or(i64::MAX))),
            0u64,
            "",
            code,
            text.as_str(),
            id,
            "Slave_Pos",
            gtid,
            applier.lag().as_secs(),
        ]);
        out.push(line);
        out
    }
}

/// A session's place in the list, given up on drop.
pub(crate) struct Enlisted {
    tablet: Arc<Tablet>,
    pub(crate) process: Arc<Process>,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.tablet.list().remove(&self.process.id);
    }
}
