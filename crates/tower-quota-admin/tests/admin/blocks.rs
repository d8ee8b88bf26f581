//! Tests blocks and allowances, on two instances with one Redis.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;
use tower_quota_dev::RedisServer;
use tower_quota_live::RedisRules;

use crate::fields;
use crate::server::{Instance, RULES, options, problem, send};

/// The time within which a change is in force on every instance.
const IN_FORCE: Duration = Duration::from_secs(2);

async fn instance(redis: &RedisServer) -> Instance {
    Instance::with(RedisRules::new(&redis.url(), "test").unwrap(), options()).await
}

/// Sends requests until the answer has this status.
async fn is_answered(instance: &Instance, key: &str, status: u16) {
    let is_answered = async { while instance.ask(key).await != status {} };
    tokio::time::timeout(IN_FORCE, is_answered).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn block_holds_on_two_instances() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis).await, instance(&redis).await);
    let put = send(one.put_rules(RULES).header("If-None-Match", "*")).await;
    assert_eq!(put.status(), 200);
    is_answered(&other, "pro_1", 200).await;

    let block = one.block("pro_1").await;
    assert_eq!(one.ask("pro_1").await, 403);
    is_answered(&other, "pro_1", 403).await;
    let listed = other.json("/v1/blocks").await;
    assert_eq!(listed["blocks"][0]["id"], block["id"]);
    assert_eq!(listed["blocks"][0]["reason"], "abuse");
    assert_eq!(listed["blocks"][0]["author"], "tests");
    assert!(!listed.to_string().contains("pro_1"), "{listed}");

    let unblock = other.unblock("pro_1").await;
    assert_eq!(unblock.status(), 200);
    is_answered(&one, "pro_1", 200).await;
    let missing = problem(other.unblock("pro_1").await, ProblemKind::NotFound).await;
    assert_eq!(missing["detail"], "there is no such block or allowance");
}

async fn put(instance: &Instance, body: Value) -> reqwest::Response {
    let request = instance.request(Method::PUT, "/v1/blocks").json(&body);
    send(request).await
}

#[tokio::test]
async fn network_is_blocked_and_allowed() {
    let instance = Instance::with_rules().await;
    let own = json!({ "target": "127.0.0.0/8", "seconds": 60, "force": true });
    let block: Value = put(&instance, own).await.json().await.unwrap();
    assert_eq!(block["id"], "127.0.0.0/8");
    assert_eq!(instance.ask("ann").await, 403);

    let allow = json!({ "target": "127.0.0.0/8", "kind": "allow", "seconds": 60 });
    let allowed: Value = put(&instance, allow).await.json().await.unwrap();
    assert_eq!(allowed["kind"], "allow");
    for _ in 0..10 {
        assert_eq!(instance.ask("ann").await, 200);
    }
    let removed = instance.unblock("127.0.0.0/8").await;
    assert_eq!(removed.status(), 200);
    assert_eq!(instance.json("/v1/blocks").await["blocks"], json!([]));
}

#[tokio::test]
async fn huge_or_own_network_needs_force() {
    let instance = Instance::with_rules().await;
    for target in [
        "0.0.0.0/0",
        "1.2.3.4/3",
        "::/0",
        "2001:db8::/18",
        "127.0.0.1",
    ] {
        let refused = put(&instance, json!({ "target": target, "seconds": 60 })).await;
        let refused = problem(refused, ProblemKind::InvalidValue).await;
        assert!(
            refused["detail"].as_str().unwrap().contains("force"),
            "{refused}"
        );
    }
    let allow = json!({ "target": "0.0.0.0/0", "kind": "allow", "seconds": 60 });
    problem(put(&instance, allow).await, ProblemKind::InvalidValue).await;
    assert_eq!(instance.json("/v1/blocks").await["blocks"], json!([]));
    for target in ["10.0.0.0/8", "2001:db8::/19"] {
        instance.block(target).await;
    }
    let forced = json!({ "target": "1.2.3.4/3", "seconds": 60, "force": true });
    let forced: Value = put(&instance, forced).await.json().await.unwrap();
    assert_eq!(forced["id"], "0.0.0.0/3");
}

