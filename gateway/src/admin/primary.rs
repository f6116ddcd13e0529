//! `/api/shards/KEYSPACE/SHARD/...`: an orchestrator says which tablet is the primary, and that a reparent begins or is
//! over. As for breakers, it takes more than being able to read: see there.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::Control;
use super::breakers::forbidden;
use crate::base::{ShardId, TabletAlias};

/// Why an orchestrator's word was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppointError {
    /// There is no such shard.
    #[error("no such shard")]
    UnknownShard,
    /// The shard has no such tablet.
    #[error("the shard has no such tablet; tablets are named by their alias")]
    UnknownTablet,
    /// The configuration says who is primary.
    #[error("poller.primary_source is `config`: change the file and reload it")]
    ByConfiguration,
    /// Requests of the shard never wait.
    #[error("requests of this shard do not wait: see [buffer] in the configuration")]
    NotBuffered,
}

/// What a PUT of a primary says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Appointed {
    /// The alias of the tablet.
    tablet: String,
}

/// Which end of a reparent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReparentStep {
    /// It is about to begin: requests wait from now on.
    Start,
    /// It is over, or off: they go on as soon as a primary is seen to take writes.
    End,
}

/// What a POST of a reparent says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reparent {
    reparent: ReparentStep,
}

pub(super) async fn appoint<C: Control>(
    State(control): State<Arc<C>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path((keyspace, shard)): Path<(String, String)>,
    headers: HeaderMap,
    Json(said): Json<Appointed>,
) -> Response {
    if let Some(forbidden) = forbidden(&*control, peer, &headers) {
        return forbidden;
    }
    let id = ShardId::new(keyspace.as_str(), shard.as_str());
    let done = control.appoint(&id, &TabletAlias::from(said.tablet.as_str()));
    answer(
        done,
        || json!({ "shard": id.to_string(), "primary": said.tablet }),
    )
}

pub(super) async fn reparent<C: Control>(
    State(control): State<Arc<C>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Path((keyspace, shard)): Path<(String, String)>,
    headers: HeaderMap,
    Json(said): Json<Reparent>,
) -> Response {
    if let Some(forbidden) = forbidden(&*control, peer, &headers) {
        return forbidden;
    }
    let id = ShardId::new(keyspace.as_str(), shard.as_str());
    let done = control.reparent(&id, said.reparent);
    let step = match said.reparent {
        ReparentStep::Start => "start",
        ReparentStep::End => "end",
    };
    answer(done, || json!({ "shard": id.to_string(), "reparent": step }))
}

fn answer(done: Result<(), AppointError>, body: impl FnOnce() -> serde_json::Value) -> Response {
    match done {
        Ok(()) => Json(body()).into_response(),
        Err(e) => {
            let status = match e {
                AppointError::UnknownShard | AppointError::UnknownTablet => StatusCode::NOT_FOUND,
                AppointError::ByConfiguration | AppointError::NotBuffered => StatusCode::CONFLICT,
            };
            (status, Json(json!({ "error": e.to_string() }))).into_response()
        }
    }
}
