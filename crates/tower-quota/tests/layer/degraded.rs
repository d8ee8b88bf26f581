//! Decisions about requests while the store is unavailable, and after it.

use http::{Request, StatusCode, Version};
use tower::{Layer, ServiceExt};
use tower_quota::{
    Decision, Degraded, Limit, MemoryStore, MissingKey, OnStoreFailure, Outcome, Policy, Quota,
    RateLimit, RateLimitHandle, key,
};
use tower_quota::{
    Protocol, RateLimitLayer, Store,
    store::{Charge, Operation},
};
use tower_quota_testkit::ManualClock;

use crate::fixture::{Answer, Inner, LastRequest, ScriptedStore, StoreControl, WITH_X, field};
use crate::shared::{
    answer_of, answer_to, assert_field, assert_no_field, decision_of, millis, per_hour, per_minute,
    policy_of, secs,
};

/// A policy over `Inner`, with a store that fails on command.
///
/// The store and the local store share one clock, which stands still.
pub(crate) struct Setting {
    pub(crate) handle: RateLimitHandle<ScriptedStore>,
    pub(crate) service: RateLimit<Inner, ScriptedStore>,
    pub(crate) store: ScriptedStore,
    pub(crate) local: MemoryStore,
    pub(crate) clock: ManualClock,
}

impl Setting {
    pub(crate) fn new(policy: Policy) -> Self {
        let clock = ManualClock::default();
        let (store, local) = (
            ScriptedStore::with_clock(clock.clone()),
            MemoryStore::with_clock(1_000, clock.clone()),
        );
        let layer = RateLimitLayer::new(store.clone(), policy)
            .attach_decision()
            .local_store(local.clone())
            .headers(WITH_X)
            .protocol(Protocol::Both);
        Self {
            handle: layer.handle(),
            service: layer.layer(Inner::default()),
            store,
            local,
            clock,
        }
    }

    pub(crate) fn unavailable(policy: Policy) -> Self {
        let setting = Self::new(policy);
        setting.store.fail(true);
        setting
    }

    pub(crate) async fn send(&self, request: http::request::Builder) -> Answer {
        answer_to(&self.service, request.body(()).unwrap()).await
    }

    async fn get(&self) -> Answer {
        self.send(Request::get("/")).await
    }

    async fn call(&self) -> Answer {
        let call = Request::post("/echo.Echo/Say").version(Version::HTTP_2);
        self.send(call.header("content-type", "application/grpc"))
            .await
    }

    pub(crate) fn inner(&self) -> &Inner {
        self.service.get_ref()
    }
}

/// Returns a limit that counts all requests of these tests together.
///
/// It counts requests without a header, so that `len` shows if the store has an entry for them.
fn limit(name: &'static str, quota: Quota, choice: OnStoreFailure) -> Limit {
    Limit::new(name, quota)
        .by(key::header("k"))
        .when_missing(MissingKey::ShareOneCounter)
        .on_store_failure(choice)
}

fn minute(choice: OnStoreFailure) -> Policy {
    policy_of(limit("minute", Quota::per_minute(12), choice)).instances(6)
}

/// Returns the `X-RateLimit` fields: policy, limit, remaining, reset.
pub(crate) fn rate_fields(response: &Answer) -> [Option<String>; 4] {
    ["policy", "limit", "remaining", "reset"]
        .map(|name| field(response, &format!("x-ratelimit-{name}")))
}

pub(crate) fn some<const N: usize>(fields: [&str; N]) -> [Option<String>; N] {
    fields.map(|field| Some(field.to_owned()))
}

/// Asserts that there are no standard fields, and that there is the mark for logs.
pub(crate) fn assert_marked(response: &Answer) {
    assert_no_field(response, "ratelimit");
    assert_no_field(response, "ratelimit-policy");
    assert_field(response, "x-ratelimit-policy", "degraded");
    assert!(response.extensions().get::<Degraded>().is_some());
}

#[tokio::test]
async fn healthy_store_leaves_no_degraded_mark() {
    let setting = Setting::new(minute(OnStoreFailure::Local));
    let response = setting.get().await;
    assert_eq!(
        rate_fields(&response),
        [None, Some("12".into()), Some("11".into()), Some("5".into())]
    );
    assert!(response.extensions().get::<Degraded>().is_none());
    assert!(!setting.inner().last_degraded());
    assert!(setting.local.is_empty());
}

