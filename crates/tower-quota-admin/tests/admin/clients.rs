//! Tests the operations peek, reset, grant, explain and top on single clients.

#[cfg(feature = "redis")]
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;
use tower_quota_live::MemoryRules;
#[cfg(feature = "redis")]
use tower_quota_live::{LiveOptions, SharedTop};

use crate::server::{Instance, RULES, options, problem, send};

#[tokio::test]
async fn client_is_peeked_granted_and_reset() {
    let instance = Instance::with_rules().await;
    for _ in 0..5 {
        assert_eq!(instance.ask("ann").await, 200);
    }
    let status = instance
        .client("peek", json!({ "limit": "minute", "key": "ann" }))
        .await;
    assert_eq!(status["remaining"], 0);
    assert_eq!(status["outcome"], "limited");
    assert!(
        status["retry_after_ms"]
            .as_u64()
            .is_some_and(|wait| wait > 1_000 && wait <= 12_000),
        "{status}"
    );

    let grant = json!({ "limit": "minute", "key": "ann", "units": 2 });
    let granted = instance.client("grant", grant).await;
    assert_eq!(granted["given"], 2);
    assert_eq!(granted["remaining"], 2);
    let most = json!({ "limit": "minute", "key": "ann", "units": 100_000 });
    let most = instance.client("grant", most).await;
    assert_eq!(most["given"], 3);
    assert_eq!(most["remaining"], 5);
    let reset = json!({ "limit": "minute", "key": "ann" });
    let reset = instance.client("reset", reset).await;
    assert_eq!(reset["remaining"], 5);

    let records = instance.json("/v1/audit?count=3").await["records"].take();
    assert_eq!(records[0]["what"], "reset");
    assert_eq!(records[1]["what"], "grant");
    assert_eq!(records[2]["before"], "0 of 5 left");
    assert_eq!(records[2]["after"], "2 of 5 left");
    assert!(!records.to_string().contains("ann"), "{records}");
}

