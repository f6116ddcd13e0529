//! Strings, quoted names and variables.

use super::{Lexer, is_ident};
use crate::token::{LexError, TokenKind};

impl Lexer<'_> {
    /// A string whose quote is `prefix` bytes ahead.
    pub(super) fn string(&mut self, kind: TokenKind, prefix: usize) -> Result<(), LexError> {
        let start = self.pos;
        let end = self.string_end(start + prefix).ok_or(LexError::Unterminated {
            what: "string",
            at: start,
        })?;
        self.push(kind, start, end);
        Ok(())
    }

    /// The offset behind the string whose quote is at `open`.
    fn string_end(&self, open: usize) -> Option<usize> {
        let quote = *self.src.get(open)?;
        let escapes = !self.options.mode.no_backslash_escapes();
        let mut at = open + 1;
        loop {
            let byte = *self.src.get(at)?;
            if byte == b'\\' && escapes {
                at += 2;
            } else if byte != quote {
                at += 1;
            } else if self.src.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return Some(at + 1);
            }
        }
    }

    pub(super) fn quoted_ident(&mut self, quote: u8) -> Result<(), LexError> {
        let start = self.pos;
        let end = self.doubled_end(start, quote).ok_or(LexError::Unterminated {
            what: "quoted identifier",
            at: start,
        })?;
        self.push(TokenKind::QuotedIdent, start, end);
        Ok(())
    }

    /// The offset behind a quoted name: only a doubled quote escapes.
    fn doubled_end(&self, open: usize, quote: u8) -> Option<usize> {
        let mut at = open + 1;
        loop {
            let rest = self.src.get(at..)?;
            at += rest.iter().position(|byte| *byte == quote)? + 1;
            if self.src.get(at) != Some(&quote) {
                return Some(at);
            }
            at += 1;
        }
    }

    /// `@name`, `@'name'`, `@@name`, `@@scope.name`.
    pub(super) fn variable(&mut self) -> Result<(), LexError> {
        let start = self.pos;
        if self.peek(1) == b'@' {
            return self.system_variable(start);
        }
        let end = match self.peek(1) {
            b'`' => self.doubled_end(start + 1, b'`'),
            b'"' if self.options.mode.ansi_quotes() => self.doubled_end(start + 1, b'"'),
            b'\'' | b'"' => self.string_end(start + 1),
            _ => {
                let rest = &self.src[start + 1..];
                let len = rest
                    .iter()
                    .position(|byte| !is_ident(*byte) && *byte != b'.')
                    .unwrap_or(rest.len());
                Some(start + 1 + len)
            }
        };
        let end = end.ok_or(LexError::Unterminated {
            what: "variable name",
            at: start,
        })?;
        self.push(TokenKind::UserVariable, start, end);
        Ok(())
    }

    fn system_variable(&mut self, start: usize) -> Result<(), LexError> {
        let mut at = start + 2;
        loop {
            let end = match self.src.get(at) {
                Some(b'`') => self.doubled_end(at, b'`').ok_or(LexError::Unterminated {
                    what: "variable name",
                    at: start,
                })?,
                Some(byte) if is_ident(*byte) => self.ident_end(at),
                _ => {
                    return Err(LexError::Malformed {
                        what: "system variable",
                        at: start,
                    });
                }
            };
            let more = self.src.get(end) == Some(&b'.')
                && self
                    .src
                    .get(end + 1)
                    .is_some_and(|byte| is_ident(*byte) || *byte == b'`');
            if !more {
                self.push(TokenKind::SystemVariable, start, end);
                return Ok(());
            }
            at = end + 1;
        }
    }
}
