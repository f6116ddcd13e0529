//! Errors as a `MySQL` server spells them.
//!
//! A client tells errors apart by number and by words inside the text (a driver looks for the key's name in 1062), so
//! each error has one constructor here, with the server's own wording.

use std::borrow::Cow;
use std::fmt;

/// An error answer: number, SQLSTATE, text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// `MySQL` error number.
    pub code: u16,
    /// Five ASCII characters.
    pub state: [u8; 5],
    /// The text, without number or state.
    pub message: Cow<'static, str>,
}

/// What everything that can answer a client with an error returns.
pub(crate) type SqlResult<T> = Result<T, SqlError>;

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = std::str::from_utf8(&self.state).unwrap_or("HY000");
        write!(f, "ERROR {} ({state}): {}", self.code, self.message)
    }
}

impl std::error::Error for SqlError {}

/// Marks an error that crosses `SQLite` as text, so that it comes back whole.
const MARK: char = '\u{1}';

impl SqlError {
    /// Any error.
    pub fn new(code: u16, state: [u8; 5], message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            state,
            message: message.into(),
        }
    }

    /// 1235: what the simulator cannot do exactly, it does not do.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(
            1235,
            *b"42000",
            format!("The simulated tablet doesn't yet support '{what}'"),
        )
    }

    /// 1064: not a statement.
    pub fn syntax(detail: impl fmt::Display) -> Self {
        Self::new(
            1064,
            *b"42000",
            format!("You have an error in your SQL syntax; {detail}"),
        )
    }

    /// 1146: no such table.
    pub fn no_table(db: &str, table: &str) -> Self {
        Self::new(1146, *b"42S02", format!("Table '{db}.{table}' doesn't exist"))
    }

    /// 1051: DROP of no such table.
    pub fn unknown_table(names: &str) -> Self {
        Self::new(1051, *b"42S02", format!("Unknown table '{names}'"))
    }

    /// 1050: the table is there already.
    pub fn table_exists(table: &str) -> Self {
        Self::new(1050, *b"42S01", format!("Table '{table}' already exists"))
    }

    /// 1054: no such column, in the clause named.
    pub fn no_column(column: &str, clause: &str) -> Self {
        Self::new(
            1054,
            *b"42S22",
            format!("Unknown column '{column}' in '{clause}'"),
        )
    }

    /// 1052: the name fits several columns.
    pub fn ambiguous(column: &str, clause: &str) -> Self {
        Self::new(
            1052,
            *b"23000",
            format!("Column '{column}' in {clause} is ambiguous"),
        )
    }

    /// 1048: NULL for a NOT NULL column.
    pub fn not_null(column: &str) -> Self {
        Self::new(1048, *b"23000", format!("Column '{column}' cannot be null"))
    }

    /// 1364: a NOT NULL column without a default got no value.
    pub fn no_default(column: &str) -> Self {
        Self::new(
            1364,
            *b"HY000",
            format!("Field '{column}' doesn't have a default value"),
        )
    }

    /// 1062: a unique key holds the value already.
    pub fn duplicate(value: &str, key: &str) -> Self {
        Self::new(
            1062,
            *b"23000",
            format!("Duplicate entry '{value}' for key '{key}'"),
        )
    }

    /// 1136: a row of the wrong width.
    pub fn row_width(row: usize) -> Self {
        Self::new(
            1136,
            *b"21S01",
            format!("Column count doesn't match value count at row {row}"),
        )
    }

    /// 1264: a number that the column cannot hold.
    pub fn out_of_range(column: &str, row: usize) -> Self {
        Self::new(
            1264,
            *b"22003",
            format!("Out of range value for column '{column}' at row {row}"),
        )
    }

    /// 1406: a text that the column cannot hold.
    pub fn too_long(column: &str, row: usize) -> Self {
        Self::new(
            1406,
            *b"22001",
            format!("Data too long for column '{column}' at row {row}"),
        )
    }

    /// 1292: a text that is no date.
    pub fn bad_temporal(kind: &str, value: &str) -> Self {
        Self::new(1292, *b"22007", format!("Incorrect {kind} value: '{value}'"))
    }

    /// 1292 while storing, which names the column.
    pub fn bad_temporal_for(kind: &str, value: &str, column: &str, row: usize) -> Self {
        Self::new(
            1292,
            *b"22007",
            format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}"),
        )
    }

    /// 1366: a text that is no number.
    pub fn bad_number(kind: &str, value: &str, column: &str, row: usize) -> Self {
        Self::new(
            1366,
            *b"HY000",
            format!("Incorrect {kind} value: '{value}' for column '{column}' at row {row}"),
        )
    }

    /// 1690: arithmetic left the range of its type.
    pub fn arithmetic_range(kind: &str, what: &str) -> Self {
        Self::new(
            1690,
            *b"22003",
            format!("{kind} value is out of range in '{what}'"),
        )
    }

    /// 1305: no such function.
    pub fn no_function(db: &str, name: &str) -> Self {
        Self::new(1305, *b"42000", format!("FUNCTION {db}.{name} does not exist"))
    }

    /// 1582: a function got the wrong number of arguments.
    pub fn argument_count(name: &str) -> Self {
        Self::new(
            1582,
            *b"42000",
            format!("Incorrect parameter count in the call to native function '{name}'"),
        )
    }

    /// 1046: a name without a database, and none was chosen.
    pub fn no_database_selected() -> Self {
        Self::new(1046, *b"3D000", "No database selected")
    }

    /// 1049: no such database.
    pub fn unknown_database(db: &str) -> Self {
        Self::new(1049, *b"42000", format!("Unknown database '{db}'"))
    }

    /// 1193: no such system variable.
    pub fn unknown_variable(name: &str) -> Self {
        Self::new(1193, *b"HY000", format!("Unknown system variable '{name}'"))
    }

    /// 1231: a variable that does not take this value.
    pub fn wrong_value(name: &str, value: &str) -> Self {
        Self::new(
            1231,
            *b"42000",
            format!("Variable '{name}' can't be set to the value of '{value}'"),
        )
    }

    /// 1205: somebody else held the write lock for too long.
    pub fn lock_wait() -> Self {
        Self::new(
            1205,
            *b"HY000",
            "Lock wait timeout exceeded; try restarting transaction",
        )
    }

    /// 1317: a KILL QUERY hit the statement.
    pub fn interrupted() -> Self {
        Self::new(1317, *b"70100", "Query execution was interrupted")
    }

    /// 1290: a replica, or a primary set read-only.
    pub fn read_only() -> Self {
        Self::new(
            1290,
            *b"HY000",
            "The MySQL server is running with the --read-only option so it cannot execute this statement",
        )
    }

    /// 1792: a write in a READ ONLY transaction.
    pub fn read_only_transaction() -> Self {
        Self::new(
            1792,
            *b"25006",
            "Cannot execute statement in a READ ONLY transaction.",
        )
    }

    /// 1105: the engine said something that has no better number.
    pub fn internal(detail: impl fmt::Display) -> Self {
        Self::new(1105, *b"HY000", format!("simulated tablet: {detail}"))
    }

    /// The error as a text that survives the way through `SQLite`.
    pub(crate) fn marked(&self) -> String {
        let state = std::str::from_utf8(&self.state).unwrap_or("HY000");
        format!("{MARK}{}|{state}|{}", self.code, self.message)
    }

    /// Reads back what [`Self::marked`] wrote, if the text is one.
    pub(crate) fn from_marked(text: &str) -> Option<Self> {
        let at = text.find(MARK)?;
        let mut parts = text[at + MARK.len_utf8()..].splitn(3, '|');
        let code = parts.next()?.parse().ok()?;
        let state = parts.next()?.as_bytes().try_into().ok()?;
        Some(Self::new(code, state, parts.next()?.to_owned()))
    }
}