#[tokio::test]
async fn limit_that_flags_is_no_shadow() {
    let instance = Instance::start().await;
    let rules = "\
defaults: { key: header x-api-key }
limits:
  - { name: soft, quota: 1/minute, over: flag }
  - { name: slow, quota: 1/minute, over: delay 250ms up to 5s }
  - { name: dry, quota: 1/minute, over: flag, shadow: true }
  - { name: hard, quota: 9/minute }
";
    send(instance.put_rules(rules).header("If-None-Match", "*")).await;
    for _ in 0..2 {
        assert_eq!(instance.ask("ann").await, 200);
    }
    let sample = json!({ "headers": { "x-api-key": "ann" } });
    let explained = instance.post("/v1/explain", &sample).await;
    let explained: Value = explained.json().await.unwrap();
    for (position, (limit, shadow, over)) in [
        ("soft", false, json!("flag")),
        ("slow", false, json!("delay 250ms up to 5s")),
        ("dry", true, json!("flag")),
        ("hard", false, Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let client = json!({ "limit": limit, "key": "ann" });
        let peeked = instance.client("peek", client).await;
        for status in [&peeked, &explained["left"][position]] {
            assert_eq!(status["shadow"], shadow, "{status}");
            assert_eq!(status["over"], over, "{status}");
        }
    }
}

#[tokio::test]
async fn named_client_keeps_its_tier() {
    let instance = Instance::with_rules().await;
    for _ in 0..10 {
        assert_eq!(instance.ask("pro_1").await, 200);
    }
    let client = json!({ "limit": "minute", "key": "pro_1" });
    let capacity_and_rest =
        |status: &Value| (status["capacity"].as_u64(), status["remaining"].as_u64());
    assert_eq!(
        capacity_and_rest(&instance.client("peek", client.clone()).await),
        (Some(50), Some(40))
    );

    let grant = json!({ "limit": "minute", "key": "pro_1", "units": 4 });
    let granted = instance.client("grant", grant).await;
    assert_eq!(capacity_and_rest(&granted), (Some(50), Some(44)));
    let reset = instance.client("reset", client).await;
    assert_eq!(capacity_and_rest(&reset), (Some(50), Some(50)));
}

#[tokio::test]
async fn records_name_clients_by_listed_hash() {
    let instance = Instance::with_rules().await;
    for _ in 0..6 {
        instance.ask("ann").await;
    }
    let hash = instance.json("/v1/top").await["clients"][0]["hash"].take();
    instance
        .client("reset", json!({ "limit": "minute", "key": "ann" }))
        .await;
    let record = instance.json("/v1/audit?count=1").await["records"][0].take();
    assert_eq!(
        record["target"],
        format!("minute {}", hash.as_str().unwrap())
    );
}

#[tokio::test]
async fn unknown_limit_is_not_found() {
    let instance = Instance::with_rules().await;
    let peek = instance
        .request(Method::POST, "/v1/clients/peek")
        .json(&json!({ "limit": "hour", "key": "ann" }));
    let missing = problem(send(peek).await, ProblemKind::NotFound).await;
    assert!(
        missing["detail"].as_str().unwrap().contains("minute"),
        "{missing}"
    );
}

#[tokio::test]
async fn explanation_charges_nothing() {
    let instance = Instance::with_rules().await;
    instance.ask("pro_1").await;
    let explain = async || -> Value {
        let sample = json!({ "path": "/users", "headers": { "x-api-key": "pro_1" } });
        let response = instance.post("/v1/explain", &sample).await;
        response.json().await.unwrap()
    };
    let (_, first) = (explain().await, explain().await);
    assert_eq!(first["tier"], "pro");
    assert_eq!(first["limits"][0]["quota"], "50/minute");
    assert_eq!(first["left"][0]["capacity"], 50);
    assert_eq!(first["left"][0]["remaining"], 49);
    assert!(!first.to_string().contains("pro_1"), "{first}");
}

#[tokio::test]
async fn limited_clients_are_listed_by_hash() {
    let instance = Instance::with_rules().await;
    for _ in 0..7 {
        instance.ask("ann").await;
    }
    let top = instance.json("/v1/top?by=limited&window=1m&count=3").await;
    let [client] = top["clients"].as_array().unwrap().as_slice() else {
        panic!("{top}")
    };
    assert_eq!(
        (&client["limit"], &client["at_least"], client.get("key")),
        (&json!("minute"), &json!(2), None)
    );
    assert!(client["since"].is_string(), "{client}");
    // Blocks of the same client have the same name.
    assert_eq!(client["hash"], instance.block("ann").await["id"]);
}

#[tokio::test]
async fn keys_are_readable_where_allowed() {
    let hidden = Instance::with_rules().await;
    problem(
        hidden.get("/v1/top?show_keys=true").await,
        ProblemKind::KeysHidden,
    )
    .await;

    let shown = Instance::with(MemoryRules::new(), options().allow_showing_keys()).await;
    send(shown.put_rules(RULES).header("If-None-Match", "*")).await;
    for _ in 0..6 {
        shown.ask("ann").await;
    }
    assert_eq!(
        shown.json("/v1/top?show_keys=true").await["clients"][0]["key"],
        "ann"
    );
    assert_eq!(shown.json("/v1/top").await["clients"][0].get("key"), None);
}

/// Rules with two limits by API key, and a limit for all clients.
const COUNTED: &str = "\
limits:
  - { name: minute, quota: 5 per 5 minutes, key: header x-api-key }
  - { name: day, quota: 700/day, key: header x-api-key }
  - { name: everyone, quota: 9000/day, key: none }
";

/// Sends requests of two clients, and lists their counters.
async fn lists_counters(instance: &Instance) {
    let put = instance.put_rules(COUNTED).header("If-None-Match", "*");
    assert_eq!(send(put).await.status(), 200);
    for key in ["sk_free_1", "sk_pro_1"] {
        for _ in 0..8 {
            instance.ask(key).await;
        }
    }
    let list = async |query: &str| {
        let path = format!("/v1/top?by=limited&show_keys=true&{query}");
        let top = instance.json(&path).await;
        top["clients"].as_array().unwrap().clone()
    };
    let minute = list("limit=minute").await;
    assert_eq!(minute.len(), 2);
    for client in &minute {
        let status = &client["status"];
        assert_eq!(status["capacity"], 5);
        assert_eq!(status["remaining"], 0);
        assert_eq!(status["outcome"], "limited");
        assert!(status["retry_after_ms"].as_u64() > Some(0), "{client}");
        assert!(status["full_after_ms"].as_u64() > Some(0), "{client}");
    }
    let free = list("limit=minute&prefix=sk_free_").await;
    let keys: Vec<_> = free.iter().map(|client| &client["key"]).collect();
    assert_eq!(keys, [&json!("sk_free_1")]);
    assert_eq!(list("prefix=sk_").await.len(), 2);
    assert_eq!(list("limit=minute&count=1").await.len(), 1);
    // The other limits refused no client.
    assert_eq!(list("limit=day").await.len(), 0);
    // A list of all limits does not call the store.
    let all = list("count=9").await;
    assert!(all.iter().all(|client| client.get("status").is_none()));
    problem(
        instance.get("/v1/top?limit=hour").await,
        ProblemKind::NotFound,
    )
    .await;
    for hidden in ["prefix=sk_", "limit=minute&prefix=sk_"] {
        let refused = instance.get(&format!("/v1/top?{hidden}")).await;
        let refused = problem(refused, ProblemKind::InvalidRequest).await;
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("show_keys"), "{detail}");
    }
}

