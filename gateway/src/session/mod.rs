//! One client connection: the command loop, what the client set, its transaction, its prepared statements.

pub mod like;
pub mod registry;
