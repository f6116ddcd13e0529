//! What changed from one observation of a tablet to the next: the lines of the log.

use std::sync::Arc;
use std::time::Duration;

use super::super::observation::{Facts, Observation, Thread, UnknownReplication};
use super::standing::Standing;

/// One change worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It answers, for the first time or again.
    Answers,
    /// It no longer answers, or never did: why.
    DoesNotAnswer(String),
    /// It began to serve.
    Serves,
    /// It no longer serves: why.
    DoesNotServe(String),
    /// It takes writes now, or no longer does.
    ReadOnly(bool),
    /// Another server answers at this address.
    AnotherServer,
    /// The same server was started anew.
    Restarted,
    /// A replication channel runs; its name.
    ReplicationRuns(String),
    /// A replication channel stopped; its name and last error.
    ReplicationStopped(String, String),
    /// A replication channel looks for its source; its name and last error.
    ReplicationConnecting(String, String),
    /// Replication channels were taken away.
    ReplicationRemoved,
    /// Nothing is known of its replication: why.
    ReplicationUnknown(UnknownReplication),
}

impl Transition {
    /// The `reason` field of its line.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::DoesNotAnswer(_) => "does_not_answer",
            Self::Serves => "serves",
            Self::DoesNotServe(_) => "does_not_serve",
            Self::ReadOnly(true) => "read_only",
            Self::ReadOnly(false) => "writable",
            Self::AnotherServer => "another_server",
            Self::Restarted => "restarted",
            Self::ReplicationRuns(_) => "replication_runs",
            Self::ReplicationStopped(..) => "replication_stopped",
            Self::ReplicationConnecting(..) => "replication_connecting",
            Self::ReplicationRemoved => "replication_removed",
            Self::ReplicationUnknown(_) => "replication_unknown",
        }
    }

    /// More of it, for people; empty if the reason says all.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::DoesNotAnswer(why) | Self::DoesNotServe(why) => why.clone(),
            Self::ReplicationRuns(channel) => channel.clone(),
            Self::ReplicationStopped(channel, error) | Self::ReplicationConnecting(channel, error) => {
                [channel.as_str(), error.as_str()]
                    .iter()
                    .filter(|part| !part.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(": ")
            }
            Self::ReplicationUnknown(why) => why.to_string(),
            Self::Answers
            | Self::Serves
            | Self::ReadOnly(_)
            | Self::AnotherServer
            | Self::Restarted
            | Self::ReplicationRemoved => String::new(),
        }
    }
}

/// What changed between two standings. The first observation of a tablet tells whether it answers, and of everything
/// else only what an operator would not expect.
#[must_use]
pub fn transitions(before: Option<&Standing>, after: &Standing) -> Vec<Transition> {
    let mut out = Vec::new();
    let answered = |s: &Standing| s.last.outcome.is_ok();
    match (before.map(answered), &after.last.outcome) {
        (Some(false) | None, Ok(_)) => out.push(Transition::Answers),
        (Some(true) | None, Err(e)) => out.push(Transition::DoesNotAnswer(e.to_string())),
        (Some(true), Ok(_)) | (Some(false), Err(_)) => {}
    }
    match (before.is_some_and(|b| b.serving), after.serving) {
        (false, true) => out.push(Transition::Serves),
        (true, false) => out.push(Transition::DoesNotServe(after.why_not().unwrap_or_default())),
        (true, true) | (false, false) => {}
    }
    // Compared with what it said last, also across a silence.
    if answered(after)
        && let Some(now) = &after.answered
    {
        let then = before.and_then(|b| b.answered.as_ref());
        facts(then, now, &mut out);
    }
    out
}

/// A server tells its uptime in whole seconds, so that what two connections are told of the same start may differ by one,
/// and by how long asking took.
const UPTIME_GRAIN: Duration = Duration::from_millis(1500);

fn facts(then: Option<&Arc<Observation>>, now: &Observation, out: &mut Vec<Transition>) {
    let Some(new) = now.facts() else { return };
    let old = then.and_then(|o| o.facts());
    if let Some(old) = old {
        if old.identity != new.identity {
            out.push(Transition::AnotherServer);
        } else if new
            .uptime
            .zip(old.uptime)
            .is_some_and(|(new, old)| new + UPTIME_GRAIN < old)
        {
            out.push(Transition::Restarted);
        }
        if old.writable() != new.writable() {
            out.push(Transition::ReadOnly(!new.writable()));
        }
    }
    replication(old, new, out);
}

