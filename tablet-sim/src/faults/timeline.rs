//! Timelines: faults that come and go by the clock. They are told once, so that a drill is the same each time it runs
//! and nobody's shell decides how long a fault lasted.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::spec::{FaultKind, FaultSpec, MAX_MS, kind_name};
use super::{Faults, InvalidFault};
use crate::rng::Rng;

/// The most steps of a timeline.
const MAX_STEPS: usize = 10_000;

/// What a step takes away: `"all"`, or a kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Clear {
    /// Every fault.
    All,
    /// Those of this kind.
    Kind(FaultKind),
}

impl TryFrom<String> for Clear {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let kind =
            serde_json::from_value(Value::String(text)).map_err(|e| format!("`clear`: {e}, or `all`"))?;
        Ok(Self::Kind(kind))
    }
}

impl From<Clear> for String {
    fn from(clear: Clear) -> Self {
        match clear {
            Clear::All => "all".to_owned(),
            Clear::Kind(kind) => kind_name(kind),
        }
    }
}

/// One moment of a timeline: either sets faults beside those that are set, or takes some away.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineStep {
    /// Milliseconds after the timeline's start, or after the start of its round.
    pub at_ms: u64,
    /// At most so many milliseconds later, by the tablet's seed; 0 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<u64>,
    /// One fault or a list of them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_many"
    )]
    pub set: Vec<FaultSpec>,
    /// Which faults end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear: Option<Clear>,
}

impl TimelineStep {
    /// Sets a fault.
    #[must_use]
    pub fn set(at: Duration, fault: FaultSpec) -> Self {
        Self {
            at_ms: millis(at),
            set: vec![fault],
            ..Self::default()
        }
    }

    /// Takes faults away.
    #[must_use]
    pub fn clear(at: Duration, what: Clear) -> Self {
        Self {
            at_ms: millis(at),
            clear: Some(what),
            ..Self::default()
        }
    }
}

/// Steps, and whether they begin again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// In any order; those of one moment run in the order given.
    pub steps: Vec<TimelineStep>,
    /// The steps run again each time so many milliseconds have passed; once if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_ms: Option<u64>,
}

impl Timeline {
    /// Reads JSON: a list of steps, or an object with `steps` and `repeat_ms`.
    pub fn from_json(body: &[u8]) -> Result<Self, InvalidTimeline> {
        let bad = |e: serde_json::Error| InvalidTimeline(e.to_string());
        let value: Value =
            serde_json::from_slice(body).map_err(|e| InvalidTimeline(format!("not JSON: {e}")))?;
        if value.is_array() {
            let steps = serde_json::from_value(value).map_err(bad)?;
            return Ok(Self {
                steps,
                repeat_ms: None,
            });
        }
        serde_json::from_value(value).map_err(bad)
    }

    fn check(&self, faults: &Faults) -> Result<(), InvalidTimeline> {
        let bad = |n: usize, why: &str| Err(InvalidTimeline(format!("step {n}: {why}")));
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(InvalidTimeline(format!("a timeline has 1 to {MAX_STEPS} steps")));
        }
        let mut last = 0;
        for (n, step) in self.steps.iter().enumerate() {
            if step.set.is_empty() == step.clear.is_none() {
                return bad(n, "give either `set` or `clear`");
            }
            let jitter = step.jitter_ms.unwrap_or(0);
            if step.at_ms > MAX_MS || jitter > MAX_MS {
                return bad(n, "`at_ms` and `jitter_ms` may be a day at most");
            }
            last = last.max(step.at_ms + jitter);
            for fault in &step.set {
                if let Err(InvalidFault { kind, reason }) = faults.rule(fault) {
                    return bad(n, &format!("fault `{kind}`: {reason}"));
                }
            }
        }
        match self.repeat_ms {
            Some(round) if round <= last || round > MAX_MS => Err(InvalidTimeline(format!(
                "`repeat_ms` must lie above the last step's moment, {last} ms, and be a day at most"
            ))),
            _ => Ok(()),
        }
    }

    /// The steps of one round in the order they are due.
    fn round(&self, rng: &mut Rng) -> Vec<(Duration, usize)> {
        let mut due: Vec<_> = self
            .steps
            .iter()
            .enumerate()
            .map(|(n, step)| {
                let jitter = Duration::from_millis(step.jitter_ms.unwrap_or(0)).mul_f64(rng.unit());
                (Duration::from_millis(step.at_ms) + jitter, n)
            })
            .collect();
        due.sort_by_key(|(at, _)| *at);
        due
    }
}

