//! Payloads in, payloads out: pure functions over byte slices. A decoder never panics and never reads past its
//! input; an encoder appends to a `Vec<u8>` that the caller owns.

pub mod auth_switch;
pub mod binary;
pub mod change_user;
pub mod column;
pub mod eof;
pub mod err;
pub mod execute;
pub mod greeting;
pub mod login;
pub mod ok;
pub mod prepare;
pub mod read;
pub mod session_state;
pub mod text;
pub mod write;

pub use auth_switch::AuthSwitch;
pub use change_user::ChangeUser;
pub use column::ColumnDef;
pub use eof::EofPacket;
pub use err::ErrPacket;
pub use greeting::Greeting;
pub use login::LoginRequest;
pub use ok::OkPacket;
pub use prepare::PrepareOk;
pub use read::{Malformed, Reader};
pub use session_state::StateChange;
