//! The configuration: one TOML file, read whole, checked whole, and turned into types that hold only what is valid.
//!
//! Nothing else reads raw settings. A file with any problem gives no configuration at all: the process does not
//! start, or a reload keeps the old one. `docs/configuration.md` lists every field; a test holds it to that.

mod buffer;
mod demo;
mod guard;
mod keyspace;
mod limits;
mod listen;
mod poller;
mod pool;
mod problem;
mod secret;
mod server;
#[cfg(test)]
mod tests;
mod timeouts;
mod tls;
mod units;
mod users;
pub mod vschema;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};

pub use buffer::Buffer;
pub use demo::{DemoShape, demo_draft, demo_tablet_prefix};
pub use guard::{BreakerDraft, Guard};
pub use keyspace::{
    Division, Keyspace, KeyspaceDraft, NamedDraft, NamedKind, RangeProblem, Shard, ShardDraft, ShardValue,
    Tablet, TabletAddress, TabletDraft, check_tiling, even_ranges,
};
pub use limits::Limits;
pub use listen::Listen;
pub use poller::{Poller, PrimarySource};
pub use pool::Pool;
pub use problem::{ConfigError, Problem};
pub use secret::Secret;
pub use server::{Server, TransactionMode};
pub use timeouts::Timeouts;
pub use tls::{ClientTls, ClientTlsMode, TabletTls, TabletTlsMode, TabletVerify};
pub use units::{parse_duration, parse_size, show_duration};
pub use users::{Backend, BackendDraft, PasswordPlugin, User, UserDraft};

use crate::base::KeyspaceName;
use problem::{Places, Problems};

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the gateway listens.
    pub listen: Listen,
    /// What somebody from elsewhere must show to change anything by HTTP; empty lets nobody.
    pub admin_token: Secret,
    /// What it says it is.
    pub server: Server,
    /// Who may log in; at least one, by distinct names.
    pub users: Vec<User>,
    /// As whom it logs in at the tablets.
    pub backend: Backend,
    /// TLS towards clients; files are absolute or relative to the working directory and were readable.
    pub client_tls: ClientTls,
    /// TLS towards tablets; likewise.
    pub tablet_tls: TabletTls,
    /// The pool of each tablet.
    pub pool: Pool,
    /// How tablets are looked at.
    pub poller: Poller,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Bounds of counts and memory.
    pub limits: Limits,
    /// What an attempt passes before it reaches a tablet.
    pub guard: Guard,
    /// How requests wait while a shard has no primary.
    pub buffer: Buffer,
    /// When the breaker of a shard's primary opens.
    pub shard_breaker: shardgate_breaker::Config,
    /// When the breaker of a replica opens.
    pub replica_breaker: shardgate_breaker::Config,
    /// Keyspaces by name; at least one.
    pub keyspaces: BTreeMap<KeyspaceName, Keyspace>,
}

/// A configuration before it is checked: as written in a file, or put together by a program.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// `[listen]`
    pub listen: Listen,
    /// `[server]`
    pub server: Server,
    /// `[[users]]`
    pub users: Vec<UserDraft>,
    /// `[backend]`
    pub backend: BackendDraft,
    /// `[client_tls]`
    pub client_tls: ClientTls,
    /// `[tablet_tls]`
    pub tablet_tls: TabletTls,
    /// `[pool]`
    pub pool: Pool,
    /// `[poller]`
    pub poller: Poller,
    /// `[timeouts]`
    pub timeouts: Timeouts,
    /// `[limits]`
    pub limits: Limits,
    /// `[guard]`
    pub guard: Guard,
    /// `[buffer]`
    pub buffer: Buffer,
    /// `[shard_breaker]`
    pub shard_breaker: BreakerDraft,
    /// `[replica_breaker]`
    pub replica_breaker: BreakerDraft,
    /// `[keyspaces.NAME]`
    pub keyspaces: BTreeMap<String, KeyspaceDraft>,
}

impl Config {
    /// Reads and checks a file. Files it names are looked for beside it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let with_file = |mut error: ConfigError| {
            error.file = Some(path.to_owned());
            error
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot be read: {error}");
            with_file(ConfigError {
                file: None,
                problems: vec![Problem {
                    line: None,
                    field: String::new(),
                    message,
                }],
            })
        })?;
        let base = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, base).map_err(with_file)
    }

    /// Reads and checks a text; `base` is the directory of the files it names.
    pub fn parse(text: &str, base: &Path) -> Result<Self, ConfigError> {
        let (root, syntax) = DeTable::parse_recoverable(text);
        let mut problems = Problems::new(Places::of(text, root.get_ref()));
        for error in &syntax {
            problems.add_syntax(error);
        }
        // What follows a syntax error is a guess of the reader's, so it is not checked further.
        if !syntax.is_empty() {
            return Err(ConfigError {
                file: None,
                problems: problems.into_found(),
            });
        }
        let mut unread = HashSet::new();
        let draft = Draft::read(root.into_inner(), &mut problems, &mut unread);
        draft.check(base, problems, &unread)
    }
}

