//! Answers from a tablet to a client, end to end over pipes: the tablet is played by the server's side of the crate.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{config, options, pair, row};
use shardgate_wire::{
    Capabilities, ClientConn, ColumnDef, ErrPacket, Head, OkPacket, RelayEnd, RelayLimits, RelayStats,
    RowEvent, ServerConfig, StatusFlags, TabletConn, relay_rows,
};

struct Chain {
    /// Plays the tablet.
    tablet: ClientConn,
    /// The gateway's end towards it.
    up: TabletConn,
    /// The gateway's end towards the client.
    down: ClientConn,
    /// Plays the client.
    client: TabletConn,
}

async fn chain(tablet_eof: bool, client_eof: bool) -> Chain {
    let caps = |eof| {
        if eof {
            ServerConfig::OFFERED.without(Capabilities::DEPRECATE_EOF)
        } else {
            ServerConfig::OFFERED
        }
    };
    let with = |eof| ServerConfig {
        capabilities: caps(eof),
        ..config()
    };
    let (mut tablet, mut up) = pair(&with(tablet_eof), &options("root", "")).await;
    let (mut down, mut client) = pair(&with(client_eof), &options("root", "")).await;
    client.send_query(b"SELECT c FROM t").await.unwrap();
    down.read_command().await.unwrap();
    up.send_query(b"SELECT c FROM t").await.unwrap();
    tablet.read_command().await.unwrap();
    Chain {
        tablet,
        up,
        down,
        client,
    }
}

/// The tablet's whole answer.
async fn answer(tablet: &mut ClientConn, rows: &[Vec<u8>]) {
    tablet.put_columns(&[ColumnDef::text("c", 10)], StatusFlags::AUTOCOMMIT, 0);
    for r in rows {
        tablet.put_raw(r);
        tablet.flush_if_full().await.unwrap();
    }
    tablet.put_rows_end(&OkPacket {
        warnings: 3,
        ..OkPacket::with_status(StatusFlags::AUTOCOMMIT)
    });
    tablet.flush().await.unwrap();
}

/// What the gateway does with it.
async fn pass(up: &mut TabletConn, down: &mut ClientConn) -> RelayStats {
    let mut stats = RelayStats::default();
    let Head::ResultSet { columns: 1 } = up.read_head().await.unwrap() else {
        panic!("no result set")
    };
    let columns = up.read_columns().await.unwrap();
    down.put_raw_columns(&columns.definitions, StatusFlags::AUTOCOMMIT, 0);
    let end = relay_rows(up, down, RelayLimits::default(), &mut stats, |_| ())
        .await
        .unwrap();
    let RelayEnd::End(end) = end else {
        panic!("an error")
    };
    assert_eq!(end.warnings, 3);
    assert!(up.is_idle());
    down.put_rows_end(&end);
    down.flush().await.unwrap();
    stats
}

async fn receive(client: &mut TabletConn) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    client.read_head().await.unwrap();
    client.read_columns().await.unwrap();
    loop {
        match client.next_row().await.unwrap() {
            RowEvent::Row(r) => rows.push(r.to_vec()),
            RowEvent::End(end) => {
                assert_eq!(end.warnings, 3);
                return rows;
            }
            RowEvent::Err(e) => panic!("{e}"),
        }
    }
}

#[tokio::test]
async fn rows_of_every_size_arrive_unchanged_whatever_ends_them() {
    for (tablet_eof, client_eof) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut c = chain(tablet_eof, client_eof).await;
        let mut rows: Vec<Vec<u8>> = (0..300)
            .map(|i| row(format!("row {i}").as_bytes()).to_vec())
            .collect();
        // The sizes around a frame's limit take a while unoptimised: once is enough, where sequence ids differ most.
        let frames: &[usize] = match (tablet_eof, client_eof) {
            (false, true) => &[(1 << 24) - 6, (1 << 24) - 5, (1 << 24) - 4, 40 << 20],
            _ => &[(1 << 24) - 4],
        };
        for &big in [70_000, 300_000].iter().chain(frames) {
            rows.push(row(&vec![b'x'; big]).to_vec());
            rows.push(row(b"after").to_vec());
        }
        // A row whose continuation begins with a byte that ends rows elsewhere.
        for first in [0xfe, 0xff] {
            let mut r = row(&vec![b'y'; 17 << 20]).to_vec();
            r[0xff_ffff] = first;
            rows.push(r);
        }
        let ((), stats, got) = tokio::join!(
            answer(&mut c.tablet, &rows),
            pass(&mut c.up, &mut c.down),
            receive(&mut c.client)
        );
        assert_eq!(stats.rows, rows.len() as u64);
        assert!(got == rows, "tablet_eof {tablet_eof}, client_eof {client_eof}");
        assert!(c.client.is_idle());
    }
}

