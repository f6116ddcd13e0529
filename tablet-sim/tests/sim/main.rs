//! The simulated tablet as its clients meet it, over the wire.

// A helper that fails fails its test.
#![allow(clippy::unwrap_used)]

mod everyday;
mod faults;
mod proxy;
mod reparent;
mod replication;
mod sessions;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Row, Value};
use shardgate_tablet_sim::{SimOptions, SimTablet};

/// A tablet with one database, `shop`.
pub(crate) async fn tablet() -> SimTablet {
    SimTablet::start(SimOptions {
        databases: vec!["shop".into()],
        ..SimOptions::default()
    })
    .await
    .unwrap()
}

/// A client of it.
pub(crate) async fn client(tablet: &SimTablet) -> Conn {
    client_at(tablet.addr()).await
}

/// A client of what listens there.
pub(crate) async fn client_at(addr: std::net::SocketAddr) -> Conn {
    let opts = OptsBuilder::default()
        .ip_or_hostname(addr.ip().to_string())
        .tcp_port(addr.port())
        .user(Some("root"))
        .db_name(Some("shop"));
    Conn::new(opts).await.unwrap()
}

/// One HTTP request; status line and body.
pub(crate) async fn http(
    addr: std::net::SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> (String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap_or("").to_owned(), body.to_owned())
}

/// Serves these routes until the test ends.
pub(crate) async fn serve(routes: axum::Router) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    addr
}

/// A cell as a text protocol client reads it.
pub(crate) fn shown(v: &Value) -> String {
    match v {
        Value::NULL => "NULL".into(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        other => other.as_sql(true),
    }
}

/// All rows of a statement: cells joined by `|`, rows by `/`; an error as its number.
pub(crate) async fn ask(conn: &mut Conn, sql: &str) -> String {
    match conn.query::<Row, _>(sql).await {
        Ok(rows) => rows
            .into_iter()
            .map(|r| r.unwrap().iter().map(shown).collect::<Vec<_>>().join("|"))
            .collect::<Vec<_>>()
            .join("/"),
        Err(e) => failed(&e),
    }
}

/// `ERR number` of a server's error.
pub(crate) fn failed(e: &mysql_async::Error) -> String {
    match e {
        mysql_async::Error::Server(e) => format!("ERR {} {}", e.code, e.message),
        other => format!("FAILED {other}"),
    }
}

/// Runs a table of statements and what each answers; an expectation that ends in `...` is a beginning.
pub(crate) async fn check(conn: &mut Conn, cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (sql, want) in cases {
        let got = ask(conn, sql).await;
        let right = match want.strip_suffix("...") {
            Some(start) => got.starts_with(start),
            None => got == *want,
        };
        if !right {
            wrong.push(format!("{sql}\n    want {want}\n    got  {got}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
