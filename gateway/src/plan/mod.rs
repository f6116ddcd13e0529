//! A statement, the vschema and the learned schema in; which shards, which text and how to gather out.
//!
//! [`plan`] reads a statement once and refers to its literals by token, so that a [`Plan`] can be cached for every
//! statement of the same fingerprint; [`Plan::bind`] fills in values and gives [`Bound`] legs. Neither does I/O.
//!
//! The rule of the room: a statement goes where it is *certain* to be answered as one server would. What is not
//! understood restricts nothing (so it scatters) or is refused with a hint; it is never guessed.

mod bind;
mod cache;
mod catalog;
mod changes;
mod error;
mod explain;
mod facts;
mod follow;
mod from;
mod functions;
mod insert;
mod items;
mod limit;
mod locate;
mod moment;
mod operand;
mod order;
mod other;
mod places;
mod planned;
mod planner;
mod predicate;
mod reach;
mod rewrite;
mod scope;
mod select;
mod shard_set;
mod splice;
mod statement;
mod system;
mod tables;
#[cfg(test)]
mod tests;
mod write;

pub use bind::{BindInput, Bound, BoundTo};
pub use cache::{CacheStats, PlanCache, PlanKey};
pub use catalog::{Catalog, Keyspace, Shard};
pub use error::PlanError;
pub use explain::{DescribedLeg, Description};
pub use facts::{Fact, SessionFacts};
pub use functions::calls_stored;
pub use operand::Params;
pub use planned::Plan;
pub use planner::{PlanInput, plan, plan_for_any_shard};
pub use reach::{database_within_reach, is_of_server, tables_within_reach, within_reach};
pub use rewrite::with_session_facts;
pub use shard_set::ShardSet;
pub use system::{SystemTable, SystemTables, may_name_system, system_tables};
