//! Where a server stands in the history of writes: sets of global transaction ids.
//!
//! `MariaDB` writes a position as the last `domain-server-sequence` of each domain; it stands for everything before it in
//! that domain. `MySQL` writes out the set of transactions as `uuid:1-5:7`. A text that is neither is no position: what
//! cannot be read must not be taken for an early one.

use std::collections::BTreeMap;
use std::fmt;

/// A position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// `MariaDB`: the last transaction of each domain.
    Domains(Domains),
    /// `MySQL`: for each source (with its tag, where there is one) the intervals of transaction numbers, in order,
    /// neither touching nor overlapping.
    Sets(BTreeMap<String, Vec<(u64, u64)>>),
}

/// A position of `MariaDB`'s.
#[derive(Clone, Debug)]
pub struct Domains {
    last: BTreeMap<u32, Gtid>,
    /// The last number of each server in each domain, where the server's binary log has all that the position stands for.
    log: Option<BTreeMap<(u32, u32), u64>>,
}

/// Two servers with the same last transactions stand at the same place, whatever their logs still know.
impl PartialEq for Domains {
    fn eq(&self, other: &Self) -> bool {
        self.last == other.last
    }
}

impl Eq for Domains {}

impl Domains {
    /// Whether this history has a transaction that was the last of its domain somewhere. A later number alone does not say
    /// so: another server may have gone on from an earlier one.
    fn has(&self, domain: u32, their: Gtid) -> bool {
        self.last.get(&domain).is_some_and(|my| {
            let later = || match &self.log {
                Some(log) => log
                    .get(&(domain, their.server))
                    .is_some_and(|n| *n >= their.sequence),
                None => true,
            };
            *my == their || (my.sequence > their.sequence && later())
        })
    }
}

/// A transaction of a `MariaDB` domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gtid {
    /// The server that wrote it.
    pub server: u32,
    /// Its number in the domain.
    pub sequence: u64,
}

impl Position {
    /// Reads `MariaDB`'s form. The empty text is the position before everything.
    #[must_use]
    pub fn of_mariadb(text: &str) -> Option<Self> {
        let last = gtids(text)?.into_iter().collect();
        Some(Self::Domains(Domains { last, log: None }))
    }

    /// The same position, told by a server whose binary log has everything that it executed or replicated:
    /// `gtid_binlog_state`, which has the last number of each server. A log that begins later than the position does tells
    /// nothing.
    #[must_use]
    pub fn with_log(mut self, state: &str) -> Self {
        if let Self::Domains(position) = &mut self
            && let Some(state) = gtids(state)
        {
            let mut log: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for (domain, gtid) in state {
                let number = log.entry((domain, gtid.server)).or_default();
                *number = gtid.sequence.max(*number);
            }
            let in_log = |(domain, gtid): (&u32, &Gtid)| {
                log.get(&(*domain, gtid.server))
                    .is_some_and(|n| *n >= gtid.sequence)
            };
            let whole = position.last.iter().all(in_log);
            position.log = whole.then_some(log);
        }
        self
    }

    /// Reads `MySQL`'s form: `uuid:1-5:7,uuid:tag:1-3`. The empty text is the empty set.
    #[must_use]
    pub fn of_mysql(text: &str) -> Option<Self> {
        let mut sets: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for source in parts(text, ',') {
            let mut pieces = source.split(':').map(str::trim);
            let uuid = pieces.next().filter(|u| !u.is_empty())?.to_ascii_lowercase();
            let mut key = uuid.clone();
            for piece in pieces {
                if piece.starts_with(|c: char| c.is_ascii_digit()) {
                    sets.entry(key.clone()).or_default().push(interval(piece)?);
                } else {
                    // A tag holds for the intervals behind it.
                    key = format!("{uuid}:{}", piece.to_ascii_lowercase());
                }
            }
        }
        for intervals in sets.values_mut() {
            merge(intervals);
        }
        Some(Self::Sets(sets))
    }

    /// Whether everything in `other` is in this one too. Positions of different kinds contain nothing of each other.
    ///
    /// `MariaDB`'s position names only the last transaction of a domain: if that has the same number but comes from
    /// another server the histories went apart, and neither contains the other. Whether an earlier one differs is seen from
    /// this server's log, see [`Position::with_log`], and not without it.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Domains(mine), Self::Domains(theirs)) => theirs
                .last
                .iter()
                .all(|(domain, their)| mine.has(*domain, *their)),
            (Self::Sets(mine), Self::Sets(theirs)) => theirs.iter().all(|(source, intervals)| {
                let covering = mine.get(source).map_or(&[][..], Vec::as_slice);
                intervals
                    .iter()
                    .all(|(from, to)| covering.iter().any(|(a, b)| a <= from && to <= b))
            }),
            (Self::Domains(_), Self::Sets(_)) | (Self::Sets(_), Self::Domains(_)) => false,
        }
    }

    /// Whether nothing was ever written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Domains(domains) => domains.last.is_empty(),
            Self::Sets(sets) => sets.is_empty(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = match self {
            Self::Domains(domains) => domains
                .last
                .iter()
                .map(|(domain, g)| format!("{domain}-{}-{}", g.server, g.sequence))
                .collect(),
            Self::Sets(sets) => sets
                .iter()
                .map(|(source, intervals)| {
                    intervals.iter().fold(source.clone(), |text, (from, to)| {
                        if from == to {
                            format!("{text}:{from}")
                        } else {
                            format!("{text}:{from}-{to}")
                        }
                    })
                })
                .collect(),
        };
        f.write_str(&text.join(","))
    }
}

