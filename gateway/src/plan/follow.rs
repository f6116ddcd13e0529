//! Reads FROM and WHERE clauses into [`Locations`]: instances, restrictions, and who follows whom.

use std::sync::Arc;

use super::catalog::Keyspace;
use super::error::PlanError;
use super::from::{JoinCondition, JoinKind, Node};
use super::locate::{Instance, Locations, Mask, Restriction, known_table, unknown_table};
use super::predicate::{self, ColumnRef, Condition, Target};
use super::statement::Statement;
use super::tables::{FactorKind, Names, Query};
use crate::schema::Routing;
use crate::vindex::hash_alike;

/// Instances at most: as many tables as a server joins, and as many as a mask holds.
const MAX_INSTANCES: usize = 61;

impl Locations {
    /// Reads the FROM and WHERE clauses of all scopes.
    pub(super) fn build(
        statement: &Statement<'_>,
        keyspace: &Arc<Keyspace>,
        names: &Names,
        queries: &[Query],
    ) -> Result<Self, PlanError> {
        let outermost = queries
            .first()
            .is_some_and(|q| q.scope.span.start == statement.all().start);
        let (instances, restrictions) = (Vec::new(), Vec::new());
        let mut builder = Builder {
            statement,
            keyspace,
            queries,
            outermost,
            instances,
            restrictions,
        };
        builder.instances(names)?;
        for (index, query) in queries.iter().enumerate() {
            builder.query(index, query);
        }
        builder.close_follows();
        let root = builder.root();
        Ok(Self {
            keyspace: Arc::clone(keyspace),
            instances: builder.instances,
            restrictions: builder.restrictions,
            root,
        })
    }
}

struct Builder<'b, 'a> {
    statement: &'b Statement<'a>,
    keyspace: &'b Arc<Keyspace>,
    queries: &'b [Query],
    /// Whether the first query is the statement itself, not a common table expression or an arm in parentheses.
    outermost: bool,
    instances: Vec<Instance>,
    restrictions: Vec<Restriction>,
}

impl Builder<'_, '_> {
    /// Makes an instance of every sharded table named in a FROM clause.
    fn instances(&mut self, names: &Names) -> Result<(), PlanError> {
        for (query, factor) in each_factor(self.queries) {
            let written = &self.queries[query].from.factors[factor];
            let (FactorKind::Table, Some(name)) = (names.kind(self.statement, written), &written.table)
            else {
                continue;
            };
            let table = known_table(self.keyspace, name)?;
            let pinned = match &table.routing {
                Routing::Sharded(_) => None,
                Routing::Pinned(id) => Some(self.keyspace.shard_of_id(id)?),
                Routing::Reference { .. } => continue,
                Routing::Unsharded | Routing::Unknown => return Err(unknown_table(self.keyspace, name)),
            };
            if self.instances.len() == MAX_INSTANCES {
                return Err(self.not_understood("it names more than 61 tables"));
            }
            let follows = 1 << self.instances.len();
            let table = Arc::clone(table);
            self.instances.push(Instance {
                table,
                query,
                factor,
                nullable: false,
                follows,
                pinned,
            });
        }
        Ok(())
    }

    fn not_understood(&self, what: &'static str) -> PlanError {
        PlanError::NotUnderstood {
            keyspace: self.keyspace.name.clone(),
            what: what.into(),
        }
    }

    fn query(&mut self, index: usize, query: &Query) {
        if let Some(root) = &query.from.root {
            self.node(index, root, false);
        }
        if let Some(span) = query.scope.where_.clone() {
            let scope = self.mask(index, |_| true);
            let condition = predicate::condition(self.statement, span, &|c| self.resolve(index, c));
            self.restrict(scope, condition);
        }
    }

    /// Reads a join tree's conditions; gives the instances below.
    fn node(&mut self, query: usize, node: &Node, nullable: bool) -> Mask {
        match node {
            Node::Factor(factor) => {
                let mask = self.mask(query, |i| i.factor == *factor);
                self.in_mask(mask).for_each(|i| i.nullable |= nullable);
                mask
            }
            Node::Join {
                kind,
                left,
                right,
                condition,
            } => {
                let plain = matches!((&**left, &**right), (Node::Factor(_), Node::Factor(_)));
                let (left_node, right_node) = (left, right);
                let left = self.node(query, left, nullable || *kind == JoinKind::Right);
                let right = self.node(query, right, nullable || *kind == JoinKind::Left);
                let restricts = match kind {
                    JoinKind::Inner => left | right,
                    JoinKind::Left => right,
                    JoinKind::Right => left,
                };
                let condition = match condition {
                    // Behind an outer join a USING compares with whichever side has the column.
                    JoinCondition::Using(_) if !plain && self.queries[query].from.coalesces_outer() => {
                        Condition::Opaque
                    }
                    condition => self.join_condition(query, condition, left_node, right_node),
                };
                self.restrict(restricts, condition);
                left | right
            }
        }
    }

