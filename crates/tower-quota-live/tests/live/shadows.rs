//! Tests shadow documents.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tower_quota::MemoryStore;
use tower_quota_dev::{Fault, FaultProxy, RedisServer};
use tower_quota_live::{
    AuditRecord, ChangeError, KEPT_REPORTS, LiveOptions, MemoryRules, RedisRules, RuleStore,
    RuleStoreError,
};

use crate::fixture::{Instance, eventually, new, redis_rules};

async fn two_instances() -> [Instance; 2] {
    let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
    let start = async || {
        Instance::counting(MemoryStore::new(), Arc::clone(&store), LiveOptions::new()).await
    };
    [start().await, start().await]
}

#[tokio::test]
async fn abandoned_shadow_counts_nothing() {
    let [one, _] = two_instances().await;
    one.put(new(50)).await;
    one.put(new(7).shadow()).await;
    assert_eq!(one.limits("ann").await, [50, 100, 7, 14]);
    one.live.abandon(2, "bob").await.unwrap();
    assert_eq!((one.limits("ann").await, one.number()), (vec![50, 100], 1));
    assert_eq!(one.live.shadow(), None);
}

/// Returns the kinds of the latest changes with their versions, the newest first.
async fn changes(instance: &Instance, most: usize) -> Vec<(&'static str, String)> {
    let records = instance.live.audit(most).await.unwrap();
    let of = |value: Option<String>| value.unwrap_or_default();
    let change = |record: AuditRecord| {
        let versions = format!("{} -> {}", of(record.before), of(record.after));
        (record.what.as_str(), versions)
    };
    records.into_iter().map(change).collect()
}

#[tokio::test]
async fn replaced_shadow_is_in_the_audit_log() {
    let [one, _] = two_instances().await;
    one.put(new(50)).await;
    one.put(new(7).shadow()).await;
    one.live.rollback(Some(2), 1, "bob").await.unwrap();
    let of = |what, versions: &str| (what, versions.to_owned());
    assert_eq!(
        changes(&one, 2).await,
        [
            of("rollback", "version 1 -> version 3"),
            of("abandon", "version 2 -> version 1")
        ]
    );
    one.live.put(Some(3), new(8).shadow()).await.unwrap();
    one.live.put(Some(4), new(9).shadow()).await.unwrap();
    assert_eq!(
        changes(&one, 2).await,
        [
            of("shadow", "version 3 -> version 5"),
            of("abandon", "version 4 -> version 3")
        ]
    );
}

#[tokio::test]
async fn rollback_expects_the_newest_version() {
    let [one, _] = two_instances().await;
    one.put(new(50)).await;
    one.put(new(7)).await;
    one.put(new(8).shadow()).await;
    for expected in [1, 2] {
        let refused = one.live.rollback(Some(expected), 1, "bob").await;
        assert!(
            matches!(
                refused,
                Err(ChangeError::Store(RuleStoreError::Conflict {
                    current: Some(3)
                }))
            ),
            "{refused:?}"
        );
    }
    assert!(one.live.state().shadow.is_some());
}

#[tokio::test]
async fn shadow_counts_differences_per_limit() {
    let [one, _] = two_instances().await;
    one.put(new(5)).await;
    one.put(new(2).shadow()).await;
    for request in 0..7 {
        let expected = if request < 5 {
            StatusCode::OK
        } else {
            StatusCode::TOO_MANY_REQUESTS
        };
        assert_eq!(
            one.ask("ann").await,
            expected,
            "a shadow document decides nothing"
        );
    }
    let report = one.live.shadow().unwrap();
    assert_eq!((report.version, report.requests), (2, 7));
    assert_eq!((report.current_refused, report.shadow_refused), (2, 5));
    assert_eq!(
        (report.only_shadow_refuses, report.only_current_refuses),
        (3, 0)
    );
    let limit = report.limits["one"];
    assert_eq!(
        (limit.only_shadow_refuses, limit.only_current_refuses),
        (3, 0)
    );
    // A shadow document has its own counters. The promotion drops them, and keeps the counters of
    // the active document.
    one.live.promote(2, "bob").await.unwrap();
    assert_eq!(one.ask("ann").await, 429);
    assert_eq!(one.live.shadow(), None);
}

