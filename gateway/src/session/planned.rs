//! Statements that run on tablets: planned, bound to their shards, executed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{Classified, Fingerprint, Lexed, PinReason, StatementKind, TokenKind, lex};
use smallvec::SmallVec;

use super::command::found_rows;
use super::counted::{Executed, PlanType};
use super::kind_times::{kind_of, text_of};
use super::pins::{Ended, Pins};
use super::query::{Form, Way};
use super::shared::limit;
use super::{More, Session, SessionError, limits_of};
use crate::base::{KeyspaceName, Role, ShardId, ShardName, clock};
use crate::exec::{
    self, Answer, Characteristics, ExecError, Failover, Partial, Payload, Rename, Run, Statement, Told,
    Vacant,
};
use crate::guard::{Request, Work};
use crate::plan::{BindInput, Bound, BoundTo, Plan, PlanError, PlanInput, PlanKey, SessionFacts, plan};
use crate::tablet::{SettingName, Settings, limit_name};

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

    /// A plan made before for the same statement, or a new one.
    pub(super) fn plan(&self, lexed: &Lexed<'_>) -> Result<Arc<Plan>, SessionError> {
        let target = &self.state.target;
        let keyspace = target
            .keyspace
            .as_ref()
            .filter(|k| !super::target::is_virtual(k.as_str()));
        self.plan_for(lexed, keyspace, target.shard.as_ref())
    }

    /// A plan for a statement that any one shard answers alike: about a table, not about its rows.
    pub(super) async fn plan_for_any(
        &mut self,
        lexed: &Lexed<'_>,
        named: Option<&str>,
    ) -> Result<Arc<Plan>, SessionError> {
        let target = &self.state.target;
        let named = named
            .and_then(|n| self.view.catalog.keyspace(n))
            .map(|k| k.name.clone());
        let keyspace = match named.or_else(|| target.keyspace.clone()) {
            Some(name) if !super::target::is_virtual(name.as_str()) => name,
            Some(_) | None => {
                let any = self.view.catalog.any_keyspace().ok_or(PlanError::NoKeyspace)?;
                any.name.clone()
            }
        };
        let shard = match self.state.target.shard.clone() {
            Some(own) if self.state.target.keyspace.as_ref() == Some(&keyspace) => own,
            Some(_) | None => self.shard_asked(&keyspace).await?.id.shard,
        };
        self.plan_for(lexed, Some(&keyspace), Some(&shard))
    }

    pub(super) fn plan_for(
        &self,
        lexed: &Lexed<'_>,
        keyspace: Option<&KeyspaceName>,
        shard: Option<&ShardName>,
    ) -> Result<Arc<Plan>, SessionError> {
        let fingerprint = Fingerprint::of(lexed);
        let key = PlanKey {
            fingerprint: &fingerprint,
            keyspace,
            shard,
            sql_mode: self.state.sql_mode,
            version: self.view.catalog.version(),
        };
        if let Some(found) = self.shared.plans.get(&key, lexed) {
            return Ok(found);
        }
        let input = PlanInput {
            statement: lexed,
            catalog: &self.view.catalog,
            keyspace,
            shard,
        };
        let made = Arc::new(plan(&input)?.of_kind(kind_of(lexed, &fingerprint)));
        self.shared.plans.insert(&key, Arc::clone(&made));
        Ok(made)
    }

    /// Binds a plan; `prefer` is the shard for what any can answer, where the session holds none.
    pub(super) fn bind(
        &self,
        plan: &Plan,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        form: Form<'_>,
        prefer: Option<&ShardId>,
    ) -> Result<Bound, SessionError> {
        let params: SmallVec<[_; 4]> = match form {
            Form::Text => SmallVec::new(),
            Form::Prepared(bound) => (0..bound.len())
                .map(|i| super::values::of_param(bound.value(i), &self.state.charset))
                .collect(),
        };
        let facts = if plan.asks_session() {
            self.facts()
        } else {
            SessionFacts::default()
        };
        let held = self.held_shard();
        let prefer = prefer.or(held.as_ref());
        Ok(plan.bind(&BindInput {
            sql,
            statement: lexed,
            params: &params,
            facts: &facts,
            now: self.now(),
            charset: &self.state.charset,
            prefer,
        })?)
    }

    /// What session functions answer.
    pub(super) fn facts(&self) -> SessionFacts {
        let handle = &self.registration.handle;
        let host = handle
            .host
            .rsplit_once(':')
            .map_or(handle.host.as_str(), |(host, _)| host);
        SessionFacts {
            last_insert_id: self.state.last_insert_id,
            found_rows: self.state.found_rows,
            row_count: self.state.row_count,
            connection_id: u64::from(handle.id),
            database: self.state.target.keyspace.as_ref().map(ToString::to_string),
            version: self.view.options.server_version.clone(),
            user: format!("{}@{host}", handle.user()),
            current_user: format!("{}@%", handle.user()),
            autocommit: self.state.autocommit,
            warning_count: self.state.warning_count,
            error_count: self.state.error_count(),
        }
    }

    /// A shard whose connection the session holds anyway: where any shard will do, it is the one.
    pub(super) fn held_shard(&self) -> Option<ShardId> {
        self.state
            .held
            .reserved()
            .map(|l| l.shard.clone())
            .or_else(|| self.state.held.transaction_shards().next().cloned())
    }

    /// State of the session that the statement needs or leaves, against where it goes.
    fn check_state(&self, lexed: &Lexed<'_>, class: &Classified, bound: &Bound) -> Result<(), SessionError> {
        if self.state.target.role == Role::Replica && bound.class.needs_primary() {
            return Err(SessionError::Unsupported {
                what: "a write or a locking read on replicas",
                hint: "USE the keyspace without @replica first",
            });
        }
        if bound.legs.len() > 1 && self.state.settings.system("sql_select_limit").is_some() {
            return Err(SessionError::Unsupported {
                what: "sql_select_limit over several shards",
                hint: "write LIMIT in the statement",
            });
        }
        if class.pin.is_some() && bound.legs.len() > 1 {
            return Err(SessionError::Unsupported {
                what: "session state on more than one shard",
                hint: "choose one shard first: USE keyspace:shard",
            });
        }
        if !class.uses_user_variables || self.state.pinned_variables.is_empty() {
            return Ok(());
        }
        let home = self.state.held.reserved().map(|l| &l.shard);
        let elsewhere = bound.legs.iter().any(|leg| Some(&leg.shard) != home);
        match user_variables(lexed)
            .into_iter()
            .find(|v| self.state.pinned_variables.contains(v))
        {
            Some(name) if elsewhere => Err(SessionError::PinnedVariable(name)),
            Some(_) | None => Ok(()),
        }
    }

    /// Vitess's name of the plan type: to all shards of the keyspace, to some, to one.
    fn plan_type(&self, bound: &Bound) -> PlanType {
        match bound.to {
            BoundTo::Any | BoundTo::One => PlanType::Passthrough,
            BoundTo::Every => PlanType::DirectDdl,
            BoundTo::Several => {
                let keyspace = bound.legs.first().map(|leg| leg.shard.keyspace.as_str());
                let shards = keyspace
                    .and_then(|k| self.view.catalog.keyspace(k))
                    .map(|k| k.shards.len());
                if shards == Some(bound.legs.len()) {
                    PlanType::Scatter
                } else {
                    PlanType::MultiShard
                }
            }
        }
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
        let unknown: Vec<_> = assigned.iter().cloned().map(SettingName::User).collect();
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
        let unlimited = tablet.is_none().then(|| self.unlimited()).flatten();
        let elsewhere = self.may_ask_another(plan, class, bound);
        let mut run = self.lend(timeout, way.more, reserve(class), &unknown);
        run.limits.tablet = tablet;
        if elsewhere {
            run.vacant = Vacant::Fails;
        }
        if let Some(unlimited) = &unlimited {
            run.settings = unlimited;
        }
        run.work = Work::statement(plan.kind());
        run.partial = partial;
        run.leaves_counts = matches!(class.pin, Some(PinReason::FoundRows | PinReason::LastInsertId));
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
            partial: Partial::Refused,
            told: Told::Nothing,
            drained: SmallVec::new(),
            implicit: false,
            vacant: Vacant::Waits,
            leaves_counts: false,
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

    /// How long the statement may take to its first row: the tightest of what the configuration, the session and the
    /// statement's own directive say.
    fn timeout(&self, is_ddl: bool, lexed: &Lexed<'_>) -> Duration {
        let options = &self.view.options;
        let configured = match (is_ddl, self.state.olap) {
            (true, _) => options.ddl_timeout,
            (false, true) => options.olap_timeout,
            (false, false) => options.query_timeout,
        };
        let directive = lexed
            .directives()
            .and_then(|d| d.query_timeout_ms)
            .map(Duration::from_millis);
        match directive.or(self.state.query_timeout) {
            // Zero lifts the limit, as an operator's own query may ask.
            Some(Duration::ZERO) => Duration::ZERO,
            Some(asked) if configured.is_zero() => asked,
            Some(asked) => asked.min(configured),
            None => configured,
        }
    }

    /// How long one attempt may take: DDL, batch work and commands without a limit have none.
    pub(super) fn tablet_timeout(&self, is_ddl: bool, timeout: Duration) -> Option<Duration> {
        let limited = !is_ddl && !self.state.olap && !timeout.is_zero();
        limited.then(|| limit(self.view.options.tablet_timeout)).flatten()
    }

    /// The session's settings with the tablets' own limit lifted; `None` if there is none, or the client set one.
    fn unlimited(&self) -> Option<Settings> {
        let name = limit_name(self.view.lex.flavor);
        let is_limited = !self.view.options.tablet_timeout.is_zero();
        if !is_limited || self.state.settings.get(&name).is_some() {
            return None;
        }
        let mut settings = self.state.settings.clone();
        settings.set(name, "0".to_owned());
        Some(settings)
    }

    /// Whether the client takes an answer in part.
    fn partial(&self, lexed: &Lexed<'_>) -> Partial {
        let asked = lexed.directives().is_some_and(|d| d.scatter_errors_as_warnings);
        if asked {
            Partial::Accepted
        } else {
            self.state.partial
        }
    }

    /// Refuses a statement for several shards where the configuration says so and the client does not insist.
    fn check_scatter(&self, lexed: &Lexed<'_>, bound: &Bound) -> Result<(), SessionError> {
        let several = bound.legs.len() > 1 && !bound.is_ddl;
        if !several || !self.view.options.no_scatter || self.state.allow_scatter {
            return Ok(());
        }
        if lexed.directives().is_some_and(|d| d.allow_scatter) {
            return Ok(());
        }
        Err(SessionError::ScatterRefused {
            shards: bound.legs.len(),
        })
    }

    fn role(&self, bound: &Bound) -> Role {
        if bound.class.needs_primary() {
            Role::Primary
        } else {
            self.state.target.role
        }
    }

    /// The moment of a statement: `SET timestamp` holds it still.
    pub(super) fn now(&self) -> Duration {
        let set = self.state.settings.system("timestamp");
        let seconds = set.and_then(|text| text.parse::<f64>().ok()).filter(|s| *s > 0.0);
        seconds
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
            .unwrap_or_else(clock::wall)
    }

    /// Learns a keyspace's tables anew.
    async fn relearn(&mut self, plan: &Plan) {
        (self.shared.relearn)(plan.keyspace().name.clone()).await;
        self.view = self.shared.view.load_full();
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
