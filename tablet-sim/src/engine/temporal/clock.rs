//! TIME values: microseconds, up to 839 hours either way of zero.

use super::{DateTime, MICROS};

/// The longest TIME, 838:59:59.
pub(crate) const MAX_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * MICROS;

/// Up to `most` digits, all of them.
pub(super) fn number(text: &str, most: usize) -> Option<u32> {
    if text.is_empty() || text.len() > most || !text.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Splits off `.ffffff`; digits past the sixth round.
pub(super) fn fraction(text: &str) -> Option<(&str, u32)> {
    let Some((head, digits)) = text.split_once('.') else {
        return Some((text, 0));
    };
    if !digits.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let mut micro = 0;
    for i in 0..6 {
        micro = micro * 10 + u32::from(digits.as_bytes().get(i).map_or(0, |d| d - b'0'));
    }
    if digits.as_bytes().get(6).is_some_and(|d| *d >= b'5') && micro < 999_999 {
        micro += 1;
    }
    Some((head, micro))
}

pub(super) fn push_fraction(out: &mut String, micro: u32, fsp: u8) {
    if fsp > 0 {
        let digits = format!("{micro:06}");
        out.push('.');
        out.push_str(&digits[..usize::from(fsp.min(6))]);
    }
}

/// Microseconds rounded to this many digits of a second.
pub(crate) fn round_micros(micros: i64, fsp: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    (micros + unit / 2).div_euclid(unit) * unit
}

/// Reads a TIME: `10:20:30`, `-838:59:59.5`, `1 10:00`, `102030`.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.contains('-') && !text.starts_with('-') {
        return DateTime::parse(text).map(|d| d.time_micros());
    }
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (days, body) = match body.split_once(' ') {
        Some((days, rest)) => (number(days, 2)?, rest),
        None => (0, body),
    };
    let (clock, micro) = fraction(body)?;
    let (hour, minute, second) = if clock.contains(':') {
        let mut parts = clock.split(':');
        let hour = number(parts.next()?, 3)?;
        let minute = number(parts.next()?, 2)?;
        let second = parts.next().map_or(Some(0), |p| number(p, 2))?;
        if parts.next().is_some() {
            return None;
        }
        (hour, minute, second)
    } else {
        let n = number(clock, 7)?;
        (n / 10_000, n / 100 % 100, n % 100)
    };
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = i64::from(days) * 86_400 + i64::from(hour) * 3600 + i64::from(minute * 60 + second);
    let micros = seconds * MICROS + i64::from(micro);
    (micros <= MAX_TIME).then_some(if negative { -micros } else { micros })
}

/// A TIME as text, with exactly this many digits of a second.
pub(crate) fn time_text(micros: i64, fsp: u8) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let all = micros.unsigned_abs();
    let seconds = all / MICROS as u64;
    let mut out = format!(
        "{sign}{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    push_fraction(&mut out, (all % MICROS as u64) as u32, fsp);
    out
}