#[tokio::test]
async fn ambiguous_key_needs_its_scope() {
    let instance = Instance::start().await;
    let rules = "limits:\n  - { name: tenant, quota: 9/minute, key: header x-tenant }\n  \
                 - { name: key, quota: 9/minute, key: header x-api-key }\n";
    let first = instance.put_rules(rules).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    let refused = put(&instance, json!({ "target": "sk_1", "seconds": 60 })).await;
    let refused = problem(refused, ProblemKind::InvalidValue).await;
    let scopes = instance.json("/v1/blocks").await["scopes"].take();
    assert_eq!(scopes, json!(["header x-tenant", "header x-api-key"]));
    for scope in scopes.as_array().unwrap() {
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(scope.as_str().unwrap()), "{detail}");
    }
    let body = json!({ "target": "sk_1", "scope": "header x-api-key", "seconds": 60 });
    let block: Value = put(&instance, body).await.json().await.unwrap();
    assert_eq!(block["target"]["key"]["scope"], "header x-api-key");
    assert_eq!(instance.ask("sk_1").await, 403);
}

#[tokio::test]
async fn impossible_block_is_a_problem() {
    let instance = Instance::with_rules().await;
    for body in [
        json!({ "target": "ann", "seconds": 0 }),
        json!({ "target": "ann", "seconds": 40_000_000 }),
        json!({ "target": "ann", "scope": "cookie x", "seconds": 60 }),
    ] {
        let response = send(instance.request(Method::PUT, "/v1/blocks").json(&body)).await;
        problem(response, ProblemKind::InvalidValue).await;
    }
}

#[tokio::test]
async fn block_says_where_it_holds() {
    let alone = Instance::with_rules().await;
    let here = "this instance only, and lost when it restarts";
    assert_eq!(alone.json("/v1/blocks").await["reach"], here);
    assert_eq!(alone.json("/v1/overrides").await["reach"], here);
    assert_eq!(alone.block("ann").await["reach"], here);
    let removed = async |instance: &Instance, who: &str| -> Value {
        let removed = instance.unblock(who).await;
        assert_eq!(removed.status(), 200);
        removed.json().await.unwrap()
    };
    assert_eq!(removed(&alone, "ann").await["reach"], here);

    let server = RedisServer::start();
    let rules = RedisRules::new(&server.url(), "reach").unwrap();
    let instance = Instance::with(rules, options()).await;
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    assert_eq!(instance.json("/v1/blocks").await["reach"], "all instances");
    assert_eq!(instance.block("cleo").await["reach"], "all instances");
    assert_eq!(removed(&instance, "cleo").await["reach"], "all instances");
    assert_eq!(instance.block("ann").await["reach"], "all instances");

    server.pause();
    let for_now = "this instance only, until the store answers";
    assert_eq!(instance.block("bob").await["reach"], for_now);
    assert_eq!(instance.ask("bob").await, 403);
    assert_eq!(removed(&instance, "ann").await["reach"], for_now);
    assert_eq!(instance.ask("ann").await, 200);
    server.resume();
}

#[tokio::test]
async fn network_without_clients_has_a_note() {
    let instance = Instance::with_rules().await;
    let block = async |network: &str| {
        let body = json!({ "target": network, "seconds": 60, "force": true });
        let put = instance.request(Method::PUT, "/v1/blocks").json(&body);
        let answer: Value = send(put).await.json().await.unwrap();
        fields::check("put", "/v1/blocks", &answer);
        answer["note"].clone()
    };
    assert_eq!(block("198.51.100.7").await, Value::Null, "no request yet");
    // Busy clients are a sample.
    for _ in 0..500 {
        send(instance.client.get(&instance.service)).await;
    }
    let note = block("198.51.100.7").await;
    let note = note.as_str().unwrap();
    assert!(
        note.contains("198.51.100.7") && note.contains("reads the peer"),
        "{note}"
    );
    assert_eq!(block("127.0.0.0/8").await, Value::Null);
}

