//! Learns a database's schema from one tablet.

use std::collections::BTreeSet;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Row, Value};

use super::error::SchemaError;
use super::rows::{ColumnRow, columns_sql, learn, tables_sql};
use super::table::DatabaseSchema;

/// Reads the schema of `database` over a connection of its own, within `timeout` in all.
///
/// The connection is closed afterwards, also after an error or a timeout: a driver's connection whose future was
/// dropped would answer the next question with this one's rows.
pub async fn load(opts: Opts, database: &str, timeout: Duration) -> Result<DatabaseSchema, SchemaError> {
    match tokio::time::timeout(timeout, read(opts, database)).await {
        Ok(result) => result,
        Err(_) => Err(SchemaError::Timeout {
            database: database.to_owned(),
            timeout,
        }),
    }
}

async fn read(opts: Opts, database: &str) -> Result<DatabaseSchema, SchemaError> {
    let failed = |source| SchemaError::Tablet {
        database: database.to_owned(),
        source,
    };
    let mut conn = Conn::new(opts).await.map_err(failed)?;
    let columns: Vec<Row> = conn.query(columns_sql(database)).await.map_err(failed)?;
    let tables: Vec<Row> = conn.query(tables_sql(database)).await.map_err(failed)?;
    // All has been read; a server that does not say goodbye takes nothing away from it.
    let _ = conn.disconnect().await;
    let columns: Result<Vec<_>, _> = columns
        .iter()
        .map(|row| ColumnRow::from_cells(cells(row)))
        .collect();
    Ok(learn(columns?, &views(&tables)))
}

fn cells(row: &Row) -> impl Iterator<Item = Option<&[u8]>> {
    (0..row.len()).map(|i| match row.as_ref(i) {
        Some(Value::Bytes(bytes)) => Some(bytes.as_slice()),
        // The text protocol knows NULL and bytes only.
        _ => None,
    })
}

fn views(tables: &[Row]) -> BTreeSet<String> {
    let text = |cell: Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or_default()).into_owned();
    let mut views = BTreeSet::new();
    for row in tables {
        let mut cells = cells(row).map(text);
        if let (Some(name), Some(kind)) = (cells.next(), cells.next())
            && kind.to_ascii_uppercase().contains("VIEW")
        {
            views.insert(name);
        }
    }
    views
}
