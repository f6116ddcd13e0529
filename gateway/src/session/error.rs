//! What the session itself refuses, before anything is planned.

use crate::base::{ClientError, ErrorKind, GatewayError};
use crate::exec::ExecError;
use crate::plan::PlanError;

use super::prepared::PreparedError;
use super::target::TargetError;

/// An error of the session, or of the rooms below it on its way to the client.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// From running a statement.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// From planning it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// From prepared statements.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// The text is no statement.
    #[error("You have an error in your SQL syntax: {0}")]
    Syntax(String),
    /// Several statements in one text, and the client did not ask for that.
    #[error("several statements in one text need the client's multi-statements flag; nothing was executed")]
    MultiStatements,
    /// Nothing but space and comments.
    #[error("Query was empty")]
    EmptyQuery,
    /// No such keyspace.
    #[error("Unknown database '{0}'")]
    UnknownDatabase(String),
    /// No such shard.
    #[error("keyspace '{keyspace}' has no shard '{shard}'; it has {known}")]
    UnknownShard {
        /// The keyspace.
        keyspace: String,
        /// The shard asked for.
        shard: String,
        /// Those it has.
        known: String,
    },
    /// A target that cannot be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The session cannot do this exactly, so it does not do it.
    #[error("{what} is not supported: {hint}; nothing was executed")]
    Unsupported {
        /// What.
        what: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// A variable that only an operator of the tablets may set.
    #[error("SET GLOBAL and SET PERSIST would change one tablet of many; set it on the tablets themselves")]
    SetGlobal,
    /// `no_scatter`, and a statement for several shards.
    #[error(
        "the statement goes to {shards} shards and guard.no_scatter refuses that; name the sharding column, or say /*vt+ ALLOW_SCATTER */ or SET allow_scatter = 1; nothing was executed"
    )]
    ScatterRefused {
        /// How many shards.
        shards: usize,
    },
    /// A bad value for a variable of the gateway's own.
    #[error("Variable '{name}' can't be set to the value of '{value}'")]
    WrongValue {
        /// The variable.
        name: String,
        /// The value.
        value: String,
    },
    /// A charset that the lexer cannot read safely.
    #[error(
        "character set '{0}' cannot be used as character_set_client: a byte of a character may look like a backslash"
    )]
    UnsafeCharset(String),
    /// Settings and variables over their bound.
    #[error("the session's settings and variables take more than {0} bytes")]
    TooManySettings(usize),
    /// `KILL` of nobody.
    #[error("Unknown thread id: {0}")]
    UnknownThread(u64),
    /// A result that the gateway reads whole has too many rows.
    #[error(
        "this answer has more than {0} rows, which the gateway would have to hold at once; narrow it down"
    )]
    TooManyRows(usize),
    /// `KILL` of somebody else's session.
    #[error("You are not owner of thread {0}")]
    NotOwner(u64),
    /// A variable that no server has.
    #[error("Unknown system variable '{0}'")]
    UnknownVariable(String),
    /// A prepared statement that would be read otherwise now.
    #[error(
        "sql_mode or character set have changed since this statement was prepared; prepare it again; nothing was executed"
    )]
    PreparedOtherwise,
    /// `ROLLBACK TO` or `RELEASE` of a savepoint that is not there.
    #[error("SAVEPOINT {0} does not exist")]
    UnknownSavepoint(String),
    /// More savepoints than the bound.
    #[error("a transaction may hold {0} savepoints")]
    TooManySavepoints(usize),
    /// A statement that may not run inside a transaction.
    #[error("Transaction characteristics can't be changed while a transaction is in progress")]
    InTransaction,
    /// A command byte that is not known.
    #[error("Unknown command")]
    UnknownCommand,
    /// More placeholders than the protocol can count.
    #[error("Prepared statement contains too many placeholders (over {0})")]
    TooManyParams(usize),
    /// A statement has no open cursor.
    #[error("The statement ({0}) has no open cursor")]
    NoCursor(u32),
    /// The session reads a user variable whose value cannot be had where the statement runs.
    #[error(
        "@{0} was assigned by an expression on one shard and cannot be read by a statement that runs elsewhere; nothing was executed"
    )]
    PinnedVariable(String),
}

