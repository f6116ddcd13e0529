//! Comments, which are not all comments.
//!
//! A version comment is settled here: its content is either read as ordinary tokens or skipped, by the rules of the
//! server behind, and either way it is reported. MariaDB skips 50700 to 99999 in `/*!`, since those are MySQL's
//! numbers and not its own.

use super::{Lexer, is_space};
use crate::keyword::Keyword;
use crate::lexed::VersionComment;
use crate::mode::Flavor;
use crate::token::{LexError, TokenKind};

impl Lexer<'_> {
    /// Whether the `--` here opens a comment: only before space, a control character or the end.
    pub(super) fn dashes_open_comment(&self) -> bool {
        self.src
            .get(self.pos + 2)
            .is_none_or(|byte| is_space(*byte) || byte.is_ascii_control())
    }

    pub(super) fn line_comment(&mut self, marker: usize) -> Result<(), LexError> {
        let rest = &self.src[self.pos + marker..];
        let len = rest
            .iter()
            .position(|byte| *byte == b'\n' || *byte == 0)
            .unwrap_or(rest.len());
        let end = self.pos + marker + len;
        // A NUL ends the comment on servers, and is then no token.
        if self.src.get(end) == Some(&0) {
            return Err(LexError::UnexpectedByte { byte: 0, at: end });
        }
        self.pos = end;
        Ok(())
    }

    pub(super) fn block_comment(&mut self) -> Result<(), LexError> {
        let start = self.pos;
        match (self.peek(2), self.peek(3)) {
            (b'!', _) => self.version_comment(start, start + 3),
            (b'M', b'!') if self.options.flavor == Flavor::MariaDb => self.version_comment(start, start + 4),
            _ => self.plain_comment(start),
        }
    }

    fn plain_comment(&mut self, start: usize) -> Result<(), LexError> {
        let end = self.comment_end(start, start + 2)?;
        let body = &self.src[start + 2..end - 2];
        if body.starts_with(b"+") && self.after_hinted_verb() {
            self.push(TokenKind::Hint, start, end);
        } else if body.starts_with(b"vt+") {
            self.directives.push((start as u32, end as u32));
        }
        self.pos = end;
        Ok(())
    }

    fn comment_end(&self, start: usize, from: usize) -> Result<usize, LexError> {
        let rest = self.src.get(from..).unwrap_or_default();
        let len = rest.windows(2).position(|pair| pair == b"*/");
        len.map(|len| from + len + 2).ok_or(LexError::Unterminated {
            what: "comment",
            at: start,
        })
    }

    fn after_hinted_verb(&self) -> bool {
        use Keyword as K;
        let verb = self.tokens.last().and_then(|token| token.keyword);
        matches!(
            verb,
            Some(K::Select | K::Insert | K::Replace | K::Update | K::Delete)
        )
    }

    /// A version comment at `start` whose version or content begins at `from`.
    fn version_comment(&mut self, start: usize, from: usize) -> Result<(), LexError> {
        let digits = self.src[from..]
            .iter()
            .take(6)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let versioned = digits >= 5;
        // MySQL reads five digits, and a sixth only on some releases.
        if digits == 6 && self.options.flavor == Flavor::MySql {
            return Err(LexError::Ambiguous {
                what: "six-digit version comment",
                at: start,
            });
        }
        let digits = if versioned { digits } else { 0 };
        let version = self.src[from..from + digits]
            .iter()
            .fold(0, |n, byte| n * 10 + u32::from(byte - b'0'));
        let of_mysql = self.options.flavor == Flavor::MariaDb
            && self.src[start + 2] == b'!'
            && (50_700..=99_999).contains(&version);
        let executed = !versioned || (version <= self.options.server_version && !of_mysql);
        let at = self.version_comments.len();
        self.version_comments.push(VersionComment {
            start,
            end: start,
            version: versioned.then_some(version),
            executed,
        });
        if executed {
            self.open_version_comment = Some(start);
            self.pos = from + digits;
            return Ok(());
        }
        let end = self.skipped_end(start, from)?;
        self.version_comments[at].end = end;
        self.pos = end;
        Ok(())
    }

    /// The end of a version comment that is skipped. One level of comment may nest in it.
    fn skipped_end(&self, start: usize, from: usize) -> Result<usize, LexError> {
        let mut at = from;
        loop {
            match (self.src.get(at), self.src.get(at + 1)) {
                (Some(b'/'), Some(b'*')) => at = self.comment_end(start, at + 2)?,
                (Some(b'*'), Some(b'/')) => return Ok(at + 2),
                (Some(_), _) => at += 1,
                (None, _) => {
                    return Err(LexError::Unterminated {
                        what: "version comment",
                        at: start,
                    });
                }
            }
        }
    }

    pub(super) fn close_version_comment(&mut self) {
        self.pos += 2;
        // A version comment inside another one does not nest: the first `*/` closes both, and a second is read as
        // two operators, as on servers.
        self.open_version_comment = None;
        for comment in self.version_comments.iter_mut().rev() {
            if comment.end != comment.start {
                break;
            }
            comment.end = self.pos;
        }
    }
}
