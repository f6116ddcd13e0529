//! What operators see and do: tables of the gateway's state, and breakers by hand.

use serde_json::{Value, json};
use shardgate_tests::fixture::KEYSPACE;
use shardgate_tests::gateway::run;
use shardgate_tests::{Fixture, Gateway, answer};

async fn filled() -> (Fixture, Gateway) {
    let fixture = Fixture::scenario().await;
    fixture.insert("t", &[(1, "1, 1, 'a'"), (2, "2, 2, 'b'")]).await;
    let gateway = fixture.gateway();
    (fixture, gateway)
}

/// Rows of a SHOW, each cell by its column.
async fn show(gateway: &Gateway, sql: &str) -> Vec<Value> {
    use mysql_async::prelude::Queryable;
    let mut conn = gateway.conn(KEYSPACE).await;
    let rows: Vec<mysql_async::Row> = conn.query(sql).await.unwrap();
    rows.iter()
        .map(|row| {
            let cell = |i: usize| row.get::<Option<String>, _>(i).unwrap();
            let columns = row.columns();
            let names = columns.iter().enumerate();
            Value::Object(
                names
                    .map(|(i, c)| (c.name_str().into_owned(), json!(cell(i))))
                    .collect(),
            )
        })
        .collect()
}

#[tokio::test]
async fn the_gateways_state_can_be_shown_in_sql_and_on_the_command_line() {
    let (_fixture, gateway) = filled().await;
    let mut conn = gateway.conn(KEYSPACE).await;
    for _ in 0..3 {
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1").await;
    }
    answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2").await;

    let shards = show(&gateway, "SHOW SHARDGATE SHARDS").await;
    assert_eq!(shards.len(), 2);
    assert_eq!(
        (&shards[0]["shard"], &shards[0]["state"], &shards[0]["breaker"]),
        (&json!("s0"), &json!("SERVING"), &json!("closed"))
    );
    assert_eq!(shards[0]["primary"], "shop-s0-a");
    assert_eq!(shards[0]["read_only"], "no");
    let tablets = show(&gateway, "SHOW SHARDGATE TABLETS LIKE '%s1%'").await;
    assert_eq!(tablets.len(), 1);
    assert_eq!(
        (&tablets[0]["tablet"], &tablets[0]["role"], &tablets[0]["lag_ms"]),
        (&json!("shop-s1-a"), &json!("primary"), &json!("0"))
    );
    let breakers = show(&gateway, "SHOW SHARDGATE BREAKERS").await;
    assert_eq!(breakers.len(), 2);
    assert_eq!(breakers[1]["name"], "shop/s1");
    let queries = show(&gateway, "SHOW SHARDGATE QUERIES").await;
    let points = queries
        .iter()
        .find(|q| q["statement"].as_str().unwrap().contains("WHERE"))
        .unwrap();
    assert_eq!(points["statements"], "4", "{queries:?}");
    // Bulk inserts are one kind, however many rows each brings and however they are written.
    for rows in ["(3, 1, 1, 'a')", "(5, 1, NULL, 'a'), (7, 2, 1, 'b')"] {
        answer::ok(&mut conn, &format!("INSERT INTO t VALUES {rows}")).await;
    }
    let queries = show(&gateway, "SHOW SHARDGATE QUERIES").await;
    let inserts: Vec<_> = queries
        .iter()
        .filter(|q| q["statement"].as_str().unwrap().starts_with("INSERT"))
        .collect();
    assert_eq!(inserts.len(), 1, "{queries:?}");
    assert_eq!(inserts[0]["statements"], "2", "{queries:?}");
    let refused = answer::refused(&mut conn, "SHOW SHARDGATE NONSENSE").await;
    assert_eq!(refused.errno, 1235);

    let admin = gateway.admin().to_string();
    let printed = run(&[
        "tablets",
        "--admin",
        &admin,
        "--keyspace",
        KEYSPACE,
        "--role",
        "primary",
    ])
    .await;
    assert_eq!(printed.code, 0, "{printed:?}");
    let lines: Vec<&str> = printed.stdout.lines().collect();
    assert!(
        lines[0].starts_with("TABLET") && lines[0].contains("LAG_MS"),
        "{printed:?}"
    );
    assert_eq!(lines.len(), 3, "{printed:?}");
    assert!(lines[1].starts_with("shop-s0-a") && lines[1].contains("SERVING"));
    let none = run(&["tablets", "--admin", &admin, "--role", "replica"]).await;
    assert_eq!((none.code, none.stdout.lines().count()), (0, 1), "{none:?}");
    let unknown = run(&["tablets", "--admin", &admin, "--keyspace", "nope"]).await;
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(
        unknown.stderr.contains("nope") && unknown.stderr.contains(KEYSPACE),
        "{unknown:?}"
    );
    let nobody = run(&["tablets", "--admin", "127.0.0.1:1"]).await;
    assert_eq!(nobody.code, 1);
    assert!(
        nobody.stderr.contains("127.0.0.1:1 does not answer"),
        "{nobody:?}"
    );
}

#[tokio::test]
async fn an_operator_opens_a_breaker_and_hands_it_back() {
    let (_fixture, gateway) = filled().await;
    let force = async |name: &str, mode: &str| {
        let body = json!({ "scope": "shard", "name": name, "mode": mode }).to_string();
        gateway.http_with("POST", "/debug/breakers", &body).await
    };
    let (status, body) = force("shop/s1", "open").await;
    assert_eq!(status, 200, "{body}");
    let now: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&now["mode"], &now["name"]),
        (&json!("forced open"), &json!("shop/s1"))
    );

    let mut conn = gateway.conn(KEYSPACE).await;
    let refused = answer::refused(&mut conn, "SELECT v FROM t WHERE id = 1").await;
    assert!(refused.message.contains("shop/s1"), "{refused}");
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 2")
            .await
            .single(),
        "2"
    );
    let (_, listed) = gateway.http("GET", "/debug/breakers").await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let of = |name: &str| {
        let all = listed["breakers"].as_array().unwrap();
        all.iter().find(|b| b["name"] == name).unwrap().clone()
    };
    assert_eq!(of("shop/s1")["mode"], "forced open");
    assert_eq!(
        (&of("shop/s0")["state"], &of("shop/s0")["reason"]),
        (&json!("closed"), &Value::Null)
    );
    assert!(!listed["queries"].as_array().unwrap().is_empty());
    let (_, metrics) = gateway.http("GET", "/metrics").await;
    assert!(
        metrics.contains("shard_breaker_state{shard=\"shop/s1\"} 1\n"),
        "{metrics}"
    );

    assert_eq!(force("shop/s1", "closed").await.0, 200);
    assert_eq!(
        answer::ok(&mut conn, "SELECT v FROM t WHERE id = 1")
            .await
            .single(),
        "1"
    );
    assert_eq!(force("shop/s1", "auto").await.0, 200);
    assert_eq!(force("shop/s9", "open").await.0, 404);
    assert!((400..500).contains(&force("shop/s1", "ajar").await.0));
}
