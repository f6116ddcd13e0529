//! Appending the protocol's small pieces to a payload.

/// Appends a length-encoded integer.
pub fn put_lenenc(out: &mut Vec<u8>, n: u64) {
    let b = n.to_le_bytes();
    match n {
        0..=0xfa => out.push(b[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&b[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&b[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&b);
        }
    }
}

/// Appends a length-encoded string.
pub fn put_lenenc_str(out: &mut Vec<u8>, s: &[u8]) {
    put_lenenc(out, s.len() as u64);
    out.extend_from_slice(s);
}

/// Appends a string and a NUL. A NUL inside would end it early for the reader, so the string is cut there.
pub fn put_nul_str(out: &mut Vec<u8>, s: &[u8]) {
    let end = s.iter().position(|&b| b == 0).unwrap_or(s.len());
    out.extend_from_slice(&s[..end]);
    out.push(0);
}

/// How many bytes [`put_lenenc`] takes for `n`.
#[must_use]
pub const fn lenenc_len(n: u64) -> usize {
    match n {
        0..=0xfa => 1,
        0xfb..=0xffff => 3,
        0x1_0000..=0xff_ffff => 4,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::Reader;

    #[test]
    fn integers_take_the_shortest_form_at_each_border() {
        for (n, len) in [
            (0, 1),
            (250, 1),
            (251, 3),
            (0xffff, 3),
            (0x1_0000, 4),
            (0xff_ffff, 4),
            (0x100_0000, 9),
            (u64::MAX, 9),
        ] {
            let mut out = Vec::new();
            put_lenenc(&mut out, n);
            assert_eq!((out.len(), lenenc_len(n)), (len, len), "{n}");
            assert_eq!(Reader::new(&out).lenenc("n"), Ok(n));
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(n in any::<u64>()) {
            let mut out = Vec::new();
            put_lenenc(&mut out, n);
            prop_assert_eq!(Reader::new(&out).lenenc("n"), Ok(n));
        }
    }
}