#[tokio::test]
async fn shadow_of_a_generous_document_is_counted() {
    let [one, _] = two_instances().await;
    one.put(new(2)).await;
    one.put(new(9).shadow()).await;
    for _ in 0..5 {
        one.ask("ann").await;
    }
    let report = one.live.shadow().unwrap();
    assert_eq!(
        (report.only_shadow_refuses, report.only_current_refuses),
        (0, 3)
    );
    assert_eq!(report.limits["one"].only_current_refuses, 3);
}

#[tokio::test]
async fn reports_of_all_instances_are_summed() {
    let server = RedisServer::start();
    let start = async |poll| {
        let redis = redis_rules(&server, "sum");
        Instance::start(redis, LiveOptions::new().poll_every(poll)).await
    };
    let (one, other) = (
        start(Duration::from_secs(600)).await,
        start(Duration::from_millis(20)).await,
    );
    one.put(new(5)).await;
    one.put(new(2).shadow()).await;
    eventually("both run it", async || other.live.state().shadow.is_some()).await;
    assert_eq!(
        one.live.shadow_of_all().await.unwrap().unwrap().instances,
        0
    );
    for instance in [&one, &other] {
        for _ in 0..7 {
            instance.ask("ann").await;
        }
    }
    // The other instance reports with its polls, and this instance on demand.
    let mut total = None;
    eventually("both are counted", async || {
        total = one.live.shadow_of_all().await.unwrap();
        total
            .as_ref()
            .is_some_and(|total| total.report.requests == 14)
    })
    .await;
    let total = total.unwrap();
    assert_eq!((total.instances, total.report.version), (2, 2));
    assert_eq!(
        (total.report.current_refused, total.report.shadow_refused),
        (4, 10)
    );
    assert_eq!(
        (
            total.report.only_shadow_refuses,
            total.report.limits["one"].only_shadow_refuses
        ),
        (6, 6)
    );

    let seconds = server.command("TTL quota:rules:{sum}:reports").unwrap();
    let seconds: u64 = seconds.trim().trim_start_matches(':').parse().unwrap();
    assert!((80_000..=86_400).contains(&seconds), "{seconds}");
    // The sums leave out the reports of an abandoned document.
    one.live.abandon(2, "bob").await.unwrap();
    assert_eq!(one.live.shadow_of_all().await.unwrap(), None);
    one.put(new(3).shadow()).await;
    assert_eq!(
        one.live.shadow_of_all().await.unwrap().unwrap().instances,
        0
    );
    one.ask("eve").await;
    assert_eq!(
        one.live
            .shadow_of_all()
            .await
            .unwrap()
            .unwrap()
            .report
            .requests,
        1
    );
}

#[tokio::test]
async fn stored_reports_are_bounded() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "many");
    store.put(None, new(5)).await.unwrap();
    store.put(None, new(2).shadow()).await.unwrap();
    let instance = Instance::start(redis_rules(&server, "many"), LiveOptions::new()).await;
    instance.ask("ann").await;
    let report = instance.live.shadow().unwrap();
    for number in 0..KEPT_REPORTS + 5 {
        store
            .put_report(&format!("instance {number}"), report.clone())
            .await
            .unwrap();
    }
    assert_eq!(store.reports(2).await.unwrap().len(), KEPT_REPORTS);
    assert_eq!(store.reports(1).await.unwrap().len(), 0);
}

#[tokio::test]
async fn shadow_of_restored_backup_replaces_the_old() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let redis = RedisRules::new(&proxy.url(), "backup").unwrap();
    let polls = LiveOptions::new().poll_every(Duration::from_millis(20));
    let instance = Instance::start(redis, polls).await;
    instance.put(new(50)).await;
    instance.put(new(7).shadow()).await;
    for _ in 0..100 {
        instance.ask("bob").await;
    }
    proxy.inflict(Fault::Refuse);
    eventually("it is noticed", async || {
        !instance.live.state().is_reachable
    })
    .await;
    // The backup is older than the first shadow document, so another one gets its number.
    let store = redis_rules(&server, "backup");
    store.abandon(2).await.unwrap();
    server
        .command("HSET quota:rules:{backup}:state latest 1")
        .unwrap();
    store.put(Some(1), new(9).shadow()).await.unwrap();
    proxy.heal();
    eventually("the new one is counted", async || {
        instance.limits("ann").await == [50, 100, 9, 18]
    })
    .await;
    // The counts of the old document are gone, despite the same number.
    eventually("the counts begin again", async || {
        let report = instance.live.shadow().unwrap();
        report.version == 2 && report.requests < 100
    })
    .await;
}
