//! The faults over HTTP: `GET` lists them, `PUT` sets them, `DELETE` takes them away. The same for timelines.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::{FaultSpec, Faults, Timeline};
use crate::handle::SimTablet;

/// What is set by HTTP: the faults of one tablet, or of one proxy.
#[derive(Clone, Debug)]
pub struct FaultPanel {
    alias: Arc<str>,
    faults: Arc<Faults>,
}

impl FaultPanel {
    pub(crate) fn new(alias: &str, faults: &Arc<Faults>) -> Self {
        Self {
            alias: alias.into(),
            faults: Arc::clone(faults),
        }
    }
}

impl From<SimTablet> for FaultPanel {
    fn from(tablet: SimTablet) -> Self {
        Self::new(tablet.alias(), tablet.faults())
    }
}

/// The routes of one tablet's faults, to be nested under a path such as `/sim/<alias>/faults`.
///
/// `PUT` takes one fault or a list, which replace all that were set: `{"kind":"latency","ms":500}`,
/// `[{"kind":"error","code":1205,"statement":"update orders","rate":0.1}]`. `DELETE` also stops a timeline.
pub fn faults_router(of: impl Into<FaultPanel>) -> Router {
    Router::new()
        .route("/", get(list).put(put).delete(delete))
        .with_state(of.into())
}

/// The routes of one tablet's timeline, to be nested under a path such as `/sim/<alias>/timeline`.
///
/// `PUT` takes a list of steps, or `{"steps": [...], "repeat_ms": 10000}`, and starts it:
/// `[{"at_ms":0,"set":{"kind":"hang"}},{"at_ms":5000,"clear":"all"}]`. `DELETE` stops it; the faults that are set stay.
pub fn timeline_router(of: impl Into<FaultPanel>) -> Router {
    Router::new()
        .route("/", get(timeline).put(play).delete(stop))
        .with_state(of.into())
}

fn listed(panel: &FaultPanel) -> Response {
    axum::Json(json!({ "alias": &*panel.alias, "faults": panel.faults.list() })).into_response()
}

fn timed(panel: &FaultPanel) -> Response {
    axum::Json(json!({ "alias": &*panel.alias, "timeline": panel.faults.timeline() })).into_response()
}

fn refused(reason: &str) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": reason }))).into_response()
}

async fn list(State(panel): State<FaultPanel>) -> Response {
    listed(&panel)
}

async fn put(State(panel): State<FaultPanel>, body: Bytes) -> Response {
    match read(&body) {
        Ok(specs) => match panel.faults.replace(&specs) {
            Ok(()) => listed(&panel),
            Err(e) => refused(&e.to_string()),
        },
        Err(e) => refused(&e),
    }
}

async fn delete(State(panel): State<FaultPanel>) -> Response {
    panel.faults.stop_timeline();
    panel.faults.clear();
    listed(&panel)
}

async fn timeline(State(panel): State<FaultPanel>) -> Response {
    timed(&panel)
}

async fn play(State(panel): State<FaultPanel>, body: Bytes) -> Response {
    match Timeline::from_json(&body).and_then(|t| panel.faults.play(t)) {
        Ok(()) => timed(&panel),
        Err(e) => refused(&e.to_string()),
    }
}

async fn stop(State(panel): State<FaultPanel>) -> Response {
    panel.faults.stop_timeline();
    timed(&panel)
}

/// One fault or a list of them.
fn read(body: &[u8]) -> Result<Vec<FaultSpec>, String> {
    let value: Value = serde_json::from_slice(body).map_err(|e| format!("not JSON: {e}"))?;
    match value {
        Value::Array(list) => list
            .into_iter()
            .enumerate()
            .map(|(i, v)| serde_json::from_value(v).map_err(|e| format!("fault {i}: {e}")))
            .collect(),
        one @ Value::Object(_) => serde_json::from_value(one)
            .map(|s| vec![s])
            .map_err(|e| e.to_string()),
        _ => Err("expected a fault, or a list of faults".to_owned()),
    }
}
