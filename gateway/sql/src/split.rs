//! Cuts the text of one command into its statements.

use std::ops::Range;

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::lexer::lex;
use crate::mode::LexOptions;
use crate::token::{LexError, TokenKind};

/// The byte ranges of the statements in `src`, in order, without their semicolons.
///
/// A semicolon in a string, name or comment does not cut. A statement whose body holds statements (`CREATE PROCEDURE`,
/// `CREATE TRIGGER`, `BEGIN NOT ATOMIC`) takes all that follows: where its body ends is for the server to say, and
/// a server that is sent it without `CLIENT_MULTI_STATEMENTS` refuses what stands behind. An empty statement between
/// two semicolons is kept, since a server answers it with an error; nothing but space and comments at the end is not.
pub fn split_statements(src: &[u8], options: &LexOptions) -> Result<Vec<Range<usize>>, LexError> {
    if !src.contains(&b';') {
        return Ok(std::iter::once(0..src.len()).collect());
    }
    Ok(split_lexed(&lex(src, options)?))
}

/// The same for bytes that were lexed already.
pub fn split_lexed(lexed: &Lexed<'_>) -> Vec<Range<usize>> {
    let mut statements = Vec::new();
    let (mut first, mut start) = (0, 0);
    for (at, token) in lexed.tokens().iter().enumerate() {
        if token.kind != TokenKind::Semicolon {
            continue;
        }
        if holds_statements(lexed, first) {
            break;
        }
        statements.push(start..token.start as usize);
        (first, start) = (at + 1, token.end as usize);
    }
    if first < lexed.len() || statements.is_empty() {
        statements.push(start..lexed.src().len());
    }
    statements
}

/// Whether the statement that begins with token `first` has a body of statements.
fn holds_statements(lexed: &Lexed<'_>, first: usize) -> bool {
    use Keyword as K;
    match lexed.keyword(first) {
        Some(K::Create | K::Alter) => {}
        Some(K::Begin) => return lexed.is_keyword(first + 1, K::Not),
        Some(K::If | K::Case | K::While | K::Loop | K::Repeat | K::For | K::Declare) => return true,
        // `label: BEGIN NOT ATOMIC ...`
        _ => return lexed.is(first + 1, TokenKind::Colon),
    }
    // `CREATE OR REPLACE DEFINER = 'a'@'b' AGGREGATE FUNCTION`: the kind of object comes within a few words.
    for at in first + 1..(first + 16).min(lexed.len()) {
        match lexed.keyword(at) {
            Some(K::Procedure | K::Function | K::Trigger | K::Event | K::Package) => return true,
            Some(
                K::Table | K::View | K::Database | K::Schema | K::Index | K::User | K::Role | K::Sequence,
            ) => {
                return false;
            }
            _ if lexed.is(at, TokenKind::Semicolon) => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> Vec<&str> {
        let ranges = split_statements(sql.as_bytes(), &LexOptions::default()).unwrap();
        ranges.into_iter().map(|range| &sql[range]).collect()
    }

    #[test]
    fn only_a_semicolon_between_statements_cuts() {
        assert_eq!(split("SELECT 1"), ["SELECT 1"]);
        assert_eq!(split("SELECT 1;"), ["SELECT 1"]);
        assert_eq!(
            split("SELECT 1; SELECT 2 ;\n-- done;\n"),
            ["SELECT 1", " SELECT 2 "]
        );
        assert_eq!(
            split("SELECT ';', \"\\\";\", `;` /* ; */ # ;\n; SELECT 2").len(),
            2
        );
        assert_eq!(split("SELECT 1;;SELECT 2"), ["SELECT 1", "", "SELECT 2"]);
        assert_eq!(split(""), [""]);
        assert_eq!(split("  -- nothing;"), ["  -- nothing;"]);
    }

    #[test]
    fn a_body_of_statements_is_not_cut() {
        let body = "CREATE DEFINER=`root`@`%` TRIGGER t BEFORE INSERT ON a FOR EACH ROW BEGIN SET @a=1; SET @b=2; END";
        assert_eq!(split(body), [body]);
        assert_eq!(split("CREATE TABLE a (trigger_id INT); SELECT 1").len(), 2);
        assert_eq!(split("BEGIN NOT ATOMIC SELECT 1; END").len(), 1);
        assert_eq!(split("l: BEGIN NOT ATOMIC SELECT 1; END; SELECT 2").len(), 1);
        assert_eq!(split("IF 1 THEN SELECT 1; END IF").len(), 1);
        assert_eq!(split("BEGIN; SELECT 1; COMMIT").len(), 3);
    }

    #[test]
    fn what_cannot_be_lexed_is_not_cut() {
        assert!(split_statements(b"SELECT 1; SELECT 'open", &LexOptions::default()).is_err());
        // Half of the comment would be executed, half be a statement of its own.
        assert!(split_statements(b"SELECT 1 /*! ; DROP TABLE a */", &LexOptions::default()).is_err());
    }
}
