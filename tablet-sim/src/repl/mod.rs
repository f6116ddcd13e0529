//! Replication: the primary's log, and what replays it on a replica.
//!
//! The log holds statements, each with everything its result depends on (time, random seed, generated ids, user
//! variables), in the order of the commits. Writers are serial on a tablet, so replaying it gives the same rows.

mod applier;
mod log;
mod pace;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use applier::{Applier, Broken, Source};
pub(crate) use log::{Entry, Log, Origin};
use pace::Pacer;
pub(crate) use pace::{ApplyRate, Lag};

use crate::engine::temporal::DateTime;
use crate::engine::types::Ty;
use crate::engine::value::Value;

/// A statement in the log.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) text: Arc<[u8]>,
    pub(crate) database: Option<String>,
    pub(crate) now: DateTime,
    pub(crate) seed: u64,
    /// The first `AUTO_INCREMENT` value it generated.
    pub(crate) insert_id: Option<u64>,
    /// What `LAST_INSERT_ID()` was before it.
    pub(crate) last_insert_id: u64,
    pub(crate) sql_mode: String,
    pub(crate) foreign_keys: bool,
    pub(crate) user_vars: HashMap<String, (Value, Ty)>,
}
