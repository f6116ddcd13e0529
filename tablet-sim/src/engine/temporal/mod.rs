//! Dates and times: reading the forms `MySQL` accepts, calendar arithmetic, `DATE_FORMAT`.
//!
//! All times are UTC: the simulated server's time zone is `+00:00`.

mod calendar;
mod clock;

use std::fmt::Write as _;

pub(crate) use calendar::{civil_from_days, days_from_civil, days_in_month, is_leap};
pub(crate) use clock::{MAX_TIME, parse_time, round_micros, time_text};
use clock::{fraction, number, push_fraction};

/// A point of the calendar. The zero date is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DateTime {
    pub(crate) year: i32,
    pub(crate) month: u32,
    pub(crate) day: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
    pub(crate) micro: u32,
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(crate) const MICROS: i64 = 1_000_000;
const DAY_MICROS: i64 = 86_400 * MICROS;

impl DateTime {
    fn valid(self) -> Option<Self> {
        let ok = (0..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && self.day >= 1
            && self.day <= days_in_month(self.year, self.month)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && self.micro < 1_000_000;
        ok.then_some(self)
    }

    pub(crate) fn date_only(year: i32, month: u32, day: u32) -> Self {
        Self {
            year,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            micro: 0,
        }
    }

    /// From microseconds since the Unix epoch.
    pub(crate) fn from_micros(micros: i64) -> Option<Self> {
        let days = micros.div_euclid(DAY_MICROS);
        let rest = micros.rem_euclid(DAY_MICROS);
        let (year, month, day) = civil_from_days(days);
        let seconds = rest / MICROS;
        Self {
            year,
            month,
            day,
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            micro: (rest % MICROS) as u32,
        }
        .valid()
    }

    /// Microseconds since the Unix epoch.
    pub(crate) fn micros(&self) -> i64 {
        self.days() * DAY_MICROS + self.time_micros()
    }

    pub(crate) fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    pub(crate) fn time_micros(&self) -> i64 {
        i64::from(self.hour * 3600 + self.minute * 60 + self.second) * MICROS + i64::from(self.micro)
    }

    /// Reads `2024-01-31`, `2024-1-31 10:20:30.5`, `20240131`, `20240131102030`, `2024-01-31T10:20:30Z`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
        if text.bytes().take_while(u8::is_ascii_digit).count() >= 6 && !text.contains(['-', ':', '/']) {
            return Self::parse_digits(text);
        }
        let (date, time) = match text.find([' ', 'T', 't']) {
            Some(at) => (&text[..at], Some(text[at + 1..].trim_start())),
            None => (text, None),
        };
        let mut parts = date.split(['-', '/', '.', ':']);
        let year_text = parts.next()?;
        let mut year = number(year_text, 4)? as i32;
        if year_text.len() == 2 {
            year += if year >= 70 { 1900 } else { 2000 };
        }
        let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        if parts.next().is_some() {
            return None;
        }
        let mut out = Self::date_only(year, month, day);
        if let Some(time) = time {
            let (clock, micro) = fraction(time)?;
            let mut parts = clock.split(':');
            out.hour = number(parts.next()?, 2)?;
            out.minute = parts.next().map_or(Some(0), |p| number(p, 2))?;
            out.second = parts.next().map_or(Some(0), |p| number(p, 2))?;
            if parts.next().is_some() {
                return None;
            }
            out.micro = micro;
        }
        out.valid()
    }

    fn parse_digits(text: &str) -> Option<Self> {
        let (digits, micro) = fraction(text)?;
        let part = |from: usize, to: usize| digits.get(from..to).and_then(|p| number(p, 4));
        let (year, at) = match digits.len() {
            8 | 14 => (part(0, 4)? as i32, 4),
            6 | 12 => {
                let y = part(0, 2)? as i32;
                (y + if y >= 70 { 1900 } else { 2000 }, 2)
            }
            _ => return None,
        };
        let mut out = Self::date_only(year, part(at, at + 2)?, part(at + 2, at + 4)?);
        if digits.len() >= 12 {
            out.hour = part(at + 4, at + 6)?;
            out.minute = part(at + 6, at + 8)?;
            out.second = part(at + 8, at + 10)?;
            out.micro = micro;
        }
        out.valid()
    }

