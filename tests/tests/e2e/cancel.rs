//! What becomes of a shard's work when nobody waits for it any more: scenarios T4 and T5, S1.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use shardgate_tests::client::python;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::mariadb::{APP_PASSWORD, APP_USER, connect};
use shardgate_tests::{Fault, FaultProxy, Fixture, Gateway, Layout, MariaDb, TabletSim, answer, sim, wait};

/// The engine that fills fastest; nothing here writes through the gateway.
const BIG: &str = "CREATE TABLE big (id BIGINT PRIMARY KEY, pad VARCHAR(100)) ENGINE=MyISAM";

/// A million rows of about 60 bytes over two shards.
async fn million() -> Fixture {
    let fixture = Fixture::new(Layout::Modulo(2), 2, &[BIG]).await;
    for (n, shard) in fixture.shards.iter().enumerate() {
        let fill = format!("INSERT INTO big SELECT seq * 2 + {n}, REPEAT('x', 44) FROM seq_1_to_500000");
        shard.run(&[&fill]).await;
    }
    fixture
}

async fn nothing_runs(fixture: &Fixture, limit: Duration) {
    wait::until("the shards to be idle", limit, || async {
        for shard in &fixture.shards {
            if !shard.running().await.is_empty() {
                return None;
            }
        }
        Some(())
    })
    .await;
}

async fn something_runs_on(fixture: &Fixture, shard: usize) {
    wait::until("the shard to be busy", Duration::from_secs(10), || async {
        (!fixture.shards[shard].running().await.is_empty()).then_some(())
    })
    .await;
}

/// T4 [vitess#11915]: a client that goes away in the middle of a result stops the work behind it.
#[tokio::test]
async fn a_client_that_resets_after_ten_rows_frees_the_shards_within_a_second() {
    let fixture = million().await;
    let gateway = fixture.gateway();
    // Once; then more often in a row than there could be slots for leaks.
    for times in ["1", "30"] {
        let args = [APP_USER, APP_PASSWORD, KEYSPACE, "SELECT * FROM big", times];
        python::run("reset_after_ten.py", gateway.addr(), &args).await;
        nothing_runs(&fixture, Duration::from_secs(1)).await;
    }
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM big").await.single(),
        "1000000"
    );
}

/// T4, second half [proxysql#1180]: a client that stops reading stops the tablets by back-pressure, not by memory.
#[tokio::test]
async fn a_client_that_stops_reading_costs_bounded_memory() {
    let fixture = million().await;
    let gateway = fixture.gateway();
    let proxy = FaultProxy::start(gateway.addr()).await;
    answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT COUNT(*) FROM big").await;
    let before = gateway.process().resident();

    let mut conn = connect(proxy.addr(), APP_USER, Some(APP_PASSWORD), Some(KEYSPACE)).await;
    let mut result = conn.query_iter("SELECT * FROM big").await.unwrap();
    for _ in 0..10 {
        assert!(result.next().await.unwrap().is_some());
    }
    proxy.set(Fault::Stall).await;
    let began = Instant::now();
    let mut worst = 0;
    while began.elapsed() < Duration::from_secs(10) {
        worst = worst.max(gateway.process().resident().saturating_sub(before));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(worst <= 16 << 20, "{worst} bytes more");

    drop(result);
    drop(conn);
    drop(proxy);
    nothing_runs(&fixture, Duration::from_secs(1)).await;
}

/// The promise of flat memory: more than three times the bound flows by, as slowly as 5 MB/s.
#[tokio::test]
async fn a_million_rows_to_a_slow_client_add_at_most_16_megabytes() {
    let fixture = million().await;
    let gateway = fixture.gateway();
    let proxy = FaultProxy::start(gateway.addr()).await;
    answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT COUNT(*) FROM big").await;
    let before = gateway.process().resident();

    let mut conn = connect(proxy.addr(), APP_USER, Some(APP_PASSWORD), Some(KEYSPACE)).await;
    proxy.set(Fault::Throttle(5_000_000)).await;
    let mut result = conn.query_iter("SELECT * FROM big").await.unwrap();
    let (mut rows, mut bytes, mut worst) = (0_u64, 0_u64, 0);
    while let Some(row) = result.next().await.unwrap() {
        bytes += row.as_ref(1).map_or(0, |v| v.as_sql(true).len() as u64);
        rows += 1;
        if rows.is_multiple_of(10_000) {
            worst = worst.max(gateway.process().resident().saturating_sub(before));
        }
    }
    assert_eq!(rows, 1_000_000);
    assert!(bytes > 40_000_000, "too few bytes to prove anything: {bytes}");
    assert!(worst <= 16 << 20, "{worst} bytes more");
}

async fn sleeper(gateway: &Gateway) -> (u32, tokio::task::JoinHandle<(Result<(), Error>, Conn)>) {
    let mut conn = gateway.conn(KEYSPACE).await;
    let id: u32 = answer::ok(&mut conn, "SELECT CONNECTION_ID()")
        .await
        .single()
        .parse()
        .unwrap();
    let task = tokio::spawn(async move {
        let done = conn.query_drop("SELECT id, SLEEP(30) FROM t WHERE id = 2").await;
        (done, conn)
    });
    (id, task)
}

/// T5 [vitess#5497 #13371].
#[tokio::test]
async fn kill_query_ends_the_statement_and_leaves_the_connection_usable() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
    let gateway = fixture.gateway();
    let (id, task) = sleeper(&gateway).await;
    something_runs_on(&fixture, 0).await;

    let mut other = gateway.conn(KEYSPACE).await;
    let began = Instant::now();
    answer::ok(&mut other, &format!("KILL QUERY {id}")).await;
    let (done, mut conn) = wait::within("the killed statement", Duration::from_secs(10), task)
        .await
        .unwrap();
    let took = began.elapsed();
    let Err(Error::Server(error)) = done else {
        panic!("a server's error expected, got {done:?}")
    };
    assert_eq!((error.code, error.state.as_str()), (1317, "70100"), "{error}");
    assert!(took <= Duration::from_millis(500), "answered after {took:?}");
    nothing_runs(&fixture, Duration::from_secs(1)).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "2"
    );
}

