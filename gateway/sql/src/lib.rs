//! The lexer, dialect, classification and fingerprint of MySQL statements.
//!
//! Text is bytes. The lexer is ours, reads bytes by the servers' rules, and gives tokens with byte offsets; all else
//! works on those tokens, so that what passes through the gateway is spliced by offset and never rendered anew.
//!
//! ```
//! use shardgate_sql::{LexOptions, Literal, lex};
//!
//! let options = LexOptions::default();
//! let lexed = lex(b"SELECT name FROM customers WHERE id = 7", &options)?;
//! assert_eq!(lexed.literal(7), Some(Literal::Int(7)));
//! # Ok::<(), shardgate_sql::LexError>(())
//! ```

mod charset;
mod classify;
mod directive;
mod fingerprint;
mod keyword;
mod lexed;
mod lexer;
mod literal;
mod mode;
mod parse;
mod session;
mod split;
mod token;

pub use charset::charset_is_safe;
pub use classify::{
    AdminKind, Classified, DdlKind, DdlObject, ExplainFormat, FunctionCall, IsolationLevel, PinReason,
    SessionFunction, StatementKind, TransactionOptions, classify,
};
pub use directive::Directives;
pub use fingerprint::{Digest, Fingerprint, LiteralSlot};
pub use keyword::Keyword;
pub use lexed::{Lexed, VersionComment};
pub use lexer::lex;
pub use literal::{Literal, LiteralClass};
pub use mode::{Flavor, LexOptions, SqlMode, UnknownSqlMode};
pub use parse::{ParseError, parse, span_to_range};
pub use session::{
    KillRequest, SetItem, SetScope, SetValue, Show, ShowKind, parse_kill, parse_set, parse_show, parse_use,
};
pub use split::{split_lexed, split_statements};
pub use token::{LexError, Token, TokenKind};
