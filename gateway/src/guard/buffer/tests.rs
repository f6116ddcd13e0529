use std::sync::Arc;
use std::time::Duration;

use super::common::Common;
use super::*;
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{GatewayError, Role, ShardId, TabletAlias};
use crate::guard::{GuardSettings, Guards};

const SECOND: Duration = Duration::from_secs(1);
const WRITE: Request = Request {
    is_write: true,
    bytes: 10,
};
const READ: Request = Request {
    is_write: false,
    bytes: 10,
};

struct Shard {
    buffer: Arc<ShardBuffer>,
    common: Arc<Common>,
}

fn shards(n: usize, settings: BufferSettings) -> (Vec<Shard>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    let common = Arc::new(Common::new(Arc::clone(&metrics), clock::now()));
    common.configure(settings, n);
    let shard = |i: usize| {
        let id = ShardId::new("k", i.to_string());
        metrics.buffer.count_from_zero(&format!("k.{i}"));
        Shard {
            buffer: Arc::new(ShardBuffer::new(id, Arc::clone(&common))),
            common: Arc::clone(&common),
        }
    };
    ((0..n).map(shard).collect(), metrics)
}

fn one(settings: BufferSettings) -> (Shard, Arc<Metrics>) {
    let (mut all, metrics) = shards(1, settings);
    (all.remove(0), metrics)
}

fn alias(name: &str) -> TabletAlias {
    name.into()
}

impl Shard {
    fn writes(&self, primary: &str, seen: Instant) {
        let primary = alias(primary);
        self.buffer.told(News::Writes { primary, seen }, clock::now());
    }

    fn gone(&self) {
        let (why, since) = ("its primary is gone".to_owned(), clock::now());
        self.buffer.told(News::Gone { why, since }, since);
    }

    fn read_only(&self) {
        let (why, since) = ("its primary is read-only".to_owned(), clock::now());
        self.buffer.told(News::ReadOnly { why, since }, since);
    }

    fn sign(&self, tablet: &str) -> bool {
        self.buffer.sign(&alias(tablet), clock::now())
    }

    fn admit(&self, request: Request) -> Result<Admission, BufferRefused> {
        self.buffer.admit(request, clock::now())
    }

    fn ticket(&self, request: Request) -> Ticket {
        match self.admit(request).unwrap() {
            Admission::Wait(ticket) => ticket,
            Admission::Pass => panic!("it passes"),
        }
    }

    fn passes(&self, request: Request) -> bool {
        matches!(self.admit(request), Ok(Admission::Pass))
    }

    fn phase(&self) -> &'static str {
        self.buffer.snapshot(clock::now()).phase
    }

    fn waiting(&self) -> usize {
        self.buffer.snapshot(clock::now()).requests
    }
}

fn count(metrics: &Metrics, of: impl Fn(&Metrics) -> u64) -> u64 {
    of(metrics)
}

fn evicted(metrics: &Metrics, reason: &str) -> u64 {
    count(metrics, |m| {
        m.buffer.requests_evicted.handle(&format!("k.0.{reason}")).get()
    })
}

fn skipped(metrics: &Metrics, reason: &str) -> u64 {
    count(metrics, |m| {
        m.buffer.requests_skipped.handle(&format!("k.0.{reason}")).get()
    })
}

fn buffered(metrics: &Metrics) -> (u64, u64) {
    let b = &metrics.buffer;
    (
        b.requests_buffered.handle("k.0").get(),
        b.requests_drained.handle("k.0").get(),
    )
}

