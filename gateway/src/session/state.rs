//! What a client has set and left behind on its connection.

use std::collections::BTreeSet;
use std::time::Duration;

use shardgate_sql::SqlMode;
use shardgate_wire::StatusFlags;

use super::pins::Pins;
use super::prepared::{PreparedLimits, PreparedStatements};
use super::target::Target;
use crate::exec::{Answer, Characteristics, Held, Partial, Transaction, Warning};
use crate::tablet::Settings;

/// One session's state.
#[derive(Debug)]
pub(super) struct SessionState {
    /// Where statements go.
    pub target: Target,
    /// What is replayed on tablet connections.
    pub settings: Settings,
    /// The session's `sql_mode`, by which its statements are read.
    pub sql_mode: SqlMode,
    /// `character_set_client`: what the bytes of its statements mean.
    pub charset: String,
    /// Whether each statement commits by itself.
    pub autocommit: bool,
    /// The open transaction.
    pub transaction: Transaction,
    /// What `SET TRANSACTION` said of the next transaction only.
    pub next_transaction: Characteristics,
    /// Tablet connections kept between statements.
    pub held: Held,
    /// What lies on the connection that is kept for other reasons than a transaction.
    pub pins: Pins,
    /// User variables whose value lives on a kept connection and does not replay.
    pub pinned_variables: BTreeSet<String>,
    /// Prepared statements.
    pub prepared: PreparedStatements,
    /// `LAST_INSERT_ID()`.
    pub last_insert_id: u64,
    /// `FOUND_ROWS()`.
    pub found_rows: u64,
    /// `ROW_COUNT()`.
    pub row_count: i64,
    /// `SHOW WARNINGS`.
    pub warnings: Vec<Warning>,
    /// `@@warning_count`.
    pub warning_count: u16,
    /// `SET query_timeout`; `None` is the configured one.
    pub query_timeout: Option<Duration>,
    /// `SET workload = 'olap'`.
    pub olap: bool,
    /// `SET scatter_errors_as_warnings`: an answer in part is better than none.
    pub partial: Partial,
    /// `SET allow_scatter`: statements may go to several shards although the configuration refuses that.
    pub allow_scatter: bool,
}

impl SessionState {
    /// A fresh session.
    pub(super) fn new(target: Target, sql_mode: SqlMode, prepared: PreparedLimits) -> Self {
        Self {
            target,
            settings: Settings::default(),
            sql_mode,
            charset: "utf8mb4".into(),
            autocommit: true,
            transaction: Transaction::default(),
            next_transaction: Characteristics::default(),
            held: Held::default(),
            pins: Pins::default(),
            pinned_variables: BTreeSet::new(),
            prepared: PreparedStatements::new(prepared),
            last_insert_id: 0,
            found_rows: 0,
            row_count: 0,
            warnings: Vec::new(),
            warning_count: 0,
            query_timeout: None,
            olap: false,
            partial: Partial::Refused,
            allow_scatter: false,
        }
    }

    /// The status flags that speak of the session.
    pub(super) fn status(&self) -> StatusFlags {
        let mut status = StatusFlags::empty();
        status.set(StatusFlags::AUTOCOMMIT, self.autocommit);
        status.set(StatusFlags::IN_TRANS, self.transaction.is_active());
        status.set(
            StatusFlags::NO_BACKSLASH_ESCAPES,
            self.sql_mode.no_backslash_escapes(),
        );
        status
    }

    /// Takes over what an answered statement leaves behind.
    pub(super) fn note(&mut self, answer: Answer) {
        if answer.last_insert_id != 0 {
            self.last_insert_id = answer.last_insert_id;
        }
        match answer.affected_rows {
            Some(n) => self.row_count = i64::try_from(n).unwrap_or(i64::MAX),
            None => {
                self.row_count = -1;
                self.found_rows = answer.found_rows.unwrap_or(answer.rows);
            }
        }
        self.warnings = answer.warnings;
        self.warning_count = answer.warning_count;
    }

    /// Takes over an error: it is what `SHOW WARNINGS` shows next.
    pub(super) fn note_error(&mut self, code: u16, message: String) {
        self.row_count = -1;
        self.warnings = vec![Warning {
            level: "Error".into(),
            code,
            message,
        }];
        self.warning_count = 1;
    }

    /// `@@error_count`.
    pub(super) fn error_count(&self) -> u16 {
        u16::try_from(self.warnings.iter().filter(|w| w.level == "Error").count()).unwrap_or(u16::MAX)
    }

    /// A statement that the gateway answered itself, without warnings.
    pub(super) fn note_local(&mut self) {
        self.row_count = 0;
        self.warnings.clear();
        self.warning_count = 0;
    }
}
