//! What the tablets tell of themselves: tables and columns, their version, the `sql_mode` sessions start with.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use shardgate_sql::{LexOptions, SqlMode};
use shardgate_wire::codec::text;

use super::build;
use crate::base::metrics::Metrics;
use crate::base::{KeyspaceName, Role, TabletAlias, clock};
use crate::config::{Config, Shard};
use crate::plan::{self, Catalog};
use crate::schema::{self, ColumnRow, DatabaseSchema, Finding, KeyspaceSchema, SchemaError};
use crate::session::View;
use crate::tablet::{Connection, TabletError, TabletInfo};
use crate::topology::Topology;

/// Columns, or tables, of one database that are read at most.
const MAX_ROWS: usize = 2_000_000;

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
    /// The longest packet that each tablet takes, where that is less than the gateway's and was logged.
    small: Mutex<HashMap<TabletAlias, u64>>,
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
        let tablets = &build::tablets(config);
        let asked = keyspace.shards.iter().map(|shard| async move {
            let tablet = primary_of(tablets, name, shard)?;
            match load(tablet, config).await {
                Ok(loaded) => {
                    self.check_packets(tablet, config, loaded.max_packet);
                    Some((shard.name.clone(), loaded.schema))
                }
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

    /// Logs a tablet that takes less in one packet than clients may send: between the two it would close the connection
    /// on them. Each is named once.
    fn check_packets(&self, tablet: &TabletInfo, config: &Config, theirs: Option<u64>) {
        let ours = config.limits.max_packet as u64;
        let mut small = lock(&self.small);
        match theirs.filter(|theirs| *theirs < ours) {
            None => {
                small.remove(&tablet.alias);
            }
            Some(theirs) => {
                if small.insert(tablet.alias.clone(), theirs) != Some(theirs) {
                    tracing::warn!(
                        tablet = %tablet.alias, max_packet = ours, max_allowed_packet = theirs,
                        "clients may send longer packets than the tablet takes; set limits.max_packet to no more"
                    );
                }
            }
        }
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
            let shards = k
                .shards()
                .iter()
                .map(|s| plan::Shard::new(s.id().clone(), s.range().cloned(), s.database()));
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

/// The tablet that tells of a shard's tables.
fn primary_of<'a>(
    tablets: &'a [Arc<TabletInfo>],
    keyspace: &KeyspaceName,
    shard: &Shard,
) -> Option<&'a Arc<TabletInfo>> {
    tablets
        .iter()
        .filter(|t| t.shard.keyspace == *keyspace && t.shard.shard == shard.name)
        .find(|t| t.role == Role::Primary)
}

/// What is odd about the tables of each shard that answers, each thing once.
pub(crate) async fn findings(config: &Config) -> Vec<(KeyspaceName, Finding)> {
    let tablets = &build::tablets(config);
    let primaries = config.keyspaces.iter().flat_map(|(name, keyspace)| {
        let primary = move |shard: &Shard| primary_of(tablets, name, shard);
        keyspace
            .shards
            .iter()
            .filter_map(primary)
            .map(move |tablet| (name, keyspace, tablet))
    });
    let asked = primaries.map(|(name, keyspace, tablet)| async move {
        let found = load(tablet, config).await;
        let findings = found.map(|found| KeyspaceSchema::of(keyspace, &found.schema).findings());
        (name, findings.ok())
    });
    let told = futures::future::join_all(asked).await;
    // What no tablet has can only be said when all of the keyspace were asked, and none of them has it.
    let nowhere = |name: &KeyspaceName, finding: &Finding| {
        let mut of = told.iter().filter(|(keyspace, _)| *keyspace == name);
        of.all(|(_, findings)| findings.as_ref().is_some_and(|f| f.contains(finding)))
    };
    let mut all: Vec<(KeyspaceName, Finding)> = Vec::new();
    for (name, findings) in &told {
        for finding in findings.iter().flatten() {
            let found = ((*name).clone(), finding.clone());
            let unsure = matches!(finding, Finding::MissingTable(_)) && !nowhere(name, finding);
            if !unsure && !all.contains(&found) {
                all.push(found);
            }
        }
    }
    all
}

/// What one tablet told.
struct Loaded {
    schema: DatabaseSchema,
    /// Its `max_allowed_packet`, if it says.
    max_packet: Option<u64>,
}

/// Reads the schema of a tablet's database over a connection of its own, within the time that is allowed for it.
async fn load(tablet: &Arc<TabletInfo>, config: &Config) -> Result<Loaded, SchemaError> {
    let timeout = config.timeouts.schema_load;
    let database = || tablet.database.clone();
    let unreadable = |reason: String| SchemaError::Tablet {
        database: database(),
        reason,
    };
    let backend = build::backend(config).map_err(|e| unreadable(e.to_string()))?;
    let reading = async {
        // Opening is bounded by the whole time only: whoever sets it high has servers that are slow to let one in.
        let mut conn = Connection::open(tablet, &backend, clock::now() + timeout)
            .await
            .map_err(|e| unreadable(e.to_string()))?;
        let columns = rows(&mut conn, schema::columns_sql(&tablet.database))
            .await
            .map_err(unreadable)?;
        let kinds = rows(&mut conn, schema::tables_sql(&tablet.database))
            .await
            .map_err(unreadable)?;
        let triggers = schema::triggers_sql(&tablet.database);
        let triggers = match conn.query(triggers.as_bytes(), MAX_ROWS).await {
            Ok(triggers) => triggers,
            // One that knows no such table has none.
            Err(TabletError::Server(_)) => Vec::new(),
            Err(e) => return Err(unreadable(e.to_string())),
        };
        let max_packet = conn.query_one(b"SELECT @@global.max_allowed_packet").await;
        let max_packet = max_packet.ok().and_then(|(_, value)| value);
        let max_packet = max_packet.and_then(|v| std::str::from_utf8(&v).ok()?.parse().ok());
        conn.quit().await;
        let columns = columns.iter().map(|row| ColumnRow::from_cells(cells(row)));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let views = schema::views(kinds.iter().map(|row| cells(row).collect()));
        let name = |row: &Bytes| Some(String::from_utf8_lossy(cells(row).next()??).into_owned());
        let triggers = triggers.iter().filter_map(name).collect();
        Ok(Loaded {
            schema: schema::learn(columns, &views, &triggers),
            max_packet,
        })
    };
    let timed_out = |_| SchemaError::Timeout {
        database: database(),
        timeout,
    };
    tokio::time::timeout(timeout, reading).await.map_err(timed_out)?
}

/// All rows of a statement of the loader's.
async fn rows(conn: &mut Connection, sql: String) -> Result<Vec<Bytes>, String> {
    let rows = conn
        .query(sql.as_bytes(), MAX_ROWS + 1)
        .await
        .map_err(|e| e.to_string())?;
    if rows.len() > MAX_ROWS {
        return Err(format!("it has more than {MAX_ROWS} columns"));
    }
    Ok(rows)
}

/// A row's cells. What is no row has none, and is refused for want of its name.
fn cells(row: &Bytes) -> impl Iterator<Item = Option<&[u8]>> {
    text::cells(row).map_while(Result::ok)
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
