//! Where in a statement a token stands, as far as it decides whether a literal stays in the key.

use smallvec::SmallVec;

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

/// Deeper than this, literals simply stay in the key.
const DEPTH: usize = 32;

/// The clauses open at each level of parentheses.
pub(super) struct Places {
    /// The statement is one whose plans are cached; in others all literals stay.
    cached: bool,
    levels: SmallVec<[Level; 6]>,
}

#[derive(Clone, Copy)]
struct Level {
    /// All literals in these parentheses stay.
    keep: bool,
    clause: Clause,
    /// Whether a `CONVERT` opened it, whose second argument is a type.
    convert: bool,
}

#[derive(Clone, Copy)]
enum Clause {
    /// Literals are values.
    Values,
    /// Within ORDER BY or GROUP BY, where a number stands for a column.
    Ordinals,
    /// Within a select item that begins with token `start`. Whether it has an alias is looked up when it matters.
    Item { start: usize, aliased: Option<bool> },
}

impl Places {
    pub(super) fn new(lexed: &Lexed<'_>) -> Self {
        use Keyword as K;
        let cached = matches!(
            lexed.first_keyword(),
            Some(K::Select | K::With | K::Insert | K::Replace | K::Update | K::Delete | K::Values | K::Do)
        );
        let level = Level {
            keep: false,
            clause: Clause::Values,
            convert: false,
        };
        Self {
            cached,
            levels: std::iter::once(level).collect(),
        }
    }

