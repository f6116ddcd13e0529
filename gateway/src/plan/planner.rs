//! From a statement to a [`Plan`]: how its tables are named and where queries go. What changes rows is in `changes`.

use std::sync::Arc;

use shardgate_sql::{AdminKind, Keyword as K, Lexed, SessionFunction, StatementKind, classify};

use super::catalog::{Catalog, Keyspace};
use super::error::PlanError;
use super::facts::Fact;
use super::from::From;
use super::functions;
use super::locate::Locations;
use super::moment::MomentCall;
use super::planned::{Explains, Plan, Route, Routines, Several};
use super::rewrite::Rewrite;
use super::scope::{self, select_scopes};
use super::select::{self, BY_SHARDING_COLUMN, Refusal};
use super::splice::Edits;
use super::statement::Statement;
use super::tables::{Named, Names, Query};
use super::write;
use crate::base::{KeyspaceName, ShardName};
use crate::route::StatementClass;

/// What a plan is made from.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The statement: one, without others behind it.
    pub statement: &'a Lexed<'a>,
    /// Keyspaces, tables and shards.
    pub catalog: &'a Catalog,
    /// The session's keyspace, if it chose one.
    pub keyspace: Option<&'a KeyspaceName>,
    /// The one shard the session chose (`USE commerce:-40`), if it did.
    pub shard: Option<&'a ShardName>,
}

/// Plans a statement. EXPLAIN of a statement is planned as that statement, and goes to one of its shards.
pub fn plan(input: &PlanInput<'_>) -> Result<Plan, PlanError> {
    let kind = classify(input.statement).kind;
    let (start, analyze) = match kind {
        StatementKind::Explain {
            statement, analyze, ..
        } => (statement, Some(analyze)),
        _ => (0, None),
    };
    with_planner(input, start, |planner| {
        let Some(analyze) = analyze else {
            return planner.plan(kind);
        };
        let mut plan = match planner.statement.keyword(start) {
            Some(K::Insert | K::Replace) => planner.insert(),
            Some(K::Update) => planner.write(write::update_scope(planner.statement)),
            Some(K::Delete) => planner.write(write::delete_scope(planner.statement)),
            Some(K::For) => planner.untouched(StatementClass::Read, "EXPLAIN of a connection"),
            _ => planner.select(),
        }?;
        plan.explains = Some(if analyze { Explains::Runs } else { Explains::Looks });
        Ok(plan)
    })
}

/// Plans a statement that every shard answers alike, such as SHOW and DESCRIBE of a table: one shard is asked.
pub fn plan_for_any_shard(input: &PlanInput<'_>) -> Result<Plan, PlanError> {
    #[allow(clippy::redundant_closure_for_method_calls)]
    // the method itself is not general over the lifetimes
    with_planner(input, 0, |planner| planner.any_shard())
}

fn with_planner(
    input: &PlanInput<'_>,
    start: usize,
    make: impl FnOnce(&Planner<'_, '_>) -> Result<Plan, PlanError>,
) -> Result<Plan, PlanError> {
    let session = match input.keyspace {
        Some(name) => {
            let unknown = || PlanError::UnknownKeyspace(name.to_string());
            Some(input.catalog.keyspace(name.as_str()).ok_or_else(unknown)?)
        }
        None => None,
    };
    let Ok(statement) = Statement::new(input.statement, start) else {
        return Err(PlanError::NotUnderstood {
            keyspace: session.ok_or(PlanError::NoKeyspace)?.name.clone(),
            what: "its parentheses do not match".into(),
        });
    };
    make(&Planner {
        input,
        statement: &statement,
        session,
    })
}

/// What a kind of statement is called that is understood, and means one server.
fn of_one_server(kind: StatementKind) -> Option<&'static str> {
    use StatementKind as S;
    Some(match kind {
        S::Prepare => "PREPARE in SQL",
        S::Execute => "EXECUTE in SQL",
        S::Deallocate => "DEALLOCATE PREPARE in SQL",
        S::LockTables => "LOCK TABLES",
        S::UnlockTables => "UNLOCK TABLES",
        S::Call => "CALL",
        S::Compound => "a compound statement",
        S::Load => "LOAD DATA",
        S::Handler => "HANDLER",
        S::Admin(AdminKind::Analyze) => "ANALYZE TABLE",
        S::Admin(AdminKind::Optimize) => "OPTIMIZE TABLE",
        S::Admin(AdminKind::Check) => "CHECK TABLE",
        S::Admin(AdminKind::Checksum) => "CHECKSUM TABLE",
        S::Admin(AdminKind::Repair) => "REPAIR TABLE",
        S::Admin(AdminKind::CacheIndex) => "an index cache",
        _ => return None,
    })
}

