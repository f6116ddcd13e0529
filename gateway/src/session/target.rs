//! Where a session's statements go: keyspace, and on request one shard or the replicas.

use std::fmt;

use super::{SessionError, View};
use crate::base::{KeyspaceName, Role, ShardName};
use crate::plan::{PlanError, database_within_reach};

/// A session's target, as `USE keyspace:shard@role` sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Target {
    /// The keyspace; `None` before a database was chosen.
    pub keyspace: Option<KeyspaceName>,
    /// The one shard that everything goes to, if one was named.
    pub shard: Option<ShardName>,
    /// The role that reads go to.
    pub role: Role,
}

/// Why a text is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The role is not one of those known.
    #[error("unknown role '{0}'; roles are primary (or master) and replica (or rdonly)")]
    Role(String),
    /// A role or a shard without a keyspace, where none was chosen before.
    #[error("a shard was named without a keyspace")]
    NoKeyspace,
}

impl Target {
    /// Reads `keyspace`, `keyspace:shard`, `keyspace/shard`, `keyspace@role`, `keyspace:shard@role`, `@role`.
    /// `current` gives the keyspace where the text has none.
    pub fn parse(text: &str, current: &Self) -> Result<Self, TargetError> {
        let (place, role) = match text.rsplit_once('@') {
            Some((place, role)) => (place, parse_role(role)?),
            None => (text, Role::Primary),
        };
        let (keyspace, shard) = match place.split_once([':', '/']) {
            Some((keyspace, shard)) => (keyspace, Some(ShardName::from(shard))),
            None => (place, None),
        };
        if keyspace.is_empty() {
            if shard.is_some() {
                return Err(TargetError::NoKeyspace);
            }
            return Ok(Self {
                role,
                ..current.clone()
            });
        }
        Ok(Self {
            keyspace: Some(keyspace.into()),
            shard,
            role,
        })
    }
}

impl Target {
    /// The target of a client that named this database when it logged in.
    pub fn of_login(database: Option<&str>, view: &View) -> Result<Self, SessionError> {
        let Some(name) = database.filter(|d| !d.is_empty()) else {
            return Ok(Self::default());
        };
        let target = Self::parse(name, &Self::default())?;
        target.check(view)?;
        Ok(target)
    }

    /// Whether keyspace and shard exist.
    pub fn check(&self, view: &View) -> Result<(), SessionError> {
        let Some(name) = &self.keyspace else { return Ok(()) };
        if let Err(denied @ PlanError::DatabaseDenied(_)) =
            database_within_reach(name.as_str(), &view.catalog)
        {
            return Err(denied.into());
        }
        if is_virtual(name.as_str()) && self.shard.is_none() {
            return Ok(());
        }
        let keyspace = view.catalog.keyspace(name.as_str());
        let keyspace = keyspace.ok_or_else(|| SessionError::UnknownDatabase(name.to_string()))?;
        match &self.shard {
            Some(shard) if keyspace.shard_index(shard).is_none() => Err(SessionError::UnknownShard {
                keyspace: name.to_string(),
                shard: shard.to_string(),
                known: keyspace
                    .shards
                    .iter()
                    .map(|s| s.id.shard.to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The databases that every server has and no keyspace is.
pub(super) fn is_virtual(name: &str) -> bool {
    ["information_schema", "performance_schema", "mysql", "sys"]
        .iter()
        .any(|v| v.eq_ignore_ascii_case(name))
}

fn parse_role(text: &str) -> Result<Role, TargetError> {
    match text.to_ascii_lowercase().as_str() {
        "primary" | "master" => Ok(Role::Primary),
        "replica" | "rdonly" => Ok(Role::Replica),
        _ => Err(TargetError::Role(text.to_owned())),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(f, "{keyspace}")?;
        }
        if let Some(shard) = &self.shard {
            write!(f, ":{shard}")?;
        }
        match self.role {
            Role::Primary => Ok(()),
            Role::Replica => f.write_str("@replica"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_vitess_writes_them() {
        let none = Target::default();
        for (text, keyspace, shard, role) in [
            ("commerce", "commerce", None, Role::Primary),
            ("commerce:-40", "commerce", Some("-40"), Role::Primary),
            ("commerce/-40", "commerce", Some("-40"), Role::Primary),
            ("commerce@replica", "commerce", None, Role::Replica),
            ("commerce:80-c0@rdonly", "commerce", Some("80-c0"), Role::Replica),
            ("commerce@MASTER", "commerce", None, Role::Primary),
        ] {
            let t = Target::parse(text, &none).unwrap();
            assert_eq!(
                t.keyspace.as_ref().map(KeyspaceName::as_str),
                Some(keyspace),
                "{text}"
            );
            assert_eq!(t.shard.as_ref().map(ShardName::as_str), shard, "{text}");
            assert_eq!(t.role, role, "{text}");
        }
    }

    #[test]
    fn a_role_alone_keeps_the_rest() {
        let current = Target::parse("commerce:-40", &Target::default()).unwrap();
        let t = Target::parse("@replica", &current).unwrap();
        assert_eq!(t.to_string(), "commerce:-40@replica");
    }

    #[test]
    fn what_is_no_target_says_why() {
        assert_eq!(
            Target::parse("c@boss", &Target::default()),
            Err(TargetError::Role("boss".into()))
        );
        assert_eq!(
            Target::parse(":-40", &Target::default()),
            Err(TargetError::NoKeyspace)
        );
    }
}