impl From<rusqlite::Error> for SqlError {
    fn from(e: rusqlite::Error) -> Self {
        if let rusqlite::Error::SqliteFailure(failure, text) = &e {
            if let Some(own) = text.as_deref().and_then(Self::from_marked) {
                return own;
            }
            match failure.code {
                rusqlite::ErrorCode::OperationInterrupted => return Self::interrupted(),
                rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked => {
                    return Self::lock_wait();
                }
                rusqlite::ErrorCode::DiskFull => {
                    return Self::new(1114, *b"HY000", "The table is full");
                }
                _ => {}
            }
            if text.as_deref().is_some_and(|t| t.starts_with("no such table")) {
                return Self::new(
                    1412,
                    *b"HY000",
                    "Table definition has changed, please retry transaction",
                );
            }
        }
        if let rusqlite::Error::UserFunctionError(inner) = &e
            && let Some(own) = inner.downcast_ref::<Self>()
        {
            return own.clone();
        }
        Self::internal(e)
    }
}

/// A `SqlError` on its way into `SQLite`.
pub(crate) fn into_sqlite(e: &SqlError) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(e.marked().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_way_through_sqlite() {
        let e = SqlError::duplicate("a|b", "t.k");
        assert_eq!(SqlError::from_marked(&format!("user: {}", e.marked())), Some(e));
        assert_eq!(SqlError::from_marked("no such thing"), None);
    }
}
