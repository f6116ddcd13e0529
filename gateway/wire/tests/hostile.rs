//! Peers that send rubbish, and callers that drop futures: no panic, no lost byte, no half-written packet.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use bytes::Bytes;
use common::{config, options, pair, row, users};
use proptest::prelude::*;
use shardgate_wire::codec::{
    AuthSwitch, ChangeUser, EofPacket, Greeting, LoginRequest, PrepareOk, session_state, text,
};
use shardgate_wire::protocol::command;
use shardgate_wire::server::accept;
use shardgate_wire::{
    Capabilities, ColumnDef, Command, ErrPacket, Head, OkPacket, RelayLimits, RelayStats, RowEvent,
    StatusFlags, TabletConn, relay_rows,
};
use tokio::io::AsyncWriteExt;

fn block_on<T>(what: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(what)
}

/// Polls once and drops, as `select!` does with the losing branch.
async fn once<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = what => Some(done),
        () = std::future::ready(()) => None,
    }
}

/// Frames with right sequence ids around arbitrary payloads, so that rubbish gets past the framing.
fn framed(payloads: &[Vec<u8>], mut seq: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for p in payloads {
        let [a, b, c, _] = u32::try_from(p.len()).unwrap().to_le_bytes();
        out.extend_from_slice(&[a, b, c, seq]);
        out.extend_from_slice(p);
        seq = seq.wrapping_add(1);
    }
    out
}

/// Payloads whose first byte often is one that means something.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        Just(0u8),
        Just(1),
        Just(2),
        Just(0xfb),
        Just(0xfe),
        Just(0xff),
        any::<u8>()
    ];
    (first, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), caps in any::<u32>()) {
        let caps = Capabilities(caps);
        let shared = Bytes::from(bytes.clone());
        let _ = Greeting::parse(&bytes);
        let _ = LoginRequest::parse(&bytes);
        let _ = AuthSwitch::parse(&bytes);
        let _ = ChangeUser::parse(&bytes, caps);
        let _ = ErrPacket::parse(&bytes);
        let _ = OkPacket::parse(&bytes, caps);
        let _ = EofPacket::parse(&bytes);
        let _ = PrepareOk::parse(&bytes);
        let _ = ColumnDef::parse(&shared);
        for code in 0..0x20 {
            let mut packet = vec![code];
            packet.extend_from_slice(&bytes);
            let _ = Command::parse(&packet.into(), caps);
        }
        let _ = session_state::changes(&bytes).count();
        let _ = text::cells(&bytes).count();
        let _ = text::spans(&bytes, bytes.len() % 9, &mut Vec::new());
        let _ = shardgate_wire::auth::Credential::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_server_survives_any_client(payloads in prop::collection::vec(payload(), 0..4), tail in prop::collection::vec(any::<u8>(), 0..50)) {
        block_on(async {
            let (a, mut b) = tokio::io::duplex(1 << 20);
            let mut bytes = framed(&payloads, 1);
            bytes.extend_from_slice(&tail);
            b.write_all(&bytes).await.unwrap();
            b.shutdown().await.unwrap();
            let _ = accept(a, &config(), &users, 1).await;
        });
    }

    #[test]
    fn a_client_survives_any_server(
        greeting in payload(), answers in prop::collection::vec(payload(), 0..4), real in any::<bool>(),
    ) {
        block_on(async {
            let (a, mut b) = tokio::io::duplex(1 << 20);
            let mut first = greeting;
            if real {
                first.clear();
                let greeting = Greeting {
                    version: "8".into(), connection_id: 1, salt: [1; 20],
                    capabilities: shardgate_wire::ServerConfig::OFFERED, charset: 45,
                    status: StatusFlags::AUTOCOMMIT, plugin: "caching_sha2_password".into(),
                };
                greeting.encode(&mut first);
            }
            b.write_all(&framed(&[first], 0)).await.unwrap();
            b.write_all(&framed(&answers, 2)).await.unwrap();
            b.shutdown().await.unwrap();
            let _ = TabletConn::handshake(a, None, &options("sha", "secret")).await;
        });
    }

    #[test]
    fn answers_of_any_shape_are_read_without_a_panic_or_a_loop(
        payloads in prop::collection::vec(payload(), 0..12), code in 0..0x20u8, eof in any::<bool>(),
    ) {
        block_on(async {
            let mut wanted = options("root", "");
            if eof {
                wanted.capabilities = wanted.capabilities.without(Capabilities::DEPRECATE_EOF);
            }
            let (mut server, mut client) = pair(&config(), &wanted).await;
            client.send(code, &[b"x"]).await.unwrap();
            let _ = server.read_command().await;
            for p in &payloads {
                server.put_raw(p);
            }
            server.flush().await.unwrap();
            drop(server);
            let (mut down, _far) = pair(&config(), &options("root", "")).await;
            for _ in 0..20 {
                let _ = client.read_head().await;
                let _ = client.read_columns().await;
                let _ = client.read_prepared().await;
                let _ = client.read_field_list().await;
                let _ = client.read_text().await;
                if code % 2 == 0 {
                    let _ = client.next_row().await;
                } else {
                    let mut stats = RelayStats::default();
                    let _ = relay_rows(&mut client, &mut down, RelayLimits::default(), &mut stats, |_| ()).await;
                }
            }
        });
    }

    /// What goes to a client is whole rows, wherever the relay is dropped and however the tablet's bytes arrive: an
    /// error written behind it is understood.
    #[test]
    fn a_relay_dropped_anywhere_leaves_the_client_between_two_rows(
        sizes in prop::collection::vec(0..5000usize, 1..60), drops in 1..40usize, pipe in 10..3000usize,
    ) {
        block_on(async {
            let (mut tablet, mut up) = narrow(1 << 20).await;
            let (mut down, mut client) = narrow(pipe).await;
            up.send_query(b"q").await.unwrap();
            tablet.read_command().await.unwrap();
            tablet.put_columns(&[ColumnDef::text("c", 1)], StatusFlags::empty(), 0);
            for &n in &sizes {
                tablet.put_raw(&row(&vec![b'r'; n]));
            }
            tablet.flush().await.unwrap();
            up.read_head().await.unwrap();
            let columns = up.read_columns().await.unwrap();
            client.send_query(b"q").await.unwrap();
            down.read_command().await.unwrap();
            down.put_raw_columns(&columns.definitions, StatusFlags::empty(), 0);
            let mut stats = RelayStats::default();
            let read = async {
                assert_eq!(client.read_head().await.unwrap(), Head::ResultSet { columns: 1 });
                client.read_columns().await.unwrap();
                let mut rows = 0;
                loop {
                    match client.next_row().await.unwrap() {
                        RowEvent::Row(r) => {
                            assert_eq!(r, row(&vec![b'r'; sizes[rows]]));
                            rows += 1;
                        }
                        RowEvent::Err(e) => return (rows, e.code),
                        RowEvent::End(_) => panic!("ended well"),
                    }
                }
            };
            let write = async {
                // Each round lets the client take a little, then drops the relay.
                {
                    let relay = relay_rows(&mut up, &mut down, RelayLimits::default(), &mut stats, |_| ());
                    tokio::pin!(relay);
                    for _ in 0..drops {
                        let _ = once(&mut relay).await;
                        tokio::task::yield_now().await;
                    }
                }
                assert!(!up.is_idle());
                down.put_err(&ErrPacket::new(1317, *b"70100", "Query execution was interrupted"));
                down.flush().await.unwrap();
            };
            let ((rows, code), ()) = tokio::join!(read, write);
            assert_eq!(code, 1317);
            assert_eq!(rows as u64, stats.rows);
        });
    }
}

