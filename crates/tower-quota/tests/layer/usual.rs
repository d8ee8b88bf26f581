//! Answers that are made ahead say what answers say that are made at length, as all are where somebody listens.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, key};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Answer, text};

type Fields = &'static [(&'static str, &'static str)];

/// Sends a request again and again through one policy in two layers, of which one has a listener, before a service that
/// writes these fields. Both must answer the same; the statuses and the bodies are handed back.
async fn answers(policy: fn() -> Policy, foreign: Fields, request: fn() -> Request<()>) -> Vec<(StatusCode, String)> {
    let clock = ManualClock::default();
    let layer = || RateLimitLayer::new(MemoryStore::with_clock(100, clock.clone()), policy());
    let inner = service_fn(move |_: Request<()>| {
        let mut response = Response::new(Full::<Bytes>::from("inner"));
        for (name, value) in foreign {
            response.headers_mut().append(*name, value.parse().unwrap());
        }
        ready(Ok::<_, Infallible>(response))
    });
    let (ahead, at_length) = (layer().layer(inner), layer().on_decision(|_| {}).layer(inner));
    let mut answers = Vec::new();
    for millis in [0, 0, 1, 400, 20, 0, 0, 600, 30_000, 0, 0, 20_000] {
        clock.advance(Duration::from_millis(millis));
        let ahead = ahead.clone().oneshot(request()).await.unwrap();
        let at_length = at_length.clone().oneshot(request()).await.unwrap();
        assert_eq!(lines(&ahead), lines(&at_length), "{millis}");
        assert_eq!(ahead.status(), at_length.status());
        let (status, body) = (ahead.status(), text(ahead).await);
        assert_eq!(body, text(at_length).await);
        answers.push((status, body));
    }
    answers
}

/// The fields by their names, those of one name in their order.
fn lines(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
    let mut lines: Vec<_> = answer.headers().iter().map(line).collect();
    lines.sort_by(|(one, _), (other, _)| one.cmp(other));
    lines
}

fn count(answers: &[(StatusCode, String)], status: u16) -> usize {
    answers.iter().filter(|(told, _)| *told == status).count()
}

fn one() -> Policy {
    Policy::new().limit(Limit::new("say \"when\"", Quota::per_second(2)))
}

/// Of these now one refuses, now two, now all.
fn three() -> Policy {
    Policy::new()
        .limit(Limit::new("second", Quota::per_second(2)))
        .limit(Limit::new("ten", Quota::new(2, Duration::from_secs(10))))
        .limit(Limit::new("hour", Quota::per_hour(4)))
}

fn get() -> Request<()> {
    Request::new(())
}

#[tokio::test]
async fn one_limit_and_several() {
    for policy in [one, three] {
        let answers = answers(policy, &[], get).await;
        assert!(count(&answers, 200) > 2 && count(&answers, 429) > 2, "{answers:?}");
    }
    let answers = answers(three, &[], get).await;
    for limits in ["\"ten\"", "\"second\",\"ten\"", "\"second\",\"ten\",\"hour\"", "\"hour\""] {
        let end = format!("\"violated-policies\":[{limits}]}}");
        assert!(answers.iter().any(|(_, body)| body.ends_with(&end)), "{limits}: {answers:?}");
    }
}

#[tokio::test]
async fn fields_that_are_there_already() {
    for foreign in [
        &[("content-type", "text/plain"), ("vary", "origin")] as Fields,
        &[("ratelimit", "\"in\";r=3;t=9"), ("ratelimit-policy", "\"in\";q=5;w=9")],
        &[("ratelimit", "limit=5, remaining=3, reset=9"), ("ratelimit-policy", "5;w=9")],
        &[("ratelimit-policy", "\"in\";q=5;w=9"), ("x-ratelimit-remaining", "3")],
    ] {
        answers(three, foreign, get).await;
    }
}

#[tokio::test]
async fn requests_that_want_another_answer() {
    for request in [
        || Request::builder().method(Method::HEAD).body(()).unwrap(),
        || {
            Request::post("/a.B/C")
                .version(Version::HTTP_2)
                .header("content-type", "application/grpc")
                .body(())
                .unwrap()
        },
        || Request::get("/").header("accept", "*/*").body(()).unwrap(),
        || Request::get("/").header("accept", "text/html").header("accept", "*/*").body(()).unwrap(),
        || Request::get("/").header("accept", "text/plain").body(()).unwrap(),
    ] as [fn() -> Request<()>; 5]
    {
        answers(three, &[], request).await;
    }
}

#[tokio::test]
async fn limits_that_do_not_all_apply_or_are_of_several_kinds() {
    let policies: [fn() -> Policy; 5] = [
        || three().limit(Limit::new("posts", Quota::per_hour(1)).when(|head| head.method() == Method::POST)),
        || three().limit(Limit::new("shadow", Quota::per_hour(1)).shadow()),
        || three().limit(Limit::new("keyed", Quota::per_hour(3)).by(key::header("k")).when_missing(MissingKey::Skip)),
        || Policy::new().limit(Limit::new("keyed", Quota::per_hour(3)).by(key::header("k"))),
        || three().limit(Limit::new("large", Quota::per_hour(3)).cost_with(|_| 4)),
    ];
    for policy in policies {
        answers(policy, &[], get).await;
    }
}

#[tokio::test]
async fn keys_that_are_missing() {
    fn keyed(missing: MissingKey) -> Limit {
        Limit::new("keyed", Quota::per_hour(3)).by(key::header("k")).when_missing(missing)
    }
    let refusing = answers(|| Policy::new().limit(keyed(MissingKey::Refuse)), &[], get).await;
    assert_eq!(count(&refusing, 400), refusing.len());
    let skipping = answers(|| Policy::new().limit(keyed(MissingKey::Skip)), &[], get).await;
    assert_eq!(count(&skipping, 200), skipping.len());
    let sharing = answers(|| Policy::new().limit(keyed(MissingKey::Share)), &[], get).await;
    assert_eq!(count(&sharing, 200), 3);
    let mixed = || {
        let other = Limit::new("other", Quota::per_hour(2)).by(key::header("k")).when_missing(MissingKey::Share);
        Policy::new().limit(keyed(MissingKey::Skip)).limit(other)
    };
    assert_eq!(count(&answers(mixed, &[], get).await, 200), 2);
}
