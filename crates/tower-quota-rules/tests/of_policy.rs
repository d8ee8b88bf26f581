//! Policies built in code, printed as documents, loaded, and compared with what they were.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderName, Method, Request};
use proptest::collection::vec;
use proptest::prelude::*;
use tower_quota::key::{KeyExtractor, Proxies, Source};
use tower_quota::settle::{self, Settle};
use tower_quota::when::Condition;
use tower_quota::{
    Described, Explained, Limit, MissingKey, Name, OnStoreFailure, Penalty, Policy, Quota,
    RequestHead, cost, key, when,
};
use tower_quota_rules::{CodeParts, Document, Format, PolicyPrintError, Rules};

fn client_ip() -> key::ClientIp {
    key::client_ip().behind(
        Proxies::networks(["10.0.0.0/8", "192.0.2.7"]),
        Source::XForwardedFor,
    )
}

fn extractor(number: u8) -> Box<dyn KeyExtractor> {
    match number % 12 {
        0 => Box::new(key::everyone()),
        1 => Box::new(client_ip()),
        2 => Box::new(client_ip().prefix_v6(48).prefix_v4(24)),
        3 => Box::new(key::header("x-api-key").or(client_ip())),
        4 => Box::new(key::all((client_ip(), key::method(), key::path_segment(1)))),
        5 => Box::new(key::bearer()),
        6 => Box::new(key::basic_user()),
        7 => Box::new(key::cookie("session id")),
        8 => Box::new(key::query("api_key")),
        9 => Box::new(key::host()),
        10 => Box::new(key::grpc_method()),
        _ => Box::new(key::metadata("x-tenant").or(key::path())),
    }
}

fn condition(number: u8) -> Box<dyn Condition> {
    match number % 12 {
        0 => when::path("/v1/users/{id}"),
        1 => when::method([Method::GET, Method::POST]),
        2 => when::host("*.example.com"),
        3 => when::grpc_service("pkg.Service"),
        4 => when::grpc_method("pkg.Service/Call"),
        5 => when::cors_preflight(),
        6 => when::address_in(
            client_ip(),
            ["203.0.113.0/24", "2001:db8::/32", "203.0.113.7"],
        ),
        7 => when::key_in(key::header("x-api-key"), ["one*", "t?w\\o"]),
        8 => when::not(when::any([
            when::path("/healthz"),
            when::method([Method::PUT]),
        ])),
        9 => when::every([when::path("/v1/{*rest}"), when::method([Method::GET])]),
        10 => when::every([when::not(when::path("/a")), when::not(when::path("/b"))]),
        _ => when::any([
            when::path("/login"),
            when::every([when::path("/v1/{*rest}"), when::host("example.com")]),
        ]),
    }
}

fn limit(at: usize, numbers: &[u8; 8]) -> Limit {
    let [by, conditions, first, other, costs, settles, flags, choices] = *numbers;
    let quota = match choices % 5 {
        0 => Quota::per_minute(100),
        1 => Quota::per_second(10).burst(200),
        2 => Quota::per_second(5).leaky_bucket(),
        3 => Quota::new(500, Duration::from_secs(900)).sliding_log(),
        _ => Quota::per_hour(1_000)
            .fixed_window()
            .offset(Duration::from_secs(60)),
    };
    let mut limit = Limit::new(format!("limit {at}"), quota).by(extractor(by));
    if conditions % 3 > 0 {
        limit = limit.when(condition(first));
    }
    if conditions % 3 == 2 {
        limit = limit
            .unless(condition(other))
            .when(condition(other.wrapping_add(1)));
    }
    limit = match costs % 4 {
        0 => limit,
        1 => limit.cost(3),
        2 => limit.cost_with(cost::header("x-cost", 2)),
        _ => limit.cost_with(cost::body_size(1_000, 4)).unit("kilobytes"),
    };
    limit = match settles % 7 {
        0 | 1 => limit,
        2 => limit
            .settle(settle::by_handler())
            .on_abandoned(Settle::Cost(7)),
        3 => limit.settle(settle::only_failures()),
        4 => limit
            .settle(settle::only_successes())
            .on_abandoned(Settle::Refund),
        5 => limit.settle(settle::cost_header("x-cost")),
        _ => limit.settle(settle::body_bytes(9).cut_when_spent()),
    };
    if flags & 1 > 0 {
        limit = limit.shadow();
    }
    if flags & 2 > 0 {
        limit = limit.exact().count_refusals();
    }
    if flags & 4 > 0 {
        let penalty = Penalty::after(20)
            .step(Duration::from_secs(30))
            .most(Duration::from_secs(600));
        limit = limit.when_missing(MissingKey::Refuse).penalty(penalty);
    }
    if flags & 8 > 0 && choices % 5 < 3 {
        limit = limit
            .max_wait(Duration::from_secs(4))
            .wait_jitter(Duration::from_millis(20));
    }
    match choices % 4 {
        0 => limit.on_store_failure(OnStoreFailure::Refuse),
        1 => limit.on_store_failure(OnStoreFailure::Local),
        _ => limit,
    }
}

