//! SET: system variables, user variables, names, transactions.

use sqlparser::ast::{ContextModifier, Expr, Set, Statement, Value as AstValue};

use super::parse::Parsed;
use super::session::Session;
use super::translate::{Facts, Translator};
use super::types::Ty;
use super::value::{self, Value};
use super::vars;
use crate::error::{SqlError, SqlResult};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Session,
    Global,
}

impl Session {
    pub(super) fn set(&mut self, parsed: &Parsed) -> SqlResult<()> {
        // `SET CHARACTER SET x` has no tree of its own.
        if parsed.is(1, "CHARACTER") && parsed.is(2, "SET") || parsed.is(1, "CHARSET") {
            let at = if parsed.is(1, "CHARSET") { 2 } else { 3 };
            let name = parsed.word(at).unwrap_or("").to_owned();
            return self.set_names(&name, None);
        }
        if let Some((names, rest)) = parsed.split_names()? {
            self.set(&names)?;
            return self.set(&rest);
        }
        if let Some(scoped) = parsed.with_scopes()? {
            return self.set(&scoped);
        }
        let Statement::Set(set) = parsed.tree()? else {
            return Err(SqlError::unsupported(parsed.shown()));
        };
        match set {
            Set::SetNames {
                charset_name,
                collation_name,
            } => self.set_names(&charset_name.value, collation_name.as_deref()),
            Set::SetNamesDefault {} => self.set_names("utf8mb4", None),
            Set::SingleAssignment {
                scope,
                variable,
                values,
                ..
            } => {
                let [value] = values.as_slice() else {
                    return Err(SqlError::syntax("near ','"));
                };
                self.assign(scope, &variable.to_string(), value)
            }
            Set::MultipleAssignments { assignments } => {
                for a in &assignments {
                    self.assign(a.scope, &a.name.to_string(), &a.value)?;
                }
                Ok(())
            }
            Set::SetTimeZone { value, .. } => self.assign(None, "time_zone", &value),
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn set_names(&mut self, charset: &str, collation: Option<&str>) -> SqlResult<()> {
        let charset = if charset.eq_ignore_ascii_case("default") {
            "utf8mb4"
        } else {
            vars::charset(charset)?
        };
        let defaults = self.tablet.globals();
        for name in [
            "character_set_client",
            "character_set_connection",
            "character_set_results",
        ] {
            self.vars.set(name, Some(charset), &defaults)?;
        }
        let collation = collation.map_or_else(|| format!("{charset}_general_ci"), str::to_owned);
        self.vars.set("collation_connection", Some(&collation), &defaults)
    }

    fn assign(&mut self, scope: Option<ContextModifier>, name: &str, e: &Expr) -> SqlResult<()> {
        let bare = name.replace('`', "");
        if let Some(user) = bare.strip_prefix('@').filter(|n| !n.starts_with('@')) {
            let (value, ty) = self.evaluate(e)?;
            self.user_vars.insert(user.to_lowercase(), (value, ty));
            if self.user_vars.len() > 10_000 {
                return Err(SqlError::unsupported("so many user variables"));
            }
            return Ok(());
        }
        let mut scope = match scope {
            Some(ContextModifier::Global) => Scope::Global,
            _ => Scope::Session,
        };
        let mut name = bare.trim_start_matches("@@").to_lowercase();
        for (prefix, meant) in [
            ("global.", Scope::Global),
            ("persist.", Scope::Global),
            ("session.", Scope::Session),
            ("local.", Scope::Session),
        ] {
            if let Some(rest) = name.strip_prefix(prefix) {
                scope = meant;
                name = rest.to_owned();
            }
        }
        let value = self.setting(e)?;
        self.set_variable(scope, &name, value.as_deref())
    }

    /// The text a variable is set to; `None` is DEFAULT.
    fn setting(&mut self, e: &Expr) -> SqlResult<Option<String>> {
        Ok(match e {
            Expr::Identifier(word) if word.quote_style.is_none() && !word.value.starts_with('@') => {
                if word.value.eq_ignore_ascii_case("default") {
                    None
                } else {
                    Some(word.value.clone())
                }
            }
            Expr::Value(v) => match &v.value {
                AstValue::SingleQuotedString(s) => Some(s.clone()),
                // What SET character_set_results = NULL means to a server that converts nothing.
                AstValue::Null => Some("binary".to_owned()),
                AstValue::Boolean(b) => Some(if *b { "ON" } else { "OFF" }.to_owned()),
                _ => self.evaluated_text(e)?,
            },
            _ => self.evaluated_text(e)?,
        })
    }

    fn evaluated_text(&mut self, e: &Expr) -> SqlResult<Option<String>> {
        let (value, ty) = self.evaluate(e)?;
        Ok(Some(value::to_text(&value, &ty).unwrap_or_default()))
    }

    /// An expression's value, outside any table.
    pub(crate) fn evaluate(&mut self, e: &Expr) -> SqlResult<(Value, Ty)> {
        let catalog = self.catalog_for_query()?;
        let tx = Translator::new(&catalog, &*self as &dyn Facts).expr(e)?;
        if let Some(value) = tx.konst {
            return Ok((value, tx.ty));
        }
        let rows = self.collect(&format!("SELECT {}", tx.sql), std::slice::from_ref(&tx.ty))?;
        Ok((rows.into_iter().flatten().next().unwrap_or(Value::Null), tx.ty))
    }

    fn set_variable(&mut self, scope: Scope, name: &str, value: Option<&str>) -> SqlResult<()> {
        let global_only = vars::is_global_only(name);
        if scope == Scope::Global {
            return self.tablet.set_global(name, value);
        }
        if global_only {
            return Err(SqlError::new(
                1229,
                *b"HY000",
                format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"),
            ));
        }
        let defaults = self.tablet.globals();
        match name {
            "autocommit" => {
                let was = self.vars.on("autocommit");
                self.vars.set(name, value, &defaults)?;
                if !was && self.vars.on("autocommit") {
                    self.commit()?;
                }
                Ok(())
            }
            "last_insert_id" => {
                self.last_insert_id = value.and_then(|v| v.parse().ok()).unwrap_or(0);
                Ok(())
            }
            "foreign_key_checks" => {
                let before = self.vars.clone();
                self.vars.set(name, value, &defaults)?;
                if before.text(name) != self.vars.text(name)
                    && let Err(e) = self.apply_foreign_keys()
                {
                    self.vars = before;
                    return Err(e);
                }
                Ok(())
            }
            _ => self.vars.set(name, value, &defaults),
        }
    }

    /// `SET [SESSION | GLOBAL] TRANSACTION ...`; without a scope it is for the next transaction only.
    pub(super) fn set_transaction(&mut self, parsed: &Parsed) -> SqlResult<()> {
        let (global, session) = (
            parsed.is(1, "GLOBAL"),
            parsed.is(1, "SESSION") || parsed.is(1, "LOCAL"),
        );
        let next = !global && !session;
        if next && self.txn.active {
            return Err(SqlError::new(
                1568,
                *b"25001",
                "Transaction characteristics can't be changed while a transaction is in progress",
            ));
        }
        let words: Vec<String> = parsed.words.iter().map(|w| w.text.to_uppercase()).collect();
        let has = |list: &[&str]| {
            words
                .windows(list.len())
                .any(|w| w.iter().zip(list).all(|(a, b)| a == b))
        };
        let level = [
            (&["READ", "UNCOMMITTED"][..], "READ-UNCOMMITTED"),
            (&["READ", "COMMITTED"], "READ-COMMITTED"),
            (&["REPEATABLE", "READ"], "REPEATABLE-READ"),
            (&["SERIALIZABLE"], "SERIALIZABLE"),
        ]
        .into_iter()
        .find(|(list, _)| has(list))
        .map(|(_, name)| name);
        let read_only = if has(&["READ", "ONLY"]) {
            Some(true)
        } else if has(&["READ", "WRITE"]) {
            Some(false)
        } else {
            None
        };
        if level.is_none() && read_only.is_none() {
            return Err(SqlError::syntax("near 'TRANSACTION'"));
        }
        let scope = if global { Scope::Global } else { Scope::Session };
        if let Some(level) = level {
            if next {
                self.next_isolation = Some(level.to_owned());
            } else {
                self.set_variable(scope, "transaction_isolation", Some(level))?;
            }
        }
        if let Some(read_only) = read_only {
            if next {
                self.next_read_only = Some(read_only);
            } else {
                self.set_variable(
                    scope,
                    "transaction_read_only",
                    Some(if read_only { "1" } else { "0" }),
                )?;
            }
        }
        Ok(())
    }
}
