//! The protocol's numbers, as `MySQL`'s and `MariaDB`'s headers define them.

mod column_type;
mod flags;

pub use column_type::{BinaryShape, ColumnFlags, ColumnType};
pub use flags::{Capabilities, StatusFlags};

/// The longest payload of one frame; a frame this long is followed by another.
pub const MAX_FRAME: usize = 0xFF_FF_FF;

/// `utf8mb4_general_ci`, the collation used where a peer's is of no matter.
pub const UTF8MB4: u16 = 45;

/// The `binary` collation.
pub const BINARY: u16 = 63;

/// Command bytes (`enum_server_command`).
pub mod command {
    /// `COM_QUIT`.
    pub const QUIT: u8 = 0x01;
    /// `COM_INIT_DB`.
    pub const INIT_DB: u8 = 0x02;
    /// `COM_QUERY`.
    pub const QUERY: u8 = 0x03;
    /// `COM_FIELD_LIST`.
    pub const FIELD_LIST: u8 = 0x04;
    /// `COM_STATISTICS`.
    pub const STATISTICS: u8 = 0x09;
    /// `COM_PROCESS_KILL`.
    pub const PROCESS_KILL: u8 = 0x0c;
    /// `COM_PING`.
    pub const PING: u8 = 0x0e;
    /// `COM_CHANGE_USER`.
    pub const CHANGE_USER: u8 = 0x11;
    /// `COM_STMT_PREPARE`.
    pub const STMT_PREPARE: u8 = 0x16;
    /// `COM_STMT_EXECUTE`.
    pub const STMT_EXECUTE: u8 = 0x17;
    /// `COM_STMT_SEND_LONG_DATA`.
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    /// `COM_STMT_CLOSE`.
    pub const STMT_CLOSE: u8 = 0x19;
    /// `COM_STMT_RESET`.
    pub const STMT_RESET: u8 = 0x1a;
    /// `COM_SET_OPTION`.
    pub const SET_OPTION: u8 = 0x1b;
    /// `COM_STMT_FETCH`.
    pub const STMT_FETCH: u8 = 0x1c;
    /// `COM_RESET_CONNECTION`.
    pub const RESET_CONNECTION: u8 = 0x1f;
}
