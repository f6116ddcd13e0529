//! From keyspaces as written to keyspaces that cover every row once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use super::draft::{KeyspaceDraft, ShardDraft};
use super::{Division, Keyspace, Shard, Tablet, TabletAddress, named, ranges};
use crate::base::keyrange::trimmed;
use crate::base::{KeyRange, KeyspaceName, Role, ShardName};
use crate::config::problem::Problems;
use crate::config::vschema::VSchema;
use crate::vindex::NamedCut;

/// Databases that every server has; a keyspace of that name would hide them or be hidden.
const RESERVED: &[&str] = &["information_schema", "mysql", "performance_schema", "sys"];

pub(in crate::config) fn validate(
    drafts: BTreeMap<String, KeyspaceDraft>,
    base: &Path,
    problems: &mut Problems,
) -> BTreeMap<KeyspaceName, Keyspace> {
    let mut seen = Seen::default();
    let mut keyspaces = BTreeMap::new();
    for (name, draft) in drafts {
        let mut reader = Reader {
            path: format!("keyspaces.{name}"),
            name: &name,
            base,
            seen: &mut seen,
            problems,
        };
        if let Some(keyspace) = reader.keyspace(&draft) {
            keyspaces.insert(KeyspaceName::from(name.as_str()), keyspace);
        }
    }
    keyspaces
}

/// What must be unique across keyspaces, with where it was first given.
#[derive(Default)]
struct Seen {
    aliases: HashMap<String, String>,
}