#[tokio::test]
async fn fail_open_counts_nothing() {
    let setting = Setting::unavailable(minute(OnStoreFailure::Allow));
    for _ in 0..20 {
        for response in [setting.get().await, setting.call().await] {
            assert_eq!(response.status(), 200);
            assert_no_field(&response, "grpc-status");
            assert_eq!(
                rate_fields(&response),
                [Some("degraded".into()), None, Some("-1".into()), None]
            );
            assert_marked(&response);
            assert!(response.extensions().get::<Decision>().is_none());
            assert!(setting.inner().last_degraded());
            assert_eq!(setting.inner().last_seen(), None);
        }
    }
    assert!(setting.local.is_empty());
}

#[tokio::test]
async fn refusing_is_unavailable() {
    let setting = Setting::unavailable(minute(OnStoreFailure::Refuse));
    let response = setting.get().await;
    assert_eq!(response.status(), 503);
    assert_field(&response, "retry-after", "1");
    assert_eq!(
        rate_fields(&response),
        [Some("degraded".into()), None, None, None]
    );
    assert_marked(&response);

    let response = setting.call().await;
    assert_eq!(response.status(), 200);
    assert_field(&response, "grpc-status", "14");
    assert_field(&response, "retry-after", "1");
    assert_field(&response, "grpc-retry-pushback-ms", "1000");
    assert_marked(&response);
    assert_eq!(setting.inner().calls(), 0);
}

#[tokio::test]
async fn local_limit_admits_one_instances_share() {
    // 12 a minute divided among 6 instances: 2 at once, and one more every 30 seconds.
    let setting = Setting::unavailable(minute(OnStoreFailure::Local));
    for remaining in ["1", "0"] {
        let response = setting.get().await;
        assert_eq!(response.status(), 200);
        let reset = if remaining == "1" { "30" } else { "60" };
        assert_eq!(
            rate_fields(&response),
            some(["degraded", "2", remaining, reset])
        );
        assert_marked(&response);
        let seen = setting.inner().last_seen().unwrap();
        assert_eq!(
            (seen.statuses()[0].limit, setting.inner().last_degraded()),
            (2, true)
        );
    }

    let response = setting.get().await;
    assert_eq!(response.status(), 429);
    assert_field(&response, "retry-after", "30");
    assert_eq!(rate_fields(&response), some(["degraded", "2", "0", "60"]));
    assert_marked(&response);
    assert!(!decision_of(&response).is_allowed());

    let response = setting.call().await;
    assert_field(&response, "grpc-status", "8");
    assert_field(&response, "grpc-retry-pushback-ms", "30000");
    assert_eq!(rate_fields(&response), some(["degraded", "2", "0", "60"]));
    assert_marked(&response);

    setting.clock.advance(secs(30));
    let response = setting.call().await;
    assert_no_field(&response, "grpc-status");
    assert_eq!(rate_fields(&response), some(["degraded", "2", "0", "60"]));
    assert_eq!(setting.inner().calls(), 3);
}

#[tokio::test]
async fn local_decision_is_not_refunded_to_store() {
    let setting = Setting::unavailable(minute(OnStoreFailure::Local));
    let mut response = setting.get().await;
    assert_eq!(
        response
            .extensions_mut()
            .get_mut::<Decision>()
            .unwrap()
            .refund(),
        None
    );
    setting.store.fail(false);
    let mut response = setting.get().await;
    assert!(
        response
            .extensions_mut()
            .get_mut::<Decision>()
            .unwrap()
            .refund()
            .is_some()
    );
}

#[tokio::test]
async fn degraded_request_keeps_key_cost_and_turn() {
    let policy = policy_of(
        per_minute("key", 20)
            .by(key::header("k"))
            .cost_with(|head| {
                if head.uri().path() == "/expensive" {
                    10
                } else {
                    1
                }
            }),
    )
    .limit(per_minute("posts", 2).when(|head| head.method() == http::Method::POST))
    .on_store_failure(OnStoreFailure::Local)
    .instances(2);
    let setting = Setting::unavailable(policy);
    let get = |path: &str, key: &str| setting.send(Request::get(path).header("k", key));
    assert_eq!(get("/expensive", "ann").await.status(), 200);
    assert_eq!(get("/", "ann").await.status(), 429);
    assert_eq!(get("/", "bob").await.status(), 200);
    // The first post is admitted. The second is refused and charges bob's other limit nothing.
    let post = || setting.send(Request::post("/").header("k", "bob"));
    assert_eq!(post().await.status(), 200);
    assert_eq!(post().await.status(), 429);
    assert_field(&get("/", "bob").await, "x-ratelimit-remaining", "7");
}

