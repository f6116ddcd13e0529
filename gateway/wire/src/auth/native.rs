//! `mysql_native_password`: the server stores `SHA1(SHA1(password))`; the client sends
//! `SHA1(password) XOR SHA1(salt + SHA1(SHA1(password)))`.

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

/// What a server stores.
#[must_use]
pub fn stored(password: &[u8]) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password)).into()
}

/// The client's answer.
#[must_use]
pub fn scramble(password: &[u8], salt: &[u8]) -> [u8; 20] {
    let once: [u8; 20] = Sha1::digest(password).into();
    xor(once, mask(salt, &stored(password)))
}

/// Whether the answer was made from the password whose double hash is stored.
#[must_use]
pub fn verify(answer: &[u8], salt: &[u8], stored: &[u8; 20]) -> bool {
    let Ok(answer) = <[u8; 20]>::try_from(answer) else {
        return false;
    };
    let once = xor(answer, mask(salt, stored));
    let twice: [u8; 20] = Sha1::digest(once).into();
    twice.ct_eq(stored).into()
}

fn mask(salt: &[u8], stored: &[u8; 20]) -> [u8; 20] {
    Sha1::new()
        .chain_update(salt)
        .chain_update(stored)
        .finalize()
        .into()
}

fn xor(mut a: [u8; 20], b: [u8; 20]) -> [u8; 20] {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_hash_is_what_password_gives() {
        // SELECT PASSWORD('secret')
        let want = 0x14E6_5567_ABDB_5135_D0CF_D9A7_0B30_32C1_u128.to_be_bytes();
        assert_eq!(stored(b"secret")[..16], want);
        assert_eq!(stored(b"secret")[16..], [0x79, 0xA4, 0x9E, 0xE7]);
    }

    #[test]
    fn only_the_right_password_and_salt_pass() {
        let salt = b"0123456789abcdefghij";
        let answer = scramble(b"secret", salt);
        assert!(verify(&answer, salt, &stored(b"secret")));
        assert!(!verify(&answer, salt, &stored(b"Secret")));
        assert!(!verify(&answer, b"0123456789abcdefghiX", &stored(b"secret")));
        assert!(!verify(&answer[..19], salt, &stored(b"secret")));
        assert!(!verify(&[], salt, &stored(b"")));
    }
}
