//! `COM_STMT_EXECUTE`: reading a client's parameters without copying them, and writing some of them, in any order, for
//! a tablet.
//!
//! A client sends the parameters' types only when they changed; the server remembers them. A parameter whose value came
//! by `COM_STMT_SEND_LONG_DATA` has a type here, but no value.

use super::binary::{Value, decode};
use super::read::{Malformed, Reader};
use super::write::put_lenenc_str;
use crate::protocol::{BinaryShape, ColumnType};

/// A parameter's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParamType {
    /// Which layout its value has.
    pub column_type: ColumnType,
    /// Whether it has no sign.
    pub unsigned: bool,
}

/// A parameter's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// It came by `COM_STMT_SEND_LONG_DATA`, or goes that way.
    LongData,
    /// Its bytes, without any length in front.
    Value(&'a [u8]),
}

impl<'a> Param<'a> {
    /// Reads the value; `None` for one that came as long data, whose bytes the session keeps.
    pub fn decode(self, param_type: ParamType) -> Result<Option<Value<'a>>, Malformed> {
        match self {
            Self::Null => Ok(Some(Value::Null)),
            Self::LongData => Ok(None),
            Self::Value(bytes) => decode(param_type.column_type, param_type.unsigned, bytes).map(Some),
        }
    }
}

/// One execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execute<'a> {
    /// The statement's id.
    pub statement_id: u32,
    /// 0: send all rows; 1: open a read-only cursor. Other bits are of newer protocols.
    pub cursor: u8,
    /// The values, one a parameter.
    pub params: Vec<Param<'a>>,
}

impl<'a> Execute<'a> {
    /// Reads what follows the command byte, for a statement of `count` parameters. `types` is what an earlier execution
    /// left there, and is replaced if this one brings types. `is_long` says which parameters came as long data.
    pub fn parse(
        payload: &'a [u8],
        count: usize,
        types: &mut Vec<ParamType>,
        is_long: impl Fn(usize) -> bool,
    ) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let statement_id = r.u32("statement id")?;
        let cursor = r.u8("cursor flags")?;
        r.u32("iteration count")?;
        let mut params = Vec::with_capacity(count);
        if count == 0 {
            return Ok(Self {
                statement_id,
                cursor,
                params,
            });
        }
        let nulls = r.take(count.div_ceil(8), "NULL bitmap")?;
        if r.u8("new types flag")? == 1 {
            *types = read_types(&mut r, count)?;
        } else if types.len() != count {
            return Err(Malformed("parameters without types"));
        }
        for (i, t) in types.iter().enumerate() {
            let null = nulls.get(i / 8).is_some_and(|b| b >> (i % 8) & 1 != 0);
            params.push(if is_long(i) {
                Param::LongData
            } else if null || t.column_type == ColumnType::Null {
                Param::Null
            } else {
                Param::Value(super::binary::take_bytes(&mut r, t.column_type.binary_shape())?)
            });
        }
        if r.is_empty() {
            Ok(Self {
                statement_id,
                cursor,
                params,
            })
        } else {
            Err(Malformed("parameters"))
        }
    }
}

fn read_types(r: &mut Reader<'_>, count: usize) -> Result<Vec<ParamType>, Malformed> {
    const WHAT: &str = "parameter type";
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        let column_type = ColumnType::from_u8(r.u8(WHAT)?).ok_or(Malformed(WHAT))?;
        types.push(ParamType {
            column_type,
            unsigned: r.u8(WHAT)? & 0x80 != 0,
        });
    }
    Ok(types)
}

