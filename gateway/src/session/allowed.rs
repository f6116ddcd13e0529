//! What a statement is allowed: where it may run, over how many shards, and for how long.

use std::time::Duration;

use shardgate_sql::{Classified, Lexed};

use super::planned::user_variables;
use super::shared::limit;
use super::{Session, SessionError};
use crate::base::Role;
use crate::exec::Partial;
use crate::plan::Bound;
use crate::tablet::{SettingName, limit_name};

impl Session {
    /// State of the session that the statement needs or leaves, against where it goes.
    pub(super) fn check_state(
        &self,
        lexed: &Lexed<'_>,
        class: &Classified,
        bound: &Bound,
    ) -> Result<(), SessionError> {
        if self.state.target.role == Role::Replica && bound.class.needs_primary() {
            return Err(SessionError::Unsupported {
                what: "a write or a locking read on replicas",
                hint: "USE the keyspace without @replica first",
            });
        }
        if bound.legs.len() > 1 && self.state.settings.system("sql_select_limit").is_some() {
            return Err(SessionError::Unsupported {
                what: "sql_select_limit over several shards",
                hint: "write LIMIT in the statement",
            });
        }
        if class.pin.is_some() && bound.legs.len() > 1 {
            return Err(SessionError::Unsupported {
                what: "session state on more than one shard",
                hint: "choose one shard first: USE keyspace:shard",
            });
        }
        if !class.uses_user_variables || self.state.pinned_variables.is_empty() {
            return Ok(());
        }
        let home = self.state.held.reserved().map(|l| &l.shard);
        let elsewhere = bound.legs.iter().any(|leg| Some(&leg.shard) != home);
        match user_variables(lexed)
            .into_iter()
            .find(|v| self.state.pinned_variables.contains(v))
        {
            Some(name) if elsewhere => Err(SessionError::PinnedVariable(name)),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a statement for several shards where the configuration says so and the client does not insist.
    pub(super) fn check_scatter(&self, lexed: &Lexed<'_>, bound: &Bound) -> Result<(), SessionError> {
        let several = bound.legs.len() > 1 && !bound.is_ddl;
        if !several || !self.view.options.no_scatter || self.state.allow_scatter {
            return Ok(());
        }
        if lexed.directives().is_some_and(|d| d.allow_scatter) {
            return Ok(());
        }
        Err(SessionError::ScatterRefused {
            shards: bound.legs.len(),
        })
    }

    /// Whether the client takes an answer in part.
    pub(super) fn partial(&self, lexed: &Lexed<'_>) -> Partial {
        let asked = lexed.directives().is_some_and(|d| d.scatter_errors_as_warnings);
        if asked {
            Partial::Accepted
        } else {
            self.state.partial
        }
    }

    pub(super) fn role(&self, bound: &Bound) -> Role {
        if bound.class.needs_primary() {
            Role::Primary
        } else {
            self.state.target.role
        }
    }

    /// How long the statement may take to its first row: the tightest of what the configuration, the session and the
    /// statement's own directive say.
    pub(super) fn timeout(&self, is_ddl: bool, lexed: &Lexed<'_>) -> Duration {
        let configured = if is_ddl {
            self.view.options.ddl_timeout
        } else {
            self.configured_timeout()
        };
        let directive = lexed
            .directives()
            .and_then(|d| d.query_timeout_ms)
            .map(Duration::from_millis);
        tightest(directive.or(self.state.query_timeout), configured)
    }

    /// What `@@query_timeout` is: the limit of a statement that says nothing of its own.
    pub(super) fn own_timeout(&self) -> Duration {
        tightest(self.state.query_timeout, self.configured_timeout())
    }

    fn configured_timeout(&self) -> Duration {
        if self.state.olap {
            self.view.options.olap_timeout
        } else {
            self.view.options.query_timeout
        }
    }

    /// How long one attempt may take: DDL, batch work and commands without a limit have none.
    pub(super) fn tablet_timeout(&self, is_ddl: bool, timeout: Duration) -> Option<Duration> {
        let limited = !is_ddl && !self.state.olap && !timeout.is_zero();
        limited.then(|| limit(self.view.options.tablet_timeout)).flatten()
    }

    /// The tablets' own limit, to be lifted; `None` if there is none, or the client set one.
    pub(super) fn own_limit(&self) -> Option<SettingName> {
        let name = limit_name(self.view.lex.flavor);
        let is_limited = !self.view.options.tablet_timeout.is_zero();
        (is_limited && self.state.settings.get(&name).is_none()).then_some(name)
    }
}

/// A limit that was asked for within the configured one. Zero lifts it, as an operator's own query may ask.
fn tightest(asked: Option<Duration>, configured: Duration) -> Duration {
    match asked {
        Some(Duration::ZERO) => Duration::ZERO,
        Some(asked) if configured.is_zero() => asked,
        Some(asked) => asked.min(configured),
        None => configured,
    }
}
