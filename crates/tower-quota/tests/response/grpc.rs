//! Refusals of gRPC requests.

use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use tower::Layer;
use tower_quota::{
    Limit, MemoryStore, MissingKey, OnStoreFailure, Policy, Protocol, Quota, RateLimitLayer, key,
    response::GrpcStatus,
};

use crate::shared::{
    Answer, Inner, Limited, answer_to, assert_field, assert_no_field, failing_store, field,
    per_minute, policy_of, stopped_store,
};

fn call(content_type: &str) -> http::request::Builder {
    Request::post("/echo.Echo/Say")
        .version(Version::HTTP_2)
        .header("content-type", content_type)
}

fn both(policy: Policy) -> Limited {
    Limited::with(policy, |layer| layer.protocol(Protocol::Both))
}

/// Returns the response to a second call under a limit of one.
async fn refused(call: impl Fn() -> http::request::Builder) -> Answer {
    let limited = both(once());
    limited.send(call()).await;
    limited.send(call()).await
}

fn once() -> Policy {
    policy_of(Limit::new("100%", Quota::per_minute(40).burst(1)))
}

#[tokio::test]
async fn refusal_is_trailers_only() {
    let limited = Limited::with(once(), |layer| {
        layer
            .protocol(Protocol::Both)
            .on_refused(|_| -> Response<&'static str> { panic!("gRPC is answered in its own way") })
    });
    limited.send(call("application/grpc")).await;
    let response = limited.send(call("application/grpc+proto")).await;
    assert_eq!(response.status(), 200);
    assert_field(&response, "content-type", "application/grpc+proto");
    assert_field(&response, "grpc-status", "8");
    assert_field(
        &response,
        "grpc-message",
        r#"Over the limit "100%25": retry in 2 seconds."#,
    );
    assert_field(&response, "grpc-retry-pushback-ms", "1500");
    assert_field(&response, "retry-after", "2");
    assert_field(&response, "cache-control", "no-store");
    assert_field(&response, "ratelimit", r#""100%";r=0;t=2"#);
    assert!(
        response
            .extensions()
            .get::<tower_quota::Decision>()
            .is_some()
    );
    assert!(response.body().is_end_stream());
}

#[tokio::test]
async fn cost_above_capacity_is_not_retried() {
    let limited = both(policy_of(per_minute("units", 1).cost_with(|_| 2)));
    let response = limited.send(call("application/grpc")).await;
    assert_field(&response, "grpc-status", "3");
    assert_field(&response, "grpc-retry-pushback-ms", "-1");
    assert_no_field(&response, "retry-after");
}

#[tokio::test]
async fn missing_key_is_an_invalid_argument() {
    let tenant = key::from_fn("tenant é", |_| None::<String>);
    let limit = per_minute("one", 1)
        .by(tenant)
        .when_missing(MissingKey::Refuse);
    let response = both(policy_of(limit)).send(call("application/grpc")).await;
    assert_eq!(response.status(), 200);
    assert_field(&response, "grpc-status", "3");
    assert_field(
        &response,
        "grpc-message",
        "The request cannot be counted: it has no tenant %C3%A9.",
    );
}

#[tokio::test]
async fn store_failure_is_unavailable() {
    let policy = once().on_store_failure(OnStoreFailure::Refuse);
    let service = RateLimitLayer::new(failing_store(), policy)
        .protocol(Protocol::Both)
        .layer(Inner::default());
    let response = answer_to(&service, call("application/grpc").body(()).unwrap()).await;
    assert_eq!(response.status(), 200);
    assert_field(&response, "grpc-status", "14");
    assert_field(&response, "grpc-retry-pushback-ms", "1000");
}

#[tokio::test]
async fn content_type_is_a_known_one() {
    for (sent, answered) in [
        ("application/grpc", "application/grpc"),
        ("APPLICATION/gRPC", "application/grpc"),
        ("application/grpc; charset=utf-8", "application/grpc"),
        ("application/grpc+thrift", "application/grpc"),
        ("application/grpc-web", "application/grpc-web"),
        ("application/grpc-web+proto", "application/grpc-web+proto"),
        ("application/grpc-web-text", "application/grpc-web-text"),
        (
            "application/grpc-web-text+proto",
            "application/grpc-web-text+proto",
        ),
        ("application/grpcurl", "application/problem+json"),
        ("application/json", "application/problem+json"),
    ] {
        let response = refused(|| call(sent)).await;
        assert_eq!(
            field(&response, "content-type").as_deref(),
            Some(answered),
            "{sent}"
        );
    }
}

#[tokio::test]
async fn only_possible_calls_are_answered_in_grpc() {
    for (method, version) in [
        (Method::GET, Version::HTTP_2),
        (Method::HEAD, Version::HTTP_2),
        (Method::PUT, Version::HTTP_2),
        (Method::GET, Version::HTTP_11),
        (Method::HEAD, Version::HTTP_11),
        (Method::POST, Version::HTTP_11),
        (Method::POST, Version::HTTP_10),
    ] {
        let response = refused(|| call("application/grpc").method(&method).version(version)).await;
        assert_eq!(response.status(), 429, "{method} {version:?}");
        assert_field(&response, "content-type", "application/problem+json");
        assert_field(&response, "cache-control", "no-store");
        assert_no_field(&response, "grpc-status");
    }
    let response = refused(|| call("application/grpc").version(Version::HTTP_3)).await;
    assert_field(&response, "grpc-status", "8");
    // A request as an outer translator of gRPC-Web passes it on.
    let response = refused(|| {
        call("application/grpc")
            .version(Version::HTTP_11)
            .header("te", "trailers")
    })
    .await;
    assert_field(&response, "grpc-status", "8");
}

#[tokio::test]
async fn grpc_web_is_posted_over_any_version() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for content_type in ["application/grpc-web", "application/grpc-web-text+proto"] {
            let response = refused(|| call(content_type).version(version)).await;
            assert_eq!(response.status(), 200, "{content_type} {version:?}");
            assert_field(&response, "content-type", content_type);
            assert_field(&response, "grpc-status", "8");
            assert_field(&response, "cache-control", "no-store");
            assert!(response.body().is_end_stream());

            let response =
                refused(|| call(content_type).method(Method::GET).version(version)).await;
            assert_eq!(response.status(), 429, "{content_type} {version:?}");
        }
    }
}

