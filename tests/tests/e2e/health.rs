//! What the gateway sees of its tablets, and what it says of them.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use serde_json::Value;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fault, Fixture, Gateway, Layout, MariaDb, TabletSim, answer, sim, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// Two shards, the second on this server, reached without its proxy.
async fn beside(server: &MariaDb) -> (Fixture, Gateway) {
    let fixture = Fixture::on(
        Layout::Modulo(2),
        MariaDb::shared(0),
        &[MariaDb::shared(1), server],
        &[TABLE_T],
    )
    .await;
    let config = fixture
        .config()
        .replace(&fixture.proxies[1].addr().to_string(), &server.addr().to_string());
    let gateway = Gateway::serve(&config);
    (fixture, gateway)
}

/// `SHOW VITESS_TABLETS`: alias to state.
async fn states(gateway: &Gateway) -> Vec<(String, String)> {
    let mut conn = gateway.conn(KEYSPACE).await;
    let rows = answer::ok(&mut conn, "SHOW VITESS_TABLETS").await.cells();
    rows.into_iter().map(|r| (r[5].clone(), r[4].clone())).collect()
}

async fn until_state(gateway: &Gateway, alias: &str, state: &str) {
    wait::until(&format!("{alias} {state}"), LIMIT, || async {
        let all = states(gateway).await;
        all.iter().any(|(a, s)| a == alias && s == state).then_some(())
    })
    .await;
}

async fn health_of(gateway: &Gateway, shard: &str, alias: &str) -> Value {
    let (status, body) = gateway.http("GET", "/debug/health").await;
    assert_eq!(status, 200, "{body}");
    let all: Value = serde_json::from_str(&body).expect("strict JSON");
    all["shards"][format!("{KEYSPACE}/{shard}")][alias].clone()
}

async fn until_health(gateway: &Gateway, alias: &str, what: &str, pointer: &str, wanted: Value) {
    let shard = alias.trim_start_matches("shop-").trim_end_matches("-a");
    wait::until(what, LIMIT, || async {
        let seen = health_of(gateway, shard, alias).await;
        (seen.pointer(pointer) == Some(&wanted)).then_some(())
    })
    .await;
}

async fn ready(gateway: &Gateway) -> (u16, Value) {
    let (status, body) = gateway.http("GET", "/readyz").await;
    (status, serde_json::from_str(&body).expect("strict JSON"))
}

