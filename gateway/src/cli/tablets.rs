//! `shardgate tablets`: what a running gateway knows of its tablets, as `SHOW SHARDGATE TABLETS` prints it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{complain, runtime, say};
use crate::balance::aligned;

/// How long the gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer taken, in bytes.
const LONGEST: u64 = 64 << 20;

/// Arguments of `tablets`.
#[derive(Debug, Args)]
pub(super) struct TabletsArgs {
    /// The gateway's HTTP side.
    #[arg(long, default_value = "127.0.0.1:15000", value_name = "ADDR")]
    admin: SocketAddr,
    /// Only tablets of this keyspace.
    #[arg(long)]
    keyspace: Option<String>,
    /// Only tablets of this role.
    #[arg(long)]
    role: Option<RoleArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleArg {
    Primary,
    Replica,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("{addr} does not answer: {source}")]
    Io {
        addr: SocketAddr,
        source: std::io::Error,
    },
    #[error("{addr} does not answer within {} s", PATIENCE.as_secs())]
    Timeout { addr: SocketAddr },
    #[error("there is no keyspace `{keyspace}`; known are {known}")]
    NoKeyspace { keyspace: String, known: String },
    #[error("{addr} answers {answer}, which is not a gateway's table")]
    Strange { addr: SocketAddr, answer: String },
}

#[derive(Debug, Deserialize)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
}

pub(super) fn run(args: &TabletsArgs) -> ExitCode {
    let runtime = match runtime(1) {
        Ok(runtime) => runtime,
        Err(e) => {
            complain(format_args!("the runtime cannot be started: {e}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(ask(args)) {
        Ok(table) => {
            say(shown(&table).trim_end());
            ExitCode::SUCCESS
        }
        Err(e) => {
            complain(e);
            ExitCode::FAILURE
        }
    }
}

async fn ask(args: &TabletsArgs) -> Result<Table, AskError> {
    let table = fetch(args.admin, &path(args)).await?;
    let Some(keyspace) = args.keyspace.as_ref().filter(|_| table.rows.is_empty()) else {
        return Ok(table);
    };
    // Nothing of that role, or no such keyspace.
    let known = keyspaces(&fetch(args.admin, "/api/tablets").await?);
    if known.contains(keyspace) {
        return Ok(table);
    }
    Err(AskError::NoKeyspace {
        keyspace: keyspace.clone(),
        known: known.into_iter().collect::<Vec<_>>().join(", "),
    })
}

/// The keyspaces of which a table tells.
fn keyspaces(table: &Table) -> BTreeSet<String> {
    let column = table.columns.iter().position(|c| c == "keyspace");
    let of = |row: &Vec<Option<String>>| row.get(column?)?.clone();
    table.rows.iter().filter_map(of).collect()
}

async fn fetch(addr: SocketAddr, path: &str) -> Result<Table, AskError> {
    let answer = match tokio::time::timeout(PATIENCE, get(addr, path)).await {
        Ok(answer) => answer.map_err(|source| AskError::Io { addr, source })?,
        Err(_) => return Err(AskError::Timeout { addr }),
    };
    let strange = || AskError::Strange {
        addr,
        answer: answer.lines().next().unwrap_or("nothing").to_owned(),
    };
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(strange)?;
    if head.split_whitespace().nth(1) != Some("200") {
        return Err(strange());
    }
    serde_json::from_str(body).map_err(|_| strange())
}

fn path(args: &TabletsArgs) -> String {
    let role = args.role.map(|role| match role {
        RoleArg::Primary => "primary",
        RoleArg::Replica => "replica",
    });
    let pairs = [("keyspace", args.keyspace.as_deref()), ("role", role)];
    let query: Vec<String> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", percent(value?))))
        .collect();
    format!("/api/tablets?{}", query.join("&"))
}

/// A value as part of a URL's query: everything but letters, digits and a few signs in hexadecimal.
fn percent(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// One request of HTTP/1.0, whose answer ends with the connection.
async fn get(addr: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(addr).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn shown(table: &Table) -> String {
    let head = table.columns.iter().map(|c| c.to_uppercase()).collect();
    let body = table.rows.iter().map(|row| {
        row.iter()
            .map(|c| c.clone().unwrap_or_else(|| "-".to_owned()))
            .collect()
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(body).collect();
    let mut out = String::new();
    // Writing to a text cannot fail.
    let _ = aligned(&rows, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_travels_in_the_query() {
        let args = TabletsArgs {
            admin: SocketAddr::from(([127, 0, 0, 1], 1)),
            keyspace: Some("a b&c".into()),
            role: Some(RoleArg::Replica),
        };
        assert_eq!(path(&args), "/api/tablets?keyspace=a%20b%26c&role=replica");
    }
}
