//! A statement as people and metrics see it: no literal at all, lists of values shown as one.

use twox_hash::XxHash64;

use super::{push_token, separate};
use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

/// Longer texts are cut. The hash is of the whole.
const LONGEST: usize = 2048;

/// A kind of statement, for breakers, metrics and logs. Holds none of the users' data: every literal is `?`, in
/// statements of all kinds, and `(?, ?, ?)` is `(?)`, and `(?), (?)` too, so that the number of values makes no
/// difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    /// The text, at most 2 KiB.
    pub text: String,
    /// A hash of the whole text, the same in every process.
    pub hash: u64,
}

impl Digest {
    /// The digest of a statement.
    pub fn of(lexed: &Lexed<'_>) -> Self {
        let mut text = Vec::with_capacity(lexed.src().len().min(LONGEST));
        // Where the last group in parentheses stands in `text`, while nothing but a comma came after it.
        let mut last_group: Option<std::ops::Range<usize>> = None;
        let mut open = Vec::new();
        let mut at = 0;
        while at < lexed.len() {
            separate(lexed, at, &mut text);
            if lexed.is(at, TokenKind::LParen) {
                open.push((text.len(), last_group.take()));
            }
            match values_end(lexed, at) {
                Some(end) => {
                    text.extend_from_slice(b"( ?");
                    at = end - 1;
                    separate(lexed, at, &mut text);
                    text.push(b')');
                }
                None if lexed.kind(at).is_some_and(TokenKind::is_literal) => text.push(b'?'),
                None => push_token(lexed, at, &mut text),
            }
            match lexed.kind(at) {
                Some(TokenKind::RParen) => {
                    if let Some((start, before)) = open.pop() {
                        last_group = Some(close(&mut text, start, before));
                    }
                }
                Some(TokenKind::Comma) => {}
                _ => last_group = None,
            }
            at += 1;
        }
        let hash = XxHash64::oneshot(0, &text);
        Self {
            text: shown(&text),
            hash,
        }
    }
}

/// Ends the group that began at `start`; if it reads as the group before it, it goes.
fn close(text: &mut Vec<u8>, start: usize, before: Option<std::ops::Range<usize>>) -> std::ops::Range<usize> {
    match before {
        Some(before) if text[before.clone()] == text[start..] => {
            text.truncate(before.end);
            before
        }
        _ => start..text.len(),
    }
}

/// If a parenthesis opens at `at` that holds nothing but values and commas: the index behind its end.
fn values_end(lexed: &Lexed<'_>, at: usize) -> Option<usize> {
    use Keyword as K;
    if !lexed.is(at, TokenKind::LParen) || lexed.is(at + 1, TokenKind::RParen) {
        return None;
    }
    for (index, token) in lexed.tokens().iter().enumerate().skip(at + 1) {
        match token.kind {
            TokenKind::RParen => return Some(index + 1),
            TokenKind::Comma | TokenKind::Minus | TokenKind::Plus | TokenKind::Introducer => {}
            kind if kind.is_literal() => {}
            _ if matches!(token.keyword, Some(K::Null | K::True | K::False | K::Default)) => {}
            _ => return None,
        }
    }
    None
}

fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(LONGEST)];
    let mut shown = String::from_utf8_lossy(cut).into_owned();
    for (long, short) in [("( ", "("), (" )", ")"), (" , ", ", "), (" . ", ".")] {
        shown = shown.replace(long, short);
    }
    if text.len() > LONGEST {
        shown.push_str("...");
    }
    shown
}