#[tokio::test]
async fn a_killed_server_is_seen_at_once_and_again_after_its_restart() {
    let mut server = MariaDb::start();
    let (_fixture, gateway) = beside(&server).await;
    assert!(states(&gateway).await.iter().all(|(_, s)| s == "SERVING"));

    server.kill().await;
    let killed = Instant::now();
    until_state(&gateway, "shop-s1-a", "NOT_SERVING").await;
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let (status, body) = ready(&gateway).await;
    assert_eq!(status, 200, "one bad shard does not take the gateway away");
    assert_eq!(body["shards_not_serving"][0]["shard"], "shop/s1");
    assert_eq!(body["shards_not_serving"].as_array().unwrap().len(), 1);
    let seen = health_of(&gateway, "s1", "shop-s1-a").await;
    assert_eq!(seen["error"]["kind"], "unreachable", "{seen}");
    let (_, vars) = gateway.http("GET", "/debug/vars").await;
    let vars: Value = serde_json::from_str(&vars).unwrap();
    assert!(vars["PollFailures"]["shop-s1-a.unreachable"].as_u64().unwrap() > 0);
    assert_eq!(vars["PollFailures"]["shop-s0-a.unreachable"], 0);
    assert!(vars["Polls"]["shop-s0-a"].as_u64().unwrap() > 0);

    server.restart();
    until_state(&gateway, "shop-s1-a", "SERVING").await;
    let mut conn = gateway.conn(KEYSPACE).await;
    // Its breaker opened when the checks failed, and closes when enough of them have passed.
    wait::until("the shard to be taken back", Duration::from_secs(20), || async {
        let mut fresh = gateway.conn(KEYSPACE).await;
        let counted = answer::text(&mut fresh, "SELECT COUNT(*) FROM t").await;
        counted.ok().filter(|a| a.single() == "0")
    })
    .await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
    let log = gateway.process().stderr();
    let told = |reason: &str| {
        let reason = format!("reason=\"{reason}\"");
        let of_it = |line: &&str| line.contains("tablet=shop-s1-a") && line.contains(&reason);
        log.lines().filter(of_it).count()
    };
    // A restart within the second a server counts its uptime in cannot be told from none, so it is no part of this.
    for reason in ["does_not_serve", "serves"] {
        assert!(
            (1..4).contains(&told(reason)),
            "{reason}, not at each look: {log}"
        );
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_does_not_serve() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    fixture.fault(1, Fault::BlackHole).await;
    until_state(&gateway, "shop-s1-a", "NOT_SERVING").await;
    assert_eq!(ready(&gateway).await.0, 200);
    fixture.fault(0, Fault::Stall).await;
    until_state(&gateway, "shop-s0-a", "NOT_SERVING").await;
    let (status, body) = ready(&gateway).await;
    assert_eq!((status, &body["why"]), (503, &Value::from("no shard serves")));
    assert_eq!(gateway.http("GET", "/healthz").await.0, 200);
    for proxy in &fixture.proxies {
        proxy.lift().await;
    }
    until_state(&gateway, "shop-s0-a", "SERVING").await;
    until_state(&gateway, "shop-s1-a", "SERVING").await;
    assert_eq!(ready(&gateway).await.0, 200);
}

/// A look given up closes its connection: a tablet that never answers must not collect connections.
#[tokio::test]
async fn late_looks_leave_no_connection_behind() {
    let server = MariaDb::start();
    let fixture = Fixture::on(Layout::Unsharded, MariaDb::shared(0), &[&server], &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let polled = || async {
        let (_, vars) = gateway.http("GET", "/debug/vars").await;
        let vars: Value = serde_json::from_str(&vars).unwrap();
        vars["PollFailures"]["shop---a.timeout"].as_u64().unwrap()
    };
    fixture.fault(0, Fault::Stall).await;
    wait::until("five late looks", LIMIT, || async {
        (polled().await >= 5).then_some(())
    })
    .await;
    let mut direct = server.conn().await;
    let open = answer::ok(
        &mut direct,
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app' AND db IS NULL",
    )
    .await
    .single()
    .parse::<u32>()
    .unwrap();
    assert!(open <= 2, "{open} connections of the poller are open");
}

#[tokio::test]
async fn a_gateway_starts_over_tablets_that_are_all_down() {
    let fixture = Fixture::scenario().await;
    for shard in 0..2 {
        fixture.fault(shard, Fault::Refuse).await;
    }
    let gateway = fixture.gateway();
    let (status, body) = ready(&gateway).await;
    assert_eq!(status, 503, "{body}");
    assert_eq!(body["shards_not_serving"].as_array().unwrap().len(), 2);
    assert!(states(&gateway).await.iter().all(|(_, s)| s == "NOT_SERVING"));
    fixture.proxies[0].lift().await;
    until_state(&gateway, "shop-s0-a", "SERVING").await;
    let (status, body) = ready(&gateway).await;
    assert_eq!((status, &body["shards_serving"]), (200, &Value::from(1)));
}

#[tokio::test]
async fn read_only_is_seen_and_logged_when_it_changes() {
    let server = MariaDb::start();
    let (_fixture, gateway) = beside(&server).await;
    let mut direct = server.conn().await;
    let seen = health_of(&gateway, "s1", "shop-s1-a").await;
    assert_eq!(seen["answered"]["read_only"], false, "{seen}");
    assert_eq!(seen["answered"]["replication"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["answered"]["server"]["port"], server.addr().port(), "{seen}");
    for (value, wanted, reason) in [("1", true, "read_only"), ("0", false, "writable")] {
        direct
            .query_drop(format!("SET GLOBAL read_only = {value}"))
            .await
            .unwrap();
        until_health(
            &gateway,
            "shop-s1-a",
            reason,
            "/answered/read_only",
            wanted.into(),
        )
        .await;
        let log = gateway.process().stderr();
        assert_eq!(log.matches(&format!("reason=\"{reason}\"")).count(), 1, "{log}");
    }
}

/// A user who may not see replication is told so once, and its tablet serves.
#[tokio::test]
async fn a_missing_privilege_is_unknown_replication_not_a_dead_server() {
    let server = MariaDb::start();
    let (fixture, gateway) = beside(&server).await;
    drop(gateway);
    let mut direct = server.conn().await;
    for sql in [
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'app'@'%'",
        &format!("GRANT ALL ON `{}`.* TO 'app'@'%'", fixture.shards[1].name),
    ] {
        direct.query_drop(sql).await.unwrap();
    }
    let config = fixture
        .config()
        .replace(&fixture.proxies[1].addr().to_string(), &server.addr().to_string());
    let gateway = Gateway::serve(&config);
    let seen = health_of(&gateway, "s1", "shop-s1-a").await;
    assert_eq!(seen["serving"], true, "{seen}");
    let why = seen["answered"]["replication_unknown"].as_str().unwrap();
    assert!(why.starts_with("privilege missing"), "{why}");
    wait::until("a second look", LIMIT, || async {
        let (_, vars) = gateway.http("GET", "/debug/vars").await;
        let vars: Value = serde_json::from_str(&vars).unwrap();
        (vars["Polls"]["shop-s1-a"].as_u64() >= Some(3)).then_some(())
    })
    .await;
    let log = gateway.process().stderr();
    assert_eq!(log.matches("reason=\"replication_unknown\"").count(), 1, "{log}");
}

#[tokio::test]
async fn a_tablet_added_by_a_reload_serves_as_soon_as_the_reload_is_done() {
    let fixture = Fixture::scenario().await;
    // The replica is the primary's own server, which takes writes.
    let gateway = Gateway::serve(&fixture.config_with("[poller]\nprimary_source = \"config\"\n"));
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let first = format!(
        "{{ alias = \"shop-s0-a\", address = \"{}\" }}",
        fixture.proxies[0].addr()
    );
    let replica = format!(
        "{first}, {{ alias = \"shop-s0-b\", address = \"{}\", role = \"replica\" }}",
        fixture.shards[0].addr
    );
    std::fs::write(gateway.config_file(), config.replace(&first, &replica)).unwrap();
    let (status, body) = gateway.http("POST", "/api/reload").await;
    assert_eq!(status, 200, "{body}");
    let all = states(&gateway).await;
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|(_, s)| s == "SERVING"), "{all:?}");

    std::fs::write(gateway.config_file(), config).unwrap();
    assert_eq!(gateway.http("POST", "/api/reload").await.0, 200);
    assert_eq!(states(&gateway).await.len(), 2);
    assert!(health_of(&gateway, "s0", "shop-s0-b").await.is_null());
}

#[tokio::test]
async fn a_simulated_tablet_is_seen_slow_read_only_and_well_again() {
    let tablets =
        ["s0", "s1"].map(|alias| TabletSim::start(alias, "CREATE TABLE t (id BIGINT PRIMARY KEY);"));
    let gateway = Gateway::serve(&sim::config(&tablets, ""));
    let alias = "shop-s1-a";
    assert!(states(&gateway).await.iter().all(|(_, s)| s == "SERVING"));
    tablets[1].fault(r#"{"kind":"latency","ms":2000}"#).await;
    until_state(&gateway, alias, "NOT_SERVING").await;
    assert_eq!(health_of(&gateway, "s1", alias).await["error"]["kind"], "timeout");
    tablets[1].fault(r#"{"kind":"read_only"}"#).await;
    until_state(&gateway, alias, "SERVING").await;
    until_health(&gateway, alias, "read only", "/answered/read_only", true.into()).await;
    tablets[1].lift().await;
    until_health(&gateway, alias, "writable", "/answered/read_only", false.into()).await;
}

/// A gateway that is to stop says so to its balancer while transactions still end.
#[tokio::test]
async fn a_stopping_gateway_is_not_ready_while_it_still_answers() {
    let fixture = Fixture::scenario().await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "SELECT * FROM t WHERE id = 1 FOR UPDATE").await;
    assert_eq!(ready(&gateway).await.0, 200);
    gateway.process().signal("TERM");
    wait::until("503", LIMIT, || async {
        let (status, body) = ready(&gateway).await;
        (status == 503).then(|| assert_eq!(body["why"], "shutting down"))
    })
    .await;
    assert_eq!(gateway.http("GET", "/healthz").await.0, 200);
    answer::ok(&mut conn, "COMMIT").await;
    assert_eq!(gateway.process().ended(LIMIT).await, 0);
}