#[tokio::test]
async fn protocol_decides_form_of_refusals() {
    for (protocol, content_type, expected) in [
        (
            Protocol::Auto,
            "application/grpc",
            "application/problem+json",
        ),
        (
            Protocol::Http,
            "application/grpc",
            "application/problem+json",
        ),
        (Protocol::Both, "application/grpc", "application/grpc"),
        (Protocol::Both, "text/plain", "application/problem+json"),
        (
            Protocol::Grpc,
            "application/grpc+proto",
            "application/grpc+proto",
        ),
        (Protocol::Grpc, "text/plain", "application/grpc"),
    ] {
        let limited = Limited::with(once(), |layer| layer.protocol(protocol));
        limited.send(call(content_type)).await;
        let response = limited.send(call(content_type)).await;
        assert_eq!(
            field(&response, "content-type").as_deref(),
            Some(expected),
            "{protocol:?} {content_type}"
        );
        assert_eq!(
            response.status() == 200,
            field(&response, "grpc-status").is_some()
        );
    }
}

/// Calls both layers, and returns the statuses of their refusals over HTTP.
async fn refused_by(layers: [RateLimitLayer<MemoryStore>; 2]) -> [StatusCode; 2] {
    let [first, second] = layers.map(|layer| layer.layer(Inner::default()));
    let get = || Request::get("/").body(()).unwrap();
    assert_eq!(answer_to(&first, get()).await.status(), 200);
    [
        answer_to(&first, get()).await.status(),
        answer_to(&second, get()).await.status(),
    ]
}