    fn join_condition(
        &self,
        query: usize,
        condition: &JoinCondition,
        left: &Node,
        right: &Node,
    ) -> Condition {
        match condition {
            JoinCondition::None | JoinCondition::Natural => Condition::Opaque,
            JoinCondition::On(span) => {
                // A bare name is looked for among the operands of this join, and nowhere else in the scope.
                let resolve = |c: &ColumnRef| match &c.table {
                    Some(_) => self.resolve(query, c),
                    None if self.coalesces_outer(query) => Vec::new(),
                    None => Self::either(
                        self.column_of(query, left, &c.column),
                        self.column_of(query, right, &c.column),
                    ),
                };
                predicate::condition(self.statement, span.clone(), &resolve)
            }
            JoinCondition::Using(columns) => Condition::And(
                columns
                    .iter()
                    .map(|c| Condition::Same(self.column_of(query, left, c), self.column_of(query, right, c)))
                    .collect(),
            ),
        }
    }

    fn coalesces_outer(&self, query: usize) -> bool {
        self.queries
            .get(query)
            .is_none_or(|scope| scope.from.coalesces_outer())
    }

    /// Which sharding columns a bare name is in a join tree; none if it may be anything else. Behind USING or NATURAL it is
    /// the two sides' column in one, which is both only if they are compared as they are mapped: equality over types and
    /// collations is not transitive.
    fn column_of(&self, query: usize, node: &Node, column: &str) -> Vec<Target> {
        match node {
            Node::Factor(factor) => self.targets(self.mask(query, |i| i.factor == *factor), column),
            Node::Join {
                left,
                right,
                condition,
                ..
            } => {
                let left = self.column_of(query, left, column);
                let right = self.column_of(query, right, column);
                let is_one = match condition {
                    JoinCondition::Natural => true,
                    JoinCondition::Using(columns) => columns.iter().any(|c| c.eq_ignore_ascii_case(column)),
                    JoinCondition::None | JoinCondition::On(_) => false,
                };
                if is_one {
                    self.both(left, right)
                } else {
                    Self::either(left, right)
                }
            }
        }
    }

    /// One column of two sides.
    fn both(&self, left: Vec<Target>, right: Vec<Target>) -> Vec<Target> {
        let alike = left.iter().all(|a| right.iter().all(|b| self.same_place(*a, *b)));
        if left.is_empty() || right.is_empty() || !alike {
            return Vec::new();
        }
        left.into_iter().chain(right).collect()
    }

    /// A column of one of two sides; where both have it the server does not know which is meant.
    fn either(left: Vec<Target>, right: Vec<Target>) -> Vec<Target> {
        match (left.is_empty(), right.is_empty()) {
            (false, true) => left,
            (true, false) => right,
            (true, true) | (false, false) => Vec::new(),
        }
    }

    fn restrict(&mut self, restricts: Mask, condition: Condition) {
        self.follow(restricts, &condition);
        if restricts != 0 && condition != Condition::Opaque {
            self.restrictions.push(Restriction { restricts, condition });
        }
    }

