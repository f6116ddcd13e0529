//! `SET`: what the session keeps and replays, what the gateway obeys itself, what it refuses.
//!
//! A portable value is a literal. It is tried at once on one tablet, so that a bad one is an error here and now, and
//! kept only if the tablet took it. An expression is worked out by a tablet first, and its value kept.

use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{
    Classified, Lexed, Literal, SetItem, SetScope, SetValue, SqlMode, charset_is_safe, lex, parse_set,
};
use shardgate_wire::codec::session_state::put_variable;

use super::anywhere::{Elsewhere, patience};
use super::literal::literal_text;
use super::query::Way;
use super::transact::isolation_sql;
use super::{Session, SessionError};
use crate::base::{ShardId, clock};
use crate::exec::{AccessMode, Deadline, Leased, Partial};
use crate::guard::Work;
use crate::plan::{calls_stored, with_session_facts};
use crate::tablet::{SettingName, Settings};

/// Variables whose value would say something untrue, or work on one connection of many only.
/// What transactions begin with.
const OF_TRANSACTIONS: [&str; 4] = [
    "tx_isolation",
    "tx_read_only",
    "transaction_isolation",
    "transaction_read_only",
];

const REFUSED: [&str; 12] = [
    // COMMIT would begin another transaction behind the gateway's back.
    "completion_type",
    // `WHERE id IS NULL` would ask for another connection's last id.
    "sql_auto_is_null",
    "rand_seed2",
    "skip_replication",
    "insert_id",
    "last_insert_id",
    "identity",
    "pseudo_thread_id",
    "pseudo_slave_mode",
    "gtid_next",
    "sql_log_bin",
    "rand_seed1",
];

/// What a whole SET does, worked out before any of it is done.
#[derive(Debug, Default)]
struct Changes {
    autocommit: Option<bool>,
    query_timeout: Option<OwnTimeout>,
    partial: Option<bool>,
    allow_scatter: Option<bool>,
    olap: Option<bool>,
    charset: Option<String>,
    sql_mode: bool,
    /// User variables that are portable again.
    unpinned: Vec<String>,
}

/// What `SET query_timeout` says.
#[derive(Clone, Copy, Debug)]
enum OwnTimeout {
    /// `DEFAULT`: the configured one.
    Configured,
    /// This one.
    Of(Duration),
}

/// What a tablet took.
struct Tried {
    settings: Settings,
    sql_mode: Option<SqlMode>,
    charset: Option<String>,
}

/// What is tried on one tablet.
#[derive(Clone, Copy)]
struct Trial<'a> {
    deadline: Option<Deadline>,
    wanted: &'a Settings,
    changes: &'a Changes,
    pending: &'a [Pending],
}

/// An expression that a tablet has to work out.
struct Pending {
    name: SettingName,
    sql: Vec<u8>,
    /// Whether it leaves state on its connection that nobody knows of.
    soils: bool,
}

impl Session {
    /// Runs a SET.
    pub(super) async fn set(
        &mut self,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let items = parse_set(lexed).ok_or(SessionError::Unsupported {
            what: "this form of SET",
            hint: "SET one or more variables, NAMES, CHARACTER SET or TRANSACTION",
        })?;
        if let [
            SetItem::Transaction {
                scope,
                isolation,
                read_only,
            },
        ] = items.as_slice()
        {
            self.set_transaction(*scope, *isolation, *read_only).await?;
            self.put_ok(way.more);
            return Ok(());
        }
        if class.pin.is_some() {
            return Err(SessionError::Unsupported {
                what: "SET to a value that leaves state behind",
                hint: "SELECT it first, and SET the value",
            });
        }
        let mut wanted = self.state.settings.clone();
        let mut changes = Changes::default();
        let mut pending = Vec::new();
        if lexed
            .tokens()
            .iter()
            .any(|t| t.kind == shardgate_sql::TokenKind::Placeholder)
        {
            return Err(SessionError::Unsupported {
                what: "SET with parameters",
                hint: "send the SET as text with its values",
            });
        }
        for item in &items {
            self.take_item(lexed, item, &mut wanted, &mut changes, &mut pending)?;
        }
        self.settle(wanted, &changes, pending).await?;
        let mut told = Vec::new();
        if let Some(on) = changes.autocommit {
            put_variable(&mut told, b"autocommit", if on { &b"ON"[..] } else { b"OFF" });
            if on && !self.state.autocommit {
                self.commit_open().await?;
            }
            self.state.autocommit = on;
        }
        if let Some(timeout) = changes.query_timeout {
            self.state.query_timeout = match timeout {
                OwnTimeout::Configured => None,
                OwnTimeout::Of(limit) => Some(limit),
            };
        }
        if let Some(olap) = changes.olap {
            self.state.olap = olap;
        }
        if let Some(partial) = changes.partial {
            self.state.partial = if partial {
                Partial::Accepted
            } else {
                Partial::Refused
            };
        }
        if let Some(allow) = changes.allow_scatter {
            self.state.allow_scatter = allow;
        }
        if let Some(charset) = changes.charset {
            // The three that the servers follow; what a client is told of is the character set it speaks now.
            put_variable(&mut told, b"character_set_client", charset.as_bytes());
            self.state.charset = charset;
        }
        for name in changes.unpinned {
            self.state.pinned_variables.remove(&name);
        }
        self.put_ok_with(told, way.more);
        Ok(())
    }

