//! What clients are told about schemata, where a shard's database is called otherwise than its keyspace and its server
//! holds other databases too.

use mysql_async::Row;
use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Fixture, Gateway, Pair, answer};

async fn scenario() -> (Fixture, Gateway, Pair) {
    let fixture = Fixture::scenario().await;
    fixture
        .everywhere(&[
            "CREATE TABLE child (id BIGINT PRIMARY KEY, t_id BIGINT, FOREIGN KEY (t_id) REFERENCES t (id))",
            "CREATE VIEW seen AS SELECT id FROM t",
        ])
        .await;
    let gateway = fixture.gateway();
    let pair = fixture.pair(&gateway).await;
    (fixture, gateway, pair)
}

#[tokio::test]
async fn information_schema_knows_the_keyspace_and_no_other_database_of_a_server() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let own = "table_schema <> 'information_schema'";
    for (sql, expected) in [
        (
            format!("SELECT DISTINCT table_schema FROM information_schema.tables WHERE {own}"),
            KEYSPACE,
        ),
        (
            format!("SELECT COUNT(*) FROM information_schema.tables t WHERE t.table_schema LIKE '{KEYSPACE}'"),
            "3",
        ),
        (
            format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE '{KEYSPACE}' = TABLE_SCHEMA"),
            "3",
        ),
        (
            "SELECT MIN(CONCAT(c.table_schema, '.', c.column_name)) FROM information_schema.columns c JOIN \
             information_schema.tables t USING (table_schema, table_name) WHERE t.table_schema = DATABASE() \
             AND t.table_name = 'child'"
                .to_owned(),
            &format!("{KEYSPACE}.id"),
        ),
        (
            "SELECT CONCAT(table_schema, constraint_schema, referenced_table_schema) FROM \
             information_schema.key_column_usage WHERE referenced_table_name = 't'"
                .to_owned(),
            &KEYSPACE.repeat(3),
        ),
        (
            "SELECT view_definition LIKE '%shard%' FROM information_schema.views WHERE table_schema = SCHEMA()"
                .to_owned(),
            "0",
        ),
        (
            "SELECT GROUP_CONCAT(schema_name ORDER BY schema_name) FROM information_schema.schemata".to_owned(),
            &format!("information_schema,{KEYSPACE}"),
        ),
    ] {
        let got = answer::ok(&mut pair.gateway, &sql).await.single();
        // The harness may call the keyspace by a name that sorts first.
        let mut parts: Vec<&str> = got.split(',').collect();
        parts.sort_unstable();
        let mut wanted: Vec<&str> = expected.split(',').collect();
        wanted.sort_unstable();
        assert_eq!(parts, wanted, "{sql}");
    }
}

#[tokio::test]
async fn a_prepared_statement_may_ask_for_the_keyspace() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let sql = "SELECT table_name, table_schema FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";
    let conn = &mut pair.gateway;
    for (schema, found) in [(KEYSPACE, 1), ("mysql", 0)] {
        let rows: Vec<Row> = conn.exec(sql, (schema, "t")).await.unwrap();
        assert_eq!(rows.len(), found, "{schema}");
        for row in &rows {
            // Called as the statement calls it: programs look results up by these names.
            assert_eq!(row.columns_ref()[0].name_str(), "table_name");
            assert_eq!(row.get::<String, _>(1).unwrap(), KEYSPACE);
        }
    }
}

#[tokio::test]
async fn a_session_may_choose_information_schema() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let conn = &mut pair.gateway;
    answer::ok(conn, "USE information_schema").await;
    let sql = format!("SELECT COUNT(*) FROM tables WHERE table_schema = '{KEYSPACE}'");
    assert_eq!(answer::ok(conn, &sql).await.single(), "3");
    let tables = answer::ok(conn, "SHOW TABLES LIKE 'SCHEMATA'").await.cells();
    assert_eq!(tables, [["SCHEMATA"]]);
    let columns = answer::ok(conn, "DESCRIBE schemata").await.cells();
    assert_eq!(columns[1][0], "SCHEMA_NAME");
}

