//! The configuration of the demo: a sharded `commerce` and an unsharded `lookup`, put together by a program since its
//! tablets' ports are known only once they run.

use std::net::SocketAddr;

use super::{Draft, KeyspaceDraft, Listen, ShardDraft, TabletDraft, UserDraft, even_ranges};
use crate::base::Role;

/// The vschema of `commerce`: everything by the customer.
const COMMERCE: &str = r#"{
  "sharded": true,
  "vindexes": { "hash": { "type": "hash" } },
  "tables": {
    "customers": { "column_vindexes": [ { "column": "id", "name": "hash" } ] },
    "orders": { "column_vindexes": [ { "column": "customer_id", "name": "hash" } ] },
    "order_lines": { "column_vindexes": [ { "column": "customer_id", "name": "hash" } ] }
  }
}"#;

/// The tablets of a demo; in each shard the first is the primary.
#[derive(Clone, Debug)]
pub struct DemoShape {
    /// Where the gateway listens.
    pub listen: Listen,
    /// The tablets of each shard of `commerce`; its key ranges are of equal width.
    pub commerce: Vec<Vec<SocketAddr>>,
    /// The tablets of `lookup`.
    pub lookup: Vec<SocketAddr>,
}

/// The demo's configuration, to be changed where needed and validated: user `root` without a password, at the tablets
/// too.
#[must_use]
pub fn demo_draft(shape: &DemoShape) -> Draft {
    let root = UserDraft {
        name: "root".to_owned(),
        password_hash: Some(String::new()),
        password_file: None,
        auth_plugin: None,
    };
    let mut draft = Draft {
        listen: shape.listen.clone(),
        users: vec![root],
        ..Draft::default()
    };
    "root".clone_into(&mut draft.backend.user);
    let names = even_ranges(u32::try_from(shape.commerce.len()).unwrap_or(u32::MAX));
    let shards = names
        .into_iter()
        .zip(&shape.commerce)
        .map(|(name, tablets)| shard("commerce", name, tablets));
    let commerce = KeyspaceDraft {
        vschema: Some(COMMERCE.to_owned()),
        shards: shards.collect(),
        ..KeyspaceDraft::default()
    };
    let lookup = KeyspaceDraft {
        shards: vec![shard("lookup", "-".to_owned(), &shape.lookup)],
        ..KeyspaceDraft::default()
    };
    draft.keyspaces.insert("commerce".to_owned(), commerce);
    draft.keyspaces.insert("lookup".to_owned(), lookup);
    draft
}

/// What the tablets of a demo's shard are called, before `-primary` and `-replica-1`: `commerce-40-80`; the whole range
/// `-` adds nothing to the keyspace's name.
#[must_use]
pub fn demo_tablet_prefix(keyspace: &str, shard: &str) -> String {
    let or = |bound: &str, open: &str| {
        if bound.is_empty() {
            open.to_owned()
        } else {
            bound.to_owned()
        }
    };
    match shard.split_once('-') {
        None | Some(("", "")) => keyspace.to_owned(),
        Some((start, end)) => format!("{keyspace}-{}-{}", or(start, "00"), or(end, "ff")),
    }
}

fn shard(keyspace: &str, name: String, addresses: &[SocketAddr]) -> ShardDraft {
    let prefix = demo_tablet_prefix(keyspace, &name);
    let tablet = |(i, address): (usize, &SocketAddr)| {
        let (role, word) = if i == 0 {
            (Role::Primary, "primary".to_owned())
        } else {
            (Role::Replica, format!("replica-{i}"))
        };
        TabletDraft {
            alias: format!("{prefix}-{word}"),
            address: address.to_string(),
            role,
        }
    };
    let tablets = addresses.iter().enumerate().map(tablet).collect();
    ShardDraft {
        name,
        tablets,
        ..ShardDraft::default()
    }
}
