//! Texts that change on the way: session functions, the moment, names of databases.

use super::*;

#[test]
fn session_functions_become_literals_under_their_own_names() {
    let s = session("shop");
    let text = |sql: &str| s.legs(sql)[0].split_once(": ").unwrap().1.to_owned();
    for (sql, sent) in [
        (
            "SELECT LAST_INSERT_ID()",
            "SELECT CAST(7 AS UNSIGNED) AS `LAST_INSERT_ID()`",
        ),
        ("select  database( ) , 1", "select  'shop' AS `database( )` , 1"),
        ("SELECT CONNECTION_ID() AS c", "SELECT CAST(12 AS UNSIGNED) AS c"),
        ("SELECT ROW_COUNT() c", "SELECT CAST(-1 AS SIGNED) c"),
        ("SELECT CURRENT_USER", "SELECT 'root@%' AS `CURRENT_USER`"),
        (
            "SELECT CURRENT_USER(), version()",
            "SELECT 'root@%' AS `CURRENT_USER()`, '10.11.6-MariaDB' AS `version()`",
        ),
        (
            "SELECT USER() + 1 FROM t WHERE id = 1",
            "SELECT 'root@10.0.0.1' + 1 AS `USER() + 1` FROM t WHERE id = 1",
        ),
        (
            "SELECT (SELECT FOUND_ROWS())",
            "SELECT (SELECT CAST(3 AS UNSIGNED) AS `FOUND_ROWS()`) AS `(SELECT FOUND_ROWS())`",
        ),
        (
            "SELECT LAST_INSERT_ID(5), t.user FROM t WHERE id = 1",
            "SELECT LAST_INSERT_ID(5), t.user FROM t WHERE id = 1",
        ),
        (
            "SELECT 'DATABASE()', `DATABASE` FROM t WHERE id = 1",
            "SELECT 'DATABASE()', `DATABASE` FROM t WHERE id = 1",
        ),
        ("DO LAST_INSERT_ID()", "DO CAST(7 AS UNSIGNED)"),
        (
            "UPDATE t SET v = LAST_INSERT_ID(), g = USER() WHERE id = 1",
            "UPDATE t SET v = CAST(7 AS UNSIGNED), g = 'root@10.0.0.1' WHERE id = 1",
        ),
    ] {
        assert_eq!(text(sql), sent);
    }
    let long = format!("SELECT CONCAT(DATABASE(), '{}')", "x".repeat(300));
    assert!(
        !text(&long).contains(" AS "),
        "an alias of that length would be refused"
    );
    let mut odd = session("shop");
    odd.facts.database = Some("it's \\ ü".into());
    assert_eq!(
        odd.legs("SELECT SCHEMA() x"),
        ["s0: SELECT _utf8mb4 x'697427732000'".replace("2000'", "205c20c3bc' x")]
    );
    odd.facts.database = None;
    assert_eq!(odd.legs("SELECT DATABASE()"), ["s0: SELECT NULL AS `DATABASE()`"]);
}

#[test]
fn the_moment_is_one_for_all_legs_and_left_alone_on_one() {
    let s = session("shop");
    let first = |sql: &str| s.legs(sql)[0].split_once(": ").unwrap().1.to_owned();
    assert_eq!(
        first("SELECT NOW() FROM t WHERE id = 4"),
        "SELECT NOW() FROM t WHERE id = 4"
    );
    for (sql, sent) in [
        (
            "SELECT id FROM t WHERE k < NOW()",
            "SELECT id FROM t WHERE k < FROM_UNIXTIME(1732924800)",
        ),
        (
            "SELECT NOW(3) FROM t",
            "SELECT FROM_UNIXTIME(1732924800.123) AS `NOW(3)` FROM t",
        ),
        (
            "SELECT CURRENT_TIMESTAMP x FROM t",
            "SELECT FROM_UNIXTIME(1732924800) x FROM t",
        ),
        (
            "SELECT CURDATE() d, CURRENT_TIME(6) c FROM t",
            "SELECT DATE(FROM_UNIXTIME(1732924800)) d, TIME(FROM_UNIXTIME(1732924800.123456)) c FROM t",
        ),
        (
            "SELECT UTC_TIMESTAMP() AS u FROM t",
            "SELECT TIMESTAMP'2024-11-30 00:00:00' AS u FROM t",
        ),
        (
            "SELECT UNIX_TIMESTAMP() u, UNIX_TIMESTAMP(g) w FROM t",
            "SELECT 1732924800 u, UNIX_TIMESTAMP(g) w FROM t",
        ),
        (
            "SELECT NOW() - INTERVAL 1 DAY FROM t",
            "SELECT FROM_UNIXTIME(1732924800) - INTERVAL 1 DAY AS `NOW() - INTERVAL 1 DAY` FROM t",
        ),
    ] {
        assert_eq!(first(sql), sent);
    }
    assert_eq!(s.shards("SELECT NOW(k) FROM t"), UNSUPPORTED);
}

