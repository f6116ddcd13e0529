//! Exact decimals: a whole number of any size and the number of its digits that are a fraction.
//!
//! `SQLite` has no such type; it would round through a double. Decimals live in it as text, ordered by the collation
//! `my_dec`, and every operation on them is here.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;

/// The largest scale `MySQL` keeps.
pub(crate) const MAX_SCALE: u8 = 30;
/// The largest precision `MySQL` keeps.
pub(crate) const MAX_PRECISION: u8 = 65;

/// `units / 10^scale`.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    units: BigInt,
    scale: u8,
}

/// The text was no decimal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotDecimal;

fn power(n: u8) -> BigInt {
    BigInt::from(10u8).pow(u32::from(n))
}

impl Decimal {
    pub(crate) fn from_i128(v: i128) -> Self {
        Self {
            units: BigInt::from(v),
            scale: 0,
        }
    }

    pub(crate) fn scale(&self) -> u8 {
        self.scale
    }

    /// Digits in front of the point, zero counting as none.
    pub(crate) fn whole_digits(&self) -> usize {
        let whole = &self.units / power(self.scale);
        if whole == BigInt::ZERO {
            0
        } else {
            whole.magnitude().to_string().len()
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.units == BigInt::ZERO
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.units < BigInt::ZERO
    }

    /// At this scale exactly, half away from zero where digits go.
    pub(crate) fn rounded(&self, scale: u8) -> Self {
        if scale >= self.scale {
            return Self {
                units: &self.units * power(scale - self.scale),
                scale,
            };
        }
        let unit = power(self.scale - scale);
        let half = &unit / BigInt::from(2u8);
        let shifted = if self.is_negative() {
            &self.units - &half
        } else {
            &self.units + &half
        };
        Self {
            units: shifted / unit,
            scale,
        }
    }

    /// `ROUND(x, -n)`: whole tens, hundreds ... away from zero at the half.
    pub(crate) fn rounded_tens(&self, n: u8) -> Self {
        let whole = self.clone();
        let unit = power(n) * power(whole.scale);
        let half = &unit / BigInt::from(2u8);
        let shifted = if whole.is_negative() {
            &whole.units - &half
        } else {
            &whole.units + &half
        };
        Self {
            units: (shifted / &unit) * power(n),
            scale: 0,
        }
    }

    /// At this scale exactly, digits cut off.
    pub(crate) fn truncated(&self, scale: u8) -> Self {
        if scale >= self.scale {
            return self.rounded(scale);
        }
        Self {
            units: &self.units / power(self.scale - scale),
            scale,
        }
    }

    /// The largest whole number not above.
    pub(crate) fn floor(&self) -> Self {
        let cut = self.truncated(0);
        if self.is_negative() && cut.cmp(self) != Ordering::Equal {
            return Self {
                units: cut.units - 1,
                scale: 0,
            };
        }
        cut
    }

    /// The smallest whole number not below.
    pub(crate) fn ceil(&self) -> Self {
        self.neg().floor().neg()
    }

    pub(crate) fn neg(&self) -> Self {
        Self {
            units: -&self.units,
            scale: self.scale,
        }
    }

    pub(crate) fn abs(&self) -> Self {
        if self.is_negative() {
            self.neg()
        } else {
            self.clone()
        }
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, u8) {
        let scale = self.scale.max(other.scale);
        (self.rounded(scale).units, other.rounded(scale).units, scale)
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let (a, b, scale) = self.aligned(other);
        Self { units: a + b, scale }
    }

    pub(crate) fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let product = Self {
            units: &self.units * &other.units,
            scale: self.scale.saturating_add(other.scale),
        };
        if product.scale > MAX_SCALE {
            product.rounded(MAX_SCALE)
        } else {
            product
        }
    }

    /// At this scale, half away from zero; nothing when divided by zero.
    pub(crate) fn div(&self, other: &Self, scale: u8) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        // One digit more than wanted is not enough to round exactly, so compare the remainder with half the divisor.
        let top = &self.units * power(scale) * power(other.scale);
        let bottom = &other.units * power(self.scale);
        let mut quotient = &top / &bottom;
        let rest = &top % &bottom;
        if (&rest * 2u8).magnitude() >= bottom.magnitude() {
            if (top < BigInt::ZERO) == (bottom < BigInt::ZERO) {
                quotient += 1;
            } else {
                quotient -= 1;
            }
        }
        Some(Self {
            units: quotient,
            scale,
        })
    }

    /// The whole part of the quotient; nothing when divided by zero.
    pub(crate) fn div_whole(&self, other: &Self) -> Option<Self> {
        let (a, b, _) = self.aligned(other);
        (b != BigInt::ZERO).then(|| Self {
            units: a / b,
            scale: 0,
        })
    }

    /// The rest, with the dividend's sign; nothing when divided by zero.
    pub(crate) fn rem(&self, other: &Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other);
        (b != BigInt::ZERO).then(|| Self { units: a % b, scale })
    }

    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }

    pub(crate) fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Rounded to a whole number, when it fits.
    pub(crate) fn to_i128(&self) -> Option<i128> {
        i128::try_from(self.rounded(0).units).ok()
    }

    /// A double's shortest decimal form; nothing for infinities.
    pub(crate) fn from_f64(v: f64) -> Option<Self> {
        v.is_finite().then(|| format!("{v}").parse().ok()).flatten()
    }

    /// The number a text begins with, as `MySQL` reads `'12abc'`; zero if none.
    pub(crate) fn prefix(text: &str) -> Self {
        let text = text.trim_start();
        let (number, exponent) = numeric_prefix(text);
        if exponent {
            return number
                .parse::<f64>()
                .ok()
                .and_then(Self::from_f64)
                .unwrap_or_else(|| Self::from_i128(0));
        }
        number.parse().unwrap_or_else(|_| Self::from_i128(0))
    }

    /// The largest value of `DECIMAL(p,s)`.
    pub(crate) fn largest(precision: u8, scale: u8) -> Self {
        Self {
            units: power(precision) - 1,
            scale,
        }
    }
}

