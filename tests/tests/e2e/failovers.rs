//! Failovers of real servers under clients that write all the time: no write is lost, none runs twice, and nobody is told
//! what is not so.
//!
//! Each shard is three servers, of which one is the primary, and no write is acknowledged before a replica has it. What the
//! clients were told is held against what is on the new primary, see [`shardgate_tests::workload`].

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use serde_json::Value;
use shardgate_tests::fixture::{KEYSPACE, head};
use shardgate_tests::workload::{Attempt, Fate, Found, Journal, Kind, Workload, line, ready};
use shardgate_tests::{Gateway, Replicated, answer, wait};

/// For whatever has no bound of its own.
const LIMIT: Duration = Duration::from_secs(30);

/// Within this of a promotion writes flow again.
const RESUMED: Duration = Duration::from_secs(1);

/// How many failovers of each kind follow one another on one gateway, before everything is started afresh: a replaced
/// server runs through the whole history of its shard.
const A_SERIES: u32 = 10;

/// One gateway sees several failovers. On two cores that start servers meanwhile, latency says nothing of a shard.
const AT_ONCE: &str = "[shard_breaker]\nlatency_factor = 0\nstall_pending = 0\n\n\
                       [buffer]\nbuffer_min_time_between_failovers = \"0s\"\n";

/// Shards `s0` ... of so many servers each, their tablets `s0-a`, `s0-b` ..., of which `a` is the primary.
struct Stage {
    shards: Vec<Shard>,
    gateway: Gateway,
}

struct Shard {
    servers: Replicated,
    database: String,
}

impl Shard {
    async fn start(servers: usize, shard: usize, shards: usize) -> Self {
        let servers = match servers {
            1 => Replicated::start(1).await,
            several => Replicated::start_semi_sync(several).await,
        };
        let database = servers.create_database(&format!("s{shard}")).await;
        ready(&database, shard, shards).await;
        servers.catch_up().await;
        Self {
            servers,
            database: database.name,
        }
    }

    /// What is on server `n`.
    async fn found_on(&self, n: usize) -> Found {
        Found::on(&self.servers.database(n, &self.database)).await
    }

    fn config(&self, shard: usize, servers: usize) -> String {
        let tablet = |n: usize| {
            let address = self.servers.server(n).addr();
            let role = if n == 0 { "primary" } else { "replica" };
            format!(
                "{{ alias = \"{}\", address = \"{address}\", role = \"{role}\" }}",
                alias(shard, n)
            )
        };
        let tablets: Vec<String> = (0..servers).map(tablet).collect();
        format!(
            "[[keyspaces.{KEYSPACE}.shards]]\nname = \"s{shard}\"\ndatabase = \"{}\"\ntablets = [{}]\n",
            self.database,
            tablets.join(", ")
        )
    }
}

fn alias(shard: usize, server: usize) -> String {
    format!("s{shard}-{}", ["a", "b", "c"][server])
}

impl Stage {
    async fn start(sizes: &[usize], sections: &str) -> Self {
        let starting = sizes
            .iter()
            .enumerate()
            .map(|(n, servers)| Shard::start(*servers, n, sizes.len()));
        let shards = futures::future::join_all(starting).await;
        let mut config = format!(
            "{}[keyspaces.{KEYSPACE}]\nnamed = {{ by = \"modulo\", column = \"id\" }}\n",
            head(sections)
        );
        for (n, (shard, servers)) in shards.iter().zip(sizes).enumerate() {
            config.push_str(&shard.config(n, *servers));
        }
        let gateway = Gateway::serve(&config);
        Self { shards, gateway }
    }

    /// The clients, once all of them write.
    async fn workload(&self) -> Workload {
        let workload = Workload::start(self.gateway.addr(), KEYSPACE, self.shards.len()).await;
        for shard in 0..self.shards.len() {
            workload.flows(shard, Instant::now()).await;
        }
        workload
    }

    fn servers(&mut self, shard: usize) -> &mut Replicated {
        &mut self.shards[shard].servers
    }

    /// Holds what the clients were told against what is on each shard's primary.
    async fn audit(&self, journal: &Journal) {
        for (n, shard) in self.shards.iter().enumerate() {
            let found = shard.found_on(shard.servers.primary()).await;
            eprintln!(
                "s{n}: {} acknowledged, failed {:?}",
                journal.acknowledged(n),
                journal.failures_by_code(n)
            );
            journal.audit(n, &found);
        }
    }

