//! Tests the sorted sets of holds, and that the limit is right again if an entry or a set is lost.

use std::time::Duration;

use redis::Connection;
use tower_quota_core::{Charge, Clock, Entry, Key, Operation, Quota, Store, Timestamp};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::ManualClock;

use crate::common::holds::key_of_holds;
use crate::common::{calls, look_at, options, store_on, until_answered, user};

const TWO: Quota = Quota::concurrent(2);
const TTL: Duration = Duration::from_secs(60);

/// A client with concurrency limits on a store.
struct Client<'s> {
    store: &'s RedisStore,
    key: Key<'static>,
    quota: Quota,
}

impl Client<'_> {
    /// Applies an operation of one unit. Returns the instant, the taken and the remaining units.
    async fn apply(&self, operation: Operation) -> (Timestamp, u64, u64) {
        let charge = [Charge::new("streams", &self.quota, &self.key)];
        let decision = self.store.apply(operation, &charge).await.unwrap();
        let status = decision.statuses()[0];
        (decision.at(), status.taken, status.remaining())
    }

    /// Takes a hold. Returns its instant, or `None` if the limit refuses.
    async fn hold(&self) -> Option<Timestamp> {
        let (at, taken, _) = self.apply(Operation::Check).await;
        (taken > 0).then_some(at)
    }

    async fn renew(&self, taken_at: Timestamp) -> u64 {
        self.apply(Operation::Renew { taken_at }).await.1
    }

    async fn release(&self, taken_at: Timestamp) -> u64 {
        self.apply(Operation::Refund { taken_at }).await.1
    }

    async fn left(&self) -> u64 {
        self.apply(Operation::Peek).await.2
    }

    fn keys(&self) -> [String; 2] {
        let entry = self.store.key_of(&self.key);
        let set = key_of_holds(&entry, "streams");
        [entry, set]
    }
}

fn ann(store: &RedisStore) -> Client<'_> {
    Client {
        store,
        key: user("ann"),
        quota: TWO,
    }
}

fn exists(connection: &mut Connection, key: &str) -> bool {
    redis::cmd("EXISTS").arg(key).query(connection).unwrap()
}

#[tokio::test]
async fn set_expires_and_ends_with_last_hold() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let (first, second) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
    for key in ann.keys() {
        let left: u64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left > 50_000 && left <= 60_000, "{key} lives {left} ms");
    }
    let stored: Vec<u8> = redis::cmd("GET")
        .arg(&ann.keys()[0])
        .query(&mut connection)
        .unwrap();
    let entry = Entry::decode(&stored).unwrap();
    assert!(entry.is_limited(entry.at()));
    assert_eq!(entry.full_at(), second + TTL);
    assert_eq!(ann.release(first).await, 1);
    assert!(exists(&mut connection, &ann.keys()[1]));
    assert_eq!(ann.release(second).await, 1);
    assert!(!exists(&mut connection, &ann.keys()[1]));
    assert_eq!(ann.left().await, 2);
}

#[tokio::test]
async fn lost_set_frees_its_units() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let (first, second) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
    assert_eq!(ann.hold().await, None);
    redis::cmd("DEL")
        .arg(&ann.keys()[1])
        .exec(&mut connection)
        .unwrap();
    assert_eq!(ann.left().await, 2);
    assert_eq!(ann.renew(first).await, 0);
    let third = ann.hold().await.unwrap();
    assert_eq!(ann.release(second).await, 0);
    assert_eq!((ann.left().await, ann.renew(third).await), (1, 1));
}

#[tokio::test]
async fn lost_entry_frees_its_units() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let (first, _) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
    redis::cmd("DEL")
        .arg(&ann.keys()[0])
        .exec(&mut connection)
        .unwrap();
    assert!(exists(&mut connection, &ann.keys()[1]));
    assert_eq!((ann.left().await, ann.renew(first).await), (2, 0));
    let third = ann.hold().await.unwrap();
    assert_eq!(ann.release(first).await, 0);
    assert!(ann.hold().await.is_some());
    assert_eq!(ann.hold().await, None);
    let held: u64 = redis::cmd("ZCARD")
        .arg(&ann.keys()[1])
        .query(&mut connection)
        .unwrap();
    assert_eq!((held, ann.release(third).await), (2, 1));
}

