//! Keyspaces as written in the file.

use std::path::PathBuf;

use serde::Deserialize;

use crate::base::Role;

/// `[keyspaces.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyspaceDraft {
    /// The database on its tablets, unless a shard names its own. Default: the keyspace's name. Applied by a reload.
    pub database: Option<String>,
    /// The keyspace's vschema: a file of Vitess's JSON, beside the configuration unless absolute. Needed if it is
    /// divided by key ranges. No default. Read again by a reload.
    pub vschema_file: Option<PathBuf>,
    /// The same JSON as a text, in place of the file. No default. Applied by a reload.
    pub vschema: Option<String>,
    /// How named shards divide the rows. Without it the shards' names are key ranges, or there is one shard. Applied
    /// by a reload.
    pub named: Option<NamedDraft>,
    /// Its shards; at least one. Applied by a reload.
    pub shards: Vec<ShardDraft>,
}

impl KeyspaceDraft {
    /// Whether it has a shard of this name.
    pub(in crate::config) fn has_shard(&self, name: &str) -> bool {
        self.shards.iter().any(|s| s.name == name)
    }
}

/// How named shards divide a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedKind {
    /// By the remainder of a division.
    Modulo,
    /// By ranges of integers.
    Range,
    /// By lists of values.
    List,
}

/// `[keyspaces.NAME.named]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedDraft {
    /// `modulo`, `range` or `list`. No default. Applied by a reload.
    pub by: NamedKind,
    /// The column that decides, in every table that has it. No default. Applied by a reload.
    pub column: String,
    /// With `modulo`: the divisor. Default: the number of shards. Applied by a reload.
    #[serde(default)]
    pub count: Option<u64>,
    /// With `list`: the shard of every value that is not listed. Default: such a value is refused. Applied by a
    /// reload.
    #[serde(default)]
    pub default_shard: Option<String>,
}

/// `[[keyspaces.NAME.shards]]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardDraft {
    /// Its name: a key range such as `-40`, `40-80` or `-`, or any name in a keyspace with `named`. No default.
    /// Applied by a reload.
    pub name: String,
    /// The database on its tablets. Default: the keyspace's `database`. Applied by a reload.
    pub database: Option<String>,
    /// With `modulo`: the remainders it holds. Default: its place in the list, from 0, if no shard has any. Applied by
    /// a reload.
    pub remainders: Option<Vec<u64>>,
    /// With `range`: the least value it holds. Default: no lower end. Applied by a reload.
    pub from: Option<i64>,
    /// With `range`: the least value above those it holds. Default: no upper end. Applied by a reload.
    pub to: Option<i64>,
    /// With `list`: the values it holds, integers or texts. Texts match exactly. No default. Applied by a reload.
    pub values: Option<Vec<ShardValue>>,
    /// Its tablets; exactly one is the primary. Applied by a reload.
    pub tablets: Vec<TabletDraft>,
}

/// A value in a shard's list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ShardValue {
    /// An integer.
    Int(i64),
    /// A text.
    Text(String),
}

/// `[[keyspaces.NAME.shards.tablets]]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TabletDraft {
    /// Its name in logs, metrics and `SHOW VITESS_TABLETS`; unique in the whole file. No default. Applied by a reload.
    pub alias: String,
    /// `host:port`, `[v6]:port` or `unix:/path`. No default. Applied by a reload.
    pub address: String,
    /// `primary` or `replica`. Default `primary`. Applied by a reload.
    #[serde(default, deserialize_with = "role")]
    pub role: Role,
}

fn role<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Primary,
        Replica,
    }
    Ok(match Word::deserialize(deserializer)? {
        Word::Primary => Role::Primary,
        Word::Replica => Role::Replica,
    })
}
