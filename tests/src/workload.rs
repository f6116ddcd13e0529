//! Clients that write unique tokens all the time, and what became of each.
//!
//! Every token is written once: a row appended to a table without any key, where a second copy would be seen, or a word
//! appended to a register of the client's own. The journal has what each client was told; [`Journal::audit`] holds it
//! against what is there afterwards.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, ServerError, Statement};
use tokio::task::JoinHandle;

use crate::mariadb::{self, APP_PASSWORD, APP_USER, Database};
use crate::wait;

/// What the clients need on each shard, all sharded by `id`. The log has no unique key, so that nothing hides a second
/// copy.
pub const TABLES: [&str; 2] = [
    "CREATE TABLE log (id BIGINT NOT NULL, token BIGINT NOT NULL)",
    "CREATE TABLE register (id BIGINT PRIMARY KEY, trail LONGTEXT NOT NULL)",
];

/// Nothing a client asks takes longer, whatever happens to the tablets.
const LIMIT: Duration = Duration::from_secs(40);

/// Between two statements of a client.
const PAUSE: Duration = Duration::from_millis(5);

/// How a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An INSERT as text.
    Insert,
    /// The same INSERT, prepared once.
    Prepared,
    /// An UPDATE of the client's register; each time it was acknowledged the register is read back.
    Register,
    /// BEGIN, two INSERTs, COMMIT.
    Transaction,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Insert, Self::Prepared, Self::Register, Self::Transaction];
}

/// How many clients a shard has, as many of each kind.
const CLIENTS: usize = 2 * Kind::ALL.len();

/// What a client was told of what it tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Acknowledged,
    /// It failed, and nothing of it was executed.
    NotExecuted(String),
    /// It may have been executed or not.
    Unknown(String),
}

impl Fate {
    /// Whether it failed.
    pub fn failed(&self) -> bool {
        *self != Self::Acknowledged
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Server(e) => Self::of_server(e),
            other => Self::Unknown(format!("connection lost: {other}")),
        }
    }

    /// The gateway says of each of its own errors what it means; a tablet's own error undid what its statement did.
    fn of_server(e: &ServerError) -> Self {
        let told = format!("{} ({}): {}", e.code, e.state, e.message);
        if !e.message.starts_with("SG") || e.message.contains("nothing was executed") {
            return Self::NotExecuted(told);
        }
        Self::Unknown(told)
    }
}

/// One thing that a client tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The shard it was for.
    pub shard: usize,
    /// Which client tried it.
    pub client: usize,
    /// How.
    pub kind: Kind,
    /// The tokens it wrote, all or none; none of a read.
    pub tokens: Vec<u64>,
    /// When it was sent.
    pub began: Instant,
    /// How long the answer took.
    pub took: Duration,
    /// What the client was told.
    pub fate: Fate,
}

impl Attempt {
    fn ended(&self) -> Instant {
        self.began + self.took
    }
}

/// What all clients of one workload share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    journal: Mutex<Vec<Attempt>>,
    /// What must never be, whatever fails.
    wrong: Mutex<Vec<String>>,
    /// Connections to the gateway that were lost.
    lost: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clients at work.
#[derive(Debug)]
pub struct Workload {
    shared: Arc<Shared>,
    clients: Vec<(usize, JoinHandle<()>)>,
}

impl Workload {
    /// Clients of each kind for each shard of the keyspace, whose primaries are [`ready`].
    pub async fn start(gateway: SocketAddr, keyspace: &str, shards: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let mut clients = Vec::new();
        for shard in 0..shards {
            let kinds = Kind::ALL.into_iter().cycle().take(CLIENTS);
            for (number, kind) in (shard * CLIENTS..).zip(kinds) {
                let mut client = Client {
                    shared: Arc::clone(&shared),
                    gateway,
                    keyspace: keyspace.to_owned(),
                    shard,
                    shards,
                    number,
                    kind,
                    conn: login(gateway, keyspace)
                        .await
                        .expect("the gateway lets a client in"),
                    statement: None,
                    trail: Vec::new(),
                };
                clients.push((shard, tokio::spawn(async move { client.work().await })));
            }
        }
        Self { shared, clients }
    }

