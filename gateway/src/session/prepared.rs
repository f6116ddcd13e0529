//! The client's prepared statements.
//!
//! They belong to the session. A tablet connection prepares a statement's text when it first runs it there; what the
//! client bound (types of an earlier execution, long data) is kept here and goes along with each execution.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use shardgate_wire::ColumnType;
use shardgate_wire::codec::Malformed;
use shardgate_wire::codec::binary::Value as WireValue;
use shardgate_wire::codec::execute::{Execute, Param, ParamType, put_execute};
use smallvec::SmallVec;

use super::target::Target;
use crate::exec::EncodeParams;
use crate::route::LegParams;

/// Bounds of a session's prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedLimits {
    /// Statements at most.
    pub statements: usize,
    /// Bytes of long data at most, over all statements.
    pub long_data: usize,
}

/// Why a prepared statement cannot be made or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreparedError {
    /// No statement of this id.
    #[error("Unknown prepared statement handler ({0}) given to mysqld_stmt_execute")]
    Unknown(u32),
    /// As many are prepared as may be.
    #[error("this session has {0} prepared statements already; close some")]
    TooMany(usize),
    /// More long data than the bound.
    #[error(
        "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_long_data_size' bytes"
    )]
    LongData,
    /// The execution's payload is malformed.
    #[error("Incorrect arguments to mysqld_stmt_execute ({0})")]
    Malformed(Malformed),
}

/// One statement.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Its text.
    pub sql: Bytes,
    /// How many parameters it takes.
    pub params: usize,
    /// Under which settings it was read: see [`Settings::reading`](crate::tablet::Settings::reading).
    pub reading: u64,
    /// What its names are names of: the session's target when it was prepared.
    pub target: Target,
    types: Vec<ParamType>,
    long: HashMap<u16, BytesMut>,
    /// Long data was over the bound: told at the next execution, since sending it has no answer.
    overflow: bool,
}

/// The statements of one session.
#[derive(Debug)]
pub(super) struct PreparedStatements {
    limits: PreparedLimits,
    next_id: u32,
    long_bytes: usize,
    statements: HashMap<u32, Prepared>,
}

/// One execution's values, owned: they are sent to every leg.
#[derive(Debug)]
pub(super) struct Bound {
    types: SmallVec<[ParamType; 8]>,
    values: SmallVec<[Value; 4]>,
}

#[derive(Debug)]
enum Value {
    Null,
    Bytes(Bytes),
}

impl PreparedStatements {
    /// None yet.
    pub(super) fn new(limits: PreparedLimits) -> Self {
        Self {
            limits,
            next_id: 0,
            long_bytes: 0,
            statements: HashMap::new(),
        }
    }

    /// Whether one more may be prepared.
    pub(super) fn check_room(&self) -> Result<(), PreparedError> {
        if self.statements.len() < self.limits.statements {
            Ok(())
        } else {
            Err(PreparedError::TooMany(self.limits.statements))
        }
    }