impl GatewayError for SessionError {
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Exec(e) => e.code(),
            Self::Plan(e) => e.code(),
            Self::Prepared(PreparedError::TooMany(_)) => Some("SG2601"),
            Self::TooManySettings(_) => Some("SG2602"),
            Self::TooManySavepoints(_) => Some("SG2603"),
            Self::Unsupported { .. } => Some("SG1101"),
            Self::SetGlobal => Some("SG1102"),
            Self::ScatterRefused { .. } => Some("SG2107"),
            Self::UnsafeCharset(_) => Some("SG1103"),
            Self::UnknownShard { .. } | Self::Target(_) => Some("SG1104"),
            Self::PinnedVariable(_) => Some("SG1106"),
            // These have a MySQL error number of their own, and its words.
            Self::PreparedOtherwise => Some("SG1108"),
            Self::TooManyRows(_) => Some("SG2605"),
            Self::Prepared(_)
            | Self::NotOwner(_)
            | Self::UnknownVariable(_)
            | Self::Syntax(_)
            | Self::MultiStatements
            | Self::EmptyQuery
            | Self::UnknownDatabase(_)
            | Self::WrongValue { .. }
            | Self::UnknownThread(_)
            | Self::UnknownSavepoint(_)
            | Self::InTransaction
            | Self::UnknownCommand
            | Self::TooManyParams(_)
            | Self::NoCursor(_) => None,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Exec(e) => e.kind(),
            Self::Plan(e) => e.kind(),
            Self::Prepared(PreparedError::TooMany(_))
            | Self::TooManySettings(_)
            | Self::TooManyRows(_)
            | Self::TooManySavepoints(_) => ErrorKind::Limit,
            Self::Unsupported { .. } | Self::SetGlobal | Self::UnsafeCharset(_) | Self::PinnedVariable(_) => {
                ErrorKind::Unsupported
            }
            Self::ScatterRefused { .. } => ErrorKind::Refused,
            Self::Prepared(_)
            | Self::Syntax(_)
            | Self::MultiStatements
            | Self::EmptyQuery
            | Self::UnknownDatabase(_)
            | Self::UnknownShard { .. }
            | Self::Target(_)
            | Self::WrongValue { .. }
            | Self::UnknownThread(_)
            | Self::NotOwner(_)
            | Self::UnknownVariable(_)
            | Self::PreparedOtherwise
            | Self::UnknownSavepoint(_)
            | Self::InTransaction
            | Self::UnknownCommand
            | Self::TooManyParams(_)
            | Self::NoCursor(_) => ErrorKind::Invalid,
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Exec(e) => e.retryable(),
            Self::Plan(e) => e.retryable(),
            Self::Prepared(_)
            | Self::Syntax(_)
            | Self::MultiStatements
            | Self::EmptyQuery
            | Self::UnknownDatabase(_)
            | Self::UnknownShard { .. }
            | Self::Target(_)
            | Self::Unsupported { .. }
            | Self::SetGlobal
            | Self::ScatterRefused { .. }
            | Self::WrongValue { .. }
            | Self::UnsafeCharset(_)
            | Self::TooManySettings(_)
            | Self::UnknownThread(_)
            | Self::NotOwner(_)
            | Self::TooManyRows(_)
            | Self::UnknownVariable(_)
            | Self::PreparedOtherwise
            | Self::UnknownSavepoint(_)
            | Self::TooManySavepoints(_)
            | Self::InTransaction
            | Self::UnknownCommand
            | Self::TooManyParams(_)
            | Self::NoCursor(_)
            | Self::PinnedVariable(_) => false,
        }
    }

    fn errno(&self) -> (u16, [u8; 5]) {
        match self {
            Self::Exec(e) => e.errno(),
            Self::Plan(e) => e.errno(),
            Self::Prepared(PreparedError::Unknown(_)) => (1243, *b"HY000"),
            Self::Prepared(PreparedError::TooMany(_)) => (1461, *b"42000"),
            Self::Prepared(PreparedError::LongData) => (1301, *b"HY000"),
            Self::Prepared(PreparedError::Malformed(_)) => (1210, *b"HY000"),
            Self::Syntax(_) | Self::MultiStatements => (1064, *b"42000"),
            Self::EmptyQuery => (1065, *b"42000"),
            Self::UnknownDatabase(_) => (1049, *b"42000"),
            Self::WrongValue { .. } => (1231, *b"42000"),
            Self::UnknownThread(_) => (1094, *b"HY000"),
            Self::NotOwner(_) => (1095, *b"HY000"),
            Self::UnknownVariable(_) => (1193, *b"HY000"),
            Self::UnknownSavepoint(_) => (1305, *b"42000"),
            Self::InTransaction => (1568, *b"25001"),
            Self::UnknownCommand => (1047, *b"HY000"),
            Self::TooManyParams(_) => (1390, *b"HY000"),
            Self::NoCursor(_) => (1421, *b"HY000"),
            Self::TooManySettings(_) | Self::TooManySavepoints(_) | Self::TooManyRows(_) => (1105, *b"HY000"),
            Self::UnknownShard { .. }
            | Self::Target(_)
            | Self::Unsupported { .. }
            | Self::SetGlobal
            | Self::ScatterRefused { .. }
            | Self::UnsafeCharset(_)
            | Self::PreparedOtherwise
            | Self::PinnedVariable(_) => crate::base::error::default_errno(self.kind()),
        }
    }

    fn client_error(&self) -> ClientError {
        match self {
            Self::Exec(e) => e.client_error(),
            Self::Plan(e) => e.client_error(),
            other => {
                let (errno, sqlstate) = other.errno();
                match other.code() {
                    Some(code) => ClientError::new(errno, sqlstate, format!("{code}: {other}")),
                    None => ClientError::new(errno, sqlstate, other.to_string()),
                }
            }
        }
    }
}
