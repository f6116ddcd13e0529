//! Tokens: what kind of thing stands where in the statement's bytes.

use std::ops::Range;

use crate::keyword::Keyword;

/// One token and the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// For a bare word: the keyword it spells, unless its place makes it a name (`t.select`, `select.a`).
    pub keyword: Option<Keyword>,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte.
    pub end: u32,
}

impl Token {
    /// Its bytes' range.
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The kinds of tokens. Each operator is a kind of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// A bare word: a keyword or a name.
    Word,
    /// `` `name` ``, or `"name"` under `ANSI_QUOTES`.
    QuotedIdent,
    /// `_utf8mb4` and the like: a known character set's name behind an underscore.
    Introducer,
    /// `'text'`, or `"text"` without `ANSI_QUOTES`.
    String,
    /// `N'text'`.
    NationalString,
    /// `x'4142'` or `0x4142`.
    Hex,
    /// `b'01'` or `0b01`.
    Bit,
    /// Digits.
    Int,
    /// Digits with a point.
    Decimal,
    /// A number with an exponent.
    Float,
    /// `?`
    Placeholder,
    /// `@name`, `` @`name` ``, `@'name'`.
    UserVariable,
    /// `@@name`, `@@session.name`.
    SystemVariable,
    /// `/*+ hint */` right behind SELECT, INSERT, REPLACE, UPDATE or DELETE.
    Hint,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `:=`
    Assign,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `{`
    LBrace,
    /// `}`
    RBrace,
    /// `=`
    Eq,
    /// `<=>`
    NullSafeEq,
    /// `<>` or `!=`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `&`
    Amp,
    /// `&&`
    AmpAmp,
    /// `|`
    Pipe,
    /// `||`
    PipePipe,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `!`
    Bang,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
}

impl TokenKind {
    /// Whether it is a literal value, `?` included. NULL, TRUE and FALSE are words.
    pub fn is_literal(self) -> bool {
        matches!(
            self,
            Self::String
                | Self::NationalString
                | Self::Hex
                | Self::Bit
                | Self::Int
                | Self::Decimal
                | Self::Float
                | Self::Placeholder
        )
    }

    /// Whether it may be a name: a bare word or a quoted identifier.
    pub fn is_name(self) -> bool {
        matches!(self, Self::Word | Self::QuotedIdent)
    }
}

/// Why bytes could not be read as tokens. The server would refuse them too, or reads them in a way no one means.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LexError {
    /// Nothing in the language starts with this byte.
    #[error("unexpected byte 0x{byte:02x} at offset {at}")]
    UnexpectedByte {
        /// The byte.
        byte: u8,
        /// Where it is.
        at: usize,
    },
    /// A string, quoted name or comment that never ends.
    #[error("unterminated {what} that starts at offset {at}")]
    Unterminated {
        /// What was open.
        what: &'static str,
        /// Where it starts.
        at: usize,
    },
    /// A literal that no server reads, such as `x'123'`.
    #[error("malformed {what} at offset {at}")]
    Malformed {
        /// What it looked like.
        what: &'static str,
        /// Where it starts.
        at: usize,
    },
    /// Text that servers read in different ways: a six-digit version comment on MySQL, `;` inside a version
    /// comment, operators run together (`=!`, which some lexers cut short).
    #[error("{what} at offset {at} is read differently by different servers")]
    Ambiguous {
        /// What it is.
        what: &'static str,
        /// Where it starts.
        at: usize,
    },
    /// More than 4 GiB.
    #[error("statement too long: {len} bytes")]
    TooLong {
        /// Its length.
        len: usize,
    },
}
