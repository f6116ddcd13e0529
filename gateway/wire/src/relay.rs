//! Rows from a tablet to a client, without looking into them: whole frames go from the one socket's read buffer to the
//! other socket, with nothing but the sequence id written anew. The tablet is read again only when the client has
//! taken what came before, so memory is one buffer a relay and a slow client slows the tablet.
//!
//! A frame that does not fit the buffer is passed on in pieces. If the tablet fails inside such a frame, or between
//! two frames of one packet, the client is left inside a packet and can only be disconnected
//! ([`RelayError::client_usable`]). Otherwise it always stands between two packets, and an error packet may follow.

use std::time::Duration;

use bytes::Bytes;

use crate::client::{Phase, TabletConn};
use crate::codec::{ErrPacket, OkPacket};
use crate::error::WireError;
use crate::protocol::MAX_FRAME;
use crate::server::ClientConn;
use crate::stream::{FrameHead, HEADER};

/// How much of the tablet's answer is held at a time.
const BUFFER: usize = 64 * 1024;

/// How long either side may make no progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayLimits {
    /// The tablet sends nothing while the client would take it; `None`: for ever.
    pub tablet_silent: Option<Duration>,
    /// The client takes nothing; `None`: for ever.
    pub client_stalled: Option<Duration>,
}

/// How far a relay got. The caller owns it, so that it survives a relay that is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Whole rows passed on.
    pub rows: u64,
    /// Bytes passed on, headers included.
    pub bytes: u64,
    /// How often something was passed on: what progress means.
    pub chunks: u64,
}

/// What ended the rows. It has been read from the tablet; writing the client its own end is up to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// All rows came. With `MORE_RESULTS` another answer follows.
    End(OkPacket),
    /// The tablet gave up.
    Err(ErrPacket),
}

/// Why a relay stopped short.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The tablet's connection failed.
    #[error("tablet: {source}")]
    Tablet {
        /// How.
        source: WireError,
        /// Whether the client stands between two packets and can be sent an error.
        client_usable: bool,
    },
    /// The tablet was silent for longer than the limit.
    #[error("the tablet sent nothing for the allowed time")]
    TabletSilent {
        /// Whether the client stands between two packets and can be sent an error.
        client_usable: bool,
    },
    /// The client's connection failed.
    #[error("client: {0}")]
    Client(WireError),
    /// The client took nothing for longer than the limit.
    #[error("the client took nothing for the allowed time")]
    ClientStalled,
}

impl RelayError {
    /// Whether the client can still be sent an error packet.
    #[must_use]
    pub const fn client_usable(&self) -> bool {
        match self {
            Self::Tablet { client_usable, .. } | Self::TabletSilent { client_usable } => *client_usable,
            Self::Client(_) | Self::ClientStalled => false,
        }
    }
}

/// Where the relay stands between the frames of a packet.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Bytes of the current frame that have not been passed on.
    frame_left: usize,
    /// The last frame was full, so that the next one continues the same row, whatever its first byte.
    continues: bool,
}

impl Position {
    const fn between_packets(self) -> bool {
        self.frame_left == 0 && !self.continues
    }
}

/// Passes rows on until they end; the tablet must stand at its rows ([`TabletConn::read_columns`] was called). What
/// the client already has buffered goes out first. While the tablet is waited for, the client is watched.
///
/// `progress` is called after each piece that was handed to the client's socket. Dropping the future leaves the tablet
/// busy; the client stands between two packets unless [`ClientConn::flush`] says otherwise.
pub async fn relay_rows(
    tablet: &mut TabletConn,
    client: &mut ClientConn,
    limits: RelayLimits,
    stats: &mut RelayStats,
    mut progress: impl FnMut(&RelayStats),
) -> Result<RelayEnd, RelayError> {
    if let Some(end) = tablet.cursor_end() {
        return Ok(RelayEnd::End(end));
    }
    if tablet.phase != Phase::Rows {
        let source = WireError::State("no rows are due");
        return Err(RelayError::Tablet {
            source,
            client_usable: true,
        });
    }
    let mut at = Position::default();
    loop {
        let step = scan(tablet, client, &mut at, stats);
        let whole = at.between_packets();
        client.mid_packet = !whole;
        if !whole {
            tablet.phase = Phase::InsideRow;
        } else if tablet.phase == Phase::InsideRow {
            tablet.phase = Phase::Rows;
        }
        let step = step.map_err(|source| RelayError::Tablet {
            source,
            client_usable: whole,
        })?;
        if let Step::Ended(end) = step {
            return Ok(end);
        }
        if client.buffered() > 0 {
            send(client, limits.client_stalled).await?;
            stats.chunks += 1;
            progress(stats);
        }
        if let Step::More = step {
            receive(tablet, client, limits.tablet_silent, whole).await?;
        }
    }
}

