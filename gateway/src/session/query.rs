//! `COM_QUERY`: one text, one or more statements.

use bytes::Bytes;
use shardgate_sql::{Classified, Lexed, StatementKind, classify, lex, split_statements};
use smallvec::{SmallVec, smallvec};

use super::counted::{Counted, Executed};
use super::transact::name_at;
use super::{More, Session, SessionEnd, SessionError, pending_kill};
use crate::base::clock;
use crate::exec::Kill;

/// How a statement came, and how its answer goes back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    /// As text.
    Text,
    /// As a prepared statement with these parameters.
    Prepared(&'a super::prepared::Bound),
}

/// What a statement asks of the session once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The session goes on.
    GoOn,
    /// `COMMIT RELEASE`: it ends.
    Release,
}

impl Session {
    /// Runs the statements of a text, one by one, until one fails.
    pub(super) async fn query(&mut self, text: Bytes) -> Result<(), SessionEnd> {
        let statements = match self.split(&text) {
            Ok(statements) => statements,
            Err(e) => return self.put_error(&e),
        };
        let last = statements.len() - 1;
        let read_under = self.state.sql_mode;
        for (i, sql) in statements.into_iter().enumerate() {
            let more = if i < last { More::Yes } else { More::No };
            match self.statement(&sql, more, Form::Text).await {
                Ok(After::GoOn) => {}
                Ok(After::Release) => return Err(self.released().await),
                Err(e) => return self.put_error(&e),
            }
            if i < last && self.state.sql_mode != read_under {
                return self.put_error(&SessionError::Unsupported {
                    what: "statements behind a change of sql_mode in the same text",
                    hint: "they were told apart under the old one; send them in a text of their own",
                });
            }
            if i < last
                && let Some(e) = pending_kill(&self.registration.handle.kill)
            {
                return self.put_error(&e);
            }
        }
        Ok(())
    }

    /// The statements of a text; at least one.
    fn split(&self, text: &Bytes) -> Result<SmallVec<[Bytes; 1]>, SessionError> {
        if !text.contains(&b';') {
            return Ok(smallvec![text.clone()]);
        }
        let options = self.view.lex_options(self.state.sql_mode);
        let ranges = split_statements(text, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
        match ranges.as_slice() {
            [] => Err(SessionError::EmptyQuery),
            // The bytes as they came, comments around the statement included.
            [_] => Ok(smallvec![text.clone()]),
            many if !self.client.can(shardgate_wire::Capabilities::MULTI_STATEMENTS) => {
                let _ = many;
                Err(SessionError::MultiStatements)
            }
            many => Ok(many.iter().map(|r| text.slice(r.clone())).collect()),
        }
    }

    /// Runs one statement and buffers its answer.
    pub(super) async fn statement(
        &mut self,
        sql: &Bytes,
        more: More,
        form: Form<'_>,
    ) -> Result<After, SessionError> {
        let started = clock::now();
        let options = self.view.lex_options(self.state.sql_mode);
        let lexed = lex(sql, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let class = classify(&lexed);
        self.executed = Executed::Local;
        let result = self.dispatch(sql, &lexed, &class, Way { more, form }).await;
        let took = clock::now().duration_since(started);
        let metrics = &self.shared.metrics;
        let counted = Counted::of(class.kind);
        self.shared.counted.count(metrics, counted, self.executed, took);
        result
    }

    async fn dispatch(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<After, SessionError> {
        use StatementKind as S;
        let more = way.more;
        self.check_reach(lexed, class)?;
        match class.kind {
            S::Empty => return Err(SessionError::EmptyQuery),
            S::Begin(options) => self.begin(options, more).await?,
            S::Commit { chain, release } => {
                self.commit_statement(chain, more).await?;
                return Ok(if release { After::Release } else { After::GoOn });
            }
            S::Rollback { chain, release } => {
                self.rollback_statement(chain, more).await?;
                return Ok(if release { After::Release } else { After::GoOn });
            }
            S::RollbackTo { name } => self.rollback_to(&name_at(lexed, name)?, more).await?,
            S::Savepoint { name } => self.savepoint(&name_at(lexed, name)?, more).await?,
            S::ReleaseSavepoint { name } => self.release_savepoint(&name_at(lexed, name)?, more).await?,
            S::SetTransaction | S::Set => self.set(lexed, class, way).await?,
            S::Use => self.use_statement(lexed, more)?,
            S::Kill => self.kill_statement(lexed, more)?,
            S::Show => self.show(sql, lexed, class, way).await?,
            S::Explain {
                format: shardgate_sql::ExplainFormat::Shardgate,
                statement,
                ..
            } => {
                self.explain(sql, lexed, statement, way)?;
            }
            S::Prepare | S::Execute => Box::pin(self.run_dynamic(sql, lexed, class, way)).await?,
            S::Select
            | S::Insert
            | S::Replace
            | S::Update
            | S::Delete
            | S::Describe { .. }
            | S::Explain { .. }
            | S::Ddl { .. }
            | S::LockTables
            | S::UnlockTables
            | S::Call
            | S::Compound
            | S::Do
            | S::Deallocate
            | S::Admin(_)
            | S::Load
            | S::Handler
            | S::Xa
            | S::Account
            | S::SetStatement
            | S::Other => self.planned(sql, lexed, class, way).await?,
        }
        Ok(After::GoOn)
    }

    fn use_statement(&mut self, lexed: &Lexed<'_>, more: More) -> Result<(), SessionError> {
        let target =
            shardgate_sql::parse_use(lexed).ok_or_else(|| SessionError::Syntax("near USE".into()))?;
        self.use_target(&target, more)
    }

    fn kill_statement(&mut self, lexed: &Lexed<'_>, more: More) -> Result<(), SessionError> {
        let kill = shardgate_sql::parse_kill(lexed).ok_or(SessionError::Unsupported {
            what: "this form of KILL",
            hint: "KILL [CONNECTION | QUERY] id",
        })?;
        let what = if kill.query_only {
            Kill::Query
        } else {
            Kill::Connection
        };
        self.kill(kill.id, what, more)
    }
}

/// How a statement came and what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way<'a> {
    pub(super) more: More,
    pub(super) form: Form<'a>,
}
