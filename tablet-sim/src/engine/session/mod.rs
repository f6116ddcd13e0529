//! One client's session: its `SQLite` connection, its variables, its transaction.
//!
//! # Transactions over `SQLite`
//! All sessions of a tablet share one database file in WAL mode: readers keep their snapshot and never wait; there is
//! one writer at a time. Who writes first takes the tablet's write lock (an async lock, waited for outside the blocking
//! pool and given up after `innodb_lock_wait_timeout` with error 1205), so `SQLite` itself never finds the file busy.
//! A transaction that has only read gives up its snapshot for a newer one when it begins to write, as a `MySQL`
//! statement that writes also sees the newest rows.

mod transaction;

use crate::engine::functions::{self, Shared};
use crate::engine::parse::Parsed;
use crate::engine::temporal::DateTime;
use crate::engine::translate::Facts;
use crate::engine::types::{ColumnMeta, Ty};
use crate::engine::value::Value;
use crate::engine::vars::{self, Variables};
use crate::error::{SqlError, SqlResult};
use crate::repl::Event;
use crate::tablet::Tablet;
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::OwnedMutexGuard;

/// A warning that SHOW WARNINGS lists.
#[derive(Clone, Debug)]
pub(crate) struct Warning {
    pub(crate) level: &'static str,
    pub(crate) code: u16,
    pub(crate) message: String,
}

/// The most warnings kept: `max_error_count`'s default.
const MAX_WARNINGS: usize = 64;

/// What a statement without rows did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) affected: u64,
    pub(crate) insert_id: u64,
    pub(crate) info: String,
}

/// How a statement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok(Done),
    /// Rows went to the sink.
    Rows,
}

/// Where a result's rows go.
pub(crate) trait Sink {
    /// The head, once, before any row.
    fn columns(&mut self, columns: &[ColumnMeta]) -> SqlResult<()>;
    /// A row, cells in their text form.
    fn row(&mut self, cells: &[Option<Vec<u8>>]) -> SqlResult<()>;
}

/// A transaction's state.
#[allow(clippy::struct_excessive_bools)] // independent facts, each asked for alone
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// BEGIN was said, or autocommit is off and something was done.
    pub(crate) active: bool,
    /// `SQLite` has a transaction open.
    open: bool,
    /// It has the write lock and may have written.
    pub(crate) writing: bool,
    pub(crate) read_only: bool,
    /// Names, and how many events had been collected when each was set.
    savepoints: Vec<(String, usize)>,
}

/// A session.
#[allow(clippy::struct_excessive_bools)] // independent facts, each asked for alone
pub(crate) struct Session {
    pub(crate) tablet: Arc<Tablet>,
    pub(crate) conn: Connection,
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: u32,
    pub(crate) account: String,
    pub(crate) db: Option<String>,
    pub(crate) vars: Variables,
    pub(crate) user_vars: HashMap<String, (Value, Ty)>,
    pub(crate) txn: Transaction,
    /// For the next transaction only, by SET TRANSACTION.
    pub(crate) next_read_only: Option<bool>,
    pub(crate) next_isolation: Option<String>,
    isolation: String,
    lock: Option<OwnedMutexGuard<()>>,
    pub(crate) last_insert_id: u64,
    pub(crate) found_rows: u64,
    pub(crate) row_count: i64,
    pub(crate) warnings: Vec<Warning>,
    /// Whether affected rows count what was found rather than what changed (`CLIENT_FOUND_ROWS`).
    pub(crate) count_found: bool,
    pub(crate) now: DateTime,
    pub(crate) pending: Vec<Event>,
    /// The first `AUTO_INCREMENT` value of the statement being replayed.
    pub(crate) forced_insert_id: Option<u64>,
    /// Applies another tablet's log: may write on a read-only tablet, and logs nothing.
    pub(crate) applier: bool,
    /// The tablet's owner speaks: it may write on a read-only tablet.
    pub(crate) local: bool,
    /// The random seed of the statement being replayed.
    pub(crate) replay_seed: Option<u64>,
    /// The statement names the information schema, whose tables must be made first.
    pub(crate) information_schema: bool,
}

