//! Refusals of a shared store, remembered by the layer.

use std::time::Duration;

use http::Request;
use tower::Layer;
use tower_quota::{
    Limit, MemoryStore, OnStoreFailure, Quota, RateLimit, RateLimitHandle, RateLimitLayer,
    RefusalCache, key,
};
use tower_quota_testkit::SharedStore;

use crate::fixture::{Answer, Inner, ScriptedStore, StoreControl, field, retry_after};
use crate::shared::{answer_to, per_minute, policy_of, secs};

/// Longer than any test: no result depends on the machine's speed.
const AGE: Duration = Duration::from_secs(3_600);

struct Setting {
    service: RateLimit<Inner, SharedStore<ScriptedStore>>,
    handle: RateLimitHandle<SharedStore<ScriptedStore>>,
    store: ScriptedStore,
    local: MemoryStore,
}

impl Setting {
    fn new(age: Duration, limit: Limit) -> Self {
        let store = ScriptedStore::new();
        let local = MemoryStore::with_clock(100, store.clock().clone());
        let policy = policy_of(limit.by(key::header("k")));
        let cache = RefusalCache::new(SharedStore(store.clone())).max_age(age);
        let layer = RateLimitLayer::with_refusal_cache(cache, policy).local_store(local.clone());
        Self {
            service: layer.layer(Inner::default()),
            handle: layer.handle(),
            store,
            local,
        }
    }

    async fn get(&self, client: &str) -> Answer {
        let request = Request::get("/").header("k", client).body(()).unwrap();
        answer_to(&self.service, request).await
    }

    async fn statuses<const N: usize>(&self, clients: [&str; N]) -> [u16; N] {
        let mut statuses = [0; N];
        for (client, status) in clients.into_iter().zip(&mut statuses) {
            *status = self.get(client).await.status().as_u16();
        }
        statuses
    }

    fn calls(&self) -> usize {
        self.store.operations().len()
    }
}

fn minute() -> Limit {
    per_minute("minute", 2)
}

#[tokio::test]
async fn flood_reaches_store_once() {
    let setting = Setting::new(AGE, minute());
    assert_eq!(
        setting.statuses(["ann", "ann", "ann"]).await,
        [200, 200, 429]
    );
    let asked = setting.get("ann").await;
    for _ in 0..1_000 {
        let response = setting.get("ann").await;
        assert_eq!(response.status(), 429);
        assert!((1..=30).contains(&retry_after(&response).as_secs()));
        for name in [
            "ratelimit-policy",
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-policy",
        ] {
            assert_eq!(field(&response, name), field(&asked, name), "{name}");
        }
    }
    assert_eq!(setting.calls(), 3);
    let stats = setting.handle.refusal_stats();
    assert_eq!(
        (stats.answered, stats.remembered, stats.evicted),
        (1_001, 1, 0)
    );
    #[cfg(feature = "top")]
    assert_eq!(
        setting
            .handle
            .top_refused(tower_quota::TopWindow::Minute)
            .len(),
        1
    );
    assert_eq!(setting.statuses(["bob", "bob"]).await, [200, 200]);
}

#[tokio::test]
async fn cache_of_no_age_asks_each_time() {
    let setting = Setting::new(Duration::ZERO, minute());
    setting.statuses(["ann"; 10]).await;
    assert_eq!(
        (setting.calls(), setting.handle.refusal_stats().answered),
        (10, 0)
    );
}

#[tokio::test]
async fn reset_and_grant_end_refusal_at_once() {
    let setting = Setting::new(AGE, minute());
    assert_eq!(
        setting.statuses(["ann", "ann", "ann", "ann"]).await,
        [200, 200, 429, 429]
    );
    setting.handle.reset("minute", "ann").await.unwrap();
    assert_eq!(
        setting.statuses(["ann", "ann", "ann", "ann"]).await,
        [200, 200, 429, 429]
    );
    setting.handle.grant("minute", "ann", 1).await.unwrap();
    assert_eq!(setting.statuses(["ann", "ann"]).await, [200, 429]);
}

#[tokio::test]
async fn raised_quota_ends_refusal_at_once() {
    let setting = Setting::new(
        AGE,
        Limit::new("minute", Quota::per_minute(2).fixed_window()),
    );
    assert_eq!(
        setting.statuses(["ann", "ann", "ann"]).await,
        [200, 200, 429]
    );
    let raised = Limit::new("minute", Quota::per_minute(3).fixed_window()).by(key::header("k"));
    setting.handle.replace_policy(policy_of(raised));
    assert_eq!(setting.statuses(["ann", "ann"]).await, [200, 429]);
}

#[tokio::test]
async fn refused_client_stays_refused_despite_degraded_quota() {
    for age in [AGE, Duration::ZERO] {
        let limit = minute().when_degraded(Quota::per_second(9), key::header("address"));
        let setting = Setting::new(age, limit);
        assert_eq!(
            setting.statuses(["ann", "ann", "ann"]).await,
            [200, 200, 429]
        );
        setting.store.fail(true);
        assert_eq!(
            setting.statuses(["ann", "bob", "bob", "bob"]).await,
            [429, 200, 200, 200]
        );
    }
}

#[tokio::test]
async fn known_refusal_discards_no_local_counters() {
    // From memory at once, and after the store has failed.
    for age in [AGE, Duration::ZERO] {
        let setting = Setting::new(age, minute().on_store_failure(OnStoreFailure::Local));
        assert_eq!(
            setting.statuses(["ann", "ann", "ann"]).await,
            [200, 200, 429]
        );
        setting.store.fail(true);
        assert_eq!(
            setting.statuses(["bob", "bob", "bob"]).await,
            [200, 200, 429]
        );
        setting.store.clock().advance(secs(2));
        let response = setting.get("ann").await;
        assert_eq!(response.status(), 429);
        let is_degraded = field(&response, "x-ratelimit-policy").as_deref() == Some("degraded");
        assert_eq!(is_degraded, age.is_zero());
        assert!(!setting.local.is_empty());
        assert_eq!(setting.statuses(["bob"]).await, [429]);
    }
}
