//! Words that begin with a digit: numbers, and names such as `2fa`.

use super::{Lexer, is_ident};
use crate::token::{LexError, TokenKind};

impl Lexer<'_> {
    /// A token that begins with a digit at `start`.
    pub(super) fn number(&mut self, start: usize) {
        if let Some(kind) = self.prefixed_number(start) {
            let end = self.ident_end(start);
            self.push(kind, start, end);
            return;
        }
        let digits = self.digits_end(start);
        match self.src.get(digits) {
            Some(b'.') => self.real(start, digits + 1),
            Some(b'e' | b'E') if self.exponent_end(digits).is_some() => {
                let end = self.exponent_end(digits).unwrap_or(digits);
                self.push(TokenKind::Float, start, end);
            }
            Some(byte) if is_ident(*byte) => {
                let end = self.ident_end(digits);
                self.push(TokenKind::Word, start, end);
                if self.src.get(end) == Some(&b'.')
                    && self.src.get(end + 1).is_some_and(|byte| is_ident(*byte))
                {
                    self.name_after_dot(end);
                }
            }
            _ => self.push(TokenKind::Int, start, digits),
        }
    }

    /// A number whose point is directly before `fraction`.
    pub(super) fn real(&mut self, start: usize, fraction: usize) {
        let digits = self.digits_end(fraction);
        match self.src.get(digits) {
            Some(b'e' | b'E') => match self.exponent_end(digits) {
                Some(end) => self.push(TokenKind::Float, start, end),
                None => self.push(TokenKind::Decimal, start, digits),
            },
            _ => self.push(TokenKind::Decimal, start, digits),
        }
    }

    /// `0x41` or `0b01`, if the whole word is one; `0xfg` is a name.
    fn prefixed_number(&self, start: usize) -> Option<TokenKind> {
        if self.src.get(start) != Some(&b'0') {
            return None;
        }
        let (kind, digit): (_, fn(&u8) -> bool) = match self.src.get(start + 1)? {
            b'x' => (TokenKind::Hex, u8::is_ascii_hexdigit),
            b'b' => (TokenKind::Bit, |byte| matches!(byte, b'0' | b'1')),
            _ => return None,
        };
        let digits = self.src.get(start + 2..self.ident_end(start))?;
        (!digits.is_empty() && digits.iter().all(digit)).then_some(kind)
    }

    /// `x'..'` or `b'..'`, whose quote is the next byte.
    pub(super) fn quoted_digits(&mut self, kind: TokenKind) -> Result<(), LexError> {
        let start = self.pos;
        let rest = &self.src[start + 2..];
        let what = if kind == TokenKind::Hex {
            "hexadecimal literal"
        } else {
            "bit literal"
        };
        let len = rest.iter().position(|byte| *byte == b'\'');
        let len = len.ok_or(LexError::Unterminated { what, at: start })?;
        let fine = match kind {
            TokenKind::Hex => len % 2 == 0 && rest[..len].iter().all(u8::is_ascii_hexdigit),
            _ => rest[..len].iter().all(|byte| matches!(byte, b'0' | b'1')),
        };
        if !fine {
            return Err(LexError::Malformed { what, at: start });
        }
        self.push(kind, start, start + 2 + len + 1);
        Ok(())
    }

    fn digits_end(&self, from: usize) -> usize {
        let rest = self.src.get(from..).unwrap_or_default();
        from + rest
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(rest.len())
    }

    /// Where the exponent ends whose `e` is at `at`, if digits follow.
    fn exponent_end(&self, at: usize) -> Option<usize> {
        let sign = usize::from(matches!(self.src.get(at + 1), Some(b'+' | b'-')));
        let digits = at + 1 + sign;
        self.src.get(digits).filter(|byte| byte.is_ascii_digit())?;
        Some(self.digits_end(digits))
    }
}
