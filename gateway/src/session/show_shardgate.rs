//! `SHOW SHARDGATE SHARDS | TABLETS | BREAKERS | QUERIES | BUFFER`: the gateway's own state.

use super::table::Table;
use super::{Session, SessionError};
use crate::balance::{Report, Reporter};
use crate::base::clock;

/// Kinds of statement shown.
const QUERIES: usize = 100;

impl Session {
    /// The table of a topic.
    pub(super) fn show_shardgate(&self, topic: &str) -> Result<Table, SessionError> {
        let reporter = Reporter {
            fleet: &self.shared.fleet,
            health: &self.shared.health,
            now: clock::now(),
        };
        let report = match topic {
            "shards" => reporter.shards(),
            "tablets" => reporter.tablets(None, None),
            "breakers" => reporter.breaker_report(),
            "buffer" => reporter.buffer(),
            "queries" => self.queries(),
            _ => {
                return Err(SessionError::Unsupported {
                    what: "this SHOW SHARDGATE",
                    hint: "there are SHARDS, TABLETS, BREAKERS, QUERIES and BUFFER",
                });
            }
        };
        let mut table = Table::of_text(&report.columns);
        for row in report.rows {
            table.push_nullable(row);
        }
        Ok(table)
    }

    /// Kinds of statement by the time that they held connections.
    fn queries(&self) -> Report {
        let mut report = Report::new(&["kind", "statements", "errors", "held_seconds", "statement"]);
        for kind in self.shared.kind_times.top(QUERIES) {
            report.rows.push(vec![
                Some(format!("{:016x}", kind.kind)),
                Some(kind.statements.to_string()),
                Some(kind.errors.to_string()),
                Some(format!("{:.3}", kind.held.as_secs_f64())),
                Some(kind.text),
            ]);
        }
        report
    }
}