/// Appends what follows the command byte: these parameters, in this order, with their types.
pub fn put_execute<'a>(
    out: &mut Vec<u8>,
    statement_id: u32,
    cursor: u8,
    params: impl ExactSizeIterator<Item = (ParamType, Param<'a>)> + Clone,
) {
    out.extend_from_slice(&statement_id.to_le_bytes());
    out.push(cursor);
    out.extend_from_slice(&1u32.to_le_bytes());
    let count = params.len();
    if count == 0 {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    out.push(1);
    for (i, (t, param)) in params.clone().enumerate() {
        out.extend_from_slice(&[t.column_type as u8, if t.unsigned { 0x80 } else { 0 }]);
        if param == Param::Null {
            out[nulls + i / 8] |= 1 << (i % 8);
        }
    }
    for (t, param) in params {
        let Param::Value(bytes) = param else { continue };
        match t.column_type.binary_shape() {
            BinaryShape::Null => {}
            BinaryShape::Fixed(_) => out.extend_from_slice(bytes),
            BinaryShape::Temporal => {
                out.push(bytes.len() as u8);
                out.extend_from_slice(bytes);
            }
            BinaryShape::LenEnc => put_lenenc_str(out, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn param() -> impl Strategy<Value = (ParamType, Option<Vec<u8>>, bool)> {
        let types = any::<u8>().prop_filter_map("no such type", ColumnType::from_u8);
        (
            types,
            any::<bool>(),
            prop::collection::vec(any::<u8>(), 0..300),
            0..10u8,
        )
            .prop_map(|(t, unsigned, bytes, kind)| {
                let bytes = match t.binary_shape() {
                    BinaryShape::Null => None,
                    BinaryShape::Fixed(n) => {
                        Some(bytes.iter().copied().chain([7; 8]).take(n.into()).collect())
                    }
                    BinaryShape::Temporal => Some(bytes.into_iter().take(255).collect()),
                    BinaryShape::LenEnc => Some(bytes),
                };
                (
                    ParamType {
                        column_type: t,
                        unsigned,
                    },
                    bytes.filter(|_| kind > 1),
                    kind == 0,
                )
            })
    }

    fn view(p: &(ParamType, Option<Vec<u8>>, bool)) -> (ParamType, Param<'_>) {
        let value = match p {
            (_, _, true) => Param::LongData,
            (_, Some(bytes), _) => Param::Value(bytes),
            (_, None, _) => Param::Null,
        };
        (p.0, value)
    }

    proptest! {
        #[test]
        fn parameters_come_back_and_types_are_remembered(all in prop::collection::vec(param(), 0..40)) {
            let mut out = Vec::new();
            put_execute(&mut out, 9, 1, all.iter().map(view));
            let mut types = Vec::new();
            let got = Execute::parse(&out, all.len(), &mut types, |i| all[i].2).unwrap();
            prop_assert_eq!((got.statement_id, got.cursor), (9, 1));
            let want: Vec<_> = all.iter().map(|p| view(p).1).collect();
            prop_assert_eq!(&got.params, &want);
            prop_assert_eq!(&types, &all.iter().map(|p| p.0).collect::<Vec<_>>());
            // The same without types, as a client sends it the second time.
            if !all.is_empty() {
                let at = 9 + all.len().div_ceil(8);
                let mut again = out.clone();
                again[at] = 0;
                again.drain(at + 1..at + 1 + 2 * all.len());
                prop_assert_eq!(&Execute::parse(&again, all.len(), &mut types, |i| all[i].2).unwrap().params, &want);
                prop_assert!(Execute::parse(&again, all.len(), &mut Vec::new(), |i| all[i].2).is_err());
            }
        }

        #[test]
        fn any_bytes_are_parsed_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0..3000usize, long in any::<bool>(),
        ) {
            let _ = Execute::parse(&bytes, count, &mut Vec::new(), |_| long);
            let _ = Execute::parse(&bytes, count % 8, &mut Vec::new(), |_| long);
        }
    }

    #[test]
    fn as_many_parameters_as_the_protocol_counts_come_back() {
        let count = usize::from(u16::MAX);
        let t = ParamType {
            column_type: ColumnType::LongLong,
            unsigned: true,
        };
        let bytes: Vec<_> = (0..count as u64).map(u64::to_le_bytes).collect();
        let mut out = Vec::new();
        put_execute(&mut out, 1, 0, bytes.iter().map(|b| (t, Param::Value(b))));
        let mut types = Vec::new();
        let got = Execute::parse(&out, count, &mut types, |_| false).unwrap();
        assert_eq!(got.params.len(), count);
        assert_eq!(
            got.params[count - 1].decode(types[count - 1]),
            Ok(Some(Value::UInt(count as u64 - 1)))
        );
    }

    #[test]
    fn a_recorded_execution_is_read() {
        // mysql_async: EXECUTE of `SELECT ?, ?, ?` with (1i64, NULL, "abc").
        let bytes = b"\x01\0\0\0\x00\x01\0\0\0\x02\x01\x08\x00\x06\x00\xfd\x00\x01\0\0\0\0\0\0\0\x03abc";
        let mut types = Vec::new();
        let got = Execute::parse(bytes, 3, &mut types, |_| false).unwrap();
        let values: Vec<_> = got
            .params
            .iter()
            .zip(&types)
            .map(|(p, t)| p.decode(*t).unwrap().unwrap())
            .collect();
        assert_eq!(values, [Value::Int(1), Value::Null, Value::Bytes(b"abc")]);
    }
}
