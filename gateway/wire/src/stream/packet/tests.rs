use proptest::prelude::*;
use tokio::io::DuplexStream;

use super::*;
use crate::stream::Room;
use std::sync::Arc;

fn pair(pipe: usize, max_packet: usize) -> (PacketStream, PacketStream) {
    let (a, b) = tokio::io::duplex(pipe);
    (
        PacketStream::new(a.into(), max_packet),
        PacketStream::new(b.into(), max_packet),
    )
}

fn raw(max_packet: usize) -> (DuplexStream, PacketStream) {
    let (a, b) = tokio::io::duplex(1 << 20);
    (a, PacketStream::new(b.into(), max_packet))
}

#[tokio::test]
async fn packets_of_every_size_come_back_split_and_joined() {
    for len in [0, 1, (1 << 24) - 2, (1 << 24) - 1, 1 << 24, 40_000_000] {
        let (mut a, mut b) = pair(1 << 20, 64 << 20);
        let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        a.put_packet(&payload);
        a.put_packet_with(|out| out.extend_from_slice(&payload));
        let write = async {
            a.flush().await.unwrap();
            a.seq()
        };
        let read = async {
            for _ in 0..2 {
                assert!(b.read_packet().await.unwrap() == payload, "{len}");
            }
            b.seq()
        };
        let (w, r) = tokio::join!(write, read);
        assert_eq!(w, r);
        assert_eq!(usize::from(w), 2 * (len / MAX_FRAME + 1));
    }
}

#[tokio::test]
async fn a_packet_over_the_limit_is_an_error_and_the_next_one_is_read() {
    for over in [1001, 1 << 24, 40_000_000] {
        let (mut a, mut b) = pair(1 << 20, 1000);
        a.put_packet(&vec![1; over]);
        a.put_packet(&[2; 1000]);
        let read = async {
            assert!(matches!(
                b.read_packet().await,
                Err(WireError::PacketTooLarge { limit: 1000 })
            ));
            assert_eq!(b.read_packet().await.unwrap(), vec![2; 1000]);
        };
        let (flushed, ()) = tokio::join!(a.flush(), read);
        flushed.unwrap();
    }
}

#[tokio::test]
async fn a_large_length_that_is_only_claimed_takes_no_memory() {
    let (mut a, mut b) = raw(1 << 30);
    a.write_all(&[0xfe, 0xff, 0xff, 0, 1, 2, 3]).await.unwrap();
    drop(a);
    assert!(matches!(b.read_packet().await, Err(WireError::Truncated)));
    assert!(b.rbuf.capacity() <= 4 * READ_CHUNK);
}

#[tokio::test]
async fn a_wrong_sequence_id_is_an_error() {
    let (mut a, mut b) = raw(1000);
    a.write_all(&[1, 0, 0, 3, 9]).await.unwrap();
    assert!(matches!(
        b.read_packet().await,
        Err(WireError::OutOfOrder { expected: 0, got: 3 })
    ));
}

#[tokio::test]
async fn the_end_between_packets_is_told_from_the_end_inside_one() {
    let (mut a, mut b) = raw(1000);
    a.write_all(&[1, 0, 0, 0, 9, 1]).await.unwrap();
    drop(a);
    assert_eq!(&*b.read_packet().await.unwrap(), [9]);
    assert!(matches!(b.read_packet().await, Err(WireError::Truncated)));
    let (a, mut b) = raw(1000);
    drop(a);
    assert!(matches!(b.read_packet().await, Err(WireError::Closed)));
}

/// Polls once and drops, as `select!` does with the losing branch.
async fn once<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = what => Some(done),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn a_read_dropped_at_every_byte_loses_nothing() {
    let mut a = PacketStream::new(tokio::io::duplex(1).0.into(), 0);
    let payloads: Vec<Vec<u8>> = (0..40u8).map(|i| vec![i; usize::from(i)]).collect();
    for p in &payloads {
        a.put_packet(p);
    }
    let bytes = std::mem::take(&mut a.wbuf);
    let (mut w, mut b) = raw(1000);
    let mut got = Vec::new();
    for byte in bytes {
        w.write_all(&[byte]).await.unwrap();
        while let Some(p) = once(b.read_packet()).await {
            got.push(p.unwrap().to_vec());
        }
    }
    assert_eq!(got, payloads);
}

