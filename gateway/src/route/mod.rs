//! Plain types that `plan` makes and `exec` and `gather` consume.
//!
//! They live below all three so that none of them has to know another: a plan is bound into legs (what each shard is
//! sent) and a gather plan (how the legs' answers become one), and nothing here does I/O or decides anything.

mod divided;
mod gather_plan;
mod leg;
mod monotone;
mod rename;

pub use divided::Divided;
pub use gather_plan::{Aggregate, GatherBody, GatherPlan, GatherStep, KeyColumn, Limit, SortKey};
pub use leg::{Leg, LegParams};
pub use monotone::{Monotone, NotMonotone};
pub use rename::Rename;

/// What a statement does to rows, which decides roles, transactions and whether it may be run twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatementClass {
    /// Reads without locks: may go to a replica.
    Read,
    /// Reads that lock (`FOR UPDATE`, `FOR SHARE`): primary only, and part of the transaction.
    LockingRead,
    /// Changes rows or schema: primary only.
    Write,
}

impl StatementClass {
    /// Whether only a primary may run it.
    #[must_use]
    pub const fn needs_primary(self) -> bool {
        matches!(self, Self::LockingRead | Self::Write)
    }

    /// Whether it changes rows or schema.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write)
    }
}
