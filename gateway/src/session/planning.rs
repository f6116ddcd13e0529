//! A statement's plan, and its way to the shards.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{Fingerprint, Lexed};
use smallvec::SmallVec;

use super::counted::PlanType;
use super::kind_times::kind_of;
use super::query::Form;
use super::{Session, SessionError};
use crate::base::{KeyspaceName, ShardId, ShardName, clock};
use crate::exec::Partial;
use crate::plan::{BindInput, Bound, BoundTo, Plan, PlanError, PlanInput, PlanKey, SessionFacts, plan};

impl Session {
    /// A plan made before for the same statement, or a new one.
    pub(super) fn plan(&self, lexed: &Lexed<'_>) -> Result<Arc<Plan>, SessionError> {
        let target = &self.state.target;
        let keyspace = target
            .keyspace
            .as_ref()
            .filter(|k| !super::target::is_virtual(k.as_str()));
        self.plan_for(lexed, keyspace, target.shard.as_ref())
    }

    /// A plan for a statement that any one shard answers alike: about a table, not about its rows.
    pub(super) async fn plan_for_any(
        &mut self,
        lexed: &Lexed<'_>,
        named: Option<&str>,
    ) -> Result<Arc<Plan>, SessionError> {
        let target = &self.state.target;
        let named = named
            .and_then(|n| self.view.catalog.keyspace(n))
            .map(|k| k.name.clone());
        let keyspace = match named.or_else(|| target.keyspace.clone()) {
            Some(name) if !super::target::is_virtual(name.as_str()) => name,
            Some(_) | None => {
                let any = self.view.catalog.any_keyspace().ok_or(PlanError::NoKeyspace)?;
                any.name.clone()
            }
        };
        let shard = match self.state.target.shard.clone() {
            Some(own) if self.state.target.keyspace.as_ref() == Some(&keyspace) => own,
            Some(_) | None => self.shard_asked(&keyspace).await?.id.shard,
        };
        self.plan_for(lexed, Some(&keyspace), Some(&shard))
    }

    pub(super) fn plan_for(
        &self,
        lexed: &Lexed<'_>,
        keyspace: Option<&KeyspaceName>,
        shard: Option<&ShardName>,
    ) -> Result<Arc<Plan>, SessionError> {
        let fingerprint = Fingerprint::of(lexed);
        let key = PlanKey {
            fingerprint: &fingerprint,
            keyspace,
            shard,
            sql_mode: self.state.sql_mode,
            version: self.view.catalog.version(),
        };
        if let Some(found) = self.shared.plans.get(&key, lexed) {
            return Ok(found);
        }
        let input = PlanInput {
            statement: lexed,
            catalog: &self.view.catalog,
            keyspace,
            shard,
        };
        let made = Arc::new(plan(&input)?.of_kind(kind_of(lexed)));
        self.shared.plans.insert(&key, Arc::clone(&made));
        Ok(made)
    }

    /// Binds a plan; `prefer` is the shard for what any can answer, where the session holds none.
    pub(super) fn bind(
        &self,
        plan: &Plan,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        form: Form<'_>,
        prefer: Option<&ShardId>,
    ) -> Result<Bound, SessionError> {
        let charset = self.text_charset();
        let params: SmallVec<[_; 4]> = match form {
            Form::Text => SmallVec::new(),
            Form::Prepared(bound) => (0..bound.len())
                .map(|i| super::values::of_param(bound.value(i), charset))
                .collect(),
        };
        let facts = if plan.asks_session() {
            self.facts()
        } else {
            SessionFacts::default()
        };
        let held = self.held_shard();
        let prefer = prefer.or(held.as_ref());
        Ok(plan.bind(&BindInput {
            sql,
            statement: lexed,
            params: &params,
            facts: &facts,
            now: self.now(),
            charset,
            prefer,
        })?)
    }

    /// The character set by which a literal's bytes are a value. A server makes it one of `character_set_connection`; where
    /// that is another than the client's, the bytes are known only if they are the same in both.
    pub(super) fn text_charset(&self) -> &str {
        let settings = &self.state.settings;
        let set = settings
            .system("character_set_connection")
            .or_else(|| settings.system("collation_connection"));
        let Some(set) = set.map(|s| s.trim_matches('\'').to_ascii_lowercase()) else {
            return &self.state.charset;
        };
        let connection = set.split('_').next().unwrap_or_default();
        if connection == self.state.charset {
            return &self.state.charset;
        }
        match connection {
            "ucs2" | "utf16" | "utf16le" | "utf32" => "utf16",
            _ => "ascii",
        }
    }

    /// What session functions answer.
    pub(super) fn facts(&self) -> SessionFacts {
        let handle = &self.registration.handle;
        let host = handle
            .host
            .rsplit_once(':')
            .map_or(handle.host.as_str(), |(host, _)| host);
        SessionFacts {
            last_insert_id: self.state.last_insert_id,
            found_rows: self.state.found_rows,
            row_count: self.state.row_count,
            connection_id: u64::from(handle.id),
            database: self.state.target.keyspace.as_ref().map(ToString::to_string),
            version: self.view.options.server_version.clone(),
            user: format!("{}@{host}", handle.user()),
            current_user: format!("{}@%", handle.user()),
            autocommit: self.state.autocommit,
            warning_count: self.state.warning_count,
            error_count: self.state.error_count(),
            query_timeout_ms: u64::try_from(self.own_timeout().as_millis()).unwrap_or(u64::MAX),
            workload: if self.state.olap { "olap" } else { "oltp" },
            allow_scatter: self.state.allow_scatter,
            partial: self.state.partial == Partial::Accepted,
        }
    }

    /// A shard whose connection the session holds anyway: where any shard will do, it is the one.
    pub(super) fn held_shard(&self) -> Option<ShardId> {
        self.state
            .held
            .reserved()
            .map(|l| l.shard.clone())
            .or_else(|| self.state.held.transaction_shards().next().cloned())
    }

    /// The moment of a statement: `SET timestamp` holds it still.
    pub(super) fn now(&self) -> Duration {
        let set = self.state.settings.system("timestamp");
        let seconds = set.and_then(|text| text.parse::<f64>().ok()).filter(|s| *s > 0.0);
        seconds
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
            .unwrap_or_else(clock::wall)
    }

    /// Vitess's name of the plan type: to all shards of the keyspace, to some, to one.
    pub(super) fn plan_type(&self, bound: &Bound) -> PlanType {
        match bound.to {
            BoundTo::Any | BoundTo::One => PlanType::Passthrough,
            BoundTo::Every => PlanType::DirectDdl,
            BoundTo::Several => {
                let keyspace = bound.legs.first().map(|leg| leg.shard.keyspace.as_str());
                let shards = keyspace
                    .and_then(|k| self.view.catalog.keyspace(k))
                    .map(|k| k.shards.len());
                if shards == Some(bound.legs.len()) {
                    PlanType::Scatter
                } else {
                    PlanType::MultiShard
                }
            }
        }
    }

    /// Learns a keyspace's tables anew.
    pub(super) async fn relearn(&mut self, plan: &Plan) {
        (self.shared.relearn)(plan.keyspace().name.clone()).await;
        self.view = self.shared.view.load_full();
    }
}
