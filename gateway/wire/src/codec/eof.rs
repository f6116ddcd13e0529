//! The EOF packet of peers without `CLIENT_DEPRECATE_EOF`.

use super::read::{Malformed, Reader};
use crate::protocol::StatusFlags;

/// The end of column definitions or rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EofPacket {
    /// How many warnings the statement left.
    pub warnings: u16,
    /// State of session and result.
    pub status: StatusFlags,
}

impl EofPacket {
    /// The first byte.
    pub const HEADER: u8 = 0xfe;

    /// Whether a payload where rows may stand is an EOF packet: a row can begin with 0xFE too, but is then at least
    /// nine bytes long.
    #[must_use]
    pub fn is_eof(payload: &[u8]) -> bool {
        payload.first() == Some(&Self::HEADER) && payload.len() < 9
    }

    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8("eof header")? != Self::HEADER {
            return Err(Malformed("eof header"));
        }
        let warnings = r.u16("eof warnings")?;
        Ok(Self {
            warnings,
            status: StatusFlags(r.u16("eof status")?),
        })
    }

    /// Appends the payload.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.push(Self::HEADER);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend_from_slice(&self.status.0.to_le_bytes());
    }
}
