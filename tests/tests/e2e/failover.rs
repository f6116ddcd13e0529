//! Requests that wait for a primary: scenarios R1-R4, and what else waits, goes on or is refused. What real failovers do
//! to a stream of writes is `failovers`.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde_json::Value;
use shardgate_tests::answer::Refusal;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, head};
use shardgate_tests::gateway::run_with_config;
use shardgate_tests::{Gateway, Replicated, TabletSim, answer, sim, wait};
use tokio::task::JoinHandle;

const LIMIT: Duration = Duration::from_secs(20);
const READ_ONLY: &str = r#"{"kind":"read_only"}"#;

/// Simulated shards `s0`, `s1`, ... of one tablet each; row `id` is on shard `id` modulo their number.
struct Shards {
    tablets: Vec<TabletSim>,
    gateway: Gateway,
}

impl Shards {
    fn start(count: usize, sections: &str) -> Self {
        let init = "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);\n";
        let tablets: Vec<_> = (0..count)
            .map(|n| TabletSim::start(&format!("s{n}"), init))
            .collect();
        let gateway = Gateway::serve(&sim::config(&tablets, sections));
        Self { tablets, gateway }
    }

    async fn conn(&self) -> Conn {
        self.gateway.conn(KEYSPACE).await
    }

    /// Runs a statement on a connection of its own.
    async fn spawn(&self, sql: &'static str) -> Running {
        let mut conn = self.conn().await;
        tokio::spawn(async move {
            let began = Instant::now();
            let result = conn.query_drop(sql).await;
            (result.map_err(|e| e.to_string()), began.elapsed())
        })
    }

    /// Waits until so many requests wait for this shard.
    async fn until_waiting(&self, shard: &str, count: u64) {
        until_waiting(&self.gateway, shard, count).await;
    }

    async fn reparent(&self, shard: &str, step: &str) -> u16 {
        let path = format!("/api/shards/{KEYSPACE}/{shard}/reparent");
        let body = format!("{{\"reparent\": \"{step}\"}}");
        self.gateway.http_with("POST", &path, &body).await.0
    }

    async fn ids(&self) -> Vec<String> {
        let mut conn = self.conn().await;
        let rows = answer::ok(&mut conn, "SELECT id FROM t ORDER BY id")
            .await
            .cells();
        rows.into_iter().flatten().collect()
    }
}

type Running = JoinHandle<(Result<(), String>, Duration)>;

async fn vars(gateway: &Gateway) -> Value {
    let (status, body) = gateway.http("GET", "/debug/vars").await;
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap()
}

/// `BufferX{keyspace.shard}`, or of a reason.
async fn count(gateway: &Gateway, name: &str, shard: &str) -> u64 {
    let label = format!("{KEYSPACE}.{shard}");
    let value = &vars(gateway).await[name][&label];
    let number = value
        .as_u64()
        .or_else(|| value.as_f64().and_then(|f| format!("{f:.0}").parse().ok()));
    number.unwrap_or_else(|| panic!("{name} has no {label}"))
}

async fn until_waiting(gateway: &Gateway, shard: &str, wanted: u64) {
    wait::until(
        &format!("{wanted} requests to wait for {shard}"),
        LIMIT,
        || async { (count(gateway, "BufferRequestsInFlight", shard).await == wanted).then_some(()) },
    )
    .await;
}

async fn ended(running: Running) -> (Result<(), String>, Duration) {
    wait::within("a statement that waited", LIMIT, running)
        .await
        .unwrap()
}

async fn went_through(running: Running) {
    let (result, _) = ended(running).await;
    assert_eq!(result, Ok(()));
}

async fn failed(running: Running, code: &str) -> Duration {
    let (result, took) = ended(running).await;
    let error = result.expect_err(code);
    assert!(error.contains(code), "{code}: {error}");
    took
}

fn is(refusal: &Refusal, code: &str) -> bool {
    refusal.message.starts_with(code)
}

