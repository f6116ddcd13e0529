//! SHOW.

use std::ops::Range;

use super::{end, name_or_string, text};
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::literal::Literal;
use crate::token::TokenKind;

/// A SHOW statement's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    /// What to show.
    pub kind: ShowKind,
    /// FULL
    pub full: bool,
    /// GLOBAL
    pub global: bool,
    /// The object's name: the table of COLUMNS, INDEX and CREATE TABLE, the name behind CREATE DATABASE.
    pub name: Option<String>,
    /// The database: behind FROM or IN, or before the dot of the name.
    pub database: Option<String>,
    /// The pattern of LIKE.
    pub like: Option<String>,
    /// The tokens behind WHERE.
    pub filter: Option<Range<usize>>,
    /// The tokens behind LIMIT.
    pub limit: Option<Range<usize>>,
}

/// What a SHOW shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowKind {
    /// DATABASES, SCHEMAS
    Databases,
    /// TABLES
    Tables,
    /// TABLE STATUS
    TableStatus,
    /// OPEN TABLES
    OpenTables,
    /// COLUMNS, FIELDS
    Columns,
    /// INDEX, INDEXES, KEYS
    Index,
    /// TRIGGERS
    Triggers,
    /// EVENTS
    Events,
    /// PROCEDURE STATUS
    ProcedureStatus,
    /// FUNCTION STATUS
    FunctionStatus,
    /// CREATE TABLE
    CreateTable,
    /// CREATE VIEW
    CreateView,
    /// CREATE DATABASE, CREATE SCHEMA
    CreateDatabase,
    /// CREATE of something else: the word behind it, in capitals.
    CreateOther(String),
    /// WARNINGS
    Warnings,
    /// COUNT(*) WARNINGS
    CountWarnings,
    /// ERRORS
    Errors,
    /// COUNT(*) ERRORS
    CountErrors,
    /// PROCESSLIST
    ProcessList,
    /// VARIABLES
    Variables,
    /// STATUS
    Status,
    /// ENGINES, STORAGE ENGINES
    Engines,
    /// PLUGINS
    Plugins,
    /// PRIVILEGES
    Privileges,
    /// GRANTS
    Grants,
    /// COLLATION
    Collation,
    /// CHARACTER SET, CHARSET
    CharacterSet,
    /// `VITESS_SHARDS`
    VitessShards,
    /// `VITESS_TABLETS`
    VitessTablets,
    /// `VITESS_KEYSPACES`, KEYSPACES
    VitessKeyspaces,
    /// `VITESS_TARGET`
    VitessTarget,
    /// SHARDGATE topic: the topic in small letters, empty if there is none.
    Shardgate(String),
    /// Another: its first word in capitals.
    Other(String),
}

/// Reads a SHOW. Of a kind it does not know it gives [`ShowKind::Other`] and what clauses it finds; `None` where a
/// clause does not make sense.
pub fn parse_show(lexed: &Lexed<'_>) -> Option<Show> {
    use Keyword as K;
    if !lexed.is_keyword(0, K::Show) || end(lexed) < 2 {
        return None;
    }
    let mut show = Show {
        kind: ShowKind::Other(String::new()),
        full: false,
        global: false,
        name: None,
        database: None,
        like: None,
        filter: None,
        limit: None,
    };
    let mut at = 1;
    loop {
        match lexed.keyword(at) {
            Some(K::Full) => show.full = true,
            Some(K::Global) => show.global = true,
            Some(K::Session | K::Local | K::Extended) => {}
            _ => break,
        }
        at += 1;
    }
    let (kind, next) = kind(lexed, at)?;
    show.kind = kind;
    show.clauses(lexed, next)?;
    Some(show)
}

