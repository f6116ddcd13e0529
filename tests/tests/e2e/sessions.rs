//! Sessions and transactions over shards: scenario S4.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fault, Fixture, Gateway, Layout, MariaDb, Order, TabletSim, answer, sim};

async fn scenario_with_pool(size: usize) -> (Fixture, Gateway) {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[TABLE_T]).await;
    fixture
        .insert(
            "t",
            &[
                (1, "1, 10, 'a'"),
                (2, "2, 20, 'b'"),
                (3, "3, 30, 'c'"),
                (4, "4, 40, 'd'"),
            ],
        )
        .await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(size)));
    (fixture, gateway)
}

/// S4 [proxysql#3000]: what one client sets, another on the same tablet connection must not see.
#[tokio::test]
async fn a_setting_of_one_session_is_not_seen_by_another_on_the_same_tablet_connection() {
    let (_fixture, gateway) = scenario_with_pool(1).await;
    let mut a = gateway.conn(KEYSPACE).await;
    let mut b = gateway.conn(KEYSPACE).await;
    let mode = "SELECT @@sql_mode";
    let before = answer::ok(&mut b, mode).await.single();
    answer::ok(&mut a, "SET sql_mode = 'ANSI,NO_ZERO_DATE'").await;
    answer::ok(&mut a, "SET @mine = 7").await;
    for _ in 0..3 {
        assert!(answer::ok(&mut a, mode).await.single().contains("ANSI_QUOTES"));
        assert_eq!(
            answer::ok(&mut a, "SELECT @mine FROM t WHERE id = 2")
                .await
                .single(),
            "7"
        );
        assert_eq!(answer::ok(&mut b, mode).await.single(), before);
        assert_eq!(
            answer::ok(&mut b, "SELECT @mine FROM t WHERE id = 2")
                .await
                .single(),
            "NULL"
        );
        // Read on the tablets themselves, each of the two shards.
        for id in [1, 2] {
            let sql = format!("SELECT @@sql_mode FROM t WHERE id = {id}");
            assert_eq!(answer::ok(&mut b, &sql).await.single(), before);
            assert!(answer::ok(&mut a, &sql).await.single().contains("ANSI_QUOTES"));
        }
    }
}

/// What a session set holds on every connection that a scatter takes, be it fresh, clean, or last used by another.
#[tokio::test]
async fn a_scatter_runs_under_the_sessions_settings_on_every_shard() {
    let (_fixture, gateway) = scenario_with_pool(3).await;
    let mut a = gateway.conn(KEYSPACE).await;
    let mut b = gateway.conn(KEYSPACE).await;
    for round in 0..4 {
        answer::ok(&mut a, &format!("SET @x = {round}, time_zone = '+0{round}:00'")).await;
        let sql =
            format!("SELECT COUNT(*) FROM t WHERE @x = {round} AND @@session.time_zone = '+0{round}:00'");
        // Side by side they take every connection in turn.
        let (of_a, of_b) = tokio::join!(
            answer::ok(&mut a, &sql),
            answer::ok(
                &mut b,
                "SELECT id FROM t WHERE @x IS NULL AND @@session.time_zone = 'SYSTEM'"
            ),
        );
        assert_eq!(
            (of_a.single().as_str(), of_b.rows.len()),
            ("4", 4),
            "round {round}"
        );
        let ordered = format!("SELECT id FROM t WHERE id < @x + {} ORDER BY id", 9 - round);
        let rows = answer::ok(&mut a, &ordered).await.cells();
        assert_eq!(rows, [["1"], ["2"], ["3"], ["4"]], "round {round}");
        let prepared = answer::binary(&mut a, "SELECT id FROM t WHERE @x = ? ORDER BY id", (round,)).await;
        assert_eq!(prepared.unwrap().rows.len(), 4, "round {round}");
    }
}

