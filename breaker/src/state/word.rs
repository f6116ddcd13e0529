//! The words of the state machine, packed.

use crate::{Mode, Reason, State};

/// State, mode, cause, cooldown level, passed probes and generation in one atomic's worth of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) state: State,
    pub(crate) mode: Mode,
    /// The signal that opened it last.
    pub(crate) cause: Reason,
    /// Doublings of the next cooldown.
    pub(crate) level: u32,
    /// Probes passed in this generation.
    pub(crate) passes: u32,
    /// Whether it was ever open: only then a closed one starts slowly.
    pub(crate) recovered: bool,
    pub(crate) generation: u32,
}

impl Word {
    pub(crate) const fn first(mode: Mode) -> Self {
        Self {
            state: State::Closed,
            mode,
            cause: Reason::Operator,
            level: 0,
            passes: 0,
            recovered: false,
            generation: 0,
        }
    }

    pub(crate) const fn pack(self) -> u64 {
        (self.state as u64)
            | (self.mode as u64) << 2
            | (self.cause as u64) << 4
            | (self.level as u64 & 0x1f) << 9
            | (self.passes as u64 & 0xff) << 14
            | (self.recovered as u64) << 22
            | (self.generation as u64) << 32
    }

    pub(crate) const fn unpack(bits: u64) -> Self {
        Self {
            state: match bits & 3 {
                0 => State::Closed,
                1 => State::Open,
                _ => State::HalfOpen,
            },
            mode: match bits >> 2 & 3 {
                0 => Mode::Auto,
                1 => Mode::ForcedClosed,
                2 => Mode::ForcedOpen,
                _ => Mode::DryRun,
            },
            cause: Reason::from_index(bits >> 4 & 0x1f),
            level: (bits >> 9 & 0x1f) as u32,
            passes: (bits >> 14 & 0xff) as u32,
            recovered: bits >> 22 & 1 == 1,
            generation: (bits >> 32) as u32,
        }
    }

    /// The generation, if these bits are of a closed breaker that decides for itself: what almost every attempt meets,
    /// told without unpacking.
    #[inline]
    pub(crate) const fn plainly_closed(bits: u64) -> Option<u32> {
        if bits.trailing_zeros() >= 4 {
            Some((bits >> 32) as u32)
        } else {
            None
        }
    }

    /// The next generation in another state.
    pub(crate) const fn enter(self, state: State) -> Self {
        Self {
            state,
            passes: 0,
            generation: self.generation.wrapping_add(1),
            ..self
        }
    }
}

const TAG_BITS: u32 = 20;
const MILLIS: u64 = (1 << (64 - TAG_BITS)) - 1;

/// A moment in whole milliseconds (557 years of them), tagged with the generation it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

impl Stamp {
    pub(crate) const fn new(generation: u32, millis: u64) -> Self {
        let millis = if millis > MILLIS { MILLIS } else { millis };
        Self((generation as u64) << (64 - TAG_BITS) | millis)
    }

    pub(crate) const fn millis(self) -> u64 {
        self.0 & MILLIS
    }

    /// The moment, if the stamp speaks of this generation.
    pub(crate) const fn of(self, generation: u32) -> Option<u64> {
        if self.0 >> (64 - TAG_BITS) == tag(generation) {
            Some(self.millis())
        } else {
            None
        }
    }

    /// Whether the stamp's generation came before this one; tags wrap, so "before" is the shorter way round.
    pub(crate) const fn is_before(self, generation: u32) -> bool {
        let distance = tag(generation).wrapping_sub(self.0 >> (64 - TAG_BITS)) & ((1 << TAG_BITS) - 1);
        distance != 0 && distance < 1 << (TAG_BITS - 1)
    }
}

const fn tag(generation: u32) -> u64 {
    generation as u64 & ((1 << TAG_BITS) - 1)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_word_survives_its_packing(
            state in 0u64..3, mode in 0u64..4, cause in 0u64..12, level in 0u32..32,
            passes in 0u32..256, recovered: bool, generation: u32,
        ) {
            let word = Word {
                level, passes, recovered, generation,
                ..Word::unpack(state | mode << 2 | cause << 4)
            };
            prop_assert_eq!(Word::unpack(word.pack()), word);
        }

        #[test]
        fn only_closed_and_auto_is_plainly_closed(state in 0u64..3, mode in 0u64..4, generation: u32) {
            let word = Word { generation, ..Word::unpack(state | mode << 2) };
            let expected = (word.state == State::Closed && word.mode == Mode::Auto).then_some(generation);
            prop_assert_eq!(Word::plainly_closed(word.pack()), expected);
        }

        #[test]
        fn a_stamp_knows_its_generation_across_the_wrap(generation: u32, millis in 0..MILLIS, later in 1u32..1000) {
            let stamp = Stamp::new(generation, millis);
            let next = generation.wrapping_add(later);
            prop_assert_eq!(stamp.of(generation), Some(millis));
            prop_assert_eq!(stamp.of(next), None);
            prop_assert!(stamp.is_before(next));
            prop_assert!(!stamp.is_before(generation));
            prop_assert!(!Stamp::new(next, millis).is_before(generation));
        }
    }
}
