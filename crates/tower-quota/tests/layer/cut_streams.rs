//! Bodies that are cut off at the end of their quota.

use std::convert::Infallible;

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Key, Limit, RateLimitLayer, settle};

use crate::settling_by_rule::Frames;
use crate::shared::{per_hour, policy_of, stopped_store};

/// Returns the length and trailers of a cut response, and the units that are left of 200.
///
/// The response has 30 frames of ten bytes.
async fn streamed(
    rule: settle::BodyBytes,
    content_type: &'static str,
) -> (usize, Option<HeaderMap>, u64) {
    streamed_in(vec!["0123456789"; 30], rule, content_type).await
}

async fn streamed_in(
    data: Vec<&'static str>,
    rule: settle::BodyBytes,
    content_type: &'static str,
) -> (usize, Option<HeaderMap>, u64) {
    limited_stream(
        per_hour("stream", 200).cost(1).settle(rule),
        data,
        content_type,
    )
    .await
}

async fn limited_stream(
    limit: Limit,
    data: Vec<&'static str>,
    content_type: &'static str,
) -> (usize, Option<HeaderMap>, u64) {
    let store = stopped_store();
    let layer = RateLimitLayer::new(store, policy_of(limit));
    let inner = service_fn(move |_: Request<()>| {
        let body = Frames {
            data: data.clone(),
            ..Frames::default()
        };
        async move {
            Ok::<_, Infallible>(
                Response::builder()
                    .header("content-type", content_type)
                    .body(body)
                    .unwrap(),
            )
        }
    });
    let response = layer.layer(inner).oneshot(Request::new(())).await.unwrap();
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned();
    let length = body.to_bytes().len();
    (
        length,
        trailers,
        layer
            .handle()
            .peek("stream", &Key::EVERYONE)
            .await
            .unwrap()
            .remaining(),
    )
}

#[tokio::test]
async fn uncut_stream_runs_into_debt() {
    let (length, trailers, left) = streamed(settle::body_bytes(1), "text/plain").await;
    assert_eq!((length, trailers, left), (300, None, 0));
}

#[tokio::test]
async fn cut_stream_ends_with_its_quota() {
    let (length, trailers, left) =
        streamed(settle::body_bytes(1).cut_when_spent(), "text/plain").await;
    assert_eq!((length, trailers, left), (200, None, 0));
}

#[tokio::test]
async fn cut_grpc_stream_says_resource_exhausted() {
    let (length, trailers, left) =
        streamed(settle::body_bytes(1).cut_when_spent(), "application/grpc").await;
    assert_eq!((length, left), (200, 0));
    assert_eq!(trailers.unwrap()["grpc-status"], "8");
}

#[tokio::test]
async fn stream_within_quota_is_complete() {
    let (length, _, left) = streamed(settle::body_bytes(2).cut_when_spent(), "text/plain").await;
    assert_eq!((length, left), (300, 50));
}

#[tokio::test]
async fn shadow_limit_cuts_no_stream() {
    let limit = per_hour("stream", 200)
        .cost(1)
        .settle(settle::body_bytes(1).cut_when_spent());
    let (length, trailers, left) =
        limited_stream(limit.shadow(), vec!["0123456789"; 30], "text/plain").await;
    assert_eq!((length, trailers, left), (300, None, 0));
}

/// A message of 55 bytes.
const MESSAGE: &str = "\0\0\0\0\x320123456789012345678901234567890123456789012345678901234567";

/// Asserts this for one frame with several messages, as servers send them.
#[tokio::test]
async fn cut_grpc_frame_keeps_complete_messages() {
    let message: &'static str = &MESSAGE[..55];
    let frame: &'static str = message.repeat(30).leak();
    let rule = || settle::body_bytes(1).cut_when_spent();
    let (length, trailers, left) =
        streamed_in(vec![message, frame], rule(), "application/grpc").await;
    assert_eq!((length, left), (165, 35));
    assert_eq!(trailers.unwrap()["grpc-status"], "8");
    // Other bodies have no messages.
    let (length, _, left) = streamed_in(vec![message, frame], rule(), "text/plain").await;
    assert_eq!((length, left), (200, 0));
}
