use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::base::{GatewayError as _, KeyRange, KeyspaceId, Role};
use crate::config::{Division, Keyspace, Shard, even_ranges};
use crate::vindex::Destination;

const HASH: &str = r#"{"sharded": true, "vindexes": {"h": {"type": "hash"}},
    "tables": {"t": {"column_vindexes": [{"column": "id", "name": "h"}]}}}"#;

fn config(names: &[String]) -> Config {
    let shard = |(i, name): (usize, &String)| {
        format!(
            "[[keyspaces.commerce.shards]]\nname = \"{name}\"\ntablets = [\
             {{ alias = \"p{i}\", address = \"10.0.0.{i}:3306\" }},\
             {{ alias = \"r{i}\", address = \"10.0.1.{i}:3306\", role = \"replica\" }}]\n"
        )
    };
    let shards: String = names.iter().enumerate().map(shard).collect();
    let text = format!(
        "[[users]]\nname = \"u\"\npassword_hash = \"\"\n[keyspaces.commerce]\nvschema = '''{HASH}'''\n{shards}\
         [keyspaces.lookup]\nshards = [{{ name = \"0\", tablets = [{{ alias = \"l\", address = \"h:1\" }}] }}]\n\
         [keyspaces.shop]\nnamed = {{ by = \"modulo\", column = \"id\" }}\nshards = [\
         {{ name = \"s1\", database = \"a\", tablets = [{{ alias = \"s1\", address = \"h:2\" }}] }},\
         {{ name = \"s0\", database = \"b\", tablets = [{{ alias = \"s0\", address = \"h:2\" }}] }}]\n"
    );
    Config::parse(&text, Path::new(".")).unwrap()
}

fn four() -> Config {
    config(&even_ranges(4))
}

fn id(bytes: &[u8]) -> KeyspaceId {
    KeyspaceId::from_slice(bytes)
}

#[test]
fn an_id_is_found_in_the_range_that_holds_it() {
    let topology = Topology::new(1, &four()).unwrap();
    let commerce = topology.keyspace("commerce").unwrap();
    let cases: [(&[u8], usize); 6] = [
        (&[], 0),
        (&[0x3f, 0xff], 0),
        (&[0x40], 1),
        (&[0x7f], 1),
        (&[0x80, 0, 0], 2),
        (&[0xff; 16], 3),
    ];
    for (bytes, shard) in cases {
        assert_eq!(commerce.shard_for(&id(bytes)), Some(shard), "{bytes:x?}");
    }
    assert_eq!(topology.keyspace("shop").unwrap().shard_for(&id(&[1])), None);
}

#[test]
fn shards_answer_to_their_names_and_to_equal_ranges() {
    let topology = Topology::new(1, &four()).unwrap();
    let commerce = topology.keyspace("commerce").unwrap();
    assert_eq!(commerce.index_of("40-80"), Some(1));
    assert_eq!(commerce.index_of("4000-8000"), Some(1));
    assert_eq!(commerce.index_of("40-"), None);
    let lookup = topology.keyspace("lookup").unwrap();
    assert_eq!(
        (lookup.index_of("0"), lookup.index_of("-"), lookup.index_of("x")),
        (Some(0), Some(0), None)
    );
    let shop = topology.keyspace("shop").unwrap();
    assert_eq!(shop.index_of("s0"), Some(1), "in the order of the file");
}

#[test]
fn destinations_resolve_or_say_what_is_missing() {
    let topology = Topology::new(1, &four()).unwrap();
    let shop = topology.keyspace("shop").unwrap();
    assert_eq!(shop.resolve(&Destination::Shard("s0".into())), Ok(Some(1)));
    assert_eq!(shop.resolve(&Destination::None), Ok(None));
    let error = shop.resolve(&Destination::Shard("s9".into())).unwrap_err();
    assert_eq!(
        error.client_error().message,
        "SG2060: keyspace `shop` has no shard for shard `s9`; nothing was executed"
    );
    let commerce = topology.keyspace("commerce").unwrap();
    assert_eq!(
        commerce.resolve(&Destination::KeyspaceId(id(&[0x41]))),
        Ok(Some(1))
    );
}

