//! `SET`: what the session keeps and replays, what the gateway obeys itself, what it refuses.
//!
//! A portable value is a literal. It is tried at once on one tablet, so that a bad one is an error here and now, and
//! kept only if the tablet took it. An expression is worked out by a tablet first, and its value kept.

use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{
    Classified, Lexed, Literal, SetItem, SetScope, SetValue, SqlMode, charset_is_safe, lex, parse_set,
};
use shardgate_wire::protocol::BINARY;
use shardgate_wire::{ColumnDef, ColumnType};

use super::query::Way;
use super::transact::isolation_sql;
use super::{Session, SessionError};
use crate::base::ShardId;
use crate::exec::{AccessMode, ExecError, Leased, SLOT_WAIT};
use crate::plan::with_session_facts;
use crate::tablet::{SettingName, Settings, TabletError};

/// Variables whose value would say something untrue, or work on one connection of many only.
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

/// An expression that a tablet has to work out.
struct Pending {
    name: SettingName,
    sql: Vec<u8>,
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
        if let Some(on) = changes.autocommit {
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
        if let Some(charset) = changes.charset {
            self.state.charset = charset;
        }
        for name in changes.unpinned {
            self.state.pinned_variables.remove(&name);
        }
        self.put_ok(way.more);
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
                });
                changes.charset = Some(name);
            }
            SetItem::Transaction { .. } => {
                return Err(SessionError::Syntax("SET TRANSACTION stands alone".into()));
            }
        }
        Ok(())
    }

    /// Tries the settings on a tablet and keeps them if it takes them.
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
        let shard = self.any_shard()?;
        let mut lease = self.borrow(&shard).await?;
        let tried = self.try_on(&mut lease, wanted, changes, pending).await;
        self.give_back(lease);
        let Tried {
            settings,
            sql_mode,
            charset,
        } = tried?;
        if let Some(mode) = sql_mode {
            self.state.sql_mode = mode;
        }
        if let Some(charset) = charset {
            self.state.charset = charset;
        }
        self.state.settings = settings;
        Ok(())
    }

    /// Works out expressions on a tablet and sets everything there.
    async fn try_on(
        &mut self,
        lease: &mut Leased,
        mut wanted: Settings,
        changes: &Changes,
        pending: Vec<Pending>,
    ) -> Result<Tried, SessionError> {
        let shard = lease.shard.clone();
        let mut charset = None;
        for Pending { name, sql } in pending {
            let sql = [b"SELECT ", sql.as_slice()].concat();
            let (column, value) = self.ask(&shard, lease.conn.query_one(&sql)).await?;
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
        self.ask(&shard, lease.conn.apply(&wanted)).await?;
        let mut sql_mode = None;
        if changes.sql_mode {
            let (_, mode) = self
                .ask(&shard, lease.conn.query_one(b"SELECT @@session.sql_mode"))
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

    /// A value that a tablet worked out, as a literal of the same type.
    fn value_sql(&self, column: &ColumnDef, value: &[u8], is_user: bool) -> String {
        let text = || String::from_utf8_lossy(value).into_owned();
        match column.column_type {
            ColumnType::Tiny
            | ColumnType::Short
            | ColumnType::Int24
            | ColumnType::Long
            | ColumnType::LongLong
            | ColumnType::Year => {
                if is_user && column.is_unsigned() {
                    return format!("CAST({} AS UNSIGNED)", text());
                }
                text()
            }
            ColumnType::Decimal | ColumnType::NewDecimal => text(),
            // An exponent keeps it approximate.
            ColumnType::Float | ColumnType::Double => {
                let text = text();
                if text.contains(['e', 'E']) {
                    text
                } else {
                    format!("{text}e0")
                }
            }
            _ if column.charset == BINARY && is_user => format!("x'{}'", hex(value)),
            _ => self.string_sql(value),
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
        let pinned = super::planned::user_variables(lexed)
            .into_iter()
            .find(|v| self.state.pinned_variables.contains(v));
        pinned.map_or(Ok(()), |name| Err(SessionError::PinnedVariable(name)))
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
                let shard = self.any_shard()?;
                let mut lease = self.borrow(&shard).await?;
                let applied = self.ask(&shard, lease.conn.apply(&wanted)).await;
                self.give_back(lease);
                applied?;
                self.state.settings = wanted;
                Ok(())
            }
            SetScope::Global | SetScope::Persist | SetScope::PersistOnly => Err(SessionError::SetGlobal),
        }
    }

    /// A shard to try settings on: of the session's keyspace, or any.
    pub(super) fn any_shard(&self) -> Result<ShardId, SessionError> {
        if let Some(held) = self.held_shard() {
            return Ok(held);
        }
        let target = &self.state.target;
        let own = target
            .keyspace
            .as_ref()
            .and_then(|k| self.view.catalog.keyspace(k.as_str()));
        let keyspace = own.or_else(|| self.view.catalog.any_keyspace());
        let keyspace = keyspace.ok_or(crate::plan::PlanError::NoKeyspace)?;
        let index = target
            .shard
            .as_ref()
            .and_then(|s| keyspace.shard_index(s))
            .unwrap_or(0);
        let shard = keyspace
            .shards
            .get(index)
            .ok_or(crate::plan::PlanError::NoKeyspace)?;
        Ok(shard.id.clone())
    }

    /// A connection for the gateway's own questions, with the session's settings: one that the session holds, or a pooled
    /// one. It goes back by [`Self::give_back`], whatever the answer was.
    pub(super) async fn borrow(&mut self, shard: &ShardId) -> Result<Leased, SessionError> {
        let settings = self.state.settings.clone();
        if let Some(mut lease) = self.state.held.take_any(shard) {
            let applied = self.ask(shard, lease.conn.apply(&settings)).await;
            if let Err(e) = applied {
                self.give_back(lease);
                return Err(e);
            }
            return Ok(lease);
        }
        let role = self.state.target.role;
        let found = self
            .shared
            .fleet
            .pool(shard, role, super::command::found_rows(&self.client));
        let pool = found.ok_or_else(|| ExecError::NoTablet {
            shard: shard.clone(),
            role: role.as_str(),
        })?;
        let mut wait = self.view.options.query_timeout;
        if !self.state.held.is_empty() {
            // Whoever holds a slot must not wait long for another.
            wait = if wait.is_zero() {
                SLOT_WAIT
            } else {
                wait.min(SLOT_WAIT)
            };
        }
        let deadline = self.limits(wait).at();
        let opening = async {
            let mut conn = pool.checkout(&settings, deadline).await?;
            conn.apply(&settings).await?;
            Ok::<_, TabletError>(conn)
        };
        let conn = self.ask(shard, opening).await?;
        Ok(Leased {
            shard: shard.clone(),
            role,
            conn,
            in_transaction: false,
            reserved: None,
        })
    }

    /// Takes back a connection that [`Self::borrow`] gave. One that was lost takes with it what it held.
    pub(super) fn give_back(&mut self, lease: Leased) {
        if lease.conn.is_usable() {
            self.state.held.put(lease);
            return;
        }
        if lease.in_transaction {
            self.state.transaction.fail(format!("{} was lost", lease.shard));
        }
        if let Some(claim) = &lease.reserved {
            self.state.held.lose(claim.what);
        }
    }

    /// Waits for a tablet's answer, within the session's limits.
    pub(super) async fn ask<T>(
        &mut self,
        shard: &ShardId,
        what: impl Future<Output = Result<T, TabletError>>,
    ) -> Result<T, SessionError> {
        let limits = super::limits_of(
            &self.registration.handle.kill,
            &self.view.options,
            self.view.options.query_timeout,
        );
        match limits.watch(&mut self.client, what).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(e)) => Err(ExecError::tablet(shard.clone(), e).into()),
            Err(interrupt) => Err(interrupt
                .into_error(shard.to_string(), "; nothing was executed")
                .into()),
        }
    }

    /// A literal as SQL that means the same under every `sql_mode`.
    fn literal_sql(&self, value: &SetValue<'_>) -> String {
        match value {
            SetValue::Default => "DEFAULT".into(),
            SetValue::Null | SetValue::Expression => "NULL".into(),
            SetValue::Bool(b) => u8::from(*b).to_string(),
            SetValue::Word(word) => self.string_sql(word),
            SetValue::Negative(literal) => format!("-{}", self.plain_literal(literal)),
            SetValue::Literal(literal) => self.plain_literal(literal),
        }
    }

    fn plain_literal(&self, literal: &Literal<'_>) -> String {
        match literal {
            Literal::String(bytes) => self.string_sql(bytes),
            other => other_sql(other),
        }
    }

    fn string_sql(&self, bytes: &[u8]) -> String {
        let plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'\'' | b'\\') || *b == b' ';
        if bytes.iter().all(plain) {
            return format!("'{}'", String::from_utf8_lossy(bytes));
        }
        let hex = hex(bytes);
        format!("_{} x'{hex}'", self.state.charset)
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

fn literal_text(value: &SetValue<'_>) -> String {
    match value {
        SetValue::Default => "DEFAULT".into(),
        SetValue::Null => "NULL".into(),
        SetValue::Bool(b) => b.to_string(),
        SetValue::Word(word) | SetValue::Literal(Literal::String(word)) => {
            String::from_utf8_lossy(word).into_owned()
        }
        SetValue::Literal(literal) => other_sql(literal),
        SetValue::Negative(literal) => format!("-{}", other_sql(literal)),
        SetValue::Expression => "an expression".into(),
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

/// A literal that is not a plain string, as SQL.
fn other_sql(literal: &Literal<'_>) -> String {
    match literal {
        Literal::Int(n) => n.to_string(),
        Literal::Decimal(text) | Literal::Float(text) => (*text).to_owned(),
        Literal::String(bytes) | Literal::NationalString(bytes) => format!("_utf8mb4 x'{}'", hex(bytes)),
        Literal::Hex(bytes) | Literal::Bit(bytes) => format!("x'{}'", hex(bytes)),
        Literal::Placeholder => "?".to_owned(),
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{b:02x}");
            out
        })
}
