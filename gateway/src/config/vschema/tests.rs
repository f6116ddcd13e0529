use super::*;

fn problems(json: &str) -> Vec<String> {
    VSchema::parse(json, None)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

const COMMERCE: &str = r#"{
  "sharded": true,
  "vindexes": { "hash": { "type": "hash" }, "xx": { "type": "xxhash", "params": {} } },
  "tables": {
    "customers": { "column_vindexes": [ { "column": "id", "name": "hash" }, { "columns": ["email"], "name": "xx" } ] },
    "countries": { "type": "reference", "source": "lookup.countries" },
    "settings": { "pinned": "80", "columns": [ { "name": "k", "type": "VARCHAR" } ], "column_list_authoritative": true }
  }
}"#;

#[test]
fn a_vschema_of_vitess_is_read_as_it_is() {
    let schema = VSchema::parse(COMMERCE, None).unwrap();
    assert!(schema.sharded && !schema.require_explicit_routing);
    let Placement::Sharded(vindexes) = &schema.tables["customers"].placement else {
        panic!()
    };
    assert_eq!(
        (vindexes[0].column.as_str(), vindexes[0].vindex.kind()),
        ("id", "hash")
    );
    assert_eq!(
        (vindexes[1].column.as_str(), vindexes[1].name.as_str()),
        ("email", "xx")
    );
    let source = Some("lookup.countries".to_owned());
    assert_eq!(
        schema.tables["countries"].placement,
        Placement::Reference { source }
    );
    assert_eq!(
        schema.tables["settings"].placement,
        Placement::Pinned(KeyspaceId::from_slice(&[0x80]))
    );
    assert_eq!(schema.tables["settings"].columns, ["k"]);
    assert!(schema.tables["settings"].column_list_authoritative);
}

#[test]
fn both_spellings_of_protobuf_are_read() {
    let json = r#"{"sharded": true, "vindexes": {"h": {"type": "hash"}}, "requireExplicitRouting": true,
        "tables": {"t": {"columnVindexes": [{"column": "id", "name": "h"}]}}}"#;
    assert!(VSchema::parse(json, None).unwrap().require_explicit_routing);
}

#[test]
fn an_unknown_field_is_named_with_its_table_and_line() {
    let json =
        "{\n \"sharded\": true,\n \"tables\": {\n  \"orders\": {\n   \"colum_vindexes\": []\n  }\n }\n}";
    let text = problems(json).join("\n");
    assert!(
        text.starts_with("line 5, tables.orders.colum_vindexes: unknown field `colum_vindexes`"),
        "{text}"
    );
}

#[test]
fn all_problems_are_reported_together_each_with_its_field() {
    let json = r#"{
      "sharded": true, "foreign_key_mode": "managed",
      "vindexes": { "a": { "type": "hsah" }, "b": { "type": "lookup_unique", "owner": "t" },
        "c": { "type": "hash", "params": { "x": "1" } }, "h": { "type": "hash" } },
      "tables": {
        "t1": {},
        "t2": { "column_vindexes": [ { "column": "id", "name": "nope" } ] },
        "t3": { "column_vindexes": [ { "columns": ["x", "y"], "name": "h" } ] },
        "t4": { "type": "sequence" },
        "t5": { "type": "refernce" },
        "t6": { "pinned": "8", "column_vindexes": [ { "column": "id", "name": "a" } ] },
        "t7": { "column_vindexes": [ { "column": "id", "name": "h" } ],
                "auto_increment": { "column": "id", "sequence": "seq" } }
      }
    }"#;
    let found = problems(json);
    let expected = [
        "line 2, foreign_key_mode: managed foreign keys",
        "line 3, vindexes.a: unknown vindex type `hsah`",
        "line 3, vindexes.b.owner: owned (lookup) vindexes",
        "line 4, vindexes.c: vindex type `hash` takes no parameter `x`",
        "line 6, tables.t1: a table of a sharded keyspace needs",
        "line 7, tables.t2.column_vindexes[0].name: vindex `nope`",
        "line 8, tables.t3.column_vindexes[0]: a vindex over several columns",
        "line 9, tables.t4.type: sequences",
        "line 10, tables.t5.type: unknown table type `refernce`",
        "line 11, tables.t6.pinned: a pinned table",
        "line 11, tables.t6.pinned: must be a keyspace id",
        "line 13, tables.t7.auto_increment: sequences",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} / {expected}");
    }
}

#[test]
fn a_name_given_twice_is_not_silently_the_last() {
    let text = problems(r#"{"tables": {"t": {}, "t": {}}}"#).join("\n");
    assert!(text.contains("`t` is given twice"), "{text}");
}

#[test]
fn vindexes_on_an_unsharded_keyspace_are_a_contradiction() {
    let json = r#"{"vindexes": {"h": {"type": "hash"}}, "tables": {"t": {"column_vindexes": [{"column": "id", "name": "h"}]}}}"#;
    assert!(problems(json).join("").contains("`sharded` is not true"));
    assert!(VSchema::parse(r#"{"tables": {"t": {}}}"#, None).is_ok());
}
