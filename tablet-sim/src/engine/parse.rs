//! From a command's bytes to a statement: lexed and classified by `gateway/sql`, and parsed where a tree is needed.

use shardgate_sql::{Classified, Keyword, LexOptions, Lexed, ParseError, TokenKind, classify, lex, parse};
use sqlparser::ast::Statement;

use crate::error::{SqlError, SqlResult};

/// A token, by its text.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) kind: TokenKind,
    /// Where it begins in the statement.
    start: usize,
}

impl Word {
    /// Whether it is this word, in any case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

/// A statement that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    /// As written, parameters filled in.
    pub(crate) text: Vec<u8>,
    pub(crate) class: Classified,
    /// Its tokens: names without quotes, strings as their content.
    pub(crate) words: Vec<Word>,
    /// The items of the outermost select list, as written.
    pub(crate) items: Vec<String>,
    /// How many `?` it has.
    pub(crate) placeholders: usize,
    options: LexOptions,
}

impl Parsed {
    pub(crate) fn new(text: &[u8], options: LexOptions) -> SqlResult<Self> {
        let lexed = lex(text, &options).map_err(SqlError::syntax)?;
        Ok(Self {
            text: text.to_vec(),
            class: classify(&lexed),
            words: words(&lexed),
            items: items(&lexed),
            placeholders: lexed
                .tokens()
                .iter()
                .filter(|t| t.kind == TokenKind::Placeholder)
                .count(),
            options,
        })
    }

    /// The tree.
    pub(crate) fn tree(&self) -> SqlResult<Statement> {
        tree(&self.text, &self.options)
    }

    /// The tree of another text read the same way.
    pub(crate) fn tree_of(&self, text: &[u8]) -> SqlResult<Statement> {
        tree(text, &self.options)
    }

    /// `SET NAMES x [COLLATE y], ...` as `SET NAMES x [COLLATE y]` and `SET ...`: the tree holds only one or the other.
    pub(crate) fn split_names(&self) -> SqlResult<Option<(Self, Self)>> {
        if !self.is(1, "NAMES") {
            return Ok(None);
        }
        let comma = if self.is(3, "COLLATE") { 5 } else { 3 };
        let Some(word) = self.words.get(comma).filter(|w| w.kind == TokenKind::Comma) else {
            return Ok(None);
        };
        let names = Self::new(&self.text[..word.start], self.options)?;
        let rest = [b"SET ", &self.text[word.start + 1..]].concat();
        Ok(Some((names, Self::new(&rest, self.options)?)))
    }

    /// `SET GLOBAL x = 1` as `SET @@GLOBAL.x = 1`, which the parser knows; `None` if no scope is said by a word.
    pub(crate) fn with_scopes(&self) -> SqlResult<Option<Self>> {
        let mut out = Vec::with_capacity(self.text.len() + 8);
        let (mut from, mut depth) = (0, 0u32);
        for (at, pair) in self.words.windows(2).enumerate() {
            let [word, next] = pair else { continue };
            match word.kind {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            let before = at.checked_sub(1).and_then(|n| self.words.get(n));
            let begins = at == 1 || depth == 0 && before.is_some_and(|w| w.kind == TokenKind::Comma);
            let scope = ["GLOBAL", "SESSION", "LOCAL"].iter().any(|s| word.is(s));
            if begins && scope && next.kind.is_name() {
                out.extend_from_slice(&self.text[from..word.start]);
                out.extend_from_slice(b"@@");
                out.extend_from_slice(word.text.as_bytes());
                out.push(b'.');
                from = next.start;
            }
        }
        if from == 0 {
            return Ok(None);
        }
        out.extend_from_slice(&self.text[from..]);
        Self::new(&out, self.options).map(Some)
    }

    /// The text with each `?` replaced by a literal; there must be as many.
    pub(crate) fn filled(&self, literals: &[String]) -> SqlResult<Self> {
        if self.placeholders != literals.len() {
            return Err(SqlError::new(1210, *b"HY000", "Incorrect arguments to EXECUTE"));
        }
        if literals.is_empty() {
            return Ok(self.clone());
        }
        let lexed = lex(&self.text, &self.options).map_err(SqlError::syntax)?;
        let mut out = Vec::with_capacity(self.text.len());
        let mut from = 0;
        let marks = lexed.tokens().iter().filter(|t| t.kind == TokenKind::Placeholder);
        for (mark, literal) in marks.zip(literals) {
            let range = mark.range();
            out.extend_from_slice(&self.text[from..range.start]);
            out.push(b' ');
            out.extend_from_slice(literal.as_bytes());
            out.push(b' ');
            from = range.end;
        }
        out.extend_from_slice(&self.text[from..]);
        let filled = Self::new(&out, self.options)?;
        Ok(Self {
            items: self.items.clone(),
            ..filled
        })
    }

    /// Whether word `at` is this one.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.words.get(at).is_some_and(|w| w.is(word))
    }

