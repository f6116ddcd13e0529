//! A simulated tablet as a process, or a shard of them: it prints where it listens and runs until Ctrl-C or SIGTERM.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use clap::Parser;
use shardgate_tablet_sim::{
    ProxyOptions, ShardOptions, SimOptions, SimProxy, SimShard, SimTablet, faults_router, shard_router,
    timeline_router,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A simulated MySQL tablet: the protocol over an embedded SQLite, with faults on demand.
#[derive(Parser, Debug)]
#[command(name = "tablet-sim", version)]
struct Args {
    /// Where it speaks MySQL; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:0")]
    mysql_addr: String,
    /// Where its faults are set by HTTP (GET, PUT, DELETE /faults and /timeline, and /shard); port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:0")]
    admin_addr: String,
    /// The seed of all its chances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Its `@@server_id`.
    #[arg(long, default_value_t = 1)]
    server_id: u32,
    /// A database to begin with; may be given several times.
    #[arg(long = "database")]
    databases: Vec<String>,
    /// A file of statements to run before it listens to clients.
    #[arg(long)]
    init: Option<PathBuf>,
    /// Its name. With replicas the name of the shard: its tablets are called ALIAS-primary, ALIAS-replica-1, ...
    #[arg(long, default_value = "sim")]
    alias: String,
    /// Tablets that follow it, read-only; /shard then tells who is what, and POST /shard/reparent changes that.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=100))]
    replicas: u16,
    /// How old a change is when the replicas apply it, in milliseconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    lag_ms: u64,
    /// Whether it begins read-only, and is so again after a restart.
    #[arg(long)]
    read_only: bool,
    /// Instead of simulating a tablet, forward to the real server at this host and port, through the same faults.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["databases", "init", "replicas", "lag_ms", "read_only", "server_version", "server_id"])]
    proxy_to: Option<String>,
    /// Its `VERSION()`, also in the greeting.
    #[arg(long)]
    server_version: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("tablet-sim: {e}");
            ExitCode::from(2)
        }
    }
}

#[allow(clippy::print_stdout)] // the addresses are this program's output
async fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(to) = args.proxy_to {
        let options = ProxyOptions {
            alias: args.alias,
            addr: args.mysql_addr,
            to,
            seed: args.seed,
        };
        return proxy(options, &args.admin_addr).await;
    }
    let mut options = SimOptions {
        alias: args.alias,
        addr: args.mysql_addr,
        server_id: args.server_id,
        databases: args.databases.clone(),
        seed: args.seed,
        ..SimOptions::default()
    };
    if let Some(version) = args.server_version {
        options.server_version = version;
    }
    options.read_only = args.read_only;
    let shard = if args.replicas > 0 {
        let shard = ShardOptions {
            name: options.alias.clone(),
            replicas: usize::from(args.replicas),
            lag: Duration::from_millis(args.lag_ms),
            primary: options,
        };
        SimShard::start(shard).await?
    } else {
        SimShard::single(SimTablet::start(options).await?)
    };
    let tablet = shard.primary();
    if let Some(file) = args.init {
        let text = tokio::fs::read_to_string(&file)
            .await
            .map_err(|e| format!("{}: {e}", file.display()))?;
        let with_database = match args.databases.first() {
            Some(db) => format!("USE `{}`;\n{text}", db.replace('`', "``")),
            None => text,
        };
        tablet
            .execute_local(&with_database)
            .await
            .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    shard.caught_up().await;
    let admin = listen(&args.admin_addr).await?;
    println!("mysql {}", tablet.addr());
    println!("admin http://{}/faults", admin.local_addr()?);
    for replica in shard.replicas() {
        println!("replica {} {}", replica.alias(), replica.addr());
    }
    let router = Router::new()
        .nest("/faults", faults_router(tablet.clone()))
        .nest("/timeline", timeline_router(tablet.clone()))
        .nest("/shard", shard_router(&shard));
    axum::serve(admin, router)
        .with_graceful_shutdown(stopped())
        .await?;
    shard.shutdown().await;
    Ok(())
}

async fn listen(addr: &str) -> Result<tokio::net::TcpListener, String> {
    let bound = tokio::net::TcpListener::bind(addr).await;
    bound.map_err(|e| format!("cannot listen on {addr}: {e}"))
}

#[allow(clippy::print_stdout)] // as above
async fn proxy(options: ProxyOptions, admin_addr: &str) -> Result<(), Box<dyn std::error::Error>> {
    let proxy = SimProxy::start(options).await?;
    let admin = listen(admin_addr).await?;
    println!("mysql {}", proxy.addr());
    println!("admin http://{}/faults", admin.local_addr()?);
    let router = Router::new()
        .nest("/faults", faults_router(proxy.clone()))
        .nest("/timeline", timeline_router(proxy.clone()));
    axum::serve(admin, router)
        .with_graceful_shutdown(stopped())
        .await?;
    proxy.shutdown().await;
    Ok(())
}

/// Ctrl-C or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without the handler Ctrl-C must do.
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}
