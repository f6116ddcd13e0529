//! A password, and what a server keeps of one.

use std::fmt;
use std::sync::Arc;

use super::sha2_crypt::Sha2Crypt;
use super::{AuthPlugin, caching_sha2, native};

/// A password in clear, as a client needs it. Never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Password(Vec<u8>);

impl Password {
    /// Wraps a password.
    pub fn new(password: impl Into<Vec<u8>>) -> Self {
        Self(password.into())
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What a server keeps of a user's password; it decides the plugin. Never shown.
#[derive(Clone)]
pub enum Credential {
    /// An empty password; any plugin will do.
    Empty,
    /// `SHA1(SHA1(password))`: `mysql_native_password`.
    Native([u8; 20]),
    /// `SHA256(SHA256(password))`: `caching_sha2_password`, always on its fast path.
    CachingSha2([u8; 32]),
    /// The slow hash that `mysql.user` holds for `caching_sha2_password`: the first login takes the full path, over TLS.
    Sha2Crypt(Arc<Sha2Crypt>),
}

impl Credential {
    /// Reads a hash as users' tables and configurations hold it: nothing for no password; `*` and 40 hexadecimal digits
    /// (`SELECT PASSWORD('..')`); 64 hexadecimal digits, SHA-256 of SHA-256 of the password; `$A$005$..` as it is, or
    /// behind `0x` in hexadecimal, as `SHOW CREATE USER` shows it.
    #[must_use]
    pub fn parse(hash: &str) -> Option<Self> {
        if hash.is_empty() {
            return Some(Self::Empty);
        }
        if let Some(native) = hash.strip_prefix('*') {
            return Some(Self::Native(hex(native)?.try_into().ok()?));
        }
        if let Some(crypt) = hash.strip_prefix("0x") {
            return Some(Self::Sha2Crypt(Arc::new(Sha2Crypt::parse(&hex(crypt)?)?)));
        }
        if hash.starts_with('$') {
            return Some(Self::Sha2Crypt(Arc::new(Sha2Crypt::parse(hash.as_bytes())?)));
        }
        Some(Self::CachingSha2(hex(hash)?.try_into().ok()?))
    }

    /// What to keep of a password for a plugin.
    #[must_use]
    pub fn from_password(plugin: AuthPlugin, password: &Password) -> Self {
        if password.is_empty() {
            return Self::Empty;
        }
        match plugin {
            AuthPlugin::Native => Self::Native(native::stored(password.as_bytes())),
            AuthPlugin::CachingSha2 => Self::CachingSha2(caching_sha2::stored(password.as_bytes())),
        }
    }

    /// The plugin it needs; `None` if any will do.
    #[must_use]
    pub const fn plugin(&self) -> Option<AuthPlugin> {
        match self {
            Self::Empty => None,
            Self::Native(_) => Some(AuthPlugin::Native),
            Self::CachingSha2(_) | Self::Sha2Crypt(_) => Some(AuthPlugin::CachingSha2),
        }
    }

    /// Whether `answer` to `salt` proves knowledge of the password; `None` if only the password itself can.
    #[must_use]
    pub fn verify(&self, answer: &[u8], salt: &[u8]) -> Option<bool> {
        match self {
            // caching_sha2_password sends its empty password as one NUL.
            Self::Empty => Some(matches!(answer, [] | [0])),
            Self::Native(stored) => Some(native::verify(answer, salt, stored)),
            Self::CachingSha2(stored) => Some(caching_sha2::verify(answer, salt, stored)),
            Self::Sha2Crypt(_) if answer.is_empty() => Some(false),
            Self::Sha2Crypt(stored) => stored.verify_fast(answer, salt),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Credential::Empty"),
            Self::Native(_) => f.write_str("Credential::Native(..)"),
            Self::CachingSha2(_) => f.write_str("Credential::CachingSha2(..)"),
            Self::Sha2Crypt(_) => f.write_str("Credential::Sha2Crypt(..)"),
        }
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes()
        .chunks_exact(2)
        .map(|p| Some(digit(p[0])? << 4 | digit(p[1])?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_hash_is_read() {
        let crypt = format!("$A$005${}{}", "s".repeat(20), "d".repeat(43));
        let hexed: String = crypt
            .bytes()
            .fold(String::from("0x"), |s, b| format!("{s}{b:02x}"));
        for (text, want) in [
            ("", "Credential::Empty"),
            (
                "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
                "Credential::Native(..)",
            ),
            (&"0a".repeat(32), "Credential::CachingSha2(..)"),
            (&crypt, "Credential::Sha2Crypt(..)"),
            (&hexed, "Credential::Sha2Crypt(..)"),
        ] {
            assert_eq!(format!("{:?}", Credential::parse(text).unwrap()), want);
        }
        for bad in ["secret", "*12", "*xx", "0x12", "$A$", "+a+a", "é"] {
            assert!(Credential::parse(bad).is_none(), "{bad}");
        }
    }
}
