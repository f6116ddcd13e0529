//! What changes how bytes are read: `sql_mode`, and the flavour and version of the server behind.
//!
//! The same bytes are different statements under `ANSI_QUOTES`, `NO_BACKSLASH_ESCAPES` or `PIPES_AS_CONCAT`, and
//! `/*!50700 ... */` is code on one server and a comment on the other. So nothing here reads a statement without
//! being told both.

use std::fmt;

/// The flags of `sql_mode`, as a set. Equal sets read equally, so it may be part of a cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SqlMode(u64);

/// A name this crate does not know, so that a SET naming it can be refused or passed on knowingly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown sql_mode {0:?}")]
pub struct UnknownSqlMode(pub String);

macro_rules! modes {
    ($($bit:literal $name:literal)*) => {
        const NAMES: &[(&str, u64)] = &[$(($name, 1 << $bit),)*];
    };
}

modes! {
    0 "ANSI_QUOTES"
    1 "NO_BACKSLASH_ESCAPES"
    2 "PIPES_AS_CONCAT"
    3 "IGNORE_SPACE"
    4 "HIGH_NOT_PRECEDENCE"
    5 "REAL_AS_FLOAT"
    6 "ONLY_FULL_GROUP_BY"
    7 "NO_UNSIGNED_SUBTRACTION"
    8 "NO_DIR_IN_CREATE"
    9 "NO_AUTO_VALUE_ON_ZERO"
    10 "STRICT_TRANS_TABLES"
    11 "STRICT_ALL_TABLES"
    12 "NO_ZERO_IN_DATE"
    13 "NO_ZERO_DATE"
    14 "ALLOW_INVALID_DATES"
    15 "ERROR_FOR_DIVISION_BY_ZERO"
    16 "NO_AUTO_CREATE_USER"
    17 "NO_ENGINE_SUBSTITUTION"
    18 "PAD_CHAR_TO_FULL_LENGTH"
    19 "TIME_TRUNCATE_FRACTIONAL"
    20 "EMPTY_STRING_IS_NULL"
    21 "SIMULTANEOUS_ASSIGNMENT"
    22 "TIME_ROUND_FRACTIONAL"
    23 "NO_KEY_OPTIONS"
    24 "NO_TABLE_OPTIONS"
    25 "NO_FIELD_OPTIONS"
    26 "IGNORE_BAD_TABLE_OPTIONS"
    27 "TRADITIONAL"
    28 "ANSI"
    29 "ORACLE"
    30 "MSSQL"
    31 "POSTGRESQL"
    32 "DB2"
    33 "MAXDB"
    34 "MYSQL323"
    35 "MYSQL40"
}

impl SqlMode {
    /// The set as a number, to be mixed into a hash.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// `"x"` is an identifier.
    pub const ANSI_QUOTES: Self = Self(1);
    /// A backslash in a string is an ordinary character.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 1);
    /// `||` concatenates.
    pub const PIPES_AS_CONCAT: Self = Self(1 << 2);
    /// Space is allowed between a built-in function's name and its parenthesis.
    pub const IGNORE_SPACE: Self = Self(1 << 3);
    /// `NOT a BETWEEN b AND c` is `(NOT a) BETWEEN b AND c`.
    pub const HIGH_NOT_PRECEDENCE: Self = Self(1 << 4);
    /// MariaDB's other grammar. Statements under it are not understood here.
    pub const ORACLE: Self = Self(1 << 29);

    const LEXICAL_COMBINATION: u64 = 1 | (1 << 2) | (1 << 3);

