use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::base::keyrange::trimmed;
use crate::config::Config;
use crate::vindex::{Destination, Value, Vindex};

const HASH: &str = r#"{"sharded": true, "vindexes": {"hash": {"type": "hash"}},
    "tables": {"t": {"column_vindexes": [{"column": "id", "name": "hash"}]}}}"#;

/// A configuration of one keyspace `k` with these lines.
fn parse(keyspace: &str) -> Result<Keyspace, String> {
    let text = format!("[[users]]\nname = \"u\"\npassword_hash = \"\"\n[keyspaces.k]\n{keyspace}");
    let config = Config::parse(&text, Path::new(".")).map_err(|e| e.to_string())?;
    Ok(config.keyspaces.into_values().next().unwrap())
}

fn shard(name: &str, rest: &str) -> String {
    let tablet = format!("{{ alias = \"t{name}\", address = \"127.0.0.1:3306\" }}");
    format!(
        "[[keyspaces.k.shards]]\nname = \"{name}\"\ndatabase = \"db{name}\"\ntablets = [{tablet}]\n{rest}\n"
    )
}

fn by_ranges(names: &[&str]) -> Result<Keyspace, String> {
    let shards: String = names.iter().map(|n| shard(n, "")).collect();
    parse(&format!("vschema = '''{HASH}'''\n{shards}"))
}

fn by_name(named: &str, shards: &[(&str, &str)]) -> Result<Keyspace, String> {
    let shards: String = shards.iter().map(|(n, rest)| shard(n, rest)).collect();
    parse(&format!("named = {{ column = \"shop_id\", {named} }}\n{shards}"))
}