    /// Keeps a statement and gives its id.
    pub(super) fn insert(
        &mut self,
        sql: Bytes,
        params: usize,
        (reading, target): (u64, Target),
    ) -> Result<u32, PreparedError> {
        self.check_room()?;
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            if self.next_id != 0 && !self.statements.contains_key(&self.next_id) {
                break;
            }
        }
        let statement = Prepared {
            sql,
            params,
            reading,
            target,
            types: Vec::new(),
            long: HashMap::new(),
            overflow: false,
        };
        self.statements.insert(self.next_id, statement);
        Ok(self.next_id)
    }

    /// A statement's text.
    pub(super) fn get(&self, id: u32) -> Option<&Prepared> {
        self.statements.get(&id)
    }

    /// Forgets a statement.
    pub(super) fn close(&mut self, id: u32) {
        if let Some(statement) = self.statements.remove(&id) {
            self.long_bytes -= long_len(&statement);
        }
    }

    /// Forgets a statement's long data; false if there is no such statement.
    pub(super) fn reset(&mut self, id: u32) -> bool {
        let Some(statement) = self.statements.get_mut(&id) else {
            return false;
        };
        self.long_bytes -= long_len(statement);
        statement.long.clear();
        statement.overflow = false;
        true
    }

    /// Adds a piece of long data. Has no answer: what is wrong is told when the statement is executed.
    pub(super) fn add_long_data(&mut self, id: u32, param: u16, data: &[u8]) {
        let Some(statement) = self.statements.get_mut(&id) else {
            return;
        };
        if usize::from(param) >= statement.params {
            return;
        }
        if self.long_bytes + data.len() > self.limits.long_data {
            statement.overflow = true;
            return;
        }
        self.long_bytes += data.len();
        statement.long.entry(param).or_default().extend_from_slice(data);
    }

    /// Reads an execution's payload; its long data is used up.
    pub(super) fn bind(&mut self, id: u32, payload: &Bytes) -> Result<(Bytes, Bound), PreparedError> {
        let statement = self.statements.get_mut(&id).ok_or(PreparedError::Unknown(id))?;
        if statement.overflow {
            self.reset(id);
            return Err(PreparedError::LongData);
        }
        let long = std::mem::take(&mut statement.long);
        self.long_bytes -= long.values().map(BytesMut::len).sum::<usize>();
        let is_long = |i: usize| u16::try_from(i).is_ok_and(|i| long.contains_key(&i));
        let parsed = Execute::parse(payload, statement.params, &mut statement.types, is_long);
        let parsed = parsed.map_err(PreparedError::Malformed)?;
        let mut bound = Bound {
            types: SmallVec::from_slice(&statement.types),
            values: SmallVec::with_capacity(parsed.params.len()),
        };
        let mut long = long;
        for (i, param) in parsed.params.iter().enumerate() {
            bound.values.push(match param {
                Param::Null => Value::Null,
                Param::Value(bytes) => Value::Bytes(payload.slice_ref(bytes)),
                Param::LongData => {
                    // It travels inside the execution, so its type must be one of those that carry a length.
                    bound.types[i] = ParamType {
                        column_type: long_type(bound.types[i].column_type),
                        unsigned: false,
                    };
                    let data = u16::try_from(i)
                        .ok()
                        .and_then(|i| long.remove(&i))
                        .unwrap_or_default();
                    Value::Bytes(data.freeze())
                }
            });
        }
        Ok((statement.sql.clone(), bound))
    }
}

impl Bound {
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// A value and the type it was bound with. `None` past the last, or if its bytes do not fit its type.
    pub(super) fn value(&self, at: usize) -> Option<(ParamType, WireValue<'_>)> {
        let t = *self.types.get(at)?;
        let value = match self.values.get(at)? {
            Value::Null => WireValue::Null,
            Value::Bytes(bytes) => Param::Value(bytes).decode(t).ok()??,
        };
        Some((t, value))
    }

    fn pair(&self, at: usize) -> Option<(ParamType, Param<'_>)> {
        let t = *self.types.get(at)?;
        Some(match self.values.get(at)? {
            Value::Null => (t, Param::Null),
            Value::Bytes(bytes) => (t, Param::Value(bytes)),
        })
    }
}

impl EncodeParams for Bound {
    fn bytes(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Null => 0,
            Value::Bytes(bytes) => bytes.len(),
        };
        self.values.iter().map(of).sum()
    }

    fn encode(&self, statement_id: u32, which: &LegParams) -> Vec<u8> {
        let pairs: SmallVec<[_; 4]> = match which {
            LegParams::All => (0..self.values.len()).filter_map(|i| self.pair(i)).collect(),
            LegParams::List(list) => list.iter().filter_map(|i| self.pair(usize::from(*i))).collect(),
        };
        // Ids and flags, then for each parameter its type, a length where it has one, its value.
        let values = pairs.iter().map(|(_, param)| match param {
            Param::Value(bytes) => bytes.len(),
            Param::Null | Param::LongData => 0,
        });
        let mut out = Vec::with_capacity(16 + 12 * pairs.len() + values.sum::<usize>());
        put_execute(&mut out, statement_id, 0, pairs.into_iter());
        out
    }
}

fn long_len(statement: &Prepared) -> usize {
    statement.long.values().map(BytesMut::len).sum()
}