fn policy(limits: &[[u8; 8]], lists: [u8; 3]) -> Policy {
    let mut policy = Policy::new()
        .instances(2)
        .on_store_failure(OnStoreFailure::Refuse);
    for (at, numbers) in limits.iter().enumerate() {
        policy = policy.limit(limit(at, numbers));
    }
    policy = policy.skip(condition(lists[0])).skip(condition(lists[1]));
    if lists[2].is_multiple_of(2) {
        policy
            .block(condition(lists[2]))
            .allow(when::path("/allowed"))
    } else {
        policy
    }
}

/// Returns requests that differ in what keys and conditions read.
fn requests() -> Vec<Request<()>> {
    let mut requests = Vec::new();
    for path in [
        "/v1/users/7?api_key=a",
        "/login",
        "/healthz",
        "/pkg.Service/Call",
        "/allowed",
        "/a",
    ] {
        for (method, host) in [
            (Method::GET, "example.com"),
            (Method::POST, "api.example.com"),
            (Method::PUT, "other"),
        ] {
            for (name, value) in [
                ("x-api-key", "one*"),
                ("x-api-key", "oneself"),
                ("x-cost", "5"),
                ("origin", "there"),
            ] {
                for peer in ["203.0.113.9", "10.1.1.1", "2001:db8::1"] {
                    let request = Request::builder()
                        .method(&method)
                        .uri(path)
                        .header("host", host);
                    let request = request
                        .header(HeaderName::from_static(name), value)
                        .header("x-forwarded-for", "198.51.100.4");
                    requests.push(
                        request
                            .extension(peer.parse::<IpAddr>().unwrap())
                            .body(())
                            .unwrap(),
                    );
                }
            }
        }
    }
    requests
}

/// Leaves out the order of the limits, which is that in which the policy finds them.
fn in_order(mut explained: Explained) -> Explained {
    match &mut explained {
        Explained::Limited(limits) => limits.sort_by_key(|limit| limit.name.as_str()),
        // The first of several keys that are missing.
        Explained::MissingKey(scope) => *scope = Name::new("any"),
        _ => {}
    }
    explained
}

