//! A statement with its literals taken out: the key under which its plan is cached.
//!
//! Two statements with equal keys have the same tokens but for the literals listed, and those are of the same types
//! in the same places. So a plan made for one serves the other, with its splice points given as token indices.
//! A literal stays in the key where a plan may depend on its value: where it is syntax (`DECIMAL(10,2)`, `ESCAPE '|'`),
//! stands for a column (`ORDER BY 2`), or names one (an unaliased select item, whose text is the column's name).

mod digest;
mod place;

pub use digest::Digest;

use smallvec::SmallVec;
use twox_hash::XxHash64;

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::literal::LiteralClass;
use crate::token::TokenKind;
use place::Places;

/// A statement's key and the literals that are not in it. Equality and hash are the key's.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    /// Most statements' texts are short: no allocation for them.
    key: SmallVec<[u8; 256]>,
    hash: u64,
    literals: SmallVec<[LiteralSlot; 8]>,
}

/// A literal taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiteralSlot {
    /// The index of its token.
    pub token: u32,
    /// Its type. It is part of the key.
    pub class: LiteralClass,
}

impl Fingerprint {
    /// The fingerprint of a statement. Linear in its length.
    pub fn of(lexed: &Lexed<'_>) -> Self {
        let mut key = SmallVec::with_capacity(lexed.src().len() + lexed.len());
        let mut literals = SmallVec::new();
        let mut places = Places::new(lexed);
        for at in 0..lexed.len() {
            separate(lexed, at, &mut key);
            places.step(lexed, at);
            match lexed.literal_class(at) {
                Some(class) if class == LiteralClass::Placeholder || !places.keeps(lexed, at) => {
                    key.append_byte(b'?');
                    key.append_byte(class as u8);
                    literals.push(LiteralSlot {
                        token: at as u32,
                        class,
                    });
                }
                _ => push_token(lexed, at, &mut key),
            }
        }
        let hash = XxHash64::oneshot(0, &key);
        Self { key, hash, literals }
    }

    /// The key: normalised text in which each literal taken out is `?` and a letter for its type. Compare it whole; two
    /// keys may share a hash.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// A hash of the key, the same in every process.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The literals taken out, in token order.
    pub fn literals(&self) -> &[LiteralSlot] {
        &self.literals
    }

    /// Which literal taken out is token `token`.
    pub fn slot_of(&self, token: usize) -> Option<usize> {
        self.literals
            .binary_search_by_key(&token, |slot| slot.token as usize)
            .ok()
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.key == other.key
    }
}

impl Eq for Fingerprint {}

impl std::hash::Hash for Fingerprint {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What a statement's text is written to.
trait Text {
    fn append(&mut self, bytes: &[u8]);
    /// One byte: half of all that is appended, and a slice costs two calls however short it is.
    fn append_byte(&mut self, byte: u8);
}

impl Text for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    fn append_byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

impl Text for SmallVec<[u8; 256]> {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    #[inline]
    fn append_byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// One space between tokens. Space between a name and a parenthesis may decide whether it is a function, so there it
/// is kept as it was: there or not.
fn separate(lexed: &Lexed<'_>, at: usize, text: &mut impl Text) {
    if at == 0 {
        return;
    }
    let name = lexed.is(at - 1, TokenKind::Word) && !lexed.keyword(at - 1).is_some_and(Keyword::is_reserved);
    let joined = name && lexed.is(at, TokenKind::LParen) && lexed.range(at - 1).end == lexed.range(at).start;
    if !joined {
        text.append_byte(b' ');
    }
}

/// The token as written; reserved words, which can be nothing else, in capitals.
fn push_token(lexed: &Lexed<'_>, at: usize, text: &mut impl Text) {
    match lexed.keyword(at) {
        Some(keyword) if keyword.is_reserved() => text.append(keyword.text().as_bytes()),
        _ => text.append(lexed.text(at)),
    }
}

#[cfg(test)]
mod tests;
