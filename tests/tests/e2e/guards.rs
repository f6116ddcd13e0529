//! Breakers, deadlines of attempts, retries and partial answers: scenarios P2, T1, B2, B6.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde_json::Value;
use shardgate_tests::answer::Refusal;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fault, Fixture, Gateway, Layout, TabletSim, answer, sim, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// A shard without a primary is its breaker's business alone.
const UNBUFFERED: &str = "[buffer]\nenable_buffer = false\n";

/// Shards of fifty rows each, row `id` on shard `id` modulo their number.
struct Shards {
    tablets: Vec<TabletSim>,
    gateway: Gateway,
}

impl Shards {
    fn start(count: i64, sections: &str) -> Self {
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

    async fn conn(&self) -> Conn {
        self.gateway.conn(KEYSPACE).await
    }

    async fn vars(&self) -> Value {
        let (status, body) = self.gateway.http("GET", "/debug/vars").await;
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }

    /// All counters of a tree together.
    async fn counter_sum(&self, tree: &str) -> u64 {
        let vars = self.vars().await;
        let all = vars[tree].as_object().unwrap().values();
        all.filter_map(Value::as_u64).sum()
    }

    async fn counter(&self, tree: &str, label: &str) -> u64 {
        self.vars().await[tree][label].as_u64().unwrap_or(0)
    }
}

fn timeouts(gateway_ms: u64, tablet_ms: u64) -> String {
    format!(
        "[timeouts]\nmysql_server_query_timeout = \"{gateway_ms}ms\"\nqueryserver_config_query_timeout = \
         \"{tablet_ms}ms\"\nkill_grace = \"200ms\"\n"
    )
}

async fn refused(conn: &mut Conn, sql: &str) -> (Refusal, Duration) {
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

/// One bad kind of query is cut off alone.
#[tokio::test]
async fn a_kind_of_statement_that_times_out_is_cut_off_and_the_shard_serves_the_others() {
    let shards = Shards::start(2, &timeouts(400, 250));
    let mut conn = shards.conn().await;
    for tablet in &shards.tablets {
        tablet.fault(r#"{"kind":"hang","statement":"v > "}"#).await;
    }
    let bad = "SELECT id FROM t WHERE id = 1 AND v > 0";
    for _ in 0..3 {
        let (refusal, _) = refused(&mut conn, bad).await;
        assert!(refusal.message.starts_with("SG2202"), "{refusal}");
        // What goes well between them keeps it from being the shard's fault.
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1").await;
    }
    let (refusal, _) = loop_until_refused(&mut conn, bad, "SG2105").await;
    assert!(refusal.message.contains("shop/s1"), "{refusal}");
    for _ in 0..20 {
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1").await;
    }
    assert_eq!(
        shards
            .counter("Breakers", "shard.shop/s1.trips.consecutive_timeouts")
            .await,
        0
    );
}

async fn loop_until_refused(conn: &mut Conn, sql: &str, code: &str) -> (Refusal, Duration) {
    for _ in 0..10 {
        let (refusal, took) = refused(conn, sql).await;
        if refusal.message.starts_with(code) {
            return (refusal, took);
        }
    }
    panic!("{sql} is never refused with {code}");
}

/// P2 [vitess#8139 #7919]: an answer in part is given only where it is right, with a warning for each missing shard.
#[tokio::test]
async fn partial_answers_are_right_or_refused_and_name_what_is_missing() {
    let shards = Shards::start(2, &format!("{}[guard]\nbreakers = false\n", timeouts(2000, 1000)));
    let mut conn = shards.conn().await;
    answer::ok(&mut conn, "SET scatter_errors_as_warnings = 1").await;
    assert_eq!(answer::ok(&mut conn, "SELECT * FROM t").await.rows.len(), 100);
    let fault = r#"{"kind":"reset","statement":"from t"}"#;
    shards.tablets[1].fault(fault).await;
    for prepared in [false, true] {
        let run = async |conn: &mut Conn, sql: &str| {
            if prepared {
                answer::binary(conn, sql, ()).await
            } else {
                answer::text(conn, sql).await
            }
        };
        let part = run(&mut conn, "SELECT id, v FROM t").await.unwrap();
        assert_eq!((part.rows.len(), part.warnings), (50, 1), "prepared: {prepared}");
        let warnings = answer::ok(&mut conn, "SHOW WARNINGS").await.cells();
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0][2].starts_with("SG2108") && warnings[0][2].contains("shop/s1"),
            "{warnings:?}"
        );
        // What the statement is to blame for is its own error, not a shard's.
        let wrong = run(&mut conn, "SELECT nosuch FROM t WHERE id IN (0, 2)")
            .await
            .unwrap_err();
        assert!(!wrong.message.contains("SG21"), "{wrong}");
        let filled = run(&mut conn, "SELECT id FROM t LIMIT 5").await.unwrap();
        assert_eq!(
            (filled.rows.len(), filled.warnings),
            (5, 0),
            "nothing is missing from it"
        );
        for sql in [
            "SELECT COUNT(*) FROM t",
            "SELECT id FROM t ORDER BY id LIMIT 10 OFFSET 2",
        ] {
            let refusal = run(&mut conn, sql).await.unwrap_err();
            assert!(refusal.message.starts_with("SG2109"), "{sql}: {refusal}");
            assert!(refusal.message.contains("shop/s1"), "{sql}: {refusal}");
        }
        shards.tablets[0].fault(fault).await;
        let refusal = run(&mut conn, "SELECT id, v FROM t").await.unwrap_err();
        assert!(refusal.message.starts_with("SG2110"), "{refusal}");
        shards.tablets[0].lift().await;
    }
    // Without asking there is no answer in part.
    let mut plain = shards.conn().await;
    let refusal = answer::refused(&mut plain, "SELECT id, v FROM t").await;
    assert!(refusal.message.contains("shop/s1"), "{refusal}");
    let part = answer::ok(
        &mut plain,
        "SELECT /*vt+ SCATTER_ERRORS_AS_WARNINGS */ id, v FROM t",
    )
    .await;
    assert_eq!((part.rows.len(), part.warnings), (50, 1));
}

/// P2, while rows stream: what came is right, and the shard that stopped is named.
#[tokio::test]
async fn a_shard_that_is_lost_in_the_middle_of_its_rows_is_left_out_with_a_warning() {
    let config = format!(
        "{}tablet_stall_timeout = \"300ms\"\n[guard]\nbreakers = false\n",
        timeouts(2000, 1000)
    );
    let shards = Shards::start(2, &config);
    let mut conn = shards.conn().await;
    answer::ok(&mut conn, "SET scatter_errors_as_warnings = 1").await;
    shards.tablets[1]
        .fault(r#"{"kind":"stall","after_rows":10,"statement":"from t"}"#)
        .await;
    let began = Instant::now();
    let part = answer::ok(&mut conn, "SELECT id, v FROM t").await;
    assert_eq!(part.warnings, 1);
    assert!((50..=60).contains(&part.rows.len()), "{}", part.rows.len());
    assert!(
        began.elapsed() < Duration::from_millis(1500),
        "{:?}",
        began.elapsed()
    );
    // A leg that is not needed any more is not waited for.
    let began = Instant::now();
    assert_eq!(
        answer::ok(&mut conn, "SELECT id FROM t LIMIT 5").await.rows.len(),
        5
    );
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // Every shard is lost after it began: that is no empty answer.
    for tablet in &shards.tablets {
        tablet
            .fault(r#"{"kind":"stall","after_rows":0,"statement":"from t"}"#)
            .await;
    }
    let refusal = answer::refused(&mut conn, "SELECT id, v FROM t").await;
    assert!(refusal.message.starts_with("SG2110"), "{refusal}");
    shards.tablets[0].lift().await;
    shards.tablets[1]
        .fault(r#"{"kind":"stall","after_rows":0,"statement":"from t"}"#)
        .await;
    let refusal = answer::refused(&mut conn, "SELECT COUNT(*), SUM(v) FROM t").await;
    assert!(refusal.message.starts_with("SG2109"), "{refusal}");
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

/// `no_scatter` refuses what goes to several shards, unless it says that this is meant.
#[tokio::test]
async fn a_scatter_is_refused_where_the_configuration_says_so() {
    let shards = Shards::start(2, "[guard]\nno_scatter = true\n");
    let mut conn = shards.conn().await;
    let (refusal, _) = refused(&mut conn, "SELECT COUNT(*) FROM t").await;
    assert!(refusal.message.starts_with("SG2107"), "{refusal}");
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "1"
    );
    let allowed = "SELECT /*vt+ ALLOW_SCATTER */ COUNT(*) FROM t";
    assert_eq!(answer::ok(&mut conn, allowed).await.single(), "100");
    answer::ok(&mut conn, "SET allow_scatter = 1").await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "100"
    );
}

/// `EXPLAIN FORMAT=SHARDGATE` says where a statement goes, whether it may be answered in part, and how each leg's breaker
/// stands.
#[tokio::test]
async fn explain_shows_legs_breakers_and_why_there_is_no_partial_answer() {
    let shards = Shards::start(2, &format!("{}{UNBUFFERED}", timeouts(2000, 1000)));
    let mut conn = shards.conn().await;
    let explain = async |conn: &mut Conn, sql: &str| {
        let rows = answer::ok(conn, &format!("EXPLAIN FORMAT=SHARDGATE {sql}"))
            .await
            .cells();
        rows.into_iter()
            .map(|row| format!("{}={}", row[0], row[1]))
            .collect::<Vec<_>>()
    };
    let rows = explain(&mut conn, "SELECT id FROM t").await;
    for expected in [
        "leg shop/s0=SELECT id FROM t",
        "breaker shop/s0=closed",
        "breaker shop/s1=closed",
        "partial answer=allowed",
    ] {
        assert!(rows.iter().any(|r| r == expected), "{expected}: {rows:?}");
    }
    let rows = explain(&mut conn, "SELECT COUNT(*) FROM t").await;
    assert!(
        rows.iter()
            .any(|r| r.starts_with("partial answer=not allowed: aggregate")),
        "{rows:?}"
    );
    shards.tablets[1].process().signal("KILL");
    loop_until_refused(&mut conn, "SELECT v FROM t WHERE id = 1", "SG2103").await;
    let rows = explain(&mut conn, "SELECT id FROM t").await;
    assert!(
        rows.iter().any(|r| r.starts_with("breaker shop/s1=open ")),
        "{rows:?}"
    );
}

/// One kind of statement leaves connections to the others.
#[tokio::test]
async fn one_kind_of_statement_does_not_take_the_whole_pool() {
    let config = format!(
        "{}[pool]\nsize = 5\nwaiters = 2\nmax_reserved = 1\nabandoned_max = 1\n",
        timeouts(8000, 6000)
    );
    let shards = Shards::start(2, &config);
    shards.tablets[1]
        .fault(r#"{"kind":"latency","ms":2000,"statement":"v > "}"#)
        .await;
    let mut tasks = Vec::new();
    let mut good = shards.conn().await;
    for _ in 0..8 {
        let mut conn = shards.conn().await;
        // Another kind wants the pool all the time.
        answer::ok(&mut good, "SELECT v FROM t WHERE id = 1").await;
        tasks.push(tokio::spawn(async move {
            answer::text(&mut conn, "SELECT id FROM t WHERE id = 1 AND v >= 0 AND v > -1").await
        }));
    }
    let began = Instant::now();
    for _ in 0..20 {
        answer::ok(&mut good, "SELECT v FROM t WHERE id = 1").await;
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let mut cut = 0;
    for task in tasks {
        if let Err(refusal) = task.await.unwrap() {
            assert!(refusal.message.starts_with("SG2106"), "{refusal}");
            cut += 1;
        }
    }
    // Three within its share, one beyond it, two that wait for themselves; the rest is told.
    assert_eq!(cut, 2);
}

/// Statements that wait for a slow shard keep their connections to the others: there they are bound to their kind's share
/// like statements that run, or they would take the whole pool of a shard that is well.
#[tokio::test]
async fn those_that_wait_for_a_slow_sibling_leave_room_on_a_shard_that_is_well() {
    let config = format!(
        "{}[pool]\nsize = 5\nwaiters = 2\nmax_reserved = 1\nabandoned_max = 1\n",
        timeouts(8000, 6000)
    );
    let shards = Shards::start(2, &config);
    shards.tablets[1]
        .fault(r#"{"kind":"latency","ms":2500,"statement":"v >= 0"}"#)
        .await;
    let mut tasks = Vec::new();
    let mut good = shards.conn().await;
    for _ in 0..8 {
        let mut conn = shards.conn().await;
        answer::ok(&mut good, "SELECT v FROM t WHERE id = 0").await;
        tasks.push(tokio::spawn(async move {
            answer::text(&mut conn, "SELECT COUNT(*) FROM t WHERE v >= 0").await
        }));
        // It has its connections, or waits for them.
        for _ in 0..5 {
            answer::ok(&mut good, "SELECT v FROM t WHERE id = 0").await;
        }
    }
    let began = Instant::now();
    for _ in 0..20 {
        answer::ok(&mut good, "SELECT v FROM t WHERE id = 0").await;
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    for task in tasks {
        if let Err(refusal) = task.await.unwrap() {
            // The slow one may refuse.
            for code in ["SG2103", "SG2105"] {
                let (first, also) = (format!("{code}: shop/s0"), format!("shop/s0 ({code})"));
                let message = &refusal.message;
                assert!(!message.contains(&first) && !message.contains(&also), "{refusal}");
            }
        }
    }
}

/// A leg that has begun to answer and waits for a slow sibling looked like a statement that its own shard holds up: kinds of
/// statement were refused on shards that answer at once.
#[tokio::test]
async fn a_shard_that_answers_is_not_blamed_for_a_slow_sibling() {
    let shards = Shards::start(3, &timeouts(5000, 4000));
    shards.tablets[1]
        .fault(r#"{"kind":"latency","ms":1500,"statement":"from t"}"#)
        .await;
    let mut tasks = Vec::new();
    for n in 0..8 {
        let mut conn = shards.conn().await;
        tasks.push(tokio::spawn(async move {
            if n % 2 == 0 {
                answer::ok(&mut conn, "SELECT 1").await;
            }
            let mut refused = Vec::new();
            for sql in ["SELECT COUNT(*) FROM t", "SELECT id FROM t ORDER BY id LIMIT 100"]
                .into_iter()
                .cycle()
                .take(6)
            {
                if let Err(refusal) = answer::text(&mut conn, sql).await {
                    refused.push(refusal);
                }
            }
            refused
        }));
    }
    for task in tasks {
        for refusal in task.await.unwrap() {
            // The slow one may refuse.
            assert!(refusal.message.contains("shop/s1"), "{refusal}");
            for well in ["shop/s0", "shop/s2"] {
                assert!(!refusal.message.contains(well), "{refusal}");
            }
        }
    }
    let mut conn = shards.conn().await;
    let breakers = answer::ok(&mut conn, "SHOW SHARDGATE BREAKERS").await.cells();
    for breaker in breakers.iter().filter(|b| b[0] != "shop/s1") {
        assert_eq!(breaker[3], "closed", "{breakers:?}");
    }
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

/// PREPARE waits for a table as long as the statement itself would, and so may what the gateway asks on a session's behalf:
/// both are held to the limits, and a kind of them that hangs is cut off alone.
#[tokio::test]
async fn preparing_and_the_gateways_own_questions_pass_the_guards() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let config = fixture.config_with(&format!("{}{}", pool(6), timeouts(900, 300)));
    let gateway = Gateway::serve(&config);
    let mut conn = gateway.conn(KEYSPACE).await;
    let mut locker = fixture.shards[0].conn().await;
    answer::ok(&mut locker, "BEGIN").await;
    answer::ok(&mut locker, "SELECT COUNT(*) FROM t").await;
    // It waits for the transaction, and everybody else who opens the table waits for it.
    let mut changer = fixture.shards[0].conn().await;
    let change =
        tokio::spawn(async move { answer::ok(&mut changer, "ALTER TABLE t ADD COLUMN late INT").await });
    wait::until("ALTER TABLE to wait", LIMIT, || async {
        let mut direct = fixture.shards[0].conn().await;
        let waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'ALTER%' AND \
                       state LIKE 'Waiting for table metadata lock%'";
        (answer::ok(&mut direct, waiting).await.single() == "1").then_some(())
    })
    .await;
    let mut messages = Vec::new();
    let opened = |messages: &[String]| messages.last().is_some_and(|m| m.contains("SG2105"));
    while !opened(&messages) && messages.len() < 40 {
        let began = Instant::now();
        let prepared = wait::within("PREPARE", LIMIT, conn.prep("SELECT v FROM t WHERE id = ?")).await;
        messages.push(prepared.unwrap_err().to_string());
        assert!(began.elapsed() < Duration::from_millis(850), "{messages:?}");
    }
    assert!(messages[0].contains("SG2202"), "{messages:?}");
    assert!(opened(&messages), "{messages:?}");
    answer::ok(&mut conn, "SELECT 1").await;
    answer::ok(&mut locker, "ROLLBACK").await;
    change.await.unwrap();

    let mut messages = Vec::new();
    while !opened(&messages) && messages.len() < 40 {
        messages.push(refused(&mut conn, "SET @a = SLEEP(5)").await.0.message);
    }
    // The tablet's own limit ends it, which is held against the kind all the same.
    assert!(messages[0].contains("max_statement_time"), "{messages:?}");
    assert!(opened(&messages), "{messages:?}");
    answer::ok(&mut conn, "SET @a = 1 + 1").await;
}

/// Asks again and again until told to stop; how often it was refused by a breaker.
async fn ask_on(mut conn: Conn, number: usize, over: Arc<AtomicBool>) -> u64 {
    let columns = ["v", "k", "v, k", "k, v, id"];
    let mut refusals = 0;
    while !over.load(Ordering::Relaxed) {
        let sql = format!(
            "SELECT {} FROM t WHERE id = {}",
            columns[number % columns.len()],
            number % 2
        );
        if let Err(refusal) = answer::text(&mut conn, &sql).await {
            refusals +=
                u64::from(refusal.message.starts_with("SG2103") || refusal.message.starts_with("SG2105"));
        }
    }
    refusals
}

/// A gateway that did not run for a while, as in a migration of its machine, finds everything late at once. That is no
/// tablet's fault.
#[tokio::test]
async fn a_gateway_that_stood_still_blames_no_tablet() {
    let shards = Shards::start(2, &timeouts(1000, 800));
    for tablet in &shards.tablets {
        tablet
            .fault(r#"{"kind":"latency","ms":20,"statement":"from t"}"#)
            .await;
    }
    let over = Arc::<AtomicBool>::default();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..16 {
        clients.spawn(ask_on(shards.conn().await, number, Arc::clone(&over)));
    }
    wait::until("answers", LIMIT, async || {
        (shards.counter_sum("QueryExecutions").await >= 500).then_some(())
    })
    .await;
    for _ in 0..3 {
        shards.gateway.process().signal("STOP");
        // That is the fault.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        shards.gateway.process().signal("CONT");
        let before = shards.counter_sum("QueryExecutions").await;
        wait::until("answers", LIMIT, async || {
            (shards.counter_sum("QueryExecutions").await >= before + 500).then_some(())
        })
        .await;
    }
    over.store(true, Ordering::Relaxed);
    let mut refusals = 0;
    while let Some(done) = clients.join_next().await {
        refusals += done.unwrap();
    }
    let vars = shards.vars().await;
    let opened: Vec<_> = vars["Breakers"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, n)| name.contains(".trips.") && n.as_u64() > Some(0))
        .collect();
    assert!(
        opened.is_empty() && refusals == 0,
        "{opened:?}, {refusals} refusals"
    );
}
