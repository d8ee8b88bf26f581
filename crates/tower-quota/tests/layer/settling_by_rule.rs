//! Costs that settle rules read from responses.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::settle::{self, ResponseEnd, Rule, Settle};
use tower_quota::{Limit, Quota, RateLimitLayer};

use crate::fixture::{Call, ScriptedStore, StoreControl};
use crate::shared::{answer_of, answer_to, per_hour, policy_of, secs};

/// A body of these frames, optionally followed by an error.
#[derive(Clone, Default)]
pub(crate) struct Frames {
    pub(crate) data: Vec<&'static str>,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) breaks: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = if !self.data.is_empty() {
            Some(Ok(Frame::data(Bytes::from(self.data.remove(0)))))
        } else if let Some(trailers) = self.trailers.take() {
            Some(Ok(Frame::trailers(trailers)))
        } else {
            std::mem::take(&mut self.breaks).then_some(Err("broken"))
        };
        std::task::Poll::Ready(frame)
    }
}

/// The part of a body that the client reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Read {
    All,
    Frames(usize),
}

/// Returns the settlements after this response to a request that was charged 10.
async fn settled(
    rule: impl Rule,
    response: http::response::Builder,
    body: Frames,
    read: Read,
) -> Vec<Call> {
    let store = ScriptedStore::new();
    let limit = per_hour("limit", 100).cost(10).settle(rule);
    let response = Arc::new(Mutex::new(Some(response.body(body).unwrap())));
    let inner = service_fn(move |_: Request<()>| {
        let response = response.lock().unwrap().take().unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let service = RateLimitLayer::new(store.clone(), policy_of(limit)).layer(inner);
    let mut body = answer_of(&service).await.into_body();
    match read {
        Read::All => drop(body.collect().await),
        Read::Frames(frames) => {
            for _ in 0..frames {
                body.frame().await.unwrap().unwrap();
            }
            drop(body);
        }
    }
    store.settled()
}

fn back() -> Vec<Call> {
    vec![("refund", vec![10])]
}

fn http(status: u16) -> http::response::Builder {
    Response::builder().status(status)
}

fn grpc() -> http::response::Builder {
    http(200).header("content-type", "application/grpc+proto")
}

fn status_in_trailers(code: &'static str) -> Frames {
    let trailers = HeaderMap::from_iter([(
        "grpc-status".parse().unwrap(),
        HeaderValue::from_static(code),
    )]);
    Frames {
        data: vec!["message"],
        trailers: Some(trailers),
        ..Frames::default()
    }
}

#[tokio::test]
async fn http_status_separates_failure_from_success() {
    for (status, is_failure) in [
        (200, false),
        (302, false),
        (400, true),
        (401, true),
        (404, true),
        (500, true),
    ] {
        let failures = settled(
            settle::only_failures(),
            http(status),
            Frames::default(),
            Read::All,
        )
        .await;
        let successes = settled(
            settle::only_successes(),
            http(status),
            Frames::default(),
            Read::All,
        )
        .await;
        let (counted, other) = if is_failure {
            (failures, successes)
        } else {
            (successes, failures)
        };
        assert_eq!((counted, other), (vec![], back()), "{status}");
    }
}

#[tokio::test]
async fn only_failed_calls_count() {
    for (code, expected) in [("16", vec![]), ("0", back()), ("13", vec![]), ("x", vec![])] {
        assert_eq!(
            settled(
                settle::only_failures(),
                grpc(),
                status_in_trailers(code),
                Read::All
            )
            .await,
            expected
        );
        let trailers_only = grpc().header("grpc-status", code);
        assert_eq!(
            settled(
                settle::only_failures(),
                trailers_only,
                Frames::default(),
                Read::All
            )
            .await,
            expected
        );
    }
}

#[tokio::test]
async fn grpc_call_is_settled_by_trailers() {
    assert_eq!(
        settled(
            settle::only_failures(),
            grpc(),
            status_in_trailers("0"),
            Read::All
        )
        .await,
        back()
    );
    assert_eq!(
        settled(
            settle::only_failures(),
            grpc(),
            status_in_trailers("7"),
            Read::All
        )
        .await,
        []
    );
    assert_eq!(
        settled(
            settle::only_successes(),
            grpc(),
            status_in_trailers("7"),
            Read::All
        )
        .await,
        back()
    );
    // A call that is cut off before its status counts under each rule.
    assert_eq!(
        settled(
            settle::only_failures(),
            grpc(),
            status_in_trailers("0"),
            Read::Frames(1)
        )
        .await,
        []
    );
    assert_eq!(
        settled(
            settle::only_successes(),
            grpc(),
            status_in_trailers("7"),
            Read::Frames(1)
        )
        .await,
        []
    );
    // An HTTP failure is a failure, even with a content type of gRPC.
    let proxy = || http(503).header("content-type", "application/grpc");
    assert_eq!(
        settled(
            settle::only_successes(),
            proxy(),
            Frames::default(),
            Read::All
        )
        .await,
        back()
    );
}

#[tokio::test]
async fn response_header_is_the_cost() {
    for (value, expected) in [
        ("3", vec![("refund", vec![7])]),
        ("0", back()),
        ("10", vec![]),
        ("12", vec![("charge", vec![2])]),
        ("many", vec![]),
        ("", vec![]),
    ] {
        let response = http(200).header("x-cost", value);
        let body = Frames::default();
        assert_eq!(
            settled(settle::cost_header("x-cost"), response, body, Read::All).await,
            expected,
            "{value:?}"
        );
    }
    assert_eq!(
        settled(
            settle::cost_header("x-cost"),
            http(200),
            Frames::default(),
            Read::All
        )
        .await,
        []
    );
    assert!(settle::try_cost_header("two words").is_err());
}

#[tokio::test]
async fn body_is_counted_as_sent() {
    let body = || Frames {
        data: vec!["12345", "678", "9"],
        ..Frames::default()
    };
    for (per_unit, read, expected) in [
        (1, Read::All, vec![("refund", vec![1])]),
        (4, Read::All, vec![("refund", vec![7])]),
        (0, Read::All, vec![("refund", vec![1])]),
        (1, Read::Frames(2), vec![("refund", vec![2])]),
        (1, Read::Frames(0), vec![("refund", vec![9])]),
    ] {
        assert_eq!(
            settled(settle::body_bytes(per_unit), http(200), body(), read).await,
            expected,
            "{per_unit} {read:?}"
        );
    }
    // The answers to HEAD and 304 have no body either.
    let empty = settled(
        settle::body_bytes(1),
        http(304),
        Frames::default(),
        Read::All,
    );
    assert_eq!(empty.await, [("refund", vec![9])]);
    let long = Frames {
        data: vec!["0123456789"; 3],
        ..Frames::default()
    };
    assert_eq!(
        settled(settle::body_bytes(1), http(200), long, Read::All).await,
        [("charge", vec![20])]
    );
}

/// A rule by which a complete body costs 1, and an incomplete one 2.
struct IsComplete;

impl Rule for IsComplete {
    fn at_head(&self, _: &Parts) -> Option<Settle> {
        None
    }

    fn at_end(&self, end: &ResponseEnd<'_>) -> Settle {
        assert_eq!(end.status, StatusCode::OK);
        Settle::Cost(if end.is_complete { 1 } else { 2 })
    }
}

#[tokio::test]
async fn rule_sees_if_body_was_complete() {
    let body = || Frames {
        data: vec!["1", "2"],
        ..Frames::default()
    };
    let (complete, cut_off) = ([("refund", vec![9])], [("refund", vec![8])]);
    assert_eq!(
        settled(IsComplete, http(200), body(), Read::All).await,
        complete
    );
    assert_eq!(
        settled(IsComplete, http(200), status_in_trailers("0"), Read::All).await,
        complete
    );
    assert_eq!(
        settled(IsComplete, http(200), body(), Read::Frames(1)).await,
        cut_off
    );
    assert_eq!(
        settled(
            IsComplete,
            http(200),
            Frames {
                breaks: true,
                ..body()
            },
            Read::All
        )
        .await,
        cut_off
    );
}

#[tokio::test]
async fn body_is_complete_without_final_poll() {
    let store = ScriptedStore::new();
    let limit = || per_hour("limit", 100).cost(10).settle(IsComplete);
    for request in [Request::get("/"), Request::head("/")] {
        let inner = service_fn(|request: Request<()>| async move {
            let text = if request.uri() == "/" { "text" } else { "" };
            Ok::<_, Infallible>(Response::new(http_body_util::Full::<Bytes>::from(text)))
        });
        let is_head = request.method_ref() == Some(&http::Method::HEAD);
        let service = RateLimitLayer::new(store.clone(), policy_of(limit())).layer(inner);
        let mut body = answer_to(&service, request.body(()).unwrap())
            .await
            .into_body();
        if !is_head {
            assert!(!body.is_end_stream());
            body.frame().await.unwrap().unwrap();
            assert!(body.is_end_stream());
        }
    }
    assert_eq!(store.settled(), [("refund", vec![9]), ("refund", vec![9])]);
}

#[tokio::test]
async fn concurrent_guesses_never_exceed_login_quota() {
    let quota = Quota::new(5, secs(900)).sliding_log();
    let limit = Limit::new("login", quota).settle(settle::only_failures());
    let store = ScriptedStore::new();
    let gate = Arc::new(Semaphore::new(0));
    let checked = Arc::clone(&gate);
    let inner = service_fn(move |request: Request<()>| {
        let (gate, right) = (Arc::clone(&checked), request.uri() == "/right");
        async move {
            // Checking a password takes time.
            gate.acquire().await.unwrap().forget();
            let status = if right {
                StatusCode::OK
            } else {
                StatusCode::UNAUTHORIZED
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(()).unwrap())
        }
    });
    let service = RateLimitLayer::new(store.clone(), policy_of(limit)).layer(inner);
    let ask = |path: &'static str| {
        let request = Request::get(path).body(()).unwrap();
        let answer = tokio::spawn(service.clone().oneshot(request));
        async { answer.await.unwrap().unwrap().status().as_u16() }
    };

    // A client that knows the password is never refused.
    for _ in 0..20 {
        gate.add_permits(1);
        assert_eq!(ask("/right").await, 200);
    }
    assert_eq!(store.left("login", quota), 5);

    // Twenty guesses at once: five are checked, the others are not.
    let guesses: Vec<_> = (0..20).map(|_| ask("/wrong")).collect();
    gate.add_permits(20);
    let mut answers = Vec::new();
    for guess in guesses {
        answers.push(guess.await);
    }
    answers.sort_unstable();
    assert_eq!(answers, [vec![401; 5], vec![429; 15]].concat());
    assert_eq!(gate.available_permits(), 15);
    assert_eq!(store.left("login", quota), 0);
}
