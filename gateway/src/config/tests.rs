use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use shardgate_wire::auth::Credential;

use super::*;

const MINIMAL: &str = "[[users]]\nname = \"u\"\npassword_hash = \"\"\n\
    [[keyspaces.k.shards]]\nname = \"-\"\ntablets = [{ alias = \"a\", address = \"h:1\" }]\n";

fn error(text: &str) -> String {
    Config::parse(text, Path::new(".")).unwrap_err().to_string()
}

#[test]
fn the_least_configuration_has_the_documented_defaults() {
    let config = Config::parse(MINIMAL, Path::new(".")).unwrap();
    assert_eq!(config.listen.mysql.port(), 15_306);
    assert_eq!(config.pool.size, 20);
    assert_eq!(
        config.timeouts.mysql_server_query_timeout,
        Duration::from_secs(30)
    );
    assert!(matches!(config.users[0].credential, Credential::Empty));
    assert_eq!(config.keyspaces["k"].shards[0].database, "k");
}

#[test]
fn the_example_parses_and_is_worth_copying() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(dir.join("shardgate.example.toml")).unwrap();
    // Uncommented, for the lines that show a default are commented out.
    let config = Config::parse(&text, dir).unwrap();
    assert!(config.keyspaces.len() >= 3);
    let shown: String = text
        .lines()
        .map(|l| l.strip_prefix("#: ").unwrap_or(l).to_owned() + "\n")
        .collect();
    let all = Config::parse(&shown, dir).unwrap();
    let defaults = Config::parse(MINIMAL, dir).unwrap();
    assert_eq!(
        (&all.pool, &all.poller, &all.timeouts, &all.limits),
        (
            &defaults.pool,
            &defaults.poller,
            &defaults.timeouts,
            &defaults.limits
        )
    );
    assert_eq!((&all.listen, &all.server), (&defaults.listen, &defaults.server));
}

#[test]
fn all_problems_of_a_file_are_reported_together_in_order() {
    let text = "[pool]\nsize = 0\n[timeouts]\nmysql_server_query_timeout = \"10s\"\n[[users]]\nname = \"u\"\n\
        [keyspaces.k]\nshards = []\n";
    let text = error(text);
    let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
    assert!(text.starts_with("the configuration: "), "{text}");
    assert!(
        lines[0].starts_with("line 1: pool.max_reserved") || lines[0].starts_with("line 2: pool.size"),
        "{text}"
    );
    for expected in [
        "line 1: pool.max_reserved: must be at most pool.size (0)",
        "line 2: pool.size: must be 1 to 10000",
        "line 3: timeouts.queryserver_config_query_timeout: 25s on the tablet is not shorter",
        "line 5: users[0]: needs `password_hash` or `password_file`",
        "line 8: keyspaces.k.shards: at least one shard",
    ] {
        assert!(
            lines.iter().any(|l| l.starts_with(expected)),
            "{expected}: {text}"
        );
    }
}

