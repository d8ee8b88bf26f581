//! Tests the parts of rules that are special to Redis.

use std::time::Duration;

use tower_quota_dev::RedisServer;
use tower_quota_live::{
    Block, BlockChanges, BlockStore, BlockTarget, LiveOptions, MOST_BLOCKS, MOST_PENALTY_BLOCKS,
    NewBlock, RedisRules, RuleStore, RuleStoreError, Time,
};

use crate::fixture::{Instance, document, eventually, new, now, redis_rules};

/// Returns options with rare polls, so that only announcements help.
pub(crate) fn announced() -> LiveOptions {
    LiveOptions::new().poll_every(Duration::from_secs(600))
}

#[tokio::test]
async fn poll_finds_change_after_lost_announcement() {
    let server = RedisServer::start();
    let redis = redis_rules(&server, "lost");
    let instance = Instance::start(
        redis,
        LiveOptions::new().poll_every(Duration::from_millis(100)),
    )
    .await;
    instance.put(new(5)).await;
    instance.put(new(6)).await;
    // A change that nothing announces: version 3 with the text of version 1.
    for key in ["versions", "texts"] {
        let copy = format!(
            "EVAL \"return redis.call('HSET', KEYS[1], 3, redis.call('HGET', KEYS[1], 1))\" 1 quota:rules:{{lost}}:{key}"
        );
        assert_eq!(server.command(&copy).unwrap().trim(), ":1");
    }
    server
        .command("HSET quota:rules:{lost}:state current 3 latest 3")
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
    let redis = || redis_rules(&server, "cut");
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
async fn other_readers_hide_no_lost_subscription() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "readers");
    store.put(None, new(5)).await.unwrap();
    let known = store.state(None).await.unwrap().unwrap().revision;
    let subscribed = async || {
        server
            .command("PUBSUB NUMSUB quota:rules:{readers}:changed")
            .unwrap()
            .contains(":1")
    };
    eventually("the store listens", subscribed).await;
    assert_eq!(store.state(Some(known)).await.unwrap(), None);
    let mut changes = store.changes();
    server.command("CLIENT KILL TYPE pubsub").unwrap();
    changes.changed().await.unwrap();
    // A reader of the admin API knows no revision.
    assert!(store.state(None).await.unwrap().is_some());
    let state = store.state(Some(known)).await.unwrap();
    assert!(state.is_some_and(|state| state.is_doubtful));
    assert_eq!(store.state(Some(known)).await.unwrap(), None);
}

#[tokio::test]
async fn two_writers_have_one_winner() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "race");
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
    one.put(new(5)).await;
    other.until_in_force(1).await;
    one.put(new(6)).await;
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
        (3, 5)
    );
    other.until_in_force(3).await;
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
async fn newer_version_replaces_restored_version() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "restored");
    let old = store.put(None, new(1)).await.unwrap();
    let newer = store.put(None, new(2)).await.unwrap();
    server.command("FLUSHALL").unwrap();
    assert!(store.restore(&old, 0).await.unwrap());
    assert!(store.restore(&newer, 0).await.unwrap());
    assert!(!store.restore(&old, 0).await.unwrap());
    assert_eq!(store.current().await.unwrap().unwrap().text, document(2));
    // Instances keep the document that an operator has put.
    server.command("FLUSHALL").unwrap();
    store.put(None, new(9)).await.unwrap();
    assert!(!store.restore(&newer, 0).await.unwrap());
}

