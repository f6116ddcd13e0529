//! Which kinds of statement take up the tablets' time.
//!
//! A kind is the statement with its literals taken out, and lists of them as one: an INSERT of any number of rows and an IN
//! over any number of values are each of one kind. Else each number would be another, none of them would ever add up, and a
//! shard would be blamed for what one of its kinds does. What counts against a pool is for how long its connections are
//! held, so a kind's time is that of its statements, each as often as it had legs.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use shardgate_sql::{Digest, Lexed};

use crate::base::metrics::Counter;

/// The number of a statement's kind, by which breakers and times know it.
pub(super) fn kind_of(lexed: &Lexed<'_>) -> u64 {
    Digest::of(lexed).hash
}

/// The text of a statement's kind.
pub(super) fn text_of(lexed: &Lexed<'_>) -> Vec<u8> {
    Digest::of(lexed).text.into_bytes()
}

/// Kinds kept. When there are more, the half that took the least time is forgotten.
const MOST: usize = 2000;

/// The longest text of a kind that is kept, in bytes.
const LONGEST: usize = 1000;

#[derive(Debug, Default)]
struct Times {
    text: String,
    statements: Counter,
    errors: Counter,
    nanos: Counter,
}

impl Times {
    fn count(&self, legs: usize, took: Duration, failed: bool) {
        self.statements.inc();
        if failed {
            self.errors.inc();
        }
        let nanos = took.as_nanos().saturating_mul(legs as u128);
        self.nanos.add(u64::try_from(nanos).unwrap_or(u64::MAX));
    }
}

/// One kind, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindTime {
    /// Its number, as breakers know it.
    pub kind: u64,
    /// Its text: the statement with its literals taken out.
    pub text: String,
    /// How often it was executed.
    pub statements: u64,
    /// How often it failed.
    pub errors: u64,
    /// For how long it held connections.
    pub held: Duration,
}

/// The time of every kind.
#[derive(Debug, Default)]
pub struct KindTimes(DashMap<u64, Arc<Times>>);

impl KindTimes {
    /// Counts one statement that held so many connections for so long; `text` is asked for if the kind is new.
    pub fn count(
        &self,
        kind: u64,
        legs: usize,
        took: Duration,
        failed: bool,
        text: impl FnOnce() -> Vec<u8>,
    ) {
        match self.0.get(&kind) {
            Some(times) => times.count(legs, took, failed),
            None => self.admit(kind, &text()).count(legs, took, failed),
        }
    }

    /// The kinds that took the most time, the greatest first.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<KindTime> {
        let mut all: Vec<KindTime> = self
            .0
            .iter()
            .map(|e| KindTime {
                kind: *e.key(),
                text: e.text.clone(),
                statements: e.statements.get(),
                errors: e.errors.get(),
                held: Duration::from_nanos(e.nanos.get()),
            })
            .collect();
        all.sort_by(|a, b| b.held.cmp(&a.held).then(a.kind.cmp(&b.kind)));
        all.truncate(count);
        all
    }

    /// A kind's text, if it is known.
    #[must_use]
    pub fn text_of(&self, kind: u64) -> Option<String> {
        self.0.get(&kind).map(|t| t.text.clone())
    }

    fn admit(&self, kind: u64, text: &[u8]) -> Arc<Times> {
        if self.0.len() >= MOST {
            let mut nanos: Vec<u64> = self.0.iter().map(|e| e.nanos.get()).collect();
            nanos.sort_unstable();
            let middle = nanos.get(nanos.len() / 2).copied().unwrap_or(0);
            self.0.retain(|_, times| times.nanos.get() > middle);
        }
        let times = Arc::new(Times {
            text: String::from_utf8_lossy(&text[..text.len().min(LONGEST)]).into_owned(),
            ..Times::default()
        });
        Arc::clone(&self.0.entry(kind).or_insert(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_ranked_by_the_time_they_hold_connections() {
        let times = KindTimes::default();
        let ms = Duration::from_millis;
        times.count(1, 1, ms(50), false, || b"SELECT ?".to_vec());
        times.count(2, 8, ms(10), true, || b"SELECT 2".to_vec());
        times.count(2, 8, ms(10), false, || panic!("it is known"));
        let top = times.top(9);
        assert_eq!(top[0].kind, 2);
        assert_eq!((top[0].statements, top[0].errors, top[0].held), (2, 1, ms(160)));
        assert_eq!(times.top(1).len(), 1);
        assert_eq!(times.text_of(1).as_deref(), Some("SELECT ?"));
    }

    #[test]
    fn a_statement_is_of_one_kind_whatever_its_rows_and_values() {
        let of = |sql: &str| {
            let lexed = shardgate_sql::lex(sql.as_bytes(), &shardgate_sql::LexOptions::default()).unwrap();
            (kind_of(&lexed), text_of(&lexed))
        };
        let one = of("INSERT INTO t (a, b) VALUES (1, 'x')");
        assert_eq!(
            of("INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL), (3.5, x'00')"),
            one
        );
        assert_eq!(String::from_utf8_lossy(&one.1), "INSERT INTO t (a, b) VALUES (?)");
        assert_ne!(of("REPLACE INTO t (a, b) VALUES (1, 'x')").0, one.0);
        assert_eq!(
            of("SELECT a FROM t WHERE b IN (1)"),
            of("SELECT a FROM t WHERE b IN (-1, 2.5, 'x', NULL)")
        );
        assert_ne!(
            of("SELECT a FROM t WHERE b IN (1)").0,
            of("SELECT a FROM t WHERE b IN (a)").0
        );
    }

    #[test]
    fn the_kinds_kept_are_bounded_and_the_heaviest_stay() {
        let times = KindTimes::default();
        for kind in 0..10_000 {
            let took = Duration::from_micros(if kind == 7 { 1_000_000 } else { kind % 97 });
            times.count(kind, 1, took, false, || vec![b'x'; 5000]);
        }
        assert!(times.top(usize::MAX).len() <= MOST);
        assert_eq!(times.top(1)[0].kind, 7);
        assert_eq!(times.top(1)[0].text.len(), LONGEST);
    }
}
