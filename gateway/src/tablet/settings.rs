//! The settings a session carries from one pooled connection to the next.
//!
//! A client believes it talks to one server: `SET sql_mode = ...` holds until it says otherwise. Behind the gateway its
//! statements run on many pooled connections, so each connection remembers what was set on it and is brought to the
//! session's settings by the difference before it is used. Only values that replay exactly are kept here: literals.

use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use shardgate_sql::Flavor;

/// What a setting's name refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SettingName {
    /// `SET NAMES`: client, results and connection charset at once; replayed before all others.
    Names,
    /// A session system variable, lower case, without `@@session.`.
    System(String),
    /// A user variable, lower case, without the `@`.
    User(String),
}

/// The settings of a session, or those known to hold on a connection.
///
/// Kept sorted by name so that equal settings are equal whatever the order they were made in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    entries: Vec<(SettingName, String)>,
    fingerprint: u64,
}

impl Settings {
    /// Whether nothing differs from a fresh connection.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Equal settings have equal fingerprints; zero is a fresh connection.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// A fingerprint of the settings by which a server reads a statement's text: what one prepares under others is
    /// another statement.
    pub fn reading(&self) -> u64 {
        let decides = |name: &SettingName| match name {
            SettingName::Names => true,
            SettingName::System(n) => n == "sql_mode" || overridden_by_names(name),
            SettingName::User(_) => false,
        };
        let mut relevant = self.entries.iter().filter(|(n, _)| decides(n)).peekable();
        if relevant.peek().is_none() {
            return 0;
        }
        FixedState.hash_one(relevant.collect::<Vec<_>>()) | 1
    }

    /// The literal a name is set to.
    pub fn get(&self, name: &SettingName) -> Option<&str> {
        self.position(name).ok().map(|i| self.entries[i].1.as_str())
    }

    /// The literal a system variable is set to, by its name in lower case.
    pub fn system(&self, name: &str) -> Option<&str> {
        let is_it = |entry: &&(SettingName, String)| matches!(&entry.0, SettingName::System(n) if n == name);
        self.entries.iter().find(is_it).map(|(_, value)| value.as_str())
    }

    /// All settings in the order they are replayed.
    pub fn iter(&self) -> impl Iterator<Item = &(SettingName, String)> {
        self.entries.iter()
    }

    /// How many bytes names and values take: what a session's bound counts.
    pub fn size(&self) -> usize {
        self.entries.iter().map(|(n, v)| v.len() + name_len(n) + 16).sum()
    }

    /// Sets a name to the text of a literal.
    pub fn set(&mut self, name: SettingName, literal: String) {
        if name == SettingName::Names {
            self.entries.retain(|(n, _)| !overridden_by_names(n));
        }
        // Each of the two sets the other.
        if let SettingName::System(set) = &name {
            let other = match set.as_str() {
                "character_set_connection" => "collation_connection",
                "collation_connection" => "character_set_connection",
                _ => "",
            };
            self.entries
                .retain(|(n, _)| !matches!(n, SettingName::System(n) if n == other));
        }
        match self.position(&name) {
            Ok(i) => self.entries[i].1 = literal,
            Err(i) => self.entries.insert(i, (name, literal)),
        }
        self.refresh();
    }

    /// Forgets a name: it is at its default again.
    pub fn unset(&mut self, name: &SettingName) {
        if let Ok(i) = self.position(name) {
            self.entries.remove(i);
            self.refresh();
        }
    }

