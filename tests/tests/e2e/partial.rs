//! Answers in part, scatters that are refused, and what EXPLAIN says of both: scenario P2.

use std::time::{Duration, Instant};

use crate::guards::{Shards, UNBUFFERED, loop_until_refused, refused, timeouts};
use mysql_async::Conn;
use shardgate_tests::answer;

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

/// What several shards' breakers refuse is told of all of them.
#[tokio::test]
async fn the_refusals_of_several_shards_are_joined() {
    let shards = Shards::start(3, UNBUFFERED);
    for shard in ["s0", "s2"] {
        let body = format!(r#"{{"scope":"shard","name":"shop/{shard}","mode":"open"}}"#);
        let (status, text) = shards.gateway.http_with("POST", "/debug/breakers", &body).await;
        assert_eq!(status, 200, "{text}");
    }
    let mut conn = shards.conn().await;
    let (refusal, _) = refused(&mut conn, "SELECT id FROM t").await;
    let message = &refusal.message;
    assert!(message.starts_with("SG2103"), "{refusal}");
    assert!(
        message.contains("shop/s0") && message.contains("shop/s2 (SG2103)"),
        "{refusal}"
    );
    let partial = "SELECT /*vt+ SCATTER_ERRORS_AS_WARNINGS */ id FROM t";
    assert_eq!(answer::ok(&mut conn, partial).await.rows.len(), 50);
    let warnings = answer::ok(&mut conn, "SHOW WARNINGS").await.cells();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
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