/// Rules with a limit by address.
const BY_ADDRESS: &str = "limits: [{ name: minute, quota: 1/minute, key: client_ip }]";

#[tokio::test]
async fn unblock_ends_all_blocks_of_an_address() {
    let instance = Instance::start().await;
    send(instance.put_rules(BY_ADDRESS).header("If-None-Match", "*")).await;
    let network = json!({ "target": "127.0.0.1", "seconds": 60, "force": true });
    put(&instance, network).await;
    let scope = instance.json("/v1/blocks").await["scopes"][0].take();
    let key = json!({ "target": "127.0.0.1", "scope": scope, "seconds": 60, "force": true });
    put(&instance, key).await;
    assert_eq!(
        instance.json("/v1/blocks").await["blocks"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let removed = instance.unblock("127.0.0.1").await;
    assert_eq!(removed.status(), 200);
    let removed: Value = removed.json().await.unwrap();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 2, "{removed}");
    assert_eq!(instance.json("/v1/blocks").await["blocks"], json!([]));
}

#[tokio::test]
async fn unblock_needs_no_scope_and_takes_one() {
    let instance = Instance::start().await;
    let rules = "limits:\n  - { name: tenant, quota: 9/minute, key: header x-tenant }\n  \
                 - { name: key, quota: 9/minute, key: header x-api-key }\n";
    send(instance.put_rules(rules).header("If-None-Match", "*")).await;
    let scopes = ["header x-tenant", "header x-api-key"];
    let remove = async |body: Value| -> Value {
        let response = instance.post("/v1/blocks/remove", &body).await;
        assert_eq!(response.status(), 200, "{body}");
        response.json().await.unwrap()
    };
    for bodies in [
        vec![json!({ "target": "sk_1" })],
        scopes
            .map(|scope| json!({ "target": "sk_1", "scope": scope }))
            .to_vec(),
    ] {
        for scope in scopes {
            put(
                &instance,
                json!({ "target": "sk_1", "scope": scope, "seconds": 60 }),
            )
            .await;
        }
        for body in &bodies {
            let removed = remove(body.clone()).await;
            let count = removed["removed"].as_array().unwrap().len();
            assert_eq!(count, 2 / bodies.len(), "{removed}");
        }
        assert_eq!(instance.json("/v1/blocks").await["blocks"], json!([]));
    }
}

#[tokio::test]
async fn unblock_names_entry_of_document() {
    let instance = Instance::start().await;
    let rules = "{ limits: [{ name: minute, quota: 9/minute }], defaults: { key: header x-api-key }, block: [{ key: ann }] }";
    send(instance.put_rules(rules).header("If-None-Match", "*")).await;
    let missing = problem(instance.unblock("ann").await, ProblemKind::NotFound).await;
    let detail = missing["detail"].as_str().unwrap();
    assert!(detail.contains("block[0] of version 1"), "{detail}");
}

#[tokio::test]
async fn hash_of_address_in_own_network_needs_force() {
    let instance = Instance::start().await;
    send(instance.put_rules(BY_ADDRESS).header("If-None-Match", "*")).await;
    while instance.ask("ann").await != 429 {}
    let listed = instance.json("/v1/top").await["clients"][0].take();
    let hash = format!("hash:{}", listed["hash"].as_str().unwrap());
    let body = json!({ "target": hash, "scope": listed["scope"], "seconds": 60 });
    let refused = problem(
        put(&instance, body.clone()).await,
        ProblemKind::InvalidValue,
    )
    .await;
    assert!(
        refused["detail"].as_str().unwrap().contains("force"),
        "{refused}"
    );
    let mut forced = body;
    forced["force"] = json!(true);
    assert_eq!(put(&instance, forced).await.status(), 200);
}

#[tokio::test]
async fn block_of_most_traffic_needs_force() {
    let instance = Instance::start().await;
    let rules = "limits: [{ name: all, quota: 1000000/minute, key: header x-api-key }]";
    send(instance.put_rules(rules).header("If-None-Match", "*")).await;
    let requests = async |key: &str, fewest: u64| loop {
        let busy = instance.json("/v1/top?by=busy&window=10m").await["clients"].take();
        let clients = busy.as_array().unwrap().iter();
        if clients
            .map(|client| client["at_least"].as_u64().unwrap())
            .sum::<u64>()
            >= fewest
        {
            return;
        }
        for _ in 0..100 {
            instance.ask(key).await;
        }
    };
    requests("loud", 1_500).await;
    requests("quiet", 2_000).await;
    let block = |key: &str| put(&instance, json!({ "target": key, "seconds": 60 }));
    assert_eq!(block("quiet").await.status(), 200);
    let refused = problem(block("loud").await, ProblemKind::InvalidValue).await;
    let detail = refused["detail"].as_str().unwrap();
    assert!(
        detail.contains("more than half") && detail.contains("force"),
        "{detail}"
    );
}

/// The longest time to answer a block, with the second that a change waits for the store.
const AT_ONCE: Duration = Duration::from_millis(1_800);

#[tokio::test]
async fn block_is_answered_at_once_while_redis_hangs() {
    let redis = RedisServer::start();
    let instance = instance(&redis).await;
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    instance.block("old").await;
    redis.pause();
    // The follower of the store waits for its answer.
    let is_noticed = async { while instance.json("/v1/health").await["healthy"] == true {} };
    tokio::time::timeout(10 * IN_FORCE, is_noticed)
        .await
        .unwrap();
    let for_now = "this instance only, until the store answers";
    for user in ["ann", "bob", "eve"] {
        let block = tokio::time::timeout(AT_ONCE, instance.block(user)).await;
        assert_eq!(block.unwrap()["reach"], for_now);
        assert_eq!(instance.ask(user).await, 403);
    }
    let removed = tokio::time::timeout(AT_ONCE, instance.unblock("old")).await;
    let removed: Value = removed.unwrap().json().await.unwrap();
    assert_eq!(removed["reach"], for_now);
    assert_eq!(instance.ask("old").await, 200);
    redis.resume();
}

#[tokio::test]
async fn block_holds_before_redis_answers() {
    let redis = RedisServer::start();
    let instance = instance(&redis).await;
    let put = instance.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    redis.pause();
    let is_refused = async { while instance.ask("ann").await != 403 {} };
    tokio::select! {
        biased;
        () = is_refused => {}
        block = instance.block("ann") => panic!("{block} holds since its answer"),
    }
    redis.resume();
}

#[tokio::test]
async fn override_holds_here_while_redis_hangs() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis).await, instance(&redis).await);
    let put = one.put_rules(RULES).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    redis.pause();
    let body = json!({ "limit": "minute", "key": "ann", "quota": "9/minute", "for": "1h" });
    let made = send(one.request(Method::PUT, "/v1/overrides").json(&body)).await;
    let made: Value = made.json().await.unwrap();
    let for_now = "this instance only, until the store answers";
    assert_eq!(made["reach"], for_now);
    let client = json!({ "limit": "minute", "key": "ann" });
    assert_eq!(one.client("peek", client).await["capacity"], 9);
    redis.resume();
    let listed = async || other.json("/v1/overrides").await["overrides"].take();
    let is_shared = async { while listed().await == json!([]) {} };
    tokio::time::timeout(10 * IN_FORCE, is_shared)
        .await
        .unwrap();

    redis.pause();
    let body = json!({ "id": made["id"] });
    let ended = one.post("/v1/overrides/remove", &body).await;
    let ended: Value = ended.json().await.unwrap();
    fields::check("post", "/v1/overrides/remove", &ended);
    assert_eq!(ended["reach"], for_now);
    redis.resume();
}