/// Why a timeline cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timeline: {0}")]
pub struct InvalidTimeline(String);

/// A timeline as it stands.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineStatus {
    /// Whether steps are still to come.
    pub running: bool,
    /// Milliseconds since it began.
    pub elapsed_ms: u64,
    /// The round it is in, from 1.
    pub round: u64,
    /// How long a round lasts, if it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat_ms: Option<u64>,
    /// The steps of this round, in the order they are due.
    pub steps: Vec<StepStatus>,
}

/// A step of the round at hand.
#[derive(Clone, Debug, Serialize)]
pub struct StepStatus {
    /// Milliseconds after the round's start, its jitter drawn.
    pub due_ms: u64,
    /// Whether it has run.
    pub done: bool,
    /// What was asked for.
    #[serde(flatten)]
    pub step: TimelineStep,
}

/// The timeline that runs, or the last that did. Dropped, it stops.
#[derive(Debug)]
pub(super) struct Playing {
    timeline: Arc<Timeline>,
    began: Instant,
    round: u64,
    due: Vec<(Duration, usize)>,
    done: usize,
    ended: bool,
    _stop: DropGuard,
}

impl Faults {
    /// Runs a timeline from now on, in place of one that runs. The faults that are set stay until a step takes them
    /// away. It ends with its last step, with [`Faults::stop_timeline`], or with the tablet.
    pub fn play(self: &Arc<Self>, timeline: Timeline) -> Result<(), InvalidTimeline> {
        timeline.check(self)?;
        let Some(runtime) = &self.runtime else {
            return Err(InvalidTimeline("there is no runtime to keep its time".to_owned()));
        };
        let timeline = Arc::new(timeline);
        let mut rng = Rng::new(self.seed ^ 0x7173);
        let stop = CancellationToken::new();
        let began = Instant::now();
        let playing = Playing {
            timeline: Arc::clone(&timeline),
            began,
            round: 1,
            due: timeline.round(&mut rng),
            done: 0,
            ended: false,
            _stop: stop.clone().drop_guard(),
        };
        let due = playing.due.clone();
        *self.playing() = Some(playing);
        let run = run(Arc::downgrade(self), timeline, rng, began, due, stop.clone());
        runtime.spawn(async move { stop.run_until_cancelled(run).await });
        Ok(())
    }

    /// Stops the timeline; the faults that are set stay.
    pub fn stop_timeline(&self) {
        *self.playing() = None;
    }

    /// The timeline that runs, or the last that ended by itself.
    #[must_use]
    pub fn timeline(&self) -> Option<TimelineStatus> {
        let playing = self.playing();
        let playing = playing.as_ref()?;
        let steps = playing.due.iter().enumerate().filter_map(|(at, (due, n))| {
            Some(StepStatus {
                due_ms: millis(*due),
                done: at < playing.done,
                step: playing.timeline.steps.get(*n)?.clone(),
            })
        });
        Some(TimelineStatus {
            running: !playing.ended,
            elapsed_ms: millis(playing.began.elapsed()),
            round: playing.round,
            repeat_ms: playing.timeline.repeat_ms,
            steps: steps.collect(),
        })
    }

    fn playing(&self) -> std::sync::MutexGuard<'_, Option<Playing>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one step, unless another timeline has taken its place meanwhile.
    fn step(&self, step: &TimelineStep, stop: &CancellationToken) {
        let mut playing = self.playing();
        if stop.is_cancelled() {
            return;
        }
        match step.clear {
            Some(Clear::All) => self.clear(),
            Some(Clear::Kind(kind)) => self.clear_kind(kind),
            None => {}
        }
        for fault in &step.set {
            // Checked before the timeline began.
            if let Err(e) = self.add(fault) {
                tracing::warn!(error = %e, "a step of a timeline");
            }
        }
        if let Some(playing) = playing.as_mut() {
            playing.done += 1;
        }
    }
}

