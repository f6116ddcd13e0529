//! Shards and clusters of tablets.

use std::time::Duration;

use crate::handle::{SimError, SimOptions, SimTablet};

/// How a shard is made.
#[derive(Clone, Debug)]
pub struct ShardOptions {
    /// What its tablets are called: `<name>-primary`, `<name>-replica-1`, ...
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

/// A primary and the replicas that follow it.
#[derive(Clone, Debug)]
pub struct SimShard {
    /// Takes the writes.
    pub primary: SimTablet,
    /// Follow it, read-only.
    pub replicas: Vec<SimTablet>,
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
        let mut replicas = Vec::new();
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
            replica.follow(&primary, options.lag)?;
            replicas.push(replica);
        }
        Ok(Self { primary, replicas })
    }

    /// Sets how old a change is when the replicas apply it.
    pub fn set_lag(&self, lag: Duration) {
        for replica in &self.replicas {
            replica.set_lag(lag);
        }
    }

    /// Waits until every replica has applied all that the primary has committed by now (or has stopped).
    pub async fn caught_up(&self) {
        for replica in &self.replicas {
            replica.caught_up().await;
        }
    }

    /// The primary, then the replicas.
    pub fn tablets(&self) -> impl Iterator<Item = &SimTablet> {
        std::iter::once(&self.primary).chain(&self.replicas)
    }

    /// Stops all of them.
    pub async fn shutdown(&self) {
        for replica in &self.replicas {
            replica.shutdown().await;
        }
        self.primary.shutdown().await;
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
