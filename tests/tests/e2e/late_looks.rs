//! Tablets that answer the poller late: not connected to more often than helps, and not called late for a lost connection.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use serde_json::Value;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fixture, Gateway, Layout, MariaDb, TabletSim, answer, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// A tablet behind a proxy.
struct Stage {
    proxy: TabletSim,
    gateway: Gateway,
    direct: Conn,
    _server: MariaDb,
    _fixture: Fixture,
}

impl Stage {
    async fn start(poller: &str) -> Self {
        let server = MariaDb::start();
        let proxy = TabletSim::proxy(server.addr());
        let fixture = Fixture::on(Layout::Unsharded, MariaDb::shared(0), &[&server], &[TABLE_T]).await;
        let config = fixture
            .config()
            .replace(&fixture.proxies[0].addr().to_string(), &proxy.addr().to_string());
        let stage = Self {
            gateway: Gateway::serve(&format!("{config}\n[poller]\n{poller}\n")),
            direct: server.conn().await,
            _server: server,
            proxy,
            _fixture: fixture,
        };
        stage.until_serving().await;
        stage
    }

    async fn until_serving(&self) {
        wait::until("the tablet serves", LIMIT, async || {
            let mut conn = self.gateway.conn(KEYSPACE).await;
            let rows = answer::ok(&mut conn, "SHOW VITESS_TABLETS").await.cells();
            (rows[0][4] == "SERVING").then_some(())
        })
        .await;
    }

    /// Connections that the server ever had.
    async fn connections(&mut self) -> u32 {
        let status = answer::ok(&mut self.direct, "SHOW GLOBAL STATUS LIKE 'Connections'").await;
        status.cells()[0][1].parse().unwrap()
    }

    /// Looks, and those that were late.
    async fn looks(&self) -> (u64, u64) {
        let (_, vars) = self
            .gateway
            .http("GET", "/debug/vars?name[]=Polls&name[]=PollFailures")
            .await;
        let vars: Value = serde_json::from_str(&vars).unwrap();
        (
            vars["Polls"]["shop---a"].as_u64().unwrap(),
            vars["PollFailures"]["shop---a.timeout"].as_u64().unwrap(),
        )
    }

    async fn until_late_looks(&self, number: u64) {
        wait::until("late looks", LIMIT, async || {
            (self.looks().await.1 >= number).then_some(())
        })
        .await;
    }
}

/// Many tablets that are a little late must not each be connected to anew: that would make them later.
#[tokio::test]
async fn a_tablet_that_is_a_little_late_is_not_connected_to_anew() {
    let mut stage = Stage::start("").await;
    let before = stage.connections().await;
    stage
        .proxy
        .fault(r#"{"kind":"latency","ms":400,"statement":"@@global"}"#)
        .await;
    stage.until_late_looks(6).await;
    assert_eq!(stage.connections().await, before);
    stage.proxy.lift().await;
    stage.until_serving().await;
    assert_eq!(stage.connections().await, before);
}

/// Hundreds of tablets that do not answer in time because all of them are connected to would stay so for good.
#[tokio::test]
async fn a_tablet_that_stays_late_is_connected_to_less_and_less() {
    let mut stage = Stage::start("interval = \"100ms\"\ntimeout = \"50ms\"").await;
    let (before, began) = (stage.connections().await, Instant::now());
    stage
        .proxy
        .fault(r#"{"kind":"latency","ms":30000,"statement":"global"}"#)
        .await;
    stage.until_late_looks(25).await;
    // After 100 ms, after 200, and then each 400.
    let most = 3 + began.elapsed().as_millis() / 400;
    let opened = stage.connections().await - before;
    assert!(
        (2..=most).contains(&u128::from(opened)),
        "{opened} connections, {most} at most"
    );
    stage.proxy.lift().await;
    stage.until_serving().await;
}

/// A connection that is lost without a word, as behind a firewall that forgot it, is no reason to call a tablet dead: also
/// where looks follow each other at once, and after an outage.
#[tokio::test]
async fn a_lost_connection_makes_one_look_late() {
    for poller in [
        "interval = \"1s\"\ntimeout = \"500ms\"",
        "interval = \"400ms\"\ntimeout = \"500ms\"",
    ] {
        let stage = Stage::start(poller).await;
        stage
            .proxy
            .fault(r#"{"kind":"latency","ms":30000,"statement":"global"}"#)
            .await;
        stage.until_late_looks(4).await;
        stage.proxy.lift().await;
        stage.until_serving().await;
        let (looks, late) = stage.looks().await;
        stage
            .proxy
            .fault(r#"{"kind":"black_hole","statement":"@@global","times":1}"#)
            .await;
        stage.until_late_looks(late + 1).await;
        wait::until("further looks", LIMIT, async || {
            (stage.looks().await.0 >= looks + 4).then_some(())
        })
        .await;
        assert_eq!(stage.looks().await.1, late + 1, "{poller}");
    }
}
