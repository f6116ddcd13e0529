//! Why the schema of a tablet could not be learned.

use std::time::Duration;

use crate::base::{ErrorKind, GatewayError};

/// Errors of learning a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The tablet answered with an error, or the way to it failed.
    #[error("the schema of database `{database}` could not be read: {reason}")]
    Tablet {
        /// The database.
        database: String,
        /// What went wrong.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the schema of database `{database}` could not be read within {timeout:?}")]
    Timeout {
        /// The database.
        database: String,
        /// The time it was given.
        timeout: Duration,
    },
    /// A row of `information_schema` without what it always has.
    #[error(
        "information_schema.COLUMNS gave a row without a usable {field} (table `{table}`, column `{column}`)"
    )]
    Row {
        /// The field.
        field: &'static str,
        /// The table, as far as known.
        table: String,
        /// The column, as far as known.
        column: String,
    },
}

impl GatewayError for SchemaError {
    fn code(&self) -> Option<&'static str> {
        Some("SG1020")
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
    fn retryable(&self) -> bool {
        match self {
            Self::Tablet { .. } | Self::Timeout { .. } => true,
            Self::Row { .. } => false,
        }
    }
}
