//! A crowd of clients whose shard has no primary: what waits, how long, and what it costs the gateway.
//!
//! All of them send at once, again and again: more than may wait, in requests or in bytes. The gateway is a process of its
//! own, and so is the simulated tablet; this one is the clients.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::{Gateway, TabletSim, sim};
use shardgate_wire::WireError;
use tokio::time::Instant;

use crate::BenchError;
use crate::client::Client;
use crate::promise::{self, Promise};
use crate::stage;
use crate::usage::{Resident, forget_peak};

/// How far a wait may be from what was set.
const ACCURACY: Duration = Duration::from_millis(100);
/// What memory may grow by from the first round to the last.
const GROWTH: u64 = 16 << 20;
/// Clients that log in at once.
const LOGINS: usize = 64;

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The gateway's binary; by default the one beside this program.
    #[arg(long = "gateway", value_name = "FILE")]
    gateway: Option<PathBuf>,
    /// Clients; each side needs as many open files.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=60_000))]
    clients: u32,
    /// Requests that may wait.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    buffer_size: u32,
    /// How long one may wait, in milliseconds.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u64).range(500..=20_000))]
    window_ms: u64,
    /// Times that all of them send.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=20))]
    rounds: u8,
}

/// A way of overrunning the buffer.
#[derive(Clone, Copy, Debug)]
struct Overrun {
    name: &'static str,
    /// Of one statement.
    bytes: usize,
    buffer_bytes: usize,
}

const OVERRUNS: [Overrun; 2] = [
    Overrun {
        name: "requests",
        bytes: 200,
        buffer_bytes: 64 << 20,
    },
    Overrun {
        name: "bytes",
        bytes: 8 << 10,
        buffer_bytes: 1 << 20,
    },
];

/// What one round showed.
#[derive(Clone, Debug, Default)]
struct Round {
    /// Answers by their code; `OK` for none.
    answers: BTreeMap<String, usize>,
    /// Most requests and bytes that waited, as the gateway says.
    most: (u64, u64),
    peak: u64,
}

/// All that one way of overrunning showed.
#[derive(Clone, Debug, Default)]
struct Shown {
    rounds: Vec<Round>,
    /// How long one waited, after the crowd had gone quiet, until its window passed.
    alone: Duration,
    /// How late this program's own timers were meanwhile, at worst.
    timer_lag: Duration,
}

/// Measures, prints, and fails if a bound does not hold.
pub(crate) async fn run(options: &Options) -> Result<(), BenchError> {
    let named: Vec<PathBuf> = options.gateway.iter().cloned().collect();
    let binary = stage::gateways(&named)?.into_iter().next();
    let binary = binary.ok_or(BenchError::Option("no gateway"))?;
    let mut promises = Vec::new();
    let mut text = format!(
        "{} clients send at once, {} times; {} requests may wait, for {} ms.\n",
        options.clients, options.rounds, options.buffer_size, options.window_ms
    );
    for overrun in OVERRUNS {
        let shown = overrun_by(overrun, &binary, options).await?;
        render(&mut text, overrun, &shown.rounds);
        promises.extend(judge(overrun, &shown, options));
    }
    for promise in &promises {
        // Writing to a String cannot fail.
        let _ = write!(text, "{promise}");
    }
    promise::print(&text)?;
    promise::verdict("crowd", &promises)
}

async fn overrun_by(
    overrun: Overrun,
    binary: &std::path::Path,
    options: &Options,
) -> Result<Shown, BenchError> {
    let init = "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT);\n";
    let tablets = [TabletSim::start("s0", init)];
    let sections = format!(
        "[limits]\nmax_connections = {}\n\n[buffer]\nbuffer_size = {}\nbuffer_bytes = {}\nbuffer_window = \"{}ms\"\n\
         buffer_max_failover_duration = \"10m\"\n",
        options.clients + 10,
        options.buffer_size,
        overrun.buffer_bytes,
        options.window_ms,
    );
    let gateway = Gateway::serve_by(binary, &sim::config(&tablets, &sections));
    let mut clients = crowd(&gateway, options.clients).await?;
    announce(&gateway).await?;
    let mut shown = Shown::default();
    for _ in 0..options.rounds {
        shown.rounds.push(round(&mut clients, &gateway, overrun).await?);
    }
    // In a crowd a statement waits for its turn to be read before it waits for a primary.
    let mut witness = clients.pop().ok_or(BenchError::Option("no clients"))?;
    let over = Arc::<AtomicBool>::default();
    let (lag, began) = (tokio::spawn(timer_lag(Arc::clone(&over))), Instant::now());
    let told = code(witness.ask("INSERT INTO t VALUES (1, 1, 1)").await)?;
    shown.alone = began.elapsed();
    over.store(true, Ordering::Relaxed);
    shown.timer_lag = lag.await?;
    if told == "SG2702" {
        Ok(shown)
    } else {
        Err(answer(format!("one alone is told {told}")))
    }
}

/// Logs all clients in.
async fn crowd(gateway: &Gateway, count: u32) -> Result<Vec<Client>, BenchError> {
    let mut clients = Vec::with_capacity(count as usize);
    while clients.len() < count as usize {
        let next = LOGINS.min(count as usize - clients.len());
        let logins = (0..next).map(|_| Client::connect(gateway.addr(), KEYSPACE));
        let done = futures::future::try_join_all(logins).await;
        clients.extend(done.map_err(load)?);
    }
    Ok(clients)
}

async fn announce(gateway: &Gateway) -> Result<(), BenchError> {
    let path = format!("/api/shards/{KEYSPACE}/s0/reparent");
    match gateway
        .http_with("POST", &path, "{\"reparent\": \"start\"}")
        .await
    {
        (200, _) => Ok(()),
        (status, body) => Err(answer(format!("announcing a reparent: {status} {body}"))),
    }
}

