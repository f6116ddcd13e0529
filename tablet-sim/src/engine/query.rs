//! SELECT and DO: translated, run, and sent row by row.

use rusqlite::types::ValueRef;
use sqlparser::ast::{Query, Statement};

use super::parse::Parsed;
use super::session::{Outcome, Session, Sink};
use super::temporal;
use super::translate::{Facts, Translated, Translator};
use super::types::{Class, ColumnMeta, Ty};
use super::value::{self, Value};
use crate::error::{SqlError, SqlResult};

/// A cell's text form, as the text protocol sends it.
pub(crate) fn cell(v: ValueRef<'_>, ty: &Ty) -> Option<Vec<u8>> {
    Some(match v {
        ValueRef::Null => return None,
        ValueRef::Integer(i) => match ty {
            Ty::Time { fsp } => temporal::time_text(i, *fsp).into_bytes(),
            Ty::Year => format!("{i:04}").into_bytes(),
            _ => i.to_string().into_bytes(),
        },
        ValueRef::Real(d) if matches!(ty, Ty::Float) => value::float_text(d as f32).into_bytes(),
        ValueRef::Real(d) => value::double_text(d).into_bytes(),
        ValueRef::Text(t) => t.to_vec(),
        ValueRef::Blob(b) => match (ty.class(), <[u8; 8]>::try_from(b)) {
            (Class::Int, Ok(wide)) => u64::from_be_bytes(wide).to_string().into_bytes(),
            _ => b.to_vec(),
        },
    })
}

/// A value's text form.
pub(crate) fn value_cell(v: &Value, ty: &Ty) -> Option<Vec<u8>> {
    match v {
        Value::Bytes(b) => Some(b.clone()),
        _ => value::to_text(v, ty).map(String::into_bytes),
    }
}

impl Session {
    /// The tree of a SELECT.
    fn query_tree(parsed: &Parsed) -> SqlResult<Box<Query>> {
        match parsed.tree()? {
            Statement::Query(q) => Ok(q),
            other => Err(SqlError::unsupported(other)),
        }
    }

    pub(super) fn select(&mut self, parsed: &Parsed, sink: &mut dyn Sink) -> SqlResult<Outcome> {
        let query = Self::query_tree(parsed)?;
        if parsed.class.is_locking_read && (self.txn.active || !self.vars.on("autocommit")) {
            self.begin_write()?;
        } else {
            self.begin_read()?;
        }
        self.run_query(&query, &parsed.items, sink)
    }

    /// Translates a query on the current catalog.
    pub(crate) fn translate(&mut self, query: &Query, items: &[String]) -> SqlResult<Translated> {
        let catalog = self.catalog_for_query()?;
        let mut translator = Translator::new(&catalog, &*self as &dyn Facts);
        translator.item_texts = items.to_vec();
        translator.query(query)
    }

    pub(crate) fn run_query(
        &mut self,
        query: &Query,
        items: &[String],
        sink: &mut dyn Sink,
    ) -> SqlResult<Outcome> {
        let translated = self.translate(query, items)?;
        let types: Vec<&Ty> = translated.columns.iter().map(|c| &c.ty).collect();
        let metas: Vec<ColumnMeta> = translated.columns.iter().map(|c| c.meta.clone()).collect();
        tracing::trace!(sql = translated.sql, "translated");
        self.shared.enter()?;
        let sent = self.send_rows(&translated.sql, &types, &metas, sink);
        self.shared.leave();
        let sent = sent?;
        self.found_rows = match &translated.unlimited {
            Some(sql) => {
                let counted = format!("SELECT count(*) FROM ({sql})");
                self.conn
                    .query_row(&counted, [], |r| r.get::<_, i64>(0))?
                    .unsigned_abs()
            }
            None => sent,
        };
        Ok(Outcome::Rows)
    }

    /// Runs a translated query; how many rows it gave.
    fn send_rows(
        &self,
        sql: &str,
        types: &[&Ty],
        metas: &[ColumnMeta],
        sink: &mut dyn Sink,
    ) -> SqlResult<u64> {
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        // The first row decides whether there is an error instead of a result.
        let mut sent = 0u64;
        let mut cells = Vec::with_capacity(types.len());
        let mut first = rows.next()?;
        sink.columns(metas)?;
        while let Some(row) = first {
            cells.clear();
            for (i, ty) in types.iter().enumerate() {
                cells.push(cell(row.get_ref(i)?, ty));
            }
            sink.row(&cells)?;
            sent += 1;
            if self.shared.is_killed() {
                return Err(SqlError::interrupted());
            }
            first = rows.next()?;
        }
        Ok(sent)
    }

    /// All rows of a query, with their types: for what the engine itself reads.
    pub(crate) fn collect(&self, sql: &str, types: &[Ty]) -> SqlResult<Vec<Vec<Value>>> {
        self.shared.enter()?;
        let out = self.collect_inner(sql, types);
        self.shared.leave();
        out
    }

    fn collect_inner(&self, sql: &str, types: &[Ty]) -> SqlResult<Vec<Vec<Value>>> {
        let mut statement = self.conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(types.len());
            for (i, ty) in types.iter().enumerate() {
                values.push(Value::from_ref(row.get_ref(i)?, ty));
            }
            out.push(values);
        }
        Ok(out)
    }

    /// DO: a SELECT whose rows nobody sees.
    pub(super) fn do_statement(&mut self, parsed: &Parsed) -> SqlResult<()> {
        struct Nowhere;
        impl Sink for Nowhere {
            fn columns(&mut self, _: &[ColumnMeta]) -> SqlResult<()> {
                Ok(())
            }
            fn row(&mut self, _: &[Option<Vec<u8>>]) -> SqlResult<()> {
                Ok(())
            }
        }
        let mut text = b"SELECT ".to_vec();
        let at = parsed
            .text
            .iter()
            .position(|b| !b.is_ascii_whitespace())
            .unwrap_or(0);
        text.extend_from_slice(parsed.text.get(at + 2..).unwrap_or_default());
        let Statement::Query(query) = parsed.tree_of(&text)? else {
            return Err(SqlError::syntax("near 'DO'"));
        };
        self.run_query(&query, &[], &mut Nowhere).map(|_| ())
    }

    /// The columns a statement will give, told without running it. `None`: it gives no rows.
    pub(crate) fn describe_result(&mut self, parsed: &Parsed) -> SqlResult<Option<Vec<ColumnMeta>>> {
        if parsed.class.kind != shardgate_sql::StatementKind::Select {
            return Ok(None);
        }
        let query = Self::query_tree(parsed)?;
        self.information_schema = parsed.mentions("information_schema");
        let translated = self.translate(&query, &parsed.items)?;
        Ok(Some(translated.columns.into_iter().map(|c| c.meta).collect()))
    }
}
