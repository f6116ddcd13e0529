//! Health as JSON: every tablet's last observation, and which shards serve.

use serde_json::{Map, Value, json};

use crate::admin::Readiness;
use crate::base::Role;
use crate::base::clock::Instant;
use crate::topology::health::Standing;
use crate::topology::{Channel, Facts, Health, Heartbeat, Lag, Replication, TabletHealth, Topology};

/// Every tablet's last observation and its age.
pub(super) fn tablets_json(health: &Health, topology: &Topology, now: Instant) -> Value {
    let shards: Map<String, Value> = topology
        .shards()
        .map(|shard| {
            let tablets: Map<String, Value> = health
                .of_shard(shard.id())
                .iter()
                .map(|t| {
                    let lag = health.lag(&t.info(), now);
                    (t.info().alias.to_string(), tablet_json(t, lag, now))
                })
                .collect();
            (shard.id().to_string(), Value::Object(tablets))
        })
        .collect();
    json!({ "shards": shards })
}

fn tablet_json(tablet: &TabletHealth, lag: Lag, now: Instant) -> Value {
    let info = tablet.info();
    let mut out = Map::new();
    out.insert("role".into(), json!(info.role.as_str()));
    out.insert("address".into(), json!(info.address.to_string()));
    let (known, unknown) = match lag {
        Lag::Known(lag) => (json!(lag.as_secs_f64()), Value::Null),
        Lag::Unknown(reason) => (Value::Null, json!(reason.label())),
    };
    out.insert("lag_seconds".into(), known);
    out.insert("lag_unknown".into(), unknown);
    let Some(standing) = tablet.standing() else {
        out.insert("serving".into(), json!(false));
        out.insert("why".into(), json!("never measured yet"));
        return Value::Object(out);
    };
    out.insert("serving".into(), json!(standing.serving));
    out.insert("since_seconds".into(), seconds(standing.since, now));
    out.insert("why".into(), json!(standing.why_not()));
    out.insert("age_seconds".into(), seconds(standing.last.at, now));
    out.insert("took_seconds".into(), json!(standing.last.took.as_secs_f64()));
    out.insert("failures_in_a_row".into(), json!(standing.failures));
    let error = standing.last.outcome.as_ref().err();
    out.insert(
        "error".into(),
        error.map_or(
            Value::Null,
            |e| json!({ "kind": e.label(), "message": e.to_string() }),
        ),
    );
    out.insert("answered".into(), answered_json(&standing, now));
    Value::Object(out)
}

/// What the server said when it last answered.
fn answered_json(standing: &Standing, now: Instant) -> Value {
    let Some(answered) = &standing.answered else {
        return Value::Null;
    };
    let Some(facts) = answered.facts() else {
        return Value::Null;
    };
    let mut out = facts_json(facts);
    out.insert("age_seconds".into(), seconds(answered.at, now));
    Value::Object(out)
}

fn facts_json(facts: &Facts) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("read_only".into(), json!(facts.read_only));
    out.insert("super_read_only".into(), json!(facts.super_read_only));
    let (channels, unknown) = match &facts.replication {
        Replication::Channels(channels) => (channels.iter().map(channel_json).collect(), Value::Null),
        Replication::Unknown(why) => (Value::Null, json!(why.to_string())),
    };
    out.insert("replication".into(), channels);
    out.insert("replication_unknown".into(), unknown);
    let position = facts.position.as_ref().map(ToString::to_string);
    out.insert("gtid_position".into(), json!(position));
    let heartbeat = match &facts.heartbeat {
        None | Some(Heartbeat::Empty) => Value::Null,
        Some(Heartbeat::Beat(micros)) => json!(micros.to_string()),
        Some(Heartbeat::Unreadable { errno, message }) => json!(format!("error {errno}: {message}")),
    };
    out.insert("heartbeat".into(), heartbeat);
    let identity = &facts.identity;
    out.insert(
        "server".into(),
        json!({
            "version": identity.version,
            "server_id": identity.server_id,
            "hostname": identity.hostname,
            "port": identity.port,
            "uuid": identity.server_uuid,
            "uptime_seconds": facts.uptime.map(|u| u.as_secs()),
        }),
    );
    out
}

fn channel_json(channel: &Channel) -> Value {
    json!({
        "name": channel.name,
        "source": format!("{}:{}", channel.source_host, channel.source_port),
        "io": channel.io.as_str(),
        "sql": channel.sql.as_str(),
        "seconds_behind": channel.seconds_behind,
        "error": channel.error,
    })
}

fn seconds(then: Instant, now: Instant) -> Value {
    json!(now.saturating_duration_since(then).as_secs_f64())
}

