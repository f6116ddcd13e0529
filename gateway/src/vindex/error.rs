//! Why a vindex cannot be built, or cannot say where a value lives.

use crate::base::{ErrorKind, GatewayError};

/// A vindex's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VindexError {
    /// The vschema names a type that does not exist.
    #[error(
        "unknown vindex type `{0}`; known are hash, xxhash, unicode_loose_xxhash, unicode_loose_md5, binary_md5, \
         binary, numeric, reverse_bits, null, modulo, range and list"
    )]
    UnknownType(String),
    /// Vitess has the type, Shardgate does not.
    #[error("vindex type `{0}` exists in Vitess but is not supported by shardgate")]
    UnsupportedType(String),
    /// A parameter no vindex of that type takes.
    #[error("vindex type `{kind}` takes no parameter `{param}`")]
    UnknownParam {
        /// The vindex's type.
        kind: &'static str,
        /// The parameter.
        param: String,
    },
    /// `modulo`, `range` or `list` in a keyspace whose shards are not cut that way.
    #[error(
        "vindex type `{kind}` needs a keyspace whose named shards are cut by {kind}, this one is cut by {cut}"
    )]
    WrongCut {
        /// The vindex's type.
        kind: &'static str,
        /// How the keyspace's shards are cut.
        cut: &'static str,
    },
    /// NULL has no place under this vindex.
    #[error("NULL cannot be mapped by vindex type `{0}`; nothing was executed")]
    Null(&'static str),
    /// The value is of a type or size the vindex does not take.
    #[error("a value cannot be mapped by vindex type `{kind}`: {why}; nothing was executed")]
    Unmappable {
        /// The vindex's type.
        kind: &'static str,
        /// What is wrong with the value, without the value itself.
        why: &'static str,
    },
    /// A value outside all ranges or lists.
    #[error("a value belongs to no shard by vindex type `{0}`; nothing was executed")]
    NoShard(&'static str),
    /// What the server would store is not known exactly.
    #[error("the value that a server would store cannot be told exactly ({why}); nothing was executed")]
    Inexact {
        /// Why.
        why: &'static str,
    },
}

impl GatewayError for VindexError {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownType(_)
            | Self::UnsupportedType(_)
            | Self::UnknownParam { .. }
            | Self::WrongCut { .. } => "SG1010",
            Self::Null(_) => "SG2050",
            Self::Unmappable { .. } => "SG2051",
            Self::NoShard(_) => "SG2052",
            Self::Inexact { .. } => "SG2053",
        })
    }
    fn kind(&self) -> ErrorKind {
        match self {
            Self::UnsupportedType(_) => ErrorKind::Unsupported,
            Self::UnknownType(_)
            | Self::UnknownParam { .. }
            | Self::WrongCut { .. }
            | Self::Null(_)
            | Self::Unmappable { .. }
            | Self::NoShard(_)
            | Self::Inexact { .. } => ErrorKind::Invalid,
        }
    }
    fn retryable(&self) -> bool {
        false
    }
}
