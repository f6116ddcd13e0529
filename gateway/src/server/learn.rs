//! What the tablets tell of themselves: tables and columns, their version, the `sql_mode` sessions start with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mysql_async::{OptsBuilder, SslOpts};
use shardgate_sql::{LexOptions, SqlMode};
use shardgate_wire::codec::text;

use super::build;
use crate::base::metrics::Metrics;
use crate::base::{KeyspaceName, Role, clock};
use crate::config::{Config, TabletAddress, TabletTlsMode, TabletVerify};
use crate::plan::{self, Catalog};
use crate::schema::{self, DatabaseSchema, Finding, KeyspaceSchema};
use crate::session::View;
use crate::tablet::{Connection, TabletInfo};
use crate::topology::Topology;

/// Which servers the tablets are.
#[derive(Clone, Debug)]
struct Dialect {
    /// How their statements are read.
    lex: LexOptions,
    /// `VERSION()`.
    version: String,
}

/// Everything learned so far.
#[derive(Debug, Default)]
pub(super) struct Learned {
    databases: Mutex<HashMap<KeyspaceName, Arc<DatabaseSchema>>>,
    dialect: Mutex<Option<Dialect>>,
    version: AtomicU64,
    /// What was logged of each keyspace's schema last.
    told: Mutex<HashMap<KeyspaceName, Vec<Finding>>>,
}

impl Learned {
    /// Asks every keyspace's tablets, all at once.
    pub(super) async fn learn_all(&self, config: &Config, metrics: &Metrics) {
        let all = config
            .keyspaces
            .keys()
            .map(|name| self.learn(config, name, metrics));
        futures::future::join_all(all).await;
        self.learn_dialect(config).await;
    }

    /// Asks which servers the tablets are, unless that is known.
    async fn learn_dialect(&self, config: &Config) {
        if lock(&self.dialect).is_none() {
            let found = ask_dialect(config).await;
            *lock(&self.dialect) = found;
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
        self.learn_dialect(config).await;
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

    /// A view made of the configuration, the topology and what is known, under a new version.
    pub(super) fn view(&self, config: &Config, topology: &Topology) -> View {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let databases = lock(&self.databases);
        let nothing = Arc::new(DatabaseSchema::default());
        let keyspaces = config.keyspaces.iter().map(|(name, keyspace)| {
            let schema = KeyspaceSchema::of(keyspace, databases.get(name).unwrap_or(&nothing));
            // Nothing was learned yet: every table would be missing.
            if databases.contains_key(name) {
                self.tell(name, schema.findings());
            }
            schema
        });
        let schemas: HashMap<KeyspaceName, Arc<KeyspaceSchema>> = keyspaces
            .map(|schema| (schema.name.clone(), Arc::new(schema)))
            .collect();
        let joined = topology.keyspaces().filter_map(|k| {
            let shards = k.shards().iter().map(|s| plan::Shard {
                id: s.id().clone(),
                range: s.range().cloned(),
                database: s.database().into(),
            });
            Some(plan::Keyspace {
                name: k.name().clone(),
                schema: Arc::clone(schemas.get(k.name())?),
                shards: shards.collect(),
            })
        });
        let dialect = lock(&self.dialect).clone();
        View {
            catalog: Arc::new(Catalog::new(version, joined)),
            options: Arc::new(build::session_options(
                config,
                dialect.as_ref().map(|d| d.version.as_str()),
            )),
            users: Arc::new(super::listener::users(config)),
            lex: dialect.map(|d| d.lex).unwrap_or_default(),
        }
    }

    /// Logs what was not there to be told the last time.
    fn tell(&self, name: &KeyspaceName, findings: Vec<Finding>) {
        let mut told = lock(&self.told);
        let before = told.get(name).map_or(&[][..], Vec::as_slice);
        for finding in findings.iter().filter(|f| !before.contains(f)) {
            if finding.is_error() {
                tracing::warn!(keyspace = %name, %finding, "about the schema");
            } else {
                tracing::info!(keyspace = %name, %finding, "about the schema");
            }
        }
        for gone in before.iter().filter(|f| !findings.contains(f)) {
            tracing::info!(keyspace = %name, finding = %gone, "no longer so of the schema");
        }
        told.insert(name.clone(), findings);
    }

    /// The version that the first tablet to answer gave, if any did.
    pub(super) fn server_version(&self) -> Option<String> {
        lock(&self.dialect).as_ref().map(|d| d.version.clone())
    }
}

/// What is odd about the tables of each shard that answers, each thing once.
pub(crate) async fn findings(config: &Config) -> Vec<(KeyspaceName, Finding)> {
    let primaries = config.keyspaces.iter().flat_map(|(name, keyspace)| {
        keyspace.shards.iter().filter_map(move |shard| {
            let tablet = shard.tablets.iter().find(|t| t.role == Role::Primary)?;
            Some((name, keyspace, shard, tablet))
        })
    });
    let asked = primaries.map(|(name, keyspace, shard, tablet)| async move {
        let opts = opts(config, &tablet.address, &shard.database);
        let found = schema::load(opts, &shard.database, config.timeouts.schema_load).await;
        let findings = found.map_or_else(
            |_| Vec::new(),
            |found| KeyspaceSchema::of(keyspace, &found).findings(),
        );
        findings.into_iter().map(|finding| (name.clone(), finding))
    });
    let mut all: Vec<(KeyspaceName, Finding)> = Vec::new();
    for found in futures::future::join_all(asked).await.into_iter().flatten() {
        if !all.contains(&found) {
            all.push(found);
        }
    }
    all
}

/// How the schema loader's driver connects: with TLS where the pools use it.
fn opts(config: &Config, address: &TabletAddress, database: &str) -> mysql_async::Opts {
    let base = OptsBuilder::default()
        .user(Some(config.backend.user.clone()))
        .pass(Some(config.backend.password.expose().to_owned()).filter(|p| !p.is_empty()))
        .db_name(Some(database.to_owned()))
        .ssl_opts(ssl_opts(config))
        .prefer_socket(Some(false));
    match address {
        TabletAddress::Tcp { host, port } => base.ip_or_hostname(host.clone()).tcp_port(*port).into(),
        TabletAddress::Unix(path) => base.socket(Some(path.clone())).into(),
    }
}

/// `preferred` asks for nothing here: this driver has no way to go on without TLS where a server has none.
fn ssl_opts(config: &Config) -> Option<SslOpts> {
    let tls = &config.tablet_tls;
    if tls.mode != TabletTlsMode::Required {
        return None;
    }
    let authorities = tls.ca_file.iter().cloned().map(Into::into).collect();
    let opts = SslOpts::default()
        .with_root_certs(authorities)
        .with_disable_built_in_roots(true)
        .with_danger_tls_hostname_override(tls.server_name.clone());
    Some(match tls.verify {
        TabletVerify::None => opts.with_danger_accept_invalid_certs(true),
        TabletVerify::Authority => opts.with_danger_skip_domain_validation(true),
        TabletVerify::Full => opts,
    })
}

/// Version and `sql_mode` of the first tablet that answers.
async fn ask_dialect(config: &Config) -> Option<Dialect> {
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
) -> Option<Dialect> {
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
    let lex = LexOptions::for_server(version, SqlMode::parse(mode).ok()?)?;
    Some(Dialect {
        lex,
        version: version.clone(),
    })
}

/// A poisoned lock means a panic while a whole value was being replaced: what is there is whole.
fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
