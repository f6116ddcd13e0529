//! The server's first packet (`HandshakeV10`).

use super::read::{Malformed, Reader};
use super::write::put_nul_str;
use crate::protocol::{Capabilities, StatusFlags};

/// What a server says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// `SELECT VERSION()`'s text.
    pub version: String,
    /// The connection's id, what KILL takes.
    pub connection_id: u32,
    /// 20 random bytes without NUL.
    pub salt: [u8; 20],
    /// What it can do.
    pub capabilities: Capabilities,
    /// Its default collation's id, low byte.
    pub charset: u8,
    /// The session's first status.
    pub status: StatusFlags,
    /// The plugin it would authenticate by.
    pub plugin: String,
}

impl Greeting {
    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8("protocol version")? != 10 {
            return Err(Malformed("protocol version"));
        }
        let version = String::from_utf8_lossy(r.nul_str("server version")?).into_owned();
        let connection_id = r.u32("connection id")?;
        let mut salt = [0; 20];
        salt[..8].copy_from_slice(r.take(8, "salt")?);
        r.u8("greeting filler")?;
        let low = r.u16("capabilities")?;
        let charset = r.u8("charset")?;
        let status = StatusFlags(r.u16("status")?);
        let high = r.u16("capabilities")?;
        let capabilities = Capabilities(u32::from(low) | u32::from(high) << 16);
        let salt_len = r.u8("salt length")?;
        r.take(10, "greeting filler")?;
        // At least 13 bytes, of which the last is a NUL.
        let rest = r.take(usize::from(salt_len).saturating_sub(8).max(13), "salt")?;
        salt[8..].copy_from_slice(&rest[..12]);
        let plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            String::from_utf8_lossy(r.nul_str_or_rest()).into_owned()
        } else {
            String::from("mysql_native_password")
        };
        Ok(Self {
            version,
            connection_id,
            salt,
            capabilities,
            charset,
            status,
            plugin,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let caps = self.capabilities.0.to_le_bytes();
        out.push(10);
        put_nul_str(out, self.version.as_bytes());
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.salt[..8]);
        out.push(0);
        out.extend_from_slice(&caps[..2]);
        out.push(self.charset);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&caps[2..]);
        out.push(21);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.salt[8..]);
        out.push(0);
        put_nul_str(out, self.plugin.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_comes_back() {
        let g = Greeting {
            version: String::from("8.0.36-shardgate"),
            connection_id: 77,
            salt: *b"abcdefghijklmnopqrst",
            capabilities: Capabilities::PLUGIN_AUTH | Capabilities::PROTOCOL_41,
            charset: 255,
            status: StatusFlags::AUTOCOMMIT,
            plugin: String::from("caching_sha2_password"),
        };
        let mut out = Vec::new();
        g.encode(&mut out);
        assert_eq!(Greeting::parse(&out).unwrap(), g);
    }

    #[test]
    fn a_recorded_mariadb_greeting_is_read() {
        let mut bytes =
            b"\x0a5.5.5-10.11.6-MariaDB-0+deb12u1\0\x1e\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15"
                .to_vec();
        bytes.extend_from_slice(b"\0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0");
        let g = Greeting::parse(&bytes).unwrap();
        assert_eq!((g.connection_id, &g.salt), (30, b"abcdefghijklmnopqrst"));
        assert!(g.capabilities.contains(Capabilities::DEPRECATE_EOF));
        assert!(!g.capabilities.contains(Capabilities::LONG_PASSWORD));
        assert_eq!(g.plugin, "mysql_native_password");
    }
}
