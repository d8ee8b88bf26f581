//! The refusal cache before a real Redis: floods of refused requests, and a server that is gone.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod common;

use std::time::Duration;

use tower_quota_core::{
    Charge, Clock, MonotonicClock, Operation, Penalty, Quota, RefusalCache, Store,
};
use tower_quota_testkit::{ManualClock, RedisServer};

use self::common::{store_on, user};

const FLOOD: u64 = 100_000;
const HOUR: Quota = Quota::per_hour(6);

/// Sends refused requests of one client, and returns how many calls Redis got, and how many it may get.
async fn flood(server: &RedisServer, charge: Charge<'_>, calls_per_second: u64) -> (u64, u64) {
    let (store, clock) = (store_on(server).await, MonotonicClock::new());
    let cache = RefusalCache::new(store.clone());
    cache.check(&[charge.cost(HOUR.capacity())]).await.unwrap();
    let (before, began) = (store.stats().calls, clock.now());
    for _ in 0..FLOOD {
        let decision = cache.check(&[charge]).await.unwrap();
        assert!(!decision.is_allowed() && decision.statuses().len() == 1);
    }
    let elapsed = clock.now().since(began);
    // One at the start, and one more because successive readings of the clock may differ by some microseconds.
    let allowed = u64::try_from(elapsed.as_millis()).unwrap() * calls_per_second / 1_000 + 2;
    let calls = store.stats().calls - before;
    println!(
        "{FLOOD} refused in {elapsed:?}: {calls} calls of at most {allowed}; {:?}",
        cache.stats()
    );
    assert_eq!(cache.stats().answered, FLOOD - calls);
    (calls, allowed)
}

#[tokio::test]
async fn flood_costs_one_call_a_second() {
    let (server, client) = (RedisServer::start(), user("ann"));
    let (calls, allowed) = flood(&server, Charge::new("hour", &HOUR, &client), 1).await;
    assert!(calls <= allowed, "{calls} calls instead of {allowed}");
}

/// Takes all units: the answer says when as much fits again, which Redis calculates for every algorithm.
#[tokio::test]
async fn admission_of_last_unit_is_remembered() {
    let (server, client) = (RedisServer::start(), user("ann"));
    // No window ends between two calls.
    let store = common::options()
        .clock(ManualClock::default())
        .connect(&server.url())
        .await
        .unwrap();
    let cache = RefusalCache::new(store.clone());
    let quotas = [
        HOUR,
        HOUR.gcra(),
        HOUR.fixed_window(),
        HOUR.sliding_window(),
        HOUR.sliding_log(),
    ];
    for (number, quota) in quotas.into_iter().enumerate() {
        for (name, options) in [("plain", 0), ("refundable", 1), ("at most", 2)] {
            let name = format!("{name} {number}");
            let charge = Charge::new(name.clone(), &quota, &client);
            let charge = [charge, charge.refundable(), charge.at_most()][options];
            assert!(
                cache
                    .check(&[charge.cost(HOUR.capacity())])
                    .await
                    .unwrap()
                    .is_allowed()
            );
            let before = store.stats().calls;
            let charge = charge.cost(if options == 2 { 1 } else { HOUR.capacity() });
            let known = cache.check(&[charge]).await.unwrap().retry_after().unwrap();
            assert_eq!(store.stats().calls, before, "{name}: {quota:?}");
            let exact = store.check(&[charge]).await.unwrap().retry_after().unwrap();
            // The first counts from before the call that took the units.
            assert!(
                known.abs_diff(exact) < Duration::from_secs(30),
                "{name}: {known:?}, {exact:?}"
            );
        }
    }
}

#[tokio::test]
async fn counted_flood_costs_ten_calls_a_second() {
    let (server, penalty) = (
        RedisServer::start(),
        Penalty::after(5).step(Duration::from_secs(60)),
    );
    let (ann, bob) = (user("ann"), user("bob"));
    for charge in [
        Charge::new("hour", &HOUR, &ann).count_refusals(),
        Charge::new("hour", &HOUR, &bob).penalty(&penalty),
    ] {
        let (calls, allowed) = flood(&server, charge, 10).await;
        assert!(calls <= allowed, "{calls} calls instead of {allowed}");
    }
}

#[tokio::test]
async fn repeated_charges_add_a_strike_each() {
    let (server, penalty) = (
        RedisServer::start(),
        Penalty::after(5).step(Duration::from_secs(60)),
    );
    let (store, client, quota) = (
        store_on(&server).await,
        user("ann"),
        Quota::per_second(10).burst(1),
    );
    let charge = Charge::new("second", &quota, &client).penalty(&penalty);
    store
        .apply(Operation::Charge, &[charge.cost(10)])
        .await
        .unwrap();
    let refused = store.apply(Operation::Refuse, &[charge; 10]).await.unwrap();
    // Five of the ten are free, and the others block for a minute each.
    let blocked = refused.retry_after().unwrap();
    assert!(
        blocked > Duration::from_secs(4 * 60) && blocked <= Duration::from_secs(5 * 60),
        "{blocked:?}"
    );
}

#[tokio::test]
async fn outage_releases_none_of_thousand_clients() {
    let mut server = RedisServer::start();
    let store = common::options()
        .deadline(Duration::from_secs(1))
        .connect(&server.url())
        .await
        .unwrap();
    let cache = RefusalCache::new(store).max_age(Duration::ZERO);
    let clients: Vec<String> = (0..1_000)
        .map(|number| format!("client {number}"))
        .collect();
    for client in &clients {
        let key = user(client);
        for cost in [HOUR.capacity(), 1] {
            cache
                .check(&[Charge::new("hour", &HOUR, &key).cost(cost)])
                .await
                .unwrap();
        }
    }
    server.kill();
    for client in clients.iter().cycle().take(4_000) {
        let key = user(client);
        let decision = cache
            .check(&[Charge::new("hour", &HOUR, &key)])
            .await
            .unwrap();
        assert!(!decision.is_allowed(), "{client}");
    }
}
