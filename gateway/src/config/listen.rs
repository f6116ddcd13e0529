//! Where the gateway listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Deserialize;

/// `[listen]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address and port for `MySQL` clients. Default `127.0.0.1:15306`. Port 0 picks a free one and prints it. Not
    /// changed by a reload.
    pub mysql: SocketAddr,
    /// Address and port of the HTTP side: metrics, health, reload. It has no password, so keep it off public networks.
    /// Default `127.0.0.1:15000`. Port 0 picks a free one and prints it. Not changed by a reload.
    pub admin: SocketAddr,
}

impl Default for Listen {
    fn default() -> Self {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            mysql: local(15_306),
            admin: local(15_000),
        }
    }
}
