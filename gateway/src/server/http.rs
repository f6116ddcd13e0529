//! Connections of the HTTP side: bounded in number, and each in the time it may take for a request's head. Whoever opens
//! hundreds and says nothing must not use up the process's file descriptors, which clients need.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once; further ones wait until one of these ends.
const MOST: usize = 256;
/// How long a request's head may take, from the connection's beginning or the answer before it.
const HEAD: Duration = Duration::from_secs(30);
/// After this long a connection ends with the answer it is at.
const LIFETIME: Duration = Duration::from_mins(10);
/// How long the last answer may take.
const LAST: Duration = Duration::from_secs(10);
/// How long nobody is accepted after that failed, as when there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is stopped, and then until the answers under way are there.
pub(super) async fn serve(router: Router, listener: TcpListener, stopped: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST));
    let connections = TaskTracker::new();
    let accepting = async {
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let connection = connection(router.clone(), stream, peer, stopped.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(e) => {
                    tracing::warn!(error = %e, "a connection to the HTTP side was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = stopped.cancelled() => {}
        () = accepting => {}
    }
    connections.close();
    connections.wait().await;
}

async fn connection(router: Router, stream: TcpStream, peer: SocketAddr, stopped: CancellationToken) {
    // Who asks matters to some routes.
    let service = TowerToHyperService::new(router.layer(Extension(ConnectInfo(peer))));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // That it ends with an error is the client's affair.
        _ = &mut serving => return,
        () = stopped.cancelled() => {}
        () = tokio::time::sleep(LIFETIME) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(LAST, serving).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn served() -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, stopped) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = Router::new().route("/", axum::routing::get(|| async { "here" }));
        tokio::spawn(serve(router, listener, stopped.clone()));
        (addr, stopped)
    }

    async fn ask(addr: SocketAddr) -> String {
        let mut asking = TcpStream::connect(addr).await.unwrap();
        asking
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_say_nothing_make_room_for_others() {
        let (addr, stopped) = served().await;
        let mut silent = Vec::new();
        for n in 0..MOST {
            let mut conn = TcpStream::connect(addr).await.unwrap();
            // Half of them begin to say something.
            if n % 2 == 0 {
                conn.write_all(b"GET / HT").await.unwrap();
            }
            silent.push(conn);
        }
        let began = tokio::time::Instant::now();
        assert!(ask(addr).await.ends_with("here"));
        assert!(began.elapsed() <= HEAD * 2, "{:?}", began.elapsed());
        for mut conn in silent {
            // Closed, with or without a word on why.
            let mut rest = Vec::new();
            let _ = conn.read_to_end(&mut rest).await;
        }
        stopped.cancel();
    }

    #[tokio::test]
    async fn a_stopped_one_ends_though_somebody_keeps_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, stopped) = (listener.local_addr().unwrap(), CancellationToken::new());
        let serving = tokio::spawn(serve(Router::new(), listener, stopped.clone()));
        let _kept = TcpStream::connect(addr).await.unwrap();
        stopped.cancel();
        serving.await.unwrap();
    }
}
