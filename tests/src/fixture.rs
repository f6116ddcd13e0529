//! Sharded data beside the same data on one server.

use std::net::SocketAddr;

use crate::answer::Pair;
use crate::mariadb::{self, Database, MariaDb};
use crate::{Fault, FaultProxy, Gateway};

/// The keyspace of every fixture.
pub const KEYSPACE: &str = "shop";

/// The column that every table of a fixture is sharded by.
pub const SHARDING_COLUMN: &str = "id";

/// A user of the gateway who proves the application's password by `caching_sha2_password`.
pub const SHA2_USER: &str = "sha2";

/// A file beside each configuration, with the application's password.
pub const PASSWORD_FILE: &str = "app-password";

/// The table of the scenarios.
pub const TABLE_T: &str =
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, v INT, g VARCHAR(20) COLLATE utf8mb4_general_ci)";

/// How rows are laid out over the shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Shards `s0` ... chosen by `id % n`, as in databases cut by hand.
    Modulo(usize),
    /// Vitess's shards over equal ranges of the hash of `id`; a power of two up to 16.
    KeyRanges(usize),
    /// One shard holds all.
    Unsharded,
}

impl Layout {
    /// The number of shards.
    pub fn shards(self) -> usize {
        match self {
            Self::Modulo(n) | Self::KeyRanges(n) => n,
            Self::Unsharded => 1,
        }
    }

    /// The shards' names, in order.
    pub fn names(self) -> Vec<String> {
        match self {
            Self::Modulo(n) => (0..n).map(|i| format!("s{i}")).collect(),
            Self::Unsharded => vec!["-".to_owned()],
            Self::KeyRanges(n) => {
                let bound = |i: usize| {
                    if i.is_multiple_of(n) {
                        String::new()
                    } else {
                        format!("{:02x}", i * 256 / n)
                    }
                };
                (0..n).map(|i| format!("{}-{}", bound(i), bound(i + 1))).collect()
            }
        }
    }
}

/// The shards, each behind a fault proxy, and the reference.
#[derive(Debug)]
pub struct Fixture {
    /// How rows are laid out.
    pub layout: Layout,
    /// One server's database with all rows.
    pub reference: Database,
    /// Each shard's database, reached without its proxy.
    pub shards: Vec<Database>,
    /// What stands before each shard.
    pub proxies: Vec<FaultProxy>,
    /// The names of its tables.
    pub tables: Vec<String>,
}

impl Fixture {
    /// Empty databases on the shared servers, with these tables made on each. The reference has a server of its own;
    /// the shards spread over `servers` others.
    pub async fn new(layout: Layout, servers: usize, tables: &[&str]) -> Self {
        let servers: Vec<&MariaDb> = (0..servers).map(|n| MariaDb::shared(1 + n)).collect();
        Self::on(layout, MariaDb::shared(0), &servers, tables).await
    }

    /// The same on servers of the test's own.
    pub async fn on(layout: Layout, reference: &MariaDb, servers: &[&MariaDb], tables: &[&str]) -> Self {
        let reference = reference.create_database("ref").await;
        let mut shards = Vec::new();
        let mut proxies = Vec::new();
        for (n, server) in servers.iter().cycle().take(layout.shards()).enumerate() {
            let shard = server.create_database(&format!("shard{n}")).await;
            proxies.push(FaultProxy::start(shard.addr).await);
            shards.push(shard);
        }
        let fixture = Self {
            layout,
            reference,
            shards,
            proxies,
            tables: tables_of(tables),
        };
        fixture.everywhere(tables).await;
        fixture
    }

    /// The scenarios' fixture: `t` on shards `s0` (even ids) and `s1` (odd ids), on one server.
    pub async fn scenario() -> Self {
        Self::new(Layout::Modulo(2), 1, &[TABLE_T]).await
    }

    /// Runs statements on the reference and on each shard.
    pub async fn everywhere(&self, statements: &[&str]) {
        self.reference.run(statements).await;
        for shard in &self.shards {
            shard.run(statements).await;
        }
    }

    /// Inserts rows whose first column is the sharding one, on the reference and each on its shard. Only for
    /// [`Layout::Modulo`]: with key ranges the rows go through the gateway, since the harness knows no hash.
    pub async fn insert(&self, table: &str, rows: &[(i64, &str)]) {
        let Layout::Modulo(n) = self.layout else {
            panic!("the harness places rows by modulo only")
        };
        let n = i64::try_from(n).expect("few shards");
        let place = |wanted: Option<usize>| {
            let values: Vec<String> = rows
                .iter()
                .filter(|(id, _)| wanted.is_none_or(|w| i64::try_from(w) == Ok(id.rem_euclid(n))))
                .map(|(id, rest)| {
                    if rest.is_empty() {
                        format!("({id})")
                    } else {
                        format!("({id}, {rest})")
                    }
                })
                .collect();
            (!values.is_empty()).then(|| format!("INSERT INTO {table} VALUES {}", values.join(", ")))
        };
        let all = place(None).expect("rows to insert");
        self.reference.run(&[&all]).await;
        for (n, shard) in self.shards.iter().enumerate() {
            if let Some(sql) = place(Some(n)) {
                shard.run(&[&sql]).await;
            }
        }
    }

