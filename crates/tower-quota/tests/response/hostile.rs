//! Every request gets a response, for any input.

use http::{HeaderName, HeaderValue, Method, Request, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use tower_quota::key::{Proxies, Source};
use tower_quota::{MissingKey, Policy, Protocol, cost, key, settle, when};

use crate::shared::{Answer, Limited, field, per_minute, text};

/// Returns a policy with every kind of extractor, condition and cost.
fn limited() -> Limited {
    let client = key::client_ip().behind(Proxies::hops(1), Source::XForwardedFor);
    let limit = |name: &'static str| per_minute(name, 2);
    let policy = Policy::new()
        .allow(when::key_in(key::bearer(), ["s3cret"]))
        .block(when::path("/a/{*rest}"))
        .block(when::address_in(client.clone(), ["203.0.113.0/24"]))
        .skip(when::host("*.example.com"))
        .limit(
            limit("client")
                .by(client)
                .when_missing(MissingKey::ShareOneCounter)
                .cost_with(cost::header("x-cost", 1)),
        )
        .limit(
            limit("cookie")
                .by(key::cookie("session"))
                .when_missing(MissingKey::ShareOneCounter)
                .cost_with(cost::body_size(1_000, 1))
                .at_most(),
        )
        .limit(
            limit("query")
                .by(key::query("a"))
                .when_missing(MissingKey::ShareOneCounter)
                .settle(settle::only_failures())
                .unless(when::grpc_service("a")),
        )
        .limit(
            limit("all")
                .by(key::all((key::basic_user(), key::path_segment(1))))
                .when_missing(MissingKey::Skip),
        );
    Limited::with(policy, |layer| layer.protocol(Protocol::Both))
}

const NAMES: [&str; 10] = [
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "forwarded",
    "host",
    "te",
    "x-cost",
    "x-forwarded-for",
    "x-id-bin",
];

fn line() -> impl Strategy<Value = Vec<u8>> {
    let telling = prop_oneof![
        Just("application/grpc+proto").boxed(),
        Just("application/grpc-web-text").boxed(),
        Just("Basic YTpi").boxed(),
        Just("session=a; session=b").boxed(),
        Just("trailers").boxed(),
        Just("18446744073709551616").boxed(),
        Just("for=\"[::1]\"").boxed(),
    ];
    prop_oneof![
        telling.prop_map(|text| text.as_bytes().to_vec()),
        vec(prop_oneof![0x20_u8..0x7f, 0x80_u8..=0xff], 0..80)
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::GET),
        Just(Method::HEAD),
        Just(Method::OPTIONS),
        Just(Method::POST),
        Just(Method::CONNECT)
    ]
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![
        Just(Version::HTTP_09),
        Just(Version::HTTP_10),
        Just(Version::HTTP_11),
        Just(Version::HTTP_2)
    ]
}

/// Asserts the invariants of every response.
async fn assert_sound(response: Answer, is_head: bool) {
    let status = response.status().as_u16();
    assert!([200, 400, 403, 429].contains(&status), "{status}");
    for lines in ["ratelimit", "ratelimit-policy", "retry-after"] {
        assert!(
            field(&response, lines).is_none_or(|line| line.len() < 500),
            "{lines}"
        );
    }
    let is_refused = status != 200 || field(&response, "grpc-status").is_some();
    let length = field(&response, "content-length");
    let body = text(response).await;
    assert_eq!(body == "inner", !is_refused);
    assert!(body.len() < 1_000);
    assert!(!is_head || !is_refused || (body.is_empty() && length.is_some()));
}

proptest! {
    #[test]
    fn every_request_gets_a_response(
        path in "/[!-~]{0,30}",
        method in method(),
        version in version(),
        lines in vec((prop::sample::select(NAMES.to_vec()), line()), 0..12),
    ) {
        let mut request = Request::builder().method(method.clone()).version(version).uri(path);
        for (name, line) in lines {
            request = request.header(HeaderName::from_static(name), HeaderValue::from_bytes(&line).unwrap());
        }
        // Not every text is a valid target.
        if request.uri_ref().is_none() {
            return Ok(());
        }
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            let (limited, request) = (limited(), request.body(()).unwrap());
            for _ in 0..3 {
                let mut again = Request::builder().method(method.clone()).version(version).uri(request.uri());
                again.headers_mut().unwrap().extend(request.headers().clone());
                assert_sound(limited.send(again).await, method == Method::HEAD).await;
            }
        });
    }
}

#[tokio::test]
async fn megabytes_of_headers_get_responses() {
    let piles = [
        ("cookie", "session=%61; ".repeat(20_000)),
        ("cookie", ";=".repeat(200_000)),
        ("x-forwarded-for", ",".repeat(500_000)),
        ("x-forwarded-for", "10.0.0.1, ".repeat(50_000)),
        ("authorization", format!("Basic {}", "A".repeat(500_000))),
        ("host", "]:@.".repeat(100_000)),
        ("content-length", "9".repeat(500_000)),
        ("x-cost", "0".repeat(500_000)),
    ];
    for (name, line) in piles {
        let limited = limited();
        for _ in 0..3 {
            let request = Request::get("/?a=b")
                .header(name, &line)
                .header(name, &line);
            assert_sound(limited.send(request).await, false).await;
        }
    }
}
