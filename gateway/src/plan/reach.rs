//! What a statement may reach through the gateway: keyspaces, and of the servers' own databases what is only read.
//!
//! The backend's user may hold rights on more than the shards' databases: on `mysql`, on other databases of the same
//! server, on the files of its machine. A client of the gateway is not to borrow them. Where statements are understood,
//! planning resolves every table's name; this looks at the rest by tokens. It is a second lock, not the first: text that
//! a stored routine composes is seen by the server alone, so the first is what the backend's user is granted.

use shardgate_sql::{Classified, DdlKind, DdlObject, Keyword as K, Lexed, StatementKind, TokenKind};

use super::catalog::Catalog;
use super::error::PlanError;
use super::places::{Place, places};
use super::tables::is_system;

/// Refuses what no client of the gateway may reach. Cheap where a statement's tables are resolved by planning anyway.
pub fn within_reach(lexed: &Lexed<'_>, class: &Classified, catalog: &Catalog) -> Result<(), PlanError> {
    use StatementKind as S;
    files(lexed, class.kind)?;
    for at in dots(lexed).filter(|at| *at > 0) {
        if is_qualifier(lexed, at - 1) {
            qualified(lexed, at - 1, class, catalog)?;
        }
    }
    match class.kind {
        // Planning knows their tables.
        S::Select | S::Insert | S::Replace | S::Update | S::Delete | S::Explain { .. } | S::Do => Ok(()),
        S::Begin(_) | S::Commit { .. } | S::Rollback { .. } | S::Savepoint { .. } | S::Use | S::Kill => {
            Ok(())
        }
        kind => tables_within_reach(lexed, kind, catalog),
    }
}

/// Checks every place of a statement that planning does not read where a table, a routine or the like is named.
pub fn tables_within_reach(
    lexed: &Lexed<'_>,
    kind: StatementKind,
    catalog: &Catalog,
) -> Result<(), PlanError> {
    for (at, place) in places(lexed, kind) {
        let Some(name) = text(lexed, at) else { continue };
        match place {
            Place::Written if is_system(&name) => return Err(PlanError::DatabaseDenied(name)),
            Place::Read | Place::Written if !is_known(&name, catalog) => {
                return Err(PlanError::UnknownKeyspace(name));
            }
            Place::Unclear if !is_known(&name, catalog) && !is_declared(lexed, &name) => {
                return Err(PlanError::UnknownKeyspace(name));
            }
            Place::Read | Place::Written | Place::Unclear => {}
        }
    }
    Ok(())
}

/// Checks a database that a statement or a session chooses as such.
pub fn database_within_reach(name: &str, catalog: &Catalog) -> Result<(), PlanError> {
    if name.eq_ignore_ascii_case("mysql") {
        return Err(PlanError::DatabaseDenied(name.to_owned()));
    }
    if is_known(name, catalog) {
        return Ok(());
    }
    Err(PlanError::UnknownKeyspace(name.to_owned()))
}

fn is_known(name: &str, catalog: &Catalog) -> bool {
    is_system(name) || catalog.keyspace(name).is_some()
}

/// Files of a tablet's machine.
fn files(lexed: &Lexed<'_>, kind: StatementKind) -> Result<(), PlanError> {
    if kind == StatementKind::Load {
        return Err(PlanError::Files("LOAD DATA"));
    }
    let is_ddl = matches!(kind, StatementKind::Ddl { .. });
    // Each statement comes here: what most tokens are is told at one look.
    for (at, token) in lexed.tokens().iter().enumerate() {
        match token.keyword {
            Some(K::Into) if matches!(lexed.keyword(at + 1), Some(K::Outfile | K::Dumpfile)) => {
                return Err(PlanError::Files("SELECT ... INTO OUTFILE or DUMPFILE"));
            }
            Some(K::Soname) if is_ddl => return Err(PlanError::Files("a function of a shared library")),
            _ => {}
        }
        let Some(before) = at.checked_sub(1) else { continue };
        if token.kind == TokenKind::LParen && lexed.is_word(before, "load_file") {
            return Err(PlanError::Files("LOAD_FILE()"));
        }
        if is_ddl
            && lexed.is_word(at, "directory")
            && (lexed.is_word(before, "data") || lexed.is_word(before, "index"))
        {
            return Err(PlanError::Files("DATA DIRECTORY or INDEX DIRECTORY"));
        }
    }
    Ok(())
}

