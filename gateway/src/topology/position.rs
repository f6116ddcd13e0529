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
    Domains(BTreeMap<u32, Gtid>),
    /// `MySQL`: for each source (with its tag, where there is one) the intervals of transaction numbers, in order,
    /// neither touching nor overlapping.
    Sets(BTreeMap<String, Vec<(u64, u64)>>),
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
        let mut domains = BTreeMap::new();
        for gtid in parts(text, ',') {
            let mut numbers = gtid.split('-');
            let domain = numbers.next()?.parse().ok()?;
            let server = numbers.next()?.parse().ok()?;
            let sequence = numbers.next()?.parse().ok()?;
            if numbers.next().is_some() {
                return None;
            }
            domains.insert(domain, Gtid { server, sequence });
        }
        Some(Self::Domains(domains))
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
    /// another server the histories went apart, and neither contains the other. Whether an earlier one differs cannot be
    /// seen from a position.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Domains(mine), Self::Domains(theirs)) => theirs.iter().all(|(domain, their)| {
                mine.get(domain)
                    .is_some_and(|my| my.sequence > their.sequence || my == their)
            }),
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
            Self::Domains(domains) => domains.is_empty(),
            Self::Sets(sets) => sets.is_empty(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = match self {
            Self::Domains(domains) => domains
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
