//! BEGIN, COMMIT, ROLLBACK, savepoints.

use shardgate_sql::{IsolationLevel, Lexed, TransactionOptions};

use super::{More, Session, SessionEnd, SessionError, limits_of};
use crate::exec::{AccessMode, ExecError, MAX_SAVEPOINTS, TransactionState, commit, quoted, rollback};
use crate::tablet::Sent;

impl Session {
    /// `BEGIN`, `START TRANSACTION`: an open transaction is committed first, as the servers do.
    pub(super) async fn begin(
        &mut self,
        options: TransactionOptions,
        more: More,
    ) -> Result<(), SessionError> {
        self.commit_open().await?;
        let mut characteristics = std::mem::take(&mut self.state.next_transaction);
        match options.read_only {
            Some(true) => characteristics.access = AccessMode::ReadOnly,
            Some(false) => characteristics.access = AccessMode::ReadWrite,
            None => {}
        }
        characteristics.consistent_snapshot = options.consistent_snapshot;
        if options.consistent_snapshot {
            let shard = self.only_shard().await?;
            self.state.transaction.begin(characteristics);
            // The snapshot is promised for this moment, so the shard is opened now.
            let opened = self.touch(&shard).await;
            if opened.is_err() {
                self.state.transaction.end();
            }
            opened?;
        } else {
            self.state.transaction.begin(characteristics);
        }
        self.put_ok(more);
        Ok(())
    }

    /// `COMMIT [AND CHAIN] [RELEASE]`.
    pub(super) async fn commit_statement(&mut self, chain: bool, more: More) -> Result<(), SessionError> {
        let characteristics = self.state.transaction.characteristics().clone();
        self.commit_open().await?;
        if chain {
            self.state.transaction.begin(characteristics);
        }
        self.put_ok(more);
        Ok(())
    }

    /// `ROLLBACK [AND CHAIN] [RELEASE]`.
    pub(super) async fn rollback_statement(&mut self, chain: bool, more: More) -> Result<(), SessionError> {
        let characteristics = self.state.transaction.characteristics().clone();
        self.roll_back_open().await;
        if chain {
            self.state.transaction.begin(characteristics);
        }
        self.put_ok(more);
        Ok(())
    }

    /// Commits what is open; nothing to do if nothing is. After an error nothing is open any more.
    pub(super) async fn commit_open(&mut self) -> Result<(), SessionError> {
        // A primary that was replaced may still take the COMMIT, and nobody would ever see it.
        self.state
            .held
            .drop_replaced(&self.shared.fleet, &mut self.state.transaction);
        if let TransactionState::Failed(reason) = self.state.transaction.state() {
            return Err(ExecError::TransactionLost(reason.clone()).into());
        }
        if !self.state.transaction.is_active() {
            return Ok(());
        }
        let limits = limits_of(
            (&self.registration.handle.kill, &self.alarm),
            &self.view.options,
            self.view.options.query_timeout,
        );
        let result = commit(&mut self.state.held, &limits).await;
        self.state.transaction.end();
        Ok(result?)
    }

    pub(super) async fn roll_back_open(&mut self) {
        let limits = limits_of(
            (&self.registration.handle.kill, &self.alarm),
            &self.view.options,
            self.view.options.query_timeout,
        );
        rollback(&mut self.state.held, &limits).await;
        self.state.transaction.end();
    }

    /// `SAVEPOINT name`. Outside a transaction it does nothing, as on the servers.
    pub(super) async fn savepoint(&mut self, name: &str, more: More) -> Result<(), SessionError> {
        self.check_not_lost()?;
        if !self.state.transaction.is_active() && !self.state.autocommit {
            self.start_implicitly();
        }
        if self.state.transaction.is_active() {
            let too_many = |_| SessionError::TooManySavepoints(MAX_SAVEPOINTS);
            self.state.transaction.savepoint(name).map_err(too_many)?;
            self.on_all_parts(&format!("SAVEPOINT {}", quoted(name))).await?;
        }
        self.put_ok(more);
        Ok(())
    }

    /// `ROLLBACK TO SAVEPOINT name`.
    pub(super) async fn rollback_to(&mut self, name: &str, more: More) -> Result<(), SessionError> {
        self.check_not_lost()?;
        if !self.state.transaction.rollback_to(name) {
            return Err(SessionError::UnknownSavepoint(name.to_owned()));
        }
        self.on_all_parts(&format!("ROLLBACK TO SAVEPOINT {}", quoted(name)))
            .await?;
        self.put_ok(more);
        Ok(())
    }

    /// `RELEASE SAVEPOINT name`.
    pub(super) async fn release_savepoint(&mut self, name: &str, more: More) -> Result<(), SessionError> {
        self.check_not_lost()?;
        if !self.state.transaction.release(name) {
            return Err(SessionError::UnknownSavepoint(name.to_owned()));
        }
        self.on_all_parts(&format!("RELEASE SAVEPOINT {}", quoted(name)))
            .await?;
        self.put_ok(more);
        Ok(())
    }

    /// With `autocommit = 0` the first statement opens a transaction.
    pub(super) fn start_implicitly(&mut self) {
        let characteristics = std::mem::take(&mut self.state.next_transaction);
        self.state.transaction.begin(characteristics);
    }

    pub(super) fn check_not_lost(&self) -> Result<(), SessionError> {
        match self.state.transaction.state() {
            TransactionState::Failed(reason) => Err(ExecError::TransactionLost(reason.clone()).into()),
            TransactionState::Idle | TransactionState::Open => Ok(()),
        }
    }

    /// Runs a statement on every shard the transaction is open on. If it fails on one, the parts no longer agree and the
    /// transaction is lost.
    async fn on_all_parts(&mut self, sql: &str) -> Result<(), SessionError> {
        let limits = limits_of(
            (&self.registration.handle.kill, &self.alarm),
            &self.view.options,
            self.view.options.query_timeout,
        );
        for mut lease in self.state.held.take_transaction() {
            let done = limits
                .until_deadline(lease.conn.run(sql.as_bytes(), Sent::Maybe))
                .await;
            let failure = match done {
                Ok(Ok(_)) => None,
                Ok(Err(e)) => Some(e.to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            if let Some(why) = failure {
                self.state.transaction.fail(format!("{}: {why}", lease.shard));
            }
            if lease.conn.is_usable() {
                self.state.held.put(lease);
            }
        }
        self.check_not_lost()
    }

    /// The end of a `RELEASE`.
    pub(super) async fn released(&mut self) -> SessionEnd {
        match self.flush().await {
            Ok(()) => SessionEnd::Quit,
            Err(end) => end,
        }
    }
}

/// The level as SQL says it.
pub(super) fn isolation_sql(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

/// The name a token holds, as text.
pub(super) fn name_at(lexed: &Lexed<'_>, at: usize) -> Result<String, SessionError> {
    let name = lexed
        .name(at)
        .ok_or_else(|| SessionError::Syntax("a name was expected".into()))?;
    String::from_utf8(name.into_owned()).map_err(|_| SessionError::Syntax("a name must be UTF-8".into()))
}