    /// Waits until every client of the shard was told of the success of a write after `since`; how long after `since` the
    /// last of them first was.
    pub async fn flows(&self, shard: usize, since: Instant) -> Duration {
        let what = format!("all clients of shard {shard} to write");
        wait::until(&what, LIMIT, || async { self.flow(shard, since) }).await
    }

    /// The same, if it is so already.
    pub fn flow(&self, shard: usize, since: Instant) -> Option<Duration> {
        let clients = self.clients.iter().filter(|(s, _)| *s == shard).count();
        let mut first: HashMap<usize, Instant> = HashMap::new();
        let journal = lock(&self.shared.journal);
        let recent = journal.iter().rev().take_while(|a| a.ended() >= since);
        let done = |a: &&Attempt| a.shard == shard && a.fate == Fate::Acknowledged && !a.tokens.is_empty();
        for a in recent.filter(done) {
            first.insert(a.client, a.ended());
        }
        let last = first.values().max()?;
        (first.len() == clients).then(|| last.duration_since(since))
    }

    /// What was told so far of attempts at this shard that ended after `since`.
    pub fn since(&self, shard: usize, since: Instant) -> Vec<Attempt> {
        let journal = lock(&self.shared.journal);
        let mut recent: Vec<Attempt> = journal
            .iter()
            .rev()
            .take_while(|a| a.ended() >= since)
            .filter(|a| a.shard == shard)
            .cloned()
            .collect();
        recent.reverse();
        recent
    }

    /// Lets every client finish what it is at.
    pub async fn stop(self) -> Journal {
        self.shared.stop.store(true, Ordering::Release);
        for (_, client) in self.clients {
            client.await.expect("a client does not panic");
        }
        let wrong = std::mem::take(&mut *lock(&self.shared.wrong));
        assert!(wrong.is_empty(), "{}", some(&wrong));
        Journal {
            attempts: std::mem::take(&mut *lock(&self.shared.journal)),
            lost: self.shared.lost.load(Ordering::Acquire),
        }
    }
}

async fn login(gateway: SocketAddr, keyspace: &str) -> Result<Conn, Error> {
    let options = mariadb::options(gateway, APP_USER, Some(APP_PASSWORD), Some(keyspace));
    Conn::new(options).await
}

/// Makes ready what the clients of [`Workload::start`] need on a shard, on its primary.
pub async fn ready(database: &Database, shard: usize, shards: usize) {
    database.run(&TABLES).await;
    let own = CLIENTS * shard..CLIENTS * (shard + 1);
    let rows: Vec<String> = own
        .map(|n| format!("({}, '')", register(shard, shards, n)))
        .collect();
    database
        .run(&[&format!("INSERT INTO register VALUES {}", rows.join(", "))])
        .await;
}

/// The key of a client's register, on its shard.
fn register(shard: usize, shards: usize, client: usize) -> usize {
    client * shards + shard
}

/// Tokens are never used twice in a process: a stray write of another test would be seen.
fn token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

struct Client {
    shared: Arc<Shared>,
    gateway: SocketAddr,
    keyspace: String,
    shard: usize,
    shards: usize,
    number: usize,
    kind: Kind,
    conn: Conn,
    statement: Option<Statement>,
    /// What was acknowledged of the register.
    trail: Vec<u64>,
}

impl Client {
    async fn work(&mut self) {
        let mut pace = tokio::time::interval(PAUSE);
        pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.shared.stop.load(Ordering::Acquire) {
            pace.tick().await;
            let began = Instant::now();
            let Ok((tokens, done)) = tokio::time::timeout(LIMIT, self.attempt()).await else {
                self.wrong(format!("{:?} of shard {} hangs", self.kind, self.shard));
                return;
            };
            self.note(tokens, began, done.as_ref().err());
            if self.kind == Kind::Register && done.is_ok() {
                self.read_back().await;
            }
            if let Err(error) = &done {
                self.go_on(error).await;
            }
        }
    }

