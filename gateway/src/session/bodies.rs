//! What may not run through the gateway, of whichever statement it is a part: told for a statement alone, and for each
//! that stands in the body of a compound statement, a routine, a trigger or an event.
//!
//! A body is not parsed. Its statements are found by the words that one can stand behind, so a word is now and then
//! taken for a statement that is none; what is not refused for sure is none of those below.

use shardgate_sql::{
    AdminKind, Classified, Keyword as K, Lexed, ShowKind, StatementKind, TokenKind, classify, parse_show,
};

use super::SessionError;
use super::schemata_views::tells_of_others;
use crate::plan::is_of_server;

/// Tokens of a statement in a body that are looked at: more than tell its kind. A bound, so that a text of a thousand
/// beginnings is not read a thousand times.
const LOOKED_AT: usize = 40;

/// Refuses a statement for what it is.
pub(super) fn check_kind(
    lexed: &Lexed<'_>,
    class: &Classified,
    autocommit: bool,
) -> Result<(), SessionError> {
    use StatementKind as S;
    let (what, hint) = match class.kind {
        S::Xa => (
            "XA",
            "use BEGIN and COMMIT; a transaction over several shards commits shard after shard",
        ),
        S::Account => (
            "account management through the gateway",
            "create users on the tablets and in the gateway's configuration",
        ),
        // A server would not know the word either; it says so in this way.
        S::Other if lexed.first_keyword().is_none() => {
            return Err(SessionError::Syntax(format!("near '{}'", near(lexed))));
        }
        S::Other if lexed.is_keyword(0, K::Get) => ("GET DIAGNOSTICS", "use SHOW WARNINGS"),
        S::Admin(kind) if holds_a_server(lexed, kind) => (
            "a statement that holds or steers one server",
            "run it on the tablet itself",
        ),
        kind @ S::Ddl { .. } if is_of_server(kind) => (
            "CREATE, ALTER or DROP of a database or of something else of a whole server",
            "keyspaces are in the gateway's configuration; create their databases on the tablets",
        ),
        S::LockTables if !autocommit => (
            "LOCK TABLES with autocommit off",
            "SET autocommit = 1 first and, in a sharded keyspace, choose one shard; or lock rows with SELECT ... FOR UPDATE",
        ),
        S::SetStatement => (
            "SET STATEMENT ... FOR",
            "SET the variable for the session, run the statement, and SET it back",
        ),
        S::Explain { statement, .. } if lexed.is_keyword(statement, K::For) => (
            "EXPLAIN of another connection's statement",
            "EXPLAIN the statement itself",
        ),
        _ => return Ok(()),
    };
    Err(SessionError::Unsupported { what, hint })
}

/// Refuses what is for nobody where the gateway does not run it itself: inside another statement.
pub(super) fn check_nested(lexed: &Lexed<'_>, kind: StatementKind) -> Result<(), SessionError> {
    use StatementKind as S;
    let (what, hint) = match kind {
        S::Prepare | S::Execute => (
            "PREPARE or EXECUTE inside another statement, which would run a text that the gateway cannot read",
            "create such a routine on the tablets themselves, or PREPARE the text in the session",
        ),
        S::Use => ("USE inside another statement", "USE the database in the session"),
        S::Kill => ("KILL inside another statement", "KILL in the session"),
        S::Admin(AdminKind::Flush) => ("FLUSH inside another statement", "run it by itself"),
        S::Show => return check_shown(lexed),
        _ => return Ok(()),
    };
    Err(SessionError::Unsupported { what, hint })
}

/// Refuses to show what one server tells of its accounts, and of what others do there: a tablet knows the gateway's own
/// user only.
fn check_shown(lexed: &Lexed<'_>) -> Result<(), SessionError> {
    let Some(show) = parse_show(lexed) else {
        return Err(SessionError::Syntax("near SHOW".into()));
    };
    if show.kind == ShowKind::ProcessList {
        return Err(SessionError::Unsupported {
            what: "SHOW PROCESSLIST inside another statement",
            hint: "send it by itself",
        });
    }
    check_show_kind(&show.kind)
}

