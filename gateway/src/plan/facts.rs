//! Functions whose answer belongs to the session, not to whichever tablet connection happens to run the statement.
//!
//! They are always spliced as literals: `LAST_INSERT_ID()` on a pooled connection would be somebody else's.

use shardgate_sql::{Keyword as K, TokenKind};

use super::statement::Statement;
use crate::vindex::Value;

/// A session function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fact {
    /// `LAST_INSERT_ID()`, without argument.
    LastInsertId,
    /// `FOUND_ROWS()`.
    FoundRows,
    /// `ROW_COUNT()`.
    RowCount,
    /// `CONNECTION_ID()`.
    ConnectionId,
    /// `DATABASE()`, `SCHEMA()`.
    Database,
    /// `VERSION()`.
    Version,
    /// `USER()`, `SESSION_USER()`, `SYSTEM_USER()`.
    User,
    /// `CURRENT_USER`, `CURRENT_USER()`.
    CurrentUser,
    /// `@@autocommit`: a tablet's own is always on.
    Autocommit,
    /// `@@version`.
    VersionVariable,
    /// `@@version_comment`.
    VersionComment,
    /// `@@last_insert_id`, `@@identity`.
    LastInsertIdVariable,
    /// `@@warning_count`.
    WarningCount,
    /// `@@error_count`.
    ErrorCount,
    /// `@@pseudo_thread_id`.
    ConnectionIdVariable,
    /// `@@query_timeout`: the gateway's own.
    QueryTimeout,
    /// `@@workload`: the gateway's own.
    Workload,
    /// `@@allow_scatter`: the gateway's own.
    AllowScatter,
    /// `@@scatter_errors_as_warnings`: the gateway's own.
    ScatterErrorsAsWarnings,
}

/// What the session functions answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionFacts {
    /// `LAST_INSERT_ID()`.
    pub last_insert_id: u64,
    /// `FOUND_ROWS()`.
    pub found_rows: u64,
    /// `ROW_COUNT()`.
    pub row_count: i64,
    /// `CONNECTION_ID()`: the client's connection to the gateway.
    pub connection_id: u64,
    /// `DATABASE()`: the keyspace chosen.
    pub database: Option<String>,
    /// `VERSION()`: the version the gateway announces.
    pub version: String,
    /// `USER()`: name and host of the client.
    pub user: String,
    /// `CURRENT_USER()`: the account that authenticated it.
    pub current_user: String,
    /// `@@autocommit`.
    pub autocommit: bool,
    /// `@@warning_count`.
    pub warning_count: u16,
    /// `@@error_count`.
    pub error_count: u16,
    /// `@@query_timeout`, in milliseconds; 0 no limit.
    pub query_timeout_ms: u64,
    /// `@@workload`.
    pub workload: &'static str,
    /// `@@allow_scatter`.
    pub allow_scatter: bool,
    /// `@@scatter_errors_as_warnings`.
    pub partial: bool,
}

impl Fact {
    /// The session function that begins at a token, and how many tokens it takes.
    pub(super) fn at(statement: &Statement<'_>, at: usize) -> Option<(Self, usize)> {
        if statement.is(at, TokenKind::SystemVariable) {
            return Self::of_variable(&statement.lexed.variable(at)?).map(|fact| (fact, 1));
        }
        let qualified = at > 0 && statement.is(at - 1, TokenKind::Dot);
        if qualified || !statement.is(at, TokenKind::Word) {
            return None;
        }
        let called = statement.is(at + 1, TokenKind::LParen) && statement.is(at + 2, TokenKind::RParen);
        if statement.is_keyword(at, K::CurrentUser) {
            return Some((Self::CurrentUser, if called { 3 } else { 1 }));
        }
        if !called {
            return None;
        }
        let text = statement.lexed.text(at);
        let is = |name: &str| text.eq_ignore_ascii_case(name.as_bytes());
        let fact = match text.len() {
            4 if is("user") => Self::User,
            6 if is("schema") => Self::Database,
            7 if is("version") => Self::Version,
            8 if is("database") => Self::Database,
            9 if is("row_count") => Self::RowCount,
            10 if is("found_rows") => Self::FoundRows,
            11 if is("system_user") => Self::User,
            12 if is("session_user") => Self::User,
            13 if is("connection_id") => Self::ConnectionId,
            14 if is("last_insert_id") => Self::LastInsertId,
            _ => return None,
        };
        Some((fact, 3))
    }

