//! The client's answer to the greeting (`HandshakeResponse41`) and the request for TLS, which is its first 32 bytes.

use super::read::{Malformed, Reader};
use super::write::{put_lenenc, put_lenenc_str, put_nul_str};
use crate::protocol::Capabilities;

/// Who a client is and what it wants.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRequest {
    /// What the client can do.
    pub capabilities: Capabilities,
    /// The longest packet it would send.
    pub max_packet: u32,
    /// Collation id, low byte: any value, 0 and 255 included.
    pub charset: u8,
    /// User name, as sent.
    pub user: Vec<u8>,
    /// The answer to the salt.
    pub auth: Vec<u8>,
    /// The database to use, if one was named.
    pub database: Option<Vec<u8>>,
    /// The plugin that made the answer; empty if the client named none.
    pub plugin: String,
    /// Connection attributes, in the client's order.
    pub attributes: Attributes,
}

// Scrambles stay out of logs.
impl std::fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginRequest")
            .field("capabilities", &self.capabilities)
            .field("charset", &self.charset)
            .field("user", &String::from_utf8_lossy(&self.user))
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

/// Connection attributes: names and values, in the client's order.
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// The length of a request for TLS.
pub const SSL_REQUEST_LEN: usize = 32;

/// Whether a client's first payload asks for TLS rather than logs in.
#[must_use]
pub fn is_ssl_request(payload: &[u8]) -> bool {
    payload.len() == SSL_REQUEST_LEN
        && payload
            .first_chunk::<4>()
            .is_some_and(|b| Capabilities(u32::from_le_bytes(*b)).contains(Capabilities::SSL))
}

impl LoginRequest {
    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let capabilities = Capabilities(r.u32("client capabilities")?);
        if !capabilities.contains(Capabilities::PROTOCOL_41) {
            return Err(Malformed("the client does not speak the protocol of 4.1"));
        }
        let max_packet = r.u32("client max packet")?;
        let charset = r.u8("client charset")?;
        r.take(23, "login filler")?;
        let user = r.nul_str("user name")?.to_vec();
        let auth = if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC) {
            r.lenenc_str("auth response")?
        } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let len = r.u8("auth response")?;
            r.take(usize::from(len), "auth response")?
        } else {
            r.nul_str("auth response")?
        };
        let auth = auth.to_vec();
        let named = capabilities.contains(Capabilities::CONNECT_WITH_DB) && !r.is_empty();
        let database = named
            .then(|| r.nul_str_or_rest().to_vec())
            .filter(|d| !d.is_empty());
        let plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            String::from_utf8_lossy(r.nul_str_or_rest()).into_owned()
        } else {
            String::new()
        };
        let has_attributes = capabilities.contains(Capabilities::CONNECT_ATTRS) && !r.is_empty();
        let attributes = if has_attributes {
            parse_attributes(&mut r)?
        } else {
            Vec::new()
        };
        Ok(Self {
            capabilities,
            max_packet,
            charset,
            user,
            auth,
            database,
            plugin,
            attributes,
        })
    }

    /// Appends the first 32 bytes: on their own they ask for TLS.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.0.to_le_bytes());
        out.extend_from_slice(&self.max_packet.to_le_bytes());
        out.push(self.charset);
        out.extend_from_slice(&[0; 23]);
    }

    /// Appends the payload. `capabilities` decide which parts are written.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        put_nul_str(out, &self.user);
        if self.capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC) {
            put_lenenc_str(out, &self.auth);
        } else {
            // The caller's answers are scrambles of 20 or 32 bytes here.
            let auth = &self.auth[..self.auth.len().min(255)];
            out.push(auth.len() as u8);
            out.extend_from_slice(auth);
        }
        if self.capabilities.contains(Capabilities::CONNECT_WITH_DB) {
            put_nul_str(out, self.database.as_deref().unwrap_or_default());
        }
        if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            put_nul_str(out, self.plugin.as_bytes());
        }
        if self.capabilities.contains(Capabilities::CONNECT_ATTRS) {
            put_attributes(out, &self.attributes);
        }
    }
}

/// Key and value pairs, both length-encoded, behind their total length.
pub(super) fn parse_attributes(r: &mut Reader<'_>) -> Result<Attributes, Malformed> {
    let mut block = Reader::new(r.lenenc_str("connection attributes")?);
    let mut pairs = Vec::new();
    while !block.is_empty() {
        let key = block.lenenc_str("attribute name")?.to_vec();
        pairs.push((key, block.lenenc_str("attribute value")?.to_vec()));
    }
    Ok(pairs)
}

/// The counterpart of [`parse_attributes`].
pub(super) fn put_attributes(out: &mut Vec<u8>, pairs: &[(Vec<u8>, Vec<u8>)]) {
    let mut block = Vec::new();
    for (key, value) in pairs {
        put_lenenc_str(&mut block, key);
        put_lenenc_str(&mut block, value);
    }
    put_lenenc(out, block.len() as u64);
    out.extend_from_slice(&block);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(capabilities: Capabilities) -> LoginRequest {
        LoginRequest {
            capabilities: capabilities | Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION,
            max_packet: 1 << 24,
            charset: 0,
            user: b"root".to_vec(),
            auth: vec![7; 20],
            database: None,
            plugin: String::new(),
            attributes: Vec::new(),
        }
    }

    #[test]
    fn each_shape_of_login_comes_back() {
        let all = Capabilities::CONNECT_WITH_DB
            | Capabilities::PLUGIN_AUTH
            | Capabilities::PLUGIN_AUTH_LENENC
            | Capabilities::CONNECT_ATTRS;
        let full = LoginRequest {
            database: Some(b"shop".to_vec()),
            plugin: String::from("mysql_native_password"),
            attributes: vec![
                (b"program_name".to_vec(), b"mysql".to_vec()),
                (b"empty".to_vec(), Vec::new()),
            ],
            ..sample(all)
        };
        for login in [sample(Capabilities::empty()), full] {
            let mut out = Vec::new();
            login.encode(&mut out);
            assert_eq!(LoginRequest::parse(&out).unwrap(), login);
            assert!(!is_ssl_request(&out));
        }
    }

    #[test]
    fn a_request_for_tls_is_told_from_a_login() {
        let mut out = Vec::new();
        sample(Capabilities::SSL).encode_head(&mut out);
        assert!(is_ssl_request(&out));
        out.push(0);
        assert!(!is_ssl_request(&out));
    }
}
