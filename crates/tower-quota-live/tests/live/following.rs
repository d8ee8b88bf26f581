//! Tests which documents become active on an instance.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tower_quota::MemoryStore;
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_live::{
    By, ChangeError, LiveOptions, MemoryRules, NewVersion, RedisRules, Reply, RuleStore,
    RuleStoreError, StoreState, Version, VersionInfo,
};
use tower_quota_rules::Rules;

use crate::fixture::{Instance, broken, document, eventually, new, redis_rules, yaml};

#[tokio::test]
async fn put_document_is_in_force_at_once() {
    let instance = Instance::in_memory().await;
    assert!(instance.live.in_force().is_none() && !instance.live.state().is_healthy());
    instance.put(new(5)).await;
    assert_eq!(instance.limits("ann").await, [5, 10]);
    instance.live.put(Some(1), new(7)).await.unwrap();
    assert_eq!(instance.limits("ann").await, [7, 14]);
    let peeked = instance.live.handle().peek("one", "ann").await.unwrap();
    assert_eq!(peeked.remaining(), 5, "what was used is kept");
    assert!(instance.live.state().is_healthy());
    assert_eq!(instance.live.state().reloads.applied, 2);
}

#[tokio::test]
async fn regions_of_document_reach_the_store() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let options = LiveOptions::new().on_document(move |document| {
        let regions = document.regions.iter();
        let shares = regions.map(|(name, percent)| (name.as_str().to_owned(), *percent));
        heard.lock().unwrap().push(shares.collect::<Vec<_>>());
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    for shares in ["eu: 30, us: 20", "eu: 60, us: 40", "eu: 20, us: 30"] {
        let text = format!("regions: {{ {shares} }}\n{}", document(5));
        // Shares without a pool are an error.
        let put = instance.live.put(None, yaml(text)).await;
        assert_eq!(put.is_ok(), !shares.contains("60"), "{put:?}");
    }
    let shares = |eu, us| vec![("eu".to_owned(), eu), ("us".to_owned(), us)];
    assert_eq!(*told.lock().unwrap(), [shares(30, 20), shares(20, 30)]);
}

#[tokio::test]
async fn invalid_document_is_not_put() {
    let instance = Instance::in_memory().await;
    instance.put(new(5)).await;
    let refused = instance.live.put(None, broken()).await;
    assert!(
        matches!(refused, Err(ChangeError::Invalid(_))),
        "{refused:?}"
    );
    assert_eq!(instance.live.history(9).await.unwrap().len(), 1);
    assert_eq!(instance.limits("ann").await, [5, 10]);
}

#[tokio::test]
async fn invalid_document_of_another_stays_out() {
    let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
    let instance =
        Instance::counting(MemoryStore::new(), Arc::clone(&store), LiveOptions::new()).await;
    instance.put(new(5)).await;
    // Another program does not check it.
    store.put(None, broken()).await.unwrap();
    eventually("it is rejected", async || {
        instance.live.state().reloads.rejected == 1
    })
    .await;
    let state = instance.live.state();
    assert!(!state.is_healthy() && state.is_reachable && state.failing_since.is_some());
    assert!(
        state.last_error.unwrap().contains("version 2"),
        "the error names the version"
    );
    assert_eq!(
        (instance.number(), instance.limits("ann").await),
        (1, vec![5, 10])
    );
    // The instance does not read the broken document again.
    instance.live.refresh().await;
    assert_eq!(instance.live.state().reloads.rejected, 1);
    // A new instance begins with the last good document.
    let later =
        Instance::counting(MemoryStore::new(), Arc::clone(&store), LiveOptions::new()).await;
    assert_eq!(
        (later.number(), later.live.state().is_healthy()),
        (1, false)
    );
    store.put(None, new(6)).await.unwrap();
    for instance in [&instance, &later] {
        instance.until_in_force(3).await;
        eventually("all is well", async || instance.live.state().is_healthy()).await;
    }
}

/// A store that fails the first call of `history`.
#[derive(Debug, Default)]
struct FailingHistory {
    rules: MemoryRules,
    has_failed: AtomicBool,
}

impl RuleStore for FailingHistory {
    fn name(&self) -> String {
        self.rules.name()
    }

    fn state(&self, known: Option<u64>) -> Reply<'_, Option<StoreState>> {
        self.rules.state(known)
    }

    fn version(&self, number: u64) -> Reply<'_, Option<Version>> {
        self.rules.version(number)
    }

    fn history(&self, most: usize) -> Reply<'_, Vec<VersionInfo>> {
        if self.has_failed.swap(true, Ordering::Relaxed) {
            return self.rules.history(most);
        }
        Box::pin(async { Err(RuleStoreError::unavailable(self.name(), "it fails once")) })
    }

    fn put(&self, expected: Option<u64>, new: NewVersion) -> Reply<'_, Version> {
        self.rules.put(expected, new)
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.rules.changes()
    }
}

