//! `caching_sha2_password`'s fast path: the server knows `SHA256(SHA256(password))`; the client sends
//! `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + salt)`. The full path sends the password itself, so it is
//! walked over TLS only.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Second byte of "more data": the fast path succeeded, an OK follows.
pub const FAST_OK: u8 = 0x03;
/// Second byte of "more data": the server needs the password itself.
pub const FULL_AUTH: u8 = 0x04;
/// First byte of "more data".
pub const MORE_DATA: u8 = 0x01;

/// What the fast path checks against.
#[must_use]
pub fn stored(password: &[u8]) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password)).into()
}

/// The client's answer.
#[must_use]
pub fn scramble(password: &[u8], salt: &[u8]) -> [u8; 32] {
    let once: [u8; 32] = Sha256::digest(password).into();
    xor(once, mask(&stored(password), salt))
}

/// Whether the answer was made from the password whose double hash is stored.
#[must_use]
pub fn verify(answer: &[u8], salt: &[u8], stored: &[u8; 32]) -> bool {
    let Ok(answer) = <[u8; 32]>::try_from(answer) else {
        return false;
    };
    let once = xor(answer, mask(stored, salt));
    let twice: [u8; 32] = Sha256::digest(once).into();
    twice.ct_eq(stored).into()
}

fn mask(stored: &[u8; 32], salt: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(stored)
        .chain_update(salt)
        .finalize()
        .into()
}

fn xor(mut a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    for (a, b) in a.iter_mut().zip(b) {
        *a ^= b;
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_and_salt_pass() {
        let salt = b"0123456789abcdefghij";
        let answer = scramble(b"secret", salt);
        assert!(verify(&answer, salt, &stored(b"secret")));
        assert!(!verify(&answer, salt, &stored(b"Secret")));
        assert!(!verify(&answer, b"0123456789abcdefghiX", &stored(b"secret")));
        assert!(!verify(&answer[..31], salt, &stored(b"secret")));
    }
}
