//! `NOW()` and its kin: one moment for all legs of a statement.
//!
//! The moment is spliced as `FROM_UNIXTIME(seconds)`, which every shard reads in the session's own time zone, as it
//! would read `NOW()`; so the gateway need not know what that zone is.

use std::time::Duration;

use shardgate_sql::{Keyword as K, Literal, TokenKind};

use super::statement::Statement;

/// A function of the moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Moment {
    /// `NOW()`, `CURRENT_TIMESTAMP`, `LOCALTIME`, `LOCALTIMESTAMP`.
    Now,
    /// `CURDATE()`, `CURRENT_DATE`.
    Date,
    /// `CURTIME()`, `CURRENT_TIME`.
    Time,
    /// `UTC_TIMESTAMP`.
    UtcNow,
    /// `UTC_DATE`.
    UtcDate,
    /// `UTC_TIME`.
    UtcTime,
    /// `UNIX_TIMESTAMP()`.
    Unix,
}

/// A use of a moment: the function, its digits of a second, how many tokens it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MomentCall {
    pub(super) moment: Moment,
    pub(super) digits: u8,
    pub(super) width: usize,
}

/// A call whose precision is not a plain digit.
#[derive(Clone, Copy, Debug)]
pub(super) struct OddPrecision;

impl MomentCall {
    /// The function of the moment that begins at a token.
    pub(super) fn at(statement: &Statement<'_>, at: usize) -> Result<Option<Self>, OddPrecision> {
        let qualified = at > 0 && statement.is(at - 1, TokenKind::Dot);
        if qualified || !statement.is(at, TokenKind::Word) {
            return Ok(None);
        }
        let Some((moment, bare)) = moment(statement, at) else {
            return Ok(None);
        };
        let Some(close) = statement.close(at + 1) else {
            return Ok(bare.then_some(Self {
                moment,
                digits: 0,
                width: 1,
            }));
        };
        let digits = match (close - at, statement.lexed.literal(at + 2)) {
            (2, _) => 0,
            (3, Some(Literal::Int(digits @ 0..=6))) if moment != Moment::Unix => digits as u8,
            // UNIX_TIMESTAMP(x) is a function of x.
            _ if moment == Moment::Unix => return Ok(None),
            _ => return Err(OddPrecision),
        };
        Ok(Some(Self {
            moment,
            digits,
            width: close + 1 - at,
        }))
    }

    /// Writes the moment `now` (since the Unix epoch) as SQL of the function's own type.
    pub(super) fn write(self, now: Duration, out: &mut Vec<u8>) {
        let seconds = now.as_secs();
        let fraction = self.fraction(now);
        let (date, time) = utc(seconds);
        let sql = match self.moment {
            Moment::Now => format!("FROM_UNIXTIME({seconds}{fraction})"),
            Moment::Date => format!("DATE(FROM_UNIXTIME({seconds}))"),
            Moment::Time => format!("TIME(FROM_UNIXTIME({seconds}{fraction}))"),
            Moment::UtcNow => format!("TIMESTAMP'{date} {time}{fraction}'"),
            Moment::UtcDate => format!("DATE'{date}'"),
            Moment::UtcTime => format!("TIME'{time}{fraction}'"),
            Moment::Unix => seconds.to_string(),
        };
        out.extend_from_slice(sql.as_bytes());
    }

    fn fraction(self, now: Duration) -> String {
        let micros = format!("{:06}", now.subsec_micros());
        match micros.get(..usize::from(self.digits)) {
            Some("") | None => String::new(),
            Some(digits) => format!(".{digits}"),
        }
    }
}

/// The function at a word, and whether it may stand without parentheses.
fn moment(statement: &Statement<'_>, at: usize) -> Option<(Moment, bool)> {
    match statement.keyword(at) {
        Some(K::CurrentTimestamp | K::Localtime | K::Localtimestamp) => return Some((Moment::Now, true)),
        Some(K::CurrentDate) => return Some((Moment::Date, true)),
        Some(K::CurrentTime) => return Some((Moment::Time, true)),
        Some(K::UtcTimestamp) => return Some((Moment::UtcNow, true)),
        Some(K::UtcDate) => return Some((Moment::UtcDate, true)),
        Some(K::UtcTime) => return Some((Moment::UtcTime, true)),
        _ => {}
    }
    let text = statement.lexed.text(at);
    let is = |name: &str| text.eq_ignore_ascii_case(name.as_bytes());
    let moment = match text.len() {
        3 if is("now") => Moment::Now,
        7 if is("curdate") => Moment::Date,
        7 if is("curtime") => Moment::Time,
        14 if is("unix_timestamp") => Moment::Unix,
        _ => return None,
    };
    Some((moment, false))
}

/// Date and time of day in UTC (the civil calendar from days, as in Howard Hinnant's `chrono`-compatible algorithms).
fn utc(seconds: u64) -> (String, String) {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let date = format!("{year:04}-{month:02}-{day:02}");
    let time = format!("{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60);
    (date, time)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn seconds_become_dates_across_leap_years() {
        for (seconds, date, time) in [
            (0, "1970-01-01", "00:00:00"),
            (951_782_399, "2000-02-28", "23:59:59"),
            (951_782_400, "2000-02-29", "00:00:00"),
            (1_709_251_200, "2024-03-01", "00:00:00"),
            (4_102_444_799, "2099-12-31", "23:59:59"),
        ] {
            assert_eq!(utc(seconds), (date.to_owned(), time.to_owned()));
        }
    }
}
