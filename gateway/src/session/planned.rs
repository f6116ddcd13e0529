//! Statements that run on tablets: planned, bound to their shards, executed.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{Classified, Keyword, Lexed, PinReason, StatementKind, TokenKind, lex};
use smallvec::SmallVec;

use super::command::found_rows;
use super::counted::Executed;
use super::kind_times::text_of;
use super::pins::{Ended, Pins};
use super::query::{Form, Way};
use super::{More, Session, SessionError, limits_of};
use crate::base::{ShardId, clock};
use crate::exec::{
    self, Answer, Characteristics, ExecError, Failover, Leaves, Partial, Payload, Rename, Run, Statement,
    Told, Vacant,
};
use crate::guard::{Request, Work};
use crate::plan::{Bound, BoundTo, Plan};
use crate::tablet::SettingName;

impl Session {
    /// Plans a statement, runs it where it belongs and buffers the answer.
    pub(super) async fn planned(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        self.check_not_lost()?;
        if let Some(other) = self.schemata(lexed, class, way.form).await? {
            let options = self.view.lex_options(self.state.sql_mode);
            let lexed = lex(&other.sql, &options).map_err(|e| SessionError::Syntax(e.to_string()))?;
            let plan = self.plan_for(&lexed, Some(&other.keyspace), Some(&other.shard))?;
            return self.run_plan(&plan, &other.sql, &lexed, class, way).await;
        }
        let plan = match class.kind {
            StatementKind::Describe { table } => {
                let named = super::show::qualifier_at(lexed, table);
                self.plan_for_any(lexed, named.as_deref()).await?
            }
            StatementKind::Show => {
                let named = super::show::keyspace_named(lexed);
                self.plan_for_any(lexed, named.as_deref()).await?
            }
            _ => self.plan(lexed)?,
        };
        self.run_plan(&plan, sql, lexed, class, way).await
    }

    pub(super) async fn run_plan(
        &mut self,
        plan: &Plan,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let mut bound = self.bind(plan, sql, lexed, way.form, None)?;
        if bound.to == BoundTo::Any
            && let Some(shard) = self.answering_shard(plan.keyspace()).await?
            && bound.legs.first().is_some_and(|leg| leg.shard != shard)
        {
            bound = self.bind(plan, sql, lexed, way.form, Some(&shard))?;
        }
        self.check_state(lexed, class, &bound)?;
        self.check_scatter(lexed, &bound)?;
        let mut only_this = false;
        if class.causes_implicit_commit {
            self.commit_open().await?;
        } else if !self.state.transaction.is_active() {
            // SET TRANSACTION speaks of the next transaction, and in autocommit a statement is one.
            only_this = self.state.autocommit && self.state.next_transaction != Characteristics::default();
            if only_this || !self.state.autocommit {
                self.start_implicitly();
            }
        }
        let mut result = self.execute(plan, &bound, lexed, class, way).await;
        if self.may_ask_another(plan, class, &bound) {
            let mut failed = Vec::new();
            while let Err(error) = &result
                && let Some(leg) = bound.legs.first()
                && let Some(other) = self.another_shard(plan.keyspace(), &mut failed, (&leg.shard, error))
            {
                bound = self.bind(plan, sql, lexed, way.form, Some(&other))?;
                result = self.execute(plan, &bound, lexed, class, way).await;
            }
        }
        self.note_pins(lexed, class, &result);
        if only_this {
            self.end_of_one(result.is_ok()).await?;
        }
        if bound.is_ddl {
            // Also after a failure: some shards may have been changed.
            self.relearn(plan).await;
        }
        self.state.note(result?);
        Ok(())
    }

    /// Follows what the statement left on a connection that the session keeps, and lets go of one that holds nothing more.
    fn note_pins(&mut self, lexed: &Lexed<'_>, class: &Classified, result: &Result<Answer, SessionError>) {
        let was_empty = self.state.pins.is_empty();
        if was_empty && class.pin.is_none() {
            return;
        }
        let ended = match result {
            Ok(_) => Ended::Well,
            Err(SessionError::Exec(ExecError::Server { .. })) => Ended::Refused,
            Err(_) => Ended::Unknown,
        };
        self.state.pins.note(lexed, class, ended);
        if self.state.held.reserved().is_none() {
            self.state.pins = Pins::default();
        } else if self.state.pins.is_empty() {
            self.state.held.release_reserved();
        }
    }

    /// Whether the statement is a read on its own that any shard answers alike: one that cannot be asked is passed over.
    fn may_ask_another(&self, plan: &Plan, class: &Classified, bound: &Bound) -> bool {
        bound.to == BoundTo::Any
            && !bound.class.is_write()
            && !plan.calls_stored()
            && class.pin.is_none()
            && !self.state.transaction.is_active()
            && self.held_shard().is_none()
            && plan.keyspace().shards.len() > 1
    }

