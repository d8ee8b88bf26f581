//! Requests that wait for their turn, on tokio's paused clock and the store's manual clock.

use std::pin::pin;
use std::time::Duration;

use http::{Request, StatusCode};
use tokio::time::timeout;
use tower::{Layer, Service, ServiceExt};
use tower_quota::{
    Limit, MemoryStore, OnStoreFailure, Over, Penalty, Policy, Quota, RateLimitLayer, key, when,
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{
    Answer, Inner, LastRequest, Limited, ScriptedStore, StoreControl, field, retry_after, tokio_now,
};
use crate::shared::{
    answer_of, assert_field, decision_of, millis, per_hour, per_second, policy_of, secs,
    stopped_store,
};

/// The precision of tokio's timer.
const TICK: Duration = millis(2);

/// Asserts that a request waits at least this long.
async fn assert_waits(wait: Duration, request: impl Future) {
    assert!(timeout(wait, request).await.is_err());
}

/// Asserts that a request is admitted within this time.
async fn assert_turn(wait: Duration, request: impl Future<Output = Answer>) {
    assert_eq!(timeout(wait, request).await.unwrap().status(), 200);
}

fn queue(places: u64) -> Limit {
    Limit::new("queue", Quota::per_second(2).leaky_bucket().queue(places))
}

#[tokio::test(start_paused = true)]
async fn leaky_bucket_spaces_requests_evenly() {
    let limited = Limited::new(policy_of(queue(3)));
    let mut first = pin!(limited.get());
    assert_turn(TICK, &mut first).await;

    let mut second = pin!(limited.get());
    let mut third = pin!(limited.get());
    assert_waits(millis(500) - TICK, &mut second).await;
    assert_eq!(
        limited.inner.calls(),
        1,
        "the inner service is not called before the turn"
    );
    let response = timeout(TICK * 2, &mut second)
        .await
        .expect("its turn has come");
    assert_eq!(response.status(), 200);
    assert_field(&response, "ratelimit", r#""queue";r=1;t=1"#);
    assert_eq!(limited.inner.last_wait(), millis(500));

    // The store's clock stands still, so the turn of the third request is one second from now.
    assert_waits(secs(1) - TICK, &mut third).await;
    assert_turn(TICK * 2, &mut third).await;

    // Three places are taken.
    let full = limited.get().await;
    assert_eq!(full.status(), 429);
    assert_field(&full, "retry-after", "1");
    assert_eq!(limited.inner.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn request_waits_no_longer_than_max_wait() {
    let limited = Limited::new(policy_of(queue(100).max_wait(millis(600))));
    assert_eq!(limited.get().await.status(), 200);
    assert_eq!(limited.get().await.status(), 200);
    let third = limited.get().await;
    assert_eq!(third.status(), 429);
    assert_field(&third, "ratelimit", r#""queue";r=98;t=1"#);
}

#[tokio::test(start_paused = true)]
async fn longest_wait_sets_the_queue() {
    let quota = Quota::per_second(5).leaky_bucket();
    let (by_limit, longest) = (Limit::new("calls", quota), secs(60));
    let by_request = per_second("calls", 1).quota_with(move |_| Some(quota));
    for limit in [by_limit.max_wait(longest), by_request.max_wait(longest)] {
        let limited = Limited::new(policy_of(limit));
        let calls =
            (0..302).map(|_| tokio::spawn(limited.service.clone().oneshot(Request::new(()))));
        let mut admitted = 0;
        for call in calls.collect::<Vec<_>>() {
            admitted += u32::from(call.await.unwrap().unwrap().status() == StatusCode::OK);
        }
        // One at once, and one each fifth of a second for 60 seconds.
        assert_eq!(admitted, 301);
    }
}

#[tokio::test(start_paused = true)]
async fn default_max_wait_is_half_a_minute() {
    let limited = Limited::new(policy_of(queue(1_000)));
    let requests: Vec<_> = (0..100)
        .map(|_| tokio::spawn(limited.service.clone().oneshot(Request::new(()))))
        .collect();
    let mut admitted = 0;
    for request in requests {
        admitted += u32::from(request.await.unwrap().unwrap().status() == StatusCode::OK);
    }
    // One at once, and one each half second for 30 seconds.
    assert_eq!(admitted, 61);
}

#[tokio::test(start_paused = true)]
async fn token_bucket_waits_with_max_wait() {
    let bucket = Limit::new("bucket", Quota::per_second(1).burst(1)).max_wait(secs(1));
    let limited = Limited::new(policy_of(bucket));
    assert_eq!(limited.get().await.status(), 200);
    let mut second = pin!(limited.get());
    assert_waits(secs(1) - TICK, &mut second).await;
    assert_turn(TICK * 2, &mut second).await;
    assert_eq!(limited.get().await.status(), 429);
}

#[tokio::test(start_paused = true)]
async fn dropped_waiting_request_never_reaches_service() {
    let limited = Limited::new(policy_of(queue(10)));
    limited.get().await;
    {
        let mut waiting = pin!(limited.get());
        assert_waits(millis(100), &mut waiting).await;
    }
    tokio::time::advance(secs(60)).await;
    assert_eq!(limited.inner.calls(), 1);

    // Its turn is refunded, and the next request takes it.
    limited.get().await;
    assert_eq!(limited.inner.last_wait(), millis(500));
}

#[tokio::test(start_paused = true)]
async fn dropped_turn_before_another_stays_empty() {
    let limited = Limited::new(policy_of(queue(10)));
    limited.get().await;
    let mut last = {
        let mut dropped = pin!(limited.get());
        assert_waits(TICK, &mut dropped).await;
        let mut last = Box::pin(limited.get());
        assert_waits(TICK, &mut last).await;
        last
    };
    limited.get().await;
    // The store's clock stands still: the turns are half a second apart.
    let wait = limited.inner.last_wait();
    assert_eq!(wait, millis(1_500));
    assert!(timeout(TICK, &mut last).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn cancelled_turn_refunds_all_charges() {
    let minute = Quota::per_minute(10);
    let policy = policy_of(queue(10)).limit(Limit::new("minute", minute).cost(3));
    let store = ScriptedStore::new();
    let service = RateLimitLayer::new(store.clone(), policy).layer(Inner::default());
    answer_of(&service).await;
    assert_waits(millis(100), service.oneshot(Request::new(()))).await;
    assert_eq!(store.settled(), [("refund", vec![1, 3])]);
    assert_eq!(store.left("minute", minute), 7);
}

#[tokio::test(start_paused = true)]
async fn turn_taken_is_not_refunded() {
    let store = ScriptedStore::new();
    let service = RateLimitLayer::new(store.clone(), policy_of(queue(10))).layer(Inner::default());
    for _ in 0..3 {
        answer_of(&service).await;
    }
    assert!(store.settled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn local_turn_is_refunded_locally() {
    let limited = |store: &ScriptedStore, local: &MemoryStore| {
        let policy = policy_of(queue(10)).on_store_failure(OnStoreFailure::Local);
        RateLimitLayer::new(store.clone(), policy)
            .attach_decision()
            .local_store(local.clone())
            .layer(Inner::default())
    };
    let clock = ManualClock::default();
    let (store, local) = (
        ScriptedStore::with_clock(clock.clone()),
        MemoryStore::with_clock(10, clock.clone()),
    );
    store.fail(true);
    let service = limited(&store, &local);
    answer_of(&service).await;
    assert_waits(millis(100), service.clone().oneshot(Request::new(()))).await;
    let inner = service.get_ref().clone();
    answer_of(&service).await;
    assert_eq!(inner.last_wait(), millis(500));
}

#[tokio::test(start_paused = true)]
async fn request_beyond_max_waiting_is_refused_uncharged() {
    let limited = Limited::with(policy_of(queue(100)), |layer| layer.max_waiting(2));
    limited.get().await;
    let mut second = pin!(limited.get());
    let mut third = pin!(limited.get());
    assert_waits(TICK, &mut second).await;
    assert_waits(TICK, &mut third).await;
    for _ in 0..3 {
        let refused = limited.get().await;
        assert_eq!(refused.status(), 429);
        // Its turn would come in one and a half seconds, the same each time.
        assert_field(&refused, "retry-after", "2");
        let decision = decision_of(&refused);
        assert_eq!(decision.retry_after(), Some(millis(1_500)));
        assert_eq!(decision.tightest().unwrap().name.as_str(), "queue");
    }
    // The next request takes a place that becomes free.
    assert_eq!(second.await.status(), 200);
    assert_waits(TICK, limited.get()).await;
    assert_eq!(limited.inner.calls(), 2);
    drop(third.await);
    assert_eq!(limited.inner.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn full_queue_gives_no_strikes() {
    let policy = policy_of(queue(100).penalty(Penalty::after(1)));
    let limited = Limited::with(policy, |layer| layer.max_waiting(1));
    limited.get().await;
    let mut waiting = pin!(limited.get());
    assert_waits(TICK, &mut waiting).await;
    for _ in 0..4 {
        let refused = limited.get().await;
        assert_eq!(refused.status(), 429);
        // The time until its turn, and not of a block.
        assert_eq!(retry_after(&refused), secs(1));
    }
    assert_eq!(waiting.await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn full_queue_counts_no_refusals() {
    let counted = per_hour("counted", 5).count_refusals();
    let limited = Limited::with(policy_of(queue(100)).limit(counted), |layer| {
        layer.max_waiting(1)
    });
    limited.get().await;
    let mut waiting = pin!(limited.get());
    assert_waits(TICK, &mut waiting).await;
    for _ in 0..4 {
        let refused = limited.get().await;
        let decision = decision_of(&refused);
        assert_eq!(decision.statuses()[1].remaining(), 2, "as if it had waited");
    }
    assert_eq!(waiting.await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_frees_its_waiting_place() {
    let limited = Limited::with(policy_of(queue(100)), |layer| layer.max_waiting(1));
    limited.get().await;
    for _ in 0..3 {
        assert_waits(TICK, limited.get()).await;
    }
    assert_eq!(limited.get().await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn zero_max_waiting_refuses_instead() {
    let limited = Limited::with(policy_of(queue(100)), |layer| layer.max_waiting(0));
    assert_eq!(limited.get().await.status(), 200);
    let refused = limited.get().await;
    assert_eq!(
        (refused.status(), field(&refused, "retry-after").as_deref()),
        (StatusCode::TOO_MANY_REQUESTS, Some("1"))
    );
}

#[tokio::test(start_paused = true)]
async fn jitter_only_adds_to_waits() {
    let jitter = Duration::from_secs(10);
    let limited = Limited::new(policy_of(queue(1_000).wait_jitter(jitter)));
    limited.get().await;
    let mut late = 0;
    for turn in 1..=40 {
        let mut waiting = pin!(limited.get());
        let due = millis(500) * turn;
        assert!(
            timeout(due - TICK, &mut waiting).await.is_err(),
            "turn {turn} came early"
        );
        late += u32::from(timeout(secs(1), &mut waiting).await.is_err());
        if late > 0 {
            // The decision has the exact wait, without jitter.
            assert_eq!(
                timeout(jitter, &mut waiting)
                    .await
                    .map(|response| response.status())
                    .ok(),
                Some(StatusCode::OK)
            );
            assert_eq!(limited.inner.last_wait(), due);
            return;
        }
    }
    panic!("40 times chance added less than a tenth of what it may");
}

#[test]
fn only_waiting_needs_a_runtime() {
    let policy = policy_of(Limit::new(
        "queue",
        Quota::per_second(10).leaky_bucket().queue(9),
    ));
    let store = stopped_store();
    let mut service = RateLimitLayer::new(store, policy).layer(Inner::default());
    let calls = [
        service.call(Request::new(())),
        service.call(Request::new(())),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let begin = tokio_now();
        for call in calls {
            assert_eq!(call.await.unwrap().status(), 200);
        }
        let wait = millis(100);
        assert!((wait..wait + TICK).contains(&begin.elapsed()));
    });
}

/// Returns a policy with a queue for each client, and requests by these clients.
fn queues_of_clients() -> Policy {
    policy_of(queue(1_000).by(tower_quota::key::header("k")))
}

#[tokio::test(start_paused = true)]
async fn places_are_shared_among_keys() {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(1_000, clock.clone());
    let layer = RateLimitLayer::new(store, queues_of_clients()).max_waiting(40);
    let (handle, service) = (layer.handle(), layer.layer(Inner::default()));
    let ask = |client: usize| {
        let request = Request::get("/").header("k", client.to_string());
        tokio::spawn(service.clone().oneshot(request.body(()).unwrap()))
    };
    let settle = async || {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    let mut waiting: Vec<_> = (0..50).map(|_| ask(0)).collect();
    settle().await;
    assert_eq!(handle.waiting(), 20, "one client takes half of the places");
    for _ in 0..60 {
        // These clients take each place that they can get.
        waiting.extend((0..30).map(|request| ask(request % 10)));
        settle().await;
        clock.advance(millis(500));
        tokio::time::advance(millis(500)).await;
        settle().await;
    }
    waiting.extend((0..30).map(|request| ask(request % 10)));
    settle().await;
    // Both requests of a new client get a turn.
    assert_eq!(ask(100).await.unwrap().unwrap().status(), 200);
    assert_eq!(ask(100).await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn places_are_shared_among_limits() {
    let step = secs(3);
    let tarpit = per_hour("tarpit", 1)
        .by(key::header("k"))
        .over(Over::Delay { step, most: step })
        .when(when::path("/login"));
    let work = queue(100).when(when::path("/work"));
    let limited = Limited::with(policy_of(tarpit).limit(work), |layer| {
        layer.max_waiting(100)
    });
    let ask = |path: &str, client: usize| {
        let request = Request::get(path).header("k", client.to_string());
        tokio::spawn(limited.service.clone().oneshot(request.body(()).unwrap()))
    };
    let made_up: Vec<_> = (0..240).map(|request| ask("/login", request / 2)).collect();
    let honest: Vec<_> = (0..10).map(|_| ask("/work", 0)).collect();
    for request in honest {
        assert_eq!(request.await.unwrap().unwrap().status(), 200);
    }
    drop(made_up);
}

#[tokio::test(start_paused = true)]
async fn lone_waiting_limit_has_all_places() {
    let policy = policy_of(queue(100)).limit(per_hour("hour", 100));
    let layer = RateLimitLayer::new(stopped_store(), policy).max_waiting(10);
    let (handle, service) = (layer.handle(), layer.layer(Inner::default()));
    let waiting: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(Request::new(()))))
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(handle.waiting(), 10);
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn places_do_not_bound_empty_turns() {
    let limited = Limited::with(queues_of_clients(), |layer| layer.max_waiting(4));
    let ask = || limited.send(Request::get("/").header("k", "ann"));
    ask().await;
    let mut last = Box::pin(ask());
    assert_waits(TICK, &mut last).await;
    for _ in 0..20 {
        let mut next = Box::pin(ask());
        assert_waits(TICK, &mut next).await;
        // The earlier turn stays empty, because it is not the last turn.
        drop(std::mem::replace(&mut last, next));
    }
    ask().await;
    // The store's clock stands still.
    let wait = limited.inner.last_wait();
    assert_eq!(wait, millis(500) * 22);
}

#[tokio::test(start_paused = true)]
async fn hanging_up_makes_no_burst() {
    let interval = millis(500);
    let limited = Limited::new(policy_of(queue(20)));
    let mut starts = Vec::new();
    let mut requests = Vec::new();
    for round in 0..400_u32 {
        requests.push(tokio::spawn(
            limited.service.clone().oneshot(Request::new(())),
        ));
        // Every second request hangs up: the newest, the oldest, or one between them.
        if round % 2 == 1 {
            let position = [requests.len() - 1, 0, requests.len() / 2][round as usize / 2 % 3];
            requests.remove(position).abort();
        }
        tokio::task::yield_now().await;
        let before = limited.inner.calls();
        limited.clock.advance(interval / 10);
        tokio::time::advance(interval / 10).await;
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        starts.push(limited.inner.calls() - before);
    }
    // Turns are an interval apart, so two never start within nine tenths of an interval.
    for window in starts.windows(9) {
        assert!(window.iter().sum::<usize>() <= 1, "{window:?}");
    }
    assert!(limited.inner.calls() > 5);
}
