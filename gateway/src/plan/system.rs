//! Tables of the servers' own databases in a statement: where they are named, so that whoever knows what a client is to
//! see of them can put that in their place.

use std::ops::Range;

use shardgate_sql::{Keyword as K, Lexed, StatementKind, TokenKind, classify};

use super::from::From;
use super::scope::{self, select_scopes};
use super::statement::Statement;
use super::tables::{FactorKind, Names, Query, is_system};
use super::write;

/// A table of a server's own database in a FROM clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemTable {
    /// The tokens of its name, with the database if that is written.
    pub tokens: Range<usize>,
    /// The database, as written.
    pub database: String,
    /// The table, as written.
    pub table: String,
    /// Whether an alias follows.
    pub renamed: bool,
}

/// What a statement names of the servers' own databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemTables {
    /// The tables in FROM clauses, in no order.
    pub tables: Vec<SystemTable>,
    /// Tokens of `database` in `database.table.column`.
    pub qualifiers: Vec<usize>,
    /// Whether it also names tables of keyspaces.
    pub mixed: bool,
}

/// Whether a statement may name a table of a server's own database: a look at its tokens, cheap enough for every
/// statement.
#[must_use]
pub fn may_name_system(lexed: &Lexed<'_>) -> bool {
    let tokens = lexed.tokens().iter().enumerate().skip(1);
    tokens
        .filter(|(_, token)| token.kind == TokenKind::Dot)
        .any(|(dot, _)| qualifies(lexed, dot - 1))
}

fn qualifies(lexed: &Lexed<'_>, at: usize) -> bool {
    lexed.is(at + 1, TokenKind::Dot)
        && !(at > 0 && lexed.is(at - 1, TokenKind::Dot))
        && lexed
            .name(at)
            .is_some_and(|name| std::str::from_utf8(&name).is_ok_and(is_system))
}

/// Finds them. `session` is the server's own database that the session chose, if it did: what unqualified names are in.
/// `None` if the statement is not understood.
#[must_use]
pub fn system_tables(lexed: &Lexed<'_>, session: Option<&str>) -> Option<SystemTables> {
    let kind = classify(lexed).kind;
    let start = match kind {
        StatementKind::Explain { statement, .. } => statement,
        _ => 0,
    };
    let statement = Statement::new(lexed, start).ok()?;
    let own = match statement.keyword(start) {
        Some(K::Update) => Some(write::update_scope(&statement)?.scope),
        Some(K::Delete) => Some(write::delete_scope(&statement)?.scope),
        _ => None,
    };
    let writes = own.is_some() || matches!(kind, StatementKind::Insert | StatementKind::Replace);
    let scopes: Vec<_> = own.into_iter().chain(select_scopes(&statement)).collect();
    if !scope::all_read(&statement, &scopes) {
        return None;
    }
    let mut queries = Vec::new();
    for scope in scopes {
        let from = From::parse(&statement, &scope.from).ok()?;
        queries.push(Query { scope, from });
    }
    let names = Names::of_ctes(&statement);
    let mut found = SystemTables {
        mixed: writes,
        ..SystemTables::default()
    };
    for factor in queries.iter().flat_map(|q| &q.from.factors) {
        let kind = names.kind(&statement, factor);
        let database = match (kind, factor.qualifier, session) {
            (FactorKind::System, Some(at), _) => statement.name(at)?,
            (FactorKind::Table, None, Some(session)) => session.to_owned(),
            (FactorKind::Table, _, _) => {
                found.mixed = true;
                continue;
            }
            (FactorKind::System | FactorKind::Derived, _, _) => continue,
        };
        let at = factor.qualifier.unwrap_or(factor.at);
        let width = if factor.qualifier.is_some() { 3 } else { 1 };
        found.tables.push(SystemTable {
            tokens: at..at + width,
            database,
            table: factor.table.clone()?,
            renamed: factor.renamed,
        });
    }
    let tables: Vec<usize> = found.tables.iter().map(|t| t.tokens.start).collect();
    found.qualifiers = statement
        .all()
        .filter(|at| qualifies(lexed, *at) && !tables.contains(at))
        .collect();
    // Each of them must be a column's: `database.table.column`.
    let is_column = |at: &usize| lexed.is(at + 3, TokenKind::Dot);
    found.qualifiers.iter().all(is_column).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::{LexOptions, lex};

    fn find(sql: &str, session: Option<&str>) -> Option<SystemTables> {
        system_tables(&lex(sql.as_bytes(), &LexOptions::default()).unwrap(), session)
    }

    fn tables(sql: &str, session: Option<&str>) -> Vec<(String, bool)> {
        let found = find(sql, session).unwrap();
        found
            .tables
            .into_iter()
            .map(|t| (format!("{}.{}", t.database, t.table), t.renamed))
            .collect()
    }

    #[test]
    fn tables_are_found_wherever_they_are_read() {
        let sql = "SELECT (SELECT COUNT(*) FROM INFORMATION_SCHEMA.COLUMNS) FROM `information_schema`.tables t \
                   LEFT JOIN information_schema.statistics AS s ON s.table_name = t.table_name";
        assert_eq!(
            tables(sql, None),
            [
                ("information_schema.tables".into(), true),
                ("information_schema.statistics".into(), true),
                ("INFORMATION_SCHEMA.COLUMNS".into(), false),
            ]
        );
        assert!(!find(sql, None).unwrap().mixed);
    }

    #[test]
    fn what_the_session_chose_is_where_bare_names_are() {
        let sql = "SELECT * FROM tables WHERE table_schema = 'shop'";
        assert_eq!(
            tables(sql, Some("information_schema")),
            [("information_schema.tables".into(), false)]
        );
        assert!(find(sql, None).unwrap().mixed);
    }

    #[test]
    fn a_common_table_expression_is_no_table() {
        let sql = "WITH t AS (SELECT * FROM information_schema.tables) SELECT * FROM t";
        let found = find(sql, Some("information_schema")).unwrap();
        assert_eq!(found.tables.len(), 1);
        assert!(!found.mixed);
    }

    #[test]
    fn columns_with_their_database_are_found() {
        let sql = "SELECT information_schema.tables.table_name FROM information_schema.tables";
        assert_eq!(find(sql, None).unwrap().qualifiers, [1]);
        assert_eq!(find("TABLE information_schema.tables", None), None);
    }

    #[test]
    fn a_look_finds_whether_there_is_anything_to_find() {
        let may = |sql: &str| may_name_system(&lex(sql.as_bytes(), &LexOptions::default()).unwrap());
        assert!(may("SELECT 1 FROM `mysql`.time_zone"));
        assert!(!may("SELECT mysql FROM t WHERE a.mysql.b = 'information_schema'"));
    }
}