#[tokio::test(start_paused = true)]
async fn local_leaky_bucket_makes_requests_wait() {
    let queue = Quota::per_second(4).leaky_bucket().queue(8);
    let setting =
        Setting::unavailable(policy_of(limit("queue", queue, OnStoreFailure::Local)).instances(2));
    setting.get().await;
    let response = setting.get().await;
    assert_eq!(response.status(), 200);
    assert_marked(&response);
    assert_eq!(
        setting.inner().last_seen().unwrap().outcome(),
        Outcome::Wait(millis(500))
    );
}

#[tokio::test]
async fn oversized_local_cost_is_unavailable() {
    let limit = limit("units", Quota::per_minute(12), OnStoreFailure::Local).cost(3);
    let setting = Setting::unavailable(policy_of(limit).instances(6));
    let response = setting.get().await;
    assert_eq!(response.status(), 503);
    assert_field(&response, "retry-after", "1");
    assert_marked(&response);
    setting.store.fail(false);
    assert_eq!(setting.get().await.status(), 200);
}

/// Returns a policy with all three choices: logins refuse, the burst is local, the rest allows.
fn mixed() -> Policy {
    policy_of(
        limit("login", Quota::per_hour(5), OnStoreFailure::Refuse)
            .when(|head| head.uri().path() == "/login"),
    )
    .limit(
        limit("burst", Quota::per_minute(3), OnStoreFailure::Local)
            .when(|head| head.uri().path() != "/free"),
    )
    .limit(per_hour("everyone", 1))
}

#[tokio::test]
async fn limits_of_one_policy_choose_for_themselves() {
    for grpc in [false, true] {
        let setting = Setting::unavailable(mixed());
        let ask = |path: &str| {
            let request = Request::post(path).version(Version::HTTP_2);
            setting.send(if grpc {
                request.header("content-type", "application/grpc")
            } else {
                request
            })
        };
        let verdict = |response: &Answer| match field(response, "grpc-status") {
            Some(status) => status,
            None => response.status().as_str().to_owned(),
        };
        let [unavailable, exhausted] = if grpc { ["14", "8"] } else { ["503", "429"] };
        assert_eq!(verdict(&ask("/login").await), unavailable);
        assert!(
            setting.local.is_empty(),
            "a refused request charges nothing"
        );
        // "everyone" would have refused the second request, and is not reported.
        for remaining in ["2", "1", "0"] {
            let response = ask("/").await;
            assert_eq!(verdict(&response), "200");
            assert_eq!(rate_fields(&response)[1..3], some(["3", remaining]));
            assert_eq!(decision_of(&response).statuses().len(), 1);
        }
        assert_eq!(verdict(&ask("/").await), exhausted);
        let free = ask("/free").await;
        assert_eq!(
            (verdict(&free).as_str(), rate_fields(&free)[2].as_deref()),
            ("200", Some("-1"))
        );
    }
}

#[tokio::test]
async fn limit_inherits_store_failure_of_policy() {
    let policy = || policy_of(per_minute("minute", 1));
    let verdicts = async |policy: Policy| {
        let setting = Setting::unavailable(policy);
        [
            setting.get().await.status().as_u16(),
            setting.get().await.status().as_u16(),
        ]
    };
    assert_eq!(verdicts(policy()).await, [200, 200]);
    assert_eq!(
        verdicts(policy().on_store_failure(OnStoreFailure::Refuse)).await,
        [503, 503]
    );
    assert_eq!(
        verdicts(policy().on_store_failure(OnStoreFailure::Local)).await,
        [200, 429]
    );
    assert_eq!(
        verdicts(minute(OnStoreFailure::Allow).on_store_failure(OnStoreFailure::Refuse)).await,
        [200, 200]
    );
}

#[tokio::test]
async fn recovery_discards_local_counters() {
    let setting = Setting::unavailable(minute(OnStoreFailure::Local));
    for status in [200, 200, 429] {
        assert_eq!(setting.get().await.status(), status);
    }
    setting.store.fail(false);
    // The store has not counted the two local requests.
    assert_field(&setting.get().await, "x-ratelimit-remaining", "11");
    setting.clock.advance(secs(3_600));
    assert!(
        !setting.local.is_empty(),
        "local counters are kept until the grace period is over"
    );
    assert!(field(&setting.get().await, "ratelimit").is_some());
    assert!(setting.local.is_empty());

    setting.store.fail(true);
    assert_eq!(rate_fields(&setting.get().await)[1..3], some(["2", "1"]));
}