    fn take_item(
        &self,
        lexed: &Lexed<'_>,
        item: &SetItem,
        wanted: &mut Settings,
        changes: &mut Changes,
        pending: &mut Vec<Pending>,
    ) -> Result<(), SessionError> {
        match item {
            SetItem::Variable { scope, name, value } => {
                if !matches!(scope, SetScope::Unwritten | SetScope::Session) {
                    return Err(SessionError::SetGlobal);
                }
                if own_variable(name, &lexed.set_value(value), changes)? {
                    return Ok(());
                }
                // A quoted name may hold anything; this one is replayed unquoted.
                if !name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'))
                {
                    return Err(SessionError::UnknownVariable(name.clone()));
                }
                if REFUSED.contains(&name.as_str()) {
                    return Err(SessionError::Unsupported {
                        what: "SET of a variable that belongs to one server's connection",
                        hint: "run it on the tablet itself",
                    });
                }
                self.check_characteristic(lexed, name, value)?;
                changes.sql_mode |= name == "sql_mode";
                let setting = SettingName::System(name.clone());
                match lexed.set_value(value) {
                    SetValue::Default => {
                        if name == "character_set_client" {
                            wanted.unset(&SettingName::Names);
                            changes.charset = Some("utf8mb4".into());
                        }
                        wanted.unset(&setting);
                    }
                    SetValue::Expression => {
                        pending.push(self.pending(setting, lexed, value)?);
                    }
                    literal => {
                        if name == "character_set_client" {
                            changes.charset = Some(safe_charset(&literal_text(&literal))?);
                        }
                        wanted.set(setting, self.literal_sql(&literal));
                    }
                }
            }
            SetItem::UserVariable { name, value } => {
                let setting = SettingName::User(name.clone());
                changes.unpinned.push(name.clone());
                match lexed.set_value(value) {
                    SetValue::Default | SetValue::Word(_) => {
                        return Err(SessionError::Syntax(format!("near the value of @{name}")));
                    }
                    SetValue::Null => self.set_null(wanted, setting),
                    SetValue::Expression => {
                        pending.push(self.pending(setting, lexed, value)?);
                    }
                    literal => wanted.set(setting, self.literal_sql(&literal)),
                }
            }
            SetItem::Names { charset: None, .. } | SetItem::CharacterSet { charset: None } => {
                wanted.unset(&SettingName::Names);
                changes.charset = Some("utf8mb4".into());
            }
            SetItem::Names {
                charset: Some(charset),
                collation,
            } => {
                changes.charset = Some(safe_charset(charset)?);
                let quoted = |s: &String| format!("'{}'", s.replace(['\'', '\\'], ""));
                let collate = collation
                    .as_ref()
                    .map(|c| format!(" COLLATE {}", quoted(c)))
                    .unwrap_or_default();
                wanted.set(SettingName::Names, format!("{}{collate}", quoted(charset)));
            }
            SetItem::CharacterSet {
                charset: Some(charset),
            } => {
                let name = safe_charset(charset)?;
                let system = |n: &str| SettingName::System(n.to_owned());
                for variable in ["character_set_client", "character_set_results"] {
                    wanted.set(system(variable), format!("'{}'", name.replace(['\'', '\\'], "")));
                }
                pending.push(Pending {
                    name: system("collation_connection"),
                    sql: b"@@collation_database".to_vec(),
                    soils: false,
                });
                changes.charset = Some(name);
            }
            SetItem::Transaction { .. } => {
                return Err(SessionError::Syntax("SET TRANSACTION stands alone".into()));
            }
        }
        Ok(())
    }