    fn note(&self, tokens: Vec<u64>, began: Instant, failed: Option<&Failed>) {
        let fate = match failed {
            None => Fate::Acknowledged,
            // Whatever became of a statement, its transaction was never told to commit.
            Some(f) if !f.committing => Fate::NotExecuted(f.error.to_string()),
            Some(f) => Fate::of(&f.error),
        };
        let mut journal = lock(&self.shared.journal);
        journal.push(Attempt {
            shard: self.shard,
            client: self.number,
            kind: self.kind,
            tokens,
            began,
            took: began.elapsed(),
            fate,
        });
    }

    async fn attempt(&mut self) -> (Vec<u64>, Result<(), Failed>) {
        let first = token();
        match self.kind {
            Kind::Insert => (vec![first], self.insert(first).await.map_err(Failed::committing)),
            Kind::Prepared => (
                vec![first],
                self.prepared(first).await.map_err(Failed::committing),
            ),
            Kind::Register => (vec![first], self.update(first).await.map_err(Failed::committing)),
            Kind::Transaction => {
                let second = token();
                (vec![first, second], self.transaction(first, second).await)
            }
        }
    }

    fn key(&self, token: u64) -> u64 {
        let of = |n: usize| u64::try_from(n).expect("few shards");
        token * of(self.shards) + of(self.shard)
    }

    async fn insert(&mut self, token: u64) -> Result<(), Error> {
        let sql = format!("INSERT INTO log VALUES ({}, {token})", self.key(token));
        self.conn.query_drop(sql).await
    }

    async fn prepared(&mut self, token: u64) -> Result<(), Error> {
        let statement = match &self.statement {
            Some(statement) => statement.clone(),
            None => self.conn.prep("INSERT INTO log VALUES (?, ?)").await?,
        };
        self.statement = Some(statement.clone());
        self.conn.exec_drop(&statement, (self.key(token), token)).await
    }

    async fn update(&mut self, token: u64) -> Result<(), Error> {
        let key = register(self.shard, self.shards, self.number);
        let sql = format!("UPDATE register SET trail = CONCAT(trail, '{token} ') WHERE id = {key}");
        self.conn.query_drop(sql).await?;
        let affected = self.conn.affected_rows();
        if affected != 1 {
            self.wrong(format!("an UPDATE of one register changed {affected}"));
        }
        self.trail.push(token);
        Ok(())
    }

    /// A write that was acknowledged is read back, from whoever is primary by now.
    async fn read_back(&mut self) {
        let began = Instant::now();
        let key = register(self.shard, self.shards, self.number);
        let sql = format!("SELECT trail FROM register WHERE id = {key}");
        match self.conn.query_first::<String, _>(sql).await {
            Ok(trail) => {
                let trail = trail.unwrap_or_default();
                let last = self.trail.last().map(u64::to_string).unwrap_or_default();
                if !trail.split_whitespace().any(|t| t == last) {
                    self.wrong(format!(
                        "register {key} was read without the acknowledged {last}: ...{}",
                        &trail[trail.len().saturating_sub(60)..]
                    ));
                }
                self.note(Vec::new(), began, None);
            }
            Err(error) => {
                let failed = Failed::committing(error);
                self.note(Vec::new(), began, Some(&failed));
                self.go_on(&failed).await;
            }
        }
    }

    async fn transaction(&mut self, first: u64, second: u64) -> Result<(), Failed> {
        let early = |error| Failed {
            error,
            committing: false,
        };
        self.conn.query_drop("BEGIN").await.map_err(early)?;
        self.insert(first).await.map_err(early)?;
        self.insert(second).await.map_err(early)?;
        self.conn.query_drop("COMMIT").await.map_err(Failed::committing)
    }

