//! Tests the stored entry of a client, its expiry, and how operators find and delete it.

use std::time::Duration;

use redis::Connection;
use tower_quota_core::{Charge, Entry, LimitStatus, Quota, Store};
use tower_quota_dev::RedisServer;
use tower_quota_redis::{RedisStore, RedisStoreError};
use tower_quota_testkit::ManualClock;

use crate::common::{calls, entries, look_at, options, store_on, user};

const SECOND: Quota = Quota::per_second(10);
const DAY: Quota = Quota::per_day(2);

async fn readable_store(server: &RedisServer) -> RedisStore {
    options()
        .readable_keys(true)
        .connect(&server.url())
        .await
        .unwrap()
}

fn lifetime(connection: &mut Connection, key: &str) -> Duration {
    Duration::from_millis(redis::cmd("PTTL").arg(key).query(connection).unwrap())
}

fn stored(connection: &mut Connection, key: &str) -> Vec<u8> {
    redis::cmd("GET").arg(key).query(connection).unwrap()
}

#[tokio::test]
async fn entry_lives_until_nothing_is_used() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = user("ann");
    let name = store.key_of(&ann);
    let (second, day) = (
        Charge::new("second", &SECOND, &ann),
        Charge::new("day", &DAY, &ann),
    );

    store.check(&[second]).await.unwrap();
    assert!(lifetime(&mut connection, &name) <= Duration::from_millis(100));
    let mut taken = store.check(&[second, day]).await.unwrap();
    let half_a_day = Duration::from_secs(12 * 3_600);
    let (lifetime_of_day, minute) = (lifetime(&mut connection, &name), Duration::from_secs(60));
    assert!(
        (half_a_day - minute..=half_a_day).contains(&lifetime_of_day),
        "{lifetime_of_day:?}"
    );

    // The entry lives until the last of the other limits is full.
    let quota = Quota::per_minute(10);
    let other = Charge::new("minute", &quota, &ann);
    store.check(&[other]).await.unwrap();
    store.check(&[second]).await.unwrap();
    assert!(lifetime(&mut connection, &name) > half_a_day - minute);

    store.apply(taken.refund().unwrap(), &[day]).await.unwrap();
    assert!(
        entries(&server)
            .iter()
            .all(|(key, _)| *key == name && lifetime(&mut connection, key) < minute)
    );
}

#[tokio::test]
async fn new_clients_have_own_entries() {
    // The script decides the first of equal requests, and copies the result for the others.
    let server = RedisServer::start();
    let store = options()
        .clock(ManualClock::default())
        .connect(&server.url())
        .await
        .unwrap();
    let clients: Vec<_> = (0..40)
        .map(|number| {
            [
                user(&format!("user {number}")),
                user(&format!("team {number}")),
            ]
        })
        .collect();
    let asked: Vec<_> = clients
        .iter()
        .map(|[user, team]| {
            [
                Charge::new("day", &DAY, user),
                Charge::new("second", &SECOND, team),
            ]
        })
        .map(|charges| tokio::spawn(store.check(&charges)))
        .collect();
    for asked in asked {
        let decision = asked.await.unwrap().unwrap();
        assert_eq!(
            decision
                .statuses()
                .iter()
                .map(LimitStatus::remaining)
                .collect::<Vec<_>>(),
            [1, 9]
        );
    }
    assert!(
        calls(&server, "evalsha") < 40,
        "few calls carry many decisions"
    );
    let (mut connection, minute) = (look_at(&server), Duration::from_secs(60));
    for [user, team] in &clients {
        let [user, team] = [user, team].map(|key| lifetime(&mut connection, &store.key_of(key)));
        let half_a_day = Duration::from_secs(12 * 3_600);
        assert!(
            (half_a_day - minute..=half_a_day).contains(&user),
            "{user:?}"
        );
        assert!(team <= minute, "{team:?}");
    }
}

#[tokio::test]
async fn entry_of_given_clock_lives_a_minute() {
    let server = RedisServer::start();
    let store = options()
        .clock(ManualClock::default())
        .connect(&server.url())
        .await
        .unwrap();
    let ann = user("ann");
    store
        .check(&[Charge::new("second", &SECOND, &ann)])
        .await
        .unwrap();
    let lifetime = lifetime(&mut look_at(&server), &store.key_of(&ann));
    assert!(
        (Duration::from_secs(30)..=Duration::from_secs(60)).contains(&lifetime),
        "{lifetime:?}"
    );
}

