//! What a failure proves of the statement that failed: the one table by which anything is ever sent twice.
//!
//! Only what provably was not executed is sent again, and only where sending it again can help. Everything else is told to
//! the client: an error of the server's, which undid what the statement did, or an outcome that nobody knows.

use shardgate_breaker::Outcome;

use super::{NoConnection, TabletError};
use crate::base::Role;

/// What a failure proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nothing was executed, since the primary is gone or is none: another may take it.
    PrimaryGone,
    /// Nothing was executed, and another connection may serve.
    NotSent,
    /// Nothing was executed, and nothing else would come of trying again: a guard, a full pool, a login refused.
    Refused,
    /// The server executed it and undid it again: its error is the answer.
    Answered,
    /// It was sent, and whether it was executed nobody knows.
    Unknown,
}

impl TabletError {
    /// What this failure proves of a statement that was meant for a tablet of this role.
    pub fn proof(&self, role: Role) -> Proof {
        match self {
            Self::Connect {
                by: NoConnection::Unreachable,
                ..
            } => Proof::PrimaryGone,
            // Lost while it lay idle, or its pool was taken out of service: nothing was sent on it.
            Self::LostBeforeSend { .. } | Self::Draining { .. } => Proof::NotSent,
            // Nobody was let in.
            Self::Refused { .. } => match self.outcome(role) {
                Outcome::PrimaryGone => Proof::PrimaryGone,
                _ => Proof::Refused,
            },
            Self::Server(_) => match self.outcome(role) {
                // Read-only: the server says so in place of executing the statement.
                Outcome::RoleChange => Proof::PrimaryGone,
                // Shutting down. A server may say so of a statement that it has committed, if it was told to stop between
                // the commit and its acknowledgement.
                Outcome::PrimaryGone => Proof::Unknown,
                _ => Proof::Answered,
            },
            // A silent server may be slow; slow is not gone. One that cannot be spoken with is there.
            Self::Connect { .. } | Self::PoolFull { .. } | Self::PoolTimeout { .. } | Self::Guard(_) => {
                Proof::Refused
            }
            Self::Lost { .. } | Self::Protocol { .. } => Proof::Unknown,
        }
    }

    /// Whether it is a sign that the primary is gone or is none any more.
    pub fn is_sign(&self, role: Role) -> bool {
        let says_so = matches!(self.outcome(role), Outcome::PrimaryGone | Outcome::RoleChange);
        role == Role::Primary && (says_so || self.proof(role) == Proof::PrimaryGone)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::{ClientError, TabletAlias};

    #[test]
    fn every_row_of_the_table_holds() {
        let tablet = || TabletAlias::from("a");
        let reason = || "why".to_owned();
        let server = |errno: u16, message: &str| {
            TabletError::Server(ClientError::new(errno, *b"HY000", message.to_owned()))
        };
        let login = |errno| TabletError::Refused {
            tablet: tablet(),
            errno,
            message: reason(),
        };
        let connect = |by| TabletError::Connect {
            tablet: tablet(),
            reason: reason(),
            by,
        };
        let read_only =
            "The MariaDB server is running with the --read-only option so it cannot execute this statement";
        let (lost, protocol) = (
            TabletError::Lost {
                tablet: tablet(),
                reason: reason(),
            },
            TabletError::Protocol {
                tablet: tablet(),
                reason: reason(),
            },
        );
        let full = TabletError::PoolFull {
            tablet: tablet(),
            size: 1,
            waiters: 1,
        };
        let late = TabletError::PoolTimeout {
            tablet: tablet(),
            waited: Duration::ZERO,
        };
        let idle = TabletError::LostBeforeSend {
            tablet: tablet(),
            reason: reason(),
        };
        let draining = TabletError::Draining { tablet: tablet() };
        for (error, expected) in [
            (connect(NoConnection::Unreachable), Proof::PrimaryGone),
            (connect(NoConnection::TimedOut), Proof::Refused),
            (connect(NoConnection::NotAgreed), Proof::Refused),
            (login(1053), Proof::PrimaryGone),
            (login(1045), Proof::Refused),
            (login(1040), Proof::Refused),
            (idle, Proof::NotSent),
            (draining, Proof::NotSent),
            (full, Proof::Refused),
            (late, Proof::Refused),
            (lost, Proof::Unknown),
            (protocol, Proof::Unknown),
            (server(1053, "Server shutdown in progress"), Proof::Unknown),
            (server(1290, read_only), Proof::PrimaryGone),
            (
                server(1290, "running with the --skip-grant-tables option"),
                Proof::Answered,
            ),
            (server(1836, "Running in read-only mode"), Proof::PrimaryGone),
            (server(1205, "Lock wait timeout exceeded"), Proof::Answered),
            (server(1213, "Deadlock found"), Proof::Answered),
            (server(1062, "Duplicate entry"), Proof::Answered),
            (server(1317, "Query execution was interrupted"), Proof::Answered),
            (server(1927, "Connection was killed"), Proof::Answered),
            (
                server(3024, "maximum statement execution time exceeded"),
                Proof::Answered,
            ),
        ] {
            assert_eq!(error.proof(Role::Primary), expected, "{error:?}");
            assert_eq!(error.outcome_unknown(), expected == Proof::Unknown, "{error:?}");
        }
        // A replica that is read-only is as it should be.
        assert_eq!(server(1290, read_only).proof(Role::Replica), Proof::Answered);
        // What says nothing of the statement may say all of the primary.
        assert!(server(1053, "").is_sign(Role::Primary) && !server(1053, "").is_sign(Role::Replica));
    }
}
