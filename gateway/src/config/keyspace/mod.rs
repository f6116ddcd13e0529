//! Keyspaces, their shards and tablets: which server holds which rows.
//!
//! A mistake here shows as wrong answers, not as errors: an uncovered range loses rows, a database listed twice
//! doubles them. So what is accepted covers every value exactly once.

mod draft;
mod named;
mod ranges;
#[cfg(test)]
mod tests;
mod validate;

pub use draft::{KeyspaceDraft, NamedDraft, NamedKind, ShardDraft, ShardValue, TabletDraft};
pub use ranges::{RangeProblem, check_tiling, even_ranges};
pub(super) use validate::validate;

use crate::base::{KeyRange, KeyspaceName, Role, ShardName, TabletAlias};
use crate::config::vschema::VSchema;
use crate::vindex::NamedCut;

/// A keyspace: what clients see as one database.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyspace {
    /// Its name.
    pub name: KeyspaceName,
    /// How rows are divided among its shards.
    pub division: Division,
    /// Its vschema, where it has one.
    pub vschema: Option<VSchema>,
    /// Its shards: by key range, or as listed where they are named.
    pub shards: Vec<Shard>,
}

/// How a keyspace's rows are divided among its shards.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// One shard holds all.
    Unsharded,
    /// By ranges of keyspace ids, as the vschema says.
    KeyRanges,
    /// Among named shards.
    Named {
        /// The column of every table that has it.
        column: String,
        /// How its values are divided.
        cut: NamedCut,
    },
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its name.
    pub name: ShardName,
    /// Its key range, where the keyspace is divided by ranges.
    pub range: Option<KeyRange>,
    /// The database on its tablets.
    pub database: String,
    /// Its tablets; exactly one is the primary.
    pub tablets: Vec<Tablet>,
}

/// One `MySQL` server of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tablet {
    /// Its alias, unique in the configuration.
    pub alias: TabletAlias,
    /// Where it listens.
    pub address: TabletAddress,
    /// What it is to its shard.
    pub role: Role,
}

/// Where a tablet listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TabletAddress {
    /// Host name or address, and port.
    Tcp {
        /// Host name or IP address, without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// A Unix socket's path.
    Unix(String),
}

impl TabletAddress {
    /// Reads `host:port`, `[v6]:port` or `unix:/path`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Self::Unix(path.to_owned()));
        }
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host = match bracketed {
            Some(inner) if inner.parse::<std::net::Ipv6Addr>().is_ok() => inner,
            Some(_) => return None,
            None if host.is_empty() || host.contains([':', '[', ']', ' ', '/', '@']) => return None,
            None => host,
        };
        Some(Self::Tcp {
            host: host.to_owned(),
            port,
        })
    }
}

impl std::fmt::Display for TabletAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}
