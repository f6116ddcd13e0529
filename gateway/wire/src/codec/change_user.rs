//! The payload of `COM_CHANGE_USER`, behind its command byte.

use super::login::{Attributes, parse_attributes, put_attributes};
use super::read::{Malformed, Reader};
use super::write::put_nul_str;
use crate::protocol::Capabilities;

/// Whom a client wants to become.
#[derive(Clone, PartialEq, Eq)]
pub struct ChangeUser {
    /// User name, as sent.
    pub user: Vec<u8>,
    /// The answer to the connection's salt.
    pub auth: Vec<u8>,
    /// The database to use, if one was named.
    pub database: Option<Vec<u8>>,
    /// Collation id; `None` if the client left it out.
    pub charset: Option<u16>,
    /// The plugin that made the answer; empty if the client named none.
    pub plugin: String,
    /// Connection attributes.
    pub attributes: Attributes,
}

impl std::fmt::Debug for ChangeUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeUser")
            .field("user", &String::from_utf8_lossy(&self.user))
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

impl ChangeUser {
    /// Reads what follows the command byte, as a client with these capabilities writes it.
    pub fn parse(payload: &[u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let user = r.nul_str("user name")?.to_vec();
        let auth = if caps.contains(Capabilities::SECURE_CONNECTION) {
            let len = r.u8("auth response")?;
            r.take(usize::from(len), "auth response")?.to_vec()
        } else {
            r.nul_str("auth response")?.to_vec()
        };
        let database = Some(r.nul_str_or_rest().to_vec()).filter(|d| !d.is_empty());
        let charset = if r.is_empty() {
            None
        } else {
            Some(r.u16("charset")?)
        };
        let plugin = if caps.contains(Capabilities::PLUGIN_AUTH) {
            String::from_utf8_lossy(r.nul_str_or_rest()).into_owned()
        } else {
            String::new()
        };
        let has_attributes = caps.contains(Capabilities::CONNECT_ATTRS) && !r.is_empty();
        let attributes = if has_attributes {
            parse_attributes(&mut r)?
        } else {
            Vec::new()
        };
        Ok(Self {
            user,
            auth,
            database,
            charset,
            plugin,
            attributes,
        })
    }

    /// Appends what follows the command byte.
    pub fn encode(&self, out: &mut Vec<u8>, caps: Capabilities) {
        put_nul_str(out, &self.user);
        let auth = &self.auth[..self.auth.len().min(255)];
        out.push(auth.len() as u8);
        out.extend_from_slice(auth);
        put_nul_str(out, self.database.as_deref().unwrap_or_default());
        out.extend_from_slice(&self.charset.unwrap_or_default().to_le_bytes());
        if caps.contains(Capabilities::PLUGIN_AUTH) {
            put_nul_str(out, self.plugin.as_bytes());
        }
        if caps.contains(Capabilities::CONNECT_ATTRS) {
            put_attributes(out, &self.attributes);
        }
    }
}
