//! FROM clauses as join trees: which tables, under which names, and which conditions hold for whose rows.

use shardgate_sql::{Keyword as K, TokenKind};

use super::statement::{Span, Statement};

/// A table, derived table or the like in a FROM clause.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// Its first token.
    pub(super) at: usize,
    /// The token of its `keyspace.`, if it has one.
    pub(super) qualifier: Option<usize>,
    /// The table's name; `None` for a derived table.
    pub(super) table: Option<String>,
    /// What columns are qualified by: the alias, else the table's name.
    pub(super) alias: Option<String>,
    /// Whether the alias was given, so that `keyspace.table.column` does not name it.
    pub(super) renamed: bool,
}

/// How two sides are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum JoinKind {
    Inner,
    Left,
    Right,
}

/// What a join requires of its rows.
#[derive(Clone, Debug)]
pub(super) enum JoinCondition {
    None,
    On(Span),
    Using(Vec<String>),
    /// All columns of equal name; which those are is not known here.
    Natural,
}

/// A join tree. Leaves are indices into [`From::factors`].
#[derive(Clone, Debug)]
pub(super) enum Node {
    Factor(usize),
    Join {
        kind: JoinKind,
        left: Box<Node>,
        right: Box<Node>,
        condition: JoinCondition,
    },
}

/// A FROM clause.
#[derive(Clone, Debug, Default)]
pub(super) struct From {
    pub(super) factors: Vec<Factor>,
    pub(super) root: Option<Node>,
}

/// A FROM clause that is not understood to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotUnderstood;

type Result<T> = std::result::Result<T, NotUnderstood>;

/// Factors at most: more than any server joins. It bounds the tree's depth too.
const MAX_FACTORS: usize = 128;
/// Nested joins deeper than this are refused rather than followed.
const MAX_DEPTH: usize = 32;

impl From {
    /// Reads the span of a FROM clause.
    pub(super) fn parse(statement: &Statement<'_>, span: &Span) -> Result<Self> {
        if span.is_empty() {
            return Ok(Self::default());
        }
        let mut parser = Parser {
            statement,
            at: span.start,
            end: span.end,
            factors: Vec::new(),
            depth: 0,
        };
        let root = parser.references()?;
        if parser.at != span.end {
            return Err(NotUnderstood);
        }
        Ok(Self {
            factors: parser.factors,
            root: Some(root),
        })
    }

    /// Whether unqualified names of joined columns may come from either side of an outer join.
    pub(super) fn coalesces_outer(&self) -> bool {
        self.root.as_ref().is_some_and(|root| {
            let (mut outer, mut coalesced) = (false, false);
            root.visit(&mut |kind, condition| {
                outer |= kind != JoinKind::Inner;
                coalesced |= matches!(condition, JoinCondition::Using(_) | JoinCondition::Natural);
            });
            outer && coalesced
        })
    }
}

impl Node {
    fn visit(&self, f: &mut impl FnMut(JoinKind, &JoinCondition)) {
        if let Self::Join {
            kind,
            left,
            right,
            condition,
        } = self
        {
            f(*kind, condition);
            left.visit(f);
            right.visit(f);
        }
    }
}

struct Parser<'s, 'a> {
    statement: &'s Statement<'a>,
    at: usize,
    end: usize,
    factors: Vec<Factor>,
    depth: usize,
}

impl Parser<'_, '_> {
    fn keyword(&self) -> Option<K> {
        if self.at < self.end {
            self.statement.keyword(self.at)
        } else {
            None
        }
    }

    fn full(&self) -> bool {
        self.factors.len() >= MAX_FACTORS
    }

    fn is(&self, kind: TokenKind) -> bool {
        self.at < self.end && self.statement.is(self.at, kind)
    }

    fn take(&mut self, keyword: K) -> bool {
        let found = self.keyword() == Some(keyword);
        self.at += usize::from(found);
        found
    }