    /// Ends a transaction around one statement.
    async fn end_of_one(&mut self, commit: bool) -> Result<(), SessionError> {
        if commit {
            return self.commit_open().await;
        }
        self.roll_back_open().await;
        Ok(())
    }

    async fn execute(
        &mut self,
        plan: &Plan,
        bound: &Bound,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<Answer, SessionError> {
        let payload = match way.form {
            Form::Text => Payload::Text,
            Form::Prepared(values) => Payload::Prepared(values),
        };
        let assigned = if assigns_variables(class) {
            user_variables(lexed)
        } else {
            BTreeSet::new()
        };
        let mut unknown: Vec<_> = assigned.iter().cloned().map(SettingName::User).collect();
        let counts = leaves_counts(lexed, class, bound);
        // What runs on the tablets alone asks its connection for the session's last id, and so does the gateway behind a
        // statement that may have made another: what is there is the id of whoever had the connection before.
        let mut own = None;
        if counts || plan.runs_routines() {
            let id = SettingName::System("last_insert_id".to_owned());
            let settings = own.get_or_insert_with(|| self.state.settings.clone());
            settings.set(id.clone(), self.state.last_insert_id.to_string());
            unknown.push(id);
        }
        let timeout = self.timeout(bound.is_ddl, lexed);
        let renames = renames(plan, bound);
        let statement = Statement {
            role: self.role(bound),
            is_write: bound.class.is_write(),
            may_change: plan.calls_stored(),
            is_ddl: bound.is_ddl,
            payload,
            gather: &bound.gather,
            monotone: bound.monotone,
            insert_id_leg: bound.insert_id_leg,
            divided: bound.divided.as_ref(),
            renames: &renames,
        };
        self.executed = Executed::OnShards {
            plan: self.plan_type(bound),
            role: statement.role,
            legs: bound.legs.len(),
        };
        let tablet = self.tablet_timeout(bound.is_ddl, timeout);
        let partial = self.partial(lexed);
        if tablet.is_none()
            && let Some(name) = self.own_limit()
        {
            let settings = own.get_or_insert_with(|| self.state.settings.clone());
            settings.set(name, "0".to_owned());
        }
        let elsewhere = self.may_ask_another(plan, class, bound);
        let mut run = self.lend(timeout, way.more, reserve(class), &unknown);
        run.limits.tablet = tablet;
        if elsewhere {
            run.vacant = Vacant::Fails;
        }
        if let Some(own) = &own {
            run.settings = own;
        }
        run.work = Work::statement(plan.kind());
        run.partial = partial;
        run.leaves = Leaves {
            counts,
            state: plan.calls_stored(),
        };
        let started = clock::now();
        let result = exec::execute(&mut run, &statement, &bound.legs).await;
        self.shared.kind_times.count(
            plan.kind(),
            bound.legs.len(),
            clock::now().duration_since(started),
            result.is_err(),
            || text_of(lexed),
        );
        for name in assigned {
            // Only now: the statement still read the value that was set before.
            self.state.settings.unset(&SettingName::User(name.clone()));
            if self.state.pinned_variables.len() < MAX_PINNED_VARIABLES {
                self.state.pinned_variables.insert(name);
            } else {
                self.state.held.lose("user variables");
            }
        }
        Ok(result?)
    }

    /// The session's things, lent to one statement.
    pub(super) fn lend<'a>(
        &'a mut self,
        timeout: Duration,
        more: More,
        reserve: Option<&'static str>,
        unknown: &'a [SettingName],
    ) -> Run<'a> {
        let status = self.status(more);
        Run {
            fleet: &self.shared.fleet,
            metrics: &self.shared.metrics,
            found_rows: found_rows(&self.client),
            client: &mut self.client,
            held: &mut self.state.held,
            transaction: &mut self.state.transaction,
            settings: &self.state.settings,
            limits: limits_of(
                (&self.registration.handle.kill, &self.alarm),
                &self.view.options,
                timeout,
            ),
            mode: self.view.options.transaction_mode,
            status,
            reserve,
            work: Work::CONNECT,
            fan_out: self.view.options.fan_out,
            query_memory: self.view.options.query_memory,
            memory: &self.shared.memory,
            partial: Partial::Refused,
            told: Told::Nothing,
            drained: SmallVec::new(),
            implicit: false,
            vacant: Vacant::Waits,
            leaves: Leaves::default(),
            unknown,
        }
    }

    /// Opens a shard for the session, without a statement: for `WITH CONSISTENT SNAPSHOT`.
    pub(super) async fn touch(&mut self, shard: &ShardId) -> Result<(), SessionError> {
        let role = self.state.target.role;
        let timeout = self.view.options.query_timeout;
        let mut run = self.lend(timeout, More::No, None, &[]);
        let shards = std::slice::from_ref(shard);
        let mut failover = Failover::new(&run, role);
        let request = || Request {
            is_write: false,
            bytes: 0,
        };
        loop {
            failover.admit(&mut run, shards, request).await?;
            match run.acquire_one(shard, role).await {
                Ok(lease) => {
                    run.put_back([lease]);
                    return Ok(());
                }
                Err(e) if failover.again(&mut run, &e).await => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// The one shard that all of the session's statements go to, if there is one.
    pub(super) async fn only_shard(&mut self) -> Result<ShardId, SessionError> {
        let target = &self.state.target;
        let several = SessionError::Unsupported {
            what: "a consistent snapshot over several shards",
            hint: "choose one shard first: USE keyspace:shard",
        };
        // Dumps ask for it before they choose a database.
        let name = match &target.keyspace {
            Some(name) if !super::target::is_virtual(name.as_str()) => name,
            Some(_) | None if self.has_one_server() => return self.any_shard().await,
            Some(_) | None => return Err(several),
        };
        let unknown = || SessionError::UnknownDatabase(name.to_string());
        let keyspace = self.view.catalog.keyspace(name.as_str()).ok_or_else(unknown)?;
        match (&target.shard, keyspace.shards.as_slice()) {
            (Some(shard), _) => Ok(ShardId {
                keyspace: name.clone(),
                shard: shard.clone(),
            }),
            (None, [only]) => Ok(only.id.clone()),
            (None, _) => Err(several),
        }
    }
}

/// How many user variables whose value lives on one connection a session may have.
const MAX_PINNED_VARIABLES: usize = 1000;

/// The user variables a statement names, lower case.
pub(super) fn user_variables(lexed: &Lexed<'_>) -> BTreeSet<String> {
    (0..lexed.len())
        .filter(|at| lexed.is(*at, TokenKind::UserVariable))
        .filter_map(|at| lexed.variable(at))
        .map(|name| String::from_utf8_lossy(&name).to_lowercase())
        .collect()
}

/// Whether the statement may give user variables values that the gateway cannot know.
fn assigns_variables(class: &Classified) -> bool {
    class.uses_user_variables
        && matches!(
            class.pin,
            Some(
                PinReason::Assignment
                    | PinReason::SelectIntoVariable
                    | PinReason::Call
                    | PinReason::SqlPrepare
                    | PinReason::Load
            )
        )
}

/// Whether what `FOUND_ROWS()` and `LAST_INSERT_ID()` answer behind the statement must be asked: its answer does not tell.
fn leaves_counts(lexed: &Lexed<'_>, class: &Classified, bound: &Bound) -> bool {
    let pinned = matches!(
        class.pin,
        Some(PinReason::FoundRows | PinReason::LastInsertId | PinReason::Call)
    );
    let returns = || (0..lexed.len()).any(|at| lexed.is_keyword(at, Keyword::Returning));
    pinned || (bound.class.is_write() && returns())
}

/// What state a statement leaves on its connection, in words, if any.
fn reserve(class: &Classified) -> Option<&'static str> {
    match class.pin? {
        PinReason::NamedLock => Some("a named lock"),
        PinReason::TemporaryTable => Some("a temporary table"),
        PinReason::TableLock => Some("table locks"),
        PinReason::Assignment | PinReason::SelectIntoVariable => Some("user variables"),
        PinReason::SqlPrepare => Some("statements prepared by SQL"),
        PinReason::Handler => Some("an open HANDLER"),
        PinReason::Load => Some("variables of LOAD DATA"),
        PinReason::Call => Some("what a procedure left"),
        // Their state is asked for at once, see `ask_counts`.
        PinReason::FoundRows | PinReason::LastInsertId | PinReason::SelectIntoFile | PinReason::Xa => None,
    }
}

fn renames(plan: &Plan, bound: &Bound) -> SmallVec<[Rename; 1]> {
    let keyspace = plan.keyspace();
    let shards = bound.legs.iter().filter_map(|leg| {
        let index = keyspace.shard_index(&leg.shard.shard)?;
        keyspace.shards.get(index)
    });
    let renames: SmallVec<[Rename; 1]> = shards.map(|s| s.rename.clone()).collect();
    if renames.iter().all(Rename::is_identity) {
        return SmallVec::new();
    }
    renames
}

/// Whether a statement's kind is answered by the gateway alone.
pub(super) fn is_local(kind: StatementKind) -> bool {
    use StatementKind as S;
    matches!(
        kind,
        S::Begin(_)
            | S::Commit { .. }
            | S::Rollback { .. }
            | S::RollbackTo { .. }
            | S::Savepoint { .. }
            | S::ReleaseSavepoint { .. }
            | S::SetTransaction
            | S::Set
            | S::Use
            | S::Kill
            | S::Show
    )
}
