//! Puts the rooms together: a running gateway, started from a configuration, reloaded, and stopped.

mod breakers;
mod build;
mod error;
mod follow;
mod health;
mod http;
mod learn;
mod listener;
mod measures;
mod watch;

pub use error::StartError;

pub(crate) use build::{backend, tablets};
pub(crate) use learn::findings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use shardgate_wire::stream::Room;
use tokio::net::TcpListener;
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin;
use crate::balance::{Fleet, Reporter};
use crate::base::clock;
use crate::base::metrics::{Family, Metrics};
use crate::base::{KeyspaceName, Role, ShardId, TabletAlias};
use crate::config::{Config, Listen};
use crate::guard::Guards;
use crate::plan::PlanCache;
use crate::session::{Accepted, CountedHandles, KindTimes, Lately, SessionRegistry, Shared, View};
use crate::tablet::{Pollers, Reaper};
use crate::topology::{Health, HealthListener, Topology, TopologyView};

/// How often idle connections are looked at, and keyspaces that nobody could learn are asked for again.
const SWEEP: Duration = Duration::from_secs(5);

/// A running gateway. Dropping it leaves its tasks running; [`Gateway::shutdown`] ends them.
#[derive(Debug)]
pub struct Gateway {
    core: Arc<Core>,
    mysql_addr: SocketAddr,
    admin_addr: SocketAddr,
}

