//! MariaDB servers that replicate by GTID: one primary, the others follow it. Any of them can become the primary.

use std::collections::BTreeSet;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use crate::mariadb::{AppUser, Database, MariaDb};
use crate::wait;

/// How long replication may take to do what it was told.
const LIMIT: Duration = Duration::from_secs(30);

/// Whether a write is on a replica before its client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    /// As soon as the primary has it: a crash of the primary loses what no replica has fetched yet.
    ByPrimary,
    /// Once one replica has it too, however long that takes.
    ByReplica,
}

impl Acknowledged {
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::ByPrimary => &[],
            Self::ByReplica => &[
                "--rpl-semi-sync-master-enabled=1",
                "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                "--rpl-semi-sync-master-timeout=600000",
                // A replica that stops asks its primary to forget it, which one that is frozen never answers.
                "--rpl-semi-sync-slave-kill-conn-timeout=1",
                // What was acknowledged outlives the process, if not the machine.
                "--innodb-flush-log-at-trx-commit=2",
            ],
        }
    }

    fn of_primary(self) -> &'static str {
        match self {
            Self::ByPrimary => "SET GLOBAL rpl_semi_sync_master_enabled = 0",
            Self::ByReplica => "SET GLOBAL rpl_semi_sync_master_enabled = 1",
        }
    }

    /// A replica tells its primary what it has. It does not wait for replicas of its own, of which it has none.
    fn of_replica(self) -> [&'static str; 2] {
        let answers = match self {
            Self::ByPrimary => "SET GLOBAL rpl_semi_sync_slave_enabled = 0",
            Self::ByReplica => "SET GLOBAL rpl_semi_sync_slave_enabled = 1",
        };
        ["SET GLOBAL rpl_semi_sync_master_enabled = 0", answers]
    }
}

/// The servers. Number `n` has the `server_id` `n + 1`.
#[derive(Debug)]
pub struct Replicated {
    servers: Vec<MariaDb>,
    primary: usize,
    /// Who follows nobody: killed, frozen, or come back from that.
    apart: BTreeSet<usize>,
    acknowledged: Acknowledged,
}

impl Replicated {
    /// Starts this many servers; number 0 is the primary, all others are read-only replicas of it.
    ///
    /// The application's user may not write through `read_only` on any of them, as a gateway's user must not.
    pub async fn start(servers: usize) -> Self {
        Self::start_as(servers, Acknowledged::ByPrimary).await
    }

    /// The same, where no write is acknowledged before a replica has it: whoever of two replicas has most has all that was
    /// acknowledged. While no replica follows the primary its commits wait.
    pub async fn start_semi_sync(servers: usize) -> Self {
        assert!(servers > 1, "nobody would ever acknowledge");
        Self::start_as(servers, Acknowledged::ByReplica).await
    }

