//! The client's side: what the gateway is to a tablet.

mod conn;
mod connect;
mod discard;
mod options;
mod response;

pub(crate) use conn::Phase;
pub use conn::TabletConn;
pub use options::{Address, ConnectOptions};
pub use response::{Columns, Head, Prepared, RowEvent};
