//! A bounds-checked reader over a payload. Each `take_*` says what is missing rather than panic.

use crate::error::WireError;

/// A payload that ends early or holds an impossible value; the text names the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed packet: {0}")]
pub struct Malformed(pub &'static str);

impl From<Malformed> for WireError {
    fn from(m: Malformed) -> Self {
        Self::Malformed(m.0)
    }
}

/// A cursor over a payload.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the payload's first byte.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// What has not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Malformed(what))?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed(what))?;
        self.rest = rest;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes, little endian.
    pub fn u16(&mut self, what: &'static str) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, little endian.
    pub fn u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Eight bytes, little endian.
    pub fn u64(&mut self, what: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Bytes up to a NUL, which is skipped.
    pub fn nul_str(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let at = self.rest.iter().position(|&b| b == 0).ok_or(Malformed(what))?;
        let s = self.take(at, what)?;
        self.take(1, what)?;
        Ok(s)
    }

    /// Bytes up to a NUL, which is skipped, or to the payload's end: some clients leave a last NUL out.
    pub fn nul_str_or_rest(&mut self) -> &'a [u8] {
        let at = self.rest.iter().position(|&b| b == 0);
        let s = &self.rest[..at.unwrap_or(self.rest.len())];
        self.rest = at.map_or(&[], |at| &self.rest[at + 1..]);
        s
    }

    /// A length-encoded integer. 0xFB (NULL) and 0xFF are not integers.
    pub fn lenenc(&mut self, what: &'static str) -> Result<u64, Malformed> {
        match self.u8(what)? {
            n @ 0..=0xfa => Ok(u64::from(n)),
            0xfc => Ok(u64::from(self.u16(what)?)),
            0xfd => {
                let [a, b, c] = self.array(what)?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => self.u64(what),
            0xfb | 0xff => Err(Malformed(what)),
        }
    }

    /// A length-encoded string.
    pub fn lenenc_str(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let len = self.lenenc(what)?;
        self.take(usize::try_from(len).map_err(|_| Malformed(what))?, what)
    }

    /// A cell of a text row: a length-encoded string, or 0xFB for NULL.
    pub fn cell(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, Malformed> {
        if self.rest.first() == Some(&0xfb) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.lenenc_str(what).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_lie_are_malformed() {
        assert!(Reader::new(&[5, 1, 2]).lenenc_str("s").is_err());
        assert!(
            Reader::new(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])
                .lenenc_str("s")
                .is_err()
        );
        assert!(Reader::new(&[0xfc, 1]).lenenc("n").is_err());
        assert!(Reader::new(&[0xff]).lenenc("n").is_err());
        assert!(Reader::new(&[0xfb]).lenenc("n").is_err());
        assert!(Reader::new(b"no end").nul_str("s").is_err());
    }

    #[test]
    fn a_null_cell_is_not_an_empty_cell() {
        let mut r = Reader::new(&[0xfb, 0x00, 0x01, b'x']);
        assert_eq!(r.cell("c"), Ok(None));
        assert_eq!(r.cell("c"), Ok(Some(&b""[..])));
        assert_eq!(r.cell("c"), Ok(Some(&b"x"[..])));
        assert!(r.is_empty());
    }
}
