//! From a plan and values to legs.

use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{Keyword, Lexed};
use smallvec::{SmallVec, smallvec};

use super::catalog::Shard;
use super::error::PlanError;
use super::facts::SessionFacts;
use super::insert::InsertRows;
use super::locate::{Located, Locations};
use super::operand::{Params, Values};
use super::planned::{Explains, Plan, Route, Routines, Several};
use super::select::SelectShape;
use super::splice::{Context, params_of};
use super::statement::Span;
use crate::base::ShardId;
use crate::route::{Divided, GatherPlan, Leg, LegParams, Limit, Monotone, NotMonotone, StatementClass};

/// The values a plan is bound to.
#[derive(Clone, Copy)]
pub struct BindInput<'a> {
    /// The statement's bytes.
    pub sql: &'a Bytes,
    /// The same bytes as tokens; of the fingerprint the plan was made for.
    pub statement: &'a Lexed<'a>,
    /// Values of the placeholders, in order; empty for a statement sent as text.
    pub params: Params<'a>,
    /// What session functions answer.
    pub facts: &'a SessionFacts,
    /// The moment of the statement, since the Unix epoch.
    pub now: Duration,
    /// `character_set_client`.
    pub charset: &'a str,
    /// The shard to take where any will do: one whose connection the session already holds.
    pub prefer: Option<&'a ShardId>,
}

/// Where a bound statement goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundTo {
    /// One shard, since any would do.
    Any,
    /// One shard, and no other.
    One,
    /// Several shards, by the statement's values.
    Several,
    /// Every shard, because it is DDL.
    Every,
}

/// A statement ready to be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// What each shard is sent; never empty.
    pub legs: SmallVec<[Leg; 1]>,
    /// How the answers become one.
    pub gather: GatherPlan,
    /// Whether legs may be shed where the client accepts partial answers.
    pub monotone: Monotone,
    /// What it does to rows.
    pub class: StatementClass,
    /// Whether it is DDL.
    pub is_ddl: bool,
    /// Where it goes.
    pub to: BoundTo,
    /// Whether it changes rows on several shards, so that it must run in a transaction on each.
    pub multi_shard_write: bool,
    /// The leg whose OK packet tells the insert id: the one of the last row.
    pub insert_id_leg: usize,
    /// How an INSERT's rows are divided among the legs, if they are.
    pub divided: Option<Divided>,
}

impl Plan {
    /// What statements of this plan do to rows.
    #[must_use]
    pub fn class(&self) -> StatementClass {
        self.class
    }

    /// The keyspace whose shards it runs on.
    #[must_use]
    pub fn keyspace(&self) -> &super::Keyspace {
        &self.keyspace
    }

    /// What tells its kind of statement from others: the same for all statements of a fingerprint. Zero before
    /// [`Self::of_kind`].
    #[must_use]
    pub fn kind(&self) -> u64 {
        self.kind
    }

    /// Notes the hash of the fingerprint it was made for.
    #[must_use]
    pub fn of_kind(self, kind: u64) -> Self {
        Self { kind, ..self }
    }

    /// Whether it calls a stored function, which may write: what was sent may have changed something even if it reads.
    #[must_use]
    pub fn calls_stored(&self) -> bool {
        self.routines == Routines::Functions
    }

    /// Whether it runs code that lies on the tablets: a stored function, or triggers.
    #[must_use]
    pub fn runs_routines(&self) -> bool {
        self.routines != Routines::None
    }

    /// How many parameters it takes.
    #[must_use]
    pub fn param_count(&self) -> usize {
        self.params.len()
    }

    /// Whether it has functions that the session answers. If not, nobody needs to gather what they would answer.
    #[must_use]
    pub fn asks_session(&self) -> bool {
        self.asks_session
    }

    /// Whether the plan, made for another statement of the same fingerprint, is this one's too.
    #[must_use]
    pub fn fits(&self, statement: &Lexed<'_>) -> bool {
        self.pinned
            .iter()
            .all(|(token, text)| statement.text(*token as usize) == &**text)
    }