/// The same for a SHOW of the session's own.
pub(super) fn check_show_kind(kind: &ShowKind) -> Result<(), SessionError> {
    let (what, hint) = match kind {
        ShowKind::Grants => (
            "SHOW GRANTS, which would show those of the gateway's own user on a tablet",
            "the gateway's users are in its configuration, a tablet's are shown by the tablet itself",
        ),
        ShowKind::CreateOther(word) if matches!(word.as_str(), "USER" | "ROLE" | "SERVER") => (
            "SHOW CREATE of an account or a server, with its password",
            "the gateway's users are in its configuration, a tablet's are shown by the tablet itself",
        ),
        ShowKind::Other(word) if matches!(word.as_str(), "BINLOG" | "RELAYLOG") => (
            "SHOW of a server's log, which tells what others wrote",
            "ask the tablet itself",
        ),
        ShowKind::Other(word) if matches!(word.as_str(), "EXPLAIN" | "ANALYZE") => (
            "SHOW EXPLAIN of another connection's statement",
            "EXPLAIN the statement itself",
        ),
        _ => return Ok(()),
    };
    Err(SessionError::Unsupported { what, hint })
}

/// Refuses tables that tell of the servers' accounts, and of what others do there, wherever a statement names them.
pub(super) fn check_tables(lexed: &Lexed<'_>) -> Result<(), SessionError> {
    let name = |at: usize| Some(String::from_utf8_lossy(&lexed.name(at)?).into_owned());
    for at in (1..lexed.len()).filter(|at| lexed.is(*at, TokenKind::Dot)) {
        if let (Some(database), Some(table)) = (name(at - 1), name(at + 1))
            && tells_of_others(&database, &table)
        {
            return Err(of_others());
        }
    }
    Ok(())
}

/// The refusal of a table that tells of others.
pub(super) fn of_others() -> SessionError {
    SessionError::Unsupported {
        what: "a table that tells of a server's accounts, or of what others do there",
        hint: "use SHOW PROCESSLIST for the gateway's sessions, or ask the tablet itself",
    }
}

/// Refuses in a body of statements what the gateway would refuse by itself, or would run by itself.
pub(super) fn check_body(
    lexed: &Lexed<'_>,
    class: &Classified,
    autocommit: bool,
) -> Result<(), SessionError> {
    let is_routine = is_ddl_of_routine(lexed, class.kind);
    if !is_routine && !matches!(class.kind, StatementKind::Compound | StatementKind::Other) {
        return Ok(());
    }
    if sets_global(lexed) {
        return Err(SessionError::SetGlobal);
    }
    // Before a body of one statement stands no word of its own: any token may begin it.
    let mut anywhere = is_routine;
    let mut depth = 0u32;
    for at in 1..lexed.len() {
        match lexed.kind(at) {
            Some(TokenKind::LParen) => depth += 1,
            Some(TokenKind::RParen) => depth = depth.saturating_sub(1),
            Some(TokenKind::Semicolon) => anywhere = false,
            _ => {}
        }
        if stands_behind(lexed, at) || anywhere && depth == 0 && !is_named(lexed, at) {
            check_part(lexed, at, autocommit)?;
        }
        if lexed.is_keyword(at - 1, K::Handler) && lexed.is_keyword(at, K::For) {
            anywhere = true;
        } else if anywhere && depth == 0 && is_plain_start(lexed, at) {
            anywhere = false;
        }
    }
    Ok(())
}

/// Whether a statement makes something with a body.
fn is_ddl_of_routine(lexed: &Lexed<'_>, kind: StatementKind) -> bool {
    matches!(kind, StatementKind::Ddl { .. })
        && lexed.tokens().iter().any(|t| {
            matches!(
                t.keyword,
                Some(K::Procedure | K::Function | K::Trigger | K::Event | K::Package)
            )
        })
}

/// Whether a token stands where a statement of a body begins.
fn stands_behind(lexed: &Lexed<'_>, at: usize) -> bool {
    lexed.is(at - 1, TokenKind::Semicolon)
        || matches!(
            lexed.keyword(at - 1),
            Some(K::Begin | K::Atomic | K::Then | K::Else | K::Do | K::Loop | K::Repeat)
        )
}