pub(super) struct Planner<'p, 'a> {
    pub(super) input: &'p PlanInput<'a>,
    pub(super) statement: &'p Statement<'a>,
    pub(super) session: Option<&'p Arc<Keyspace>>,
}

/// Why a statement is not read any further; it may still pass untouched to a given shard.
pub(super) type Why = &'static str;

impl Planner<'_, '_> {
    pub(super) fn plan(&self, kind: StatementKind) -> Result<Plan, PlanError> {
        match kind {
            StatementKind::Select | StatementKind::Do => self.select(),
            StatementKind::Insert | StatementKind::Replace => self.insert(),
            StatementKind::Update => self.write(write::update_scope(self.statement)),
            StatementKind::Delete => self.write(write::delete_scope(self.statement)),
            StatementKind::Ddl {
                object, temporary, ..
            } => self.ddl(object, temporary),
            StatementKind::Show | StatementKind::Describe { .. } => self.any_shard(),
            kind => match of_one_server(kind) {
                Some(what) => self.on_one_shard(StatementClass::Write, what),
                None => self.untouched(StatementClass::Write, "this kind of statement cannot be routed"),
            },
        }
    }

    fn select(&self) -> Result<Plan, PlanError> {
        let marked = |keyword| {
            self.statement
                .all()
                .any(|at| self.statement.is_keyword(at, keyword))
        };
        let class = match self.input.statement {
            lexed if classify(lexed).is_locking_read => StatementClass::LockingRead,
            _ => StatementClass::Read,
        };
        if marked(K::Table) {
            return self.untouched(class, "TABLE as a query");
        }
        let queries = match self.queries(None) {
            Ok(queries) => queries,
            Err(why) => return self.untouched(class, why),
        };
        let names = self.names(&queries, &[])?;
        let Some(keyspace) = names.keyspace.clone() else {
            return self.without_tables(class, &queries, &names);
        };
        let mut made = Made::new(class, &queries, &names);
        if let Some(shard) = self.given(&keyspace)? {
            return Ok(self.finish(&keyspace, Route::Shard(shard), made));
        }
        self.refuse_shared(&keyspace)?;
        let locations = Locations::build(self.statement, &keyspace, &names, &queries)?;
        let anywhere = self.stored_function(&keyspace);
        if locations.is_empty() {
            let plan = self.finish(&keyspace, Route::Any, made);
            return Ok(Plan { anywhere, ..plan });
        }
        let shape = if names.system {
            select::refuse(
                "a query that also reads tables of the server's own",
                BY_SHARDING_COLUMN,
            )
        } else {
            self.moments_are_plain()
                .and_then(|()| select::shape(self.statement, &queries))
        };
        if let Ok(shape) = &shape {
            made.pinned.clone_from(&shape.pinned);
        }
        let several = shape
            .map(|s| Several::Select(Box::new(s)))
            .map_err(|r| unsupported(&keyspace, r));
        let apart = apart(
            &keyspace,
            &locations,
            "a join, subquery or UNION of sharded tables",
        );
        let route = Route::Rows {
            locations: Box::new(locations),
            several,
            apart,
        };
        let plan = self.finish(&keyspace, route, made);
        Ok(Plan { anywhere, ..plan })
    }

    /// Why a statement may not run on whichever shard: a stored function reads the tables of its own.
    fn stored_function(&self, keyspace: &Keyspace) -> Option<PlanError> {
        let at = functions::first_stored(self.statement)?;
        let name = String::from_utf8_lossy(self.statement.lexed.text(at)).into_owned();
        let refusal = Refusal {
            what: format!("function `{name}`, which no server has built in and may read tables,").into(),
            hint: BY_SHARDING_COLUMN,
        };
        Some(unsupported(keyspace, refusal))
    }

