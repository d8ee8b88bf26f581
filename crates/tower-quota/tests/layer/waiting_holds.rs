//! Concurrency limits of requests that wait for their turn.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::timeout;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Flagged, Limit, OnStoreFailure, Over, Policy, Quota, RateLimitLayer, key};
use tower_quota_testkit::ScriptedAnswer;

use crate::fixture::{FAILURE, ScriptedStore, StoreControl, slow_store};
use crate::shared::{answer_of, millis, policy_of, secs, stopped_layer, stopped_store};

const HOLDS: Quota = Quota::concurrent(1);

/// Returns a tarpit of three seconds after the first request.
fn tarpit() -> Limit {
    Limit::new("tarpit", Quota::per_hour(1)).over(Over::Delay {
        step: secs(3),
        most: secs(3),
    })
}

/// Runs the tasks that release units.
async fn run_tasks() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn queue_and_hold() -> Policy {
    let queue = Limit::new("queue", Quota::per_second(2).leaky_bucket().queue(9));
    policy_of(queue).limit(Limit::new("streams", HOLDS))
}

/// Answers at once, or never if the path is `/slow`.
async fn answer(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/slow" {
        std::future::pending::<()>().await;
    }
    Ok(Response::default())
}

#[tokio::test(start_paused = true)]
async fn requests_in_tarpit_hold_nothing() {
    let everyone = Limit::new("streams", Quota::concurrent(5));
    let policy = policy_of(tarpit().by(key::header("k"))).limit(everyone);
    let service = stopped_layer(policy).layer(service_fn(answer));
    let send = |client| {
        let request = Request::get("/").header("k", client).body(()).unwrap();
        let sent = service.clone().oneshot(request);
        tokio::spawn(async { sent.await.unwrap().status() })
    };
    let eve: Vec<_> = (0..8).map(|_| send("eve")).collect();
    run_tasks().await;
    assert_eq!(send("bob").await.unwrap(), 200);
    assert_eq!(
        eve.iter().filter(|request| request.is_finished()).count(),
        1
    );
    for waiting in eve {
        assert_eq!(waiting.await.unwrap(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn turn_without_free_unit_is_refused() {
    for store in [ScriptedStore::new(), slow_store()] {
        let layer = RateLimitLayer::new(store.clone(), queue_and_hold());
        let service = layer.layer(service_fn(answer));
        let send = |path: &str| {
            let request = Request::get(path).body(()).unwrap();
            service.clone().oneshot(request)
        };
        assert_eq!(send("/").await.unwrap().status(), 200);
        let mut slow = pin!(send("/slow"));
        assert!(timeout(millis(100), &mut slow).await.is_err());
        let mut waiting = pin!(send("/"));
        assert!(timeout(millis(100), &mut waiting).await.is_err());
        assert_eq!(store.left("streams", HOLDS), 1, "both wait");
        assert!(timeout(millis(600), &mut slow).await.is_err());
        assert_eq!(store.left("streams", HOLDS), 0, "the slow request runs");
        let response = timeout(secs(2), &mut waiting).await.unwrap().unwrap();
        assert_eq!(response.status(), 429);
        // The unit of the first request, two units before the turns, and the turn of the refused
        // request.
        assert_eq!(store.settled(), vec![("refund", vec![1]); 4]);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_request_returns_its_unit_at_the_end() {
    for store in [ScriptedStore::new(), slow_store()] {
        let service =
            RateLimitLayer::new(store.clone(), queue_and_hold()).layer(service_fn(answer));
        for _ in 0..3 {
            let response = answer_of(&service).await;
            assert_eq!(response.status(), 200);
            assert_eq!(store.left("streams", HOLDS), 0);
            drop(response);
            run_tasks().await;
            assert_eq!(store.left("streams", HOLDS), 1, "{:?}", store.settled());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_store_decides_turn_by_choice() {
    for (choice, expected, left) in [
        (OnStoreFailure::Allow, 200, 1),
        (OnStoreFailure::Local, 200, 0),
        (OnStoreFailure::Refuse, 503, 1),
    ] {
        let (store, local) = (ScriptedStore::new(), stopped_store());
        let policy = queue_and_hold().on_store_failure(choice);
        let layer = RateLimitLayer::new(store.clone(), policy).local_store(local.clone());
        let service = layer.layer(service_fn(answer));
        assert_eq!(answer_of(&service).await.status(), 200);
        run_tasks().await;
        let mut waiting = pin!(service.clone().oneshot(Request::new(())));
        assert!(timeout(millis(100), &mut waiting).await.is_err());
        store.set_default(ScriptedAnswer::error(FAILURE));
        let response = waiting.await.unwrap();
        assert_eq!(response.status(), expected, "{choice:?}");
        let everyone = tower_quota::Key::EVERYONE;
        let hold = tower_quota::store::Charge::new("streams", &HOLDS, &everyone).cost(0);
        let Ok(status) = tower_quota::Store::check(&local, &[hold]).into_inner();
        assert_eq!(status.statuses()[0].remaining(), left, "{choice:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_request_is_observed_once() {
    for (path, expected) in [("/", 200), ("/slow", 429)] {
        let labels = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&labels);
        let layer = stopped_layer(queue_and_hold())
            .on_decision(move |decided| seen.lock().unwrap().push(decided.label()));
        let service = layer.layer(service_fn(answer));
        let send = |path: &str| {
            let request = Request::get(path).body(()).unwrap();
            service.clone().oneshot(request)
        };
        drop(send("/").await);
        // If the second request runs, it still holds the unit when the turn of the third comes.
        let mut second = pin!(send(path));
        assert!(timeout(millis(100), &mut second).await.is_err());
        let third = send("/");
        let second = async { drop(timeout(secs(2), &mut second).await) };
        let ((), status) = tokio::join!(second, async { third.await.unwrap().status() });
        assert_eq!(status, expected);
        let last = if expected == 200 { "queued" } else { "limited" };
        assert_eq!(*labels.lock().unwrap(), ["allowed", "queued", last]);
    }
}

#[tokio::test(start_paused = true)]
async fn counted_limit_decides_no_outage_at_turn() {
    let store = ScriptedStore::new();
    let queue = Limit::new("queue", Quota::per_second(2).leaky_bucket().queue(9))
        .on_store_failure(OnStoreFailure::Refuse);
    let policy = policy_of(queue).limit(Limit::new("streams", HOLDS));
    let service = RateLimitLayer::new(store.clone(), policy).layer(service_fn(answer));
    assert_eq!(answer_of(&service).await.status(), 200);
    run_tasks().await;
    let mut waiting = pin!(service.clone().oneshot(Request::new(())));
    assert!(timeout(millis(100), &mut waiting).await.is_err());
    store.set_default(ScriptedAnswer::error(FAILURE));
    assert_eq!(waiting.await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn flag_of_concurrency_limit_is_decided_at_turn() {
    let policy = policy_of(tarpit()).limit(Limit::new("streams", HOLDS).over(Over::Flag));
    let flags = service_fn(async |request: Request<()>| {
        let is_flagged = request.extensions().get::<Flagged>().is_some();
        // Both requests run at the same time.
        let _ = timeout(secs(10), std::future::pending::<()>()).await;
        Ok::<_, Infallible>(Response::new(is_flagged.to_string()))
    });
    let service = stopped_layer(policy).layer(flags);
    let send = || async {
        let response = service.clone().oneshot(Request::new(())).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    };
    let first = service.clone().oneshot(Request::new(()));
    assert!(timeout(millis(1), first).await.is_err());
    // Their turns come at the same time, in any order.
    let (one, other) = tokio::join!(send(), send());
    let mut flagged = [one, other];
    flagged.sort();
    assert_eq!(flagged, ["false", "true"]);
}
