//! What a session has left on the connection that it keeps to itself, as far as that can be told from its statements: when
//! all of it has been given up again, the session is free to go elsewhere.
//!
//! Only what is certain ends a pin. A name that was written in two ways, a table renamed meanwhile, a procedure: whatever
//! cannot be followed keeps the connection until the session is reset.

use std::collections::BTreeSet;

use shardgate_sql::{
    Classified, DdlKind, DdlObject, Keyword as K, Lexed, PinReason, SessionFunction, StatementKind, TokenKind,
};

/// Temporary tables and handlers of one session that are followed; beyond that the pin stays.
const MOST: usize = 1000;

/// How a statement ended, as far as what it leaves behind goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was executed.
    Well,
    /// The server refused it.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// What lies on the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pins {
    /// `LOCK TABLES`
    tables_locked: bool,
    /// `GET_LOCK` and its kin.
    named_locks: bool,
    /// Temporary tables, by the names they were made under.
    temporary: BTreeSet<Vec<u8>>,
    /// Open handlers, by their names.
    handlers: BTreeSet<Vec<u8>>,
    /// Something that ends with the connection only.
    lasting: bool,
}

impl Pins {
    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in what a statement did.
    pub(super) fn note(&mut self, lexed: &Lexed<'_>, class: &Classified, ended: Ended) {
        if ended == Ended::Unknown {
            self.lasting |= class.pin.is_some();
            return;
        }
        let well = ended == Ended::Well;
        // Of several things that one statement leaves its class names one.
        let locks = class
            .functions
            .iter()
            .any(|call| call.function == SessionFunction::NamedLock);
        self.lasting |= match class.pin {
            None => false,
            Some(PinReason::NamedLock) => class.uses_user_variables,
            Some(_) => class.uses_user_variables || locks,
        };
        match class.pin {
            // Locks held before are given up before anything can fail, but not whatever fails.
            Some(PinReason::TableLock) => self.tables_locked = true,
            Some(PinReason::NamedLock) if well && releases_all(lexed) => self.named_locks = false,
            Some(PinReason::NamedLock) => self.named_locks = true,
            Some(PinReason::TemporaryTable) if well => self.note_temporary(lexed, class.kind),
            Some(PinReason::Handler) if well => self.note_handler(lexed),
            // A refused one left nothing.
            Some(PinReason::TemporaryTable | PinReason::Handler) => {}
            Some(
                PinReason::Assignment
                | PinReason::SelectIntoVariable
                | PinReason::SqlPrepare
                | PinReason::Load
                | PinReason::Call,
            ) => self.lasting = true,
            Some(
                PinReason::FoundRows | PinReason::LastInsertId | PinReason::SelectIntoFile | PinReason::Xa,
            )
            | None => self.note_other(class.kind, well),
        }
    }

    fn note_other(&mut self, kind: StatementKind, well: bool) {
        match kind {
            StatementKind::UnlockTables if well => self.tables_locked = false,
            // It may have been a temporary table's name that changed.
            StatementKind::Ddl {
                verb: DdlKind::Alter | DdlKind::Rename,
                ..
            } if !self.temporary.is_empty() => self.lasting = true,
            _ => {}
        }
    }

    fn note_temporary(&mut self, lexed: &Lexed<'_>, kind: StatementKind) {
        let StatementKind::Ddl {
            verb,
            object: DdlObject::Table,
            ..
        } = kind
        else {
            self.lasting = true;
            return;
        };
        let Some(mut at) = (0..lexed.len()).find(|at| lexed.is_keyword(*at, K::Table)) else {
            self.lasting = true;
            return;
        };
        at += 1;
        while [K::If, K::Not, K::Exists]
            .iter()
            .any(|k| lexed.is_keyword(at, *k))
        {
            at += 1;
        }
        match verb {
            DdlKind::Create => match name_at(lexed, &mut at) {
                Some(name) if self.temporary.len() < MOST => {
                    self.temporary.insert(name);
                }
                Some(_) | None => self.lasting = true,
            },
            DdlKind::Drop => {
                while let Some(name) = name_at(lexed, &mut at) {
                    self.temporary.remove(&name);
                    if !lexed.is(at, TokenKind::Comma) {
                        break;
                    }
                    at += 1;
                }
            }
            DdlKind::Alter | DdlKind::Rename | DdlKind::Truncate => self.lasting = true,
        }
    }

    /// `HANDLER table OPEN [[AS] alias]`, `HANDLER name CLOSE`; whatever else it says opens nothing.
    fn note_handler(&mut self, lexed: &Lexed<'_>) {
        let mut at = 1;
        let Some(name) = name_at(lexed, &mut at) else {
            self.lasting = true;
            return;
        };
        let word = lexed.text(at).to_ascii_uppercase();
        if word == b"CLOSE" {
            self.handlers.remove(last_part(&name));
        } else if word == b"OPEN" {
            at += 1;
            if lexed.is_keyword(at, K::As) {
                at += 1;
            }
            let name = name_at(lexed, &mut at).unwrap_or(name);
            if self.handlers.len() < MOST {
                self.handlers.insert(last_part(&name).to_vec());
            } else {
                self.lasting = true;
            }
        }
    }
}

