//! What no session may do through the gateway, whichever shard it chose: told from the statement alone, before it is
//! planned or prepared.

use bytes::Bytes;
use shardgate_sql::{
    AdminKind, Classified, ExplainFormat, Keyword, Lexed, Literal, ShowKind, StatementKind, TokenKind,
    classify, lex, parse_show,
};

use super::{Session, SessionError};
use crate::plan::{database_within_reach, is_of_server, within_reach};
use crate::tablet::SettingName;

impl Session {
    /// Refuses a statement that is not for clients of the gateway.
    pub(super) fn check_reach(&self, lexed: &Lexed<'_>, class: &Classified) -> Result<(), SessionError> {
        if let StatementKind::Explain {
            format: ExplainFormat::Shardgate,
            ..
        } = class.kind
        {
            // Nothing of it runs, and that it would be refused is what it tells.
            return Ok(());
        }
        self.check_kind(lexed, class)?;
        within_reach(lexed, class, &self.view.catalog)?;
        match class.kind {
            StatementKind::Show => self.check_shown(lexed),
            StatementKind::Prepare | StatementKind::Execute => self.check_text(lexed),
            _ => Ok(()),
        }
    }

    fn check_kind(&self, lexed: &Lexed<'_>, class: &Classified) -> Result<(), SessionError> {
        use StatementKind as S;
        let (what, hint) = match class.kind {
            S::Xa => (
                "XA",
                "use BEGIN and COMMIT; a transaction over several shards commits shard after shard",
            ),
            S::Account => (
                "account management through the gateway",
                "create users on the tablets and in the gateway's configuration",
            ),
            // A server would not know the word either; it says so in this way.
            S::Other if lexed.first_keyword().is_none() => {
                return Err(SessionError::Syntax(format!("near '{}'", near(lexed))));
            }
            S::Other if lexed.is_keyword(0, Keyword::Get) => ("GET DIAGNOSTICS", "use SHOW WARNINGS"),
            S::Admin(kind) if holds_a_server(lexed, kind) => (
                "a statement that holds or steers one server",
                "run it on the tablet itself",
            ),
            kind @ S::Ddl { .. } if is_of_server(kind) => (
                "CREATE, ALTER or DROP of a database or of something else of a whole server",
                "keyspaces are in the gateway's configuration; create their databases on the tablets",
            ),
            S::LockTables if !self.state.autocommit => (
                "LOCK TABLES with autocommit off",
                "SET autocommit = 1 first, or lock rows with SELECT ... FOR UPDATE",
            ),
            S::SetStatement => (
                "SET STATEMENT ... FOR",
                "SET the variable for the session, run the statement, and SET it back",
            ),
            _ => return Ok(()),
        };
        Err(SessionError::Unsupported { what, hint })
    }

    /// The database that a SHOW is about.
    fn check_shown(&self, lexed: &Lexed<'_>) -> Result<(), SessionError> {
        let Some(show) = parse_show(lexed) else {
            return Ok(());
        };
        let created = show.name.filter(|_| show.kind == ShowKind::CreateDatabase);
        match show.database.or(created) {
            Some(name) => Ok(database_within_reach(&name, &self.view.catalog)?),
            None => Ok(()),
        }
    }

    /// `PREPARE s FROM 'text'` and `EXECUTE IMMEDIATE 'text'`: the text counts, if the gateway knows it.
    fn check_text(&self, lexed: &Lexed<'_>) -> Result<(), SessionError> {
        let is_intro = |at: usize| matches!(lexed.keyword(at), Some(Keyword::From | Keyword::Immediate));
        let Some(at) = (0..lexed.len()).find(|at| is_intro(*at)).map(|at| at + 1) else {
            return Ok(());
        };
        let text = match lexed.literal(at) {
            Some(Literal::String(text)) => text.into_owned(),
            _ => match self.variable_text(lexed, at) {
                Some(text) => text,
                None => return Ok(()),
            },
        };
        let Ok(inner) = lex(&text, lexed.options()) else {
            return Ok(());
        };
        let class = classify(&inner);
        self.check_kind(&inner, &class)?;
        if class.kind == StatementKind::Set && sets_global(&inner) {
            return Err(SessionError::SetGlobal);
        }
        within_reach(&inner, &class, &self.view.catalog)?;
        match class.kind {
            StatementKind::Show => self.check_shown(&inner),
            _ => Ok(crate::plan::tables_within_reach(
                &inner,
                class.kind,
                &self.view.catalog,
            )?),
        }
    }

    /// The text that a user variable was SET to.
    fn variable_text(&self, lexed: &Lexed<'_>, at: usize) -> Option<Vec<u8>> {
        if !lexed.is(at, TokenKind::UserVariable) {
            return None;
        }
        let name = String::from_utf8_lossy(&lexed.variable(at)?).to_lowercase();
        let value = Bytes::copy_from_slice(self.state.settings.get(&SettingName::User(name))?.as_bytes());
        let value = lex(&value, lexed.options()).ok()?;
        (0..value.len()).find_map(|at| match value.literal(at)? {
            Literal::String(text) => Some(text.into_owned()),
            _ => None,
        })
    }
}

fn sets_global(lexed: &Lexed<'_>) -> bool {
    (0..lexed.len()).any(|at| {
        let scope = |name: &[u8]| {
            [&b"global."[..], b"persist.", b"persist_only."]
                .iter()
                .any(|s| name.get(..s.len()).is_some_and(|n| n.eq_ignore_ascii_case(s)))
        };
        lexed.is_keyword(at, Keyword::Global)
            || lexed.is_word(at, "persist")
            || lexed.is_word(at, "persist_only")
            || lexed.is(at, TokenKind::SystemVariable) && lexed.variable(at).is_some_and(|n| scope(&n))
    })
}

/// Whether a statement locks a whole server, or steers it: nothing for one tablet of many.
fn holds_a_server(lexed: &Lexed<'_>, kind: AdminKind) -> bool {
    let has = |word| (0..lexed.len()).any(|at| lexed.is_word(at, word));
    match kind {
        AdminKind::Server => true,
        AdminKind::Flush => has("lock") || has("export"),
        AdminKind::Analyze
        | AdminKind::Optimize
        | AdminKind::Check
        | AdminKind::Checksum
        | AdminKind::Repair
        | AdminKind::CacheIndex
        | AdminKind::Help => false,
    }
}

/// The beginning of a statement, as the servers quote it in a syntax error.
fn near(lexed: &Lexed<'_>) -> String {
    String::from_utf8_lossy(&lexed.src()[lexed.span(0..lexed.len())])
        .chars()
        .take(80)
        .collect()
}
