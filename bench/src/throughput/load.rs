//! Callers that ask again as soon as they are answered.

use std::time::Duration;

use shardgate_wire::WireError;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::work::Work;
use crate::BenchError;
use crate::client::{Client, Pace};
use crate::stage::Target;

/// What one target did in one round.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// How long each answer took, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// How long all of it took.
    pub(super) took: Duration,
}

/// The callers of one target.
#[derive(Debug)]
pub(super) struct Crew {
    name: String,
    callers: Vec<Caller>,
}

impl Crew {
    /// Connects all callers.
    pub(super) async fn gather(target: &Target, shards: usize, work: Work) -> Result<Self, BenchError> {
        let mut callers = Vec::new();
        for n in 0..work.clients() {
            let caller = Caller::connect(target, shards, work, n as u64).await;
            callers.push(caller.map_err(|source| BenchError::Load {
                target: target.name.clone(),
                source,
            })?);
        }
        Ok(Self {
            name: target.name.clone(),
            callers,
        })
    }

    /// Lets them ask for about as long; each finishes what it has begun.
    pub(super) async fn run(&mut self, length: Duration) -> Result<Turn, BenchError> {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for caller in self.callers.drain(..) {
            tasks.spawn(caller.until(began + length));
        }
        let mut turn = Turn::default();
        while let Some(done) = tasks.join_next().await {
            let (caller, latencies) = done?;
            turn.latencies
                .extend(latencies.map_err(|source| BenchError::Load {
                    target: self.name.clone(),
                    source,
                })?);
            self.callers.push(caller);
        }
        turn.took = began.elapsed();
        Ok(turn)
    }
}

/// One caller: one connection, or one to every shard.
#[derive(Debug)]
struct Caller {
    clients: Vec<Client>,
    work: Work,
    random: u64,
}

impl Caller {
    async fn connect(target: &Target, shards: usize, work: Work, n: u64) -> Result<Self, WireError> {
        let mut clients = Vec::new();
        for database in work.databases(target.front, shards) {
            let mut client = Client::connect(target.addr, &database).await?;
            if let Some(sql) = work.prepared() {
                client.prepare(sql).await?;
            }
            clients.push(client);
        }
        Ok(Self {
            clients,
            work,
            random: 0x9e37_79b9_7f4a_7c15 ^ (n + 1),
        })
    }

    async fn until(mut self, end: Instant) -> (Self, Result<Vec<u64>, WireError>) {
        let mut latencies = Vec::with_capacity(4096);
        loop {
            let began = Instant::now();
            if !latencies.is_empty() && began >= end {
                return (self, Ok(latencies));
            }
            if let Err(e) = self.ask().await {
                return (self, Err(e));
            }
            latencies.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// One question and its whole answer.
    async fn ask(&mut self) -> Result<(), WireError> {
        let random = self.next_random();
        if self.work.prepared().is_some() {
            for client in &mut self.clients {
                client.execute(self.work.param(random)).await?;
            }
        } else {
            let sql = self.work.text(random);
            for client in &mut self.clients {
                client.send(&sql).await?;
            }
        }
        let mut rows = 0;
        for client in &mut self.clients {
            rows += client.read(Pace::Free).await?.rows;
        }
        if rows == self.work.answer() {
            Ok(())
        } else {
            Err(WireError::State(
                "an answer has another number of rows than it must",
            ))
        }
    }

    /// Xorshift: the same numbers for every target.
    const fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
