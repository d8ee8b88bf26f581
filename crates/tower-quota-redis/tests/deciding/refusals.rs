//! Tests the refusal cache in front of a real Redis, under floods of refused requests and without
//! the server.

use std::time::Duration;

use tower_quota_core::{
    Charge, Clock, MonotonicClock, Operation, Penalty, Quota, RefusalCache, Store,
};
use tower_quota_dev::RedisServer;
use tower_quota_testkit::ManualClock;

use crate::common::{store_on, user};

const FLOOD: u64 = 100_000;
const HOUR: Quota = Quota::per_hour(6);

/// Sends refused requests of one client. Returns the number of calls to Redis, and the highest
/// allowed number.
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
    // Allow one call at the start, and one more because successive readings of the clock may differ
    // by some microseconds.
    let allowed = u64::try_from(elapsed.as_millis()).unwrap() * calls_per_second / 1_000 + 2;
    let calls = store.stats().calls - before;
    println!(
        "{FLOOD} refused in {elapsed:?}: {calls} calls of at most {allowed}; {:?}",
        cache.stats()
    );
    // A call may carry counted refusals in addition to the check.
    assert!(FLOOD - cache.stats().answered <= calls);
    (calls, allowed)
}

#[tokio::test]
async fn flood_costs_one_call_a_second() {
    let (server, client) = (RedisServer::start(), user("ann"));
    let (calls, allowed) = flood(&server, Charge::new("hour", &HOUR, &client), 1).await;
    assert!(calls <= allowed, "{calls} calls instead of {allowed}");
}

/// Checks that the entry of a refusal gives the same decisions as the server.
#[tokio::test]
async fn refusal_of_each_algorithm_is_remembered() {
    let (server, client) = (RedisServer::start(), user("ann"));
    let clock = ManualClock::default();
    let options = crate::common::options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let cache = RefusalCache::with_clock(store.clone(), clock.clone());
    let long = Quota::per_hour(100).sliding_log();
    let quotas = [
        HOUR,
        HOUR.gcra(),
        HOUR.leaky_bucket(),
        HOUR.fixed_window(),
        HOUR.sliding_window(),
        HOUR.sliding_log(),
        long,
    ];
    for (number, quota) in quotas.iter().enumerate() {
        for (name, options) in [("plain", 0), ("refundable", 1), ("shadowed", 2)] {
            let charge = Charge::new(format!("{name} {number}"), quota, &client);
            let charge = charge.max_wait(Duration::ZERO);
            let shadow = Charge::new("shadow", &HOUR, &client).shadow();
            let charges = [[charge, shadow], [charge.refundable(), shadow]][options & 1];
            let charges = &charges[..1 + options / 2];
            for _ in 0..quota.capacity() {
                store.check(charges).await.unwrap();
                clock.advance(Duration::from_millis(1));
            }
            assert!(!cache.check(charges).await.unwrap().is_allowed());
            let before = store.stats().calls;
            clock.advance(Duration::from_millis(500));
            let known = cache.check(charges).await.unwrap();
            assert_eq!(store.stats().calls, before, "{name}: {quota:?}");
            let exact = store.check(charges).await.unwrap();
            if *quota == long {
                // The log is abridged, so that only its reset is too early.
                assert_eq!(known.outcome(), exact.outcome());
                assert_eq!(known.statuses()[0].remaining(), 0);
            } else {
                assert_eq!(known, exact, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn counted_flood_costs_twenty_calls_a_second() {
    let (server, penalty) = (
        RedisServer::start(),
        Penalty::after(5).step(Duration::from_secs(60)),
    );
    let (ann, bob) = (user("ann"), user("bob"));
    for charge in [
        Charge::new("hour", &HOUR, &ann).count_refusals(),
        Charge::new("hour", &HOUR, &bob).penalty(&penalty),
    ] {
        // There are ten checks, and ten calls with the refusals in between.
        let (calls, allowed) = flood(&server, charge, 20).await;
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
async fn outage_releases_no_limited_client() {
    let mut server = RedisServer::start();
    let store = crate::common::options()
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