    /// After a failure the session goes on: behind ROLLBACK, if it was in a transaction.
    async fn go_on(&mut self, failed: &Failed) {
        if !matches!(failed.error, Error::Server(_)) {
            self.shared.lost.fetch_add(1, Ordering::AcqRel);
            match login(self.gateway, &self.keyspace).await {
                Ok(conn) => self.conn = conn,
                Err(e) => {
                    self.wrong(format!("a client cannot come back: {e}"));
                    self.shared.stop.store(true, Ordering::Release);
                }
            }
            self.statement = None;
            return;
        }
        if self.kind == Kind::Transaction {
            let began = Instant::now();
            match tokio::time::timeout(LIMIT, self.conn.query_drop("ROLLBACK")).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => self.wrong(format!("ROLLBACK after `{}`: {e}", failed.error)),
                Err(_) => self.wrong(format!("ROLLBACK after `{}` hangs", failed.error)),
            }
            if began.elapsed() > Duration::from_secs(2) {
                self.wrong(format!(
                    "ROLLBACK after `{}` took {:?}",
                    failed.error,
                    began.elapsed()
                ));
            }
        }
    }

    fn wrong(&self, what: String) {
        lock(&self.shared.wrong).push(what);
    }
}

struct Failed {
    error: Error,
    /// Whether what failed would have committed something: not so of a statement inside a transaction.
    committing: bool,
}

impl Failed {
    fn committing(error: Error) -> Self {
        Self {
            error,
            committing: true,
        }
    }
}

/// What became of everything.
#[derive(Debug)]
pub struct Journal {
    /// In the order in which they ended.
    pub attempts: Vec<Attempt>,
    /// Client connections that the gateway lost.
    pub lost: u64,
}

impl Journal {
    /// The failures of one shard.
    pub fn failures(&self, shard: usize) -> Vec<&Attempt> {
        let of = |a: &&Attempt| a.shard == shard && a.fate.failed();
        self.attempts.iter().filter(of).collect()
    }

    /// How many were acknowledged on one shard.
    pub fn acknowledged(&self, shard: usize) -> usize {
        let of = |a: &&Attempt| a.shard == shard && a.fate == Fate::Acknowledged;
        self.attempts.iter().filter(of).count()
    }

    /// How many of this shard's failed, by what was told.
    pub fn failures_by_code(&self, shard: usize) -> BTreeMap<String, usize> {
        let mut by_code = BTreeMap::new();
        for a in self.failures(shard) {
            let (Fate::NotExecuted(told) | Fate::Unknown(told)) = &a.fate else {
                continue;
            };
            let code = told
                .find("SG")
                .and_then(|at| told.get(at..at + 6))
                .or(told.get(..40));
            *by_code.entry(code.unwrap_or(told).to_owned()).or_default() += 1;
        }
        by_code
    }

    /// Panics if anything of this shard failed.
    pub fn assert_untouched(&self, shard: usize) {
        let failed: Vec<String> = self.failures(shard).iter().map(|a| line(a)).collect();
        assert!(failed.is_empty(), "shard {shard}: {}", some(&failed));
        assert!(self.acknowledged(shard) > 0, "shard {shard} was never written");
    }

    /// Panics unless this shard's data is what the clients were told: what was acknowledged is there exactly once, what
    /// was reported as not executed is not, of what nobody knows each attempt is there wholly or not at all, and nothing
    /// else is there.
    pub fn audit(&self, shard: usize, found: &Found) {
        let mut wrong = found.wrong.clone();
        let mut left = found.tokens.clone();
        for a in self.attempts.iter().filter(|a| a.shard == shard) {
            let times: Vec<u64> = a.tokens.iter().map(|t| left.remove(t).unwrap_or(0)).collect();
            let right = match &a.fate {
                Fate::Acknowledged => times.iter().all(|n| *n == 1),
                Fate::NotExecuted(_) => times.iter().all(|n| *n == 0),
                Fate::Unknown(_) => times.iter().all(|n| *n <= 1) && times.windows(2).all(|w| w[0] == w[1]),
            };
            if !right {
                wrong.push(format!("found {times:?} times: {}", line(a)));
            }
        }
        wrong.extend(
            left.keys()
                .map(|token| format!("token {token} was never sent there")),
        );
        assert!(wrong.is_empty(), "shard {shard}: {}", some(&wrong));
        assert_eq!(self.lost, 0, "the gateway lost connections of clients");
    }
}

/// The tokens on one server.
#[derive(Clone, Debug)]
pub struct Found {
    /// How often each is there.
    pub tokens: HashMap<u64, u64>,
    wrong: Vec<String>,
}

