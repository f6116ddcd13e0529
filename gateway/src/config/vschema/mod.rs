//! A keyspace's vschema: Vitess's JSON, read as it is and checked whole.
//!
//! All that is wrong is reported together, each problem with the field it is in. What Vitess has and this gateway has
//! not (lookup vindexes, sequences, managed foreign keys, several columns in a vindex) is an error that says so:
//! routing around a feature the schema counts on would give wrong answers.

mod place;
mod raw;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::base::{KeyRange, KeyspaceId};
use crate::vindex::{NamedCut, Vindex};

/// A checked vschema.
#[derive(Clone, Debug, PartialEq)]
pub struct VSchema {
    /// Whether the keyspace has more than one shard.
    pub sharded: bool,
    /// Tables by name.
    pub tables: BTreeMap<String, VTable>,
    /// Whether its tables are found only by a qualified name or after `USE`.
    pub require_explicit_routing: bool,
}

/// What a vschema says of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct VTable {
    /// How its rows are placed.
    pub placement: Placement,
    /// Column names, where the vschema lists them.
    pub columns: Vec<String>,
    /// Whether [`VTable::columns`] is the whole list.
    pub column_list_authoritative: bool,
}

/// How a table's rows are placed.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// By vindexes; the first is the primary one, which places new rows.
    Sharded(Vec<ColumnVindex>),
    /// The same rows on every shard; `source` is where they are written, as written in the vschema.
    Reference {
        /// `keyspace.table` or `table`; `None` when not given.
        source: Option<String>,
    },
    /// All rows in the shard that holds this id.
    Pinned(KeyspaceId),
    /// In an unsharded keyspace: in its only shard.
    Unsharded,
}

/// A vindex on a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnVindex {
    /// The column.
    pub column: String,
    /// The name the vschema gave the vindex.
    pub name: String,
    /// The vindex.
    pub vindex: Vindex,
}

/// One thing wrong in a vschema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VSchemaProblem {
    /// The line in the JSON text, from 1, where known.
    pub line: Option<usize>,
    /// The field: `tables.orders.column_vindexes[0]`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for VSchemaProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        if self.path.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl VSchema {
    /// Reads and checks the JSON of one keyspace. `cut` is how its named shards are divided, `None` for key ranges.
    pub fn parse(json: &str, cut: Option<&NamedCut>) -> Result<Self, Vec<VSchemaProblem>> {
        let raw: raw::Keyspace = serde_json::from_str(json).map_err(|e| vec![syntax(json, &e)])?;
        let mut check = Check {
            json,
            cut,
            vindexes: BTreeMap::new(),
            problems: Vec::new(),
        };
        let schema = check.keyspace(raw);
        if check.problems.is_empty() {
            Ok(schema)
        } else {
            Err(check.problems)
        }
    }
}

fn syntax(json: &str, error: &serde_json::Error) -> VSchemaProblem {
    let full = error.to_string();
    // The reader appends the position, which is told apart here.
    let message = full
        .rsplit_once(" at line ")
        .map_or(full.as_str(), |(message, _)| message)
        .to_owned();
    VSchemaProblem {
        line: Some(error.line()).filter(|line| *line > 0),
        path: place::path_at(json, error.line(), error.column()),
        message,
    }
}

struct Check<'a> {
    json: &'a str,
    cut: Option<&'a NamedCut>,
    /// `None` for one that is declared but wrong, so that its users are not reported too.
    vindexes: BTreeMap<String, Option<Vindex>>,
    problems: Vec<VSchemaProblem>,
}