    /// Fills in values.
    pub fn bind(&self, input: &BindInput<'_>) -> Result<Bound, PlanError> {
        let bound = Binder::new(self, input).bind()?;
        if let (BoundTo::Any, Some(error)) = (bound.to, &self.anywhere) {
            return Err(error.clone());
        }
        match self.explains {
            Some(explains) => self.explained(bound, explains),
            None => Ok(bound),
        }
    }
}

impl Plan {
    /// The statement as one shard would be sent it, whatever the values: to learn its columns. Never to be run.
    pub fn probe(&self, input: &BindInput<'_>) -> Result<Leg, PlanError> {
        let binder = Binder::new(self, input);
        let mut bound = match self.route {
            Route::Shard(shard) => binder.one(shard, BoundTo::One)?,
            _ => binder.any()?,
        };
        Ok(bound.legs.swap_remove(0))
    }

    /// Shards explain alike, so one of them is asked; what EXPLAIN runs must be whole on it.
    fn explained(&self, mut bound: Bound, explains: Explains) -> Result<Bound, PlanError> {
        if explains == Explains::Runs && bound.legs.len() > 1 {
            return Err(PlanError::Unsupported {
                what: "ANALYZE of a statement".into(),
                keyspace: self.keyspace.name.clone(),
                hint: "run it on one shard after `USE keyspace:shard`".into(),
            });
        }
        if explains == Explains::Looks {
            bound.class = StatementClass::Read;
            bound.monotone = Monotone::Yes;
        }
        bound.legs.truncate(1);
        bound.gather = GatherPlan::concat();
        bound.multi_shard_write = false;
        bound.insert_id_leg = 0;
        bound.divided = None;
        Ok(bound)
    }
}

struct Binder<'b, 'a> {
    plan: &'b Plan,
    input: &'b BindInput<'a>,
    values: Values<'b>,
}

impl<'b, 'a> Binder<'b, 'a> {
    fn new(plan: &'b Plan, input: &'b BindInput<'a>) -> Self {
        let values = Values {
            statement: input.statement,
            params: input.params,
            facts: input.facts,
            charset: input.charset,
        };
        Self { plan, input, values }
    }
}

impl Binder<'_, '_> {
    fn bind(&self) -> Result<Bound, PlanError> {
        match &self.plan.route {
            Route::Shard(shard) => self.one(*shard, BoundTo::One),
            Route::Any => self.any(),
            Route::Every => self.every(),
            Route::Rows {
                locations,
                several,
                apart,
            } => self.rows(locations, several, apart),
            Route::Insert { rows, several } => self.insert(rows, several),
            Route::InsertSelect {
                rows,
                locations,
                apart,
            } => self.insert_select(rows, locations, apart),
        }
    }

    fn shard(&self, index: usize) -> Result<&Shard, PlanError> {
        self.plan
            .keyspace
            .shards
            .get(index)
            .ok_or_else(|| PlanError::NoSuchShard {
                keyspace: self.plan.keyspace.name.clone(),
                shard: format!("number {index}"),
            })
    }

    fn context<'c>(&'c self, shard: &'c Shard, scattered: bool, limit: u64) -> Context<'c> {
        Context {
            scattered,
            database: &shard.database,
            facts: self.input.facts,
            now: self.input.now,
            limit,
        }
    }

    fn bound(&self, legs: SmallVec<[Leg; 1]>, to: BoundTo) -> Bound {
        let class = self.plan.class;
        let monotone = match class {
            StatementClass::Read => Monotone::Yes,
            StatementClass::LockingRead => Monotone::No(NotMonotone::LockingRead),
            StatementClass::Write => Monotone::No(NotMonotone::Write),
        };
        Bound {
            multi_shard_write: class.is_write() && legs.len() > 1,
            legs,
            gather: GatherPlan::concat(),
            monotone,
            class,
            is_ddl: self.plan.is_ddl,
            to,
            insert_id_leg: 0,
            divided: None,
        }
    }