enum Step {
    /// The rows ended.
    Ended(RelayEnd),
    /// The tablet must be read.
    More,
}

/// Moves everything that can be moved from the tablet's buffer to the client's.
fn scan(
    tablet: &mut TabletConn,
    client: &mut ClientConn,
    at: &mut Position,
    stats: &mut RelayStats,
) -> Result<Step, WireError> {
    let deprecates_eof = tablet.deprecates_eof();
    let stream = &mut tablet.stream;
    let mut seq = client.stream.seq();
    let mut done = 0;
    let mut end = None;
    loop {
        if at.between_packets() {
            let expected = stream.seq();
            let short = short_rows(&mut stream.rbuf[done..], (expected, seq));
            done += short.bytes;
            stats.rows += short.rows;
            // As many frames as rows: the ids count on from where each side stood.
            stream.set_seq(expected.wrapping_add(short.rows as u8));
            seq = seq.wrapping_add(short.rows as u8);
        }
        let expected = stream.seq();
        let here = &mut stream.rbuf[done..];
        if at.frame_left > 0 {
            let n = at.frame_left.min(here.len());
            at.frame_left -= n;
            done += n;
            if at.frame_left > 0 {
                break;
            }
            stats.rows += u64::from(!at.continues);
            continue;
        }
        let Some(head) = FrameHead::parse(here) else { break };
        let whole = here.len() >= HEADER + head.len;
        if !at.continues {
            if head.len == 0 {
                return Err(WireError::Malformed("an empty row"));
            }
            match here.get(HEADER) {
                None => break,
                Some(&b) if ends_rows(b, head.len, deprecates_eof) => {
                    if whole {
                        end = Some(b);
                    }
                    break;
                }
                Some(_) => {}
            }
        }
        // A frame that will fit the buffer waits until it is whole, so that a failing tablet leaves the client usable.
        if !whole && HEADER + head.len <= BUFFER {
            break;
        }
        if expected != head.seq {
            return Err(WireError::OutOfOrder {
                expected,
                got: head.seq,
            });
        }
        here[3] = seq;
        seq = seq.wrapping_add(1);
        stream.set_seq(expected.wrapping_add(1));
        done += HEADER;
        at.frame_left = head.len;
        at.continues = head.len == MAX_FRAME;
        if head.len == 0 {
            // The empty last frame of a packet that is a multiple of the frame's length.
            stats.rows += 1;
        }
    }
    if done > 0 {
        let frames: Bytes = stream.rbuf.split_to(done).freeze();
        stats.bytes += done as u64;
        client.stream.put_frames(frames, seq);
    }
    match end {
        None => Ok(Step::More),
        Some(first) => {
            let packet = stream
                .next_buffered()?
                .ok_or(WireError::Malformed("end of rows"))?;
            Ok(Step::Ended(if first == ErrPacket::HEADER {
                RelayEnd::Err(tablet.take_err(&packet)?)
            } else {
                RelayEnd::End(tablet.take_end(&packet)?)
            }))
        }
    }
}

/// Rows at the start of a buffer that are plainly rows.
struct ShortRows {
    rows: u64,
    bytes: usize,
}