/// What the gateway's tasks share.
pub(crate) struct Core {
    shared: Arc<Shared>,
    config: ArcSwap<Config>,
    /// What the gateway was started with, for the fields that a reload does not change.
    started_with: Fixed,
    /// The file that a reload reads; none for a gateway put together by a program.
    file: Option<PathBuf>,
    topology: Arc<TopologyView>,
    follower: Arc<follow::Follower>,
    pollers: Arc<Pollers>,
    learned: learn::Learned,
    listener: Mutex<Arc<listener::Accept>>,
    /// One change of the view at a time: a reload and a DDL must not undo each other.
    changing: AsyncMutex<()>,
    sessions: TaskTracker,
    tasks: TaskTracker,
    /// No new clients.
    stopping: CancellationToken,
    /// Background tasks end.
    stopped: CancellationToken,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts a gateway: looks at the tablets and learns what they can tell, then listens. Tablets that are down do not
    /// keep it from starting. `extra` is nested into the HTTP side.
    pub async fn start(config: Config, file: Option<PathBuf>, extra: Router) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::default());
        let (reaper, handle) = Reaper::new(build::reaper_options(&config), &metrics);
        let backend = backend(&config)?;
        let health = Arc::new(Health::new());
        let (tasks, stopped) = (TaskTracker::new(), CancellationToken::new());
        let guards = Arc::new(Guards::new(
            build::guard_settings(&config),
            clock::now(),
            seed(),
            Arc::clone(&metrics),
        ));
        configure_buffers(&guards, &config);
        let fleet = Arc::new(Fleet::new(
            (backend.clone(), build::pool_options(&config)),
            handle,
            Arc::clone(&guards),
            Arc::clone(&health),
            Arc::clone(&metrics),
        ));
        fleet.update(tablets(&config));
        let topology = TopologyView::new(&config).map_err(|e| StartError::Topology(e.to_string()))?;
        let topology = Arc::new(topology);
        let follower = Arc::new(follow::Follower::new(
            (Arc::clone(&health), Arc::clone(&fleet), Arc::clone(&topology)),
            Arc::new(config.clone()),
            Arc::clone(&metrics),
        ));
        let pollers = Arc::new(Pollers::new(
            Arc::clone(&health),
            // First those who judge a single look, then who follows from all.
            vec![
                guards as Arc<dyn HealthListener>,
                Arc::clone(&follower) as Arc<dyn HealthListener>,
            ],
            Arc::clone(&metrics),
            build::poll_settings(&config, backend.clone()),
            (tasks.clone(), stopped.clone()),
        ));
        let mysql = bind(config.listen.mysql).await?;
        let http = bind(config.listen.admin).await?;
        let (mysql_addr, admin_addr) = (local(&mysql)?, local(&http)?);
        let learned = learn::Learned::default();
        // Nobody is served by a tablet that was never looked at, so that comes before the first client.
        let looking = pollers.prepare(tablets(&config), build::poll_settings(&config, backend));
        let (prepared, ()) = tokio::join!(looking, learned.learn_all(&config, &metrics));
        pollers.install(prepared);
        follower.review();
        measures::count_from_zero(&metrics, &tablets(&config));
        let view = learned.view(&config, &topology.load());
        let accept = Arc::new(listener::Accept::new(&config, &view.options.server_version)?);
        let stopping = CancellationToken::new();
        let core = Arc::new_cyclic(|weak: &std::sync::Weak<Core>| {
            let weak = weak.clone();
            let relearn = Box::new(move |keyspace: KeyspaceName| relearn(weak.clone(), keyspace));
            let shared = Shared {
                view: ArcSwap::from_pointee(view),
                fleet,
                health,
                kind_times: KindTimes::default(),
                metrics,
                counted: CountedHandles::default(),
                sessions: Arc::new(SessionRegistry::default()),
                plans: PlanCache::new(config.limits.plan_cache),
                memory: Arc::new(Room::new(config.limits.total_memory)),
                accepted: Accepted::default(),
                lately: Lately::default(),
                relearn,
                started: clock::now(),
            };
            Core {
                shared: Arc::new(shared),
                started_with: Fixed::of(&config),
                config: ArcSwap::from_pointee(config),
                file,
                topology,
                follower,
                pollers,
                learned,
                listener: Mutex::new(accept),
                changing: AsyncMutex::new(()),
                sessions: TaskTracker::new(),
                tasks,
                stopping,
                stopped,
            }
        });
        core.tasks.spawn(reaper.run(core.stopped.clone()));
        core.tasks
            .spawn(listener::accept_clients(Arc::clone(&core), mysql));
        core.tasks.spawn(upkeep(Arc::clone(&core)));
        let (tasks, stopped) = (core.tasks.clone(), core.stopped.clone());
        core.tasks
            .spawn(watch::tablets(Arc::clone(&core.shared.fleet), tasks, stopped));
        let router = admin::router(Arc::clone(&core), extra);
        core.tasks.spawn(http::serve(router, http, core.stopped.clone()));
        Ok(Self {
            core,
            mysql_addr,
            admin_addr,
        })
    }

    /// Where clients connect.
    pub fn mysql_addr(&self) -> SocketAddr {
        self.mysql_addr
    }

    /// Where the HTTP side listens.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.core.shared.metrics
    }

    /// Reads the configuration file again. The old configuration stays if the new one is not valid.
    pub async fn reload(&self) -> Result<String, String> {
        self.core.reload().await
    }

    /// Stops: no new clients, idle sessions end, transactions may go on for the grace, then everything is closed.
    pub async fn shutdown(self) {
        let core = self.core;
        core.stopping.cancel();
        core.shared.fleet.guards().close_buffers(clock::now());
        core.shared.sessions.stop();
        core.sessions.close();
        let grace = core.config.load().server.shutdown_grace;
        if tokio::time::timeout(grace, core.sessions.wait()).await.is_err() {
            for session in core.shared.sessions.list() {
                session.kill.throw(crate::exec::Kill::Connection);
            }
            // Killed sessions only have their last words left to say.
            let _ = tokio::time::timeout(Duration::from_secs(2), core.sessions.wait()).await;
        }
        core.shared.fleet.close();
        core.stopped.cancel();
        core.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(5), core.tasks.wait()).await;
    }
}

