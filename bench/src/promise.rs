//! What a bench promises, whether that was kept, and what it says of it.

use std::fmt;
use std::io::Write as _;

use crate::BenchError;

/// A promise, and whether it was kept.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) text: String,
    /// What was measured, beside what was promised.
    pub(crate) measured: String,
    pub(crate) kept: bool,
}

impl Promise {
    pub(crate) fn new(text: impl Into<String>, measured: impl Into<String>, kept: bool) -> Self {
        Self {
            text: text.into(),
            measured: measured.into(),
            kept,
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.kept { "kept  " } else { "BROKEN" };
        writeln!(f, "{mark}  {}\n        {}", self.text, self.measured)
    }
}

/// An error that names each promise that was broken.
pub(crate) fn verdict(scenario: &'static str, promises: &[Promise]) -> Result<(), BenchError> {
    let broken: Vec<String> = promises
        .iter()
        .filter(|p| !p.kept)
        .map(|p| format!("{} ({})", p.text, p.measured))
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(BenchError::Promises {
        scenario,
        broken: broken.join("\n  "),
    })
}

/// Prints a report.
pub(crate) fn print(text: &str) -> Result<(), BenchError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|source| BenchError::Io {
            what: "writing the report".into(),
            source,
        })
}