#[tokio::test(start_paused = true)]
async fn requests_wait_from_the_first_sign_until_the_primary_was_seen_to_write() {
    let (shard, metrics) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    assert!(shard.passes(WRITE) && shard.passes(READ));
    let moves = shard.common.moves.load(std::sync::atomic::Ordering::Relaxed);
    tokio::time::advance(SECOND).await;
    let before = clock::now();
    tokio::time::advance(SECOND).await;
    assert!(shard.sign("a"));
    let (write, read) = (shard.ticket(WRITE), shard.ticket(READ));
    assert_eq!((shard.phase(), shard.waiting()), ("buffering", 2));
    // A look that began before the sign proves nothing.
    shard.writes("a", before);
    assert_eq!(shard.phase(), "buffering");
    let waiting = tokio::spawn(async move {
        let write = write.wait().await.unwrap();
        let read = read.wait().await.unwrap();
        (write, read)
    });
    tokio::time::advance(SECOND).await;
    shard.writes("b", clock::now());
    let both = waiting.await.unwrap();
    assert_eq!((shard.phase(), shard.waiting()), ("draining", 0));
    assert!(shard.passes(WRITE));
    assert!(shard.buffer.moved_since(moves));
    drop(both);
    assert_eq!(shard.phase(), "idle");
    assert_eq!(buffered(&metrics), (2, 2));
    let stops = metrics.buffer.stops.handle("k.0.NewPrimarySeen").get();
    assert_eq!((metrics.buffer.starts.handle("k.0").get(), stops), (1, 1));
    assert_eq!(metrics.buffer.last_requests_in_flight_max.handle("k.0").get(), 2);
    assert_eq!(metrics.buffer.failover_duration_sum_ms.handle("k.0").get(), 1000);
    // What comes late from the old primary surprises nobody.
    assert!(shard.sign("a"));
    assert_eq!(shard.phase(), "idle");
}

