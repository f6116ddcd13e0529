//! How the answers of several legs become one.
//!
//! A plan has one body (how rows combine) and, around it, an optional window and hidden columns to strip. The steps
//! always run in the order body, window, strip, so they are fields rather than a list somebody could misorder;
//! [`GatherPlan::steps`] lists them for people.

use std::fmt;

use smallvec::SmallVec;

/// Where a sort key stands in a leg's rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyColumn {
    /// The n-th column the client asked for, from 0.
    Output(u16),
    /// The n-th of the columns appended behind the client's, from 0. Counted from the end of the row, since `*` hides
    /// how many columns come before.
    Hidden(u16),
}

/// One key of an ordered merge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortKey {
    /// Its column.
    pub column: KeyColumn,
    /// Whether it descends. NULL is the least value, as `MySQL` orders it.
    pub descending: bool,
}

/// A window over the gathered rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limit {
    /// Rows skipped.
    pub offset: u64,
    /// Rows given at most.
    pub count: u64,
}

/// How one column of a global aggregate combines over legs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Aggregate {
    /// Counts add up.
    Count,
    /// Sums add up; NULL only if all are NULL.
    Sum,
    /// The least that is not NULL.
    Min,
    /// The greatest that is not NULL.
    Max,
}

impl Aggregate {
    /// The SQL function's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "COUNT",
            Self::Sum => "SUM",
            Self::Min => "MIN",
            Self::Max => "MAX",
        }
    }
}

/// How the legs' rows combine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum GatherBody {
    /// One leg after the other, in whatever order rows arrive.
    #[default]
    Concat,
    /// Legs arrive ordered by these keys and stay ordered.
    Merge(SmallVec<[SortKey; 2]>),
    /// One row a leg; each column combines by its aggregate.
    Aggregate(SmallVec<[Aggregate; 4]>),
}

/// How the legs' answers become one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GatherPlan {
    /// How rows combine.
    pub body: GatherBody,
    /// The window over the combined rows, where the statement has one.
    pub limit: Option<Limit>,
    /// How many columns were appended to the legs' select lists and are stripped from the answer.
    pub hidden: u16,
}

impl GatherPlan {
    /// Rows of one leg, or of several in any order, given as they are: nothing to look at.
    #[must_use]
    pub fn concat() -> Self {
        Self::default()
    }

    /// Whether row payloads may be relayed without being looked at, not even counted.
    #[must_use]
    pub fn is_relay(&self) -> bool {
        self.body == GatherBody::Concat && self.limit.is_none() && self.hidden == 0
    }

    /// The steps in the order they run.
    #[must_use]
    pub fn steps(&self) -> Vec<GatherStep<'_>> {
        let mut steps = vec![match &self.body {
            GatherBody::Concat => GatherStep::Concat,
            GatherBody::Merge(keys) => GatherStep::Merge(keys),
            GatherBody::Aggregate(columns) => GatherStep::Aggregate(columns),
        }];
        steps.extend(self.limit.map(GatherStep::Limit));
        if self.hidden > 0 {
            steps.push(GatherStep::Strip(self.hidden));
        }
        steps
    }
}

/// One step of a gather plan, as shown by `EXPLAIN FORMAT=SHARDGATE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GatherStep<'a> {
    /// Rows one after the other.
    Concat,
    /// An ordered merge.
    Merge(&'a [SortKey]),
    /// One row from one row a leg.
    Aggregate(&'a [Aggregate]),
    /// The window.
    Limit(Limit),
    /// Hidden columns are cut off.
    Strip(u16),
}

impl fmt::Display for GatherStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Concat => f.write_str("concat"),
            Self::Merge(keys) => {
                f.write_str("merge by")?;
                for (i, key) in keys.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    let direction = if key.descending { "desc" } else { "asc" };
                    match key.column {
                        KeyColumn::Output(n) => write!(f, "{comma} column {} {direction}", n + 1)?,
                        KeyColumn::Hidden(n) => write!(f, "{comma} hidden {} {direction}", n + 1)?,
                    }
                }
                Ok(())
            }
            Self::Aggregate(columns) => {
                f.write_str("aggregate")?;
                columns
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, a)| write!(f, "{} {}", if i == 0 { "" } else { "," }, a.as_str()))
            }
            Self::Limit(l) => write!(f, "limit {} offset {}", l.count, l.offset),
            Self::Strip(n) => write!(f, "strip {n} hidden"),
        }
    }
}
