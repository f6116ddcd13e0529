//! Where a statement that planning does not read names databases, told by tokens: a walk that knows what stands before a
//! table's name, and which commas go on with a list of tables.

use shardgate_sql::{DdlKind, DdlObject, Keyword as K, Lexed, StatementKind, TokenKind, parse_show};

/// What `name.` stands before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A table that is read.
    Read,
    /// A table, a routine or the like that is changed, made or run.
    Written,
    /// A table or a column.
    Unclear,
}

/// All tokens of `name.` at the beginning of a qualified name that may be a database's.
pub(super) fn places(lexed: &Lexed<'_>, kind: StatementKind) -> Vec<(usize, Place)> {
    use StatementKind as S;
    let found = |end: usize, place: Place| {
        let begins = |at: &usize| begins(lexed, *at);
        (0..end).filter(begins).map(|at| (at, place)).collect()
    };
    match kind {
        // No columns in these: whatever is qualified is a table, a routine or the like.
        S::LockTables
        | S::Admin(_)
        | S::Call
        | S::Ddl {
            verb: DdlKind::Drop | DdlKind::Rename | DdlKind::Truncate,
            ..
        } => found(lexed.len(), Place::Written),
        S::Describe { .. } => found(lexed.len(), Place::Read),
        S::Show => {
            let filter = parse_show(lexed).and_then(|show| show.filter);
            let end = filter.map_or(lexed.len(), |f| f.start);
            let mut all: Vec<_> = found(end, Place::Read);
            all.extend(walked(lexed, kind).into_iter().filter(|(at, _)| *at >= end));
            all
        }
        S::Handler => found(2.min(lexed.len()), Place::Written),
        _ => walked(lexed, kind),
    }
}

/// Whether a qualified name begins at a token.
fn begins(lexed: &Lexed<'_>, at: usize) -> bool {
    lexed.is(at + 1, TokenKind::Dot)
        && lexed.kind(at).is_some_and(TokenKind::is_name)
        && !(at > 0 && lexed.is(at - 1, TokenKind::Dot))
}

fn walked(lexed: &Lexed<'_>, kind: StatementKind) -> Vec<(usize, Place)> {
    let mut walk = Walk {
        lexed,
        kind,
        levels: vec![Level::default()],
        next: None,
        bound: false,
        found: Vec::new(),
    };
    for at in 0..lexed.len() {
        walk.step(at);
    }
    walk.found
}

/// What is known of the parentheses around a token.
#[derive(Clone, Copy, Default)]
struct Level {
    /// What a comma goes on with.
    list: Option<Place>,
    /// Whether FROM in it is a function's: `EXTRACT(YEAR FROM t.at)`.
    call: bool,
}

struct Walk<'w, 'a> {
    lexed: &'w Lexed<'a>,
    kind: StatementKind,
    levels: Vec<Level>,
    /// What the next name is.
    next: Option<Place>,
    /// Whether the ON that names the table of a trigger or an index was seen.
    bound: bool,
    found: Vec<(usize, Place)>,
}

impl Walk<'_, '_> {
    fn step(&mut self, at: usize) {
        let lexed = self.lexed;
        if begins(lexed, at) {
            let place = self.next.take().or_else(|| self.unclear());
            self.found.extend(place.map(|place| (at, place)));
            return;
        }
        match lexed.kind(at) {
            Some(TokenKind::LParen) => {
                let level = Level {
                    list: self.next,
                    call: self.next.is_none() && is_from_call(lexed, at),
                };
                self.levels.push(level);
            }
            Some(TokenKind::RParen) => {
                if self.levels.len() > 1 {
                    self.levels.pop();
                }
                self.next = None;
            }
            Some(TokenKind::Comma) => self.next = self.level().list,
            Some(TokenKind::Semicolon) => self.clause(),
            _ => match lexed.keyword(at) {
                Some(keyword) => self.keyword(keyword, at),
                None => self.next = None,
            },
        }
    }

