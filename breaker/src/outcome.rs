//! What one attempt says about the tablet that was asked.
//!
//! An error is not a failure: a server that answers "duplicate key" or "syntax error" works. Whoever counts those as
//! failures lets one client with a bad statement cut everybody off. So every errno has its place here, and an errno that
//! nobody lists means that a server was there and answered.

/// What an attempt says about the tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The tablet answered: rows, OK, or an error that is the statement's fault.
    Success,
    /// Says nothing about the tablet: cancelled, killed by us, refused before it was sent.
    Neutral,
    /// The tablet did not answer in the time it was given.
    Timeout,
    /// The tablet is not there or does not speak the protocol.
    Failure,
    /// The tablet answers, but has no room for more.
    Saturation,
    /// The primary is going away; a new one is to be expected.
    PrimaryGone,
    /// The tablet is not, or no longer, the primary.
    RoleChange,
}

impl Outcome {
    /// Every outcome: counters start at zero for each.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Neutral,
        Self::Timeout,
        Self::Failure,
        Self::Saturation,
        Self::PrimaryGone,
        Self::RoleChange,
    ];

    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Neutral => "neutral",
            Self::Timeout => "timeout",
            Self::Failure => "failure",
            Self::Saturation => "saturation",
            Self::PrimaryGone => "primary_gone",
            Self::RoleChange => "role_change",
        }
    }
}

/// An error as a server sent it, with what the caller knows about the attempt.
#[derive(Clone, Copy, Debug)]
pub struct ServerError<'a> {
    /// `MySQL` error number.
    pub errno: u16,
    /// The server's message; only 1290 needs it, to tell read-only from other options.
    pub message: &'a str,
    /// Whether the attempt was aimed at a primary.
    pub at_primary: bool,
    /// Whether the gateway itself killed the statement.
    pub killed_by_us: bool,
}

impl ServerError<'_> {
    /// The outcome class of this error.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.errno {
            // Interrupted or connection killed: ours says nothing, somebody else's says that a server was there.
            1317 | 1927 if self.killed_by_us => Outcome::Neutral,
            // Lock wait timeout: another transaction's doing. Access denied: a configuration's.
            1044 | 1045 | 1142 | 1205 | 1698 => Outcome::Neutral,
            // The server's own statement limit (`MariaDB`, `MySQL`).
            1969 | 3024 => Outcome::Timeout,
            // Unknown command after a half-written packet, host blocked, and the server's view of a broken connection.
            1047 | 1129 | 1158..=1161 => Outcome::Failure,
            // Too many connections, too many of this user, resource limit.
            1040 | 1203 | 1226 => Outcome::Saturation,
            // Shutdown in progress.
            1053 => Outcome::PrimaryGone,
            1836 if self.at_primary => Outcome::RoleChange,
            1290 if self.at_primary && names_read_only(self.message) => Outcome::RoleChange,
            _ => Outcome::Success,
        }
    }
}

/// Whether 1290 ("running with the %s option") is about read-only rather than, say, `--skip-grant-tables`.
fn names_read_only(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    lower.contains("read-only") || lower.contains("read_only")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(errno: u16, message: &str, at_primary: bool, killed_by_us: bool) -> Outcome {
        ServerError {
            errno,
            message,
            at_primary,
            killed_by_us,
        }
        .outcome()
    }

    #[test]
    fn every_row_of_the_table_holds() {
        use Outcome::{Failure, Neutral, PrimaryGone, RoleChange, Saturation, Success, Timeout};
        let ro =
            "The MariaDB server is running with the --read-only option so it cannot execute this statement";
        let skip = "The MySQL server is running with the --skip-grant-tables option";
        for (errno, message, at_primary, killed_by_us, expected) in [
            (1062, "", true, false, Success),
            (1064, "", true, false, Success),
            (1213, "", true, false, Success),
            (9999, "", true, false, Success),
            (1205, "", true, false, Neutral),
            (1044, "", true, false, Neutral),
            (1045, "", true, false, Neutral),
            (1142, "", true, false, Neutral),
            (1698, "", true, false, Neutral),
            (1317, "", true, true, Neutral),
            (1927, "", true, true, Neutral),
            (1317, "", true, false, Success),
            (1927, "", true, false, Success),
            (1969, "", true, false, Timeout),
            (3024, "", true, false, Timeout),
            (1047, "", true, false, Failure),
            (1129, "", true, false, Failure),
            (1158, "", true, false, Failure),
            (1161, "", true, false, Failure),
            (1157, "", true, false, Success),
            (1162, "", true, false, Success),
            (1040, "", true, false, Saturation),
            (1203, "", true, false, Saturation),
            (1226, "", true, false, Saturation),
            (1053, "", true, false, PrimaryGone),
            (1290, ro, true, false, RoleChange),
            (1290, ro, false, false, Success),
            (1290, skip, true, false, Success),
            (1836, "", true, false, RoleChange),
            (1836, "", false, false, Success),
        ] {
            assert_eq!(
                outcome(errno, message, at_primary, killed_by_us),
                expected,
                "{errno} {message:?}"
            );
        }
    }
}
