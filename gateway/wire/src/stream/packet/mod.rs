//! Framing: a packet is one frame of up to 2^24-2 bytes, or frames of 2^24-1 bytes and a shorter (perhaps empty) last
//! one. Each frame has a three-byte length and a sequence id, which both directions count together.
//!
//! Reads are cancel-safe: bytes go from the socket into the buffer and stay there until a whole packet is taken.
//! Flushes are cancel-safe too: what was written is gone from the buffer, what was not is still in it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::{Share, Transport};
use crate::error::WireError;
use crate::protocol::MAX_FRAME;

/// How much a read asks for at least, unless told otherwise.
const READ_CHUNK: usize = 16 * 1024;
/// A read buffer that grew beyond this many chunks for one large packet is given back once it is empty.
const KEEP_CHUNKS: usize = 8;
/// The same for write buffers, in bytes.
const KEEP: usize = 128 * 1024;
/// Writers flush when this much is buffered, rather than let an answer pile up in memory.
pub const FLUSH_AT: usize = 32 * 1024;
/// What each connection may hold of packets under way without a share of the room that all have.
const OWN: usize = 64 * 1024;
/// A frame's header.
pub(crate) const HEADER: usize = 4;

/// Packets over a [`Transport`].
#[derive(Debug)]
pub struct PacketStream {
    io: Transport,
    pub(crate) rbuf: BytesMut,
    /// Whether the read buffer grew beyond [`KEEP_CHUNKS`] since it was last made.
    grown: bool,
    /// Frames of a packet whose last frame has not come yet.
    joined: Option<Vec<u8>>,
    /// A packet that is too large is being thrown away.
    skip: Option<Skip>,
    /// What large packets take of the room that all connections have; without it there is room for any.
    share: Option<Share>,
    wbuf: Vec<u8>,
    /// How much of `wbuf` was written.
    wpos: usize,
    /// Bytes that go out after `wbuf`, without having been copied into it.
    chunk: Bytes,
    /// Something was written that the transport (TLS) may still hold back.
    unflushed: bool,
    seq: u8,
    max_packet: usize,
    /// How much a read asks for at least.
    chunk_size: usize,
    /// Read no further than the packet at hand: what follows may belong to TLS.
    exact: bool,
}

/// What is left of a frame that is being thrown away.
#[derive(Clone, Copy, Debug)]
struct Skip {
    left: usize,
    last: bool,
    /// It would have been taken, had there been room.
    no_room: bool,
}

/// A frame's header, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) len: usize,
    pub(crate) seq: u8,
}

impl FrameHead {
    /// Reads the header at the start of `bytes`, if it is all there.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, seq] = *bytes.first_chunk::<HEADER>()?;
        Some(Self {
            len: u32::from_le_bytes([a, b, c, 0]) as usize,
            seq,
        })
    }
}

impl PacketStream {
    /// Wraps a stream. `max_packet` bounds the packets that are read, in bytes.
    #[must_use]
    pub fn new(io: Transport, max_packet: usize) -> Self {
        Self {
            io,
            rbuf: BytesMut::new(),
            grown: false,
            joined: None,
            skip: None,
            share: None,
            wbuf: Vec::new(),
            wpos: 0,
            chunk: Bytes::new(),
            unflushed: false,
            seq: 0,
            max_packet,
            chunk_size: READ_CHUNK,
            exact: false,
        }
    }

    /// The stream underneath.
    #[must_use]
    pub const fn transport(&self) -> &Transport {
        &self.io
    }

    /// The stream underneath, for replacing it by an encrypted one. Fails if bytes were read that would be lost.
    pub fn into_transport(self) -> Result<Transport, WireError> {
        if self.rbuf.is_empty() && self.buffered() == 0 {
            Ok(self.io)
        } else {
            Err(WireError::State("bytes are buffered"))
        }
    }

    /// The bound on packets that are read, in bytes.
    pub const fn set_max_packet(&mut self, max_packet: usize) {
        self.max_packet = max_packet;
    }

