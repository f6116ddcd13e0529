//! What the gateway says of itself while it is under load, and how late this program's own timers are.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::record::{Window, median};

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the timers are tried.
const TICK: Duration = Duration::from_millis(5);

/// What a look is read from.
const GAUGES: [&str; 6] = [
    "shard_breaker_state",
    "replica_breaker_state",
    "query_breaker_state",
    "shardgate_pool_busy",
    "shardgate_pool_waiting",
    "shardgate_buffer_requests_in_flight",
];
/// How often breakers have opened.
const TRIPS: [&str; 2] = ["shard_breaker_trips_total", "replica_breaker_trips_total"];

/// One look at the gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// Since the run began.
    pub(crate) at: Duration,
    /// Whether the gateway tells the states of its breakers.
    pub(crate) states: bool,
    /// Breakers of shards and tablets that are open, half open; those of single kinds of query that are not closed.
    pub(crate) open: f64,
    pub(crate) half_open: f64,
    pub(crate) queries_cut: f64,
    /// Tablet connections that are lent, and requests that wait for one.
    pub(crate) busy: f64,
    pub(crate) waiting: f64,
    /// Requests in reparent buffers.
    pub(crate) buffered: f64,
}

/// All looks of a run.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) samples: Vec<Sample>,
    /// How late a timer was, at worst.
    pub(crate) timer_lag: Duration,
    /// How late each was, and when.
    lags: Vec<(Duration, Duration)>,
}

impl Observed {
    /// The median over pieces of two seconds of the 99th percentiles of how late timers were.
    pub(crate) fn steady_lag(&self, window: Window) -> Duration {
        let within: Vec<_> = self
            .lags
            .iter()
            .filter(|(at, _)| (window.from..window.to).contains(at))
            .collect();
        let piece = |at: Duration| at.as_secs() / 2;
        let pieces: Vec<f64> = within
            .chunk_by(|(a, _), (b, _)| piece(*a) == piece(*b))
            .map(|chunk| {
                let mut late: Vec<Duration> = chunk.iter().map(|(_, late)| *late).collect();
                late.sort_unstable();
                let late = late.get(late.len() * 99 / 100).copied().unwrap_or_default();
                late.as_secs_f64()
            })
            .collect();
        Duration::from_secs_f64(median(pieces).unwrap_or_default())
    }
}

/// Asks until dropped.
#[derive(Debug)]
pub(crate) struct Observer {
    seen: Arc<Mutex<Observed>>,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Observer {
    pub(crate) fn start(admin: SocketAddr, began: Instant) -> Self {
        let seen = Arc::<Mutex<Observed>>::default();
        let samples = {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut ticks = tokio::time::interval(EVERY);
                loop {
                    ticks.tick().await;
                    if let Some(sample) = look(admin, began).await {
                        seen.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .samples
                            .push(sample);
                    }
                }
            })
        };
        let lag = {
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                loop {
                    let due = Instant::now() + TICK;
                    tokio::time::sleep_until(due).await;
                    let late = due.elapsed();
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.timer_lag = seen.timer_lag.max(late);
                    seen.lags.push((began.elapsed(), late));
                }
            })
        };
        Self {
            seen,
            tasks: [samples, lag],
        }
    }

    /// Ends, with all that was seen.
    pub(crate) fn finish(self) -> Observed {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Looks once; `None` if the gateway does not answer.
pub(crate) async fn look(admin: SocketAddr, began: Instant) -> Option<Sample> {
    let at = began.elapsed();
    let text = named(admin, "/metrics", &GAUGES).await?;
    Some(Sample { at, ..read(&text) })
}

/// A page of counters with these alone: of hundreds of shards, all of them are megabytes.
async fn named(admin: SocketAddr, page: &str, names: &[&str]) -> Option<String> {
    let asked: Vec<String> = names.iter().map(|name| format!("name[]={name}")).collect();
    get(admin, &format!("{page}?{}", asked.join("&"))).await
}

/// Requests that reparent buffers have taken in, and let go either way, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BufferCounts {
    pub(crate) buffered: u64,
    pub(crate) drained: u64,
    pub(crate) evicted: u64,
}