    /// The `SET` statement that brings a connection with the settings `self` to `target`; `None` if nothing differs.
    /// `base` is what a fresh connection of the gateway's has beyond a server's defaults.
    pub fn difference(&self, target: &Self, base: &Base) -> Option<String> {
        if self.fingerprint == target.fingerprint && self == target {
            return None;
        }
        let gone = |name: &SettingName| self.get(name).is_some() && target.get(name).is_none();
        // A charset variable cannot be taken back alone: its DEFAULT is the server's, not a fresh connection's. So NAMES
        // is said again, and behind it what still differs.
        let names_again = self
            .entries
            .iter()
            .any(|(n, _)| overridden_by_names(n) && gone(n));
        let names_change = names_again || self.get(&SettingName::Names) != target.get(&SettingName::Names);
        let mut out = String::from("SET ");
        if names_change {
            push(
                &mut out,
                &SettingName::Names,
                Some(target.get(&SettingName::Names).unwrap_or(FRESH_NAMES)),
            );
        }
        for (name, _) in &self.entries {
            if gone(name) && *name != SettingName::Names && !overridden_by_names(name) {
                push(&mut out, name, base.of(name));
            }
        }
        for (name, value) in target.entries.iter().filter(|(n, _)| *n != SettingName::Names) {
            // What SET NAMES overwrites must be said again after it.
            let again = names_change && overridden_by_names(name);
            if again || self.get(name) != Some(value) {
                push(&mut out, name, Some(value));
            }
        }
        (out.len() > 4).then_some(out)
    }

    fn position(&self, name: &SettingName) -> Result<usize, usize> {
        self.entries.binary_search_by(|(n, _)| n.cmp(name))
    }

    fn refresh(&mut self) {
        self.fingerprint = if self.entries.is_empty() {
            0
        } else {
            FixedState.hash_one(&self.entries) | 1
        };
    }
}

/// The limit that tablets hold statements to by themselves, as it was set on a connection when it was opened. It stands in
/// for the gateway where the gateway cannot end a statement any more: when it was stopped, or cut off from the tablet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base(Option<(SettingName, String)>);

impl Base {
    /// Where a server has no such limit, or there is to be none.
    pub const NONE: Self = Self(None);

    /// The limit in the dialect of a server of this version. `MariaDB` counts seconds and includes the time rows take to
    /// leave; `MySQL` counts milliseconds and limits only SELECT.
    pub fn limit(version: &str, limit: Duration) -> Self {
        let flavor = Flavor::of_version(version);
        let value = match flavor {
            Flavor::MariaDb => format!("{:.3}", limit.as_secs_f64()),
            Flavor::MySql => limit.as_millis().max(1).to_string(),
        };
        Self(Some((limit_name(flavor), value)))
    }

    /// The statement that sets it.
    pub fn sql(&self) -> Option<String> {
        let (name, value) = self.0.as_ref()?;
        let mut out = String::from("SET ");
        push(&mut out, name, Some(value));
        Some(out)
    }

