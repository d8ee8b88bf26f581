//! Tests that all stores of rules behave alike.

use std::sync::Arc;
use std::time::Duration;

use tower_quota::MemoryStore;
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    BlockKind, BlockStore, BlockTarget, FileRules, KEPT_VERSIONS, LiveOptions, MemoryRules,
    NewBlock, RedisRules, RuleStore, RuleStoreError, StoreState, Time,
};

use crate::fixture::{Instance, document, new, redis_rules};

async fn state(store: &dyn RuleStore) -> StoreState {
    store.state(None).await.unwrap().unwrap()
}

fn conflict<T: std::fmt::Debug>(result: Result<T, RuleStoreError>) -> Option<u64> {
    match result {
        Err(RuleStoreError::Conflict { current }) => current,
        other => unreachable!("{other:?}"),
    }
}

async fn keeps_the_rules_of_stores(store: &dyn RuleStore) {
    assert_eq!(state(store).await.current, None);
    assert_eq!(store.current().await.unwrap(), None);
    assert_eq!(conflict(store.put(Some(1), new(1)).await), None);

    let first = store.put(Some(0), new(1).comment("why")).await.unwrap();
    assert_eq!(
        conflict(store.put(Some(0), new(2)).await),
        Some(1),
        "of two first writers one wins"
    );
    let read = store.current().await.unwrap().unwrap();
    assert_eq!(
        (read.number, &*read.author, &*read.comment),
        (1, "ann", "why")
    );
    assert_eq!(read.text, document(1));
    assert_eq!(read, first);

    // Only one of two writers succeeds.
    store.put(Some(1), new(2)).await.unwrap();
    assert_eq!(conflict(store.put(Some(1), new(3)).await), Some(2));

    // The store does not send a known state again.
    let known = state(store).await.revision;
    assert_eq!(store.state(Some(known)).await.unwrap(), None);

    // Numbers only go up.
    assert_eq!(store.put(None, new(1)).await.unwrap().number, 3);
    assert_eq!(state(store).await.current, Some(3));
    assert_eq!(
        store.put(None, new(1).above(100)).await.unwrap().number,
        101
    );
}

async fn bounds_what_it_keeps(store: &dyn RuleStore) {
    let first = store.put(None, new(1)).await.unwrap().number;
    for _ in 0..60 {
        store.put(None, new(2)).await.unwrap();
    }
    let history = store.history(1_000).await.unwrap();
    assert_eq!(history.len() as u64, KEPT_VERSIONS);
    assert_eq!(
        (history[0].number, history.last().unwrap().number),
        (first + 60, first + 61 - KEPT_VERSIONS)
    );
    assert_eq!(history[0].bytes, document(2).len());
    assert!(store.current().await.unwrap().is_some());
    assert_eq!(store.history(2).await.unwrap().len(), 2);
    assert_eq!(store.version(first + 1).await.unwrap(), None);
}

async fn keeps_blocks_of_operators(
    documents: Arc<dyn RuleStore>,
    store: &dyn BlockStore,
    options: LiveOptions,
) {
    let instance = Instance::counting(MemoryStore::new(), documents, options).await;
    if instance.number() == 0 {
        instance.put(new(1)).await;
    }
    let day = Duration::from_secs(86_400);
    let block = instance
        .live
        .block(BlockTarget::Text("ann"), NewBlock::block(day, "ops"));
    let block = block.await.unwrap();
    // Another instance does not know the block yet.
    let mut penalty = block.clone();
    penalty.kind = BlockKind::Block {
        limit: Some("one".to_owned()),
    };
    penalty.author = "penalty".to_owned();
    penalty.until = Time::now().after(Duration::from_secs(60));
    let kept = store.put_block(penalty.clone()).await.unwrap();
    assert_eq!(kept, Some(block.clone()));
    assert!(instance.live.refresh().await);
    assert_eq!(instance.live.blocks(), std::slice::from_ref(&block));
    // An operator replaces the block of a penalty, and a penalty replaces its own block.
    instance.live.unblock(&block.id, "ops").await.unwrap();
    for next in [&penalty, &penalty, &block] {
        store.put_block(next.clone()).await.unwrap();
        assert!(instance.live.refresh().await);
        assert_eq!(instance.live.blocks(), std::slice::from_ref(next));
    }
}

