//! Vindexes: from a column's value to the place its row lives.
//!
//! Values are computed byte for byte as Vitess computes them, so a keyspace that was sharded by Vitess routes the
//! same here. The hard part is not the hash but promise 1: an equality may go to one shard only if *every* stored
//! value that the server would call equal lives there. Three steps settle it, each able to say "not known":
//! [`compare`]/[`store`] turn a literal into the column's own value, [`Vindex::safety`] says whether equal values of
//! such a column hash alike, and [`Vindex::map`] computes the place. [`Vindex::route`] is all three for a read,
//! [`Vindex::place`] for a written row.

mod coerce;
mod collation;
mod column;
mod error;
mod functional;
mod loose;
mod named;
#[cfg(test)]
mod oracle;
mod safety;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use coerce::{Coerced, compare, store};
pub use collation::{Collation, Pad, Sensitivity};
pub use column::{ColumnType, IntWidth, StringKind};
pub use error::VindexError;
pub use loose::LooseWeights;
pub use named::{IntRange, ListCut, ListKey, ModuloCut, NamedCut, RangeCut, RangeCutError};
pub use safety::{Safety, hash_alike};
pub use value::Value;

use crate::base::{KeyspaceId, ShardName};

/// Where a value's row lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// In the shard whose key range holds this id.
    KeyspaceId(KeyspaceId),
    /// In this shard.
    Shard(ShardName),
    /// Nowhere: no row can have the value.
    None,
}

/// What an equality on a vindex column allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Routed {
    /// All rows that can match live here.
    To(Destination),
    /// Rows that match may live anywhere; the text says why.
    Scatter(&'static str),
}

/// The computation of a vindex.
#[derive(Clone, Debug, PartialEq)]
enum Function {
    Hash(Arc<functional::NullHash>),
    Numeric,
    ReverseBits,
    XxHash,
    BinaryMd5,
    Binary,
    UnicodeLooseXxHash(Arc<LooseWeights>),
    UnicodeLooseMd5(Arc<LooseWeights>),
    Null,
    Named(NamedCut),
}

/// Types that Vitess has and this gateway does not, so that the error can say so.
const VITESS_ONLY: &[&str] = &[
    "cfc",
    "consistent_lookup",
    "consistent_lookup_unique",
    "lookup",
    "lookup_hash",
    "lookup_hash_unique",
    "lookup_unicodeloosemd5_hash",
    "lookup_unicodeloosemd5_hash_unique",
    "lookup_unique",
    "multicol",
    "numeric_static_map",
    "region_experimental",
    "region_json",
];

/// A vindex, ready to map values. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Vindex {
    function: Function,
}

impl Vindex {
    /// Builds the vindex of a vschema's `type` and `params`. `cut` is how the keyspace's named shards are divided;
    /// `None` for a keyspace of key ranges.
    pub fn new(
        kind: &str,
        params: &BTreeMap<String, String>,
        cut: Option<&NamedCut>,
    ) -> Result<Self, VindexError> {
        let function = match kind {
            "hash" => Function::Hash(Arc::new(functional::NullHash::new())),
            "numeric" => Function::Numeric,
            "reverse_bits" => Function::ReverseBits,
            "xxhash" => Function::XxHash,
            "binary_md5" => Function::BinaryMd5,
            "binary" => Function::Binary,
            "unicode_loose_xxhash" => Function::UnicodeLooseXxHash(Arc::new(LooseWeights::new())),
            "unicode_loose_md5" => Function::UnicodeLooseMd5(Arc::new(LooseWeights::new())),
            "null" => Function::Null,
            "modulo" => return Self::of_cut("modulo", params, cut),
            "range" => return Self::of_cut("range", params, cut),
            "list" => return Self::of_cut("list", params, cut),
            other if VITESS_ONLY.contains(&other) => {
                return Err(VindexError::UnsupportedType(other.to_owned()));
            }
            other => return Err(VindexError::UnknownType(other.to_owned())),
        };
        let vindex = Self { function };
        if let Some(cut) = cut {
            return Err(VindexError::WrongCut {
                kind: vindex.kind(),
                cut: cut.kind(),
            });
        }
        vindex.without_params(params)
    }

    /// The vindex of named shards.
    #[must_use]
    pub fn named(cut: NamedCut) -> Self {
        Self {
            function: Function::Named(cut),
        }
    }

    fn of_cut(
        kind: &'static str,
        params: &BTreeMap<String, String>,
        cut: Option<&NamedCut>,
    ) -> Result<Self, VindexError> {
        match cut {
            Some(cut) if cut.kind() == kind => Self::named(cut.clone()).without_params(params),
            Some(cut) => Err(VindexError::WrongCut {
                kind,
                cut: cut.kind(),
            }),
            None => Err(VindexError::WrongCut {
                kind,
                cut: "key ranges",
            }),
        }
    }