/// R1 [vitess#16438 #13854]
#[tokio::test]
async fn each_shard_waits_goes_on_and_gives_up_on_its_own() {
    let bounds = "[buffer]\nbuffer_window = \"2s\"\nbuffer_max_failover_duration = \"2s\"\n";
    let shards = Shards::start(3, bounds);
    for tablet in &shards.tablets[..2] {
        tablet.fault(READ_ONLY).await;
    }
    let first = shards.spawn("INSERT INTO t VALUES (0, 0, 0)").await;
    let second = shards.spawn("INSERT INTO t VALUES (1, 1, 1)").await;
    // Somebody else's shard notices nothing.
    answer::ok(&mut shards.conn().await, "INSERT INTO t VALUES (2, 2, 2)").await;
    shards.until_waiting("s0", 1).await;
    shards.until_waiting("s1", 1).await;
    shards.tablets[0].lift().await;
    went_through(first).await;
    assert_eq!(count(&shards.gateway, "BufferRequestsInFlight", "s1").await, 1);
    // Its own window is over first, or the shard's.
    let took = failed(second, "SG270").await;
    assert!(took >= Duration::from_millis(1900), "{took:?}");
    for (name, shard) in [
        ("BufferStops", "s0.NewPrimarySeen"),
        ("BufferRequestsDrained", "s0"),
    ] {
        assert_eq!(count(&shards.gateway, name, shard).await, 1, "{name} {shard}");
    }
    wait::until("s1 to be given up", LIMIT, || async {
        (count(&shards.gateway, "BufferStops", "s1.MaxDurationExceeded").await == 1).then_some(())
    })
    .await;
    let evicted = count(&shards.gateway, "BufferRequestsEvicted", "s1.WindowExceeded").await
        + count(&shards.gateway, "BufferRequestsEvicted", "s1.MaxDurationExceeded").await;
    assert_eq!(evicted, 1);
    // Given up, its breaker is open: nobody waits again.
    let mut conn = shards.conn().await;
    let refusal = answer::refused(&mut conn, "INSERT INTO t VALUES (1, 1, 1)").await;
    assert!(
        is(&refusal, "SG2103") && refusal.message.contains("reparent buffer gave up"),
        "{refusal}"
    );
    // It comes back by itself.
    shards.tablets[1].lift().await;
    wait::until("s1 to take writes", LIMIT, || async {
        let mut conn = shards.conn().await;
        conn.query_drop("REPLACE INTO t VALUES (1, 1, 1)").await.ok()
    })
    .await;
    assert_eq!(shards.ids().await, ["0", "1", "2"]);
}

