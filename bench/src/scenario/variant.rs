//! The four configurations that each scenario compares, in one place.

use std::fmt;

use clap::ValueEnum;

/// What protects the gateway in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// Nothing: no limits on time, no breakers, a queue without an end.
    None,
    /// Limits on time.
    Timeouts,
    /// Breakers.
    Breaker,
    /// All there is.
    All,
    /// Everything at its default: limits on time longer than any reparent.
    Defaults,
}

impl Variant {
    pub(crate) const EVERY: [Self; 4] = [Self::None, Self::Timeouts, Self::Breaker, Self::All];

    const fn has_timeouts(self) -> bool {
        matches!(self, Self::Timeouts | Self::All)
    }

    pub(crate) const fn has_breaker(self) -> bool {
        matches!(self, Self::Breaker | Self::All)
    }

    /// The sections of the gateway's file that differ.
    pub(crate) fn sections(self) -> String {
        match self {
            Self::None | Self::Timeouts | Self::Breaker | Self::All => self.protections(),
            Self::Defaults => String::new(),
        }
    }

    fn protections(self) -> String {
        let timeouts = if self.has_timeouts() {
            "mysql_server_query_timeout = \"1s\"\nqueryserver_config_query_timeout = \"800ms\"\n\
             tablet_stall_timeout = \"1s\"\nkill_grace = \"200ms\"\n"
        } else {
            "mysql_server_query_timeout = \"0s\"\nqueryserver_config_query_timeout = \"0s\"\n\
             tablet_stall_timeout = \"0s\"\n"
        };
        let waiters = match self {
            Self::None => 100_000,
            _ => 10,
        };
        let guard = if self.has_breaker() {
            "breakers = true\n"
        } else {
            "breakers = false\nmax_pool_share = 0\nretry_attempts = 0\n"
        };
        // What no primary answers is to be the breakers' business alone.
        let buffer = "enable_buffer = false\n";
        format!(
            "[timeouts]\n{timeouts}\n[pool]\nsize = 20\nwaiters = {waiters}\n\n[guard]\n{guard}\n[buffer]\n{buffer}"
        )
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no protection",
            Self::Timeouts => "timeouts only",
            Self::Breaker => "breaker only",
            Self::All => "all",
            Self::Defaults => "defaults",
        })
    }
}
