//! Tests a layer with a document that is typical for an API gateway.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::IpAddr;

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::explain::Explained;
use tower_quota::key;
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, RequestHead};
use tower_quota_rules::{CodeParts, Rules, Tier};

const GATEWAY: &str = include_str!("../good/gateway.yaml");

fn rules(text: &str) -> Rules {
    Rules::parse(text).unwrap()
}

fn request(path: &str, api_key: &str) -> Request<()> {
    let address = IpAddr::from([203, 0, 113, 7]);
    Request::get(path)
        .header("x-api-key", api_key)
        .extension(address)
        .body(())
        .unwrap()
}

/// Returns the limits and quotas of a request, and the tier.
fn limits(rules: &Rules, request: &Request<()>) -> (Vec<String>, Option<String>) {
    let explanation = rules.explain(&RequestHead::of(request));
    let limits = explanation
        .limits
        .iter()
        .map(|limit| format!("{} {}", limit.name, limit.quota));
    (limits.collect(), explanation.tier)
}

#[test]
fn gateway_document_passes_its_tests() {
    let report = rules(GATEWAY).test();
    assert!(report.is_passed() && report.passed > 9, "{report}");
}

#[test]
fn failed_test_names_its_differences() {
    let text = "
limits: [{ name: minute, quota: 100/minute }]
tiers: { pro: {} }
routes: [{ match: { path: /day }, limits: [{ name: day, quota: 1/day }] }]
tests:
  - request: { path: / }
    expect: { outcome: blocked, tier: pro, limits: { minute: 5/minute, day: 1/day } }
";
    let report = rules(text).test();
    let expected = "tests[0]: expected it to be blocked, it is counted; expected the tier \"pro\", it is none; expected 5/minute of the \
                    limit \"minute\", it is 100/minute; expected the limit \"day\", it is not asked\n0 passed, 1 failed";
    assert_eq!(report.to_string(), expected);
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn both_paths_of_nested_request_are_matched() {
    let text = "
limits: [{ name: all, quota: 9/second }]
routes:
  - { match: { path: \"/api/users/{id}\" }, limits: [{ name: original, quota: 1/second }] }
  - { match: { path: \"/users/{id}\" }, limits: [{ name: present, quota: 2/second }] }
  - { match: { path: { regex: ^/users/7$ } }, limits: [{ name: regex, quota: 3/second }] }
  - { match: { grpc_service: users }, limits: [{ name: call, quota: 4/second }] }
skip: [{ path: /users/8 }, { path: /api/users/9 }]
";
    let rules = rules(text);
    let names = async move |request: axum::extract::Request| {
        let explained = rules.explain(&RequestHead::of(&request));
        let names = explained.limits.into_iter().map(|limit| limit.name);
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.join(" ")
    };
    let users = axum::Router::new().fallback(names);
    let app = axum::Router::new().nest("/api", users);
    let names = async |id: u8| {
        let request =
            request(&format!("/api/users/{id}"), "ann").map(|()| axum::body::Body::empty());
        let response = app.clone().oneshot(request).await.unwrap();
        let names = axum::body::to_bytes(response.into_body(), 1_000).await;
        String::from_utf8(names.unwrap().to_vec()).unwrap()
    };
    assert_eq!(names(7).await, "all call original present regex");
    // An exemption must match the entire path.
    assert_eq!(names(8).await, "all call original present");
    assert_eq!(names(9).await, "");
}

#[tokio::test]
async fn layer_counts_by_quota_of_tier() {
    let text = "
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 2/minute }]
tiers: { pro: { limits: { minute: 4/minute } }, inner: { limits: { minute: unlimited } } }
assign: [{ key: \"pro_*\", tier: pro }]
overrides: { pro_7: { tier: inner } }
";
    let layer = RateLimitLayer::new(MemoryStore::new(), rules(text).policy());
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    let service = layer.layer(inner);
    for (api_key, admitted) in [("free_1", 2), ("pro_1", 4), ("pro_2", 4)] {
        for _ in 0..admitted {
            assert_eq!(
                service
                    .clone()
                    .oneshot(request("/", api_key))
                    .await
                    .unwrap()
                    .status(),
                StatusCode::OK
            );
        }
        let refused = service
            .clone()
            .oneshot(request("/", api_key))
            .await
            .unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{api_key}");
    }
    for _ in 0..9 {
        assert_eq!(
            service
                .clone()
                .oneshot(request("/", "pro_7"))
                .await
                .unwrap()
                .status(),
            StatusCode::OK
        );
    }
}

#[test]
fn code_assigns_tier_before_patterns() {
    let rules = rules(GATEWAY);
    let mut request = request("/v1/users", "sk_free_1");
    assert_eq!(limits(&rules, &request).1.as_deref(), Some("free"));
    request.extensions_mut().insert(Tier::new("pro"));
    assert_eq!(limits(&rules, &request).1.as_deref(), Some("pro"));
    request.extensions_mut().insert(Tier::new("no-such-tier"));
    assert_eq!(limits(&rules, &request).1.as_deref(), Some("free"));
}

#[test]
fn header_cannot_pose_as_overridden_address() {
    let text = "
defaults: { key: [header x-api-key, client_ip] }
limits: [{ name: minute, quota: 2/minute }]
overrides: { 45.66.77.88: { limits: { minute: unlimited } } }
";
    let rules = rules(text);
    // The text "-BMX" has the same bytes as the address.
    assert_eq!(limits(&rules, &request("/", "-BMX")).0, ["minute 2/minute"]);
    let owner = Request::get("/")
        .extension(IpAddr::from([45, 66, 77, 88]))
        .body(())
        .unwrap();
    assert!(limits(&rules, &owner).0.is_empty());
}

#[test]
fn code_gives_keys_costs_and_conditions() {
    let parts = CodeParts::new()
        .key(
            "tenant",
            key::from_fn("tenant", |head| {
                Some(head.headers().get("tenant")?.as_bytes().to_vec())
            }),
        )
        .cost("units", |head| {
            head.uri().path().len().try_into().unwrap_or(u64::MAX)
        })
        .condition("internal", |head| head.headers().contains_key("x-internal"));
    let text = "
limits: [{ name: all, quota: 100/minute, key: code tenant, cost: code units }]
routes: [{ match: { code: internal }, limits: [{ name: internal, quota: 7/minute, key: none }] }]
";
    let rules = Rules::parse_with(text, &parts).unwrap();
    let request = Request::get("/abc")
        .header("tenant", "acme")
        .header("x-internal", "1")
        .body(())
        .unwrap();
    let explanation = rules.explain_with_keys(&RequestHead::of(&request));
    let found: Vec<_> = explanation
        .limits
        .iter()
        .map(|limit| (&*limit.name, &*limit.key, limit.cost))
        .collect();
    assert_eq!(found, [("all", "acme", 4), ("internal", "", 1)]);
    let missing = Rules::parse(text).unwrap_err().to_string();
    for name in ["tenant", "internal"] {
        assert!(missing.contains(name), "{missing}");
    }
}

#[test]
fn keys_are_hashed_unless_asked() {
    let rules = rules("limits: [{ name: minute, quota: 2/minute }]");
    let request = request("/", "x");
    let key = |explanation: tower_quota_rules::Explanation| explanation.limits[0].key.clone();
    let hashed = key(rules.explain(&RequestHead::of(&request)));
    assert!(hashed.len() == 16 && !hashed.contains('.'), "{hashed}");
    assert_eq!(hashed, key(rules.explain(&RequestHead::of(&request))));
    assert_eq!(
        key(rules.explain_with_keys(&RequestHead::of(&request))),
        "203.0.113.7"
    );
}

#[test]
fn invalid_references_are_all_reported() {
    let text = "
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 2/minute }]
tiers: { pro: { extends: plus, limits: { hour: 1/hour } }, a: { extends: b }, b: { extends: a } }
assign: [{ key: x, tier: gold }]
overrides: { k: { tier: silver, limits: { day: 1/day } } }
";
    let problems = Rules::parse(text).unwrap_err().to_string();
    for wrong in ["plus", "hour", "extends itself", "gold", "silver"] {
        assert!(problems.contains(wrong), "{wrong}: {problems}");
    }
}

#[test]
fn document_and_code_give_one_policy() {
    let document = rules(
        "limits: [{ name: minute, quota: 100/minute burst 20, key: [header x-api-key, client_ip] }]",
    );
    let code = Policy::new().limit(
        Limit::new("minute", Quota::per_minute(100).burst(20))
            .by(key::header("x-api-key").or(key::client_ip())),
    );
    let request = request("/", "ann");
    let head = RequestHead::of(&request);
    let limits = |policy: &Policy| match policy.explainer().explain(&head) {
        Explained::Limited(limits) => limits,
        other => panic!("{other:?}"),
    };
    assert_eq!(limits(&document.policy()), limits(&code));
}

#[test]
fn own_test_may_give_key_of_code() {
    let text = r#"
limits: [{ name: minute, quota: 1/minute, key: code tenant }]
tiers: { pro: { limits: { minute: 9/minute } } }
defaults: { key: code tenant }
assign: [{ key: "pro-*", tier: pro }]
tests:
  - { request: { keys: { code tenant: pro-y } }, expect: { tier: pro, limits: { minute: 9/minute } } }
  - { request: { keys: { code tenant: free-y } }, expect: { outcome: counted, limits: { minute: 1/minute } } }
"#;
    let parts = CodeParts::new().key("tenant", key::from_fn("tenant", |_| None::<String>));
    let rules = Rules::parse_with(text, &parts).unwrap();
    let report = rules.test();
    assert_eq!((report.passed, report.failures.len()), (2, 0), "{report}");
}
