//! Mistakes in a configuration: told with their place, exit code 2, nothing started.

use shardgate_tests::gateway::{run, run_with_config};
use shardgate_tests::{Fixture, Layout};

const RANGES: &str = r#"
[listen]
mysql = "127.0.0.1:0"
admin = "127.0.0.1:0"

[[users]]
name = "app"
password_hash = "*6C7A370C07660BC788681B3238D93E08BD74303C"

[keyspaces.commerce]
vschema = '{ "sharded": true, "vindexes": { "hash": { "type": "hash" } }, "tables": {} }'

[[keyspaces.commerce.shards]]
name = "-80"
tablets = [{ alias = "a", address = "127.0.0.1:3401" }]

[[keyspaces.commerce.shards]]
name = "80-"
tablets = [{ alias = "b", address = "127.0.0.1:3402" }]
"#;

/// Checks and serves the text: both must fail with code 2 and name each of these.
async fn both_refuse(config: &str, named: &[&str]) {
    for command in ["check", "serve"] {
        let ended = run_with_config(command, &[], config).await;
        assert_eq!(
            ended.code, 2,
            "{command}\n{config}\n{}{}",
            ended.stdout, ended.stderr
        );
        for name in named {
            assert!(
                ended.stderr.contains(name),
                "{command} does not name {name}:\n{}",
                ended.stderr
            );
        }
        assert!(
            !ended.stdout.contains("127.0.0.1:"),
            "{command} has started something:\n{}",
            ended.stdout
        );
    }
}

#[tokio::test]
async fn a_valid_file_is_checked_with_code_0_and_its_topology_printed() {
    let ended = run_with_config("check", &[], RANGES).await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    for name in ["commerce", "-80", "80-", "127.0.0.1:3401", "127.0.0.1:3402"] {
        assert!(ended.stdout.contains(name), "{name} is not in:\n{}", ended.stdout);
    }
    assert!(
        !ended.stdout.contains("6C7A370C"),
        "hashes are not printed:\n{}",
        ended.stdout
    );
}

#[tokio::test]
async fn a_gap_between_key_ranges_is_refused() {
    both_refuse(&RANGES.replace("\"80-\"", "\"a0-\""), &["line", "80-a0"]).await;
    both_refuse(&RANGES.replace("\"80-\"", "\"80-c0\""), &["80-c0"]).await;
}

#[tokio::test]
async fn overlapping_key_ranges_are_refused() {
    both_refuse(
        &RANGES.replace("\"80-\"", "\"40-\""),
        &["line", "-80", "40-", "overlap"],
    )
    .await;
}

#[tokio::test]
async fn two_primaries_of_one_shard_are_refused() {
    let two = RANGES.replace(
        "{ alias = \"b\", address = \"127.0.0.1:3402\" }",
        "{ alias = \"b\", address = \"127.0.0.1:3402\" }, { alias = \"c\", address = \"127.0.0.1:3403\" }",
    );
    both_refuse(&two, &["line", "shards[1]", "primar"]).await;
}

#[tokio::test]
async fn an_unknown_field_is_refused_with_its_line() {
    both_refuse(&RANGES.replace("admin =", "adnim ="), &["line 4", "adnim"]).await;
    both_refuse(
        &RANGES.replace("alias = \"a\",", "alias = \"a\", wieght = 1,"),
        &["line 15", "wieght"],
    )
    .await;
    both_refuse(&format!("{RANGES}\n[metrics]\nport = 1\n"), &["line", "metrics"]).await;
}

#[tokio::test]
async fn what_is_not_toml_is_refused_with_its_line() {
    both_refuse(&RANGES.replace("[listen]", "[listen"), &["line 2"]).await;
}

#[tokio::test]
async fn each_of_several_mistakes_is_told_at_once() {
    let config = RANGES
        .replace("\"80-\"", "\"a0-\"")
        .replace("127.0.0.1:3401", "nowhere");
    both_refuse(&config, &["80-a0", "nowhere"]).await;
}