/// The longest prefix that is a number, and whether it has an exponent.
pub(crate) fn numeric_prefix(text: &str) -> (&str, bool) {
    let b = text.as_bytes();
    let digits = |mut i: usize| {
        while b.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let start = usize::from(matches!(b.first(), Some(b'+' | b'-')));
    let mut end = digits(start);
    let mut seen = end > start;
    if b.get(end) == Some(&b'.') {
        let after = digits(end + 1);
        seen |= after > end + 1;
        end = after;
    }
    if !seen {
        return ("", false);
    }
    if matches!(b.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            return (&text[..after], true);
        }
    }
    (&text[..end], false)
}

impl FromStr for Decimal {
    type Err = NotDecimal;

    fn from_str(s: &str) -> Result<Self, NotDecimal> {
        let body = s.strip_prefix(['+', '-']).unwrap_or(s);
        let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
        let plain = |t: &str| t.bytes().all(|c| c.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !plain(whole) || !plain(fraction) {
            return Err(NotDecimal);
        }
        let cut = &fraction[..fraction.len().min(usize::from(u8::MAX) - 1)];
        let mut units: BigInt = format!("0{whole}{cut}").parse().map_err(|_| NotDecimal)?;
        if s.starts_with('-') {
            units = -units;
        }
        let scale = u8::try_from(cut.len()).map_err(|_| NotDecimal)?;
        let read = Self { units, scale };
        Ok(if scale > MAX_SCALE {
            read.rounded(MAX_SCALE)
        } else {
            read
        })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.units.magnitude().to_string();
        let scale = usize::from(self.scale);
        if self.is_negative() {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{whole}.{fraction}")
    }
}

/// The order of two decimal texts; a text that is none sorts as the number it begins with.
pub(crate) fn compare_texts(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    Decimal::prefix(a).cmp(&Decimal::prefix(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(s: &str) -> Decimal {
        s.parse().unwrap()
    }

    #[test]
    fn sums_and_products_keep_every_digit() {
        assert_eq!(d("0.1").add(&d("0.2")).to_string(), "0.3");
        assert_eq!(
            d("99999999999999999999.99").add(&d("0.01")).to_string(),
            "100000000000000000000.00"
        );
        assert_eq!(d("1.50").mul(&d("-2.25")).to_string(), "-3.3750");
        assert_eq!(d("-0.05").to_string(), "-0.05");
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(d("2.5").rounded(0).to_string(), "3");
        assert_eq!(d("-2.5").rounded(0).to_string(), "-3");
        assert_eq!(d("1.005").rounded(2).to_string(), "1.01");
        assert_eq!(d("-1.2").floor().to_string(), "-2");
        assert_eq!(d("-1.2").ceil().to_string(), "-1");
        assert_eq!(d("155").rounded_tens(1).to_string(), "160");
    }

    #[test]
    fn division_rounds_at_the_asked_scale_and_refuses_zero() {
        assert_eq!(d("10").div(&d("3"), 4).unwrap().to_string(), "3.3333");
        assert_eq!(d("20").div(&d("3"), 4).unwrap().to_string(), "6.6667");
        assert_eq!(d("-1").div(&d("8"), 2).unwrap().to_string(), "-0.13");
        assert!(d("1").div(&d("0.00"), 4).is_none());
        assert_eq!(d("-7").rem(&d("3")).unwrap().to_string(), "-1");
    }

    #[test]
    fn texts_compare_as_numbers() {
        assert_eq!(compare_texts("10.5", "9.75"), Ordering::Greater);
        assert_eq!(compare_texts("1.0", "1.000"), Ordering::Equal);
        assert_eq!(compare_texts("-1", "0.00"), Ordering::Less);
    }

    #[test]
    fn a_prefix_is_read_as_the_server_reads_it() {
        assert_eq!(Decimal::prefix("12abc").to_string(), "12");
        assert_eq!(Decimal::prefix("abc").to_string(), "0");
        assert_eq!(Decimal::prefix(" -1.5e1x").to_string(), "-15");
        assert_eq!(Decimal::prefix("1e").to_string(), "1");
    }
}
