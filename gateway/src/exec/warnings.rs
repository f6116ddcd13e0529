//! `SHOW WARNINGS` on a tablet connection, for the session to show later.

use shardgate_wire::codec::text;

use super::answer::Warning;
use crate::tablet::{Connection, TabletError};

/// What the servers keep at most by default (`max_error_count`).
const MAX_WARNINGS: usize = 64;

/// Reads the warnings of the statement that ran last on this connection.
pub(super) async fn fetch(conn: &mut Connection) -> Result<Vec<Warning>, TabletError> {
    let rows = conn.query(b"SHOW WARNINGS", MAX_WARNINGS).await?;
    Ok(rows.iter().filter_map(|row| parse(row)).collect())
}

fn parse(row: &[u8]) -> Option<Warning> {
    let mut cells = text::cells(row).map(|c| c.ok().flatten().map(String::from_utf8_lossy));
    let level = cells.next()??.into_owned();
    let code = cells.next()??.parse().ok()?;
    let message = cells.next()??.into_owned();
    Some(Warning { level, code, message })
}
