//! What clients see of the protocol, compared with what a server shows them: scenarios S2 and S3.

use mysql_async::prelude::Queryable;
use mysql_async::{ChangeUserOpts, Conn, Params, SslOpts, Value};
use shardgate_tests::client::python;
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::mariadb::{APP_PASSWORD, APP_USER, options};
use shardgate_tests::{Fixture, Gateway, Layout, Order, answer};

/// Runs a script that prints a transcript, against the reference and through the gateway.
async fn same_transcript(script: &str, fixture: &Fixture, gateway: &Gateway) {
    let database = &fixture.reference.name;
    let want = python::run(
        script,
        fixture.reference.addr,
        &[APP_USER, APP_PASSWORD, database],
    )
    .await;
    let got = python::run(script, gateway.addr(), &[APP_USER, APP_PASSWORD, KEYSPACE]).await;
    let database_hidden = |text: String| text.replace(database.as_str(), KEYSPACE);
    let (want, got) = (database_hidden(want), database_hidden(got));
    for (n, (w, g)) in want.lines().zip(got.lines()).enumerate() {
        assert_eq!(
            w,
            g,
            "{script}, line {}: reference left; whole answer of the gateway:\n{got}",
            n + 1
        );
    }
    assert_eq!(want, got, "{script}");
}

async fn scenario() -> (Fixture, Gateway) {
    let fixture = Fixture::scenario().await;
    fixture
        .insert(
            "t",
            &[
                (1, "1, 10, 'a'"),
                (2, "2, 20, '\u{e4}'"),
                (3, "NULL, NULL, NULL"),
                (4, "4, 40, 'B'"),
            ],
        )
        .await;
    let gateway = fixture.gateway();
    (fixture, gateway)
}

#[tokio::test]
async fn multi_statements_answer_as_one_server_and_stop_at_the_first_error() {
    let (fixture, gateway) = scenario().await;
    same_transcript("multi.py", &fixture, &gateway).await;
}

#[tokio::test]
async fn the_commands_besides_queries_answer_as_one_server() {
    let (fixture, gateway) = scenario().await;
    same_transcript("commands.py", &fixture, &gateway).await;
}

#[tokio::test]
async fn each_client_charset_sees_what_one_server_shows_it() {
    let (fixture, gateway) = scenario().await;
    same_transcript("charset.py", &fixture, &gateway).await;
}

/// S3 [shardingsphere#5803 #39204, vitess#7374].
#[tokio::test]
async fn typed_parameters_and_null_bitmaps_answer_as_one_server() {
    let nulls = [0, 1, 7, 8, 16];
    let kinds = [
        "TINYINT",
        "SMALLINT UNSIGNED",
        "INT",
        "BIGINT UNSIGNED",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(20,5)",
        "DATE",
    ];
    let kinds = kinds.iter().chain(&[
        "DATETIME(6)",
        "TIME(3)",
        "YEAR",
        "VARCHAR(9)",
        "BLOB",
        "TEXT",
        "BIT(9)",
    ]);
    let kinds = kinds.chain(&["ENUM('a','b')", "SET('a','b')"]);
    let columns: Vec<String> = kinds
        .enumerate()
        .map(|(n, kind)| format!("c{n} {kind}"))
        .collect();
    let wide = format!(
        "CREATE TABLE wide (id BIGINT PRIMARY KEY, {})",
        columns.join(", ")
    );
    let bound = "CREATE TABLE bound (id BIGINT PRIMARY KEY, a TINYINT UNSIGNED, b INT, c BIGINT UNSIGNED)";
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[&wide, bound]).await;

    let full = [
        "-1",
        "65535",
        "-7",
        "18446744073709551615",
        "1.5",
        "2.25",
        "3.12345",
        "'2024-02-29'",
        "'2024-02-29 01:02:03.000004'",
        "'-12:34:56.789'",
        "2024",
        "'text'",
        "X'00FF'",
        "'longer'",
        "b'101'",
        "'b'",
        "'a,b'",
    ];
    let holes: Vec<&str> = full
        .iter()
        .enumerate()
        .map(|(n, v)| if nulls.contains(&n) { "NULL" } else { v })
        .collect();
    fixture
        .insert("wide", &[(2, &full.join(", ")), (3, &holes.join(", "))])
        .await;
    let gateway = fixture.gateway();
    same_transcript("prepared.py", &fixture, &gateway).await;
}

