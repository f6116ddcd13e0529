use super::*;
use crate::{LexOptions, lex};
use DdlKind as V;
use DdlObject as O;
use StatementKind as S;

fn of(sql: &str) -> Classified {
    classify(&lex(sql.as_bytes(), &LexOptions::default()).unwrap())
}

fn ddl(verb: V, object: O) -> S {
    S::Ddl {
        verb,
        object,
        temporary: false,
    }
}

#[track_caller]
fn check(cases: &[(&str, StatementKind)]) {
    for (sql, kind) in cases {
        assert_eq!(of(sql).kind, *kind, "{sql}");
    }
}

#[test]
fn data_statements_are_told_by_their_tokens() {
    check(&[
        ("", S::Empty),
        ("-- nothing", S::Empty),
        ("SELECT 1", S::Select),
        ("((SELECT 1) UNION SELECT 2)", S::Select),
        ("/* c */ select 1", S::Select),
        ("VALUES (1)", S::Select),
        ("TABLE t", S::Select),
        ("WITH a AS (SELECT 1) SELECT * FROM a", S::Select),
        (
            "WITH RECURSIVE a (x) AS (SELECT 1), b AS (SELECT 2) UPDATE t SET a = 1",
            S::Update,
        ),
        ("WITH a AS (SELECT 1) DELETE FROM t", S::Delete),
        ("WITH a AS (SELECT 1) (SELECT * FROM a)", S::Select),
        ("INSERT t SELECT 1", S::Insert),
        ("REPLACE t VALUES (1)", S::Replace),
        ("/*!50000 UPDATE */ t SET a = 1", S::Update),
    ]);
}

#[test]
fn transaction_statements_are_told_by_their_tokens() {
    let plain = TransactionOptions::default();
    check(&[
        ("BEGIN", S::Begin(plain)),
        ("BEGIN WORK", S::Begin(plain)),
        ("BEGIN NOT ATOMIC SELECT 1; END", S::Compound),
        ("START TRANSACTION", S::Begin(plain)),
        (
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            S::Begin(TransactionOptions {
                read_only: Some(true),
                consistent_snapshot: true,
            }),
        ),
        (
            "START TRANSACTION READ WRITE",
            S::Begin(TransactionOptions {
                read_only: Some(false),
                ..plain
            }),
        ),
        ("START SLAVE", S::Admin(AdminKind::Server)),
        (
            "COMMIT",
            S::Commit {
                chain: false,
                release: false,
            },
        ),
        (
            "COMMIT WORK AND CHAIN NO RELEASE",
            S::Commit {
                chain: true,
                release: false,
            },
        ),
        (
            "COMMIT AND NO CHAIN RELEASE",
            S::Commit {
                chain: false,
                release: true,
            },
        ),
        (
            "ROLLBACK",
            S::Rollback {
                chain: false,
                release: false,
            },
        ),
        (
            "ROLLBACK AND CHAIN",
            S::Rollback {
                chain: true,
                release: false,
            },
        ),
        ("ROLLBACK TO a", S::RollbackTo { name: 2 }),
        ("ROLLBACK WORK TO SAVEPOINT a", S::RollbackTo { name: 4 }),
        ("ROLLBACK TO savepoint", S::RollbackTo { name: 2 }),
        ("SAVEPOINT a", S::Savepoint { name: 1 }),
        ("RELEASE SAVEPOINT a", S::ReleaseSavepoint { name: 2 }),
    ]);
}