/// S4 [vitess#21015]: a bad SET fails at once and changes nothing; the next one works.
#[tokio::test]
async fn a_bad_setting_fails_at_once_and_leaves_the_old_value() {
    let (_fixture, gateway) = scenario_with_pool(1).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET sql_mode = 'STRICT_ALL_TABLES'").await;
    for bad in [
        "SET sql_mode = 'NO_SUCH_MODE'",
        "SET no_such_variable = 1",
        "SET max_statement_time = 'x'",
    ] {
        let refusal = answer::refused(&mut conn, bad).await;
        assert!([1231, 1193, 1232].contains(&refusal.errno), "{bad}: {refusal}");
        for sql in [
            "SELECT @@sql_mode",
            "SELECT @@sql_mode FROM t WHERE id = 1",
            "SELECT @@sql_mode FROM t WHERE id = 2",
        ] {
            assert_eq!(
                answer::ok(&mut conn, sql).await.single(),
                "STRICT_ALL_TABLES",
                "after {bad}"
            );
        }
    }
    answer::ok(&mut conn, "SET sql_mode = 'ANSI_QUOTES'").await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT @@sql_mode FROM t WHERE \"id\" = 1")
            .await
            .single(),
        "ANSI_QUOTES"
    );
}

/// S4: a setting that one shard accepts and another refuses is an error naming it, and every shard keeps the old value.
#[tokio::test]
async fn a_setting_that_one_shard_refuses_fails_and_the_old_value_stays_everywhere() {
    let free = MariaDb::start();
    let strict = MariaDb::start();
    // On the second server the gateway's user may not set this one.
    let mut root = strict.conn().await;
    root.query_drop("REVOKE BINLOG ADMIN, SUPER ON *.* FROM 'app'@'%'")
        .await
        .unwrap();
    let fixture = Fixture::on(
        Layout::Modulo(2),
        MariaDb::shared(0),
        &[&free, &strict],
        &[TABLE_T],
    )
    .await;
    fixture.insert("t", &[(1, "1, 10, 'a'"), (2, "2, 20, 'b'")]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    let set = answer::text(&mut conn, "SET SESSION binlog_format = 'ROW'").await;
    let used = answer::text(&mut conn, "SELECT @@binlog_format, id FROM t ORDER BY id").await;
    assert!(
        set.is_err() || used.is_err(),
        "a setting held on one shard only: {used:?}"
    );
    answer::ok(&mut conn, "SET SESSION binlog_format = DEFAULT").await;
    let rows = answer::ok(&mut conn, "SELECT @@binlog_format, id FROM t ORDER BY id")
        .await
        .cells();
    assert_eq!(rows[0][0], rows[1][0]);
}

#[tokio::test]
async fn a_transaction_over_two_shards_commits_and_rolls_back_as_on_one_server() {
    let (fixture, gateway) = scenario_with_pool(4).await;
    let mut pair = fixture.pair(&gateway).await;
    for end in ["ROLLBACK", "COMMIT"] {
        for sql in [
            "BEGIN",
            "UPDATE t SET v = v + 1 WHERE id = 1",
            "SAVEPOINT a",
            "UPDATE t SET v = v + 1 WHERE id = 2",
            "ROLLBACK TO SAVEPOINT a",
            "DELETE FROM t WHERE id IN (3, 4)",
            end,
        ] {
            pair.both(sql).await.unwrap();
            pair.same("SELECT * FROM t ORDER BY id", Order::Fixed).await;
        }
        let mut direct = 0;
        for shard in &fixture.shards {
            direct += answer::ok(&mut shard.conn().await, "SELECT * FROM t")
                .await
                .rows
                .len();
        }
        assert_eq!(direct, if end == "COMMIT" { 2 } else { 4 });
    }
}

#[tokio::test]
async fn work_outside_a_transaction_is_seen_by_others_at_once_and_inside_after_commit() {
    let (_fixture, gateway) = scenario_with_pool(4).await;
    let mut a = gateway.conn(KEYSPACE).await;
    let mut b = gateway.conn(KEYSPACE).await;
    let sum = "SELECT SUM(v) FROM t";
    answer::ok(&mut a, "UPDATE t SET v = v + 1").await;
    assert_eq!(answer::ok(&mut b, sum).await.single(), "104");
    answer::ok(&mut a, "SET autocommit = 0").await;
    answer::ok(&mut a, "UPDATE t SET v = v + 1").await;
    assert_eq!(answer::ok(&mut a, sum).await.single(), "108");
    assert_eq!(answer::ok(&mut b, sum).await.single(), "104");
    answer::ok(&mut a, "COMMIT").await;
    assert_eq!(answer::ok(&mut b, sum).await.single(), "108");
    answer::ok(&mut a, "UPDATE t SET v = 0").await;
    a.disconnect().await.unwrap();
    assert_eq!(
        answer::ok(&mut b, sum).await.single(),
        "108",
        "a client that leaves has not committed"
    );
}

#[tokio::test]
async fn a_failing_statement_on_several_shards_changes_none_of_them() {
    let (fixture, gateway) = scenario_with_pool(4).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    // The row for the second shard is there already; the one for the first is not.
    let refusal = answer::refused(
        &mut conn,
        "INSERT INTO t VALUES (6, 6, 6, 'f'), (1, 1, 1, 'twice')",
    )
    .await;
    assert_eq!(
        (refusal.errno, refusal.state.as_str()),
        (1062, "23000"),
        "{refusal}"
    );
    let mut direct = fixture.shards[0].conn().await;
    assert_eq!(
        answer::ok(&mut direct, "SELECT COUNT(*) FROM t WHERE id = 6")
            .await
            .single(),
        "0"
    );
}

#[tokio::test]
async fn changing_or_leaving_out_the_sharding_column_is_refused() {
    let (_fixture, gateway) = scenario_with_pool(4).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    for sql in [
        "UPDATE t SET id = 9 WHERE id = 1",
        "INSERT INTO t (k, v) VALUES (1, 2)",
        "UPDATE t SET id = id + 1",
    ] {
        let refusal = answer::refused(&mut conn, sql).await;
        assert!(refusal.message.contains("SG2"), "{sql}: {refusal}");
        assert!(refusal.message.contains("id"), "the column is named: {refusal}");
    }
    assert_eq!(
        answer::ok(&mut conn, "SELECT SUM(id) FROM t").await.single(),
        "10"
    );
}

#[tokio::test]
async fn a_target_names_the_shard_that_answers() {
    let (_fixture, gateway) = scenario_with_pool(4).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, &format!("USE `{KEYSPACE}:s1`")).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT id FROM t ORDER BY id")
            .await
            .cells(),
        [["1"], ["3"]]
    );
    // What a scatter refuses, one shard answers itself.
    assert_eq!(
        answer::ok(&mut conn, "SELECT AVG(v) FROM t").await.single(),
        "20.0000"
    );
    answer::ok(&mut conn, &format!("USE {KEYSPACE}")).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "4"
    );
}

