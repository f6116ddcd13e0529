//! Names: keyspaces, shards, tablets, roles. Cheap to clone, compared by value.

use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(s: &str) -> Self {
                Self(Arc::from(s))
            }
        }
        impl From<String> for $name {
            fn from(s: String) -> Self {
                Self(Arc::from(s))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// A keyspace: what a client sees as one database.
    KeyspaceName
);
name!(
    /// A shard's name inside its keyspace: a key range such as `-40`, or a name such as `shop_03`.
    ShardName
);
name!(
    /// A tablet's alias, unique in the whole configuration: `commerce-40-80-primary`.
    TabletAlias
);

/// A shard's identity: what breakers, buffers and counters are keyed by.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ShardId {
    /// The keyspace it belongs to.
    pub keyspace: KeyspaceName,
    /// Its name inside the keyspace.
    pub shard: ShardName,
}

impl ShardId {
    /// Builds one from its two names.
    pub fn new(keyspace: impl Into<KeyspaceName>, shard: impl Into<ShardName>) -> Self {
        Self {
            keyspace: keyspace.into(),
            shard: shard.into(),
        }
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.keyspace, self.shard)
    }
}

/// A tablet's role in its shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Role {
    /// Takes the shard's writes.
    #[default]
    Primary,
    /// Follows the primary; serves reads that ask for `@replica`.
    Replica,
}

impl Role {
    /// Vitess's name of the tablet type, lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Replica => "replica",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
