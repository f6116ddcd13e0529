//! The kinds of statements, and how the first tokens tell them.

use super::PinReason;
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

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

/// Tells the kind of a statement.
pub(super) fn find(lexed: &Lexed<'_>) -> StatementKind {
    use StatementKind as S;
    if lexed.is_empty() {
        return S::Empty;
    }
    let parens = lexed
        .tokens()
        .iter()
        .take_while(|token| token.kind == TokenKind::LParen)
        .count();
    if parens > 0 {
        return if matches!(
            lexed.keyword(parens),
            Some(Keyword::Select | Keyword::Values | Keyword::With | Keyword::Table)
        ) {
            S::Select
        } else {
            S::Other
        };
    }
    starting_at(lexed, 0)
}

/// The kind of the statement that begins with token `at`.
fn starting_at(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    use StatementKind as S;
    let Some(first) = lexed.keyword(at) else {
        // `label: BEGIN ... END` and anything else that begins with a name.
        return S::Other;
    };
    let next = lexed.keyword(at + 1);
    match first {
        K::Select | K::Values | K::Table => S::Select,
        K::With => behind_with(lexed, at),
        K::Insert => S::Insert,
        K::Replace => S::Replace,
        K::Update => S::Update,
        K::Delete => S::Delete,
        K::Begin if next == Some(K::Not) => S::Compound,
        K::Begin => S::Begin(TransactionOptions::default()),
        K::Start if next == Some(K::Transaction) => S::Begin(transaction_options(lexed, at + 2)),
        K::Commit => S::Commit {
            chain: chain(lexed, at),
            release: release(lexed, at),
        },
        K::Rollback => rollback(lexed, at),
        K::Savepoint => S::Savepoint { name: at + 1 },
        K::Release if next == Some(K::Savepoint) => S::ReleaseSavepoint { name: at + 2 },
        K::Set => set(lexed, at),
        K::Use => S::Use,
        K::Show => S::Show,
        K::Describe | K::Desc | K::Explain => explain(lexed, at),
        K::Analyze => analyze(lexed, at),
        K::Kill => S::Kill,
        K::Create | K::Alter | K::Drop | K::Rename | K::Truncate => ddl(lexed, at, first),
        K::Grant | K::Revoke => S::Account,
        K::Lock => S::LockTables,
        K::Unlock => S::UnlockTables,
        K::Call => S::Call,
        K::Do => S::Do,
        K::Prepare => S::Prepare,
        K::Execute => S::Execute,
        K::Deallocate => S::Deallocate,
        K::Load if next == Some(K::Index) => S::Admin(AdminKind::CacheIndex),
        K::Load => S::Load,
        K::Handler => S::Handler,
        K::Xa => S::Xa,
        K::If | K::Case | K::While | K::Loop | K::Repeat | K::For | K::Declare | K::Signal | K::Resignal => {
            S::Compound
        }
        K::Get => S::Other,
        _ => admin(first).map_or(S::Other, S::Admin),
    }
}

fn admin(first: Keyword) -> Option<AdminKind> {
    use Keyword as K;
    Some(match first {
        K::Flush => AdminKind::Flush,
        K::Optimize => AdminKind::Optimize,
        K::Check => AdminKind::Check,
        K::Checksum => AdminKind::Checksum,
        K::Repair => AdminKind::Repair,
        K::Cache => AdminKind::CacheIndex,
        K::Help => AdminKind::Help,
        K::Reset
        | K::Purge
        | K::Change
        | K::Start
        | K::Stop
        | K::Install
        | K::Uninstall
        | K::Shutdown
        | K::Restart
        | K::Binlog
        | K::Backup
        | K::Import => AdminKind::Server,
        _ => return None,
    })
}

/// The statement behind the common table expressions: the first verb outside parentheses.
fn behind_with(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    let mut depth = 0u32;
    for (index, token) in lexed.tokens().iter().enumerate().skip(at + 1) {
        match (token.kind, token.keyword) {
            (TokenKind::LParen, _) => {
                if depth == 0 && lexed.is_keyword(index + 1, K::Select) && !lexed.is_keyword(index - 1, K::As)
                {
                    return StatementKind::Select;
                }
                depth += 1;
            }
            (TokenKind::RParen, _) => depth = depth.saturating_sub(1),
            (_, Some(K::Select | K::Values | K::Table | K::Insert | K::Replace | K::Update | K::Delete))
                if depth == 0 =>
            {
                return starting_at(lexed, index);
            }
            _ => {}
        }
    }
    StatementKind::Other
}

fn transaction_options(lexed: &Lexed<'_>, from: usize) -> TransactionOptions {
    use Keyword as K;
    let mut options = TransactionOptions::default();
    for at in from..lexed.len() {
        match (lexed.keyword(at), lexed.keyword(at + 1)) {
            (Some(K::Read), Some(K::Only)) => options.read_only = Some(true),
            (Some(K::Read), Some(K::Write)) => options.read_only = Some(false),
            (Some(K::Consistent), Some(K::Snapshot)) => options.consistent_snapshot = true,
            _ => {}
        }
    }
    options
}

fn chain(lexed: &Lexed<'_>, at: usize) -> bool {
    use Keyword as K;
    (at..lexed.len()).any(|i| lexed.is_keyword(i, K::And) && lexed.is_keyword(i + 1, K::Chain))
}

fn release(lexed: &Lexed<'_>, at: usize) -> bool {
    use Keyword as K;
    (at + 1..lexed.len()).any(|i| lexed.is_keyword(i, K::Release) && !lexed.is_keyword(i - 1, K::No))
}

