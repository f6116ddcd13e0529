//! `USE keyspace@replica` on real replication.

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, head};
use shardgate_tests::{Database, Gateway, MariaDb, Replicated, answer};

/// Shards `s0` and `s1` in two databases of one replicated pair of servers.
async fn pair() -> (Replicated, Vec<Database>, Gateway) {
    let servers = Replicated::start(2).await;
    let mut shards = Vec::new();
    let mut sections = Vec::new();
    for shard in ["s0", "s1"] {
        let database = servers.create_database(shard).await;
        database.run(&[TABLE_T]).await;
        let tablet = |alias: &str, server: &MariaDb, role: &str| {
            let address = server.addr();
            format!("{{ alias = \"{shard}-{alias}\", address = \"{address}\", role = \"{role}\" }}")
        };
        sections.push(format!(
            "[[keyspaces.{KEYSPACE}.shards]]\nname = \"{shard}\"\ndatabase = \"{}\"\ntablets = [{}, {}]\n",
            database.name,
            tablet("a", servers.server(0), "primary"),
            tablet("b", servers.server(1), "replica"),
        ));
        shards.push(database);
    }
    let file = format!(
        "{}[keyspaces.{KEYSPACE}]\nnamed = {{ by = \"modulo\", column = \"id\" }}\n{}",
        head(""),
        sections.concat()
    );
    servers.catch_up().await;
    (servers, shards, Gateway::serve(&file))
}

#[tokio::test]
async fn reads_of_a_replica_target_land_on_replicas_and_writes_are_refused() {
    let (servers, _shards, gateway) = pair().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')").await;
    servers.catch_up().await;
    let whose = "SELECT @@server_id FROM t WHERE id = 1";
    assert_eq!(answer::ok(&mut conn, whose).await.single(), "1");
    for target in ["shop@replica", "shop@rdonly", "shop:s1@replica", "@replica"] {
        answer::ok(&mut conn, &format!("USE `{target}`")).await;
        for sql in [
            whose,
            "SELECT @@server_id",
            "SELECT DISTINCT @@server_id FROM t WHERE id IN (1, 3)",
        ] {
            assert_eq!(
                answer::ok(&mut conn, sql).await.single(),
                "2",
                "{sql} on {target}"
            );
        }
    }
    answer::ok(&mut conn, "USE `shop@replica`").await;
    for write in [
        "INSERT INTO t VALUES (3, 3, 3, 'c')",
        "UPDATE t SET v = 5 WHERE id = 1",
        "DELETE FROM t",
        "SELECT * FROM t WHERE id = 1 FOR UPDATE",
        "CREATE TABLE u (id INT PRIMARY KEY)",
    ] {
        let refusal = answer::refused(&mut conn, write).await;
        assert_eq!(refusal.errno, 1235, "{refusal}");
        assert!(
            refusal.message.contains("SG1101") && refusal.message.contains("on replicas"),
            "{refusal}"
        );
    }
    // A transaction reads where the target says, too.
    answer::ok(&mut conn, "BEGIN").await;
    assert_eq!(answer::ok(&mut conn, whose).await.single(), "2");
    assert_eq!(
        answer::refused(&mut conn, "DELETE FROM t WHERE id = 1")
            .await
            .errno,
        1235
    );
    answer::ok(&mut conn, "COMMIT").await;
    let prepared: Option<u32> = conn
        .exec_first("SELECT @@server_id FROM t WHERE id = ?", (2,))
        .await
        .unwrap();
    assert_eq!(prepared, Some(2));
    answer::ok(&mut conn, "USE shop").await;
    assert_eq!(answer::ok(&mut conn, whose).await.single(), "1");
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "2"
    );
}

#[tokio::test]
async fn a_replica_target_shows_what_the_replica_has_and_can_be_the_database_of_a_login() {
    let (servers, _shards, gateway) = pair().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    let mut replica = gateway.conn("shop@replica").await;
    let count = "SELECT COUNT(*) FROM t";
    servers.halt(1).await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')").await;
    assert_eq!(answer::ok(&mut conn, count).await.single(), "2");
    assert_eq!(answer::ok(&mut replica, count).await.single(), "0");
    servers.resume(1).await;
    servers.catch_up().await;
    assert_eq!(answer::ok(&mut replica, count).await.single(), "2");
}

/// The harness: what a test of a failover will rely on.
#[tokio::test]
async fn servers_change_their_primary_planned_and_after_a_crash() {
    let mut servers = Replicated::start(3).await;
    let database = servers.create_database("db").await;
    database
        .run(&["CREATE TABLE n (id INT PRIMARY KEY)", "INSERT INTO n VALUES (1)"])
        .await;
    servers.promote(1).await;
    let insert = |n: i32| format!("INSERT INTO {}.n VALUES ({n})", database.name);
    servers.run(1, &[&insert(2)]).await;
    servers.catch_up().await;
    servers.kill(1).await;
    servers.lead(2).await;
    servers.follow(0, 2).await;
    servers.run(2, &[&insert(3)]).await;
    servers.catch_up_on(0).await;
    let mut conn = servers.server(0).conn().await;
    let count: Option<i64> = conn
        .query_first(format!("SELECT COUNT(*) FROM {}.n", database.name))
        .await
        .unwrap();
    assert_eq!(count, Some(3));
    assert_eq!(servers.primary(), 2);
    // The application's user cannot write where it must not.
    let mut app = shardgate_tests::mariadb::connect(
        servers.server(0).addr(),
        shardgate_tests::mariadb::APP_USER,
        Some(shardgate_tests::mariadb::APP_PASSWORD),
        Some(&database.name),
    )
    .await;
    assert_eq!(
        answer::refused(&mut app, "INSERT INTO n VALUES (4)").await.errno,
        1290
    );
}
