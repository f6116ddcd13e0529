//! Durations and sizes as people write them: `"250ms"`, `"30s"`, `"64MiB"`. A bare number would leave its unit to the
//! reader's guess, so durations refuse it; a bare size is bytes.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error, Visitor};

/// For `#[serde(deserialize_with)]` on a [`Duration`].
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = Duration;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "a duration with its unit in quotes, as in \"250ms\", \"30s\", \"5m\", \"1h\" or \"0s\"",
            )
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse_duration(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Text)
}

/// For `#[serde(deserialize_with)]` on a [`Duration`] that may be left out.
pub(super) fn optional_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// For `#[serde(deserialize_with)]` on a size in bytes.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = usize;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a size, as in \"64MiB\", \"16KiB\", \"1GiB\" or a number of bytes")
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
            parse_size(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
        fn visit_i64<E: Error>(self, bytes: i64) -> Result<usize, E> {
            usize::try_from(bytes).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(bytes), &self))
        }
        fn visit_u64<E: Error>(self, bytes: u64) -> Result<usize, E> {
            usize::try_from(bytes)
                .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(bytes), &self))
        }
    }
    deserializer.deserialize_any(Text)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

/// Reads a whole number with a unit: `ms`, `s`, `m`, `h`, `d`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text.trim())?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3_600),
        "d" => seconds(86_400),
        _ => None,
    }
}

/// Reads a whole number of bytes, or one with a unit: `B`, `KiB`, `MiB`, `GiB`.
#[must_use]
pub fn parse_size(text: &str) -> Option<usize> {
    let (number, unit) = split(text.trim())?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    usize::try_from(number.checked_mul(1 << shift)?).ok()
}

/// A duration in the largest unit that shows it whole.
#[must_use]
pub fn show_duration(d: Duration) -> String {
    let (seconds, rest) = (d.as_secs(), d.subsec_millis());
    match (seconds, rest) {
        (_, 1..) => format!("{}ms", d.as_millis()),
        (s, 0) if s > 0 && s % 3_600 == 0 => format!("{}h", s / 3_600),
        (s, 0) if s > 0 && s % 60 == 0 => format!("{}m", s / 60),
        (s, 0) => format!("{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_as_written() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("5 m"), Some(Duration::from_mins(5)));
        assert_eq!(parse_duration("0s"), Some(Duration::ZERO));
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("17"), Some(17));
    }

    #[test]
    fn what_leaves_a_doubt_is_refused() {
        for text in [
            "30",
            "s",
            "",
            "-1s",
            "1.5s",
            "30sec",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        for text in ["64MB", "64M", "", "-1", "17179869184GiB", "MiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_print_as_they_are_written() {
        for text in ["250ms", "30s", "5m", "1h", "0s", "90s"] {
            assert_eq!(show_duration(parse_duration(text).unwrap()), text);
        }
    }
}
