//! Simulated tablets as processes: for faults that a real server does not have on demand.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::http;
use crate::fixture::{KEYSPACE, SHARDING_COLUMN};
use crate::gateway::printed_addresses;
use crate::process::Supervised;
use crate::{mariadb, tools};

const START_LIMIT: Duration = Duration::from_secs(20);

/// A running simulated tablet; killed and removed on drop.
#[derive(Debug)]
pub struct TabletSim {
    process: Supervised,
    mysql: SocketAddr,
    admin: SocketAddr,
}

impl TabletSim {
    /// Starts one with a database named as the keyspace, in which these statements have been run.
    pub fn start(alias: &str, statements: &str) -> Self {
        let began = Instant::now();
        let dir = Supervised::directory();
        let init = dir.path().join("init.sql");
        std::fs::write(&init, statements).expect("the private directory is writable");
        let init = init.display().to_string();
        let args = ["--alias", alias, "--database", KEYSPACE, "--init", &init].map(str::to_owned);
        Self::run(began, dir, &args)
    }

    /// Starts one that forwards to this server, with its faults over what passes.
    pub fn proxy(to: SocketAddr) -> Self {
        let args = ["--proxy-to".to_owned(), to.to_string()];
        Self::run(Instant::now(), Supervised::directory(), &args)
    }

    fn run(began: Instant, dir: tempfile::TempDir, args: &[String]) -> Self {
        let process = Supervised::start("tablet-sim", dir, &tools::tablet_sim(), args);
        loop {
            if let Some((mysql, admin)) = printed_addresses(&process.stdout()) {
                return Self {
                    process,
                    mysql,
                    admin,
                };
            }
            process.assert_running();
            assert!(
                began.elapsed() < START_LIMIT,
                "tablet-sim prints no addresses\n{}",
                process.report()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Where it speaks MySQL.
    pub fn addr(&self) -> SocketAddr {
        self.mysql
    }

    /// Its process.
    pub fn process(&self) -> &Supervised {
        &self.process
    }

    /// Sets one fault, or a list of them, as JSON, in place of all that were set.
    pub async fn fault(&self, json: &str) {
        let (status, body) = http::request_with(self.admin, "PUT", "/faults", json).await;
        assert_eq!(status, 200, "{json}: {body}");
    }

    /// Takes all faults away.
    pub async fn lift(&self) {
        let (status, body) = http::request(self.admin, "DELETE", "/faults").await;
        assert_eq!(status, 200, "{body}");
    }
}

/// The configuration of a gateway over these tablets, one a shard `s0` ... chosen by modulo, with further sections.
pub fn config(tablets: &[TabletSim], sections: &str) -> String {
    let shard = |(n, tablet): (usize, &TabletSim)| {
        format!(
            "\n[[keyspaces.{KEYSPACE}.shards]]\nname = \"s{n}\"\n\
             tablets = [{{ alias = \"{KEYSPACE}-s{n}-a\", address = \"{}\" }}]\n",
            tablet.addr()
        )
    };
    let shards: String = tablets.iter().enumerate().map(shard).collect();
    format!(
        "[listen]\nmysql = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
         [[users]]\nname = \"{}\"\npassword_file = \"{}\"\n\n[backend]\nuser = \"root\"\n\n{sections}\n\
         [keyspaces.{KEYSPACE}]\nnamed = {{ by = \"modulo\", column = \"{SHARDING_COLUMN}\" }}\n{shards}",
        mariadb::APP_USER,
        crate::fixture::PASSWORD_FILE,
    )
}
