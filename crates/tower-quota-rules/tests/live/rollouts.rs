//! Documents that run beside the one in force.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tower_quota::MemoryStore;
use tower_quota_rules::live::{
    KEPT_REPORTS, LiveOptions, MemoryRules, RedisRules, Rollout, RuleStore,
};
use tower_quota_testkit::RedisServer;

use crate::fixture::{Instance, eventually, new};

async fn two_instances() -> [Instance; 2] {
    let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
    let start = async || {
        Instance::counting(MemoryStore::new(), Arc::clone(&store), LiveOptions::new()).await
    };
    [start().await, start().await]
}

/// Returns the users among a thousand whose requests the candidate of 7 units decides.
async fn chosen(instance: &Instance) -> BTreeSet<u32> {
    let mut chosen = BTreeSet::new();
    for user in 0..1_000 {
        if instance.limits(&format!("user-{user}")).await == [7, 14] {
            chosen.insert(user);
        }
    }
    chosen
}

#[tokio::test]
async fn percentage_is_stable_over_instances() {
    let [one, other] = two_instances().await;
    one.live.put(None, new(50)).await.unwrap();
    one.live
        .put(None, new(7).rollout(Rollout::Percent(5)))
        .await
        .unwrap();
    other.live.refresh().await;
    let few = chosen(&one).await;
    assert!((20..=85).contains(&few.len()), "{} of 1000", few.len());
    assert_eq!(chosen(&other).await, few);

    one.live
        .put(None, new(7).rollout(Rollout::Percent(30)))
        .await
        .unwrap();
    let more = chosen(&one).await;
    assert!(
        more.is_superset(&few) && (240..=360).contains(&more.len()),
        "{} of 1000",
        more.len()
    );

    one.live.promote(3, "bob").await.unwrap();
    other.live.refresh().await;
    for instance in [&one, &other] {
        assert_eq!(
            (instance.number(), chosen(instance).await.len()),
            (3, 1_000)
        );
        assert!(instance.live.state().candidate.is_none());
    }
}

#[tokio::test]
async fn abandoned_candidate_decides_nothing() {
    let [one, _] = two_instances().await;
    one.live.put(None, new(50)).await.unwrap();
    one.live
        .put(None, new(7).rollout(Rollout::Percent(100)))
        .await
        .unwrap();
    assert_eq!(one.limits("ann").await, [7, 14]);
    one.live.abandon(2, "bob").await.unwrap();
    assert_eq!((one.limits("ann").await, one.number()), (vec![50, 100], 1));
}

#[tokio::test]
async fn percentage_counts_both_sides() {
    let [one, _] = two_instances().await;
    one.live.put(None, new(3)).await.unwrap();
    one.live
        .put(None, new(1).rollout(Rollout::Percent(50)))
        .await
        .unwrap();
    for user in 0..40 {
        for _ in 0..4 {
            one.ask(&format!("user-{user}")).await;
        }
    }
    let report = one.live.rollout().unwrap();
    let (current, candidate) = (report.current_requests / 4, report.candidate_requests / 4);
    assert!(
        current + candidate == 40 && current > 5 && candidate > 5,
        "{report:?}"
    );
    assert_eq!(
        (report.current_refused, report.candidate_refused),
        (current, 3 * candidate)
    );
    let one = report.limits["one"];
    assert_eq!(
        (one.current_refused, one.candidate_refused),
        (current, 3 * candidate)
    );
}