#[tokio::test]
async fn operator_reads_and_deletes_one_client() {
    let server = RedisServer::start();
    let (store, mut connection) = (readable_store(&server).await, look_at(&server));
    let (ann, bob) = (user("ann"), user("bob"));
    for key in [&ann, &bob] {
        store
            .check(&[Charge::new("day", &DAY, key).cost(2)])
            .await
            .unwrap();
    }
    let name = store.key_of(&ann);
    let entry = Entry::decode(&stored(&mut connection, &name)).unwrap();
    assert!(entry.is_limited(entry.at()));
    assert_eq!(
        entry.full_at().since(entry.at()),
        Duration::from_secs(86_400)
    );

    let found: Vec<String> = redis::cmd("KEYS")
        .arg("quota:4:*:user:ann")
        .query(&mut connection)
        .unwrap();
    assert_eq!(found, [name.as_str()]);
    redis::cmd("DEL").arg(&name).exec(&mut connection).unwrap();
    assert!(
        store
            .check(&[Charge::new("day", &DAY, &ann)])
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(
        !store
            .check(&[Charge::new("day", &DAY, &bob)])
            .await
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test]
async fn unreadable_entry_is_an_error_and_stays() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let (ann, bob) = (user("ann"), user("bob"));
    let (day, counted) = (
        Charge::new("day", &DAY, &ann),
        Charge::new("day", &DAY, &ann).count_refusals(),
    );
    store.check(&[day]).await.unwrap();
    let name = store.key_of(&ann);
    let sound = stored(&mut connection, &name);
    let other_version = [&[sound[0] + 1], &sound[1..]].concat();
    let repeated = [&sound[..], &sound[8..]].concat();
    let wrong_kind = [&sound[..13], &[9], &sound[14..]].concat();
    let cut_off = (0..sound.len())
        .filter(|&length| length != 8)
        .map(|length| sound[..length].to_vec());
    let endless = [&sound[..8], &[0xff; 16]].concat();
    for wrong in cut_off.chain([
        other_version,
        repeated,
        wrong_kind,
        endless,
        b"nonsense".to_vec(),
    ]) {
        redis::cmd("SET")
            .arg(&name)
            .arg(&wrong)
            .exec(&mut connection)
            .unwrap();
        for charge in [day, counted] {
            let error = store.check(&[charge]).await.unwrap_err();
            assert!(
                matches!(error, RedisStoreError::State { .. }) && !error.is_transient(),
                "{wrong:x?}: {error:?}"
            );
            assert!(error.to_string().contains(&name), "{error}");
            let both = [charge, Charge::new("day", &DAY, &bob)];
            assert!(
                matches!(store.check(&both).await, Err(RedisStoreError::State { .. })),
                "{wrong:x?}"
            );
        }
        assert_eq!(stored(&mut connection, &name), wrong);
    }
    assert_eq!(
        store
            .check(&[Charge::new("day", &DAY, &bob)])
            .await
            .unwrap()
            .statuses()[0]
            .remaining(),
        1
    );
}

#[tokio::test]
async fn unreadable_entry_fails_its_own_decisions_alone() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let ann = user("ann");
    store
        .check(&[Charge::new("day", &DAY, &ann)])
        .await
        .unwrap();
    let name = store.key_of(&ann);
    let endless = [&stored(&mut connection, &name)[..8], &[0xff; 16]].concat();
    redis::cmd("SET")
        .arg(&name)
        .arg(&endless)
        .exec(&mut connection)
        .unwrap();
    let eve = user("eve");
    redis::cmd("SET")
        .arg(store.key_of(&eve))
        .arg("nonsense")
        .exec(&mut connection)
        .unwrap();
    let calls = store.stats().calls;
    let asked = (0..100).map(|i| {
        let bob = user(&format!("bob {i}"));
        let (good, bad) = (
            Charge::new("day", &DAY, &bob),
            Charge::new("day", &DAY, if i % 2 == 0 { &ann } else { &eve }),
        );
        (
            tokio::spawn(store.check(&[good])),
            tokio::spawn(store.check(&[bad])),
        )
    });
    for (good, bad) in asked.collect::<Vec<_>>() {
        assert!(good.await.unwrap().unwrap().is_allowed());
        assert!(matches!(
            bad.await.unwrap(),
            Err(RedisStoreError::State { .. })
        ));
    }
    assert!(store.stats().calls - calls < 100, "both kinds share calls");
    assert_eq!(stored(&mut connection, &name), endless);
}

#[tokio::test]
async fn eviction_loses_single_clients() {
    let server = RedisServer::start();
    let (store, mut connection) = (store_on(&server).await, look_at(&server));
    let mut set = |option: &str, value: u64| {
        redis::cmd("CONFIG")
            .arg("SET")
            .arg(option)
            .arg(value)
            .exec(&mut connection)
            .unwrap();
    };
    for policy in [
        "volatile-lru",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
    ] {
        for i in 0..2_000 {
            store
                .check(&[Charge::new("day", &DAY, &user(&format!("user {i}")))])
                .await
                .unwrap();
        }
        server
            .command(&format!("CONFIG SET maxmemory-policy {policy}"))
            .unwrap();
        let used: String = redis::cmd("INFO")
            .arg("memory")
            .query(&mut look_at(&server))
            .unwrap();
        let used = used
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"))
            .unwrap()
            .parse::<u64>()
            .unwrap();
        // The memory includes the connections. Lower the limit step by step, until Redis evicts
        // clients.
        for less in 0.. {
            set("maxmemory", used - less * 10_000);
            store
                .check(&[Charge::new("day", &DAY, &user("another"))])
                .await
                .unwrap();
            set("maxmemory", 0);
            let left = entries(&server).len();
            if left < 2_001 {
                assert!(left > 1_000, "{policy}: {left} of 2001 clients are left");
                break;
            }
        }
    }
}

#[tokio::test]
async fn changing_quotas_leave_one_small_entry() {
    let server = RedisServer::start();
    let (store, ann) = (store_on(&server).await, user("ann"));
    for units in 1_000..2_000 {
        store
            .check(&[Charge::new("day", &Quota::per_day(units), &ann)])
            .await
            .unwrap();
    }
    let [(name, size)] = &entries(&server)[..] else {
        panic!("more than one key")
    };
    assert_eq!(*name, store.key_of(&ann));
    assert!(*size <= 50, "{size} bytes");
}
