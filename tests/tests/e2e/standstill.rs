//! A gateway that did not run for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::guards::{Shards, timeouts};
use mysql_async::Conn;
use shardgate_tests::{answer, wait};

const LIMIT: Duration = Duration::from_secs(20);

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
    assert!(vars["Standstills"].as_u64() >= Some(3), "{}", vars["Standstills"]);
    assert!(vars["StandstillMs"].as_u64() >= Some(3 * 1500));
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
