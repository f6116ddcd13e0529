//! Shards and clusters of tablets.

mod http;
mod reparent;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use http::shard_router;
pub use reparent::{Loss, Reparent, ReparentError, ReparentEvent, ReparentKind, ReparentReport};

use crate::handle::{SimError, SimOptions, SimTablet};

/// How a shard is made.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// What its tablets are called: `<name>-primary`, `<name>-replica-1`, ... They keep these names when a reparent
    /// changes their roles.
    pub name: String,
    /// How many replicas it has.
    pub replicas: usize,
    /// How old a change is when a replica applies it.
    pub lag: Duration,
    /// For the primary; the replicas take the next server ids and ports, seeds that follow from this one, and are
    /// read-only.
    pub primary: SimOptions,
}

impl Default for ShardOptions {
    fn default() -> Self {
        Self {
            name: "sim".to_owned(),
            replicas: 0,
            lag: Duration::ZERO,
            primary: SimOptions::default(),
        }
    }
}

/// A primary and the replicas that follow it. Clones are the same shard.
#[derive(Clone, Debug)]
pub struct SimShard {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    /// As they were started: the first primary, then its replicas.
    tablets: Vec<SimTablet>,
    lag: Mutex<Duration>,
    /// Which of them is the primary.
    primary: Mutex<usize>,
    /// Held while a reparent runs.
    reparenting: tokio::sync::Mutex<()>,
}

impl SimShard {
    /// Starts a shard. Replicas begin at the start of the primary's log, so they get all that is loaded into it.
    pub async fn start(options: ShardOptions) -> Result<Self, SimError> {
        let base = &options.primary;
        let primary = SimTablet::start(SimOptions {
            alias: format!("{}-primary", options.name),
            ..base.clone()
        })
        .await?;
        let mut tablets = vec![primary.clone()];
        for n in 1..=options.replicas {
            let number = u32::try_from(n).unwrap_or(u32::MAX);
            let replica = SimTablet::start(SimOptions {
                alias: format!("{}-replica-{n}", options.name),
                addr: "127.0.0.1:0".to_owned(),
                server_id: base.server_id.saturating_add(number),
                seed: base.seed.wrapping_add(u64::from(number) << 16),
                read_only: true,
                ..base.clone()
            })
            .await?;
            replica.follow(&primary, options.lag).await?;
            tablets.push(replica);
        }
        Ok(Self::of(options.name, tablets, options.lag))
    }

    /// A shard of one tablet, which keeps its alias.
    #[must_use]
    pub fn single(tablet: SimTablet) -> Self {
        Self::of(tablet.alias().to_owned(), vec![tablet], Duration::ZERO)
    }

    /// The first is the primary; there is one.
    fn of(name: String, tablets: Vec<SimTablet>, lag: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                tablets,
                lag: Mutex::new(lag),
                primary: Mutex::new(0),
                reparenting: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    fn place(&self) -> std::sync::MutexGuard<'_, usize> {
        self.inner.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tablet that takes the writes, or was the last to take them.
    #[must_use]
    pub fn primary(&self) -> SimTablet {
        // There is always one, and its place is never another number.
        self.inner.tablets[*self.place()].clone()
    }

    /// All others, in the order they were started.
    #[must_use]
    pub fn replicas(&self) -> Vec<SimTablet> {
        let primary = *self.place();
        let all = self.inner.tablets.iter().enumerate();
        all.filter(|(n, _)| *n != primary)
            .map(|(_, t)| t.clone())
            .collect()
    }

    /// The tablet of this alias.
    #[must_use]
    pub fn tablet(&self, alias: &str) -> Option<&SimTablet> {
        self.tablets().find(|t| t.alias() == alias)
    }

    /// Sets how old a change is when the replicas apply it.
    pub fn set_lag(&self, lag: Duration) {
        *self.inner.lag.lock().unwrap_or_else(PoisonError::into_inner) = lag;
        for tablet in self.tablets() {
            tablet.set_lag(lag);
        }
    }

    fn lag(&self) -> Duration {
        *self.inner.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every replica has applied all that the primary has committed by now (or has stopped).
    pub async fn caught_up(&self) {
        for tablet in self.tablets() {
            tablet.caught_up().await;
        }
    }

    /// All of them, in the order they were started: the first primary, then its replicas.
    pub fn tablets(&self) -> impl Iterator<Item = &SimTablet> {
        self.inner.tablets.iter()
    }

    /// Stops all of them.
    pub async fn shutdown(&self) {
        for tablet in self.inner.tablets.iter().rev() {
            tablet.shutdown().await;
        }
    }
}

/// How a cluster is made.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// Its shards.
    pub shards: Vec<ShardOptions>,
}

/// Several shards.
#[derive(Clone, Debug)]
pub struct SimCluster {
    /// In the order of the options.
    pub shards: Vec<SimShard>,
}

impl SimCluster {
    /// Starts all shards, side by side.
    pub async fn start(options: ClusterOptions) -> Result<Self, SimError> {
        let starting = options.shards.into_iter().map(SimShard::start);
        let shards = futures::future::try_join_all(starting).await?;
        Ok(Self { shards })
    }

    /// All tablets.
    pub fn tablets(&self) -> impl Iterator<Item = &SimTablet> {
        self.shards.iter().flat_map(SimShard::tablets)
    }

    /// The tablet of this alias.
    #[must_use]
    pub fn tablet(&self, alias: &str) -> Option<&SimTablet> {
        self.tablets().find(|t| t.alias() == alias)
    }

    /// Stops all of them.
    pub async fn shutdown(&self) {
        for shard in &self.shards {
            shard.shutdown().await;
        }
    }
}
