//! How texts compare: the default collation ignores case, accents and trailing spaces, `_bin` only trailing spaces.
//!
//! This is `utf8mb4_general_ci` in effect: each character weighs as its base letter in upper case.

use std::cmp::Ordering;

use unicode_normalization::char::decompose_canonical;

/// A text column's way to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Collation {
    /// `utf8mb4_general_ci`.
    #[default]
    Ci,
    /// `utf8mb4_bin`.
    Bin,
}

impl Collation {
    /// The name a client sees.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ci => "utf8mb4_general_ci",
            Self::Bin => "utf8mb4_bin",
        }
    }

    /// The name of the `SQLite` collation.
    pub(crate) const fn sqlite(self) -> &'static str {
        match self {
            Self::Ci => "my_ci",
            Self::Bin => "my_bin",
        }
    }

    /// The collation's number in the protocol.
    pub(crate) const fn id(self) -> u16 {
        match self {
            Self::Ci => 45,
            Self::Bin => 46,
        }
    }

    /// What a name in `COLLATE` stands for; nothing if its order is not one of ours.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if matches!(
            name.as_str(),
            "utf8mb4_bin" | "utf8_bin" | "utf8mb3_bin" | "ascii_bin" | "latin1_bin"
        ) {
            return Some(Self::Bin);
        }
        matches!(
            name.as_str(),
            "utf8mb4_general_ci"
                | "utf8_general_ci"
                | "utf8mb3_general_ci"
                | "utf8mb4_unicode_ci"
                | "utf8mb4_unicode_520_ci"
                | "utf8_unicode_ci"
                | "utf8mb3_unicode_ci"
                | "ascii_general_ci"
                | "latin1_swedish_ci"
        )
        .then_some(Self::Ci)
    }

    pub(crate) fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            Self::Ci => padded(a.chars().map(weight), b.chars().map(weight)),
            Self::Bin => padded(a.chars().map(u32::from), b.chars().map(u32::from)),
        }
    }
}

/// A character's weight: its base letter in upper case; all beyond the basic plane weigh the same.
pub(crate) fn weight(c: char) -> u32 {
    if c.is_ascii() {
        return u32::from(c.to_ascii_uppercase());
    }
    if u32::from(c) > 0xFFFF {
        return 0xFFFD;
    }
    if c == 'ß' {
        return u32::from('S');
    }
    let mut base = c;
    let mut first = true;
    decompose_canonical(c, |part| {
        if first {
            base = part;
            first = false;
        }
    });
    let mut upper = base.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => u32::from(one),
        _ => u32::from(base),
    }
}

/// Compares as if the shorter were filled up with spaces.
fn padded(mut a: impl Iterator<Item = u32>, mut b: impl Iterator<Item = u32>) -> Ordering {
    const SPACE: u32 = 0x20;
    loop {
        let (x, y) = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (x, y) => (x.unwrap_or(SPACE), y.unwrap_or(SPACE)),
        };
        if x != y {
            return x.cmp(&y);
        }
    }
}

/// `LIKE`: `%` any run, `_` one character, `escape` takes the next literally.
pub(crate) fn like(text: &str, pattern: &str, escape: Option<char>, collation: Collation) -> bool {
    enum Part {
        Run,
        One,
        Char(char),
    }
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(if Some(c) == escape {
            Part::Char(chars.next().unwrap_or(c))
        } else if c == '%' {
            Part::Run
        } else if c == '_' {
            Part::One
        } else {
            Part::Char(c)
        });
    }
    let same = |a: char, b: char| match collation {
        Collation::Ci => weight(a) == weight(b),
        Collation::Bin => a == b,
    };
    let text: Vec<char> = text.chars().collect();
    let (mut t, mut p) = (0, 0);
    // The last `%` and how much of the text it has swallowed: enough to come back to, so no recursion.
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match parts.get(p) {
            Some(Part::Run) => {
                back = Some((p, t));
                p += 1;
            }
            Some(Part::One) => {
                t += 1;
                p += 1;
            }
            Some(Part::Char(c)) if same(*c, text[t]) => {
                t += 1;
                p += 1;
            }
            _ => match back {
                Some((run, swallowed)) => {
                    back = Some((run, swallowed + 1));
                    t = swallowed + 1;
                    p = run + 1;
                }
                None => return false,
            },
        }
    }
    parts[p..].iter().all(|part| matches!(part, Part::Run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_and_trailing_spaces_do_not_count() {
        for (a, b) in [
            ("Bob", "bOB"),
            ("José", "jose"),
            ("a", "a   "),
            ("straße", "strase"),
        ] {
            assert_eq!(Collation::Ci.compare(a, b), Ordering::Equal, "{a} {b}");
        }
        assert_eq!(Collation::Bin.compare("a", "a "), Ordering::Equal);
        assert_ne!(Collation::Bin.compare("a", "A"), Ordering::Equal);
        // A tab sorts below a space, so padding decides.
        assert_eq!(Collation::Ci.compare("a\t", "a"), Ordering::Less);
    }

    #[test]
    fn like_knows_runs_single_characters_and_escapes() {
        let ci = |t, p| like(t, p, Some('\\'), Collation::Ci);
        assert!(ci("Hello World", "hello%"));
        assert!(ci("abcabc", "%abc"));
        assert!(ci("a_c", "a\\_c"));
        assert!(!ci("abc", "a\\_c"));
        assert!(ci("", "%"));
        assert!(!ci("", "_"));
        assert!(!like("A", "a", Some('\\'), Collation::Bin));
    }
}