impl Draft {
    /// Checks a draft that was put together by a program.
    pub fn validate(self, base: &Path) -> Result<Config, ConfigError> {
        self.check(base, Problems::default(), &HashSet::new())
    }

    /// Takes in section by section, so that a mistake in one does not hide those of another. Sections that could not
    /// be read are noted in `unread`: what their defaults lack is not the file's mistake.
    fn read(root: DeTable<'_>, problems: &mut Problems, unread: &mut HashSet<String>) -> Self {
        let mut draft = Self::default();
        for (key, value) in root {
            let name = key.into_inner().into_owned();
            let p = &mut *problems;
            let read = match name.as_str() {
                "listen" => section(&name, value, &mut draft.listen, p),
                "server" => section(&name, value, &mut draft.server, p),
                "users" => section(&name, value, &mut draft.users, p),
                "backend" => section(&name, value, &mut draft.backend, p),
                "client_tls" => section(&name, value, &mut draft.client_tls, p),
                "tablet_tls" => section(&name, value, &mut draft.tablet_tls, p),
                "pool" => section(&name, value, &mut draft.pool, p),
                "poller" => section(&name, value, &mut draft.poller, p),
                "timeouts" => section(&name, value, &mut draft.timeouts, p),
                "limits" => section(&name, value, &mut draft.limits, p),
                "guard" => section(&name, value, &mut draft.guard, p),
                "buffer" => section(&name, value, &mut draft.buffer, p),
                "shard_breaker" => section(&name, value, &mut draft.shard_breaker, p),
                "replica_breaker" => section(&name, value, &mut draft.replica_breaker, p),
                "keyspaces" => draft.read_keyspaces(value.into_inner(), p),
                _ => {
                    p.add(
                        name.as_str(),
                        "unknown field; known are listen, server, users, backend, client_tls, tablet_tls, pool, \
                         poller, timeouts, limits, guard, buffer, shard_breaker, replica_breaker and keyspaces",
                    );
                    true
                }
            };
            if !read {
                unread.insert(name);
            }
        }
        draft
    }

    /// Whether all of them could be read.
    fn read_keyspaces(&mut self, value: DeValue<'_>, problems: &mut Problems) -> bool {
        let DeValue::Table(table) = value else {
            problems.add("keyspaces", "must be tables: `[keyspaces.NAME]`");
            return false;
        };
        let mut all = true;
        for (key, value) in table {
            let name = key.into_inner().into_owned();
            let mut keyspace = KeyspaceDraft::default();
            if section(&format!("keyspaces.{name}"), value, &mut keyspace, problems) {
                self.keyspaces.insert(name, keyspace);
            } else {
                all = false;
            }
        }
        all
    }

    fn check(
        self,
        base: &Path,
        mut problems: Problems,
        unread: &HashSet<String>,
    ) -> Result<Config, ConfigError> {
        let p = &mut problems;
        let (mut client_tls, mut tablet_tls) = (self.client_tls, self.tablet_tls);
        self.listen.validate(p);
        let admin_token = self.listen.token(base, p);
        self.server.validate(p);
        let users = if unread.contains("users") {
            Vec::new()
        } else {
            users::validate(self.users, base, p)
        };
        let backend = self.backend.validate(base, p);
        client_tls.validate(base, p);
        tablet_tls.validate(base, p);
        self.pool.validate(p);
        self.poller.validate(p);
        self.timeouts.validate(p);
        self.limits.validate(p);
        self.guard.validate(p);
        let shard_breaker = self
            .shard_breaker
            .over("shard_breaker", shardgate_breaker::Config::shard(), p);
        let replica_breaker =
            self.replica_breaker
                .over("replica_breaker", shardgate_breaker::Config::replica(), p);
        if self.keyspaces.is_empty() && !unread.contains("keyspaces") {
            p.add("keyspaces", "at least one keyspace is needed");
        }
        let named = |keyspace: &str, shard: Option<&str>| {
            let found = self.keyspaces.get(keyspace);
            found.is_some_and(|k| shard.is_none_or(|s| k.has_shard(s)))
        };
        self.buffer.validate(named, p);
        let keyspaces = keyspace::validate(self.keyspaces, base, p);
        if !problems.is_empty() {
            return Err(ConfigError {
                file: None,
                problems: problems.into_found(),
            });
        }
        Ok(Config {
            listen: self.listen,
            admin_token,
            server: self.server,
            users,
            backend,
            client_tls,
            tablet_tls,
            pool: self.pool,
            poller: self.poller,
            timeouts: self.timeouts,
            limits: self.limits,
            guard: self.guard,
            buffer: self.buffer,
            shard_breaker,
            replica_breaker,
            keyspaces,
        })
    }
}

/// Whether the section could be read; what could not be is noted.
fn section<T: for<'de> Deserialize<'de>>(
    name: &str,
    value: toml::Spanned<DeValue<'_>>,
    into: &mut T,
    problems: &mut Problems,
) -> bool {
    match T::deserialize(ValueDeserializer::from(value)) {
        Ok(read) => {
            *into = read;
            true
        }
        Err(error) => {
            problems.add_toml(name, &error);
            false
        }
    }
}
