//! Certificates for servers under test, signed by an authority made for the test.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tempfile::TempDir;

use crate::process::Supervised;

/// An authority, and a directory of files in PEM that is removed with it.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    dir: TempDir,
}

/// Where a certificate and its private key are.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Authority {
    /// A new authority of this name.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let cert = params.self_signed(&key).expect("an authority signs itself");
        let authority = Self {
            issuer: Issuer::new(params, key),
            dir: Supervised::directory(),
        };
        authority.write("ca.pem", &cert.pem());
        authority
    }

    /// Its own certificate: what a client that trusts it is given.
    pub fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// A certificate for a server with this host name or address.
    pub fn issue(&self, host: &str) -> CertificateFiles {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new([host.to_owned()]).expect("a host can be named");
        let cert = params.signed_by(&key, &self.issuer).expect("the authority signs");
        CertificateFiles {
            cert: self.write("server.pem", &cert.pem()),
            key: self.write("server-key.pem", &key.serialize_pem()),
        }
    }

    fn write(&self, name: &str, pem: &str) -> PathBuf {
        let file = self.dir.path().join(name);
        std::fs::write(&file, pem).expect("the private directory is writable");
        file
    }
}
