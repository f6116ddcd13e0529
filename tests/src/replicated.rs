//! MariaDB servers that replicate by GTID: one primary, the others follow it. Any of them can become the primary.

use std::time::Duration;

use mysql_async::prelude::Queryable;

use crate::mariadb::{APP_USER, Database, MariaDb};
use crate::wait;

/// How long replication may take to do what it was told.
const LIMIT: Duration = Duration::from_secs(30);

/// The servers. Number `n` has the `server_id` `n + 1`.
#[derive(Debug)]
pub struct Replicated {
    servers: Vec<MariaDb>,
    primary: usize,
}

impl Replicated {
    /// Starts this many servers; number 0 is the primary, all others are read-only replicas of it.
    ///
    /// The application's user may not write through `read_only` on any of them, as a gateway's user must not.
    pub async fn start(servers: usize) -> Self {
        let ids: Vec<usize> = (1..=servers).collect();
        // Each start waits for its server, blocking a thread; side by side they take as long as one.
        let starting = ids.iter().map(|id| {
            let options = [
                format!("--server-id={id}"),
                "--log-bin=binlog".to_owned(),
                "--relay-log=relay".to_owned(),
                "--log-slave-updates".to_owned(),
                "--gtid-strict-mode=1".to_owned(),
                "--slave-net-timeout=5".to_owned(),
            ];
            tokio::task::spawn_blocking(move || {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                MariaDb::start_with(&options)
            })
        });
        let started = futures::future::join_all(starting).await;
        let group = Self {
            servers: started.into_iter().map(|s| s.expect("a server starts")).collect(),
            primary: 0,
        };
        for n in 0..servers {
            let own = format!("REVOKE READ ONLY ADMIN, SUPER ON *.* FROM '{APP_USER}'@'%'");
            group.run(n, &["SET SESSION sql_log_bin = 0", &own]).await;
        }
        for n in 1..servers {
            group.run(n, &["SET GLOBAL read_only = 1"]).await;
            group.follow(n, 0).await;
        }
        group
    }

    /// Server number `n`.
    pub fn server(&self, n: usize) -> &MariaDb {
        &self.servers[n]
    }

    /// The number of the primary.
    pub fn primary(&self) -> usize {
        self.primary
    }

    /// The numbers of all others.
    pub fn replicas(&self) -> Vec<usize> {
        (0..self.servers.len()).filter(|n| *n != self.primary).collect()
    }

    /// A new, empty database, on the primary and, when this returns, on its replicas.
    pub async fn create_database(&self, prefix: &str) -> Database {
        let database = self.server(self.primary).create_database(prefix).await;
        self.catch_up().await;
        database
    }

    /// Runs statements as root on server `n`, on one connection.
    pub async fn run(&self, n: usize, statements: &[&str]) {
        let mut conn = self.server(n).conn().await;
        for sql in statements {
            if let Err(e) = conn.query_drop(*sql).await {
                panic!("on server {n}: {sql}: {e}");
            }
        }
        conn.disconnect().await.expect("the connection closes");
    }

    /// Waits until every replica has executed what the primary has committed so far.
    pub async fn catch_up(&self) {
        for n in self.replicas() {
            self.catch_up_on(n).await;
        }
    }

    /// The same for replica `n` alone.
    pub async fn catch_up_on(&self, n: usize) {
        let position = self.variable(self.primary, "gtid_binlog_pos").await;
        let mut conn = self.server(n).conn().await;
        let waiting = format!("SELECT MASTER_GTID_WAIT('{position}', {})", LIMIT.as_secs());
        let timed_out: Option<i64> = conn.query_first(waiting).await.expect("a replica can be asked");
        assert_eq!(
            timed_out,
            Some(0),
            "server {n} does not reach {position}\n{}",
            self.server(n).process().report()
        );
    }

    /// Stops applying on replica `n`: it stays where it is.
    pub async fn halt(&self, n: usize) {
        self.run(n, &["STOP SLAVE"]).await;
    }

    /// Applies again on replica `n`.
    pub async fn resume(&self, n: usize) {
        self.run(n, &["START SLAVE"]).await;
    }

    /// A planned change of the primary: the old one takes no more writes, the new one catches up and takes them, all
    /// others follow it.
    pub async fn promote(&mut self, new: usize) {
        let old = self.primary;
        self.run(old, &["SET GLOBAL read_only = 1"]).await;
        self.catch_up_on(new).await;
        self.lead(new).await;
        for n in self.replicas() {
            self.follow(n, new).await;
        }
    }

    /// Makes a replica the primary without asking the old one, which may be gone; nobody else is told.
    pub async fn lead(&mut self, new: usize) {
        let stop = ["STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"];
        self.run(new, &stop).await;
        self.primary = new;
    }

    /// Makes server `n` a replica of `of`, from where it stands, and waits until it is connected.
    pub async fn follow(&self, n: usize, of: usize) {
        let master = self.server(of).addr();
        let change = format!(
            "CHANGE MASTER TO MASTER_HOST = '{}', MASTER_PORT = {}, MASTER_USER = 'root', MASTER_PASSWORD = '', \
             MASTER_CONNECT_RETRY = 1, MASTER_HEARTBEAT_PERIOD = 1, MASTER_USE_GTID = slave_pos",
            master.ip(),
            master.port()
        );
        // Somebody who was primary has committed past what it once replicated.
        let here = self.variable(n, "gtid_current_pos").await;
        let here = format!("SET GLOBAL gtid_slave_pos = '{here}'");
        let statements = ["STOP SLAVE", &here, &change, "START SLAVE"];
        self.run(n, &statements).await;
        let what = format!("server {n} to follow server {of}");
        wait::until(&what, LIMIT, || async {
            (self.status(n, "Slave_running").await == "ON").then_some(())
        })
        .await;
    }

    /// Kills server `n` at once, as a crash would.
    pub async fn kill(&self, n: usize) {
        let process = self.server(n).process();
        process.signal("KILL");
        process.ended(LIMIT).await;
    }

    async fn variable(&self, n: usize, name: &str) -> String {
        let mut conn = self.server(n).conn().await;
        let value: Option<String> = conn
            .query_first(format!("SELECT @@GLOBAL.{name}"))
            .await
            .expect("a variable can be read");
        value.unwrap_or_default()
    }

    async fn status(&self, n: usize, name: &str) -> String {
        let mut conn = self.server(n).conn().await;
        let row: Option<(String, String)> = conn
            .query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))
            .await
            .expect("a status can be read");
        row.map(|(_, value)| value).unwrap_or_default()
    }
}
