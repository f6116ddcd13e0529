//! `COM_STMT_PREPARE` and `COM_STMT_EXECUTE`.

use bytes::Bytes;
use shardgate_sql::{Lexed, TokenKind, classify, lex};
use shardgate_wire::client::Prepared;
use shardgate_wire::codec::PrepareOk;
use shardgate_wire::{ColumnDef, ColumnType};

use super::planned::is_local;
use super::query::Form;
use super::{More, Session, SessionError};
use crate::base::{Role, ShardId, clock};
use crate::exec::{ExecError, Failover, Interrupt, Leased, Run, Vacant};
use crate::guard::{Outcome, Request, Work};
use crate::plan::{BindInput, Plan};
use crate::route::Leg;

/// `ER_PS_MANY_PARAM`'s bound: the count travels in two bytes.
const MAX_PARAMS: usize = 65_535;

/// A statement's definitions as the client will see them.
struct Described {
    params: Vec<Bytes>,
    columns: Vec<Bytes>,
    warnings: u16,
}

impl Session {
    /// Prepares a statement: asks one tablet for its columns, and keeps the text. Whichever connection runs it later
    /// prepares it there.
    pub(super) async fn prepare(&mut self, sql: Bytes) -> Result<(), SessionError> {
        self.state.prepared.check_room()?;
        let options = self.view.lex_options(self.state.sql_mode);
        let lexed = lex(&sql, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
        if lexed.is_empty() {
            return Err(SessionError::EmptyQuery);
        }
        if shardgate_sql::split_lexed(&lexed).len() > 1 {
            return Err(SessionError::Syntax(
                "a prepared statement is one statement".into(),
            ));
        }
        let params = lexed
            .tokens()
            .iter()
            .filter(|t| t.kind == TokenKind::Placeholder)
            .count();
        if params > MAX_PARAMS {
            return Err(SessionError::TooManyParams(MAX_PARAMS));
        }
        let class = classify(&lexed);
        self.check_reach(&lexed, &class)?;
        let described = if is_local(class.kind) {
            Described {
                params: Vec::new(),
                columns: Vec::new(),
                warnings: 0,
            }
        } else {
            Box::pin(self.describe(&sql, &lexed)).await?
        };
        let statement_id = self.state.prepared.insert(
            sql.clone(),
            params,
            (self.state.settings.reading(), self.state.target.clone()),
        )?;
        let status = self.state.status();
        let ok = PrepareOk {
            statement_id,
            warnings: described.warnings,
            ..PrepareOk::default()
        };
        // The client counts its own placeholders; a tablet may have been shown fewer.
        let params = if described.params.len() == params {
            described.params
        } else {
            vec![unknown_param(); params]
        };
        self.client
            .put_prepare_ok(ok, &params, &described.columns, status);
        Ok(())
    }

    /// Runs a prepared statement.
    pub(super) async fn execute_prepared(&mut self, id: u32, payload: &Bytes) -> Result<(), SessionError> {
        let now = self.state.settings.reading();
        if self.state.prepared.get(id).is_some_and(|s| s.reading != now) {
            return Err(SessionError::PreparedOtherwise);
        }
        let (sql, bound) = self.state.prepared.bind(id, payload)?;
        // USE in between changes nothing of it.
        let target = self.state.prepared.get(id).map(|s| &s.target);
        let moved = target.filter(|t| **t != self.state.target).cloned();
        let target = moved.map(|its| std::mem::replace(&mut self.state.target, its));
        let result = self.statement(&sql, More::No, Form::Prepared(&bound)).await;
        if let Some(target) = target {
            self.state.target = target;
        }
        result.map(|_| ())
    }

    /// Asks a tablet what parameters and columns a statement has.
    async fn describe(&mut self, sql: &Bytes, lexed: &Lexed<'_>) -> Result<Described, SessionError> {
        self.check_not_lost()?;
        if let Some(other) = self.schemata(lexed, &classify(lexed), Form::Text).await? {
            let options = self.view.lex_options(self.state.sql_mode);
            let lexed = lex(&other.sql, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
            let plan = self.plan_for(&lexed, Some(&other.keyspace), Some(&other.shard))?;
            return self.describe_plan(&plan, &other.sql, &lexed).await;
        }
        let plan = self.plan(lexed)?;
        self.describe_plan(&plan, sql, lexed).await
    }

    async fn describe_plan(
        &mut self,
        plan: &Plan,
        sql: &Bytes,
        lexed: &Lexed<'_>,
    ) -> Result<Described, SessionError> {
        let mut failed = Vec::new();
        let mut prefer = match self.held_shard() {
            Some(held) => Some(held),
            None => self.answering_shard(plan.keyspace()).await?,
        };
        loop {
            let leg = self.probe_leg(plan, (sql, lexed), prefer.as_ref())?;
            // Every shard describes it alike, unless one was chosen or is held.
            let movable = prefer.as_ref() == Some(&leg.shard)
                && self.held_shard().is_none()
                && !self.state.transaction.is_active();
            let vacant = if movable { Vacant::Fails } else { Vacant::Waits };
            match self.describe_at(plan, &leg, vacant).await {
                Err(e) if movable => {
                    prefer = self.another_shard(plan.keyspace(), &mut failed, (&leg.shard, &e));
                    if prefer.is_none() {
                        return Err(e);
                    }
                }
                result => return result,
            }
        }
    }

    fn probe_leg(
        &self,
        plan: &Plan,
        (sql, lexed): (&Bytes, &Lexed<'_>),
        prefer: Option<&ShardId>,
    ) -> Result<Leg, SessionError> {
        let facts = self.facts();
        Ok(plan.probe(&BindInput {
            sql,
            statement: lexed,
            params: &[],
            facts: &facts,
            now: self.now(),
            charset: self.text_charset(),
            prefer,
        })?)
    }

    /// The same at one shard.
    async fn describe_at(
        &mut self,
        plan: &Plan,
        leg: &Leg,
        vacant: Vacant,
    ) -> Result<Described, SessionError> {
        let role = if plan.class().needs_primary() {
            Role::Primary
        } else {
            self.state.target.role
        };
        let rename = plan
            .keyspace()
            .shard_index(&leg.shard.shard)
            .and_then(|i| plan.keyspace().shards.get(i))
            .map(|shard| shard.rename.clone());
        let timeout = self.view.options.query_timeout;
        let tablet = self.tablet_timeout(false, timeout);
        let mut run = self.lend(timeout, More::No, None, &[]);
        run.limits.tablet = tablet;
        run.work = Work::statement(plan.kind());
        run.vacant = vacant;
        let mut failover = Failover::new(&run, role);
        let prepared = loop {
            let request = || Request {
                is_write: false,
                bytes: leg.sql.len(),
            };
            let shards = std::slice::from_ref(&leg.shard);
            failover.admit(&mut run, shards, request).await?;
            match prepare_at(&mut run, leg, role).await {
                Err(e) if failover.again(&mut run, &e).await => {}
                result => break result?,
            }
        };
        let shown = |list: Vec<Bytes>| match rename.as_ref().filter(|r| !r.is_identity()) {
            Some(rename) => list.iter().map(|d| rename.column(d)).collect(),
            None => list,
        };
        Ok(Described {
            params: prepared.params,
            columns: shown(prepared.columns),
            warnings: prepared.ok.warnings,
        })
    }
}

async fn prepare_at(run: &mut Run<'_>, leg: &Leg, role: Role) -> Result<Prepared, ExecError> {
    let mut lease = run.acquire_one(&leg.shard, role).await?;
    let prepared = prepare_on(run, &mut lease, &leg.sql).await;
    run.put_back([lease]);
    prepared
}

/// Has a statement prepared on a connection: an attempt like any other, since it may wait for a table as long as the
/// statement itself would.
async fn prepare_on(run: &mut Run<'_>, lease: &mut Leased, sql: &Bytes) -> Result<Prepared, ExecError> {
    let shard = lease.shard.clone();
    let started = clock::now();
    let limits = run.limits.attempt(started);
    let attempt = lease.conn.start(run.work, started);
    lease.attempt = Some(attempt.map_err(|e| ExecError::tablet(shard.clone(), e))?);
    match limits.watch(run.client, lease.conn.prepare_anew(sql)).await {
        Ok(prepared) => {
            let outcome = match &prepared {
                Ok(_) => Outcome::Success,
                Err(e) => {
                    let gate = lease.conn.gate();
                    gate.judged(e.outcome(lease.role), e.is_sign(lease.role), clock::now())
                }
            };
            lease
                .conn
                .count_call(clock::now().duration_since(started), outcome);
            if outcome == Outcome::Timeout {
                lease.timed_out_by_itself(run.limits.tablet);
            } else {
                lease.settle(outcome);
            }
            prepared.map_err(|e| ExecError::tablet(shard, e))
        }
        Err(interrupt) => {
            if let Interrupt::Deadline(_) = interrupt {
                lease.gave_up(run.limits.tablet);
            }
            Err(run.interrupted(interrupt, shard.to_string(), false))
        }
    }
}

/// The definition of a parameter of which nothing is known, as the servers themselves send it.
fn unknown_param() -> Bytes {
    let mut out = Vec::new();
    ColumnDef::new("?", ColumnType::VarString).encode(&mut out);
    out.into()
}
