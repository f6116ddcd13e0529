//! The first packet of the answer to `COM_STMT_PREPARE`.

use super::read::{Malformed, Reader};

/// A statement was prepared; its parameters' and columns' definitions follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrepareOk {
    /// The statement's id on this connection.
    pub statement_id: u32,
    /// How many columns its result has; 0 for none.
    pub columns: u16,
    /// How many parameters it takes.
    pub params: u16,
    /// How many warnings preparing left.
    pub warnings: u16,
}

impl PrepareOk {
    /// Reads a payload.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8("prepare header")? != 0 {
            return Err(Malformed("prepare header"));
        }
        let statement_id = r.u32("statement id")?;
        let columns = r.u16("statement columns")?;
        let params = r.u16("statement parameters")?;
        let warnings = if r.is_empty() {
            0
        } else {
            r.u8("prepare filler")?;
            r.u16("prepare warnings")?
        };
        Ok(Self {
            statement_id,
            columns,
            params,
            warnings,
        })
    }

    /// Appends the payload.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.statement_id.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.params.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
    }
}