/// Whether a token is the name of something in the head of a definition.
fn is_named(lexed: &Lexed<'_>, at: usize) -> bool {
    let is_free = lexed.keyword(at).is_some_and(|k| !k.is_reserved());
    is_free
        && (matches!(
            lexed.keyword(at - 1),
            Some(
                K::Procedure
                    | K::Function
                    | K::Trigger
                    | K::Event
                    | K::Package
                    | K::Body
                    | K::Exists
                    | K::On
                    | K::To
            )
        ) || lexed.is_word(at - 1, "follows")
            || lexed.is_word(at - 1, "precedes"))
}

/// Whether a statement begins here that is fine and ends the head of a definition.
fn is_plain_start(lexed: &Lexed<'_>, at: usize) -> bool {
    let before = lexed.keyword(at - 1);
    match lexed.keyword(at) {
        Some(
            K::Select
            | K::With
            | K::Return
            | K::Call
            | K::While
            | K::Loop
            | K::Repeat
            | K::Case
            | K::Begin
            | K::Do,
        ) => true,
        // `BEFORE UPDATE ON t`, `BEFORE INSERT OR UPDATE`, `CREATE OR REPLACE`
        Some(K::Insert | K::Update | K::Delete | K::Replace) => {
            !matches!(before, Some(K::Before | K::After | K::Or))
        }
        Some(K::If) => !matches!(lexed.keyword(at + 1), Some(K::Not | K::Exists)),
        // `RETURNS SET('a')`, `CHARACTER SET utf8mb4`
        Some(K::Set) => {
            !lexed.is(at + 1, TokenKind::LParen) && !matches!(before, Some(K::Character | K::Char))
        }
        _ => false,
    }
}

/// Refuses the statement that may begin at a token of a body.
fn check_part(lexed: &Lexed<'_>, at: usize, autocommit: bool) -> Result<(), SessionError> {
    if !may_be_refused(lexed, at) {
        return Ok(());
    }
    let most = (at + LOOKED_AT).min(lexed.len());
    let end = (at..most).find(|at| lexed.is(*at, TokenKind::Semicolon));
    let part = lexed.part(at..end.unwrap_or(most));
    let class = classify(&part);
    check_kind(&part, &class, autocommit)?;
    check_nested(&part, class.kind)
}

/// Whether a token is a word that begins a statement of those that are refused, and no name.
fn may_be_refused(lexed: &Lexed<'_>, at: usize) -> bool {
    let next = lexed.kind(at + 1);
    let is_alone = matches!(next, None | Some(TokenKind::Semicolon));
    match lexed.keyword(at) {
        Some(
            K::Grant
            | K::Revoke
            | K::Create
            | K::Alter
            | K::Drop
            | K::Set
            | K::Use
            | K::Show
            | K::Kill
            | K::Change
            | K::Purge,
        ) => true,
        Some(K::Explain | K::Describe | K::Desc | K::Analyze) => lexed.is_keyword(at + 1, K::For),
        // `ALTER EVENT e RENAME TO f`
        Some(K::Rename) => !lexed.is_keyword(at + 1, K::To),
        Some(K::Prepare) => lexed.is_keyword(at + 2, K::From),
        Some(K::Shutdown | K::Restart) => is_alone || next == Some(TokenKind::Word),
        Some(
            K::Flush | K::Reset | K::Start | K::Stop | K::Install | K::Uninstall | K::Backup | K::Import,
        ) => next.is_some_and(TokenKind::is_name) && !ends_expression(lexed, at + 1),
        Some(K::Execute | K::Xa) => next.is_some_and(TokenKind::is_name),
        Some(K::Binlog) => !is_alone,
        _ => false,
    }
}

/// Whether a word goes on with a CASE, so that what stands before it is a column: `THEN reset ELSE start END`.
fn ends_expression(lexed: &Lexed<'_>, at: usize) -> bool {
    matches!(
        lexed.keyword(at),
        Some(K::End | K::Else | K::When | K::Then | K::And | K::Or)
    )
}

