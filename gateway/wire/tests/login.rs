//! Logging in, from both ends.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{config, options, pair, try_pair, users};
use shardgate_wire::auth::AuthPlugin;
use shardgate_wire::tls::{ClientTls, Verify, server_self_signed};
use shardgate_wire::{Capabilities, Command, ServerConfig, WireError};

fn with_default(default_auth: AuthPlugin) -> ServerConfig {
    ServerConfig {
        default_auth,
        ..config()
    }
}

#[tokio::test]
async fn every_user_gets_in_whatever_plugin_the_greeting_names() {
    for default in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        for (user, password) in [("root", ""), ("nat", "secret"), ("sha", "secret")] {
            let (server, client) = pair(&with_default(default), &options(user, password)).await;
            assert_eq!(server.login().user, user.as_bytes());
            assert_eq!(client.connection_id(), 7);
            assert!(client.is_idle());
        }
    }
}

#[tokio::test]
async fn wrong_passwords_and_unknown_users_are_told_the_same() {
    for default in [AuthPlugin::Native, AuthPlugin::CachingSha2] {
        for (user, password) in [
            ("root", "x"),
            ("nat", "x"),
            ("nat", ""),
            ("sha", "x"),
            ("sha", ""),
            ("who", "x"),
        ] {
            let (server, client) = try_pair(&with_default(default), &options(user, password)).await;
            assert!(matches!(server, Err(WireError::AccessDenied { .. })), "{user}");
            let Err(WireError::Server(e)) = client else {
                panic!("{user} got in")
            };
            assert_eq!((e.code, &e.sqlstate), (1045, b"28000"));
            let given = if password.is_empty() { "NO" } else { "YES" };
            assert_eq!(
                e.message_text(),
                format!("Access denied for user '{user}'@'localhost' (using password: {given})")
            );
        }
    }
}

#[tokio::test]
async fn the_login_carries_database_attributes_collation_and_capabilities() {
    let mut options = options("root", "");
    options.database = Some("shop".into());
    options.collation = 255;
    options.attributes = vec![("program_name".into(), "test".into())];
    options.capabilities |= Capabilities::FOUND_ROWS;
    let (server, client) = pair(&config(), &options).await;
    assert_eq!(server.login().database.as_deref(), Some(&b"shop"[..]));
    assert_eq!(server.login().charset, 255);
    assert_eq!(
        server.login().attributes,
        [(b"program_name".to_vec(), b"test".to_vec())]
    );
    assert!(server.can(Capabilities::FOUND_ROWS | Capabilities::DEPRECATE_EOF));
    assert_eq!(
        server.capabilities(),
        client.capabilities() & server.capabilities()
    );
}

#[tokio::test]
async fn tls_is_spoken_when_both_ends_want_it() {
    let config = ServerConfig {
        tls: Some(server_self_signed(vec!["localhost".into()]).unwrap()),
        ..config()
    };
    let mut options = options("sha", "secret");
    options.tls = Some(ClientTls::new(Verify::None, None).unwrap());
    let (mut server, mut client) = pair(&config, &options).await;
    assert!(server.transport().is_tls() && client.transport().is_tls());
    client.send_query(b"SELECT 1").await.unwrap();
    assert_eq!(
        server.read_command().await.unwrap(),
        Command::Query("SELECT 1".into())
    );
}

#[tokio::test]
async fn a_server_without_tls_is_an_error_where_tls_is_required() {
    let mut options = options("root", "");
    let tls = ClientTls::new(Verify::None, None).unwrap();
    options.tls = Some(tls.clone());
    let (_, client) = try_pair(&config(), &options).await;
    assert!(matches!(client, Err(WireError::Tls(_))));
    options.tls = Some(tls.preferred());
    let (_, client) = pair(&config(), &options).await;
    assert!(!client.transport().is_tls());
}

