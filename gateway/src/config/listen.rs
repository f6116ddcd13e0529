//! Where the gateway listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::Problems;
use super::secret::Secret;

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
    /// A file that holds a token, beside the configuration unless absolute: who shows it (`Authorization: Bearer`) may
    /// force breakers from elsewhere than this machine. Default: none, which lets only this machine. Read again by a
    /// reload.
    pub admin_token_file: Option<PathBuf>,
}

impl Default for Listen {
    fn default() -> Self {
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        Self {
            mysql: local(15_306),
            admin: local(15_000),
            admin_token_file: None,
        }
    }
}

impl Listen {
    /// Reads the token; empty if there is none.
    pub(super) fn token(&self, base: &Path, problems: &mut Problems) -> Secret {
        let read = self
            .admin_token_file
            .as_ref()
            .map(|file| Secret::from_file(&base.join(file)));
        read.transpose()
            .unwrap_or_else(|message| {
                problems.add("listen.admin_token_file", message);
                None
            })
            .unwrap_or_default()
    }
}
