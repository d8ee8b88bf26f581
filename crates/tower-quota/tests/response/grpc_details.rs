//! The details of a refused call's status, decoded by tonic and Google's message types.

use http::{Request, Version};
use prost::Message;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::Layer;
use tower_quota::{
    Limit, MemoryStore, MissingKey, Name, OnStoreFailure, Policy, Protocol, Quota, RateLimitLayer,
    key, store::Charge,
};

use crate::shared::{
    Answer, Inner, Limited, answer_to, assert_field, assert_no_field, failing_store, field, millis,
    per_hour, per_minute, policy_of, secs,
};

fn call() -> http::request::Builder {
    Request::post("/echo.Echo/Say")
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
}

/// Returns the status as a client decodes it, and asserts that both messages are equal.
fn status(response: &Answer) -> (Status, ErrorDetails) {
    let status = Status::from_header_map(response.headers()).unwrap();
    let (code, message, details) = (
        status.code(),
        status.message().to_owned(),
        status.get_error_details(),
    );
    let decoded = tonic_types::pb::Status::decode(status.details()).unwrap();
    assert_eq!((decoded.code, decoded.message), (code as i32, message));
    (status, details)
}

type Memory = RateLimitLayer<MemoryStore>;

/// Returns the status of the first call that is refused.
async fn refused(policy: Policy, change: fn(Memory) -> Memory) -> (Status, ErrorDetails) {
    let limited = Limited::with(policy, |layer| change(layer.protocol(Protocol::Both)));
    loop {
        let response = limited.send(call()).await;
        if field(&response, "grpc-status").is_some() {
            return status(&response);
        }
    }
}

/// Returns the subject, description, quota and value of each violation.
fn violations(details: &ErrorDetails) -> Vec<(&str, &str, &str, i64)> {
    let all = details.quota_failure().unwrap().violations.iter();
    all.map(|one| {
        (
            one.subject.as_str(),
            one.description.as_str(),
            one.quota_id.as_str(),
            one.quota_value,
        )
    })
    .collect()
}

#[tokio::test]
async fn details_have_wait_limits_and_reason() {
    let policy = policy_of(Limit::new("burst", Quota::per_minute(40).burst(1)))
        .limit(per_hour("roomy", 1_000))
        .limit(per_minute("% %", 1));
    let (status, details) = refused(policy, |layer| layer.grpc_domain("api.example.com")).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(
        status.message(),
        "Over the limits \"burst\" and \"% %\": retry in 60 seconds."
    );
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(secs(60)));
    assert_eq!(
        violations(&details),
        [
            ("limit:burst", "Over the limit \"burst\".", "burst", 1),
            ("limit:% %", "Over the limit \"% %\".", "% %", 1)
        ]
    );
    let info = details.error_info().unwrap();
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        ("RATE_LIMIT_EXCEEDED", "api.example.com")
    );
}

#[tokio::test]
async fn wait_below_a_second_is_exact() {
    let policy = policy_of(Limit::new("fast", Quota::per_second(8).burst(1)));
    let (_, details) = refused(policy, |layer| layer).await;
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(millis(125)));
    assert_eq!(details.error_info().unwrap().domain, "tower-quota");
}

#[tokio::test]
async fn cost_above_capacity_has_no_retry_info() {
    let policy = policy_of(per_minute("units", 300).cost_with(|_| 301));
    let (status, details) = refused(policy, |layer| layer).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(details.retry_info().is_none());
    assert_eq!(
        violations(&details),
        [(
            "limit:units",
            "The request costs more than the limit \"units\" can ever admit.",
            "units",
            300
        )]
    );
    assert_eq!(
        details.error_info().unwrap().reason,
        "COST_ABOVE_RATE_LIMIT"
    );
}

#[tokio::test]
async fn missing_key_is_no_quota_failure() {
    let limit = per_minute("one", 1)
        .by(key::header("x-api-key"))
        .when_missing(MissingKey::Refuse);
    let (status, details) = refused(policy_of(limit), |layer| layer).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(details.retry_info().is_none() && details.quota_failure().is_none());
    assert_eq!(
        details.error_info().unwrap().reason,
        "RATE_LIMIT_KEY_MISSING"
    );
}

#[tokio::test]
async fn unavailable_store_has_retry_info() {
    let policy = policy_of(per_minute("one", 1)).on_store_failure(OnStoreFailure::Refuse);
    let service = RateLimitLayer::new(failing_store(), policy)
        .protocol(Protocol::Both)
        .layer(Inner::default());
    let (status, details) = status(&answer_to(&service, call().body(()).unwrap()).await);
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(secs(1)));
    assert!(details.quota_failure().is_none());
    assert_eq!(
        details.error_info().unwrap().reason,
        "RATE_LIMIT_UNAVAILABLE"
    );
}

#[tokio::test]
async fn details_stay_small_for_any_policy() {
    let mut policy = Policy::new();
    for i in 0..Charge::MOST {
        policy = policy.limit(per_minute(format!("{i:03}{}", "%".repeat(61)), 1));
    }
    let both = |policy| Limited::with(policy, |layer| layer.protocol(Protocol::Both));
    let limited = both(policy);
    limited.send(call()).await;
    let response = limited.send(call()).await;
    let length = field(&response, "grpc-status-details-bin").unwrap().len();
    assert!((3_072..=4_096).contains(&length), "{length}");
    assert!(field(&response, "grpc-message").unwrap().len() <= 4_096);
    let (status, details) = status(&response);
    assert!(
        status
            .message()
            .ends_with(" and 27 others: retry in 60 seconds."),
        "{}",
        status.message()
    );
    assert!(details.quota_failure().unwrap().violations.len() >= 8);
    assert!(details.retry_info().is_some() && details.error_info().is_some());

    // A very long scope leaves no room for details: then only the code and the message are sent.
    let long = key::from_fn(Name::from("x".repeat(4_000)), |_| None::<String>);
    let limit = per_minute("one", 1)
        .by(long)
        .when_missing(MissingKey::Refuse);
    let response = both(policy_of(limit)).send(call()).await;
    assert_field(&response, "grpc-status", "3");
    assert_no_field(&response, "grpc-status-details-bin");
}
