//! TLS on both sides of the gateway.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::Problems;

/// Whether clients speak TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientTlsMode {
    /// Not offered.
    Off,
    /// Offered; clients choose.
    #[default]
    Optional,
    /// A client without it is refused.
    Required,
}

/// `[client_tls]`: between clients and the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientTls {
    /// `off`, `optional` or `required`. Default `optional`. Applied to new connections by a reload.
    pub mode: ClientTlsMode,
    /// The certificate chain, PEM, beside the configuration unless absolute. Default: a self-signed certificate is
    /// made at every start. Read again by a reload.
    pub cert_file: Option<PathBuf>,
    /// Its private key, PEM. Needed with `cert_file`. Read again by a reload.
    pub key_file: Option<PathBuf>,
}

/// Whether the gateway speaks TLS to tablets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TabletTlsMode {
    /// Never.
    #[default]
    Off,
    /// Where a tablet offers it.
    Preferred,
    /// Always; a tablet without it is refused.
    Required,
}

/// What is checked of a tablet's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TabletVerify {
    /// Nothing: encrypted, but to nobody in particular.
    #[default]
    None,
    /// That a known authority signed it.
    Authority,
    /// That, and the tablet's name in it.
    Full,
}

/// `[tablet_tls]`: between the gateway and the tablets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TabletTls {
    /// `off`, `preferred` or `required`. Default `off`. Applied to new tablet connections by a reload.
    pub mode: TabletTlsMode,
    /// `none`, `authority` or `full`. Default `none`. Applied to new tablet connections by a reload.
    pub verify: TabletVerify,
    /// The authorities, PEM, beside the configuration unless absolute. Needed unless `verify` is `none`. Read again by
    /// a reload.
    pub ca_file: Option<PathBuf>,
    /// The name a certificate must hold, where it is not the tablet's host. Default: the tablet's host. Applied to new
    /// tablet connections by a reload.
    pub server_name: Option<String>,
}

impl ClientTls {
    pub(super) fn validate(&mut self, base: &Path, problems: &mut Problems) {
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => problems.add("client_tls.cert_file", "needs a `key_file` beside it"),
            (None, Some(_)) => problems.add("client_tls.key_file", "needs a `cert_file` beside it"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        resolve("client_tls.cert_file", &mut self.cert_file, base, problems);
        resolve("client_tls.key_file", &mut self.key_file, base, problems);
    }
}

impl TabletTls {
    pub(super) fn validate(&mut self, base: &Path, problems: &mut Problems) {
        if self.verify != TabletVerify::None && self.ca_file.is_none() {
            problems.add("tablet_tls.verify", "needs a `ca_file` to verify against");
        }
        if self.verify != TabletVerify::None && self.mode == TabletTlsMode::Off {
            problems.add("tablet_tls.verify", "has nothing to verify while `mode` is `off`");
        }
        resolve("tablet_tls.ca_file", &mut self.ca_file, base, problems);
    }
}

/// Makes a file's path absolute and sees whether it can be read.
fn resolve(field: &str, file: &mut Option<PathBuf>, base: &Path, problems: &mut Problems) {
    if let Some(path) = file {
        *path = base.join(&path);
        if let Err(error) = std::fs::File::open(&path) {
            problems.add(field, format!("cannot read {}: {error}", path.display()));
        }
    }
}