    /// A statement that names no table of any keyspace: any shard answers it.
    fn without_tables(
        &self,
        class: StatementClass,
        queries: &[Query],
        names: &Names,
    ) -> Result<Plan, PlanError> {
        let keyspace = self
            .session
            .or_else(|| self.input.catalog.any_keyspace())
            .ok_or(PlanError::NoKeyspace)?;
        let given = self.given(keyspace)?;
        if let (None, Some(error)) = (given, self.stored_function(keyspace)) {
            return Err(error);
        }
        let route = match given {
            Some(shard) => Route::Shard(shard),
            // A lock or a sequence is one thing for all sessions: always the same shard's.
            None if self.names_something_shared() => Route::Shard(0),
            None => Route::Any,
        };
        Ok(self.finish(keyspace, route, Made::new(class, queries, names)))
    }

    /// A named lock or a sequence beside rows would be another one on each shard.
    pub(super) fn refuse_shared(&self, keyspace: &Keyspace) -> Result<(), PlanError> {
        if !self.names_something_shared() {
            return Ok(());
        }
        let refusal = Refusal {
            what: "a named lock or a sequence in a statement that names tables".into(),
            hint: "ask for it in a statement of its own",
        };
        Err(unsupported(keyspace, refusal))
    }

    fn names_something_shared(&self) -> bool {
        use SessionFunction::{NamedLock, Sequence};
        let calls = classify(self.input.statement).functions;
        calls
            .iter()
            .any(|call| matches!(call.function, NamedLock | Sequence))
            || self.statement.all().any(|at| {
                let next = matches!(self.statement.keyword(at), Some(K::Next | K::Previous | K::Prev));
                next && self.statement.is_keyword(at + 1, K::Value)
            })
    }

    pub(super) fn not_understood(keyspace: &Keyspace, what: Why) -> PlanError {
        PlanError::NotUnderstood {
            keyspace: keyspace.name.clone(),
            what: what.into(),
        }
    }

    /// The one shard that runs everything: an unsharded keyspace's, or the session's target.
    pub(super) fn given(&self, keyspace: &Keyspace) -> Result<Option<usize>, PlanError> {
        let missing = |shard: String| PlanError::NoSuchShard {
            keyspace: keyspace.name.clone(),
            shard,
        };
        if let (Some(shard), Some(session)) = (self.input.shard, self.input.keyspace)
            && *session == keyspace.name
        {
            return keyspace
                .shard_index(shard)
                .map(Some)
                .ok_or_else(|| missing(format!("`{shard}`")));
        }
        if keyspace.shards.is_empty() {
            return Err(missing("at all".into()));
        }
        if !keyspace.is_sharded() {
            return Ok(Some(0));
        }
        if self.statement.lexed.options().mode.oracle() {
            return Err(Self::not_understood(
                keyspace,
                "sql_mode ORACLE has another grammar",
            ));
        }
        Ok(None)
    }

    /// All scopes with their FROM clauses: the statement's own first if it has one, then every SELECT.
    pub(super) fn queries(&self, own: Option<scope::Scope>) -> Result<Vec<Query>, Why> {
        let shift = usize::from(own.is_some());
        let mut scopes: Vec<_> = own.into_iter().collect();
        for mut scope in select_scopes(self.statement) {
            scope.parent = match scope.parent {
                Some(parent) => Some(parent + shift),
                None => (shift > 0).then_some(0),
            };
            scopes.push(scope);
        }
        if !scope::all_read(self.statement, &scopes) {
            return Err("a FROM or JOIN outside of any query that is understood");
        }
        let query = |scope: scope::Scope| {
            let from = From::parse(self.statement, &scope.from).map_err(|_| "its FROM clause")?;
            Ok(Query { scope, from })
        };
        scopes.into_iter().map(query).collect()
    }

    pub(super) fn names(&self, queries: &[Query], others: &[Named]) -> Result<Names, PlanError> {
        Names::resolve(self.statement, self.input.catalog, self.session, queries, others)
    }

    /// Precisions of `NOW()` and kin must be plain digits to be spliced for several shards.
    pub(super) fn moments_are_plain(&self) -> Result<(), Refusal> {
        match self
            .statement
            .all()
            .find(|at| MomentCall::at(self.statement, *at).is_err())
        {
            Some(_) => select::refuse(
                "NOW() and its kin with this argument",
                "give the precision as a digit from 0 to 6",
            ),
            None => Ok(()),
        }
    }