/// A client whose pipe holds little.
async fn narrow(pipe: usize) -> (shardgate_wire::ClientConn, TabletConn) {
    let (a, b) = tokio::io::duplex(pipe);
    let serve = async {
        let mut conn = accept(a, &config(), &users, 2).await.unwrap();
        conn.put_ok(&OkPacket::default());
        conn.flush().await.unwrap();
        conn
    };
    let wanted = options("root", "");
    let (server, client) = tokio::join!(serve, TabletConn::handshake(b, None, &wanted));
    (server, client.unwrap())
}

#[tokio::test]
async fn a_command_read_in_pieces_between_dropped_reads_is_whole() {
    let (a, mut b) = tokio::io::duplex(1 << 20);
    let login = async {
        let request = LoginRequest {
            capabilities: Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION,
            max_packet: 0,
            charset: 255,
            user: b"root".to_vec(),
            auth: Vec::new(),
            database: None,
            plugin: String::new(),
            attributes: Vec::new(),
        };
        let mut payload = Vec::new();
        request.encode(&mut payload);
        b.write_all(&framed(&[payload], 1)).await.unwrap();
        b
    };
    let config = config();
    let (conn, mut b) = tokio::join!(accept(a, &config, &users, 1), login);
    let mut conn = conn.unwrap();
    let mut big = vec![command::QUERY];
    big.resize(20 << 20, b'q');
    let mut bytes = framed(&[big[..0xff_ffff].to_vec(), big[0xff_ffff..].to_vec()], 0);
    bytes.extend_from_slice(&framed(&[vec![command::PING]], 0));
    let mut got = Vec::new();
    for piece in bytes.chunks(100_001) {
        b.write_all(piece).await.unwrap();
        // Reading and watching take turns, each dropped again and again.
        for _ in 0..3 {
            if let Some(command) = once(conn.read_command()).await {
                got.push(command.unwrap());
            }
            assert!(once(conn.watch_closed()).await.is_none());
        }
    }
    assert_eq!(got.len(), 2);
    assert_eq!(got[1], Command::Ping);
    let Command::Query(text) = &got[0] else {
        panic!("not a query")
    };
    assert!(text[..] == big[1..]);
}