#[tokio::test]
async fn kill_of_an_unknown_id_is_error_1094() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    for sql in [
        "KILL QUERY 4294967295",
        "KILL 4294967295",
        "KILL CONNECTION 4294967295",
    ] {
        assert_eq!(answer::refused(&mut conn, sql).await.errno, 1094, "{sql}");
    }
}

#[tokio::test]
async fn kill_ends_a_connection_and_its_statement() {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &[(2, "2, 2, 'b'")]).await;
    let gateway = fixture.gateway();
    let (id, task) = sleeper(&gateway).await;
    something_runs_on(&fixture, 0).await;
    answer::ok(&mut gateway.conn(KEYSPACE).await, &format!("KILL {id}")).await;
    let (done, mut conn) = wait::within("the killed statement", Duration::from_secs(10), task)
        .await
        .unwrap();
    assert!(done.is_err());
    assert!(
        conn.query_drop("SELECT 1").await.is_err(),
        "a killed connection is closed"
    );
    nothing_runs(&fixture, Duration::from_secs(1)).await;
}

/// S1 [sqlx#563, asyncmy#103, pgdog#759]: whatever byte of an answer a client goes away at, the tablet's connection
/// never hands the rest to the next client.
#[tokio::test]
async fn a_client_lost_at_any_byte_of_an_answer_leaves_nothing_to_the_next() {
    let fixture = Fixture::on(
        Layout::Modulo(2),
        MariaDb::shared(0),
        &[MariaDb::shared(1)],
        &[TABLE_T],
    )
    .await;
    let fill = "INSERT INTO t SELECT seq * 2, seq, seq, 'g' FROM seq_1_to_5000";
    fixture.shards[0].run(&[fill]).await;
    let gateway = Gateway::serve(&fixture.config_with(&pool(1)));
    let proxy = FaultProxy::start(gateway.addr()).await;
    let target = format!("{KEYSPACE}:s0");

    let small = (0..200_u64).step_by(9);
    let large = (200..160_000).step_by(9973);
    for bytes in small.chain(large) {
        let mut doomed = connect(proxy.addr(), APP_USER, Some(APP_PASSWORD), Some(&target)).await;
        proxy.set(Fault::CutAfter(bytes)).await;
        let lost = wait::within(
            "the cut",
            Duration::from_secs(10),
            doomed.query_drop("SELECT * FROM t"),
        )
        .await;
        drop(lost);
        proxy.set(Fault::None).await;
        let mut next = gateway.conn(&target).await;
        let marker = answer::ok(&mut next, "SELECT 'marker'");
        let marker = wait::within("the next client", Duration::from_secs(10), marker).await;
        assert_eq!(marker.single(), "marker", "after a cut at {bytes}");
        next.disconnect().await.unwrap();
    }
}