/// The type under which long data travels: its own if that carries a length, else a BLOB.
fn long_type(t: ColumnType) -> ColumnType {
    use shardgate_wire::protocol::BinaryShape;
    if t.binary_shape() == BinaryShape::LenEnc {
        t
    } else {
        ColumnType::Blob
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PreparedLimits = PreparedLimits {
        statements: 2,
        long_data: 8,
    };

    fn execute(id: u32, params: &[(ColumnType, Option<&[u8]>)]) -> Bytes {
        let pairs: Vec<_> = params
            .iter()
            .map(|(t, v)| {
                let t = ParamType {
                    column_type: *t,
                    unsigned: false,
                };
                (t, v.map_or(Param::Null, Param::Value))
            })
            .collect();
        let mut out = Vec::new();
        put_execute(&mut out, id, 0, pairs.into_iter());
        out.into()
    }

    #[test]
    fn a_leg_is_sent_only_the_parameters_it_takes() {
        let mut all = PreparedStatements::new(LIMITS);
        let id = all
            .insert(Bytes::from_static(b"SELECT ?, ?, ?"), 3, (0, Target::default()))
            .unwrap();
        let payload = execute(
            id,
            &[
                (ColumnType::LongLong, Some(&7i64.to_le_bytes())),
                (ColumnType::VarString, Some(b"abc")),
                (ColumnType::LongLong, None),
            ],
        );
        let (_, bound) = all.bind(id, &payload).unwrap();
        let body = bound.encode(9, &LegParams::List(vec![2, 1].into()));
        let mut types = Vec::new();
        let sent = Execute::parse(&body, 2, &mut types, |_| false).unwrap();
        assert_eq!(sent.statement_id, 9);
        assert_eq!(sent.params, [Param::Null, Param::Value(b"abc")]);
        assert_eq!(bound.value(0).unwrap().1, WireValue::Int(7));
    }

    #[test]
    fn statements_and_long_data_are_bounded() {
        let mut all = PreparedStatements::new(LIMITS);
        let id = all
            .insert(Bytes::from_static(b"SELECT ?"), 1, (0, Target::default()))
            .unwrap();
        all.insert(Bytes::from_static(b"SELECT 2"), 0, (0, Target::default()))
            .unwrap();
        assert_eq!(
            all.insert(Bytes::new(), 0, (0, Target::default())),
            Err(PreparedError::TooMany(2))
        );
        all.add_long_data(id, 0, b"12345");
        all.add_long_data(id, 0, b"6789");
        let payload = execute(id, &[(ColumnType::VarString, None)]);
        assert_eq!(all.bind(id, &payload).unwrap_err(), PreparedError::LongData);
        // Told once; then the statement is as new.
        assert!(all.bind(id, &payload).is_ok());
        assert_eq!(all.long_bytes, 0);
    }

    #[test]
    fn long_data_travels_inside_the_execution() {
        let mut all = PreparedStatements::new(LIMITS);
        let id = all
            .insert(Bytes::from_static(b"SELECT ?"), 1, (0, Target::default()))
            .unwrap();
        all.add_long_data(id, 0, b"123");
        all.add_long_data(id, 0, b"45");
        let mut out = Vec::new();
        let t = ParamType {
            column_type: ColumnType::Long,
            unsigned: false,
        };
        put_execute(&mut out, id, 0, [(t, Param::LongData)].into_iter());
        let (_, bound) = all.bind(id, &out.into()).unwrap();
        assert_eq!(bound.value(0).unwrap().1, WireValue::Bytes(b"12345"));
        assert_eq!(bound.value(0).unwrap().0.column_type, ColumnType::Blob);
    }

    #[test]
    fn closing_a_statement_gives_its_memory_back() {
        let mut all = PreparedStatements::new(LIMITS);
        let id = all
            .insert(Bytes::from_static(b"SELECT ?"), 1, (0, Target::default()))
            .unwrap();
        all.add_long_data(id, 0, b"12345678");
        all.close(id);
        assert_eq!(all.long_bytes, 0);
        assert!(matches!(
            all.bind(id, &Bytes::new()),
            Err(PreparedError::Unknown(_))
        ));
    }
}
