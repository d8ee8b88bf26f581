//! A failure of the store leads to a response, never to an error.

use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use tower::{Layer, ServiceExt};
use tower_quota::{
    BoxStore, Check, Decision, MissingKey, OnStoreFailure, Policy, RateLimit, RateLimitLayer,
    Reason, Store, key,
    store::{Charge, Operation, Overloaded, Undecidable},
};
use tower_quota_testkit::ScriptedError;

use crate::fixture::{
    Inner, LastRequest, ScriptedStore, StoreControl, WITH_X, failing_store, text,
};
use crate::shared::{
    answer_of, answer_to, assert_field, assert_no_field, per_minute, policy_of, serve,
};

fn policy(choice: OnStoreFailure) -> Policy {
    policy_of(per_minute("minute", 1)).on_store_failure(choice)
}

fn service(choice: OnStoreFailure) -> RateLimit<Inner, ScriptedStore> {
    RateLimitLayer::new(failing_store(), policy(choice))
        .headers(WITH_X)
        .layer(Inner::default())
}

#[tokio::test]
async fn fail_open_marks_response_uncounted() {
    assert_eq!(OnStoreFailure::default(), OnStoreFailure::Allow);
    for _ in 0..3 {
        let service = service(OnStoreFailure::Allow);
        let inner = service.get_ref().clone();
        let response = answer_of(&service).await;
        assert_eq!(response.status(), 200);
        assert_field(&response, "x-ratelimit-policy", "degraded");
        assert_field(&response, "x-ratelimit-remaining", "-1");
        assert_eq!(response.headers().len(), 2);
        assert_eq!(inner.last_seen(), None);
    }
}

#[tokio::test]
async fn fail_closed_503_hides_store_error() {
    let service = service(OnStoreFailure::Refuse);
    let inner = service.get_ref().clone();
    let response = answer_of(&service).await;
    assert_eq!(response.status(), 503);
    assert_field(&response, "retry-after", "1");
    assert_field(&response, "x-ratelimit-policy", "degraded");
    assert_no_field(&response, "ratelimit");
    assert_field(&response, "cache-control", "no-store");
    let body = text(response).await;
    assert!(!body.contains("secret-host"), "{body}");
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        problem["type"],
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    );
    assert_eq!(problem["status"], 503);
    assert_eq!(
        problem["detail"],
        "Rate limits cannot be checked at the moment: retry in 1 second."
    );
    assert_eq!(inner.calls(), 0);
}

#[tokio::test]
async fn custom_refusal_sees_store_error() {
    let layer = RateLimitLayer::new(
        BoxStore::new(failing_store()),
        policy(OnStoreFailure::Refuse),
    )
    .on_refused(|refused| match refused.reason() {
        Reason::StoreFailure(error) => Response::new(error.to_string()),
        _ => Response::new(String::new()),
    });
    let response = layer
        .layer(Inner::default())
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert_field(&response, "retry-after", "1");
    assert_eq!(text(response).await, "secret-host:6379 is on fire");
}

/// The errors of the store that a layer has reported.
#[derive(Clone, Default)]
struct ReportedErrors(Arc<Mutex<Vec<String>>>);

