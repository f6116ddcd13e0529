//! Collation keys of `unicode_loose_*`.
//!
//! Vitess keys a text by Go's `collate.New(language.English, collate.Loose)`: the primary weights of the CLDR 23 root
//! order, two bytes each, or three with the top bit set from 0x8000 on; case, accents and width are dropped. The
//! weights in `loose_weights.txt` are that collator's output. What is not in the file has no known key, and a text
//! with such a character none either: a guessed weight would put a row where Vitess does not look for it.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

/// The table, one run of consecutive code points a line: the first one, then the key bytes of each (`-` for none).
/// A line that starts with `!` lists the characters that may merge with a mark behind them.
const WEIGHTS: &str = include_str!("loose_weights.txt");

/// Weights by character.
#[derive(Debug)]
pub struct LooseWeights {
    keys: HashMap<char, SmallVec<[u8; 8]>>,
    /// Characters with a weight of their own when a mark follows.
    merging: HashSet<char>,
}

/// There is one table, so any two are equal; vindexes are compared for every join that is planned.
impl PartialEq for LooseWeights {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Default for LooseWeights {
    fn default() -> Self {
        Self::new()
    }
}

impl LooseWeights {
    /// Reads the table.
    #[must_use]
    pub fn new() -> Self {
        let mut table = Self {
            keys: HashMap::new(),
            merging: HashSet::new(),
        };
        for line in WEIGHTS.lines() {
            table.line(line);
        }
        table
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            None | Some("#") => {}
            Some("!") => self.merging.extend(words.filter_map(|w| char_of(w, 0))),
            Some(start) => {
                for (i, word) in (0u32..).zip(words) {
                    if let (Some(c), Some(key)) = (char_of(start, i), key_of(word)) {
                        self.keys.insert(c, key);
                    }
                }
            }
        }
    }

    /// The collation key of a text, or `None` when a character's weight is not known.
    #[must_use]
    pub fn key(&self, text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len() * 2);
        let mut after_merging = false;
        for c in text.chars() {
            let before = out.len();
            self.push(c, &mut out)?;
            // Behind a character that merges, a mark (they have no key) or a middle dot may change its weight.
            if after_merging && (out.len() == before || matches!(c, '\u{b7}' | '\u{387}')) {
                return None;
            }
            after_merging = self.merging.contains(&c);
        }
        Some(out)
    }

    fn push(&self, c: char, out: &mut Vec<u8>) -> Option<()> {
        match u32::from(c) {
            // Unified ideographs: their order is that of their code points, above all listed weights.
            code @ 0x4e00..=0x9fcc => out.extend_from_slice(&[0x81, (code >> 8) as u8, code as u8]),
            // Hangul syllables stand for their two or three letters.
            code @ 0xac00..=0xd7a3 => {
                let i = code - 0xac00;
                self.letter(0x1100 + i / 588, out)?;
                self.letter(0x1161 + i % 588 / 28, out)?;
                if i % 28 != 0 {
                    self.letter(0x11a7 + i % 28, out)?;
                }
            }
            code => self.letter(code, out)?,
        }
        Some(())
    }

    fn letter(&self, code: u32, out: &mut Vec<u8>) -> Option<()> {
        out.extend_from_slice(self.keys.get(&char::from_u32(code)?)?);
        Some(())
    }
}

/// Whether all texts that equal this one under the collation have this one's key.
pub(super) fn class_is_uniform(collation: &str, text: &str) -> bool {
    let apart = apart(collation);
    let printable = |b: u8| (b' '..=b'~').contains(&b);
    apart.is_some_and(|apart| {
        text.trim_end_matches(' ')
            .bytes()
            .all(|b| printable(b) && !apart.contains(&b))
    })
}

/// Whether the classes of equal characters of a collation are known here.
pub(super) fn has_classes(collation: &str) -> bool {
    apart(collation).is_some()
}