    /// The same; then makes room for the tokens of another workload.
    async fn audit_and_clear(&self, journal: &Journal) {
        self.audit(journal).await;
        for shard in &self.shards {
            let primary = shard.servers.database(shard.servers.primary(), &shard.database);
            primary
                .run(&["DELETE FROM log", "UPDATE register SET trail = ''"])
                .await;
        }
    }

    async fn vars(&self) -> Value {
        let (status, body) = self.gateway.http("GET", "/debug/vars").await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("strict JSON")
    }

    async fn counter(&self, tree: &str, label: &str) -> u64 {
        self.vars().await[tree][label].as_u64().unwrap_or(0)
    }

    /// Waits until the gateway has put this tablet out of service, since it takes writes beside the primary.
    async fn until_quarantined(&self, shard: usize, server: usize) {
        let alias = alias(shard, server);
        wait::until("the other writable server to be noticed", LIMIT, || async {
            let log = self.gateway.process().stderr();
            log.lines()
                .any(|l| l.contains("\"quarantined\"") && l.contains(&alias))
                .then_some(())
        })
        .await;
    }

    async fn reparent(&self, shard: usize, step: &str) {
        let path = format!("/api/shards/{KEYSPACE}/s{shard}/reparent");
        let body = format!("{{\"reparent\": \"{step}\"}}");
        let (status, body) = self.gateway.http_with("POST", &path, &body).await;
        assert_eq!(status, 200, "{body}");
    }

    async fn appoint(&self, shard: usize, server: usize) {
        let path = format!("/api/shards/{KEYSPACE}/s{shard}/primary");
        let body = format!("{{\"tablet\": \"{}\"}}", alias(shard, server));
        let (status, body) = self.gateway.http_with("PUT", &path, &body).await;
        assert_eq!(status, 200, "{body}");
    }
}

fn lines<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> String {
    let lines: Vec<String> = attempts.into_iter().map(line).collect();
    lines.join("\n  ")
}

/// Nothing failed but transactions that were open where writes were no longer taken.
fn assert_only_transactions_failed(failures: &[&Attempt]) {
    let others: Vec<_> = failures
        .iter()
        .filter(|a| a.kind != Kind::Transaction)
        .copied()
        .collect();
    assert!(others.is_empty(), "{}", lines(others));
    for a in failures {
        assert!(matches!(a.fate, Fate::NotExecuted(_)), "{}", line(a));
    }
}

/// Only what was in flight on the lost primary failed: one request of a client at most, a write as an outcome that nobody
/// knows, a transaction that was open there. Reads were sent again.
fn assert_only_requests_in_flight_failed(failures: &[&Attempt]) {
    let mut clients: Vec<usize> = failures.iter().map(|a| a.client).collect();
    clients.sort_unstable();
    let before = clients.len();
    clients.dedup();
    assert_eq!(
        before,
        clients.len(),
        "a client failed twice: {}",
        lines(failures.iter().copied())
    );
    for a in failures {
        let unknown = matches!(&a.fate, Fate::Unknown(told) if told.contains("SG24"));
        let write = !a.tokens.is_empty();
        assert!(unknown && write || a.kind == Kind::Transaction, "{}", line(a));
    }
}

async fn planned(stage: &mut Stage, workload: &Workload, shard: usize, new: usize) -> Duration {
    let began = Instant::now();
    stage.servers(shard).promote(new).await;
    workload.flows(shard, Instant::now()).await;
    let attempts = workload.since(shard, began);
    let failures: Vec<_> = attempts.iter().filter(|a| a.fate.failed()).collect();
    assert_only_transactions_failed(&failures);
    began.elapsed()
}

