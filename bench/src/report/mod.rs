//! What a scenario found: a table to read, JSON for programs, and one page with plots that needs nothing else.

mod html;
mod json;
mod svg;
mod table;

use std::path::Path;

use crate::BenchError;
use crate::promise::{self, Promise};
use crate::scenario::Run;

/// A finished scenario.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) story: String,
    /// Requests a second.
    pub(crate) rate: f64,
    pub(crate) shards: usize,
    pub(crate) runs: Vec<Run>,
    pub(crate) promises: Vec<Promise>,
}

/// Prints the table, and writes the files that were asked for.
pub(crate) fn write(report: &Report, json: Option<&Path>, html: Option<&Path>) -> Result<(), BenchError> {
    if let Some(file) = json {
        save(file, &json::render(report))?;
    }
    if let Some(file) = html {
        save(file, &html::render(report))?;
    }
    promise::print(&table::render(report))
}

fn save(file: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(file, text).map_err(|source| BenchError::Io {
        what: file.display().to_string(),
        source,
    })
}
