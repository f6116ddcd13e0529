//! Rows and values of the binary protocol, as prepared statements use it.

mod row;
mod temporal;
mod text;
mod value;

pub use row::{cells, put_row, put_row_from_text, spans};
pub use temporal::{DateTime, Time};
pub use text::{put_text, value_from_text};
pub(in crate::codec) use value::take_bytes;
pub use value::{Value, decode, put_value, read_value};
