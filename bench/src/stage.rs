//! What is compared: one private server, and in front of it nothing, a TCP relay, and gateways.
//!
//! The relay and the bare server show all rows in one database. A gateway shows the same rows sharded over databases
//! of the same server, so that it has to plan and route each statement while the server's work stays the same.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use shardgate_tests::mariadb::{self, APP_USER, MariaDb};
use shardgate_tests::process::Supervised;
use shardgate_tests::{Gateway, fixture};

use crate::BenchError;
use crate::client::Client;

/// The database and keyspace that holds all rows.
pub(crate) const WHOLE: &str = "whole";
/// The sharded keyspace; shard `n` is the database `part<n>`.
pub(crate) const SHARDED: &str = "sharded";
/// Rows of the small table `t`, ids from 1.
pub(crate) const SMALL: u64 = 10_000;
/// Values of its column `k`, each in as many rows.
pub(crate) const KINDS: u64 = 500;

/// Connections of each pool and, with all shards, of the server.
const POOL: usize = 80;
const RELAY_LIMIT: Duration = Duration::from_secs(5);

/// What stands in front of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing.
    Nothing,
    /// HAProxy in TCP mode.
    Relay,
    /// A gateway.
    Gateway,
}

/// One thing to measure.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its name in the report.
    pub(crate) name: String,
    /// What it is.
    pub(crate) front: Front,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    /// The proxy's process; none in front of the bare server.
    pub(crate) pid: Option<u32>,
}

/// All that runs; gone on drop.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) targets: Vec<Target>,
    /// Databases of the sharded keyspace.
    pub(crate) shards: usize,
    _gateways: Vec<Gateway>,
    _relay: Option<Supervised>,
    _server: MariaDb,
}

impl Stage {
    /// Starts everything and makes the data: `rows` rows of the table `big`.
    pub(crate) async fn build(binaries: &[PathBuf], shards: usize, rows: u64) -> Result<Self, BenchError> {
        let server = MariaDb::start_with(&["--max-connections=4000", "--table-open-cache=4000"]);
        fill(&server, shards, rows).await?;
        let mut targets = vec![Target {
            name: "direct".into(),
            front: Front::Nothing,
            addr: server.addr(),
            pid: None,
        }];
        let relay = match haproxy() {
            Some(program) => Some(start_relay(&program, server.addr()).await?),
            None => {
                eprintln!(
                    "haproxy is not installed (Debian: apt-get install haproxy): its column is left out"
                );
                None
            }
        };
        if let Some((process, addr)) = &relay {
            targets.push(Target {
                name: "haproxy".into(),
                front: Front::Relay,
                addr: *addr,
                pid: Some(process.pid()),
            });
        }
        let config = gateway_config(server.addr(), shards);
        let mut gateways = Vec::new();
        for (n, binary) in binaries.iter().enumerate() {
            let gateway = Gateway::serve_by(binary, &config);
            targets.push(Target {
                name: if n == 0 {
                    "gateway".into()
                } else {
                    format!("gateway {}", n + 1)
                },
                front: Front::Gateway,
                addr: gateway.addr(),
                pid: Some(gateway.process().pid()),
            });
            gateways.push(gateway);
        }
        Ok(Self {
            targets,
            shards,
            _gateways: gateways,
            _relay: relay.map(|(process, _)| process),
            _server: server,
        })
    }
}

/// The gateways to measure: those named, else the one beside this program.
pub(crate) fn gateways(named: &[PathBuf]) -> Result<Vec<PathBuf>, BenchError> {
    let mut files = named.to_vec();
    if files.is_empty() {
        let own = std::env::current_exe().map_err(|source| BenchError::Io {
            what: "this program's file".into(),
            source,
        })?;
        files.push(own.with_file_name("shardgate"));
    }
    if files.iter().all(|f| f.is_file()) {
        Ok(files)
    } else {
        Err(BenchError::Option(
            "no gateway binary there: build it (cargo build --release -p shardgate) or name one by --gateway",
        ))
    }
}

