//! Capability and status flags: plain integers with names, so that unknown bits survive a round trip.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $int:ty { $($(#[$d:meta])* $flag:ident = $bit:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$d])* pub const $flag: Self = Self($bit);)*

            /// No flag.
            #[must_use]
            pub const fn empty() -> Self {
                Self(0)
            }
            /// Whether every flag of `other` is set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
            /// Whether any flag of `other` is set.
            #[must_use]
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }
            /// Both sets together; usable in constants.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
            /// This set less `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
            /// Sets or clears `other`.
            pub fn set(&mut self, other: Self, on: bool) {
                *self = if on { self.with(other) } else { self.without(other) };
            }
        }
        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, o: Self) -> Self {
                self.with(o)
            }
        }
        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, o: Self) {
                *self = self.with(o);
            }
        }
        impl BitAnd for $name {
            type Output = Self;
            fn bitand(self, o: Self) -> Self {
                Self(self.0 & o.0)
            }
        }
        impl Not for $name {
            type Output = Self;
            fn not(self) -> Self {
                Self(!self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut left = self.0;
                let mut sep = "";
                write!(f, concat!(stringify!($name), "("))?;
                $(if $bit != 0 && self.contains(Self($bit)) {
                    write!(f, "{sep}{}", stringify!($flag))?;
                    sep = "|";
                    left &= !$bit;
                })*
                if left != 0 {
                    write!(f, "{sep}{left:#x}")?;
                }
                write!(f, ")")
            }
        }
    };
}

flags! {
    /// What client and server can do (`CLIENT_*`), 32 bits.
    Capabilities: u32 {
        /// Improved old passwords; `MariaDB` reads its absence as "I am `MariaDB`".
        LONG_PASSWORD = 1;
        /// UPDATE reports rows found rather than rows changed.
        FOUND_ROWS = 1 << 1;
        /// All column flags are sent.
        LONG_FLAG = 1 << 2;
        /// The handshake names a database.
        CONNECT_WITH_DB = 1 << 3;
        /// `db.table.column` is not allowed.
        NO_SCHEMA = 1 << 4;
        /// Compressed protocol.
        COMPRESS = 1 << 5;
        /// No meaning since 3.22.
        ODBC = 1 << 6;
        /// LOAD DATA LOCAL.
        LOCAL_FILES = 1 << 7;
        /// Spaces are allowed before `(`.
        IGNORE_SPACE = 1 << 8;
        /// The protocol of 4.1 and later; the only one spoken here.
        PROTOCOL_41 = 1 << 9;
        /// `interactive_timeout` applies.
        INTERACTIVE = 1 << 10;
        /// TLS.
        SSL = 1 << 11;
        /// No SIGPIPE; of no meaning on the wire.
        IGNORE_SIGPIPE = 1 << 12;
        /// Status flags are sent.
        TRANSACTIONS = 1 << 13;
        /// No meaning.
        RESERVED = 1 << 14;
        /// The 4.1 authentication (20-byte scrambles).
        SECURE_CONNECTION = 1 << 15;
        /// Several statements in one `COM_QUERY`.
        MULTI_STATEMENTS = 1 << 16;
        /// Several results to one `COM_QUERY`.
        MULTI_RESULTS = 1 << 17;
        /// Several results to one `COM_STMT_EXECUTE`.
        PS_MULTI_RESULTS = 1 << 18;
        /// Authentication plugins by name.
        PLUGIN_AUTH = 1 << 19;
        /// Connection attributes.
        CONNECT_ATTRS = 1 << 20;
        /// The authentication answer has a length-encoded length.
        PLUGIN_AUTH_LENENC = 1 << 21;
        /// The client understands an expired password.
        CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22;
        /// OK packets carry changes of session state.
        SESSION_TRACK = 1 << 23;
        /// Result sets end with an OK packet rather than an EOF packet.
        DEPRECATE_EOF = 1 << 24;
        /// Column definitions may be left out.
        OPTIONAL_RESULTSET_METADATA = 1 << 25;
        /// Zstandard compression.
        ZSTD_COMPRESSION = 1 << 26;
        /// Query attributes.
        QUERY_ATTRIBUTES = 1 << 27;
        /// Several factors of authentication.
        MULTI_FACTOR_AUTHENTICATION = 1 << 28;
    }
}

flags! {
    /// The state of session and result that a server tells with each answer (`SERVER_STATUS_*`), 16 bits.
    StatusFlags: u16 {
        /// A transaction is active.
        IN_TRANS = 1;
        /// Autocommit is on.
        AUTOCOMMIT = 1 << 1;
        /// Another result follows.
        MORE_RESULTS = 1 << 3;
        /// No good index was used.
        NO_GOOD_INDEX_USED = 1 << 4;
        /// No index was used.
        NO_INDEX_USED = 1 << 5;
        /// A cursor was opened; rows come by `COM_STMT_FETCH`.
        CURSOR_EXISTS = 1 << 6;
        /// The cursor's last row was sent.
        LAST_ROW_SENT = 1 << 7;
        /// A database was dropped.
        DB_DROPPED = 1 << 8;
        /// `sql_mode` has `NO_BACKSLASH_ESCAPES`.
        NO_BACKSLASH_ESCAPES = 1 << 9;
        /// Metadata changed since prepare.
        METADATA_CHANGED = 1 << 10;
        /// The query was slow.
        QUERY_WAS_SLOW = 1 << 11;
        /// The result set holds a procedure's OUT parameters.
        PS_OUT_PARAMS = 1 << 12;
        /// The transaction is read only.
        IN_TRANS_READONLY = 1 << 13;
        /// The packet carries changes of session state.
        SESSION_STATE_CHANGED = 1 << 14;
        /// `sql_mode` has `ANSI_QUOTES` (`MariaDB` only).
        ANSI_QUOTES = 1 << 15;
    }
}
