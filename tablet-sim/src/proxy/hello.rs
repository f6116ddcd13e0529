//! Greeting and login on their way through: what the proxy could not follow is taken out, the rest stays as it is.

use shardgate_wire::Capabilities;
use shardgate_wire::WireError;
use shardgate_wire::codec::{Greeting, LoginRequest};

/// What is not offered to clients.
const HIDDEN: Capabilities = Capabilities::SSL
    .with(Capabilities::COMPRESS)
    .with(Capabilities::ZSTD_COMPRESSION)
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::QUERY_ATTRIBUTES)
    .with(Capabilities::OPTIONAL_RESULTSET_METADATA);

/// The greeting as clients get it, and the connection's id.
pub(super) fn greeting(payload: &[u8]) -> Result<(Vec<u8>, u32), WireError> {
    let id = Greeting::parse(payload)?.connection_id;
    let mut out = payload.to_vec();
    // The version ends with the first NUL; then id, salt and a filler: 4 + 8 + 1 bytes.
    let version = payload.iter().position(|b| *b == 0);
    let caps = version.ok_or(WireError::Malformed("server version"))? + 1 + 13;
    let hidden = HIDDEN.0.to_le_bytes();
    // Low half; charset and status, 3 bytes; high half; a length; 6 bytes of filler; MariaDB's extensions, 4 bytes.
    for (at, bits) in [(0, hidden[0]), (1, hidden[1]), (5, hidden[2]), (6, hidden[3])] {
        if let Some(byte) = out.get_mut(caps + at) {
            *byte &= !bits;
        }
    }
    clear(&mut out, caps + 8 + 6, 4);
    Ok((out, id))
}

/// The login as the server gets it, and what the client can do.
pub(super) fn login(payload: &[u8]) -> Result<(Vec<u8>, Capabilities), WireError> {
    let request = LoginRequest::parse(payload)?;
    let capabilities = request.capabilities.without(HIDDEN);
    let mut out = payload.to_vec();
    for (byte, wanted) in out.iter_mut().zip(capabilities.0.to_le_bytes()) {
        *byte = wanted;
    }
    // Behind capabilities, packet size and charset: 19 bytes of filler, and MariaDB's extensions.
    clear(&mut out, 9 + 19, 4);
    Ok((out, capabilities))
}

fn clear(bytes: &mut [u8], from: usize, len: usize) {
    for byte in bytes.iter_mut().skip(from).take(len) {
        *byte = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_wire::StatusFlags;

    #[test]
    fn only_what_cannot_be_followed_is_taken_out_of_a_greeting() {
        let all = Greeting {
            version: "5.5.5-10.11.6-MariaDB".into(),
            connection_id: 77,
            salt: *b"abcdefghijklmnopqrst",
            capabilities: Capabilities(u32::MAX),
            charset: 45,
            status: StatusFlags::AUTOCOMMIT,
            plugin: "mysql_native_password".into(),
        };
        let mut payload = Vec::new();
        all.encode(&mut payload);
        // MariaDB's extensions, in the filler.
        let at = payload.len() - "mysql_native_password\0".len() - 13 - 4;
        payload[at..at + 4].fill(0xff);
        let (out, id) = greeting(&payload).unwrap();
        assert_eq!((out.len(), id), (payload.len(), 77));
        assert_eq!(out[at..at + 4], [0; 4]);
        let seen = Greeting::parse(&out).unwrap();
        assert_eq!(seen.capabilities, Capabilities(u32::MAX).without(HIDDEN));
        let same = Greeting {
            capabilities: seen.capabilities,
            ..all
        };
        assert_eq!(format!("{seen:?}"), format!("{same:?}"));
    }
}
