//! What the tablets tell of themselves: tables and columns, their version, the `sql_mode` sessions start with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mysql_async::OptsBuilder;
use shardgate_sql::{LexOptions, SqlMode};
use shardgate_wire::codec::text;

use super::build;
use crate::base::metrics::Metrics;
use crate::base::{KeyspaceName, Role, ShardId, clock};
use crate::config::{Config, Division, Keyspace, TabletAddress};
use crate::plan::{self, Catalog};
use crate::schema::{self, DatabaseSchema, KeyspaceSchema};
use crate::session::View;
use crate::tablet::{Connection, TabletInfo};

/// Everything learned so far.
#[derive(Debug, Default)]
pub(super) struct Learned {
    databases: Mutex<HashMap<KeyspaceName, Arc<DatabaseSchema>>>,
    lex: Mutex<Option<LexOptions>>,
    version: AtomicU64,
}

impl Learned {
    /// Asks every keyspace's tablets, all at once.
    pub(super) async fn learn_all(&self, config: &Config, metrics: &Metrics) {
        let all = config
            .keyspaces
            .keys()
            .map(|name| self.learn(config, name, metrics));
        futures::future::join_all(all).await;
        if lock(&self.lex).is_none() {
            *lock(&self.lex) = ask_dialect(config).await;
        }
    }

    /// Asks one keyspace's shards. Shards whose tables differ are told of; the first one's tables hold.
    pub(super) async fn learn(&self, config: &Config, name: &KeyspaceName, metrics: &Metrics) {
        let Some(keyspace) = config.keyspaces.get(name) else {
            return;
        };
        let asked = keyspace.shards.iter().map(|shard| async move {
            let tablet = shard.tablets.iter().find(|t| t.role == Role::Primary)?;
            let opts = opts(config, &tablet.address, &shard.database);
            match schema::load(opts, &shard.database, config.timeouts.schema_load).await {
                Ok(found) => Some((shard.name.clone(), found)),
                Err(e) => {
                    tracing::warn!(tablet = %tablet.alias, error = %e, "cannot learn the tables of a shard");
                    None
                }
            }
        });
        let found: Vec<_> = futures::future::join_all(asked)
            .await
            .into_iter()
            .flatten()
            .collect();
        let Some((first, schema)) = found.first() else {
            return;
        };
        for (other, theirs) in &found[1..] {
            for difference in schema::differences(schema, theirs) {
                metrics.schema_differences.handle(name.as_str()).inc();
                tracing::warn!(keyspace = %name, %first, %other, %difference, "shards have different tables");
            }
        }
        lock(&self.databases).insert(name.clone(), Arc::new(schema.clone()));
    }

    /// Keyspaces of which nothing is known yet.
    pub(super) fn missing(&self, config: &Config) -> Vec<KeyspaceName> {
        let databases = lock(&self.databases);
        config
            .keyspaces
            .keys()
            .filter(|name| !databases.contains_key(*name))
            .cloned()
            .collect()
    }

    /// A view made of the configuration and what is known, under a new version.
    pub(super) fn view(&self, config: &Config) -> View {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let databases = lock(&self.databases);
        let nothing = Arc::new(DatabaseSchema::default());
        let keyspaces = config.keyspaces.iter().map(|(name, keyspace)| {
            let learned = databases.get(name).unwrap_or(&nothing);
            plan::Keyspace {
                name: name.clone(),
                schema: Arc::new(keyspace_schema(name, keyspace, learned)),
                shards: keyspace
                    .shards
                    .iter()
                    .map(|s| plan::Shard {
                        id: ShardId {
                            keyspace: name.clone(),
                            shard: s.name.clone(),
                        },
                        range: s.range.clone(),
                        database: s.database.clone().into_boxed_str(),
                    })
                    .collect(),
            }
        });
        View {
            catalog: Arc::new(Catalog::new(version, keyspaces)),
            options: Arc::new(build::session_options(config)),
            users: Arc::new(super::listener::users(config)),
            lex: lock(&self.lex).unwrap_or_default(),
        }
    }
}

fn keyspace_schema(name: &KeyspaceName, keyspace: &Keyspace, learned: &DatabaseSchema) -> KeyspaceSchema {
    let named = match &keyspace.division {
        Division::Named { column, cut } => Some((column.as_str(), cut)),
        Division::Unsharded | Division::KeyRanges => None,
    };
    KeyspaceSchema::new(name.clone(), keyspace.vschema.as_ref(), named, learned)
}

/// How the schema loader's driver connects.
fn opts(config: &Config, address: &TabletAddress, database: &str) -> mysql_async::Opts {
    let base = OptsBuilder::default()
        .user(Some(config.backend.user.clone()))
        .pass(Some(config.backend.password.expose().to_owned()).filter(|p| !p.is_empty()))
        .db_name(Some(database.to_owned()))
        .prefer_socket(Some(false));
    match address {
        TabletAddress::Tcp { host, port } => base.ip_or_hostname(host.clone()).tcp_port(*port).into(),
        TabletAddress::Unix(path) => base.socket(Some(path.clone())).into(),
    }
}

/// Version and `sql_mode` of the first tablet that answers.
async fn ask_dialect(config: &Config) -> Option<LexOptions> {
    let backend = build::backend(config).ok()?;
    for info in build::tablets(config) {
        if let Some(found) = ask_one(&info, &backend, config).await {
            return Some(found);
        }
    }
    None
}

async fn ask_one(
    info: &Arc<TabletInfo>,
    backend: &crate::tablet::Backend,
    config: &Config,
) -> Option<LexOptions> {
    let deadline = clock::now() + config.timeouts.connect;
    let mut conn = Connection::open(info, backend, deadline).await.ok()?;
    let asked = conn.query(b"SELECT @@global.sql_mode, @@version", 1);
    let rows = tokio::time::timeout_at(deadline, asked).await.ok()?.ok()?;
    let cells: Vec<String> = text::cells(rows.first()?)
        .map(|c| c.ok().flatten().map(|c| String::from_utf8_lossy(c).into_owned()))
        .collect::<Option<_>>()?;
    conn.quit().await;
    let [mode, version] = cells.as_slice() else {
        return None;
    };
    LexOptions::for_server(version, SqlMode::parse(mode).ok()?)
}

/// A poisoned lock means a panic while a whole value was being replaced: what is there is whole.
fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
