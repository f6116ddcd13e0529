//! TLS by rustls with ring, both ways: a listener's certificate (configured, or made at start), and how much of a
//! tablet's certificate is checked.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::error::WireError;

fn tls_error(what: &str, e: &dyn std::fmt::Display) -> WireError {
    WireError::Tls(format!("{what}: {e}"))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A listener's side, from PEM files.
pub fn server_from_files(cert: &Path, key: &Path) -> Result<Arc<rustls::ServerConfig>, WireError> {
    let what = |p: &Path| format!("cannot read {}", p.display());
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| tls_error(&what(cert), &e))?;
    if chain.is_empty() {
        return Err(WireError::Tls(format!("{} holds no certificate", cert.display())));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|e| tls_error(&what(key), &e))?;
    server(chain, key)
}

/// A listener's side with a certificate made now, for `names`; clients can use it, but not verify it.
pub fn server_self_signed(names: Vec<String>) -> Result<Arc<rustls::ServerConfig>, WireError> {
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|e| tls_error("cannot make a self-signed certificate", &e))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    server(vec![made.cert.der().clone()], key.into())
}

fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<rustls::ServerConfig>, WireError> {
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|e| tls_error("the certificate or its key cannot be used", &e))?;
    Ok(Arc::new(config))
}

/// How much of a server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Nothing: the connection is encrypted, but anybody could be at the other end.
    #[default]
    None,
    /// The certificate was signed by a known authority.
    Authority,
    /// That, and it names the host.
    Full,
}

/// TLS towards a tablet.
#[derive(Clone, Debug)]
pub struct ClientTls {
    pub(crate) config: Arc<rustls::ClientConfig>,
    /// The name the certificate must bear, and SNI; the connection's host where none is given.
    pub(crate) server_name: Option<ServerName<'static>>,
    /// Whether a server without TLS is an error.
    pub(crate) required: bool,
}

impl ClientTls {
    /// TLS with the given check. `ca` is a PEM file of authorities, needed by all but [`Verify::None`].
    pub fn new(verify: Verify, ca: Option<&Path>) -> Result<Self, WireError> {
        let builder = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|e| tls_error("no usable protocol version", &e))?;
        let config = match verify {
            Verify::None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider()))),
            Verify::Full => builder.with_root_certificates(roots(ca)?),
            Verify::Authority => {
                let inner = rustls::client::WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots(ca)?),
                    provider(),
                )
                .build()
                .map_err(|e| tls_error("the authorities cannot be used", &e))?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(AnyName(inner)))
            }
        };
        Ok(Self {
            config: Arc::new(config.with_no_client_auth()),
            server_name: None,
            required: true,
        })
    }

    /// Sets the name the certificate must bear, where it is not the host that is connected to.
    pub fn server_name(mut self, name: &str) -> Result<Self, WireError> {
        let name = ServerName::try_from(name.to_owned()).map_err(|e| tls_error("bad server name", &e))?;
        self.server_name = Some(name);
        Ok(self)
    }

    /// Uses TLS where the server has it, and goes on without where it has not.
    #[must_use]
    pub const fn preferred(mut self) -> Self {
        self.required = false;
        self
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, WireError> {
    let ca = ca.ok_or_else(|| WireError::Tls("verifying a server needs a file of authorities".into()))?;
    let what = format!("cannot read {}", ca.display());
    let mut store = RootCertStore::empty();
    for cert in CertificateDer::pem_file_iter(ca).map_err(|e| tls_error(&what, &e))? {
        let cert = cert.map_err(|e| tls_error(&what, &e))?;
        store.add(cert).map_err(|e| tls_error(&what, &e))?;
    }
    if store.is_empty() {
        return Err(WireError::Tls(format!("{} holds no certificate", ca.display())));
    }
    Ok(store)
}

/// Accepts any certificate, though the handshake's signatures must still be made with its key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks the chain, not the name (`MySQL`'s `VERIFY_CA`).
#[derive(Debug)]
struct AnyName(Arc<rustls::client::WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        match self
            .0
            .verify_server_cert(end_entity, intermediates, server_name, ocsp, now)
        {
            // The name is looked at last, once the chain has been found good.
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