#[tokio::test]
async fn a_second_shard_is_refused_where_transactions_must_stay_on_one() {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[TABLE_T]).await;
    fixture.insert("t", &[(1, "1, 10, 'a'"), (2, "2, 20, 'b'")]).await;
    let config = fixture
        .config()
        .replace("[server]\n", "[server]\ntransaction_mode = \"single\"\n");
    let gateway = Gateway::serve(&config);
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 11 WHERE id = 1").await;
    let refusal = answer::refused(&mut conn, "UPDATE t SET v = 21 WHERE id = 2").await;
    assert!(refusal.message.contains("SG2403"), "{refusal}");
    answer::ok(&mut conn, "COMMIT").await;
    let rows = answer::ok(&mut conn, "SELECT v FROM t ORDER BY id").await.cells();
    assert_eq!(rows, [["11"], ["20"]]);
    // Outside a transaction a statement may still touch several shards.
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "2"
    );
}

/// A commit that cannot reach its end says which shards committed and which did not, and the data agrees.
#[tokio::test]
async fn an_incomplete_commit_says_exactly_what_was_committed() {
    let (fixture, gateway) = scenario_with_pool(4).await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 0 WHERE id = 2").await;
    answer::ok(&mut conn, "UPDATE t SET v = 0 WHERE id = 1").await;
    // It is there until it is sent COMMIT: what it does with that nobody knows.
    fixture.fault(1, Fault::LoseReplyAfter("COMMIT".to_owned())).await;
    let refusal = answer::refused(&mut conn, "COMMIT").await;
    assert_eq!(
        (refusal.errno, refusal.state.as_str()),
        (1105, "HY000"),
        "{refusal}"
    );
    assert!(refusal.message.contains("SG2404"), "{refusal}");
    assert!(refusal.message.contains("outcome unknown: shop/s1"), "{refusal}");
    let after_committed = refusal.message.split("committed:").nth(1).unwrap();
    let committed = after_committed.split(';').next().unwrap();
    assert!(
        committed.contains("shop/s0") && !committed.contains("shop/s1"),
        "{refusal}"
    );
    let value = "SELECT COUNT(*) FROM t WHERE v = 0";
    assert_eq!(
        answer::ok(&mut fixture.shards[0].conn().await, value)
            .await
            .single(),
        "1"
    );
    fixture.proxies[1].lift().await;
    answer::text(&mut conn, "ROLLBACK").await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "4"
    );
}

