//! Where the gateway listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::problem::Problems;
use super::secret::Secret;

/// `[listen]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address and port for `MySQL` clients. Default `127.0.0.1:15306`. Port 0 picks a free one and prints it. Not
    /// changed by a reload.
    #[serde(deserialize_with = "address")]
    pub mysql: SocketAddr,
    /// Address and port of the HTTP side: metrics, health, reload. It has no password, so keep it off public networks.
    /// Default `127.0.0.1:15000`. Port 0 picks a free one and prints it. Not changed by a reload.
    #[serde(deserialize_with = "address")]
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

/// An address that can be bound: no name, which may stand for several.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        serde::de::Error::custom(format_args!(
            "\"{text}\" is not an IP address and a port, such as \"127.0.0.1:15306\""
        ))
    })
}

impl Listen {
    /// The two sides cannot share an address.
    pub(super) fn validate(&self, problems: &mut Problems) {
        let (mysql, admin) = (self.mysql, self.admin);
        let meet = mysql.ip() == admin.ip() || mysql.ip().is_unspecified() || admin.ip().is_unspecified();
        if meet && mysql.port() == admin.port() && admin.port() != 0 {
            problems.add(
                "listen.admin",
                "its port is that of listen.mysql; each needs its own",
            );
        }
    }

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
