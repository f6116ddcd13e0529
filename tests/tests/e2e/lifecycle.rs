//! Logging in, reloading and stopping: scenario P1.

use std::time::Duration;

use mysql_async::{Conn, SslOpts};
use shardgate_tests::client::{Cli, python};
use shardgate_tests::fixture::{KEYSPACE, SHA2_USER, TABLE_T};
use shardgate_tests::mariadb::{APP_PASSWORD, APP_USER, options};
use shardgate_tests::{Fixture, Gateway, Layout, answer, wait};

const LIMIT: Duration = Duration::from_secs(10);

async fn filled(layout: Layout) -> (Fixture, Gateway) {
    let fixture = Fixture::new(layout, 1, &[TABLE_T]).await;
    let gateway = fixture.gateway();
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(
        &mut conn,
        "INSERT INTO t (id) VALUES (1), (2), (3), (4), (5), (6), (7), (8)",
    )
    .await;
    (fixture, gateway)
}

async fn count(gateway: &Gateway) -> String {
    answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT COUNT(*) FROM t")
        .await
        .single()
}

#[tokio::test]
async fn each_auth_plugin_lets_the_right_password_in_and_no_other() {
    let (_fixture, gateway) = filled(Layout::Modulo(2)).await;
    for (user, options) in [
        (APP_USER, &["--skip-ssl"][..]),
        (APP_USER, &["--ssl"]),
        (SHA2_USER, &["--ssl"]),
    ] {
        let cli = options
            .iter()
            .fold(Cli::new(gateway.addr(), user), |cli, o| cli.option(o))
            .option(KEYSPACE);
        // Twice: the second proof may take the fast path.
        for _ in 0..2 {
            assert_eq!(
                cli.clone()
                    .password(APP_PASSWORD)
                    .ok("SELECT COUNT(*) FROM t")
                    .await,
                "8\n",
                "{user} {options:?}"
            );
        }
        for wrong in [cli.clone().password("wrong"), cli.clone()] {
            let printed = wrong.run("SELECT 1").await;
            assert!(
                printed.stderr.contains("ERROR 1045 (28000)"),
                "{user} {options:?}: {}",
                printed.stderr
            );
        }
    }
    let printed = Cli::new(gateway.addr(), "nobody")
        .password(APP_PASSWORD)
        .run("SELECT 1")
        .await;
    assert!(
        printed.stderr.contains("ERROR 1045 (28000)"),
        "{}",
        printed.stderr
    );

    let tls = SslOpts::default().with_danger_accept_invalid_certs(true);
    for _ in 0..2 {
        let opts =
            options(gateway.addr(), SHA2_USER, Some(APP_PASSWORD), Some(KEYSPACE)).ssl_opts(tls.clone());
        let mut conn = Conn::new(opts).await.unwrap();
        assert_eq!(
            answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
            "8"
        );
    }
}

/// P1 [vitess#4968]: a topology with a gap would lose rows in silence, so it is never taken over.
#[tokio::test]
async fn a_reloaded_topology_with_a_gap_is_refused_and_the_old_one_kept() {
    let (fixture, gateway) = filled(Layout::KeyRanges(2)).await;
    let whole = std::fs::read_to_string(gateway.config_file()).unwrap();
    let at = whole.find("\n[[keyspaces.shop.shards]]\nname = \"80-\"").unwrap();
    std::fs::write(gateway.config_file(), &whole[..at]).unwrap();

    let (status, body) = gateway.http("POST", "/api/reload").await;
    assert!((400..500).contains(&status), "{status} {body}");
    assert!(
        body.contains("gap") && body.contains("`-80`"),
        "the gap is named: {body}"
    );
    assert_eq!(count(&gateway).await, "8");
    gateway.process().signal("HUP");
    // The signal's outcome is told in the log.
    wait::until("the refused reload in the log", LIMIT, || async {
        gateway.process().stderr().contains("gap").then_some(())
    })
    .await;
    let mut conn = gateway.conn(KEYSPACE).await;
    assert_eq!(answer::ok(&mut conn, "SELECT * FROM t").await.rows.len(), 8);
    assert_eq!(answer::ok(&mut conn, "SHOW VITESS_SHARDS").await.rows.len(), 2);
    drop(fixture);
}

#[tokio::test]
async fn a_valid_file_is_taken_over_by_request_and_by_signal() {
    let (fixture, gateway) = filled(Layout::Modulo(2)).await;
    let mut old = gateway.conn(KEYSPACE).await;
    let config = std::fs::read_to_string(gateway.config_file()).unwrap();
    let renamed = |name: &str| {
        let user = format!("[[users]]\nname = \"{name}\"\npassword_file = \"app-password\"\n\n[backend]");
        config.replacen("[backend]", &user, 1)
    };

    std::fs::write(gateway.config_file(), renamed("second")).unwrap();
    let (status, body) = gateway.http("POST", "/api/reload").await;
    assert_eq!(status, 200, "{body}");
    let second = Cli::new(gateway.addr(), "second")
        .password(APP_PASSWORD)
        .option(KEYSPACE);
    assert_eq!(second.ok("SELECT COUNT(*) FROM t").await, "8\n");

    std::fs::write(gateway.config_file(), renamed("third")).unwrap();
    gateway.process().signal("HUP");
    let third = Cli::new(gateway.addr(), "third")
        .password(APP_PASSWORD)
        .option(KEYSPACE);
    wait::until("the new user", LIMIT, || async {
        (third.run("SELECT 1").await.code == 0).then_some(())
    })
    .await;
    assert_eq!(answer::ok(&mut old, "SELECT COUNT(*) FROM t").await.single(), "8");
    drop(fixture);
}

