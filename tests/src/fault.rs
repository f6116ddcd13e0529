//! A TCP proxy on loopback that misbehaves on demand, for faults in front of real servers.
//!
//! It knows nothing of the protocol beyond finding a statement's text in what a client sends, so it can only work
//! between a gateway and a tablet that do not encrypt.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// Where all proxies run: a test's own runtime has one thread, which may be blocked while a gateway that talks through
/// a proxy starts.
static PROXIES: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(2)
        .thread_name("proxies")
        .enable_all()
        .build()
        .expect("a runtime can be started")
});

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// How the proxy behaves, on connections open and new alike.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Fault {
    /// Passes everything at once.
    #[default]
    None,
    /// Passes each piece of an answer this much later.
    Delay(Duration),
    /// Accepts and passes what clients send, holds back all answers until lifted.
    Stall,
    /// Accepts, passes nothing either way until lifted.
    BlackHole,
    /// Resets open connections and refuses new ones: nothing listens.
    Refuse,
    /// Resets open connections, and new ones as soon as they are accepted.
    Reset,
    /// Passes answers at about this many bytes a second: a slow reader, since the proxy reads no faster.
    Throttle(u64),
    /// Passes this many more bytes of answers on each connection, then resets it.
    CutAfter(u64),
    /// Passes everything until a client sends this text; the answer to it is swallowed and the connection closed.
    LoseReplyAfter(String),
}

impl Fault {
    /// How long a piece of `n` bytes waits.
    #[allow(clippy::cast_precision_loss)] // a piece's length and a rate are far below 2^52
    fn delay(&self, n: usize) -> Duration {
        match self {
            Self::Delay(delay) => *delay,
            Self::Throttle(rate) => Duration::from_secs_f64(n as f64 / (*rate).max(1) as f64),
            _ => Duration::ZERO,
        }
    }

    /// How many of the next `n` bytes pass before the connection is cut, if it is.
    fn cut(&self, passed: u64, n: usize) -> Option<usize> {
        let Self::CutAfter(limit) = self else { return None };
        let left = usize::try_from(limit.saturating_sub(passed)).unwrap_or(usize::MAX);
        (left <= n).then_some(left)
    }
}

/// The proxy; everything of it ends on drop.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    fault: watch::Sender<Fault>,
    accepted: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl FaultProxy {
    /// Starts one before `upstream`, passing everything.
    pub async fn start(upstream: SocketAddr) -> Self {
        let (fault, seen) = watch::channel(Fault::None);
        let accepted = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&accepted);
        let (told, bound) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let serving = async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .expect("loopback has a free port");
            let addr = listener.local_addr().expect("a bound socket has an address");
            let _nobody_waits = told.send(addr);
            serve(listener, addr, upstream, seen, counter).await;
        };
        tasks.spawn_on(serving, PROXIES.handle());
        let addr = bound.await.expect("the proxy starts");
        Self {
            addr,
            fault,
            accepted,
            _tasks: tasks,
        }
    }

    /// Where to connect to.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Changes the behaviour. [`Fault::Refuse`] holds for every connection attempt made after this returns.
    pub async fn set(&self, fault: Fault) {
        let refuse = fault == Fault::Refuse;
        self.fault.send_replace(fault);
        if refuse {
            crate::wait::until("the proxy to refuse", Duration::from_secs(10), || async {
                TcpStream::connect(self.addr).await.is_err().then_some(())
            })
            .await;
        }
    }

    /// Passes everything again.
    pub async fn lift(&self) {
        self.set(Fault::None).await;
        crate::wait::until("the proxy to accept", Duration::from_secs(10), || async {
            TcpStream::connect(self.addr).await.ok()
        })
        .await;
    }
}

