//! One kind of statement does not take what the others need.

use std::time::{Duration, Instant};

use crate::guards::{Shards, loop_until_refused, refused, timeouts};
use mysql_async::prelude::Queryable;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T, pool};
use shardgate_tests::{Fixture, Gateway, Layout, answer, wait};

const LIMIT: Duration = Duration::from_secs(20);

/// A kind that is slow is cut off for that too, if anything else is late for a moment; here only its share counts.
const BY_SHARE: &str = "[shard_breaker]\nlatency_factor = 0\nstall_pending = 0\n";

/// One bad kind of query is cut off alone.
#[tokio::test]
async fn a_kind_of_statement_that_times_out_is_cut_off_and_the_shard_serves_the_others() {
    let shards = Shards::start(2, &timeouts(400, 250));
    let mut conn = shards.conn().await;
    for tablet in &shards.tablets {
        tablet.fault(r#"{"kind":"hang","statement":"v > "}"#).await;
    }
    // Of one kind, however many values are asked for.
    let bad = "SELECT id FROM t WHERE id = 1 AND v > 0 AND k IN (1, -2)";
    for values in ["1", "1, 2, 3", "4, 'x', NULL, 5"] {
        let longer = bad.replace("1, -2", values);
        let (refusal, _) = refused(&mut conn, &longer).await;
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

/// One kind of statement leaves connections to the others.
#[tokio::test]
async fn one_kind_of_statement_does_not_take_the_whole_pool() {
    let config = format!(
        "{}{BY_SHARE}[pool]\nsize = 5\nwaiters = 2\nmax_reserved = 1\nabandoned_max = 1\n",
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
        "{}{BY_SHARE}[pool]\nsize = 5\nwaiters = 2\nmax_reserved = 1\nabandoned_max = 1\n",
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
