//! Settings that a tablet took before.
//!
//! Most clients begin with the same few SETs. What one tablet took a moment ago, with the same other settings, another
//! of the same version takes too, so nobody is asked again: a login costs no round trip, and waits for no shard.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shardgate_sql::{LexOptions, SqlMode};

use crate::base::clock::Instant;
use crate::tablet::{SettingName, Settings};

/// How many combinations are kept. They are few in practice; a client that makes up many drops them all.
const MAX: usize = 1000;

/// A combination whose values are longer is asked each time.
const MAX_BYTES: usize = 4 << 10;

/// After this long a tablet is asked again: its own limits may have changed.
const LASTS: Duration = Duration::from_mins(10);

/// Values that every server takes.
const KNOWN_NAMES: [&str; 10] = [
    "'utf8mb4'",
    "'utf8mb4' COLLATE 'utf8mb4_general_ci'",
    "'utf8mb4' COLLATE 'utf8mb4_unicode_ci'",
    "'utf8mb4' COLLATE 'utf8mb4_bin'",
    "'utf8'",
    "'latin1'",
    "'latin1' COLLATE 'latin1_swedish_ci'",
    "'latin1' COLLATE 'latin1_general_ci'",
    "'latin1' COLLATE 'latin1_bin'",
    "'binary'",
];

/// What decides whether a tablet takes settings: the server, and the settings that are no user variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: LexOptions,
    entries: Vec<(SettingName, String)>,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    at: Instant,
    /// The `sql_mode` that the settings gave, where it was asked for.
    sql_mode: Option<SqlMode>,
}

/// The combinations of settings that tablets took.
#[derive(Debug, Default)]
pub struct Accepted {
    taken: Mutex<HashMap<Key, Taken>>,
}

/// What is known of settings that were not tried now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The `sql_mode` they give, where the caller asked for it.
    pub(super) sql_mode: Option<SqlMode>,
}

impl Accepted {
    /// Whether a session that has `current` may have `wanted` without asking a tablet. `needs_mode` is whether the
    /// `sql_mode` changes, so that it must be known too.
    pub(super) fn look_up(
        &self,
        server: LexOptions,
        (current, wanted): (&Settings, &Settings),
        needs_mode: bool,
        now: Instant,
    ) -> Option<Known> {
        let changed = |(name, value): &&(SettingName, String)| current.get(name) != Some(value);
        if !needs_mode && wanted.iter().filter(changed).all(is_certain) {
            return Some(Known { sql_mode: None });
        }
        // A text in a user variable may be no text of its character set, which only a server can tell.
        let user = |(name, _): &(SettingName, String)| matches!(name, SettingName::User(_));
        if wanted.iter().filter(changed).any(user) {
            return None;
        }
        let taken = *self.lock().get(&key(server, wanted)?)?;
        let lasts = now.duration_since(taken.at) < LASTS && (taken.sql_mode.is_some() || !needs_mode);
        lasts.then_some(Known {
            sql_mode: taken.sql_mode.filter(|_| needs_mode),
        })
    }

    /// A tablet took these settings.
    pub(super) fn note(
        &self,
        server: LexOptions,
        settings: &Settings,
        sql_mode: Option<SqlMode>,
        now: Instant,
    ) {
        let Some(key) = key(server, settings) else { return };
        let mut taken = self.lock();
        if taken.len() >= MAX && !taken.contains_key(&key) {
            taken.clear();
        }
        taken.insert(key, Taken { at: now, sql_mode });
    }

    /// A poisoned lock means a panic while an entry was put in or taken out of the map, which stays a valid map.
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(server: LexOptions, settings: &Settings) -> Option<Key> {
    let entries: Vec<_> = settings
        .iter()
        .filter(|(name, _)| !matches!(name, SettingName::User(_)))
        .cloned()
        .collect();
    let bytes: usize = entries.iter().map(|(_, value)| value.len()).sum();
    (bytes <= MAX_BYTES).then_some(Key { server, entries })
}

/// Whether every server takes this value.
fn is_certain((name, value): &(SettingName, String)) -> bool {
    match name {
        SettingName::Names => KNOWN_NAMES.contains(&value.as_str()),
        SettingName::System(n) => match n.as_str() {
            "character_set_client" | "character_set_results" | "character_set_connection" => {
                ["'utf8mb4'", "'utf8'", "'latin1'", "'binary'"].contains(&value.as_str())
            }
            _ => false,
        },
        SettingName::User(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::now;

    fn settings(entries: &[(&str, &str)]) -> Settings {
        let mut out = Settings::default();
        for (name, value) in entries {
            let name = match *name {
                "NAMES" => SettingName::Names,
                n => match n.strip_prefix('@') {
                    Some(user) => SettingName::User(user.into()),
                    None => SettingName::System(n.into()),
                },
            };
            out.set(name, (*value).into());
        }
        out
    }

    fn looked_up(accepted: &Accepted, current: &Settings, wanted: &Settings) -> bool {
        let server = LexOptions::default();
        accepted
            .look_up(server, (current, wanted), false, now())
            .is_some()
    }

    #[test]
    fn what_every_server_takes_is_known_at_once() {
        let (accepted, fresh) = (Accepted::default(), Settings::default());
        for (wanted, known) in [
            (settings(&[("NAMES", "'utf8mb4'")]), true),
            (settings(&[("NAMES", "'utf8mb4' COLLATE 'utf8mb4_bin'")]), true),
            (settings(&[("NAMES", "'utf8mb4' COLLATE 'latin1_bin'")]), false),
            (settings(&[("NAMES", "'klingon'")]), false),
            (settings(&[("character_set_results", "'latin1'")]), true),
            (settings(&[("wait_timeout", "60")]), false),
            (settings(&[("@a", "1")]), false),
        ] {
            assert_eq!(looked_up(&accepted, &fresh, &wanted), known, "{wanted:?}");
        }
    }

    #[test]
    fn what_one_tablet_took_is_known_for_a_while_and_for_its_version_only() {
        let (accepted, fresh) = (Accepted::default(), Settings::default());
        let wanted = settings(&[("wait_timeout", "60"), ("@a", "1")]);
        let had = settings(&[("@a", "1")]);
        let server = LexOptions::default();
        let at = now();
        accepted.note(server, &wanted, None, at);
        assert!(looked_up(&accepted, &had, &wanted));
        // A user variable that is new is tried, whatever else was.
        assert!(!looked_up(&accepted, &fresh, &wanted));
        let both = settings(&[("wait_timeout", "60"), ("sort_buffer_size", "1")]);
        assert!(!looked_up(&accepted, &fresh, &both));
        let newer = LexOptions {
            server_version: server.server_version + 1,
            ..server
        };
        assert_eq!(accepted.look_up(newer, (&had, &wanted), false, at), None);
        assert_eq!(accepted.look_up(server, (&had, &wanted), false, at + LASTS), None);
        // Its sql_mode was not asked for.
        assert_eq!(accepted.look_up(server, (&had, &wanted), true, at), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let accepted = Accepted::default();
        for n in 0..=MAX {
            let wanted = settings(&[("wait_timeout", &n.to_string())]);
            accepted.note(LexOptions::default(), &wanted, None, now());
        }
        assert_eq!(accepted.lock().len(), 1);
        let long = "x".repeat(MAX_BYTES + 1);
        accepted.note(
            LexOptions::default(),
            &settings(&[("sql_mode", &long)]),
            None,
            now(),
        );
        assert_eq!(accepted.lock().len(), 1);
    }
}