#[test]
fn session_statements_are_told_by_their_tokens() {
    let explain = |statement| S::Explain {
        format: ExplainFormat::Server,
        analyze: false,
        statement,
    };
    check(&[
        ("SET SESSION TRANSACTION READ ONLY", S::SetTransaction),
        ("SET a = 1", S::Set),
        ("SET transaction_isolation = 'x'", S::Set),
        ("SET PASSWORD = 'x'", S::Account),
        ("SET ROLE admin", S::Account),
        ("SET role = 1", S::Set),
        (
            "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
            S::SetStatement,
        ),
        ("USE a", S::Use),
        ("SHOW TABLES", S::Show),
        ("DESC t", S::Describe { table: 1 }),
        ("EXPLAIN t a", S::Describe { table: 1 }),
        ("DESCRIBE SELECT 1", explain(1)),
        ("EXPLAIN EXTENDED SELECT 1", explain(2)),
        ("EXPLAIN FORMAT = JSON SELECT 1", explain(4)),
        (
            "EXPLAIN FORMAT=SHARDGATE SELECT 1",
            S::Explain {
                format: ExplainFormat::Shardgate,
                analyze: false,
                statement: 4,
            },
        ),
        (
            "EXPLAIN FORMAT='shardgate' DELETE FROM t",
            S::Explain {
                format: ExplainFormat::Shardgate,
                analyze: false,
                statement: 4,
            },
        ),
        (
            "EXPLAIN ANALYZE SELECT 1",
            S::Explain {
                format: ExplainFormat::Server,
                analyze: true,
                statement: 2,
            },
        ),
        (
            "ANALYZE FORMAT=JSON UPDATE t SET a = 1",
            S::Explain {
                format: ExplainFormat::Server,
                analyze: true,
                statement: 4,
            },
        ),
        ("ANALYZE TABLE t", S::Admin(AdminKind::Analyze)),
    ]);
}

#[test]
fn schema_and_server_statements_are_told_by_their_tokens() {
    check(&[
        ("KILL 1", S::Kill),
        ("CREATE TABLE t (a INT)", ddl(V::Create, O::Table)),
        (
            "CREATE TEMPORARY TABLE t (a INT)",
            S::Ddl {
                verb: V::Create,
                object: O::Table,
                temporary: true,
            },
        ),
        (
            "CREATE OR REPLACE DEFINER = a@'%' SQL SECURITY INVOKER VIEW v AS SELECT 1",
            ddl(V::Create, O::View),
        ),
        ("CREATE UNIQUE INDEX i ON t (a)", ddl(V::Create, O::Index)),
        (
            "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @a = 1",
            ddl(V::Create, O::Routine),
        ),
        ("ALTER ONLINE TABLE t ADD a INT", ddl(V::Alter, O::Table)),
        ("DROP DATABASE d", ddl(V::Drop, O::Database)),
        ("RENAME TABLE a TO b", ddl(V::Rename, O::Table)),
        ("TRUNCATE t", ddl(V::Truncate, O::Table)),
        ("CREATE USER a", S::Account),
        ("GRANT ALL ON *.* TO a", S::Account),
        ("LOCK TABLES t READ", S::LockTables),
        ("UNLOCK TABLES", S::UnlockTables),
        ("CALL p()", S::Call),
        ("DO SLEEP(1)", S::Do),
        ("PREPARE s FROM 'SELECT 1'", S::Prepare),
        ("EXECUTE s", S::Execute),
        ("DROP PREPARE s", S::Deallocate),
        ("FLUSH TABLES", S::Admin(AdminKind::Flush)),
        ("XA START 'x'", S::Xa),
        ("LOAD DATA INFILE 'x' INTO TABLE t", S::Load),
        ("HANDLER t OPEN", S::Handler),
        ("label: BEGIN END", S::Other),
        ("nonsense", S::Other),
    ]);
}