/// S2 [proxysql#1350, vitess#12333]: sizes at which a packet is joined by another, empty or not, both ways.
#[tokio::test]
async fn packets_around_16_megabytes_and_of_40_pass_both_ways() {
    let table = "CREATE TABLE body (id BIGINT PRIMARY KEY, b LONGBLOB)";
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[table]).await;
    let gateway = fixture.gateway();
    let mut pair = fixture.pair(&gateway).await;
    let border = 1_usize << 24;
    // An INSERT's packet has a command byte and this much text around the value.
    let around = "INSERT INTO body VALUES (1, '')".len() + 1;
    // A row's packet has 9 bytes of length before a value of this size, and `1` before it with its own length.
    let before = 4;
    for size in [border - 2, border - 1, border, 40 << 20] {
        for value in [size - around, size - before] {
            pair.both("DELETE FROM body WHERE id = 1").await.unwrap();
            let insert = format!("INSERT INTO body VALUES (1, '{}')", "x".repeat(value));
            assert_eq!(pair.both(&insert).await.unwrap().affected, 1);
            pair.same("SELECT b FROM body WHERE id = 1", Order::Fixed).await;
            pair.same("SELECT LENGTH(b), MD5(b) FROM body WHERE id = 1", Order::Fixed)
                .await;
        }
    }
}

#[tokio::test]
async fn a_packet_over_the_limit_is_error_1153_and_no_harm_to_others() {
    let (_fixture, gateway) = scenario().await;
    let opts = options(gateway.addr(), APP_USER, Some(APP_PASSWORD), Some(KEYSPACE))
        .max_allowed_packet(Some(1 << 30));
    let mut conn = Conn::new(opts).await.unwrap();
    let refused = conn
        .query_drop(format!("SELECT '{}'", "x".repeat(80 << 20)))
        .await
        .unwrap_err();
    let told = matches!(&refused, mysql_async::Error::Server(e) if e.code == 1153);
    // A server closes the connection behind the error, and the client may still be sending then.
    let cut = matches!(
        &refused,
        mysql_async::Error::Io(_) | mysql_async::Error::Driver(_)
    );
    assert!(told || cut, "{refused}");
    answer::ok(&mut gateway.conn(KEYSPACE).await, "SELECT COUNT(*) FROM t").await;
}

#[tokio::test]
async fn as_many_parameters_as_the_protocol_can_count_pass() {
    let (fixture, gateway) = scenario().await;
    let mut pair = fixture.pair(&gateway).await;
    for (count, condition) in [(65_535, "id"), (65_535, "v"), (70_000, "v")] {
        let sql = format!(
            "SELECT id FROM t WHERE {condition} IN ({})",
            vec!["?"; count].join(",")
        );
        let values: Vec<Value> = (0..count).map(|n| Value::from(n as u64)).collect();
        if count <= 65_535 {
            let answer = pair
                .same_prepared(&sql, Params::Positional(values), Order::Free)
                .await;
            assert!(!answer.rows.is_empty());
        } else {
            let want = answer::binary(&mut pair.reference, &sql, Params::Empty)
                .await
                .unwrap_err();
            let got = answer::binary(&mut pair.gateway, &sql, Params::Empty)
                .await
                .unwrap_err();
            assert_eq!((want.errno, want.state), (got.errno, got.state));
        }
    }
}

