//! Parameters of prepared statements as values that route.

use shardgate_wire::ColumnType;
use shardgate_wire::codec::binary::Value as WireValue;
use shardgate_wire::codec::execute::ParamType;

use crate::vindex::Value;

/// A parameter's value, where it is known exactly; `None` means that it cannot decide a route.
pub(super) fn of_param(param: Option<(ParamType, WireValue<'_>)>, charset: &str) -> Option<Value> {
    let (t, value) = param?;
    match value {
        WireValue::Null => Some(Value::Null),
        WireValue::Int(v) => Some(Value::Int(v)),
        WireValue::UInt(v) => Some(i64::try_from(v).map_or(Value::UInt(v), Value::Int)),
        WireValue::Double(v) => Some(Value::Float(v)),
        WireValue::Float(v) => Some(Value::Float(f64::from(v))),
        WireValue::Bytes(bytes) => of_bytes(t.column_type, bytes, charset),
        WireValue::DateTime(_) | WireValue::Time(_) | WireValue::Date(_) => None,
    }
}

fn of_bytes(t: ColumnType, bytes: &[u8], charset: &str) -> Option<Value> {
    match t {
        // Text travels in character_set_client.
        ColumnType::VarChar | ColumnType::VarString | ColumnType::String => Value::text(charset, bytes),
        ColumnType::Decimal | ColumnType::NewDecimal => {
            let text = std::str::from_utf8(bytes).ok()?;
            Some(Value::Decimal(text.into()))
        }
        _ => Some(Value::Bytes(bytes.into())),
    }
}
