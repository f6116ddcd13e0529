//! Keyspaces, targets and tables by name.

use super::*;

#[test]
fn a_target_shard_takes_everything_untouched() {
    let s = session("shop").target("s2");
    for sql in [
        "SELECT * FROM t WHERE id = 1",
        "SELECT k, COUNT(*) FROM t GROUP BY k",
        "INSERT INTO t (k) VALUES (1)",
        "UPDATE t SET id = 5",
        "CALL p()",
        "ANALYZE TABLE t",
        "CREATE TABLE x (id INT)",
    ] {
        assert_eq!(s.legs(sql), [format!("s2: {sql}")]);
    }
    assert_eq!(
        session("shop").target("s9").shards("SELECT * FROM t"),
        "SG2016 1105"
    );
}

#[test]
fn an_unsharded_keyspace_takes_everything() {
    let s = session("lookup");
    for sql in [
        "SELECT DISTINCT a FROM x GROUP BY b",
        "CALL p()",
        "SELECT x.a FROM x, y",
        "LOAD DATA INFILE 'f' INTO TABLE x",
    ] {
        assert_eq!(s.legs(sql), [format!("-: {sql}")]);
    }
}

#[test]
fn tables_are_found_in_the_keyspace_they_name() {
    check(
        &session("lookup"),
        &[
            ("SELECT * FROM shop.t WHERE id = 1", "s1"),
            ("SELECT * FROM products", "-"),
            ("SELECT * FROM shop.t, products", "SG2006 1235"),
            (
                "SELECT * FROM shop.t JOIN ranges.t x ON x.id = t.id",
                "SG2006 1235",
            ),
            ("SELECT * FROM nowhere.t", "SG2004 1049"),
            ("SELECT * FROM information_schema.tables", "-"),
            ("CALL shop.p()", "SG2002 1235"),
        ],
    );
    check(
        &session("shop"),
        &[
            ("SELECT * FROM nothing", "SG2003 1146"),
            ("SELECT * FROM T", "SG2003 1146"),
            ("INSERT INTO nothing (id) VALUES (1)", "SG2003 1146"),
            ("SELECT * FROM lookup.products", "-"),
            (
                "SELECT * FROM information_schema.tables WHERE table_schema = 'shop'",
                "any",
            ),
            ("SELECT 1", "any"),
            ("SELECT 1 FROM DUAL", "any"),
            ("SELECT COUNT(*), MAX(1)", "any"),
            ("CALL p()", "SG2001 1235"),
            ("LOCK TABLES t READ", "SG2001 1235"),
            ("ANALYZE TABLE t", "SG2001 1235"),
            ("PREPARE s FROM 'SELECT 1'", "SG2001 1235"),
        ],
    );
}

#[test]
fn without_a_keyspace_names_must_be_qualified() {
    let mut s = session("shop");
    s.keyspace = None;
    check(
        &s,
        &[
            ("SELECT * FROM t", "SG2005 1046"),
            ("SELECT * FROM shop.t WHERE id = 3", "s3"),
            ("SELECT 1", "-"),
            ("INSERT INTO shop.t (id) VALUES (2)", "s2"),
        ],
    );
}

/// Where a shard's database is called otherwise, the servers' own tables know it by that name; `information_schema` is
/// given the keyspaces' names before it comes here.
#[test]
fn the_database_next_to_system_tables_is_the_shards_own() {
    for (sql, sent) in [
        (
            "SELECT 1 FROM performance_schema.file_instances WHERE file_name = DATABASE()",
            "s0: SELECT 1 FROM performance_schema.file_instances WHERE file_name = 'mall_00'",
        ),
        (
            "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()",
            "s0: SELECT 1 FROM information_schema.tables WHERE table_schema = 'mall'",
        ),
    ] {
        assert_eq!(session("mall").legs(sql), [sent]);
    }
}

#[test]
fn any_shard_is_the_one_the_session_already_holds() {
    let sql = Bytes::from_static(b"SELECT 1");
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    let catalog = catalog();
    let keyspace = KeyspaceName::from("shop");
    let input = PlanInput {
        statement: &lexed,
        catalog: &catalog,
        keyspace: Some(&keyspace),
        shard: None,
    };
    let held = ShardId::new("shop", "s2");
    let bound = plan(&input).unwrap().bind(&BindInput {
        sql: &sql,
        statement: &lexed,
        params: &[],
        facts: &SessionFacts::default(),
        now: Duration::ZERO,
        charset: "utf8mb4",
        prefer: Some(&held),
    });
    assert_eq!(bound.unwrap().legs[0].shard, held);
}

#[test]
fn what_every_shard_answers_alike_goes_to_one() {
    check(
        &session("shop"),
        &[
            ("SHOW COLUMNS FROM t", "any"),
            ("SHOW CREATE TABLE ranges.t", "any"),
            ("DESCRIBE t", "any"),
        ],
    );
    assert_eq!(session("mall").legs("DESC mall.t"), ["s0: DESC `mall_00`.t"]);
    assert_eq!(
        session("shop").target("s3").legs("SHOW TABLES"),
        ["s3: SHOW TABLES"]
    );
}

/// Two sessions that ask for the same lock must ask the same server.
#[test]
fn locks_and_sequences_are_always_the_same_shards() {
    let mut s = session("shop");
    check(
        &s,
        &[
            ("SELECT GET_LOCK('a', 1)", "s0"),
            ("DO RELEASE_LOCK('a')", "s0"),
            ("SELECT NEXTVAL(s)", "s0"),
            ("SELECT NEXT VALUE FOR s", "s0"),
        ],
    );
    s.mode = SqlMode::parse("ORACLE").unwrap();
    assert_eq!(s.shards("SELECT * FROM t WHERE id = 1"), "SG2002 1235");
}

/// A stored function reads the tables of whichever shard it runs on.
#[test]
fn a_stored_function_runs_only_where_the_sharding_column_sends_it() {
    const REFUSED: &str = "SG2001 1235";
    check(
        &session("shop"),
        &[
            ("SELECT total()", REFUSED),
            ("SELECT shop.total()", REFUSED),
            ("SELECT `upper`('a')", REFUSED),
            ("DO total()", REFUSED),
            ("SELECT GET_LOCK('a', 1), total()", REFUSED),
            ("SELECT total() FROM countries", REFUSED),
            (
                "SELECT total(MAX(id)) FROM t WHERE id IS NULL AND id = 1 AND 1 = 0",
                REFUSED,
            ),
            ("SELECT total(id) FROM t", REFUSED),
            ("UPDATE t SET v = total()", REFUSED),
            ("SELECT total(id) FROM t WHERE id = 5", "s1"),
            ("UPDATE t SET v = total() WHERE id = 5", "s1"),
            ("SELECT ST_Area(ST_Buffer(POINT(1, 1), 2)), CRC32C('a')", "any"),
            ("SELECT RELEASE_LOCK('a')", "s0"),
            (
                "WITH x (a) AS (SELECT 1) SELECT y.b FROM (SELECT a FROM x) AS y (b)",
                "any",
            ),
            ("SELECT JSON_VALUE('{}', '$.a'), CAST(1 AS CHAR(5))", "any"),
            ("SELECT UPPER(name) FROM countries", "any"),
        ],
    );
    check(&session("lookup"), &[("SELECT total()", "-")]);
    check(&session("shop").target("s2"), &[("SELECT total()", "s2")]);
}