fn replication(old: Option<&Facts>, new: &Facts, out: &mut Vec<Transition>) {
    use super::super::observation::Replication;
    let before = old.map(|f| &f.replication);
    let channels = match &new.replication {
        Replication::Unknown(why) => {
            if before != Some(&new.replication) {
                out.push(Transition::ReplicationUnknown(why.clone()));
            }
            return;
        }
        Replication::Channels(channels) => channels,
    };
    let known = before.map_or(&[][..], Replication::channels);
    for channel in channels {
        let was = known.iter().find(|c| c.name == channel.name);
        let state = |c: &super::super::observation::Channel| (c.io, c.sql);
        if was.map(state) == Some(state(channel)) {
            continue;
        }
        let (name, error) = (channel.name.clone(), channel.error.clone());
        if channel.is_running() {
            out.push(Transition::ReplicationRuns(name));
        } else if channel.io == Thread::Connecting && channel.sql == Thread::Running {
            out.push(Transition::ReplicationConnecting(name, error));
        } else {
            out.push(Transition::ReplicationStopped(name, error));
        }
    }
    if channels.is_empty() && !known.is_empty() {
        out.push(Transition::ReplicationRemoved);
    }
}

#[cfg(test)]
mod tests {

    use super::super::super::observation::{Channel, Identity, PollError, Replication};
    use super::*;
    use crate::base::clock;

    fn channel(io: Thread, sql: Thread) -> Channel {
        Channel {
            name: String::new(),
            source_host: "h".into(),
            source_port: 1,
            io,
            sql,
            seconds_behind: Some(0),
            error: "errno 1".into(),
        }
    }

    fn facts_of(read_only: bool, channels: Vec<Channel>) -> Facts {
        Facts {
            read_only,
            super_read_only: None,
            replication: Replication::Channels(channels),
            position: None,
            heartbeat: None,
            identity: Identity::default(),
            uptime: Some(Duration::from_secs(100)),
            bypasses_read_only: None,
        }
    }

    fn story(outcomes: Vec<Result<Facts, PollError>>) -> Vec<Vec<&'static str>> {
        let mut before: Option<Standing> = None;
        outcomes
            .into_iter()
            .map(|outcome| {
                let observation = Observation {
                    at: clock::now(),
                    took: Duration::ZERO,
                    outcome,
                };
                let after = Standing::next(before.as_ref(), Arc::new(observation));
                let told = transitions(before.as_ref(), &after);
                before = Some(after);
                told.iter().map(Transition::reason).collect()
            })
            .collect()
    }

    #[test]
    fn each_change_is_told_once() {
        let refused = || Err(PollError::Unreachable("refused".into()));
        let told = story(vec![
            Ok(facts_of(false, vec![])),
            Ok(facts_of(false, vec![])),
            refused(),
            refused(),
            Ok(facts_of(true, vec![])),
        ]);
        let expected: [&[&str]; 5] = [
            &["answers", "serves"],
            &[],
            &["does_not_answer", "does_not_serve"],
            &[],
            &["answers", "serves", "read_only"],
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_late_answer_is_told_though_the_tablet_serves_on() {
        let late = || Err(PollError::Timeout(Duration::from_millis(250)));
        let told = story(vec![
            Ok(facts_of(false, vec![])),
            late(),
            late(),
            Ok(facts_of(false, vec![])),
        ]);
        let expected: [&[&str]; 4] = [
            &["answers", "serves"],
            &["does_not_answer"],
            &["does_not_serve"],
            &["answers", "serves"],
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn replication_is_followed_channel_by_channel() {
        use Thread::{Connecting, Running, Stopped};
        let told = story(vec![
            Ok(facts_of(true, vec![channel(Running, Running)])),
            Ok(facts_of(true, vec![channel(Running, Running)])),
            Ok(facts_of(true, vec![channel(Connecting, Running)])),
            Ok(facts_of(true, vec![channel(Running, Stopped)])),
            Ok(facts_of(true, vec![])),
        ]);
        let expected: [&[&str]; 5] = [
            &["answers", "serves", "replication_runs"],
            &[],
            &["replication_connecting"],
            &["replication_stopped"],
            &["replication_removed"],
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_missing_privilege_is_told_once() {
        let denied = || {
            Ok(Facts {
                replication: Replication::Unknown(UnknownReplication::Denied("no".into())),
                ..facts_of(false, vec![])
            })
        };
        let told = story(vec![denied(), denied()]);
        let expected: [&[&str]; 2] = [&["answers", "serves", "replication_unknown"], &[]];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_server_started_anew_is_not_another_one() {
        let younger = Ok(Facts {
            uptime: Some(Duration::from_secs(1)),
            ..facts_of(false, vec![])
        });
        let other = Ok(Facts {
            identity: Identity {
                server_id: Some(7),
                ..Identity::default()
            },
            ..facts_of(false, vec![])
        });
        let told_anew = Ok(Facts {
            uptime: Some(Duration::from_millis(99_100)),
            ..facts_of(false, vec![])
        });
        let told = story(vec![Ok(facts_of(false, vec![])), told_anew, younger, other]);
        let expected: [&[&str]; 4] = [&["answers", "serves"], &[], &["restarted"], &["another_server"]];
        assert_eq!(told, expected);
    }
}
