//! What is known of a collation from its name: which strings it calls equal decides whether a vindex may route.
//!
//! Names follow patterns on both families of servers: `_bin`, `_nopad_bin`, `_ci`, `_as_cs`, `_0900_`. Whatever the
//! pattern does not settle counts as "calls more strings equal than we know", so the planner scatters.

use std::fmt;
use std::sync::Arc;

/// Whether trailing spaces count in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pad {
    /// `'a'` equals `'a  '`: all collations older than `MySQL` 8 and `MariaDB`'s without `nopad`.
    Space,
    /// Trailing spaces are characters like any other.
    None,
}

/// How finely a collation tells strings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sensitivity {
    /// The pseudo charset `binary`: bytes.
    Binary,
    /// `_bin`: code points; equal strings have equal bytes (but for padding).
    Bin,
    /// `_cs` and kin: case counts, yet canonically equivalent or ignorable characters may be equal.
    Case,
    /// `_ci` and everything unknown.
    Loose,
}

/// A collation, as named by the server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Collation {
    name: Arc<str>,
    charset: Arc<str>,
    pad: Pad,
    sensitivity: Sensitivity,
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Collation {
    /// Reads a collation's name; `charset` is the server's word for its character set, or guessed from the name.
    #[must_use]
    pub fn new(name: &str, charset: Option<&str>) -> Self {
        let name = name.to_ascii_lowercase();
        let charset = charset.map_or_else(|| charset_of(&name), str::to_ascii_lowercase);
        // `utf8` is an alias of `utf8mb3` on every server in use today.
        let charset = if charset == "utf8" {
            "utf8mb3".to_owned()
        } else {
            charset
        };
        Self {
            pad: pad_of(&name),
            sensitivity: sensitivity_of(&name),
            name: name.into(),
            charset: charset.into(),
        }
    }

    /// The pseudo collation of binary strings.
    #[must_use]
    pub fn binary() -> Self {
        Self::new("binary", Some("binary"))
    }

    /// Its name, lower case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its character set, lower case; `utf8` reads as `utf8mb3`.
    #[must_use]
    pub fn charset(&self) -> &str {
        &self.charset
    }

    /// Whether trailing spaces count.
    #[must_use]
    pub fn pad(&self) -> Pad {
        self.pad
    }

    /// How finely it tells strings apart.
    #[must_use]
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Whether equal strings have equal bytes, trailing spaces aside.
    #[must_use]
    pub fn equal_means_same_bytes(&self) -> bool {
        matches!(self.sensitivity, Sensitivity::Binary | Sensitivity::Bin)
    }

    /// Whether the character set stores UTF-8.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        matches!(&*self.charset, "utf8mb3" | "utf8mb4")
    }

    /// Whether a text can be stored in, and so compared under, the character set without loss.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        match &*self.charset {
            "utf8mb4" | "binary" | "utf16" | "utf16le" | "utf32" => true,
            "utf8mb3" | "ucs2" => text.chars().all(|c| u32::from(c) <= 0xffff),
            // The half of latin1 (really cp1252) that equals Unicode; the rest of its high half is looked up nowhere.
            "latin1" => text
                .chars()
                .all(|c| c.is_ascii() || ('\u{a0}'..='\u{ff}').contains(&c)),
            _ => text.is_ascii(),
        }
    }
}

fn charset_of(name: &str) -> String {
    name.split_once('_')
        .map_or(name, |(charset, _)| charset)
        .to_owned()
}

fn pad_of(name: &str) -> Pad {
    if name == "binary" || name.contains("_nopad_") || name.contains("_0900_") {
        Pad::None
    } else {
        Pad::Space
    }
}

fn sensitivity_of(name: &str) -> Sensitivity {
    if name == "binary" {
        Sensitivity::Binary
    } else if name.ends_with("_bin") {
        Sensitivity::Bin
    } else if name.ends_with("_cs") || name.ends_with("_cs_ks") {
        Sensitivity::Case
    } else {
        Sensitivity::Loose
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_server_families_are_read() {
        let cases = [
            ("binary", "binary", Pad::None, Sensitivity::Binary),
            ("utf8mb4_bin", "utf8mb4", Pad::Space, Sensitivity::Bin),
            ("utf8mb4_nopad_bin", "utf8mb4", Pad::None, Sensitivity::Bin),
            ("utf8mb4_0900_bin", "utf8mb4", Pad::None, Sensitivity::Bin),
            ("utf8mb4_0900_ai_ci", "utf8mb4", Pad::None, Sensitivity::Loose),
            (
                "utf8mb4_ja_0900_as_cs_ks",
                "utf8mb4",
                Pad::None,
                Sensitivity::Case,
            ),
            ("utf8mb4_uca1400_as_cs", "utf8mb4", Pad::Space, Sensitivity::Case),
            (
                "utf8mb4_uca1400_nopad_ai_ci",
                "utf8mb4",
                Pad::None,
                Sensitivity::Loose,
            ),
            ("utf8_general_ci", "utf8mb3", Pad::Space, Sensitivity::Loose),
            ("latin1_general_cs", "latin1", Pad::Space, Sensitivity::Case),
            ("utf8mb4_thai_520_w2", "utf8mb4", Pad::Space, Sensitivity::Loose),
        ];
        for (name, charset, pad, sensitivity) in cases {
            let c = Collation::new(name, None);
            assert_eq!(
                (c.charset(), c.pad(), c.sensitivity()),
                (charset, pad, sensitivity),
                "{name}"
            );
        }
    }
}
