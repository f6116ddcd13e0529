//! What a server answered, in a form that can be compared: the proof of "the same as one server holding all rows".

use std::fmt;

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{BinaryProtocol, Column, Conn, Error, Params, QueryResult, Row, TextProtocol, Value};

/// Whether the statement fixes the order of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// By `ORDER BY`, or there is one row: compared in order.
    Fixed,
    /// Left to the server: compared as multisets.
    Free,
}

/// A column's definition, as far as a client can tell one server from another by it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnMeta {
    /// Its name in the answer.
    pub name: String,
    /// The column it comes from, if any.
    pub org_name: String,
    /// The table or alias it comes from, if any.
    pub table: String,
    /// Its type on the wire.
    pub kind: ColumnType,
    /// Its flags.
    pub flags: ColumnFlags,
    /// Its display length.
    pub length: u32,
    /// Its decimals.
    pub decimals: u8,
    /// Its collation's id.
    pub charset: u16,
}

impl From<&Column> for ColumnMeta {
    fn from(c: &Column) -> Self {
        Self {
            name: c.name_str().into_owned(),
            org_name: c.org_name_str().into_owned(),
            table: c.table_str().into_owned(),
            kind: c.column_type(),
            flags: c.flags(),
            length: c.column_length(),
            decimals: c.decimals(),
            charset: c.character_set(),
        }
    }
}

/// One result of a statement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// The columns; none for a statement without rows.
    pub columns: Vec<ColumnMeta>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// Rows changed, as the server counts them; of a statement without columns.
    pub affected: u64,
    /// The first generated key, if any; of a statement without columns.
    pub last_insert_id: Option<u64>,
    /// The number of warnings.
    pub warnings: u16,
}

impl Answer {
    /// The rows as text, one cell after another: handy to compare with a literal.
    pub fn cells(&self) -> Vec<Vec<String>> {
        self.rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect()
    }

    /// The single cell of a single row.
    pub fn single(&self) -> String {
        assert!(
            self.rows.len() == 1 && self.rows[0].len() == 1,
            "one cell expected, got {self:?}"
        );
        cell(&self.rows[0][0])
    }

    fn sorted(mut self) -> Self {
        self.rows.sort_by_cached_key(|row| format!("{row:?}"));
        self
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        Value::Int(n) => n.to_string(),
        Value::UInt(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::Double(n) => n.to_string(),
        Value::Date(..) | Value::Time(..) => value.as_sql(true),
    }
}

/// A server's refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Error number.
    pub errno: u16,
    /// SQLSTATE.
    pub state: String,
    /// Text.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.errno, self.state, self.message)
    }
}

/// An answer or a refusal.
pub type Outcome = Result<Answer, Refusal>;

/// Runs a statement in the text protocol. A lost connection panics: it is never a right answer.
pub async fn text(conn: &mut Conn, sql: &str) -> Outcome {
    let done = match conn.query_iter(sql).await {
        Ok(result) => gather::<TextProtocol>(result).await,
        Err(e) => Err(e),
    };
    finish(conn, sql, done)
}

/// Prepares, executes and closes a statement: the binary protocol.
pub async fn binary(conn: &mut Conn, sql: &str, params: impl Into<Params>) -> Outcome {
    let params = params.into();
    let statement = match conn.prep(sql).await {
        Ok(statement) => statement,
        Err(e) => return finish(conn, sql, Err(e)),
    };
    let done = match conn.exec_iter(&statement, params).await {
        Ok(result) => gather::<BinaryProtocol>(result).await,
        Err(e) => Err(e),
    };
    let outcome = finish(conn, sql, done);
    conn.close(statement).await.expect("a statement can be closed");
    outcome
}

/// The answer to a statement that must succeed.
pub async fn ok(conn: &mut Conn, sql: &str) -> Answer {
    match text(conn, sql).await {
        Ok(answer) => answer,
        Err(refusal) => panic!("{sql}: {refusal}"),
    }
}

/// The refusal of a statement that must fail.
pub async fn refused(conn: &mut Conn, sql: &str) -> Refusal {
    match text(conn, sql).await {
        Ok(answer) => panic!("{sql}: a refusal expected, got {answer:?}"),
        Err(refusal) => refusal,
    }
}