    /// Large packets take a share of a room that others take from too. One for which there is none is thrown away, and
    /// reading it ends with [`WireError::NoRoom`]. A share is given back when the next packet is to be read.
    pub fn set_share(&mut self, share: Share) {
        self.share = Some(share);
    }

    /// How much a read asks for at least, in bytes: small for connections that idle in thousands.
    pub const fn set_read_chunk(&mut self, size: usize) {
        self.chunk_size = size;
    }

    /// Whether reads stop at the end of the packet at hand, as they must before TLS starts.
    pub const fn set_exact(&mut self, exact: bool) {
        self.exact = exact;
    }

    /// The next sequence id to be sent or expected.
    #[must_use]
    pub const fn seq(&self) -> u8 {
        self.seq
    }

    /// Sets the next sequence id, as after an upgrade to TLS, which goes on counting.
    pub const fn set_seq(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// Starts counting anew, as each command does. Does nothing while frames of a packet are still to come, so that
    /// a read that was dropped can go on.
    pub const fn reset_seq(&mut self) {
        if self.joined.is_none() && self.skip.is_none() {
            self.seq = 0;
        }
    }

    /// How many bytes wait to be flushed.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.wbuf.len() - self.wpos + self.chunk.len()
    }

    /// How many bytes were read and not yet taken.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.rbuf.len()
    }

    /// Reads one packet's payload. Cancel-safe. After [`WireError::PacketTooLarge`] the packet has been thrown away
    /// and the stream stands at the next one.
    pub async fn read_packet(&mut self) -> Result<Bytes, WireError> {
        loop {
            if let Some(packet) = self.next_buffered()? {
                return Ok(packet);
            }
            self.fill().await?;
        }
    }

    /// Takes a packet that is already in the buffer.
    pub fn next_buffered(&mut self) -> Result<Option<Bytes>, WireError> {
        loop {
            if let Some(skip) = self.skip {
                if !self.skip_some(skip) {
                    return Ok(None);
                }
                if skip.last {
                    self.skip = None;
                    return Err(match &self.share {
                        Some(share) if skip.no_room => WireError::NoRoom { limit: share.limit() },
                        Some(_) | None => WireError::PacketTooLarge {
                            limit: self.max_packet,
                        },
                    });
                }
            }
            let Some(head) = FrameHead::parse(&self.rbuf) else {
                return Ok(None);
            };
            let last = head.len < MAX_FRAME;
            let too_large = self.skip.is_some() || self.joined_len() + head.len > self.max_packet;
            let is_here = self.rbuf.len() >= HEADER + head.len;
            let no_room = !too_large && !is_here && !self.has_room();
            if too_large || no_room {
                self.take_seq(head.seq)?;
                self.rbuf.advance(HEADER);
                self.joined = None;
                self.skip = Some(Skip {
                    left: head.len,
                    last,
                    no_room: no_room || self.skip.is_some_and(|s| s.no_room),
                });
                continue;
            }
            if !is_here {
                return Ok(None);
            }
            self.take_seq(head.seq)?;
            self.rbuf.advance(HEADER);
            if last && self.joined.is_none() {
                return Ok(Some(self.rbuf.split_to(head.len).freeze()));
            }
            let mut joined = self.joined.take().unwrap_or_default();
            joined.extend_from_slice(&self.rbuf[..head.len]);
            self.rbuf.advance(head.len);
            if last {
                return Ok(Some(Bytes::from(joined)));
            }
            self.joined = Some(joined);
        }
    }

    /// Whether what was read of a packet may grow. Buffers double as they grow, so twice as much is covered.
    fn has_room(&mut self) -> bool {
        let held = self.rbuf.len() + self.joined_len();
        match &mut self.share {
            Some(share) if held > OWN => share.cover(2 * held, OWN),
            Some(_) | None => true,
        }
    }

    fn joined_len(&self) -> usize {
        self.joined.as_ref().map_or(0, Vec::len)
    }

    /// Throws away what the buffer holds of the frame; whether that was all of it.
    fn skip_some(&mut self, skip: Skip) -> bool {
        let n = skip.left.min(self.rbuf.len());
        self.rbuf.advance(n);
        self.skip = Some(Skip {
            left: skip.left - n,
            ..skip
        });
        n == skip.left
    }

    pub(crate) fn take_seq(&mut self, got: u8) -> Result<(), WireError> {
        if got != self.seq {
            return Err(WireError::OutOfOrder {
                expected: self.seq,
                got,
            });
        }
        self.seq = self.seq.wrapping_add(1);
        Ok(())
    }

    /// Reads whatever the socket has, at least one byte. Cancel-safe.
    pub(crate) async fn fill(&mut self) -> Result<(), WireError> {
        let room = self.make_room();
        let n = if self.exact {
            self.io.read_buf(&mut (&mut self.rbuf).limit(room)).await?
        } else {
            self.io.read_buf(&mut self.rbuf).await?
        };
        if n > 0 {
            return Ok(());
        }
        let inside = !self.rbuf.is_empty() || self.joined.is_some() || self.skip.is_some();
        Err(if inside {
            WireError::Truncated
        } else {
            WireError::Closed
        })
    }

    /// Reserves space for the next read and returns how many bytes the packet at hand still wants. A length that a
    /// peer only claims is not believed: the buffer at most doubles with each read.
    fn make_room(&mut self) -> usize {
        if self.rbuf.is_empty() && self.grown {
            self.rbuf = BytesMut::new();
            self.grown = false;
        }
        let have = self.rbuf.len();
        let want = match (self.skip, FrameHead::parse(&self.rbuf)) {
            (Some(skip), _) if skip.left > 0 => skip.left.min(READ_CHUNK),
            (_, None) => HEADER - have,
            (_, Some(head)) => (HEADER + head.len).saturating_sub(have),
        };
        let free = self.rbuf.capacity() - have;
        let chunk = self.chunk_size;
        if free < want.min(chunk) || free < chunk / 4 {
            self.rbuf.reserve(want.clamp(chunk, have.max(chunk)));
            self.grown |= self.rbuf.capacity() > KEEP_CHUNKS * chunk;
        }
        want.max(1)
    }

    /// Makes the read buffer hold at least `size` bytes, so that a relay reads in larger pieces.
    pub(crate) fn reserve_read(&mut self, size: usize) {
        let have = self.rbuf.len();
        if self.rbuf.capacity() < size.max(have) {
            self.rbuf.reserve(size.saturating_sub(have));
        }
    }

    /// Buffers one packet.
    pub fn put_packet(&mut self, payload: &[u8]) {
        self.merge_chunk();
        let mut rest = payload;
        loop {
            let (frame, tail) = rest.split_at(rest.len().min(MAX_FRAME));
            self.put_header(frame.len());
            self.wbuf.extend_from_slice(frame);
            if frame.len() < MAX_FRAME {
                return;
            }
            rest = tail;
        }
    }

    /// Buffers one packet whose payload `write` appends to the buffer it is given; it must only append.
    pub fn put_packet_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.merge_chunk();
        let start = self.wbuf.len();
        self.wbuf.extend_from_slice(&[0; HEADER]);
        write(&mut self.wbuf);
        let len = self.wbuf.len().saturating_sub(start + HEADER);
        if len < MAX_FRAME {
            let [a, b, c, _] = (len as u32).to_le_bytes();
            self.wbuf[start..start + HEADER].copy_from_slice(&[a, b, c, self.seq]);
            self.seq = self.seq.wrapping_add(1);
        } else {
            let payload = self.wbuf.split_off(start + HEADER);
            self.wbuf.truncate(start);
            self.put_packet(&payload);
        }
    }

    fn put_header(&mut self, len: usize) {
        let [a, b, c, _] = (len as u32).to_le_bytes();
        self.wbuf.extend_from_slice(&[a, b, c, self.seq]);
        self.seq = self.seq.wrapping_add(1);
    }

    /// Buffers bytes that are frames already, with the right sequence ids; `next_seq` follows them. Large ones are
    /// not copied.
    pub(crate) fn put_frames(&mut self, frames: Bytes, next_seq: u8) {
        self.merge_chunk();
        self.seq = next_seq;
        if self.wbuf.len() - self.wpos + frames.len() <= READ_CHUNK {
            self.wbuf.extend_from_slice(&frames);
        } else {
            self.chunk = frames;
        }
    }

    fn merge_chunk(&mut self) {
        if !self.chunk.is_empty() {
            let chunk = std::mem::take(&mut self.chunk);
            self.wbuf.extend_from_slice(&chunk);
        }
    }

    /// Writes everything buffered. Cancel-safe: called again, it goes on where it was dropped.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        while !self.is_flushed() {
            self.flush_some().await?;
        }
        Ok(())
    }

    /// Writes as much as one write takes; what that leaves stays buffered. Cancel-safe.
    pub(crate) async fn flush_some(&mut self) -> Result<(), WireError> {
        let head = &self.wbuf[self.wpos..];
        let n = match (head.is_empty(), self.chunk.is_empty()) {
            (false, false) => {
                self.io
                    .write_vectored(&[IoSlice::new(head), IoSlice::new(&self.chunk)])
                    .await?
            }
            (false, true) => self.io.write(head).await?,
            (true, false) => self.io.write(&self.chunk).await?,
            (true, true) => {
                self.io.flush().await?;
                self.unflushed = false;
                return Ok(());
            }
        };
        if n == 0 {
            return Err(WireError::Io(io::ErrorKind::WriteZero.into()));
        }
        // Only TLS holds bytes back.
        self.unflushed = self.io.is_tls();
        let from_head = n.min(self.wbuf.len() - self.wpos);
        self.wpos += from_head;
        self.chunk.advance(n - from_head);
        if self.buffered() == 0 {
            self.wpos = 0;
            self.wbuf.clear();
            // Gives the memory back to the buffer it was split from.
            self.chunk = Bytes::new();
            if self.wbuf.capacity() > KEEP {
                self.wbuf = Vec::new();
            }
        }
        Ok(())
    }

    /// Gives back what an idle connection should not hold: an empty write buffer that is large, and its share of the room.
    pub(crate) fn rest(&mut self) {
        if self.rbuf.len() + self.joined_len() <= OWN
            && let Some(share) = &mut self.share
        {
            share.give_back();
        }
        if self.wbuf.is_empty() && self.wbuf.capacity() > 2 * self.chunk_size {
            self.wbuf = Vec::new();
        }
    }

    /// Whether everything was handed to the socket.
    pub(crate) fn is_flushed(&self) -> bool {
        self.buffered() == 0 && !self.unflushed
    }

    /// Flushes if [`FLUSH_AT`] bytes or more wait.
    pub async fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.buffered() >= FLUSH_AT {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Resolves when the peer is gone. Until then it reads ahead into the buffer, up to `limit` bytes, and no further:
    /// nothing is lost and memory is bounded. Cancel-safe.
    pub async fn closed(&mut self, limit: usize) -> WireError {
        while self.rbuf.len() < limit {
            if let Err(e) = self.fill().await {
                return e;
            }
        }
        std::future::pending().await
    }

    /// Looks, without waiting, whether an idle peer has sent anything or closed.
    pub fn probe(&mut self) -> Probe {
        if !self.rbuf.is_empty() {
            return Probe::Bytes;
        }
        let mut space = [0; 1024];
        let mut buf = ReadBuf::new(&mut space);
        match Pin::new(&mut self.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf) {
            Poll::Pending => Probe::Quiet,
            Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                self.rbuf.extend_from_slice(buf.filled());
                Probe::Bytes
            }
            Poll::Ready(_) => Probe::Closed,
        }
    }

    /// Says goodbye to the socket: flushes TLS's end and closes the sending half.
    pub async fn shutdown(&mut self) -> Result<(), WireError> {
        Ok(self.io.shutdown().await?)
    }
}

/// What [`PacketStream::probe`] saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// Nothing: as an idle connection should be.
    Quiet,
    /// Bytes that nobody asked for, such as a server's parting error.
    Bytes,
    /// The peer closed.
    Closed,
}

#[cfg(test)]
mod tests;