async fn run(
    faults: Weak<Faults>,
    timeline: Arc<Timeline>,
    mut rng: Rng,
    mut began: Instant,
    mut due: Vec<(Duration, usize)>,
    stop: CancellationToken,
) {
    loop {
        for (at, n) in &due {
            tokio::time::sleep_until(began + *at).await;
            let (Some(faults), Some(step)) = (faults.upgrade(), timeline.steps.get(*n)) else {
                return;
            };
            faults.step(step, &stop);
        }
        let Some(repeat) = timeline.repeat_ms else { break };
        began += Duration::from_millis(repeat);
        tokio::time::sleep_until(began).await;
        due = timeline.round(&mut rng);
        let Some(faults) = faults.upgrade() else { return };
        if let Some(playing) = faults.playing().as_mut().filter(|_| !stop.is_cancelled()) {
            playing.round += 1;
            playing.done = 0;
            playing.due.clone_from(&due);
        }
    }
    let Some(faults) = faults.upgrade() else { return };
    if let Some(playing) = faults.playing().as_mut().filter(|_| !stop.is_cancelled()) {
        playing.ended = true;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FaultSpec>, D::Error> {
    use serde::de::Error;
    let value = Value::deserialize(from)?;
    let list = match value {
        Value::Array(list) => list,
        one => vec![one],
    };
    list.into_iter()
        .map(|v| serde_json::from_value(v).map_err(|e| D::Error::custom(format!("`set`: {e}"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Layer;

    fn faults(seed: u64) -> Arc<Faults> {
        Faults::new(seed, Layer::Tablet)
    }

    fn kinds(faults: &Faults) -> Vec<FaultKind> {
        faults.list().iter().map(|f| f.spec.kind).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn faults_come_and_go_by_the_clock() {
        let faults = faults(1);
        let timeline = br#"[{"at_ms":1000,"set":[{"kind":"hang"},{"kind":"latency","ms":5}]},
            {"at_ms":2000,"clear":"hang"},{"at_ms":0,"set":{"kind":"read_only"}},{"at_ms":3000,"clear":"all"}]"#;
        faults.play(Timeline::from_json(timeline).unwrap()).unwrap();
        let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
        wait(500).await;
        assert_eq!(kinds(&faults), [FaultKind::ReadOnly]);
        wait(1000).await;
        assert_eq!(
            kinds(&faults),
            [FaultKind::ReadOnly, FaultKind::Hang, FaultKind::Latency]
        );
        let status = faults.timeline().unwrap();
        assert!(status.running && status.elapsed_ms == 1500);
        assert_eq!(
            status.steps.iter().map(|s| s.done).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        wait(1000).await;
        assert_eq!(kinds(&faults), [FaultKind::ReadOnly, FaultKind::Latency]);
        wait(1000).await;
        assert!(faults.list().is_empty() && !faults.timeline().unwrap().running);
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_begins_again_and_a_new_timeline_or_a_stop_ends_the_old() {
        let faults = faults(1);
        let flap =
            r#"{"repeat_ms":100,"steps":[{"at_ms":0,"set":{"kind":"hang"}},{"at_ms":50,"clear":"all"}]}"#;
        faults
            .play(Timeline::from_json(flap.as_bytes()).unwrap())
            .unwrap();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            assert_eq!(kinds(&faults), [FaultKind::Hang]);
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(kinds(&faults).is_empty());
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        assert!(faults.timeline().unwrap().round >= 3);
        faults.stop_timeline();
        let now = kinds(&faults);
        tokio::time::sleep(Duration::from_millis(75)).await;
        assert_eq!(kinds(&faults), now);
        assert!(faults.timeline().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_seed_draws_the_same_moments() {
        let moments = |seed| {
            let faults = faults(seed);
            let json = br#"[{"at_ms":10,"jitter_ms":1000,"set":{"kind":"hang"}},{"at_ms":0,"jitter_ms":900,"clear":"all"}]"#;
            faults.play(Timeline::from_json(json).unwrap()).unwrap();
            let steps = faults.timeline().unwrap().steps;
            steps.iter().map(|s| s.due_ms).collect::<Vec<_>>()
        };
        assert_eq!(moments(3), moments(3));
        assert_ne!(moments(3), moments(4));
    }

    #[tokio::test]
    async fn a_timeline_that_cannot_be_is_refused_by_its_step() {
        for (json, word) in [
            ("[]", "1 to"),
            (r#"[{"at_ms":0}]"#, "step 0"),
            (r#"[{"at_ms":0,"clear":"hang","set":{"kind":"hang"}}]"#, "either"),
            (r#"[{"at_ms":0,"set":{"kind":"latency"}}]"#, "latency"),
            (r#"[{"at_ms":0,"clear":"everything"}]"#, "everything"),
            (
                r#"{"steps":[{"at_ms":9,"clear":"all"}],"repeat_ms":9}"#,
                "repeat_ms",
            ),
            (r#"[{"at":0,"clear":"all"}]"#, "at"),
        ] {
            let refused = Timeline::from_json(json.as_bytes()).and_then(|t| faults(1).play(t));
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(word), "{json}: {message}");
        }
    }
}