#[tokio::test]
async fn a_flush_dropped_at_every_write_repeats_and_loses_nothing() {
    let (mut a, mut b) = pair(7, 1 << 20);
    let payload: Vec<u8> = (0..1000u32).map(|i| (i % 251) as u8).collect();
    a.put_packet(&payload);
    a.put_frames(Bytes::from(vec![5; READ_CHUNK]), 9);
    let mut got = Vec::new();
    while once(a.flush()).await.is_none() {
        let _ = once(b.fill()).await;
        got.extend_from_slice(&b.rbuf.split());
    }
    while once(b.fill()).await.is_some() {
        got.extend_from_slice(&b.rbuf.split());
    }
    assert_eq!(got.len(), HEADER + 1000 + READ_CHUNK);
    assert_eq!(got[HEADER..HEADER + 1000], payload);
    assert!(got[HEADER + 1000..].iter().all(|&b| b == 5));
    assert_eq!(a.seq(), 9);
}

#[tokio::test]
async fn watching_for_the_end_keeps_what_was_sent_ahead_and_stops_at_the_limit() {
    let (mut a, mut b) = raw(1 << 20);
    a.write_all(&[1, 0, 0, 0, 7]).await.unwrap();
    assert!(once(b.closed(1000)).await.is_none());
    assert_eq!(&*b.read_packet().await.unwrap(), [7]);
    a.write_all(&vec![0; 900_000]).await.unwrap();
    drop(a);
    assert!(
        once(b.closed(1000)).await.is_none(),
        "full: the end is out of sight"
    );
    assert!(b.unread() <= 1000 + READ_CHUNK);
    assert!(matches!(b.closed(1 << 20).await, WireError::Truncated));
}

#[tokio::test]
async fn an_exact_read_leaves_the_rest_in_the_socket() {
    let (mut a, mut b) = raw(1000);
    b.set_exact(true);
    a.write_all(&[2, 0, 0, 0, 7, 8, 0x16, 3, 1]).await.unwrap();
    assert_eq!(&*b.read_packet().await.unwrap(), [7, 8]);
    assert_eq!(b.unread(), 0);
}

#[tokio::test]
async fn a_buffer_grown_for_a_large_packet_is_given_back() {
    let (mut a, mut b) = pair(1 << 16, 64 << 20);
    for _ in 0..2 {
        a.put_packet(&vec![1; 8 << 20]);
        let (flushed, read) = tokio::join!(a.flush(), b.read_packet());
        flushed.unwrap();
        read.unwrap();
        a.put_packet(&[1]);
        a.flush().await.unwrap();
        b.read_packet().await.unwrap();
        assert!(b.rbuf.capacity() <= KEEP && !b.grown);
        assert!(a.wbuf.capacity() <= KEEP);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let rt = tokio::runtime::Builder::new_current_thread().build().unwrap();
        rt.block_on(async {
            let (mut a, mut b) = raw(500);
            a.write_all(&bytes).await.unwrap();
            drop(a);
            for _ in 0..bytes.len() {
                let _ = b.read_packet().await;
            }
        });
    }
}

#[tokio::test]
async fn packets_for_which_there_is_no_room_are_thrown_away_and_the_next_ones_are_read() {
    let room = Arc::new(Room::new(1 << 20));
    for large in [300_000, 40_000_000] {
        let (mut a, mut b) = pair(1 << 16, 64 << 20);
        b.set_share(Share::new(Arc::clone(&room)));
        let mut other = Share::new(Arc::clone(&room));
        assert!(other.cover(900_000, 1));
        a.put_packet(&vec![1; large]);
        a.put_packet(&[2; 1000]);
        let read = async {
            let refused = b.read_packet().await;
            assert!(
                matches!(refused, Err(WireError::NoRoom { limit: 1_048_576 })),
                "{refused:?}"
            );
            assert_eq!(b.read_packet().await.unwrap().len(), 1000);
        };
        let (written, ()) = tokio::join!(a.flush(), read);
        written.unwrap();
        // Now there is room for the smaller one, until the next packet is to be read.
        drop(other);
        a.set_seq(0);
        b.reset_seq();
        b.rest();
        assert_eq!(room.taken(), 0);
        a.put_packet(&vec![3; 300_000]);
        let (written, packet) = tokio::join!(a.flush(), b.read_packet());
        written.unwrap();
        assert_eq!(packet.unwrap().len(), 300_000);
        assert!(room.taken() >= 300_000, "{}", room.taken());
        b.rest();
        assert_eq!(room.taken(), 0);
    }
}