#[test]
fn unknown_fields_are_named_in_every_section_at_once() {
    let text = error(&format!(
        "[pool]\nsise = 1\n[limits]\nx = 1\n[typo]\n{MINIMAL}extra = 2\n[server]\nlog = \"=\"\n"
    ));
    for expected in [
        "line 2: pool.sise: unknown field `sise`, expected one of `size`",
        "line 4: limits.x: unknown field `x`",
        "line 5: typo: unknown field; known are listen",
        "line 12: keyspaces.k.shards[0].extra: unknown field `extra`",
        "line 14: server.log: is not a log filter",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_file_without_users_or_keyspaces_is_told_so() {
    let text = error("");
    assert!(
        text.contains("users: at least one user") && text.contains("keyspaces: at least one keyspace"),
        "{text}"
    );
}

#[test]
fn a_syntax_error_names_its_line() {
    let text = error("[listen]\nmysql = \n");
    assert!(text.contains("line 2"), "{text}");
    let text = error("[pool]\nsize = 1\nsize = 2\n");
    assert!(text.contains("line 3") && text.contains("duplicate"), "{text}");
}

#[test]
fn an_unreadable_file_is_named() {
    let error = Config::load(Path::new("/nonexistent/x.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/nonexistent/x.toml: cannot be read"),
        "{error}"
    );
    let text = self::error(&format!(
        "{MINIMAL}[backend]\npassword_file = \"nope.txt\"\n[client_tls]\ncert_file = \"c.pem\"\n"
    ));
    assert!(
        text.contains("line 8: backend.password_file: cannot read ./nope.txt"),
        "{text}"
    );
    assert!(
        text.contains("client_tls.cert_file: needs a `key_file`"),
        "{text}"
    );
    assert!(
        text.contains("line 10: client_tls.cert_file: cannot read ./c.pem"),
        "{text}"
    );
}

#[test]
fn a_duration_needs_its_unit() {
    let text = error(&format!("[timeouts]\nconnect = 5\n{MINIMAL}"));
    assert!(
        text.contains("line 2: timeouts.connect: invalid type: integer `5`, expected a duration"),
        "{text}"
    );
}

#[test]
fn inverted_timeouts_are_refused_with_the_reason() {
    let with = |outer: &str, inner: &str| {
        let text = format!(
            "[timeouts]\nmysql_server_query_timeout = \"{outer}\"\nqueryserver_config_query_timeout = \"{inner}\"\n{MINIMAL}"
        );
        Config::parse(&text, Path::new(".")).map_err(|e| e.to_string())
    };
    for (outer, inner) in [("10s", "10s"), ("10s", "20s"), ("10s", "0s")] {
        let error = with(outer, inner).unwrap_err();
        assert!(error.contains("would give up first"), "{error}");
    }
    for (outer, inner) in [("10s", "9s"), ("0s", "20s"), ("0s", "0s")] {
        with(outer, inner).unwrap();
    }
}

#[test]
fn passwords_are_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pw"), "hunter2\n").unwrap();
    let text = MINIMAL.replace("password_hash = \"\"", "password_file = \"pw\"")
        + "[[users]]\nname = \"v\"\npassword_hash = \"*0123456789012345678901234567890123456789\"\n\
           [backend]\npassword_file = \"pw\"\n";
    let config = Config::parse(&text, dir.path()).unwrap();
    assert_eq!(config.backend.password.expose(), "hunter2");
    let shown = format!("{config:?} {:?}", config.users);
    assert!(
        !shown.contains("hunter2") && !shown.contains("0123456789"),
        "{shown}"
    );
    assert!(matches!(config.users[0].credential, Credential::Native(_)));
}

#[test]
fn a_hash_is_one_of_the_known_shapes() {
    let with = |hash: &str| {
        let text = MINIMAL.replace("password_hash = \"\"", &format!("password_hash = \"{hash}\""));
        Config::parse(&text, Path::new("."))
            .map(|c| c.users[0].credential.clone())
            .map_err(|e| e.to_string())
    };
    assert!(matches!(with(&format!("*{}", "0A".repeat(20))), Ok(Credential::Native(h)) if h == [10; 20]));
    assert!(matches!(with(&"ff".repeat(32)), Ok(Credential::CachingSha2(h)) if h == [255; 32]));
    let crypt = format!("$A$005${}{}", "s".repeat(20), "d".repeat(43));
    assert!(matches!(with(&crypt), Ok(Credential::Sha2Crypt(_))));
    for bad in ["*00", "secret", "$A$005$abc", "+a+a"] {
        let error = with(bad).unwrap_err();
        assert!(
            error.contains("users[0].password_hash") && !error.contains(bad),
            "{error}"
        );
    }
}

#[test]
fn the_demo_is_a_valid_configuration() {
    let address = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let shape = DemoShape {
        listen: Listen::default(),
        commerce: (0..4)
            .map(|s| vec![address(4000 + s * 2), address(4001 + s * 2)])
            .collect(),
        lookup: vec![address(5000)],
    };
    let config = demo_draft(&shape).validate(Path::new(".")).unwrap();
    let commerce = &config.keyspaces["commerce"];
    assert_eq!(commerce.shards.len(), 4);
    let aliases: Vec<_> = commerce.shards[1]
        .tablets
        .iter()
        .map(|t| t.alias.to_string())
        .collect();
    assert_eq!(aliases, ["commerce-40-80-primary", "commerce-40-80-replica-1"]);
    assert_eq!(config.keyspaces["lookup"].division, Division::Unsharded);
    assert_eq!(
        config.keyspaces["lookup"].shards[0].tablets[0].alias.as_str(),
        "lookup-primary"
    );
}

/// A deserializer that only tells which fields a struct asks for.
mod probe {
    use serde::de::{Deserializer, Error, Visitor};
    use serde::forward_to_deserialize_any;

    pub(super) struct Probe<'a>(pub(super) &'a mut Vec<&'static str>);

    impl<'de> Deserializer<'de> for Probe<'_> {
        type Error = serde::de::value::Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Error::custom("only asks"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.extend_from_slice(fields);
            Err(Error::custom("only asks"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
}

fn fields<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
    let mut fields = Vec::new();
    assert!(T::deserialize(probe::Probe(&mut fields)).is_err());
    assert!(!fields.is_empty());
    fields
}

/// Every section with its fields, as headed in the documentation and the example.
fn sections() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("[listen]", fields::<Listen>()),
        ("[server]", fields::<Server>()),
        ("[[users]]", fields::<UserDraft>()),
        ("[backend]", fields::<BackendDraft>()),
        ("[client_tls]", fields::<ClientTls>()),
        ("[tablet_tls]", fields::<TabletTls>()),
        ("[pool]", fields::<Pool>()),
        ("[poller]", fields::<Poller>()),
        ("[timeouts]", fields::<Timeouts>()),
        ("[limits]", fields::<Limits>()),
        ("[guard]", fields::<Guard>()),
        ("[buffer]", fields::<Buffer>()),
        ("[shard_breaker]", fields::<BreakerDraft>()),
        ("[replica_breaker]", fields::<BreakerDraft>()),
        ("[keyspaces.NAME]", fields::<KeyspaceDraft>()),
        ("[keyspaces.NAME.named]", fields::<NamedDraft>()),
        ("[[keyspaces.NAME.shards]]", fields::<ShardDraft>()),
        ("[[keyspaces.NAME.shards.tablets]]", fields::<TabletDraft>()),
    ]
}

#[test]
fn the_documentation_lists_every_field_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (heading, fields) in sections() {
        let start = page
            .find(&format!("## `{heading}`"))
            .unwrap_or_else(|| panic!("no section {heading}"));
        let body = &page[start + 3..];
        let body = &body[..body.find("\n## ").unwrap_or(body.len())];
        let listed: BTreeSet<&str> = body
            .lines()
            .filter_map(|l| l.strip_prefix("| `")?.split_once('`'))
            .map(|(name, _)| name)
            .collect();
        let fields: BTreeSet<&str> = fields.into_iter().collect();
        assert_eq!(listed, fields, "{heading}");
    }
}