    pub(crate) fn word(&self, at: usize) -> Option<&str> {
        self.words.get(at).map(|w| w.text.as_str())
    }

    /// Whether a name anywhere in it is this one.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.words
            .iter()
            .any(|w| w.kind.is_name() && w.text.eq_ignore_ascii_case(name))
    }

    /// Where word `at` begins in the text.
    pub(crate) fn offset(&self, at: usize) -> Option<usize> {
        self.words.get(at).map(|w| w.start)
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

fn tree(text: &[u8], options: &LexOptions) -> SqlResult<Statement> {
    let lexed = lex(text, options).map_err(SqlError::syntax)?;
    parse(&lexed).map_err(|e| match e {
        ParseError::Syntax(detail) => SqlError::syntax(format!(
            "check the manual that corresponds to your MariaDB server version for the right syntax to use ({detail})"
        )),
        other => SqlError::unsupported(other),
    })
}

fn words(lexed: &Lexed<'_>) -> Vec<Word> {
    let text = |at: usize| {
        if let Some(name) = lexed.name(at) {
            return String::from_utf8_lossy(&name).into_owned();
        }
        match lexed.literal(at) {
            Some(shardgate_sql::Literal::String(s) | shardgate_sql::Literal::NationalString(s)) => {
                String::from_utf8_lossy(&s).into_owned()
            }
            _ => String::from_utf8_lossy(lexed.text(at)).into_owned(),
        }
    };
    lexed
        .tokens()
        .iter()
        .enumerate()
        .map(|(at, t)| Word {
            text: text(at),
            kind: t.kind,
            start: t.range().start,
        })
        .collect()
}

/// The texts between the commas behind the first SELECT: what a column without an alias is called.
fn items(lexed: &Lexed<'_>) -> Vec<String> {
    let Some(select) = (0..lexed.len()).find(|at| lexed.is_keyword(*at, Keyword::Select)) else {
        return Vec::new();
    };
    let mut first = select + 1;
    while [
        "DISTINCT",
        "ALL",
        "DISTINCTROW",
        "SQL_CALC_FOUND_ROWS",
        "SQL_NO_CACHE",
        "STRAIGHT_JOIN",
        "HIGH_PRIORITY",
    ]
    .iter()
    .any(|w| lexed.is_word(first, w))
        || lexed.is(first, TokenKind::Hint)
    {
        first += 1;
    }
    let mut out = Vec::new();
    let mut depth = 0usize;
    let mut at = first;
    while at < lexed.len() {
        let end = match lexed.kind(at) {
            Some(TokenKind::LParen) => {
                depth += 1;
                false
            }
            Some(TokenKind::RParen) if depth == 0 => true,
            Some(TokenKind::RParen) => {
                depth -= 1;
                false
            }
            Some(TokenKind::Semicolon) => true,
            Some(TokenKind::Comma) if depth == 0 => {
                out.push(item(lexed, first, at));
                first = at + 1;
                false
            }
            Some(TokenKind::Word) if depth == 0 => [
                "FROM", "WHERE", "LIMIT", "UNION", "ORDER", "FOR", "INTO", "GROUP", "HAVING",
            ]
            .iter()
            .any(|w| lexed.is_word(at, w)),
            _ => false,
        };
        if end {
            break;
        }
        at += 1;
    }
    out.push(item(lexed, first, at));
    out
}

fn item(lexed: &Lexed<'_>, from: usize, to: usize) -> String {
    // A string alone is named by its content.
    if to == from + 1
        && let Some(shardgate_sql::Literal::String(s)) = lexed.literal(from)
    {
        return String::from_utf8_lossy(&s).into_owned();
    }
    String::from_utf8_lossy(&lexed.src()[lexed.span(from..to)]).into_owned()
}
