//! Stores that do not answer, and policies that are replaced.

use std::time::Duration;

use tower_quota::settle::only_failures;
use tower_quota::{Check, Limit, MemoryStore, OnStoreFailure, Policy, Quota, RateLimitLayer};
use tower_quota_dev::record_log;
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};
use tracing::Level;

use crate::fixture::{Client, app, by_client, in_memory, minute};
use crate::log::Log;

/// Returns the lines since the last call.
fn lines(log: &Log, seen: &mut usize) -> Vec<(Level, String)> {
    let lines = log.lines().split_off(*seen);
    *seen += lines.len();
    lines
}

#[tokio::test]
async fn outage_is_logged_with_its_counts() {
    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    let (store, clock) = (ScriptedStore::new(), ManualClock::default());
    let layer = RateLimitLayer::new(store.clone(), Policy::new().limit(minute()))
        .local_store(MemoryStore::with_clock(100, clock.clone()));
    let mut client = Client::of(app().layer(layer)).await;
    client.get_paths(3, "").await;
    assert_eq!(lines(&log, &mut seen), []);
    store.set_default(ScriptedAnswer::error("away"));
    client.get_paths(5, "").await;
    let first =
        "the store of the rate limits fails, and limits do what `on_store_failure` says: away";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, first.to_owned())]);
    // A breaker has opened.
    clock.advance(Duration::from_secs(1));
    store.set_default(ScriptedAnswer::error("not asked"));
    client.get_paths(5, "").await;
    let opened = "the store of the rate limits has failed 6 requests in 1s, of which 6 passed uncounted: not asked";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, opened.to_owned())]);
    clock.advance(Duration::from_secs(59));
    client.get_paths(5, "").await;
    assert_eq!(lines(&log, &mut seen), []);
    clock.advance(Duration::from_secs(1));
    client.get_paths(5, "").await;
    let minute = "the store of the rate limits has failed 16 requests in 61s, of which 16 passed uncounted: not asked";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, minute.to_owned())]);
    store.set_default(ScriptedAnswer::memory());
    client.get_paths(5, "").await;
    assert_eq!(lines(&log, &mut seen), [], "it may fail again at once");
    clock.advance(Duration::from_secs(5));
    client.get_paths(5, "").await;
    let over = "the store of the rate limits answers again. It failed 20 requests in 61s, of which 20 passed uncounted";
    assert_eq!(lines(&log, &mut seen), [(Level::INFO, over.to_owned())]);
}

// A lost connection is the first error, and the reason follows when the store connects again.
#[tokio::test]
async fn cause_of_outage_is_logged_at_once() {
    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    let (store, clock) = (ScriptedStore::new(), ManualClock::default());
    let layer = RateLimitLayer::new(store.clone(), Policy::new().limit(minute()))
        .local_store(MemoryStore::with_clock(100, clock.clone()));
    let mut client = Client::of(app().layer(layer)).await;
    store.set_default(ScriptedAnswer::error("connection lost"));
    client.get_paths(1, "").await;
    clock.advance(Duration::from_millis(2));
    store.set_default(ScriptedAnswer::error("wrong password"));
    client.get_paths(1, "").await;
    let warnings = lines(&log, &mut seen);
    let cause = warnings.get(1).map(|(_, line)| line.as_str());
    assert!(
        cause.is_some_and(|line| line.ends_with("wrong password")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn failed_settlements_are_logged_with_their_counts() {
    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    let (store, clock) = (ScriptedStore::new(), ManualClock::default());
    let limit = Limit::new("minute", Quota::per_minute(100)).settle(only_failures());
    let layer = RateLimitLayer::new(store.clone(), Policy::new().limit(limit))
        .local_store(MemoryStore::with_clock(100, clock.clone()));
    let mut client = Client::of(app().layer(layer)).await;
    // The store stops between a check and its refund.
    let mut fail_refund = async |text: &str| {
        store.push(ScriptedAnswer::memory());
        store.push(ScriptedAnswer::error(text));
        client.get_paths(1, "").await;
    };
    fail_refund("away").await;
    let first = "the store of the rate limits fails to settle, release or renew the units of requests: away";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, first.to_owned())]);
    clock.advance(Duration::from_secs(1));
    fail_refund("not asked").await;
    let second = "the store of the rate limits has failed 2 attempts to settle, renew or release units in 1s: not asked";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, second.to_owned())]);
    clock.advance(Duration::from_secs(1));
    store.push(ScriptedAnswer::error("timed out"));
    client.get_paths(1, "").await;
    let third = "the store of the rate limits has failed 1 requests in 2s, of which 1 passed uncounted, \
                 and 2 attempts to settle, renew or release units: timed out";
    assert_eq!(lines(&log, &mut seen), [(Level::WARN, third.to_owned())]);
    clock.advance(Duration::from_secs(5));
    client.get_paths(1, "").await;
    let over = "the store of the rate limits answers again. It failed 1 requests in 2s, of which 1 passed \
                uncounted, and 2 attempts to settle, renew or release units";
    assert_eq!(lines(&log, &mut seen), [(Level::INFO, over.to_owned())]);
}

