//! `/debug/breakers`: breakers as they are, and an operator's hand on one.
//!
//! Forcing a breaker changes what clients get, so it takes more than being able to read: the request comes from the same
//! machine, or shows the configured token. The body must be JSON by its content type, which a page in an operator's
//! browser cannot send across origins without asking first.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::{Control, Force, ForceError};

/// What a POST asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// `shard` or `replica`.
    scope: String,
    /// The shard as `keyspace/shard`, or the replica's alias.
    name: String,
    /// What the breaker is to do.
    mode: Force,
}

pub(super) async fn list<C: Control>(State(control): State<Arc<C>>) -> Response {
    Json(control.breakers()).into_response()
}

pub(super) async fn force<C: Control>(
    State(control): State<Arc<C>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Json(asked): Json<Asked>,
) -> Response {
    if let Some(forbidden) = forbidden(&*control, peer, &headers) {
        return forbidden;
    }
    match control.force(&asked.scope, &asked.name, asked.mode) {
        Ok(now) => Json(now).into_response(),
        Err(e) => {
            let status = match e {
                ForceError::Unknown => StatusCode::NOT_FOUND,
                ForceError::Off => StatusCode::CONFLICT,
            };
            (status, Json(json!({ "error": e.to_string() }))).into_response()
        }
    }
}

/// The answer to somebody who may not change what the gateway does; `None` if they may.
pub(super) fn forbidden<C: Control>(control: &C, peer: SocketAddr, headers: &HeaderMap) -> Option<Response> {
    let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let token = control.admin_token();
    if may_change(peer.ip(), shown, token.as_deref()) {
        return None;
    }
    let why =
        "only from this machine, or with `Authorization: Bearer` and the token of listen.admin_token_file";
    Some((StatusCode::FORBIDDEN, Json(json!({ "error": why }))).into_response())
}

/// Whether somebody may change what the gateway does.
fn may_change(peer: IpAddr, shown: Option<&[u8]>, token: Option<&str>) -> bool {
    if peer.to_canonical().is_loopback() {
        return true;
    }
    let (Some(shown), Some(token)) = (shown.and_then(|s| s.strip_prefix(b"Bearer ")), token) else {
        return false;
    };
    // Every byte is looked at, so that the time taken says nothing of how much was right.
    let differing = shown.iter().zip(token.bytes()).fold(0, |d, (a, b)| d | (a ^ b));
    !token.is_empty() && shown.len() == token.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_or_the_token_may_force_a_breaker() {
        let from = |peer: &str, shown: Option<&str>, token: Option<&str>| {
            may_change(peer.parse().unwrap(), shown.map(str::as_bytes), token)
        };
        assert!(from("127.0.0.1", None, None) && from("::1", None, None));
        assert!(from("::ffff:127.0.0.1", None, None));
        assert!(!from("10.0.0.9", None, None));
        assert!(from("10.0.0.9", Some("Bearer s3cret"), Some("s3cret")));
        for shown in [
            None,
            Some("s3cret"),
            Some("Bearer s3cre"),
            Some("Bearer s3cret!"),
            Some("Bearer "),
        ] {
            assert!(!from("10.0.0.9", shown, Some("s3cret")), "{shown:?}");
        }
        assert!(
            !from("10.0.0.9", Some("Bearer "), Some("")),
            "no token is no token"
        );
        assert!(!from("10.0.0.9", Some("Bearer x"), None));
    }
}
