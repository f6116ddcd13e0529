//! What no session may do through the gateway, whichever shard it chose: told from the statement alone, before it is
//! planned or prepared.
//!
//! Whatever a server would run that cannot be read here is refused: the text of a PREPARE that is worked out by an
//! expression, a PREPARE inside a routine. What is left is what routines do that were made on the tablets themselves; the
//! boundary for those is what the backend's user is granted.

use std::ops::Range;

use bytes::Bytes;
use shardgate_sql::{
    Classified, ExplainFormat, Keyword, Lexed, Literal, ShowKind, StatementKind, TokenKind, classify, lex,
    parse_show,
};

use super::bodies::{check_body, check_kind, check_nested, check_tables, sets_global};
use super::query::Way;
use super::{Session, SessionError};
use crate::plan::{database_within_reach, tables_within_reach, within_reach};
use crate::tablet::SettingName;

/// The text that a PREPARE or an EXECUTE IMMEDIATE runs.
struct Dynamic {
    /// The tokens that give it.
    tokens: Range<usize>,
    /// The text.
    text: Vec<u8>,
}

/// A sequence's last value is a connection's, and here that is whoever had it before.
fn check_sequences(lexed: &Lexed<'_>) -> Result<(), SessionError> {
    let asks = |at: usize| {
        let previous = matches!(lexed.keyword(at), Some(Keyword::Previous | Keyword::Prev))
            && lexed.is_keyword(at + 1, Keyword::Value);
        previous || (lexed.is_word(at, "lastval") && lexed.is(at + 1, TokenKind::LParen))
    };
    if (0..lexed.len()).any(asks) {
        return Err(SessionError::Unsupported {
            what: "LASTVAL and PREVIOUS VALUE FOR",
            hint: "keep what NEXTVAL answered",
        });
    }
    Ok(())
}

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
        let autocommit = self.state.autocommit;
        check_kind(lexed, class, autocommit)?;
        within_reach(lexed, class, &self.view.catalog)?;
        match class.kind {
            StatementKind::Show => return self.check_shown(lexed),
            // Of a table its columns only.
            StatementKind::Describe { .. } => return Ok(()),
            _ => {}
        }
        check_tables(lexed)?;
        check_sequences(lexed)?;
        check_body(lexed, class, autocommit)?;
        match self.dynamic(lexed, class.kind)? {
            Some(dynamic) => self.check_text(&dynamic.text, lexed),
            None => Ok(()),
        }
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

    /// The text of a PREPARE or an EXECUTE IMMEDIATE is a statement like any other, and what the gateway does itself a
    /// server would do to one connection behind its back.
    fn check_text(&self, text: &[u8], outer: &Lexed<'_>) -> Result<(), SessionError> {
        let inner = lex(text, outer.options()).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let class = classify(&inner);
        let autocommit = self.state.autocommit;
        check_kind(&inner, &class, autocommit)?;
        check_nested(&inner, class.kind)?;
        if class.kind == StatementKind::Set && sets_global(&inner) {
            return Err(SessionError::SetGlobal);
        }
        within_reach(&inner, &class, &self.view.catalog)?;
        check_tables(&inner)?;
        check_body(&inner, &class, autocommit)?;
        match class.kind {
            StatementKind::Show => self.check_shown(&inner),
            kind => Ok(tables_within_reach(&inner, kind, &self.view.catalog)?),
        }
    }

    /// What `PREPARE s FROM ...` and `EXECUTE IMMEDIATE ...` run; `None` for any other statement.
    fn dynamic(&self, lexed: &Lexed<'_>, kind: StatementKind) -> Result<Option<Dynamic>, SessionError> {
        let from = match kind {
            StatementKind::Prepare if lexed.is_keyword(2, Keyword::From) => 3,
            StatementKind::Prepare => return Err(SessionError::Syntax("near PREPARE".into())),
            StatementKind::Execute if lexed.is_keyword(1, Keyword::Immediate) => 2,
            _ => return Ok(None),
        };
        let is_end =
            |at: &usize| lexed.is(*at, TokenKind::Semicolon) || lexed.is_keyword(*at, Keyword::Using);
        let tokens = from..(from..lexed.len()).find(is_end).unwrap_or(lexed.len());
        let text = self
            .known_text(lexed, tokens.clone())
            .ok_or(SessionError::Unsupported {
                what: "PREPARE or EXECUTE IMMEDIATE of a text that the gateway does not know",
                hint: "give the text as one string, or SET a variable to it in a statement of its own",
            })?;
        Ok(Some(Dynamic { tokens, text }))
    }

    /// A text that is known whole: strings side by side, or a variable that was SET to one.
    fn known_text(&self, lexed: &Lexed<'_>, tokens: Range<usize>) -> Option<Vec<u8>> {
        if tokens.len() == 1 && lexed.is(tokens.start, TokenKind::UserVariable) {
            return self.variable_text(&lexed.variable(tokens.start)?, lexed);
        }
        let mut text = None;
        for at in tokens {
            let Literal::String(part) = lexed.literal(at)? else {
                return None;
            };
            text.get_or_insert_with(Vec::new).extend_from_slice(&part);
        }
        text
    }

    /// The text that a user variable was SET to.
    fn variable_text(&self, name: &[u8], lexed: &Lexed<'_>) -> Option<Vec<u8>> {
        let name = String::from_utf8_lossy(name).to_lowercase();
        if self.state.pinned_variables.contains(&name) {
            return None;
        }
        let value = self.state.settings.get(&SettingName::User(name))?.as_bytes();
        text_of_setting(&lex(value, lexed.options()).ok()?, &self.state.charset)
    }

    /// Runs a PREPARE or an EXECUTE. A variable's text travels in the variable's place, so that what runs is what
    /// was looked at, whatever a routine has made of the variable on its connection.
    pub(super) async fn run_dynamic(
        &mut self,
        sql: &Bytes,
        lexed: &Lexed<'_>,
        class: &Classified,
        way: Way<'_>,
    ) -> Result<(), SessionError> {
        let dynamic = self.dynamic(lexed, class.kind)?;
        let Some(dynamic) = dynamic.filter(|d| lexed.is(d.tokens.start, TokenKind::UserVariable)) else {
            return self.planned(sql, lexed, class, way).await;
        };
        let escapes = !lexed.options().mode.no_backslash_escapes();
        let mut with_text = sql.to_vec();
        with_text.splice(lexed.span(dynamic.tokens), string_literal(&dynamic.text, escapes));
        let with_text = Bytes::from(with_text);
        let lexed = lex(&with_text, lexed.options()).map_err(|e| SessionError::Syntax(e.to_string()))?;
        let class = classify(&lexed);
        self.planned(&with_text, &lexed, &class, way).await
    }
}

