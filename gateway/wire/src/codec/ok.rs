//! The OK packet, which also ends result sets where `CLIENT_DEPRECATE_EOF` is agreed (first byte 0xFE then).

use bytes::Bytes;

use super::read::{Malformed, Reader};
use super::write::{put_lenenc, put_lenenc_str};
use crate::protocol::{Capabilities, StatusFlags};

/// What a statement did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OkPacket {
    /// Rows changed (or found, with `CLIENT_FOUND_ROWS`).
    pub affected_rows: u64,
    /// The first generated `AUTO_INCREMENT` value, or 0.
    pub last_insert_id: u64,
    /// State of session and result. `SESSION_STATE_CHANGED` is written if and only if `session_state` is not empty.
    pub status: StatusFlags,
    /// How many warnings the statement left.
    pub warnings: u16,
    /// Free text such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: Bytes,
    /// Changes of session state, still encoded; see [`super::session_state`].
    pub session_state: Bytes,
}

impl OkPacket {
    /// First byte of an answer.
    pub const HEADER: u8 = 0x00;
    /// First byte where it stands for an EOF packet.
    pub const EOF_HEADER: u8 = 0xfe;

    /// An OK with these status flags and nothing else.
    #[must_use]
    pub fn with_status(status: StatusFlags) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// Reads a payload, whichever of the two headers it has.
    pub fn parse(payload: &[u8], caps: Capabilities) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if !matches!(r.u8("ok header")?, Self::HEADER | Self::EOF_HEADER) {
            return Err(Malformed("ok header"));
        }
        let mut ok = Self {
            affected_rows: r.lenenc("affected rows")?,
            last_insert_id: r.lenenc("last insert id")?,
            status: StatusFlags(r.u16("ok status")?),
            warnings: r.u16("ok warnings")?,
            ..Self::default()
        };
        if r.is_empty() {
            return Ok(ok);
        }
        if caps.contains(Capabilities::SESSION_TRACK) {
            ok.info = Bytes::copy_from_slice(r.lenenc_str("ok info")?);
            if ok.status.contains(StatusFlags::SESSION_STATE_CHANGED) {
                ok.session_state = Bytes::copy_from_slice(r.lenenc_str("session state")?);
            }
        } else {
            // The documents say "to the end of the packet"; the servers write a length. Both are read.
            let mut probe = r;
            let info = probe
                .lenenc_str("ok info")
                .ok()
                .filter(|_| probe.is_empty())
                .unwrap_or(r.rest());
            ok.info = Bytes::copy_from_slice(info);
        }
        Ok(ok)
    }

    /// Appends the payload with the first byte `header`. Without `CLIENT_SESSION_TRACK` the state is left out.
    pub fn encode(&self, out: &mut Vec<u8>, header: u8, caps: Capabilities) {
        let tracked = caps.contains(Capabilities::SESSION_TRACK) && !self.session_state.is_empty();
        let mut status = self.status;
        status.set(StatusFlags::SESSION_STATE_CHANGED, tracked);
        out.push(header);
        put_lenenc(out, self.affected_rows);
        put_lenenc(out, self.last_insert_id);
        out.extend_from_slice(&status.0.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if tracked || !self.info.is_empty() {
            put_lenenc_str(out, &self.info);
        }
        if tracked {
            put_lenenc_str(out, &self.session_state);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACK: Capabilities = Capabilities::SESSION_TRACK;

    #[test]
    fn a_recorded_ok_with_info_is_read() {
        // UPDATE of one row, MariaDB 10.11, CLIENT_SESSION_TRACK agreed.
        let bytes = b"\x00\x01\x00\x02\x00\x00\x00\x28Rows matched: 1  Changed: 1  Warnings: 0";
        let ok = OkPacket::parse(bytes, TRACK).unwrap();
        assert_eq!(ok.affected_rows, 1);
        assert_eq!(ok.status, StatusFlags::AUTOCOMMIT);
        assert_eq!(&*ok.info, b"Rows matched: 1  Changed: 1  Warnings: 0");
        // Without tracking the same bytes mean the same; so does the form without a length.
        assert_eq!(OkPacket::parse(bytes, Capabilities::empty()).unwrap(), ok);
        let plain = b"\x00\x01\x00\x02\x00\x00\x00Rows matched: 1  Changed: 1  Warnings: 0";
        assert_eq!(OkPacket::parse(plain, Capabilities::empty()).unwrap(), ok);
    }

    #[test]
    fn state_is_not_written_to_a_client_that_does_not_track() {
        let ok = OkPacket {
            session_state: Bytes::from_static(b"\x02\x01\x31"),
            ..OkPacket::default()
        };
        let mut out = Vec::new();
        ok.encode(&mut out, OkPacket::HEADER, Capabilities::PROTOCOL_41);
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn an_ok_comes_back(
            rows in any::<u64>(), id in any::<u64>(), status in any::<u16>(), warnings in any::<u16>(),
            info in prop::collection::vec(any::<u8>(), 0..300), state in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut status = StatusFlags(status);
            status.set(StatusFlags::SESSION_STATE_CHANGED, !state.is_empty());
            let ok = OkPacket {
                affected_rows: rows, last_insert_id: id, status, warnings,
                info: info.into(), session_state: state.into(),
            };
            let mut out = Vec::new();
            ok.encode(&mut out, OkPacket::EOF_HEADER, TRACK);
            prop_assert_eq!(OkPacket::parse(&out, TRACK).unwrap(), ok);
        }
    }
}
