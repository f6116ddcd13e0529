//! The kinds of statements, and what each means for data and session.

use super::PinReason;

/// Which statement it is. Names are given as the index of their token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// Nothing but space and comments.
    Empty,
    /// SELECT, also in parentheses; VALUES and TABLE as statements.
    Select,
    /// INSERT
    Insert,
    /// REPLACE
    Replace,
    /// UPDATE
    Update,
    /// DELETE
    Delete,
    /// BEGIN or START TRANSACTION.
    Begin(TransactionOptions),
    /// COMMIT
    Commit {
        /// AND CHAIN
        chain: bool,
        /// RELEASE
        release: bool,
    },
    /// ROLLBACK
    Rollback {
        /// AND CHAIN
        chain: bool,
        /// RELEASE
        release: bool,
    },
    /// ROLLBACK TO \[SAVEPOINT\] name
    RollbackTo {
        /// The name's token.
        name: usize,
    },
    /// SAVEPOINT name
    Savepoint {
        /// The name's token.
        name: usize,
    },
    /// RELEASE SAVEPOINT name
    ReleaseSavepoint {
        /// The name's token.
        name: usize,
    },
    /// SET \[SESSION | GLOBAL\] TRANSACTION
    SetTransaction,
    /// SET of anything else; see [`parse_set`](crate::parse_set).
    Set,
    /// `SET STATEMENT name = value FOR statement`, of MariaDB.
    SetStatement,
    /// USE; see [`parse_use`](crate::parse_use).
    Use,
    /// SHOW; see [`parse_show`](crate::parse_show).
    Show,
    /// DESCRIBE, DESC or EXPLAIN of a table.
    Describe {
        /// The token where the table's name begins.
        table: usize,
    },
    /// EXPLAIN, DESCRIBE or ANALYZE of a statement or a connection.
    Explain {
        /// FORMAT
        format: ExplainFormat,
        /// Whether it also runs the statement.
        analyze: bool,
        /// The token where the statement begins.
        statement: usize,
    },
    /// KILL; see [`parse_kill`](crate::parse_kill).
    Kill,
    /// CREATE, ALTER, DROP, RENAME, TRUNCATE.
    Ddl {
        /// The verb.
        verb: DdlKind,
        /// What it is about.
        object: DdlObject,
        /// TEMPORARY
        temporary: bool,
    },
    /// GRANT, REVOKE, and CREATE, ALTER, DROP, RENAME of users and roles, SET PASSWORD.
    Account,
    /// LOCK TABLES
    LockTables,
    /// UNLOCK TABLES
    UnlockTables,
    /// CALL
    Call,
    /// `BEGIN NOT ATOMIC` and other compound statements.
    Compound,
    /// DO
    Do,
    /// PREPARE
    Prepare,
    /// EXECUTE, EXECUTE IMMEDIATE
    Execute,
    /// DEALLOCATE PREPARE, DROP PREPARE
    Deallocate,
    /// Maintenance.
    Admin(AdminKind),
    /// XA
    Xa,
    /// LOAD DATA, LOAD XML
    Load,
    /// HANDLER
    Handler,
    /// Anything else.
    Other,
}

/// Options of BEGIN and START TRANSACTION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TransactionOptions {
    /// `Some(true)` for READ ONLY, `Some(false)` for READ WRITE.
    pub read_only: Option<bool>,
    /// WITH CONSISTENT SNAPSHOT
    pub consistent_snapshot: bool,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsolationLevel {
    /// READ UNCOMMITTED
    ReadUncommitted,
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ
    RepeatableRead,
    /// SERIALIZABLE
    Serializable,
}

/// What an EXPLAIN should look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExplainFormat {
    /// Not said, or a server's own format.
    Server,
    /// `FORMAT = SHARDGATE`: the gateway's plan.
    Shardgate,
}

/// Verbs of DDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DdlKind {
    /// CREATE
    Create,
    /// ALTER
    Alter,
    /// DROP
    Drop,
    /// RENAME
    Rename,
    /// TRUNCATE
    Truncate,
}

/// What DDL is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DdlObject {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A view.
    View,
    /// A database.
    Database,
    /// A procedure, function, trigger, event or package.
    Routine,
    /// A sequence.
    Sequence,
    /// A server, tablespace, log file group and so on.
    Other,
}

/// Maintenance statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdminKind {
    /// FLUSH
    Flush,
    /// ANALYZE TABLE
    Analyze,
    /// OPTIMIZE
    Optimize,
    /// CHECK
    Check,
    /// CHECKSUM, which commits nothing.
    Checksum,
    /// REPAIR
    Repair,
    /// CACHE INDEX, LOAD INDEX INTO CACHE
    CacheIndex,
    /// RESET, PURGE, CHANGE, START, STOP of replication; INSTALL, UNINSTALL; SHUTDOWN; BINLOG; BACKUP; and such.
    Server,
    /// HELP, of which clients may make what they like.
    Help,
}

impl StatementKind {
    pub(super) fn is_write(self) -> bool {
        match self {
            Self::Insert
            | Self::Replace
            | Self::Update
            | Self::Delete
            | Self::SetStatement
            | Self::Ddl { .. }
            | Self::Account
            | Self::Call
            | Self::Compound
            | Self::Execute
            | Self::Load
            | Self::Other => true,
            Self::Explain { analyze, .. } => analyze,
            Self::Admin(kind) => !matches!(kind, AdminKind::Help | AdminKind::Checksum),
            Self::Empty
            | Self::Select
            | Self::Begin(_)
            | Self::Commit { .. }
            | Self::Rollback { .. }
            | Self::RollbackTo { .. }
            | Self::Savepoint { .. }
            | Self::ReleaseSavepoint { .. }
            | Self::SetTransaction
            | Self::Set
            | Self::Use
            | Self::Show
            | Self::Describe { .. }
            | Self::Kill
            | Self::LockTables
            | Self::UnlockTables
            | Self::Do
            | Self::Prepare
            | Self::Deallocate
            | Self::Xa
            | Self::Handler => false,
        }
    }

    pub(super) fn causes_implicit_commit(self) -> bool {
        match self {
            Self::Ddl {
                verb,
                object,
                temporary,
            } => {
                !(temporary && object == DdlObject::Table && matches!(verb, DdlKind::Create | DdlKind::Drop))
            }
            Self::Begin(_) | Self::Account | Self::LockTables => true,
            Self::Admin(kind) => !matches!(kind, AdminKind::Help | AdminKind::Checksum),
            _ => false,
        }
    }

    pub(super) fn pin(self) -> Option<PinReason> {
        Some(match self {
            Self::Ddl { temporary: true, .. } => PinReason::TemporaryTable,
            Self::LockTables => PinReason::TableLock,
            Self::Prepare | Self::Execute | Self::Deallocate => PinReason::SqlPrepare,
            Self::Handler => PinReason::Handler,
            Self::Load => PinReason::Load,
            Self::Call | Self::Compound => PinReason::Call,
            Self::Xa => PinReason::Xa,
            _ => return None,
        })
    }
}
