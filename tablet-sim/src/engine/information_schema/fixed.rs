//! What does not depend on the catalog.

use crate::engine::collate::Collation;
use crate::engine::listing::{Listing, row};

pub(crate) fn engines() -> Listing {
    let mut out = Listing::new(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"]);
    out.push(row![
        "InnoDB",
        "DEFAULT",
        "Simulated over SQLite",
        "YES",
        "NO",
        "YES"
    ]);
    out
}

pub(crate) fn character_sets() -> Listing {
    let mut out = Listing::new(&[
        "CHARACTER_SET_NAME",
        "DEFAULT_COLLATE_NAME",
        "DESCRIPTION",
        "#MAXLEN",
    ]);
    out.push(row!["utf8mb4", "utf8mb4_general_ci", "UTF-8 Unicode", 4u64]);
    out
}

pub(crate) fn collations() -> Listing {
    let mut out = Listing::new(&[
        "COLLATION_NAME",
        "CHARACTER_SET_NAME",
        "#ID",
        "IS_DEFAULT",
        "IS_COMPILED",
        "#SORTLEN",
    ]);
    for c in [Collation::Ci, Collation::Bin] {
        let default = if c == Collation::Ci { "Yes" } else { "" };
        out.push(row![c.name(), "utf8mb4", u64::from(c.id()), default, "Yes", 1u64]);
    }
    out
}
