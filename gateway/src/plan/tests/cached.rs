//! Plans bound again to other statements of the same fingerprint, the cache, and their description.

use shardgate_sql::Fingerprint;

use super::*;

fn planned(sql: &Bytes) -> (Arc<Catalog>, Plan) {
    let catalog = Arc::new(catalog());
    let lexed = lex(sql, &LexOptions::default()).unwrap();
    let keyspace = KeyspaceName::from("shop");
    let input = PlanInput {
        statement: &lexed,
        catalog: &catalog,
        keyspace: Some(&keyspace),
        shard: None,
    };
    let plan = plan(&input).unwrap();
    (catalog, plan)
}

fn bind(plan: &Plan, sql: &'static str) -> Bound {
    let sql = Bytes::from_static(sql.as_bytes());
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    plan.bind(&BindInput {
        sql: &sql,
        statement: &lexed,
        params: &[],
        facts: &SessionFacts::default(),
        now: Duration::ZERO,
        charset: "utf8mb4",
        prefer: None,
    })
    .unwrap()
}

#[test]
fn a_plan_refers_to_literals_and_never_holds_them() {
    let (_, plan) = planned(&Bytes::from_static(b"SELECT * FROM t WHERE id = 5"));
    assert_eq!(
        bind(&plan, "SELECT * FROM t WHERE id = 6").legs[0]
            .shard
            .shard
            .as_str(),
        "s2"
    );
    let (_, plan) = planned(&Bytes::from_static(
        b"SELECT g FROM t ORDER BY k LIMIT 1 OFFSET 2",
    ));
    let bound = bind(&plan, "SELECT g FROM t ORDER BY k LIMIT 10 OFFSET 20");
    assert_eq!(
        &bound.legs[0].sql[..],
        b"SELECT g, k AS __sg_key_0 FROM t ORDER BY k LIMIT 30"
    );
    let (_, plan) = planned(&Bytes::from_static(
        b"INSERT INTO t (id, k) VALUES (1, 2), (3, 4)",
    ));
    let bound = bind(&plan, "INSERT INTO t (id, k) VALUES (4, 2), (6, 4)");
    assert_eq!(
        bound
            .legs
            .iter()
            .map(|l| l.shard.shard.as_str())
            .collect::<Vec<_>>(),
        ["s0", "s2"]
    );
}

/// `ORDER BY 1` and `ORDER BY 2` may share a fingerprint, but not a plan.
#[test]
fn a_plan_read_from_an_ordinal_fits_no_other() {
    let (_, plan) = planned(&Bytes::from_static(b"SELECT id, k FROM t ORDER BY 1"));
    let fits = |sql: &[u8]| plan.fits(&lex(sql, &LexOptions::default()).unwrap());
    assert!(fits(b"SELECT id, k FROM t ORDER BY 1"));
    assert!(!fits(b"SELECT id, k FROM t ORDER BY 2"));
}

fn fingerprint(n: usize) -> Fingerprint {
    let sql = format!("SELECT c{n} FROM t");
    Fingerprint::of(&lex(sql.as_bytes(), &LexOptions::default()).unwrap())
}

fn key(fingerprint: &Fingerprint) -> PlanKey<'_> {
    PlanKey {
        fingerprint,
        keyspace: None,
        shard: None,
        sql_mode: SqlMode::default(),
        version: 1,
    }
}

#[test]
fn the_cache_is_bounded_and_counts() {
    let sql = Bytes::from_static(b"SELECT id, k FROM t ORDER BY 1");
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    let plan = Arc::new(planned(&sql).1);
    let cache = PlanCache::new(64);
    for n in 0..=255 {
        let fingerprint = fingerprint(n);
        cache.insert(&key(&fingerprint), Arc::clone(&plan));
        assert!(cache.get(&key(&fingerprint), &lexed).is_some());
    }
    let stats = cache.stats();
    assert!(stats.entries <= 64, "{stats:?}");
    assert_eq!((stats.hits, stats.misses), (256, 0));
    assert!(stats.evictions >= 256 - 64);
    let other = lex(b"SELECT id, k FROM t ORDER BY 2", &LexOptions::default()).unwrap();
    assert!(
        cache.get(&key(&fingerprint(255)), &other).is_none(),
        "another ordinal is a miss"
    );
    let fingerprint = fingerprint(255);
    let elsewhere = PlanKey {
        version: 2,
        ..key(&fingerprint)
    };
    assert!(
        cache.get(&elsewhere, &lexed).is_none(),
        "another schema is a miss"
    );
    cache.clear();
    assert_eq!(cache.stats().entries, 0);
    PlanCache::new(0).insert(&key(&fingerprint), plan);
}

#[test]
fn a_plan_describes_itself() {
    let (_, plan) = planned(&Bytes::from_static(
        b"SELECT g FROM t ORDER BY k LIMIT 1 OFFSET 2",
    ));
    let description = plan.describe(&bind(&plan, "SELECT g FROM t ORDER BY k LIMIT 1 OFFSET 2"));
    assert_eq!(description.route, "scatter to all shards");
    assert_eq!(description.legs[3].shard, ShardId::new("shop", "s3"));
    assert_eq!(
        description.steps,
        ["merge by hidden 1 asc", "limit 1 offset 2", "strip 1 hidden"]
    );
    assert_eq!(description.partial, "not allowed: LIMIT with OFFSET");
    let (_, plan) = planned(&Bytes::from_static(b"SELECT g FROM t WHERE id IN (1, 2)"));
    let description = plan.describe(&bind(&plan, "SELECT g FROM t WHERE id IN (1, 2)"));
    assert_eq!(description.route, "scatter to 2 of 4 shards by sharding column");
    assert_eq!(description.partial, "allowed");
}

/// Sessions of two modes that send the same statement do not take each other's plan's place.
#[test]
fn plans_of_two_modes_are_kept_side_by_side() {
    let sql = Bytes::from_static(b"SELECT id, k FROM t");
    let lexed = lex(&sql, &LexOptions::default()).unwrap();
    let plan = Arc::new(planned(&sql).1);
    let cache = PlanCache::new(64);
    let fingerprint = fingerprint(1);
    let ansi = PlanKey {
        sql_mode: SqlMode::parse("ANSI").unwrap(),
        ..key(&fingerprint)
    };
    cache.insert(&key(&fingerprint), Arc::clone(&plan));
    assert!(cache.get(&ansi, &lexed).is_none());
    cache.insert(&ansi, plan);
    assert!(cache.get(&ansi, &lexed).is_some() && cache.get(&key(&fingerprint), &lexed).is_some());
}
