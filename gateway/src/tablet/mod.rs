//! One `MySQL` server of a shard: the pool of connections to it, what happens to a connection somebody let go of, and
//! the poller that looks how it is.

mod ask;
mod connection;
mod error;
mod poller;
mod pool;
mod proof;
mod reaper;
mod settings;
mod slots;
mod statements;

pub use connection::{Backend, Connection, Sent, ServerIdentity, TabletInfo, server_error};
pub use error::{NoConnection, TabletError};
pub use poller::{PollSettings, Pollers, Prepared};
pub use pool::{Pool, PoolOptions, PooledConn, Reservation, Unused};
pub use proof::Proof;
pub use reaper::{Abandoned, Reaper, ReaperHandle, ReaperOptions};
pub use settings::{Base, SettingName, Settings, limit_name};
pub use slots::{Slot, SlotError, Slots};
pub use statements::StatementCache;
