//! What a statement is counted as.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shardgate_sql::StatementKind;

use crate::base::Role;
use crate::base::metrics::{Metrics, QueryCount, Timing};

/// Kinds of statement, as metrics tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Empty,
    Select,
    Insert,
    Replace,
    Update,
    Delete,
    Begin,
    Commit,
    Rollback,
    Savepoint,
    Set,
    Use,
    Show,
    Explain,
    Kill,
    Ddl,
    Lock,
    Call,
    Prepare,
    Other,
}

impl Counted {
    const ALL: [Self; 20] = [
        Self::Empty,
        Self::Select,
        Self::Insert,
        Self::Replace,
        Self::Update,
        Self::Delete,
        Self::Begin,
        Self::Commit,
        Self::Rollback,
        Self::Savepoint,
        Self::Set,
        Self::Use,
        Self::Show,
        Self::Explain,
        Self::Kill,
        Self::Ddl,
        Self::Lock,
        Self::Call,
        Self::Prepare,
        Self::Other,
    ];

    /// What a statement is counted as.
    pub(super) const fn of(kind: StatementKind) -> Self {
        use StatementKind as S;
        match kind {
            S::Empty => Self::Empty,
            S::Select => Self::Select,
            S::Insert => Self::Insert,
            S::Replace => Self::Replace,
            S::Update => Self::Update,
            S::Delete => Self::Delete,
            S::Begin(_) => Self::Begin,
            S::Commit { .. } => Self::Commit,
            S::Rollback { .. } => Self::Rollback,
            S::RollbackTo { .. } | S::Savepoint { .. } | S::ReleaseSavepoint { .. } => Self::Savepoint,
            S::SetTransaction | S::Set | S::SetStatement => Self::Set,
            S::Use => Self::Use,
            S::Show => Self::Show,
            S::Describe { .. } | S::Explain { .. } => Self::Explain,
            S::Kill => Self::Kill,
            S::Ddl { .. } => Self::Ddl,
            S::LockTables | S::UnlockTables => Self::Lock,
            S::Call | S::Compound => Self::Call,
            S::Prepare | S::Execute | S::Deallocate => Self::Prepare,
            S::Account | S::Do | S::Admin(_) | S::Xa | S::Load | S::Handler | S::Other => Self::Other,
        }
    }

    /// The label in `QueryTimings`.
    pub(super) const fn timing(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Select => "Select",
            Self::Insert => "Insert",
            Self::Replace => "Replace",
            Self::Update => "Update",
            Self::Delete => "Delete",
            Self::Begin => "Begin",
            Self::Commit => "Commit",
            Self::Rollback => "Rollback",
            Self::Savepoint => "Savepoint",
            Self::Set => "Set",
            Self::Use => "Use",
            Self::Show => "Show",
            Self::Explain => "Explain",
            Self::Kill => "Kill",
            Self::Ddl => "DDL",
            Self::Lock => "Lock",
            Self::Call => "Call",
            Self::Prepare => "Prepare",
            Self::Other => "Other",
        }
    }

    /// The label in `QueryExecutions` and `QueryRoutes`: Vitess's name of the query type.
    pub(super) const fn query(self) -> &'static str {
        match self {
            Self::Empty => "COMMENT_ONLY",
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Replace => "REPLACE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback => "ROLLBACK",
            Self::Savepoint => "SAVEPOINT",
            Self::Set => "SET",
            Self::Use => "USE",
            Self::Show => "SHOW",
            Self::Explain => "EXPLAIN",
            Self::Kill => "KILL",
            Self::Ddl => "DDL",
            Self::Lock => "LOCK_TABLES",
            Self::Call => "CALL_PROC",
            Self::Prepare => "PREPARE",
            Self::Other => "OTHER",
        }
    }
}

/// How a statement was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    /// By the gateway alone, or not at all.
    Local,
    /// On shards.
    OnShards {
        /// How many of the keyspace's.
        plan: PlanType,
        /// The role of the tablets.
        role: Role,
        /// How many shards.
        legs: usize,
    },
}

/// Vitess's types of plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanType {
    Local,
    Passthrough,
    MultiShard,
    Scatter,
    DirectDdl,
}

impl PlanType {
    const ALL: usize = 5;

    const fn label(self) -> &'static str {
        match self {
            Self::Local => "Local",
            Self::Passthrough => "Passthrough",
            Self::MultiShard => "MultiShard",
            Self::Scatter => "Scatter",
            Self::DirectDdl => "DirectDDL",
        }
    }
}

const fn tablet_type(role: Role) -> &'static str {
    match role {
        Role::Primary => "PRIMARY",
        Role::Replica => "REPLICA",
    }
}

/// The counters of each kind of statement, looked up by their labels when they are first used: every statement counts.
#[derive(Debug, Default)]
pub struct CountedHandles {
    timings: [OnceLock<Arc<Timing>>; Counted::ALL.len()],
    queries: [[[OnceLock<Arc<QueryCount>>; 2]; PlanType::ALL]; Counted::ALL.len()],
}

impl CountedHandles {
    /// Counts a statement that took this long.
    pub(super) fn count(&self, metrics: &Metrics, kind: Counted, executed: Executed, took: Duration) {
        let timing = || metrics.query_timings.handle(kind.timing());
        self.timings[kind as usize].get_or_init(timing).record(took);
        let (plan, role, legs) = match executed {
            Executed::Local => (PlanType::Local, Role::Primary, 0),
            Executed::OnShards { plan, role, legs } => (plan, role, legs as u64),
        };
        let labels = [kind.query(), plan.label(), tablet_type(role)];
        let query = || metrics.queries.handle(labels);
        self.queries[kind as usize][plan as usize][role as usize]
            .get_or_init(query)
            .count(legs);
    }
}

/// Makes every kind of statement known to the metrics, at zero.
pub fn count_kinds_from_zero(metrics: &Metrics) {
    for kind in Counted::ALL {
        metrics.query_timings.handle(kind.timing());
        metrics.queries.handle([kind.query(), "Local", "PRIMARY"]);
    }
    for kind in Counted::ALL {
        for plan in [
            PlanType::Passthrough,
            PlanType::MultiShard,
            PlanType::Scatter,
            PlanType::DirectDdl,
        ] {
            for role in [Role::Primary, Role::Replica] {
                metrics
                    .queries
                    .handle([kind.query(), plan.label(), tablet_type(role)]);
            }
        }
    }
}
