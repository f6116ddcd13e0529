//! What every other room may use: names and ranges, the clock, what an error must be able to say.

pub mod clock;
pub mod codes;
pub mod error;
pub mod ids;
pub mod keyrange;
pub mod metrics;

pub use error::{ClientError, ErrorKind, GatewayError};
pub use ids::{KeyspaceName, Role, ShardId, ShardName, TabletAlias};
pub use keyrange::{KeyRange, KeyspaceId};