/// Prints, loads and prints again, and compares what both policies do.
fn comes_back(policy: &Policy) -> Document {
    let document = Document::try_from(policy).unwrap();
    for format in Format::ALL {
        let text = document.to_text(format);
        let rules = Rules::parse(&text, format)
            .map_err(|problems| problems.render(&text, "printed"))
            .unwrap();
        assert_eq!(
            Document::try_from(&rules.policy()).as_ref(),
            Ok(&document),
            "{text}"
        );
        let (before, after) = (policy.explainer(), rules.policy().explainer());
        for request in requests() {
            let head = RequestHead::of(&request);
            let (before, after) = (
                in_order(before.explain(&head)),
                in_order(after.explain(&head)),
            );
            assert_eq!(before, after, "{request:?}\n{text}");
        }
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn policy_of_code_comes_back_alike(limits in vec(any::<[u8; 8]>(), 1..4), lists in any::<[u8; 3]>()) {
        comes_back(&policy(&limits, lists));
    }
}

#[test]
fn limit_of_code_joins_the_document() {
    let text = "client_ip: { prefix_v6: 56 }\nlimits: [{ name: minute, quota: 100/minute }]\ntiers: { pro: { limits: { minute: \
                unlimited } } }\nassign: [{ key: sk_*, tier: pro }]\nskip: [{ path: { regex: ^/health } }]\n";
    let rules = Rules::parse(text, Format::Yaml).unwrap();
    let added = rules
        .policy()
        .limit(Limit::new("day", Quota::per_day(9)).by(key::client_ip()))
        .skip(when::path("/x"));
    let document = comes_back(&added);
    assert_eq!(
        (
            document.limits.len(),
            document.skip.len(),
            document.tiers.len()
        ),
        (2, 2, 1)
    );
    assert_eq!(
        document.limits[1]
            .key
            .as_ref()
            .map(|key| format!("{key:?}"))
            .unwrap_or_default()
            .matches("64")
            .count(),
        1
    );
}

#[test]
fn named_parts_of_code_are_printed() {
    let has_beta = |head: &RequestHead<'_>| head.headers().contains_key("x-beta");
    let policy = Policy::new().limit(
        Limit::new("beta", Quota::per_minute(5))
            .by(key::from_fn("tenant", |head| {
                head.uri().host().map(String::from)
            }))
            .when(when::described(Described::code("is beta"), has_beta))
            .cost_with(cost::described(Described::code("words"), |_| 2)),
    );
    let document = Document::try_from(&policy).unwrap();
    let text = document.to_text(Format::Yaml);
    for expected in ["key: code tenant", "code: is beta", "cost: code words"] {
        assert!(text.contains(expected), "{text}");
    }
    let parts = CodeParts::new()
        .key("tenant", key::host())
        .condition("is beta", has_beta)
        .cost("words", |_| 2);
    assert!(Rules::with(document, &parts).is_ok());
}

#[test]
fn unnamed_parts_of_code_are_errors() {
    let minute = || Limit::new("minute", Quota::per_minute(5)).by(key::header("x-api-key"));
    let inner = when::path("/login");
    let month = Quota::per_month(5).calendar("UTC").unwrap();
    let cases: [(Policy, &str); 9] = [
        // A closure around a condition does something else, although it calls it.
        (
            Policy::new().limit(minute().when(move |head| !inner(head))),
            "condition",
        ),
        (
            Policy::new().limit(minute().when(when::not(|_: &RequestHead<'_>| true))),
            "condition",
        ),
        (Policy::new().limit(minute().cost_with(|_| 2)), "cost"),
        (Policy::new().limit(minute().quota_with(|_| None)), "quota"),
        (Policy::new().limit(Limit::new("month", month)), "quota"),
        (
            Policy::new().limit(minute().settle(|_: &http::response::Parts| Settle::Keep)),
            "settle rule",
        ),
        (
            Policy::new().choose([minute()], |_, chosen| chosen.add(0, None)),
            "choice of limits",
        ),
        (Policy::new().skip(|_: &RequestHead<'_>| true), "condition"),
        (
            Policy::new().split(|_: &RequestHead<'_>| true, Policy::new()),
            "split",
        ),
    ];
    for (policy, expected) in cases {
        let error = Document::try_from(&policy).unwrap_err();
        assert!(
            matches!(&error, PolicyPrintError::Code { part, .. } if *part == expected),
            "{error}"
        );
    }
    let proxies = |source| key::client_ip().behind(Proxies::hops(1), source);
    let policy = Policy::new()
        .limit(Limit::new("one", Quota::per_minute(5)).by(proxies(Source::XForwardedFor)))
        .limit(Limit::new("two", Quota::per_minute(5)).by(proxies(Source::XRealIp)));
    let error = Document::try_from(&policy).unwrap_err();
    assert!(
        matches!(&error, PolicyPrintError::Conflict { place, .. } if place == "limit \"two\""),
        "{error}"
    );
}