#[tokio::test]
async fn a_vschema_with_an_unknown_vindex_or_field_is_refused() {
    both_refuse(
        &RANGES.replace("\"type\": \"hash\"", "\"type\": \"hsah\""),
        &["vschema", "hsah"],
    )
    .await;
    both_refuse(
        &RANGES.replace("\"tables\"", "\"tabels\""),
        &["vschema", "tabels"],
    )
    .await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_by_name() {
    for command in ["check", "serve"] {
        let ended = run(&[command, "--config", "/nonexistent/shardgate.toml"]).await;
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(
            ended.stderr.contains("/nonexistent/shardgate.toml"),
            "{}",
            ended.stderr
        );
    }
    let unknown = RANGES.replace(
        "vschema = '{ \"sharded\": true, \"vindexes\": { \"hash\": { \"type\": \"hash\" } }, \
        \"tables\": {} }'",
        "vschema_file = \"missing.json\"",
    );
    both_refuse(&unknown, &["missing.json"]).await;
}

#[tokio::test]
async fn check_connect_tells_of_each_tablet_whether_it_answers() {
    let fixture = Fixture::new(Layout::Modulo(2), 1, &["CREATE TABLE t (id BIGINT PRIMARY KEY)"]).await;
    let good = run_with_config("check", &["--connect"], &fixture.config()).await;
    assert_eq!(good.code, 0, "{}{}", good.stdout, good.stderr);
    let bad = fixture
        .config()
        .replace(&fixture.proxies[1].addr().to_string(), "127.0.0.1:1");
    let refused = run_with_config("check", &["--connect"], &bad).await;
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    assert!(
        told.contains("127.0.0.1:1") || told.contains("shop-s1-a"),
        "{told}"
    );
}

#[tokio::test]
async fn a_dead_tablet_is_told_as_that_and_not_as_missing_tables() {
    let fixture = Fixture::new(Layout::KeyRanges(2), 1, &[shardgate_tests::fixture::TABLE_T]).await;
    let bad = fixture
        .config()
        .replace(&fixture.proxies[1].addr().to_string(), "127.0.0.1:1")
        // Nobody has this one, as far as the one shard that answers can tell.
        .replacen(
            r#""tables":{"#,
            r#""tables":{"later":{"column_vindexes":[{"column":"id","name":"hash"}]},"#,
            1,
        );
    let ended = run_with_config("check", &["--connect"], &bad).await;
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("1 tablet does not answer"), "{told}");
    assert!(!told.contains("on no tablet"), "{told}");
    assert!(!told.contains("version 5.5.5-"), "{told}");
}

#[tokio::test]
async fn listeners_that_cannot_be_opened_are_refused() {
    let admin = RANGES.replace("admin = \"127.0.0.1:0\"", "admin = \"127.0.0.1:3\"");
    let same = admin.replace("mysql = \"127.0.0.1:0\"", "mysql = \"0.0.0.0:3\"");
    both_refuse(&same, &["listen.admin", "listen.mysql"]).await;
    let named = RANGES.replace("mysql = \"127.0.0.1:0\"", "mysql = \"localhost:15306\"");
    both_refuse(&named, &["localhost:15306", "IP address"]).await;
}

#[tokio::test]
async fn the_example_configuration_is_valid() {
    let file = shardgate_tests::tools::source_root().join("gateway/shardgate.example.toml");
    let ended = run(&["check", "--config", &file.display().to_string()]).await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

#[tokio::test]
async fn a_header_left_open_is_told_as_that() {
    both_refuse(
        "[listen\nmysql = \"127.0.0.1:0\"\n",
        &["SG1001", "line 1: unclosed table"],
    )
    .await;
}

#[tokio::test]
async fn the_vschema_is_compared_with_the_tablets_tables() {
    let fixture = Fixture::new(Layout::KeyRanges(2), 1, &[shardgate_tests::fixture::TABLE_T]).await;
    let good = fixture.config();
    let ended = run_with_config("check", &["--connect"], &good).await;
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let (right, later) = (
        r#""column":"id""#,
        r#""later":{"column_vindexes":[{"column":"id","name":"hash"}]},"#,
    );
    assert!(good.contains(right), "{good}");
    // A table that is not there yet.
    let early = good.replacen(r#""tables":{"#, &format!(r#""tables":{{{later}"#), 1);
    let ended = run_with_config("check", &["--connect"], &early).await;
    assert_eq!(ended.code, 0, "{early}\n{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("warning: keyspace"), "{}", ended.stderr);
    // A table without the column that is to divide it.
    let wrong = good.replacen(right, r#""column":"nothing""#, 1);
    let ended = run_with_config("check", &["--connect"], &wrong).await;
    assert_eq!(ended.code, 2, "{wrong}\n{}{}", ended.stdout, ended.stderr);
    for told in ["error: keyspace", "table `t` has no column `nothing`"] {
        assert!(ended.stderr.contains(told), "{told}:\n{}", ended.stderr);
    }
}
