//! What a statement is and what it would do to a session, told from its tokens alone.
//!
//! Nothing here parses: a statement that the parser cannot read still has to be recognised as a write, as the end of
//! a transaction, or as something that ties the session to one server. Where tokens cannot decide, the answer errs
//! to the careful side (a write, a pin).

mod find;
mod functions;
mod kind;

pub use functions::{FunctionCall, SessionFunction};
pub use kind::{
    AdminKind, DdlKind, DdlObject, ExplainFormat, IsolationLevel, StatementKind, TransactionOptions,
};

use smallvec::SmallVec;

use crate::keyword::Keyword;
use crate::lexed::Lexed;
use crate::token::TokenKind;

/// What [`classify`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, each asked for alone"
)]
pub struct Classified {
    /// Which statement it is. `WITH` counts as the statement behind it.
    pub kind: StatementKind,
    /// Whether it may change data or schema. A `CALL` may.
    pub is_write: bool,
    /// Whether a server commits the open transaction before it runs this.
    pub causes_implicit_commit: bool,
    /// `FOR UPDATE`, `FOR SHARE` or `LOCK IN SHARE MODE` is in it.
    pub is_locking_read: bool,
    /// Why the session must stay with one server from here on.
    pub pin: Option<PinReason>,
    /// Whether it has `@name`, read or written.
    pub uses_user_variables: bool,
    /// Whether it has `@@name`, or is a SET that could name one.
    pub uses_system_variables: bool,
    /// Calls whose value depends on the session or the moment, in token order.
    pub functions: SmallVec<[FunctionCall; 2]>,
}

/// State that lives in one server's connection and cannot be carried to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PinReason {
    /// `GET_LOCK` and its kin.
    NamedLock,
    /// `CREATE TEMPORARY TABLE` and statements on it cannot be told apart from others.
    TemporaryTable,
    /// `LOCK TABLES`, `FLUSH TABLES WITH READ LOCK`, `BACKUP`.
    TableLock,
    /// `:=` outside SET.
    Assignment,
    /// `SELECT ... INTO @v`
    SelectIntoVariable,
    /// `SELECT ... INTO OUTFILE` or `DUMPFILE`.
    SelectIntoFile,
    /// `PREPARE`, `EXECUTE`, `DEALLOCATE`.
    SqlPrepare,
    /// `HANDLER`
    Handler,
    /// `LOAD DATA`, `LOAD XML`.
    Load,
    /// `CALL` and compound statements, which may do anything.
    Call,
    /// `SQL_CALC_FOUND_ROWS`, whose count a later statement asks for.
    FoundRows,
    /// `LAST_INSERT_ID(expr)`, which sets what a later statement asks for.
    LastInsertId,
    /// `XA`
    Xa,
}

/// Classifies a statement.
pub fn classify(lexed: &Lexed<'_>) -> Classified {
    let kind = find::kind(lexed);
    let mut found = Classified {
        kind,
        is_write: kind.is_write(),
        causes_implicit_commit: kind.causes_implicit_commit(),
        is_locking_read: false,
        pin: kind.pin(),
        uses_user_variables: false,
        uses_system_variables: matches!(kind, StatementKind::Set | StatementKind::SetTransaction),
        functions: functions::find(lexed),
    };
    found.scan(lexed);
    found
}

impl Classified {
    /// Looks at each token once for what may stand anywhere in a statement.
    fn scan(&mut self, lexed: &Lexed<'_>) {
        use Keyword as K;
        let mut depth = 0u32;
        for (at, token) in lexed.tokens().iter().enumerate() {
            match token.kind {
                TokenKind::UserVariable => self.uses_user_variables = true,
                TokenKind::SystemVariable => self.uses_system_variables = true,
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => depth = depth.saturating_sub(1),
                // `SET @a := 1` is plain SET; inside its value it is not.
                TokenKind::Assign if self.kind != StatementKind::Set || depth > 0 => {
                    self.pin_for(PinReason::Assignment);
                }
                TokenKind::Word => {}
                _ => continue,
            }
            let next = lexed.keyword(at + 1);
            match token.keyword {
                Some(K::For) if matches!(next, Some(K::Update | K::Share)) => self.is_locking_read = true,
                Some(K::Lock) if next == Some(K::In) && lexed.is_keyword(at + 2, K::Share) => {
                    self.is_locking_read = true;
                }
                Some(K::Into) if self.kind == StatementKind::Select => self.select_into(lexed, at + 1),
                Some(K::SqlCalcFoundRows) => self.pin_for(PinReason::FoundRows),
                _ => {}
            }
        }
        let calls = self
            .functions
            .iter()
            .map(|call| (call.function, call.has_arguments));
        for (function, has_arguments) in calls.collect::<SmallVec<[_; 2]>>() {
            match function {
                SessionFunction::NamedLock => self.pin_for(PinReason::NamedLock),
                SessionFunction::LastInsertId if has_arguments => self.pin_for(PinReason::LastInsertId),
                _ => {}
            }
        }
    }

    fn select_into(&mut self, lexed: &Lexed<'_>, at: usize) {
        let file = matches!(lexed.keyword(at), Some(Keyword::Outfile | Keyword::Dumpfile));
        self.pin_for(if file {
            PinReason::SelectIntoFile
        } else {
            PinReason::SelectIntoVariable
        });
    }

    /// Counts that are asked for at once are the weakest reason: any other keeps the connection, and must not hide
    /// behind them.
    fn pin_for(&mut self, reason: PinReason) {
        let weak = |r: PinReason| {
            matches!(
                r,
                PinReason::FoundRows | PinReason::LastInsertId | PinReason::SelectIntoFile
            )
        };
        match self.pin {
            Some(held) if !weak(held) || weak(reason) => {}
            Some(_) | None => self.pin = Some(reason),
        }
    }
}

#[cfg(test)]
mod tests;