#[tokio::test]
async fn layers_on_one_store_keep_settings() {
    let store = stopped_store();
    let http = RateLimitLayer::new(store.clone(), once());
    let grpc = RateLimitLayer::new(store, once()).protocol(Protocol::Grpc);
    let statuses = refused_by([http, grpc]).await;
    assert_eq!(statuses, [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK]);
}

#[tokio::test]
async fn clone_of_layer_has_its_own_protocol() {
    let store = stopped_store();
    let layer = RateLimitLayer::new(store, once());
    let clone = layer.clone().protocol(Protocol::Grpc);
    let statuses = refused_by([layer, clone]).await;
    assert_eq!(statuses, [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK]);
}

#[tokio::test]
async fn status_and_message_can_be_changed() {
    let limited = Limited::with(once(), |layer| {
        layer.protocol(Protocol::Grpc).on_refused_grpc(|refused| {
            let seconds = refused.retry_after_secs().unwrap_or_default();
            GrpcStatus::new(14, format!("Back in {seconds} s"))
        })
    });
    limited.get().await;
    let response = limited.get().await;
    assert_field(&response, "grpc-status", "14");
    assert_field(&response, "grpc-message", "Back in 2 s");
    let status = tonic::Status::from_header_map(response.headers()).unwrap();
    assert!(
        tonic_types::StatusExt::get_error_details(&status)
            .retry_info()
            .is_some()
    );
}

#[test]
fn code_outside_of_errors_becomes_unknown() {
    assert_eq!(
        [-1, 0, 1, 16, 17, 99].map(|code| GrpcStatus::new(code, "").code()),
        [2, 2, 1, 16, 2, 2]
    );
}

#[cfg(feature = "tonic")]
#[tokio::test]
async fn tonic_status_can_be_returned() {
    let limited = Limited::with(once(), |layer| {
        layer.protocol(Protocol::Grpc).on_refused_grpc(|refused| {
            let mut status = tonic::Status::with_details(
                tonic::Code::Aborted,
                refused.detail(),
                "details".into(),
            );
            let metadata = status.metadata_mut();
            metadata.insert("x-hint", "slow down".parse().unwrap());
            metadata.insert("grpc-retry-pushback-ms", "7".parse().unwrap());
            status
        })
    });
    limited.get().await;
    let response = limited.get().await;
    let status = tonic::Status::from_header_map(response.headers()).unwrap();
    assert_eq!(
        (status.code(), status.details()),
        (tonic::Code::Aborted, &b"details"[..])
    );
    assert_field(&response, "x-hint", "slow down");
    assert_field(&response, "retry-after", "2");
    let push_back = field(&response, "grpc-retry-pushback-ms");
    assert_eq!(push_back.as_deref(), Some("7"));
}

#[cfg(feature = "tonic")]
#[tokio::test]
async fn decision_makes_the_status_of_the_layer() {
    use tower_quota::{Decision, Refused};

    let limited = Limited::with(once(), |layer| layer.protocol(Protocol::Grpc));
    limited.get().await;
    let response = limited.get().await;
    let of_layer = tonic::Status::from_header_map(response.headers()).unwrap();
    let decision = crate::shared::decision_of(&response);

    let refused = Refused::of(decision).unwrap();
    let status = tonic::Status::from(GrpcStatus::of(&refused));
    assert_eq!(
        (status.code(), status.message(), status.details()),
        (of_layer.code(), of_layer.message(), of_layer.details())
    );
    assert!(!status.details().is_empty());
    assert_eq!(
        status.metadata().get("grpc-retry-pushback-ms"),
        of_layer.metadata().get("grpc-retry-pushback-ms")
    );
    assert!(Refused::of(&Decision::default()).is_none());
}