    /// Rounded to this many digits of a second; the carry goes as far as it must.
    pub(crate) fn rounded(self, fsp: u8) -> Option<Self> {
        Self::from_micros(round_micros(self.micros(), fsp))
    }

    pub(crate) fn date_text(&self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// With exactly this many digits of a second.
    pub(crate) fn text(&self, fsp: u8) -> String {
        let mut out = format!(
            "{} {:02}:{:02}:{:02}",
            self.date_text(),
            self.hour,
            self.minute,
            self.second
        );
        push_fraction(&mut out, self.micro, fsp);
        out
    }

    /// 0 is Sunday.
    pub(crate) fn weekday(&self) -> u32 {
        (self.days() + 4).rem_euclid(7) as u32
    }

    pub(crate) fn day_of_year(&self) -> u32 {
        (self.days() - days_from_civil(self.year, 1, 1)) as u32 + 1
    }

    /// Months later, the day cut to the month's length.
    pub(crate) fn add_months(self, months: i64) -> Option<Self> {
        let total = i64::from(self.year) * 12 + i64::from(self.month) - 1 + months;
        let year = i32::try_from(total.div_euclid(12)).ok()?;
        let month = total.rem_euclid(12) as u32 + 1;
        Self {
            year,
            month,
            day: self.day.min(days_in_month(year, month)),
            ..self
        }
        .valid()
    }

    pub(crate) fn add_micros(self, micros: i64) -> Option<Self> {
        Self::from_micros(self.micros().checked_add(micros)?)
    }

    /// Week of the year and the year it belongs to, for `WEEK(d, mode)` modes 0 to 7.
    pub(crate) fn week(&self, mode: u32) -> (u32, i32) {
        let monday_first = mode & 1 != 0;
        let week_year = mode & 2 != 0;
        let first_weekday = (mode & 4 != 0) ^ !monday_first;
        let mut week_year = week_year;
        let first = Self::date_only(self.year, 1, 1);
        let offset = |d: &Self| {
            let sunday_based = d.weekday();
            if monday_first {
                (sunday_based + 6) % 7
            } else {
                sunday_based
            }
        };
        let mut year = self.year;
        let mut weekday = offset(&first);
        let mut first_days = first.days();
        let days = self.days();
        if self.month == 1 && self.day <= 7 - weekday {
            if !week_year && ((first_weekday && weekday != 0) || (!first_weekday && weekday >= 4)) {
                return (0, year);
            }
            week_year = true;
            year -= 1;
            let length = if is_leap(year) { 366 } else { 365 };
            first_days -= length;
            weekday = (weekday + 53 * 7 - length as u32) % 7;
        }
        let since = if (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4) {
            days - (first_days + i64::from(7 - weekday))
        } else {
            days - (first_days - i64::from(weekday))
        };
        if week_year && since >= 52 * 7 {
            let length = if is_leap(year) { 366 } else { 365 };
            let next = (weekday + length) % 7;
            if (!first_weekday && next < 4) || (first_weekday && next == 0) {
                return (1, year + 1);
            }
        }
        ((since / 7 + 1) as u32, year)
    }

    /// `DATE_FORMAT`.
    pub(crate) fn format(&self, pattern: &str) -> String {
        let mut out = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some(spec) => self.format_one(spec, &mut out),
                None => out.push('%'),
            }
        }
        out
    }

    fn format_one(&self, spec: char, out: &mut String) {
        let twelve = (self.hour + 11) % 12 + 1;
        let half = if self.hour < 12 { "AM" } else { "PM" };
        let month = MONTHS.get(self.month as usize - 1).copied().unwrap_or("");
        let day = DAYS[self.weekday() as usize];
        // Writing to a String cannot fail.
        let _ = match spec {
            'Y' => write!(out, "{:04}", self.year),
            'y' => write!(out, "{:02}", self.year % 100),
            'm' => write!(out, "{:02}", self.month),
            'c' => write!(out, "{}", self.month),
            'M' => write!(out, "{month}"),
            'b' => write!(out, "{}", &month[..3.min(month.len())]),
            'd' => write!(out, "{:02}", self.day),
            'e' => write!(out, "{}", self.day),
            'D' => write!(out, "{}{}", self.day, ordinal(self.day)),
            'H' => write!(out, "{:02}", self.hour),
            'k' => write!(out, "{}", self.hour),
            'h' | 'I' => write!(out, "{twelve:02}"),
            'l' => write!(out, "{twelve}"),
            'i' => write!(out, "{:02}", self.minute),
            's' | 'S' => write!(out, "{:02}", self.second),
            'f' => write!(out, "{:06}", self.micro),
            'p' => write!(out, "{half}"),
            'r' => write!(out, "{twelve:02}:{:02}:{:02} {half}", self.minute, self.second),
            'T' => write!(out, "{:02}:{:02}:{:02}", self.hour, self.minute, self.second),
            'j' => write!(out, "{:03}", self.day_of_year()),
            'W' => write!(out, "{day}"),
            'a' => write!(out, "{}", &day[..3]),
            'w' => write!(out, "{}", self.weekday()),
            'U' => write!(out, "{:02}", self.week(0).0),
            'u' => write!(out, "{:02}", self.week(1).0),
            'V' => write!(out, "{:02}", self.week(2).0),
            'v' => write!(out, "{:02}", self.week(3).0),
            'X' => write!(out, "{:04}", self.week(2).1),
            'x' => write!(out, "{:04}", self.week(3).1),
            other => write!(out, "{other}"),
        };
    }
}

