//! What an error must be able to say, whichever room it comes from.
//!
//! Each room has one `thiserror` enum of its own; all implement [`GatewayError`], so the session can answer a client
//! without knowing the room, and metrics can label it.

use std::borrow::Cow;

/// Coarse kind of an error; the metric label and the rule for its `MySQL` error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The gateway cannot do this exactly, so it does not do it (1235/42000).
    Unsupported,
    /// The request itself is wrong: unknown keyspace, bad value, syntax.
    Invalid,
    /// Refused by a guard or a bound; nothing was executed (1105/HY000).
    Refused,
    /// A deadline passed (3024/HY000).
    Deadline,
    /// Killed by somebody (1317/70100).
    Killed,
    /// A write may or may not have been executed (1105/HY000).
    UnknownOutcome,
    /// A tablet or the way to it failed (1105/HY000).
    Unavailable,
    /// A server's own error, passed on with its own code.
    Server,
    /// A limit of size or count was passed.
    Limit,
    /// Something that should not be possible; reported, never hidden.
    Internal,
}

impl ErrorKind {
    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Invalid => "invalid",
            Self::Refused => "refused",
            Self::Deadline => "deadline",
            Self::Killed => "killed",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Unavailable => "unavailable",
            Self::Server => "server",
            Self::Limit => "limit",
            Self::Internal => "internal",
        }
    }
}

/// An error as the client sees it: `MySQL` error number, SQLSTATE, text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// `MySQL` error number.
    pub errno: u16,
    /// Five ASCII characters.
    pub sqlstate: [u8; 5],
    /// The message; the gateway's own begin with their `SGnnnn` code.
    pub message: Cow<'static, str>,
}

impl ClientError {
    /// Builds one from its three parts.
    pub fn new(errno: u16, sqlstate: [u8; 5], message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            errno,
            sqlstate,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = std::str::from_utf8(&self.sqlstate).unwrap_or("HY000");
        write!(f, "{} ({state}): {}", self.errno, self.message)
    }
}

/// What the outer rooms ask of any error.
pub trait GatewayError: std::error::Error + Send + Sync {
    /// The stable code, `SGnnnn`; `None` for a server's own error passed on.
    fn code(&self) -> Option<&'static str>;
    /// Its kind.
    fn kind(&self) -> ErrorKind;
    /// Whether nothing was executed and the same request may succeed later.
    fn retryable(&self) -> bool;
    /// Error number and SQLSTATE; the default follows from the kind.
    fn errno(&self) -> (u16, [u8; 5]) {
        default_errno(self.kind())
    }
    /// What the client sees. The default is `code: Display`.
    fn client_error(&self) -> ClientError {
        let (errno, sqlstate) = self.errno();
        let message = match self.code() {
            Some(code) => format!("{code}: {self}"),
            None => self.to_string(),
        };
        ClientError::new(errno, sqlstate, message)
    }
}

/// The error number and SQLSTATE that a kind stands for.
#[must_use]
pub const fn default_errno(kind: ErrorKind) -> (u16, [u8; 5]) {
    match kind {
        ErrorKind::Unsupported => (1235, *b"42000"),
        ErrorKind::Deadline => (3024, *b"HY000"),
        ErrorKind::Killed => (1317, *b"70100"),
        ErrorKind::Limit => (1153, *b"HY000"),
        ErrorKind::Invalid
        | ErrorKind::Refused
        | ErrorKind::UnknownOutcome
        | ErrorKind::Unavailable
        | ErrorKind::Server
        | ErrorKind::Internal => (1105, *b"HY000"),
    }
}
