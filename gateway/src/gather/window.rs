//! LIMIT and OFFSET over gathered rows.

use crate::route::Limit;

/// What is left of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    skip: u64,
    left: u64,
}

impl Window {
    pub(super) fn new(limit: Option<Limit>) -> Self {
        limit.map_or(
            Self {
                skip: 0,
                left: u64::MAX,
            },
            |l| Self {
                skip: l.offset,
                left: l.count,
            },
        )
    }

    /// Whether the next row is to be given.
    pub(super) fn admit(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }

    pub(super) fn is_full(&self) -> bool {
        self.left == 0
    }
}
