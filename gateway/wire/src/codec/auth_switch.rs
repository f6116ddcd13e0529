//! The request to authenticate by another plugin.

use super::read::{Malformed, Reader};
use super::write::put_nul_str;

/// "Use this plugin, with this salt."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthSwitch {
    /// The plugin's name.
    pub plugin: String,
    /// Its data: the salt, without the NUL that servers append.
    pub data: Vec<u8>,
}

impl AuthSwitch {
    /// The first byte.
    pub const HEADER: u8 = 0xfe;

    /// Reads a payload. One that is only the header asks for the passwords of `MySQL` 3.23; its plugin is empty here.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8("auth switch header")? != Self::HEADER {
            return Err(Malformed("auth switch header"));
        }
        let plugin = String::from_utf8_lossy(r.nul_str_or_rest()).into_owned();
        let data = r.rest();
        Ok(Self {
            plugin,
            data: data.strip_suffix(&[0]).unwrap_or(data).to_vec(),
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(Self::HEADER);
        put_nul_str(out, self.plugin.as_bytes());
        out.extend_from_slice(&self.data);
        out.push(0);
    }
}
