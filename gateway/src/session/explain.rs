//! `EXPLAIN FORMAT=SHARDGATE`: where a statement would go, and what would be done with the answers.

use std::fmt::Write as _;

use bytes::Bytes;
use shardgate_sql::{Lexed, classify, lex};

use super::planned::is_local;
use super::query::{Form, Way};
use super::table::Table;
use super::{Session, SessionError};
use crate::base::{GatewayError, ShardId, clock};

impl Session {
    /// Describes a statement's plan without running it.
    pub(super) fn explain(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        statement: usize,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let inner = sql.slice(lexed.range(statement).start..);
        let lexed = lex(&inner, lexed.options()).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let mut table = Table::of_text(&["Property", "Value"]);
        for (property, value) in self.explained(&inner, &lexed) {
            table.push([property, value]);
        }
        self.put_rows(&table, way)
    }

    /// The rows. That a statement would be refused is an answer too.
    fn explained(&self, sql: &Bytes, lexed: &Lexed<'_>) -> Vec<(String, String)> {
        let row = |property: &str, value: &str| (property.to_owned(), value.to_owned());
        let class = classify(lexed);
        let planned = self.check_reach(lexed, &class).and_then(|()| {
            if is_local(class.kind) {
                return Ok(None);
            }
            let plan = self.plan(lexed)?;
            let bound = self.bind(&plan, sql, lexed, Form::Text, None)?;
            Ok(Some(plan.describe(&bound)))
        });
        let described = match planned {
            Ok(Some(described)) => described,
            Ok(None) => return vec![row("route", "answered by the gateway")],
            Err(e) => {
                return vec![
                    row("route", "refused"),
                    row("error", &e.client_error().to_string()),
                ];
            }
        };
        let mut rows = vec![row("route", &described.route)];
        for leg in described.legs {
            let breaker = self.breaker_of(&leg.shard);
            rows.push((format!("leg {}", leg.shard), leg.sql));
            rows.push((format!("breaker {}", leg.shard), breaker));
        }
        rows.extend(described.steps.into_iter().map(|step| row("gather", &step)));
        rows.push(row("partial answer", &described.partial));
        rows
    }

    /// How the breaker of a shard's primary stands.
    fn breaker_of(&self, shard: &ShardId) -> String {
        let guards = self.shared.fleet.guards();
        let Some(breaker) = guards.shard(shard).breaker().cloned() else {
            return "off".to_owned();
        };
        let seen = breaker.snapshot(guards.time(clock::now()));
        let mut out = seen.state.label().to_owned();
        if let Some(reason) = seen.reason {
            // Writing to a String cannot fail.
            let _ = write!(out, " {:.1} s ({reason})", seen.open_for.as_secs_f64());
        }
        if let Some(probe) = seen.probe_in {
            let _ = write!(out, ", probe in {:.1} s", probe.as_secs_f64());
        }
        out
    }
}