fn ordinal(day: u32) -> &'static str {
    match (day % 100, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

pub(crate) fn month_name(month: u32) -> Option<&'static str> {
    MONTHS.get((month as usize).wrapping_sub(1)).copied()
}

pub(crate) fn day_name(weekday: u32) -> Option<&'static str> {
    DAYS.get(weekday as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_goes_there_and_back() {
        for days in (-700_000..2_900_000).step_by(997) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
    }

    #[test]
    fn the_accepted_forms_are_read_and_others_are_not() {
        let t = |s: &str| DateTime::parse(s).map(|d| d.text(6));
        assert_eq!(t("2024-2-9").as_deref(), Some("2024-02-09 00:00:00.000000"));
        assert_eq!(t("20240229102030").as_deref(), Some("2024-02-29 10:20:30.000000"));
        assert_eq!(
            t("2024-02-29T10:20:30.5Z").as_deref(),
            Some("2024-02-29 10:20:30.500000")
        );
        assert_eq!(t("2023-02-29"), None);
        assert_eq!(t("hello"), None);
        assert_eq!(
            parse_time("-01:02:03.5").map(|v| time_text(v, 1)).as_deref(),
            Some("-01:02:03.5")
        );
        assert_eq!(parse_time("900:00:00"), None);
    }

    #[test]
    fn formats_follow_the_manual() {
        let d = DateTime::parse("2009-10-04 22:23:00").unwrap();
        assert_eq!(d.format("%W %M %Y"), "Sunday October 2009");
        assert_eq!(d.format("%H:%i:%s %p %l"), "22:23:00 PM 10");
        let d = DateTime::parse("1999-01-01").unwrap();
        assert_eq!(d.format("%X %V"), "1998 52");
        let d = DateTime::parse("1900-10-04 22:23:00").unwrap();
        assert_eq!(d.format("%D %y %a %d %m %b %j"), "4th 00 Thu 04 10 Oct 277");
    }

    #[test]
    fn months_are_added_within_their_length() {
        let d = DateTime::parse("2024-01-31").unwrap();
        assert_eq!(d.add_months(1).unwrap().date_text(), "2024-02-29");
        assert_eq!(d.add_months(-2).unwrap().date_text(), "2023-11-30");
    }
}