impl Facts for Session {
    fn system(&self, scope: Option<&str>, name: &str) -> SqlResult<(Value, Ty)> {
        let name = name.trim_matches('`');
        match scope.map(str::to_ascii_lowercase).as_deref() {
            Some("global") => self.tablet.global(name),
            None | Some("session" | "local") => match name.to_ascii_lowercase().as_str() {
                "in_transaction" => Ok((Value::Int(i64::from(self.txn.active)), Ty::BIGINT)),
                "last_insert_id" => Ok((
                    Value::from_i128(i128::from(self.last_insert_id)).unwrap_or(Value::Null),
                    Ty::UBIGINT,
                )),
                "warning_count" => Ok((Value::Int(self.warnings.len() as i64), Ty::BIGINT)),
                name if vars::is_global_only(name) => self.tablet.global(name),
                "timestamp" if self.vars.number("timestamp") == 0.0 => {
                    let micros = self.now.micros();
                    Ok((
                        Value::text(format!(
                            "{}.{:06}",
                            micros.div_euclid(1_000_000),
                            micros.rem_euclid(1_000_000)
                        )),
                        Ty::decimal(17, 6),
                    ))
                }
                _ => self.vars.get(name),
            },
            Some(other) => Err(SqlError::unknown_variable(&format!("{other}.{name}"))),
        }
    }

    fn user(&self, name: &str) -> (Value, Ty) {
        self.user_vars
            .get(&name.to_lowercase())
            .cloned()
            .unwrap_or((Value::Null, Ty::Null))
    }

    fn connection_id(&self) -> u64 {
        u64::from(self.id)
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id
    }

    fn found_rows(&self) -> u64 {
        self.found_rows
    }

    fn row_count(&self) -> i64 {
        self.row_count
    }

    fn now(&self) -> DateTime {
        self.now
    }

    fn database(&self) -> Option<&str> {
        self.db.as_deref()
    }

    fn version(&self) -> &str {
        self.vars.text("version")
    }
}

impl Session {
    /// Opens a session on the tablet's database file.
    pub(crate) fn open(tablet: Arc<Tablet>, id: u32, account: String) -> SqlResult<Self> {
        let conn = tablet.connect()?;
        let shared = Shared::new(tablet.seed() ^ (u64::from(id) << 32));
        functions::register(&conn, &shared)?;
        let vars = tablet.globals();
        Ok(Self {
            conn,
            shared,
            id,
            account,
            db: None,
            vars,
            user_vars: HashMap::new(),
            txn: Transaction::default(),
            next_read_only: None,
            next_isolation: None,
            isolation: String::new(),
            lock: None,
            last_insert_id: 0,
            found_rows: 0,
            row_count: 0,
            warnings: Vec::new(),
            count_found: false,
            now: tablet.wall(),
            pending: Vec::new(),
            forced_insert_id: None,
            applier: false,
            local: false,
            replay_seed: None,
            information_schema: false,
            tablet,
        })
    }

    /// How statements are read, by the session's `sql_mode`.
    pub(crate) fn lex_options(&self) -> shardgate_sql::LexOptions {
        let mode = shardgate_sql::SqlMode::parse(self.vars.text("sql_mode")).unwrap_or_default();
        shardgate_sql::LexOptions::for_server(self.vars.text("version"), mode).unwrap_or_default()
    }

    pub(crate) fn strict(&self) -> bool {
        self.vars.text("sql_mode").contains("STRICT_")
    }