#[test]
fn what_ties_a_session_to_one_server_is_seen() {
    use PinReason as P;
    for (sql, pin) in [
        ("SELECT GET_LOCK('a', 1)", Some(P::NamedLock)),
        ("SELECT get_lock ('a', 1)", Some(P::NamedLock)),
        ("CREATE TEMPORARY TABLE t (a INT)", Some(P::TemporaryTable)),
        ("LOCK TABLES t READ", Some(P::TableLock)),
        ("SELECT @a := 1", Some(P::Assignment)),
        ("SET @a := 1", None),
        ("SET @a = (SELECT @b := 1)", Some(P::Assignment)),
        ("SELECT 1 INTO @a", Some(P::SelectIntoVariable)),
        ("SELECT 1 INTO OUTFILE 'x'", Some(P::SelectIntoFile)),
        ("INSERT INTO t SELECT 1", None),
        ("PREPARE s FROM 'SELECT 1'", Some(P::SqlPrepare)),
        ("CALL p()", Some(P::Call)),
        ("SELECT SQL_CALC_FOUND_ROWS a FROM t", Some(P::FoundRows)),
        ("UPDATE t SET a = LAST_INSERT_ID(a + 1)", Some(P::LastInsertId)),
        ("SELECT LAST_INSERT_ID()", None),
        ("SELECT 'GET_LOCK(', `@a := 1`, t.get_lock FROM t", None),
    ] {
        assert_eq!(of(sql).pin, pin, "{sql}");
    }
}

#[test]
fn writes_commits_and_locks_are_seen() {
    for (sql, write, commits, locks) in [
        ("SELECT 1", false, false, false),
        ("SELECT a FROM t FOR UPDATE", false, false, true),
        ("SELECT a FROM t LOCK IN SHARE MODE", false, false, true),
        (
            "SELECT a FROM t WHERE b IN (SELECT c FROM u FOR SHARE)",
            false,
            false,
            true,
        ),
        ("INSERT INTO t VALUES (1)", true, false, false),
        ("CREATE TABLE t (a INT)", true, true, false),
        ("DROP TEMPORARY TABLE t", true, false, false),
        ("BEGIN", false, true, false),
        ("ANALYZE SELECT 1", true, false, false),
        ("CALL p()", true, false, false),
        ("nonsense", true, false, false),
    ] {
        let found = of(sql);
        assert_eq!(
            (
                found.is_write,
                found.causes_implicit_commit,
                found.is_locking_read
            ),
            (write, commits, locks),
            "{sql}"
        );
    }
}

#[test]
fn functions_of_session_and_moment_are_found_with_their_tokens() {
    use SessionFunction as F;
    let found = |sql: &str| {
        let calls = of(sql).functions;
        calls
            .iter()
            .map(|call| (call.function, call.tokens.clone(), call.has_arguments))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("SELECT LAST_INSERT_ID()"), [(F::LastInsertId, 1..4, false)]);
    assert_eq!(found("SELECT NOW(6), a"), [(F::Now, 1..5, true)]);
    assert_eq!(
        found("SELECT CURRENT_TIMESTAMP, utc_date"),
        [(F::Now, 1..2, false), (F::UtcDate, 3..4, false)]
    );
    assert_eq!(
        found("SELECT SCHEMA (), RAND(f(1))"),
        [(F::Database, 1..4, false), (F::Rand, 5..12, true)]
    );
    assert_eq!(found("SELECT database, t.now, db.now(), `rand`() FROM t"), []);
    assert_eq!(found("SELECT UUID("), [(F::Uuid, 1..3, false)]);
    assert_eq!(found("SELECT NEXT VALUE FOR s"), [(F::Sequence, 1..2, false)]);
    assert_eq!(found("SELECT CURRENT_ROLE"), [(F::CurrentRole, 1..2, false)]);
    let mysql = LexOptions {
        flavor: crate::Flavor::MySql,
        ..LexOptions::default()
    };
    assert!(
        classify(&lex(b"SELECT current_role FROM t", &mysql).unwrap())
            .functions
            .is_empty()
    );
    assert!(of("SELECT @a").uses_user_variables && of("SELECT @@a").uses_system_variables);
    // Nested calls, each with its own end; a search for each would be quadratic.
    let deep = format!("SELECT {}1{}", "NOW(".repeat(50_000), ")".repeat(50_000));
    let calls = of(&deep).functions;
    assert_eq!(calls.len(), 50_000);
    assert_eq!(calls[0].tokens, 1..150_002);
}
