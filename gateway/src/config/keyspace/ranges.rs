//! Whether key ranges cover every keyspace id exactly once.

use std::fmt;

use crate::base::keyrange::trimmed;
use crate::base::{KeyRange, ShardName};

/// Why key ranges do not tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeProblem {
    /// Nobody holds the ids before the first range.
    GapAtStart(ShardName),
    /// Nobody holds the ids behind the last range.
    GapAtEnd(ShardName),
    /// Nobody holds the ids between two ranges.
    Gap {
        /// The shard before the gap.
        left: ShardName,
        /// The shard behind it.
        right: ShardName,
        /// The range nobody holds.
        missing: KeyRange,
    },
    /// Both hold some ids.
    Overlap(ShardName, ShardName),
    /// There is no range.
    Empty,
}

impl fmt::Display for RangeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GapAtStart(first) => {
                write!(f, "no shard holds the ids before `{first}`: a gap at the start")
            }
            Self::GapAtEnd(last) => write!(f, "no shard holds the ids behind `{last}`: a gap at the end"),
            Self::Gap { left, right, missing } => {
                write!(
                    f,
                    "no shard holds `{missing}`: a gap between `{left}` and `{right}`"
                )
            }
            Self::Overlap(a, b) => write!(f, "shards `{a}` and `{b}` overlap"),
            Self::Empty => f.write_str("there is no shard"),
        }
    }
}

/// Everything that keeps these ranges from covering each id exactly once. The ranges must be sorted by start.
#[must_use]
pub fn check_tiling(sorted: &[(&ShardName, &KeyRange)]) -> Vec<RangeProblem> {
    let (Some((first_name, first)), Some(_)) = (sorted.first(), sorted.last()) else {
        return vec![RangeProblem::Empty];
    };
    let mut problems = Vec::new();
    if !trimmed(&first.start).is_empty() {
        problems.push(RangeProblem::GapAtStart((*first_name).clone()));
    }
    // The range that reaches furthest so far: a wide one may swallow several behind it.
    let (mut furthest_name, mut furthest) = (*first_name, *first);
    for (name, range) in sorted.iter().skip(1) {
        let (end, start) = (trimmed(&furthest.end), trimmed(&range.start));
        if furthest.end.0.is_empty() || start < end {
            problems.push(RangeProblem::Overlap(furthest_name.clone(), (*name).clone()));
        } else if end < start {
            problems.push(RangeProblem::Gap {
                left: furthest_name.clone(),
                right: (*name).clone(),
                missing: KeyRange {
                    start: furthest.end.clone(),
                    end: range.start.clone(),
                },
            });
        }
        let further = range.end.0.is_empty() || trimmed(&range.end) > end;
        if !furthest.end.0.is_empty() && further {
            (furthest_name, furthest) = (name, range);
        }
    }
    if !furthest.end.0.is_empty() {
        problems.push(RangeProblem::GapAtEnd(furthest_name.clone()));
    }
    problems
}

/// The names of `n` shards of equal width, 1 to 65536: `-40`, `40-80`, `80-c0`, `c0-`.
#[must_use]
pub fn even_ranges(n: u32) -> Vec<String> {
    let n = n.clamp(1, 0x1_0000);
    let bound = |i: u32| {
        if i == 0 || i == n {
            return String::new();
        }
        // Widths as in Vitess's own split: whole sixteenths of a bit where n is a power of two.
        let at = u64::from(i) * 0x1_0000 / u64::from(n);
        let digits = format!("{at:04x}");
        digits.strip_suffix("00").map_or(digits.clone(), str::to_owned)
    };
    (0..n).map(|i| format!("{}-{}", bound(i), bound(i + 1))).collect()
}
