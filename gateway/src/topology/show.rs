//! The topology as a table, for people.

use std::fmt;

use super::Topology;
use crate::config::Division;

const HEAD: [&str; 6] = ["KEYSPACE", "SHARD", "DATABASE", "TABLET", "ROLE", "ADDRESS"];

/// One line a tablet, columns aligned, below a line for each keyspace's division.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for keyspace in self.keyspaces() {
            let shards = keyspace.shards().len();
            match keyspace.division() {
                Division::Unsharded => writeln!(f, "{}: unsharded", keyspace.name())?,
                Division::KeyRanges => writeln!(f, "{}: {shards} shards by key range", keyspace.name())?,
                Division::Named { column, cut } => {
                    writeln!(
                        f,
                        "{}: {shards} named shards by {} on `{column}`",
                        keyspace.name(),
                        cut.kind()
                    )?;
                }
            }
        }
        writeln!(f)?;
        let rows = self.rows();
        let mut widths = HEAD.map(str::len);
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        line(f, &HEAD.map(str::to_owned), widths)?;
        rows.iter().try_for_each(|row| line(f, row, widths))
    }
}

impl Topology {
    fn rows(&self) -> Vec<[String; 6]> {
        let shards = self.shards();
        let row = |shard: &super::ShardTopology, tablet: &super::Tablet| {
            [
                shard.id().keyspace.to_string(),
                shard.name().to_string(),
                shard.database().to_owned(),
                tablet.alias.to_string(),
                tablet.role.to_string(),
                tablet.address.to_string(),
            ]
        };
        shards
            .flat_map(|s| s.tablets().iter().map(move |t| row(s, t)))
            .collect()
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String; 6], widths: [usize; 6]) -> fmt::Result {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:width$}"))
        .collect();
    writeln!(f, "{}", padded.join("  ").trim_end())
}
