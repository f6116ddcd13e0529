//! The functions and collations a session's `SQLite` connection is given.
//!
//! The translator knows every argument's type, so each function takes exactly one form and does one thing; names
//! begin with `my_` and are never seen by a client.

mod aggregate;
mod numeric;
mod temporal;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;

use super::collate::Collation;
use super::decimal::{self, Decimal};
use super::value::Value;
use crate::error::{SqlError, SqlResult, into_sqlite};
use crate::rng::Rng;

/// Whether the running statement was killed, and whether `SQLite` may be interrupted in it. A statement that writes may
/// not: `SQLite` would give up the whole transaction. It is stopped between its rows.
#[derive(Debug, Default)]
struct Kill {
    killed: bool,
    interruptible: bool,
}

/// What functions share with their session.
#[derive(Debug)]
pub(crate) struct Shared {
    /// A KILL QUERY for the statement that runs; wakes a SLEEP.
    kill: Mutex<Kill>,
    wake: Condvar,
    /// `LAST_INSERT_ID(expr)`'s argument; 0 if it was not called.
    pub(crate) explicit_last_id: AtomicU64,
    rng: Mutex<Rng>,
}

impl Shared {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            kill: Mutex::new(Kill::default()),
            wake: Condvar::new(),
            explicit_last_id: AtomicU64::new(0),
            rng: Mutex::new(Rng::new(seed)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kill> {
        self.kill.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the running statement as killed, wakes its SLEEP, and interrupts `SQLite` where that is safe.
    pub(crate) fn kill(&self, interrupt: impl FnOnce()) {
        let mut state = self.lock();
        state.killed = true;
        if state.interruptible {
            interrupt();
        }
        drop(state);
        self.wake.notify_all();
    }

    /// Forgets a kill that came between statements.
    pub(crate) fn clear_kill(&self) {
        *self.lock() = Kill::default();
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.lock().killed
    }

    /// From here to [`Self::leave`] only rows are read.
    pub(crate) fn enter(&self) -> SqlResult<()> {
        let mut state = self.lock();
        if state.killed {
            return Err(SqlError::interrupted());
        }
        state.interruptible = true;
        Ok(())
    }

    pub(crate) fn leave(&self) {
        self.lock().interruptible = false;
    }

    /// The same seed gives the same `RAND()` and `UUID()`.
    pub(crate) fn reseed(&self, seed: u64) {
        self.with_rng(|rng| *rng = Rng::new(seed));
    }

    pub(crate) fn draw(&self) -> u64 {
        self.with_rng(Rng::next_u64)
    }

    /// Waits; whether the whole time passed.
    fn sleep(&self, time: Duration) -> bool {
        let waited = self
            .wake
            .wait_timeout_while(self.lock(), time, |state| !state.killed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.killed
    }

    fn with_rng<T>(&self, f: impl FnOnce(&mut Rng) -> T) -> T {
        f(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One call's arguments.
pub(crate) struct Args<'a, 'b>(&'a Context<'b>);

impl Args<'_, '_> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    pub(crate) fn is_null(&self, i: usize) -> bool {
        matches!(self.0.get_raw(i), ValueRef::Null)
    }
    pub(crate) fn int(&self, i: usize) -> i128 {
        match self.0.get_raw(i) {
            ValueRef::Integer(v) => i128::from(v),
            ValueRef::Real(v) => v as i128,
            ValueRef::Blob(b) => <[u8; 8]>::try_from(b).map_or(0, |w| i128::from(u64::from_be_bytes(w))),
            ValueRef::Text(_) => self.decimal(i).to_i128().unwrap_or(0),
            ValueRef::Null => 0,
        }
    }
    pub(crate) fn double(&self, i: usize) -> f64 {
        match self.0.get_raw(i) {
            ValueRef::Real(v) => v,
            ValueRef::Text(_) => super::value::text_number(&self.text(i)),
            #[allow(clippy::cast_precision_loss)] // that is what a conversion to double is
            _ => self.int(i) as f64,
        }
    }
    pub(crate) fn text(&self, i: usize) -> String {
        match self.0.get_raw(i) {
            ValueRef::Text(b) | ValueRef::Blob(b) => String::from_utf8_lossy(b).into_owned(),
            ValueRef::Integer(v) => v.to_string(),
            ValueRef::Real(v) => super::value::double_text(v),
            ValueRef::Null => String::new(),
        }
    }
    pub(crate) fn bytes(&self, i: usize) -> Vec<u8> {
        match self.0.get_raw(i) {
            ValueRef::Text(b) | ValueRef::Blob(b) => b.to_vec(),
            _ => self.text(i).into_bytes(),
        }
    }
    pub(crate) fn decimal(&self, i: usize) -> Decimal {
        match self.0.get_raw(i) {
            ValueRef::Integer(v) => Decimal::from_i128(i128::from(v)),
            ValueRef::Blob(_) => Decimal::from_i128(self.int(i)),
            _ => Decimal::prefix(&self.text(i)),
        }
    }
    pub(crate) fn collation(&self, i: usize) -> Collation {
        if self.int(i) == 1 {
            Collation::Ci
        } else {
            Collation::Bin
        }
    }
    pub(crate) fn raw(&self, i: usize) -> ValueRef<'_> {
        self.0.get_raw(i)
    }
}

type Body = fn(&Args<'_, '_>) -> SqlResult<Value>;

/// Registers a function that gives NULL for any NULL argument. `n` is -1 for any number.
fn strict(conn: &Connection, name: &str, n: i32, body: Body) -> rusqlite::Result<()> {
    plain(conn, name, n, FunctionFlags::SQLITE_DETERMINISTIC, move |args| {
        if (0..args.len()).any(|i| args.is_null(i)) {
            return Ok(Value::Null);
        }
        body(args)
    })
}

/// Registers a function that sees its NULLs.
fn plain(
    conn: &Connection,
    name: &str,
    n: i32,
    flags: FunctionFlags,
    body: impl Fn(&Args<'_, '_>) -> SqlResult<Value> + Send + 'static,
) -> rusqlite::Result<()> {
    conn.create_scalar_function(name, n, flags | FunctionFlags::SQLITE_UTF8, move |ctx| {
        body(&Args(ctx)).map_err(|e| into_sqlite(&e))
    })
}

/// Gives a connection everything the translator uses.
pub(crate) fn register(conn: &Connection, shared: &Arc<Shared>) -> rusqlite::Result<()> {
    for collation in [Collation::Ci, Collation::Bin] {
        conn.create_collation(collation.sqlite(), move |a, b| collation.compare(a, b))?;
    }
    conn.create_collation("my_dec", decimal::compare_texts)?;
    numeric::register(conn)?;
    text::register(conn)?;
    temporal::register(conn)?;
    aggregate::register(conn)?;
    stateful(conn, shared)?;
    let det = FunctionFlags::SQLITE_DETERMINISTIC;
    plain(conn, "my_raise", 3, FunctionFlags::empty(), |a| {
        let state = a.bytes(1).try_into().unwrap_or(*b"HY000");
        Err(SqlError::new(
            u16::try_from(a.int(0)).unwrap_or(1105),
            state,
            a.text(2),
        ))
    })?;
    // A key under which two values are the same exactly if the comparison says so; for DISTINCT over several columns.
    plain(conn, "my_tuple", -1, det, |a| {
        let mut out = Vec::new();
        for i in 0..a.len() {
            if a.is_null(i) {
                return Ok(Value::Null);
            }
            let part = a.bytes(i);
            out.extend_from_slice(&(part.len() as u64).to_be_bytes());
            out.extend_from_slice(&part);
        }
        Ok(Value::Bytes(out))
    })?;
    strict(conn, "my_key", 2, |a| {
        let text = a.text(0);
        let text = text.trim_end_matches(' ');
        Ok(match a.int(1) {
            0 => Value::Bytes(text.as_bytes().to_vec()),
            1 => Value::Bytes(
                text.chars()
                    .flat_map(|c| super::collate::weight(c).to_be_bytes())
                    .collect(),
            ),
            _ => {
                let plain = a.decimal(0).rounded(decimal::MAX_SCALE).to_string();
                Value::Bytes(plain.into_bytes())
            }
        })
    })
}

/// Functions that touch the session.
fn stateful(conn: &Connection, shared: &Arc<Shared>) -> rusqlite::Result<()> {
    let state = Arc::clone(shared);
    plain(conn, "my_sleep", 1, FunctionFlags::empty(), move |a| {
        let seconds = a.double(0);
        if a.is_null(0) || seconds < 0.0 {
            return Err(SqlError::new(1210, *b"HY000", "Incorrect arguments to sleep."));
        }
        // Longer than any run, and within what a wait takes.
        let time = Duration::from_secs_f64(seconds.min(1e8));
        if state.sleep(time) {
            Ok(Value::Int(0))
        } else {
            Err(SqlError::interrupted())
        }
    })?;
    let state = Arc::clone(shared);
    plain(conn, "my_last_id", 1, FunctionFlags::empty(), move |a| {
        let id = u64::try_from(a.int(0)).unwrap_or(0);
        state.explicit_last_id.store(id, Ordering::Relaxed);
        Ok(Value::from_i128(i128::from(id)).unwrap_or(Value::Null))
    })?;
    let state = Arc::clone(shared);
    plain(conn, "my_rand", 0, FunctionFlags::empty(), move |_| {
        Ok(Value::Double(state.with_rng(Rng::unit)))
    })?;
    let state = Arc::clone(shared);
    plain(conn, "my_uuid", 0, FunctionFlags::empty(), move |_| {
        let (a, b) = state.with_rng(|r| (r.next_u64(), r.next_u64()));
        Ok(Value::text(format!(
            "{:08x}-{:04x}-1{:03x}-{:04x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            (b >> 48 & 0x3fff) | 0x8000,
            b & 0xffff_ffff_ffff
        )))
    })
}
