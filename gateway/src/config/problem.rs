//! What is wrong with a configuration: everything at once, each with its line or field.
//!
//! An operator who mends one mistake per start gives up; so reading goes on past an error wherever it can.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use crate::base::{ErrorKind, GatewayError};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line in the file, from 1, where known.
    pub line: Option<usize>,
    /// The field: `keyspaces.commerce.shards[1].tablets[0].alias`.
    pub field: String,
    /// What is wrong, and where it helps what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, if it came from one.
    pub file: Option<PathBuf>,
    /// All that is wrong; never empty.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self
            .file
            .as_ref()
            .map_or_else(|| "the configuration".to_owned(), |f| f.display().to_string());
        match self.problems.as_slice() {
            [only] => write!(f, "{file}: {only}"),
            many => {
                write!(f, "{file}: {} problems", many.len())?;
                many.iter().try_for_each(|p| write!(f, "\n  {p}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl GatewayError for ConfigError {
    fn code(&self) -> Option<&'static str> {
        Some("SG1001")
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
    fn retryable(&self) -> bool {
        false
    }
}

/// Where each field stands in the text.
#[derive(Debug, Default)]
pub(super) struct Places {
    line_starts: Vec<usize>,
    /// Span of key and value together, by path.
    spans: BTreeMap<String, Range<usize>>,
}

impl Places {
    pub(super) fn of(text: &str, root: &DeTable<'_>) -> Self {
        let newlines = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(at, _)| at + 1);
        let mut places = Self {
            line_starts: newlines.collect(),
            spans: BTreeMap::new(),
        };
        places.table("", root);
        places
    }

    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() {
                name.to_string()
            } else {
                format!("{path}.{name}")
            };
            self.value(path, key.span(), value.span(), value.get_ref());
        }
    }

    fn value(&mut self, path: String, key: Range<usize>, span: Range<usize>, value: &DeValue<'_>) {
        match value {
            DeValue::Table(table) => self.table(&path, table),
            DeValue::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.value(format!("{path}[{i}]"), item.span(), item.span(), item.get_ref());
                }
            }
            _ => {}
        }
        self.spans
            .insert(path, key.start.min(span.start)..key.end.max(span.end));
    }

    /// The line of a byte offset.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset) + 1
    }

    /// The line of a field, or of the nearest field around it that is in the text.
    fn line(&self, field: &str) -> Option<usize> {
        let mut path = field;
        loop {
            if let Some(span) = self.spans.get(path) {
                return Some(self.line_at(span.start));
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }

    /// The innermost field whose text holds the offset.
    fn field_at(&self, offset: usize) -> Option<&str> {
        let holding = self.spans.iter().filter(|(_, span)| span.contains(&offset));
        holding
            .max_by_key(|(path, _)| path.len())
            .map(|(path, _)| path.as_str())
    }
}

/// Collects problems while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    places: Places,
    found: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(places: Places) -> Self {
        Self {
            places,
            found: Vec::new(),
        }
    }

    /// Notes what is wrong with a field.
    pub(super) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        self.found.push(Problem {
            line: self.places.line(&field),
            field,
            message: message.into(),
        });
    }

    /// Notes that the text is no TOML. Which field that is in would be a guess: a header left open swallows what follows.
    pub(super) fn add_syntax(&mut self, error: &toml::de::Error) {
        self.found.push(Problem {
            line: error.span().map(|span| self.places.line_at(span.start)),
            field: String::new(),
            message: error.message().to_owned(),
        });
    }

    /// Notes an error of the TOML reader inside a section.
    pub(super) fn add_toml(&mut self, section: &str, error: &toml::de::Error) {
        let place = error
            .span()
            .map(|span| (self.places.line_at(span.start), self.places.field_at(span.start)));
        let (line, field) = match place {
            Some((line, field)) => (Some(line), field.unwrap_or(section).to_owned()),
            None => (self.places.line(section), section.to_owned()),
        };
        self.found.push(Problem {
            line,
            field,
            message: error.message().to_owned(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn into_found(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|p| p.line.unwrap_or(usize::MAX));
        self.found
    }
}
