//! Whether an answer over fewer shards is still a part of the true answer.
//!
//! Only such plans may shed a leg when the client accepts partial results; every other plan names its reason.

use std::fmt;

/// Whether a plan may lose legs and still answer with rows that are each exactly right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Monotone {
    /// Fewer legs give a subset of the true answer.
    Yes,
    /// They would not, for this reason.
    No(NotMonotone),
}

/// Why a plan may not lose a leg.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotMonotone {
    /// COUNT, SUM, MIN or MAX over all rows: a missing shard changes the value.
    Aggregate,
    /// ORDER BY with LIMIT: rows that belong outside the window would move into it.
    OrderedLimit,
    /// LIMIT with an OFFSET: the rows skipped depend on rows that are missing.
    Offset,
    /// Rows are locked: a caller would believe to hold locks that it does not.
    LockingRead,
    /// Rows or schema are changed.
    Write,
    /// A join or a subquery is evaluated on the shards, and one of them may answer "no such row".
    Subquery,
}

impl NotMonotone {
    /// The reason as shown to people and used as a metric's label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aggregate => "aggregate over all rows",
            Self::OrderedLimit => "ORDER BY with LIMIT",
            Self::Offset => "LIMIT with OFFSET",
            Self::LockingRead => "locking read",
            Self::Write => "write",
            Self::Subquery => "subquery",
        }
    }
}

impl fmt::Display for NotMonotone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Monotone {
    /// Whether legs may be shed.
    #[must_use]
    pub const fn may_shed(self) -> bool {
        matches!(self, Self::Yes)
    }
}
