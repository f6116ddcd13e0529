//! Statements in, shards and texts out, without any server.
//!
//! The keyspace `shop` has four shards `s0` to `s3` by `id % 4`, so that a reader sees where a row belongs; `mall` is
//! the same with databases of other names; `ranges` is cut by `hash`; `lookup` is unsharded.

mod cached;
mod names;
mod property;
mod routing;
mod scatter;
mod splices;
mod writes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shardgate_sql::{LexOptions, SqlMode, lex};

use super::*;
use crate::base::{GatewayError, KeyRange, KeyspaceName, ShardId, ShardName};
use crate::route::LegParams;
use crate::schema::{ColumnInfo, DatabaseSchema, KeyspaceSchema, TableInfo, VSchema};
use crate::vindex::{Collation, ColumnType, IntWidth, ModuloCut, NamedCut, StringKind, Value};

const TABLES: &str = r#"{
  "sharded": true,
  "vindexes": {"by": {"type": "KIND"}},
  "tables": {
    "t": {"column_vindexes": [{"column": "id", "name": "by"}]},
    "customers": {"column_vindexes": [{"column": "id", "name": "by"}]},
    "orders": {"column_vindexes": [{"column": "customer_id", "name": "by"}]},
    "parts": {"column_vindexes": [{"column": "customer_id", "name": "by"}]},
    "numbered": {"column_vindexes": [{"column": "id", "name": "by"}]},
    "countries": {"type": "reference"}
  }
}"#;

fn int() -> ColumnType {
    ColumnType::Int {
        width: IntWidth::Big,
        unsigned: false,
    }
}

fn text() -> ColumnType {
    let collation = Collation::new("utf8mb4_general_ci", None);
    ColumnType::Char {
        kind: StringKind::Variable,
        length: 20,
        collation,
    }
}

fn learned() -> DatabaseSchema {
    let column = |name: &str, ty: ColumnType| ColumnInfo {
        name: name.into(),
        ty,
        nullable: true,
        has_default: false,
        auto_increment: false,
        primary_key: false,
        generated: false,
        invisible: false,
    };
    let mut number = column("n", int());
    number.auto_increment = true;
    let tables = [
        (
            "t",
            vec![
                column("id", int()),
                column("k", int()),
                column("v", int()),
                column("g", text()),
            ],
        ),
        ("customers", vec![column("id", int()), column("name", text())]),
        (
            "orders",
            vec![
                column("order_id", int()),
                column("customer_id", int()),
                column("total", int()),
            ],
        ),
        (
            "parts",
            vec![
                column("order_id", int()),
                column("customer_id", int()),
                column("sku", text()),
            ],
        ),
        ("numbered", vec![column("id", int()), number]),
        ("countries", vec![column("code", text())]),
    ];
    let tables =
        tables.map(|(name, columns)| (name.to_owned(), Arc::new(TableInfo::new(name, columns, false))));
    DatabaseSchema {
        tables: tables.into_iter().collect::<BTreeMap<_, _>>(),
    }
}

fn keyspace(name: &str, vschema: Option<&VSchema>, shards: Vec<Shard>) -> Keyspace {
    let learned = if vschema.is_some() {
        learned()
    } else {
        DatabaseSchema::default()
    };
    Keyspace {
        name: name.into(),
        schema: KeyspaceSchema::new(name.into(), vschema, None, &learned).into(),
        shards,
    }
}

fn shard(keyspace: &str, name: &str, range: Option<&str>, database: &str) -> Shard {
    let range = range.map(|r| KeyRange::parse(r).unwrap());
    Shard::new(ShardId::new(keyspace, name), range, database)
}

fn named_keyspace(name: &str, database: impl Fn(usize) -> String) -> Keyspace {
    let names: Vec<ShardName> = (0..4).map(|i| ShardName::from(format!("s{i}"))).collect();
    let cut = NamedCut::Modulo(ModuloCut::new(names.clone()).unwrap());
    let vschema = VSchema::parse(&TABLES.replace("KIND", "modulo"), Some(&cut)).unwrap();
    let shards = names
        .iter()
        .enumerate()
        .map(|(i, n)| shard(name, n.as_str(), None, &database(i)));
    keyspace(name, Some(&vschema), shards.collect())
}

