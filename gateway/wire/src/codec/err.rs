//! The ERR packet: number, SQLSTATE, message.

use std::borrow::Cow;
use std::fmt;

use super::read::{Malformed, Reader};

/// An error as it travels. The message is kept as the server's bytes; it is text in `character_set_results`.
#[derive(Clone, PartialEq, Eq)]
pub struct ErrPacket {
    /// Error number.
    pub code: u16,
    /// Five ASCII characters; `HY000` where the server sent none.
    pub sqlstate: [u8; 5],
    /// Message.
    pub message: Cow<'static, [u8]>,
}

impl ErrPacket {
    /// The first byte.
    pub const HEADER: u8 = 0xff;

    /// Builds one from text.
    pub fn new(code: u16, sqlstate: [u8; 5], message: impl Into<Cow<'static, str>>) -> Self {
        let message = match message.into() {
            Cow::Borrowed(s) => Cow::Borrowed(s.as_bytes()),
            Cow::Owned(s) => Cow::Owned(s.into_bytes()),
        };
        Self {
            code,
            sqlstate,
            message,
        }
    }

    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8("error header")? != Self::HEADER {
            return Err(Malformed("error header"));
        }
        let code = r.u16("error number")?;
        let mut sqlstate = *b"HY000";
        if let [b'#', state @ ..] = r.rest() {
            sqlstate = *state.first_chunk::<5>().ok_or(Malformed("sqlstate"))?;
            r.take(6, "sqlstate")?;
        }
        Ok(Self {
            code,
            sqlstate,
            message: Cow::Owned(r.rest().to_vec()),
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(Self::HEADER);
        out.extend_from_slice(&self.code.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(&self.sqlstate);
        out.extend_from_slice(&self.message);
    }

    /// The message as text, for logs and for the gateway's own messages.
    #[must_use]
    pub fn message_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.message)
    }
}

impl fmt::Display for ErrPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}",
            self.code,
            String::from_utf8_lossy(&self.sqlstate),
            self.message_text()
        )
    }
}

impl fmt::Debug for ErrPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErrPacket({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_error_is_read_and_written_back() {
        let bytes = b"\xff\x15\x04#28000Access denied for user 'x'@'localhost' (using password: NO)";
        let e = ErrPacket::parse(bytes).unwrap();
        assert_eq!((e.code, &e.sqlstate), (1045, b"28000"));
        let mut out = Vec::new();
        e.encode(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn an_error_before_the_handshake_has_no_sqlstate() {
        let e = ErrPacket::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!(
            (e.code, &e.sqlstate, &*e.message),
            (1040, b"HY000", &b"Too many connections"[..])
        );
    }
}
