//! Tests the sorted sets of holds, and that the limit is right again if an entry or a set is lost.

use std::time::Duration;

use redis::Connection;
use tower_quota_core::{Charge, ChargeMode, Clock, Entry, Key, Operation, Quota, Store, Timestamp};
use tower_quota_dev::{RedisCluster, RedisServer};
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::ManualClock;

use crate::common::holds::key_of_holds;
use crate::common::{calls, look_at, options, store_on, until_answered, user};

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
        self.apply_in(ChargeMode::Checked, operation).await
    }

    async fn apply_in(&self, mode: ChargeMode, operation: Operation) -> (Timestamp, u64, u64) {
        let charge = Charge::new("streams", &self.quota, &self.key).in_mode(mode);
        let decision = self.store.apply(operation, &[charge]).await.unwrap();
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

    /// Renews a hold, or takes it again. Returns the taken and the remaining units.
    async fn take_again(&self, taken_at: Timestamp) -> (u64, u64) {
        let renewal = Operation::Renew { taken_at };
        let (_, taken, left) = self.apply_in(ChargeMode::Forced, renewal).await;
        (taken, left)
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
    holder_of(2, store)
}

/// Returns a client with a limit of so many units.
fn holder_of(units: u64, store: &RedisStore) -> Client<'_> {
    Client {
        store,
        key: user("ann"),
        quota: Quota::concurrent(units),
    }
}

/// Opens a store on a clock of the test.
async fn timed(server: &RedisServer) -> (RedisStore, ManualClock) {
    let clock = ManualClock::default();
    let options = options().clock(clock.clone());
    (options.connect(&server.url()).await.unwrap(), clock)
}

fn delete(connection: &mut Connection, key: &str) {
    redis::cmd("DEL").arg(key).exec(connection).unwrap();
}

/// Returns the number of members of a set, 0 without the set.
fn members(connection: &mut Connection, set: &str) -> u64 {
    redis::cmd("ZCARD").arg(set).query(connection).unwrap()
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
    assert_eq!(members(&mut connection, &ann.keys()[1]), 1);
    assert_eq!(ann.release(second).await, 1);
    assert_eq!(members(&mut connection, &ann.keys()[1]), 0);
    assert_eq!(ann.left().await, 2);
}

#[tokio::test]
async fn lost_set_frees_its_units() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let (first, second) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
    assert_eq!(ann.hold().await, None);
    delete(&mut connection, &ann.keys()[1]);
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
    delete(&mut connection, &ann.keys()[0]);
    assert_eq!(members(&mut connection, &ann.keys()[1]), 2);
    assert_eq!((ann.left().await, ann.renew(first).await), (2, 0));
    let third = ann.hold().await.unwrap();
    assert_eq!(ann.release(first).await, 0);
    assert!(ann.hold().await.is_some());
    assert_eq!(ann.hold().await, None);
    let held = members(&mut connection, &ann.keys()[1]);
    assert_eq!((held, ann.release(third).await), (2, 1));
}

#[tokio::test]
async fn lost_hold_is_taken_again_once() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = ann(&store);
    let [entry, set] = ann.keys();
    for lost in [&[&entry][..], &[&set], &[&entry, &set]] {
        let (first, second) = (ann.hold().await.unwrap(), ann.hold().await.unwrap());
        for key in lost {
            delete(&mut connection, key);
        }
        for _ in 0..2 {
            assert_eq!(ann.take_again(first).await, (1, 1), "{lost:?}");
        }
        assert_eq!(ann.take_again(second).await, (1, 0));
        assert_eq!(
            (ann.hold().await, members(&mut connection, &set)),
            (None, 2)
        );
        assert_eq!(
            (ann.release(first).await, ann.release(second).await),
            (1, 1)
        );
        assert_eq!(ann.left().await, 2);
    }
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
        delete(&mut connection, &set);
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
    let (store, clock) = timed(&server).await;
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
            key: user(&held.to_string()),
            ..holder_of(2_000, &store)
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
    let (store, clock) = timed(&server).await;
    let many = holder_of(100, &store);
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
    let [_, set] = many.keys();
    // The hold of three units has a member for its units.
    assert_eq!((many.left().await, members(&mut connection, &set)), (96, 3));
    clock.set(weighted.at() + TTL);
    assert_eq!(many.left().await, 100);
    many.hold().await.unwrap();
    assert_eq!((many.left().await, members(&mut connection, &set)), (99, 1));
    assert_eq!(many.release(late).await, 0);
    assert!(clock.now() > late);
}

#[tokio::test]
async fn units_of_many_expired_holds_are_read_once() {
    const MANY: u64 = 150;
    let server = RedisServer::start();
    let (store, clock) = timed(&server).await;
    let thousand = holder_of(1_000, &store);
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
    let kept = members(&mut connection, &thousand.keys()[1]);
    assert_eq!(kept, 2, "one hold and its units");
}

#[tokio::test]
async fn count_of_altered_set_removes_expired_holds() {
    let server = RedisServer::start();
    let (store, clock) = timed(&server).await;
    let ten = holder_of(10, &store);
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
    assert_eq!(members(&mut connection, &set), 1);
}

#[tokio::test]
async fn count_of_altered_set_removes_units_without_hold() {
    let server = RedisServer::start();
    let (store, clock) = timed(&server).await;
    let ten = holder_of(10, &store);
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
    let kept = members(&mut connection, &set);
    assert_eq!(kept, 2, "one hold and its units");
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
        assert_eq!(client.take_again(held[0]).await, (1, 1));
        assert!(client.hold().await.is_some());
    }
}
