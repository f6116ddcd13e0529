//! Changes of session state inside OK packets (`CLIENT_SESSION_TRACK`): which variable, which schema.

use super::read::{Malformed, Reader};
use super::write::put_lenenc_str;

/// One change, borrowed from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateChange<'a> {
    /// A tracked system variable now has this value.
    Variable {
        /// Its name.
        name: &'a [u8],
        /// Its value as text.
        value: &'a [u8],
    },
    /// The current database changed; an empty name is none.
    Schema(&'a [u8]),
    /// Something else about the session changed (`session_track_state_change`): `1` if so.
    State(&'a [u8]),
    /// GTIDs of the statement, in the server's text form.
    Gtids(&'a [u8]),
    /// Statements that would start the transaction again elsewhere.
    TransactionCharacteristics(&'a [u8]),
    /// The transaction's state, eight letters such as `T_R_W___`.
    TransactionState(&'a [u8]),
    /// A kind of a newer server, with its data.
    Other(u8, &'a [u8]),
}

const VARIABLE: u8 = 0;
const SCHEMA: u8 = 1;
const STATE: u8 = 2;
const GTIDS: u8 = 3;
const CHARACTERISTICS: u8 = 4;
const TRANSACTION: u8 = 5;

/// Walks the changes in an OK packet's `session_state`; a malformed rest ends the walk with an error. `MariaDB` packs
/// several variables into one entry: each comes out on its own.
#[must_use]
pub const fn changes(state: &[u8]) -> Changes<'_> {
    Changes {
        entries: Reader::new(state),
        variables: Reader::new(&[]),
    }
}

/// Appends the change of a tracked system variable.
pub fn put_variable(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let mut entry = Vec::with_capacity(name.len() + value.len() + 2);
    put_lenenc_str(&mut entry, name);
    put_lenenc_str(&mut entry, value);
    out.push(VARIABLE);
    put_lenenc_str(out, &entry);
}

/// Appends the change of the current database.
pub fn put_schema(out: &mut Vec<u8>, name: &[u8]) {
    let mut entry = Vec::with_capacity(name.len() + 1);
    put_lenenc_str(&mut entry, name);
    out.push(SCHEMA);
    put_lenenc_str(out, &entry);
}

/// The iterator of [`changes`].
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    entries: Reader<'a>,
    variables: Reader<'a>,
}

impl<'a> Changes<'a> {
    fn variable(&mut self) -> Result<StateChange<'a>, Malformed> {
        let name = self.variables.lenenc_str("tracked variable")?;
        Ok(StateChange::Variable {
            name,
            value: self.variables.lenenc_str("tracked value")?,
        })
    }

    fn entry(&mut self) -> Result<StateChange<'a>, Malformed> {
        let kind = self.entries.u8("state kind")?;
        let data = self.entries.lenenc_str("state data")?;
        let mut r = Reader::new(data);
        Ok(match kind {
            VARIABLE => {
                self.variables = r;
                return self.variable();
            }
            SCHEMA => StateChange::Schema(r.lenenc_str("tracked schema")?),
            // The one kind without a length of its own inside the entry.
            STATE => StateChange::State(data),
            GTIDS => {
                r.u8("gtid encoding")?;
                StateChange::Gtids(r.lenenc_str("tracked gtids")?)
            }
            CHARACTERISTICS => StateChange::TransactionCharacteristics(r.lenenc_str("characteristics")?),
            TRANSACTION => StateChange::TransactionState(r.lenenc_str("transaction state")?),
            other => StateChange::Other(other, data),
        })
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<StateChange<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = if !self.variables.is_empty() {
            self.variable()
        } else if !self.entries.is_empty() {
            self.entry()
        } else {
            return None;
        };
        if item.is_err() {
            self.entries = Reader::new(&[]);
            self.variables = Reader::new(&[]);
        }
        Some(item)
    }
}

impl StateChange<'_> {
    /// Appends the change to an OK packet's `session_state`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = match *self {
            Self::Variable { name, value } => {
                put_lenenc_str(&mut data, name);
                put_lenenc_str(&mut data, value);
                VARIABLE
            }
            Self::Schema(s) => one(&mut data, s, SCHEMA),
            Self::State(s) => {
                data.extend_from_slice(s);
                STATE
            }
            Self::Gtids(s) => {
                data.push(0);
                one(&mut data, s, GTIDS)
            }
            Self::TransactionCharacteristics(s) => one(&mut data, s, CHARACTERISTICS),
            Self::TransactionState(s) => one(&mut data, s, TRANSACTION),
            Self::Other(kind, raw) => {
                data.extend_from_slice(raw);
                kind
            }
        };
        out.push(kind);
        put_lenenc_str(out, &data);
    }
}

fn one(data: &mut Vec<u8>, s: &[u8], kind: u8) -> u8 {
    put_lenenc_str(data, s);
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_written_and_read_back_in_order() {
        let all = [
            StateChange::Variable {
                name: b"autocommit",
                value: b"ON",
            },
            StateChange::Schema(b"shop"),
            StateChange::State(b"1"),
            StateChange::Gtids(b"0-1-7"),
            StateChange::TransactionCharacteristics(b"START TRANSACTION READ ONLY;"),
            StateChange::TransactionState(b"T_______"),
            StateChange::Other(77, b"xyz"),
        ];
        let mut out = Vec::new();
        for c in &all {
            c.encode(&mut out);
        }
        assert_eq!(changes(&out).collect::<Result<Vec<_>, _>>().unwrap(), all);
    }

    #[test]
    fn recorded_changes_are_read() {
        // MariaDB 10.11: SET autocommit=0, then USE shop, each with session_track_state_change on.
        let got: Vec<_> = changes(b"\x00\x0f\x0aautocommit\x03OFF\x02\x011")
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(
            got,
            [
                StateChange::Variable {
                    name: b"autocommit",
                    value: b"OFF"
                },
                StateChange::State(b"1")
            ]
        );
        let got: Vec<_> = changes(b"\x01\x05\x04shop\x02\x011")
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(got, [StateChange::Schema(b"shop"), StateChange::State(b"1")]);
        let got: Vec<_> = changes(b"\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;")
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(
            got,
            [
                StateChange::TransactionState(b"T_______"),
                StateChange::TransactionCharacteristics(b"START TRANSACTION;")
            ]
        );
    }

    #[test]
    fn several_variables_in_one_entry_come_out_one_by_one() {
        let mut out = vec![0, 8];
        out.extend_from_slice(b"\x01a\x011\x01b\x012");
        let got: Vec<_> = changes(&out).collect::<Result<_, _>>().unwrap();
        assert_eq!(
            got,
            [
                StateChange::Variable {
                    name: b"a",
                    value: b"1"
                },
                StateChange::Variable {
                    name: b"b",
                    value: b"2"
                }
            ]
        );
    }

    #[test]
    fn a_malformed_rest_ends_the_walk() {
        let mut walk = changes(&[1, 5, 9, b'x']);
        assert!(walk.next().unwrap().is_err());
        assert!(walk.next().is_none());
    }

    #[test]
    fn what_is_written_comes_back() {
        let mut out = Vec::new();
        put_schema(&mut out, b"commerce");
        put_variable(&mut out, b"autocommit", b"OFF");
        let read: Vec<_> = changes(&out).collect::<Result<_, _>>().unwrap();
        let variable = StateChange::Variable {
            name: b"autocommit",
            value: b"OFF",
        };
        assert_eq!(read, [StateChange::Schema(b"commerce"), variable]);
    }
}
