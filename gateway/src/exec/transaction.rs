//! A session's transaction as pure state: what was asked for, and how a shard that joins late is brought to it.
//!
//! `BEGIN` opens nothing by itself. The gateway does not yet know which shards the transaction will touch, so each shard
//! is opened when its first statement arrives, with the characteristics of the `START TRANSACTION` and with every
//! savepoint made so far, in order. `InnoDB` takes its snapshot at the first read anyway, so one shard sees what it would
//! have seen; only `WITH CONSISTENT SNAPSHOT` promises the moment of the statement itself, and is opened at once.

use std::fmt::Write as _;

/// `START TRANSACTION`'s access mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessMode {
    /// As the session's default says.
    #[default]
    Default,
    /// `READ ONLY`.
    ReadOnly,
    /// `READ WRITE`.
    ReadWrite,
}

/// What a transaction was opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Characteristics {
    /// `READ ONLY` or `READ WRITE`.
    pub access: AccessMode,
    /// The isolation level of a preceding `SET TRANSACTION`, upper case: `READ COMMITTED`.
    pub isolation: Option<&'static str>,
    /// `WITH CONSISTENT SNAPSHOT`.
    pub consistent_snapshot: bool,
}

/// Where a transaction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// None is open; each statement commits by itself.
    Idle,
    /// Open; statements join it.
    Open,
    /// A part of it was lost: until ROLLBACK every statement is refused with this reason.
    Failed(String),
}

/// A session's transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    state: TransactionState,
    characteristics: Characteristics,
    savepoints: Vec<String>,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            state: TransactionState::Idle,
            characteristics: Characteristics::default(),
            savepoints: Vec::new(),
        }
    }
}

/// How many savepoints one transaction may hold: each is replayed on every shard that joins.
pub const MAX_SAVEPOINTS: usize = 1000;

/// A savepoint was asked for beyond [`MAX_SAVEPOINTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManySavepoints;

impl Transaction {
    /// Where it stands.
    pub fn state(&self) -> &TransactionState {
        &self.state
    }

    /// Whether statements belong to a transaction now (open, or failed and not yet rolled back).
    pub fn is_active(&self) -> bool {
        self.state != TransactionState::Idle
    }

    /// What it was opened with.
    pub fn characteristics(&self) -> &Characteristics {
        &self.characteristics
    }

    /// Opens it.
    pub fn begin(&mut self, characteristics: Characteristics) {
        self.state = TransactionState::Open;
        self.characteristics = characteristics;
        self.savepoints.clear();
    }

    /// Marks it as lost.
    pub fn fail(&mut self, reason: String) {
        if self.is_active() {
            self.state = TransactionState::Failed(reason);
        }
    }

    /// Ends it, however.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Makes a savepoint; one of the same name is replaced, as the servers do.
    pub fn savepoint(&mut self, name: &str) -> Result<(), TooManySavepoints> {
        self.savepoints.retain(|s| !same_name(s, name));
        if self.savepoints.len() >= MAX_SAVEPOINTS {
            return Err(TooManySavepoints);
        }
        self.savepoints.push(name.to_owned());
        Ok(())
    }

    /// Whether a savepoint of this name stands.
    pub fn has_savepoint(&self, name: &str) -> bool {
        self.savepoints.iter().any(|s| same_name(s, name))
    }

    /// `ROLLBACK TO`: the savepoint stays, later ones go. False if there is none of this name.
    pub fn rollback_to(&mut self, name: &str) -> bool {
        let Some(i) = self.savepoints.iter().position(|s| same_name(s, name)) else {
            return false;
        };
        self.savepoints.truncate(i + 1);
        true
    }

    /// `RELEASE SAVEPOINT`: it and later ones go. False if there is none of this name.
    pub fn release(&mut self, name: &str) -> bool {
        let Some(i) = self.savepoints.iter().position(|s| same_name(s, name)) else {
            return false;
        };
        self.savepoints.truncate(i);
        true
    }

    /// The statements that bring a fresh tablet connection into this transaction, in order.
    pub fn opening_statements(&self) -> Vec<String> {
        let mut out = Vec::with_capacity(2 + self.savepoints.len());
        if let Some(level) = self.characteristics.isolation {
            out.push(format!("SET TRANSACTION ISOLATION LEVEL {level}"));
        }
        let mut start = String::from("START TRANSACTION");
        if self.characteristics.consistent_snapshot {
            start.push_str(" WITH CONSISTENT SNAPSHOT");
        }
        match self.characteristics.access {
            AccessMode::Default => {}
            AccessMode::ReadOnly => {
                comma_or_space(&mut start, "READ ONLY", self.characteristics.consistent_snapshot);
            }
            AccessMode::ReadWrite => {
                comma_or_space(&mut start, "READ WRITE", self.characteristics.consistent_snapshot);
            }
        }
        out.push(start);
        out.extend(self.savepoints.iter().map(|s| format!("SAVEPOINT {}", quoted(s))));
        out
    }
}

fn comma_or_space(out: &mut String, what: &str, comma: bool) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{} {what}", if comma { "," } else { "" });
}

/// Savepoint names compare as identifiers do: without regard to case.
fn same_name(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// A name as a quoted identifier.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_joins_late_is_given_every_savepoint_in_order() {
        let mut t = Transaction::default();
        t.begin(Characteristics {
            access: AccessMode::ReadWrite,
            isolation: Some("READ COMMITTED"),
            consistent_snapshot: false,
        });
        t.savepoint("a").unwrap();
        t.savepoint("b`c").unwrap();
        t.savepoint("A").unwrap();
        assert_eq!(
            t.opening_statements(),
            [
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "START TRANSACTION READ WRITE",
                "SAVEPOINT `b``c`",
                "SAVEPOINT `A`"
            ]
        );
    }

    #[test]
    fn rolling_back_to_a_savepoint_keeps_it_and_drops_later_ones() {
        let mut t = Transaction::default();
        t.begin(Characteristics::default());
        for s in ["a", "b", "c"] {
            t.savepoint(s).unwrap();
        }
        assert!(t.rollback_to("B"));
        assert!(t.has_savepoint("b"));
        assert!(!t.has_savepoint("c"));
        assert!(t.release("a"));
        assert!(!t.has_savepoint("b"));
        assert!(!t.release("a"));
    }

    #[test]
    fn a_failed_transaction_stays_failed_until_it_is_ended() {
        let mut t = Transaction::default();
        t.begin(Characteristics::default());
        t.fail("commerce/-40 was lost".into());
        assert!(t.is_active());
        assert!(matches!(t.state(), TransactionState::Failed(_)));
        t.end();
        assert_eq!(t.state(), &TransactionState::Idle);
        t.fail("nothing is open".into());
        assert_eq!(t.state(), &TransactionState::Idle);
    }

    #[test]
    fn savepoints_are_bounded() {
        let mut t = Transaction::default();
        t.begin(Characteristics::default());
        for i in 0..MAX_SAVEPOINTS {
            t.savepoint(&format!("s{i}")).unwrap();
        }
        assert_eq!(t.savepoint("one more"), Err(TooManySavepoints));
    }

    #[test]
    fn a_consistent_snapshot_is_opened_with_its_access_mode() {
        let mut t = Transaction::default();
        t.begin(Characteristics {
            access: AccessMode::ReadOnly,
            isolation: None,
            consistent_snapshot: true,
        });
        assert_eq!(
            t.opening_statements(),
            ["START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"]
        );
    }
}