impl Check<'_> {
    /// Notes a problem with a field; the line is that of the nearest field around it that stands in the text.
    fn problem(&mut self, path: String, message: impl Into<String>) {
        let mut shown = path.as_str();
        let mut line = place::line_of(self.json, shown);
        while let (None, Some(cut)) = (line, shown.rfind(['.', '['])) {
            shown = &shown[..cut];
            line = place::line_of(self.json, shown);
        }
        self.problems.push(VSchemaProblem {
            line,
            path,
            message: message.into(),
        });
    }

    fn keyspace(&mut self, raw: raw::Keyspace) -> VSchema {
        if raw.foreign_key_mode == raw::ForeignKeyMode::Managed {
            self.problem(
                "foreign_key_mode".into(),
                "managed foreign keys are not supported by shardgate",
            );
        }
        if raw.multi_tenant_spec.is_some() {
            self.problem(
                "multi_tenant_spec".into(),
                "multi-tenant keyspaces are not supported by shardgate",
            );
        }
        if !raw.sharded
            && !raw.vindexes.0.is_empty()
            && raw.tables.0.values().any(|t| !t.column_vindexes.is_empty())
        {
            self.problem(
                "sharded".into(),
                "tables have vindexes, but `sharded` is not true",
            );
        }
        for (name, vindex) in raw.vindexes.0 {
            let built = self.vindex(&name, &vindex);
            self.vindexes.insert(name, built);
        }
        let tables = raw
            .tables
            .0
            .into_iter()
            .map(|(name, table)| (name.clone(), self.table(&name, table, raw.sharded)));
        let tables = tables.collect();
        VSchema {
            sharded: raw.sharded,
            tables,
            require_explicit_routing: raw.require_explicit_routing,
        }
    }

    fn vindex(&mut self, name: &str, raw: &raw::Vindex) -> Option<Vindex> {
        let path = format!("vindexes.{name}");
        if !raw.owner.is_empty() {
            self.problem(
                format!("{path}.owner"),
                "owned (lookup) vindexes are not supported by shardgate",
            );
            return None;
        }
        match Vindex::new(&raw.kind, &raw.params.0, self.cut) {
            Ok(vindex) => Some(vindex),
            Err(error) => {
                self.problem(path, error.to_string());
                None
            }
        }
    }

    fn table(&mut self, name: &str, raw: raw::Table, sharded: bool) -> VTable {
        let path = format!("tables.{name}");
        if raw
            .auto_increment
            .as_ref()
            .is_some_and(|a| !a.column.is_empty() || !a.sequence.is_empty())
        {
            self.problem(
                format!("{path}.auto_increment"),
                "sequences are not supported by shardgate yet",
            );
        }
        if !raw.source.is_empty() && raw.kind != "reference" {
            self.problem(
                format!("{path}.source"),
                "only a table of type `reference` has a source",
            );
        }
        let placement = match raw.kind.as_str() {
            "" => self.placement(&path, &raw, sharded),
            "reference" => self.reference(&path, &raw, sharded),
            "sequence" => {
                self.problem(
                    format!("{path}.type"),
                    "sequences are not supported by shardgate yet",
                );
                Placement::Unsharded
            }
            other => {
                let message =
                    format!("unknown table type `{other}`; known are `reference`, `sequence` and none");
                self.problem(format!("{path}.type"), message);
                Placement::Unsharded
            }
        };
        VTable {
            placement,
            columns: raw.columns.into_iter().map(|c| c.name).collect(),
            column_list_authoritative: raw.column_list_authoritative,
        }
    }

    fn reference(&mut self, path: &str, raw: &raw::Table, sharded: bool) -> Placement {
        if !raw.column_vindexes.is_empty() {
            self.problem(
                format!("{path}.column_vindexes"),
                "a reference table has no vindexes",
            );
        }
        if !sharded {
            return Placement::Unsharded;
        }
        Placement::Reference {
            source: (!raw.source.is_empty()).then(|| raw.source.clone()),
        }
    }

    fn placement(&mut self, path: &str, raw: &raw::Table, sharded: bool) -> Placement {
        if !sharded {
            return Placement::Unsharded;
        }
        if !raw.pinned.is_empty() {
            return self.pinned(path, raw);
        }
        if raw.column_vindexes.is_empty() {
            self.problem(
                path.to_owned(),
                "a table of a sharded keyspace needs column_vindexes, `pinned`, or the type `reference`",
            );
        }
        let vindexes = raw.column_vindexes.iter().enumerate();
        let columns =
            vindexes.filter_map(|(i, cv)| self.column_vindex(&format!("{path}.column_vindexes[{i}]"), cv));
        Placement::Sharded(columns.collect())
    }

    fn pinned(&mut self, path: &str, raw: &raw::Table) -> Placement {
        let path = format!("{path}.pinned");
        if !raw.column_vindexes.is_empty() {
            self.problem(path.clone(), "a pinned table has no column_vindexes");
        }
        if self.cut.is_some() {
            self.problem(
                path.clone(),
                "a keyspace of named shards has no keyspace ids to pin a table to",
            );
        }
        // A key range's bound is the same text as a keyspace id.
        if let Ok(range) = KeyRange::parse(&format!("{}-", raw.pinned)) {
            return Placement::Pinned(range.start);
        }
        self.problem(path, "must be a keyspace id: pairs of hexadecimal digits");
        Placement::Unsharded
    }

    fn column_vindex(&mut self, path: &str, raw: &raw::ColumnVindex) -> Option<ColumnVindex> {
        let column = match (raw.column.as_str(), raw.columns.as_slice()) {
            ("", []) => Err("needs a `column` or `columns`"),
            ("", [only]) => Ok(only.clone()),
            ("", [..]) => Err("a vindex over several columns is not supported by shardgate"),
            (only, []) => Ok(only.to_owned()),
            (_, [..]) => Err("has both `column` and `columns`; one is enough"),
        };
        let column = match column {
            Ok(column) => column,
            Err(message) => {
                self.problem(path.to_owned(), message);
                return None;
            }
        };
        if let Some(vindex) = self.vindexes.get(&raw.name) {
            return vindex.clone().map(|vindex| ColumnVindex {
                column,
                name: raw.name.clone(),
                vindex,
            });
        }
        self.problem(
            format!("{path}.name"),
            format!("vindex `{}` is not declared in `vindexes`", raw.name),
        );
        None
    }
}