    /// Moves past token `at`.
    pub(super) fn step(&mut self, lexed: &Lexed<'_>, at: usize) {
        if !self.cached {
            return;
        }
        match lexed.kind(at) {
            Some(TokenKind::LParen) => self.open(lexed, at),
            Some(TokenKind::RParen) if self.levels.len() > 1 => {
                self.levels.pop();
            }
            Some(TokenKind::Comma) => {
                if let Some(Level {
                    clause: clause @ Clause::Item { .. },
                    ..
                }) = self.levels.last_mut()
                {
                    *clause = Clause::Item {
                        start: at + 1,
                        aliased: None,
                    };
                }
            }
            Some(TokenKind::Word) => {
                let clause = lexed
                    .keyword(at)
                    .and_then(|keyword| clause_of(lexed, at, keyword));
                if let (Some(clause), Some(level)) = (clause, self.levels.last_mut()) {
                    // `SELECT VALUES(a), 1` is still in its list.
                    let function =
                        lexed.is_keyword(at, Keyword::Values) && matches!(level.clause, Clause::Item { .. });
                    if !function {
                        level.clause = clause;
                    }
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, lexed: &Lexed<'_>, at: usize) {
        let typed = self.opens_type_arguments(lexed, at);
        let keep = typed || self.levels.len() >= DEPTH || self.here(lexed);
        let convert = at > 0 && lexed.is_keyword(at - 1, Keyword::Convert);
        self.levels.push(Level {
            keep,
            clause: Clause::Values,
            convert,
        });
    }

    /// Whether a literal at this level stays.
    fn here(&mut self, lexed: &Lexed<'_>) -> bool {
        let Some(level) = self.levels.last_mut() else {
            return true;
        };
        level.keep
            || match &mut level.clause {
                Clause::Values => false,
                Clause::Ordinals => true,
                Clause::Item { start, aliased } => !*aliased.get_or_insert_with(|| has_alias(lexed, *start)),
            }
    }

    /// Whether the literal that token `at` is stays in the key.
    pub(super) fn keeps(&mut self, lexed: &Lexed<'_>, at: usize) -> bool {
        !self.cached || is_syntax(lexed, at) || self.here(lexed)
    }

    /// Whether the parenthesis `at` holds a type's length or a function's precision.
    fn opens_type_arguments(&self, lexed: &Lexed<'_>, at: usize) -> bool {
        use Keyword as K;
        let Some(word) = at.checked_sub(1).and_then(|word| lexed.keyword(word)) else {
            return at > 0 && lexed.is_word(at - 1, "curtime");
        };
        match word {
            K::Varchar
            | K::Varcharacter
            | K::Varbinary
            | K::Decimal
            | K::Dec
            | K::Numeric
            | K::Fixed
            | K::Float
            | K::Double
            | K::Real
            | K::Int
            | K::Integer
            | K::Bigint
            | K::Smallint
            | K::Tinyint
            | K::Mediumint
            | K::Bit
            | K::Datetime
            | K::Text
            | K::Blob
            | K::Nchar
            | K::Nvarchar
            | K::Enum
            | K::Now
            | K::Sysdate
            | K::CurrentTimestamp
            | K::CurrentTime
            | K::Localtime
            | K::Localtimestamp
            | K::UtcTime
            | K::UtcTimestamp => true,
            // Types that are functions too.
            K::Char | K::Character | K::Binary | K::Time | K::Timestamp | K::Year => {
                self.is_type(lexed, at - 1)
            }
            _ => false,
        }
    }

    /// Whether the word at `at`, a type's name or a function's, stands where a type does: behind AS, a column's name
    /// or the comma of `CONVERT`.
    fn is_type(&self, lexed: &Lexed<'_>, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        match lexed.kind(before) {
            Some(TokenKind::Comma) => self.levels.last().is_some_and(|level| level.convert),
            Some(TokenKind::Word) => {
                lexed.is_keyword(before, Keyword::As)
                    || !lexed.keyword(before).is_some_and(Keyword::is_reserved)
            }
            Some(TokenKind::QuotedIdent) => true,
            _ => false,
        }
    }
}

/// The clause that a keyword opens.
fn clause_of(lexed: &Lexed<'_>, at: usize, keyword: Keyword) -> Option<Clause> {
    use Keyword as K;
    Some(match keyword {
        K::Select => Clause::Item {
            start: at + 1,
            aliased: None,
        },
        K::Order | K::Group if lexed.is_keyword(at + 1, K::By) => Clause::Ordinals,
        K::From
        | K::Into
        | K::Where
        | K::Having
        | K::Limit
        | K::On
        | K::Set
        | K::Values
        | K::Union
        | K::Except
        | K::Intersect
        | K::For
        | K::Partition => Clause::Values,
        _ => return None,
    })
}

/// Whether a literal is part of the syntax by what stands next to it.
fn is_syntax(lexed: &Lexed<'_>, at: usize) -> bool {
    use Keyword as K;
    use TokenKind as T;
    let string = |at: usize| matches!(lexed.kind(at), Some(T::String | T::NationalString));
    // Strings in a row are one value over several tokens, for which there is no slot.
    if string(at) && lexed.is(at + 1, T::String) {
        return true;
    }
    let Some(before) = at.checked_sub(1) else {
        return false;
    };
    match lexed.kind(before) {
        Some(T::String | T::NationalString) => lexed.is(at, T::String),
        Some(T::Arrow | T::LongArrow) => true,
        _ => match lexed.keyword(before) {
            Some(K::As | K::Separator | K::Escape | K::Collate | K::Charset | K::Path) => true,
            Some(K::Set) => before > 0 && lexed.is_keyword(before - 1, K::Character),
            _ => false,
        },
    }
}

/// Whether the select item that begins with token `start` ends in `AS name`. An alias without AS is not looked for:
/// then the literals stay in the key, which is never wrong.
fn has_alias(lexed: &Lexed<'_>, start: usize) -> bool {
    let mut depth = 0u32;
    let end = lexed
        .tokens()
        .iter()
        .enumerate()
        .skip(start)
        .find(|(_, token)| match token.kind {
            TokenKind::LParen => {
                depth += 1;
                false
            }
            TokenKind::RParen => {
                let outside = depth == 0;
                depth = depth.saturating_sub(1);
                outside
            }
            TokenKind::Comma | TokenKind::Semicolon => depth == 0,
            TokenKind::Word => depth == 0 && token.keyword.is_some_and(ends_items),
            _ => false,
        });
    let end = end.map_or(lexed.len(), |(at, _)| at);
    end >= start + 3 && lexed.is_keyword(end - 2, Keyword::As)
}

/// Keywords that end a list of select items.
fn ends_items(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::From
            | K::Into
            | K::Where
            | K::Having
            | K::Group
            | K::Order
            | K::Limit
            | K::Union
            | K::Except
            | K::Intersect
            | K::For
            | K::Lock
            | K::On
    )
}
