//! The load: requests sent when they are due, whatever became of those before, by clients of which there are only so
//! many.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shardgate_wire::WireError;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::record::{Done, Outcome, Record};
use crate::BenchError;
use crate::client::Client;

/// The most connections of one kind.
const CLIENTS: usize = 300;
/// How long the last requests have.
const GRACE: Duration = Duration::from_secs(1);
/// Callers while the capacity is measured.
const CALLERS: usize = 16;

/// A small generator of chance, the same for the same seed (xorshift).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        // Never zero, from which it would not move.
        Self(seed ^ 0x9e37_79b9_7f4a_7c15 | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `n`.
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    /// Uniform in `[0, 1)`.
    #[allow(clippy::cast_precision_loss)] // 53 bits fit a double
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One kind of request.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Its share of the load; shares are taken together.
    pub(crate) share: f64,
    /// A statement, by chance.
    pub(crate) sql: Arc<dyn Fn(&mut Chance) -> String + Send + Sync>,
    /// Where its statements are kept by their last numbers, if they are to be looked for afterwards.
    pub(crate) journal: Option<Arc<Mutex<Journal>>>,
}

/// Writes, by the last number in their texts, which is each one's own.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) sent: Vec<String>,
    pub(crate) acknowledged: Vec<String>,
}

/// The last number of a statement.
fn token(sql: &str) -> String {
    let digits = sql.trim_end_matches(|c: char| !c.is_ascii_digit());
    let from = digits.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |n| n + 1);
    digits.get(from..).unwrap_or("").to_owned()
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kind")
            .field("name", &self.name)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

/// What a client does when it is not answered as it likes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// It hangs up after so long.
    pub(crate) patience: Duration,
    /// How often it tries again.
    pub(crate) retries: u32,
    /// How long it waits before that.
    pub(crate) backoff: Duration,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    /// As those of many clients that know nothing of each other.
    ByChance,
    /// One like the other: what is measured is how many it takes, not how they happened to fall.
    Even,
}

/// Where and how fast.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) addr: SocketAddr,
    pub(crate) database: &'static str,
    pub(crate) kinds: Vec<Kind>,
    /// Requests a second, of all kinds together.
    pub(crate) rate: f64,
    pub(crate) arrivals: Arrivals,
    pub(crate) manners: Manners,
    pub(crate) seed: u64,
}

impl Plan {
    fn pick(&self, chance: &mut Chance) -> usize {
        let all: f64 = self.kinds.iter().map(|k| k.share).sum();
        let mut at = chance.unit() * all;
        for (n, kind) in self.kinds.iter().enumerate() {
            at -= kind.share;
            if at < 0.0 {
                return n;
            }
        }
        0
    }
}

/// The connections of one kind: idle ones, and how many there are.
#[derive(Debug, Default)]
struct Clients {
    idle: Vec<Client>,
    count: usize,
}

/// What the tasks of the load share.
struct Shared {
    plan: Plan,
    clients: Vec<Mutex<Clients>>,
    record: Arc<Mutex<Record>>,
    end: Instant,
}

/// Sends requests from now until `last`; those without an answer a second later are counted as such.
pub(crate) async fn run(plan: Plan, record: Arc<Mutex<Record>>, last: Instant) {
    let end = last + GRACE;
    let mut chance = Chance::new(plan.seed);
    let clients = plan.kinds.iter().map(|_| Mutex::default()).collect();
    let shared = Arc::new(Shared {
        plan,
        clients,
        record,
        end,
    });
    let mut due = Instant::now();
    let mut tasks = JoinSet::new();
    loop {
        let share = match shared.plan.arrivals {
            Arrivals::ByChance => -(1.0 - chance.unit()).ln(),
            Arrivals::Even => 1.0,
        };
        let gap = share / shared.plan.rate.max(0.001);
        due += Duration::from_secs_f64(gap.min(60.0));
        if due >= last {
            break;
        }
        tokio::time::sleep_until(due).await;
        let kind = shared.plan.pick(&mut chance);
        let sql = shared.plan.kinds.get(kind).map(|k| (k.sql)(&mut chance));
        let Some(sql) = sql else { continue };
        tasks.spawn(request(Arc::clone(&shared), kind, sql, due));
        while tasks.try_join_next().is_some() {}
    }
    tokio::time::sleep_until(end).await;
    // Each has its own limit at the end.
    while tasks.join_next().await.is_some() {}
}

