//! Which vindexes may route an equality on which columns: only where all values that the server calls equal hash
//! alike. The rules are one-sided: what is not known to be safe is not safe.

use super::collation::{Collation, Pad};
use super::column::{ColumnType, StringKind};
use super::value::Value;
use super::{Function, Vindex};

/// Whether equal values of a column hash alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// All of them do: equalities route, and joins and grouping on the column stay inside a shard.
    Always,
    /// Those of some literals do, asked one by one: equalities with such literals route, joins and grouping do not.
    ByValue,
    /// Not known; the text says why.
    Never(&'static str),
}

const TEXT_UNDER_NUMBER: Safety = Safety::Never("one number has many texts that equal it");
const PADDED: Safety = Safety::Never("the column's collation ignores trailing spaces, the vindex does not");
const COLLATED: Safety = Safety::Never("the column's collation calls texts equal that hash apart");
const UNKNOWN_TYPE: Safety = Safety::Never("the equality of the column's type is not known exactly");

impl Vindex {
    /// Whether all values of such a column that the server calls equal have one place under this vindex.
    #[must_use]
    pub fn safety(&self, column: &ColumnType) -> Safety {
        match &self.function {
            Function::Null => Safety::Always,
            Function::Hash(_) | Function::Numeric | Function::ReverseBits => numeric(column),
            Function::XxHash | Function::BinaryMd5 | Function::Binary => bytes(column),
            Function::UnicodeLooseXxHash(_) | Function::UnicodeLooseMd5(_) => loose(column),
            Function::Named(cut) => match cut.kind() {
                "list" => bytes(column),
                _ => numeric(column),
            },
        }
    }

    /// For [`Safety::ByValue`]: whether every text that equals this one under the column's collation hashes alike.
    #[must_use]
    pub fn equals_hash_alike(&self, column: &ColumnType, value: &Value) -> bool {
        let loose = matches!(
            self.function,
            Function::UnicodeLooseXxHash(_) | Function::UnicodeLooseMd5(_)
        );
        let (true, Value::Text(bytes), Some(collation)) = (loose, value, column.collation()) else {
            return false;
        };
        std::str::from_utf8(bytes).is_ok_and(|text| super::loose::class_is_uniform(collation.name(), text))
    }
}

/// Whether rows of two tables whose columns are equal always live in one shard, so that a join on them does.
#[must_use]
pub fn hash_alike(left: (&Vindex, &ColumnType), right: (&Vindex, &ColumnType)) -> bool {
    let same_function = left.0 == right.0;
    let safe = left.0.safety(left.1) == Safety::Always && right.0.safety(right.1) == Safety::Always;
    same_function && safe && same_values(left.1, right.1)
}

/// Whether equality of the two columns compares values of one kind, without a conversion.
fn same_values(left: &ColumnType, right: &ColumnType) -> bool {
    match (left, right) {
        (ColumnType::Int { .. }, ColumnType::Int { .. })
        | (ColumnType::Date, ColumnType::Date)
        | (ColumnType::Year, ColumnType::Year)
        | (ColumnType::DateTime { fsp: 0 }, ColumnType::DateTime { fsp: 0 }) => true,
        (
            ColumnType::Char {
                kind: k1,
                collation: c1,
                ..
            },
            ColumnType::Char {
                kind: k2,
                collation: c2,
                ..
            },
        ) => {
            // A CHAR's value lost its trailing spaces; without padding it is not the VARCHAR's.
            c1 == c2
                && (k1 == k2
                    || (*k1 != StringKind::Fixed && *k2 != StringKind::Fixed)
                    || c1.pad() == Pad::Space)
        }
        (ColumnType::Binary { kind: k1, length: l1 }, ColumnType::Binary { kind: k2, length: l2 }) => {
            match (k1 == &StringKind::Fixed, k2 == &StringKind::Fixed) {
                (false, false) => true,
                (true, true) => l1 == l2,
                _ => false,
            }
        }
        (
            ColumnType::Enum {
                values: v1,
                collation: c1,
            },
            ColumnType::Enum {
                values: v2,
                collation: c2,
            },
        ) => v1 == v2 && c1 == c2,
        _ => false,
    }
}

fn numeric(column: &ColumnType) -> Safety {
    match column {
        ColumnType::Int { .. } | ColumnType::Decimal { scale: 0, .. } | ColumnType::Year => Safety::Always,
        ColumnType::Char { .. } | ColumnType::Binary { .. } | ColumnType::Enum { .. } => TEXT_UNDER_NUMBER,
        ColumnType::Decimal { .. }
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Bit { .. }
        | ColumnType::Date
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::Time { .. }
        | ColumnType::Set { .. }
        | ColumnType::Json
        | ColumnType::Other(_) => UNKNOWN_TYPE,
    }
}

/// Under vindexes that hash the value's bytes.
fn bytes(column: &ColumnType) -> Safety {
    match column {
        ColumnType::Char { collation, .. } if !collation.equal_means_same_bytes() => COLLATED,
        // A CHAR holds no trailing spaces, so for it padding tells nothing apart.
        ColumnType::Char { kind: StringKind::Variable | StringKind::Large, collation, .. }
            if collation.pad() == Pad::Space =>
        {
            PADDED
        }
        ColumnType::Int { .. }
        | ColumnType::Decimal { scale: 0, .. }
        | ColumnType::Year
        | ColumnType::Date
        | ColumnType::DateTime { fsp: 0 }
        | ColumnType::Char { .. }
        | ColumnType::Binary { .. }
        // Its values are its members, kept apart by the server.
        | ColumnType::Enum { .. } => Safety::Always,
        ColumnType::Decimal { .. }
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Bit { .. }
        | ColumnType::DateTime { .. }
        | ColumnType::Timestamp { .. }
        | ColumnType::Time { .. }
        | ColumnType::Set { .. }
        | ColumnType::Json
        | ColumnType::Other(_) => UNKNOWN_TYPE,
    }
}

/// Under `unicode_loose_*`, which ignore case, accents and trailing spaces.
fn loose(column: &ColumnType) -> Safety {
    match column {
        ColumnType::Char { collation, .. } => loose_text(collation),
        other => bytes(other),
    }
}

fn loose_text(collation: &Collation) -> Safety {
    if collation.equal_means_same_bytes() {
        return Safety::Always;
    }
    match collation.name() {
        // Only case and trailing spaces differ between equal ASCII texts.
        "ascii_general_ci" | "ascii_general_nopad_ci" => Safety::Always,
        name if super::loose::has_classes(name) => Safety::ByValue,
        _ => COLLATED,
    }
}
