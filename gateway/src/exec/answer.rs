//! What a statement's answer leaves behind in the session, and how several legs' OK packets become one.

use bytes::Bytes;
use shardgate_wire::{OkPacket, StatusFlags};

/// One line of `SHOW WARNINGS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// `Note`, `Warning` or `Error`.
    pub level: String,
    /// Error number.
    pub code: u16,
    /// Text.
    pub message: String,
}

/// What an answered statement leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Rows changed, or found with `CLIENT_FOUND_ROWS`; `None` for a result set.
    pub affected_rows: Option<u64>,
    /// The first generated id, if any.
    pub last_insert_id: u64,
    /// Rows sent.
    pub rows: u64,
    /// What `FOUND_ROWS()` is to answer where that is not the number of rows sent.
    pub found_rows: Option<u64>,
    /// Warnings, at most as many as the server keeps.
    pub warnings: Vec<Warning>,
    /// How many warnings there were.
    pub warning_count: u16,
    /// The legs' OK packets as one, where it has not been written to the client yet.
    pub ok: Option<OkPacket>,
}

/// Flags of a tablet's status that are true of the answer; the others speak of the tablet's session, not the client's.
pub(super) const PASSED_STATUS: StatusFlags = StatusFlags::NO_GOOD_INDEX_USED
    .with(StatusFlags::NO_INDEX_USED)
    .with(StatusFlags::NO_BACKSLASH_ESCAPES)
    .with(StatusFlags::METADATA_CHANGED)
    .with(StatusFlags::QUERY_WAS_SLOW)
    .with(StatusFlags::PS_OUT_PARAMS);

/// The status a client is told: the session's own flags and those of the tablet that speak of the answer.
pub fn client_status(session: StatusFlags, tablet: StatusFlags) -> StatusFlags {
    session | (tablet & PASSED_STATUS)
}

/// Adds a leg's OK to the sum of the earlier ones.
pub(super) fn add_ok(sum: &mut OkPacket, leg: &OkPacket) {
    sum.affected_rows = sum.affected_rows.saturating_add(leg.affected_rows);
    if sum.last_insert_id == 0 {
        sum.last_insert_id = leg.last_insert_id;
    }
    sum.warnings = sum.warnings.saturating_add(leg.warnings);
    sum.status |= leg.status;
    sum.info = add_info(&sum.info, &leg.info);
}

/// Adds the numbers of two info texts such as `Rows matched: 2  Changed: 1  Warnings: 0`. Texts of different shape do
/// not add; the first stays.
fn add_info(a: &Bytes, b: &Bytes) -> Bytes {
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() { b.clone() } else { a.clone() };
    }
    let (Some(left), Some(right)) = (pieces(a), pieces(b)) else {
        return a.clone();
    };
    if left.len() != right.len() || left.iter().zip(&right).any(|((x, _), (y, _))| x != y) {
        return a.clone();
    }
    let mut out = String::new();
    for ((text, x), (_, y)) in left.iter().zip(&right) {
        out.push_str(text);
        if let (Some(x), Some(y)) = (x, y) {
            out.push_str(&x.saturating_add(*y).to_string());
        }
    }
    Bytes::from(out)
}

/// Text before each number, and the number.
fn pieces(info: &[u8]) -> Option<Vec<(&str, Option<u64>)>> {
    let mut rest = std::str::from_utf8(info).ok()?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let start = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(start);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(end);
        out.push((text, digits.parse().ok()));
        rest = tail;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_info_texts_add_up() {
        let a = Bytes::from_static(b"Rows matched: 2  Changed: 1  Warnings: 0");
        let b = Bytes::from_static(b"Rows matched: 10  Changed: 9  Warnings: 1");
        assert_eq!(
            &add_info(&a, &b)[..],
            b"Rows matched: 12  Changed: 10  Warnings: 1"
        );
        assert_eq!(add_info(&Bytes::new(), &b), b);
        let other = Bytes::from_static(b"Records: 3  Duplicates: 0  Warnings: 0");
        assert_eq!(add_info(&a, &other), a);
    }

    #[test]
    fn oks_add_and_the_first_generated_id_stays() {
        let mut sum = OkPacket::default();
        add_ok(
            &mut sum,
            &OkPacket {
                affected_rows: 2,
                last_insert_id: 0,
                warnings: 1,
                ..OkPacket::default()
            },
        );
        add_ok(
            &mut sum,
            &OkPacket {
                affected_rows: 3,
                last_insert_id: 7,
                warnings: 1,
                ..OkPacket::default()
            },
        );
        add_ok(
            &mut sum,
            &OkPacket {
                affected_rows: 1,
                last_insert_id: 9,
                ..OkPacket::default()
            },
        );
        assert_eq!((sum.affected_rows, sum.last_insert_id, sum.warnings), (6, 7, 2));
    }

    #[test]
    fn a_tablets_own_session_flags_do_not_reach_the_client() {
        let tablet = StatusFlags::IN_TRANS | StatusFlags::AUTOCOMMIT | StatusFlags::NO_BACKSLASH_ESCAPES;
        let session = StatusFlags::AUTOCOMMIT;
        let seen = client_status(session, tablet);
        assert!(!seen.contains(StatusFlags::IN_TRANS));
        assert!(seen.contains(StatusFlags::NO_BACKSLASH_ESCAPES));
    }
}
