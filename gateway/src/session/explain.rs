//! `EXPLAIN FORMAT=SHARDGATE`: where a statement would go, and what would be done with the answers.

use bytes::Bytes;
use shardgate_sql::{Lexed, lex};

use super::query::{Form, Way};
use super::table::Table;
use super::{Session, SessionError};

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
        let plan = self.plan(&lexed)?;
        let bound = self.bind(&plan, &inner, &lexed, Form::Text, None)?;
        let described = plan.describe(&bound);
        let mut table = Table::of_text(&["Property", "Value"]);
        table.push(["route".to_owned(), described.route]);
        for leg in described.legs {
            table.push([format!("leg {}", leg.shard), leg.sql]);
        }
        for step in described.steps {
            table.push(["gather".to_owned(), step]);
        }
        table.push(["partial answer".to_owned(), described.partial]);
        self.put_rows(&table, way)
    }
}