/// Where the dots are.
fn dots<'a>(lexed: &'a Lexed<'_>) -> impl Iterator<Item = usize> + 'a {
    let tokens = lexed.tokens().iter().enumerate();
    tokens
        .filter(|(_, token)| token.kind == TokenKind::Dot)
        .map(|(at, _)| at)
}

/// `name.` that begins a qualified name, wherever it stands.
fn qualified(lexed: &Lexed<'_>, at: usize, class: &Classified, catalog: &Catalog) -> Result<(), PlanError> {
    let is_name = |name: &str| {
        lexed
            .name(at)
            .is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
    };
    if is_name("mysql") {
        let reads = matches!(class.kind, StatementKind::Select | StatementKind::Explain { .. });
        if reads && !class.is_locking_read && is_open(lexed, at + 2) {
            return Ok(());
        }
        return Err(PlanError::DatabaseDenied("mysql".into()));
    }
    // `database.function(...)`, and what the functions of sequences take. A package's are called alike.
    let calls = lexed.is(at + 3, TokenKind::LParen) && !lexed.options().mode.oracle();
    if !calls && !names_sequence(lexed, at) {
        return Ok(());
    }
    match text(lexed, at) {
        Some(name) if !is_known(&name, catalog) => Err(PlanError::UnknownKeyspace(name)),
        Some(_) | None => Ok(()),
    }
}

/// Tables of `mysql` that clients read for what is no secret: the names of time zones, the texts of HELP.
fn is_open(lexed: &Lexed<'_>, table: usize) -> bool {
    lexed.name(table).is_some_and(|name| {
        let begins = |with: &[u8]| {
            name.get(..with.len())
                .is_some_and(|n| n.eq_ignore_ascii_case(with))
        };
        begins(b"time_zone") || begins(b"help_")
    })
}

/// `NEXT VALUE FOR database.sequence`, `NEXTVAL(database.sequence)`.
fn names_sequence(lexed: &Lexed<'_>, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    let Some(word) = before.checked_sub(1) else {
        return false;
    };
    let value_for = lexed.is_keyword(before, K::For) && lexed.is_keyword(word, K::Value);
    let called = ["nextval", "lastval", "setval"];
    value_for || lexed.is(before, TokenKind::LParen) && called.iter().any(|name| lexed.is_word(word, name))
}

fn is_qualifier(lexed: &Lexed<'_>, at: usize) -> bool {
    lexed.kind(at).is_some_and(TokenKind::is_name) && !(at > 0 && lexed.is(at - 1, TokenKind::Dot))
}

/// Whether a statement gives a table or a variable this name: then `name.` may speak of that.
fn is_declared(lexed: &Lexed<'_>, name: &str) -> bool {
    let rows = ["new", "old"];
    let same = |at: usize| {
        lexed
            .name(at)
            .is_some_and(|n| n.eq_ignore_ascii_case(name.as_bytes()))
    };
    rows.iter().any(|row| row.eq_ignore_ascii_case(name))
        || (0..lexed.len()).any(|at| same(at) && !lexed.is(at + 1, TokenKind::Dot))
}

fn text(lexed: &Lexed<'_>, at: usize) -> Option<String> {
    String::from_utf8(lexed.name(at)?.into_owned()).ok()
}