async fn fill(server: &MariaDb, shards: usize, rows: u64) -> Result<(), BenchError> {
    let mut conn = server.conn().await;
    let small = "(id BIGINT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(60) NOT NULL, KEY (k))";
    // The server's part in reading these is to be small, as it is for every target alike.
    let big = "(id BIGINT PRIMARY KEY, k INT NOT NULL, name VARCHAR(40) NOT NULL, price DECIMAL(10,2) NOT NULL) \
               ENGINE=MyISAM";
    let mut script = vec![
        format!("CREATE DATABASE {WHOLE}"),
        format!("CREATE TABLE {WHOLE}.t {small}"),
        format!(
            "INSERT INTO {WHOLE}.t SELECT seq, seq % {KINDS}, RPAD(MD5(seq), 50, 'x') FROM {WHOLE}.seq_1_to_{SMALL}"
        ),
        format!("CREATE TABLE {WHOLE}.big {big}"),
        format!(
            "INSERT INTO {WHOLE}.big SELECT seq, seq % 1000, CONCAT('name of row ', seq), seq / 100 \
             FROM {WHOLE}.seq_1_to_{rows}"
        ),
    ];
    for n in 0..shards {
        let part = format!("part{n}");
        script.push(format!("CREATE DATABASE {part}"));
        for (table, columns) in [("t", small), ("big", big)] {
            script.push(format!("CREATE TABLE {part}.{table} {columns}"));
            script.push(format!(
                "INSERT INTO {part}.{table} SELECT * FROM {WHOLE}.{table} WHERE id % {shards} = {n}"
            ));
        }
    }
    for sql in script {
        conn.query_drop(&sql).await.map_err(|e| BenchError::Answer {
            target: "mariadbd".into(),
            what: format!("{sql}: {e}"),
        })?;
    }
    Ok(())
}

fn gateway_config(server: SocketAddr, shards: usize) -> String {
    let hash = "*6C7A370C07660BC788681B3238D93E08BD74303C";
    let mut file = format!(
        "[listen]\nmysql = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
         [server]\nserver_version = \"10.11.0-MariaDB\"\n\n\
         [[users]]\nname = \"{APP_USER}\"\npassword_hash = \"{hash}\"\n\n\
         [backend]\nuser = \"{APP_USER}\"\npassword_file = \"{password}\"\n\n{pool}\n\
         [keyspaces.{WHOLE}]\n\n[[keyspaces.{WHOLE}.shards]]\nname = \"0\"\ndatabase = \"{WHOLE}\"\n\
         tablets = [{{ alias = \"{WHOLE}-a\", address = \"{server}\" }}]\n\n\
         [keyspaces.{SHARDED}]\nnamed = {{ by = \"modulo\", column = \"id\" }}\n",
        password = fixture::PASSWORD_FILE,
        pool = fixture::pool(POOL),
    );
    for n in 0..shards {
        // Writing to a String cannot fail.
        let _ = write!(
            file,
            "\n[[keyspaces.{SHARDED}.shards]]\nname = \"s{n}\"\ndatabase = \"part{n}\"\n\
             tablets = [{{ alias = \"s{n}-a\", address = \"{server}\" }}]\n"
        );
    }
    file
}

fn haproxy() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|dir| dir.join("haproxy"))
        .find(|file| file.is_file())
}

async fn start_relay(program: &Path, server: SocketAddr) -> Result<(Supervised, SocketAddr), BenchError> {
    let addr = mariadb::free_addr();
    let dir = Supervised::directory();
    let file = dir.path().join("haproxy.cfg");
    let config = format!(
        "global\n    maxconn 4000\n\ndefaults\n    mode tcp\n    timeout connect 5s\n    timeout client 5m\n    \
         timeout server 5m\n\nlisten mysql\n    bind {addr}\n    server db {server}\n"
    );
    std::fs::write(&file, config).map_err(|source| BenchError::Io {
        what: file.display().to_string(),
        source,
    })?;
    let args = ["-db", "-f"].map(str::to_owned).into_iter();
    let args: Vec<String> = args.chain([file.display().to_string()]).collect();
    let process = Supervised::start("haproxy", dir, program, &args);
    let ready = async {
        while Client::connect(addr, WHOLE).await.is_err() {
            process.assert_running();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = tokio::time::timeout(RELAY_LIMIT, ready).await;
    in_time.map_err(|_| BenchError::Answer {
        target: "haproxy".into(),
        what: format!("lets nobody in\n{}", process.report()),
    })?;
    Ok((process, addr))
}