#[test]
fn a_topology_with_a_gap_is_rejected_and_the_old_one_kept() {
    let view = TopologyView::new(&four()).unwrap();
    let mut gap = four();
    let commerce = gap.keyspaces.get_mut("commerce").unwrap();
    commerce.shards.retain(|s| s.name.as_str() != "80-c0");
    let error = view.reload(&gap).unwrap_err();
    assert!(error.to_string().contains("no shard holds `80-c0`"), "{error}");
    assert_eq!(view.load().version(), 1);
    assert_eq!(view.load().keyspace("commerce").unwrap().shards().len(), 4);
}

#[test]
fn a_reload_swaps_the_whole_and_says_what_changed() {
    let view = TopologyView::new(&four()).unwrap();
    let before = view.load();
    assert!(view.reload(&four()).unwrap().is_empty());
    let mut next = four();
    let shards = &mut next.keyspaces.get_mut("commerce").unwrap().shards;
    shards[0].tablets[0].role = Role::Replica;
    shards[0].tablets[1].role = Role::Primary;
    shards[1].tablets[1].address = TabletAddress::parse("elsewhere:1").unwrap();
    shards[2].tablets.pop();
    let changes = view.reload(&next).unwrap();
    let aliases =
        |list: &[(ShardId, Tablet)]| list.iter().map(|(_, t)| t.alias.to_string()).collect::<Vec<_>>();
    assert_eq!(aliases(&changes.roles), ["p0", "r0"]);
    assert_eq!(aliases(&changes.added), ["r1"]);
    assert_eq!(aliases(&changes.removed), ["r1", "r2"]);
    assert_eq!(view.load().version(), 3);
    let shard = view.load().shards().next().unwrap().clone();
    assert_eq!(shard.primary().unwrap().alias.as_str(), "r0");
    assert_eq!(before.version(), 1, "a snapshot in use does not change");
}

#[test]
fn reloads_at_once_each_get_a_version() {
    let view = Arc::new(TopologyView::new(&four()).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let view = Arc::clone(&view);
            std::thread::spawn(move || {
                (0..25).for_each(|_| assert!(view.reload(&four()).unwrap().is_empty()));
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(view.load().version(), 101);
}

#[test]
fn tablets_and_shards_are_found_by_identity() {
    let topology = Topology::new(1, &four()).unwrap();
    let (shard, tablet) = topology.tablet(&"r3".into()).unwrap();
    assert_eq!((shard.name().as_str(), tablet.role), ("c0-", Role::Replica));
    assert_eq!(
        topology.shard(&ShardId::new("shop", "s1")).unwrap().database(),
        "a"
    );
    assert!(topology.shard(&ShardId::new("shop", "s9")).is_none());
}

#[test]
fn it_prints_as_a_table() {
    let mut config = four();
    config.keyspaces.remove("commerce");
    let shown = Topology::new(1, &config).unwrap().to_string();
    let expected = "\
lookup: unsharded
shop: 2 named shards by modulo on `id`

KEYSPACE  SHARD  DATABASE  TABLET  ROLE     ADDRESS
lookup    0      lookup    l       primary  h:1
shop      s1     a         s1      primary  h:2
shop      s0     b         s0      primary  h:2
";
    assert_eq!(shown, expected);
}

proptest! {
    // Against the plain definition: the one range that contains the id.
    #[test]
    fn the_search_agrees_with_a_linear_scan(n in 1u32..300, bytes in proptest::collection::vec(any::<u8>(), 0..18)) {
        let names = even_ranges(n);
        let keyspace = Keyspace {
            name: "k".into(),
            division: Division::KeyRanges,
            vschema: None,
            shards: names.iter().map(|n| Shard {
                name: n.as_str().into(),
                range: KeyRange::parse(n).ok(),
                database: "k".into(),
                tablets: vec![],
            }).collect(),
        };
        let topology = KeyspaceTopology::new(&keyspace).unwrap();
        let id = id(&bytes);
        let scan: Vec<_> = topology.shards().iter().enumerate()
            .filter(|(_, s)| s.range().unwrap().contains(&id)).map(|(i, _)| i).collect();
        prop_assert_eq!(scan.len(), 1);
        prop_assert_eq!(topology.shard_for(&id), Some(scan[0]));
    }
}
