//! One HTTP request, enough for the gateway's operators' side.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wait;

/// Sends a request without a body; gives the status and the body.
pub async fn request(addr: SocketAddr, method: &str, path: &str) -> (u16, String) {
    request_with(addr, method, path, "").await
}

/// Sends a request with a JSON body; gives the status and the body.
pub async fn request_with(addr: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let what = format!("{method} {path}");
    let exchange = async {
        let mut stream = TcpStream::connect(addr).await?;
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = wait::within(&what, Duration::from_secs(20), exchange).await;
    let answer = answer.unwrap_or_else(|e| panic!("{what}: {e}"));
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{what}: no HTTP answer: {text}"));
    let status = head.split_whitespace().nth(1).and_then(|s| s.parse().ok());
    (
        status.unwrap_or_else(|| panic!("{what}: no status: {head}")),
        body.to_owned(),
    )
}
