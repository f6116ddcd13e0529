//! The byte streams that packets travel over. An enum rather than a type parameter, so that connections of all kinds
//! live in one pool and one session type.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// A stream without TLS.
#[derive(Debug)]
pub enum Raw {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// A pipe inside the process, for simulated tablets and tests.
    Memory(DuplexStream),
}

/// A stream, with or without TLS.
#[derive(Debug)]
pub enum Transport {
    /// Without.
    Plain(Raw),
    /// With.
    Tls(Box<TlsStream<Raw>>),
}

impl Transport {
    /// The stream under the TLS, if any.
    #[must_use]
    pub fn raw(&self) -> &Raw {
        match self {
            Self::Plain(raw) => raw,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }

    /// Whether the stream is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether a password in clear may be sent: over TLS, or where the bytes never leave the machine.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.is_tls() || matches!(self.raw(), Raw::Unix(_) | Raw::Memory(_))
    }

    /// The peer's address, if it is TCP and still connected.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        match self.raw() {
            Raw::Tcp(tcp) => tcp.peer_addr().ok(),
            Raw::Unix(_) | Raw::Memory(_) => None,
        }
    }

    /// This end's address, if it is TCP.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self.raw() {
            Raw::Tcp(tcp) => tcp.local_addr().ok(),
            Raw::Unix(_) | Raw::Memory(_) => None,
        }
    }

    /// Makes closing a TCP stream a reset instead of an orderly end.
    pub fn reset_on_drop(&self) -> io::Result<()> {
        match self.raw() {
            Raw::Tcp(tcp) => tcp.set_zero_linger(),
            Raw::Unix(_) | Raw::Memory(_) => Ok(()),
        }
    }
}

impl From<TcpStream> for Transport {
    /// Nagle's algorithm is turned off: every flush is a whole answer or a full chunk.
    fn from(tcp: TcpStream) -> Self {
        let _ = tcp.set_nodelay(true);
        Self::Plain(Raw::Tcp(tcp))
    }
}

impl From<UnixStream> for Transport {
    fn from(unix: UnixStream) -> Self {
        Self::Plain(Raw::Unix(unix))
    }
}

impl From<DuplexStream> for Transport {
    fn from(pipe: DuplexStream) -> Self {
        Self::Plain(Raw::Memory(pipe))
    }
}

impl From<TlsStream<Raw>> for Transport {
    fn from(tls: TlsStream<Raw>) -> Self {
        Self::Tls(Box::new(tls))
    }
}

macro_rules! each_raw {
    ($self:expr, $s:ident => $call:expr) => {
        match $self.get_mut() {
            Raw::Tcp($s) => $call,
            Raw::Unix($s) => $call,
            Raw::Memory($s) => $call,
        }
    };
}

macro_rules! each_transport {
    ($self:expr, $s:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Plain($s) => $call,
            Transport::Tls($s) => $call,
        }
    };
}

impl AsyncRead for Raw {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each_raw!(self, s => Pin::new(s).poll_read(cx, buf))
    }
}

impl AsyncWrite for Raw {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each_raw!(self, s => Pin::new(s).poll_write(cx, buf))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each_raw!(self, s => Pin::new(s).poll_write_vectored(cx, bufs))
    }
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(s) => s.is_write_vectored(),
            Self::Unix(s) => s.is_write_vectored(),
            Self::Memory(s) => s.is_write_vectored(),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_raw!(self, s => Pin::new(s).poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_raw!(self, s => Pin::new(s).poll_shutdown(cx))
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each_transport!(self, s => Pin::new(s).poll_read(cx, buf))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each_transport!(self, s => Pin::new(s).poll_write(cx, buf))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each_transport!(self, s => Pin::new(s).poll_write_vectored(cx, bufs))
    }
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(s) => s.is_write_vectored(),
            Self::Tls(s) => s.is_write_vectored(),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_transport!(self, s => Pin::new(s).poll_flush(cx))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each_transport!(self, s => Pin::new(s).poll_shutdown(cx))
    }
}
