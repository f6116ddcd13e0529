//! Directives in comments, as Vitess has them: `/*vt+ QUERY_TIMEOUT_MS=500 SCATTER_ERRORS_AS_WARNINGS */`.

use std::ops::Range;

use crate::lexed::Lexed;

/// What a statement's `/*vt+ ... */` comments ask for. The last mention of a name wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// `QUERY_TIMEOUT_MS`: the deadline of this statement, in milliseconds; 0 lifts it.
    pub query_timeout_ms: Option<u64>,
    /// `SCATTER_ERRORS_AS_WARNINGS`: rows of the shards that answered, with warnings for the others.
    pub scatter_errors_as_warnings: bool,
    /// `ALLOW_SCATTER`: this statement may go to all shards even where that is forbidden by default.
    pub allow_scatter: bool,
    /// `PRIORITY`: 0 (most important) to 100, as in Vitess.
    pub priority: Option<u8>,
    /// Names that mean nothing here, and known names with a value that does not fit, as written.
    pub unknown: Vec<(String, Option<String>)>,
}

impl Lexed<'_> {
    /// The directives, if there are any.
    pub fn directives(&self) -> Option<Directives> {
        if self.directives.is_empty() {
            return None;
        }
        let mut found = Directives::default();
        for &(start, end) in &self.directives {
            // Between `/*vt+` and `*/`.
            let body = self
                .src()
                .get(start as usize + 5..end as usize - 2)
                .unwrap_or_default();
            for item in String::from_utf8_lossy(body).split_ascii_whitespace() {
                found.add(item);
            }
        }
        Some(found)
    }

    /// Where the directive comments are.
    pub fn directive_ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.directives
            .iter()
            .map(|(start, end)| *start as usize..*end as usize)
    }
}

impl Directives {
    fn add(&mut self, item: &str) {
        let (name, value) = match item.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (item, None),
        };
        let understood = match name.to_ascii_uppercase().as_str() {
            "QUERY_TIMEOUT_MS" => value
                .and_then(|v| v.parse().ok())
                .map(|v| self.query_timeout_ms = Some(v)),
            "SCATTER_ERRORS_AS_WARNINGS" => flag(value).map(|v| self.scatter_errors_as_warnings = v),
            "ALLOW_SCATTER" => flag(value).map(|v| self.allow_scatter = v),
            "PRIORITY" => {
                let priority = value.and_then(|v| v.parse().ok()).filter(|v| *v <= 100);
                priority.map(|v| self.priority = Some(v))
            }
            _ => None,
        };
        if understood.is_none() {
            self.unknown.push((name.to_owned(), value.map(str::to_owned)));
        }
    }
}

/// A flag is on when it is named; a value may turn it off.
fn flag(value: Option<&str>) -> Option<bool> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("1" | "true" | "on") => Some(true),
        Some("0" | "false" | "off") => Some(false),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LexOptions, lex};

    fn directives(sql: &str) -> Option<Directives> {
        lex(sql.as_bytes(), &LexOptions::default()).unwrap().directives()
    }

    #[test]
    fn each_directive_is_read() {
        let sql = "SELECT /*vt+ QUERY_TIMEOUT_MS=250 scatter_errors_as_warnings PRIORITY=7 */ 1 /*vt+ ALLOW_SCATTER=1 */";
        let expected = Directives {
            query_timeout_ms: Some(250),
            scatter_errors_as_warnings: true,
            allow_scatter: true,
            priority: Some(7),
            unknown: vec![],
        };
        assert_eq!(directives(sql), Some(expected));
    }

    #[test]
    fn what_is_not_understood_is_kept() {
        let found = directives("/*vt+ WORKLOAD=olap PRIORITY=900 QUERY_TIMEOUT_MS=x */ SELECT 1").unwrap();
        let names: Vec<_> = found.unknown.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["WORKLOAD", "PRIORITY", "QUERY_TIMEOUT_MS"]);
        assert_eq!(found.priority, None);
    }

    #[test]
    fn other_comments_and_strings_are_no_directives() {
        assert_eq!(
            directives("SELECT '/*vt+ ALLOW_SCATTER */' /* vt+ ALLOW_SCATTER */"),
            None
        );
    }
}