    /// The fact that a system variable of the session stands for. What is global belongs to a server, but for the version,
    /// which is what the gateway says it is.
    fn of_variable(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let session = name
            .strip_prefix("session.")
            .or_else(|| name.strip_prefix("local."))
            .unwrap_or(&name);
        let plain = name.strip_prefix("global.").unwrap_or(session);
        Some(match (session, plain) {
            ("autocommit", _) => Self::Autocommit,
            ("last_insert_id" | "identity", _) => Self::LastInsertIdVariable,
            ("warning_count", _) => Self::WarningCount,
            ("error_count", _) => Self::ErrorCount,
            ("pseudo_thread_id", _) => Self::ConnectionIdVariable,
            ("query_timeout", _) => Self::QueryTimeout,
            ("workload", _) => Self::Workload,
            ("allow_scatter", _) => Self::AllowScatter,
            ("scatter_errors_as_warnings", _) => Self::ScatterErrorsAsWarnings,
            (_, "version") => Self::VersionVariable,
            (_, "version_comment") => Self::VersionComment,
            _ => return None,
        })
    }

    /// Its value.
    pub(super) fn value(self, facts: &SessionFacts) -> Option<Value> {
        match self {
            Self::LastInsertId | Self::LastInsertIdVariable => Some(Value::UInt(facts.last_insert_id)),
            Self::FoundRows => Some(Value::UInt(facts.found_rows)),
            Self::RowCount => Some(Value::Int(facts.row_count)),
            Self::ConnectionId | Self::ConnectionIdVariable => Some(Value::UInt(facts.connection_id)),
            Self::Autocommit => Some(Value::Int(i64::from(facts.autocommit))),
            Self::WarningCount => Some(Value::Int(i64::from(facts.warning_count))),
            Self::ErrorCount => Some(Value::Int(i64::from(facts.error_count))),
            Self::QueryTimeout => Some(Value::UInt(facts.query_timeout_ms)),
            Self::AllowScatter => Some(Value::Int(i64::from(facts.allow_scatter))),
            Self::ScatterErrorsAsWarnings => Some(Value::Int(i64::from(facts.partial))),
            // Strings carry the servers' own charset and coercibility; nothing is sharded by them.
            Self::Database
            | Self::Version
            | Self::User
            | Self::CurrentUser
            | Self::VersionVariable
            | Self::VersionComment
            | Self::Workload => None,
        }
    }

    /// Writes it as SQL of the function's own type.
    pub(super) fn write(self, facts: &SessionFacts, out: &mut Vec<u8>) {
        match self {
            Self::LastInsertId | Self::LastInsertIdVariable => unsigned(facts.last_insert_id, out),
            Self::FoundRows => unsigned(facts.found_rows, out),
            Self::ConnectionId | Self::ConnectionIdVariable => unsigned(facts.connection_id, out),
            Self::Autocommit => signed(i64::from(facts.autocommit), out),
            Self::WarningCount => signed(i64::from(facts.warning_count), out),
            Self::ErrorCount => signed(i64::from(facts.error_count), out),
            Self::QueryTimeout => unsigned(facts.query_timeout_ms, out),
            Self::AllowScatter => signed(i64::from(facts.allow_scatter), out),
            Self::ScatterErrorsAsWarnings => signed(i64::from(facts.partial), out),
            Self::Workload => write_string(facts.workload, out),
            Self::RowCount => {
                out.extend_from_slice(format!("CAST({} AS SIGNED)", facts.row_count).as_bytes());
            }
            Self::Database => match &facts.database {
                Some(name) => write_string(name, out),
                None => out.extend_from_slice(b"NULL"),
            },
            Self::Version | Self::VersionVariable => write_string(&facts.version, out),
            Self::VersionComment => write_string("Shardgate", out),
            Self::User => write_string(&facts.user, out),
            Self::CurrentUser => write_string(&facts.current_user, out),
        }
    }
}

fn signed(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("CAST({v} AS SIGNED)").as_bytes());
}

fn unsigned(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("CAST({v} AS UNSIGNED)").as_bytes());
}

/// Writes a text so that it means the same under every `sql_mode` and connection charset.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'\'' | b'\\') || b == b' ';
    if text.bytes().all(plain) {
        out.push(b'\'');
        out.extend_from_slice(text.as_bytes());
        out.push(b'\'');
        return;
    }
    out.extend_from_slice(b"_utf8mb4 x'");
    for byte in text.bytes() {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.push(b'\'');
}