    /// Keeps settings that a tablet takes, and works out what is to be worked out.
    async fn settle(
        &mut self,
        wanted: Settings,
        changes: &Changes,
        pending: Vec<Pending>,
    ) -> Result<(), SessionError> {
        if pending.is_empty() && wanted == self.state.settings {
            return Ok(());
        }
        let max = self.view.options.max_settings;
        if wanted.size() > max {
            return Err(SessionError::TooManySettings(max));
        }
        let Tried {
            settings,
            sql_mode,
            charset,
        } = match self.known(&wanted, changes, &pending) {
            Some(known) => known,
            None => Box::pin(self.try_somewhere(&wanted, changes, &pending)).await?,
        };
        if let Some(mode) = sql_mode {
            self.state.sql_mode = mode;
        }
        if let Some(charset) = charset {
            self.state.charset = charset;
        }
        self.state.settings = settings;
        Ok(())
    }

    /// What a tablet would say, where that is known already.
    fn known(&self, wanted: &Settings, changes: &Changes, pending: &[Pending]) -> Option<Tried> {
        if !pending.is_empty() {
            return None;
        }
        let both = (&self.state.settings, wanted);
        let accepted = &self.shared.accepted;
        let known = accepted.look_up(self.view.lex, both, changes.sql_mode, clock::now())?;
        Some(Tried {
            settings: wanted.clone(),
            sql_mode: known.sql_mode,
            charset: None,
        })
    }

    /// Tries settings on a tablet. Nothing is changed there that would matter to anybody else, so one that does not
    /// answer soon is left for another.
    async fn try_somewhere(
        &mut self,
        wanted: &Settings,
        changes: &Changes,
        pending: &[Pending],
    ) -> Result<Tried, SessionError> {
        let command = self.deadline();
        let elsewhere = if pending.is_empty() {
            Elsewhere::Yes
        } else {
            Elsewhere::No
        };
        let mut places = self.places_to_try(elsewhere)?.into_iter().peekable();
        while let Some(shard) = places.next() {
            let is_last = places.peek().is_none();
            let deadline = if is_last { command } else { Some(patience(command)) };
            match self.try_at(&shard, deadline, wanted, changes, pending).await {
                Ok(tried) => {
                    let now = clock::now();
                    self.shared.lately.answered(&shard, self.state.target.role, now);
                    let accepted = &self.shared.accepted;
                    accepted.note(self.view.lex, &tried.settings, tried.sql_mode, now);
                    return Ok(tried);
                }
                Err(e) if is_last || command.is_some_and(|d| d.at <= clock::now()) => return Err(e),
                Err(e) => {
                    self.note_silence(&shard, e)?;
                }
            }
        }
        Err(crate::plan::PlanError::NoKeyspace.into())
    }

    async fn try_at(
        &mut self,
        shard: &ShardId,
        deadline: Option<Deadline>,
        wanted: &Settings,
        changes: &Changes,
        pending: &[Pending],
    ) -> Result<Tried, SessionError> {
        let work = match pending {
            [] => Work::CONNECT,
            [first, ..] => self.work_of(&[b"SELECT ", first.sql.as_slice()].concat()),
        };
        let mut lease = self.borrow(shard, deadline, work).await?;
        let what = Trial {
            deadline,
            wanted,
            changes,
            pending,
        };
        let tried = self.try_on(&mut lease, what).await;
        self.give_back(lease, tried)
    }

