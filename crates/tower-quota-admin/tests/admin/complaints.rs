//! Tests the answers to a complaint: earlier refusals, blocks that hit, and the source of a quota.

use reqwest::Method;
use serde_json::{Value, json};
use tower_quota_admin::ProblemKind;
use tower_quota_live::MemoryRules;

use crate::server::{Instance, RULES, options, problem, send};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Sends a request of a client with this request id.
async fn ask(instance: &Instance, key: &str, id: &str) -> u16 {
    let request = instance.client.get(&instance.service);
    let request = request
        .header("x-api-key", key)
        .header("x-request-id", id)
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
    send(request).await.status().as_u16()
}

/// Returns the outcomes and request ids of the refusals that the body selects.
async fn found(instance: &Instance, body: Value) -> Vec<(Value, Value)> {
    let list = instance.client("refusals", body).await;
    let refusals = list["refusals"].as_array().unwrap().iter();
    let parts = refusals.map(|refusal| (refusal["outcome"].clone(), refusal["request_id"].clone()));
    parts.collect()
}

fn limited(id: &str) -> (Value, Value) {
    (json!("limited"), json!(id))
}

#[tokio::test]
async fn refusals_are_found_by_client_time_and_request() {
    let instance = Instance::with_rules().await;
    for number in 1..=7 {
        ask(&instance, "ann", &format!("ann-{number}")).await;
    }
    for number in 1..=6 {
        ask(&instance, "bob", &format!("bob-{number}")).await;
    }
    let of_ann = found(&instance, json!({ "key": "ann" })).await;
    assert_eq!(of_ann, [limited("ann-7"), limited("ann-6")]);
    let all = found(
        &instance,
        json!({ "limit": "minute", "scope": "header x-api-key" }),
    )
    .await;
    assert_eq!(all.len(), 3);
    for request in ["bob-6", TRACE] {
        let body = json!({ "key": "bob", "request": request });
        assert_eq!(found(&instance, body).await, [limited("bob-6")]);
    }

    let list = instance
        .client("refusals", json!({ "key": "ann", "count": 1 }))
        .await;
    let [refusal] = list["refusals"].as_array().unwrap().as_slice() else {
        panic!("{list}")
    };
    assert_eq!(refusal["limit"], "minute");
    assert_eq!(refusal["version"], 1);
    assert_eq!(refusal["trace_id"], TRACE);
    assert!(refusal["retry_after_ms"].as_u64() > Some(0), "{refusal}");
    assert_eq!(refusal.get("key"), None);
    let hash = refusal["hash"].as_str().unwrap();
    assert_eq!(
        found(&instance, json!({ "key": format!("hash:{hash}") }))
            .await
            .len(),
        2
    );
    for (body, expected) in [
        (
            json!({ "key": "ann", "after": refusal["at"], "before": refusal["at"] }),
            true,
        ),
        (json!({ "key": "ann", "before": list["since"] }), false),
        (json!({ "key": "ann", "limit": "day" }), false),
        (json!({ "key": "ann", "request": "bob-6" }), false),
    ] {
        let is_found = !found(&instance, body.clone()).await.is_empty();
        assert_eq!(is_found, expected, "{body}");
    }
    assert!(!list["instance"].as_str().unwrap().is_empty(), "{list}");
}

#[tokio::test]
async fn refusals_show_keys_where_allowed() {
    let hidden = Instance::with_rules().await;
    let path = "/v1/clients/refusals?show_keys=true";
    problem(hidden.post(path, &json!({})).await, ProblemKind::KeysHidden).await;
    let impossible = hidden
        .post("/v1/clients/refusals", &json!({ "count": 0 }))
        .await;
    problem(impossible, ProblemKind::InvalidRequest).await;

    let shown = Instance::with(MemoryRules::new(), options().allow_showing_keys()).await;
    send(shown.put_rules(RULES).header("If-None-Match", "*")).await;
    for _ in 0..6 {
        shown.ask("ann").await;
    }
    let list: Value = shown.post(path, &json!({})).await.json().await.unwrap();
    assert_eq!(list["refusals"][0]["key"], "ann");
}

#[tokio::test]
async fn refusals_of_malformed_hash_are_invalid() {
    let instance = Instance::with_rules().await;
    let known = json!({ "key": "hash:00000000000000aa" });
    assert_eq!(found(&instance, known).await, []);
    for hash in [
        "",
        "zzz",
        "1234",
        "00000000000000AA",
        "+0000000000000aa",
        "000000000000000aa",
    ] {
        let body = json!({ "key": format!("hash:{hash}") });
        let answer = instance.post("/v1/clients/refusals", &body).await;
        let invalid = problem(answer, ProblemKind::InvalidValue).await;
        assert!(invalid.to_string().contains("16 hex digits"), "{invalid}");
    }
}

#[tokio::test]
async fn hostile_request_ids_are_left_out() {
    let instance = Instance::with_rules().await;
    for _ in 0..6 {
        let request = instance
            .client
            .get(&instance.service)
            .header("x-api-key", "ann");
        send(
            request
                .header("x-request-id", "i".repeat(129))
                .header("traceparent", "00-x"),
        )
        .await;
    }
    let list = instance.client("refusals", json!({ "key": "ann" })).await;
    let refusal = &list["refusals"][0];
    assert_eq!(refusal["outcome"], "limited");
    assert_eq!(
        (refusal.get("request_id"), refusal.get("trace_id")),
        (None, None)
    );
}

