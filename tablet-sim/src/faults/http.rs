//! The faults over HTTP: `GET` lists them, `PUT` sets them, `DELETE` takes them away.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::FaultSpec;
use crate::handle::SimTablet;

/// The routes of one tablet's faults, to be nested under a path such as `/sim/<alias>/faults`.
///
/// `PUT` takes one fault or a list, which replace all that were set: `{"kind":"latency","ms":500}`,
/// `[{"kind":"error","code":1205,"statement":"update orders","rate":0.1}]`.
pub fn faults_router(tablet: SimTablet) -> Router {
    Router::new()
        .route("/", get(list).put(put).delete(delete))
        .with_state(tablet)
}

fn listed(tablet: &SimTablet) -> Response {
    axum::Json(json!({ "alias": tablet.alias(), "faults": tablet.faults().list() })).into_response()
}

fn refused(reason: &str) -> Response {
    (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": reason }))).into_response()
}

async fn list(State(tablet): State<SimTablet>) -> Response {
    listed(&tablet)
}

async fn put(State(tablet): State<SimTablet>, body: Bytes) -> Response {
    match read(&body) {
        Ok(specs) => match tablet.faults().replace(&specs) {
            Ok(()) => listed(&tablet),
            Err(e) => refused(&e.to_string()),
        },
        Err(e) => refused(&e),
    }
}

async fn delete(State(tablet): State<SimTablet>) -> Response {
    tablet.faults().clear();
    listed(&tablet)
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
