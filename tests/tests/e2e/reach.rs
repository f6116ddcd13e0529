//! What lies on a tablet's server beside the shards' databases is not for clients of the gateway, whatever rights its own
//! user has there.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fixture, Layout, MariaDb, answer};

async fn refusals(conn: &mut Conn, other: &str) {
    for (sql, errno) in [
        ("SELECT * FROM mysql.user", 1044),
        ("SELECT * FROM (SELECT * FROM `mysql`.`global_priv`) x", 1044),
        ("WITH x AS (SELECT * FROM mysql.user) SELECT * FROM x", 1044),
        ("CREATE TABLE mysql.zz (id INT)", 1044),
        ("CREATE VIEW seen AS SELECT * FROM mysql.user", 1044),
        ("CREATE PROCEDURE p() SELECT * FROM mysql.user", 1044),
        ("INSERT INTO mysql.user VALUES (1)", 1044),
        ("UPDATE mysql.user SET a = 1", 1044),
        (
            "UPDATE performance_schema.setup_consumers SET enabled = 'NO'",
            1044,
        ),
        ("DELETE FROM performance_schema.setup_actors", 1044),
        ("TRUNCATE performance_schema.accounts", 1044),
        ("LOCK TABLES mysql.user READ", 1044),
        ("HANDLER mysql.user OPEN", 1044),
        ("DESCRIBE mysql.user", 1044),
        ("SHOW CREATE TABLE mysql.user", 1044),
        ("SHOW TABLES FROM mysql", 1044),
        ("SHOW COLUMNS FROM user FROM mysql", 1044),
        ("SHOW CREATE DATABASE mysql", 1044),
        ("USE mysql", 1044),
        ("PREPARE s FROM 'SELECT * FROM mysql.user'", 1044),
        ("EXECUTE IMMEDIATE 'DROP TABLE mysql.user'", 1044),
        ("EXECUTE IMMEDIATE CONCAT('SELECT * FROM mysql','.user')", 1235),
        ("EXECUTE IMMEDIATE 'SELECT * FROM my' 'sql.user'", 1044),
        ("PREPARE s FROM 0x53454C4543542031", 1235),
        ("PREPARE s FROM _latin1'SELECT 1'", 1235),
        ("EXECUTE IMMEDIATE 'SELECT ''open'", 1064),
        ("EXECUTE IMMEDIATE 'USE mysql'", 1235),
        ("EXECUTE IMMEDIATE 'KILL 12'", 1235),
        ("EXECUTE IMMEDIATE 'SHOW CREATE USER'", 1235),
        ("EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC KILL 12; END'", 1235),
        ("EXECUTE IMMEDIATE @never_set", 1235),
        ("PREPARE s FROM 'DROP DATABASE x'", 1235),
        (
            "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DROP TABLE mysql.user'; END",
            1235,
        ),
        ("BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT('a', 'b'); END", 1235),
        ("BEGIN NOT ATOMIC SET GLOBAL read_only = 0; END", 1235),
        ("BEGIN NOT ATOMIC SHUTDOWN; END", 1235),
        ("BEGIN NOT ATOMIC GRANT ALL ON *.* TO nobody; END", 1235),
        ("BEGIN NOT ATOMIC KILL 12; END", 1235),
        ("BEGIN NOT ATOMIC DROP DATABASE OTHER; END", 1235),
        ("CREATE PROCEDURE p(a TEXT) EXECUTE IMMEDIATE a", 1235),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SET GLOBAL a = 1", 1235),
        ("SHOW GRANTS", 1235),
        ("SHOW CREATE USER", 1235),
        ("SHOW CREATE USER CURRENT_USER()", 1235),
        ("SHOW RELAYLOG EVENTS", 1235),
        ("EXPLAIN FOR CONNECTION 1", 1235),
        ("SELECT * FROM information_schema.processlist", 1235),
        ("SELECT * FROM information_schema.user_privileges", 1235),
        ("SELECT * FROM information_schema.applicable_roles", 1235),
        ("SELECT * FROM performance_schema.threads", 1235),
        ("SELECT * FROM performance_schema.accounts", 1235),
        (
            "CREATE VIEW seen AS SELECT * FROM information_schema.processlist",
            1235,
        ),
        ("PREPARE s FROM 'SET GLOBAL max_connections = 9'", 1235),
        ("DROP DATABASE OTHER", 1235),
        ("CREATE DATABASE IF NOT EXISTS OTHER", 1235),
        ("ALTER DATABASE OTHER CHARACTER SET utf8mb4", 1235),
        (
            "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
            1235,
        ),
        ("SELECT * FROM OTHER.secret", 1049),
        ("SELECT OTHER.f(1)", 1049),
        ("SELECT * FROM t WHERE v IN (SELECT v FROM OTHER.secret)", 1049),
        ("INSERT INTO t SELECT * FROM OTHER.secret", 1049),
        ("CREATE TABLE OTHER.zz (id INT)", 1049),
        ("CREATE TABLE zz LIKE OTHER.secret", 1049),
        ("ALTER TABLE t RENAME OTHER.t", 1049),
        ("RENAME TABLE t TO OTHER.t", 1049),
        ("DROP TABLE t, OTHER.secret", 1049),
        ("CALL OTHER.p()", 1049),
        ("CHECK TABLE OTHER.secret", 1049),
        ("SHOW TABLES FROM OTHER", 1049),
        ("SHOW CREATE TABLE OTHER.secret", 1049),
        ("DESCRIBE OTHER.secret", 1049),
        ("BEGIN NOT ATOMIC SELECT * FROM OTHER.secret; END", 1049),
        ("SELECT LOAD_FILE('/etc/hostname')", 1235),
        ("SET @a = LOAD_FILE('/etc/hostname')", 1235),
        ("SELECT * FROM t INTO OUTFILE '/tmp/shardgate-never'", 1235),
        ("LOAD DATA INFILE '/etc/hostname' INTO TABLE t", 1235),
        ("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t", 1235),
    ] {
        let sql = sql.replace("OTHER", other);
        let error = answer::refused(conn, &sql).await;
        assert_eq!(error.errno, errno, "{sql}: {error:?}");
        let prepared = conn.prep(&sql).await;
        let local = sql.starts_with("SHOW") || sql.starts_with("USE");
        assert!(prepared.is_err() || local, "prepared: {sql}");
    }
}

