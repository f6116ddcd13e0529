//! Reading to the end of whatever a tablet still owes, for a connection that nobody waits for any more.

use super::conn::{Phase, TabletConn};
use super::response::{Head, RowEvent};
use crate::error::WireError;

impl TabletConn {
    /// Reads and throws away what is left of the last command's answer, further results included. On success the
    /// connection is idle. Cancel-safe as far as the reads it is made of are: a second call goes on, except inside
    /// definitions behind a prepare, where the connection must be closed.
    pub async fn discard_answer(&mut self) -> Result<(), WireError> {
        self.stream.flush().await?;
        loop {
            match self.phase {
                Phase::Idle => return Ok(()),
                Phase::Head => match self.read_head().await? {
                    Head::Ok(_) | Head::Err(_) | Head::ResultSet { .. } => {}
                    Head::LocalInfile(_) => self.end_infile().await?,
                },
                Phase::Columns { .. } => {
                    self.read_columns().await?;
                }
                Phase::ColumnsEof => {
                    self.read_columns_eof().await?;
                }
                Phase::Rows | Phase::CursorEnd => match self.next_row().await? {
                    RowEvent::Row(_) | RowEvent::End(_) | RowEvent::Err(_) => {}
                },
                Phase::Prepare => {
                    // Prepared or refused: neither is of interest.
                    let _ = self.read_prepared().await?;
                }
                Phase::FieldList => {
                    let _ = self.read_field_list().await?;
                }
                Phase::Text => {
                    self.read_text().await?;
                }
                Phase::Infile => self.end_infile().await?,
                Phase::InsideRow => return Err(WireError::State("an answer was cut off inside a row")),
                Phase::PrepareDefs => return Err(WireError::State("the answer to a prepare was cut off")),
            }
        }
    }
}
