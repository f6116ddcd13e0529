//! Named shards, cut by hand: `modulo`, `range` or `list` on a column chooses among shards that have names instead of
//! key ranges.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::VindexError;
use super::value::Value;
use crate::base::ShardName;

/// How a keyspace's named shards divide a column's values among them.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedCut {
    /// `value mod count`.
    Modulo(ModuloCut),
    /// Half-open ranges of integers.
    Range(RangeCut),
    /// Lists of values.
    List(ListCut),
}

impl NamedCut {
    /// The word for it in the configuration and in vschemas.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Modulo(_) => "modulo",
            Self::Range(_) => "range",
            Self::List(_) => "list",
        }
    }

    /// The shard a value belongs to.
    pub fn shard(&self, value: &Value) -> Result<ShardName, VindexError> {
        if value.is_null() {
            return Err(VindexError::Null(self.kind()));
        }
        let found = match self {
            Self::Modulo(cut) => cut.shard(value)?,
            Self::Range(cut) => cut.shard(value)?,
            Self::List(cut) => cut.shard(value)?,
        };
        found.cloned().ok_or(VindexError::NoShard(self.kind()))
    }
}

fn integer(kind: &'static str, value: &Value) -> Result<i128, VindexError> {
    value.as_integer().ok_or(VindexError::Unmappable {
        kind,
        why: "it is not an integer",
    })
}

/// `value mod count`: the remainder names the shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuloCut {
    /// Shard by remainder; its length is the divisor.
    shards: Arc<[ShardName]>,
}

impl ModuloCut {
    /// `shards[r]` holds remainder `r`; one shard may hold several remainders. `None` when empty.
    #[must_use]
    pub fn new(shards: Vec<ShardName>) -> Option<Self> {
        (!shards.is_empty()).then(|| Self {
            shards: shards.into(),
        })
    }

    fn shard(&self, value: &Value) -> Result<Option<&ShardName>, VindexError> {
        let v = integer("modulo", value)?;
        // What an application's `id % n` did to negative ids differs by language, so nothing is guessed.
        let v = u128::try_from(v).map_err(|_| VindexError::Unmappable {
            kind: "modulo",
            why: "it is negative",
        })?;
        let remainder = usize::try_from(v % self.shards.len() as u128).unwrap_or(usize::MAX);
        Ok(self.shards.get(remainder))
    }
}

/// One shard's range of integers: `from` inside, `to` outside; `None` is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntRange {
    /// First value inside.
    pub from: Option<i128>,
    /// First value past the end.
    pub to: Option<i128>,
    /// Who holds it.
    pub shard: ShardName,
}

/// Ranges of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCut {
    /// Sorted by start; they touch without gap or overlap.
    ranges: Arc<[IntRange]>,
}

/// Why ranges do not make a [`RangeCut`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeCutError {
    /// A range with nothing inside.
    #[error("shard `{0}`: `from` must be below `to`")]
    Empty(ShardName),
    /// Two ranges share values.
    #[error("the ranges of shards `{0}` and `{1}` overlap")]
    Overlap(ShardName, ShardName),
    /// Values between two ranges belong to nobody.
    #[error(
        "values from {from} to below {to} belong to no shard: a gap between shards `{left}` and `{right}`"
    )]
    Gap {
        /// The shard before the gap.
        left: ShardName,
        /// The shard behind it.
        right: ShardName,
        /// First value in the gap.
        from: i128,
        /// First value past it.
        to: i128,
    },
    /// No range at all.
    #[error("there is no range")]
    None,
}

impl RangeCut {
    /// Sorts the ranges and checks that they tile; the outer ends may be bounded.
    pub fn new(mut ranges: Vec<IntRange>) -> Result<Self, RangeCutError> {
        // An open start sorts first, as `None < Some`.
        ranges.sort_by_key(|r| r.from);
        if let Some(r) = ranges
            .iter()
            .find(|r| matches!((r.from, r.to), (Some(a), Some(b)) if a >= b))
        {
            return Err(RangeCutError::Empty(r.shard.clone()));
        }
        for (left, right) in ranges.iter().zip(ranges.iter().skip(1)) {
            let overlap = || RangeCutError::Overlap(left.shard.clone(), right.shard.clone());
            let (Some(end), Some(start)) = (left.to, right.from) else {
                return Err(overlap());
            };
            if end > start {
                return Err(overlap());
            }
            if end < start {
                let (left, right) = (left.shard.clone(), right.shard.clone());
                return Err(RangeCutError::Gap {
                    left,
                    right,
                    from: end,
                    to: start,
                });
            }
        }
        if ranges.is_empty() {
            Err(RangeCutError::None)
        } else {
            Ok(Self {
                ranges: ranges.into(),
            })
        }
    }

    fn shard(&self, value: &Value) -> Result<Option<&ShardName>, VindexError> {
        let v = integer("range", value)?;
        let after = self
            .ranges
            .partition_point(|r| r.from.is_none_or(|from| from <= v));
        let found = after.checked_sub(1).and_then(|i| self.ranges.get(i));
        Ok(found.filter(|r| r.to.is_none_or(|to| v < to)).map(|r| &r.shard))
    }
}

/// A value of a list: an integer or a text, compared exactly.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKey {
    /// An integer.
    Int(i128),
    /// A text, by its bytes.
    Text(Box<[u8]>),
}

/// Lists of values.
#[derive(Clone, Debug, PartialEq)]
pub struct ListCut {
    shards: Arc<HashMap<ListKey, ShardName>>,
    default: Option<ShardName>,
}

impl ListCut {
    /// Shards by value; `default` holds every value that is not listed. A value listed twice is the caller's to find.
    #[must_use]
    pub fn new(shards: HashMap<ListKey, ShardName>, default: Option<ShardName>) -> Self {
        Self {
            shards: Arc::new(shards),
            default,
        }
    }

    fn shard(&self, value: &Value) -> Result<Option<&ShardName>, VindexError> {
        let key = match value {
            Value::Int(_) | Value::UInt(_) => ListKey::Int(integer("list", value)?),
            Value::Text(b) | Value::Bytes(b) => ListKey::Text(b.clone()),
            Value::Null | Value::Decimal(_) | Value::Float(_) => {
                return Err(VindexError::Unmappable {
                    kind: "list",
                    why: "it is neither an integer nor a text",
                });
            }
        };
        Ok(self.shards.get(&key).or(self.default.as_ref()))
    }
}