/// The text of a variable's value as the session keeps it: a plain string, or hexadecimal digits in a character set. `None`
/// for what is no text, or would be another one in the character set of today.
fn text_of_setting(value: &Lexed<'_>, charset: &str) -> Option<Vec<u8>> {
    if let (1, Some(Literal::String(text))) = (value.len(), value.literal(0)) {
        return Some(text.into_owned());
    }
    let introduced = usize::from(value.is(0, TokenKind::Introducer));
    let (true, Some(Literal::Hex(text))) = (value.len() == introduced + 1, value.literal(introduced)) else {
        return None;
    };
    let same = value
        .text(0)
        .get(1..)
        .is_some_and(|name| name.eq_ignore_ascii_case(charset.as_bytes()));
    (text.is_ascii() || introduced == 1 && same).then_some(text)
}

/// Bytes as a string literal. The character sets that clients may speak have no quote and no backslash inside another
/// character.
fn string_literal(text: &[u8], escapes: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'\'');
    for byte in text {
        if *byte == b'\'' || *byte == b'\\' && escapes {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_sql::LexOptions;

    #[test]
    fn a_kept_value_gives_its_text_back() {
        let text =
            |sql: &str| text_of_setting(&lex(sql.as_bytes(), &LexOptions::default()).unwrap(), "utf8mb4");
        assert_eq!(text("'SELECT 1'").unwrap(), b"SELECT 1");
        assert_eq!(text("_utf8mb4 x'61c3a9'").unwrap(), "aé".as_bytes());
        assert_eq!(text("_latin1 x'6162'").unwrap(), b"ab");
        assert_eq!(text("x'6162'").unwrap(), b"ab");
        for sql in [
            "_latin1 x'61e9'",
            "x'c3a9'",
            "12",
            "CAST(1 AS UNSIGNED)",
            "'a' 'b'",
            "NULL",
        ] {
            assert_eq!(text(sql), None, "{sql}");
        }
    }

    #[test]
    fn a_literal_reads_back_as_its_text() {
        for (mode, escapes) in [("", true), ("NO_BACKSLASH_ESCAPES", false)] {
            let options = LexOptions {
                mode: shardgate_sql::SqlMode::parse(mode).unwrap(),
                ..LexOptions::default()
            };
            let text = b"SELECT 'it''s', \"\\\\\", '\\''".as_slice();
            let literal = string_literal(text, escapes);
            let lexed = lex(&literal, &options).unwrap();
            assert_eq!(lexed.len(), 1);
            assert_eq!(lexed.literal(0), Some(Literal::String(text.into())));
        }
    }
}
