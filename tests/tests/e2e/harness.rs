//! The harness itself: what the other tests lean on must hold, and must be able to fail.

use std::time::{Duration, Instant};

use mysql_async::Params;
use mysql_async::prelude::Queryable;
use shardgate_tests::client::{Cli, python};
use shardgate_tests::mariadb::{self, MariaDb};
use shardgate_tests::{Fault, FaultProxy, Order, Pair, answer, wait};

#[tokio::test]
async fn a_private_server_answers_root_and_the_application_and_is_gone_afterwards() {
    let server = MariaDb::start();
    let (addr, dir) = (server.addr(), server.process().dir().to_owned());
    assert_eq!(Cli::new(addr, "root").ok("SELECT 1 + 1").await, "2\n");
    let app = Cli::new(addr, mariadb::APP_USER).password(mariadb::APP_PASSWORD);
    assert_eq!(app.ok("SELECT CURRENT_USER()").await, "app@%\n");
    drop(server);
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_python_client_reaches_a_server() {
    let db = MariaDb::shared(0).create_database("python").await;
    let printed = python::run(
        "hello.py",
        db.addr,
        &[mariadb::APP_USER, mariadb::APP_PASSWORD, &db.name],
    )
    .await;
    assert_eq!(printed, "1 \u{e4}\n");
}

async fn two_databases(left: &[&str], right: &[&str]) -> Pair {
    let a = MariaDb::shared(0).create_database("left").await;
    let b = MariaDb::shared(1).create_database("right").await;
    a.run(left).await;
    b.run(right).await;
    Pair {
        reference: a.conn().await,
        gateway: b.conn().await,
    }
}

#[tokio::test]
async fn equal_answers_compare_equal_in_both_protocols() {
    let same = [
        "CREATE TABLE t (id BIGINT PRIMARY KEY, d DECIMAL(12,6), s VARCHAR(9), at DATETIME(3), x DOUBLE)",
        "INSERT INTO t VALUES (1, 1.5, 'a', '2024-02-29 01:02:03.004', 0.1), (2, NULL, NULL, NULL, NULL)",
    ];
    let mut pair = two_databases(&same, &same).await;
    let answer = pair.same("SELECT * FROM t ORDER BY id", Order::Fixed).await;
    assert_eq!(answer.rows.len(), 2);
    pair.same_prepared("SELECT * FROM t WHERE id = ?", Params::from((2,)), Order::Free)
        .await;
    pair.both("UPDATE t SET s = 'b'").await.unwrap();
    pair.both("SELECT nothing FROM t").await.unwrap_err();
}

#[tokio::test]
async fn answers_that_differ_in_any_part_do_not_compare_equal() {
    let base = "CREATE TABLE t (id INT PRIMARY KEY, v INT)";
    let rows = "INSERT INTO t VALUES (1, 1), (2, 2)";
    let cases = [
        ("a value", base, "INSERT INTO t VALUES (1, 1), (2, 3)"),
        ("a row", base, "INSERT INTO t VALUES (1, 1)"),
        ("a type", "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT)", rows),
        (
            "a flag",
            "CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)",
            rows,
        ),
        ("a length", "CREATE TABLE t (id INT PRIMARY KEY, v INT(5))", rows),
        ("a name", "CREATE TABLE t (id INT PRIMARY KEY, w INT)", rows),
    ];
    for (what, table, values) in cases {
        let mut pair = two_databases(&[base, rows], &[table, values]).await;
        let compared =
            tokio::spawn(async move { pair.same("SELECT * FROM t ORDER BY id", Order::Fixed).await });
        assert!(compared.await.is_err(), "a difference in {what} was not seen");
    }
}

#[tokio::test]
async fn rows_in_another_order_differ_only_where_the_order_is_fixed() {
    let table = "CREATE TABLE t (id INT PRIMARY KEY)";
    let same = [table, "INSERT INTO t VALUES (1), (2)"];
    let mut pair = two_databases(&same, &same).await;
    // The two servers disagree about their own default, so the same text gives two orders.
    pair.reference.query_drop("SET @way = 1").await.unwrap();
    pair.gateway.query_drop("SET @way = -1").await.unwrap();
    pair.same("SELECT id FROM t ORDER BY id * @way", Order::Free)
        .await;
    let fixed = tokio::spawn(async move {
        pair.same("SELECT id FROM t ORDER BY id * @way", Order::Fixed)
            .await
    });
    assert!(fixed.await.is_err());
}

#[tokio::test]
async fn statements_that_run_are_seen_from_outside() {
    let db = MariaDb::shared(0).create_database("running").await;
    let mut conn = db.conn().await;
    let sleeping = tokio::spawn(async move { conn.query_drop("SELECT SLEEP(60)").await });
    wait::until("the statement to be seen", Duration::from_secs(10), || async {
        db.running()
            .await
            .contains(&"SELECT SLEEP(60)".to_owned())
            .then_some(())
    })
    .await;
    sleeping.abort();
}

async fn proxied() -> (FaultProxy, mariadb::Database) {
    let mut db = MariaDb::shared(0).create_database("proxied").await;
    let proxy = FaultProxy::start(db.addr).await;
    db.addr = proxy.addr();
    (proxy, db)
}

#[tokio::test]
async fn a_proxy_without_a_fault_passes_everything() {
    let (proxy, db) = proxied().await;
    let mut conn = db.conn().await;
    let text = "x".repeat(1 << 20);
    assert_eq!(
        answer::ok(&mut conn, &format!("SELECT '{text}'")).await.single(),
        text
    );
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn a_delay_makes_answers_late() {
    let (proxy, db) = proxied().await;
    let mut conn = db.conn().await;
    proxy.set(Fault::Delay(Duration::from_millis(200))).await;
    let began = Instant::now();
    answer::ok(&mut conn, "SELECT 1").await;
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_stall_holds_answers_back_until_it_is_lifted() {
    for fault in [Fault::Stall, Fault::BlackHole] {
        let (proxy, db) = proxied().await;
        let mut conn = db.conn().await;
        proxy.set(fault).await;
        let query = answer::ok(&mut conn, "SELECT 1");
        tokio::pin!(query);
        assert!(
            tokio::time::timeout(Duration::from_millis(300), &mut query)
                .await
                .is_err()
        );
        proxy.lift().await;
        assert_eq!(
            wait::within("the held answer", Duration::from_secs(10), query)
                .await
                .single(),
            "1"
        );
    }
}

/// Sends an insert through a faulty proxy, which must not answer; gives whether the row is there in the end.
async fn insert_through(fault: Fault) -> bool {
    let (proxy, db) = proxied().await;
    db.run(&["CREATE TABLE t (id INT)"]).await;
    let mut conn = db.conn().await;
    proxy.set(fault).await;
    let sent = conn.query_drop("INSERT INTO t VALUES (1)");
    assert!(
        tokio::time::timeout(Duration::from_millis(500), sent)
            .await
            .is_err()
    );
    let mut direct = MariaDb::shared(0).conn().await;
    answer::ok(&mut direct, &format!("SELECT COUNT(*) FROM {}.t", db.name))
        .await
        .single()
        == "1"
}

#[tokio::test]
async fn a_stall_lets_a_statement_through_to_the_server_and_a_black_hole_does_not() {
    assert!(insert_through(Fault::Stall).await);
    assert!(!insert_through(Fault::BlackHole).await);
}

#[tokio::test]
async fn refused_and_reset_connections_fail_at_once_and_come_back() {
    for fault in [Fault::Refuse, Fault::Reset] {
        let (proxy, db) = proxied().await;
        let mut conn = db.conn().await;
        proxy.set(fault.clone()).await;
        let broken = wait::within("the reset", Duration::from_secs(10), conn.query_drop("SELECT 1")).await;
        assert!(broken.is_err(), "{fault:?}");
        let options = mariadb::options(db.addr, "root", None, None);
        let fresh = wait::within(
            "the refusal",
            Duration::from_secs(10),
            mysql_async::Conn::new(options),
        )
        .await;
        assert!(fresh.is_err(), "{fault:?}");
        proxy.lift().await;
        answer::ok(&mut db.conn().await, "SELECT 1").await;
    }
}

#[tokio::test]
async fn a_lost_reply_is_lost_after_the_server_has_done_the_work() {
    let (proxy, db) = proxied().await;
    db.run(&["CREATE TABLE t (id INT)"]).await;
    proxy.set(Fault::LoseReplyAfter("INSERT INTO t".to_owned())).await;
    let mut conn = db.conn().await;
    let broken = wait::within(
        "the loss",
        Duration::from_secs(10),
        conn.query_drop("INSERT INTO t VALUES (7)"),
    )
    .await;
    assert!(broken.is_err());
    proxy.lift().await;
    assert_eq!(
        answer::ok(&mut db.conn().await, "SELECT id FROM t")
            .await
            .single(),
        "7"
    );
}

#[tokio::test]
async fn a_cut_comes_after_the_byte_it_was_ordered_for() {
    use tokio::io::AsyncReadExt;
    let (proxy, db) = proxied().await;
    for bytes in [1_u64, 40] {
        proxy.set(Fault::CutAfter(bytes)).await;
        let mut stream = tokio::net::TcpStream::connect(db.addr).await.unwrap();
        let mut greeting = Vec::new();
        let _reset = wait::within(
            "the cut",
            Duration::from_secs(10),
            stream.read_to_end(&mut greeting),
        )
        .await;
        assert_eq!(greeting.len() as u64, bytes);
    }
}

#[tokio::test]
async fn a_throttle_bounds_the_rate_of_answers() {
    let (proxy, db) = proxied().await;
    let mut conn = db.conn().await;
    proxy.set(Fault::Throttle(1 << 20)).await;
    let began = Instant::now();
    answer::ok(&mut conn, "SELECT REPEAT('x', 400000)").await;
    assert!(began.elapsed() >= Duration::from_millis(350));
}