async fn serve(
    listener: TcpListener,
    addr: SocketAddr,
    upstream: SocketAddr,
    mut fault: watch::Receiver<Fault>,
    accepted: Arc<AtomicU64>,
) {
    let mut open = JoinSet::new();
    let mut listener = Some(listener);
    loop {
        let refusing = *fault.borrow_and_update() == Fault::Refuse;
        if refusing {
            listener = None;
        } else if listener.is_none() {
            listener = Some(bind_again(addr).await);
        }
        tokio::select! {
            changed = fault.changed() => if changed.is_err() { return },
            stream = accept(listener.as_ref()) => {
                accepted.fetch_add(1, Ordering::SeqCst);
                open.spawn(relay(stream, upstream, fault.clone()));
            }
            Some(_ended) = open.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    match listener {
        Some(listener) => loop {
            if let Ok((stream, _)) = listener.accept().await {
                return stream;
            }
        },
        None => std::future::pending().await,
    }
}

async fn bind_again(addr: SocketAddr) -> TcpListener {
    crate::wait::until(
        "the proxy's port to be free again",
        Duration::from_secs(10),
        || async {
            let socket = TcpSocket::new_v4().ok()?;
            socket.set_reuseaddr(true).ok()?;
            socket.bind(addr).ok()?;
            socket.listen(128).ok()
        },
    )
    .await
}

async fn relay(client: TcpStream, upstream: SocketAddr, mut fault: watch::Receiver<Fault>) {
    if *fault.borrow() == Fault::Reset {
        let _reset = client.set_zero_linger();
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else {
        let _reset = client.set_zero_linger();
        return;
    };
    let _nodelay = (client.set_nodelay(true), server.set_nodelay(true));
    // The socket resets on close when dropped in this state, and closes in order when it is lifted.
    let mut link = Link::new(client, server);
    tokio::select! {
        () = link.run(fault.clone()) => {}
        () = reset_ordered(&mut fault) => link.reset(),
    }
}

async fn reset_ordered(fault: &mut watch::Receiver<Fault>) {
    let gone = fault
        .wait_for(|f| matches!(f, Fault::Refuse | Fault::Reset))
        .await
        .is_err();
    if gone {
        std::future::pending::<()>().await;
    }
}

struct Link {
    from_client: OwnedReadHalf,
    to_client: OwnedWriteHalf,
    from_server: OwnedReadHalf,
    to_server: OwnedWriteHalf,
}

impl Link {
    fn new(client: TcpStream, server: TcpStream) -> Self {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        Self {
            from_client,
            to_client,
            from_server,
            to_server,
        }
    }

    fn reset(&self) {
        let _reset = (
            self.from_client.as_ref().set_zero_linger(),
            self.from_server.as_ref().set_zero_linger(),
        );
    }

    async fn run(&mut self, fault: watch::Receiver<Fault>) {
        let (lost, swallow) = watch::channel(false);
        let up = pass_up(&mut self.from_client, &mut self.to_server, fault.clone(), lost);
        let down = pass_down(&mut self.from_server, &mut self.to_client, fault, swallow);
        // Either side's end ends both, as for a client that talks to the server itself.
        tokio::select! {
            () = up => {}
            () = down => {}
        }
    }
}

async fn pass_up(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut fault: watch::Receiver<Fault>,
    lost: watch::Sender<bool>,
) {
    let mut buffer = vec![0_u8; PIECE];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        if fault.wait_for(|f| *f != Fault::BlackHole).await.is_err() {
            return;
        }
        if let Fault::LoseReplyAfter(text) = &*fault.borrow()
            && find(&buffer[..n], text.as_bytes())
        {
            lost.send_replace(true);
        }
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}

async fn pass_down(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    mut fault: watch::Receiver<Fault>,
    swallow: watch::Receiver<bool>,
) {
    let mut buffer = vec![0_u8; PIECE];
    let (mut passed, mut under) = (0, Fault::None);
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        if *swallow.borrow() {
            return;
        }
        let passing = fault
            .wait_for(|f| !matches!(f, Fault::BlackHole | Fault::Stall))
            .await;
        let Ok((delay, cut)) = passing.map(|now| {
            if *now != under {
                under = now.clone();
                passed = 0;
            }
            (now.delay(n), now.cut(passed, n))
        }) else {
            return;
        };
        tokio::time::sleep(delay).await;
        if to.write_all(&buffer[..cut.unwrap_or(n)]).await.is_err() {
            return;
        }
        if cut.is_some() {
            let _reset = (to.as_ref().set_zero_linger(), from.as_ref().set_zero_linger());
            return;
        }
        passed += n as u64;
    }
}

fn find(hay: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && hay.windows(needle.len()).any(|w| w == needle)
}
