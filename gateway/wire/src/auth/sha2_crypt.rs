//! What `mysql.user` holds for `caching_sha2_password`: `$A$005$`, 20 bytes of salt, 43 characters of a SHA-256 crypt
//! (Drepper's `SHA-crypt.txt`) of 1000 rounds times the number. It can only be checked against the password itself; the
//! fast path works once somebody has logged in by the full one.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::caching_sha2;

const SALT: usize = 20;
const DIGEST: usize = 43;

/// A stored hash, and the double hash that the fast path needs, once it is known.
pub struct Sha2Crypt {
    rounds: u32,
    salt: [u8; SALT],
    digest: [u8; DIGEST],
    fast: OnceLock<[u8; 32]>,
}

impl Sha2Crypt {
    /// Reads `authentication_string` as `mysql.user` holds it.
    #[must_use]
    pub fn parse(stored: &[u8]) -> Option<Self> {
        let rest = stored.strip_prefix(b"$A$")?;
        let (thousands, rest) = rest.split_first_chunk::<3>()?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_first_chunk::<SALT>()?;
        // Hexadecimal, as the server writes it.
        let thousands = u32::from_str_radix(std::str::from_utf8(thousands).ok()?, 16).ok()?;
        let rounds = thousands.checked_mul(1000).filter(|r| *r > 0)?;
        Some(Self {
            rounds,
            salt: *salt,
            digest: digest.try_into().ok()?,
            fast: OnceLock::new(),
        })
    }

    /// Checks an answer on the fast path; `None` if that cannot be walked yet.
    #[must_use]
    pub fn verify_fast(&self, answer: &[u8], salt: &[u8]) -> Option<bool> {
        self.fast
            .get()
            .map(|stored| caching_sha2::verify(answer, salt, stored))
    }

    /// Checks a password; milliseconds of work. A right one opens the fast path.
    #[must_use]
    pub fn verify_full(&self, password: &[u8]) -> bool {
        let right: bool = crypt(password, &self.salt, self.rounds)
            .ct_eq(&self.digest)
            .into();
        if right {
            self.fast.get_or_init(|| caching_sha2::stored(password));
        }
        right
    }
}

/// SHA-crypt with SHA-256. The steps are numbered as in the specification.
fn crypt(password: &[u8], salt: &[u8], rounds: u32) -> [u8; DIGEST] {
    let new = Sha256::new;
    // 4 to 8.
    let block: [u8; 32] = new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    // 1 to 3, 9, 10.
    let mut a = new().chain_update(password).chain_update(salt);
    a.update(repeated(&block, password.len()));
    // 11.
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            a.update(block);
        } else {
            a.update(password);
        }
        bits >>= 1;
    }
    // 12.
    let mut a: [u8; 32] = a.finalize().into();
    // 13 to 16.
    let mut dp = new();
    for _ in 0..password.len() {
        dp.update(password);
    }
    let pass = repeated(&dp.finalize().into(), password.len());
    // 17 to 20.
    let mut ds = new();
    for _ in 0..16 + usize::from(a[0]) {
        ds.update(salt);
    }
    let salted = repeated(&ds.finalize().into(), salt.len());
    // 21.
    for round in 0..rounds {
        let mut c = new();
        if round % 2 == 1 {
            c.update(&pass);
        } else {
            c.update(a);
        }
        if round % 3 != 0 {
            c.update(&salted);
        }
        if round % 7 != 0 {
            c.update(&pass);
        }
        if round % 2 == 1 {
            c.update(a);
        } else {
            c.update(&pass);
        }
        a = c.finalize().into();
    }
    encode(&a)
}

fn repeated(block: &[u8; 32], len: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(len).collect()
}

/// 22: the specification's own base 64, over bytes in its own order.
fn encode(a: &[u8; 32]) -> [u8; DIGEST] {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = [0; DIGEST];
    let mut at = 0;
    let mut put = |mut group: u32, chars: usize| {
        for _ in 0..chars {
            out[at] = ALPHABET[(group & 0x3f) as usize];
            group >>= 6;
            at += 1;
        }
    };
    // Three bytes each, ten apart, the order rotating by one: (0, 10, 20), (21, 1, 11), (12, 22, 2), ...
    let (mut x, mut y, mut z) = (0, 10, 20);
    for _ in 0..10 {
        put(u32::from(a[x]) << 16 | u32::from(a[y]) << 8 | u32::from(a[z]), 4);
        (x, y, z) = (z + 1, x + 1, y + 1);
    }
    put(u32::from(a[31]) << 8 | u32::from(a[30]), 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_own_vectors_come_out() {
        // SHA-crypt.txt: "$5$saltstring", "Hello world!".
        let got = crypt(b"Hello world!", b"saltstring", 5000);
        assert_eq!(&got, b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
        // "$5$rounds=10000$saltstringsaltst", the same text.
        let got = crypt(b"Hello world!", b"saltstringsaltst", 10_000);
        assert_eq!(&got, b"3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA");
    }

    #[test]
    fn a_stored_hash_is_checked_by_the_full_path_first_and_then_by_the_fast_one() {
        let mut stored = b"$A$005$abcdefghijklmnopqrst".to_vec();
        stored.extend_from_slice(&crypt(b"secret", b"abcdefghijklmnopqrst", 5000));
        let hash = Sha2Crypt::parse(&stored).unwrap();
        let salt = [7; 20];
        let answer = caching_sha2::scramble(b"secret", &salt);
        assert_eq!(hash.verify_fast(&answer, &salt), None);
        assert!(!hash.verify_full(b"Secret"));
        assert_eq!(hash.verify_fast(&answer, &salt), None);
        assert!(hash.verify_full(b"secret"));
        assert_eq!(hash.verify_fast(&answer, &salt), Some(true));
        assert_eq!(hash.verify_fast(&answer, &[8; 20]), Some(false));
    }

    #[test]
    fn a_hash_that_mysql_stored_is_checked() {
        // MySQL 8: CREATE USER 'foo' IDENTIFIED BY 'foobar'; SELECT authentication_string FROM mysql.user.
        let mut stored = b"$A$005$".to_vec();
        stored.extend_from_slice(
            b"\x03\x1a\x69\x25\x1c\x34\x29\x5c\x4b\x35\x16\x7c\x7f\x1e\x5a\x7b\x63\x09\x13\x49",
        );
        stored.extend_from_slice(b"P9tbM4PKZBFy5HV3hhhoRHZsnJs3hxnBuuQlsDdiIe7");
        assert!(
            Sha2Crypt::parse(&stored)
                .is_some_and(|h| h.verify_full(b"foobar") && !h.verify_full(b"not_foobar"))
        );
    }

    #[test]
    fn other_texts_are_not_stored_hashes() {
        for bad in [
            &b""[..],
            b"$A$005$",
            b"$A$000$abcdefghijklmnopqrst",
            b"*0123",
            b"$A$zz5$abcdefghijklmnopqrstx",
        ] {
            assert!(Sha2Crypt::parse(bad).is_none());
        }
    }
}
