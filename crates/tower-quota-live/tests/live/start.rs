//! Tests starts without rules, and starts during an outage.

use std::sync::Arc;
use std::time::Duration;

use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    BlockStore, BlockTarget, FileRules, LiveOptions, LiveRules, MemoryRules, NewBlock, RedisRules,
    RuleStore, StartError, WithoutRules,
};
use tower_quota_rules::Rules;

use crate::fixture::{Instance, broken, document, eventually, new, redis_rules};

async fn start_error(store: impl RuleStore) -> StartError {
    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
    let started = LiveRules::start(layer.handle(), store, LiveOptions::new()).await;
    started.unwrap_err()
}

#[tokio::test]
async fn start_without_rules_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    let missing = start_error(FileRules::new(&path).unwrap()).await;
    let text = missing.to_string();
    assert!(matches!(missing, StartError::Unavailable { .. }), "{text}");
    assert!(
        text.contains("rules.yaml") && text.contains("No such file"),
        "{text}"
    );

    std::fs::write(&path, "limits: 7\nroutes: 8\n").unwrap();
    let invalid = start_error(FileRules::new(&path).unwrap()).await;
    let text = invalid.to_string();
    assert!(matches!(invalid, StartError::Invalid { .. }), "{text}");
    assert!(
        ["rules.yaml", "limits", "routes"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );

    let dead = RedisRules::new("redis://127.0.0.1:1/", "dead").unwrap();
    let dead = start_error(dead).await.to_string();
    assert!(
        dead.contains("127.0.0.1:1") && dead.contains("unavailable"),
        "{dead}"
    );

    let empty = start_error(MemoryRules::new()).await;
    assert!(matches!(empty, StartError::Empty { .. }), "{empty}");
    assert!(empty.to_string().contains("put the first"), "{empty}");
}