#[tokio::test(start_paused = true)]
async fn a_primary_known_to_be_gone_buffers_from_the_first_request_on() {
    let (shard, metrics) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    shard.gone();
    assert_eq!(shard.phase(), "idle");
    let ticket = shard.ticket(READ);
    shard.writes("a", clock::now());
    drop(ticket.wait().await.unwrap());
    assert_eq!((shard.phase(), buffered(&metrics)), ("idle", (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_read_only_primary_answers_reads_until_somebody_writes() {
    let (shard, _) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    shard.read_only();
    assert!(shard.passes(READ));
    let write = shard.ticket(WRITE);
    let read = shard.ticket(READ);
    drop((write, read));
    assert_eq!(shard.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_gives_up_by_its_window_and_all_by_the_longest_duration() {
    let settings = BufferSettings {
        window: SECOND,
        max_failover_duration: SECOND * 3,
        ..BufferSettings::default()
    };
    let (shard, metrics) = one(settings);
    shard.writes("a", clock::now());
    let began = clock::now();
    assert!(shard.sign("a"));
    shard.read_only();
    let error = shard.ticket(WRITE).wait().await.unwrap_err();
    assert_eq!((error.code(), clock::now() - began), (Some("SG2702"), SECOND));
    tokio::time::advance(SECOND * 3 / 2).await;
    let ticket = shard.ticket(WRITE);
    tokio::time::advance(SECOND / 2).await;
    shard.buffer.tick(clock::now());
    let error = ticket.wait().await.unwrap_err();
    assert_eq!((error.code(), clock::now() - began), (Some("SG2703"), SECOND * 3));
    assert_eq!(
        (
            evicted(&metrics, "WindowExceeded"),
            evicted(&metrics, "MaxDurationExceeded")
        ),
        (1, 1)
    );
    // Given up: nobody waits for it again before it was seen to write, however long that takes.
    assert_eq!(shard.phase(), "idle");
    shard.gone();
    tokio::time::advance(SECOND * 100).await;
    shard.gone();
    assert!(shard.passes(WRITE) && !shard.sign("a"));
    assert_eq!(skipped(&metrics, "LastFailoverTooRecent"), 2);
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
}

#[tokio::test(start_paused = true)]
async fn the_watch_ends_a_buffering_in_which_nobody_waits() {
    let (shard, metrics) = one(BufferSettings::default());
    assert!(shard.sign("a"));
    tokio::time::advance(SECOND * 20).await;
    shard.buffer.tick(clock::now());
    assert_eq!(shard.phase(), "idle");
    assert_eq!(metrics.buffer.stops.handle("k.0.MaxDurationExceeded").get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_lets_its_oldest_go_and_an_abandoned_place_is_free_at_once() {
    let settings = BufferSettings {
        size: 2,
        ..BufferSettings::default()
    };
    let (shard, metrics) = one(settings);
    assert!(shard.sign("a"));
    let (first, second, third) = (shard.ticket(WRITE), shard.ticket(WRITE), shard.ticket(WRITE));
    assert_eq!(first.wait().await.unwrap_err().code(), Some("SG2701"));
    drop(second);
    assert_eq!(shard.waiting(), 1);
    let fourth = shard.ticket(WRITE);
    assert_eq!(
        (evicted(&metrics, "BufferFull"), evicted(&metrics, "ContextDone")),
        (1, 1)
    );
    drop((third, fourth));
    assert_eq!(
        (shard.waiting(), shard.buffer.snapshot(clock::now()).bytes),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn no_shard_drives_out_another_and_bytes_count() {
    let settings = BufferSettings {
        size: 8,
        bytes: 1000,
        ..BufferSettings::default()
    };
    let (all, metrics) = shards(2, settings);
    assert!(all[0].sign("a") && all[1].sign("b"));
    let mine: Vec<Ticket> = (0..20).map(|_| all[0].ticket(WRITE)).collect();
    assert_eq!(all[0].waiting(), 6);
    let others: Vec<Ticket> = (0..2).map(|_| all[1].ticket(WRITE)).collect();
    assert_eq!((all[0].waiting(), all[1].waiting()), (6, 2));
    drop((mine, others));
    // Too large for the whole room: nobody has to go for it.
    let small = all[0].ticket(WRITE);
    let large = Request {
        is_write: true,
        bytes: 2000,
    };
    assert_eq!(all[0].admit(large).unwrap_err().code(), Some("SG2701"));
    assert_eq!((all[0].waiting(), skipped(&metrics, "BufferFull")), (1, 1));
    drop(small);
}

#[tokio::test(start_paused = true)]
async fn those_that_waited_go_a_few_at_a_time_the_oldest_first() {
    let settings = BufferSettings {
        drain_concurrency: 2,
        ..BufferSettings::default()
    };
    let (shard, metrics) = one(settings);
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
    let tickets: Vec<Ticket> = (0..5).map(|_| shard.ticket(WRITE)).collect();
    shard.writes("a", clock::now());
    assert_eq!(shard.waiting(), 3);
    let mut tickets = tickets.into_iter();
    let mut on_their_way = Vec::new();
    for _ in 0..2 {
        on_their_way.push(tickets.next().unwrap().wait().await.unwrap());
    }
    drop(on_their_way.pop());
    assert_eq!(shard.waiting(), 2);
    // One whose turn has come and that is gone passes its turn on.
    drop(tickets.next());
    assert_eq!(shard.waiting(), 1);
    drop(on_their_way);
    let rest: Vec<Ticket> = tickets.collect();
    assert_eq!((shard.waiting(), shard.phase()), (0, "draining"));
    drop(rest);
    assert_eq!((shard.phase(), buffered(&metrics)), ("idle", (5, 5)));
}

#[tokio::test(start_paused = true)]
async fn two_go_at_first_and_one_more_each_25_ms_up_to_what_may() {
    let settings = BufferSettings {
        drain_concurrency: 4,
        ..BufferSettings::default()
    };
    let (shard, _) = one(settings);
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
    let tickets: Vec<Ticket> = (0..20).map(|_| shard.ticket(WRITE)).collect();
    shard.writes("a", clock::now());
    let mut waiting = Vec::new();
    for ticket in tickets {
        waiting.push(shard.waiting());
        // Its answer comes 30 ms later, and lets those go that may by then.
        let drained = ticket.wait().await.unwrap();
        tokio::time::advance(Duration::from_millis(30)).await;
        drop(drained);
    }
    // Two at once, then three, then four.
    assert_eq!(waiting[..6], [18, 16, 14, 13, 12, 11]);
    assert_eq!(shard.phase(), "idle");
}

#[tokio::test(start_paused = true)]
async fn an_announced_reparent_holds_while_the_old_primary_still_writes() {
    let (shard, _) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    assert!(shard.buffer.announce(clock::now()));
    let ticket = shard.ticket(WRITE);
    tokio::time::advance(SECOND).await;
    shard.writes("a", clock::now());
    assert_eq!(shard.phase(), "buffering");
    shard.read_only();
    shard.writes("b", clock::now());
    drop(ticket.wait().await.unwrap());
    assert_eq!(shard.phase(), "idle");
    // Or until it is called off, and a look that began after that.
    assert!(shard.buffer.announce(clock::now()));
    let ticket = shard.ticket(READ);
    let before = clock::now();
    tokio::time::advance(SECOND).await;
    assert!(shard.buffer.call_off(clock::now()));
    shard.writes("b", before);
    assert_eq!(shard.phase(), "buffering");
    shard.writes("b", clock::now());
    drop(ticket.wait().await.unwrap());
    assert!(!shard.buffer.call_off(clock::now()));
}

#[tokio::test(start_paused = true)]
async fn failovers_keep_their_distance_and_a_long_gone_primary_is_not_waited_for() {
    let settings = BufferSettings {
        min_time_between_failovers: SECOND * 10,
        ..BufferSettings::default()
    };
    let (shard, metrics) = one(settings);
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
    shard.gone();
    shard.writes("a", clock::now());
    tokio::time::advance(SECOND * 9).await;
    assert!(!shard.sign("a"));
    tokio::time::advance(SECOND).await;
    assert!(shard.sign("a"));
    shard.gone();
    shard.writes("a", clock::now());
    tokio::time::advance(SECOND * 10).await;
    shard.gone();
    tokio::time::advance(SECOND * 21).await;
    shard.gone();
    assert!(shard.passes(WRITE));
    assert_eq!(
        (
            skipped(&metrics, "LastFailoverTooRecent"),
            skipped(&metrics, "GoneTooLong")
        ),
        (1, 1)
    );
}

/// A false alarm: nobody ever saw the primary not take writes.
#[tokio::test(start_paused = true)]
async fn a_false_alarm_and_an_announcement_without_an_end_cost_nothing_later() {
    let (shard, metrics) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
    shard.writes("a", clock::now());
    assert!(shard.buffer.announce(clock::now()));
    let ticket = shard.ticket(WRITE);
    shard.writes("a", clock::now());
    tokio::time::advance(SECOND * 20).await;
    shard.buffer.tick(clock::now());
    // It goes on; nothing was wrong.
    drop(ticket.wait().await.unwrap());
    assert_eq!(shard.phase(), "idle");
    assert_eq!(metrics.buffer.stops.handle("k.0.MaxDurationExceeded").get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_split_brain_ends_a_buffering() {
    let (shard, _) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    assert!(shard.sign("a"));
    let read = shard.ticket(READ);
    shard.buffer.told(News::SplitBrain, clock::now());
    drop(read.wait().await.unwrap());
    assert_eq!(shard.admit(WRITE).unwrap_err().code(), Some("SG2705"));
    assert!(shard.passes(READ));
}

#[tokio::test(start_paused = true)]
async fn one_stray_write_to_a_primary_that_is_read_only_for_good_stops_no_reads() {
    let (shard, metrics) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    shard.read_only();
    tokio::time::advance(SECOND * 21).await;
    shard.read_only();
    assert!(shard.passes(WRITE) && !shard.sign("a") && shard.passes(READ));
    assert_eq!(skipped(&metrics, "GoneTooLong"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_split_brain_refuses_writes_and_a_user_that_bypasses_read_only_everything() {
    let (shard, _) = one(BufferSettings::default());
    shard.writes("a", clock::now());
    shard.buffer.told(News::SplitBrain, clock::now());
    assert_eq!(shard.admit(WRITE).unwrap_err().code(), Some("SG2705"));
    assert!(shard.passes(READ));
    let privilege = "SUPER".to_owned();
    shard.buffer.told(News::MayBypass { privilege }, clock::now());
    assert_eq!(shard.admit(READ).unwrap_err().code(), Some("SG2706"));
    assert!(shard.buffer.forbids(false).is_some());
    shard.writes("a", clock::now());
    assert!(shard.passes(WRITE) && shard.buffer.forbids(true).is_none());
}

#[tokio::test(start_paused = true)]
async fn slow_or_switched_off_shards_do_not_buffer() {
    let (shard, metrics) = one(BufferSettings::default());
    shard
        .buffer
        .told(News::Unknown { why: "late".into() }, clock::now());
    assert!(shard.passes(WRITE));
    shard.common.configure(
        BufferSettings {
            enabled: false,
            ..BufferSettings::default()
        },
        1,
    );
    assert!(!shard.sign("a") && !shard.buffer.announce(clock::now()));
    assert_eq!(skipped(&metrics, "Disabled"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_counts_and_holds_nobody() {
    let settings = BufferSettings {
        dry_run: true,
        ..BufferSettings::default()
    };
    let (shard, metrics) = one(settings);
    shard.writes("a", clock::now());
    assert!(!shard.sign("a"));
    assert!(shard.passes(WRITE) && shard.passes(WRITE));
    shard.writes("b", clock::now());
    let b = &metrics.buffer;
    assert_eq!(b.requests_buffered_dry_run.handle("k.0").get(), 2);
    assert_eq!(b.last_requests_dry_run_max.handle("k.0").get(), 2);
    assert_eq!(buffered(&metrics), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stops_lets_everybody_go() {
    let (shard, metrics) = one(BufferSettings::default());
    assert!(shard.sign("a"));
    let ticket = shard.ticket(WRITE);
    shard.buffer.close(clock::now());
    assert_eq!(ticket.wait().await.unwrap_err().code(), Some("SG2704"));
    assert_eq!(evicted(&metrics, "Shutdown"), 1);
    assert!(!shard.sign("a") && shard.passes(WRITE));
}

/// The contract with the breaker: it opens by a buffer that gave up, and an open one that no reparent explains is not
/// waited for.
#[tokio::test(start_paused = true)]
async fn a_buffer_that_gives_up_opens_the_breaker_and_an_open_breaker_keeps_it_from_beginning() {
    use shardgate_breaker::{Reason, State};
    let guards = Guards::new(
        GuardSettings::default(),
        clock::now(),
        1,
        Arc::new(Metrics::default()),
    );
    let shard = guards.shard(&ShardId::new("k", "0"));
    let (buffer, breaker) = (shard.buffer(), shard.breaker().unwrap());
    assert!(!guards.any_asks());
    assert!(buffer.sign(&alias("a"), clock::now()));
    assert!(guards.any_asks());
    tokio::time::advance(SECOND * 20).await;
    guards.tick(clock::now());
    let shown = breaker.snapshot(guards.time(clock::now()));
    assert_eq!((shown.state, shown.reason), (State::Open, Some(Reason::Buffer)));
    assert!(!guards.any_asks());

    // The primary is back: no cooldown is waited out.
    let seen = clock::now();
    let primary = alias("a");
    buffer.told(News::Writes { primary, seen }, seen);
    let state = breaker.state(guards.time(clock::now()));
    assert_eq!(state, State::HalfOpen);
    tokio::time::advance(SECOND * 60).await;
    // By signals of its own it opens for what is not a reparent.
    breaker.renew(guards.time(clock::now()));
    breaker.trip(Reason::Latency, guards.time(clock::now()));
    assert!(!buffer.sign(&alias("a"), clock::now()));
    // An announcement overrides that.
    assert!(buffer.announce(clock::now()));
}

/// Deadlines of statements that a frozen primary never answered passed after another had taken its place, and cut off
/// their kind there.
#[tokio::test(start_paused = true)]
async fn what_a_succeeded_primary_does_not_answer_is_held_against_no_kind() {
    let guards = Guards::new(
        GuardSettings::default(),
        clock::now(),
        1,
        Arc::new(Metrics::default()),
    );
    let id = ShardId::new("k", "0");
    let (gate, shard) = (guards.gate(&id, &alias("a"), Role::Primary), guards.shard(&id));
    let work = shardgate_breaker::Work::statement(7);
    let kinds_after = async |primary: &str, moved: bool| {
        let attempts: Vec<_> = (0..3).map(|_| gate.start_held(work, clock::now())).collect();
        tokio::time::advance(SECOND).await;
        let (primary, seen) = (alias(primary), clock::now());
        if moved {
            shard.renew(guards.time(seen));
        }
        shard.buffer().told(News::Writes { primary, seen }, seen);
        for attempt in attempts {
            attempt.gave_up(&gate, Some(SECOND), clock::now());
        }
        shard.kinds().all().len()
    };
    assert_eq!(kinds_after("b", true).await, 0);
    assert_eq!(kinds_after("a", false).await, 1);
}