#[test]
fn the_keyspace_is_called_by_each_shards_own_database() {
    let s = session("mall");
    assert_eq!(
        s.legs("SELECT mall.t.id, g FROM mall.t WHERE mall.t.k = 'mall.t' ORDER BY mall.t.v")[..2],
        [
            "s0: SELECT `mall_00`.t.id, g, t.v AS __sg_key_0 FROM `mall_00`.t WHERE `mall_00`.t.k = 'mall.t' ORDER BY `mall_00`.t.v",
            "s1: SELECT `mall_01`.t.id, g, t.v AS __sg_key_0 FROM `mall_01`.t WHERE `mall_01`.t.k = 'mall.t' ORDER BY `mall_01`.t.v",
        ]
    );
    for (sql, sent) in [
        (
            "SELECT * FROM t mall WHERE mall.id = 1",
            "s1: SELECT * FROM t mall WHERE mall.id = 1",
        ),
        (
            "UPDATE mall.t SET mall.t.v = 1 WHERE id = 2",
            "s2: UPDATE `mall_02`.t SET `mall_02`.t.v = 1 WHERE id = 2",
        ),
        (
            "DELETE FROM `mall`.t WHERE id = 3",
            "s3: DELETE FROM `mall_03`.t WHERE id = 3",
        ),
        (
            "INSERT INTO mall.t (id) VALUES (4)",
            "s0: INSERT INTO `mall_00`.t (id) VALUES (4)",
        ),
        (
            "SELECT mall.t.* FROM mall.t WHERE id = 1",
            "s1: SELECT `mall_01`.t.* FROM `mall_01`.t WHERE id = 1",
        ),
    ] {
        assert_eq!(s.legs(sql), [sent]);
    }
    assert_eq!(
        session("legacy").legs("SELECT legacy.x.a FROM legacy.x JOIN y ON y.b = legacy.x.b"),
        ["-: SELECT `old_db`.x.a FROM `old_db`.x JOIN y ON y.b = `old_db`.x.b"]
    );
    assert_eq!(
        session("shop").legs("SELECT * FROM shop.t WHERE id = 1"),
        ["s1: SELECT * FROM shop.t WHERE id = 1"]
    );
}

#[test]
fn ddl_goes_to_every_shard_under_its_own_name() {
    let legs = session("mall").legs("ALTER TABLE mall.t ADD COLUMN x INT");
    assert_eq!(legs.len(), 4);
    assert_eq!(legs[3], "s3: ALTER TABLE `mall_03`.t ADD COLUMN x INT");
    let bound = session("shop").bind("CREATE TABLE x (id INT)").unwrap();
    assert!(bound.is_ddl && !bound.multi_shard_write && bound.to == BoundTo::Every);
    check(
        &session("shop"),
        &[
            ("TRUNCATE TABLE t", ALL),
            ("CREATE TEMPORARY TABLE x (id INT)", "SG2001 1235"),
            ("CREATE TABLE x SELECT * FROM t", "SG2001 1235"),
            ("CREATE VIEW x AS SELECT * FROM t", "SG2001 1235"),
            ("DROP DATABASE shop", "SG2002 1235"),
            ("DROP TABLE lookup.x", "-"),
            ("RENAME TABLE lookup.x TO shop.x", "SG2006 1235"),
        ],
    );
}

/// Text is bytes: what is not UTF-8 goes out as it came in.
#[test]
fn bytes_that_are_no_text_pass_a_splice() {
    let bound = session("shop")
        .bind_bytes(b"SELECT '\xff\xfe', LAST_INSERT_ID() FROM t WHERE g = '\xe4'")
        .unwrap();
    let sent = b"SELECT '\xff\xfe', CAST(7 AS UNSIGNED) AS `LAST_INSERT_ID()` FROM t WHERE g = '\xe4'";
    assert_eq!(&bound.legs[0].sql[..], sent);
}

#[test]
fn session_functions_outside_of_plans_become_literals_too() {
    let facts = session("shop").facts;
    let spliced = |sql: &'static str| {
        let sql = Bytes::from_static(sql.as_bytes());
        let lexed = lex(&sql, &LexOptions::default()).unwrap();
        let spliced = with_session_facts(&sql, &lexed, &facts);
        (
            spliced.as_ptr() == sql.as_ptr(),
            String::from_utf8(spliced.to_vec()).unwrap(),
        )
    };
    assert_eq!(
        spliced("SET @a = LAST_INSERT_ID(), @b = database()").1,
        "SET @a = CAST(7 AS UNSIGNED), @b = 'shop'"
    );
    assert!(
        spliced("SET @a = 1").0,
        "nothing to splice leaves the buffer itself"
    );
}

/// What a client prepares has its own columns and placeholders, whatever the legs will get.
#[test]
fn preparing_keeps_the_clients_columns_and_placeholders() {
    let s = session("mall");
    let sql = Bytes::from_static(b"SELECT g, DATABASE() FROM mall.t WHERE v > ? ORDER BY k LIMIT ?, ?");
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    let input = PlanInput {
        statement: &lexed,
        catalog: &s.catalog,
        keyspace: s.keyspace.as_ref(),
        shard: None,
    };
    let plan = plan(&input).unwrap();
    assert_eq!(plan.param_count(), 3);
    let leg = plan
        .probe(&BindInput {
            sql: &sql,
            statement: &lexed,
            params: &[],
            facts: &s.facts,
            now: Duration::ZERO,
            charset: "utf8mb4",
            prefer: None,
        })
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&leg.sql),
        "SELECT g, 'mall' AS `DATABASE()` FROM `mall_00`.t WHERE v > ? ORDER BY k LIMIT ?, ?"
    );
}
