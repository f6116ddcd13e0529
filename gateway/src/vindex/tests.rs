//! Known values: every vector of the file, computed by Vitess itself.

use super::*;

const VECTORS: &str = include_str!("testdata/vindex-vectors.json");

fn vindex(kind: &str) -> Vindex {
    Vindex::new(kind, &BTreeMap::new(), None).unwrap()
}

fn input(kind: &str, vector: &serde_json::Value) -> Value {
    let text = vector["in"].as_str();
    match (vector["type"].as_str(), text) {
        (Some("null"), _) => Value::Null,
        (Some("text"), Some(text)) => Value::from(text),
        (Some("int64"), Some(text)) => Value::Int(text.parse().unwrap()),
        (Some("uint64"), Some(text)) => Value::UInt(text.parse().unwrap()),
        (None, Some(text)) => Value::integer(text),
        other => panic!("{kind}: {other:?}"),
    }
}

#[test]
fn every_known_value_of_vitess_is_met() {
    let file: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
    let mut seen = 0;
    for (kind, vectors) in file.as_object().unwrap() {
        let vindex = vindex(kind);
        for vector in vectors.as_array().unwrap() {
            let Destination::KeyspaceId(id) = vindex.map(&input(kind, vector)).unwrap() else {
                panic!("{kind} {vector}")
            };
            let hex: String = id
                .as_bytes()
                .iter()
                .fold(String::new(), |s, b| s + &format!("{b:02x}"));
            assert_eq!(hex, vector["out"].as_str().unwrap(), "{kind} {vector}");
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} vectors were read");
}

fn bigint() -> ColumnType {
    ColumnType::Int {
        width: IntWidth::Big,
        unsigned: false,
    }
}

fn varchar(collation: &str) -> ColumnType {
    ColumnType::Char {
        kind: StringKind::Variable,
        length: 50,
        collation: Collation::new(collation, None),
    }
}

fn scatters(routed: &Routed) -> bool {
    matches!(routed, Routed::Scatter(_))
}

#[test]
fn equal_numbers_in_other_clothes_route_alike() {
    let hash = vindex("hash");
    let five = hash.route(&bigint(), &Value::Int(5));
    assert!(matches!(five, Routed::To(Destination::KeyspaceId(_))));
    for same in [
        Value::from("5"),
        Value::Decimal("5.0".into()),
        Value::Decimal("+005.".into()),
        Value::Float(5.0),
    ] {
        assert_eq!(hash.route(&bigint(), &same), five, "{same:?}");
    }
    for other in ["5abc", "5.0", " 5", "05", "", "9007199254740993"] {
        assert!(scatters(&hash.route(&bigint(), &Value::from(other))), "{other:?}");
    }
    let nowhere = Routed::To(Destination::None);
    for none in [
        Value::Decimal("5.5".into()),
        Value::Float(5.5),
        Value::UInt(u64::MAX),
        Value::Null,
    ] {
        assert_eq!(hash.route(&bigint(), &none), nowhere, "{none:?}");
    }
}

#[test]
fn a_fraction_is_refused_where_the_server_would_round_it() {
    let hash = vindex("hash");
    assert_eq!(hash.place(&bigint(), &Value::from("5")), hash.map(&Value::Int(5)));
    assert!(matches!(
        hash.place(&bigint(), &Value::Decimal("5.5".into())),
        Err(VindexError::Inexact { .. })
    ));
    assert_eq!(
        hash.place(&bigint(), &Value::Null),
        Err(VindexError::Null("hash"))
    );
}

#[test]
fn text_under_a_hash_of_bytes_routes_only_where_equal_means_identical() {
    let xx = vindex("xxhash");
    let bob = Value::from("BOB");
    for scattered in [
        "utf8mb4_general_ci",
        "utf8mb4_0900_ai_ci",
        "utf8mb4_0900_as_cs",
        "utf8mb4_bin",
    ] {
        assert!(scatters(&xx.route(&varchar(scattered), &bob)), "{scattered}");
    }
    for routed in ["utf8mb4_nopad_bin", "utf8mb4_0900_bin"] {
        assert!(!scatters(&xx.route(&varchar(routed), &bob)), "{routed}");
    }
    let bin = Collation::new("utf8mb4_bin", None);
    let fixed = ColumnType::Char {
        kind: StringKind::Fixed,
        length: 10,
        collation: bin,
    };
    assert_eq!(
        xx.route(&fixed, &Value::from("BOB  ")),
        xx.route(&fixed, &bob),
        "a CHAR holds no trailing spaces"
    );
    assert!(
        scatters(&xx.route(&fixed, &Value::Int(5))),
        "5 equals '5', '05' and '5.0'"
    );
}

#[test]
fn loose_text_routes_where_trailing_spaces_are_all_that_differs() {
    let loose = vindex("unicode_loose_md5");
    let bin = varchar("utf8mb4_bin");
    assert_eq!(
        loose.route(&bin, &Value::from("bob ")),
        loose.route(&bin, &Value::from("bob"))
    );
    assert!(!scatters(&loose.route(&bin, &Value::from("bob"))));
    assert!(!scatters(
        &loose.route(&varchar("ascii_general_ci"), &Value::from("bob"))
    ));
    assert!(scatters(
        &loose.route(&varchar("utf8mb4_0900_ai_ci"), &Value::from("bob"))
    ));
    assert!(scatters(&loose.route(&bin, &Value::from("ก"))), "no known weight");
    assert!(loose.place(&bin, &Value::from("ก")).is_err());
}

#[test]
fn an_enum_routes_by_its_members_as_declared() {
    let values: Vec<Box<str>> = vec!["eu".into(), "us".into()];
    let column = ColumnType::Enum {
        values: values.into(),
        collation: Collation::new("utf8mb4_general_ci", None),
    };
    let xx = vindex("xxhash");
    assert_eq!(
        xx.route(&column, &Value::from("eu")),
        Routed::To(xx.map(&Value::from("eu")).unwrap())
    );
    assert!(scatters(&xx.route(&column, &Value::from("EU"))));
    assert!(scatters(&xx.route(&column, &Value::Int(1))));
}

#[test]
fn stored_values_are_those_of_the_column() {
    let ten = |kind| ColumnType::Binary { kind, length: 4 };
    let bytes = |b: &[u8]| Coerced::Exact(Value::Bytes(b.into()));
    assert_eq!(
        store(&Value::Bytes([1].into()), &ten(StringKind::Fixed)),
        bytes(&[1, 0, 0, 0])
    );
    assert_eq!(
        store(&Value::Bytes([1].into()), &ten(StringKind::Variable)),
        bytes(&[1])
    );
    assert!(matches!(
        store(&Value::Bytes([1; 5].into()), &ten(StringKind::Variable)),
        Coerced::Unknown(_)
    ));
    assert_eq!(
        store(&Value::Int(7), &varchar("utf8mb4_bin")),
        Coerced::Exact(Value::from("7"))
    );
    assert!(matches!(
        store(&Value::from("x".repeat(51).as_str()), &varchar("utf8mb4_bin")),
        Coerced::Unknown(_)
    ));
    let raw = Value::Bytes(b"ab"[..].into());
    assert_eq!(
        store(&raw, &varchar("utf8mb4_bin")),
        Coerced::Exact(Value::from("ab"))
    );
    assert!(matches!(store(&raw, &varchar("latin1_bin")), Coerced::Unknown(_)));
    let latin = varchar("latin1_bin");
    assert_eq!(store(&Value::from("é"), &latin), Coerced::Exact(Value::from("é")));
    assert!(matches!(store(&Value::from("€"), &latin), Coerced::Unknown(_)));
    let tiny = ColumnType::Int {
        width: IntWidth::Tiny,
        unsigned: true,
    };
    assert_eq!(store(&Value::Int(255), &tiny), Coerced::Exact(Value::UInt(255)));
    assert!(matches!(store(&Value::Int(256), &tiny), Coerced::Unknown(_)));
}

#[test]
fn dates_are_taken_in_their_canonical_form_only() {
    for good in ["2024-02-29", "2023-12-31"] {
        assert_eq!(
            compare(&Value::from(good), &ColumnType::Date),
            Coerced::Exact(Value::from(good))
        );
    }
    for bad in [
        "2023-02-29",
        "2024-1-1",
        "0000-00-00",
        "2024-13-01",
        "20240101",
        "2024-01-01 00:00:00",
    ] {
        assert!(
            matches!(compare(&Value::from(bad), &ColumnType::Date), Coerced::Unknown(_)),
            "{bad}"
        );
    }
    let datetime = ColumnType::DateTime { fsp: 0 };
    assert!(matches!(
        compare(&Value::from("2024-01-01 23:59:59"), &datetime),
        Coerced::Exact(_)
    ));
    for bad in [
        "2024-01-01",
        "2024-01-01 24:00:00",
        "2024-01-01T00:00:00",
        "2024-01-01 00:00:00.5",
    ] {
        assert!(
            matches!(compare(&Value::from(bad), &datetime), Coerced::Unknown(_)),
            "{bad}"
        );
    }
}

#[test]
fn columns_of_one_kind_join_inside_a_shard() {
    let (hash, xx) = (vindex("hash"), vindex("xxhash"));
    let unsigned = ColumnType::Int {
        width: IntWidth::Int,
        unsigned: true,
    };
    assert!(hash_alike((&hash, &bigint()), (&hash, &unsigned)));
    assert!(!hash_alike((&hash, &bigint()), (&xx, &bigint())));
    assert!(!hash_alike((&xx, &bigint()), (&xx, &varchar("utf8mb4_0900_bin"))));
    assert!(hash_alike(
        (&xx, &varchar("utf8mb4_0900_bin")),
        (&xx, &varchar("utf8mb4_0900_bin"))
    ));
    assert!(!hash_alike(
        (&xx, &varchar("utf8mb4_bin")),
        (&xx, &varchar("utf8mb4_bin"))
    ));
}

#[test]
fn a_vschema_asks_for_types_and_parameters_that_exist() {
    let none = BTreeMap::new();
    assert_eq!(
        Vindex::new("hsah", &none, None),
        Err(VindexError::UnknownType("hsah".into()))
    );
    assert_eq!(
        Vindex::new("lookup", &none, None),
        Err(VindexError::UnsupportedType("lookup".into()))
    );
    assert_eq!(
        Vindex::new("modulo", &none, None),
        Err(VindexError::WrongCut {
            kind: "modulo",
            cut: "key ranges"
        })
    );
    let params = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
    assert_eq!(
        Vindex::new("hash", &params, None),
        Err(VindexError::UnknownParam {
            kind: "hash",
            param: "x".into()
        })
    );
}

mod named {
    use super::*;
    use std::collections::HashMap;

    fn names(n: usize) -> Vec<ShardName> {
        (0..n).map(|i| ShardName::from(format!("shop_{i:02}"))).collect()
    }

    #[test]
    fn a_remainder_names_the_shard() {
        let vindex = Vindex::named(NamedCut::Modulo(ModuloCut::new(names(16)).unwrap()));
        assert_eq!(
            vindex.map(&Value::Int(35)),
            Ok(Destination::Shard("shop_03".into()))
        );
        assert_eq!(
            vindex.map(&Value::UInt(u64::MAX)),
            Ok(Destination::Shard("shop_15".into()))
        );
        assert!(vindex.map(&Value::Int(-1)).is_err());
        assert!(
            scatters(&vindex.route(&bigint(), &Value::Int(-1))),
            "somebody else may have stored it"
        );
        assert_eq!(ModuloCut::new(vec![]), None);
    }

    #[test]
    fn ranges_are_half_open_and_must_tile() {
        let range = |from, to, shard: &str| IntRange {
            from,
            to,
            shard: shard.into(),
        };
        let cut = RangeCut::new(vec![range(Some(100), None, "b"), range(Some(1), Some(100), "a")]).unwrap();
        let vindex = Vindex::named(NamedCut::Range(cut));
        assert_eq!(vindex.map(&Value::Int(99)), Ok(Destination::Shard("a".into())));
        assert_eq!(vindex.map(&Value::Int(100)), Ok(Destination::Shard("b".into())));
        assert_eq!(vindex.map(&Value::Int(0)), Err(VindexError::NoShard("range")));
        let bad = |ranges| RangeCut::new(ranges).unwrap_err();
        assert!(matches!(
            bad(vec![range(None, Some(5), "a"), range(Some(6), None, "b")]),
            RangeCutError::Gap { from: 5, to: 6, .. }
        ));
        assert!(matches!(
            bad(vec![range(None, Some(7), "a"), range(Some(6), None, "b")]),
            RangeCutError::Overlap(..)
        ));
        assert!(matches!(
            bad(vec![range(None, None, "a"), range(None, None, "b")]),
            RangeCutError::Overlap(..)
        ));
        assert!(matches!(
            bad(vec![range(Some(5), Some(5), "a")]),
            RangeCutError::Empty(_)
        ));
        assert_eq!(bad(vec![]), RangeCutError::None);
    }

    #[test]
    fn a_list_may_have_a_default() {
        let map = HashMap::from([
            (ListKey::Int(1), "a".into()),
            (ListKey::Text(b"eu"[..].into()), "b".into()),
        ]);
        let strict = Vindex::named(NamedCut::List(ListCut::new(map.clone(), None)));
        assert_eq!(strict.map(&Value::UInt(1)), Ok(Destination::Shard("a".into())));
        assert_eq!(strict.map(&Value::from("eu")), Ok(Destination::Shard("b".into())));
        assert_eq!(strict.map(&Value::from("EU")), Err(VindexError::NoShard("list")));
        let open = Vindex::named(NamedCut::List(ListCut::new(map, Some("c".into()))));
        assert_eq!(open.map(&Value::from("EU")), Ok(Destination::Shard("c".into())));
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            any::<f64>().prop_map(Value::Float),
            "[-+]?[0-9]{0,45}\\.?[0-9]{0,5}".prop_map(|s| Value::Decimal(s.into())),
            ".{0,12}".prop_map(|s| Value::from(s.as_str())),
            proptest::collection::vec(any::<u8>(), 0..12).prop_map(|b| Value::Text(b.into())),
            proptest::collection::vec(any::<u8>(), 0..12).prop_map(|b| Value::Bytes(b.into())),
        ]
    }

    fn column() -> impl Strategy<Value = ColumnType> {
        let width = prop_oneof![Just(IntWidth::Tiny), Just(IntWidth::Medium), Just(IntWidth::Big)];
        let kind = || {
            prop_oneof![
                Just(StringKind::Fixed),
                Just(StringKind::Variable),
                Just(StringKind::Large)
            ]
        };
        prop_oneof![
            (width, any::<bool>()).prop_map(|(width, unsigned)| ColumnType::Int { width, unsigned }),
            (0u8..66, 0u8..3).prop_map(|(precision, scale)| ColumnType::Decimal {
                precision,
                scale,
                unsigned: false
            }),
            (kind(), any::<u64>()).prop_map(|(kind, length)| ColumnType::Binary { kind, length }),
            (
                kind(),
                any::<u64>(),
                "(utf8mb4|latin1|ascii)_(bin|general_ci|nopad_bin)"
            )
                .prop_map(|(kind, length, name)| ColumnType::Char {
                    kind,
                    length,
                    collation: Collation::new(&name, None)
                }),
            Just(ColumnType::Date),
            Just(ColumnType::DateTime { fsp: 0 }),
            Just(ColumnType::Year),
        ]
    }

    proptest! {
        #[test]
        fn no_value_and_no_column_make_it_panic(v in value(), c in column(), kind in 0usize..9) {
            let kinds = ["hash", "xxhash", "unicode_loose_md5", "binary_md5", "binary", "numeric", "reverse_bits",
                "null", "unicode_loose_xxhash"];
            let vindex = vindex(kinds[kind]);
            let _ = vindex.route(&c, &v);
            let _ = vindex.place(&c, &v);
        }

        // A row placed by its literal is found by the same literal: placing and routing never disagree.
        #[test]
        fn what_routes_routes_to_where_it_was_placed(v in value(), c in column()) {
            for kind in ["hash", "xxhash", "binary", "unicode_loose_xxhash"] {
                let vindex = vindex(kind);
                if let (Ok(placed), Routed::To(routed)) = (vindex.place(&c, &v), vindex.route(&c, &v)) {
                    prop_assert!(routed == placed || v.is_null(), "{kind} {placed:?} {routed:?}");
                }
            }
        }
    }
}
