//! `shardgate demo`: a gateway over simulated shards in this process, with data to try it on.

mod data;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use axum::Router;
use clap::Args;
use shardgate_tablet_sim::{
    ClusterOptions, ShardOptions, SimCluster, SimOptions, SimTablet, faults_router, shard_router,
    timeline_router,
};

use super::stop::{Asked, Signals};
use super::{NOT_STARTED, complain, runtime, say, start_logging};
use crate::base::KeyRange;
use crate::config::{Config, DemoShape, Listen, demo_draft, demo_tablet_prefix, even_ranges};
use crate::server::Gateway;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Shards of the keyspace `commerce`, 1 to 256.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    shards: u16,
    /// Replicas of each shard, 0 to 8.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=8))]
    replicas: u16,
    /// Where clients connect; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:15306", value_name = "ADDR")]
    mysql_addr: SocketAddr,
    /// Where the HTTP side listens; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:15000", value_name = "ADDR")]
    admin_addr: SocketAddr,
    /// Seeds the rows and every chance of the simulated tablets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Why a demo did not start.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("the simulated shards did not start: {0}")]
    Sim(#[from] shardgate_tablet_sim::SimError),
    #[error("{0}")]
    Config(#[from] crate::config::ConfigError),
    #[error("{0}")]
    Start(#[from] crate::server::StartError),
    #[error("the demo's rows could not be made")]
    Rows,
}

pub(super) fn run(args: &DemoArgs) -> ExitCode {
    start_logging("warn");
    let runtime = match runtime(0) {
        Ok(runtime) => runtime,
        Err(e) => {
            complain(format_args!("the runtime cannot be started: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(demo(args));
    // The simulated tablets' worker threads may be in the middle of a long statement: nobody waits for it.
    runtime.shutdown_background();
    code
}

async fn demo(args: &DemoArgs) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => {
            complain(format_args!("signals cannot be listened to: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let Started {
        gateway,
        cluster,
        first,
    } = match start(args).await {
        Ok(started) => started,
        Err(e) => {
            complain(&e);
            if let Some(hint) = hint(&e, args) {
                complain(hint);
            }
            return ExitCode::from(NOT_STARTED);
        }
    };
    say(welcome(&gateway, args, &first));
    while signals.next().await == Asked::Reload {
        say("the demo has no configuration file to read again");
    }
    say("stopping");
    tokio::select! {
        () = gateway.shutdown() => {}
        // Asked a second time, it stops without grace.
        _ = signals.next() => {}
    }
    cluster.shutdown().await;
    ExitCode::SUCCESS
}

/// What to do about an address that cannot be listened on.
fn hint(error: &DemoError, args: &DemoArgs) -> Option<String> {
    let DemoError::Start(crate::server::StartError::Bind { addr, .. }) = error else {
        return None;
    };
    let flag = if *addr == args.mysql_addr {
        "--mysql-addr"
    } else {
        "--admin-addr"
    };
    Some(format!(
        "another demo may be running; {flag} {}:0 picks a free port (make demo ARGS=\"{flag} {}:0\")",
        addr.ip(),
        addr.ip()
    ))
}

/// A demo that runs.
struct Started {
    gateway: Gateway,
    cluster: SimCluster,
    /// The alias of the first shard's primary: the one to try a fault on.
    first: String,
}

async fn start(args: &DemoArgs) -> Result<Started, DemoError> {
    let names = even_ranges(u32::from(args.shards));
    let cluster = SimCluster::start(ClusterOptions {
        shards: shard_options(&names, args),
    })
    .await?;
    load(&cluster, &names, args.seed).await?;
    let addresses =
        |shard: &shardgate_tablet_sim::SimShard| shard.tablets().map(SimTablet::addr).collect::<Vec<_>>();
    let (lookup, commerce) = cluster.shards.split_last().ok_or(DemoError::Rows)?;
    let draft = demo_draft(&DemoShape {
        listen: Listen {
            mysql: args.mysql_addr,
            admin: args.admin_addr,
            ..Listen::default()
        },
        commerce: commerce.iter().map(addresses).collect(),
        lookup: addresses(lookup),
    });
    let config = draft.validate(Path::new("."))?;
    let routes = fault_routes(&config, &cluster);
    let commerce = config.keyspaces.get("commerce").and_then(|k| k.shards.first());
    let first = commerce
        .and_then(|s| s.tablets.first())
        .map(|t| t.alias.to_string())
        .unwrap_or_default();
    let gateway = Gateway::start(config, None, routes).await?;
    Ok(Started {
        gateway,
        cluster,
        first,
    })
}

/// One shard of `commerce` for each range, then the one of `lookup`.
fn shard_options(names: &[String], args: &DemoArgs) -> Vec<ShardOptions> {
    let shard = |n: usize, database: &str, name: &str| ShardOptions {
        name: demo_tablet_prefix(database, name),
        replicas: usize::from(args.replicas),
        primary: SimOptions {
            server_id: u32::try_from(n * 16 + 1).unwrap_or(1),
            databases: vec![database.to_owned()],
            seed: args.seed.wrapping_add(n as u64),
            ..SimOptions::default()
        },
        ..ShardOptions::default()
    };
    let mut all: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| shard(n, "commerce", name))
        .collect();
    all.push(shard(names.len(), "lookup", "-"));
    all
}

async fn load(cluster: &SimCluster, names: &[String], seed: u64) -> Result<(), DemoError> {
    let ranges = names
        .iter()
        .map(|n| KeyRange::parse(n))
        .collect::<Result<Vec<_>, _>>();
    let rows = data::commerce(&ranges.map_err(|_| DemoError::Rows)?, seed).ok_or(DemoError::Rows)?;
    let (lookup, commerce) = cluster.shards.split_last().ok_or(DemoError::Rows)?;
    let loads = commerce.iter().zip(&rows).map(|(shard, rows)| {
        let sql = format!("USE commerce; {}{rows}", data::COMMERCE_SCHEMA);
        let primary = shard.primary();
        async move { primary.execute_local(&sql).await }
    });
    futures::future::try_join_all(loads).await?;
    let sql = format!("USE lookup; {}{}", data::LOOKUP_SCHEMA, data::lookup());
    lookup.primary().execute_local(&sql).await?;
    for shard in &cluster.shards {
        shard.caught_up().await;
    }
    Ok(())
}

/// `/sim/<alias>/faults` and `.../timeline` for every tablet, by the alias that the gateway knows it by, and
/// `/sim/shards/<name>` for every shard.
fn fault_routes(config: &Config, cluster: &SimCluster) -> Router {
    let mut routes = Router::new();
    for shard in &cluster.shards {
        routes = routes.nest(&format!("/sim/shards/{}", shard.name()), shard_router(shard));
    }
    for keyspace in config.keyspaces.values() {
        for tablet in keyspace.shards.iter().flat_map(|s| &s.tablets) {
            let found = cluster
                .tablets()
                .find(|t| t.addr().to_string() == tablet.address.to_string());
            if let Some(sim) = found {
                let path = format!("/sim/{}", tablet.alias);
                routes = routes
                    .nest(&format!("{path}/faults"), faults_router(sim.clone()))
                    .nest(&format!("{path}/timeline"), timeline_router(sim.clone()));
            }
        }
    }
    routes
}

fn welcome(gateway: &Gateway, args: &DemoArgs, slow: &str) -> String {
    let (mysql, admin) = (gateway.mysql_addr(), gateway.admin_addr());
    format!(
        "Shardgate demo: {} shards of keyspace commerce, unsharded keyspace lookup, all in this process.\n\
         mysql {mysql}\n\
         admin {admin}\n\n\
         Connect:\n  mysql --comments -h {} -P {} -u root commerce\n\n\
         Queries worth trying:\n\
         \x20 SELECT * FROM customers WHERE id = 42;                      -- one shard, by its sharding column\n\
         \x20 SELECT COUNT(*), MIN(id), MAX(id) FROM orders;              -- all shards, one answer\n\
         \x20 SELECT id, customer_id, total FROM orders ORDER BY id LIMIT 5;  -- merged while it streams\n\
         \x20 EXPLAIN FORMAT=SHARDGATE SELECT * FROM customers WHERE id IN (1, 2, 3);\n\
         \x20 SELECT * FROM lookup.products WHERE sku = 'SKU-0007';       -- the unsharded keyspace\n\n\
         A fault worth trying (one shard answers queries on orders 2 s late; DELETE takes it back):\n\
         \x20 curl -X PUT -H 'content-type: application/json' \\\n\
         \x20      -d '{{\"kind\":\"latency\",\"ms\":2000,\"statement\":\"orders\"}}' http://{admin}/sim/{slow}/faults\n\n\
         Counters: http://{admin}/debug/vars      Ctrl-C stops.",
        args.shards,
        mysql.ip(),
        mysql.port(),
    )
}
