//! Whether a tablet serves, as a pure function of its observations.
//!
//! ```text
//! (never measured) --answered--> serving
//! serving --nobody listens, or a connection just made was lost--> not serving, at once
//! serving --no answer in time, twice in a row--> not serving
//! serving --an error in place of an answer--> serving (there is a server), unless the error says that it is leaving
//! not serving --answered--> serving
//! ```
//!
//! One answer that comes late is no proof on a busy machine; a refused connection is. A tablet that was never measured
//! does not serve: nobody knows what it is.

use std::sync::Arc;

use super::super::observation::{Facts, Heartbeat, Observation, PollError};
use crate::base::clock::Instant;

/// Answers in a row that may come too late before a tablet no longer serves.
const LATE: u32 = 2;

/// What is known of a tablet, up to its last observation.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The last observation.
    pub last: Arc<Observation>,
    /// The last one that was answered, which may be older; `None` if it never answered.
    pub answered: Option<Arc<Observation>>,
    /// Whether it serves.
    pub serving: bool,
    /// Since when it does or does not.
    pub since: Instant,
    /// The last two different heartbeats, the newest last.
    pub beats: Vec<Beat>,
    /// Looks that told nothing, in a row.
    pub failures: u32,
    /// Of those, the last so many for lack of time.
    late: u32,
}

/// A heartbeat, and when it was first seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Its writer's time, see [`Heartbeat::Beat`].
    pub micros: i128,
    /// The end of the look that saw it first.
    pub seen: Instant,
}

impl Standing {
    /// What is known after one more observation.
    #[must_use]
    pub fn next(before: Option<&Self>, observation: Arc<Observation>) -> Self {
        let was = before.is_some_and(|b| b.serving);
        let late = match &observation.outcome {
            Err(PollError::Timeout(_)) => before.map_or(0, |b| b.late).saturating_add(1),
            Ok(_) | Err(_) => 0,
        };
        let serving = match &observation.outcome {
            Ok(_) => true,
            Err(PollError::Timeout(_)) => was && late < LATE,
            Err(PollError::Denied { errno, .. }) => was && !is_leaving(*errno),
            Err(PollError::Unreachable(_) | PollError::Lost(_) | PollError::Strange(_)) => false,
        };
        let failures = if observation.outcome.is_ok() {
            0
        } else {
            before.map_or(0, |b| b.failures).saturating_add(1)
        };
        Self {
            answered: if observation.outcome.is_ok() {
                Some(Arc::clone(&observation))
            } else {
                before.and_then(|b| b.answered.clone())
            },
            since: match before {
                Some(b) if b.serving == serving => b.since,
                Some(_) | None => observation.at + observation.took,
            },
            beats: beats(before, &observation),
            last: observation,
            serving,
            failures,
            late,
        }
    }

    /// What the server last said of itself, however long ago.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.answered.as_ref().and_then(|o| o.facts())
    }

    /// The same, with the time it was said.
    #[must_use]
    pub fn said(&self) -> Option<(&Facts, Instant)> {
        let answered = self.answered.as_ref()?;
        Some((answered.facts()?, answered.answered_at()))
    }

    /// Why it does not serve; `None` if it does.
    #[must_use]
    pub fn why_not(&self) -> Option<String> {
        (!self.serving).then(|| match &self.last.outcome {
            // Cannot be: an answered observation serves.
            Ok(_) => "not measured".to_owned(),
            Err(e) => e.to_string(),
        })
    }
}

/// The last two different heartbeats after one more observation. A table that cannot be read ends their row: what was
/// read before says nothing of now.
fn beats(before: Option<&Standing>, observation: &Observation) -> Vec<Beat> {
    let known = before.map_or(&[][..], |b| b.beats.as_slice());
    let micros = match observation.facts().map(|f| &f.heartbeat) {
        None => return known.to_vec(),
        Some(Some(Heartbeat::Beat(micros))) => *micros,
        Some(None | Some(Heartbeat::Empty | Heartbeat::Unreadable { .. })) => return Vec::new(),
    };
    let beat = Beat {
        micros,
        seen: observation.answered_at(),
    };
    match known.last() {
        Some(last) if last.micros == micros => known.to_vec(),
        Some(last) => vec![*last, beat],
        None => vec![beat],
    }
}

/// Whether a server's error says that it takes no statements: 1047 (a cluster's node without its cluster), 1053 (it
/// shuts down).
pub(in crate::topology) fn is_leaving(errno: u16) -> bool {
    matches!(errno, 1047 | 1053)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::observation::{Identity, Replication};
    use super::*;
    use crate::base::clock;

    fn facts() -> Facts {
        Facts {
            read_only: false,
            super_read_only: None,
            replication: Replication::Channels(Vec::new()),
            position: None,
            heartbeat: None,
            identity: Identity::default(),
            uptime: None,
            bypasses_read_only: None,
        }
    }

    fn timeout() -> Result<Facts, PollError> {
        Err(PollError::Timeout(Duration::from_millis(250)))
    }

    fn denied(errno: u16) -> Result<Facts, PollError> {
        Err(PollError::Denied {
            errno,
            message: String::new(),
        })
    }

    fn run(outcomes: Vec<Result<Facts, PollError>>) -> Vec<bool> {
        let mut before: Option<Standing> = None;
        outcomes
            .into_iter()
            .map(|outcome| {
                let observation = Observation {
                    at: clock::now(),
                    took: Duration::ZERO,
                    outcome,
                };
                let next = Standing::next(before.as_ref(), Arc::new(observation));
                let serving = next.serving;
                before = Some(next);
                serving
            })
            .collect()
    }

    #[test]
    fn a_refused_connection_ends_service_at_once_and_an_answer_brings_it_back() {
        let refused = || Err(PollError::Unreachable("refused".into()));
        assert_eq!(
            run(vec![Ok(facts()), refused(), refused(), Ok(facts())]),
            [true, false, false, true]
        );
    }

    #[test]
    fn one_late_answer_is_no_proof_two_are() {
        let seen = run(vec![
            Ok(facts()),
            timeout(),
            Ok(facts()),
            timeout(),
            timeout(),
            Ok(facts()),
        ]);
        assert_eq!(seen, [true, true, true, true, false, true]);
    }

    #[test]
    fn a_tablet_never_measured_does_not_serve_whatever_it_says() {
        assert_eq!(run(vec![timeout(), denied(1040), denied(1045)]), [false; 3]);
    }

    #[test]
    fn a_full_server_serves_on_and_a_leaving_one_does_not() {
        assert_eq!(run(vec![Ok(facts()), denied(1040), denied(1040)]), [true; 3]);
        assert_eq!(run(vec![Ok(facts()), denied(1053)]), [true, false]);
        assert_eq!(run(vec![Ok(facts()), denied(1047)]), [true, false]);
    }

    #[test]
    fn what_a_server_said_is_kept_while_it_is_silent() {
        let observed = |outcome| {
            Arc::new(Observation {
                at: clock::now(),
                took: Duration::ZERO,
                outcome,
            })
        };
        let first = Standing::next(None, observed(Ok(facts())));
        let second = Standing::next(Some(&first), observed(timeout()));
        assert_eq!(second.facts(), Some(&facts()));
        assert_eq!((second.failures, second.since), (1, first.since));
        assert!(second.last.facts().is_none());
    }
}
