//! Begin, commit, savepoints: a `MySQL` transaction over those of `SQLite`.

use super::Session;
use super::Transaction;
use crate::engine::value::quote;
use crate::error::{SqlError, SqlResult};

impl Session {
    pub(super) fn begin(&mut self, read_only: Option<bool>, snapshot: bool) -> SqlResult<()> {
        self.txn.active = true;
        let configured = self
            .next_read_only
            .take()
            .unwrap_or_else(|| self.vars.on("transaction_read_only"));
        self.txn.read_only = read_only.unwrap_or(configured);
        self.isolation = self
            .next_isolation
            .take()
            .unwrap_or_else(|| self.vars.text("transaction_isolation").to_owned());
        if snapshot {
            self.begin_read()?;
            // The snapshot is taken by the first read.
            self.conn
                .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        }
        Ok(())
    }

    /// Starts the transaction that autocommit=0 implies.
    pub(crate) fn implied_begin(&mut self) -> SqlResult<()> {
        if !self.txn.active && !self.vars.on("autocommit") {
            return self.begin(None, false);
        }
        Ok(())
    }

    /// Before a read: a transaction that repeats its reads opens its snapshot.
    pub(crate) fn begin_read(&mut self) -> SqlResult<()> {
        self.implied_begin()?;
        let repeatable = matches!(self.isolation.as_str(), "REPEATABLE-READ" | "SERIALIZABLE");
        if self.txn.active && repeatable && !self.txn.open {
            self.conn.execute_batch("BEGIN")?;
            self.txn.open = true;
        }
        Ok(())
    }

    /// Before a write: the write lock is held, and `SQLite` gets a writing transaction on the newest rows.
    pub(crate) fn begin_write(&mut self) -> SqlResult<()> {
        if self.tablet.is_read_only() && !self.applier && !self.local {
            return Err(SqlError::read_only());
        }
        self.implied_begin()?;
        if self.txn.active && self.txn.read_only {
            return Err(SqlError::read_only_transaction());
        }
        if self.lock.is_none() {
            return Err(SqlError::internal("a write without the write lock"));
        }
        if self.txn.writing {
            return Ok(());
        }
        if self.txn.open {
            self.conn.execute_batch("COMMIT")?;
            self.txn.open = false;
        }
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        self.txn.open = true;
        self.txn.writing = true;
        for (name, _) in &self.txn.savepoints {
            self.conn
                .execute_batch(&format!("SAVEPOINT {}", quote(&format!("u_{name}"))))?;
        }
        Ok(())
    }

    /// Runs `f` so that an error undoes what it did, and nothing else of the transaction.
    pub(crate) fn atomically<T>(&mut self, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        self.conn.execute_batch("SAVEPOINT statement")?;
        let out = f(self);
        let end = if out.is_ok() {
            "RELEASE statement"
        } else {
            "ROLLBACK TO statement; RELEASE statement"
        };
        self.conn.execute_batch(end)?;
        out
    }

    pub(super) fn end_transaction(&mut self, statement: &str) -> SqlResult<()> {
        let open = std::mem::take(&mut self.txn.open);
        self.txn = Transaction::default();
        if open {
            self.conn.execute_batch(statement)?;
        }
        Ok(())
    }

    /// COMMIT.
    pub(crate) fn commit(&mut self) -> SqlResult<()> {
        let out = self.commit_keeping_lock();
        self.lock = None;
        out
    }

    pub(crate) fn commit_keeping_lock(&mut self) -> SqlResult<()> {
        let events = std::mem::take(&mut self.pending);
        let tablet = std::sync::Arc::clone(&self.tablet);
        let _committing = tablet.committing();
        if !events.is_empty() && tablet.is_read_only() && !self.applier && !self.local {
            // Read-only was set since the write: as a server does, the commit is refused and the rows are given up.
            self.end_transaction("ROLLBACK")?;
            return Err(SqlError::read_only());
        }
        self.end_transaction("COMMIT")?;
        // Still under the write lock, so the log has the order of the commits.
        // What a replica's owner writes by hand is nobody else's, as with sql_log_bin = 0.
        let foreign = self.applier || self.local && tablet.applier().is_some();
        if !events.is_empty() && !foreign {
            tablet.log(events);
        }
        Ok(())
    }

    /// ROLLBACK.
    pub(crate) fn rollback(&mut self) -> SqlResult<()> {
        self.pending.clear();
        let out = self.end_transaction("ROLLBACK");
        self.lock = None;
        out
    }

    pub(super) fn savepoint(&mut self, name: &str) -> SqlResult<()> {
        self.implied_begin()?;
        if !self.txn.active {
            return Ok(());
        }
        let name = name.to_lowercase();
        if self.txn.writing {
            self.conn
                .execute_batch(&format!("SAVEPOINT {}", quote(&format!("u_{name}"))))?;
        }
        // A name set again is a new savepoint; the old one is hidden under it, which no statement can tell.
        self.txn
            .savepoints
            .retain(|(n, _)| *n != name || self.txn.writing);
        self.txn.savepoints.push((name, self.pending.len()));
        Ok(())
    }

    pub(super) fn find_savepoint(&self, name: &str) -> SqlResult<usize> {
        let name = name.to_lowercase();
        self.txn
            .savepoints
            .iter()
            .rposition(|(n, _)| *n == name)
            .ok_or_else(|| SqlError::new(1305, *b"42000", format!("SAVEPOINT {name} does not exist")))
    }

    pub(super) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find_savepoint(name)?;
        if self.txn.writing {
            self.conn.execute_batch(&format!(
                "ROLLBACK TO {}",
                quote(&format!("u_{}", name.to_lowercase()))
            ))?;
        }
        self.pending.truncate(self.txn.savepoints[at].1);
        self.txn.savepoints.truncate(at + 1);
        Ok(())
    }

    pub(super) fn release(&mut self, name: &str) -> SqlResult<()> {
        let at = self.find_savepoint(name)?;
        if self.txn.writing {
            self.conn.execute_batch(&format!(
                "RELEASE {}",
                quote(&format!("u_{}", name.to_lowercase()))
            ))?;
        }
        self.txn.savepoints.truncate(at);
        Ok(())
    }
}