    fn any(&self) -> Result<Bound, PlanError> {
        let held = self
            .input
            .prefer
            .and_then(|id| self.plan.keyspace.shards.iter().position(|s| s.id == *id));
        self.one(held.unwrap_or(0), BoundTo::Any)
    }

    fn one(&self, index: usize, to: BoundTo) -> Result<Bound, PlanError> {
        let shard = self.shard(index)?;
        let sql = self.plan.edits.text(
            self.input.sql,
            self.input.statement,
            &self.context(shard, false, 0),
        );
        let leg = Leg {
            shard: shard.id.clone(),
            sql,
            params: self.all_params(false),
        };
        Ok(self.bound(smallvec![leg], to))
    }

    fn every(&self) -> Result<Bound, PlanError> {
        let all = 0..self.plan.keyspace.shards.len();
        let mut bound = self.bound(self.legs(all, 0)?, BoundTo::Every);
        // DDL is its own transaction everywhere.
        bound.multi_shard_write = false;
        Ok(bound)
    }

    /// The same statement to several shards.
    fn legs(&self, shards: impl Iterator<Item = usize>, limit: u64) -> Result<SmallVec<[Leg; 1]>, PlanError> {
        let (sql, lexed, edits) = (self.input.sql, self.input.statement, &self.plan.edits);
        let params = self.all_params(true);
        let mut common: Option<Bytes> = None;
        let mut legs = SmallVec::new();
        for index in shards {
            let shard = self.shard(index)?;
            let text = match &common {
                Some(text) if !edits.by_shard() => text.clone(),
                _ => edits.text(sql, lexed, &self.context(shard, true, limit)),
            };
            common = Some(text.clone());
            legs.push(Leg {
                shard: shard.id.clone(),
                sql: text,
                params: params.clone(),
            });
        }
        Ok(legs)
    }

    fn all_params(&self, scattered: bool) -> LegParams {
        let replaced = |token: &u32| self.plan.edits.replaces(*token as usize, scattered);
        if !self.plan.params.iter().any(replaced) {
            return LegParams::All;
        }
        let all = 0..self.input.statement.len();
        LegParams::List(params_of(&self.plan.params, &[all], &self.plan.edits, scattered))
    }

    fn rows(
        &self,
        locations: &Locations,
        several: &Result<Several, PlanError>,
        apart: &PlanError,
    ) -> Result<Bound, PlanError> {
        let shards = match locations.locate(&self.values)? {
            Located::Anywhere => return self.any(),
            Located::Each(shards) => shards,
            Located::Apart => return Err(apart.clone()),
        };
        match shards.len() {
            // No row can match, yet the answer has columns, or a count of zero: any shard gives it.
            0 => self.any(),
            1 => self.one(shards.iter().next().unwrap_or_default(), BoundTo::One),
            _ => match several {
                Ok(Several::Select(shape)) => self.scatter(shape, shards.iter()),
                Ok(Several::Write) => Ok(self.bound(self.legs(shards.iter(), 0)?, BoundTo::Several)),
                Err(error) => Err(error.clone()),
            },
        }
    }

    fn scatter(&self, shape: &SelectShape, shards: impl Iterator<Item = usize>) -> Result<Bound, PlanError> {
        let limit = shape.limit.as_ref().map(|l| l.window(&self.values)).transpose()?;
        // Two numbers that add up to more than there can be rows mean all of them.
        let each = limit.map_or(0, |l: Limit| l.offset.saturating_add(l.count));
        let mut bound = self.bound(self.legs(shards, each)?, BoundTo::Several);
        bound.gather = GatherPlan {
            body: shape.body.clone(),
            limit,
            hidden: shape.hidden,
        };
        if self.plan.class == StatementClass::Read {
            bound.monotone = shape.monotone;
        }
        Ok(bound)
    }