    /// A gateway over this fixture, started from its configuration file.
    pub fn gateway(&self) -> Gateway {
        Gateway::serve(&self.config())
    }

    /// One connection through the gateway, one to the reference.
    pub async fn pair(&self, gateway: &Gateway) -> Pair {
        let reference = mariadb::connect(
            self.reference.addr,
            mariadb::APP_USER,
            Some(mariadb::APP_PASSWORD),
            Some(&self.reference.name),
        );
        Pair {
            gateway: gateway.conn(KEYSPACE).await,
            reference: reference.await,
        }
    }

    /// Sets the fault before one shard.
    pub async fn fault(&self, shard: usize, fault: Fault) {
        self.proxies[shard].set(fault).await;
    }

    /// Where the gateway finds each shard.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.proxies.iter().map(FaultProxy::addr).collect()
    }
}

/// The gateway's side of a fixture.
impl Fixture {
    /// The configuration file.
    pub fn config(&self) -> String {
        self.config_with("")
    }

    /// The configuration file with further sections, such as `[pool]`.
    pub fn config_with(&self, sections: &str) -> String {
        let mut file = head(sections);
        file.push_str(&self.keyspace());
        file
    }

    fn keyspace(&self) -> String {
        let division = match self.layout {
            Layout::Modulo(_) => format!("named = {{ by = \"modulo\", column = \"{SHARDING_COLUMN}\" }}"),
            Layout::KeyRanges(_) => format!("vschema = '''{}'''", self.vschema()),
            Layout::Unsharded => String::new(),
        };
        let names = self.layout.names();
        let shard = |((name, shard), proxy): ((&String, &Database), &FaultProxy)| {
            format!(
                "\n[[keyspaces.{KEYSPACE}.shards]]\nname = \"{name}\"\ndatabase = \"{}\"\n\
                 tablets = [{{ alias = \"{KEYSPACE}-{name}-a\", address = \"{}\" }}]\n",
                shard.name,
                proxy.addr()
            )
        };
        let shards: String = names
            .iter()
            .zip(&self.shards)
            .zip(&self.proxies)
            .map(shard)
            .collect();
        format!("[keyspaces.{KEYSPACE}]\n{division}\n{shards}")
    }

    /// The keyspace's vschema, in Vitess's JSON: each table by the hash of its sharding column.
    pub fn vschema(&self) -> String {
        let by_hash =
            serde_json::json!({ "column_vindexes": [{ "column": SHARDING_COLUMN, "name": "hash" }] });
        let tables: serde_json::Map<_, _> =
            self.tables.iter().map(|t| (t.clone(), by_hash.clone())).collect();
        serde_json::json!({ "sharded": true, "vindexes": { "hash": { "type": "hash" } }, "tables": tables })
            .to_string()
    }
}

/// The part of a configuration file before the keyspaces: listeners on free ports, the application's user towards
/// clients and tablets, and further sections, such as `[pool]`.
pub fn head(sections: &str) -> String {
    let native = "*6C7A370C07660BC788681B3238D93E08BD74303C";
    format!(
        "[listen]\nmysql = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n\
         [server]\nserver_version = \"10.11.0-MariaDB\"\n\n\
         [[users]]\nname = \"{user}\"\npassword_hash = \"{native}\"\n\n\
         [[users]]\nname = \"{SHA2_USER}\"\npassword_file = \"{PASSWORD_FILE}\"\n\
         auth_plugin = \"caching_sha2_password\"\n\n\
         [backend]\nuser = \"{user}\"\npassword_file = \"{PASSWORD_FILE}\"\n\n\
         {sections}\n",
        user = mariadb::APP_USER,
    )
}

/// The section for pools of this size.
pub fn pool(size: usize) -> String {
    format!("[pool]\nsize = {size}\nmax_reserved = {size}\nabandoned_max = {size}\n")
}

/// The names of the tables that statements create.
fn tables_of(statements: &[&str]) -> Vec<String> {
    let name = |sql: &&str| {
        sql.strip_prefix("CREATE TABLE ")?
            .split_whitespace()
            .next()
            .map(str::to_owned)
    };
    statements.iter().filter_map(name).collect()
}
