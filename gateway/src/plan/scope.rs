//! Where each SELECT of a statement begins and ends, and its clauses.
//!
//! Every SELECT is found by its keyword, wherever it stands, so none can hide: subqueries, derived tables, arms of a
//! UNION and common table expressions are all scopes. UPDATE and DELETE get one scope of the same shape.

use shardgate_sql::{Keyword as K, TokenKind};

use super::statement::{Span, Statement};

/// One SELECT (or the body of an UPDATE or DELETE) and the token spans of its clauses, keywords excluded.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The scope around it.
    pub(super) parent: Option<usize>,
    /// From its first keyword to its end.
    pub(super) span: Span,
    /// Select list, or an UPDATE's SET list.
    pub(super) items: Span,
    pub(super) from: Span,
    /// The FROM keyword, if it has one.
    pub(super) from_at: Option<usize>,
    pub(super) where_: Option<Span>,
    pub(super) order: Option<Span>,
    pub(super) limit: Option<Span>,
    /// Clauses that matter only by being there.
    pub(super) marks: Marks,
}

/// Which clauses a scope has beyond those with spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // independent facts, each read on its own
pub(super) struct Marks {
    pub(super) distinct: bool,
    pub(super) calc_found_rows: bool,
    pub(super) group_by: bool,
    pub(super) having: bool,
    pub(super) window: bool,
    pub(super) into: bool,
    pub(super) locking: bool,
    /// A UNION, EXCEPT or INTERSECT follows or precedes.
    pub(super) set_operation: bool,
    /// Something behind the clauses that is not understood: PROCEDURE, FETCH, `OFFSET n ROWS`.
    pub(super) unknown: bool,
}

/// All SELECT scopes in order of their keywords, outer ones before those inside them.
pub(super) fn select_scopes(statement: &Statement<'_>) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = Vec::new();
    for at in statement.all().filter(|at| statement.is_keyword(*at, K::Select)) {
        let parent = scopes.iter().rposition(|s| s.span.end > at);
        scopes.push(select_scope(statement, at, parent));
    }
    scopes
}

/// Which clause the scan is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clause {
    Items,
    From,
    Where,
    Order,
    Limit,
    Other,
}

fn select_scope(statement: &Statement<'_>, select: usize, parent: Option<usize>) -> Scope {
    let mut scope = Scope {
        parent,
        ..Scope::default()
    };
    let mut start = behind_hint(statement, select + 1);
    while let Some(next) = modifier(statement, start, &mut scope.marks) {
        start = next;
    }
    scope.marks.set_operation = preceded_by_set_operation(statement, select);
    scope.span = select..scan(statement, &mut scope, Clause::Items, start);
    scope
}

/// Steps over `/*+ ... */`, which stands right behind the verb.
pub(super) fn behind_hint(statement: &Statement<'_>, at: usize) -> usize {
    at + usize::from(statement.is(at, TokenKind::Hint))
}

/// Steps over one word between SELECT and its list.
fn modifier(statement: &Statement<'_>, at: usize, marks: &mut Marks) -> Option<usize> {
    match statement.keyword(at)? {
        K::Distinct | K::Distinctrow => marks.distinct = true,
        K::SqlCalcFoundRows => marks.calc_found_rows = true,
        K::All
        | K::HighPriority
        | K::StraightJoin
        | K::SqlSmallResult
        | K::SqlBigResult
        | K::SqlBufferResult
        | K::SqlCache
        | K::SqlNoCache => {}
        _ => return None,
    }
    Some(at + 1)
}

/// Reads clauses from `start`, which is inside `clause`, and returns the scope's end.
pub(super) fn scan_clauses(statement: &Statement<'_>, scope: &mut Scope, from: usize) -> usize {
    scan(statement, scope, Clause::From, from)
}

fn scan(statement: &Statement<'_>, scope: &mut Scope, first: Clause, start: usize) -> usize {
    let (mut clause, mut begun) = (first, start);
    let mut at = start;
    let end = loop {
        if at >= statement.all().end || statement.is(at, TokenKind::RParen) {
            break at;
        }
        if statement.is(at, TokenKind::Semicolon) {
            break at;
        }
        if let Some(close) = statement.close(at) {
            at = close + 1;
            continue;
        }
        match boundary(statement, scope, clause, at) {
            Boundary::None => at += 1,
            Boundary::Skip(n) => at += n,
            Boundary::End => break at,
            Boundary::Clause(next, width) => {
                close_clause(scope, clause, begun..at);
                clause = next;
                at += width;
                begun = at;
            }
        }
    };
    close_clause(scope, clause, begun..end);
    end
}

enum Boundary {
    None,
    /// These tokens belong to the clause, whatever they look like.
    Skip(usize),
    /// The scope ends before this token.
    End,
    /// A clause begins; its keywords are this many tokens.
    Clause(Clause, usize),
}

