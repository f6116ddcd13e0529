//! Passwords: salts, scrambles, checks. Secrets are compared in constant time and never shown.

pub mod caching_sha2;
pub mod native;
mod password;
pub mod salt;
pub mod sha2_crypt;

pub use password::{Credential, Password};

/// The plugins spoken here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AuthPlugin {
    /// `mysql_native_password`: SHA-1, challenge and response.
    #[default]
    Native,
    /// `caching_sha2_password`: SHA-256; challenge and response where the server knows the double hash.
    CachingSha2,
}

impl AuthPlugin {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The plugin of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Native, Self::CachingSha2]
            .into_iter()
            .find(|p| p.name() == name)
    }

    /// A client's answer to a salt; empty for an empty password.
    #[must_use]
    pub fn scramble(self, password: &Password, salt: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Native => native::scramble(password.as_bytes(), salt).to_vec(),
            Self::CachingSha2 => caching_sha2::scramble(password.as_bytes(), salt).to_vec(),
        }
    }
}