#[test]
fn the_example_shows_every_simple_field() {
    let text = include_str!("../../shardgate.example.toml");
    for (heading, fields) in sections() {
        for field in fields {
            assert!(
                text.contains(&format!("{field} =")) || text.contains(&format!(".{field}")),
                "{heading} {field}"
            );
        }
    }
}

mod properties {
    use proptest::prelude::*;

    use super::super::vschema::VSchema;
    use super::*;

    const EXAMPLE: &str = include_str!("../../shardgate.example.toml");
    const JSON: &str = r#"{"sharded": true, "vindexes": {"h": {"type": "hash"}}, "tables": {"t\"": {"column_vindexes":
        [{"column": "id", "name": "h"}]}, "r": {"type": "reference"}}}"#;

    fn damaged(text: &str, at: usize, cut: usize, by: &str) -> String {
        let floor = |i: usize| {
            (0..=i.min(text.len()))
                .rev()
                .find(|i| text.is_char_boundary(*i))
                .unwrap_or(0)
        };
        let (start, end) = (floor(at), floor(at + cut));
        format!("{}{by}{}", &text[..start], &text[end..])
    }

    proptest! {
        #[test]
        fn no_damage_to_a_file_makes_reading_panic(at in 0usize..7000, cut in 0usize..200, by in "[\\[\\]{}=\"'#\n\\\\é0-9a-z.,-]{0,6}") {
            if let Err(error) = Config::parse(&damaged(EXAMPLE, at, cut, &by), Path::new(".")) {
                prop_assert!(!error.problems.is_empty());
            }
        }

        #[test]
        fn no_damage_to_a_vschema_makes_reading_panic(at in 0usize..220, cut in 0usize..40, by in "[\\[\\]{}:\"'\n\\\\é0-9a-z.,]{0,6}") {
            if let Err(problems) = VSchema::parse(&damaged(JSON, at, cut, &by), None) {
                prop_assert!(!problems.is_empty());
            }
        }
    }
}
