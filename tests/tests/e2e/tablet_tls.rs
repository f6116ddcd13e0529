//! TLS between the gateway and the tablets.

use std::time::Duration;

use shardgate_tests::certificate::Authority;
use shardgate_tests::fixture::{KEYSPACE, TABLE_T};
use shardgate_tests::{Fixture, Gateway, Layout, MariaDb, answer, wait};

/// The tablets' server, which takes nobody without TLS, and its authority.
async fn encrypted(host: &str) -> (Fixture, MariaDb, Authority) {
    let authority = Authority::new("tablets");
    let files = authority.issue(host);
    let server = MariaDb::start_with(&[
        &format!("--ssl-cert={}", files.cert.display()),
        &format!("--ssl-key={}", files.key.display()),
    ]);
    let fixture = Fixture::on(Layout::Modulo(2), MariaDb::shared(0), &[&server], &[TABLE_T]).await;
    fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
    // Only now: the harness itself talks to it in the clear.
    fixture.shards[0]
        .run(&["SET GLOBAL require_secure_transport = 1"])
        .await;
    (fixture, server, authority)
}

fn section(mode: &str, verify: &str, by: &Authority, name: &str) -> String {
    format!(
        "[tablet_tls]\nmode = \"{mode}\"\nverify = \"{verify}\"\nca_file = \"{}\"\n{name}\n",
        by.file().display()
    )
}

#[tokio::test]
async fn tablets_that_insist_on_tls_are_reached_by_it() {
    let (fixture, _server, authority) = encrypted("tablet.example").await;
    for config in [
        "[tablet_tls]\nmode = \"preferred\"\n".to_owned(),
        "[tablet_tls]\nmode = \"required\"\n".to_owned(),
        section("required", "authority", &authority, ""),
        section(
            "required",
            "authority",
            &authority,
            "server_name = \"elsewhere.example\"",
        ),
        section("required", "full", &authority, "server_name = \"tablet.example\""),
    ] {
        let gateway = Gateway::serve(&fixture.config_with(&config));
        let mut conn = gateway.conn(KEYSPACE).await;
        assert_eq!(
            answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
            "2",
            "{config}"
        );
        answer::ok(&mut conn, "UPDATE t SET v = 9 WHERE id = 1").await;
        let version = "SELECT VARIABLE_VALUE LIKE 'TLSv1%' FROM information_schema.SESSION_STATUS \
                       WHERE VARIABLE_NAME = 'Ssl_version'";
        answer::ok(&mut conn, "USE `shop:s0`").await;
        assert_eq!(answer::ok(&mut conn, version).await.single(), "1", "{config}");
    }
}

/// Neither hangs nor goes on in the clear: an error that says which tablet, and why.
#[tokio::test]
async fn a_tablet_whose_certificate_does_not_hold_is_an_error_with_a_reason() {
    let (fixture, server, authority) = encrypted("127.0.0.1").await;
    let stranger = Authority::new("stranger");
    for (config, code, reason) in [
        (
            section("required", "authority", &stranger, ""),
            "SG2301",
            "certificate",
        ),
        (
            section("required", "full", &stranger, ""),
            "SG2301",
            "certificate",
        ),
        (
            section(
                "required",
                "full",
                &authority,
                "server_name = \"elsewhere.example\"",
            ),
            "SG2301",
            "certificate",
        ),
        // The server's own word for a client in the clear.
        (String::new(), "SG2302", "error 1045"),
    ] {
        let gateway = Gateway::serve(&fixture.config_with(&config));
        let mut conn = gateway.conn(KEYSPACE).await;
        let asking = answer::refused(&mut conn, "SELECT 1");
        let refusal = wait::within("the refusal", Duration::from_secs(5), asking).await;
        for part in [code, reason, "shop-s", "nothing was executed"] {
            assert!(refusal.message.contains(part), "{part} in {refusal} by {config}");
        }
    }
    let good = section("required", "full", &authority, "");
    let gateway = Gateway::serve(&fixture.config_with(&good));
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "2"
    );
    drop(server);
}

#[tokio::test]
async fn a_tablet_without_tls_is_refused_where_tls_is_required() {
    let plain = MariaDb::start_with(&["--skip-ssl"]);
    let fixture = Fixture::on(Layout::Unsharded, MariaDb::shared(0), &[&plain], &[TABLE_T]).await;
    let gateway = Gateway::serve(&fixture.config_with("[tablet_tls]\nmode = \"required\"\n"));
    let mut conn = gateway.conn(KEYSPACE).await;
    let refusal = answer::refused(&mut conn, "SELECT COUNT(*) FROM t").await;
    assert!(
        refusal.message.contains("SG2301") && refusal.message.contains("TLS"),
        "{refusal}"
    );
    let gateway = Gateway::serve(&fixture.config_with("[tablet_tls]\nmode = \"preferred\"\n"));
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "0"
    );
}