fn boundary(statement: &Statement<'_>, scope: &mut Scope, clause: Clause, at: usize) -> Boundary {
    let marks = &mut scope.marks;
    let mut other = |mark: fn(&mut Marks)| {
        mark(marks);
        Boundary::Clause(Clause::Other, 1)
    };
    let Some(keyword) = statement.keyword(at) else {
        return Boundary::None;
    };
    match keyword {
        K::From => {
            scope.from_at = Some(at);
            Boundary::Clause(Clause::From, 1)
        }
        K::Where => Boundary::Clause(Clause::Where, 1),
        K::Group => other(|m| m.group_by = true),
        K::Having => other(|m| m.having = true),
        K::Window if statement.is_keyword(at + 2, K::As) => other(|m| m.window = true),
        K::Order if statement.is_keyword(at + 1, K::By) => Boundary::Clause(Clause::Order, 2),
        K::Limit => Boundary::Clause(Clause::Limit, 1),
        K::Into => other(|m| m.into = true),
        K::Procedure | K::Fetch | K::Rows => other(|m| m.unknown = true),
        // A column may be called so; as a clause it is `OFFSET n ROWS`, and inside LIMIT it is LIMIT's.
        K::Offset if clause != Clause::Limit && is_offset_clause(statement, at) => {
            other(|m| m.unknown = true)
        }
        // An index hint: `USE INDEX FOR ORDER BY (k)`.
        K::For if clause == Clause::From && is_index_hint(statement, at) => {
            Boundary::Skip(if statement.is_keyword(at + 1, K::Join) {
                2
            } else {
                3
            })
        }
        K::For if matches!(statement.keyword(at + 1), Some(K::Update | K::Share)) => {
            other(|m| m.locking = true)
        }
        K::For => other(|m| m.unknown = true),
        K::Lock => other(|m| m.locking = true),
        K::Union | K::Except | K::Intersect => {
            marks.set_operation = true;
            Boundary::End
        }
        K::On if statement.is_keyword(at + 1, K::Duplicate) => Boundary::End,
        K::Returning if clause != Clause::Items => {
            marks.unknown = true;
            Boundary::End
        }
        _ => Boundary::None,
    }
}

fn close_clause(scope: &mut Scope, clause: Clause, span: Span) {
    match clause {
        Clause::Items => scope.items = span,
        Clause::From => scope.from = span,
        Clause::Where => scope.where_ = Some(span),
        Clause::Order => scope.order = Some(span),
        Clause::Limit => scope.limit = Some(span),
        Clause::Other => {}
    }
}

fn is_index_hint(statement: &Statement<'_>, at: usize) -> bool {
    at > 0 && matches!(statement.keyword(at - 1), Some(K::Index | K::Key))
}

fn is_offset_clause(statement: &Statement<'_>, at: usize) -> bool {
    statement.lexed.kind(at + 1).is_some_and(TokenKind::is_literal)
        && matches!(statement.keyword(at + 2), Some(K::Row | K::Rows))
}

/// Whether this SELECT is an arm of a UNION but not its first: `UNION [ALL] SELECT`, `UNION (SELECT`.
fn preceded_by_set_operation(statement: &Statement<'_>, select: usize) -> bool {
    let before = |mut at: usize| {
        while at > 0 && (statement.is(at - 1, TokenKind::LParen) || is_quantifier(statement, at - 1)) {
            at -= 1;
        }
        at.checked_sub(1)
    };
    before(select)
        .is_some_and(|at| matches!(statement.keyword(at), Some(K::Union | K::Except | K::Intersect)))
}

fn is_quantifier(statement: &Statement<'_>, at: usize) -> bool {
    matches!(statement.keyword(at), Some(K::All | K::Distinct))
}

/// Reads clauses from an UPDATE's SET list on, and returns the scope's end. The FROM that UPDATE does not have is kept.
pub(super) fn scan_items(statement: &Statement<'_>, scope: &mut Scope, items: usize) -> usize {
    scan(statement, scope, Clause::Items, items)
}

/// Whether every FROM and JOIN of a statement belongs to a scope that was read, so that no table is overlooked. FROM
/// also stands inside a few functions: `TRIM(x FROM y)`.
pub(super) fn all_read(statement: &Statement<'_>, scopes: &[Scope]) -> bool {
    let in_from = |at: usize| scopes.iter().any(|s| s.from.contains(&at));
    let begins = |at: usize| scopes.iter().any(|s| s.from_at == Some(at));
    let mut open = Vec::new();
    for at in statement.all() {
        if statement.close(at).is_some() {
            open.push(at);
        } else if statement.is(at, TokenKind::RParen) {
            open.pop();
        }
        let function = |open: &usize| {
            let name = open
                .checked_sub(1)
                .map(|at| statement.lexed.text(at))
                .unwrap_or_default();
            ["extract", "trim", "substring", "substr", "mid"]
                .iter()
                .any(|f| name.eq_ignore_ascii_case(f.as_bytes()))
        };
        let read = match statement.keyword(at) {
            Some(K::From) => begins(at) || open.last().is_some_and(function),
            Some(K::Join) => in_from(at),
            _ => true,
        };
        if !read {
            return false;
        }
    }
    true
}