impl Core {
    fn reporter(&self) -> Reporter<'_> {
        Reporter {
            fleet: &self.shared.fleet,
            health: &self.shared.health,
            now: clock::now(),
        }
    }

    /// The listener's current settings.
    fn accept(&self) -> Arc<listener::Accept> {
        Arc::clone(&self.listener.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn reload(&self) -> Result<String, String> {
        let Some(file) = self.file.clone() else {
            return Err("this gateway was not started from a file".into());
        };
        let _one = self.changing.lock().await;
        let config = Config::load(&file).map_err(|e| e.to_string())?;
        let backend = backend(&config).map_err(|e| e.to_string())?;
        let version = build::server_version(&config, self.learned.server_version().as_deref());
        let accept = Arc::new(listener::Accept::new(&config, &version).map_err(|e| e.to_string())?);
        let polling = build::poll_settings(&config, backend.clone());
        let as_now = self.follower.effective(&config);
        let looking = self.pollers.prepare(tablets(&as_now), polling);
        let learning = self.learned.learn_all(&as_now, &self.shared.metrics);
        let (prepared, ()) = tokio::join!(looking, learning);
        // From here on nothing waits: a primary that changes now is followed before or after all of it.
        let mut following = self.follower.lock();
        // Rejected if it has a gap: then nothing has changed yet.
        Topology::new(0, &config).map_err(|e| e.to_string())?;
        let config = Arc::new(config);
        let moved = following.adopt(Arc::clone(&config));
        let as_now = following.laid_over(&config);
        let changes = self.topology.reload(&as_now).map_err(|e| e.to_string())?;
        let view = self.learned.view(&config, &self.topology.load());
        let what = format!(
            "{} keyspaces; {} tablets added, {} removed, {} changed roles",
            config.keyspaces.len(),
            changes.added.len(),
            changes.removed.len(),
            changes.roles.len(),
        );
        let later = self.started_with.differences(&Fixed::of(&config));
        // The tablets first: a statement planned by the new view must find its shards, and those that serve them.
        let guards = build::guard_settings(&config);
        if *self.shared.fleet.guards().settings() != guards {
            self.shared.fleet.guards().configure(guards);
        }
        let polled = self.pollers.install(prepared);
        measures::count_from_zero(&self.shared.metrics, &tablets(&config));
        if build::pools_change(&self.config.load(), &config) {
            self.shared.fleet.configure(backend, build::pool_options(&config));
        }
        configure_buffers(self.shared.fleet.guards(), &config);
        let all = tablets(&as_now);
        self.follower.set_roles(&all);
        self.shared.fleet.update(all.clone());
        for shard in &moved {
            self.follower.has_moved(&following, shard);
        }
        self.shared.lately.keep(|s| {
            view.catalog
                .keyspace(s.keyspace.as_str())
                .is_some_and(|k| k.shard_index(&s.shard).is_some())
        });
        self.shared.memory.set_limit(config.limits.total_memory);
        self.shared.view.store(Arc::new(view));
        self.pollers.retire_all_but(polled);
        // Only now: a poller of the old tablets would make what is forgotten here again.
        self.shared.fleet.guards().keep(
            |id| all.iter().any(|t| t.shard == *id),
            |alias| all.iter().any(|t| t.alias == *alias && t.role == Role::Replica),
        );
        drop(following);
        self.follower.review();
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = accept;
        self.config.store(config);
        tracing::info!(file = %file.display(), what, "configuration reloaded");
        if later.is_empty() {
            return Ok(what);
        }
        let later = later.join(", ");
        tracing::warn!(
            fields = later,
            "changed in the file, but applied by a restart only"
        );
        Ok(format!("{what}; needs a restart to apply: {later}"))
    }

    /// Learns one keyspace's tables anew and publishes them.
    async fn relearn(&self, keyspace: &KeyspaceName) {
        let _one = self.changing.lock().await;
        let config = self.follower.effective(&self.config.load());
        self.learned.learn(&config, keyspace, &self.shared.metrics).await;
        self.publish(self.learned.view(&config, &self.topology.load()));
    }

    fn publish(&self, view: View) {
        self.shared.view.store(Arc::new(view));
    }
}

/// The fields that a running gateway cannot change.
#[derive(Debug)]
struct Fixed {
    listen: Listen,
    log: String,
    worker_threads: usize,
    plan_cache: usize,
}

impl Fixed {
    fn of(config: &Config) -> Self {
        Self {
            listen: config.listen.clone(),
            log: config.server.log.clone(),
            worker_threads: config.server.worker_threads,
            plan_cache: config.limits.plan_cache,
        }
    }

    /// The names of those that differ.
    fn differences(&self, other: &Self) -> Vec<&'static str> {
        [
            ("listen.mysql", self.listen.mysql != other.listen.mysql),
            ("listen.admin", self.listen.admin != other.listen.admin),
            ("server.log", self.log != other.log),
            (
                "server.worker_threads",
                self.worker_threads != other.worker_threads,
            ),
            ("limits.plan_cache", self.plan_cache != other.plan_cache),
        ]
        .into_iter()
        .filter_map(|(field, differs)| differs.then_some(field))
        .collect()
    }
}