fn rollback(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    let to = if lexed.is_keyword(at + 1, K::Work) {
        at + 2
    } else {
        at + 1
    };
    if lexed.is_keyword(to, K::To) {
        // `ROLLBACK TO savepoint` may also name a savepoint called "savepoint".
        let named = lexed.is_keyword(to + 1, K::Savepoint) && lexed.len() > to + 2;
        return StatementKind::RollbackTo {
            name: if named { to + 2 } else { to + 1 },
        };
    }
    StatementKind::Rollback {
        chain: chain(lexed, at),
        release: release(lexed, at),
    }
}

fn set(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    let next = lexed.keyword(at + 1);
    let scoped = matches!(next, Some(K::Session | K::Local | K::Global));
    if lexed.is_keyword(at + 1 + usize::from(scoped), K::Transaction) {
        return StatementKind::SetTransaction;
    }
    // `SET statement = 1` would be a variable of that name.
    if next == Some(K::Statement) && !lexed.is(at + 2, TokenKind::Eq) {
        return StatementKind::SetStatement;
    }
    let assigned = matches!(lexed.kind(at + 2), Some(TokenKind::Eq | TokenKind::Assign));
    match next {
        // `SET PASSWORD [FOR user] = ...` changes an account in both its forms.
        Some(K::Password) => StatementKind::Account,
        Some(K::Role) if !assigned => StatementKind::Account,
        Some(K::Default) if lexed.is_keyword(at + 2, K::Role) => StatementKind::Account,
        _ => StatementKind::Set,
    }
}

fn explain(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    let mut format = ExplainFormat::Server;
    let mut analyze = false;
    let mut from = at + 1;
    loop {
        match lexed.keyword(from) {
            Some(K::Extended | K::Partitions) if explained(lexed, from + 1) => from += 1,
            Some(K::Analyze) => {
                analyze = true;
                from += 1;
            }
            Some(K::Format) if lexed.is(from + 1, TokenKind::Eq) => {
                if is_shardgate(lexed, from + 2) {
                    format = ExplainFormat::Shardgate;
                }
                from += 3;
            }
            _ => break,
        }
    }
    if explained(lexed, from) {
        StatementKind::Explain {
            format,
            analyze,
            statement: from,
        }
    } else {
        StatementKind::Describe { table: from }
    }
}

fn is_shardgate(lexed: &Lexed<'_>, at: usize) -> bool {
    let text = lexed.text(at);
    let bare = text
        .strip_prefix(b"'")
        .and_then(|text| text.strip_suffix(b"'"))
        .unwrap_or(text);
    bare.eq_ignore_ascii_case(b"shardgate")
}

/// Whether a statement that can be explained begins with token `at`.
fn explained(lexed: &Lexed<'_>, at: usize) -> bool {
    use Keyword as K;
    lexed.is(at, TokenKind::LParen)
        || matches!(
            lexed.keyword(at),
            Some(
                K::Select
                    | K::Insert
                    | K::Replace
                    | K::Update
                    | K::Delete
                    | K::With
                    | K::Values
                    | K::Table
                    | K::For
                    | K::Format
            )
        )
}

/// `ANALYZE TABLE t` is maintenance; `ANALYZE [FORMAT = JSON] SELECT ...` of MariaDB runs the statement.
fn analyze(lexed: &Lexed<'_>, at: usize) -> StatementKind {
    use Keyword as K;
    let mut from = at + 1;
    if lexed.is_keyword(from, K::Format) && lexed.is(from + 1, TokenKind::Eq) {
        from += 3;
    }
    if explained(lexed, from) && !lexed.is_keyword(from, K::Table) {
        return StatementKind::Explain {
            format: ExplainFormat::Server,
            analyze: true,
            statement: from,
        };
    }
    StatementKind::Admin(AdminKind::Analyze)
}

fn ddl(lexed: &Lexed<'_>, at: usize, first: Keyword) -> StatementKind {
    use Keyword as K;
    use StatementKind as S;
    let verb = match first {
        K::Create => DdlKind::Create,
        K::Alter => DdlKind::Alter,
        K::Drop => DdlKind::Drop,
        K::Rename => DdlKind::Rename,
        _ => DdlKind::Truncate,
    };
    if verb == DdlKind::Truncate {
        return S::Ddl {
            verb,
            object: DdlObject::Table,
            temporary: false,
        };
    }
    let mut temporary = false;
    // The object comes within a few words: `CREATE OR REPLACE ALGORITHM=.. DEFINER='a'@'b' SQL SECURITY .. VIEW`.
    for index in at + 1..(at + 24).min(lexed.len()) {
        let object = match lexed.keyword(index) {
            Some(K::Temporary) => {
                temporary = true;
                continue;
            }
            Some(K::Prepare) => return S::Deallocate,
            Some(K::User | K::Role) => return S::Account,
            Some(K::Table | K::Tables) => DdlObject::Table,
            Some(K::Index) => DdlObject::Index,
            Some(K::View) => DdlObject::View,
            Some(K::Database | K::Schema) => DdlObject::Database,
            Some(K::Procedure | K::Function | K::Trigger | K::Event | K::Package) => DdlObject::Routine,
            Some(K::Sequence) => DdlObject::Sequence,
            Some(K::Tablespace) => DdlObject::Other,
            _ => continue,
        };
        return S::Ddl {
            verb,
            object,
            temporary,
        };
    }
    S::Ddl {
        verb,
        object: DdlObject::Other,
        temporary,
    }
}
