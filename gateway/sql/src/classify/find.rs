//! How the first tokens tell the kind of a statement.

use super::kind::{AdminKind, DdlKind, DdlObject, ExplainFormat, StatementKind, TransactionOptions};
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

/// Tells the kind of a statement.
pub(super) fn kind(lexed: &Lexed<'_>) -> StatementKind {
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
    // Of the gateway's own it says of any statement where it would go, or why nowhere.
    if explained(lexed, from) || format == ExplainFormat::Shardgate && from < lexed.len() {
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
