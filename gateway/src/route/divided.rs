//! An INSERT whose rows are divided among shards: whose row is which, so that what a shard says of its own rows can be
//! said of the client's.

use std::fmt::Write as _;

/// How the rows of one INSERT were divided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divided {
    /// For each leg the numbers, from 1, that its rows have in the client's statement.
    pub rows: Vec<Box<[u32]>>,
    /// Whether it is INSERT IGNORE, which counts the rows it leaves out as duplicates.
    pub ignores: bool,
}

impl Divided {
    /// An error's or a warning's text with the client's row number. The servers end it with `at row n`.
    #[must_use]
    pub fn message(&self, leg: usize, text: &str) -> Option<String> {
        const AT: &str = "at row ";
        let start = text.rfind(AT)? + AT.len();
        let number: usize = text.get(start..)?.parse().ok()?;
        let row = self.rows.get(leg)?.get(number.checked_sub(1)?)?;
        let mut out = text.get(..start)?.to_owned();
        // Writing to a String cannot fail.
        let _ = write!(out, "{row}");
        Some(out)
    }

    /// What a leg of one row did, in the words that the servers keep for several. `affected` is as in its OK packet: one
    /// for a row inserted, and more for those it took the place of.
    #[must_use]
    pub fn info(&self, leg: usize, affected: u64, warnings: u16) -> Option<String> {
        if self.rows.get(leg)?.len() != 1 {
            return None;
        }
        let duplicates = if self.ignores {
            u64::from(affected == 0)
        } else {
            affected.saturating_sub(1)
        };
        Some(format!(
            "Records: 1  Duplicates: {duplicates}  Warnings: {warnings}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shards_row_number_becomes_the_clients() {
        let divided = Divided {
            rows: vec![Box::from([1, 4]), Box::from([2, 3, 5])],
            ignores: false,
        };
        let text = "Incorrect integer value: 'at row 1' for column `a` at row 2";
        assert_eq!(
            divided.message(1, text).unwrap(),
            "Incorrect integer value: 'at row 1' for column `a` at row 3"
        );
        assert_eq!(
            divided.message(0, "Data truncated at row 2").unwrap(),
            "Data truncated at row 4"
        );
        for text in [
            "Data truncated at row 3",
            "at row 0",
            "Duplicate entry 'at row 1' for key",
            "at row ",
        ] {
            assert_eq!(divided.message(0, text), None, "{text}");
        }
    }

    #[test]
    fn one_row_is_told_as_one_of_several() {
        let mut divided = Divided {
            rows: vec![Box::from([2]), Box::from([1, 3])],
            ignores: false,
        };
        let of = |n: u64| Some(format!("Records: 1  Duplicates: {n}  Warnings: 0"));
        assert_eq!(divided.info(0, 1, 0), of(0));
        assert_eq!(divided.info(0, 2, 0), of(1));
        assert_eq!(divided.info(1, 2, 0), None);
        divided.ignores = true;
        assert_eq!(divided.info(0, 0, 0), of(1));
    }
}
