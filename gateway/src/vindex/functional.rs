//! The vindexes of Vitess that compute a keyspace id from the value alone, byte for byte as Vitess does.

use des::cipher::{Array, BlockCipherEncrypt, KeyInit};
use md5::{Digest, Md5};

use super::error::VindexError;
use super::loose::LooseWeights;
use super::value::Value;
use crate::base::KeyspaceId;

/// `hash`: DES-ECB under an all-zero key over the big-endian 64-bit value; Vitess's "null hash". The key schedule costs
/// as much as a block, so it is made once.
#[derive(Clone)]
pub(super) struct NullHash(des::Des);

impl NullHash {
    pub(super) fn new() -> Self {
        Self(des::Des::new(&Array::from([0u8; 8])))
    }

    pub(super) fn of(&self, v: u64) -> KeyspaceId {
        let mut block = Array::from(v.to_be_bytes());
        self.0.encrypt_block(&mut block);
        KeyspaceId::from_slice(&block)
    }
}

impl std::fmt::Debug for NullHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NullHash")
    }
}

/// All have the same key.
impl PartialEq for NullHash {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `numeric`: the number itself, big-endian.
pub(super) fn numeric(v: u64) -> KeyspaceId {
    KeyspaceId::from_u64(v)
}

/// `reverse_bits`: the number with its bits in reverse order, big-endian.
pub(super) fn reverse_bits(v: u64) -> KeyspaceId {
    KeyspaceId::from_u64(v.reverse_bits())
}

/// `xxhash`: xxHash64, seed 0, of the value's text; Vitess writes the sum little-endian.
pub(super) fn xxhash(bytes: &[u8]) -> KeyspaceId {
    KeyspaceId::from_slice(&twox_hash::XxHash64::oneshot(0, bytes).to_le_bytes())
}

/// `binary_md5`: MD5 of the value's bytes.
pub(super) fn binary_md5(bytes: &[u8]) -> KeyspaceId {
    KeyspaceId::from_slice(&Md5::digest(bytes))
}

/// `null`: every value in one place, the id `00`.
pub(super) fn null() -> KeyspaceId {
    KeyspaceId::from_slice(&[0])
}

/// `unicode_loose_*`: the collation key of the text without its trailing spaces.
pub(super) fn loose_key(
    kind: &'static str,
    weights: &LooseWeights,
    bytes: &[u8],
) -> Result<Vec<u8>, VindexError> {
    let text = std::str::from_utf8(bytes).map_err(|_| VindexError::Unmappable {
        kind,
        why: "the text is not valid UTF-8",
    })?;
    weights
        .key(text.trim_end_matches(' '))
        .ok_or(VindexError::Unmappable {
            kind,
            why: "a character whose collation weight is not known",
        })
}

/// The 64-bit number the numeric vindexes take; negative numbers only where Vitess takes them too.
pub(super) fn as_u64(kind: &'static str, v: &Value, negatives: bool) -> Result<u64, VindexError> {
    match v {
        Value::UInt(v) => Ok(*v),
        Value::Int(v) if *v >= 0 || negatives => Ok(v.cast_unsigned()),
        Value::Int(_) => Err(VindexError::Unmappable {
            kind,
            why: "it is negative",
        }),
        Value::Null => Err(VindexError::Null(kind)),
        Value::Decimal(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) => {
            Err(VindexError::Unmappable {
                kind,
                why: "it is not an integer",
            })
        }
    }
}

/// The bytes the byte-wise vindexes take: a text's own, an integer's decimal digits, nothing for NULL.
pub(super) fn with_bytes<R>(
    kind: &'static str,
    v: &Value,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<R, VindexError> {
    match v {
        Value::Null => Ok(f(&[])),
        Value::Int(v) => Ok(f(v.to_string().as_bytes())),
        Value::UInt(v) => Ok(f(v.to_string().as_bytes())),
        Value::Text(b) | Value::Bytes(b) => Ok(f(b)),
        Value::Decimal(_) | Value::Float(_) => Err(VindexError::Unmappable {
            kind,
            why: "a number with a fraction has several texts",
        }),
    }
}
