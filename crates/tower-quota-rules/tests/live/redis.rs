//! Rules in Redis: what is special about them.

use std::time::Duration;

use tower_quota_rules::live::{
    BlockTarget, LiveOptions, NewBlock, RedisRules, RuleStore, RuleStoreError,
};
use tower_quota_testkit::RedisServer;

use crate::fixture::{Instance, document, eventually, new};

/// Polls that are too rare to help.
pub(crate) fn announced() -> LiveOptions {
    LiveOptions::new().poll_every(Duration::from_secs(600))
}

#[tokio::test]
async fn lost_announcement_is_made_good_by_a_poll() {
    let server = RedisServer::start();
    let redis = RedisRules::new(&server.url(), "lost").unwrap();
    let instance = Instance::start(
        redis,
        LiveOptions::new().poll_every(Duration::from_millis(100)),
    )
    .await;
    instance.live.put(None, new(5)).await.unwrap();
    instance.live.put(None, new(6)).await.unwrap();
    // A change that nothing announces.
    server
        .command("HSET quota:rules:{lost}:state current 1")
        .unwrap();
    server
        .command("HINCRBY quota:rules:{lost}:state revision 1")
        .unwrap();
    eventually("it is in force", async || {
        instance.limits("ann").await == [5, 10]
    })
    .await;
}

#[tokio::test]
async fn cut_subscription_is_made_anew() {
    let server = RedisServer::start();
    let redis = || RedisRules::new(&server.url(), "cut").unwrap();
    let (instance, writer) = (Instance::start(redis(), announced()).await, redis());
    for units in [5, 6, 7] {
        let subscribed = async || {
            server
                .command("PUBSUB NUMSUB quota:rules:{cut}:changed")
                .unwrap()
                .contains(":2")
        };
        eventually("both listen", subscribed).await;
        writer.put(None, new(units)).await.unwrap();
        eventually("it is in force", async || {
            instance.limits("ann").await == [units, 2 * units]
        })
        .await;
        server.command("CLIENT KILL TYPE pubsub").unwrap();
    }
}

#[tokio::test]
async fn two_writers_have_one_winner() {
    let server = RedisServer::start();
    let store = RedisRules::new(&server.url(), "race").unwrap();
    store.put(None, new(1)).await.unwrap();
    for expected in 1..20 {
        let (one, other) = tokio::join!(
            store.put(Some(expected), new(2)),
            store.put(Some(expected), new(3))
        );
        let conflicts = [&one, &other].into_iter().filter(
            |result| matches!(result, Err(RuleStoreError::Conflict { current }) if *current == Some(expected + 1)),
        );
        assert_eq!(conflicts.count(), 1, "{one:?} {other:?}");
    }
}

#[tokio::test]
async fn documented_rights_suffice() {
    let server = RedisServer::start();
    let guide = include_str!("../../guide/live_rules.md");
    let rights = guide
        .lines()
        .find_map(|line| line.trim().strip_prefix("ACL SETUSER rules "))
        .unwrap();
    let granted = server
        .command(&format!("ACL SETUSER rules {rights}"))
        .unwrap();
    assert!(granted.starts_with("+OK"), "{granted}");
    let url = format!("redis://rules:password@127.0.0.1:{}/", server.port());
    let redis = || RedisRules::new(&url, "rights").unwrap();
    let (one, other) = (
        Instance::start(redis(), announced()).await,
        Instance::start(redis(), announced()).await,
    );
    one.live.put(None, new(5)).await.unwrap();
    other.until_in_force(1).await;
    one.live.put(None, new(6).shadow()).await.unwrap();
    one.ask("ann").await;
    assert_eq!(
        one.live.shadow_of_all().await.unwrap().unwrap().instances,
        1
    );
    one.live.promote(2, "ann").await.unwrap();
    one.live.put(None, new(7).shadow()).await.unwrap();
    one.live.abandon(3, "ann").await.unwrap();
    one.live.rollback(None, 1, "ann").await.unwrap();
    let hour = NewBlock::block(Duration::from_secs(3_600), "ann");
    let block = one
        .live
        .block(BlockTarget::Text("bob"), hour)
        .await
        .unwrap();
    one.live.unblock(&block.id, "ann").await.unwrap();
    assert_eq!(
        (
            one.live.history(9).await.unwrap().len(),
            one.live.audit(99).await.unwrap().len()
        ),
        (4, 8)
    );
    other.until_in_force(4).await;
}

#[tokio::test]
async fn server_name_shows_no_password() {
    let store = RedisRules::new("redis://rules:secret@127.0.0.1:1/", "name").unwrap();
    let error = store.current().await.unwrap_err();
    for text in [
        store.name(),
        format!("{store:?}"),
        error.to_string(),
        format!("{error:?}"),
    ] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn restored_version_gives_way_to_a_newer_one() {
    let server = RedisServer::start();
    let store = RedisRules::new(&server.url(), "restored").unwrap();
    let old = store.put(None, new(1)).await.unwrap();
    let newer = store.put(None, new(2)).await.unwrap();
    server.command("FLUSHALL").unwrap();
    assert!(store.restore(&old, &[]).await.unwrap());
    assert!(store.restore(&newer, &[]).await.unwrap());
    assert!(!store.restore(&old, &[]).await.unwrap());
    assert_eq!(store.current().await.unwrap().unwrap().text, document(2));
    // What an operator has put is not replaced.
    server.command("FLUSHALL").unwrap();
    store.put(None, new(9)).await.unwrap();
    assert!(!store.restore(&newer, &[]).await.unwrap());
}