/// R2 [vitess#2486]
#[tokio::test]
async fn a_full_buffer_lets_its_oldest_go_and_who_leaves_frees_a_place() {
    let shards = Shards::start(1, "[buffer]\nbuffer_size = 2\n");
    shards.tablets[0].fault(r#"{"kind":"black_hole"}"#).await;
    assert_eq!(shards.reparent("s0", "start").await, 200);
    let first = shards.spawn("INSERT INTO t VALUES (1, 1, 1)").await;
    shards.until_waiting("s0", 1).await;
    let second = shards.spawn("INSERT INTO t VALUES (2, 2, 2)").await;
    shards.until_waiting("s0", 2).await;
    let third = shards.spawn("INSERT INTO t VALUES (3, 3, 3)").await;
    failed(first, "SG2701").await;
    // Its connection closes with it.
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    shards.until_waiting("s0", 1).await;
    assert_eq!(
        count(&shards.gateway, "BufferRequestsEvicted", "s0.ContextDone").await,
        1
    );
    let fourth = shards.spawn("INSERT INTO t VALUES (4, 4, 4)").await;
    shards.until_waiting("s0", 2).await;
    shards.tablets[0].lift().await;
    assert_eq!(shards.reparent("s0", "end").await, 200);
    went_through(third).await;
    went_through(fourth).await;
    assert_eq!(shards.ids().await, ["3", "4"]);
    assert_eq!(count(&shards.gateway, "BufferRequestsInFlight", "s0").await, 0);
    let evicted = count(&shards.gateway, "BufferRequestsEvicted", "s0.BufferFull").await;
    let drained = count(&shards.gateway, "BufferRequestsDrained", "s0").await;
    assert_eq!((evicted, drained), (1, 2));
    assert_eq!(count(&shards.gateway, "BufferRequestsBuffered", "s0").await, 4);
}

/// A gateway over one shard of two MariaDB servers.
async fn replicated(sections: &str) -> (Replicated, shardgate_tests::Database, Gateway) {
    let servers = Replicated::start(2).await;
    let database = servers.create_database("s0").await;
    database.run(&[TABLE_T]).await;
    servers.catch_up().await;
    let gateway = Gateway::serve(&config(&servers, &database.name, sections));
    (servers, database, gateway)
}

fn config(servers: &Replicated, database: &str, sections: &str) -> String {
    format!(
        "{}[keyspaces.{KEYSPACE}]\n[[keyspaces.{KEYSPACE}.shards]]\nname = \"-\"\ndatabase = \"{database}\"\n\
         tablets = [{{ alias = \"a\", address = \"{}\" }}, {{ alias = \"b\", address = \"{}\", role = \"replica\" }}]\n",
        head(sections),
        servers.server(0).addr(),
        servers.server(1).addr(),
    )
}

/// R3 [vitess#7875]
#[tokio::test]
async fn a_reparent_fails_open_transactions_at_once_and_sessions_go_on_with_their_settings() {
    let (mut servers, _database, gateway) = replicated("").await;
    let (mut a, mut b) = (gateway.conn(KEYSPACE).await, gateway.conn(KEYSPACE).await);
    answer::ok(
        &mut a,
        "SET @mine = 7, sql_mode = 'ANSI_QUOTES', time_zone = '+03:00'",
    )
    .await;
    answer::ok(&mut b, "BEGIN").await;
    answer::ok(&mut b, "INSERT INTO t VALUES (1, 1, 1, 'lost')").await;
    servers.promote(1).await;
    let began = Instant::now();
    let refusal = answer::refused(&mut b, "INSERT INTO t VALUES (2, 2, 2, 'lost')").await;
    assert!(began.elapsed() < Duration::from_secs(5), "{refusal}");
    answer::ok(&mut b, "ROLLBACK").await;
    answer::ok(&mut b, "INSERT INTO t VALUES (3, 3, 3, 'b')").await;
    answer::ok(&mut a, "INSERT INTO t VALUES (4, 4, 4, 'a')").await;
    let settings = answer::ok(&mut a, "SELECT @mine, @@sql_mode, @@time_zone, @@server_id").await;
    assert_eq!(settings.cells()[0], ["7", "ANSI_QUOTES", "+03:00", "2"]);
    let rows = answer::ok(&mut a, "SELECT id FROM t ORDER BY id").await;
    assert_eq!(rows.rows.len(), 2, "{rows:?}");
    assert_eq!(vars(&gateway).await["PrimaryChanges"]["shop.-"], 1);
    let tablets = answer::ok(&mut a, "SHOW SHARDGATE TABLETS").await;
    let roles: Vec<_> = tablets
        .cells()
        .into_iter()
        .map(|row| (row[0].clone(), row[3].clone()))
        .collect();
    assert_eq!(
        roles,
        [
            ("b".to_owned(), "primary".to_owned()),
            ("a".to_owned(), "replica".to_owned())
        ]
    );
}

/// What a session holds of a primary that was replaced is let go, be that server still writable: nobody would ever see
/// what it writes there.
#[tokio::test]
async fn nothing_a_session_holds_of_a_replaced_primary_is_used_any_more() {
    let (servers, database, gateway) = replicated("[poller]\nprimary_source = \"api\"\n").await;
    let (mut open, mut locked) = (gateway.conn(KEYSPACE).await, gateway.conn(KEYSPACE).await);
    answer::ok(&mut open, "BEGIN").await;
    answer::ok(&mut open, "INSERT INTO t VALUES (1, 1, 1, 'lost')").await;
    assert_eq!(
        answer::ok(&mut locked, "SELECT GET_LOCK('mine', 0)")
            .await
            .single(),
        "1"
    );
    // The old primary goes on to take writes.
    servers
        .run(1, &["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"])
        .await;
    let path = format!("/api/shards/{KEYSPACE}/-/primary");
    assert_eq!(
        gateway.http_with("PUT", &path, "{\"tablet\": \"b\"}").await.0,
        200
    );
    let refusal = answer::refused(&mut open, "COMMIT").await;
    assert!(is(&refusal, "SG2402"), "{refusal}");
    answer::ok(&mut open, "ROLLBACK").await;
    answer::ok(&mut open, "INSERT INTO t VALUES (2, 2, 2, 'b')").await;
    let refusal = answer::refused(&mut locked, "SELECT COUNT(*) FROM t").await;
    assert!(is(&refusal, "SG2407"), "{refusal}");
    let ids = async |n: usize| {
        let mut conn = servers.server(n).conn().await;
        let ids: Vec<u64> = conn
            .query(format!("SELECT id FROM {}.t", database.name))
            .await
            .unwrap();
        ids
    };
    assert_eq!((ids(0).await, ids(1).await), (vec![], vec![2]));
}

/// What a replaced primary answers late, nobody's question is answered with: what it took is not what the shard holds.
#[tokio::test]
async fn the_late_answers_of_a_replaced_primary_are_not_passed_on() {
    let (mut servers, _database, gateway) = replicated("").await;
    let (mut open, mut write) = (gateway.conn(KEYSPACE).await, gateway.conn(KEYSPACE).await);
    let mut read = gateway.conn(KEYSPACE).await;
    // Each has a connection to be stuck on.
    answer::ok(&mut open, "BEGIN").await;
    answer::ok(&mut open, "INSERT INTO t VALUES (1, 1, 1, 'open')").await;
    answer::ok(&mut read, "BEGIN").await;
    answer::ok(&mut read, "SELECT * FROM t WHERE id = 1").await;
    answer::ok(&mut write, "INSERT INTO t VALUES (2, 2, 2, 'kept')").await;
    answer::ok(&mut read, "ROLLBACK").await;
    servers.catch_up().await;
    servers.freeze(0);
    let stuck = [
        tokio::spawn(async move { answer::text(&mut open, "COMMIT").await }),
        tokio::spawn(async move { answer::text(&mut write, "INSERT INTO t VALUES (3, 3, 3, 'lost')").await }),
        tokio::spawn(async move { answer::text(&mut read, "SELECT @@server_id FROM t WHERE id = 2").await }),
    ];
    wait::until("three to be stuck", LIMIT, || async {
        (vars(&gateway).await["PoolBusy"]["a"] == 3.0).then_some(())
    })
    .await;
    servers.promote_most_advanced().await;
    wait::until("its successor", LIMIT, || async {
        (count(&gateway, "PrimaryChanges", "-").await == 1).then_some(())
    })
    .await;
    servers.thaw(0);
    let [commit, insert, select] = stuck;
    for write in [commit, insert] {
        let refusal = wait::within("a stuck write", LIMIT, write)
            .await
            .unwrap()
            .unwrap_err();
        assert!(is(&refusal, "SG2401"), "{refusal}");
    }
    let answer = wait::within("a stuck read", LIMIT, select)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.single(), "2");
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(answer::ok(&mut conn, "SELECT id FROM t").await.single(), "2");
}