    async fn start_as(servers: usize, acknowledged: Acknowledged) -> Self {
        // Each start waits for its server, blocking a thread; side by side they take as long as one.
        let starting = (1..=servers).map(|id| {
            let id = format!("--server-id={id}");
            tokio::task::spawn_blocking(move || {
                let mut options = vec![
                    id.as_str(),
                    "--log-bin=binlog",
                    "--relay-log=relay",
                    "--log-slave-updates",
                    "--gtid-strict-mode=1",
                    "--slave-net-timeout=5",
                ];
                options.extend(acknowledged.options());
                MariaDb::start_for(AppUser::ObeysReadOnly, &options)
            })
        });
        let started = futures::future::join_all(starting).await;
        let group = Self {
            servers: started.into_iter().map(|s| s.expect("a server starts")).collect(),
            primary: 0,
            apart: BTreeSet::new(),
            acknowledged,
        };
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

    /// The numbers of all others that follow it.
    pub fn replicas(&self) -> Vec<usize> {
        let all = 0..self.servers.len();
        all.filter(|n| *n != self.primary && !self.apart.contains(n))
            .collect()
    }

    /// A database of that name on server `n`.
    pub fn database(&self, n: usize, name: &str) -> Database {
        Database {
            addr: self.server(n).addr(),
            name: name.to_owned(),
        }
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
        self.all_follow().await;
    }

    /// What an orchestrator does about a primary that is gone: of the replicas that are left the one that has most becomes
    /// the primary, the others follow it. Gives its number.
    pub async fn promote_most_advanced(&mut self) -> usize {
        self.apart.insert(self.primary);
        let mut best: Option<(u64, usize)> = None;
        let replicas = self.replicas();
        // Nobody receives any more, not even from a primary that comes back; then it is settled who has what.
        let stops = replicas.iter().map(|n| self.run(*n, &["STOP SLAVE IO_THREAD"]));
        futures::future::join_all(stops).await;
        for n in replicas {
            self.apply_received(n).await;
            let has = (sequence(&self.variable(n, "gtid_slave_pos").await), n);
            best = best.max(Some(has));
        }
        let (_, new) = best.expect("a replica is left");
        self.lead(new).await;
        self.all_follow().await;
        new
    }

    /// Makes a replica the primary without asking the old one, which may be gone; nobody else is told.
    pub async fn lead(&mut self, new: usize) {
        let stop = ["STOP SLAVE", "RESET SLAVE ALL"];
        self.run(new, &stop).await;
        self.run(new, &[self.acknowledged.of_primary(), "SET GLOBAL read_only = 0"])
            .await;
        self.primary = new;
    }

    async fn all_follow(&self) {
        let follow = self.replicas().into_iter().map(|n| self.follow(n, self.primary));
        futures::future::join_all(follow).await;
    }

    /// Waits until a replica has applied all that it has received.
    async fn apply_received(&self, n: usize) {
        let mut conn = self.server(n).conn().await;
        let status: Option<Row> = conn
            .query_first("SHOW SLAVE STATUS")
            .await
            .expect("a replica can be asked");
        let received: String = status
            .and_then(|row| row.get("Gtid_IO_Pos"))
            .expect("a replica knows what it received");
        let waiting = format!("SELECT MASTER_GTID_WAIT('{received}', {})", LIMIT.as_secs());
        let timed_out: Option<i64> = conn.query_first(waiting).await.expect("a replica can be asked");
        assert_eq!(timed_out, Some(0), "server {n} does not apply {received}");
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
        let [waits, answers] = self.acknowledged.of_replica();
        let statements = ["STOP SLAVE", &here, &change, waits, answers, "START SLAVE"];
        self.run(n, &statements).await;
        let what = format!("server {n} to follow server {of}");
        wait::until(&what, LIMIT, || async {
            (self.status(n, "Slave_running").await == "ON").then_some(())
        })
        .await;
    }

    /// Kills server `n` at once, as a crash would.
    pub async fn kill(&mut self, n: usize) {
        self.apart.insert(n);
        self.server(n).kill().await;
    }

    /// Starts a killed server again where it was, with its data. What was only set while it ran is gone: a read-only
    /// server takes writes.
    pub async fn restart(&mut self, n: usize) {
        tokio::task::block_in_place(|| self.servers[n].restart());
        self.apart.remove(&n);
        if n != self.primary {
            self.run(n, &self.acknowledged.of_replica()).await;
        }
    }

    /// Replaces a killed server by an empty one, which follows the primary from the beginning of its history: what the
    /// killed one had and nobody else is gone.
    pub async fn replace(&mut self, n: usize) {
        tokio::task::block_in_place(|| self.servers[n].replace(&["--read-only=1"]));
        self.apart.remove(&n);
        self.follow(n, self.primary).await;
        self.catch_up_on(n).await;
    }

    /// Stops server `n` where it is: its port accepts, and nothing answers.
    pub fn freeze(&mut self, n: usize) {
        self.apart.insert(n);
        self.server(n).process().signal("STOP");
    }

    /// Lets a frozen server go on as if nothing had been. Nobody follows it, and it follows nobody.
    pub fn thaw(&self, n: usize) {
        self.server(n).process().signal("CONT");
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

/// The number of a position's last transaction; there is one domain.
fn sequence(position: &str) -> u64 {
    let last = position.rsplit('-').next().unwrap_or_default();
    last.parse().unwrap_or(0)
}