/// T2 [MySqlConnector#248, vitess#2019]: a KILL that comes late never ends the query of whoever has the connection next.
/// Queries end just before, at and after their limit, on a pool of one connection that others want; the KILL reaches the
/// server 50 ms after it was sent.
#[tokio::test]
async fn a_late_kill_interrupts_nobody_elses_query() {
    let server = MariaDb::start();
    let slow_kills = TabletSim::proxy(server.addr());
    let fixture = Fixture::on(Layout::Modulo(1), MariaDb::shared(0), &[&server], &[TABLE_T]).await;
    let limits =
        "[timeouts]\nmysql_server_query_timeout = \"2s\"\nqueryserver_config_query_timeout = \"150ms\"\n";
    let config = fixture.config_with(&format!("{}{limits}[guard]\nbreakers = false\n", pool(1)));
    let (direct, proxied) = (fixture.proxies[0].addr(), slow_kills.addr());
    let gateway = Gateway::serve(&config.replace(&direct.to_string(), &proxied.to_string()));
    slow_kills
        .fault(r#"{"kind":"latency","ms":50,"statement":"KILL"}"#)
        .await;
    let target = format!("{KEYSPACE}:s0");
    let mut late = gateway.conn(&target).await;
    let mut next = gateway.conn(&target).await;
    let (mut ended, mut given_up) = (0, 0);
    for round in 0..30 {
        // From 147 to 151 ms, in steps of an eighth.
        let millis = 147.0 + f64::from(round) / 8.0;
        let slow = format!("SELECT SLEEP({:.4})", millis / 1000.0);
        let other = async {
            // Longer than the KILL takes, and shorter than its own limit.
            let asked = answer::ok(&mut next, "SELECT SLEEP(0.1)");
            wait::within("the next client", Duration::from_secs(10), asked).await
        };
        let (first, second) = tokio::join!(answer::text(&mut late, &slow), other);
        assert_eq!(second.single(), "0", "somebody else's query was interrupted");
        match first {
            Ok(answer) => {
                assert_eq!(answer.single(), "0", "it ended by itself");
                ended += 1;
            }
            Err(refusal) => {
                assert_eq!(refusal.errno, 3024, "{refusal}");
                given_up += 1;
            }
        }
    }
    assert!(
        ended > 0 && given_up > 0,
        "{ended} ended, {given_up} were given up"
    );
}

/// T3 [proxysql#711]: a tablet that takes a KILL and goes on all the same. The client has its answer at the deadline; the
/// connection is closed after the grace, and counted apart.
#[tokio::test]
async fn a_tablet_that_ignores_kill_costs_its_client_one_deadline() {
    let tablet = TabletSim::start(
        "s0",
        "CREATE TABLE t (id BIGINT PRIMARY KEY);\nINSERT INTO t VALUES (1);\n",
    );
    let limits = "[timeouts]\nmysql_server_query_timeout = \"1s\"\nqueryserver_config_query_timeout = \"300ms\"\n\
                  kill_grace = \"200ms\"\n[guard]\nbreakers = false\n";
    let tablets = [tablet];
    let gateway = Gateway::serve(&sim::config(&tablets, limits));
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT id FROM t").await;
    tablets[0]
        .fault(r#"[{"kind":"hang","statement":"from t"},{"kind":"ignore_kill"}]"#)
        .await;
    let began = Instant::now();
    let refusal = answer::refused(&mut conn, "SELECT id FROM t").await;
    assert_eq!(refusal.errno, 3024, "{refusal}");
    assert!(
        began.elapsed() < Duration::from_millis(700),
        "{:?}",
        began.elapsed()
    );
    wait::until("the connection to be closed", Duration::from_secs(5), || async {
        let (_, vars) = gateway.http("GET", "/debug/vars").await;
        let vars: serde_json::Value = serde_json::from_str(&vars).unwrap();
        (vars["Reaped"]["closed"] == 1 && vars["Reaped"]["kill_query"] == 0).then_some(())
    })
    .await;
    // One that minds only the KILL of its whole connection.
    tablets[0]
        .fault(r#"[{"kind":"hang","statement":"from t"},{"kind":"hang","statement":"kill query"}]"#)
        .await;
    let refusal = answer::refused(&mut conn, "SELECT id FROM t").await;
    assert_eq!(refusal.errno, 3024, "{refusal}");
    wait::until("the connection to be killed", Duration::from_secs(5), || async {
        let (_, vars) = gateway.http("GET", "/debug/vars").await;
        let vars: serde_json::Value = serde_json::from_str(&vars).unwrap();
        (vars["Reaped"]["kill_connection"] == 1 && vars["Reaped"]["closed"] == 1).then_some(())
    })
    .await;
    tablets[0].lift().await;
    assert_eq!(answer::ok(&mut conn, "SELECT id FROM t").await.single(), "1");
}