async fn request(shared: Arc<Shared>, kind: usize, sql: String, intended: Instant) {
    let manners = shared.plan.manners;
    let journal = shared.plan.kinds.get(kind).and_then(|k| k.journal.clone());
    let note = |acknowledged: bool| {
        if let Some(journal) = &journal {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            let list = if acknowledged {
                &mut journal.acknowledged
            } else {
                &mut journal.sent
            };
            list.push(token(&sql));
        }
    };
    note(false);
    let mut waited = Duration::ZERO;
    let mut tries = 0;
    let outcome = loop {
        let (outcome, took) = attempt(&shared, kind, &sql).await;
        waited = waited.max(took);
        let again = matches!(outcome, Outcome::Failed(_)) && tries < manners.retries;
        if !again || Instant::now() + manners.backoff >= shared.end {
            break outcome;
        }
        tries += 1;
        tokio::time::sleep(manners.backoff).await;
    };
    if outcome == Outcome::Answered {
        note(true);
    }
    let done = Done {
        kind,
        intended,
        latency: intended.elapsed(),
        waited,
        outcome,
    };
    shared
        .record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(&done);
}

/// One try, and how long it took once it was sent.
async fn attempt(shared: &Shared, kind: usize, sql: &str) -> (Outcome, Duration) {
    let Some(clients) = shared.clients.get(kind) else {
        return (Outcome::Shed, Duration::ZERO);
    };
    let lock = || clients.lock().unwrap_or_else(PoisonError::into_inner);
    let idle = {
        let mut clients = lock();
        let idle = clients.idle.pop();
        if idle.is_none() {
            if clients.count >= CLIENTS {
                return (Outcome::Shed, Duration::ZERO);
            }
            clients.count += 1;
        }
        idle
    };
    let connect = Client::connect(shared.plan.addr, shared.plan.database);
    let client = match idle {
        Some(client) => Ok(client),
        None => match tokio::time::timeout_at(shared.end, connect).await {
            Ok(client) => client,
            Err(_) => Err(WireError::State("the run ended")),
        },
    };
    let mut client = match client {
        Ok(client) => client,
        Err(e) => {
            lock().count -= 1;
            return (Outcome::Failed(code(&e)), Duration::ZERO);
        }
    };
    let began = Instant::now();
    let limit = (began + shared.plan.manners.patience).min(shared.end);
    let asked = tokio::time::timeout_at(limit, client.ask(sql)).await;
    let took = began.elapsed();
    let (outcome, keep) = match asked {
        Ok(Ok(_)) => (Outcome::Answered, true),
        Ok(Err(e)) => (Outcome::Failed(code(&e)), matches!(e, WireError::Server(_))),
        Err(_) if limit >= shared.end => (Outcome::Unanswered, false),
        Err(_) => (Outcome::Failed("hung up".to_owned()), false),
    };
    let mut clients = lock();
    if keep {
        clients.idle.push(client);
    } else {
        clients.count -= 1;
    }
    (outcome, took)
}

/// An error's name: the gateway's own code where there is one, else the server's number.
fn code(e: &WireError) -> String {
    match e {
        WireError::Server(packet) => {
            let text = packet.message_text();
            let own = text.split(':').next().unwrap_or("");
            if own.starts_with("SG") && own.len() == 6 {
                own.to_owned()
            } else {
                packet.code.to_string()
            }
        }
        _ => "connection".to_owned(),
    }
}

/// How many requests a second the gateway answers at most, asked by a few callers as fast as they are answered.
pub(crate) async fn capacity(plan: &Plan, length: Duration) -> Result<f64, BenchError> {
    let end = Instant::now() + length;
    let began = Instant::now();
    let callers = (0..CALLERS).map(|n| {
        let plan = plan.clone();
        async move {
            let mut chance = Chance::new(plan.seed.wrapping_add(n as u64 * 7919));
            let mut client = Client::connect(plan.addr, plan.database).await?;
            let mut answers = 0u32;
            while Instant::now() < end {
                let kind = plan.pick(&mut chance);
                let Some(kind) = plan.kinds.get(kind) else {
                    continue;
                };
                // Writes would have to be kept in the journal.
                if kind.journal.is_none() {
                    client.ask(&(kind.sql)(&mut chance)).await?;
                    answers += 1;
                }
            }
            Ok::<_, WireError>(answers)
        }
    });
    let answers = futures::future::try_join_all(callers).await;
    let answers = answers.map_err(|source| BenchError::Load {
        target: "calibration".into(),
        source,
    })?;
    Ok(f64::from(answers.into_iter().sum::<u32>()) / began.elapsed().as_secs_f64())
}
