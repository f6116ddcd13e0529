//! Breakers, deadlines of attempts and retries: scenarios T1, B2, B6.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use serde_json::Value;
use shardgate_tests::answer::Refusal;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fault, Fixture, Gateway, Layout, TabletSim, answer, sim, wait};
const LIMIT: Duration = Duration::from_secs(20);

/// A shard without a primary is its breaker's business alone.
pub(crate) const UNBUFFERED: &str = "[buffer]\nenable_buffer = false\n";

/// Shards of fifty rows each, row `id` on shard `id` modulo their number.
pub(crate) struct Shards {
    pub(crate) tablets: Vec<TabletSim>,
    pub(crate) gateway: Gateway,
}

impl Shards {
    pub(crate) fn start(count: i64, sections: &str) -> Self {
        let tablet = |n: i64| {
            let rows: Vec<String> = (0..50)
                .map(|i| format!("({}, {i}, {i})", i * count + n))
                .collect();
            let init = format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);\nINSERT INTO t VALUES {};\n",
                rows.join(", ")
            );
            TabletSim::start(&format!("s{n}"), &init)
        };
        let tablets: Vec<_> = (0..count).map(tablet).collect();
        let gateway = Gateway::serve(&sim::config(&tablets, sections));
        Self { tablets, gateway }
    }

    pub(crate) async fn conn(&self) -> Conn {
        self.gateway.conn(KEYSPACE).await
    }

    pub(crate) async fn vars(&self) -> Value {
        let (status, body) = self.gateway.http("GET", "/debug/vars").await;
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }

    /// All counters of a tree together.
    pub(crate) async fn counter_sum(&self, tree: &str) -> u64 {
        let vars = self.vars().await;
        let all = vars[tree].as_object().unwrap().values();
        all.filter_map(Value::as_u64).sum()
    }

    pub(crate) async fn counter(&self, tree: &str, label: &str) -> u64 {
        self.vars().await[tree][label].as_u64().unwrap_or(0)
    }
}

pub(crate) fn timeouts(gateway_ms: u64, tablet_ms: u64) -> String {
    format!(
        "[timeouts]\nmysql_server_query_timeout = \"{gateway_ms}ms\"\nqueryserver_config_query_timeout = \
         \"{tablet_ms}ms\"\nkill_grace = \"200ms\"\n"
    )
}

pub(crate) async fn refused(conn: &mut Conn, sql: &str) -> (Refusal, Duration) {
    let began = Instant::now();
    let refusal = wait::within(sql, LIMIT, answer::refused(conn, sql)).await;
    (refusal, began.elapsed())
}