    fn without_params(self, params: &BTreeMap<String, String>) -> Result<Self, VindexError> {
        match params.keys().next() {
            Some(param) => Err(VindexError::UnknownParam {
                kind: self.kind(),
                param: param.clone(),
            }),
            None => Ok(self),
        }
    }

    /// Its type, as vschemas name it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match &self.function {
            Function::Hash(_) => "hash",
            Function::Numeric => "numeric",
            Function::ReverseBits => "reverse_bits",
            Function::XxHash => "xxhash",
            Function::BinaryMd5 => "binary_md5",
            Function::Binary => "binary",
            Function::UnicodeLooseXxHash(_) => "unicode_loose_xxhash",
            Function::UnicodeLooseMd5(_) => "unicode_loose_md5",
            Function::Null => "null",
            Function::Named(cut) => cut.kind(),
        }
    }

    /// Whether one value has one place. All types known here do.
    #[must_use]
    pub const fn is_unique(&self) -> bool {
        true
    }

    /// Vitess's cost: of several usable vindexes the cheapest is taken.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        match &self.function {
            Function::Binary | Function::Numeric | Function::Named(_) => 0,
            Function::Hash(_)
            | Function::ReverseBits
            | Function::XxHash
            | Function::BinaryMd5
            | Function::UnicodeLooseXxHash(_)
            | Function::UnicodeLooseMd5(_) => 1,
            Function::Null => 100,
        }
    }

    /// How many columns it takes. All types known here take one.
    #[must_use]
    pub const fn columns(&self) -> usize {
        1
    }

    /// The place of a value that is already of its column's type.
    pub fn map(&self, value: &Value) -> Result<Destination, VindexError> {
        use functional as f;
        let kind = self.kind();
        let id = match &self.function {
            Function::Hash(hash) => hash.of(f::as_u64(kind, value, true)?),
            Function::Numeric => f::numeric(f::as_u64(kind, value, false)?),
            Function::ReverseBits => f::reverse_bits(f::as_u64(kind, value, false)?),
            Function::XxHash => f::with_bytes(kind, value, f::xxhash)?,
            Function::BinaryMd5 => f::with_bytes(kind, value, f::binary_md5)?,
            Function::Binary => f::with_bytes(kind, value, KeyspaceId::from_slice)?,
            Function::UnicodeLooseXxHash(weights) => {
                f::xxhash(&f::with_bytes(kind, value, |b| f::loose_key(kind, weights, b))??)
            }
            Function::UnicodeLooseMd5(weights) => {
                f::binary_md5(&f::with_bytes(kind, value, |b| f::loose_key(kind, weights, b))??)
            }
            Function::Null => f::null(),
            Function::Named(cut) => return cut.shard(value).map(Destination::Shard),
        };
        Ok(Destination::KeyspaceId(id))
    }

    /// Where the rows live for which `column = value` holds.
    #[must_use]
    pub fn route(&self, column: &ColumnType, value: &Value) -> Routed {
        let exact = match compare(value, column) {
            Coerced::Exact(v) => v,
            Coerced::NoMatch => return Routed::To(Destination::None),
            Coerced::Unknown(why) => return Routed::Scatter(why),
        };
        match self.safety(column) {
            Safety::Always => {}
            Safety::ByValue if self.equals_hash_alike(column, &exact) => {}
            Safety::ByValue => {
                return Routed::Scatter("the column's collation calls texts equal that hash apart");
            }
            Safety::Never(why) => return Routed::Scatter(why),
        }
        match self.map(&exact) {
            Ok(destination) => Routed::To(destination),
            // A row that the vindex cannot place may still be there: it was not put there by the gateway.
            Err(_) => Routed::Scatter("the vindex cannot map the value"),
        }
    }

    /// Where the rows live for which `column IS NULL` holds.
    #[must_use]
    pub fn route_null(&self) -> Routed {
        match self.map(&Value::Null) {
            Ok(destination) => Routed::To(destination),
            Err(_) => Routed::Scatter("the vindex cannot map NULL"),
        }
    }

    /// Where a row belongs whose sharding column is written as `value`.
    pub fn place(&self, column: &ColumnType, value: &Value) -> Result<Destination, VindexError> {
        match store(value, column) {
            Coerced::Exact(v) => self.map(&v),
            Coerced::Unknown(why) => Err(VindexError::Inexact { why }),
            Coerced::NoMatch => Err(VindexError::Inexact {
                why: "out of the column's range",
            }),
        }
    }
}