/// Renumbers the whole rows of one frame each at the start of `bytes`, for as long as there is nothing to decide: nearly
/// all rows of nearly all results, in a loop that does only that. The first frame that is not such a row is left.
fn short_rows(bytes: &mut [u8], (mut expected, mut seq): (u8, u8)) -> ShortRows {
    let mut short = ShortRows { rows: 0, bytes: 0 };
    while let Some(&[a, b, c, id, first]) = bytes[short.bytes..].first_chunk() {
        let len = u32::from_le_bytes([a, b, c, 0]) as usize;
        let end = short.bytes + HEADER + len;
        let plain = first < OkPacket::EOF_HEADER && len > 0 && len < MAX_FRAME;
        if !plain || end > bytes.len() || id != expected {
            break;
        }
        bytes[short.bytes + 3] = seq;
        expected = expected.wrapping_add(1);
        seq = seq.wrapping_add(1);
        short.rows += 1;
        short.bytes = end;
    }
    short
}

/// Whether a packet's first frame says that no row follows.
const fn ends_rows(first: u8, len: usize, deprecates_eof: bool) -> bool {
    match first {
        ErrPacket::HEADER => true,
        OkPacket::EOF_HEADER => {
            if deprecates_eof {
                len < MAX_FRAME
            } else {
                len < 9
            }
        }
        _ => false,
    }
}

async fn within<T>(limit: Option<Duration>, what: impl Future<Output = T>) -> Option<T> {
    match limit {
        None => Some(what.await),
        Some(limit) => tokio::time::timeout(limit, what).await.ok(),
    }
}

/// Sends what the client has buffered. The limit holds for each write, so that a slow but steady client passes.
async fn send(client: &mut ClientConn, limit: Option<Duration>) -> Result<(), RelayError> {
    while !client.stream.is_flushed() {
        match within(limit, client.stream.flush_some()).await {
            None => return Err(RelayError::ClientStalled),
            Some(Err(e)) => return Err(RelayError::Client(e)),
            Some(Ok(())) => {}
        }
    }
    Ok(())
}