#[tokio::test]
async fn alternating_errors_warn_once_a_minute() {
    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    let (store, clock) = (ScriptedStore::new(), ManualClock::default());
    let layer = RateLimitLayer::new(store.clone(), Policy::new().limit(minute()))
        .local_store(MemoryStore::with_clock(100, clock.clone()));
    let mut client = Client::of(app().layer(layer)).await;
    for _ in 0..2 {
        for second in 0..60 {
            let text = ["first node is away", "second node is away"][second % 2];
            store.set_default(ScriptedAnswer::error(text));
            client.get_paths(1, "").await;
            clock.advance(Duration::from_secs(1));
        }
        let warnings = lines(&log, &mut seen);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn refused_requests_are_not_uncounted() {
    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    for choice in [OnStoreFailure::Refuse, OnStoreFailure::Local] {
        let (store, clock) = (ScriptedStore::new(), ManualClock::default());
        store.set_default(ScriptedAnswer::error("away"));
        let policy = Policy::new().limit(minute()).on_store_failure(choice);
        let layer = RateLimitLayer::new(store.clone(), policy)
            .local_store(MemoryStore::with_clock(100, clock.clone()));
        let mut client = Client::of(app().layer(layer)).await;
        client.get_paths(5, "").await;
        clock.advance(Duration::from_secs(60));
        client.get_paths(5, "").await;
        let (level, line) = lines(&log, &mut seen).pop().unwrap();
        assert_eq!(level, Level::WARN);
        assert!(line.contains("of which 0 passed uncounted"), "{line}");
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn killed_redis_is_logged() {
    use tower_quota::{Limit, Quota, RedisStore};
    use tower_quota_dev::RedisServer;

    let (log, mut seen) = (Log::default(), 0);
    let _guard = record_log(log.clone());
    let mut redis = RedisServer::start();
    let options = RedisStore::options().deadline(Duration::from_secs(5));
    let store = options.connect(&redis.url()).await.unwrap();
    let limit = Limit::new("few", Quota::per_hour(3));
    let layer = RateLimitLayer::new(store, Policy::new().limit(limit));
    let mut client = Client::of(app().layer(layer)).await;
    client.get_paths(3, "").await;
    assert_eq!(lines(&log, &mut seen), []);
    redis.kill();
    client.get_paths(50, "").await;
    let (level, line) = lines(&log, &mut seen).remove(0);
    assert_eq!(level, Level::WARN);
    assert!(
        line.contains("limits fails") && line.contains("127.0.0.1"),
        "{line}"
    );
}

#[tokio::test]
async fn replaced_policy_warns_no_second_time() {
    let log = Log::default();
    let _guard = record_log(log.clone());
    let layer = in_memory(by_client());
    let handle = layer.handle();
    let mut client = Client::of(app().layer(layer)).await;
    for _ in 0..2 {
        client.get_paths(30, "x-forwarded-for: 192.0.2.1\r\n").await;
        handle.replace_policy(by_client());
    }
    assert_eq!(log.lines().len(), 1);
    assert_eq!(handle.mistakes().count(Check::UntrustedProxy), 60);
    assert_eq!(handle.mistakes().warnings().count(), 1);
}

#[tokio::test]
async fn mistake_of_former_policy_is_past() {
    let layer = in_memory(by_client());
    let handle = layer.handle();
    let mut client = Client::of(app().layer(layer)).await;
    let current = || {
        let mistakes = handle.mistakes();
        mistakes
            .current()
            .map(|(check, ..)| check)
            .collect::<Vec<_>>()
    };
    for _ in 0..2 {
        client.get_paths(30, "x-forwarded-for: 192.0.2.1\r\n").await;
        assert_eq!(current(), [Check::UntrustedProxy]);
        let seen = handle.mistakes().last_seen(Check::UntrustedProxy);
        handle.replace_policy(by_client());
        assert_eq!(current(), []);
        assert_eq!(handle.mistakes().last_seen(Check::UntrustedProxy), seen);
        assert_eq!(handle.mistakes().warnings().count(), 1);
    }
}