#[tokio::test]
async fn counters_of_a_limit_are_listed() {
    let instance = Instance::with(MemoryRules::new(), options().allow_showing_keys()).await;
    lists_counters(&instance).await;
    // Busy clients have a counter in every limit.
    for _ in 0..600 {
        instance.ask("sk_pro_1").await;
    }
    let counters = instance.json("/v1/top?by=busy&limit=day").await["clients"].take();
    assert_eq!(counters[0]["status"]["limit"], "day", "{counters}");
    assert_eq!(counters[0]["status"]["capacity"], 700);
    assert_eq!(counters[0].get("key"), None);
    let everyone = instance.json("/v1/top?by=busy&limit=everyone").await["clients"].take();
    assert_eq!(everyone[0]["who"], "everyone", "{everyone}");
    assert_eq!(everyone[0]["status"]["capacity"], 9_000);

    let hidden = Instance::with_rules().await;
    let refused = hidden.get("/v1/top?show_keys=true&prefix=sk_").await;
    problem(refused, ProblemKind::KeysHidden).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn counters_in_redis_are_listed() {
    let server = tower_quota_dev::RedisServer::start();
    let counters = tower_quota_redis::RedisStore::connect(&server.url()).await;
    let (options, live) = (options().allow_showing_keys(), LiveOptions::new());
    let instance = Instance::counting(counters.unwrap(), MemoryRules::new(), options, live).await;
    lists_counters(&instance).await;
}

#[tokio::test]
async fn counter_of_all_clients_is_marked() {
    let instance = Instance::start().await;
    let rules = "limits:\n  - { name: everyone, quota: 1/hour, key: none }\n  \
                 - { name: keyed, quota: 1/hour, key: header x-client, missing: share }\n";
    let first = instance.put_rules(rules).header("If-None-Match", "*");
    assert_eq!(send(first).await.status(), 200);
    for _ in 0..5 {
        instance.ask("ann").await;
    }
    let top = instance.json("/v1/top").await;
    let clients = top["clients"].as_array().unwrap();
    assert!(!clients.is_empty());
    for client in clients {
        assert_ne!(client["who"], "client", "{top}");
        let target = format!("hash:{}", client["hash"].as_str().unwrap());
        let body = json!({ "target": target, "scope": client["scope"], "seconds": 60 });
        let block = instance.request(Method::PUT, "/v1/blocks").json(&body);
        problem(send(block).await, ProblemKind::InvalidValue).await;
    }
}

#[tokio::test]
async fn busy_clients_are_estimated() {
    let instance = Instance::with_rules().await;
    for _ in 0..600 {
        instance.ask("ann").await;
    }
    let top = instance.json("/v1/top?by=busy").await;
    assert_eq!(top["clients"][0]["scope"], "header x-api-key", "{top}");
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn top_is_that_of_all_instances() {
    let server = tower_quota_dev::RedisServer::start();
    let start = async || {
        let top = SharedTop::new(&server.url(), "admin")
            .unwrap()
            .every(Duration::from_millis(100));
        let live = LiveOptions::new().shared_top(top);
        let instance =
            Instance::with_live_options(MemoryRules::new(), options().allow_showing_keys(), live)
                .await;
        send(instance.put_rules(RULES).header("If-None-Match", "*")).await;
        for _ in 0..7 {
            instance.ask("ann").await;
        }
        instance
    };
    let [one, other] = [start().await, start().await];
    let deadline = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let [top, shown] = [
                one.json("/v1/top?window=1m").await,
                other.json("/v1/top?show_keys=true").await,
            ];
            if (&top["instances"], &top["clients"][0]["at_least"]) != (&json!(2), &json!(4)) {
                tokio::task::yield_now().await;
                continue;
            }
            assert_eq!(top["clients"][0].get("key"), None);
            assert_eq!(shown["clients"][0]["key"], "ann");
            // Blocks of the same client have the same name.
            assert_eq!(top["clients"][0]["hash"], one.block("ann").await["id"]);
            return;
        }
    });
    assert!(
        deadline.await.is_ok(),
        "the instances do not find each other"
    );
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn listed_client_has_status_of_own_counter() {
    use tower_quota_live::SharedTop;
    let server = tower_quota_dev::RedisServer::start();
    let counters = tower_quota::MemoryStore::new();
    let start = async |key: &str| {
        let top = SharedTop::new(&server.url(), "status").unwrap();
        let live = LiveOptions::new().shared_top(top.every(Duration::from_millis(200)));
        let rules = MemoryRules::new();
        let instance = Instance::counting(counters.clone(), rules, options(), live).await;
        let rules = format!("limits: [{{ name: minute, quota: 2/day, key: {key} }}]");
        let first = instance.put_rules(&rules).header("If-None-Match", "*");
        assert_eq!(send(first).await.status(), 200);
        instance
    };
    let one = start("[header x-api-key, client_ip]").await;
    // The key of a client without an API key is its address, and here no API key is an address.
    for reader in [
        start("[header x-api-key, client_ip]").await,
        start("client_ip").await,
    ] {
        for _ in 0..5 {
            send(one.client.get(&one.service)).await;
            one.ask("ann").await;
        }
        let list = async {
            loop {
                let top = reader.json("/v1/top?limit=minute").await;
                if top["clients"].as_array().unwrap().len() == 2 {
                    return top;
                }
            }
        };
        let listed = tokio::time::timeout(Duration::from_secs(20), list).await;
        let listed = listed.unwrap();
        for client in listed["clients"].as_array().unwrap() {
            let remaining = client["status"].get("remaining");
            assert!(remaining.is_none_or(|units| units == 0), "{listed}");
        }
    }
}
