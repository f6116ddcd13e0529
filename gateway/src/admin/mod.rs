//! The HTTP side: health, counters, reload. It only reads what the inner rooms publish and calls what they offer.

mod breakers;
mod counted;
mod exposition;
mod primary;
mod vars;

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::metrics::Family;
use crate::base::{Role, ShardId, TabletAlias};

/// What the HTTP side is given: counters to show and calls to make.
pub trait Control: Send + Sync + 'static {
    /// Everything that is counted.
    fn families(&self) -> Vec<Family>;
    /// Whether new clients are served: false while no shard serves and while shutting down.
    fn ready(&self) -> Readiness;
    /// Every tablet's last observation.
    fn health(&self) -> Value;
    /// Reads the configuration again; the old one stays if the new one is not valid. Says what changed, or why not.
    fn reload(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// Keyspaces, shards and tablets as JSON.
    fn topology(&self) -> Value;
    /// The tablets of a keyspace and a role, or of all, as columns and rows.
    fn tablets(&self, keyspace: Option<&str>, role: Option<Role>) -> Value;
    /// Every breaker, and the kinds of statement by the time that they held connections.
    fn breakers(&self) -> Value;
    /// Takes a breaker over, or hands it back; says how it is then.
    fn force(&self, scope: &str, name: &str, mode: Force) -> Result<Value, ForceError>;
    /// Says which tablet is a shard's primary.
    fn appoint(&self, shard: &ShardId, tablet: &TabletAlias) -> Result<(), AppointError>;
    /// A reparent of a shard begins, or is over.
    fn reparent(&self, shard: &ShardId, step: ReparentStep) -> Result<(), AppointError>;
    /// What somebody from elsewhere must show to change anything; `None` lets nobody.
    fn admin_token(&self) -> Option<String>;
}

/// Whether a balancer should send clients here.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// The answer.
    pub ready: bool,
    /// More of it, as JSON: the shards that do not serve, and why.
    pub body: Value,
}

pub use primary::{AppointError, ReparentStep};

/// What an operator wants of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Force {
    /// To refuse everything.
    Open,
    /// To let everything pass.
    Closed,
    /// To decide by its signals again.
    Auto,
    /// To count what it would do, and to let everything pass.
    DryRun,
}

/// Why a breaker was not forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForceError {
    /// There is no such shard or replica.
    #[error("no such breaker: scope is `shard` with a name as keyspace/shard, or `replica` with an alias")]
    Unknown,
    /// The configuration has no breakers.
    #[error("breakers are off in the configuration")]
    Off,
}

/// The routes of the HTTP side; `extra` is nested as it is (the demo hands in `/sim`).
pub fn router<C: Control>(control: Arc<C>, extra: Router) -> Router {
    let counted = Router::new()
        .route("/debug/vars", get(counted::debug_vars::<C>))
        .route("/metrics", get(counted::metrics::<C>))
        .with_state(counted::Counted::new(&control));
    Router::new()
        .route("/", get(index))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz::<C>))
        .route("/debug/health", get(debug_health::<C>))
        .route(
            "/debug/breakers",
            get(breakers::list::<C>).post(breakers::force::<C>),
        )
        .route("/api/topology", get(topology::<C>))
        .route("/api/tablets", get(tablets::<C>))
        .route("/api/reload", post(reload::<C>))
        .route(
            "/api/shards/{keyspace}/{shard}/primary",
            put(primary::appoint::<C>),
        )
        .route(
            "/api/shards/{keyspace}/{shard}/reparent",
            post(primary::reparent::<C>),
        )
        .with_state(control)
        .merge(counted)
        .merge(extra)
}

async fn index() -> &'static str {
    "Shardgate\n\n/healthz      the process answers\n/readyz       clients are served; the shards that are not\n\
     /debug/vars   counters as JSON\n/metrics      the same for Prometheus\n/debug/health every tablet as last seen\n/debug/breakers every breaker; POST forces one\n\
     /api/topology keyspaces, shards, tablets\n/api/tablets  tablets as a table; ?keyspace=, ?role=\n/api/reload   POST: read the configuration again\n\
     /api/shards/KEYSPACE/SHARD/primary  PUT: which tablet is the primary\n/api/shards/KEYSPACE/SHARD/reparent POST: start or end one\n"
}

async fn readyz<C: Control>(State(control): State<Arc<C>>) -> Response {
    let readiness = control.ready();
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(readiness.body)).into_response()
}

async fn debug_health<C: Control>(State(control): State<Arc<C>>) -> Json<Value> {
    Json(control.health())
}

/// Which tablets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    keyspace: Option<String>,
    role: Option<String>,
}

async fn tablets<C: Control>(State(control): State<Arc<C>>, Query(which): Query<Which>) -> Response {
    let role = match which.role.as_deref() {
        None => None,
        Some("primary") => Some(Role::Primary),
        Some("replica") => Some(Role::Replica),
        Some(_) => {
            let why = json!({ "error": "role is primary or replica" });
            return (StatusCode::BAD_REQUEST, Json(why)).into_response();
        }
    };
    Json(control.tablets(which.keyspace.as_deref(), role)).into_response()
}

async fn topology<C: Control>(State(control): State<Arc<C>>) -> Json<Value> {
    Json(control.topology())
}

async fn reload<C: Control>(State(control): State<Arc<C>>) -> Response {
    match control.reload().await {
        Ok(what) => Json(json!({ "reloaded": true, "message": what })).into_response(),
        Err(why) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            Json(json!({ "reloaded": false, "error": why })),
        )
            .into_response(),
    }
}