    /// Works out expressions on a tablet and sets everything there.
    async fn try_on(&mut self, lease: &mut Leased, what: Trial<'_>) -> Result<Tried, SessionError> {
        let Trial {
            deadline, changes, ..
        } = what;
        let mut wanted = what.wanted.clone();
        let shard = lease.shard.clone();
        let mut charset = None;
        for Pending { name, sql, soils } in what.pending {
            if *soils {
                lease.conn.taint();
            }
            let name = name.clone();
            let sql = [b"SELECT ", sql.as_slice()].concat();
            let (column, value) = self.ask(&shard, deadline, lease.conn.query_one(&sql)).await?;
            let is_user = matches!(name, SettingName::User(_));
            if name == SettingName::System("character_set_client".into()) {
                let text = value
                    .as_deref()
                    .map(|v| String::from_utf8_lossy(v).into_owned())
                    .unwrap_or_default();
                charset = Some(safe_charset(&text)?);
            }
            match value {
                Some(bytes) => wanted.set(name, self.value_sql(&column, &bytes, is_user)),
                None => self.set_null(&mut wanted, name),
            }
        }
        self.ask(&shard, deadline, lease.conn.apply(&wanted)).await?;
        let mut sql_mode = None;
        if changes.sql_mode {
            let (_, mode) = self
                .ask(
                    &shard,
                    deadline,
                    lease.conn.query_one(b"SELECT @@session.sql_mode"),
                )
                .await?;
            let text = mode
                .as_deref()
                .map(|m| String::from_utf8_lossy(m).into_owned())
                .unwrap_or_default();
            let wrong = |_| SessionError::WrongValue {
                name: "sql_mode".into(),
                value: text.clone(),
            };
            sql_mode = Some(SqlMode::parse(&text).map_err(wrong)?);
        }
        Ok(Tried {
            settings: wanted,
            sql_mode,
            charset,
        })
    }

    /// NULL is what a user variable is anyway, unless a connection of the session's holds another value.
    fn set_null(&self, wanted: &mut Settings, name: SettingName) {
        match &name {
            SettingName::User(n) if !self.state.pinned_variables.contains(n) => wanted.unset(&name),
            SettingName::User(_) | SettingName::System(_) | SettingName::Names => {
                wanted.set(name, "NULL".into());
            }
        }
    }

    /// An expression to be worked out, with the session's own answers in it.
    fn pending(
        &self,
        name: SettingName,
        lexed: &Lexed<'_>,
        value: &std::ops::Range<usize>,
    ) -> Result<Pending, SessionError> {
        self.refuse_unknown_values(lexed)?;
        let text = Bytes::copy_from_slice(&lexed.src()[lexed.span(value.clone())]);
        let inner = lex(&text, lexed.options()).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let sql = with_session_facts(&text, &inner, &self.facts());
        Ok(Pending {
            name,
            sql: sql.to_vec(),
            soils: calls_stored(lexed),
        })
    }

    /// An expression that reads what only one shard, or none, can tell.
    fn refuse_unknown_values(&self, lexed: &Lexed<'_>) -> Result<(), SessionError> {
        let reads_tables = (0..lexed.len()).any(|at| lexed.is_keyword(at, shardgate_sql::Keyword::From));
        if reads_tables {
            return Err(SessionError::Unsupported {
                what: "SET to a value that is read from a table",
                hint: "SELECT it first, and SET the value",
            });
        }
        let several = self.own_keyspace()?.shards.len() > 1 && self.state.target.shard.is_none();
        if several && calls_stored(lexed) {
            return Err(SessionError::Unsupported {
                what: "SET to what a stored function says",
                hint: "SELECT it first, and SET the value",
            });
        }
        let pinned = super::planned::user_variables(lexed)
            .into_iter()
            .find(|v| self.state.pinned_variables.contains(v));
        pinned.map_or(Ok(()), |name| Err(SessionError::PinnedVariable(name)))
    }

    /// What transactions begin with is said for all of them, outside of any.
    fn check_characteristic(
        &self,
        lexed: &Lexed<'_>,
        name: &str,
        value: &std::ops::Range<usize>,
    ) -> Result<(), SessionError> {
        if !OF_TRANSACTIONS.contains(&name) {
            return Ok(());
        }
        self.refuse_inside_transaction()?;
        let written = lexed.text(value.start.saturating_sub(2));
        if written.starts_with(b"@@") && !written.contains(&b'.') {
            return Err(SessionError::Unsupported {
                what: "SET @@ of the next transaction's characteristics",
                hint: "SET TRANSACTION for the next one, SET SESSION for all",
            });
        }
        Ok(())
    }

