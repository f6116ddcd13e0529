//! Keyspace ids and key ranges, as in Vitess: a shard `40-80` holds every id `>= 0x40` and `< 0x80`, compared as byte
//! strings; an empty bound is open.

use std::fmt;

use smallvec::SmallVec;

/// A keyspace id: the byte string a functional vindex maps a value to. Up to 16 bytes live inline.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct KeyspaceId(pub SmallVec<[u8; 16]>);

impl KeyspaceId {
    /// An id of eight big-endian bytes, as the numeric vindexes make.
    #[must_use]
    pub fn from_u64(v: u64) -> Self {
        Self(SmallVec::from_slice(&v.to_be_bytes()))
    }
    /// An id of any bytes.
    #[must_use]
    pub fn from_slice(b: &[u8]) -> Self {
        Self(SmallVec::from_slice(b))
    }
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A half-open range of keyspace ids; both bounds empty is everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct KeyRange {
    /// First id inside; empty: from the very first.
    pub start: KeyspaceId,
    /// First id past the end; empty: to the very last.
    pub end: KeyspaceId,
}

/// Why a text is not a key range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyRangeError {
    /// There must be exactly one dash.
    #[error("a key range is two hexadecimal bounds with one `-` between them, as in `40-80`, `-40` or `-`")]
    Shape,
    /// A bound is not pairs of hexadecimal digits.
    #[error("a key range's bound must be pairs of hexadecimal digits")]
    Hex,
    /// Start is at or past the end.
    #[error("a key range's start must lie before its end")]
    Order,
}

impl KeyRange {
    /// Reads `40-80`, `-40`, `c0-`, `-`.
    pub fn parse(s: &str) -> Result<Self, KeyRangeError> {
        let (a, b) = s.split_once('-').ok_or(KeyRangeError::Shape)?;
        if b.contains('-') {
            return Err(KeyRangeError::Shape);
        }
        let range = Self {
            start: hex(a)?,
            end: hex(b)?,
        };
        // `40-4000` is empty too: Vitess compares bounds as if padded with zeros.
        if !range.end.0.is_empty() && trimmed(&range.start) >= trimmed(&range.end) {
            return Err(KeyRangeError::Order);
        }
        Ok(range)
    }

    /// Whether the id lies inside.
    #[must_use]
    pub fn contains(&self, id: &KeyspaceId) -> bool {
        self.start.0.as_slice() <= id.0.as_slice()
            && (self.end.0.is_empty() || id.0.as_slice() < self.end.0.as_slice())
    }

    /// Whether the range has no bound at either side.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        trimmed(&self.start).is_empty() && self.end.0.is_empty()
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for b in self.start.as_bytes() {
            write!(f, "{b:02x}")?;
        }
        f.write_str("-")?;
        for b in self.end.as_bytes() {
            write!(f, "{b:02x}")?;
        }
        Ok(())
    }
}

/// A bound without its trailing zero bytes: `40` and `4000` are the same place.
#[must_use]
pub fn trimmed(id: &KeyspaceId) -> &[u8] {
    let mut b = id.as_bytes();
    while let [rest @ .., 0] = b {
        b = rest;
    }
    b
}

fn hex(s: &str) -> Result<KeyspaceId, KeyRangeError> {
    let b = s.as_bytes();
    if !b.len().is_multiple_of(2) {
        return Err(KeyRangeError::Hex);
    }
    let digit = |c: u8| (c as char).to_digit(16).ok_or(KeyRangeError::Hex);
    let mut out = SmallVec::new();
    for pair in b.chunks_exact(2) {
        out.push(u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).map_err(|_| KeyRangeError::Hex)?);
    }
    Ok(KeyspaceId(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_start_and_not_its_end() {
        let r = KeyRange::parse("40-80").unwrap();
        assert!(r.contains(&KeyspaceId::from_slice(&[0x40])));
        assert!(r.contains(&KeyspaceId::from_slice(&[0x7f, 0xff])));
        assert!(!r.contains(&KeyspaceId::from_slice(&[0x80])));
        assert!(!r.contains(&KeyspaceId::from_slice(&[0x3f, 0xff])));
    }

    #[test]
    fn open_bounds_hold_everything_on_their_side() {
        assert!(KeyRange::parse("-").unwrap().is_everything());
        assert!(KeyRange::parse("-40").unwrap().contains(&KeyspaceId::default()));
        assert!(
            KeyRange::parse("c0-")
                .unwrap()
                .contains(&KeyspaceId::from_slice(&[0xff; 20]))
        );
    }

    #[test]
    fn malformed_ranges_are_refused_each_with_its_reason() {
        assert_eq!(KeyRange::parse("40"), Err(KeyRangeError::Shape));
        assert_eq!(KeyRange::parse("40-80-c0"), Err(KeyRangeError::Shape));
        assert_eq!(KeyRange::parse("4-80"), Err(KeyRangeError::Hex));
        assert_eq!(KeyRange::parse("zz-"), Err(KeyRangeError::Hex));
        assert_eq!(KeyRange::parse("80-40"), Err(KeyRangeError::Order));
        assert_eq!(KeyRange::parse("40-4000"), Err(KeyRangeError::Order));
    }

    #[test]
    fn a_range_prints_as_it_was_read() {
        for s in ["-", "-40", "40-80", "c0-"] {
            assert_eq!(KeyRange::parse(s).unwrap().to_string(), s);
        }
    }
}