#[tokio::test]
async fn last_good_document_is_sought_again() {
    let store = FailingHistory::default();
    store.put(None, new(5)).await.unwrap();
    store.put(None, broken()).await.unwrap();
    let instance = Instance::start(store, LiveOptions::new()).await;
    instance.until_in_force(1).await;
    // The instance reports the error after the good version is active.
    eventually("the broken version is reported", async || {
        let error = instance.live.state().last_error;
        error.is_some_and(|error| error.contains("version 2 is invalid"))
    })
    .await;
}

#[tokio::test]
async fn rollback_waits_for_no_check() {
    let (end, ended) = mpsc::channel::<()>();
    let (ended, begun) = (Mutex::new(ended), Arc::new(Notify::new()));
    let has_begun = Arc::clone(&begun);
    let options = LiveOptions::new().read_with(move |text| {
        if text.contains("large") {
            has_begun.notify_one();
            ended.lock().unwrap().recv().ok();
        }
        Rules::parse(text)
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(new(5)).await;
    instance.put(new(6)).await;
    let live = instance.live.clone();
    let large = format!("# large\n{}", document(7));
    let check = tokio::spawn(async move { live.check(large).await });
    begun.notified().await;
    let rollback = instance.live.rollback(None, 1, "ann");
    let rollback = tokio::time::timeout(Duration::from_secs(20), rollback).await;
    assert_eq!(rollback.unwrap().unwrap().number, 3);
    assert_eq!(instance.limits("ann").await, [5, 10]);
    assert!(!check.is_finished());
    drop(end);
    assert!(check.await.unwrap().is_ok());
}

#[tokio::test]
async fn dropped_put_is_made_in_order() {
    let (calls, begun) = (AtomicU32::new(0), Arc::new(Notify::new()));
    let (release, released) = mpsc::channel();
    let (released, has_begun) = (Mutex::new(released), Arc::clone(&begun));
    let options = LiveOptions::new().with_policy(move |policy| {
        // The first call is for the policy without rules.
        if calls.fetch_add(1, Ordering::Relaxed) == 2 {
            has_begun.notify_one();
            released.lock().unwrap().recv().unwrap();
        }
        policy
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(new(5)).await;
    tokio::select! {
        put = instance.live.put(None, new(6)) => unreachable!("{put:?}"),
        () = begun.notified() => {}
    }
    let live = instance.live.clone();
    let mut third = tokio::spawn(async move { live.put(None, new(7)).await });
    // If the third document did not wait for the second, it would be active by then.
    let overtaking = tokio::time::timeout(Duration::from_millis(100), &mut third).await;
    release.send(()).unwrap();
    assert!(overtaking.is_err(), "it waits for the second one");
    third.await.unwrap().unwrap();
    assert_eq!(
        (instance.number(), instance.limits("ann").await),
        (3, vec![7, 14])
    );
    assert_eq!(instance.live.audit(9).await.unwrap().len(), 3);
}

#[tokio::test]
async fn document_that_panics_stays_rejected() {
    let calls = AtomicU32::new(0);
    let options = LiveOptions::new().with_policy(move |policy| {
        assert_ne!(
            calls.fetch_add(1, Ordering::Relaxed),
            2,
            "a policy of code that panics"
        );
        policy
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    instance.put(new(5)).await;
    instance.put(new(6)).await;
    let error = instance.live.state().last_error.unwrap_or_default();
    assert!(error.contains("version 2 is invalid"), "{error}");
    assert_eq!(instance.limits("ann").await, [5, 10]);
}

#[tokio::test]
async fn rollback_is_a_new_version() {
    let instance = Instance::in_memory().await;
    instance.put(new(5)).await;
    instance.put(new(6)).await;
    assert_eq!(
        instance.live.rollback(None, 1, "bob").await.unwrap().number,
        3
    );
    assert_eq!(
        (instance.number(), instance.limits("ann").await),
        (3, vec![5, 10])
    );
    instance
        .live
        .rollback(None, 2, By::new("bob").comment("it was no mistake"))
        .await
        .unwrap();
    let comments: Vec<String> = instance
        .live
        .history(2)
        .await
        .unwrap()
        .into_iter()
        .map(|version| version.comment)
        .collect();
    assert_eq!(
        comments,
        [
            "rollback to version 2: it was no mistake",
            "rollback to version 1"
        ]
    );
    let refused = instance.live.rollback(Some(3), 1, "bob").await;
    assert!(matches!(
        refused,
        Err(ChangeError::Store(RuleStoreError::Conflict {
            current: Some(4)
        }))
    ));
    let missing = instance.live.rollback(None, 77, "bob").await;
    assert!(matches!(
        missing,
        Err(ChangeError::Store(RuleStoreError::UnknownVersion(77)))
    ));
}

#[tokio::test]
async fn restart_without_store_uses_local_copy() {
    let (mut server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let options = || LiveOptions::new().local_copy(folder.path().join("rules.copy"));
    let redis = || redis_rules(&server, "copy");
    let (first, again, late) = (redis(), redis(), redis());
    let instance = Instance::start(first, options()).await;
    instance.put(new(5)).await;
    assert!(instance.live.close(Duration::from_secs(5)).await);
    server.kill();

    let instance = Instance::start(again, options()).await;
    assert_eq!(instance.limits("ann").await, [5, 10]);
    let state = instance.live.state();
    assert!(state.in_force.unwrap().is_local_copy && !state.is_reachable);

    // The instance restores the document on an empty server, under the same number.
    server.start_again();
    eventually("the store has confirmed it", async || {
        instance
            .live
            .state()
            .in_force
            .is_some_and(|known| !known.is_local_copy)
    })
    .await;
    let restored = late.current().await.unwrap().unwrap();
    assert_eq!((restored.number, restored.text), (1, document(5)));
    assert_eq!(instance.live.put(Some(1), new(6)).await.unwrap().number, 2);
}

#[tokio::test]
async fn empty_store_gets_local_copy_back() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let start = async || {
        let redis = redis_rules(&server, "empty");
        let options = LiveOptions::new().poll_every(Duration::from_millis(20));
        Instance::start(redis, options.local_copy(folder.path().join("rules.copy"))).await
    };
    let first = start().await;
    first.put(new(5)).await;
    assert!(first.live.close(Duration::from_secs(5)).await);
    server.command("FLUSHALL").unwrap();

    let again = start().await;
    assert_eq!(again.limits("ann").await, [5, 10]);
    eventually("the store has it", async || {
        again.live.store().current().await.unwrap().is_some()
    })
    .await;
}

#[tokio::test]
async fn broken_local_copy_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.copy");
    for text in ["", "{", "{\"number\":1}"] {
        std::fs::write(&path, text).unwrap();
        let unreachable = RedisRules::new("redis://127.0.0.1:1/", "none").unwrap();
        let instance = Instance::start(unreachable, LiveOptions::new().local_copy(&path)).await;
        assert!(!instance.live.is_ready());
        assert_eq!(instance.ask("ann").await, 503);
    }
}

#[tokio::test]
async fn silent_store_ends_every_call() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let redis = RedisRules::new(&proxy.url(), "silent").unwrap();
    let instance = Instance::start(
        redis,
        LiveOptions::new().poll_every(Duration::from_millis(50)),
    )
    .await;
    instance.put(new(5)).await;
    proxy.inflict(Fault::Stall);
    let put = tokio::time::timeout(Duration::from_secs(10), instance.live.put(None, new(6))).await;
    assert!(
        matches!(
            put,
            Ok(Err(ChangeError::Store(RuleStoreError::Unavailable { .. })))
        ),
        "{put:?}"
    );
    eventually("it is noticed", async || {
        !instance.live.state().is_reachable
    })
    .await;
    assert_eq!(instance.limits("ann").await, [5, 10]);
    proxy.heal();
    eventually("it has recovered", async || {
        instance.live.state().is_healthy()
    })
    .await;
    instance.put(new(7)).await;
    assert_eq!(instance.limits("ann").await, [7, 14]);
}

#[tokio::test]
async fn invalid_document_is_reported_after_an_outage() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let redis = RedisRules::new(&proxy.url(), "outage").unwrap();
    let instance = Instance::start(
        redis,
        LiveOptions::new().poll_every(Duration::from_millis(20)),
    )
    .await;
    instance.put(new(5)).await;
    redis_rules(&server, "outage")
        .put(None, broken())
        .await
        .unwrap();
    eventually("it is rejected", async || {
        instance.live.state().last_error.is_some()
    })
    .await;
    proxy.inflict(Fault::Refuse);
    eventually("it is noticed", async || {
        !instance.live.state().is_reachable
    })
    .await;
    proxy.heal();
    eventually("it has recovered", async || {
        instance.live.state().is_reachable
    })
    .await;
    let error = instance.live.state().last_error.unwrap_or_default();
    assert!(error.contains("version 2 is invalid"), "{error}");
}

#[tokio::test]
async fn documents_are_checked_one_at_a_time() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (runtime, seen) = (thread::current().id(), Arc::clone(&most));
    let options = LiveOptions::new().read_with(move |text| {
        assert_ne!(thread::current().id(), runtime);
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        seen.fetch_max(now, Ordering::SeqCst);
        // Give the other threads time to begin.
        (0..1_000).for_each(|_| thread::yield_now());
        let read = Rules::parse(text);
        running.fetch_sub(1, Ordering::SeqCst);
        read
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    let check = || instance.live.check(document(5));
    let (one, other, third) = tokio::join!(check(), check(), check());
    for checked in [one, other, third] {
        assert!(checked.unwrap().1.is_passed());
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