#[tokio::test]
async fn an_unverifiable_certificate_is_refused_where_verification_is_asked_for() {
    let dir = std::env::temp_dir().join(format!("shardgate-wire-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["tablet.example".to_owned()]).unwrap();
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let known = shardgate_wire::tls::server_from_files(&cert, &key).unwrap();
    let stranger = server_self_signed(vec!["localhost".into()]).unwrap();
    let attempt = async |server: &Arc<rustls::ServerConfig>, tls: ClientTls| {
        let config = ServerConfig {
            tls: Some(server.clone()),
            ..config()
        };
        let mut options = options("root", "");
        options.tls = Some(tls);
        try_pair(&config, &options).await.1.is_ok()
    };
    let authority = ClientTls::new(Verify::Authority, Some(&cert)).unwrap();
    let full = ClientTls::new(Verify::Full, Some(&cert)).unwrap();
    assert!(
        attempt(&known, authority.clone()).await,
        "the name does not matter"
    );
    assert!(!attempt(&known, full.clone()).await, "the name matters");
    assert!(attempt(&known, full.server_name("tablet.example").unwrap()).await);
    assert!(!attempt(&stranger, authority).await);
    assert!(ClientTls::new(Verify::Full, None).is_err());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_slow_hash_takes_the_full_path_where_nobody_listens_and_is_refused_clearly_elsewhere() {
    for (password, good) in [("secret", true), ("x", false), ("", false)] {
        let (server, client) = try_pair(
            &with_default(AuthPlugin::CachingSha2),
            &options("crypt", password),
        )
        .await;
        assert_eq!((server.is_ok(), client.is_ok()), (good, good), "{password}");
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async {
        let (tcp, _) = listener.accept().await.unwrap();
        shardgate_wire::server::accept(tcp, &config(), &users, 1).await
    };
    let address = shardgate_wire::Address::tcp("127.0.0.1", port);
    let options = options("crypt", "secret");
    let (server, client) = tokio::join!(serve, shardgate_wire::TabletConn::connect(&address, &options));
    assert!(matches!(server, Err(WireError::Tls(_))));
    let Err(WireError::Server(e)) = client else {
        panic!("got in")
    };
    assert_eq!(e.code, 3159);
    assert!(e.message_text().contains("connect with TLS"), "{e}");
}

#[tokio::test]
async fn change_user_asks_for_a_new_answer_and_takes_the_new_name() {
    use shardgate_wire::codec::{AuthSwitch, ChangeUser};
    use shardgate_wire::protocol::command;
    use shardgate_wire::stream::PacketStream;
    use shardgate_wire::{OkPacket, StatusFlags, server};
    for (user, password, good) in [
        ("nat", "secret", true),
        ("sha", "secret", true),
        ("nat", "no", false),
    ] {
        let (a, b) = tokio::io::duplex(4096);
        let serve = async {
            let mut conn = server::accept(a, &config(), &users, 1).await.unwrap();
            conn.put_ok(&OkPacket::with_status(StatusFlags::AUTOCOMMIT));
            conn.flush().await.unwrap();
            let Command::ChangeUser(request) = conn.read_command().await.unwrap() else {
                panic!()
            };
            let outcome = conn.change_user(*request, &users).await;
            if outcome.is_ok() {
                conn.put_ok(&OkPacket::default());
                conn.flush().await.unwrap();
            }
            (outcome.is_ok(), conn.login().user.clone())
        };
        let client = async {
            let caps =
                Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH;
            let mut stream = PacketStream::new(b.into(), 1 << 20);
            stream.read_packet().await.unwrap();
            stream.put_packet_with(|out| {
                shardgate_wire::codec::LoginRequest {
                    capabilities: caps,
                    max_packet: 0,
                    charset: 0,
                    user: b"root".to_vec(),
                    auth: Vec::new(),
                    database: None,
                    plugin: "mysql_native_password".into(),
                    attributes: Vec::new(),
                }
                .encode(out);
            });
            stream.flush().await.unwrap();
            assert_eq!(stream.read_packet().await.unwrap()[0], 0);
            stream.reset_seq();
            stream.put_packet_with(|out| {
                out.push(command::CHANGE_USER);
                let request = ChangeUser {
                    user: user.into(),
                    auth: vec![1; 20],
                    database: None,
                    charset: Some(45),
                    plugin: "mysql_native_password".into(),
                    attributes: Vec::new(),
                };
                request.encode(out, caps);
            });
            stream.flush().await.unwrap();
            let switch = AuthSwitch::parse(&stream.read_packet().await.unwrap()).unwrap();
            let plugin = AuthPlugin::from_name(&switch.plugin).unwrap();
            let password = shardgate_wire::auth::Password::new(password);
            stream.put_packet(&plugin.scramble(&password, &switch.data));
            stream.flush().await.unwrap();
            let mut answer = stream.read_packet().await.unwrap();
            if answer[0] == 1 {
                answer = stream.read_packet().await.unwrap();
            }
            assert_eq!(answer[0] == 0, good, "{user}");
        };
        let ((ok, name), ()) = tokio::join!(serve, client);
        assert_eq!(ok, good);
        assert_eq!(name, if good { user.as_bytes() } else { b"root" });
    }
}
