//! Bytes to tokens, by the servers' own rules.
//!
//! The rules followed are those of `sql_lex.cc` in both servers, including the odd ones: a word in front of `.x`
//! is a name even if it spells a keyword, `1a` is a name but `1e5a` a number and a name, `--` opens a comment only
//! before space. Where servers disagree and the settings do not say which one is behind, the statement is refused
//! instead of guessed at.

mod comment;
mod number;
mod quoted;

use smallvec::SmallVec;

use crate::charset::is_introducer;
use crate::keyword::Keyword;
use crate::lexed::{Lexed, VersionComment};
use crate::mode::{Flavor, LexOptions};
use crate::token::{LexError, Token, TokenKind};

/// Reads `src` as tokens.
///
/// Total: any bytes give tokens or an error, never a panic. Time and memory are linear in the length.
pub fn lex<'a>(src: &'a [u8], options: &LexOptions) -> Result<Lexed<'a>, LexError> {
    if u32::try_from(src.len()).is_err() {
        return Err(LexError::TooLong { len: src.len() });
    }
    let mut lexer = Lexer {
        src,
        pos: 0,
        options: *options,
        tokens: SmallVec::new(),
        open_version_comment: None,
        version_comments: Vec::new(),
        directives: SmallVec::new(),
    };
    lexer.run()?;
    Ok(Lexed {
        src,
        options: *options,
        tokens: lexer.tokens,
        version_comments: lexer.version_comments,
        directives: lexer.directives,
    })
}

pub(crate) struct Lexer<'a> {
    src: &'a [u8],
    pos: usize,
    options: LexOptions,
    tokens: SmallVec<[Token; 32]>,
    /// Where the version comment starts whose content is being read as code.
    open_version_comment: Option<usize>,
    version_comments: Vec<VersionComment>,
    directives: SmallVec<[(u32, u32); 1]>,
}

const SPACE: u8 = 1;
const IDENT: u8 = 2;
const DIGIT: u8 = 4;
const COMPARE: u8 = 8;

static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut class = [0; 256];
    let mut i = 0;
    while i < 256 {
        let byte = i as u8;
        class[i] = match byte {
            b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' => SPACE,
            b'0'..=b'9' => IDENT | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xff => IDENT,
            b'<' | b'>' | b'=' | b'!' => COMPARE,
            _ => 0,
        };
        i += 1;
    }
    class
}

pub(crate) fn is_space(byte: u8) -> bool {
    CLASS[byte as usize] & SPACE != 0
}

