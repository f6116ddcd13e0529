//! The state machine alone: states, generations, cooldowns and the one probe, without the signals that move them.
//!
//! ```text
//!            signal                     cooldown over
//!   Closed ----------> Open --------------------------> HalfOpen
//!     ^                 ^      (on time, not on traffic)  |   |
//!     |                 +---- probe failed, lease over ---+   |
//!     +------------------------- probes passed ---------------+
//! ```
//!
//! Everything that must change together is one word ([`word`]), changed by compare-and-swap. Two more words belong to
//! it, each tagged with the generation it speaks of, so that what a slow thread writes late can be told from what holds.

mod machine;
mod word;

pub(crate) use machine::{Admission, Change, Machine};
pub(crate) use word::Word;
