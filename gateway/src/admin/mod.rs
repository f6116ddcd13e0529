//! The HTTP side: health, counters, reload. It only reads what the inner rooms publish and calls what they offer.

mod exposition;
mod vars;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::base::metrics::Family;

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
}

/// Whether a balancer should send clients here.
#[derive(Clone, Debug)]
pub struct Readiness {
    /// The answer.
    pub ready: bool,
    /// More of it, as JSON: the shards that do not serve, and why.
    pub body: Value,
}

/// The routes of the HTTP side; `extra` is nested as it is (the demo hands in `/sim`).
pub fn router<C: Control>(control: Arc<C>, extra: Router) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz::<C>))
        .route("/debug/vars", get(debug_vars::<C>))
        .route("/metrics", get(metrics::<C>))
        .route("/debug/health", get(debug_health::<C>))
        .route("/api/topology", get(topology::<C>))
        .route("/api/reload", post(reload::<C>))
        .with_state(control)
        .merge(extra)
}

async fn index() -> &'static str {
    "Shardgate\n\n/healthz      the process answers\n/readyz       clients are served; the shards that are not\n\
     /debug/vars   counters as JSON\n/metrics      the same for Prometheus\n/debug/health every tablet as last seen\n\
     /api/topology keyspaces, shards, tablets\n/api/reload   POST: read the configuration again\n"
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

async fn debug_vars<C: Control>(State(control): State<Arc<C>>) -> Json<Value> {
    Json(vars::render(&control.families()))
}

async fn metrics<C: Control>(State(control): State<Arc<C>>) -> Response {
    let text = exposition::render(&control.families());
    ([(CONTENT_TYPE, exposition::CONTENT_TYPE)], text).into_response()
}

async fn debug_health<C: Control>(State(control): State<Arc<C>>) -> Json<Value> {
    Json(control.health())
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