#[tokio::test]
async fn refusal_of_blocked_client_has_its_key() {
    let instance = Instance::with_rules().await;
    instance.block("ann").await;
    assert_eq!(ask(&instance, "ann", "ann-1").await, 403);
    let of_ann = found(&instance, json!({ "key": "ann" })).await;
    assert_eq!(of_ann, [(json!("blocked"), json!("ann-1"))]);
    instance.unblock("ann").await;

    let network = json!({ "target": "127.0.0.0/8", "seconds": 60, "force": true });
    send(instance.request(Method::PUT, "/v1/blocks").json(&network)).await;
    assert_eq!(ask(&instance, "bob", "bob-1").await, 403);
    let of_address = found(&instance, json!({ "key": "127.0.0.1" })).await;
    assert_eq!(of_address, [(json!("blocked"), json!("bob-1"))]);
}

async fn peek(instance: &Instance, key: &str) -> Value {
    instance
        .client("peek", json!({ "limit": "minute", "key": key }))
        .await
}

#[tokio::test]
async fn peek_names_block_and_source_of_quota() {
    let instance = Instance::with_rules().await;
    let free = peek(&instance, "ann").await;
    assert_eq!(
        (&free["quota"], &free["source"]),
        (&json!("5/minute"), &json!("limit"))
    );
    assert_eq!(free.get("listed"), None);
    let paid = peek(&instance, "pro_1").await;
    assert_eq!(
        (&paid["quota"], &paid["source"]),
        (&json!("50/minute"), &json!("tier pro"))
    );
    let given = json!({ "limit": "minute", "key": "ann", "quota": "7/minute", "for": "1h" });
    send(instance.request(Method::PUT, "/v1/overrides").json(&given)).await;
    let given = peek(&instance, "ann").await;
    let source = given["source"].as_str().unwrap();
    assert!(source.starts_with("override by tests until "), "{given}");
    assert_eq!(given["quota"], "7/minute");

    let block = instance.block("ann").await;
    let blocked = peek(&instance, "ann").await;
    assert_eq!(blocked["outcome"], "blocked");
    let listed = &blocked["listed"];
    assert_eq!(
        (&listed["kind"], &listed["id"]),
        (&json!("block"), &block["id"])
    );
    assert_eq!(
        (&listed["author"], &listed["reason"]),
        (&json!("tests"), &json!("abuse"))
    );
    assert_eq!(listed["until"], block["until"]);
}

#[tokio::test]
async fn peek_of_full_counter_knows_last_refusal() {
    let instance = Instance::start().await;
    let rules = "limits: [{ name: minute, quota: 1 per 10 ms, key: header x-api-key }]";
    send(instance.put_rules(rules).header("If-None-Match", "*")).await;
    while instance.ask("ann").await != 429 {}
    let mut status = peek(&instance, "ann").await;
    while status["full_after_ms"] != 0 {
        status = peek(&instance, "ann").await;
    }
    assert!(status["refused_at"].is_string(), "{status}");
    assert_eq!(peek(&instance, "bob").await.get("refused_at"), None);
}

/// Rules with lists, and a limit by address.
const LISTS: &str = "\
defaults: { key: [header x-api-key, client_ip] }
limits: [{ name: minute, quota: 5/minute }]
allow: [{ key: \"in_*\" }]
block: [{ path: /old }, { key: \"bad_*\" }, { network: 198.51.100.0/24 }]
";

#[tokio::test]
async fn find_names_networks_and_entries_of_document() {
    let instance = Instance::start().await;
    let put = instance.put_rules(LISTS).header("If-None-Match", "*");
    send(put.header("X-Comment", "stolen keys")).await;
    let listed = async |key: &str| {
        let found = instance.client("find", json!({ "key": key })).await;
        let clients = found["clients"].as_array().unwrap().iter();
        let listed = clients.map(|client| client["listed"].clone());
        let known: Vec<Value> = listed.filter(|listed| !listed.is_null()).collect();
        (known, found["network"].clone())
    };
    let (document, _) = listed("bad_1").await;
    assert_eq!(document[0]["id"], "block[1]");
    assert_eq!(document[0]["target"], "version 1 of the rules");
    assert_eq!(document[0]["author"], "tests");
    assert_eq!(document[0]["reason"], "stolen keys");
    assert_eq!(listed("in_1").await.0[0]["kind"], "allow");
    assert_eq!(listed("198.51.100.7").await.0[0]["id"], "block[2]");
    assert_eq!(listed("ann").await.0, [Value::Null; 0]);

    instance.block("203.0.113.0/24").await;
    let (by_key, network) = listed("203.0.113.7").await;
    assert_eq!(by_key[0]["id"], "203.0.113.0/24");
    assert_eq!(network["id"], "203.0.113.0/24");
    assert_eq!(network["reason"], "abuse");
}

#[tokio::test]
async fn explanation_names_block_and_assumed_address() {
    let instance = Instance::start().await;
    send(instance.put_rules(LISTS).header("If-None-Match", "*")).await;
    let explain = async |sample: Value| -> Value {
        instance
            .post("/v1/explain", &sample)
            .await
            .json()
            .await
            .unwrap()
    };
    let free = explain(json!({ "headers": { "x-api-key": "ann" } })).await;
    assert_eq!(free["assumed_address"], "192.0.2.1");
    assert_eq!(free["limits"][0]["source"], "limit");
    assert_eq!(free.get("listed"), None);
    let old = explain(json!({ "path": "/old", "address": "203.0.113.7" })).await;
    assert_eq!(
        (&old["outcome"], old.get("assumed_address")),
        (&json!("blocked"), None)
    );
    assert_eq!(old["listed"]["id"], "block[0]");

    let block = instance.block("ann").await;
    let blocked = explain(json!({ "headers": { "x-api-key": "ann" } })).await;
    assert_eq!(blocked["outcome"], "blocked");
    assert_eq!(blocked["listed"]["id"], block["id"]);
    assert_eq!(blocked["listed"]["author"], "tests");
}