#[tokio::test]
async fn other_databases_of_a_server_are_out_of_reach() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let other = MariaDb::shared(0).create_database("other").await;
    other.run(&["CREATE TABLE secret (id INT, v INT)"]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    refusals(&mut conn, &other.name).await;
    for sql in [
        "SELECT COUNT(*) FROM mysql.time_zone_name",
        "SELECT COUNT(*) FROM information_schema.tables",
        "SELECT COUNT(*) >= 0 FROM performance_schema.file_instances",
        "CREATE VIEW fine AS SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE EXTRACT(YEAR FROM a.g) IS NULL",
        "CREATE PROCEDURE fine_too() BEGIN DECLARE n INT; SELECT a.v INTO n FROM t a, t b WHERE a.id = b.id LIMIT 1; END",
        "PREPARE s FROM 'SELECT x.id FROM t x'",
        "EXECUTE s",
    ] {
        answer::ok(&mut conn, sql).await;
    }
}

#[tokio::test]
async fn a_prepared_text_is_run_only_if_it_is_known() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET @s = CONCAT('SELECT ', '''it''''s é''')").await;
    for _ in 0..2 {
        answer::ok(&mut conn, "PREPARE p FROM @s").await;
        assert_eq!(answer::ok(&mut conn, "EXECUTE p").await.single(), "it's é");
    }
    answer::ok(&mut conn, "SET @s = 'SELECT ? + 1', @n = 1").await;
    let sum = answer::ok(&mut conn, "EXECUTE IMMEDIATE @s USING @n").await;
    assert_eq!(sum.single(), "2");
    answer::ok(&mut conn, "SET @s = 'SELECT * FROM mysql.user'").await;
    let error = answer::refused(&mut conn, "PREPARE p FROM @s").await;
    assert_eq!(error.errno, 1044, "{error}");

    // What a function made of the variable meanwhile is not what was looked at.
    answer::ok(
        &mut conn,
        "CREATE FUNCTION sneaky() RETURNS INT BEGIN SET @s = 'SELECT 666'; RETURN 1; END",
    )
    .await;
    answer::ok(&mut conn, "SET @s = 'SELECT 5'").await;
    answer::ok(&mut conn, "SELECT sneaky()").await;
    assert_eq!(answer::ok(&mut conn, "EXECUTE IMMEDIATE @s").await.single(), "5");

    answer::ok(&mut conn, "SELECT 'SELECT * FROM mysql.user' INTO @s").await;
    for sql in ["PREPARE p FROM @s", "EXECUTE IMMEDIATE @s"] {
        let error = answer::refused(&mut conn, sql).await;
        assert_eq!(error.errno, 1235, "{error}");
    }
}

#[tokio::test]
async fn a_chosen_database_of_the_servers_own_is_read_only() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn("performance_schema").await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM file_instances").await;
    for (sql, errno) in [
        ("SELECT * FROM threads", 1235),
        ("UPDATE setup_consumers SET enabled = 'NO'", 1044),
        ("DELETE FROM setup_actors", 1044),
        ("INSERT INTO setup_actors VALUES ('%', '%', '%')", 1046),
        ("TRUNCATE accounts", 1046),
        ("CREATE TABLE zz (id INT)", 1046),
    ] {
        let error = answer::refused(&mut conn, sql).await;
        assert_eq!(error.errno, errno, "{sql}: {error:?}");
    }
    answer::ok(&mut conn, "USE sys").await;
    answer::ok(&mut conn, "SELECT * FROM version").await;
}

#[tokio::test]
async fn a_chosen_shard_gives_no_more() {
    let fixture = Fixture::scenario().await;
    let other = MariaDb::shared(0).create_database("other").await;
    other.run(&["CREATE TABLE secret (id INT, v INT)"]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, &format!("USE `{KEYSPACE}:s1`")).await;
    refusals(&mut conn, &other.name).await;
}

#[tokio::test]
async fn nobody_logs_in_to_a_database_of_the_servers_own_accounts() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let error = gateway.cli("mysql").run("SELECT 1").await;
    assert!(error.stderr.contains("1044"), "{error:?}");
}