#[tokio::test]
async fn flapping_store_releases_no_limited_client() {
    let setting = Setting::new(minute(OnStoreFailure::Local));
    let mut admitted = 0;
    for round in 0..=200 {
        setting.store.fail(round % 2 == 0);
        let response = setting.get().await;
        admitted += u32::from(round % 2 == 0 && response.status() == StatusCode::OK);
        setting.clock.advance(millis(150));
    }
    // In 30 seconds: two at once, and one more.
    assert_eq!(admitted, 3);
}

/// Asserts this for a client whose part of the store fails, while the store decides others.
#[tokio::test]
async fn partial_outage_releases_no_limited_client() {
    let setting = Setting::new(minute(OnStoreFailure::Local));
    let mut admitted = 0;
    for _ in 0..=20 {
        setting.store.fail(true);
        admitted += u32::from(
            setting
                .send(Request::get("/").header("k", "ann"))
                .await
                .status()
                == StatusCode::OK,
        );
        setting.store.fail(false);
        setting.clock.advance(millis(1_500));
        assert!(
            setting
                .send(Request::get("/").header("k", "bob"))
                .await
                .extensions()
                .get::<Degraded>()
                .is_none()
        );
    }
    // In 30 seconds: two at once, and one more.
    assert_eq!(admitted, 3);
}

/// A store that answers some clients at once, as a lease or a cache does.
struct CachedStore(ScriptedStore);

impl Store for CachedStore {
    type Error = <ScriptedStore as Store>::Error;
    type Future = <ScriptedStore as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.0.apply(operation, charges)
    }

    fn check_at_once(&self, charges: &[Charge<'_>], decision: &mut Decision) -> bool {
        charges[0].key().as_bytes() == b"bob" && self.0.memory().check_at_once(charges, decision)
    }
}

#[tokio::test]
async fn cached_answer_keeps_local_counters() {
    let clock = ManualClock::default();
    let (store, local) = (
        ScriptedStore::with_clock(clock.clone()),
        MemoryStore::with_clock(1_000, clock.clone()),
    );
    store.fail(true);
    let layer = RateLimitLayer::new(CachedStore(store), minute(OnStoreFailure::Local))
        .local_store(local.clone());
    for client in ["ann", "bob"] {
        let request = Request::get("/").header("k", client).body(()).unwrap();
        assert_eq!(
            layer
                .layer(Inner::default())
                .oneshot(request)
                .await
                .unwrap()
                .status(),
            200
        );
        clock.advance(secs(3_600));
    }
    assert!(!local.is_empty());
}

#[tokio::test]
async fn layers_can_share_their_local_counters() {
    let setting = Setting::unavailable(minute(OnStoreFailure::Local));
    let other = RateLimitLayer::new(setting.store.clone(), minute(OnStoreFailure::Local))
        .local_store(setting.local.clone())
        .on_refused(|_| http::Response::new("no"))
        .headers(WITH_X)
        .layer(Inner::default());
    setting.get().await;
    let response = answer_of(&other).await;
    assert_field(&response, "x-ratelimit-remaining", "0");
}

#[tokio::test]
async fn inner_limiters_fields_survive_outer_degradation() {
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    store.fail(true);
    let inner = RateLimitLayer::new(
        MemoryStore::with_clock(10, clock),
        minute(OnStoreFailure::Allow),
    )
    .headers(WITH_X);
    let outer = RateLimitLayer::new(store, minute(OnStoreFailure::Allow)).headers(WITH_X);
    let response = outer
        .layer(inner.layer(Inner::default()))
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert_field(&response, "x-ratelimit-remaining", "11");
    assert_field(&response, "x-ratelimit-policy", "degraded");
    assert_field(&response, "ratelimit", "\"minute\";r=11;t=55");
}

#[tokio::test]
async fn custom_refusal_sees_degraded_mark() {
    let clock = ManualClock::default();
    let store = ScriptedStore::with_clock(clock.clone());
    let layer = RateLimitLayer::new(store.clone(), minute(OnStoreFailure::Local))
        .local_store(MemoryStore::with_clock(10, clock))
        .on_refused(|refused| {
            let degraded = refused.head().extensions().get::<Degraded>().is_some();
            http::Response::new(if degraded { "degraded" } else { "counted" })
        });
    store.fail(true);
    let service = layer.layer(Inner::default());
    for expected in ["inner", "inner", "degraded"] {
        let response = answer_of(&service).await;
        assert_eq!(crate::fixture::text(response).await, expected);
    }
}
