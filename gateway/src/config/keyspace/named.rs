//! From the shards' remainders, ranges or lists to the cut of a keyspace of named shards.

use std::collections::HashMap;

use super::draft::{KeyspaceDraft, NamedDraft, NamedKind, ShardDraft, ShardValue};
use crate::base::ShardName;
use crate::config::problem::Problems;
use crate::vindex::{IntRange, ListCut, ListKey, ModuloCut, NamedCut, RangeCut};

/// More remainders than anybody cuts by hand; it bounds the memory of a typing mistake.
const MAX_MODULO: u64 = 65_536;

pub(super) fn cut(
    path: &str,
    named: &NamedDraft,
    draft: &KeyspaceDraft,
    problems: &mut Problems,
) -> Option<NamedCut> {
    if named.column.is_empty() {
        problems.add(format!("{path}.named.column"), "must not be empty");
    }
    foreign_fields(path, named, &draft.shards, problems);
    match named.by {
        NamedKind::Modulo => modulo(path, named, &draft.shards, problems).map(NamedCut::Modulo),
        NamedKind::Range => range(path, &draft.shards, problems).map(NamedCut::Range),
        NamedKind::List => list(path, named, &draft.shards, problems).map(NamedCut::List),
    }
}

/// Fields that belong to another kind would be silently without effect.
fn foreign_fields(path: &str, named: &NamedDraft, shards: &[ShardDraft], problems: &mut Problems) {
    let kind = named.by;
    if named.count.is_some() && kind != NamedKind::Modulo {
        problems.add(format!("{path}.named.count"), "goes with `by = \"modulo\"` only");
    }
    if named.default_shard.is_some() && kind != NamedKind::List {
        problems.add(
            format!("{path}.named.default_shard"),
            "goes with `by = \"list\"` only",
        );
    }
    for (i, shard) in shards.iter().enumerate() {
        let fields = [
            (
                "remainders",
                shard.remainders.is_some(),
                NamedKind::Modulo,
                "modulo",
            ),
            ("from", shard.from.is_some(), NamedKind::Range, "range"),
            ("to", shard.to.is_some(), NamedKind::Range, "range"),
            ("values", shard.values.is_some(), NamedKind::List, "list"),
        ];
        for (field, given, owner, word) in fields {
            if given && owner != kind {
                let message = format!("goes with `by = \"{word}\"` only");
                problems.add(format!("{path}.shards[{i}].{field}"), message);
            }
        }
    }
}

fn modulo(
    path: &str,
    named: &NamedDraft,
    shards: &[ShardDraft],
    problems: &mut Problems,
) -> Option<ModuloCut> {
    let count = named.count.unwrap_or(shards.len() as u64);
    if count == 0 || count > MAX_MODULO {
        problems.add(
            format!("{path}.named.count"),
            format!("must be 1 to {MAX_MODULO}"),
        );
        return None;
    }
    let implicit = shards.iter().all(|s| s.remainders.is_none());
    if implicit && count != shards.len() as u64 {
        let message = format!(
            "is {count}, but there are {} shards and none says which `remainders` it holds",
            shards.len()
        );
        problems.add(format!("{path}.named.count"), message);
        return None;
    }
    let mut owners: Vec<Option<ShardName>> = vec![None; usize::try_from(count).unwrap_or(0)];
    let mut sound = true;
    for (i, shard) in shards.iter().enumerate() {
        let field = format!("{path}.shards[{i}].remainders");
        let own = if implicit {
            vec![i as u64]
        } else {
            shard.remainders.clone().unwrap_or_default()
        };
        if own.is_empty() {
            problems.add(
                field.clone(),
                format!("shard `{}` holds no remainder", shard.name),
            );
            sound = false;
        }
        for remainder in own {
            let slot = usize::try_from(remainder).ok().and_then(|r| owners.get_mut(r));
            let message = match slot {
                None => format!("{remainder} is no remainder of a division by {count}"),
                Some(Some(owner)) => format!("{remainder} is held by `{owner}` already"),
                Some(free @ None) => {
                    *free = Some(shard.name.as_str().into());
                    continue;
                }
            };
            problems.add(field.clone(), message);
            sound = false;
        }
    }
    let missing: Vec<_> = (0..count)
        .zip(&owners)
        .filter(|(_, o)| o.is_none())
        .map(|(r, _)| r.to_string())
        .collect();
    if !missing.is_empty() {
        let shown = missing.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let more = if missing.len() > 8 { " and more" } else { "" };
        problems.add(
            format!("{path}.named.count"),
            format!("no shard holds remainder {shown}{more} of {count}"),
        );
        sound = false;
    }
    if sound {
        ModuloCut::new(owners.into_iter().flatten().collect())
    } else {
        None
    }
}

fn range(path: &str, shards: &[ShardDraft], problems: &mut Problems) -> Option<RangeCut> {
    let range = |s: &ShardDraft| IntRange {
        from: s.from.map(i128::from),
        to: s.to.map(i128::from),
        shard: s.name.as_str().into(),
    };
    match RangeCut::new(shards.iter().map(range).collect()) {
        Ok(cut) => Some(cut),
        Err(error) => {
            problems.add(format!("{path}.shards"), error.to_string());
            None
        }
    }
}

fn list(path: &str, named: &NamedDraft, shards: &[ShardDraft], problems: &mut Problems) -> Option<ListCut> {
    let mut owners: HashMap<ListKey, ShardName> = HashMap::new();
    let mut sound = true;
    let default = named.default_shard.as_deref();
    if let Some(default) = default
        && !shards.iter().any(|s| s.name == default)
    {
        problems.add(
            format!("{path}.named.default_shard"),
            format!("there is no shard `{default}`"),
        );
        sound = false;
    }
    for (i, shard) in shards.iter().enumerate() {
        let field = format!("{path}.shards[{i}].values");
        let values = shard.values.as_deref().unwrap_or_default();
        if values.is_empty() && default != Some(shard.name.as_str()) {
            problems.add(
                field.clone(),
                format!("shard `{}` holds no value and is not the default", shard.name),
            );
            sound = false;
        }
        for value in values {
            let (key, shown) = match value {
                ShardValue::Int(v) => (ListKey::Int(i128::from(*v)), v.to_string()),
                ShardValue::Text(t) => (ListKey::Text(t.as_bytes().into()), format!("\"{t}\"")),
            };
            if let Some(owner) = owners.get(&key) {
                problems.add(field.clone(), format!("{shown} is held by `{owner}` already"));
                sound = false;
            } else {
                owners.insert(key, shard.name.as_str().into());
            }
        }
    }
    sound.then(|| ListCut::new(owners, default.map(Into::into)))
}