    pub(crate) fn warn(&mut self, level: &'static str, code: u16, message: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning {
                level,
                code,
                message: message.into(),
            });
        }
    }

    /// Whether a statement must hold the tablet's write lock before it runs.
    pub(crate) fn needs_lock(&self, parsed: &Parsed) -> bool {
        use shardgate_sql::StatementKind as K;
        if self.lock.is_some() {
            return false;
        }
        match parsed.class.kind {
            K::Insert | K::Replace | K::Update | K::Delete | K::Ddl { .. } => true,
            K::Select => parsed.class.is_locking_read && (self.txn.active || !self.vars.on("autocommit")),
            _ => false,
        }
    }

    pub(crate) fn take_lock(&mut self, guard: OwnedMutexGuard<()>) {
        self.lock = Some(guard);
    }

    pub(crate) fn lock_wait(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.vars.number("innodb_lock_wait_timeout").clamp(0.0, 1e8))
    }

    /// The statement's own time limit, if the session set one; SELECT only for `max_execution_time`.
    pub(crate) fn time_limit(&self, parsed: &Parsed) -> Option<(std::time::Duration, SqlError)> {
        let seconds = self.vars.number("max_statement_time");
        if seconds > 0.0 {
            return Some((
                std::time::Duration::from_secs_f64(seconds.min(1e8)),
                SqlError::new(
                    1969,
                    *b"70100",
                    "Query execution was interrupted (max_statement_time exceeded)",
                ),
            ));
        }
        let millis = self.vars.number("max_execution_time");
        (millis > 0.0 && parsed.class.kind == shardgate_sql::StatementKind::Select).then(|| {
            (
                std::time::Duration::from_secs_f64((millis / 1000.0).min(1e8)),
                SqlError::new(
                    3024,
                    *b"HY000",
                    "Query execution was interrupted, maximum statement execution time exceeded",
                ),
            )
        })
    }

    /// Runs one statement. Its write lock, if it needs one, was taken before.
    pub(crate) fn execute(&mut self, parsed: &Parsed, sink: &mut dyn Sink) -> SqlResult<Outcome> {
        use shardgate_sql::StatementKind as K;
        if !self.applier {
            let stamp = self.vars.number("timestamp");
            self.now = if stamp > 0.0 {
                DateTime::from_micros((stamp * 1e6) as i64).unwrap_or(self.now)
            } else {
                self.tablet.wall()
            };
        }
        if !matches!(parsed.class.kind, K::Show) {
            self.warnings.clear();
        }
        self.information_schema = parsed.mentions("information_schema")
            || self
                .db
                .as_deref()
                .is_some_and(|d| d.eq_ignore_ascii_case("information_schema"));
        self.shared.explicit_last_id.store(0, Ordering::Relaxed);
        let out = self.dispatch(parsed, sink);
        let explicit = self.shared.explicit_last_id.load(Ordering::Relaxed);
        if explicit != 0 {
            self.last_insert_id = explicit;
        }
        let out = self.end_statement(out);
        self.row_count = match &out {
            Ok(Outcome::Ok(done)) => i64::try_from(done.affected).unwrap_or(i64::MAX),
            _ => -1,
        };
        if let Err(e) = &out {
            let (code, message) = (e.code, e.message.clone().into_owned());
            self.warn("Error", code, message);
        }
        match out {
            Ok(Outcome::Ok(mut done)) if explicit != 0 && done.insert_id == 0 => {
                done.insert_id = explicit;
                Ok(Outcome::Ok(done))
            }
            other => other,
        }
    }

    fn dispatch(&mut self, parsed: &Parsed, sink: &mut dyn Sink) -> SqlResult<Outcome> {
        use shardgate_sql::StatementKind as K;
        let ok = |()| Outcome::Ok(Done::default());
        match parsed.class.kind {
            K::Empty => Err(SqlError::new(1065, *b"42000", "Query was empty")),
            K::Begin(options) => {
                self.commit()?;
                self.begin(options.read_only, options.consistent_snapshot).map(ok)
            }
            K::Commit { chain, .. } => {
                let read_only = self.txn.read_only;
                self.commit()?;
                if chain {
                    self.begin(Some(read_only), false).map(ok)
                } else {
                    Ok(ok(()))
                }
            }
            K::Rollback { chain, .. } => {
                let read_only = self.txn.read_only;
                self.rollback()?;
                if chain {
                    self.begin(Some(read_only), false).map(ok)
                } else {
                    Ok(ok(()))
                }
            }
            K::Savepoint { name } => self.savepoint(parsed.word(name).unwrap_or("")).map(ok),
            K::RollbackTo { name } => self.rollback_to(parsed.word(name).unwrap_or("")).map(ok),
            K::ReleaseSavepoint { name } => self.release(parsed.word(name).unwrap_or("")).map(ok),
            K::SetTransaction => self.set_transaction(parsed).map(ok),
            K::Set => self.set(parsed).map(ok),
            K::Use => {
                let name = parsed
                    .word(1)
                    .ok_or_else(|| SqlError::syntax("near 'USE'"))?
                    .to_owned();
                self.use_database(&name).map(ok)
            }
            K::Show => self.show(parsed, sink),
            K::Describe { table } => self.describe(parsed, table, sink),
            K::Select => self.select(parsed, sink),
            K::Do => self.do_statement(parsed).map(ok),
            K::Insert | K::Replace | K::Update | K::Delete => {
                self.begin_write()?;
                self.write(parsed).map(Outcome::Ok)
            }
            K::Ddl { .. } => {
                self.commit_keeping_lock()?;
                self.begin_write()?;
                self.ddl(parsed).map(Outcome::Ok)
            }
            K::UnlockTables => Ok(ok(())),
            K::Admin(shardgate_sql::AdminKind::Flush) => self.commit().map(ok),
            _ => {
                let first: Vec<&str> = parsed.words.iter().take(2).map(|w| w.text.as_str()).collect();
                Err(SqlError::unsupported(first.join(" ")))
            }
        }
    }

    /// What autocommit and atomicity of one statement ask for when it has ended.
    fn end_statement(&mut self, out: SqlResult<Outcome>) -> SqlResult<Outcome> {
        if self.txn.active {
            return out;
        }
        match out {
            Ok(done) => {
                self.commit()?;
                Ok(done)
            }
            Err(e) => {
                self.rollback()?;
                Err(e)
            }
        }
    }

    /// USE.
    pub(crate) fn use_database(&mut self, name: &str) -> SqlResult<()> {
        let known = name.eq_ignore_ascii_case("information_schema")
            || self.tablet.catalog().schemas.contains_key(name);
        if !known {
            return Err(SqlError::unknown_database(name));
        }
        self.db = Some(name.to_owned());
        Ok(())
    }

    /// `COM_RESET_CONNECTION`: as new, the chosen database kept.
    pub(crate) fn reset(&mut self) -> SqlResult<()> {
        self.rollback()?;
        self.vars = self.tablet.globals();
        self.apply_foreign_keys()?;
        self.user_vars.clear();
        self.warnings.clear();
        self.last_insert_id = 0;
        self.found_rows = 0;
        self.row_count = 0;
        self.next_read_only = None;
        self.next_isolation = None;
        Ok(())
    }

    /// Brings `SQLite`'s foreign keys in line with the session's variable.
    pub(crate) fn apply_foreign_keys(&mut self) -> SqlResult<()> {
        if self.txn.open {
            return Err(SqlError::unsupported(
                "SET foreign_key_checks inside a transaction",
            ));
        }
        let on = if self.vars.on("foreign_key_checks") {
            "ON"
        } else {
            "OFF"
        };
        self.conn.execute_batch(&format!("PRAGMA foreign_keys={on}"))?;
        Ok(())
    }

    /// The status flags of the protocol.
    pub(crate) fn status(&self) -> u16 {
        const IN_TRANS: u16 = 1;
        const AUTOCOMMIT: u16 = 1 << 1;
        const NO_BACKSLASH: u16 = 1 << 9;
        const READ_ONLY: u16 = 1 << 13;
        let mut status = 0;
        if self.txn.active {
            status |= IN_TRANS;
            if self.txn.read_only {
                status |= READ_ONLY;
            }
        }
        if self.vars.on("autocommit") {
            status |= AUTOCOMMIT;
        }
        if self.vars.text("sql_mode").contains("NO_BACKSLASH_ESCAPES") {
            status |= NO_BACKSLASH;
        }
        status
    }
}