/// Returns a number of Redis' statistics.
fn statistic(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info = server.command(&format!("INFO {section}")).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn many_blocks_are_read_once_each() {
    let server = RedisServer::start();
    let start = async || {
        let redis = redis_rules(&server, "many");
        Instance::start(redis, announced()).await
    };
    let [one, other] = [start().await, start().await];
    one.put(new(5)).await;
    other.until_in_force(1).await;
    let sent = || statistic(&server, "stats", "total_net_output_bytes:");
    let before = sent();
    let count = 300;
    for user in 0..count {
        let day = NewBlock::block(Duration::from_secs(86_400), "ops");
        let user = format!("user {user}");
        one.live.block(BlockTarget::Text(&user), day).await.unwrap();
    }
    eventually("all are in force", async || {
        other.live.blocks().len() == count
    })
    .await;
    assert_eq!(one.live.blocks().len(), count);
    // Two instances read each block of some 300 bytes.
    let bytes = sent() - before;
    assert!(bytes < 1_000_000, "{bytes} bytes for {count} blocks");

    // Instances read later blocks without the earlier blocks.
    let known = sent();
    for more in 1..=3 {
        let day = NewBlock::block(Duration::from_secs(86_400), "ops");
        let user = format!("later user {more}");
        one.live.block(BlockTarget::Text(&user), day).await.unwrap();
        eventually("it is in force", async || {
            other.live.blocks().len() == count + more
        })
        .await;
    }
    let bytes = sent() - known;
    assert!(bytes < 50_000, "{bytes} bytes for three blocks");

    for block in one.live.blocks() {
        one.live.unblock(&block.id, "ops").await.unwrap();
    }
    eventually("none is in force", async || other.live.blocks().is_empty()).await;
    let bytes = sent() - before;
    assert!(bytes < 2_000_000, "{bytes} bytes for {count} removals");
}

#[tokio::test]
async fn announcements_in_a_row_are_read_together() {
    let server = RedisServer::start();
    let redis = || redis_rules(&server, "row");
    let (instance, writer) = (Instance::start(redis(), announced()).await, redis());
    writer.put(None, new(5)).await.unwrap();
    instance.until_in_force(1).await;
    let calls = || {
        let info = server.command("INFO commandstats").unwrap();
        let calls = info.split_once("cmdstat_evalsha:calls=").unwrap().1;
        let calls = calls.split_once(',').unwrap().0;
        calls.parse::<u128>().unwrap()
    };
    let (count, begun, before) = (300, now(), calls());
    for number in 0..count {
        let block = block_of(number, false);
        writer.put_block(block).await.unwrap();
    }
    eventually("all are in force", async || {
        instance.live.blocks().len() == 300
    })
    .await;
    let (took, reads) = (begun.elapsed(), calls() - before - u128::from(count));
    let most = 4 + took.as_millis() / 250;
    assert!(reads <= most, "{reads} readings in {took:?}");
}

#[tokio::test]
async fn lost_blocks_return_after_a_put() {
    let server = RedisServer::start();
    let start = async || {
        let redis = redis_rules(&server, "lost-blocks");
        Instance::start(redis, announced()).await
    };
    let [one, other] = [start().await, start().await];
    one.put(new(5)).await;
    other.until_in_force(1).await;
    let day = || NewBlock::block(Duration::from_secs(86_400), "ops");
    for user in ["ann", "bob"] {
        one.live
            .block(BlockTarget::Text(user), day())
            .await
            .unwrap();
    }
    let removed = one
        .live
        .block_target(BlockTarget::Text("bob"))
        .unwrap()
        .id();
    one.live.unblock(&removed, "ops").await.unwrap();
    eventually("the block is known", async || {
        other.live.blocks().len() == 1
    })
    .await;
    for through_instance in [false, true] {
        server.command("FLUSHALL").unwrap();
        // Another process puts rules before an instance reads the store.
        if through_instance {
            let before = one.number();
            let put = one.put(new(7)).await;
            assert!(put.number > before, "{} after {before}", put.number);
        } else {
            let writer = redis_rules(&server, "lost-blocks");
            writer.put(None, new(6)).await.unwrap();
        }
        let stored = || server.command("HLEN quota:rules:{lost-blocks}:blocks");
        eventually("the block is stored again", async || {
            stored().is_ok_and(|answer| answer.trim() == ":1")
        })
        .await;
        for instance in [&one, &other] {
            eventually("the block is in force", async || {
                instance.ask("ann").await == http::StatusCode::FORBIDDEN
                    && instance.live.blocks().len() == 1
            })
            .await;
        }
    }
}

/// Returns a block of a network by an operator or a penalty.
pub(crate) fn block_of(number: u32, is_of_penalty: bool) -> Block {
    let network = format!("10.{}.{}.0/24", number / 256, number % 256);
    let until = Time::from_unix_millis(Time::now().unix_millis() + 86_400_000 + i64::from(number));
    let block = serde_json::json!({
        "id": network,
        "kind": "block",
        "target": { "network": network },
        "since": Time::now(),
        "until": until,
        "reason": "",
        "author": "ops",
        "limit": is_of_penalty.then_some("login"),
    });
    serde_json::from_value(block).unwrap()
}

async fn restore(store: &RedisRules, blocks: Vec<Block>) {
    let lost = BlockChanges::all(blocks);
    store.restore_blocks(0, &lost).await.unwrap();
}

#[tokio::test]
async fn blocks_of_penalties_leave_room_for_operators() {
    let server = RedisServer::start();
    let store = redis_rules(&server, "full");
    let of_penalties = u32::try_from(MOST_PENALTY_BLOCKS).unwrap();
    let blocks: Vec<Block> = (0..of_penalties)
        .map(|number| block_of(number, true))
        .collect();
    restore(&store, blocks).await;
    let stored = async || {
        let state = store.state(None).await.unwrap().unwrap();
        assert!(state.blocks.is_complete);
        state.blocks.changed
    };
    // The penalty's block with the earliest end makes room for another block.
    store.put_block(block_of(of_penalties, true)).await.unwrap();
    let known = stored().await;
    let count = known.values().flatten().count();
    assert_eq!(count, MOST_PENALTY_BLOCKS);
    assert!(known[&block_of(0, true).id].is_none());
    assert!(known[&block_of(of_penalties, true).id].is_some());

    let most = u32::try_from(MOST_BLOCKS).unwrap();
    let own: Vec<Block> = (of_penalties + 1..most)
        .map(|number| block_of(number, false))
        .collect();
    restore(&store, own).await;
    for number in most..most + 3 {
        store.put_block(block_of(number, false)).await.unwrap();
        let known = stored().await;
        assert!(known[&block_of(number, false).id].is_some());
        assert!(known.values().flatten().count() <= MOST_BLOCKS);
    }
}