/// Reads from the tablet, watching the client meanwhile.
async fn receive(
    tablet: &mut TabletConn,
    client: &mut ClientConn,
    limit: Option<Duration>,
    client_usable: bool,
) -> Result<(), RelayError> {
    tablet.stream.reserve_read(BUFFER);
    let both = async {
        tokio::select! {
            biased;
            read = tablet.stream.fill() => read.map_err(|e| RelayError::Tablet {
                // Of a frame that is passed on in pieces the tablet's own buffer knows nothing any more.
                source: if client_usable { e } else { e.inside_packet() },
                client_usable,
            }),
            gone = client.watch_closed() => Err(RelayError::Client(gone)),
        }
    };
    within(limit, both)
        .await
        .unwrap_or(Err(RelayError::TabletSilent { client_usable }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Credential, Password};
    use crate::client::ConnectOptions;
    use crate::server::{Identity, ServerConfig, accept};

    async fn pair() -> (ClientConn, TabletConn) {
        let (a, b) = tokio::io::duplex(1 << 20);
        let users = |_: &Identity<'_>| Some(Credential::Empty);
        let serve = async {
            let mut conn = accept(a, &ServerConfig::new("8.0"), &users, 1).await.unwrap();
            conn.put_ok(&OkPacket::default());
            conn.flush().await.unwrap();
            conn
        };
        let options = ConnectOptions::new("root", Password::default());
        let (server, client) = tokio::join!(serve, TabletConn::handshake(b, None, &options));
        (server, client.unwrap())
    }

    #[tokio::test]
    async fn a_tablet_lost_between_rows_leaves_the_client_usable_and_inside_a_large_row_not() {
        for (cell, usable) in [(1000, true), (500_000, false)] {
            let (mut tablet, mut up) = pair().await;
            let (mut down, _client) = pair().await;
            up.phase = Phase::Rows;
            up.stream.reset_seq();
            tablet.stream.reset_seq();
            tablet.put_raw(&[1, b'a']);
            let [a, b, c, _] = u32::to_le_bytes(cell);
            let mut half = vec![a, b, c, 1];
            half.resize(cell as usize / 2, b'x');
            tablet.stream.put_frames(half.into(), 2);
            tablet.flush().await.unwrap();
            drop(tablet);
            let mut stats = RelayStats::default();
            let e = relay_rows(&mut up, &mut down, RelayLimits::default(), &mut stats, |_| ())
                .await
                .unwrap_err();
            assert!(
                matches!(
                    e,
                    RelayError::Tablet {
                        source: WireError::Truncated,
                        ..
                    }
                ),
                "{e}"
            );
            assert_eq!((e.client_usable(), stats.rows), (usable, 1));
            assert_eq!(up.phase == Phase::InsideRow, !usable);
            assert!(!up.is_idle());
            assert_eq!(down.flush().await.is_ok(), usable);
        }
    }

    /// A connection given up inside a row must not be drained: what follows may look like the end of the rows.
    #[tokio::test(start_paused = true)]
    async fn a_relay_dropped_inside_a_row_leaves_a_connection_that_cannot_be_read_on() {
        let (mut tablet, mut up) = pair().await;
        let (mut down, _client) = pair().await;
        up.phase = Phase::Rows;
        up.stream.reset_seq();
        tablet.stream.reset_seq();
        // A full frame; the frame that completes the row looks like an end.
        let mut frame = vec![0xff, 0xff, 0xff, 0];
        frame.resize(HEADER + MAX_FRAME, b'x');
        tablet.stream.put_frames(frame.into(), 1);
        tablet.put_raw(&[0xfe, 0, 0, 2, 0]);
        let relay = async {
            let mut stats = RelayStats::default();
            let relaying = relay_rows(&mut up, &mut down, RelayLimits::default(), &mut stats, |_| ());
            // The client takes nothing beyond its pipe, so the relay stops inside the row.
            let _ = tokio::time::timeout(Duration::from_millis(50), relaying).await;
        };
        let _ = tokio::join!(
            relay,
            tokio::time::timeout(Duration::from_millis(60), tablet.flush())
        );
        assert_eq!(up.phase, Phase::InsideRow);
        assert!(up.discard_answer().await.is_err());
        assert!(!up.is_idle());
        assert!(down.flush().await.is_err());
    }

    #[test]
    fn plain_rows_are_renumbered_up_to_what_needs_a_closer_look() {
        let row = |id: u8, first: u8| [2, 0, 0, id, first, b'x'];
        for (last, rows) in [
            (vec![2, 0, 0, 1, b'a'], 3),
            (vec![0, 0, 0, 1, b'a'], 3),
            (row(1, 0xfe).to_vec(), 3),
            (row(1, 0xff).to_vec(), 3),
            (row(7, 0x00).to_vec(), 3),
            (row(1, 0xfd).to_vec(), 4),
            (Vec::new(), 3),
        ] {
            let mut bytes = [row(254, 0), row(255, 0xfb), row(0, 1)].concat();
            bytes.extend_from_slice(&last);
            let short = short_rows(&mut bytes, (254, 9));
            assert_eq!((short.rows, short.bytes), (rows, rows as usize * 6), "{last:?}");
            assert_eq!([bytes[3], bytes[9], bytes[15]], [9, 10, 11]);
            let next = bytes.get(21).copied();
            let kept = last.get(3).copied();
            assert_eq!(next, if rows == 4 { Some(12) } else { kept });
        }
    }

    #[test]
    fn the_first_byte_ends_rows_only_in_a_frame_that_is_not_full() {
        assert!(ends_rows(0xff, 100, true) && ends_rows(0xff, 100, false));
        assert!(ends_rows(0xfe, 5, false) && !ends_rows(0xfe, 9, false));
        assert!(ends_rows(0xfe, 9, true) && !ends_rows(0xfe, MAX_FRAME, true));
        assert!(!ends_rows(0x00, 5, true) && !ends_rows(0xfb, 1, false));
    }
}
