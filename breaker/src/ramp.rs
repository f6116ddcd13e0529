//! From lag to weight.
//!
//! A replica that falls behind sheds load before it is shut off: the weight falls in a straight line from the soft to
//! the hard threshold. Shedding is what lets it catch up, if reading is what holds it back.

use std::time::Duration;

/// Thresholds of lag. Used by `balance`, by the agent protocol, and by `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Lag up to which the weight is whole.
    pub soft: Duration,
    /// The freshness budget: at this lag the weight is zero, at once.
    pub hard: Duration,
    /// Lag below which an ejected replica may return.
    pub re_entry: Duration,
    /// The weight just below `hard`, in percent; 0 to 100.
    pub floor: u32,
}

impl Default for Ramp {
    fn default() -> Self {
        Self {
            soft: Duration::from_millis(200),
            hard: Duration::from_millis(800),
            re_entry: Duration::from_millis(120),
            floor: 10,
        }
    }
}

/// Thresholds of lag that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RampError {
    /// Not re-entry < soft < hard.
    #[error("thresholds of lag must rise: re-entry < soft < hard")]
    Order,
    /// A floor over 100 %.
    #[error("the floor of the ramp is a share in percent, at most 100")]
    Floor,
}

impl Ramp {
    /// Refuses thresholds that do not rise.
    pub fn validate(&self) -> Result<(), RampError> {
        if !(self.re_entry < self.soft && self.soft < self.hard) {
            return Err(RampError::Order);
        }
        if self.floor > 100 {
            return Err(RampError::Floor);
        }
        Ok(())
    }

    /// Whether re-entry is so close to hard that a replica may flap: `check` warns.
    #[must_use]
    pub fn may_flap(&self) -> bool {
        self.re_entry > self.hard / 2
    }

    /// The weight in percent: `100 - (100 - floor) x (lag - soft) / (hard - soft)`, whole up to soft, 0 from hard on and
    /// for a lag nobody knows.
    #[must_use]
    pub fn weight(&self, lag: Option<Duration>) -> u32 {
        let Some(lag) = lag else { return 0 };
        if lag >= self.hard {
            return 0;
        }
        let over = lag.saturating_sub(self.soft).as_nanos();
        let span = self.hard.saturating_sub(self.soft).as_nanos().max(1);
        let floor = self.floor.min(100);
        let shed = u128::from(100 - floor) * over / span;
        100 - u32::try_from(shed).unwrap_or(100).min(100)
    }

    /// The whole weight of a replica: configured x ramp x slow start (or what the ejection cap leaves), in hundredths of
    /// a configured unit. The least that is not zero is one, so that a small weight still gets its share.
    #[must_use]
    pub fn replica_weight(&self, configured: u32, lag: Option<Duration>, breaker_percent: u32) -> u64 {
        let parts = [configured, self.weight(lag), breaker_percent];
        if parts.contains(&0) {
            return 0;
        }
        let product: u64 = parts.into_iter().map(u64::from).fold(1, u64::saturating_mul);
        (product / 100).max(1)
    }

    /// What the agent protocol says: ramp x breaker, never the configured weight, which the proxy has of its own.
    #[must_use]
    pub fn agent_percent(&self, lag: Option<Duration>, breaker_percent: u32) -> u32 {
        let percent = self.weight(lag) * breaker_percent.min(100);
        if percent == 0 { 0 } else { (percent / 100).max(1) }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_weight_falls_from_soft_to_hard() {
        let ramp = Ramp::default();
        for (lag, weight) in [
            (Some(0), 100),
            (Some(200), 100),
            (Some(350), 78),
            (Some(500), 55),
            (Some(650), 33),
            (Some(799), 11),
            (Some(800), 0),
            (Some(60_000), 0),
            (None, 0),
        ] {
            assert_eq!(ramp.weight(lag.map(ms)), weight, "{lag:?}");
        }
    }

    #[test]
    fn weights_multiply_and_never_round_down_to_nothing() {
        let ramp = Ramp::default();
        assert_eq!(ramp.replica_weight(100, Some(ms(0)), 100), 10_000);
        assert_eq!(ramp.replica_weight(100, Some(ms(500)), 50), 2750);
        assert_eq!(ramp.replica_weight(1, Some(ms(799)), 1), 1);
        assert_eq!(ramp.replica_weight(0, Some(ms(0)), 100), 0);
        assert_eq!(ramp.replica_weight(100, Some(ms(800)), 100), 0);
        assert_eq!(ramp.replica_weight(100, Some(ms(0)), 0), 0);
        assert_eq!(ramp.agent_percent(Some(ms(500)), 100), 55);
        assert_eq!(ramp.agent_percent(Some(ms(799)), 5), 1);
        assert_eq!(ramp.agent_percent(None, 100), 0);
    }

    #[test]
    fn thresholds_must_rise() {
        let ramp = |re_entry, soft, hard, floor| Ramp {
            soft: ms(soft),
            hard: ms(hard),
            re_entry: ms(re_entry),
            floor,
        };
        for (ramp, valid) in [
            (Ramp::default(), Ok(())),
            (ramp(200, 200, 800, 10), Err(RampError::Order)),
            (ramp(120, 800, 800, 10), Err(RampError::Order)),
            (ramp(120, 200, 800, 101), Err(RampError::Floor)),
        ] {
            assert_eq!(ramp.validate(), valid, "{ramp:?}");
        }
        assert!(
            !Ramp::default().may_flap()
                && !ramp(400, 500, 800, 0).may_flap()
                && ramp(401, 500, 800, 0).may_flap()
        );
    }

    proptest! {
        #[test]
        fn more_lag_never_weighs_more(a in 0u64..2000, b in 0u64..2000, soft in 1u64..500, span in 1u64..500, floor in 0u32..=100) {
            let ramp = Ramp { soft: ms(soft), hard: ms(soft + span), re_entry: ms(0), floor };
            let weight = |lag| ramp.weight(Some(ms(lag)));
            prop_assert!(weight(a.min(b)) >= weight(a.max(b)));
            prop_assert!(weight(a) <= 100 && (weight(a) == 0) == (a >= soft + span || (floor == 0 && weight(a) == 0)));
        }
    }
}