    fn of(&self, name: &SettingName) -> Option<&str> {
        self.0
            .as_ref()
            .filter(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// The variable by which servers of a flavor limit the time of statements; 0 lifts the limit.
pub fn limit_name(flavor: Flavor) -> SettingName {
    SettingName::System(match flavor {
        Flavor::MariaDb => "max_statement_time".to_owned(),
        Flavor::MySql => "max_execution_time".to_owned(),
    })
}

impl Hash for Settings {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

/// What a fresh tablet connection has by its handshake.
const FRESH_NAMES: &str = "utf8mb4 COLLATE utf8mb4_general_ci";

/// A hasher with fixed keys: the fingerprint must be the same in every session.
#[derive(Clone, Copy)]
struct FixedState;

impl BuildHasher for FixedState {
    type Hasher = twox_hash::XxHash64;
    fn build_hasher(&self) -> Self::Hasher {
        twox_hash::XxHash64::with_seed(0)
    }
}

fn name_len(name: &SettingName) -> usize {
    match name {
        SettingName::Names => 5,
        SettingName::System(n) | SettingName::User(n) => n.len(),
    }
}

/// `SET NAMES` assigns these, so an earlier value of theirs no longer holds.
fn overridden_by_names(name: &SettingName) -> bool {
    let SettingName::System(n) = name else {
        return false;
    };
    matches!(
        n.as_str(),
        "character_set_client"
            | "character_set_results"
            | "character_set_connection"
            | "collation_connection"
    )
}

fn push(out: &mut String, name: &SettingName, value: Option<&str>) {
    if out.len() > 4 {
        out.push_str(", ");
    }
    // Writing to a String cannot fail.
    let _ = match (name, value) {
        (SettingName::Names, v) => write!(out, "NAMES {}", v.unwrap_or(FRESH_NAMES)),
        (SettingName::System(n), Some(v)) => write!(out, "@@session.{n} = {v}"),
        (SettingName::System(n), None) => write!(out, "@@session.{n} = DEFAULT"),
        (SettingName::User(n), v) => {
            write!(out, "@`{}` = {}", n.replace('`', "``"), v.unwrap_or("NULL"))
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sys(n: &str) -> SettingName {
        SettingName::System(n.to_owned())
    }

    fn with(pairs: &[(SettingName, &str)]) -> Settings {
        let mut s = Settings::default();
        for (n, v) in pairs {
            s.set(n.clone(), (*v).to_owned());
        }
        s
    }

    #[test]
    fn equal_settings_have_equal_fingerprints_whatever_their_order() {
        let a = with(&[(sys("sql_mode"), "''"), (sys("time_zone"), "'+00:00'")]);
        let b = with(&[(sys("time_zone"), "'+00:00'"), (sys("sql_mode"), "''")]);
        assert_eq!(a.fingerprint(), b.fingerprint());
        assert_eq!(a.difference(&b, &Base::NONE), None);
        assert_ne!(a.fingerprint(), Settings::default().fingerprint());
    }

    #[test]
    fn only_the_difference_is_replayed() {
        let conn = with(&[(sys("sql_mode"), "''"), (sys("time_zone"), "'+00:00'")]);
        let want = with(&[
            (sys("time_zone"), "'+02:00'"),
            (SettingName::User("a`b".into()), "1"),
        ]);
        assert_eq!(
            conn.difference(&want, &Base::NONE).unwrap(),
            "SET @@session.sql_mode = DEFAULT, @@session.time_zone = '+02:00', @`a``b` = 1"
        );
    }

    #[test]
    fn names_come_first_and_what_they_overwrite_is_said_again() {
        let conn = with(&[
            (SettingName::Names, "latin1"),
            (sys("character_set_results"), "NULL"),
        ]);
        let want = with(&[
            (SettingName::Names, "utf8mb4"),
            (sys("character_set_results"), "NULL"),
        ]);
        assert_eq!(
            conn.difference(&want, &Base::NONE).unwrap(),
            "SET NAMES utf8mb4, @@session.character_set_results = NULL"
        );
        let mut s = want.clone();
        s.set(SettingName::Names, "latin1".into());
        assert_eq!(s.get(&sys("character_set_results")), None);
    }

    #[test]
    fn a_charset_taken_back_is_the_handshakes_and_not_the_servers_default() {
        let latin1 = with(&[(SettingName::Names, "latin1")]);
        assert_eq!(
            latin1.difference(&Settings::default(), &Base::NONE).unwrap(),
            "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
        );
        let results = with(&[
            (SettingName::Names, "latin1"),
            (sys("character_set_results"), "NULL"),
        ]);
        assert_eq!(
            results.difference(&latin1, &Base::NONE).unwrap(),
            "SET NAMES latin1"
        );
    }

    #[test]
    fn statements_prepared_under_another_way_of_reading_are_told_apart() {
        let plain = Settings::default();
        let ansi = with(&[(sys("sql_mode"), "'ANSI_QUOTES'")]);
        let zone = with(&[(sys("time_zone"), "'+00:00'")]);
        assert_ne!(plain.reading(), ansi.reading());
        assert_eq!(plain.reading(), zone.reading());
    }

    #[test]
    fn a_statement_limit_taken_back_is_the_gateways_and_not_the_servers_default() {
        let lifted = with(&[(sys("max_statement_time"), "0")]);
        let base = Base::limit("11.4.2-MariaDB", Duration::from_millis(25_500));
        assert_eq!(base.sql().unwrap(), "SET @@session.max_statement_time = 25.500");
        assert_eq!(
            lifted.difference(&Settings::default(), &base).unwrap(),
            "SET @@session.max_statement_time = 25.500"
        );
        let mysql = Base::limit("8.0.36", Duration::from_secs(25));
        assert_eq!(mysql.sql().unwrap(), "SET @@session.max_execution_time = 25000");
    }

    #[test]
    fn a_setting_taken_back_leaves_a_fresh_connection() {
        let mut s = with(&[(sys("sql_mode"), "''")]);
        s.unset(&sys("sql_mode"));
        assert_eq!(s.fingerprint(), 0);
        assert!(s.is_empty());
    }
}