fn range_keyspace() -> Keyspace {
    let vschema = VSchema::parse(&TABLES.replace("KIND", "hash"), None).unwrap();
    let shards = ["-40", "40-80", "80-c0", "c0-"].map(|r| shard("ranges", r, Some(r), "ranges"));
    keyspace("ranges", Some(&vschema), shards.into())
}

fn unsharded(name: &str, database: &str) -> Keyspace {
    keyspace(name, None, vec![shard(name, "-", None, database)])
}

pub(super) fn catalog() -> Catalog {
    Catalog::new(
        1,
        [
            named_keyspace("shop", |_| "shop".into()),
            named_keyspace("mall", |i| format!("mall_{i:02}")),
            range_keyspace(),
            unsharded("lookup", "lookup"),
            unsharded("legacy", "old_db"),
        ],
    )
}

/// A session and what it sends.
#[derive(Clone)]
struct Session {
    catalog: Arc<Catalog>,
    keyspace: Option<KeyspaceName>,
    shard: Option<ShardName>,
    mode: SqlMode,
    params: Vec<Option<Value>>,
    facts: SessionFacts,
}

fn session(keyspace: &str) -> Session {
    let facts = SessionFacts {
        last_insert_id: 7,
        found_rows: 3,
        row_count: -1,
        connection_id: 12,
        database: Some(keyspace.to_owned()),
        version: "10.11.6-MariaDB".into(),
        user: "root@10.0.0.1".into(),
        current_user: "root@%".into(),
        autocommit: true,
        warning_count: 0,
        error_count: 0,
        ..SessionFacts::default()
    };
    Session {
        catalog: Arc::new(catalog()),
        keyspace: Some(keyspace.into()),
        shard: None,
        mode: SqlMode::default(),
        params: Vec::new(),
        facts,
    }
}

impl Session {
    fn target(mut self, shard: &str) -> Self {
        self.shard = Some(shard.into());
        self
    }

    fn params(mut self, params: impl IntoIterator<Item = Value>) -> Self {
        self.params = params.into_iter().map(Some).collect();
        self
    }

    fn mode(mut self, mode: &str) -> Self {
        self.mode = SqlMode::parse(mode).unwrap();
        self
    }

    fn bind(&self, sql: &str) -> Result<Bound, PlanError> {
        self.bind_bytes(sql.as_bytes())
    }

    fn bind_bytes(&self, sql: &[u8]) -> Result<Bound, PlanError> {
        let options = LexOptions {
            mode: self.mode,
            ..LexOptions::default()
        };
        let sql = Bytes::copy_from_slice(sql);
        let lexed = lex(&sql, &options).unwrap();
        let plan = plan(&PlanInput {
            statement: &lexed,
            catalog: &self.catalog,
            keyspace: self.keyspace.as_ref(),
            shard: self.shard.as_ref(),
        })?;
        assert!(plan.fits(&lexed));
        plan.bind(&BindInput {
            sql: &sql,
            statement: &lexed,
            params: &self.params,
            facts: &self.facts,
            now: Duration::from_micros(1_732_924_800_123_456),
            charset: "utf8mb4",
            prefer: None,
        })
    }

    /// The shards of a statement: `s0 s2`, `any`, or the error's code and number.
    fn shards(&self, sql: &str) -> String {
        match self.bind(sql) {
            Ok(bound) if bound.to == BoundTo::Any => "any".into(),
            Ok(bound) => bound
                .legs
                .iter()
                .map(|l| l.shard.shard.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            Err(e) => format!("{} {}", e.code().unwrap_or_default(), e.errno().0),
        }
    }

    /// Shards and texts: `s0: SELECT ...`, one line each.
    fn legs(&self, sql: &str) -> Vec<String> {
        let bound = self.bind(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let text = |l: &crate::route::Leg| format!("{}: {}", l.shard.shard, String::from_utf8_lossy(&l.sql));
        bound.legs.iter().map(text).collect()
    }

    fn error(&self, sql: &str) -> PlanError {
        match self.bind(sql) {
            Ok(bound) => panic!("{sql} was planned: {bound:?}"),
            Err(e) => e,
        }
    }
}

/// Every line is a statement, `=>`, and its shards.
fn check(session: &Session, table: &[(&str, &str)]) {
    for (sql, shards) in table {
        assert_eq!(session.shards(sql), *shards, "{sql}");
    }
}

const ALL: &str = "s0 s1 s2 s3";
const UNSUPPORTED: &str = "SG2001 1235";
const APART: &str = "SG2015 1235";