/// Whether a DDL statement is about something of a whole server rather than of one database.
#[must_use]
pub fn is_of_server(kind: StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Ddl {
            object: DdlObject::Database | DdlObject::Other,
            verb: DdlKind::Create | DdlKind::Alter | DdlKind::Drop | DdlKind::Rename,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::catalog;
    use shardgate_sql::{LexOptions, classify, lex};

    fn reach(sql: &str) -> Result<(), PlanError> {
        let options = LexOptions::default();
        let lexed = lex(sql.as_bytes(), &options).unwrap();
        let class = classify(&lexed);
        within_reach(&lexed, &class, &catalog())?;
        tables_within_reach(&lexed, class.kind, &catalog())
    }

    #[test]
    fn what_belongs_to_keyspaces_passes() {
        for sql in [
            "SELECT x.a, EXTRACT(YEAR FROM x.b), TRIM(LEADING 'a' FROM x.c) FROM shop.t x, lookup.products",
            "SELECT Name FROM mysql.time_zone_name",
            "SELECT mysql, a FROM t WHERE s = 'mysql.user' /* mysql.user */",
            "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE t.a = t.a + 1, t.b = REPLACE(t.c, 'x', 'y')",
            "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = OLD.b",
            "CREATE PROCEDURE p() BEGIN DECLARE r ROW TYPE OF t; FOR r IN (SELECT a FROM t) DO SET @x = r.a; END FOR; END",
            "CREATE TABLE x (id INT, CHECK (x.id > 0), FOREIGN KEY (id) REFERENCES shop.t (id))",
            "CREATE VIEW v AS SELECT a.x FROM t a JOIN t b ON a.x = b.x, information_schema.tables i WHERE i.a = 1",
            "SELECT * FROM t a JOIN (t b, t c) ON a.x = b.x FOR UPDATE",
            "UPDATE t a, t b SET a.x = b.x WHERE a.x = 2",
            "LOCK TABLES t AS a READ, shop.t WRITE",
            "SHOW COLUMNS FROM t",
            "SELECT JSON_EXTRACT(t.doc, '$.a'), t.* FROM t",
            "DROP TABLE IF EXISTS shop.t",
            "SELECT sys.format_bytes(1)",
        ] {
            assert_eq!(reach(sql), Ok(()), "{sql}");
        }
    }

    #[test]
    fn the_servers_own_databases_do_not() {
        for sql in [
            "SELECT * FROM mysql.user",
            "SELECT * FROM `MySQL` . user",
            "CREATE TABLE mysql.zz (id INT)",
            "CREATE VIEW v AS SELECT * FROM mysql.user",
            "CREATE PROCEDURE p() SELECT * FROM mysql.user",
            "INSERT INTO mysql.time_zone VALUES (1)",
            "SELECT * FROM mysql.time_zone FOR UPDATE",
            "TRUNCATE performance_schema.accounts",
            "DROP VIEW sys.version",
            "CALL sys.ps_truncate_all_tables(FALSE)",
            "ALTER TABLE t RENAME TO sys.t",
            "LOCK TABLES t READ, performance_schema.accounts WRITE",
            "BEGIN NOT ATOMIC UPDATE performance_schema.setup_consumers SET enabled = 'NO'; END",
            "BEGIN NOT ATOMIC DELETE FROM performance_schema.setup_actors; END",
        ] {
            assert!(
                matches!(reach(sql), Err(PlanError::DatabaseDenied(_))),
                "{sql}: {:?}",
                reach(sql)
            );
        }
    }

    #[test]
    fn other_databases_of_a_server_are_unknown() {
        for sql in [
            "SELECT other.f(1)",
            "SELECT NEXTVAL(other.s)",
            "SELECT NEXT VALUE FOR other.s",
            "CREATE TABLE other.x (id INT)",
            "CREATE TABLE x LIKE other.t",
            "CREATE TABLE x (id INT) UNION = (t, other.t)",
            "CREATE TRIGGER tr BEFORE INSERT ON other.t FOR EACH ROW SET @a = 1",
            "CREATE INDEX i ON other.t (a)",
            "CREATE VIEW v AS SELECT other.id FROM (SELECT 1 AS id) other, other.t",
            "CREATE TABLE x SELECT * FROM (t, other.t)",
            "ALTER TABLE t RENAME other.t",
            "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE other.t",
            "RENAME TABLE t TO other.t",
            "DROP TABLE t, other.t",
            "CALL other.p()",
            "HANDLER other.t OPEN",
            "CHECK TABLE t, other.t",
            "DESCRIBE other.t",
            "LOCK TABLES t READ, other.t READ",
            "BEGIN NOT ATOMIC INSERT INTO other.t VALUES (1); END",
        ] {
            assert_eq!(
                reach(sql),
                Err(PlanError::UnknownKeyspace("other".into())),
                "{sql}"
            );
        }
    }

    #[test]
    fn files_of_a_tablet_are_not_for_clients() {
        for sql in [
            "SELECT LOAD_FILE('/etc/passwd')",
            "SET @a = load_file ('/etc/passwd')",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "SELECT a INTO DUMPFILE '/tmp/x' FROM t",
            "LOAD DATA INFILE 'f' INTO TABLE t",
            "LOAD XML LOCAL INFILE 'f' INTO TABLE t",
            "CREATE FUNCTION f RETURNS INTEGER SONAME 'x.so'",
            "CREATE TABLE x (id INT) DATA DIRECTORY = '/tmp'",
        ] {
            assert!(matches!(reach(sql), Err(PlanError::Files(_))), "{sql}");
        }
    }
}