    pub(super) fn finish(&self, keyspace: &Arc<Keyspace>, route: Route, made: Made<'_>) -> Plan {
        let mut edits = Edits::default();
        let mut rewrite = Rewrite {
            statement: self.statement,
            edits: &mut edits,
        };
        rewrite.functions(made.names);
        let factors = made
            .queries
            .iter()
            .flat_map(|q| &q.from.factors)
            .filter_map(|f| f.qualifier);
        rewrite.qualifiers(keyspace, factors.chain(made.qualifiers));
        rewrite.keep_names(made.queries);
        if let Route::Rows {
            several: Ok(Several::Select(shape)),
            ..
        } = &route
        {
            shape.edits.iter().cloned().for_each(|edit| edits.push(edit));
        }
        let mut plan = self.plan_of(keyspace, made.class, route, edits, false);
        let text = |token: &u32| (*token, self.statement.lexed.text(*token as usize).into());
        plan.pinned = made.pinned.iter().map(text).collect();
        plan
    }

    /// Whether any name in it is that of a table with triggers, whatever it is there.
    fn names_triggers(&self, keyspace: &Keyspace) -> bool {
        let has_triggers = |name: &str| {
            let table = keyspace.schema.table(name);
            table
                .and_then(|t| t.info.as_ref())
                .is_some_and(|i| i.has_triggers())
        };
        self.statement
            .all()
            .filter_map(|at| self.statement.name(at))
            .any(|name| has_triggers(&name))
    }

    pub(super) fn plan_of(
        &self,
        keyspace: &Arc<Keyspace>,
        class: StatementClass,
        route: Route,
        edits: Edits,
        is_ddl: bool,
    ) -> Plan {
        let params = self.statement.params().into();
        let mut tokens = 0..self.statement.lexed.len();
        let asks_session = tokens.any(|at| Fact::at(self.statement, at).is_some());
        Plan {
            keyspace: Arc::clone(keyspace),
            kind: 0,
            class,
            is_ddl,
            route,
            edits,
            params,
            pinned: Vec::new(),
            explains: None,
            anywhere: None,
            routines: if is_ddl {
                // Its columns look like calls; what it defines does not run yet.
                Routines::None
            } else if functions::first_stored(self.statement).is_some() {
                Routines::Functions
            } else if class.is_write() && self.names_triggers(keyspace) {
                Routines::Triggers
            } else {
                Routines::None
            },
            asks_session,
        }
    }
}

/// What a plan is finished from.
pub(super) struct Made<'m> {
    class: StatementClass,
    queries: &'m [Query],
    names: &'m Names,
    /// Tokens of `keyspace.` outside of FROM clauses.
    pub(super) qualifiers: Vec<usize>,
    pinned: Vec<u32>,
}

impl<'m> Made<'m> {
    pub(super) fn new(class: StatementClass, queries: &'m [Query], names: &'m Names) -> Self {
        Self {
            class,
            queries,
            names,
            qualifiers: Vec::new(),
            pinned: Vec::new(),
        }
    }
}

pub(super) fn unsupported(keyspace: &Keyspace, refusal: Refusal) -> PlanError {
    PlanError::Unsupported {
        what: refusal.what,
        keyspace: keyspace.name.clone(),
        hint: refusal.hint.into(),
    }
}

/// The error for tables whose rows lie on different shards, naming the conditions that would bring them together.
pub(super) fn apart(keyspace: &Keyspace, locations: &Locations, what: &'static str) -> PlanError {
    let mut columns: Vec<String> = Vec::new();
    for table in locations.tables() {
        let column = table
            .primary_vindex()
            .map(|v| format!("`{}`.`{}`", table.name, v.column));
        columns.extend(column.filter(|c| !columns.contains(c)));
    }
    let hint = format!(
        "join the tables on equal sharding columns, or give each the same value ({}), or query them one by one",
        columns.join(", ")
    );
    PlanError::NotOneShard {
        what,
        keyspace: keyspace.name.clone(),
        hint: hint.into(),
    }
}