    /// Shards that join a transaction later would take them for its own.
    fn refuse_inside_transaction(&self) -> Result<(), SessionError> {
        if !self.state.transaction.is_active() {
            return Ok(());
        }
        Err(SessionError::Unsupported {
            what: "SET of transactions' characteristics inside a transaction",
            hint: "end the transaction first",
        })
    }

    async fn set_transaction(
        &mut self,
        scope: SetScope,
        isolation: Option<shardgate_sql::IsolationLevel>,
        read_only: Option<bool>,
    ) -> Result<(), SessionError> {
        match scope {
            SetScope::Unwritten => {
                if self.state.transaction.is_active() {
                    return Err(SessionError::InTransaction);
                }
                if let Some(level) = isolation {
                    self.state.next_transaction.isolation = Some(isolation_sql(level));
                }
                if let Some(read_only) = read_only {
                    let access = if read_only {
                        AccessMode::ReadOnly
                    } else {
                        AccessMode::ReadWrite
                    };
                    self.state.next_transaction.access = access;
                }
                Ok(())
            }
            SetScope::Session => {
                self.refuse_inside_transaction()?;
                let mut wanted = self.state.settings.clone();
                let mysql = self.view.lex.flavor == shardgate_sql::Flavor::MySql;
                let name = |suffix: &str| {
                    SettingName::System(format!("{}_{suffix}", if mysql { "transaction" } else { "tx" }))
                };
                if let Some(level) = isolation {
                    wanted.set(
                        name("isolation"),
                        format!("'{}'", isolation_sql(level).replace(' ', "-")),
                    );
                }
                if let Some(read_only) = read_only {
                    wanted.set(name("read_only"), u8::from(read_only).to_string());
                }
                self.settle(wanted, &Changes::default(), Vec::new()).await
            }
            SetScope::Global | SetScope::Persist | SetScope::PersistOnly => Err(SessionError::SetGlobal),
        }
    }
}

/// Variables of the gateway's own; whether it was one.
fn own_variable(name: &str, value: &SetValue<'_>, changes: &mut Changes) -> Result<bool, SessionError> {
    let text = literal_text(value);
    let wrong = || SessionError::WrongValue {
        name: name.to_owned(),
        value: text.clone(),
    };
    match name {
        "autocommit" => changes.autocommit = Some(truth(value).ok_or_else(wrong)?),
        "query_timeout" => {
            changes.query_timeout = Some(match value {
                SetValue::Default => OwnTimeout::Configured,
                SetValue::Literal(Literal::Int(ms)) => OwnTimeout::Of(Duration::from_millis(*ms)),
                _ => return Err(wrong()),
            });
        }
        "scatter_errors_as_warnings" => changes.partial = Some(flag(value).ok_or_else(wrong)?),
        "allow_scatter" => changes.allow_scatter = Some(flag(value).ok_or_else(wrong)?),
        "workload" => {
            changes.olap = Some(match text.to_ascii_lowercase().as_str() {
                "olap" => true,
                "oltp" | "unspecified" | "default" => false,
                _ => return Err(wrong()),
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A switch that is off by default.
fn flag(value: &SetValue<'_>) -> Option<bool> {
    match value {
        SetValue::Default => Some(false),
        value => truth(value),
    }
}

fn truth(value: &SetValue<'_>) -> Option<bool> {
    match value {
        SetValue::Default => Some(true),
        SetValue::Bool(b) => Some(*b),
        SetValue::Literal(Literal::Int(n @ 0..=1)) => Some(*n == 1),
        SetValue::Word(_) | SetValue::Literal(Literal::String(_)) => {
            match literal_text(value).to_ascii_lowercase().as_str() {
                "on" | "true" => Some(true),
                "off" | "false" => Some(false),
                _ => None,
            }
        }
        SetValue::Null | SetValue::Literal(_) | SetValue::Negative(_) | SetValue::Expression => None,
    }
}

/// A charset that statements can be read in.
fn safe_charset(name: &str) -> Result<String, SessionError> {
    if charset_is_safe(name) {
        Ok(name.to_ascii_lowercase())
    } else {
        Err(SessionError::UnsafeCharset(name.to_owned()))
    }
}