fn shard_of(keyspace: &Keyspace, value: i64) -> String {
    let Division::Named { cut, .. } = &keyspace.division else {
        panic!("not named")
    };
    match Vindex::named(cut.clone()).map(&Value::Int(value)) {
        Ok(Destination::Shard(name)) => name.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn shards_of_key_ranges_are_sorted_whatever_the_order_in_the_file() {
    let keyspace = by_ranges(&["c0-", "-40", "80-c0", "40-80"]).unwrap();
    assert_eq!(keyspace.division, Division::KeyRanges);
    let names: Vec<_> = keyspace.shards.iter().map(|s| s.name.to_string()).collect();
    assert_eq!(names, ["-40", "40-80", "80-c0", "c0-"]);
    assert_eq!(keyspace.shards[0].database, "db-40");
}

#[test]
fn gaps_and_overlaps_are_named() {
    let cases: [(&[&str], &[&str]); 8] = [
        (
            &["-40", "80-"],
            &["no shard holds `40-80`: a gap between `-40` and `80-`"],
        ),
        (&["-80", "40-"], &["shards `-80` and `40-` overlap"]),
        (&["40-"], &["a gap at the start"]),
        (&["-40"], &["a gap at the end"]),
        (&["40-80"], &["a gap at the start", "a gap at the end"]),
        (&["-", "40-80"], &["shards `-` and `40-80` overlap"]),
        (
            &["-c0", "40-80", "80-"],
            &[
                "shards `-c0` and `40-80` overlap",
                "shards `-c0` and `80-` overlap",
            ],
        ),
        (
            &["-4x", "80-40"],
            &["`-4x`: a key range's bound", "`80-40`: a key range's start"],
        ),
    ];
    for (names, expected) in cases {
        let error = by_ranges(names).unwrap_err();
        for text in expected {
            assert!(error.contains(text), "{names:?}: {error}");
        }
    }
}

#[test]
fn a_missing_vschema_says_what_is_missing() {
    let error = parse(&(shard("-80", "") + &shard("80-", ""))).unwrap_err();
    assert!(
        error.contains("line 5: keyspaces.k.shards: several shards need a `vschema_file`"),
        "{error}"
    );
    let error = parse(&format!(
        "vschema = '{{}}'\n{}{}",
        shard("-80", ""),
        shard("80-", "")
    ))
    .unwrap_err();
    assert!(error.contains("does not say `\"sharded\": true`"), "{error}");
    assert_eq!(parse(&shard("0", "")).unwrap().division, Division::Unsharded);
}

#[test]
fn problems_inside_a_vschema_carry_both_places() {
    let json = "{\n \"sharded\": true,\n \"tables\": {\n  \"t\": {}\n }\n}";
    let error = parse(&format!("vschema = '''{json}'''\n{}", shard("-", ""))).unwrap_err();
    assert!(
        error.contains("line 5: keyspaces.k.vschema: of the JSON, line 4, tables.t: "),
        "{error}"
    );
}

#[test]
fn modulo_shards_hold_their_place_or_their_remainders() {
    let implicit = by_name(
        "by = \"modulo\"",
        &[("shop_00", ""), ("shop_01", ""), ("shop_02", "")],
    )
    .unwrap();
    assert_eq!(
        (shard_of(&implicit, 3), shard_of(&implicit, 5)),
        ("shop_00".into(), "shop_02".into())
    );
    let listed = [("a", "remainders = [0, 2]"), ("b", "remainders = [1, 3]")];
    let explicit = by_name("by = \"modulo\", count = 4", &listed).unwrap();
    assert_eq!(
        (shard_of(&explicit, 6), shard_of(&explicit, 7)),
        ("a".into(), "b".into())
    );
}

#[test]
fn a_divisor_and_remainders_that_do_not_meet_are_named() {
    let error = by_name("by = \"modulo\", count = 3", &[("a", ""), ("b", "")]).unwrap_err();
    assert!(error.contains("is 3, but there are 2 shards"), "{error}");
    let twisted = [
        ("a", "remainders = [0, 1]"),
        ("b", "remainders = [1, 9]"),
        ("c", ""),
    ];
    let error = by_name("by = \"modulo\", count = 4", &twisted).unwrap_err();
    for text in [
        "1 is held by `a` already",
        "9 is no remainder",
        "shard `c` holds no remainder",
        "no shard holds remainder 2, 3 of 4",
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
    assert!(
        by_name("by = \"modulo\", count = 0", &[("a", "")])
            .unwrap_err()
            .contains("must be 1 to 65536")
    );
}

#[test]
fn ranges_of_integers_must_touch() {
    let good = by_name(
        "by = \"range\"",
        &[("b", "from = 100"), ("a", "from = 1\nto = 100")],
    )
    .unwrap();
    assert_eq!(
        (shard_of(&good, 99), shard_of(&good, 100)),
        ("a".into(), "b".into())
    );
    let error = by_name("by = \"range\"", &[("a", "to = 100"), ("b", "from = 200")]).unwrap_err();
    assert!(
        error.contains("values from 100 to below 200 belong to no shard"),
        "{error}"
    );
    let error = by_name("by = \"range\"", &[("a", "to = 100"), ("b", "from = 50")]).unwrap_err();
    assert!(error.contains("shards `a` and `b` overlap"), "{error}");
}

#[test]
fn lists_hold_each_value_once() {
    let lists = [("a", "values = [1, 2]"), ("b", "values = [\"eu\"]"), ("c", "")];
    let good = by_name("by = \"list\", default_shard = \"c\"", &lists).unwrap();
    assert_eq!((shard_of(&good, 2), shard_of(&good, 9)), ("a".into(), "c".into()));
    let twice = [
        ("a", "values = [1, \"x\"]"),
        ("b", "values = [1, \"x\"]"),
        ("c", ""),
    ];
    let error = by_name("by = \"list\", default_shard = \"d\"", &twice).unwrap_err();
    for text in [
        "1 is held by `a`",
        "\"x\" is held by `a`",
        "`c` holds no value",
        "there is no shard `d`",
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn fields_of_another_kind_are_not_silently_without_effect() {
    let error = by_name(
        "by = \"range\", count = 2, default_shard = \"a\"",
        &[("a", "values = [1]")],
    )
    .unwrap_err();
    for text in [
        "named.count: goes with",
        "named.default_shard: goes with",
        "shards[0].values: goes with",
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
    let error = parse(&shard("0", "remainders = [0]")).unwrap_err();
    assert!(error.contains("needs a `[keyspaces.k.named]`"), "{error}");
}

#[test]
fn one_primary_one_alias_one_database() {
    let shards = "[[keyspaces.k.shards]]\nname = \"-80\"\ntablets = [\n\
        { alias = \"a\", address = \"h:1\" },\n{ alias = \"a\", address = \"h:2\", role = \"primary\" },\n]\n\
        [[keyspaces.k.shards]]\nname = \"80-\"\ntablets = [\n{ alias = \"c\", address = \"h:1\", role = \"replica\" },\n\
        { alias = \"d\", address = \"nowhere\", role = \"replica\" },\n]\n";
    let error = parse(&format!("vschema = '''{HASH}'''\n{shards}")).unwrap_err();
    let expected = [
        "shards[0].tablets: shard `-80` has 2 primaries: a, a",
        "line 11: keyspaces.k.shards[0].tablets[1].alias: alias `a` is given twice, first at keyspaces.k.shards[0].tablets[0]",
        "shards[1].tablets: shard `80-` has no primary",
        "database `k` at h:1 is shard `-80` already",
        "`nowhere` is not `host:port`",
    ];
    for text in expected {
        assert!(error.contains(text), "{text}: {error}");
    }
}

#[test]
fn addresses_read_and_print_alike() {
    for text in [
        "127.0.0.1:3306",
        "db-1.internal:3307",
        "[::1]:3306",
        "unix:/run/mysqld.sock",
    ] {
        assert_eq!(TabletAddress::parse(text).unwrap().to_string(), text);
    }
    for text in [
        "",
        "host",
        "host:",
        ":3306",
        "::1:3306",
        "[::1]",
        "host:0",
        "host:99999",
        "unix:x",
        "[x]:1",
        "a b:1",
    ] {
        assert_eq!(TabletAddress::parse(text), None, "{text}");
    }
}

#[test]
fn even_ranges_are_those_of_vitess() {
    assert_eq!(even_ranges(1), ["-"]);
    assert_eq!(even_ranges(4), ["-40", "40-80", "80-c0", "c0-"]);
    assert_eq!(even_ranges(3), ["-5555", "5555-aaaa", "aaaa-"]);
}

fn named_ranges(names: &[String]) -> Vec<(ShardName, KeyRange)> {
    let mut ranges: Vec<_> = names
        .iter()
        .map(|n| (n.as_str().into(), KeyRange::parse(n).unwrap()))
        .collect();
    ranges.sort_by(|a: &(ShardName, KeyRange), b| trimmed(&a.1.start).cmp(trimmed(&b.1.start)));
    ranges
}

fn tiles(ranges: &[(ShardName, KeyRange)]) -> bool {
    check_tiling(&ranges.iter().map(|(n, r)| (n, r)).collect::<Vec<_>>()).is_empty()
}

proptest! {
    #[test]
    fn even_ranges_tile(n in 1u32..700) {
        let names = even_ranges(n);
        prop_assert_eq!(names.len(), n as usize);
        prop_assert!(tiles(&named_ranges(&names)));
    }

    // Against the plain definition: every one-byte id, and those just around it, has exactly one owner.
    #[test]
    fn what_tiles_gives_every_id_one_owner(bounds in proptest::collection::vec((0u16..256, 0u16..257), 1..6)) {
        let text = |b: u16| if b == 0 || b == 256 { String::new() } else { format!("{b:02x}") };
        let names: Vec<_> = bounds.iter().filter(|(a, b)| a < b).map(|(a, b)| format!("{}-{}", text(*a), text(*b))).collect();
        let ranges = named_ranges(&names);
        let owners = |id: &[u8]| ranges.iter().filter(|(_, r)| r.contains(&crate::base::KeyspaceId::from_slice(id))).count();
        let once = (0..=255u8).all(|b| owners(&[b]) == 1 && owners(&[b, 0xff]) == 1);
        prop_assert_eq!(tiles(&ranges), once, "{:?}", names);
    }
}

#[test]
fn no_two_keyspaces_share_an_alias() {
    let keyspace = |name: &str| {
        format!(
            "[[keyspaces.{name}.shards]]\nname = \"-\"\ntablets = [{{ alias = \"same\", address = \"h:1\" }}]\n"
        )
    };
    let text = format!(
        "[[users]]\nname = \"u\"\npassword_hash = \"\"\n{}{}",
        keyspace("a"),
        keyspace("b")
    );
    let error = Config::parse(&text, Path::new(".")).unwrap_err().to_string();
    assert!(
        error.contains("alias `same` is given twice, first at keyspaces.a.shards[0].tablets[0]"),
        "{error}"
    );
}