#[tokio::test]
async fn sigterm_lets_a_transaction_end_and_takes_no_new_connection() {
    let (fixture, gateway) = filled(Layout::Modulo(2)).await;
    let mut idle = gateway.conn(KEYSPACE).await;
    answer::ok(&mut idle, "SELECT 1").await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 9").await;
    gateway.process().signal("TERM");
    wait::until("new connections to be refused", LIMIT, || async {
        let opts = options(gateway.addr(), APP_USER, Some(APP_PASSWORD), None);
        Conn::new(opts).await.is_err().then_some(())
    })
    .await;
    answer::ok(&mut conn, "UPDATE t SET k = 9").await;
    answer::ok(&mut conn, "COMMIT").await;
    assert_eq!(
        gateway.process().ended(LIMIT).await,
        0,
        "{}",
        gateway.process().report()
    );
    for shard in &fixture.shards {
        let mut direct = shard.conn().await;
        assert_eq!(
            answer::ok(&mut direct, "SELECT COUNT(*) FROM t WHERE k = 9 AND v = 9")
                .await
                .single(),
            "4"
        );
    }
}

/// An idle client learns why it was cut off, in the one packet that drivers look for.
#[tokio::test]
async fn sigterm_tells_idle_clients_before_it_closes() {
    let fixture = Fixture::scenario().await;
    let short = "[server]\nshutdown_grace = \"300ms\"\n";
    let gateway = Gateway::serve(&fixture.config().replace("[server]\n", short));
    let pid = gateway.process().pid().to_string();
    let args = [APP_USER, APP_PASSWORD, KEYSPACE, &pid];
    let told = python::run("stopped_while_idle.py", gateway.addr(), &args).await;
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("1105 #HY000SG1107: "), "{told}");
    assert!(lines[0].contains("nothing was executed"), "{told}");
    assert!(lines[1].starts_with("1105 #HY000SG1107: "), "{told}");
    assert!(lines[1].contains("rolled back"), "{told}");
    assert_eq!(lines[2], "OperationalError", "{told}");
    assert_eq!(gateway.process().ended(LIMIT).await, 0);
}

/// Accepting a file and doing as if nothing had been asked would be silence.
#[tokio::test]
async fn a_reload_says_what_only_a_restart_applies() {
    let (fixture, gateway) = filled(Layout::Modulo(2)).await;
    let (status, plain) = gateway.http("POST", "/api/reload").await;
    assert_eq!(status, 200);
    assert!(!plain.contains("restart"), "{plain}");
    let moved = fixture
        .config_with("[limits]\nplan_cache = 7\n")
        .replace("mysql = \"127.0.0.1:0\"", "mysql = \"127.0.0.1:1\"");
    std::fs::write(gateway.config_file(), moved).unwrap();
    for _ in 0..2 {
        let (status, body) = gateway.http("POST", "/api/reload").await;
        assert_eq!(status, 200);
        assert!(
            body.contains("needs a restart to apply: listen.mysql, limits.plan_cache"),
            "{body}"
        );
    }
    let log = gateway.process().stderr();
    assert!(
        log.contains("applied by a restart only") && log.contains("listen.mysql"),
        "{log}"
    );
    answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT 1").await;
}

#[tokio::test]
async fn sigterm_stops_an_idle_gateway_at_once() {
    let (_fixture, gateway) = filled(Layout::Modulo(2)).await;
    let mut idle = gateway.conn(KEYSPACE).await;
    answer::ok(&mut idle, "SELECT 1").await;
    gateway.process().signal("TERM");
    assert_eq!(
        gateway.process().ended(Duration::from_secs(5)).await,
        0,
        "{}",
        gateway.process().report()
    );
}

#[tokio::test]
async fn passwords_and_hashes_are_not_logged() {
    let (_fixture, gateway) = filled(Layout::Modulo(2)).await;
    let _wrong = Cli::new(gateway.addr(), APP_USER)
        .password("wrong-secret")
        .run("SELECT 1")
        .await;
    gateway.process().signal("TERM");
    gateway.process().ended(LIMIT).await;
    let said = format!("{}{}", gateway.process().stdout(), gateway.process().stderr());
    for secret in [
        APP_PASSWORD,
        "wrong-secret",
        "6C7A370C07660BC788681B3238D93E08BD74303C",
    ] {
        assert!(!said.contains(secret), "{secret} is in:\n{said}");
    }
}

/// Between the two limits a tablet would close its connection on what the gateway let through.
#[tokio::test]
async fn a_tablet_that_takes_shorter_packets_than_the_gateway_is_named() {
    let fixture = Fixture::new(Layout::Unsharded, 1, &[TABLE_T]).await;
    let mut server = fixture.shards[0].conn().await;
    let theirs = answer::ok(&mut server, "SELECT @@global.max_allowed_packet")
        .await
        .single()
        .parse::<u64>()
        .unwrap();
    for (ours, told) in [(theirs + 1024, true), (theirs, false)] {
        let gateway = Gateway::serve(&fixture.config_with(&format!("[limits]\nmax_packet = {ours}\n")));
        let mut conn = gateway.conn(KEYSPACE).await;
        answer::ok(&mut conn, "SELECT 1").await;
        let log = gateway.process().stderr();
        assert_eq!(log.contains("longer packets than the tablet"), told, "{log}");
    }
}