/// The kind that begins with token `at`, and the index behind it.
fn kind(lexed: &Lexed<'_>, at: usize) -> Option<(ShowKind, usize)> {
    use Keyword as K;
    use ShowKind as S;
    let next = lexed.keyword(at + 1);
    let one = |kind| Some((kind, at + 1));
    let two = |kind| Some((kind, at + 2));
    match lexed.keyword(at) {
        Some(K::Databases | K::Schemas) => one(S::Databases),
        Some(K::Tables) => one(S::Tables),
        Some(K::Table) if next == Some(K::Status) => two(S::TableStatus),
        Some(K::Open) if next == Some(K::Tables) => two(S::OpenTables),
        Some(K::Columns | K::Fields) => one(S::Columns),
        Some(K::Index | K::Indexes | K::Keys) => one(S::Index),
        Some(K::Triggers) => one(S::Triggers),
        Some(K::Events) => one(S::Events),
        Some(K::Procedure) if next == Some(K::Status) => two(S::ProcedureStatus),
        Some(K::Function) if next == Some(K::Status) => two(S::FunctionStatus),
        Some(K::Create) => create(lexed, at + 1),
        Some(K::Warnings) => one(S::Warnings),
        Some(K::Errors) => one(S::Errors),
        Some(K::Count) => count(lexed, at + 1),
        Some(K::Processlist) => one(S::ProcessList),
        Some(K::Variables) => one(S::Variables),
        Some(K::Status) => one(S::Status),
        Some(K::Engines) => one(S::Engines),
        Some(K::Storage) if next == Some(K::Engines) => two(S::Engines),
        Some(K::Plugins) => one(S::Plugins),
        Some(K::Privileges) => one(S::Privileges),
        Some(K::Grants) => one(S::Grants),
        Some(K::Collation) => one(S::Collation),
        Some(K::Charset) => one(S::CharacterSet),
        Some(K::Character | K::Char) if next == Some(K::Set) => two(S::CharacterSet),
        Some(K::VitessShards) => one(S::VitessShards),
        Some(K::VitessTablets) => one(S::VitessTablets),
        Some(K::VitessKeyspaces) => one(S::VitessKeyspaces),
        Some(K::VitessTarget) => one(S::VitessTarget),
        Some(K::Shardgate)
            if at + 1 < end(lexed) && lexed.is(at + 1, TokenKind::Word) && !is_clause(next) =>
        {
            Some((
                S::Shardgate(text(lexed.text(at + 1))?.to_ascii_lowercase()),
                at + 2,
            ))
        }
        Some(K::Shardgate) => one(S::Shardgate(String::new())),
        _ if lexed.is_word(at, "keyspaces") => one(S::VitessKeyspaces),
        _ => one(S::Other(text(lexed.text(at))?.to_ascii_uppercase())),
    }
}

fn create(lexed: &Lexed<'_>, at: usize) -> Option<(ShowKind, usize)> {
    use Keyword as K;
    let kind = match lexed.keyword(at) {
        Some(K::Table) => ShowKind::CreateTable,
        Some(K::View) => ShowKind::CreateView,
        Some(K::Database | K::Schema) => ShowKind::CreateDatabase,
        _ => ShowKind::CreateOther(text(lexed.text(at))?.to_ascii_uppercase()),
    };
    Some((kind, at + 1))
}

/// `COUNT(*) WARNINGS`, from the parenthesis on.
fn count(lexed: &Lexed<'_>, at: usize) -> Option<(ShowKind, usize)> {
    let star = lexed.is(at, TokenKind::LParen)
        && lexed.is(at + 1, TokenKind::Star)
        && lexed.is(at + 2, TokenKind::RParen);
    match lexed.keyword(at + 3) {
        Some(Keyword::Warnings) if star => Some((ShowKind::CountWarnings, at + 4)),
        Some(Keyword::Errors) if star => Some((ShowKind::CountErrors, at + 4)),
        _ => None,
    }
}

fn is_clause(keyword: Option<Keyword>) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        Some(K::From | K::In | K::Like | K::Where | K::Limit | K::For)
    )
}

impl Show {
    fn clauses(&mut self, lexed: &Lexed<'_>, at: usize) -> Option<()> {
        use Keyword as K;
        let of_table = matches!(self.kind, ShowKind::Columns | ShowKind::Index);
        let mut at = at;
        while at < end(lexed) {
            match lexed.keyword(at) {
                Some(K::From | K::In) if of_table && self.name.is_none() => {
                    at = self.object(lexed, at + 1)?;
                }
                Some(K::From | K::In) if self.knows_clauses() => {
                    self.database = Some(text(&lexed.name(at + 1)?)?);
                    at += 2;
                }
                Some(K::Like) => {
                    let Some(Literal::String(pattern)) = lexed.literal(at + 1) else {
                        return None;
                    };
                    self.like = Some(text(&pattern)?);
                    at += 2;
                }
                Some(K::Where) => {
                    self.filter = Some(at + 1..end(lexed)).filter(|tokens| !tokens.is_empty());
                    return self.filter.is_some().then_some(());
                }
                Some(K::Limit) => {
                    self.limit = Some(at + 1..end(lexed));
                    return Some(());
                }
                Some(K::If) if lexed.is_keyword(at + 1, K::Not) && lexed.is_keyword(at + 2, K::Exists) => {
                    at += 3;
                }
                _ if !self.knows_clauses() => at += 1,
                _ if self.is_create() && self.name.is_none() => at = self.object(lexed, at)?,
                _ => return None,
            }
        }
        (!(of_table || self.is_create()) || self.name.is_some()).then_some(())
    }

