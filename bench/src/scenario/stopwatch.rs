//! Measurements too fine for a run's slices: how soon a breaker opens, and what a refusal costs its caller.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::arena::KEYSPACE;
use super::load::{self, Arrivals, Kind, Manners, Plan};
use super::observe::trips;
use super::record::Record;
use crate::BenchError;
use crate::client::Client;

/// How often the gateway is asked whether a breaker has opened.
const EVERY: Duration = Duration::from_millis(4);
/// Answers in a row that mean all is well: more than a breaker probes.
const WELL: u32 = 20;
/// Questions of each kind.
const QUESTIONS: usize = 201;

/// Runs an even load beside `during`, and ends it when that is done.
pub(crate) async fn beside<T>(
    addr: SocketAddr,
    kinds: Vec<Kind>,
    rate: f64,
    during: impl Future<Output = Result<T, BenchError>>,
) -> Result<T, BenchError> {
    let plan = Plan {
        addr,
        database: KEYSPACE,
        kinds,
        rate,
        arrivals: Arrivals::Even,
        manners: Manners {
            patience: Duration::from_secs(5),
            retries: 0,
            backoff: Duration::ZERO,
        },
        seed: 7,
    };
    let began = Instant::now();
    let record = Record::new(Vec::new(), Duration::ZERO, began);
    // Far off: it ends by being dropped.
    let end = began + Duration::from_mins(10);
    let load = load::run(plan, Arc::new(Mutex::new(record)), end);
    tokio::select! {
        done = during => done,
        () = load => Err(BenchError::Option("the load ended early")),
    }
}

/// Waits until a breaker has opened more often than `before`; how long that took, and for which reason. `None` if none
/// did.
pub(crate) async fn until_tripped(
    admin: SocketAddr,
    before: &BTreeMap<String, u64>,
    limit: Duration,
) -> Option<(Duration, String)> {
    let began = Instant::now();
    while began.elapsed() < limit {
        let asked = began.elapsed();
        let now = trips(admin).await?;
        let more = now
            .into_iter()
            .find(|(reason, n)| before.get(reason).copied().unwrap_or(0) < *n);
        if let Some((reason, _)) = more {
            // It was so when the gateway was asked, not when its answer had been read.
            return Some((asked, reason));
        }
        tokio::time::sleep(EVERY).await;
    }
    None
}

/// Waits until the question is answered with rows a while long: no breaker is in its way any more.
pub(crate) async fn until_well(
    addr: SocketAddr,
    question: &str,
    limit: Duration,
) -> Result<bool, BenchError> {
    let (began, mut row) = (Instant::now(), 0);
    while row < WELL {
        if began.elapsed() > limit {
            return Ok(false);
        }
        let answered = match Client::connect(addr, KEYSPACE).await {
            Ok(mut client) => client.ask(question).await.is_ok(),
            Err(_) => false,
        };
        row = if answered { row + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(true)
}

/// What a question and its answer cost, in the median, beside a statement that the gateway answers itself. None if the
/// question was answered with rows in most cases.
pub(crate) async fn cost(
    addr: SocketAddr,
    question: &str,
) -> Result<Option<(Duration, Duration)>, BenchError> {
    let load = |source| BenchError::Load {
        target: "gateway".into(),
        source,
    };
    let mut client = Client::connect(addr, KEYSPACE).await.map_err(load)?;
    let (mut refused, mut own) = (Vec::new(), Vec::new());
    for _ in 0..QUESTIONS {
        let began = Instant::now();
        if client.ask(question).await.is_err() {
            refused.push(began.elapsed());
        }
        let began = Instant::now();
        client.ask("SHOW VITESS_TARGET").await.map_err(load)?;
        own.push(began.elapsed());
    }
    if refused.len() <= QUESTIONS / 2 {
        return Ok(None);
    }
    let middle = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    Ok(Some((middle(refused), middle(own))))
}