#[tokio::test]
async fn tls_with_a_certificate_made_at_start_serves_each_client() {
    let (_fixture, gateway) = scenario().await;
    let status = gateway
        .cli(KEYSPACE)
        .option("--ssl")
        .ok("status; SELECT COUNT(*) FROM t;")
        .await;
    assert!(status.contains("Cipher in use"), "{status}");
    assert!(status.ends_with("4\n"), "{status}");

    let tls = SslOpts::default().with_danger_accept_invalid_certs(true);
    let opts = options(gateway.addr(), APP_USER, Some(APP_PASSWORD), Some(KEYSPACE)).ssl_opts(tls);
    let mut conn = Conn::new(opts).await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "4"
    );

    let printed = python::run("tls.py", gateway.addr(), &[APP_USER, APP_PASSWORD, KEYSPACE]).await;
    assert_eq!(printed, "TLS 4\n");
}

#[tokio::test]
async fn a_session_is_reset_and_changes_its_user() {
    let (_fixture, gateway) = scenario().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    answer::ok(&mut conn, "SET @x = 1").await;
    answer::ok(&mut conn, "BEGIN").await;
    answer::ok(&mut conn, "UPDATE t SET v = 99 WHERE id = 2").await;
    assert!(conn.reset().await.unwrap(), "COM_RESET_CONNECTION is understood");
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "20"
    );
    assert_eq!(answer::ok(&mut conn, "SELECT @x").await.single(), "NULL");

    let again = ChangeUserOpts::default()
        .with_user(Some(APP_USER.to_owned()))
        .with_pass(Some(APP_PASSWORD.to_owned()))
        .with_db_name(Some(KEYSPACE.to_owned()));
    conn.change_user(again).await.unwrap();
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM t").await.single(),
        "4"
    );
    let wrong = ChangeUserOpts::default()
        .with_user(Some(APP_USER.to_owned()))
        .with_pass(Some("wrong".to_owned()))
        .with_db_name(Some(KEYSPACE.to_owned()));
    let refused = conn.change_user(wrong).await.unwrap_err();
    assert!(
        matches!(&refused, mysql_async::Error::Server(e) if e.code == 1045),
        "{refused}"
    );
}

/// Statements that are large, and answers gathered of large rows, take of what all may take together.
#[tokio::test]
async fn large_statements_and_rows_are_refused_where_memory_is_short() {
    let table = "CREATE TABLE big (id BIGINT PRIMARY KEY, v LONGBLOB)";
    let fixture = Fixture::new(Layout::Modulo(2), 1, &[table]).await;
    let limits = "[limits]\nquery_memory = \"2MiB\"\ntotal_memory = \"4MiB\"\n";
    let gateway = Gateway::serve(&fixture.config_with(limits));
    let mut conn = gateway.conn(KEYSPACE).await;
    let insert = |id: u32, bytes: usize| format!("INSERT INTO big VALUES ({id}, '{}')", "x".repeat(bytes));
    for id in 0..4 {
        answer::ok(&mut conn, &insert(id, 1_500_000)).await;
    }
    let refusal = answer::refused(&mut conn, &insert(9, 6_000_000)).await;
    assert_eq!(refusal.errno, 1041, "{refusal}");
    assert!(refusal.message.contains("limits.total_memory"), "{refusal}");
    // The connection is as good as ever, and so is what fits.
    assert_eq!(
        answer::ok(&mut conn, "SELECT COUNT(*) FROM big").await.single(),
        "4"
    );
    let refusal = answer::refused(&mut conn, "SELECT id, v FROM big ORDER BY id").await;
    assert!(
        refusal.message.starts_with("SG2508") && refusal.message.contains("limits.query_memory"),
        "{refusal}"
    );
    assert_eq!(
        answer::ok(&mut conn, "SELECT id FROM big ORDER BY id")
            .await
            .rows
            .len(),
        4
    );
    let one = answer::ok(&mut conn, "SELECT LENGTH(v) FROM big WHERE id = 1").await;
    assert_eq!(one.single(), "1500000");
}