#[tokio::test]
async fn an_error_in_the_middle_reaches_the_client_with_code_and_state_and_the_connection_lives() {
    let mut c = chain(false, false).await;
    let serve = async {
        c.tablet
            .put_columns(&[ColumnDef::text("c", 10)], StatusFlags::AUTOCOMMIT, 0);
        for _ in 0..100 {
            c.tablet.put_raw(&row(b"x"));
        }
        c.tablet
            .put_err(&ErrPacket::new(1205, *b"HY000", "Lock wait timeout exceeded"));
        c.tablet.flush().await.unwrap();
    };
    let gateway = async {
        let mut stats = RelayStats::default();
        c.up.read_head().await.unwrap();
        let columns = c.up.read_columns().await.unwrap();
        c.down
            .put_raw_columns(&columns.definitions, StatusFlags::AUTOCOMMIT, 0);
        let end = relay_rows(&mut c.up, &mut c.down, RelayLimits::default(), &mut stats, |_| ())
            .await
            .unwrap();
        let RelayEnd::Err(e) = end else { panic!("no error") };
        assert!(c.up.is_idle());
        c.down.put_err(&e);
        c.down.flush().await.unwrap();
        stats.rows
    };
    let client = async {
        c.client.read_head().await.unwrap();
        c.client.read_columns().await.unwrap();
        loop {
            match c.client.next_row().await.unwrap() {
                RowEvent::Row(_) => {}
                RowEvent::Err(e) => return (e.code, e.sqlstate),
                RowEvent::End(_) => panic!("ended well"),
            }
        }
    };
    let ((), rows, err) = tokio::join!(serve, gateway, client);
    assert_eq!((rows, err), (100, (1205, *b"HY000")));
    assert!(c.client.is_idle());
}

#[tokio::test]
async fn an_error_among_the_column_definitions_is_the_servers_and_the_connection_lives() {
    for eof in [false, true] {
        let mut c = chain(eof, eof).await;
        c.tablet.put_column_count(2);
        c.tablet.put_column(&ColumnDef::text("c", 10));
        c.tablet.put_err(&ErrPacket::new(
            1317,
            *b"70100",
            "Query execution was interrupted",
        ));
        c.tablet.flush().await.unwrap();
        c.up.read_head().await.unwrap();
        let e = c.up.read_columns().await.unwrap_err();
        assert!(matches!(e, shardgate_wire::WireError::Server(e) if e.code == 1317));
        assert!(c.up.is_idle());
    }
}

#[tokio::test(start_paused = true)]
async fn limits_tell_a_silent_tablet_from_a_stalled_client() {
    let limits = RelayLimits {
        tablet_silent: Some(Duration::from_secs(5)),
        client_stalled: Some(Duration::from_secs(3)),
    };
    let mut stats = RelayStats::default();
    let mut c = chain(false, false).await;
    c.tablet
        .put_columns(&[ColumnDef::text("c", 10)], StatusFlags::AUTOCOMMIT, 0);
    c.tablet.flush().await.unwrap();
    c.up.read_head().await.unwrap();
    c.up.read_columns().await.unwrap();
    let e = relay_rows(&mut c.up, &mut c.down, limits, &mut stats, |_| ())
        .await
        .unwrap_err();
    assert!(matches!(
        e,
        shardgate_wire::RelayError::TabletSilent { client_usable: true }
    ));
    assert!(!c.up.is_idle());

    let mut c = chain(false, false).await;
    let rows = vec![row(&[b'x'; 1000]).to_vec(); 2000];
    let gateway = async {
        c.up.read_head().await.unwrap();
        c.up.read_columns().await.unwrap();
        relay_rows(&mut c.up, &mut c.down, limits, &mut stats, |_| ())
            .await
            .unwrap_err()
    };
    let e = tokio::select! {
        e = gateway => e,
        () = answer(&mut c.tablet, &rows) => panic!("the client reads nothing, so the tablet cannot finish"),
    };
    assert!(matches!(e, shardgate_wire::RelayError::ClientStalled));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_relay() {
    let mut c = chain(false, false).await;
    c.tablet
        .put_columns(&[ColumnDef::text("c", 10)], StatusFlags::AUTOCOMMIT, 0);
    c.tablet.flush().await.unwrap();
    c.up.read_head().await.unwrap();
    c.up.read_columns().await.unwrap();
    drop(c.client);
    let mut stats = RelayStats::default();
    let e = relay_rows(&mut c.up, &mut c.down, RelayLimits::default(), &mut stats, |_| ())
        .await
        .unwrap_err();
    assert!(matches!(e, shardgate_wire::RelayError::Client(_)));
}
