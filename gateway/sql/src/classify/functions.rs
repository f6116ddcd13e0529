//! Functions whose value depends on the session or on the moment, so that shards would answer them apart.

use std::ops::Range;

use smallvec::SmallVec;

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::mode::Flavor;
use crate::token::TokenKind;

/// One such call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Which function.
    pub function: SessionFunction,
    /// Its tokens, from the name to the closing parenthesis, or the bare name.
    pub tokens: Range<usize>,
    /// Whether there is something between its parentheses.
    pub has_arguments: bool,
}

/// Functions of the session, of time, and of chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionFunction {
    /// `LAST_INSERT_ID()`
    LastInsertId,
    /// `FOUND_ROWS()`
    FoundRows,
    /// `ROW_COUNT()`
    RowCount,
    /// `CONNECTION_ID()`
    ConnectionId,
    /// `DATABASE()`, `SCHEMA()`
    Database,
    /// `USER()`, `SESSION_USER()`, `SYSTEM_USER()`
    User,
    /// `CURRENT_USER`
    CurrentUser,
    /// `CURRENT_ROLE`
    CurrentRole,
    /// `VERSION()`
    Version,
    /// `NOW()`, `CURRENT_TIMESTAMP`, `LOCALTIME`, `LOCALTIMESTAMP`; an argument is the precision.
    Now,
    /// `SYSDATE()`, which unlike NOW moves while the statement runs.
    Sysdate,
    /// `CURDATE()`, `CURRENT_DATE`
    CurDate,
    /// `CURTIME()`, `CURRENT_TIME`
    CurTime,
    /// `UTC_DATE`
    UtcDate,
    /// `UTC_TIME`
    UtcTime,
    /// `UTC_TIMESTAMP`
    UtcTimestamp,
    /// `UNIX_TIMESTAMP()`; with an argument it depends on the time zone only.
    UnixTimestamp,
    /// `RAND()`; with an argument it is a fixed sequence on one server.
    Rand,
    /// `UUID()`, `SYS_GUID()`
    Uuid,
    /// `UUID_SHORT()`
    UuidShort,
    /// `RANDOM_BYTES()`
    RandomBytes,
    /// `GET_LOCK`, `RELEASE_LOCK`, `RELEASE_ALL_LOCKS`, `IS_FREE_LOCK`, `IS_USED_LOCK`
    NamedLock,
    /// `SLEEP`
    Sleep,
    /// `BENCHMARK`
    Benchmark,
    /// `NEXTVAL`, `LASTVAL`, `SETVAL`, `NEXT VALUE FOR name`, `PREVIOUS VALUE FOR name`
    Sequence,
}

const CALLED: &[(&str, SessionFunction)] = {
    use SessionFunction as F;
    &[
        ("last_insert_id", F::LastInsertId),
        ("found_rows", F::FoundRows),
        ("row_count", F::RowCount),
        ("connection_id", F::ConnectionId),
        ("database", F::Database),
        ("schema", F::Database),
        ("user", F::User),
        ("session_user", F::User),
        ("system_user", F::User),
        ("version", F::Version),
        ("now", F::Now),
        ("sysdate", F::Sysdate),
        ("curdate", F::CurDate),
        ("curtime", F::CurTime),
        ("unix_timestamp", F::UnixTimestamp),
        ("rand", F::Rand),
        ("uuid", F::Uuid),
        ("sys_guid", F::Uuid),
        ("uuid_short", F::UuidShort),
        ("random_bytes", F::RandomBytes),
        ("get_lock", F::NamedLock),
        ("release_lock", F::NamedLock),
        ("release_all_locks", F::NamedLock),
        ("is_free_lock", F::NamedLock),
        ("is_used_lock", F::NamedLock),
        ("sleep", F::Sleep),
        ("benchmark", F::Benchmark),
        ("nextval", F::Sequence),
        ("lastval", F::Sequence),
        ("setval", F::Sequence),
    ]
};

/// Finds the calls. Space before the parenthesis is allowed: most of these are found by name and not by the lexer,
/// and a server reads `LAST_INSERT_ID ()` as the function.
pub(super) fn find(lexed: &Lexed<'_>) -> SmallVec<[FunctionCall; 2]> {
    let mut calls = SmallVec::<[FunctionCall; 2]>::new();
    // For each parenthesis open: the call it belongs to.
    let mut open = SmallVec::<[Option<usize>; 8]>::new();
    let mut called = None;
    for (at, token) in lexed.tokens().iter().enumerate() {
        match token.kind {
            TokenKind::LParen => open.push(called.take()),
            TokenKind::RParen => {
                if let Some(call) = open.pop().flatten().and_then(|call| calls.get_mut(call)) {
                    call.tokens.end = at + 1;
                    call.has_arguments = at > call.tokens.start + 2;
                }
            }
            TokenKind::Word if at == 0 || !lexed.is(at - 1, TokenKind::Dot) => {
                let calls_it = lexed.is(at + 1, TokenKind::LParen);
                // The list is long, and most words call nothing.
                let by_name = || calls_it.then(|| by_name(lexed.text(at))).flatten();
                if let Some(function) = token
                    .keyword
                    .and_then(|keyword| bare(lexed, at, keyword))
                    .or_else(by_name)
                {
                    called = calls_it.then_some(calls.len());
                    // Until it is closed, a call goes on to the end.
                    let end = if calls_it { lexed.len() } else { at + 1 };
                    calls.push(FunctionCall {
                        function,
                        tokens: at..end,
                        has_arguments: end > at + 2,
                    });
                }
            }
            _ => {}
        }
    }
    calls
}

/// Functions that need no parentheses.
fn bare(lexed: &Lexed<'_>, at: usize, keyword: Keyword) -> Option<SessionFunction> {
    use Keyword as K;
    use SessionFunction as F;
    Some(match keyword {
        K::CurrentTimestamp | K::Localtime | K::Localtimestamp => F::Now,
        K::CurrentDate => F::CurDate,
        K::CurrentTime => F::CurTime,
        K::UtcDate => F::UtcDate,
        K::UtcTime => F::UtcTime,
        K::UtcTimestamp => F::UtcTimestamp,
        K::CurrentUser => F::CurrentUser,
        // Not reserved on MySQL, where without parentheses it is a column.
        K::CurrentRole
            if lexed.options().flavor == Flavor::MariaDb || lexed.is(at + 1, TokenKind::LParen) =>
        {
            F::CurrentRole
        }
        K::Next | K::Previous if lexed.is_keyword(at + 1, K::Value) && lexed.is_keyword(at + 2, K::For) => {
            F::Sequence
        }
        _ => return None,
    })
}

fn by_name(name: &[u8]) -> Option<SessionFunction> {
    let found = CALLED
        .iter()
        .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(_, function)| *function)
}