    /// Lets restricted instances follow those whose sharding columns theirs must equal.
    fn follow(&mut self, restricts: Mask, condition: &Condition) {
        match condition {
            Condition::And(terms) => terms.iter().for_each(|term| self.follow(restricts, term)),
            Condition::Same(left, right) => {
                for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b))) {
                    if self.same_place(a, b) {
                        self.add_follow(restricts, a.instance, b.instance);
                        self.add_follow(restricts, b.instance, a.instance);
                    }
                }
            }
            Condition::Opaque
            | Condition::Constant(_)
            | Condition::SameConstants(..)
            | Condition::Never
            | Condition::In(..)
            | Condition::Or(_) => {}
        }
    }

    fn add_follow(&mut self, restricts: Mask, follower: usize, leader: usize) {
        if restricts >> follower & 1 == 1
            && let Some(instance) = self.instances.get_mut(follower)
        {
            instance.follows |= 1 << leader;
        }
    }

    /// Whether equal values of the two sharding columns always live on one shard.
    fn same_place(&self, a: Target, b: Target) -> bool {
        let vindex = |t: Target| {
            let vindex = self.instances.get(t.instance)?.table.vindexes().get(t.vindex)?;
            Some((&vindex.vindex, vindex.ty.as_ref()?))
        };
        matches!((vindex(a), vindex(b)), (Some(a), Some(b)) if hash_alike(a, b))
    }

    /// Following is transitive.
    fn close_follows(&mut self) {
        let count = self.instances.len();
        for middle in 0..count {
            let beyond = self.instances[middle].follows;
            for instance in self.instances.iter_mut().filter(|i| i.follows >> middle & 1 == 1) {
                instance.follows |= beyond;
            }
        }
    }

    /// An instance of the outermost scope that every other follows and that no outer join can make missing.
    fn root(&self) -> Option<usize> {
        (0..self.instances.len()).find(|root| {
            let instance = &self.instances[*root];
            self.outermost
                && instance.query == 0
                && !instance.nullable
                && self.instances.iter().all(|i| i.follows >> root & 1 == 1)
        })
    }

    /// Which sharding columns a column of a query may be, looking outwards from its scope.
    fn resolve(&self, query: usize, column: &ColumnRef) -> Vec<Target> {
        let Some(table) = &column.table else {
            return self.resolve_bare(query, &column.column);
        };
        let mut at = Some(query);
        while let Some(index) = at {
            let Some(query) = self.queries.get(index) else {
                break;
            };
            // Whether names of other case are other names is the server's affair.
            let other_case =
                |alias: &String| alias != table.as_str() && alias.to_lowercase() == table.to_lowercase();
            if query
                .from
                .factors
                .iter()
                .filter_map(|f| f.alias.as_ref())
                .any(other_case)
            {
                return Vec::new();
            }
            let named = |alias: &Option<String>| alias.as_deref() == Some(table.as_str());
            let mut found = query
                .from
                .factors
                .iter()
                .enumerate()
                .filter(|(_, f)| named(&f.alias));
            if let Some((factor, written)) = found.next() {
                // The same name twice, or of an alias and of a keyspace's table: which one is meant is left open.
                let clear = found.next().is_none()
                    && (column.keyspace.is_none() || !written.renamed)
                    && column
                        .keyspace
                        .as_ref()
                        .is_none_or(|k| *k == *self.keyspace.name.as_str());
                let mask = self.mask(index, |i| i.factor == factor);
                return if clear {
                    self.targets(mask, &column.column)
                } else {
                    Vec::new()
                };
            }
            at = query.scope.parent;
        }
        Vec::new()
    }

    /// An unqualified column belongs to the innermost scope that has it. Only sharding columns are known to exist, so
    /// only those of the scope itself are found.
    fn resolve_bare(&self, query: usize, column: &str) -> Vec<Target> {
        let Some(scope) = self.queries.get(query) else {
            return Vec::new();
        };
        match &scope.from.root {
            _ if scope.from.coalesces_outer() => Vec::new(),
            Some(root) => self.column_of(query, root, column),
            None => Vec::new(),
        }
    }

    /// The sharding columns of that name among some instances.
    fn targets(&self, mask: Mask, column: &str) -> Vec<Target> {
        let inside = self
            .instances
            .iter()
            .enumerate()
            .filter(|(i, _)| mask >> i & 1 == 1);
        let vindexes = inside
            .flat_map(|(instance, i)| i.table.vindexes().iter().enumerate().map(move |v| (instance, v)));
        vindexes
            .filter(|(_, (_, v))| v.column.eq_ignore_ascii_case(column))
            .map(|(instance, (vindex, _))| Target { instance, vindex })
            .collect()
    }

    fn mask(&self, query: usize, wanted: impl Fn(&Instance) -> bool) -> Mask {
        let found = self
            .instances
            .iter()
            .enumerate()
            .filter(|(_, i)| i.query == query && wanted(i));
        found.fold(0, |mask, (i, _)| mask | 1 << i)
    }

    fn in_mask(&mut self, mask: Mask) -> impl Iterator<Item = &mut Instance> {
        self.instances
            .iter_mut()
            .enumerate()
            .filter(move |(i, _)| mask >> i & 1 == 1)
            .map(|(_, i)| i)
    }
}

fn each_factor(queries: &[Query]) -> impl Iterator<Item = (usize, usize)> + '_ {
    queries
        .iter()
        .enumerate()
        .flat_map(|(q, query)| (0..query.from.factors.len()).map(move |f| (q, f)))
}