/// All send at once and wait for their answers.
async fn round(clients: &mut Vec<Client>, gateway: &Gateway, overrun: Overrun) -> Result<Round, BenchError> {
    let pid = gateway.process().pid();
    forget_peak(pid)?;
    let mut running = tokio::task::JoinSet::new();
    for (n, mut client) in clients.drain(..).enumerate() {
        let mut sql = format!("INSERT INTO t VALUES ({n}, 1, 1) /* ");
        sql.extend(std::iter::repeat_n(
            'x',
            overrun.bytes.saturating_sub(sql.len() + 3),
        ));
        sql.push_str(" */");
        running.spawn(async move {
            let answer = client.ask(&sql).await;
            (client, answer)
        });
    }
    let mut round = Round::default();
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    while !running.is_empty() {
        tokio::select! {
            _ = looks.tick() => {
                let most = waiting(gateway).await?;
                round.most = (round.most.0.max(most.0), round.most.1.max(most.1));
                looks.reset();
            }
            Some(done) = running.join_next() => {
                let (client, answer) = done?;
                *round.answers.entry(code(answer)?).or_default() += 1;
                clients.push(client);
            }
        }
    }
    round.peak = Resident::of(pid)?.peak;
    Ok(round)
}

/// The code of the gateway's own errors.
fn code(answer: Result<crate::client::Read, WireError>) -> Result<String, BenchError> {
    match answer {
        Ok(_) => Ok("OK".into()),
        Err(WireError::Server(e)) => Ok(e.message_text().chars().take(6).collect()),
        Err(e) => Err(load(e)),
    }
}

/// How late timers of this program are, at worst, until it is over.
async fn timer_lag(over: Arc<AtomicBool>) -> Duration {
    const STEP: Duration = Duration::from_millis(5);
    let mut worst = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let due = Instant::now() + STEP;
        tokio::time::sleep_until(due).await;
        worst = worst.max(due.elapsed());
    }
    worst
}

/// Requests and bytes that wait now.
async fn waiting(gateway: &Gateway) -> Result<(u64, u64), BenchError> {
    let (_, body) = gateway.http("GET", "/debug/vars").await;
    let vars: Value = serde_json::from_str(&body).map_err(|e| answer(e.to_string()))?;
    let of = |name: &str| vars[name][format!("{KEYSPACE}.s0")].as_f64().map(|f| f.max(0.0));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small counts
    let number = |name: &str| {
        of(name)
            .map(|f| f as u64)
            .ok_or_else(|| answer(format!("no {name}")))
    };
    Ok((number("BufferRequestsInFlight")?, number("BufferBytesInFlight")?))
}

fn judge(overrun: Overrun, shown: &Shown, options: &Options) -> Vec<Promise> {
    let of = |name: &str| format!("{} overrun: {name}", overrun.name);
    let rounds = &shown.rounds;
    let most = rounds
        .iter()
        .fold((0, 0), |m, r| (m.0.max(r.most.0), m.1.max(r.most.1)));
    let strange: usize = rounds
        .iter()
        .flat_map(|r| &r.answers)
        .filter(|(code, _)| !matches!(code.as_str(), "SG2701" | "SG2702"))
        .map(|(_, n)| n)
        .sum();
    let window = Duration::from_millis(options.window_ms);
    let (first, last) = (
        rounds.first().map_or(0, |r| r.peak),
        rounds.last().map_or(0, |r| r.peak),
    );
    vec![
        Promise::new(
            of("never more waits than may"),
            format!(
                "at most {} requests of {}, {} bytes of {}",
                most.0, options.buffer_size, most.1, overrun.buffer_bytes
            ),
            most.0 > 0 && most.0 <= u64::from(options.buffer_size) && most.1 <= overrun.buffer_bytes as u64,
        ),
        Promise::new(
            of("everybody is answered, and knows why"),
            format!("{:?}", rounds.iter().map(|r| &r.answers).collect::<Vec<_>>()),
            strange == 0,
        ),
        Promise::new(
            of("one waits for its window, within 100 ms and the timers' lag"),
            format!(
                "{} ms of {}; timer lag {} ms",
                shown.alone.as_millis(),
                options.window_ms,
                shown.timer_lag.as_millis()
            ),
            shown.alone + ACCURACY >= window && shown.alone <= window + ACCURACY + shown.timer_lag,
        ),
        Promise::new(
            of("memory does not grow from round to round"),
            format!("peaks of {} and {} MiB", first >> 20, last >> 20),
            last <= first + GROWTH,
        ),
    ]
}

fn render(text: &mut String, overrun: Overrun, rounds: &[Round]) {
    let _ = writeln!(
        text,
        "\n{} overrun, statements of {} bytes\n{:>6}{:>10}{:>12}{:>10}  answers",
        overrun.name, overrun.bytes, "round", "waiting", "bytes", "peak MiB"
    );
    for (n, round) in rounds.iter().enumerate() {
        let answers: Vec<String> = round
            .answers
            .iter()
            .map(|(code, n)| format!("{n} {code}"))
            .collect();
        let _ = writeln!(
            text,
            "{:>6}{:>10}{:>12}{:>10}  {}",
            n + 1,
            round.most.0,
            round.most.1,
            round.peak >> 20,
            answers.join(", ")
        );
    }
    text.push('\n');
}

fn load(source: WireError) -> BenchError {
    BenchError::Load {
        target: "crowd".into(),
        source,
    }
}

fn answer(what: String) -> BenchError {
    BenchError::Answer {
        target: "crowd".into(),
        what,
    }
}