struct Reader<'a> {
    path: String,
    name: &'a str,
    base: &'a Path,
    seen: &'a mut Seen,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn problem(&mut self, field: &str, message: impl Into<String>) {
        let dot = if field.is_empty() || field.starts_with('[') {
            ""
        } else {
            "."
        };
        self.problems.add(format!("{}{dot}{field}", self.path), message);
    }

    fn keyspace(&mut self, draft: &KeyspaceDraft) -> Option<Keyspace> {
        self.keyspace_name();
        if draft.shards.is_empty() {
            self.problem("shards", "at least one shard is needed");
            return None;
        }
        let shards = self.shards(draft);
        let cut = match &draft.named {
            Some(named) => Some((named, named::cut(&self.path, named, draft, self.problems)?)),
            None => None,
        };
        let vschema = self.vschema(draft, cut.as_ref().map(|(_, cut)| cut));
        let name = KeyspaceName::from(self.name);
        if let Some((named, cut)) = cut {
            let vschema = vschema.ok()?;
            if vschema.as_ref().is_some_and(|v| !v.sharded) {
                self.problem(
                    "vschema",
                    "must say `\"sharded\": true` in a keyspace of named shards",
                );
            }
            let division = Division::Named {
                column: named.column.clone(),
                cut,
            };
            return Some(Keyspace {
                name,
                division,
                vschema,
                shards,
            });
        }
        self.misplaced_fields(draft);
        let vschema = vschema.ok()?;
        if vschema.as_ref().is_some_and(|v| v.sharded) {
            let shards = self.by_range(shards)?;
            return Some(Keyspace {
                name,
                division: Division::KeyRanges,
                vschema,
                shards,
            });
        }
        if let [_] = shards.as_slice() {
            return Some(Keyspace {
                name,
                division: Division::Unsharded,
                vschema,
                shards,
            });
        }
        let message = match vschema {
            None => {
                "several shards need a `vschema_file` (or `vschema`), or `named` to say how they were cut"
            }
            Some(_) => "several shards, but the vschema does not say `\"sharded\": true`",
        };
        self.problem("shards", message);
        None
    }

    fn keyspace_name(&mut self) {
        let name = self.name;
        if RESERVED.iter().any(|r| r.eq_ignore_ascii_case(name)) {
            self.problem("", format!("`{name}` is a database that every server has"));
        }
        // `:`, `@` and `/` separate keyspace, shard and role in a target.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            self.problem(
                "",
                "a keyspace's name has 1 to 64 letters, digits, `_`, `-` or `$`",
            );
        }
    }

    fn vschema(&mut self, draft: &KeyspaceDraft, cut: Option<&NamedCut>) -> Result<Option<VSchema>, ()> {
        let (field, json) = match (&draft.vschema, &draft.vschema_file) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                self.problem("vschema_file", "give `vschema_file` or `vschema`, not both");
                return Err(());
            }
            (Some(json), None) => ("vschema", json.clone()),
            (None, Some(file)) => {
                let path = self.base.join(file);
                match std::fs::read_to_string(&path) {
                    Ok(json) => ("vschema_file", json),
                    Err(error) => {
                        self.problem("vschema_file", format!("cannot read {}: {error}", path.display()));
                        return Err(());
                    }
                }
            }
        };
        VSchema::parse(&json, cut).map(Some).map_err(|found| {
            let of = draft
                .vschema_file
                .as_ref()
                .map_or_else(|| "of the JSON".to_owned(), |f| f.display().to_string());
            for problem in found {
                self.problem(field, format!("{of}, {problem}"));
            }
        })
    }

    /// Fields of named shards in a keyspace that is not cut by hand.
    fn misplaced_fields(&mut self, draft: &KeyspaceDraft) {
        for (i, shard) in draft.shards.iter().enumerate() {
            let given = [
                ("remainders", shard.remainders.is_some()),
                ("from", shard.from.is_some()),
                ("to", shard.to.is_some()),
                ("values", shard.values.is_some()),
            ];
            for (field, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!(
                    "needs a `[{}.named]` that says how the shards were cut",
                    self.path
                );
                self.problem(&format!("shards[{i}].{field}"), message);
            }
        }
    }

    fn shards(&mut self, draft: &KeyspaceDraft) -> Vec<Shard> {
        let mut names: HashSet<&str> = HashSet::new();
        let mut databases: HashMap<(TabletAddress, String), ShardName> = HashMap::new();
        let mut shards = Vec::new();
        for (i, shard) in draft.shards.iter().enumerate() {
            let at = format!("shards[{i}]");
            if shard.name.is_empty()
                || shard.name.len() > 64
                || shard.name.contains([':', '@', '/', ' ', '`'])
            {
                self.problem(
                    &format!("{at}.name"),
                    "must have 1 to 64 bytes without `:`, `@`, `/`, blanks and quotes",
                );
            }
            if !names.insert(&shard.name) {
                self.problem(
                    &format!("{at}.name"),
                    format!("shard `{}` is given twice", shard.name),
                );
            }
            let database = shard
                .database
                .as_ref()
                .or(draft.database.as_ref())
                .map_or(self.name, String::as_str);
            if database.is_empty() || database.len() > 64 {
                self.problem(&format!("{at}.database"), "must have 1 to 64 bytes");
            }
            let built = Shard {
                name: ShardName::from(shard.name.as_str()),
                range: None,
                database: database.to_owned(),
                tablets: self.tablets(&at, shard),
            };
            self.own_database(&at, &built, &mut databases);
            shards.push(built);
        }
        shards
    }

    /// Two shards in one database would give every row twice.
    fn own_database(
        &mut self,
        at: &str,
        shard: &Shard,
        databases: &mut HashMap<(TabletAddress, String), ShardName>,
    ) {
        for (i, tablet) in shard.tablets.iter().enumerate() {
            let key = (tablet.address.clone(), shard.database.clone());
            let Some(owner) = databases
                .insert(key, shard.name.clone())
                .filter(|owner| *owner != shard.name)
            else {
                continue;
            };
            let message = format!(
                "database `{}` at {} is shard `{owner}` already; give each shard on a server its own `database`",
                shard.database, tablet.address
            );
            self.problem(&format!("{at}.tablets[{i}].address"), message);
        }
    }

    fn tablets(&mut self, at: &str, shard: &ShardDraft) -> Vec<Tablet> {
        let mut tablets = Vec::new();
        let mut primaries: Vec<&str> = Vec::new();
        for (i, tablet) in shard.tablets.iter().enumerate() {
            let at = format!("{at}.tablets[{i}]");
            if tablet.alias.is_empty()
                || tablet.alias.len() > 64
                || tablet.alias.contains(char::is_whitespace)
            {
                self.problem(&format!("{at}.alias"), "must have 1 to 64 bytes without blanks");
            }
            let here = format!("{}.{at}", self.path);
            if let Some(first) = self.seen.aliases.insert(tablet.alias.clone(), here) {
                let message = format!("alias `{}` is given twice, first at {first}", tablet.alias);
                self.problem(&format!("{at}.alias"), message);
            }
            if tablet.role == Role::Primary {
                primaries.push(&tablet.alias);
            }
            if let Some(address) = TabletAddress::parse(&tablet.address) {
                tablets.push(Tablet {
                    alias: tablet.alias.as_str().into(),
                    address,
                    role: tablet.role,
                });
            } else {
                let message = format!(
                    "`{}` is not `host:port`, `[v6]:port` or `unix:/path`",
                    tablet.address
                );
                self.problem(&format!("{at}.address"), message);
            }
        }
        match primaries.as_slice() {
            [_] => {}
            [] => self.problem(
                &format!("{at}.tablets"),
                format!("shard `{}` has no primary", shard.name),
            ),
            several => {
                let message = format!(
                    "shard `{}` has {} primaries: {}",
                    shard.name,
                    several.len(),
                    several.join(", ")
                );
                self.problem(&format!("{at}.tablets"), message);
            }
        }
        tablets
    }

    fn by_range(&mut self, mut shards: Vec<Shard>) -> Option<Vec<Shard>> {
        let mut sound = true;
        for (i, shard) in shards.iter_mut().enumerate() {
            match KeyRange::parse(shard.name.as_str()) {
                Ok(range) => shard.range = Some(range),
                Err(error) => {
                    self.problem(&format!("shards[{i}].name"), format!("`{}`: {error}", shard.name));
                    sound = false;
                }
            }
        }
        if !sound {
            return None;
        }
        shards.sort_by(|a, b| start(a).cmp(start(b)));
        let pairs: Vec<_> = shards
            .iter()
            .filter_map(|s| Some((&s.name, s.range.as_ref()?)))
            .collect();
        let found = ranges::check_tiling(&pairs);
        for problem in &found {
            self.problem("shards", problem.to_string());
        }
        found.is_empty().then_some(shards)
    }
}

fn start(shard: &Shard) -> &[u8] {
    shard.range.as_ref().map_or(&[], |range| trimmed(&range.start))
}