/// T1 [vitess#16624 #7031]: legs that run one after another share the statement's deadline, and each attempt has the
/// tablet's.
#[tokio::test]
async fn legs_in_a_row_end_at_the_statements_deadline_and_the_unfinished_are_named() {
    let config = format!("{}[guard]\nfan_out = 1\nbreakers = false\n", timeouts(300, 200));
    let shards = Shards::start(4, &config);
    let mut conn = shards.conn().await;
    assert_eq!(answer::ok(&mut conn, "SELECT * FROM t").await.rows.len(), 200);
    for tablet in &shards.tablets {
        tablet
            .fault(r#"{"kind":"latency","ms":150,"statement":"from t"}"#)
            .await;
    }
    let (refusal, took) = refused(&mut conn, "SELECT * FROM t").await;
    assert_eq!(refusal.errno, 3024, "{refusal}");
    assert!(refusal.message.starts_with("SG2201"), "{refusal}");
    assert!(
        took >= Duration::from_millis(280) && took < Duration::from_millis(600),
        "{took:?}"
    );
    for unfinished in ["shop/s2", "shop/s3"] {
        assert!(refusal.message.contains(unfinished), "{refusal}");
    }
    assert!(!refusal.message.contains("shop/s0"), "{refusal}");

    // One shard answers within both limits, and one that does not within the tablet's is told apart.
    answer::ok(&mut conn, "USE `shop:s1`").await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "50"
    );
    shards.tablets[1]
        .fault(r#"{"kind":"latency","ms":280,"statement":"from t"}"#)
        .await;
    let (refusal, took) = refused(&mut conn, "SELECT COUNT(*) FROM t").await;
    assert!(refusal.message.starts_with("SG2202"), "{refusal}");
    assert!(refusal.message.contains("shop/s1"), "{refusal}");
    assert!(
        took >= Duration::from_millis(180) && took < Duration::from_millis(500),
        "{took:?}"
    );
}

/// Slow fails as fast as dead: after a few bounded waits a stuck shard costs nothing any more, and the others never
/// notice. Then it comes back by probes.
#[tokio::test]
async fn a_stuck_shard_is_refused_at_once_and_taken_back_when_it_answers() {
    let config = format!(
        "{}[shard_breaker]\ncooldown = \"500ms\"\ncooldown_jitter = 0\n",
        timeouts(400, 250)
    );
    let shards = Shards::start(2, &config);
    let mut conn = shards.conn().await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "100"
    );
    shards.tablets[1]
        .fault(r#"{"kind":"hang","statement":"from t"}"#)
        .await;
    // Three kinds of statement time out, so it is not one kind's fault.
    for sql in [
        "SELECT v FROM t WHERE id = 1",
        "SELECT k FROM t WHERE id = 1",
        "SELECT v, k FROM t WHERE id = 1",
    ] {
        let (refusal, took) = refused(&mut conn, sql).await;
        assert!(refusal.message.starts_with("SG2202"), "{refusal}");
        assert!(took < Duration::from_millis(700), "{took:?}");
    }
    let (refusal, took) = refused(&mut conn, "SELECT v FROM t WHERE id = 3").await;
    assert_eq!((refusal.errno, refusal.state.as_str()), (1105, "HY000"));
    assert!(
        refusal
            .message
            .starts_with("SG2103: shop/s1 refused, breaker open"),
        "{refusal}"
    );
    assert!(refusal.message.contains("timeouts in a row"), "{refusal}");
    assert!(refusal.message.contains("probe in"), "{refusal}");
    assert!(took < Duration::from_millis(100), "{took:?}");
    let (refusal, _) = refused(&mut conn, "SELECT COUNT(*) FROM t").await;
    assert!(refusal.message.starts_with("SG2103: shop/s1"), "{refusal}");
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "1",
        "the other shard serves"
    );
    let label = "shard.shop/s1.trips.consecutive_timeouts";
    assert_eq!(shards.counter("Breakers", label).await, 1);

    shards.tablets[1].lift().await;
    wait::until("the shard to be taken back", LIMIT, || async {
        let mut fresh = shards.conn().await;
        answer::text(&mut fresh, "SELECT COUNT(*) FROM t")
            .await
            .ok()
            .filter(|a| a.single() == "100")
    })
    .await;
}

pub(crate) async fn loop_until_refused(conn: &mut Conn, sql: &str, code: &str) -> (Refusal, Duration) {
    for _ in 0..10 {
        let (refusal, took) = refused(conn, sql).await;
        if refusal.message.starts_with(code) {
            return (refusal, took);
        }
    }
    panic!("{sql} is never refused with {code}");
}