fn relearn(
    core: std::sync::Weak<Core>,
    keyspace: KeyspaceName,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if let Some(core) = core.upgrade() {
            core.relearn(&keyspace).await;
        }
    })
}

/// Closes what is idle too long, and asks again for what could not be learned.
async fn upkeep(core: Arc<Core>) {
    let mut tick = tokio::time::interval(SWEEP);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.stopped.cancelled() => return,
            _ = tick.tick() => {}
        }
        core.shared.fleet.sweep(clock::now());
        for keyspace in core.learned.missing(&core.config.load()) {
            tokio::select! {
                () = core.stopped.cancelled() => return,
                () = core.relearn(&keyspace) => {}
            }
        }
    }
}

fn configure_buffers(guards: &Guards, config: &Config) {
    let shards = config.keyspaces.values().map(|k| k.shards.len()).sum();
    guards.configure_buffers(build::buffer_settings(config), shards);
}

/// A random number for the guards' jitter; without one all gateways probe at the same times, which is no reason not to
/// start.
fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

async fn bind(addr: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(addr)
        .await
        .map_err(|source| StartError::Bind { addr, source })
}

fn local(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(StartError::Io)
}

impl admin::Control for Core {
    fn families(&self) -> Vec<Family> {
        let topology = self.topology.load();
        let sources = measures::Sources {
            metrics: &self.shared.metrics,
            fleet: &self.shared.fleet,
            health: &self.shared.health,
            topology: &topology,
        };
        measures::families(sources, clock::now())
    }

    fn ready(&self) -> admin::Readiness {
        if self.stopping.is_cancelled() {
            return admin::Readiness {
                ready: false,
                body: serde_json::json!({ "ready": false, "why": "shutting down" }),
            };
        }
        health::readiness(&self.shared.health, &self.topology.load())
    }

    fn health(&self) -> serde_json::Value {
        health::tablets_json(&self.shared.health, &self.topology.load(), clock::now())
    }

    async fn reload(&self) -> Result<String, String> {
        Core::reload(self).await
    }

    fn tablets(&self, keyspace: Option<&str>, role: Option<Role>) -> serde_json::Value {
        breakers::report_json(&self.reporter().tablets(keyspace, role))
    }

    fn breakers(&self) -> serde_json::Value {
        breakers::breakers_json(&self.reporter(), &self.shared.kind_times)
    }

    fn force(
        &self,
        scope: &str,
        name: &str,
        mode: admin::Force,
    ) -> Result<serde_json::Value, admin::ForceError> {
        breakers::force(&self.reporter(), scope, name, mode)
    }

    fn admin_token(&self) -> Option<String> {
        let config = self.config.load();
        let token = config.admin_token.expose();
        (!token.is_empty()).then(|| token.to_owned())
    }

    fn appoint(&self, shard: &ShardId, tablet: &TabletAlias) -> Result<(), admin::AppointError> {
        self.follower.appoint(shard, tablet)
    }

    fn reparent(&self, shard: &ShardId, step: admin::ReparentStep) -> Result<(), admin::AppointError> {
        if self.topology.load().shard(shard).is_none() {
            return Err(admin::AppointError::UnknownShard);
        }
        let buffer = self.shared.fleet.guards().buffer(shard);
        let done = match step {
            admin::ReparentStep::Start => buffer.announce(clock::now()),
            // That nobody waited is no failure: the reparent is over.
            admin::ReparentStep::End => {
                buffer.call_off(clock::now());
                true
            }
        };
        self.shared.health.demand(shard);
        if done {
            Ok(())
        } else {
            Err(admin::AppointError::NotBuffered)
        }
    }

    fn topology(&self) -> serde_json::Value {
        build::topology_json(&self.config.load(), &self.shared.fleet)
    }
}
