//! Who may log in at the gateway, and as whom the gateway logs in at the tablets.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shardgate_wire::auth::{AuthPlugin, Credential, Password};

use super::problem::Problems;
use super::secret::Secret;

/// How a client proves a password that a file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum PasswordPlugin {
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
    /// `mysql_native_password`; for `caching_sha2_password` 64 hexadecimal digits, SHA-256 of SHA-256 of the password,
    /// or the `$A$005$..` that `mysql.user` holds, as it is or behind `0x` in hexadecimal (then a first login needs
    /// TLS). An empty text means that the user has no password. No default: a user has either this or `password_file`.
    /// Applied to new connections by a reload.
    #[serde(default)]
    pub password_hash: Option<String>,
    /// A file that holds the password, beside the configuration unless absolute. No default. Read again by a reload.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// With `password_file`: `mysql_native_password` or `caching_sha2_password`. Default `mysql_native_password`.
    /// Applied to new connections by a reload.
    #[serde(default)]
    pub auth_plugin: Option<PasswordPlugin>,
}

impl fmt::Debug for UserDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDraft")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A user of the gateway.
#[derive(Clone, Debug)]
pub struct User {
    /// The name clients log in with.
    pub name: String,
    /// What is known of the password; never shown.
    pub credential: Credential,
}

/// `[backend]`, as written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendDraft {
    /// The user the gateway logs in as at every tablet. It needs the rights that the clients' statements need, and
    /// those to see and kill its own queries; to see how replicas do it needs `REPLICA MONITOR` (`MariaDB` from 10.5
    /// on) or `REPLICATION CLIENT` (`MySQL`, older `MariaDB`); it must not be able to write through `read_only`.
    /// Default `shardgate`. Applied to new tablet connections by a reload.
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
        match credential(&draft, base) {
            Ok(credential) => users.push(User {
                name: draft.name,
                credential,
            }),
            Err((name, message)) => problems.add(format!("{field}{name}"), message),
        }
    }
    users
}

fn credential(draft: &UserDraft, base: &Path) -> Result<Credential, (&'static str, String)> {
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
        (Some(hash), None) => {
            Credential::parse(hash).ok_or_else(|| (".password_hash", HASH_SHAPES.to_owned()))
        }
        (None, Some(file)) => {
            let password =
                Secret::from_file(&base.join(file)).map_err(|message| (".password_file", message))?;
            let plugin = match draft.auth_plugin.unwrap_or_default() {
                PasswordPlugin::Native => AuthPlugin::Native,
                PasswordPlugin::CachingSha2 => AuthPlugin::CachingSha2,
            };
            Ok(Credential::from_password(
                plugin,
                &Password::new(password.expose()),
            ))
        }
    }
}

/// Says nothing of the text that was given: it may be a password.
const HASH_SHAPES: &str = "must be `*` and 40 hexadecimal digits (SHA-1 of SHA-1), 64 hexadecimal digits (SHA-256 of \
                           SHA-256), `$A$005$..` as mysql.user holds it, or empty for no password";
