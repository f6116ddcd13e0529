//! Aggregates that `SQLite` has not: exact sums and averages, `GROUP_CONCAT`, deviations, bits.

use rusqlite::Connection;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;

use super::super::decimal::Decimal;
use super::super::value::Value;
use super::Args;
use crate::error::{SqlError, into_sqlite};

/// The longest `GROUP_CONCAT`: MariaDB's default for `group_concat_max_len`.
const MAX_CONCAT: usize = 1 << 20;

pub(super) fn register(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_aggregate_function("my_sum", 1, flags, Sum { average: false })?;
    conn.create_aggregate_function("my_avg", -1, flags, Sum { average: true })?;
    conn.create_aggregate_function("my_gconcat", 1, flags, Concat)?;
    for (name, kind) in [
        (
            "my_var_pop",
            Spread {
                sample: false,
                root: false,
            },
        ),
        (
            "my_var_samp",
            Spread {
                sample: true,
                root: false,
            },
        ),
        (
            "my_std_pop",
            Spread {
                sample: false,
                root: true,
            },
        ),
        (
            "my_std_samp",
            Spread {
                sample: true,
                root: true,
            },
        ),
    ] {
        conn.create_aggregate_function(name, 1, flags, kind)?;
    }
    for (name, kind) in [
        ("my_bit_and", Bits::And),
        ("my_bit_or", Bits::Or),
        ("my_bit_xor", Bits::Xor),
    ] {
        conn.create_aggregate_function(name, 1, flags, kind)?;
    }
    Ok(())
}

/// SUM and AVG over exact numbers.
struct Sum {
    average: bool,
}

#[derive(Default)]
struct SumState {
    total: Option<Decimal>,
    count: i128,
    scale: u8,
}

impl Aggregate<SumState, Value> for Sum {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<SumState> {
        Ok(SumState::default())
    }
    fn step(&self, ctx: &mut Context<'_>, state: &mut SumState) -> rusqlite::Result<()> {
        if matches!(ctx.get_raw(0), ValueRef::Null) {
            return Ok(());
        }
        let args = Args(ctx);
        let value = args.decimal(0);
        if self.average {
            // The result's scale comes packed in front when DISTINCT allows one argument only.
            state.scale = u8::try_from(args.int(1).clamp(0, 30)).unwrap_or(4);
        }
        state.count += 1;
        state.total = Some(match state.total.take() {
            Some(total) => total.add(&value),
            None => value,
        });
        Ok(())
    }
    fn finalize(&self, _: &mut Context<'_>, state: Option<SumState>) -> rusqlite::Result<Value> {
        let Some(SumState {
            total: Some(total),
            count,
            scale,
        }) = state
        else {
            return Ok(Value::Null);
        };
        let out = if self.average {
            total.div(&Decimal::from_i128(count), scale)
        } else {
            Some(total)
        };
        Ok(out.map_or(Value::Null, |d| Value::text(d.to_string())))
    }
}

/// `GROUP_CONCAT`. The separator travels in front of each value as `length:separator`, since DISTINCT allows one
/// argument only.
struct Concat;

impl Aggregate<Option<String>, Value> for Concat {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<Option<String>> {
        Ok(None)
    }
    fn step(&self, ctx: &mut Context<'_>, state: &mut Option<String>) -> rusqlite::Result<()> {
        if matches!(ctx.get_raw(0), ValueRef::Null) {
            return Ok(());
        }
        let packed = Args(ctx).text(0);
        let split = packed
            .split_once(':')
            .and_then(|(n, rest)| Some((n.parse::<usize>().ok()?, rest)))
            .and_then(|(n, rest)| Some((rest.get(..n)?, rest.get(n..)?)));
        let Some((separator, value)) = split else {
            return Err(into_sqlite(&SqlError::internal(
                "GROUP_CONCAT without its separator",
            )));
        };
        match state {
            Some(out) => {
                if out.len() + separator.len() + value.len() > MAX_CONCAT {
                    return Err(into_sqlite(&SqlError::new(
                        1260,
                        *b"HY000",
                        "Row was cut by GROUP_CONCAT()",
                    )));
                }
                out.push_str(separator);
                out.push_str(value);
            }
            None => *state = Some(value.to_owned()),
        }
        Ok(())
    }
    fn finalize(&self, _: &mut Context<'_>, state: Option<Option<String>>) -> rusqlite::Result<Value> {
        Ok(state.flatten().map_or(Value::Null, Value::Text))
    }
}

/// Variance and standard deviation, by Welford's recurrence.
#[derive(Clone, Copy)]
struct Spread {
    sample: bool,
    root: bool,
}

#[derive(Default)]
struct SpreadState {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Aggregate<SpreadState, Value> for Spread {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<SpreadState> {
        Ok(SpreadState::default())
    }
    fn step(&self, ctx: &mut Context<'_>, state: &mut SpreadState) -> rusqlite::Result<()> {
        if matches!(ctx.get_raw(0), ValueRef::Null) {
            return Ok(());
        }
        let x = Args(ctx).double(0);
        state.count += 1.0;
        let delta = x - state.mean;
        state.mean += delta / state.count;
        state.squares += delta * (x - state.mean);
        Ok(())
    }
    fn finalize(&self, _: &mut Context<'_>, state: Option<SpreadState>) -> rusqlite::Result<Value> {
        let state = state.unwrap_or_default();
        let divisor = if self.sample {
            state.count - 1.0
        } else {
            state.count
        };
        if divisor <= 0.0 {
            return Ok(Value::Null);
        }
        let variance = state.squares / divisor;
        Ok(Value::Double(if self.root { variance.sqrt() } else { variance }))
    }
}

/// `BIT_AND`, `BIT_OR`, `BIT_XOR`.
#[derive(Clone, Copy)]
enum Bits {
    And,
    Or,
    Xor,
}

impl Aggregate<u64, Value> for Bits {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<u64> {
        Ok(self.neutral())
    }
    fn step(&self, ctx: &mut Context<'_>, state: &mut u64) -> rusqlite::Result<()> {
        if !matches!(ctx.get_raw(0), ValueRef::Null) {
            let v = Args(ctx).int(0) as u64;
            *state = match self {
                Self::And => *state & v,
                Self::Or => *state | v,
                Self::Xor => *state ^ v,
            };
        }
        Ok(())
    }
    fn finalize(&self, _: &mut Context<'_>, state: Option<u64>) -> rusqlite::Result<Value> {
        let bits = state.unwrap_or_else(|| self.neutral());
        Ok(Value::from_i128(i128::from(bits)).unwrap_or(Value::Null))
    }
}

impl Bits {
    const fn neutral(self) -> u64 {
        match self {
            Self::And => u64::MAX,
            Self::Or | Self::Xor => 0,
        }
    }
}