/// Which shards serve. A shard serves if its primary does: one bad shard must not take the gateway out of its balancer,
/// since the others are served as ever.
pub(super) fn readiness(health: &Health, topology: &Topology) -> Readiness {
    let mut serving = 0_usize;
    let mut not_serving = Vec::new();
    for shard in topology.shards() {
        let tablets = health.of_shard(shard.id());
        let primary = tablets.iter().find(|t| t.info().role == Role::Primary);
        if primary.is_some_and(|t| t.serving()) {
            serving += 1;
            continue;
        }
        let why = match primary {
            Some(t) => health.why_not(&t.info().alias),
            None => Some("it has no primary".to_owned()),
        };
        let replicas = tablets.iter().filter(|t| t.info().role == Role::Replica);
        not_serving.push(json!({
            "shard": shard.id().to_string(),
            "tablet": primary.map(|t| t.info().alias.to_string()),
            "why": why,
            "replicas_serving": replicas.filter(|t| t.serving()).count(),
        }));
    }
    let ready = serving > 0;
    Readiness {
        ready,
        body: json!({
            "ready": ready,
            "why": if ready { Value::Null } else { json!("no shard serves") },
            "shards_serving": serving,
            "shards_not_serving": not_serving,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::base::clock;
    use crate::config::Config;
    use crate::topology::health::Tablets;
    use crate::topology::{Identity, Observation, PollError};

    const FILE: &str = r#"
[[users]]
name = "u"
password_hash = ""
[keyspaces.k]
named = { by = "modulo", column = "id" }
[[keyspaces.k.shards]]
name = "s0"
tablets = [{ alias = "a", address = "h:1" }, { alias = "a2", address = "h:2", role = "replica" }]
[[keyspaces.k.shards]]
name = "s1"
tablets = [{ alias = "b", address = "h:3" }]
"#;

    fn known() -> (Health, Topology) {
        let config = Config::parse(FILE, Path::new(".")).unwrap();
        let health = Health::new();
        let tablets: Tablets = crate::server::tablets(&config)
            .into_iter()
            .map(|info| (info.alias.clone(), Arc::new(TabletHealth::new(info))))
            .collect();
        health.publish(tablets);
        (health, Topology::new(1, &config).unwrap())
    }

    fn observe(health: &Health, alias: &str, outcome: Result<Facts, PollError>) {
        let observation = Observation {
            at: clock::now(),
            took: Duration::from_millis(1),
            outcome,
        };
        health.tablet(&alias.into()).unwrap().record(observation);
    }

    fn facts() -> Facts {
        Facts {
            read_only: false,
            super_read_only: None,
            replication: Replication::Channels(Vec::new()),
            position: None,
            heartbeat: None,
            identity: Identity::default(),
            uptime: Some(Duration::from_secs(5)),
            bypasses_read_only: None,
        }
    }

    #[test]
    fn one_shard_that_serves_is_enough_and_the_others_are_named() {
        let (health, topology) = known();
        let nobody = readiness(&health, &topology);
        assert!(!nobody.ready);
        assert_eq!(nobody.body["shards_not_serving"].as_array().unwrap().len(), 2);
        observe(&health, "a", Ok(facts()));
        observe(&health, "b", Err(PollError::Unreachable("refused".into())));
        let one = readiness(&health, &topology);
        assert!(one.ready);
        assert_eq!(one.body["shards_serving"], 1);
        assert_eq!(
            one.body["shards_not_serving"],
            json!([{ "shard": "k/s1", "tablet": "b", "why": "cannot be reached: refused", "replicas_serving": 0 }])
        );
    }

    #[test]
    fn a_shard_with_nothing_but_replicas_does_not_serve() {
        let (health, topology) = known();
        observe(&health, "a2", Ok(facts()));
        let found = readiness(&health, &topology);
        assert!(!found.ready);
        assert_eq!(found.body["shards_not_serving"][0]["replicas_serving"], 1);
    }

    #[test]
    fn the_last_words_of_a_silent_tablet_are_shown_with_their_age() {
        let (health, topology) = known();
        observe(&health, "a", Ok(facts()));
        observe(&health, "a", Err(PollError::Lost("gone".into())));
        let all = tablets_json(&health, &topology, clock::now());
        let tablet = &all["shards"]["k/s0"]["a"];
        assert_eq!(tablet["serving"], false);
        assert_eq!(tablet["error"]["kind"], "lost");
        assert_eq!(tablet["answered"]["server"]["uptime_seconds"], 5);
        assert_eq!(tablet["answered"]["replication"], json!([]));
        assert!(tablet["answered"]["age_seconds"].is_number());
        assert_eq!(all["shards"]["k/s1"]["b"]["why"], "never measured yet");
    }
}
