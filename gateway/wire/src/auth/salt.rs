//! Salts: 20 random bytes, none of them NUL, since old clients read them as C strings.

use crate::error::WireError;

/// A fresh salt from the system's random source. 7 bits a byte, as servers do: 140 bits in all.
pub fn fresh() -> Result<[u8; 20], WireError> {
    let mut salt = [0; 20];
    getrandom::fill(&mut salt).map_err(|e| WireError::Io(std::io::Error::other(e.to_string())))?;
    Ok(printable(salt))
}

/// Maps random bytes to bytes that are neither NUL nor `$`, both of which mean something to some client or server.
fn printable(mut salt: [u8; 20]) -> [u8; 20] {
    for b in &mut salt {
        *b &= 0x7f;
        if *b == 0 || *b == b'$' {
            *b += 1;
        }
    }
    salt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_salt_is_nul_or_above_seven_bits() {
        for b in 0..=255 {
            assert!(
                printable([b; 20])
                    .iter()
                    .all(|&b| (1..=0x7f).contains(&b) && b != b'$'),
                "{b}"
            );
        }
        assert_ne!(fresh().unwrap(), fresh().unwrap());
    }
}
