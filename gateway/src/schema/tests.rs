use std::collections::BTreeSet;

use super::*;
use crate::vindex::{ModuloCut, NamedCut};

/// A row as `information_schema` gives it, in the order of [`columns_sql`].
fn row(cells: [Option<&str>; 15]) -> ColumnRow {
    ColumnRow::from_cells(cells.map(|c| c.map(str::as_bytes))).unwrap()
}

fn typed(data_type: &str, column_type: &str, charset: Option<&str>, collation: Option<&str>) -> ColumnRow {
    ColumnRow {
        table: "t".into(),
        column: "c".into(),
        data_type: data_type.into(),
        column_type: column_type.into(),
        charset: charset.map(Into::into),
        collation: collation.map(Into::into),
        ..ColumnRow::default()
    }
}

fn customers() -> Vec<ColumnRow> {
    let int = |name, key, extra| {
        row([
            Some("customers"),
            Some(name),
            None,
            Some("NO"),
            Some("bigint"),
            None,
            None,
            Some("20"),
            Some("0"),
            None,
            None,
            None,
            Some("bigint(20) unsigned"),
            Some(key),
            Some(extra),
        ])
    };
    let email = row([
        Some("customers"),
        Some("Email"),
        Some("NULL"),
        Some("YES"),
        Some("varchar"),
        Some("50"),
        Some("200"),
        None,
        None,
        None,
        Some("utf8mb4"),
        Some("utf8mb4_general_ci"),
        Some("varchar(50)"),
        Some(""),
        Some(""),
    ]);
    vec![
        int("id", "PRI", "auto_increment"),
        email,
        int("shop_id", "MUL", ""),
    ]
}

fn database(rows: Vec<ColumnRow>) -> DatabaseSchema {
    learn(rows, &BTreeSet::new(), &BTreeSet::new())
}

#[test]
fn rows_become_tables() {
    let learned = database(customers());
    let table = &learned.tables["customers"];
    assert_eq!(table.columns().len(), 3);
    let id = table.column("ID").unwrap();
    assert!(id.primary_key && id.auto_increment && !id.nullable && !id.has_default && !id.generated);
    assert_eq!(
        id.ty,
        ColumnType::Int {
            width: IntWidth::Big,
            unsigned: true
        }
    );
    let email = table.column("email").unwrap();
    assert!(email.nullable && !email.has_default);
    assert_eq!(email.ty.to_string(), "varchar(50) collate utf8mb4_general_ci");
}

#[test]
fn every_type_of_both_server_families_is_read() {
    let cases = [
        (typed("tinyint", "tinyint(1)", None, None), "tinyint"),
        (typed("int", "int unsigned", None, None), "int unsigned"),
        (
            typed("mediumint", "mediumint(8) unsigned zerofill", None, None),
            "mediumint unsigned",
        ),
        (typed("decimal", "decimal(10,2)", None, None), "decimal(10,2)"),
        (typed("bit", "bit(3)", None, None), "bit(3)"),
        (typed("datetime", "datetime(6)", None, None), "datetime(6)"),
        (typed("timestamp", "timestamp", None, None), "timestamp(0)"),
        (typed("varbinary", "varbinary(16)", None, None), "varbinary(16)"),
        (
            typed("char", "char(3)", Some("ascii"), Some("ascii_bin")),
            "char(3) collate ascii_bin",
        ),
        (typed("json", "json", None, None), "json"),
        (typed("uuid", "uuid", None, None), "uuid"),
        (typed("varchar", "varchar(3)", None, None), "varchar(3)"),
    ];
    for (row, expected) in cases {
        assert_eq!(parse_type(&row).to_string(), expected);
    }
    assert!(matches!(
        parse_type(&typed("varchar", "varchar(3)", None, None)),
        ColumnType::Other(_)
    ));
}

#[test]
fn members_of_an_enum_may_hold_quotes_and_commas() {
    let members = |text| parse_members(text).map(|m| m.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(
        members("enum('a','b''c','d,e)')"),
        Some(vec!["a".into(), "b'c".into(), "d,e)".into()])
    );
    assert_eq!(members("set('')"), Some(vec![String::new()]));
    for malformed in ["enum", "enum()", "enum('a'", "enum('a'x)", "enum('a',)", "enum("] {
        assert_eq!(members(malformed), None, "{malformed}");
    }
}

#[test]
fn a_row_without_a_name_is_an_error_not_a_table() {
    let error = ColumnRow::from_cells([Some(b"t".as_slice())]).unwrap_err();
    assert!(error.to_string().contains("COLUMN_NAME"), "{error}");
}

#[test]
fn an_expression_default_is_no_generated_column() {
    let mut row = typed("int", "int", None, None);
    row.extra = "default_generated".into();
    let learned = database(vec![row.clone()]);
    let column = &learned.tables["t"].columns()[0];
    assert!(column.has_default && !column.generated);
    row.extra = "stored generated".into();
    assert!(database(vec![row]).tables["t"].columns()[0].generated);
}

#[test]
fn differences_name_table_and_column() {
    let left = database(customers());
    let mut rows = customers();
    rows[1].collation = Some("utf8mb4_bin".into());
    rows.pop();
    rows.push(ColumnRow {
        table: "extra".into(),
        ..typed("int", "int", None, None)
    });
    let right = database(rows);
    let text: Vec<_> = differences(&left, &right)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(text.len(), 3, "{text:?}");
    assert!(
        text[0].contains("`customers`.`Email`") && text[0].contains("utf8mb4_bin"),
        "{text:?}"
    );
    assert!(
        text[1].contains("`customers`.`shop_id`") && text[1].ends_with("against absent"),
        "{text:?}"
    );
    assert_eq!(text[2], "table `extra` exists only on the second");
    assert_eq!(differences(&left, &left), []);
    let mut swapped = customers();
    swapped.swap(0, 2);
    assert_eq!(
        differences(&left, &database(swapped)),
        [Difference::Order("customers".into())]
    );
}

const VSCHEMA: &str = r#"{"sharded": true, "vindexes": {"hash": {"type": "hash"}, "xx": {"type": "xxhash"}},
    "tables": {"customers": {"column_vindexes": [{"column": "ID", "name": "hash"}, {"column": "email", "name": "xx"}]}}}"#;

