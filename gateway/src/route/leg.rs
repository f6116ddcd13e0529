//! One shard's part of a statement.

use bytes::Bytes;

use crate::base::ShardId;

/// Which of the client's statement parameters a leg's text still holds placeholders for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LegParams {
    /// All of them, in the client's order: the text's placeholders were not touched.
    All,
    /// These, in this order; the others were spliced as literals or belong to another shard's rows.
    List(Box<[u16]>),
}

/// What one shard is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leg {
    /// The shard.
    pub shard: ShardId,
    /// The statement. The very buffer of the client's statement where nothing had to be spliced.
    pub sql: Bytes,
    /// The parameters that go along.
    pub params: LegParams,
}