async fn killed(stage: &mut Stage, workload: &Workload, shard: usize) -> Duration {
    let began = Instant::now();
    let old = stage.servers(shard).primary();
    stage.servers(shard).kill(old).await;
    stage.servers(shard).promote_most_advanced().await;
    let resumed = workload.flows(shard, Instant::now()).await;
    assert!(resumed < RESUMED, "writes flow {resumed:?} after the promotion");
    let attempts = workload.since(shard, began);
    let failures: Vec<_> = attempts.iter().filter(|a| a.fate.failed()).collect();
    assert_only_requests_in_flight_failed(&failures);
    resumed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_promotion_fails_no_statement_outside_transactions() {
    let mut stage = Stage::start(&[3, 1], AT_ONCE).await;
    let workload = stage.workload().await;
    let mut writing = stage.gateway.conn(KEYSPACE).await;
    let mut committing = stage.gateway.conn(KEYSPACE).await;
    for conn in [&mut writing, &mut committing] {
        answer::ok(conn, "BEGIN").await;
        answer::ok(conn, "INSERT INTO log VALUES (2, 0)").await;
    }

    let began = Instant::now();
    stage.servers(0).promote(1).await;
    workload.flows(0, Instant::now()).await;
    assert!(stage.counter("BufferRequestsBuffered", "shop.s0").await > 0);
    assert_eq!(stage.counter("PrimaryChanges", "shop.s0").await, 1);

    // The transactions on the old primary are lost, at once; their sessions are not.
    for (conn, lost) in [
        (&mut writing, "INSERT INTO log VALUES (2, 0)"),
        (&mut committing, "COMMIT"),
    ] {
        let asked = Instant::now();
        let refusal = answer::refused(conn, lost).await;
        assert!(
            asked.elapsed() < Duration::from_secs(1),
            "{lost}: {refusal} after {:?}",
            asked.elapsed()
        );
        answer::ok(conn, "ROLLBACK").await;
        answer::ok(conn, "UPDATE register SET trail = trail WHERE id = 0").await;
    }

    // And back, announced.
    stage.reparent(0, "start").await;
    stage.servers(0).promote(0).await;
    stage.reparent(0, "end").await;
    workload.flows(0, Instant::now()).await;
    let took = began.elapsed();
    let journal = workload.stop().await;
    let slowest = journal
        .attempts
        .iter()
        .filter(|a| a.shard == 0)
        .map(|a| a.took)
        .max();
    println!("two planned promotions: {took:?}, slowest statement {slowest:?}");
    assert_only_transactions_failed(&journal.failures(0));
    assert_eq!(stage.counter("PrimaryChanges", "shop.s0").await, 2);
    journal.assert_untouched(1);
    stage.audit(&journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_fails_only_what_was_in_flight_on_it() {
    let mut stage = Stage::start(&[3, 1], AT_ONCE).await;
    let workload = stage.workload().await;
    let resumed = killed(&mut stage, &workload, 0).await;
    println!("writes flow {resumed:?} after the promotion");
    let journal = workload.stop().await;
    journal.assert_untouched(1);
    stage.audit(&journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_primary_that_comes_back_writable_gets_no_write() {
    let limits =
        "[timeouts]\nmysql_server_query_timeout = \"2s\"\nqueryserver_config_query_timeout = \"1500ms\"\n";
    let mut stage = Stage::start(&[3, 1], &format!("{AT_ONCE}{limits}")).await;
    let workload = stage.workload().await;
    let began = Instant::now();
    stage.servers(0).freeze(0);
    let new = stage.servers(0).promote_most_advanced().await;
    let promoted = Instant::now();
    let resumed = workload.flows(0, promoted).await;
    println!(
        "froze to promoted {:?}, writes flow {resumed:?} later",
        promoted - began
    );
    // Everybody who was caught has been told.
    let caught = Duration::from_secs(2);
    assert!(
        resumed < caught + RESUMED,
        "writes flow {resumed:?} after the promotion"
    );

    stage.servers(0).thaw(0);
    let thawed = Instant::now();
    stage.until_quarantined(0, 0).await;
    println!("quarantined {:?} after it went on", thawed.elapsed());
    workload.flows(0, Instant::now()).await;
    // What is on the old one and not on the new was sent before anybody took its place; it waits for a replica there.
    let (old, kept) = (
        stage.shards[0].found_on(0).await,
        stage.shards[0].found_on(new).await,
    );
    let strays: Vec<_> = workload
        .since(0, promoted)
        .into_iter()
        .filter(|a| a.began > promoted)
        .filter(|a| {
            a.tokens
                .iter()
                .any(|t| old.tokens.contains_key(t) && !kept.tokens.contains_key(t))
        })
        .collect();
    assert!(
        strays.is_empty(),
        "written to the old primary: {}",
        lines(&strays)
    );

    // Nor does it get one when its successor dies, and nobody but it takes writes.
    stage.servers(0).kill(new).await;
    let died = alias(0, new);
    wait::until("its death to be noticed", LIMIT, || async {
        let log = stage.gateway.process().stderr();
        log.lines()
            .any(|l| l.contains("\"does_not_serve\"") && l.contains(&died))
            .then_some(())
    })
    .await;
    let last = stage.servers(0).promote_most_advanced().await;
    stage.servers(0).kill(0).await;
    stage.servers(0).replace(0).await;
    workload.flows(0, Instant::now()).await;
    let journal = workload.stop().await;
    journal.assert_untouched(1);
    stage.audit(&journal).await;
    assert_ne!(last, new);
    let log = stage.gateway.process().stderr();
    let changes: Vec<&str> = log.lines().filter(|l| l.contains("primary_changed")).collect();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes[0].contains(&format!("to={}", alias(0, new))),
        "{changes:?}"
    );
    assert!(
        changes[1].contains(&format!("to={}", alias(0, last))),
        "{changes:?}"
    );
    for a in journal.failures(0) {
        let told = match &a.fate {
            Fate::Acknowledged => continue,
            Fate::NotExecuted(told) | Fate::Unknown(told) => told,
        };
        let expected = [
            "SG2401", "SG2201", "SG2202", "SG2103", "SG2105", "SG2304", "SG2402",
        ];
        assert!(expected.iter().any(|code| told.contains(code)), "{}", line(a));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_crash_and_start_again_in_place_lose_nothing() {
    let mut stage = Stage::start(&[3, 1], AT_ONCE).await;
    let workload = stage.workload().await;
    let began = Instant::now();
    stage.servers(0).kill(0).await;
    stage.servers(0).restart(0).await;
    let back = Instant::now();
    let resumed = workload.flows(0, back).await;
    println!("writes flow {resumed:?} after the primary is back");
    // Its replicas look for it each second, and it acknowledges nothing without them.
    assert!(
        resumed < Duration::from_secs(2) + RESUMED,
        "writes flow {resumed:?} after it is back"
    );
    let attempts = workload.since(0, began);
    let failures: Vec<_> = attempts.iter().filter(|a| a.fate.failed()).collect();
    assert_only_requests_in_flight_failed(&failures);

    // A replica forgets that it was read-only, and does not get a write for it.
    let again = Instant::now();
    stage.servers(0).kill(1).await;
    stage.servers(0).restart(1).await;
    let mut conn = stage.servers(0).server(1).conn().await;
    let read_only: Option<bool> = conn.query_first("SELECT @@GLOBAL.read_only").await.unwrap();
    assert_eq!(read_only, Some(false));
    stage.servers(0).catch_up_on(1).await;
    workload.flows(0, Instant::now()).await;
    let attempts = workload.since(0, again);
    let failures: Vec<_> = attempts.iter().filter(|a| a.fate.failed()).collect();
    assert!(failures.is_empty(), "{}", lines(failures));
    assert_eq!(stage.counter("PrimaryChanges", "shop.s0").await, 0);
    assert_eq!(stage.counter("SplitBrains", "shop.s0").await, 0);

    let journal = workload.stop().await;
    journal.assert_untouched(1);
    stage.audit(&journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_shards_change_at_once_and_a_third_notices_nothing() {
    let mut stage = Stage::start(&[3, 3, 1], AT_ONCE).await;
    let workload = stage.workload().await;
    let began = Instant::now();
    let [first, second, ..] = stage.shards.as_mut_slice() else {
        unreachable!("there are three");
    };
    let crash = async {
        second.servers.kill(0).await;
        second.servers.promote_most_advanced().await;
    };
    futures::join!(first.servers.promote(1), crash);
    let promoted = Instant::now();
    for shard in 0..2 {
        let resumed = workload.flows(shard, promoted).await;
        assert!(
            resumed < RESUMED,
            "shard {shard} is written {resumed:?} after the promotion"
        );
    }
    println!("two at once: {:?}", began.elapsed());
    workload.flows(2, promoted).await;
    let journal = workload.stop().await;
    assert_only_transactions_failed(&journal.failures(0));
    assert_only_requests_in_flight_failed(&journal.failures(1));
    journal.assert_untouched(2);
    stage.audit(&journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_that_never_comes_ends_the_waiting_and_the_primary_may_come_back() {
    let window = Duration::from_secs(1);
    let most = Duration::from_millis(1500);
    let buffer = "buffer_window = \"1s\"\nbuffer_max_failover_duration = \"1500ms\"\n";
    let mut stage = Stage::start(&[3, 1], &format!("{AT_ONCE}{buffer}")).await;
    let workload = stage.workload().await;
    stage.servers(0).kill(0).await;
    let refused = |code: &'static str| {
        let workload = &workload;
        let killed = Instant::now();
        wait::until(code, LIMIT, move || async move {
            let told = workload.since(0, killed);
            told.into_iter()
                .find(|a| matches!(&a.fate, Fate::NotExecuted(t) if t.contains(code)))
        })
    };
    let gave_up = Instant::now();
    refused("SG2702").await;
    refused("SG2703").await;
    refused("SG2103").await;
    println!("given up after {:?}", gave_up.elapsed());
    for a in workload.since(0, gave_up) {
        assert!(a.took < most + Duration::from_millis(500), "{}", line(&a));
        if let Fate::NotExecuted(told) = &a.fate
            && told.contains("SG2702")
        {
            assert!(
                a.took >= window && a.took < window + Duration::from_millis(500),
                "{}",
                line(&a)
            );
        }
    }
    workload.flows(1, Instant::now()).await;

    stage.servers(0).restart(0).await;
    let back = Instant::now();
    let resumed = workload.flows(0, back).await;
    println!("writes flow {resumed:?} after the primary is back");
    assert!(
        resumed < Duration::from_secs(2) + RESUMED,
        "writes flow {resumed:?} after it is back"
    );
    let journal = workload.stop().await;
    journal.assert_untouched(1);
    stage.audit(&journal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_split_brain_refuses_writes_until_an_operator_decides() {
    let mut stage = Stage::start(&[3, 1], AT_ONCE).await;
    let workload = stage.workload().await;
    let database = stage.shards[0].database.clone();
    let mut open = stage.gateway.conn(KEYSPACE).await;
    answer::ok(&mut open, "BEGIN").await;
    answer::ok(&mut open, "INSERT INTO log VALUES (0, 4000000000)").await;
    let began = Instant::now();
    // Somebody promotes a replica, writes to it, and tells nobody.
    let servers = stage.servers(0);
    let stray = format!("INSERT INTO {database}.log VALUES (0, 0)");
    let alone = [
        "STOP SLAVE",
        "RESET SLAVE ALL",
        "SET GLOBAL rpl_semi_sync_master_enabled = 0",
        "SET GLOBAL read_only = 0",
        &stray,
    ];
    servers.run(1, &alone).await;
    wait::until("the split brain to be noticed", LIMIT, || async {
        (stage.counter("SplitBrains", "shop.s0").await > 0).then_some(())
    })
    .await;
    let apart = Instant::now();
    println!("split brain noticed after {:?}", began.elapsed());
    wait::until("writes to be refused", LIMIT, || async {
        let told = workload.since(0, apart);
        let refused = |a: &&Attempt| matches!(&a.fate, Fate::NotExecuted(t) if t.contains("SG2705"));
        (told.iter().filter(refused).count() > 20).then_some(())
    })
    .await;
    // Nor is what was written before committed now.
    let refusal = answer::refused(&mut open, "COMMIT").await;
    assert!(refusal.message.starts_with("SG2705"), "{refusal}");
    // Reads are answered, by the primary that was.
    let mut conn = stage.gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SELECT trail FROM register WHERE id = 0").await;
    assert_eq!(stage.counter("SplitBrains", "shop.s0").await, 1);
    assert_eq!(stage.counter("PrimaryChanges", "shop.s0").await, 0);

    stage.appoint(0, 0).await;
    let decided = Instant::now();
    let resumed = workload.flows(0, decided).await;
    println!("writes flow {resumed:?} after the decision");
    assert!(resumed < RESUMED, "writes flow {resumed:?} after the decision");
    let journal = workload.stop().await;
    for a in journal.failures(0) {
        assert!(
            matches!(&a.fate, Fate::NotExecuted(t) if t.contains("SG2705")),
            "{}",
            line(a)
        );
        assert!(a.began < decided, "{}", line(a));
    }
    journal.assert_untouched(1);
    stage.audit(&journal).await;
    // Of what the clients were told is done nothing is on the other one alone.
    let found = stage.shards[0].found_on(1).await;
    assert_eq!(found.tokens.get(&0), Some(&1));
}

/// `make soak N=100` says how often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_failovers_lose_nothing_and_double_nothing() {
    let rounds: u32 = match std::env::var("SHARDGATE_SOAK") {
        Ok(rounds) => rounds.parse().expect("SHARDGATE_SOAK is a number"),
        Err(_) => 2,
    };
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    for first in (0..rounds).step_by(A_SERIES as usize) {
        let mut stage = Stage::start(&[3], AT_ONCE).await;
        for round in first..rounds.min(first + A_SERIES) {
            let workload = stage.workload().await;
            let new = stage.servers(0).replicas()[round as usize % 2];
            planned(&mut stage, &workload, 0, new).await;
            let old = stage.servers(0).primary();
            let resumed = killed(&mut stage, &workload, 0).await;
            slowest = slowest.max(resumed);
            let journal = workload.stop().await;
            stage.audit_and_clear(&journal).await;
            stage.servers(0).replace(old).await;
            println!(
                "round {} of {rounds}: {} acknowledged, {} failed; after the crash writes flowed in {resumed:?} \
                 (slowest {slowest:?}); {:?} so far",
                round + 1,
                journal.acknowledged(0),
                journal.failures(0).len(),
                began.elapsed()
            );
        }
    }
}