/// The printable ASCII characters that a collation calls equal to some character with another key.
///
/// Known for collations that compare character by character, each by one weight: there two texts are equal exactly if
/// their characters are, pair by pair. (Collations by the Unicode algorithm skip characters, among them some that have
/// a key here.) `MariaDB`'s weights of all characters, the same as `MySQL`'s, were compared with the keys: `general_ci` calls `ß` an S and
/// `ı` an I, Swedish calls `ü` a Y and has `Å`, `Ä`, `Ö` in the places of brackets.
fn apart(collation: &str) -> Option<&'static [u8]> {
    match collation {
        "utf8mb4_general_ci"
        | "utf8mb4_general_nopad_ci"
        | "utf8mb3_general_ci"
        | "utf8mb3_general_nopad_ci"
        | "utf8_general_ci"
        | "utf8_general_nopad_ci" => Some(b"IiSs"),
        "latin1_swedish_ci" | "latin1_swedish_nopad_ci" => Some(b"Yy[\\]"),
        "latin1_general_ci" | "latin1_general_nopad_ci" | "latin1_general_cs" => Some(b""),
        _ => None,
    }
}

fn char_of(hex: &str, offset: u32) -> Option<char> {
    char::from_u32(u32::from_str_radix(hex, 16).ok()?.checked_add(offset)?)
}

fn key_of(hex: &str) -> Option<SmallVec<[u8; 8]>> {
    if hex == "-" {
        return Some(SmallVec::new());
    }
    hex.as_bytes()
        .chunks(2)
        .map(|pair| {
            std::str::from_utf8(pair)
                .ok()
                .and_then(|p| u8::from_str_radix(p, 16).ok())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Option<String> {
        LooseWeights::new()
            .key(text)
            .map(|key| key.iter().fold(String::new(), |s, b| s + &format!("{b:02x}")))
    }

    #[test]
    fn case_accents_and_width_are_dropped() {
        assert_eq!(hex("Bob"), hex("bÓb"));
        assert_eq!(hex("ａb"), hex("AB"));
        assert_eq!(hex("ß").as_deref(), Some("17f317f3"));
        assert_eq!(hex("a\u{301}"), hex("á"));
    }

    #[test]
    fn keys_of_other_scripts_are_those_of_the_collator() {
        assert_eq!(hex("一").as_deref(), Some("814e00"));
        assert_eq!(hex("가").as_deref(), Some("315631d4"));
        assert_eq!(hex("и").as_deref(), Some("1a0a"));
        assert_eq!(hex("й").as_deref(), Some("1a1f"));
    }

    #[test]
    fn what_may_merge_or_is_not_listed_has_no_key() {
        assert_eq!(hex("и\u{306}"), None, "it merges into й");
        assert_eq!(hex("l·l"), None, "it merges into ŀ");
        assert!(hex("a·l").is_some());
        assert_eq!(hex("\u{1ab0}"), None, "assigned after the table was made");
        assert_eq!(hex("ก"), None);
    }

    #[test]
    fn texts_of_letters_that_equal_their_accented_kin_only_are_uniform() {
        assert!(class_is_uniform("utf8mb4_general_ci", "Bob@acme.org  "));
        assert!(
            !class_is_uniform("utf8mb4_general_ci", "alice"),
            "an i equals a dotless one"
        );
        assert!(
            !class_is_uniform("utf8mb4_general_ci", "bosz"),
            "an s equals a sharp one"
        );
        assert!(
            !class_is_uniform("utf8mb4_general_ci", "bób"),
            "beyond what was compared"
        );
        assert!(!class_is_uniform("utf8mb4_general_ci", "a\tb"));
        assert!(class_is_uniform("latin1_swedish_ci", "alice"));
        assert!(!class_is_uniform("latin1_swedish_ci", "larry"));
        assert!(class_is_uniform("latin1_general_ci", "larry"));
        assert!(!class_is_uniform("utf8mb4_unicode_ci", "bob"));
    }

    #[test]
    fn the_whole_table_was_read() {
        assert_eq!(
            LooseWeights::new().keys.len(),
            WEIGHTS.lines().map(entries).sum::<usize>()
        );
        assert!(LooseWeights::new().keys.len() > 3000);
    }

    fn entries(line: &str) -> usize {
        if line.starts_with(['#', '!']) {
            0
        } else {
            line.split_whitespace().count() - 1
        }
    }
}