#[tokio::test]
async fn altered_set_is_counted_again() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let (first, second) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
    let [_, set] = ann.keys();
    redis::cmd("ZPOPMIN")
        .arg(&set)
        .exec(&mut connection)
        .unwrap();
    assert_eq!(ann.left().await, 1);
    assert_eq!((ann.renew(first).await, ann.renew(second).await), (0, 1));
    // The store deletes a set with members that no store has written.
    for (member, left) in [("garbage", 2), ("instant", 2), ("instantu", 1)] {
        ann.apply(Operation::Reset).await;
        let held = ann.hold().await.unwrap();
        let score = if left == 1 { -5.0 } else { 9e15 };
        redis::cmd("ZADD")
            .arg((&set, score, member))
            .exec(&mut connection)
            .unwrap();
        assert_eq!(ann.left().await, left, "{member}");
        ann.release(held).await;
        assert_eq!(ann.left().await, 2, "{member}");
    }
    for command in ["SET", "SADD", "LPUSH"] {
        let held = ann.hold().await.unwrap();
        redis::cmd("DEL").arg(&set).exec(&mut connection).unwrap();
        redis::cmd(command)
            .arg(&set)
            .arg("text")
            .exec(&mut connection)
            .unwrap();
        assert_eq!((ann.left().await, ann.renew(held).await), (2, 0));
        let held = ann.hold().await.unwrap();
        assert_eq!((ann.left().await, ann.release(held).await), (1, 1));
    }
}

#[tokio::test]
async fn reset_and_other_quotas_of_one_name_end_holds() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let (holds, rate) = (
        ann(&store),
        Client {
            quota: Quota::per_minute(5),
            ..ann(&store)
        },
    );
    // A roll-back locks nobody out, and creates no units.
    let first = holds.hold().await.unwrap();
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(rate.apply(Operation::Check).await.2, left);
    }
    assert_eq!(holds.left().await, 1);
    assert_eq!((holds.release(first).await, holds.left().await), (1, 2));
    assert_eq!(rate.left().await, 0);
    for client in [&holds, &rate] {
        let held = holds.hold().await.unwrap();
        client.apply(Operation::Reset).await;
        assert_eq!((holds.left().await, rate.left().await), (2, 5));
        assert_eq!((holds.renew(held).await, holds.release(held).await), (0, 0));
        rate.apply(Operation::Check).await;
    }
}

/// Counts the commands of a server, which does not depend on the load of the machine.
#[tokio::test]
async fn number_of_held_units_adds_no_commands() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let store = options()
        .clock(clock.clone())
        .connect(&server.url())
        .await
        .unwrap();
    let commands = [
        "zadd",
        "zcard",
        "zcount",
        "zrange",
        "zrem",
        "zremrangebyscore",
        "zscore",
        "pexpire",
    ];
    let mut counts = Vec::new();
    for held in [1_u64, 10, 1_000] {
        let client = Client {
            store: &store,
            key: user(&held.to_string()),
            quota: Quota::concurrent(2_000),
        };
        for _ in 0..held {
            client.hold().await.unwrap();
        }
        clock.advance(Duration::from_secs(1));
        server.command("CONFIG RESETSTAT").unwrap();
        let taken_at = client.hold().await.unwrap();
        assert_eq!(client.renew(taken_at).await, 1);
        assert_eq!(client.release(taken_at).await, 1);
        counts.push(commands.map(|command| calls(&server, command)));
    }
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!(counts[0].iter().sum::<u64>() <= 20, "{counts:?}");
}

#[tokio::test]
async fn expired_holds_are_removed_by_next_change() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let store = options()
        .clock(clock.clone())
        .connect(&server.url())
        .await
        .unwrap();
    let many = Client {
        store: &store,
        key: user("ann"),
        quota: Quota::concurrent(100),
    };
    let mut connection = look_at(&server);
    for _ in 0..99 {
        many.hold().await.unwrap();
    }
    let charge = Charge::new("streams", &many.quota, &many.key);
    clock.advance(TTL / 2);
    let late = many.hold().await.unwrap();
    clock.advance(TTL / 2 + Duration::from_millis(1));
    assert_eq!(many.left().await, 99);
    let weighted = store.check(&[charge.cost(3)]).await.unwrap();
    let members = |connection: &mut Connection| -> u64 {
        redis::cmd("ZCARD")
            .arg(&many.keys()[1])
            .query(connection)
            .unwrap()
    };
    // The hold of three units has a member for its units.
    assert_eq!((many.left().await, members(&mut connection)), (96, 3));
    clock.set(weighted.at() + TTL);
    assert_eq!(many.left().await, 100);
    many.hold().await.unwrap();
    assert_eq!((many.left().await, members(&mut connection)), (99, 1));
    assert_eq!(many.release(late).await, 0);
    assert!(clock.now() > late);
}