    /// A qualified name in no place that is known. In a SET it may be a variable's, in a SHOW a column's.
    fn unclear(&self) -> Option<Place> {
        use StatementKind as S;
        (!matches!(self.kind, S::Set | S::Show | S::Prepare | S::Execute)).then_some(Place::Unclear)
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn keyword(&mut self, keyword: K, at: usize) {
        let lexed = self.lexed;
        let before = at.checked_sub(1).and_then(|at| lexed.keyword(at));
        let calls = lexed.is(at + 1, TokenKind::LParen);
        match keyword {
            K::From if self.level().call => self.next = None,
            K::From => {
                let deletes = matches!(before, Some(K::Delete | K::Quick | K::Ignore | K::LowPriority));
                self.list(if deletes { Place::Written } else { Place::Read });
            }
            K::Join | K::StraightJoin | K::References => self.next = Some(Place::Read),
            // `FOR UPDATE`, `ON UPDATE CASCADE`, `ON DUPLICATE KEY UPDATE`, `BEFORE UPDATE ON`
            K::Update if matches!(before, Some(K::For | K::On | K::Key | K::Before | K::After)) => {
                self.clause();
            }
            K::Insert | K::Replace if !calls => self.next = Some(Place::Written),
            // `JOIN t USING (a)`, `CONVERT(a USING utf8mb4)`
            K::Using if calls => self.next = None,
            K::Update | K::Delete | K::Using | K::Call | K::Tables => self.list(Place::Written),
            // Into a variable, perhaps into a field of one.
            K::Into
                if !matches!(
                    before,
                    Some(K::Insert | K::Replace | K::Ignore | K::LowPriority | K::HighPriority | K::Delayed)
                ) =>
            {
                self.next = None;
            }
            K::Into
            | K::Table
            | K::View
            | K::Procedure
            | K::Function
            | K::Trigger
            | K::Event
            | K::Sequence
            | K::Package
            | K::Truncate
            | K::Rename
            | K::To => self.next = Some(Place::Written),
            K::Like if self.copies(at) => self.next = Some(Place::Read),
            K::On if !self.bound && self.binds(at) => {
                self.bound = true;
                self.next = Some(Place::Written);
            }
            K::Select => {
                self.level().call = false;
                self.clause();
            }
            K::Where
            | K::Set
            | K::Group
            | K::Order
            | K::Having
            | K::Limit
            | K::Values
            | K::Window
            | K::Union
            | K::Except
            | K::Intersect
            | K::Begin
            | K::Do
            | K::Then
            | K::Else => self.clause(),
            // Words between a verb and a name.
            K::If
            | K::Not
            | K::Exists
            | K::Ignore
            | K::LowPriority
            | K::HighPriority
            | K::Delayed
            | K::Quick => {}
            K::As | K::Column | K::Body if before == Some(K::Rename) || before == Some(K::Package) => {}
            _ => self.next = None,
        }
    }

    fn list(&mut self, place: Place) {
        self.level().list = Some(place);
        self.next = Some(place);
    }

    fn clause(&mut self) {
        self.level().list = None;
        self.next = None;
    }

    /// `CREATE TABLE a LIKE b`, `CREATE TABLE a (LIKE b)`
    fn copies(&self, at: usize) -> bool {
        let table = matches!(
            self.kind,
            StatementKind::Ddl {
                verb: DdlKind::Create,
                object: DdlObject::Table,
                ..
            }
        );
        table && (self.levels.len() == 1 || self.lexed.is(at - 1, TokenKind::LParen))
    }

    /// Whether the first ON names a table.
    fn binds(&self, at: usize) -> bool {
        let StatementKind::Ddl {
            verb: DdlKind::Create,
            object,
            ..
        } = self.kind
        else {
            return false;
        };
        let trigger = || (0..at).any(|at| self.lexed.is_keyword(at, K::Trigger));
        object == DdlObject::Index || object == DdlObject::Routine && trigger()
    }
}

/// Whether a parenthesis opens the arguments of a function whose syntax has a FROM.
fn is_from_call(lexed: &Lexed<'_>, open: usize) -> bool {
    let names = ["extract", "trim", "substring", "substr", "mid", "ltrim", "rtrim"];
    open.checked_sub(1)
        .is_some_and(|at| names.iter().any(|name| lexed.is_word(at, name)))
}