/// One shard committed although the other was known to be gone.
#[tokio::test]
async fn a_shard_that_is_gone_before_commit_lets_no_other_commit() {
    for gone in [0, 1] {
        let tablets: Vec<_> = (0..2)
            .map(|n| {
                let init = format!(
                    "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT);\nINSERT INTO t VALUES ({n}, 1);\n"
                );
                TabletSim::start(&format!("s{n}"), &init)
            })
            .collect();
        let gateway = Gateway::serve(&sim::config(&tablets, ""));
        let mut conn = gateway.conn(KEYSPACE).await;
        answer::ok(&mut conn, "BEGIN").await;
        for id in 0..2 {
            answer::ok(&mut conn, &format!("UPDATE t SET v = 0 WHERE id = {id}")).await;
        }
        tablets[gone].process().signal("KILL");
        tablets[gone].process().ended(Duration::from_secs(20)).await;
        let refusal = answer::refused(&mut conn, "COMMIT").await;
        assert!(refusal.message.starts_with("SG2408"), "{refusal}");
        assert!(
            refusal.message.contains(&format!("shop/s{gone} had")),
            "{refusal}"
        );
        // The session is out of its transaction, and the other shard's row is as it was.
        let other = format!("SELECT v FROM t WHERE id = {}", 1 - gone);
        assert_eq!(answer::ok(&mut conn, &other).await.single(), "1");
    }
}

#[tokio::test]
async fn a_plan_is_shown_for_what_would_be_refused_too() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    for (sql, route, error) in [
        (
            "SELECT k, COUNT(*) FROM t GROUP BY k",
            "refused",
            "1235 (42000): SG2001: GROUP BY",
        ),
        (
            "CREATE TABLE mysql.x (id INT)",
            "refused",
            "1044 (42000): SG2017: ",
        ),
        ("SELECT * FROM nowhere", "refused", "1146 (42S02): SG2003: "),
        (
            "INSERT INTO t (id) VALUES (1), ('1x')",
            "refused",
            "1105 (HY000): SG2010: row 2 of INSERT into `t`, column `id`: ",
        ),
        ("selec 1", "refused", "1064 (42000): "),
        ("SET @a = 1", "answered by the gateway", ""),
        ("BEGIN", "answered by the gateway", ""),
    ] {
        let rows = answer::ok(&mut conn, &format!("EXPLAIN FORMAT=SHARDGATE {sql}"))
            .await
            .cells();
        assert_eq!(rows[0], ["route", route], "{sql}: {rows:?}");
        let shown = rows.get(1).map_or("", |row| row[1].as_str());
        assert!(shown.starts_with(error), "{sql}: {rows:?}");
    }
    let created = answer::ok(&mut conn, "EXPLAIN FORMAT=SHARDGATE CREATE TABLE x (id INT)").await;
    // The route, each of two legs with its breaker, what is done with the answers, and why not in part.
    assert_eq!(created.rows.len(), 7, "{created:?}");
}

#[tokio::test]
async fn what_is_no_sql_is_a_syntax_error_however_it_is_sent() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    for sql in ["selec ?", "selec 1"] {
        assert_eq!(answer::refused(&mut conn, sql).await.errno, 1064, "{sql}");
        let refused = conn.prep(sql).await.map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("1064"), "{sql}: {refused}");
    }
}