/// R4 [vitess#2085]
#[tokio::test]
async fn a_write_whose_ok_is_lost_is_of_unknown_outcome_and_never_sent_again() {
    let shards = Shards::start(1, "");
    shards.tablets[0]
        .fault(r#"{"kind":"lose_ok","statement":"insert"}"#)
        .await;
    let mut conn = shards.conn().await;
    let refusal = answer::refused(&mut conn, "INSERT INTO t VALUES (1, 1, 1)").await;
    assert!(is(&refusal, "SG2401"), "{refusal}");
    assert_eq!(shards.ids().await, ["1"]);
}

/// Whatever holds nothing waits, in whichever form it comes.
#[tokio::test]
async fn prepared_statements_first_statements_of_transactions_and_writes_of_several_shards_wait() {
    let shards = Shards::start(2, "");
    let mut conn = shards.conn().await;
    let insert = conn.prep("INSERT INTO t VALUES (?, ?, ?)").await.unwrap();
    shards.tablets[0].fault(READ_ONLY).await;
    let prepared = tokio::spawn(async move {
        conn.exec_drop(&insert, (2, 2, 2)).await.unwrap();
    });
    let mut conn = shards.conn().await;
    let in_transaction = tokio::spawn(async move {
        for sql in [
            "BEGIN",
            "INSERT INTO t VALUES (4, 4, 4)",
            "INSERT INTO t VALUES (8, 8, 8)",
            "COMMIT",
        ] {
            conn.query_drop(sql).await.unwrap();
        }
    });
    let both = shards.spawn("INSERT INTO t VALUES (6, 6, 6), (7, 7, 7)").await;
    shards.until_waiting("s0", 3).await;
    // Reads wait with them, of one shard and of all: they would be answered by a primary that is none any more.
    let one = shards.spawn("SELECT * FROM t WHERE id = 0").await;
    let all = shards.spawn("SELECT COUNT(*) FROM t").await;
    shards.until_waiting("s0", 5).await;
    let mut other = shards.conn().await;
    answer::ok(&mut other, "SELECT * FROM t WHERE id = 1").await;
    let shown = answer::ok(&mut other, "SHOW SHARDGATE BUFFER").await.cells();
    let of = |row: usize, column: usize| shown[row][column].clone();
    assert_eq!(
        (of(0, 1), of(0, 2), of(0, 5)),
        ("s0".into(), "buffering".into(), "5".into())
    );
    assert_eq!(
        (of(0, 8), of(1, 2)),
        ("its primary is read-only".into(), "idle".into())
    );
    shards.tablets[0].lift().await;
    wait::within("a prepared statement", LIMIT, prepared)
        .await
        .unwrap();
    wait::within("a transaction", LIMIT, in_transaction)
        .await
        .unwrap();
    for running in [both, one, all] {
        went_through(running).await;
    }
    assert_eq!(shards.ids().await, ["2", "4", "6", "7", "8"]);
}

/// What holds something does not wait: others wait for it.
#[tokio::test]
async fn a_transaction_that_holds_something_fails_at_once() {
    let shards = Shards::start(2, "");
    let mut conn = shards.conn().await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (1, 1, 1)").await;
    shards.tablets[0].fault(READ_ONLY).await;
    let refusal = answer::refused(&mut conn, "INSERT INTO t VALUES (2, 2, 2)").await;
    assert_eq!(refusal.errno, 1290, "{refusal}");
    assert_eq!(count(&shards.gateway, "BufferRequestsBuffered", "s0").await, 0);
    answer::ok(&mut conn, "ROLLBACK").await;
    shards.tablets[0].lift().await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (2, 2, 2)").await;
    assert_eq!(shards.ids().await, ["2"]);
}

#[tokio::test]
async fn an_announced_reparent_holds_requests_and_each_has_its_own_deadline() {
    let shards = Shards::start(2, "");
    assert_eq!(shards.reparent("s0", "start").await, 200);
    let waiting = shards.spawn("INSERT INTO t VALUES (0, 0, 0)").await;
    let hasty = shards
        .spawn("SELECT /*vt+ QUERY_TIMEOUT_MS=300 */ * FROM t WHERE id = 0")
        .await;
    shards.until_waiting("s0", 2).await;
    let took = failed(hasty, "SG2201").await;
    assert!(took >= Duration::from_millis(290), "{took:?}");
    assert_eq!(count(&shards.gateway, "BufferRequestsInFlight", "s0").await, 1);
    assert_eq!(shards.reparent("s0", "end").await, 200);
    went_through(waiting).await;

    // Orchestrators that mistake a name, or speak where nobody listens, are told.
    assert_eq!(shards.reparent("s9", "start").await, 404);
    let appoint = |tablet: &str| {
        let body = format!("{{\"tablet\": \"{tablet}\"}}");
        let path = format!("/api/shards/{KEYSPACE}/s0/primary");
        let gateway = &shards.gateway;
        async move { gateway.http_with("PUT", &path, &body).await.0 }
    };
    assert_eq!((appoint("nobody").await, appoint("shop-s0-a").await), (404, 200));
    let off = Shards::start(
        1,
        "[buffer]\nenable_buffer = false\n[poller]\nprimary_source = \"config\"\n",
    );
    assert_eq!(off.reparent("s0", "start").await, 409);
    off.tablets[0].fault(READ_ONLY).await;
    let refusal = answer::refused(&mut off.conn().await, "INSERT INTO t VALUES (1, 1, 1)").await;
    assert_eq!(refusal.errno, 1290, "{refusal}");
}

/// A shard that is known to take no writes is seen before another commits.
#[tokio::test]
async fn a_commit_over_shards_commits_nothing_if_one_is_known_to_be_read_only() {
    let shards = Shards::start(2, "[buffer]\nenable_buffer = false\n");
    let mut conn = shards.conn().await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (10, 1, 1)").await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (11, 1, 1)").await;
    shards.tablets[1].fault(READ_ONLY).await;
    let mut other = shards.conn().await;
    wait::until("it to be seen read-only", LIMIT, || async {
        let (_, health) = shards.gateway.http("GET", "/debug/health").await;
        let health: Value = serde_json::from_str(&health).unwrap();
        let seen = &health["shards"]["shop/s1"]["shop-s1-a"]["answered"]["read_only"];
        (*seen == true).then_some(())
    })
    .await;
    let refusal = answer::refused(&mut conn, "COMMIT").await;
    assert!(is(&refusal, "SG2408"), "{refusal}");
    assert!(refusal.message.contains("shop/s1 had no primary"), "{refusal}");
    shards.tablets[1].lift().await;
    let rows = answer::ok(&mut other, "SELECT id FROM t WHERE id IN (10, 11)").await;
    assert!(rows.rows.is_empty(), "{rows:?}");
}