/// Whether a SET is in it that changes a variable of a whole server.
pub(super) fn sets_global(lexed: &Lexed<'_>) -> bool {
    let mut in_set = false;
    for at in 0..lexed.len() {
        if lexed.is_keyword(at, K::Set) {
            in_set = true;
        } else if lexed.is(at, TokenKind::Semicolon) {
            in_set = false;
        } else if in_set && is_global(lexed, at) {
            return true;
        }
    }
    false
}

/// Whether a SET's item begins here that is a whole server's.
fn is_global(lexed: &Lexed<'_>, at: usize) -> bool {
    let is_first = at > 0 && lexed.is_keyword(at - 1, K::Set);
    if !is_first && !lexed.is(at.saturating_sub(1), TokenKind::Comma) {
        return false;
    }
    let scopes = ["global", "persist", "persist_only"];
    if lexed.is(at, TokenKind::SystemVariable) {
        let name = lexed.variable(at).unwrap_or_default();
        let scope = name.split(|b| *b == b'.').next().unwrap_or_default();
        return scopes.iter().any(|s| scope.eq_ignore_ascii_case(s.as_bytes()));
    }
    // `SET a = 1, GLOBAL b = 2`; a variable of that name is no scope.
    scopes.iter().any(|s| lexed.is_word(at, s)) && lexed.kind(at + 1).is_some_and(TokenKind::is_name)
}

/// Whether a statement locks a whole server, or steers it: nothing for one tablet of many.
fn holds_a_server(lexed: &Lexed<'_>, kind: AdminKind) -> bool {
    let has = |word| (0..lexed.len()).any(|at| lexed.is_word(at, word));
    match kind {
        AdminKind::Server => true,
        AdminKind::Flush => has("lock") || has("export"),
        AdminKind::Analyze
        | AdminKind::Optimize
        | AdminKind::Check
        | AdminKind::Checksum
        | AdminKind::Repair
        | AdminKind::CacheIndex
        | AdminKind::Help => false,
    }
}