    /// Reads the value of `sql_mode`: names separated by commas, any case, empty for none.
    pub fn parse(text: &str) -> Result<Self, UnknownSqlMode> {
        let mut bits = 0;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let (known, bit) = known.ok_or_else(|| UnknownSqlMode(name.to_owned()))?;
            bits |= bit;
            bits |= match *known {
                "ANSI" | "ORACLE" | "MSSQL" | "POSTGRESQL" | "DB2" | "MAXDB" => Self::LEXICAL_COMBINATION,
                "MYSQL323" | "MYSQL40" => Self::HIGH_NOT_PRECEDENCE.0,
                _ => 0,
            };
        }
        Ok(Self(bits))
    }

    /// This set with `other` added.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Only the flags that change how bytes are read. Statements read alike under modes that agree on these.
    #[must_use]
    pub const fn lexical(self) -> Self {
        Self(self.0 & (0b1_1111 | Self::ORACLE.0))
    }

    /// See [`Self::ANSI_QUOTES`].
    pub const fn ansi_quotes(self) -> bool {
        self.contains(Self::ANSI_QUOTES)
    }

    /// See [`Self::NO_BACKSLASH_ESCAPES`].
    pub const fn no_backslash_escapes(self) -> bool {
        self.contains(Self::NO_BACKSLASH_ESCAPES)
    }

    /// See [`Self::PIPES_AS_CONCAT`].
    pub const fn pipes_as_concat(self) -> bool {
        self.contains(Self::PIPES_AS_CONCAT)
    }

    /// See [`Self::IGNORE_SPACE`].
    pub const fn ignore_space(self) -> bool {
        self.contains(Self::IGNORE_SPACE)
    }

    /// See [`Self::HIGH_NOT_PRECEDENCE`].
    pub const fn high_not_precedence(self) -> bool {
        self.contains(Self::HIGH_NOT_PRECEDENCE)
    }

    /// See [`Self::ORACLE`].
    pub const fn oracle(self) -> bool {
        self.contains(Self::ORACLE)
    }
}

impl fmt::Display for SqlMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, bit) in NAMES {
            if self.0 & bit != 0 {
                write!(f, "{separator}{name}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

/// Which family of servers the tablets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// MariaDB. It runs `/*M! ... */`, and skips `/*!50700 ... */` to `/*!99999 ... */`.
    MariaDb,
    /// Oracle's MySQL and its kin. `/*M! ... */` is a comment there.
    MySql,
}

/// How to read a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LexOptions {
    /// The session's `sql_mode`.
    pub mode: SqlMode,
    /// The tablets' version as in a version comment: 10.11.6 is `101106`, 8.0.36 is `80036`.
    pub server_version: u32,
    /// The tablets' flavour.
    pub flavor: Flavor,
}

impl Flavor {
    /// The flavor of a server of this version, as in the handshake.
    #[must_use]
    pub fn of_version(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") {
            Self::MariaDb
        } else {
            Self::MySql
        }
    }
}

impl LexOptions {
    /// Options for a server version as in the handshake (`10.11.6-MariaDB-0+deb12u1`, `8.0.36`). `None` where it
    /// does not begin with three numbers.
    pub fn for_server(version: &str, mode: SqlMode) -> Option<Self> {
        let flavor = Flavor::of_version(version);
        // MariaDB before 11 prefixes its real version in the handshake, for old replicas.
        let version = version.strip_prefix("5.5.5-").unwrap_or(version);
        let mut parts = version.split(|c: char| !c.is_ascii_digit());
        let mut next = || parts.next()?.parse::<u32>().ok().filter(|part| *part < 1000);
        let (major, minor, patch) = (next()?, next()?, next()?);
        Some(Self {
            mode,
            server_version: major * 10_000 + minor * 100 + patch,
            flavor,
        })
    }
}

impl Default for LexOptions {
    /// A MariaDB 10.11 with the server's default modes, which set nothing that changes how bytes are read.
    fn default() -> Self {
        Self {
            mode: SqlMode::default(),
            server_version: 101_100,
            flavor: Flavor::MariaDb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combination_sets_what_it_stands_for() {
        let mode = SqlMode::parse("ansi, STRICT_TRANS_TABLES").unwrap();
        assert!(mode.ansi_quotes() && mode.pipes_as_concat() && mode.ignore_space());
        assert!(!mode.no_backslash_escapes() && !mode.high_not_precedence());
        assert_eq!(SqlMode::parse(""), Ok(SqlMode::default()));
        assert_eq!(SqlMode::parse("FOO"), Err(UnknownSqlMode("FOO".into())));
    }

    #[test]
    fn a_mode_prints_what_parses_back() {
        let mode = SqlMode::parse("STRICT_ALL_TABLES,ANSI_QUOTES,NO_ZERO_DATE").unwrap();
        assert_eq!(SqlMode::parse(&mode.to_string()), Ok(mode));
        assert_eq!(mode.lexical(), SqlMode::ANSI_QUOTES);
    }

    #[test]
    fn a_handshake_version_becomes_a_comment_version() {
        let of = |text| LexOptions::for_server(text, SqlMode::default());
        let maria = of("5.5.5-10.11.6-MariaDB-0+deb12u1").unwrap();
        assert_eq!((maria.flavor, maria.server_version), (Flavor::MariaDb, 101_106));
        let mysql = of("8.0.36").unwrap();
        assert_eq!((mysql.flavor, mysql.server_version), (Flavor::MySql, 80_036));
        assert_eq!(of("unknown"), None);
    }
}