impl Found {
    /// Reads them, those of unfinished transactions too.
    pub async fn on(database: &Database) -> Self {
        let mut conn = database.conn().await;
        conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            .await
            .expect("an isolation level can be set");
        let log: Vec<u64> = conn
            .query("SELECT token FROM log")
            .await
            .expect("the log can be read");
        let registers: Vec<(u64, String)> = conn
            .query("SELECT id, trail FROM register")
            .await
            .expect("the registers can be read");
        let mut wrong = Vec::new();
        let mut tokens: HashMap<u64, u64> = HashMap::new();
        let trails = registers.iter().flat_map(|(id, trail)| {
            let trail: Vec<u64> = trail
                .split_whitespace()
                .map(|t| t.parse().expect("a token"))
                .collect();
            if !trail.is_sorted() {
                wrong.push(format!("register {id} was changed out of order: {trail:?}"));
            }
            trail
        });
        for token in log.into_iter().chain(trails) {
            *tokens.entry(token).or_default() += 1;
        }
        Self { tokens, wrong }
    }
}

/// A failure's line.
pub fn line(a: &Attempt) -> String {
    format!(
        "{:?} of client {} on shard {} after {:?}, tokens {:?}: {:?}",
        a.kind, a.client, a.shard, a.took, a.tokens, a.fate
    )
}

/// The first of many.
fn some(lines: &[String]) -> String {
    let mut text = format!("{} in all", lines.len());
    for line in lines.iter().take(12) {
        let _ = write!(text, "\n  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(tokens: &[u64], fate: Fate) -> Attempt {
        Attempt {
            shard: 0,
            client: 0,
            kind: Kind::Insert,
            tokens: tokens.to_vec(),
            began: Instant::now(),
            took: Duration::ZERO,
            fate,
        }
    }

    /// Whether the audit of one attempt with what is on the server passes.
    fn passes(tokens: &[u64], fate: Fate, found: &[u64]) -> bool {
        let journal = Journal {
            attempts: vec![attempt(tokens, fate)],
            lost: 0,
        };
        let mut times = HashMap::new();
        for token in found {
            *times.entry(*token).or_default() += 1;
        }
        let found = Found {
            tokens: times,
            wrong: Vec::new(),
        };
        std::panic::catch_unwind(|| journal.audit(0, &found)).is_ok()
    }

    #[test]
    fn an_audit_finds_what_is_lost_doubled_halved_or_denied() {
        let unknown = || Fate::Unknown(String::new());
        let not_executed = || Fate::NotExecuted(String::new());
        assert!(passes(&[1, 2], Fate::Acknowledged, &[1, 2]));
        assert!(!passes(&[1, 2], Fate::Acknowledged, &[1]), "lost");
        assert!(!passes(&[1, 2], Fate::Acknowledged, &[1, 2, 2]), "doubled");
        assert!(!passes(&[1], Fate::Acknowledged, &[1, 7]), "never sent");
        assert!(passes(&[1, 2], unknown(), &[]) && passes(&[1, 2], unknown(), &[1, 2]));
        assert!(!passes(&[1, 2], unknown(), &[2]), "half a transaction");
        assert!(!passes(&[1], unknown(), &[1, 1]), "doubled");
        assert!(
            passes(&[1], not_executed(), &[]) && !passes(&[1], not_executed(), &[1]),
            "denied"
        );
    }

    #[test]
    fn errors_mean_what_the_gateway_says_of_them() {
        let told = |message: &str| {
            Fate::of(&Error::Server(ServerError {
                code: 1105,
                state: "HY000".to_owned(),
                message: message.to_owned(),
            }))
        };
        assert!(matches!(
            told("SG2401: sent; it may or may not have been executed"),
            Fate::Unknown(_)
        ));
        assert!(matches!(
            told("SG2103: refused; nothing was executed"),
            Fate::NotExecuted(_)
        ));
        assert!(matches!(
            told("running with the --read-only option"),
            Fate::NotExecuted(_)
        ));
    }
}