impl ReportedErrors {
    fn listener(&self) -> impl Fn(&(dyn Error + 'static)) + Send + Sync + 'static {
        let reported = self.clone();
        move |error| {
            assert!(error.is::<ScriptedError>());
            reported.0.lock().unwrap().push(error.to_string());
        }
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[tokio::test]
async fn every_store_failure_is_reported_once() {
    for (choice, statuses) in [
        (OnStoreFailure::Allow, [200, 200]),
        (OnStoreFailure::Refuse, [503, 503]),
        (OnStoreFailure::Local, [200, 429]),
    ] {
        let reported = ReportedErrors::default();
        // The other settings of the layer have no effect, in any order.
        let layer = RateLimitLayer::new(failing_store(), policy(choice))
            .on_store_error(|_| panic!("another has replaced this one"))
            .on_store_error(reported.listener())
            .on_refused(|refused| {
                let mut response = Response::new("no");
                *response.status_mut() = refused.status();
                response
            });
        let service = layer.layer(Inner::default());
        for (failures, status) in (1..).zip(statuses) {
            let response = answer_of(&service).await;
            assert_eq!(response.status(), status, "{choice:?}");
            assert_eq!(reported.count(), failures, "{choice:?}");
        }
        assert_eq!(reported.0.lock().unwrap()[0], "secret-host:6379 is on fire");
    }
}

#[tokio::test]
async fn working_or_unused_store_reports_nothing() {
    let reported = ReportedErrors::default();
    let store = ScriptedStore::new();
    let policy = policy(OnStoreFailure::Allow).limit(
        per_minute("keyed", 1)
            .by(key::header("k"))
            .when(|head| head.uri().path() == "/keyed")
            .when_missing(MissingKey::Refuse),
    );
    let layer = RateLimitLayer::new(store.clone(), policy).on_store_error(reported.listener());
    let service = layer.layer(Inner::default());
    let get = async |path| {
        answer_to(&service, Request::get(path).body(()).unwrap())
            .await
            .status()
            .as_u16()
    };
    assert_eq!(
        [get("/").await, get("/").await, get("/keyed").await],
        [200, 429, 400]
    );
    store.fail(true);
    assert_eq!(get("/keyed").await, 400);
    assert_eq!(reported.count(), 0);
    assert_eq!((get("/").await, reported.count()), (200, 1));
}

/// A store that fails with an error of this source.
#[derive(Clone)]
struct FailingFor<E>(E);

#[derive(Debug)]
struct Failure<E>(E);

impl<E> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no decision")
    }
}

impl<E: Error + 'static> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl<E: Error + Copy + Send + Sync + 'static> Store for FailingFor<E> {
    type Error = Failure<E>;
    type Future = Ready<Result<Decision, Failure<E>>>;

    fn apply(&self, _operation: Operation, _charges: &[Charge<'_>]) -> Self::Future {
        ready(Err(Failure(self.0)))
    }
}

/// Sends two requests to a service on an overloaded store. Returns the statuses.
async fn statuses_under_overload(policy: Policy) -> [StatusCode; 2] {
    let layer = RateLimitLayer::new(BoxStore::new(FailingFor(Overloaded)), policy);
    let service = layer.layer(Inner::default());
    let first = answer_of(&service).await;
    let second = answer_of(&service).await;
    [first.status(), second.status()]
}

#[tokio::test]
async fn overloaded_store_counts_locally_by_default() {
    let policy = policy_of(per_minute("minute", 1));
    assert_eq!(
        statuses_under_overload(policy).await,
        [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]
    );
}

#[tokio::test]
async fn overloaded_store_obeys_explicit_choice() {
    for (choice, status) in [
        (OnStoreFailure::Allow, StatusCode::OK),
        (OnStoreFailure::Refuse, StatusCode::SERVICE_UNAVAILABLE),
    ] {
        assert_eq!(statuses_under_overload(policy(choice)).await, [status; 2]);
        let limit = per_minute("minute", 1).on_store_failure(choice);
        let by_limit = policy_of(limit);
        assert_eq!(statuses_under_overload(by_limit).await, [status; 2]);
    }
}

#[tokio::test]
async fn undecidable_request_is_a_server_error() {
    for choice in [
        OnStoreFailure::Allow,
        OnStoreFailure::Refuse,
        OnStoreFailure::Local,
    ] {
        let store = BoxStore::new(FailingFor(Undecidable));
        let (service, handle) = serve(RateLimitLayer::new(store, policy(choice)));
        let inner = service.get_ref().clone();
        let response = answer_of(&service).await;
        assert_eq!(response.status(), 500);
        assert_no_field(&response, "retry-after");
        assert_eq!(inner.calls(), 0);
        assert_eq!(handle.mistakes().count(Check::Undecidable), 1);
    }
}