/// A read that failed before a row was sent is tried again; a write never is.
#[tokio::test]
async fn a_read_is_tried_again_on_a_fresh_connection_and_a_write_is_not() {
    let shards = Shards::start(2, &timeouts(2000, 1000));
    let mut conn = shards.conn().await;
    for sql in ["SELECT v FROM t WHERE id = 3", "SELECT COUNT(*) FROM t"] {
        shards.tablets[1]
            .fault(r#"{"kind":"reset","statement":"from t","times":1}"#)
            .await;
        answer::ok(&mut conn, sql).await;
    }
    assert_eq!(shards.counter("Retries", "shop/s1.tried").await, 2);
    shards.tablets[1]
        .fault(r#"{"kind":"reset","statement":"update t","times":1}"#)
        .await;
    let refusal = answer::refused(&mut conn, "UPDATE t SET v = 9 WHERE id = 3").await;
    assert!(refusal.message.starts_with("SG2401"), "{refusal}");
    assert_eq!(shards.counter("Retries", "shop/s1.tried").await, 2);
}

/// B6 [semian#420 #171, `mysql_async`#96]: what a statement does wrong is not held against its shard, what the shard does
/// wrong is.
#[tokio::test]
async fn a_shard_is_blamed_for_its_own_failures_only() {
    let kinds = [
        "SELECT v FROM t WHERE id = 1",
        "SELECT k FROM t WHERE id = 1",
        "SELECT v, k FROM t WHERE id = 1",
    ];
    for (code, trips) in [(1064, false), (1062, false), (1205, false), (1047, true)] {
        let shards = Shards::start(2, &timeouts(2000, 1000));
        let mut conn = shards.conn().await;
        let fault = format!(r#"{{"kind":"error","code":{code},"statement":"from t"}}"#);
        shards.tablets[1].fault(&fault).await;
        for n in 0..100 {
            answer::refused(&mut conn, kinds[n % 3]).await;
        }
        let (last, _) = refused(&mut conn, kinds[0]).await;
        assert_eq!(last.message.starts_with("SG2103"), trips, "{code}: {last}");
    }
    // A server without room says so with a number of its own.
    let shards = Shards::start(2, &timeouts(2000, 1000));
    let mut conn = shards.conn().await;
    shards.tablets[1]
        .fault(r#"{"kind":"error","code":1040,"message":"Too many connections","statement":"from t"}"#)
        .await;
    let (refusal, _) = refused(&mut conn, kinds[0]).await;
    assert_eq!(refusal.errno, 1040, "a server's own error passes: {refusal}");
    assert_eq!(
        shards
            .counter("TabletCallOutcomes", "Execute.shop.s1.primary.saturation")
            .await,
        1
    );
}

/// Refused connections open the breaker too, although no statement was ever sent.
#[tokio::test]
async fn a_server_that_refuses_connections_is_refused_in_turn() {
    let shards = Shards::start(2, &format!("{}{UNBUFFERED}", timeouts(2000, 1000)));
    let mut conn = shards.conn().await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
    shards.tablets[1].process().signal("KILL");
    let began = Instant::now();
    let (refusal, _) = loop_until_refused(&mut conn, "SELECT v FROM t WHERE id = 1", "SG2103").await;
    assert!(refusal.message.contains("shop/s1"), "{refusal}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// The tablet holds statements to the limit by itself too, for the day the gateway cannot; what has no limit is not held.
#[tokio::test]
async fn tablets_hold_statements_to_the_limit_by_themselves() {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[TABLE_T]).await;
    let gateway = Gateway::serve(&fixture.config_with(&format!("{}{}", pool(2), timeouts(3000, 2000))));
    let mut conn = gateway.conn(KEYSPACE).await;
    let asked =
        "SELECT @@max_statement_time FROM t WHERE id = 1 UNION ALL SELECT @@max_statement_time LIMIT 1";
    let limit = async |conn: &mut Conn| answer::ok(conn, asked).await.single();
    answer::ok(&mut conn, "USE `shop:s1`").await;
    assert_eq!(limit(&mut conn).await, "2.200000");
    for (set, expected) in [
        ("SET workload = 'olap'", "0.000000"),
        ("SET workload = 'oltp'", "2.200000"),
        ("SET query_timeout = 0", "0.000000"),
        ("SET query_timeout = DEFAULT", "2.200000"),
        ("SET max_statement_time = 7", "7.000000"),
        ("SET max_statement_time = DEFAULT", "2.200000"),
    ] {
        answer::ok(&mut conn, set).await;
        assert_eq!(limit(&mut conn).await, expected, "{set}");
    }
}

/// A read may call a function that writes: what was sent once is not sent again.
#[tokio::test]
async fn a_read_that_calls_a_stored_function_is_never_run_twice() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let bump = "CREATE FUNCTION bump() RETURNS INT MODIFIES SQL DATA \
                BEGIN INSERT INTO t VALUES (UUID_SHORT(), 1, 1, 'x'); RETURN 1; END";
    fixture.shards[0].run(&[bump]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await;
    fixture.fault(0, Fault::LoseReplyAfter("bump()".into())).await;
    let refusal = answer::refused(&mut conn, "SELECT bump()").await;
    assert!(refusal.message.starts_with("SG2401"), "{refusal}");
    fixture.fault(0, Fault::None).await;
    let mut direct = fixture.shards[0].conn().await;
    assert_eq!(
        answer::ok(&mut direct, "SELECT COUNT(*) FROM t").await.single(),
        "1"
    );
}