/// The beginning of a statement, as the servers quote it in a syntax error.
fn near(lexed: &Lexed<'_>) -> String {
    String::from_utf8_lossy(&lexed.src()[lexed.span(0..lexed.len())])
        .chars()
        .take(80)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    fn check(sql: &str) -> Result<(), SessionError> {
        let options = LexOptions::default();
        let lexed = lex(sql.as_bytes(), &options).unwrap();
        let class = classify(&lexed);
        check_kind(&lexed, &class, true)?;
        check_body(&lexed, &class, true)
    }

    #[test]
    fn a_body_holds_nothing_that_is_refused_by_itself() {
        for sql in [
            "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DROP TABLE mysql.user'; END",
            "BEGIN NOT ATOMIC PREPARE p FROM @a; END",
            "BEGIN NOT ATOMIC PREPARE end FROM @a; END",
            "BEGIN NOT ATOMIC SELECT 1; EXECUTE p; END",
            "BEGIN NOT ATOMIC SET GLOBAL read_only = 0; END",
            "BEGIN NOT ATOMIC SET @a = 1, @@global.read_only = 0; END",
            "BEGIN NOT ATOMIC SET @@global . read_only = 0; END",
            "BEGIN NOT ATOMIC SHUTDOWN; END",
            "BEGIN NOT ATOMIC GRANT ALL ON *.* TO x; END",
            "BEGIN NOT ATOMIC KILL 12; END",
            "BEGIN NOT ATOMIC DROP DATABASE other; END",
            "BEGIN NOT ATOMIC USE other; END",
            "BEGIN NOT ATOMIC SHOW GRANTS; END",
            "BEGIN NOT ATOMIC SHOW CREATE USER x; END",
            "BEGIN NOT ATOMIC FLUSH TABLES WITH READ LOCK; END",
            "BEGIN NOT ATOMIC SET STATEMENT max_statement_time = 1 FOR SELECT 1; END",
            "IF 1 THEN KILL 12; END IF",
            "IF 0 THEN SELECT 1; ELSE KILL 12; END IF",
            "CASE 1 WHEN 1 THEN KILL 12; END CASE",
            "WHILE 1 DO RESET MASTER; END WHILE",
            "LOOP SET GLOBAL read_only = 0; END LOOP",
            "REPEAT DROP USER x; UNTIL 1 END REPEAT",
            "comment: BEGIN NOT ATOMIC KILL 12; END",
            "CREATE PROCEDURE p() SET GLOBAL read_only = 0",
            "CREATE PROCEDURE p(a INT) COMMENT 'x' SQL SECURITY INVOKER KILL 12",
            "CREATE PROCEDURE p() EXECUTE IMMEDIATE 'x'",
            "CREATE DEFINER = view@localhost PROCEDURE p() KILL 12",
            "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW FOLLOWS reset KILL 12",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SHUTDOWN",
            "ALTER EVENT e DO SET @@global.read_only = 0",
            "BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION, 1146 KILL 12; SELECT 1; END",
            "BEGIN NOT ATOMIC XA START 'x'; END",
            "CREATE PROCEDURE p() BEGIN EXPLAIN FOR CONNECTION 5; END",
        ] {
            assert!(check(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn words_that_begin_no_statement_pass() {
        for sql in [
            "BEGIN NOT ATOMIC SELECT shutdown, execute, reset FROM start; UPDATE t SET a = @@global.read_only; END",
            "BEGIN NOT ATOMIC SELECT CASE WHEN a THEN reset ELSE start END FROM t; END",
            "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR NOT FOUND SET @a = 1; GET DIAGNOSTICS @n = NUMBER; END",
            "CREATE PROCEDURE reset(flush INT, start INT) COMMENT 'x' SELECT execute FROM t WHERE stop = 1",
            "CREATE PROCEDURE p() BEGIN START TRANSACTION; INSERT INTO t VALUES (1); COMMIT; DROP TABLE IF EXISTS x; END",
            "CREATE FUNCTION f(a INT) RETURNS SET('a', 'b') CHARACTER SET utf8mb4 DETERMINISTIC RETURN 'a'",
            "CREATE TRIGGER t BEFORE UPDATE ON a FOR EACH ROW FOLLOWS u SET NEW.a = @@global.read_only",
            "ALTER EVENT e RENAME TO f",
            "ALTER EVENT e ON COMPLETION NOT PRESERVE DISABLE",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS NOW() DO DELETE FROM t",
            "DROP PROCEDURE reset",
            "CREATE TABLE event (start INT, stop INT)",
            "SET GLOBAL read_only = 0",
            "SELECT 1",
            "BEGIN NOT ATOMIC SHOW TABLES; DROP TABLE t; CREATE TEMPORARY TABLE x (user INT); END",
        ] {
            assert!(check(sql).is_ok(), "{sql}: {:?}", check(sql));
        }
    }

    #[test]
    fn a_set_of_a_whole_servers_variable_is_told_from_one_that_reads_it() {
        let sets = |sql: &str| sets_global(&lex(sql.as_bytes(), &LexOptions::default()).unwrap());
        for sql in [
            "SET GLOBAL a = 1",
            "SET a = 1, GLOBAL b = 2",
            "SET PERSIST a = 1",
            "SET @@persist_only.a = 1",
            "SET a = 1, @@GLOBAL.b = 2",
        ] {
            assert!(sets(sql), "{sql}");
        }
        for sql in [
            "SET a = @@global.a",
            "SET @a = 1, global = 2",
            "SELECT 1, @@global.a",
        ] {
            assert!(!sets(sql), "{sql}");
        }
    }

    #[test]
    fn tables_of_accounts_and_sessions_are_told_wherever_they_are_named() {
        let hidden = |sql: &str| check_tables(&lex(sql.as_bytes(), &LexOptions::default()).unwrap()).is_err();
        for sql in [
            "SELECT * FROM information_schema.processlist",
            "CREATE VIEW v AS SELECT * FROM `Information_Schema` . USER_PRIVILEGES",
            "BEGIN NOT ATOMIC SELECT * FROM performance_schema.threads; END",
            "SELECT * FROM performance_schema.events_statements_history_long",
            "SELECT * FROM performance_schema.user_variables_by_thread",
            "SELECT * FROM sys.x$session",
        ] {
            assert!(hidden(sql), "{sql}");
        }
        assert!(!hidden(
            "SELECT * FROM information_schema.tables, performance_schema.file_instances, sys.version"
        ));
    }
}
