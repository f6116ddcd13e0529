//! The thresholds all breakers of a gateway are made with.

use shardgate_breaker::{BudgetConfig, Config};

/// How guards are set. A reload that changes it makes new ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardSettings {
    /// Whether breakers refuse anything.
    pub enabled: bool,
    /// For a shard's primary.
    pub shard: Config,
    /// For a replica.
    pub replica: Config,
    /// For a kind of statement on a shard.
    pub kind: Config,
    /// Percent of a shard's replicas that may be out for errors or latency.
    pub ejection_cap: u32,
    /// Percent of a pool that one kind of statement may hold while others want it; 0 = no bound.
    pub max_pool_share: u32,
    /// What retries a shard's traffic may carry.
    pub budget: BudgetConfig,
    /// How often a read is tried again at most.
    pub retry_attempts: u32,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            shard: Config::shard(),
            replica: Config::replica(),
            kind: Config::fingerprint(),
            ejection_cap: 50,
            max_pool_share: 60,
            budget: BudgetConfig::default(),
            retry_attempts: 2,
        }
    }
}