async fn gather<P: Protocol>(mut result: QueryResult<'_, '_, P>) -> Result<Answer, Error> {
    let columns = result.columns_ref().iter().map(ColumnMeta::from).collect();
    let rows: Vec<Row> = result.collect().await?;
    let rows = rows.into_iter().map(Row::unwrap).collect();
    Ok(Answer {
        columns,
        rows,
        ..Answer::default()
    })
}

fn finish(conn: &Conn, sql: &str, done: Result<Answer, Error>) -> Outcome {
    match done {
        Ok(mut answer) => {
            answer.warnings = conn.get_warnings();
            // After rows a server may put anything into these two, and does.
            if answer.columns.is_empty() {
                answer.affected = conn.affected_rows();
                answer.last_insert_id = conn.last_insert_id();
            }
            Ok(answer)
        }
        Err(Error::Server(e)) => Err(Refusal {
            errno: e.code,
            state: e.state,
            message: e.message,
        }),
        Err(e) => panic!("{sql}: the connection failed: {e}"),
    }
}

/// Two connections that must answer alike: through the gateway, and to the server holding all rows.
#[derive(Debug)]
pub struct Pair {
    /// Through the gateway.
    pub gateway: Conn,
    /// To the reference server.
    pub reference: Conn,
}

impl Pair {
    /// A query without parameters: same columns and rows in both protocols. Gives the answer.
    pub async fn same(&mut self, sql: &str, order: Order) -> Answer {
        let want = text(&mut self.reference, sql).await;
        let got = text(&mut self.gateway, sql).await;
        let answer = assert_same(sql, "text", order, want, got);
        self.same_prepared(sql, Params::Empty, order).await;
        answer
    }

    /// A prepared query: same columns and rows in the binary protocol. Gives the answer.
    pub async fn same_prepared(&mut self, sql: &str, params: impl Into<Params>, order: Order) -> Answer {
        let params = params.into();
        let want = binary(&mut self.reference, sql, params.clone()).await;
        let got = binary(&mut self.gateway, sql, params).await;
        assert_same(sql, "binary", order, want, got)
    }

    /// A statement that changes something, or a refusal expected alike: run once on each side.
    pub async fn both(&mut self, sql: &str) -> Outcome {
        let want = text(&mut self.reference, sql).await;
        let got = text(&mut self.gateway, sql).await;
        match (want, got) {
            (Ok(want), Ok(got)) => Ok(assert_same(sql, "text", Order::Free, Ok(want), Ok(got))),
            (Err(want), Err(got)) => {
                assert_eq!(
                    (want.errno, &want.state),
                    (got.errno, &got.state),
                    "{sql}: {want} against {got}"
                );
                Err(got)
            }
            (want, got) => panic!("{sql}\n  reference: {want:?}\n  gateway:   {got:?}"),
        }
    }
}

fn assert_same(sql: &str, protocol: &str, order: Order, want: Outcome, got: Outcome) -> Answer {
    let unwrap = |who: &str, outcome: Outcome| match outcome {
        Ok(answer) => answer,
        Err(refusal) => panic!("{sql} ({protocol}): {who} refused: {refusal}"),
    };
    let (mut want, mut got) = (unwrap("the reference", want), unwrap("the gateway", got));
    let answer = got.clone();
    if order == Order::Free {
        (want, got) = (want.sorted(), got.sorted());
    }
    assert_eq!(
        want.columns, got.columns,
        "{sql} ({protocol}): columns, reference left"
    );
    assert_eq!(
        want.rows.len(),
        got.rows.len(),
        "{sql} ({protocol}): number of rows, reference left"
    );
    for (n, (w, g)) in want.rows.iter().zip(&got.rows).enumerate() {
        assert_eq!(w, g, "{sql} ({protocol}): row {n}, reference left");
    }
    let counts = |a: &Answer| (a.affected, a.last_insert_id, a.warnings);
    assert_eq!(
        counts(&want),
        counts(&got),
        "{sql} ({protocol}): affected, insert id, warnings, reference left"
    );
    answer
}