/// What the gateway says of its reparent buffers; `None` if it says nothing.
pub(crate) async fn buffer_counts(admin: SocketAddr) -> Option<BufferCounts> {
    const COUNTS: [&str; 3] = [
        "BufferRequestsBuffered",
        "BufferRequestsDrained",
        "BufferRequestsEvicted",
    ];
    let vars: serde_json::Value = serde_json::from_str(&named(admin, "/debug/vars", &COUNTS).await?).ok()?;
    let sum = |name: &str| {
        let counts = vars.get(name)?.as_object()?;
        Some(counts.values().filter_map(serde_json::Value::as_u64).sum())
    };
    Some(BufferCounts {
        buffered: sum(COUNTS[0])?,
        drained: sum(COUNTS[1])?,
        evicted: sum(COUNTS[2])?,
    })
}

/// How often breakers of shards and replicas have opened, ever, by reason.
pub(crate) async fn trips(admin: SocketAddr) -> Option<BTreeMap<String, u64>> {
    Some(read_trips(&named(admin, "/metrics", &TRIPS).await?))
}

fn read_trips(text: &str) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for line in text.lines() {
        if !TRIPS.iter().any(|name| line.starts_with(&format!("{name}{{"))) {
            continue;
        }
        let reason = line
            .split("reason=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let count = line.rsplit(' ').next().and_then(|n| n.parse().ok());
        if let (Some(reason), Some(count)) = (reason, count) {
            let count: u64 = count;
            *out.entry(reason.to_owned()).or_default() += count;
        }
    }
    out
}

/// Reads the lines of Prometheus's text format that matter here.
fn read(text: &str) -> Sample {
    let mut out = Sample::default();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let name = series.split('{').next().unwrap_or(series);
        let Ok(value) = value.parse::<f64>() else { continue };
        match name {
            "shard_breaker_state" | "replica_breaker_state" => {
                out.states = true;
                // 0 closed, 1 open, 2 half open.
                out.open += f64::from(u8::from(value > 0.5 && value < 1.5));
                out.half_open += f64::from(u8::from(value > 1.5));
            }
            "query_breaker_state" => out.queries_cut += f64::from(u8::from(value > 0.5)),
            "shardgate_pool_busy" => out.busy += value,
            "shardgate_pool_waiting" => out.waiting += value,
            "shardgate_buffer_requests_in_flight" => out.buffered += value,
            _ => {}
        }
    }
    out
}

/// One HTTP request; the body if it was answered with 200.
pub(crate) async fn get(admin: SocketAddr, path: &str) -> Option<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(admin).await.ok()?;
        let head = format!("GET {path} HTTP/1.0\r\nHost: {admin}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        (head.split_whitespace().nth(1) == Some("200")).then(|| body.to_owned())
    };
    tokio::time::timeout(PATIENCE, exchange).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_counted_over_all_breakers() {
        let text = "# HELP shard_breaker_state x\nshard_breaker_state{shard=\"s/0\"} 0\n\
                    shard_breaker_state{shard=\"s/1\"} 1\nreplica_breaker_state{replica=\"a b\"} 2\nshardgate_pool_busy{tablet=\"a\"} 3\n\
                    shardgate_pool_busy{tablet=\"b\"} 4\nnonsense\n";
        let seen = read(text);
        assert_eq!((seen.open, seen.half_open, seen.busy), (1.0, 1.0, 7.0));
        let text = "shard_breaker_trips_total{shard=\"s/0\",reason=\"stall\"} 2\n\
                    shard_breaker_trips_total{reason=\"stall\",shard=\"s/1\"} 1\nother{reason=\"stall\"} 7\n";
        assert_eq!(read_trips(text), BTreeMap::from([("stall".to_owned(), 3)]));
    }
}