    fn is_create(&self) -> bool {
        matches!(
            self.kind,
            ShowKind::CreateTable | ShowKind::CreateView | ShowKind::CreateDatabase
        )
    }

    /// Whether nothing but the clauses known here may follow.
    fn knows_clauses(&self) -> bool {
        !matches!(
            self.kind,
            ShowKind::Other(_) | ShowKind::CreateOther(_) | ShowKind::Grants | ShowKind::Shardgate(_)
        )
    }

    /// Reads `name` or `database.name` from token `at`; gives the index behind it.
    fn object(&mut self, lexed: &Lexed<'_>, at: usize) -> Option<usize> {
        let first = name_or_string(lexed, at)?;
        if lexed.is(at + 1, TokenKind::Dot) {
            self.database = Some(first);
            self.name = Some(text(&lexed.name(at + 2)?)?);
            return Some(at + 3);
        }
        self.name = Some(first);
        Some(at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LexOptions, lex};

    fn show(sql: &str) -> Option<Show> {
        parse_show(&lex(sql.as_bytes(), &LexOptions::default()).unwrap())
    }

    #[test]
    fn each_kind_is_told() {
        use ShowKind as S;
        for (sql, kind) in [
            ("SHOW DATABASES", S::Databases),
            ("show schemas like 'a%'", S::Databases),
            (
                "SHOW FULL TABLES FROM commerce WHERE Table_type = 'VIEW'",
                S::Tables,
            ),
            ("SHOW TABLE STATUS IN commerce LIKE 'a'", S::TableStatus),
            ("SHOW FULL COLUMNS FROM orders", S::Columns),
            ("SHOW FIELDS IN commerce.orders", S::Columns),
            ("SHOW KEYS FROM orders FROM commerce", S::Index),
            ("SHOW CREATE TABLE `commerce`.`orders`", S::CreateTable),
            ("SHOW CREATE DATABASE IF NOT EXISTS commerce", S::CreateDatabase),
            ("SHOW CREATE PROCEDURE p", S::CreateOther("PROCEDURE".into())),
            ("SHOW WARNINGS", S::Warnings),
            ("SHOW WARNINGS LIMIT 1, 2", S::Warnings),
            ("SHOW COUNT(*) WARNINGS", S::CountWarnings),
            ("SHOW FULL PROCESSLIST", S::ProcessList),
            ("SHOW GLOBAL VARIABLES LIKE 'max%'", S::Variables),
            ("SHOW SESSION STATUS", S::Status),
            ("SHOW STORAGE ENGINES", S::Engines),
            ("SHOW CHARACTER SET", S::CharacterSet),
            ("SHOW VITESS_SHARDS", S::VitessShards),
            ("SHOW vitess_tablets LIKE '%80%'", S::VitessTablets),
            ("SHOW KEYSPACES", S::VitessKeyspaces),
            ("SHOW SHARDGATE breakers", S::Shardgate("breakers".into())),
            ("SHOW SHARDGATE", S::Shardgate(String::new())),
            ("SHOW GRANTS FOR CURRENT_USER()", S::Grants),
            ("SHOW MASTER STATUS", S::Other("MASTER".into())),
        ] {
            assert_eq!(show(sql).map(|show| show.kind), Some(kind), "{sql}");
        }
    }

    #[test]
    fn clauses_are_read() {
        let columns = show("SHOW FULL COLUMNS FROM `or.ders` FROM commerce LIKE 'a\\_%'").unwrap();
        assert!(columns.full && !columns.global);
        assert_eq!(columns.name.as_deref(), Some("or.ders"));
        assert_eq!(columns.database.as_deref(), Some("commerce"));
        assert_eq!(columns.like.as_deref(), Some("a\\_%"));
        let tables = show("SHOW TABLES IN commerce WHERE a = 'b';").unwrap();
        assert_eq!(tables.filter, Some(5..8));
        assert!(show("SHOW GLOBAL STATUS").unwrap().global);
    }

    #[test]
    fn what_makes_no_sense_is_not_read() {
        for sql in [
            "SHOW",
            "SHOW COLUMNS",
            "SHOW CREATE TABLE",
            "SHOW TABLES LIKE",
            "SHOW TABLES WHERE",
            "SHOW TABLES junk",
            "SHOW DATABASES LIKE 'a' junk",
            "SHOW COUNT(1) WARNINGS",
        ] {
            assert_eq!(show(sql), None, "{sql}");
        }
    }
}