#[test]
fn vschema_and_learned_columns_meet_in_the_snapshot() {
    let vschema = VSchema::parse(VSCHEMA, None).unwrap();
    let mut rows = customers();
    rows.push(ColumnRow {
        table: "stray".into(),
        ..typed("int", "int", None, None)
    });
    let keyspace = KeyspaceSchema::new("commerce".into(), Some(&vschema), None, &database(rows));
    let snapshot = SchemaSnapshot::new(1, [keyspace.clone()]);
    let table = snapshot.keyspace("commerce").unwrap().table("customers").unwrap();
    let id = table.primary_vindex().unwrap();
    assert_eq!(
        id.ty,
        Some(ColumnType::Int {
            width: IntWidth::Big,
            unsigned: true
        })
    );
    assert_eq!(table.vindex_on("EMAIL").unwrap().vindex.kind(), "xxhash");
    assert_eq!(
        snapshot
            .keyspace("commerce")
            .unwrap()
            .table("stray")
            .unwrap()
            .routing,
        Routing::Unknown
    );
    assert_eq!(snapshot.with_keyspace(keyspace).version(), 2);
}

#[test]
fn a_name_without_a_keyspace_must_be_the_only_one() {
    let learned = database(customers());
    let keyspace = |name: &str| KeyspaceSchema::new(name.into(), None, None, &learned);
    let one = SchemaSnapshot::new(1, [keyspace("a")]);
    assert!(
        matches!(one.find("customers"), Found::One(k, t) if k.as_str() == "a" && t.routing == Routing::Unsharded)
    );
    assert_eq!(one.find("nothing"), Found::Nowhere);
    let two = SchemaSnapshot::new(1, [keyspace("b"), keyspace("a")]);
    assert_eq!(
        two.find("customers"),
        Found::Ambiguous(vec!["a".into(), "b".into()])
    );
}

#[test]
fn named_shards_divide_every_table_that_has_the_column() {
    let cut = NamedCut::Modulo(ModuloCut::new(vec!["s0".into(), "s1".into()]).unwrap());
    let mut rows = customers();
    rows.push(ColumnRow {
        table: "stray".into(),
        ..typed("int", "int", None, None)
    });
    rows.push(ColumnRow {
        table: "v".into(),
        column: "shop_id".into(),
        ..typed("int", "int", None, None)
    });
    let learned = learn(rows, &BTreeSet::from(["v".to_owned()]), &BTreeSet::new());
    let keyspace = KeyspaceSchema::new("shop".into(), None, Some(("shop_id", &cut)), &learned);
    let table = keyspace.table("customers").unwrap();
    assert_eq!(table.primary_vindex().unwrap().column, "shop_id");
    assert_eq!(keyspace.table("stray").unwrap().routing, Routing::Unknown);
    assert_eq!(
        keyspace.table("v").unwrap().routing,
        Routing::Unknown,
        "a view may combine rows of several shards"
    );
}

#[test]
fn the_statements_hold_any_database_name_in_any_sql_mode() {
    assert!(columns_sql("a'\"\\").contains("CONVERT(0x6127225c USING utf8mb4)"));
    assert!(tables_sql("shop_00").ends_with("= 'shop_00'"));
}

#[test]
fn what_would_surprise_an_operator_is_found() {
    let json = r#"{"sharded": true, "vindexes": {"hash": {"type": "hash"}, "xx": {"type": "xxhash"}}, "tables": {
        "customers": {"column_vindexes": [{"column": "id", "name": "hash"}, {"column": "email", "name": "xx"},
                                          {"column": "gone", "name": "hash"}]},
        "nowhere": {"column_vindexes": [{"column": "id", "name": "hash"}]}}}"#;
    let vschema = VSchema::parse(json, None).unwrap();
    let mut rows = customers();
    rows.push(ColumnRow {
        table: "stray".into(),
        ..typed("int", "int", None, None)
    });
    let keyspace = KeyspaceSchema::new("k".into(), Some(&vschema), None, &database(rows));
    let found: Vec<_> = keyspace.findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(
        found[0].starts_with(
            "`customers`.`email` under xxhash: every query goes to all shards, for the column's"
        )
    );
    assert!(found[1].starts_with("table `customers` has no column `gone`"));
    assert!(found[2].starts_with("table `nowhere` is in the vschema"));
    assert!(found[3].starts_with("table `stray` is on the tablets"));
}
