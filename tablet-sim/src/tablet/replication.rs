//! A tablet's place in replication, as its clients may ask for it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::Tablet;
use crate::engine::listing::{Listing, row};
use crate::engine::value::Value;
use crate::error::SqlError;
use crate::repl::{Applier, Broken, Event, Log, Origin};

/// The columns of SHOW SLAVE STATUS; `#` marks numbers, `{S}` and `{R}` stand for the words of the statement's age.
const COLUMNS: &[&str] = &[
    "{R}_IO_State",
    "{S}_Host",
    "{S}_User",
    "#{S}_Port",
    "#Connect_Retry",
    "{S}_Log_File",
    "#Read_{S}_Log_Pos",
    "Relay_Log_File",
    "#Relay_Log_Pos",
    "Relay_{S}_Log_File",
    "{R}_IO_Running",
    "{R}_SQL_Running",
    "#Last_Errno",
    "Last_Error",
    "#Exec_{S}_Log_Pos",
    "#Seconds_Behind_{S}",
    "#Last_IO_Errno",
    "Last_IO_Error",
    "#Last_SQL_Errno",
    "Last_SQL_Error",
    "#{S}_Server_Id",
    "Using_Gtid",
    "Gtid_IO_Pos",
    "#SQL_Delay",
    "{R}_SQL_Running_State",
];

impl Tablet {
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            server_id: self.identity.server_id,
            uuid: self.identity.uuid().into(),
        }
    }

    /// Enters a transaction of its own clients into the log.
    pub(crate) fn log(&self, events: Vec<Event>) {
        self.log.append(self.origin(), events);
    }

    pub(crate) fn replication_log(&self) -> Arc<Log> {
        Arc::clone(&self.log)
    }

    /// How many reads its clients have asked for, ever.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
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

    /// The GTID positions by their variables: `gtid_binlog_pos` ends the log, `gtid_slave_pos` is the last that came from
    /// elsewhere, and `gtid_current_pos` is the newer of the two, where the log's counts only if its end is the tablet's
    /// own.
    pub(super) fn position(&self, name: &str) -> Option<String> {
        let own = self.identity.server_id;
        let end = || self.log.end();
        let foreign = || self.log.last_foreign(own).gtid();
        Some(match name {
            "gtid_binlog_pos" => end().gtid(),
            "gtid_slave_pos" => foreign(),
            "gtid_current_pos" => {
                let end = end();
                let is_own = end.origin.as_ref().is_some_and(|o| o.server_id == own);
                if is_own { end.gtid() } else { foreign() }
            }
            "gtid_executed" => self.log.executed(),
            _ => return None,
        })
    }

    pub(crate) fn binlog_status(&self) -> Listing {
        let mut out = Listing::new(&["File", "#Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]);
        out.push(row!["sim-bin.000001", self.log.end().position, "", ""]);
        out
    }

    /// SHOW REPLICA STATUS, in the words of the statement's age. `all` is SHOW ALL SLAVES STATUS, with its further
    /// columns.
    pub(crate) fn replica_status(&self, all: bool, modern: bool) -> Listing {
        let (source, replica) = if modern {
            ("Source", "Replica")
        } else {
            ("Master", "Slave")
        };
        let worded = |name: &&str| name.replace("{S}", source).replace("{R}", replica);
        let mut names: Vec<String> = COLUMNS.iter().map(worded).collect();
        if all {
            names.insert(0, "Connection_name".to_owned());
            names.push("Gtid_Slave_Pos".to_owned());
        }
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut out = Listing::new(&refs);
        if let Some(applier) = self.applier() {
            let mut line = self.channel(&applier);
            if all {
                line.insert(0, Value::text(""));
                line.push(Value::text(self.log.last_foreign(self.identity.server_id).gtid()));
            }
            out.push(line);
        }
        out
    }

    /// The one replication channel's line.
    fn channel(&self, applier: &Applier) -> Vec<Value> {
        let source = &applier.source;
        let (received, applied) = (source.log.end(), self.log.end());
        let failed = |e: &SqlError| (u64::from(e.code), e.message.clone().into_owned());
        let none = || (0, String::new());
        let (io, sql) = match applier.broken() {
            None => (none(), none()),
            Some(Broken::Io(e)) => (failed(&e), none()),
            Some(Broken::Sql(e)) => (none(), failed(&e)),
        };
        let connecting = applier.connecting();
        let io_running = match (io.0, connecting) {
            (0, false) => "Yes",
            (0, true) => "Connecting",
            _ => "No",
        };
        let state = match (io.0, connecting) {
            (0, false) => "Waiting for master to send event",
            (0, true) => "Reconnecting after a failed master event read",
            _ => "",
        };
        let io = if connecting && io.0 == 0 {
            let message = format!(
                "error reconnecting to master 'root@{}' - retry-time: 60  maximum-retries: 100000",
                source.addr
            );
            (2003, message)
        } else {
            io
        };
        let sql_state = match sql.0 {
            0 => "Slave has read all relay log; waiting for more updates",
            _ => "",
        };
        row![
            state,
            source.addr.ip().to_string(),
            "root",
            u64::from(source.addr.port()),
            60u64,
            "sim-bin.000001",
            received.position,
            "sim-relay-bin.000001",
            applied.position,
            "sim-bin.000001",
            io_running,
            if sql.0 == 0 { "Yes" } else { "No" },
            sql.0,
            sql.1.as_str(),
            applied.position,
            applier
                .seconds_behind()
                .map_or(Value::Null, |s| Value::Int(i64::try_from(s).unwrap_or(i64::MAX))),
            io.0,
            io.1,
            sql.0,
            sql.1.as_str(),
            u64::from(source.origin.server_id),
            "Slave_Pos",
            received.gtid(),
            applier.lag().delay.as_secs(),
            sql_state,
        ]
    }
}