#[tokio::test]
async fn units_of_many_expired_holds_are_read_once() {
    const MANY: u64 = 150;
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let options = options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let thousand = Client {
        quota: Quota::concurrent(1_000),
        ..ann(&store)
    };
    let two = Charge::new("streams", &thousand.quota, &thousand.key).cost(2);
    for _ in 0..MANY {
        assert!(store.check(&[two]).await.unwrap().is_allowed());
    }
    clock.advance(TTL / 2);
    assert!(store.check(&[two]).await.unwrap().is_allowed());
    clock.advance(TTL / 2 + Duration::from_secs(1));
    server.command("CONFIG RESETSTAT").unwrap();
    for _ in 0..2 {
        assert_eq!(thousand.left().await, 998);
        assert_eq!(calls(&server, "zscore"), MANY);
    }
    let mut connection = look_at(&server);
    let members: u64 = redis::cmd("ZCARD")
        .arg(&thousand.keys()[1])
        .query(&mut connection)
        .unwrap();
    assert_eq!(members, 2, "one hold and its units");
}

#[tokio::test]
async fn count_of_altered_set_removes_expired_holds() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let options = options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let ten = Client {
        quota: Quota::concurrent(10),
        ..ann(&store)
    };
    for holds in [3, 2] {
        for _ in 0..holds {
            ten.hold().await.unwrap();
        }
        clock.advance(TTL * 2 / 3);
    }
    let mut connection = look_at(&server);
    let [_, set] = ten.keys();
    redis::cmd("ZPOPMAX")
        .arg(&set)
        .exec(&mut connection)
        .unwrap();
    assert_eq!(ten.left().await, 9);
    let members: u64 = redis::cmd("ZCARD")
        .arg(&set)
        .query(&mut connection)
        .unwrap();
    assert_eq!(members, 1);
}

#[tokio::test]
async fn count_of_altered_set_removes_units_without_hold() {
    let server = RedisServer::start();
    let clock = ManualClock::default();
    let options = options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let ten = Client {
        quota: Quota::concurrent(10),
        ..ann(&store)
    };
    let three = Charge::new("streams", &ten.quota, &ten.key).cost(3);
    store.check(&[three]).await.unwrap();
    clock.advance(TTL / 2);
    for _ in 0..2 {
        store.check(&[three]).await.unwrap();
    }
    clock.advance(TTL / 2 + Duration::from_millis(1));
    // The first hold has expired, and the last one is lost without its units.
    let (mut connection, [_, set]) = (look_at(&server), ten.keys());
    redis::cmd("ZPOPMAX")
        .arg(&set)
        .exec(&mut connection)
        .unwrap();
    assert_eq!(ten.left().await, 7);
    let members: u64 = redis::cmd("ZCARD")
        .arg(&set)
        .query(&mut connection)
        .unwrap();
    assert_eq!(members, 2, "one hold and its units");
}

#[tokio::test]
async fn limit_is_right_after_loss_of_all_data() {
    let mut server = RedisServer::start();
    let store = store_on(&server).await;
    let ann = ann(&store);
    for is_killed in [false, true] {
        let held = [ann.hold().await.unwrap(), ann.hold().await.unwrap()];
        if is_killed {
            server.kill();
            server.start_again();
            until_answered(&store).await;
        } else {
            server.command("FLUSHALL").unwrap();
        }
        assert_eq!(
            (ann.renew(held[0]).await, ann.release(held[1]).await),
            (0, 0)
        );
        let again = ann.hold().await.unwrap();
        assert_eq!((ann.renew(again).await, ann.left().await), (1, 1));
        assert_eq!((ann.release(again).await, ann.left().await), (1, 2));
    }
}

#[tokio::test]
async fn full_server_takes_no_hold() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let ann = ann(&store);
    for held in [0, 1] {
        server.command("CONFIG SET maxmemory 1").unwrap();
        let charge = [Charge::new("streams", &ann.quota, &ann.key)];
        let error = store.check(&charge).await.unwrap_err();
        assert!(
            matches!(error, RedisStoreError::Refused { .. }),
            "{error:?}"
        );
        assert_eq!(ann.left().await, 2 - held);
        server.command("CONFIG SET maxmemory 0").unwrap();
        ann.hold().await.unwrap();
        assert_eq!(ann.left().await, 1 - held);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_keeps_set_in_slot_of_entry() {
    let cluster = RedisCluster::start();
    let store = options().cluster(cluster.urls()).await.unwrap();
    for name in 0..20 {
        let client = Client {
            key: user(&name.to_string()),
            ..ann(&store)
        };
        let [entry, set] = client.keys();
        assert_eq!(cluster.slot(&entry), cluster.slot(&set));
        let held = [client.hold().await.unwrap(), client.hold().await.unwrap()];
        assert_eq!(
            (client.hold().await, client.renew(held[0]).await),
            (None, 1)
        );
        assert_eq!((client.release(held[1]).await, client.left().await), (1, 1));
        // The owner loses its data, like a replica that takes over without data.
        let owner = cluster.owner(cluster.slot(&entry)).unwrap();
        cluster.node(owner).command("FLUSHALL").unwrap();
        assert_eq!((client.renew(held[0]).await, client.left().await), (0, 2));
        assert!(client.hold().await.is_some());
    }
}
