//! What `EXPLAIN FORMAT=SHARDGATE` shows of a plan.

use super::bind::{Bound, BoundTo};
use super::planned::{Plan, Route};
use crate::base::ShardId;
use crate::route::Monotone;

/// A bound plan for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// How the shards were chosen.
    pub route: String,
    /// What each shard is sent.
    pub legs: Vec<DescribedLeg>,
    /// What is done with the answers, in order.
    pub steps: Vec<String>,
    /// Whether shards may be missing from a partial answer, or why not.
    pub partial: String,
}

/// One shard's part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedLeg {
    /// The shard.
    pub shard: ShardId,
    /// Its statement. Bytes that are not UTF-8 are shown as replacement characters.
    pub sql: String,
}

impl Plan {
    /// Describes the plan as bound.
    #[must_use]
    pub fn describe(&self, bound: &Bound) -> Description {
        let leg = |leg: &crate::route::Leg| DescribedLeg {
            shard: leg.shard.clone(),
            sql: String::from_utf8_lossy(&leg.sql).into_owned(),
        };
        let steps = match bound.legs.len() {
            0 | 1 => vec!["relay".to_owned()],
            _ => bound.gather.steps().iter().map(ToString::to_string).collect(),
        };
        let partial = match bound.monotone {
            Monotone::Yes => "allowed".to_owned(),
            Monotone::No(reason) => format!("not allowed: {reason}"),
        };
        Description {
            route: self.route_text(bound),
            legs: bound.legs.iter().map(leg).collect(),
            steps,
            partial,
        }
    }

    fn route_text(&self, bound: &Bound) -> String {
        let (all, some) = (self.keyspace.shards.len(), bound.legs.len());
        match (&self.route, bound.to) {
            (Route::Shard(_), _) if self.keyspace.is_sharded() => "the session's shard".to_owned(),
            (Route::Shard(_), _) => "the keyspace's only shard".to_owned(),
            (_, BoundTo::Any) => "any shard".to_owned(),
            (_, BoundTo::Every) => "every shard (DDL)".to_owned(),
            (_, BoundTo::One) => "one shard by sharding column".to_owned(),
            (_, BoundTo::Several) if some == all => "scatter to all shards".to_owned(),
            (_, BoundTo::Several) => format!("scatter to {some} of {all} shards by sharding column"),
        }
    }
}