    fn insert(&self, rows: &InsertRows, several: &Result<(), PlanError>) -> Result<Bound, PlanError> {
        let places = rows.place(&self.values)?;
        let Some(last) = places.last().copied() else {
            return self.any();
        };
        if places.iter().all(|p| *p == last) {
            return self.one(last, BoundTo::One);
        }
        several.clone()?;
        let mut shards = places.clone();
        shards.sort_unstable();
        shards.dedup();
        let spans: Vec<Span> = rows.spans().cloned().collect();
        let legs = shards
            .iter()
            .map(|shard| self.some_rows(*shard, &spans, &places))
            .collect::<Result<_, _>>()?;
        let mut bound = self.bound(legs, BoundTo::Several);
        bound.insert_id_leg = shards.iter().position(|s| *s == last).unwrap_or_default();
        bound.divided = Some(self.divided(&shards, &places, spans.first()));
        Ok(bound)
    }

    fn divided(&self, shards: &[usize], places: &[usize], first: Option<&Span>) -> Divided {
        let of = |shard: &usize| {
            let own = places.iter().zip(1..).filter(|(place, _)| *place == shard);
            own.map(|(_, number): (_, u32)| number).collect()
        };
        let head = 0..first.map_or(0, |row| row.start);
        Divided {
            rows: shards.iter().map(of).collect(),
            ignores: head
                .into_iter()
                .any(|at| self.input.statement.is_keyword(at, Keyword::Ignore)),
        }
    }

    /// The INSERT with only the rows of one shard, each as it was written.
    fn some_rows(&self, index: usize, rows: &[Span], places: &[usize]) -> Result<Leg, PlanError> {
        let shard = self.shard(index)?;
        let (lexed, edits) = (self.input.statement, &self.plan.edits);
        let context = self.context(shard, true, 0);
        let (first, end) = (
            rows.first().map_or(0, |r| r.start),
            rows.last().map_or(0, |r| r.end),
        );
        let own: Vec<&Span> = rows
            .iter()
            .zip(places)
            .filter(|(_, place)| **place == index)
            .map(|(r, _)| r)
            .collect();

        let mut sql = Vec::with_capacity(self.input.sql.len());
        edits.render(lexed, 0..lexed.range(first).start, &context, &mut sql);
        for (n, row) in own.iter().enumerate() {
            if n > 0 {
                sql.extend_from_slice(b", ");
                // `ROW(..)` before each but the first, whose word stands in front of all rows.
                if lexed.is_keyword(first.wrapping_sub(1), Keyword::Row) {
                    sql.extend_from_slice(b"ROW");
                }
            }
            edits.render(lexed, lexed.span((*row).clone()), &context, &mut sql);
        }
        edits.render(
            lexed,
            lexed.range(end - 1).end..lexed.src().len(),
            &context,
            &mut sql,
        );

        let mut spans: Vec<Span> = Vec::with_capacity(own.len() + 2);
        spans.push(0..first);
        spans.extend(own.into_iter().cloned());
        spans.push(end..lexed.len());
        let params = LegParams::List(params_of(&self.plan.params, &spans, edits, true));
        let params = if self.plan.params.is_empty() {
            LegParams::All
        } else {
            params
        };
        Ok(Leg {
            shard: shard.id.clone(),
            sql: sql.into(),
            params,
        })
    }

    fn insert_select(
        &self,
        rows: &InsertRows,
        from: &Locations,
        apart: &PlanError,
    ) -> Result<Bound, PlanError> {
        let places = rows.place(&self.values)?;
        let Some(place) = places.first().copied() else {
            return Err(apart.clone());
        };
        match from.locate(&self.values)? {
            Located::Anywhere => {}
            Located::Each(shards) if shards.is_empty() || (shards.len() == 1 && shards.contains(place)) => {}
            Located::Each(_) | Located::Apart => return Err(apart.clone()),
        }
        self.one(place, BoundTo::One)
    }
}