    /// `a, b JOIN c ...`
    fn references(&mut self) -> Result<Node> {
        let mut left = self.joined()?;
        while self.is(TokenKind::Comma) {
            self.at += 1;
            let right = self.joined()?;
            left = join(JoinKind::Inner, left, right, JoinCondition::None);
        }
        Ok(left)
    }

    fn joined(&mut self) -> Result<Node> {
        let mut left = self.factor()?;
        while let Some((kind, natural)) = self.join_words()? {
            let right = self.factor()?;
            let condition = if natural {
                JoinCondition::Natural
            } else {
                self.condition()?
            };
            // `a LEFT JOIN b JOIN c ON .. ON ..` nests without parentheses; nobody writes it, so it is not followed.
            if kind != JoinKind::Inner && matches!(condition, JoinCondition::None) {
                return Err(NotUnderstood);
            }
            left = join(kind, left, right, condition);
        }
        Ok(left)
    }

    /// The words of a join operator: its kind, and whether it is NATURAL.
    fn join_words(&mut self) -> Result<Option<(JoinKind, bool)>> {
        let natural = self.take(K::Natural);
        let kind = match self.keyword() {
            Some(K::Join | K::StraightJoin) => {
                self.at += 1;
                return Ok(Some((JoinKind::Inner, natural)));
            }
            Some(K::Inner | K::Cross) => JoinKind::Inner,
            Some(K::Left) => JoinKind::Left,
            Some(K::Right) => JoinKind::Right,
            _ if natural => return Err(NotUnderstood),
            _ => return Ok(None),
        };
        self.at += 1;
        if kind != JoinKind::Inner {
            self.take(K::Outer);
        }
        if self.take(K::Join) {
            Ok(Some((kind, natural)))
        } else {
            Err(NotUnderstood)
        }
    }

    fn condition(&mut self) -> Result<JoinCondition> {
        if self.take(K::Using) {
            let Some(close) = self.statement.close(self.at) else {
                return Err(NotUnderstood);
            };
            let columns = self.statement.split_commas(self.at + 1..close);
            let name = |span: Span| {
                if span.len() == 1 {
                    self.statement.name(span.start)
                } else {
                    None
                }
            };
            let names = columns.into_iter().map(name).collect::<Option<Vec<_>>>();
            let Some(names) = names else {
                return Err(NotUnderstood);
            };
            self.at = close + 1;
            return Ok(JoinCondition::Using(names));
        }
        if !self.take(K::On) {
            return Ok(JoinCondition::None);
        }
        let start = self.at;
        let ends = |at: usize| self.statement.is(at, TokenKind::Comma) || self.begins_join(at);
        self.at = self
            .statement
            .flat(start..self.end)
            .find(|at| ends(*at))
            .unwrap_or(self.end);
        if self.at == start {
            Err(NotUnderstood)
        } else {
            Ok(JoinCondition::On(start..self.at))
        }
    }

    /// LEFT and RIGHT are functions too.
    fn begins_join(&self, at: usize) -> bool {
        match self.statement.keyword(at) {
            Some(K::Join | K::StraightJoin | K::Inner | K::Cross | K::Natural | K::On | K::Using) => true,
            Some(K::Left | K::Right) => !self.statement.is(at + 1, TokenKind::LParen),
            _ => false,
        }
    }

    fn factor(&mut self) -> Result<Node> {
        if self.full() {
            return Err(NotUnderstood);
        }
        if self.keyword() == Some(K::Lateral) && self.statement.is(self.at + 1, TokenKind::LParen) {
            self.at += 1;
        }
        if self.is(TokenKind::LParen) {
            return self.group();
        }
        if self.take(K::Dual) {
            return Ok(self.push(Factor {
                at: self.at,
                qualifier: None,
                table: None,
                alias: None,
                renamed: false,
            }));
        }
        self.table()
    }

