//! How much of a pool one kind of statement may hold.

/// Whether one more attempt of a kind that holds `held` of `size` slots may take one. Only while others wait is a kind
/// bound by its share, and each kind may always hold one slot: a pool is there to be used.
///
/// Ask before a slot is taken; `percent` is `max_pool_share`, 0 = no bound.
#[must_use]
pub const fn may_take_slot(held: u32, size: u32, percent: u32, others_wait: bool) -> bool {
    if percent == 0 || !others_wait || held == 0 {
        return true;
    }
    (held as u64 + 1) * 100 <= size as u64 * percent as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_holds_at_most_its_share_while_others_wait() {
        for (held, size, percent, others_wait, may) in [
            (11, 20, 60, true, true),
            (12, 20, 60, true, false),
            (12, 20, 60, false, true),
            (19, 20, 60, false, true),
            (0, 1, 60, true, true),
            (1, 2, 60, true, false),
            (19, 20, 0, true, true),
        ] {
            assert_eq!(
                may_take_slot(held, size, percent, others_wait),
                may,
                "{held}/{size}"
            );
        }
    }
}