#[tokio::test]
async fn penalty_replaces_no_block_of_operators() {
    let server = RedisServer::start();
    let redis = || redis_rules(&server, "blocks");
    let options = LiveOptions::new;
    let memory = Arc::new(MemoryRules::new());
    keeps_blocks_of_operators(memory.clone(), &*memory, options()).await;
    keeps_blocks_of_operators(Arc::new(redis()), &redis(), options()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    std::fs::write(&path, document(1)).unwrap();
    let file = Arc::new(FileRules::new(&path).unwrap());
    keeps_blocks_of_operators(file, &redis(), options().blocks_in(redis())).await;
}

#[tokio::test]
async fn memory_keeps_the_rules_of_stores() {
    keeps_the_rules_of_stores(&MemoryRules::new()).await;
    bounds_what_it_keeps(&MemoryRules::new()).await;
}

#[tokio::test]
async fn redis_keeps_the_rules_of_stores() {
    let server = RedisServer::start();
    keeps_the_rules_of_stores(&redis_rules(&server, "one")).await;
    bounds_what_it_keeps(&redis_rules(&server, "two")).await;
}

#[tokio::test]
async fn changes_are_in_the_audit_log() {
    let server = RedisServer::start();
    let redis = redis_rules(&server, "audit");
    let instance = Instance::start(redis, LiveOptions::new()).await;
    let live = &instance.live;
    live.put(None, new(5)).await.unwrap();
    live.put(None, new(6)).await.unwrap();
    live.rollback(None, 1, "bob").await.unwrap();
    instance.ask("secret-key").await;
    live.reset("one", "secret-key", "carol").await.unwrap();
    live.grant("one", "secret-key", 1, "carol").await.unwrap();
    let day = Duration::from_secs(86_400);
    let block = live
        .block(
            BlockTarget::Text("secret-key"),
            NewBlock::block(day, "dan").reason("abuse"),
        )
        .await
        .unwrap();
    live.unblock(&block.id, "dan").await.unwrap();

    let records = live.audit(100).await.unwrap();
    let listed: Vec<(&str, &str)> = records
        .iter()
        .rev()
        .map(|record| (record.what.as_str(), &*record.who))
        .collect();
    let expected = [
        ("put", "ann"),
        ("put", "ann"),
        ("rollback", "bob"),
        ("reset", "carol"),
        ("grant", "carol"),
        ("block", "dan"),
        ("unblock", "dan"),
    ];
    assert_eq!(listed, expected);
    assert_eq!(
        (records[5].before.as_deref(), records[5].after.as_deref()),
        (Some("version 1"), Some("version 2"))
    );
    assert_eq!(records[3].before.as_deref(), Some("4 of 5 left"));
    let stored = server
        .command("LRANGE quota:rules:{audit}:audit 0 -1")
        .unwrap();
    assert!(
        stored.contains(&block.id) && !stored.contains("secret-key"),
        "{stored}"
    );
}

#[tokio::test]
async fn audit_log_is_bounded() {
    let server = RedisServer::start();
    let stores: [Box<dyn BlockStore>; 2] = [
        Box::new(MemoryRules::new()),
        Box::new(redis_rules(&server, "bounded")),
    ];
    for store in stores {
        let instance = Instance::in_memory().await;
        instance.put(new(1)).await;
        let mut record = instance.live.audit(1).await.unwrap().remove(0);
        for number in 0..1_010 {
            record.comment = format!("change {number}");
            store.record(record.clone()).await.unwrap();
        }
        assert_eq!(store.audit(2_000).await.unwrap().len(), 1_000);
        assert_eq!(store.audit(0).await.unwrap().len(), 0);
    }
}

#[tokio::test]
async fn record_after_a_lost_answer_is_kept_once() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "once");
    let instance = Instance::in_memory().await;
    instance.put(new(1)).await;
    let record = instance.live.audit(1).await.unwrap().remove(0);
    let mut other = record.clone();
    other.comment = "another change".to_owned();
    for sent in [&record, &other, &record, &other] {
        store.record(sent.clone()).await.unwrap();
    }
    assert_eq!(store.audit(9).await.unwrap(), [other, record]);
}

#[tokio::test]
async fn invalid_name_or_url_is_an_error() {
    for (url, name) in [
        ("redis://127.0.0.1:1/", ""),
        ("redis://127.0.0.1:1/", "a{b}"),
        ("nowhere", "name"),
    ] {
        assert!(
            matches!(RedisRules::new(url, name), Err(RuleStoreError::Config(_))),
            "{url} {name}"
        );
    }
}
