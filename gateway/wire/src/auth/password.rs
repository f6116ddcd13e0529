//! A password, and what a server keeps of one.

use std::fmt;

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
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// An empty password; any plugin will do.
    Empty,
    /// `SHA1(SHA1(password))`: `mysql_native_password`.
    Native([u8; 20]),
    /// `SHA256(SHA256(password))`: `caching_sha2_password`, always on its fast path.
    CachingSha2([u8; 32]),
}

impl Credential {
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
            Self::CachingSha2(_) => Some(AuthPlugin::CachingSha2),
        }
    }

    /// Whether `answer` to `salt` proves knowledge of the password.
    #[must_use]
    pub fn verify(&self, answer: &[u8], salt: &[u8]) -> bool {
        match self {
            // caching_sha2_password sends its empty password as one NUL.
            Self::Empty => matches!(answer, [] | [0]),
            Self::Native(stored) => native::verify(answer, salt, stored),
            Self::CachingSha2(stored) => caching_sha2::verify(answer, salt, stored),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Credential::Empty"),
            Self::Native(_) => f.write_str("Credential::Native(..)"),
            Self::CachingSha2(_) => f.write_str("Credential::CachingSha2(..)"),
        }
    }
}
