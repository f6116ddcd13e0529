//! Where the rows that a statement works on can live.
//!
//! Every use of a sharded table in a FROM clause is an *instance*. A condition *restricts* an instance if rows of it
//! that fail the condition cannot matter: WHERE restricts all instances of its scope, the ON of a LEFT JOIN only those
//! on its right. An instance *follows* another if an equality of sharding columns makes its rows matter only where the
//! other's row lives; in an inner join both follow each other, in an outer join only the side that may be missing
//! follows, in a correlated subquery the inner one follows the outer one.
//!
//! From that, the shards of an instance are what its own restrictions and those of everything it follows allow. If all
//! instances follow one that no outer join can make missing, the statement may run on each shard by itself (a
//! co-located join); otherwise all must come out on one and the same shard.

use std::sync::Arc;

use super::catalog::Keyspace;
use super::error::PlanError;
use super::operand::{Operand, Values};
use super::predicate::{Condition, Target};
use super::shard_set::ShardSet;
use crate::schema::Table;
use crate::vindex::{Destination, Routed, Value};

/// A set of instances.
pub(super) type Mask = u64;

/// One use of a table whose rows are divided among shards.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) table: Arc<Table>,
    pub(super) query: usize,
    pub(super) factor: usize,
    /// Whether an outer join may answer without a row of it.
    pub(super) nullable: bool,
    /// All instances whose rows' shard its own rows must share, itself included.
    pub(super) follows: Mask,
    /// A table whose rows all lie on the shard of one keyspace id.
    pub(super) pinned: Option<ShardSet>,
}

#[derive(Clone, Debug)]
pub(super) struct Restriction {
    pub(super) restricts: Mask,
    pub(super) condition: Condition,
}

/// Where a statement's rows can live; bound to values it gives shards.
#[derive(Clone, Debug)]
pub(super) struct Locations {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) instances: Vec<Instance>,
    pub(super) restrictions: Vec<Restriction>,
    /// The instance whose rows' shards the whole statement may run on, each by itself.
    pub(super) root: Option<usize>,
}

/// The shards a statement runs on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Located {
    /// No sharded table: any shard will do.
    Anywhere,
    /// Each of these by itself. Empty where no row can match.
    Each(ShardSet),
    /// Its tables' rows lie on different shards, or may.
    Apart,
}

impl Locations {
    /// Whether the statement names any sharded table.
    pub(super) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// All sharded tables, one entry a use.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.instances.iter().map(|i| &i.table)
    }

    /// The shards for these values.
    pub(super) fn locate(&self, values: &Values<'_>) -> Result<Located, PlanError> {
        if self.instances.is_empty() {
            return Ok(Located::Anywhere);
        }
        let own = (0..self.instances.len())
            .map(|i| self.own_shards(i, values))
            .collect::<Result<Vec<_>, _>>()?;
        let shards = |instance: &Instance| {
            let mut set = ShardSet::all(self.keyspace.shards.len());
            own.iter()
                .enumerate()
                .filter(|(i, _)| instance.follows >> i & 1 == 1)
                .for_each(|(_, s)| set.intersect(s));
            set
        };
        if let Some(root) = self.root.and_then(|r| self.instances.get(r)) {
            return Ok(Located::Each(shards(root)));
        }
        // An instance without any shard has no rows that matter, wherever the statement runs.
        let mut all = ShardSet::empty(self.keyspace.shards.len());
        self.instances.iter().for_each(|i| all.unite(&shards(i)));
        Ok(if all.len() > 1 {
            Located::Apart
        } else {
            Located::Each(all)
        })
    }

    /// What the restrictions of one instance alone allow.
    fn own_shards(&self, index: usize, values: &Values<'_>) -> Result<ShardSet, PlanError> {
        let instance = &self.instances[index];
        let mut set = instance
            .pinned
            .clone()
            .unwrap_or_else(|| ShardSet::all(self.keyspace.shards.len()));
        // Terms on another instance count where both rows are certain to share a shard.
        let together = self
            .instances
            .iter()
            .enumerate()
            .filter(|(i, other)| instance.follows >> i & 1 == 1 && other.follows >> index & 1 == 1);
        let counted = together.fold(1 << index, |mask: Mask, (i, _)| mask | 1 << i);
        for restriction in self.restrictions.iter().filter(|r| r.restricts >> index & 1 == 1) {
            set.intersect(&self.allowed(&restriction.condition, counted, values)?);
        }
        Ok(set)
    }

    fn allowed(
        &self,
        condition: &Condition,
        counted: Mask,
        values: &Values<'_>,
    ) -> Result<ShardSet, PlanError> {
        let all = || ShardSet::all(self.keyspace.shards.len());
        let none = || ShardSet::empty(self.keyspace.shards.len());
        Ok(match condition {
            Condition::Never => none(),
            Condition::Constant(operand) => match operand.value(values) {
                Some(Value::Null | Value::Int(0)) => none(),
                _ => all(),
            },
            Condition::SameConstants(a, b) => match (a.value(values), b.value(values)) {
                (Some(Value::Null), _) | (_, Some(Value::Null)) => none(),
                (Some(a), Some(b)) if differ(&a, &b) => none(),
                _ => all(),
            },
            Condition::In(target, operands) if counted >> target.instance & 1 == 1 => {
                self.one_of(*target, operands, values)?
            }
            Condition::Opaque | Condition::Same(..) | Condition::In(..) => all(),
            Condition::And(terms) => terms.iter().try_fold(all(), |mut set, term| {
                set.intersect(&self.allowed(term, counted, values)?);
                Ok::<_, PlanError>(set)
            })?,
            Condition::Or(arms) => arms.iter().try_fold(none(), |mut set, arm| {
                set.unite(&self.allowed(arm, counted, values)?);
                Ok::<_, PlanError>(set)
            })?,
        })
    }

    fn one_of(
        &self,
        target: Target,
        operands: &[Operand],
        values: &Values<'_>,
    ) -> Result<ShardSet, PlanError> {
        let all = ShardSet::all(self.keyspace.shards.len());
        let vindex = self
            .instances
            .get(target.instance)
            .and_then(|i| i.table.vindexes().get(target.vindex));
        let Some((vindex, column)) = vindex.and_then(|v| Some((v, v.ty.as_ref()?))) else {
            return Ok(all);
        };
        let mut set = ShardSet::empty(self.keyspace.shards.len());
        for operand in operands {
            let Some(value) = operand.value(values) else {
                return Ok(all);
            };
            match vindex.vindex.route(column, &value) {
                // MariaDB rounds `2.5` and cuts `'2.5'` when it looks a key up by them: which rows match such a value is
                // for the servers to say.
                Routed::To(Destination::None) if !value.is_null() && value.as_integer().is_none() => {
                    return Ok(all);
                }
                Routed::To(destination) => set.unite(&self.keyspace.shards_of(&destination)?),
                Routed::Scatter(_) => return Ok(all),
            }
        }
        Ok(set)
    }
}

/// Whether two constants are certain to be unequal.
fn differ(a: &Value, b: &Value) -> bool {
    matches!((a.as_integer(), b.as_integer()), (Some(a), Some(b)) if a != b)
}

/// A table that the keyspace knows.
pub(super) fn known_table<'k>(keyspace: &'k Keyspace, name: &str) -> Result<&'k Arc<Table>, PlanError> {
    keyspace.table(name).ok_or_else(|| unknown_table(keyspace, name))
}

pub(super) fn unknown_table(keyspace: &Keyspace, name: &str) -> PlanError {
    PlanError::UnknownTable {
        keyspace: keyspace.name.clone(),
        table: name.to_owned(),
    }
}