    /// A derived table or a nested join.
    fn group(&mut self) -> Result<Node> {
        let Some(close) = self.statement.close(self.at).filter(|c| *c < self.end) else {
            return Err(NotUnderstood);
        };
        if self.is_query(self.at, close, MAX_DEPTH) {
            let at = self.at;
            self.at = close + 1;
            let alias = self.alias();
            if alias.is_some()
                && let Some(columns_end) = self.statement.close(self.at).filter(|c| *c < self.end)
            {
                self.at = columns_end + 1;
            }
            return Ok(self.push(Factor {
                at,
                qualifier: None,
                table: None,
                renamed: alias.is_some(),
                alias,
            }));
        }
        if self.depth == MAX_DEPTH {
            return Err(NotUnderstood);
        }
        let outer_end = std::mem::replace(&mut self.end, close);
        self.at += 1;
        self.depth += 1;
        let node = self.references()?;
        self.depth -= 1;
        if self.at != close {
            return Err(NotUnderstood);
        }
        self.end = outer_end;
        self.at = close + 1;
        Ok(node)
    }

    /// Whether the parentheses hold a query rather than a join: `(SELECT`, or `((SELECT ..) UNION ..)`.
    fn is_query(&self, open: usize, close: usize, depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        match self.statement.keyword(open + 1) {
            Some(K::Select | K::With | K::Values | K::Table) => true,
            Some(_) => false,
            None => {
                let Some(inner) = self.statement.close(open + 1) else {
                    return false;
                };
                let behind = self.statement.keyword(inner + 1);
                self.is_query(open + 1, inner, depth - 1)
                    && (inner + 1 == close
                        || matches!(
                            behind,
                            Some(K::Union | K::Except | K::Intersect | K::Order | K::Limit)
                        ))
            }
        }
    }

    fn table(&mut self) -> Result<Node> {
        let at = self.at;
        let Some(first) = self.name_here() else {
            return Err(NotUnderstood);
        };
        let (qualifier, table) = if self.is(TokenKind::Dot) {
            self.at += 1;
            let qualifier = self.at - 2;
            let Some(table) = self.name_here() else {
                return Err(NotUnderstood);
            };
            (Some(qualifier), table)
        } else {
            (None, first)
        };
        if self.is(TokenKind::LParen) || self.is(TokenKind::Dot) {
            return Err(NotUnderstood);
        }
        if self.take(K::Partition) {
            self.skip_group()?;
        }
        let alias = self.alias();
        self.index_hints()?;
        let renamed = alias.is_some();
        let alias = alias.or_else(|| Some(table.clone()));
        Ok(self.push(Factor {
            at,
            qualifier,
            table: Some(table),
            alias,
            renamed,
        }))
    }

    fn name_here(&mut self) -> Option<String> {
        let name = self.statement.name(self.at).filter(|_| self.at < self.end)?;
        self.at += 1;
        Some(name)
    }

    fn alias(&mut self) -> Option<String> {
        self.take(K::As);
        self.name_here()
    }

    fn index_hints(&mut self) -> Result<()> {
        while matches!(self.keyword(), Some(K::Use | K::Force | K::Ignore)) {
            self.at += 1;
            if !self.take(K::Index) && !self.take(K::Key) {
                return Err(NotUnderstood);
            }
            if self.take(K::For) {
                match self.keyword() {
                    Some(K::Join) => self.at += 1,
                    Some(K::Order | K::Group) => self.at += 2,
                    _ => return Err(NotUnderstood),
                }
            }
            self.skip_group()?;
        }
        Ok(())
    }

    fn skip_group(&mut self) -> Result<()> {
        match self.statement.close(self.at).filter(|c| *c < self.end) {
            Some(close) => {
                self.at = close + 1;
                Ok(())
            }
            None => Err(NotUnderstood),
        }
    }

    fn push(&mut self, factor: Factor) -> Node {
        self.factors.push(factor);
        Node::Factor(self.factors.len() - 1)
    }
}

fn join(kind: JoinKind, left: Node, right: Node, condition: JoinCondition) -> Node {
    Node::Join {
        kind,
        left: Box::new(left),
        right: Box::new(right),
        condition,
    }
}
