//! Dates and times: their packed form, and their text.

use super::super::read::{Malformed, Reader};

/// A DATE, DATETIME or TIMESTAMP. All zero is the zero date.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DateTime {
    /// Year.
    pub year: u16,
    /// Month; 0 in a zero or partial date.
    pub month: u8,
    /// Day of the month; 0 in a zero or partial date.
    pub day: u8,
    /// Hour.
    pub hour: u8,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
    /// Microsecond.
    pub micros: u32,
}

/// A TIME: a signed duration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Time {
    /// Whether it is below zero.
    pub negative: bool,
    /// Hours, days included.
    pub hours: u32,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
    /// Microsecond.
    pub micros: u32,
}

impl DateTime {
    /// Reads the packed form, without its length byte: 0, 4, 7 or 11 bytes.
    pub fn unpack(packed: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "date and time value";
        let mut r = Reader::new(packed);
        let mut d = Self::default();
        if !matches!(packed.len(), 0 | 4 | 7 | 11) {
            return Err(Malformed(WHAT));
        }
        if packed.len() >= 4 {
            (d.year, d.month, d.day) = (r.u16(WHAT)?, r.u8(WHAT)?, r.u8(WHAT)?);
        }
        if packed.len() >= 7 {
            (d.hour, d.minute, d.second) = (r.u8(WHAT)?, r.u8(WHAT)?, r.u8(WHAT)?);
        }
        if packed.len() == 11 {
            d.micros = r.u32(WHAT)?;
        }
        Ok(d)
    }

    /// Appends the shortest packed form, with its length byte.
    pub fn pack(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(0);
        let has_time = (self.hour, self.minute, self.second, self.micros) != (0, 0, 0, 0);
        if has_time || (self.year, self.month, self.day) != (0, 0, 0) {
            out.extend_from_slice(&self.year.to_le_bytes());
            out.extend_from_slice(&[self.month, self.day]);
        }
        if has_time {
            out.extend_from_slice(&[self.hour, self.minute, self.second]);
        }
        if self.micros != 0 {
            out.extend_from_slice(&self.micros.to_le_bytes());
        }
        out[start] = (out.len() - start - 1) as u8;
    }

    /// Reads `YYYY-MM-DD`, with ` HH:MM:SS` and a fraction where given.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (date, time) = text
            .split_once([' ', 'T'])
            .map_or((text, None), |(d, t)| (d, Some(t)));
        let mut parts = date.split('-');
        let mut d = Self {
            year: number(parts.next()?)?,
            month: number(parts.next()?)?,
            day: number(parts.next()?)?,
            ..Self::default()
        };
        if parts.next().is_some() {
            return None;
        }
        if let Some(time) = time {
            let t = Time::parse(time.as_bytes()).filter(|t| !t.negative)?;
            d.hour = u8::try_from(t.hours).ok()?;
            (d.minute, d.second, d.micros) = (t.minute, t.second, t.micros);
        }
        Some(d)
    }

    /// Appends `YYYY-MM-DD`.
    pub fn put_date(self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{:04}-{:02}-{:02}", self.year, self.month, self.day).as_bytes());
    }

    /// Appends `YYYY-MM-DD HH:MM:SS` and `decimals` digits of the fraction (at most 6).
    pub fn put_datetime(self, out: &mut Vec<u8>, decimals: u8) {
        self.put_date(out);
        out.extend_from_slice(format!(" {:02}:{:02}:{:02}", self.hour, self.minute, self.second).as_bytes());
        put_fraction(out, self.micros, decimals);
    }
}

impl Time {
    /// Reads the packed form, without its length byte: 0, 8 or 12 bytes.
    pub fn unpack(packed: &[u8]) -> Result<Self, Malformed> {
        const WHAT: &str = "time value";
        let mut r = Reader::new(packed);
        let mut t = Self::default();
        if packed.is_empty() {
            return Ok(t);
        }
        if !matches!(packed.len(), 8 | 12) {
            return Err(Malformed(WHAT));
        }
        t.negative = r.u8(WHAT)? != 0;
        let days = r.u32(WHAT)?;
        let hours = u32::from(r.u8(WHAT)?);
        t.hours = days
            .checked_mul(24)
            .and_then(|d| d.checked_add(hours))
            .ok_or(Malformed(WHAT))?;
        (t.minute, t.second) = (r.u8(WHAT)?, r.u8(WHAT)?);
        if packed.len() == 12 {
            t.micros = r.u32(WHAT)?;
        }
        Ok(t)
    }

    /// Appends the shortest packed form, with its length byte.
    pub fn pack(self, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(0);
        if (self.hours, self.minute, self.second, self.micros) != (0, 0, 0, 0) {
            out.push(u8::from(self.negative));
            out.extend_from_slice(&(self.hours / 24).to_le_bytes());
            out.extend_from_slice(&[(self.hours % 24) as u8, self.minute, self.second]);
            if self.micros != 0 {
                out.extend_from_slice(&self.micros.to_le_bytes());
            }
        }
        out[start] = (out.len() - start - 1) as u8;
    }

    /// Reads `[-]HH:MM:SS`, with a fraction where given.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
        let (clock, fraction) = text.split_once('.').map_or((text, ""), |(c, f)| (c, f));
        let mut parts = clock.split(':');
        let hours = number(parts.next()?)?;
        let minute = number(parts.next()?)?;
        let second = number(parts.next()?)?;
        if parts.next().is_some() || fraction.len() > 6 {
            return None;
        }
        let micros = if fraction.is_empty() {
            0
        } else {
            number::<u32>(fraction)? * 10u32.pow(6 - fraction.len() as u32)
        };
        Some(Self {
            negative,
            hours,
            minute,
            second,
            micros,
        })
    }

    /// Appends `[-]HH:MM:SS` and `decimals` digits of the fraction (at most 6).
    pub fn put_text(self, out: &mut Vec<u8>, decimals: u8) {
        if self.negative {
            out.push(b'-');
        }
        out.extend_from_slice(format!("{:02}:{:02}:{:02}", self.hours, self.minute, self.second).as_bytes());
        put_fraction(out, self.micros, decimals);
    }
}

/// Digits only: `parse` alone would take a sign.
fn number<T: std::str::FromStr>(s: &str) -> Option<T> {
    if s.bytes().all(|b| b.is_ascii_digit()) {
        s.parse().ok()
    } else {
        None
    }
}

fn put_fraction(out: &mut Vec<u8>, micros: u32, decimals: u8) {
    // Columns that do not fix their digits (31) show all that are there.
    let decimals = match decimals {
        0..=6 => usize::from(decimals),
        _ if micros == 0 => 0,
        _ => 6,
    };
    if decimals > 0 {
        let all = format!(".{:06}", micros.min(999_999));
        out.extend_from_slice(&all.as_bytes()[..=decimals]);
    }
}