#[tokio::test]
async fn dry_run_counts_differences_per_limit() {
    let [one, _] = two_instances().await;
    one.live.put(None, new(5)).await.unwrap();
    one.live
        .put(None, new(2).rollout(Rollout::DryRun))
        .await
        .unwrap();
    for request in 0..7 {
        let expected = if request < 5 {
            StatusCode::OK
        } else {
            StatusCode::TOO_MANY_REQUESTS
        };
        assert_eq!(one.ask("ann").await, expected, "a dry run decides nothing");
    }
    let report = one.live.rollout().unwrap();
    assert_eq!((report.candidate, report.candidate_requests), (2, 7));
    assert_eq!((report.current_refused, report.candidate_refused), (2, 5));
    assert_eq!(
        (report.only_candidate_refuses, report.only_current_refuses),
        (3, 0)
    );
    let limit = report.limits["one"];
    assert_eq!(
        (limit.only_candidate_refuses, limit.only_current_refuses),
        (3, 0)
    );
    // Its counters are its own: what it counted is gone with the promotion, what was counted in force stays.
    one.live.promote(2, "bob").await.unwrap();
    assert_eq!(one.ask("ann").await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(one.live.rollout(), None);
}

#[tokio::test]
async fn dry_run_of_a_generous_document_is_counted() {
    let [one, _] = two_instances().await;
    one.live.put(None, new(2)).await.unwrap();
    one.live
        .put(None, new(9).rollout(Rollout::DryRun))
        .await
        .unwrap();
    for _ in 0..5 {
        one.ask("ann").await;
    }
    let report = one.live.rollout().unwrap();
    assert_eq!(
        (report.only_candidate_refuses, report.only_current_refuses),
        (0, 3)
    );
    assert_eq!(report.limits["one"].only_current_refuses, 3);
}

#[tokio::test]
async fn reports_of_all_instances_are_summed() {
    let server = RedisServer::start();
    let start = async |poll| {
        let redis = RedisRules::new(&server.url(), "sum").unwrap();
        Instance::start(redis, LiveOptions::new().poll_every(poll)).await
    };
    let (one, other) = (
        start(Duration::from_secs(600)).await,
        start(Duration::from_millis(20)).await,
    );
    one.live.put(None, new(5)).await.unwrap();
    one.live
        .put(None, new(2).rollout(Rollout::DryRun))
        .await
        .unwrap();
    eventually("both run it", async || {
        other.live.state().candidate.is_some()
    })
    .await;
    assert_eq!(
        one.live.rollout_of_all().await.unwrap().unwrap().instances,
        0
    );
    for instance in [&one, &other] {
        for _ in 0..7 {
            instance.ask("ann").await;
        }
    }
    // The other instance reports with its polls, and this one when it is asked.
    let mut total = None;
    eventually("both are counted", async || {
        total = one.live.rollout_of_all().await.unwrap();
        total
            .as_ref()
            .is_some_and(|total| total.report.candidate_requests == 14)
    })
    .await;
    let total = total.unwrap();
    assert_eq!((total.instances, total.report.candidate), (2, 2));
    assert_eq!(
        (total.report.current_refused, total.report.candidate_refused),
        (4, 10)
    );
    assert_eq!(
        (
            total.report.only_candidate_refuses,
            total.report.limits["one"].only_candidate_refuses
        ),
        (6, 6)
    );

    let seconds = server.command("TTL quota:rules:{sum}:reports").unwrap();
    let seconds: u64 = seconds.trim().trim_start_matches(':').parse().unwrap();
    assert!((80_000..=86_400).contains(&seconds), "{seconds}");
    // Reports of an ended roll-out are not added to those of the next.
    one.live.abandon(2, "bob").await.unwrap();
    assert_eq!(one.live.rollout_of_all().await.unwrap(), None);
    one.live
        .put(None, new(3).rollout(Rollout::DryRun))
        .await
        .unwrap();
    assert_eq!(
        one.live.rollout_of_all().await.unwrap().unwrap().instances,
        0
    );
    one.ask("eve").await;
    assert_eq!(
        one.live
            .rollout_of_all()
            .await
            .unwrap()
            .unwrap()
            .report
            .candidate_requests,
        1
    );
}

#[tokio::test]
async fn stored_reports_are_bounded() {
    let server = RedisServer::start();
    let store = RedisRules::new(&server.url(), "many").unwrap();
    store.put(None, new(5)).await.unwrap();
    store
        .put(None, new(2).rollout(Rollout::DryRun))
        .await
        .unwrap();
    let instance = Instance::start(
        RedisRules::new(&server.url(), "many").unwrap(),
        LiveOptions::new(),
    )
    .await;
    instance.ask("ann").await;
    let report = instance.live.rollout().unwrap();
    for number in 0..KEPT_REPORTS + 5 {
        store
            .put_report(&format!("instance {number}"), report.clone())
            .await
            .unwrap();
    }
    assert_eq!(store.reports(2).await.unwrap().len(), KEPT_REPORTS);
    assert_eq!(store.reports(1).await.unwrap().len(), 0);
}
