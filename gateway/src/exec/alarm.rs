//! The one timer of a session.
//!
//! A session waits under a limit several times in each command, and nearly all its waits end long before. A timer made for
//! each of them would be entered into the runtime's wheel and taken out again, under its lock. This one stays where it is
//! when a wait ends: the next wait is over later, so when the timer rings too early it is wound again, once in a limit's
//! length rather than once in a wait.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use crate::base::clock::{self, Instant};

/// A session's timer. Several futures of one task may wait for it side by side, futures of several tasks not: it wakes
/// whoever looked at it last.
#[derive(Debug, Default)]
pub struct Alarm(Mutex<Option<Pin<Box<Sleep>>>>);

impl Alarm {
    /// Waits for a point in time.
    pub async fn at(&self, at: Instant) {
        std::future::poll_fn(|cx| self.poll(cx, at)).await;
    }

    /// Waits for `what` for at most so long; `None` if it took longer.
    pub async fn within<T>(&self, limit: Duration, what: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(what);
        let mut until = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = what.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            // The clock is not read for what is done at once.
            let until = *until.get_or_insert_with(|| clock::now() + limit);
            self.poll(cx, until).map(|()| None)
        })
        .await
    }

    fn poll(&self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        // A panic while it was locked can only have been tokio's; the timer is whole.
        let mut timer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        loop {
            if at < timer.deadline() || timer.is_elapsed() {
                if at <= clock::now() {
                    return Poll::Ready(());
                }
                timer.as_mut().reset(at);
            }
            std::task::ready!(timer.as_mut().poll(cx));
            // It rang, for this wait or for an earlier one.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    async fn took(what: impl Future<Output = ()>) -> Duration {
        let start = clock::now();
        what.await;
        clock::now().duration_since(start)
    }

    #[tokio::test(start_paused = true)]
    async fn waits_one_after_the_other_end_when_they_should() {
        let alarm = Alarm::default();
        for ms in [50, 1000, 10, 200, 0] {
            let limit = ms * MS;
            assert_eq!(alarm.within(limit / 2, async { 7 }).await, Some(7));
            assert_eq!(took(alarm.at(clock::now() + limit)).await, limit);
            let nothing =
                async { assert!(alarm.within(limit, std::future::pending::<()>()).await.is_none()) };
            assert_eq!(took(nothing).await, limit);
        }
        assert_eq!(took(alarm.at(clock::now() - MS)).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_given_up_does_not_end_a_later_one() {
        let alarm = Alarm::default();
        let done = async { tokio::time::sleep(5 * MS).await };
        assert!(alarm.within(20 * MS, done).await.is_some());
        assert_eq!(took(alarm.at(clock::now() + 100 * MS)).await, 100 * MS);
    }

    #[tokio::test(start_paused = true)]
    async fn two_waits_of_one_task_each_end_in_time_whichever_is_looked_at_first() {
        let alarm = Alarm::default();
        for swapped in [false, true] {
            let now = clock::now();
            let (short, long) = (took(alarm.at(now + 10 * MS)), took(alarm.at(now + 30 * MS)));
            let ended = if swapped {
                let (long, short) = tokio::join!(long, short);
                (short, long)
            } else {
                tokio::join!(short, long)
            };
            assert_eq!(ended, (10 * MS, 30 * MS), "{swapped}");
        }
    }
}