/// Whether the statement is nothing but a call of `RELEASE_ALL_LOCKS()`.
fn releases_all(lexed: &Lexed<'_>) -> bool {
    let plain = lexed.is_keyword(0, K::Select) || lexed.is_keyword(0, K::Do);
    plain
        && lexed.len() == 4
        && lexed.text(1).eq_ignore_ascii_case(b"RELEASE_ALL_LOCKS")
        && lexed.is(2, TokenKind::LParen)
        && lexed.is(3, TokenKind::RParen)
}

/// The name at `at`, its parts divided by NUL; moves behind it.
fn name_at(lexed: &Lexed<'_>, at: &mut usize) -> Option<Vec<u8>> {
    let mut name = lexed.name(*at)?.into_owned();
    *at += 1;
    while lexed.is(*at, TokenKind::Dot) {
        let part = lexed.name(*at + 1)?;
        name.push(0);
        name.extend_from_slice(&part);
        *at += 2;
    }
    Some(name)
}

fn last_part(name: &[u8]) -> &[u8] {
    name.rsplit(|b| *b == 0).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use shardgate_sql::{LexOptions, classify, lex};

    use super::*;

    /// Whether nothing is left after these statements.
    fn free(statements: &[&str]) -> bool {
        let mut pins = Pins::default();
        for sql in statements {
            let lexed = lex(sql.as_bytes(), &LexOptions::default()).unwrap();
            pins.note(&lexed, &classify(&lexed), Ended::Well);
        }
        pins.is_empty()
    }

    #[test]
    fn what_was_given_up_again_pins_no_more() {
        assert!(free(&["SELECT 1"]));
        assert!(!free(&["LOCK TABLES t READ"]));
        assert!(free(&["LOCK TABLES t READ, u WRITE", "unlock tables"]));
        assert!(!free(&["CREATE TEMPORARY TABLE a (i INT)"]));
        assert!(free(&[
            "CREATE TEMPORARY TABLE IF NOT EXISTS a (i INT)",
            "CREATE TEMPORARY TABLE k.b (i INT)",
            "DROP TEMPORARY TABLE IF EXISTS `a`, k.b, c",
        ]));
        assert!(free(&[
            "HANDLER k.t OPEN",
            "HANDLER t READ FIRST",
            "HANDLER t CLOSE"
        ]));
        assert!(free(&["HANDLER t OPEN AS h", "HANDLER h CLOSE"]));
        assert!(free(&[
            "SELECT GET_LOCK('a', 0), GET_LOCK('b', 0)",
            "SELECT RELEASE_ALL_LOCKS()"
        ]));
    }

    #[test]
    fn what_cannot_be_followed_pins_until_a_reset() {
        let made = "CREATE TEMPORARY TABLE a (i INT)";
        for rest in [
            &["DROP TEMPORARY TABLE A"][..],
            &["DROP TEMPORARY TABLE k.a"],
            &["ALTER TABLE a RENAME b", "DROP TEMPORARY TABLE a"],
            &["CALL p()", "DROP TEMPORARY TABLE a"],
            &["LOCK TABLES t READ", "DROP TEMPORARY TABLE a"],
        ] {
            assert!(!free(&[&[made], rest].concat()), "{rest:?}");
        }
        assert!(!free(&["SELECT GET_LOCK('a', 0)", "SELECT RELEASE_LOCK('a')"]));
        assert!(!free(&[
            "SELECT GET_LOCK('a', 0)",
            "SELECT RELEASE_ALL_LOCKS(), GET_LOCK('b', 0)"
        ]));
        assert!(!free(&["HANDLER t OPEN AS h", "HANDLER t CLOSE"]));
    }

    #[test]
    fn a_statement_that_the_server_refused_opened_nothing_and_closed_nothing() {
        let note = |pins: &mut Pins, sql: &str, ended| {
            let lexed = lex(sql.as_bytes(), &LexOptions::default()).unwrap();
            pins.note(&lexed, &classify(&lexed), ended);
        };
        let mut pins = Pins::default();
        note(&mut pins, "CREATE TEMPORARY TABLE a (i INT)", Ended::Refused);
        note(&mut pins, "HANDLER t OPEN", Ended::Refused);
        assert!(pins.is_empty());
        note(&mut pins, "LOCK TABLES nope READ", Ended::Refused);
        note(&mut pins, "UNLOCK TABLES", Ended::Refused);
        assert!(!pins.is_empty());
        note(&mut pins, "UNLOCK TABLES", Ended::Well);
        assert!(pins.is_empty());
        note(&mut pins, "CREATE TEMPORARY TABLE a (i INT)", Ended::Unknown);
        note(&mut pins, "DROP TEMPORARY TABLE a", Ended::Well);
        assert!(!pins.is_empty());
    }
}