/// A primary that was made read-only under a transaction refuses its COMMIT and keeps it open.
#[tokio::test]
async fn a_commit_answered_1290_is_rolled_back() {
    let (servers, _database, gateway) = replicated("[poller]\nprimary_source = \"config\"\n").await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "INSERT INTO t VALUES (1, 1, 1, 'a')").await;
    servers.run(0, &["SET GLOBAL read_only = 1"]).await;
    let refusal = answer::refused(&mut conn, "COMMIT").await;
    assert_eq!(refusal.errno, 1290, "{refusal}");
    let mut root = servers.server(0).conn().await;
    let open: Option<u64> = root
        .query_first("SELECT COUNT(*) FROM information_schema.innodb_trx")
        .await
        .unwrap();
    assert_eq!(open, Some(0));
    servers.run(0, &["SET GLOBAL read_only = 0"]).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "0"
    );
    answer::ok(&mut conn, "INSERT INTO t VALUES (1, 1, 1, 'a')").await;
}

#[tokio::test]
async fn a_user_who_may_write_through_read_only_is_refused() {
    let (servers, database, gateway) = replicated("").await;
    let file = config(&servers, &database.name, "");
    drop(gateway);
    servers
        .run(0, &["GRANT READ ONLY ADMIN ON *.* TO 'app'@'%'"])
        .await;
    let gateway = Gateway::serve(&file);
    let mut conn = gateway.conn(KEYSPACE).await;
    let refusal = answer::refused(&mut conn, "INSERT INTO t VALUES (1, 1, 1, 'a')").await;
    assert!(
        is(&refusal, "SG2706") && refusal.message.contains("ONLY ADMIN"),
        "{refusal}"
    );
    let checked = run_with_config("check", &["--connect"], &file).await;
    assert_eq!(checked.code, 2, "{checked:?}");
    assert!(
        checked.stderr.contains("may write through read_only"),
        "{checked:?}"
    );
}

#[tokio::test]
async fn a_dry_run_counts_and_holds_nobody() {
    let shards = Shards::start(1, "[buffer]\nbuffer_dry_run = true\n");
    shards.tablets[0].fault(READ_ONLY).await;
    let refusal = answer::refused(&mut shards.conn().await, "INSERT INTO t VALUES (1, 1, 1)").await;
    assert_eq!(refusal.errno, 1290, "{refusal}");
    let refusal = answer::refused(&mut shards.conn().await, "INSERT INTO t VALUES (1, 1, 1)").await;
    assert_eq!(refusal.errno, 1290, "{refusal}");
    assert!(count(&shards.gateway, "BufferRequestsBufferedDryRun", "s0").await > 0);
    assert_eq!(count(&shards.gateway, "BufferRequestsBuffered", "s0").await, 0);
}
