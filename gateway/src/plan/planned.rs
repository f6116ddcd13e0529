//! What planning makes of a statement: where it goes for any values, and what of it changes on the way. Binding gives it
//! values.

use std::sync::Arc;

use super::catalog::Keyspace;
use super::error::PlanError;
use super::insert::InsertRows;
use super::locate::Locations;
use super::select::SelectShape;
use super::splice::Edits;
use crate::route::StatementClass;

/// Where a statement goes, what of it changes on the way, and how the answers become one; for any values.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) keyspace: Arc<Keyspace>,
    /// What tells its kind of statement from others: a hash of the fingerprint.
    pub(super) kind: u64,
    pub(super) class: StatementClass,
    pub(super) is_ddl: bool,
    pub(super) route: Route,
    pub(super) edits: Edits,
    /// Tokens of all placeholders.
    pub(super) params: Box<[u32]>,
    /// Whether it is the EXPLAIN of the statement planned.
    pub(super) explains: Option<Explains>,
    /// Why it may not run on any one shard, if no condition says which.
    pub(super) anywhere: Option<PlanError>,
    /// What it runs that lies on the tablets.
    pub(super) routines: Routines,
    /// Whether it has functions that the session answers.
    pub(super) asks_session: bool,
    /// Literals that the plan was read from, with their text: another text needs another plan.
    pub(super) pinned: Vec<(u32, Box<[u8]>)>,
}

/// Code on the tablets that a statement runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Routines {
    None,
    /// It writes a table that has triggers.
    Triggers,
    /// It calls a function that is no server's own: such a one may write, whatever the statement is.
    Functions,
}

/// What an EXPLAIN does with its statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Explains {
    /// Shows how it would run.
    Looks,
    /// Runs it.
    Runs,
}

#[derive(Clone, Debug)]
pub(super) enum Route {
    /// This shard, by its place in the keyspace.
    Shard(usize),
    /// Any one shard.
    Any,
    /// Every shard: DDL.
    Every,
    /// Where its rows are.
    Rows {
        locations: Box<Locations>,
        several: Result<Several, PlanError>,
        apart: PlanError,
    },
    /// Where its new rows belong; an error if those are several shards and that cannot be done.
    Insert {
        rows: Box<InsertRows>,
        several: Result<(), PlanError>,
    },
    /// Where its new rows belong, if what they are selected from is there too.
    InsertSelect {
        rows: Box<InsertRows>,
        locations: Box<Locations>,
        apart: PlanError,
    },
}

/// What happens on several shards.
#[derive(Clone, Debug)]
pub(super) enum Several {
    Select(Box<SelectShape>),
    Write,
}
