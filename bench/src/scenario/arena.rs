//! Where a scenario takes place: simulated shards in this process, and a gateway of its own for each run.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use shardgate_tablet_sim::{
    ClusterOptions, FaultKind, FaultSpec, ShardOptions, SimCluster, SimError, SimOptions, SimShard, SimTablet,
};
use shardgate_tests::{Gateway, fixture, mariadb};

use super::variant::Variant;
use crate::BenchError;

/// The sharded keyspace, and the database on its tablets.
pub(crate) const KEYSPACE: &str = "shop";
/// Rows of a shard.
pub(crate) const ROWS: u64 = 100;
/// Values of the column `k`, evenly over the rows.
pub(crate) const KINDS: u64 = 50;

/// The shards; the faults they begin with are those of a healthy day.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) cluster: SimCluster,
    /// How long a healthy tablet takes for any statement of the load.
    service: Duration,
}

impl Arena {
    pub(crate) async fn build(shards: usize, replicas: usize, service: Duration) -> Result<Self, BenchError> {
        let options = (0..shards).map(|n| ShardOptions {
            name: format!("s{n}"),
            replicas,
            primary: SimOptions {
                server_id: u32::try_from(n * 16 + 1).unwrap_or(1),
                databases: vec![KEYSPACE.to_owned()],
                seed: n as u64 + 1,
                ..SimOptions::default()
            },
            ..ShardOptions::default()
        });
        let cluster = SimCluster::start(ClusterOptions {
            shards: options.collect(),
        })
        .await
        .map_err(sim)?;
        for (n, shard) in cluster.shards.iter().enumerate() {
            shard
                .primary()
                .execute_local(&rows(n, shards))
                .await
                .map_err(sim)?;
        }
        let arena = Self { cluster, service };
        for shard in &arena.cluster.shards {
            shard.caught_up().await;
        }
        arena.heal()?;
        Ok(arena)
    }

    pub(crate) fn shard(&self, n: usize) -> Result<&SimShard, BenchError> {
        self.cluster
            .shards
            .get(n)
            .ok_or(BenchError::Option("no such shard"))
    }

    /// What every healthy tablet is slowed by. Only the load's statements wait: polls and logins do not.
    pub(crate) fn healthy(&self) -> FaultSpec {
        FaultSpec::latency(self.service).on("FROM t")
    }

    /// Takes every fault away but the time a healthy tablet takes.
    pub(crate) fn heal(&self) -> Result<(), BenchError> {
        for shard in &self.cluster.shards {
            self.faults(shard, &[])?;
        }
        Ok(())
    }

    /// Sets faults on a shard's tablets. One of latency for everything stands in for the healthy time.
    pub(crate) fn faults(&self, shard: &SimShard, faults: &[FaultSpec]) -> Result<(), BenchError> {
        let slow = faults
            .iter()
            .any(|f| f.kind == FaultKind::Latency && f.statement.as_deref() == Some("FROM t"));
        let mut all: Vec<FaultSpec> = (!slow).then(|| self.healthy()).into_iter().collect();
        all.extend_from_slice(faults);
        for tablet in shard.tablets() {
            tablet.faults().replace(&all).map_err(|e| BenchError::Answer {
                target: tablet.alias().to_owned(),
                what: e.to_string(),
            })?;
        }
        Ok(())
    }

    /// A gateway over all of it.
    pub(crate) fn gateway(&self, binary: &Path, variant: Variant) -> Gateway {
        Gateway::serve_by(binary, &self.config(variant))
    }

    fn config(&self, variant: Variant) -> String {
        let mut file = format!(
            "[listen]\nmysql = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
             [[users]]\nname = \"{}\"\npassword_file = \"{}\"\n\n[backend]\nuser = \"root\"\n\n\
             [limits]\nmax_connections = 5000\n\n{}\n[keyspaces.{KEYSPACE}]\n\
             named = {{ by = \"modulo\", column = \"id\" }}\n",
            mariadb::APP_USER,
            fixture::PASSWORD_FILE,
            variant.sections(),
        );
        for shard in &self.cluster.shards {
            let primary = shard.primary();
            let tablets: Vec<String> = shard
                .tablets()
                .map(|t| {
                    let role = if t.alias() == primary.alias() {
                        "primary"
                    } else {
                        "replica"
                    };
                    format!(
                        "{{ alias = \"{}\", address = \"{}\", role = \"{role}\" }}",
                        t.alias(),
                        t.addr()
                    )
                })
                .collect();
            // Writing to a String cannot fail.
            let _ = write!(
                file,
                "\n[[keyspaces.{KEYSPACE}.shards]]\nname = \"{}\"\ntablets = [{}]\n",
                shard.name(),
                tablets.join(", ")
            );
        }
        file
    }

    /// How long the longest statement on any tablet has been running.
    pub(crate) fn longest_running(&self) -> Duration {
        let all = self
            .cluster
            .tablets()
            .filter_map(|t| t.running().first().copied());
        all.max().unwrap_or_default()
    }

    /// The most clients that any tablet has.
    pub(crate) fn most_connections(&self) -> usize {
        self.cluster
            .tablets()
            .map(SimTablet::connections)
            .max()
            .unwrap_or(0)
    }
}

#[allow(clippy::needless_pass_by_value)] // handed to map_err
pub(crate) fn sim(e: SimError) -> BenchError {
    BenchError::Answer {
        target: "simulated shards".into(),
        what: e.to_string(),
    }
}

fn rows(shard: usize, shards: usize) -> String {
    let row = |n: u64| format!("({}, {}, {n})", n * shards as u64 + shard as u64, n % KINDS);
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    format!(
        "CREATE TABLE {KEYSPACE}.t (id BIGINT PRIMARY KEY, k INT NOT NULL, v INT NOT NULL, KEY (k));\
         CREATE TABLE {KEYSPACE}.w (id BIGINT NOT NULL, token BIGINT NOT NULL, KEY (id));\
         INSERT INTO {KEYSPACE}.t VALUES {}",
        rows.join(", ")
    )
}