fn is_ident(byte: u8) -> bool {
    CLASS[byte as usize] & IDENT != 0
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), LexError> {
        while let Some(&byte) = self.src.get(self.pos) {
            if is_space(byte) {
                self.pos += 1;
            } else if byte.is_ascii_digit() {
                self.number(self.pos);
            } else if is_ident(byte) {
                self.word(byte)?;
            } else {
                self.symbol(byte)?;
            }
        }
        match self.open_version_comment {
            Some(at) => Err(LexError::Unterminated {
                what: "version comment",
                at,
            }),
            None => Ok(()),
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.src.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: TokenKind, start: usize, end: usize) {
        self.pos = end;
        self.tokens.push(Token {
            kind,
            keyword: None,
            start: start as u32,
            end: end as u32,
        });
    }

    /// Where the run of name characters from `from` ends.
    fn ident_end(&self, from: usize) -> usize {
        let rest = self.src.get(from..).unwrap_or_default();
        from + rest
            .iter()
            .position(|byte| !is_ident(*byte))
            .unwrap_or(rest.len())
    }

    fn word(&mut self, first: u8) -> Result<(), LexError> {
        if self.peek(1) == b'\'' {
            match first | 0x20 {
                b'x' => return self.quoted_digits(TokenKind::Hex),
                b'b' => return self.quoted_digits(TokenKind::Bit),
                b'n' => return self.string(TokenKind::NationalString, 1),
                _ => {}
            }
        }
        let (start, end) = (self.pos, self.ident_end(self.pos));
        let text = &self.src[start..end];
        if first == b'_' && is_introducer(&text[1..]) {
            self.push(TokenKind::Introducer, start, end);
            return Ok(());
        }
        let before_dot =
            self.src.get(end) == Some(&b'.') && self.src.get(end + 1).is_some_and(|byte| is_ident(*byte));
        let keyword = if before_dot { None } else { Keyword::find(text) };
        self.pos = end;
        self.tokens.push(Token {
            kind: TokenKind::Word,
            keyword,
            start: start as u32,
            end: end as u32,
        });
        if before_dot {
            self.name_after_dot(end);
        }
        Ok(())
    }

    /// `.name` directly behind a name: whatever follows the dot is a name, even digits or a keyword.
    fn name_after_dot(&mut self, dot: usize) {
        let mut dot = dot;
        loop {
            self.push(TokenKind::Dot, dot, dot + 1);
            let end = self.ident_end(dot + 1);
            self.push(TokenKind::Word, dot + 1, end);
            let more =
                self.src.get(end) == Some(&b'.') && self.src.get(end + 1).is_some_and(|byte| is_ident(*byte));
            if !more {
                return;
            }
            dot = end;
        }
    }

    fn dot(&mut self) {
        let at = self.pos;
        match self.peek(1) {
            b'0'..=b'9' => self.real(at, at + 1),
            next if is_ident(next) => self.name_after_dot(at),
            _ => self.push(TokenKind::Dot, at, at + 1),
        }
    }

    fn symbol(&mut self, byte: u8) -> Result<(), LexError> {
        let at = self.pos;
        match byte {
            b'"' if self.options.mode.ansi_quotes() => return self.quoted_ident(b'"'),
            b'\'' | b'"' => return self.string(TokenKind::String, 0),
            b'`' => return self.quoted_ident(b'`'),
            b'@' => return self.variable(),
            b'.' => self.dot(),
            b'#' => return self.line_comment(1),
            b'-' if self.peek(1) == b'-' && self.dashes_open_comment() => return self.line_comment(2),
            b'/' if self.peek(1) == b'*' => return self.block_comment(),
            b'*' if self.peek(1) == b'/' && self.open_version_comment.is_some() => {
                self.close_version_comment();
            }
            b'\\' if self.peek(1) == b'N' => {
                self.pos = at + 2;
                let (start, end) = (at as u32, at as u32 + 2);
                self.tokens.push(Token {
                    kind: TokenKind::Word,
                    keyword: Some(Keyword::Null),
                    start,
                    end,
                });
            }
            _ if CLASS[byte as usize] & COMPARE != 0 => return self.comparison(),
            _ => {
                let (kind, len) = self.operator(byte).ok_or(LexError::UnexpectedByte { byte, at })?;
                if kind == TokenKind::Semicolon && self.open_version_comment.is_some() {
                    return Err(LexError::Ambiguous {
                        what: "semicolon inside a version comment",
                        at,
                    });
                }
                self.push(kind, at, at + len);
            }
        }
        Ok(())
    }

    fn operator(&self, byte: u8) -> Option<(TokenKind, usize)> {
        use TokenKind as K;
        let next = self.peek(1);
        Some(match byte {
            b',' => (K::Comma, 1),
            b'(' => (K::LParen, 1),
            b')' => (K::RParen, 1),
            b'{' => (K::LBrace, 1),
            b'}' => (K::RBrace, 1),
            b';' => (K::Semicolon, 1),
            b'?' => (K::Placeholder, 1),
            b':' if next == b'=' => (K::Assign, 2),
            b':' => (K::Colon, 1),
            b'+' => (K::Plus, 1),
            b'-' if next == b'>' && self.peek(2) == b'>' => (K::LongArrow, 3),
            b'-' if next == b'>' => (K::Arrow, 2),
            b'-' => (K::Minus, 1),
            b'*' => (K::Star, 1),
            b'/' => (K::Slash, 1),
            b'%' => (K::Percent, 1),
            b'&' if next == b'&' => (K::AmpAmp, 2),
            b'&' => (K::Amp, 1),
            b'|' if next == b'|' => (K::PipePipe, 2),
            b'|' => (K::Pipe, 1),
            b'^' => (K::Caret, 1),
            b'~' => (K::Tilde, 1),
            _ => return None,
        })
    }

    /// `=`, `<>` and so on. A run such as `=!` is two operators on MariaDB; older MySQL lexers swallow both bytes
    /// and read `=`, so there it is refused.
    fn comparison(&mut self) -> Result<(), LexError> {
        let at = self.pos;
        let run = self.src[at..]
            .iter()
            .take_while(|byte| CLASS[**byte as usize] & COMPARE != 0)
            .count();
        if let Some(kind) = comparison_kind(&self.src[at..at + run]) {
            self.push(kind, at, at + run);
            return Ok(());
        }
        if self.options.flavor == Flavor::MySql {
            return Err(LexError::Ambiguous {
                what: "run of comparison characters",
                at,
            });
        }
        for len in [3, 2, 1] {
            if let Some(kind) = self.src.get(at..at + len).and_then(comparison_kind) {
                self.push(kind, at, at + len);
                break;
            }
        }
        Ok(())
    }
}

fn comparison_kind(run: &[u8]) -> Option<TokenKind> {
    use TokenKind as K;
    Some(match run {
        b"=" => K::Eq,
        b"<=>" => K::NullSafeEq,
        b"<>" | b"!=" => K::NotEq,
        b"<" => K::Lt,
        b"<=" => K::LtEq,
        b">" => K::Gt,
        b">=" => K::GtEq,
        b"<<" => K::ShiftLeft,
        b">>" => K::ShiftRight,
        b"!" => K::Bang,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