/// `domain-server-sequence`, several with commas between them.
fn gtids(text: &str) -> Option<Vec<(u32, Gtid)>> {
    let gtid = |text: &str| {
        let mut numbers = text.split('-');
        let domain = numbers.next()?.parse().ok()?;
        let server = numbers.next()?.parse().ok()?;
        let sequence = numbers.next()?.parse().ok()?;
        let whole = numbers.next().is_none();
        whole.then_some((domain, Gtid { server, sequence }))
    };
    parts(text, ',').map(gtid).collect()
}

fn parts(text: &str, by: char) -> impl Iterator<Item = &str> {
    text.split(by).map(str::trim).filter(|p| !p.is_empty())
}

fn interval(text: &str) -> Option<(u64, u64)> {
    let (from, to) = match text.split_once('-') {
        Some((from, to)) => (from.trim().parse().ok()?, to.trim().parse().ok()?),
        None => {
            let only = text.parse().ok()?;
            (only, only)
        }
    };
    (from <= to).then_some((from, to))
}

/// Sorts intervals and joins those that touch.
fn merge(intervals: &mut Vec<(u64, u64)>) {
    intervals.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (from, to) in intervals.drain(..) {
        match merged.last_mut() {
            Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
            Some(_) | None => merged.push((from, to)),
        }
    }
    *intervals = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maria(text: &str) -> Position {
        Position::of_mariadb(text).unwrap()
    }

    fn mysql(text: &str) -> Position {
        Position::of_mysql(text).unwrap()
    }

    #[test]
    fn a_later_position_contains_an_earlier_one() {
        assert!(maria("0-1-10").contains(&maria("0-1-9")));
        assert!(!maria("0-1-9").contains(&maria("0-1-10")));
        assert!(maria("0-1-10,1-1-3").contains(&maria("1-1-3")));
        assert!(!maria("0-1-10").contains(&maria("1-1-3")));
        assert!(maria("").is_empty() && maria("0-1-1").contains(&maria("")));
    }

    #[test]
    fn the_same_number_from_another_server_is_another_history() {
        assert!(!maria("0-1-10").contains(&maria("0-2-10")));
        assert!(!maria("0-2-10").contains(&maria("0-1-10")));
        assert!(maria("0-2-11").contains(&maria("0-1-10")), "after a failover");
    }

    /// A replica that somebody wrote to had fewer transactions than its primary, and was taken for a part of it.
    #[test]
    fn a_log_tells_histories_apart_that_a_later_number_does_not() {
        let primary = |state: &str| maria("0-1-500").with_log(state);
        let (replica, written_to) = (maria("0-1-100"), maria("0-2-101"));
        assert!(maria("0-1-500").contains(&written_to), "nobody can tell");
        assert!(primary("0-1-500").contains(&replica));
        assert!(!primary("0-1-500").contains(&written_to));
        // It was the primary once.
        assert!(!primary("0-1-500,0-2-50").contains(&written_to));
        assert!(primary("0-1-500,0-2-101").contains(&written_to));
        // A log that does not reach back, or that nobody can read, tells nothing.
        for state in ["", "0-1-499", "0-3-7", "garbage"] {
            assert!(primary(state).contains(&written_to), "{state}");
        }
        assert_eq!(primary("0-1-500,0-2-50"), maria("0-1-500"));
    }

    #[test]
    fn intervals_are_compared_as_sets() {
        let a = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let position = mysql(&format!("{a}:1-5:7,\n{a}:6"));
        assert_eq!(position, mysql(&format!("{}:1-7", a.to_uppercase())));
        assert!(position.contains(&mysql(&format!("{a}:2-3:7"))));
        assert!(!position.contains(&mysql(&format!("{a}:7-8"))));
        assert!(!position.contains(&mysql(&format!("{a}:tag:1"))));
        assert!(mysql(&format!("{a}:1:tag:1-4")).contains(&mysql(&format!("{a}:tag:2"))));
        assert!(!maria("0-1-1").contains(&mysql("")) && !mysql("").contains(&maria("")));
    }

    #[test]
    fn what_cannot_be_read_is_no_position() {
        for text in ["0-1", "0-1-x", "0-1-2-3", "x"] {
            assert_eq!(Position::of_mariadb(text), None, "{text}");
        }
        for text in [":1", "u:5-1", "u:1-"] {
            assert_eq!(Position::of_mysql(text), None, "{text}");
        }
    }

    #[test]
    fn positions_are_shown_as_the_servers_write_them() {
        assert_eq!(maria("1-2-3, 0-1-10").to_string(), "0-1-10,1-2-3");
        assert_eq!(mysql("u:1-3:5").to_string(), "u:1-3:5");
    }
}
