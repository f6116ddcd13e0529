//! `/debug/vars` and `/metrics`, made away from the workers that carry statements and one page at a time: of hundreds of
//! shards a page has tens of thousands of lines, and whoever writes it carries no statement meanwhile.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{Control, exposition, vars};
use crate::base::metrics::Family;

/// How long a page waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the pages are made from, and whose turn it is to make one.
#[derive(Debug)]
pub(super) struct Counted<C> {
    control: Arc<C>,
    turn: Arc<Semaphore>,
}

impl<C> Counted<C> {
    pub(super) fn new(control: &Arc<C>) -> Arc<Self> {
        Arc::new(Self {
            control: Arc::clone(control),
            turn: Arc::new(Semaphore::new(1)),
        })
    }
}

/// The names that a page is asked for, as `?name[]=...&name[]=...`; none for all.
type Names = Query<Vec<(String, String)>>;

pub(super) async fn debug_vars<C: Control>(State(counted): State<Arc<Counted<C>>>, names: Names) -> Response {
    const JSON: &str = "application/json";
    page(&counted, names, JSON, |f| f.name.to_owned(), vars::render).await
}

pub(super) async fn metrics<C: Control>(State(counted): State<Arc<Counted<C>>>, names: Names) -> Response {
    let name = Family::exported_name;
    page(
        &counted,
        names,
        exposition::CONTENT_TYPE,
        name,
        exposition::render,
    )
    .await
}

async fn page<C: Control>(
    counted: &Counted<C>,
    Query(names): Names,
    content_type: &'static str,
    name_of: fn(&Family) -> String,
    render: fn(&[Family]) -> String,
) -> Response {
    if let Some((unknown, _)) = names.iter().find(|(key, _)| key != "name[]") {
        let why = format!("no such parameter: {unknown}; name[] asks for one name, and may be repeated");
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": why }))).into_response();
    }
    let turn = tokio::time::timeout(PATIENCE, Arc::clone(&counted.turn).acquire_owned());
    let Ok(Ok(turn)) = turn.await else {
        let why = "pages of counters are asked for faster than they are made";
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "error": why }))).into_response();
    };
    let control = Arc::clone(&counted.control);
    let made = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut families = control.families();
        if !names.is_empty() {
            families.retain(|family| names.iter().any(|(_, name)| *name == name_of(family)));
        }
        render(&families)
    });
    match made.await {
        Ok(text) => ([(CONTENT_TYPE, content_type)], text).into_response(),
        Err(e) => {
            tracing::error!(error = %e, "a page of counters was not made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
