//! Exact decimal numbers of any length, as `MySQL` writes them.
//!
//! A global aggregate combines one value a leg, so speed does not matter here and exactness does: sums are done on
//! decimal digits, and a value keeps the scale it came with.

use std::cmp::Ordering;

use smallvec::SmallVec;

/// A DECIMAL's digits at most, in `MySQL` and `MariaDB`.
pub(super) const MAX_DIGITS: usize = 65;

/// A signed decimal number with a scale.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Number {
    negative: bool,
    /// Most significant first, each 0 to 9, without leading zeros; empty is zero.
    digits: SmallVec<[u8; 40]>,
    /// How many of the digits stand behind the point.
    scale: usize,
}

impl Number {
    /// Reads `-12.340`. No exponents, no blanks.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (negative, body) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] | rest => (false, rest),
        };
        let mut digits = SmallVec::new();
        let mut scale = None;
        for &b in body {
            match (b, &mut scale) {
                (b'.', None) => scale = Some(0),
                (b'0'..=b'9', at) => {
                    digits.push(b - b'0');
                    if let Some(n) = at {
                        *n += 1;
                    }
                }
                _ => return None,
            }
        }
        if digits.is_empty() {
            return None;
        }
        Some(
            Self {
                negative,
                digits,
                scale: scale.unwrap_or(0),
            }
            .trimmed(),
        )
    }

    /// An integer.
    pub(super) fn from_i128(v: i128) -> Self {
        let digits = v.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect();
        Self {
            negative: v < 0,
            digits,
            scale: 0,
        }
        .trimmed()
    }

    /// The integer it is, if it is one and fits.
    pub(super) fn to_i128(&self) -> Option<i128> {
        if self.scale > 0 {
            return None;
        }
        let magnitude = self
            .digits
            .iter()
            .try_fold(0i128, |v, d| v.checked_mul(10)?.checked_add(i128::from(*d)))?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// Digits in all, those behind the point included.
    pub(super) fn precision(&self) -> usize {
        self.digits.len().max(self.scale)
    }

    /// The exact sum.
    pub(super) fn add(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.rescaled(scale), other.rescaled(scale));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, add_digits(&a, &b))
        } else {
            match cmp_digits(&a, &b) {
                Ordering::Less => (other.negative, sub_digits(&b, &a)),
                Ordering::Equal | Ordering::Greater => (self.negative, sub_digits(&a, &b)),
            }
        };
        Self {
            negative,
            digits,
            scale,
        }
        .trimmed()
    }

    fn rescaled(&self, scale: usize) -> SmallVec<[u8; 40]> {
        let mut digits = self.digits.clone();
        if !digits.is_empty() {
            digits.extend(std::iter::repeat_n(0, scale.saturating_sub(self.scale)));
        }
        digits
    }

    fn trimmed(mut self) -> Self {
        let zeros = self.digits.iter().take_while(|d| **d == 0).count();
        self.digits.drain(..zeros);
        self.negative &= !self.digits.is_empty();
        self
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        let magnitude = || cmp_digits(&self.rescaled(scale), &other.rescaled(scale));
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        if self.negative {
            f.write_char('-')?;
        }
        let total = self.digits.len().max(self.scale + 1);
        let padding = total - self.digits.len();
        for (i, d) in std::iter::repeat_n(&0, padding).chain(&self.digits).enumerate() {
            if i == total - self.scale {
                f.write_char('.')?;
            }
            f.write_char(char::from(b'0' + d))?;
        }
        Ok(())
    }
}

/// Compares two digit strings without leading zeros.
fn cmp_digits(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn add_digits(left: &[u8], right: &[u8]) -> SmallVec<[u8; 40]> {
    let digit = |number: &[u8], place: usize| number.iter().rev().nth(place).copied().unwrap_or(0);
    let mut out: SmallVec<[u8; 40]> = SmallVec::new();
    let mut carry = 0;
    for place in 0..left.len().max(right.len()) {
        let sum = digit(left, place) + digit(right, place) + carry;
        out.push(sum % 10);
        carry = sum / 10;
    }
    if carry > 0 {
        out.push(carry);
    }
    out.reverse();
    out
}

/// `a - b` where `a >= b`.
fn sub_digits(a: &[u8], b: &[u8]) -> SmallVec<[u8; 40]> {
    let mut borrow = 0;
    let mut out: SmallVec<[u8; 40]> = SmallVec::new();
    let mut y = b.iter().rev();
    for p in a.iter().rev() {
        let take = y.next().unwrap_or(&0) + borrow;
        borrow = u8::from(*p < take);
        out.push(p + 10 * borrow - take);
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(s: &str) -> Number {
        Number::parse(s.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_print_as_the_server_writes_them() {
        for s in [
            "0",
            "-1",
            "0.50",
            "-0.05",
            "123.456000",
            "340282366920938463463374607431768211456789",
        ] {
            assert_eq!(n(s).to_string(), s);
        }
        assert_eq!(n("-0.00").to_string(), "0.00");
        assert_eq!(n("007").to_string(), "7");
    }

    #[test]
    fn what_is_not_a_plain_decimal_is_refused() {
        for s in ["", "-", ".", "1e5", "1.2.3", "12 ", "x"] {
            assert_eq!(Number::parse(s.as_bytes()), None, "{s:?}");
        }
    }

    #[test]
    fn sums_carry_beyond_any_machine_word() {
        let big = "99999999999999999999999999999999999999999999999999";
        assert_eq!(n(big).add(&n("1")).to_string(), format!("1{}", "0".repeat(50)));
        assert_eq!(n("0.75").add(&n("-1.5")).to_string(), "-0.75");
    }

    proptest! {
        #[test]
        fn sums_and_order_agree_with_machine_integers(a in any::<i64>(), b in any::<i64>()) {
            let (x, y) = (Number::from_i128(a.into()), Number::from_i128(b.into()));
            prop_assert_eq!(x.add(&y).to_i128(), Some(i128::from(a) + i128::from(b)));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(n(&a.to_string()), x);
        }
    }
}