#[tokio::test]
async fn one_servers_own_tables_need_a_chosen_shard() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let conn = &mut pair.gateway;
    let refused = [
        "SELECT * FROM information_schema.processlist",
        "SELECT t.v FROM t JOIN information_schema.tables",
        "SELECT COUNT(*) FROM performance_schema.file_instances",
        "SHOW GRANTS",
        "SHOW MASTER STATUS",
        "SHOW ENGINE INNODB STATUS",
    ];
    for sql in refused {
        let error = answer::text(conn, sql).await.unwrap_err();
        assert_eq!(error.errno, 1235, "{sql}");
    }
    answer::ok(conn, &format!("USE `{KEYSPACE}:s1`")).await;
    for others in ["processlist", "user_privileges"] {
        let sql = format!("SELECT * FROM information_schema.{others}");
        assert_eq!(answer::refused(conn, &sql).await.errno, 1235, "{sql}");
    }
    let sql = "SELECT COUNT(*) >= 0 FROM performance_schema.file_instances";
    assert_eq!(answer::ok(conn, sql).await.single(), "1");
    let sql =
        "SELECT COUNT(*) FROM t RIGHT JOIN information_schema.tables s ON FALSE WHERE s.table_name = 't'";
    assert_eq!(answer::ok(conn, sql).await.single(), "1");
}

#[tokio::test]
async fn show_names_the_keyspace() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let conn = &mut pair.gateway;
    for (sql, expected) in [
        (format!("SHOW CREATE DATABASE {KEYSPACE}"), KEYSPACE),
        (
            "SHOW DATABASES WHERE `Database` = DATABASE()".to_owned(),
            KEYSPACE,
        ),
        (format!("SHOW OPEN TABLES FROM {KEYSPACE} LIKE 't'"), KEYSPACE),
        (format!("SHOW COLUMNS FROM t FROM {KEYSPACE} LIKE 'id'"), "id"),
        (format!("SHOW INDEX FROM t IN {KEYSPACE}"), "t"),
        (format!("SHOW TABLE STATUS FROM {KEYSPACE} LIKE 'chi%'"), "child"),
    ] {
        answer::ok(conn, "SELECT COUNT(*) FROM t").await;
        let answer = answer::ok(conn, &sql).await;
        assert_eq!(answer.cells()[0][0], expected, "{sql}");
        assert!(!format!("{:?}", answer.cells()).contains("shard0"), "{sql}");
    }
}

#[tokio::test]
async fn a_session_may_choose_a_database_of_the_servers_own() {
    let (_fixture, _gateway, mut pair) = scenario().await;
    let conn = &mut pair.gateway;
    for chosen in [None, Some(format!("USE `{KEYSPACE}:s1`"))] {
        for (database, table, query) in [
            (
                "information_schema",
                "COLLATIONS",
                "SELECT COUNT(*) > 5 FROM collations",
            ),
            (
                "performance_schema",
                "threads",
                "SELECT COUNT(*) >= 0 FROM threads",
            ),
            ("sys", "version", "SELECT COUNT(*) FROM version"),
        ] {
            if let Some(shard) = &chosen {
                answer::ok(conn, shard).await;
            }
            answer::ok(conn, &format!("USE {database}")).await;
            assert_eq!(answer::ok(conn, "SELECT DATABASE()").await.single(), database);
            let sql = format!("SHOW TABLES LIKE '{table}'");
            let shown = answer::ok(conn, &sql).await;
            assert_eq!(shown.cells(), [[table]], "{database}");
            assert_eq!(shown.columns[0].name, format!("Tables_in_{database} ({table})"));
            let full = answer::ok(conn, &format!("SHOW FULL TABLES FROM {database} LIKE '{table}'")).await;
            assert_eq!(full.cells()[0][0], table);
            answer::ok(conn, &format!("DESCRIBE {table}")).await;
            answer::ok(conn, &format!("SHOW COLUMNS FROM {table}")).await;
            match answer::text(conn, query).await {
                Ok(found) => assert_eq!(found.single(), "1", "{query}"),
                // They tell of one server among many.
                Err(e) => assert_eq!((database != "information_schema", e.errno), (true, 1235), "{e:?}"),
            }
            let rows = conn.prep(query).await.map(|_| ());
            assert_eq!(
                rows.is_ok(),
                database == "information_schema",
                "{query}: {rows:?}"
            );
        }
    }
}
