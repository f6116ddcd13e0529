//! A simulated shard over HTTP: who is what, reparents, and the tablets' processes.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Reparent, ReparentError, SimShard};
use crate::faults::{faults_router, timeline_router};
use crate::handle::SimTablet;

/// The routes of one shard, to be nested under a path such as `/sim/shards/<name>`.
///
/// `GET /` tells the tablets and their roles. `POST /reparent` takes a [`Reparent`], such as
/// `{"kind":"planned","gap_ms":2000}`, and answers when it is done. `POST /tablets/<alias>/kill`, `.../restart` and
/// `.../rejoin` act on one tablet; below `/tablets/<alias>` are also its `/faults` and `/timeline`.
pub fn shard_router(shard: &SimShard) -> Router {
    let mut router = Router::new()
        .route("/", get(status))
        .route("/reparent", post(reparent))
        .route("/tablets/{alias}/{what}", post(act))
        .with_state(shard.clone());
    for tablet in shard.tablets() {
        let path = format!("/tablets/{}", tablet.alias());
        router = router
            .nest(&format!("{path}/faults"), faults_router(tablet.clone()))
            .nest(&format!("{path}/timeline"), timeline_router(tablet.clone()));
    }
    router
}

fn failure(code: StatusCode, reason: &str) -> Response {
    (code, Json(json!({ "error": reason }))).into_response()
}

fn told(shard: &SimShard) -> Value {
    let primary = shard.primary();
    let tablet = |t: &SimTablet| {
        json!({
            "alias": t.alias(),
            "address": t.addr().to_string(),
            "role": if t.alias() == primary.alias() { "primary" } else { "replica" },
            "server_id": t.server_id(),
            "read_only": t.is_read_only(),
            "down": t.is_down(),
            "gtid": t.gtid(),
            "connections": t.connections(),
        })
    };
    json!({
        "name": shard.name(),
        "primary": primary.alias(),
        "tablets": shard.tablets().map(tablet).collect::<Vec<_>>(),
    })
}

async fn status(State(shard): State<SimShard>) -> Response {
    Json(told(&shard)).into_response()
}

async fn reparent(State(shard): State<SimShard>, body: Bytes) -> Response {
    let how: Reparent = match serde_json::from_slice(&body) {
        Ok(how) => how,
        Err(e) => return failure(StatusCode::BAD_REQUEST, &e.to_string()),
    };
    // On a task of its own: a client that goes away must not leave the shard half way.
    match tokio::spawn(async move { shard.reparent(&how).await }).await {
        Ok(Ok(report)) => Json(json!(report)).into_response(),
        Ok(Err(e)) => failed(&e),
        Err(e) => failure(StatusCode::INTERNAL_SERVER_ERROR, &e.to_string()),
    }
}

fn failed(e: &ReparentError) -> Response {
    let code = match e {
        ReparentError::Invalid(_) => StatusCode::BAD_REQUEST,
        ReparentError::Busy | ReparentError::NotCaughtUp(_) => StatusCode::CONFLICT,
        ReparentError::NoReplica(_) => StatusCode::NOT_FOUND,
        ReparentError::Sim(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    failure(code, &e.to_string())
}

async fn act(State(shard): State<SimShard>, Path((alias, what)): Path<(String, String)>) -> Response {
    let Some(tablet) = shard.tablet(&alias).cloned() else {
        return failure(StatusCode::NOT_FOUND, &format!("no tablet {alias}"));
    };
    match what.as_str() {
        "kill" => tablet.kill().await,
        "restart" => tablet.restart().await,
        "rejoin" => {
            if let Err(e) = shard.rejoin(&alias).await {
                return failed(&e);
            }
        }
        _ => return failure(StatusCode::NOT_FOUND, "kill, restart or rejoin"),
    }
    Json(told(&shard)).into_response()
}
