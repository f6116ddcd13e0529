//! How a client is told about a column.

use super::Ty;

/// Column flags of the protocol.
pub(crate) mod flag {
    pub(crate) const NOT_NULL: u16 = 1;
    pub(crate) const PRI_KEY: u16 = 2;
    pub(crate) const UNIQUE_KEY: u16 = 4;
    pub(crate) const MULTIPLE_KEY: u16 = 8;
    pub(crate) const BLOB: u16 = 16;
    pub(crate) const UNSIGNED: u16 = 32;
    pub(crate) const ZEROFILL: u16 = 64;
    pub(crate) const BINARY: u16 = 128;
    pub(crate) const ENUM: u16 = 256;
    pub(crate) const AUTO_INCREMENT: u16 = 512;
    pub(crate) const TIMESTAMP: u16 = 1024;
    pub(crate) const NO_DEFAULT_VALUE: u16 = 4096;
    pub(crate) const ON_UPDATE_NOW: u16 = 8192;
    pub(crate) const PART_KEY: u16 = 16384;
    pub(crate) const NUM: u16 = 32768;
}

/// A result column as the client is told about it.
#[derive(Clone, Debug)]
pub(crate) struct ColumnMeta {
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) org_table: String,
    pub(crate) name: String,
    pub(crate) org_name: String,
    pub(crate) ty: Ty,
    pub(crate) flags: u16,
}

impl ColumnMeta {
    /// A column of no table.
    pub(crate) fn computed(name: impl Into<String>, ty: Ty, nullable: bool) -> Self {
        let flags = ty.flags() | if nullable { 0 } else { flag::NOT_NULL };
        Self {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.into(),
            org_name: String::new(),
            ty,
            flags,
        }
    }
}
