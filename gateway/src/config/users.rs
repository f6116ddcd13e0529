//! Who may log in at the gateway, and as whom the gateway logs in at the tablets.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::problem::Problems;
use super::secret::Secret;

/// How a client proves its password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum AuthPlugin {
    /// SHA-1; every client knows it.
    #[default]
    #[serde(rename = "mysql_native_password")]
    Native,
    /// SHA-256; clients of `MySQL` 8 prefer it.
    #[serde(rename = "caching_sha2_password")]
    CachingSha2,
}

/// `[[users]]`, as written.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserDraft {
    /// The name clients log in with. No default. Applied to new connections by a reload.
    pub name: String,
    /// A hash of the password, never the password: `*` and 40 hexadecimal digits as `mysql.user` holds for
    /// `mysql_native_password`, or 64 hexadecimal digits, SHA-256 of SHA-256 of the password, for
    /// `caching_sha2_password`. An empty text means that the user has no password. No default: a user has either this
    /// or `password_file`. Applied to new connections by a reload.
    #[serde(default)]
    pub password_hash: Option<String>,
    /// A file that holds the password, beside the configuration unless absolute. No default. Read again by a reload.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// With `password_file`: `mysql_native_password` or `caching_sha2_password`. Default `mysql_native_password`.
    /// Applied to new connections by a reload.
    #[serde(default)]
    pub auth_plugin: Option<AuthPlugin>,
}

impl fmt::Debug for UserDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDraft")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What is known of a user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum UserSecret {
    /// There is none.
    Empty,
    /// SHA-1 of SHA-1 of it.
    Native([u8; 20]),
    /// SHA-256 of SHA-256 of it.
    CachingSha2([u8; 32]),
    /// The password itself, and the plugin its proofs are asked by.
    Password(Secret, AuthPlugin),
}

impl fmt::Debug for UserSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no password",
            Self::Native(_) | Self::CachingSha2(_) | Self::Password(..) => "***",
        })
    }
}

/// A user of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name clients log in with.
    pub name: String,
    /// What is known of the password.
    pub secret: UserSecret,
}

/// `[backend]`, as written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendDraft {
    /// The user the gateway logs in as at every tablet. It needs the rights that the clients' statements need, and
    /// those to see and kill its own queries; it must not be able to write through `read_only`. Default `shardgate`.
    /// Applied to new tablet connections by a reload.
    pub user: String,
    /// A file that holds its password, beside the configuration unless absolute. Default: no password. Read again by
    /// a reload.
    pub password_file: Option<PathBuf>,
}

impl Default for BackendDraft {
    fn default() -> Self {
        Self {
            user: "shardgate".to_owned(),
            password_file: None,
        }
    }
}

/// As whom the gateway logs in at the tablets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The user.
    pub user: String,
    /// The password; empty for none.
    pub password: Secret,
}

impl BackendDraft {
    pub(super) fn validate(self, base: &Path, problems: &mut Problems) -> Backend {
        if self.user.is_empty() {
            problems.add("backend.user", "must not be empty");
        }
        let password = self.password_file.map(|file| Secret::from_file(&base.join(file)));
        let password = password.transpose().unwrap_or_else(|message| {
            problems.add("backend.password_file", message);
            None
        });
        Backend {
            user: self.user,
            password: password.unwrap_or_default(),
        }
    }
}

pub(super) fn validate(drafts: Vec<UserDraft>, base: &Path, problems: &mut Problems) -> Vec<User> {
    if drafts.is_empty() {
        problems.add("users", "at least one user is needed, else nobody can log in");
    }
    let mut seen = HashSet::new();
    let mut users = Vec::new();
    for (i, draft) in drafts.into_iter().enumerate() {
        let field = format!("users[{i}]");
        if draft.name.is_empty() || draft.name.len() > 80 {
            problems.add(format!("{field}.name"), "must have 1 to 80 bytes");
        }
        if !seen.insert(draft.name.clone()) {
            problems.add(
                format!("{field}.name"),
                format!("user `{}` is given twice", draft.name),
            );
        }
        match secret(&draft, base) {
            Ok(secret) => users.push(User {
                name: draft.name,
                secret,
            }),
            Err((name, message)) => problems.add(format!("{field}{name}"), message),
        }
    }
    users
}

fn secret(draft: &UserDraft, base: &Path) -> Result<UserSecret, (&'static str, String)> {
    match (&draft.password_hash, &draft.password_file) {
        (Some(_), Some(_)) => Err((
            ".password_file",
            "give `password_hash` or `password_file`, not both".to_owned(),
        )),
        (None, None) => Err((
            "",
            "needs `password_hash` or `password_file`; `password_hash = \"\"` for no password".to_owned(),
        )),
        (Some(_), None) if draft.auth_plugin.is_some() => Err((
            ".auth_plugin",
            "a hash says its plugin itself; this goes with `password_file` only".to_owned(),
        )),
        (Some(hash), None) => parse_hash(hash).map_err(|message| (".password_hash", message.to_owned())),
        (None, Some(file)) => Secret::from_file(&base.join(file))
            .map(|password| UserSecret::Password(password, draft.auth_plugin.unwrap_or_default()))
            .map_err(|message| (".password_file", message)),
    }
}

fn parse_hash(hash: &str) -> Result<UserSecret, &'static str> {
    if hash.is_empty() {
        return Ok(UserSecret::Empty);
    }
    if hash.starts_with("$A$") {
        return Err(
            "a salted `$A$` hash cannot prove a password without seeing it; give SHA-256 of SHA-256 of the \
                    password as 64 hexadecimal digits, or a `password_file`",
        );
    }
    let shape = "must be `*` and 40 hexadecimal digits (SHA-1 of SHA-1), 64 hexadecimal digits (SHA-256 of SHA-256), \
                 or empty for no password";
    match hash.strip_prefix('*') {
        Some(digits) => hex(digits).map(UserSecret::Native).ok_or(shape),
        None => hex(hash).map(UserSecret::CachingSha2).ok_or(shape),
    }
}

fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}