#[tokio::test]
async fn unusable_fallback_is_an_error() {
    let fallback = Rules::parse(&document(3)).unwrap();
    let options = LiveOptions::new()
        .without_rules(WithoutRules::Fallback(fallback))
        .with_policy(|_| std::panic::panic_any("the code of the service fails"));
    let started =
        Instance::try_counting(MemoryStore::new(), Arc::new(MemoryRules::new()), options).await;
    let error = started.err().unwrap();
    assert!(matches!(error, StartError::Fallback(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("WithoutRules::Fallback"), "{text}");
}

#[tokio::test]
async fn every_request_is_refused_without_rules() {
    let instance = Instance::in_memory().await;
    assert_eq!(instance.ask("ann").await, 503);
    assert!(!instance.live.is_ready());
    // A missing document is a state, and no mistake that stays.
    assert!(instance.live.handle().mistakes().is_empty());
    instance.put(new(5)).await;
    assert_eq!(instance.ask("ann").await, 200);
    assert!(instance.live.is_ready());
}

#[tokio::test]
async fn skipped_requests_pass_without_rules() {
    let options = LiveOptions::new().with_policy(|policy| {
        policy.skip(|head: &tower_quota::RequestHead<'_>| head.path() == "/healthz")
    });
    let instance = Instance::start(MemoryRules::new(), options).await;
    let answer = instance.send(http::Request::get("/healthz")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(instance.ask("ann").await, 503);
}

#[tokio::test]
async fn fallback_holds_until_rules_are_in_force() {
    let store: Arc<dyn RuleStore> = Arc::new(MemoryRules::new());
    store.put(None, broken()).await.unwrap();
    let fallback = Rules::parse(&document(3)).unwrap();
    let options = LiveOptions::new().without_rules(WithoutRules::Fallback(fallback));
    let instance = Instance::try_counting(MemoryStore::new(), store, options).await;
    let instance = instance.unwrap();
    assert!(!instance.live.is_ready() && !instance.live.state().is_healthy());
    assert_eq!(instance.limits("ann").await, [3, 6]);
    instance.put(new(5)).await;
    assert_eq!(instance.limits("ann").await, [5, 10]);
    assert!(instance.live.is_ready() && instance.live.state().is_healthy());
}

#[tokio::test]
async fn failing_document_tests_keep_last_good_document() {
    let tests = |remaining: u64| {
        format!(
            "{}tests:\n  - request: {{ path: /, headers: {{ user: ann }} }}\n    expect: {{ limits: {{ one: {remaining} per \
             300 days fixed_window }} }}\n",
            document(5)
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, document(4)).unwrap();
    let options = LiveOptions::new().poll_every(Duration::from_millis(20));
    let instance = Instance::start(FileRules::new(&path).unwrap(), options).await;
    std::fs::write(&path, tests(9)).unwrap();
    eventually("the document is rejected", async || {
        instance.live.state().reloads.rejected == 1
    })
    .await;
    let error = instance.live.state().last_error.unwrap();
    assert!(error.contains("own tests fail"), "{error}");
    assert_eq!(instance.limits("ann").await, [4, 8]);

    let restarted = start_error(FileRules::new(&path).unwrap()).await;
    assert!(
        restarted.to_string().contains("own tests fail"),
        "{restarted}"
    );
    std::fs::write(&path, document(6)).unwrap();
    eventually("the document is in force", async || {
        instance.limits("bob").await == [6, 12]
    })
    .await;
}

#[tokio::test]
async fn blocks_survive_restart_during_outage() {
    let (mut server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let options = || {
        LiveOptions::new()
            .poll_every(Duration::from_millis(20))
            .local_copy(folder.path().join("rules.copy"))
    };
    let redis = || redis_rules(&server, "copy");
    let (first, again) = (redis(), redis());
    let instance = Instance::start(first, options()).await;
    instance.put(new(5)).await;
    let hour = NewBlock::block(Duration::from_secs(3_600), "ann");
    let block = instance
        .live
        .block(BlockTarget::Text("mallory"), hour)
        .await;
    let id = block.unwrap().id;
    eventually("the copy has the block", async || {
        std::fs::read_to_string(folder.path().join("rules.copy"))
            .is_ok_and(|copy| copy.contains(&id))
    })
    .await;
    assert!(instance.live.close(Duration::from_secs(5)).await);
    server.kill();

    let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
    let started = LiveRules::start(layer.handle(), again, options()).await;
    assert!(
        started.is_ok_and(|live| live.is_ready()),
        "the copy is enough"
    );
    let again = redis_rules(&server, "copy");
    let instance = Instance::start(again, options()).await;
    assert_eq!(instance.ask("mallory").await, 403);
    assert_eq!(instance.ask("ann").await, 200);

    // The server comes back without data, and gets the rules and the block.
    server.start_again();
    eventually("the store has the block", async || {
        let state = instance.live.store().state(None).await;
        state.is_ok_and(|state| state.unwrap_or_default().blocks.changed.contains_key(&id))
    })
    .await;
    assert_eq!(instance.ask("mallory").await, 403);
}

#[tokio::test]
async fn copied_blocks_survive_loss_found_by_another_instance() {
    let (mut server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let options = LiveOptions::new().local_copy(folder.path().join("rules.copy"));
    let instance = Instance::start(redis_rules(&server, "loss"), options.clone()).await;
    let version = instance.put(new(5)).await;
    instance.block(BlockTarget::Text("mallory")).await;
    assert!(instance.live.refresh().await);
    assert!(instance.live.close(Duration::from_secs(5)).await);
    server.start_again();
    // The other instance has put the document back, and not yet its blocks.
    let other = redis_rules(&server, "loss");
    assert!(other.restore(&version, 0).await.unwrap());

    let instance = Instance::start(redis_rules(&server, "loss"), options).await;
    assert_eq!(instance.ask("mallory").await, 403);
    assert_eq!(
        other
            .state(None)
            .await
            .unwrap()
            .unwrap()
            .blocks
            .changed
            .len(),
        1
    );
}

#[tokio::test]
async fn removed_block_does_not_return_from_copy() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let options = LiveOptions::new().local_copy(folder.path().join("rules.copy"));
    let instance = Instance::start(redis_rules(&server, "removed"), options.clone()).await;
    instance.put(new(5)).await;
    let block = instance.block(BlockTarget::Text("mallory")).await;
    assert!(instance.live.refresh().await);
    assert!(instance.live.close(Duration::from_secs(5)).await);
    let other = redis_rules(&server, "removed");
    assert!(other.remove_block(&block.id).await.unwrap().is_some());

    let instance = Instance::start(other, options).await;
    assert_eq!(instance.ask("mallory").await, 200);
}
