//! A statement read as tokens.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use crate::keyword::Keyword;
use crate::mode::LexOptions;
use crate::token::{Token, TokenKind};

/// The tokens of some bytes, with the bytes. White space and comments are the gaps between them.
#[derive(Clone, Debug)]
pub struct Lexed<'a> {
    pub(crate) src: &'a [u8],
    pub(crate) options: LexOptions,
    pub(crate) tokens: SmallVec<[Token; 32]>,
    pub(crate) version_comments: Vec<VersionComment>,
    pub(crate) directives: SmallVec<[(u32, u32); 1]>,
}

/// A version comment met, `/*!50700 ... */` or `/*M! ... */`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionComment {
    /// Offset of its slash.
    pub start: usize,
    /// Offset behind its end.
    pub end: usize,
    /// The version it names.
    pub version: Option<u32>,
    /// Whether its content was read as tokens. If not, it was skipped.
    pub executed: bool,
}

impl<'a> Lexed<'a> {
    /// The bytes that were read.
    pub fn src(&self) -> &'a [u8] {
        self.src
    }

    /// How they were read.
    pub fn options(&self) -> &LexOptions {
        &self.options
    }

    /// All tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is nothing but white space and comments.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The kind of token `at`, if there is one.
    pub fn kind(&self, at: usize) -> Option<TokenKind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// Whether token `at` is of this kind.
    pub fn is(&self, at: usize, kind: TokenKind) -> bool {
        self.kind(at) == Some(kind)
    }

    /// The keyword that token `at` spells, if it does.
    pub fn keyword(&self, at: usize) -> Option<Keyword> {
        self.tokens.get(at).and_then(|token| token.keyword)
    }

    /// Whether token `at` is this keyword.
    pub fn is_keyword(&self, at: usize, keyword: Keyword) -> bool {
        self.keyword(at) == Some(keyword)
    }

    /// The keyword of the first token behind opening parentheses.
    pub fn first_keyword(&self) -> Option<Keyword> {
        self.tokens
            .iter()
            .find(|token| token.kind != TokenKind::LParen)
            .and_then(|token| token.keyword)
    }

    /// The bytes of token `at`; empty behind the end.
    pub fn text(&self, at: usize) -> &'a [u8] {
        self.tokens
            .get(at)
            .map_or(&[][..], |token| &self.src[token.range()])
    }

    /// Whether token `at` is a bare word that spells `word`, in any case.
    pub fn is_word(&self, at: usize, word: &str) -> bool {
        self.is(at, TokenKind::Word) && self.text(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The byte range of token `at`; empty at the end if there is none.
    pub fn range(&self, at: usize) -> Range<usize> {
        self.tokens
            .get(at)
            .map_or(self.src.len()..self.src.len(), Token::range)
    }

    /// The byte range of the tokens `first..end`, without what stands around them.
    pub fn span(&self, tokens: Range<usize>) -> Range<usize> {
        if tokens.is_empty() {
            let at = self.range(tokens.start).start;
            return at..at;
        }
        self.range(tokens.start).start..self.range(tokens.end - 1).end
    }

    /// The token that starts at byte `offset`.
    pub fn token_at(&self, offset: usize) -> Option<usize> {
        self.tokens
            .binary_search_by_key(&offset, |token| token.start as usize)
            .ok()
    }

    /// The name that token `at` is, without its quotes. `None` if it is neither a word nor a quoted name.
    pub fn name(&self, at: usize) -> Option<Cow<'a, [u8]>> {
        match self.kind(at)? {
            TokenKind::Word => Some(Cow::Borrowed(self.text(at))),
            TokenKind::QuotedIdent => Some(undouble(self.text(at))),
            _ => None,
        }
    }

    /// The name of a `@variable` or `@@variable` token, without its at signs and quotes. A system variable keeps its
    /// scope: `session.sql_mode`.
    pub fn variable(&self, at: usize) -> Option<Cow<'a, [u8]>> {
        let text = self.text(at);
        match self.kind(at)? {
            TokenKind::UserVariable => Some(match text.get(1) {
                Some(b'`') => undouble(&text[1..]),
                Some(b'"') if self.options.mode.ansi_quotes() => undouble(&text[1..]),
                Some(b'\'' | b'"') => Cow::Owned(crate::literal::unescape(&text[1..], self.options.mode)),
                _ => Cow::Borrowed(&text[1..]),
            }),
            TokenKind::SystemVariable if text.contains(&b'`') => Some(Cow::Owned(
                text[2..].iter().copied().filter(|byte| *byte != b'`').collect(),
            )),
            TokenKind::SystemVariable => Some(Cow::Borrowed(&text[2..])),
            _ => None,
        }
    }

    /// These tokens as a statement of their own. Offsets stay those of the whole.
    #[must_use]
    pub fn part(&self, tokens: Range<usize>) -> Lexed<'a> {
        let end = tokens.end.min(self.tokens.len());
        let start = tokens.start.min(end);
        Lexed {
            src: self.src,
            options: self.options,
            tokens: SmallVec::from_slice(&self.tokens[start..end]),
            version_comments: Vec::new(),
            directives: SmallVec::new(),
        }
    }

    /// The version comments met, in order. A statement that has any may mean something else on a server of another
    /// version or flavour.
    pub fn version_comments(&self) -> &[VersionComment] {
        &self.version_comments
    }

    /// The index behind the parenthesis that closes the one at `open`; `None` if it is not closed.
    pub fn matching_paren(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }
}

/// Takes the quotes off a quoted name and halves the doubled ones inside.
fn undouble(text: &[u8]) -> Cow<'_, [u8]> {
    let Some((&quote, rest)) = text.split_first() else {
        return Cow::Borrowed(text);
    };
    let inner = rest.strip_suffix(&[quote]).unwrap_or(rest);
    if !inner.contains(&quote) {
        return Cow::Borrowed(inner);
    }
    let mut name = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        name.push(byte);
        if byte == quote {
            bytes.next();
        }
    }
    Cow::Owned(name)
}
