//! Tests the commands, the stored keys and the atomicity of decisions.

use tower_quota_core::{Charge, Clock, Key, MonotonicClock, Operation, Quota, Store, Timestamp};
use tower_quota_dev::RedisServer;
use tower_quota_testkit::ManualClock;

use crate::common::{calls, check, entries, look_at, options, store_on, user};

const SECOND: Quota = Quota::per_second(10).burst(20);
const MINUTE: Quota = Quota::per_minute(100);
const HOUR: Quota = Quota::per_hour(1_000);

fn three<'a>(key: &'a Key<'a>) -> [Charge<'a>; 3] {
    [
        Charge::new("second", &SECOND, key),
        Charge::new("minute", &MINUTE, key),
        Charge::new("hour", &HOUR, key),
    ]
}

#[tokio::test]
async fn three_limits_take_one_call() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let ann = user("ann");
    // The first check teaches the script to the server.
    assert!(store.check(&three(&ann)).await.unwrap().is_allowed());
    server.command("CONFIG RESETSTAT").unwrap();

    assert!(store.check(&three(&ann)).await.unwrap().is_allowed());

    let statistics = server.command("INFO commandstats").unwrap();
    let mut seen: Vec<&str> = statistics
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"))
        .filter_map(|line| line.split(',').next())
        // Leave out the commands of the observing connection.
        .filter(|line| !line.starts_with("config") && !line.starts_with("quit"))
        .collect();
    seen.sort_unstable();
    // The commands include the script's own, which are one reading of the time, one reading of the
    // entry and one write.
    assert_eq!(
        seen,
        [
            "evalsha:calls=1",
            "mget:calls=1",
            "psetex:calls=1",
            "time:calls=1"
        ]
    );
}

#[tokio::test]
async fn three_limits_are_one_small_key() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let ann = user("ann");
    for _ in 0..20 {
        assert!(store.check(&three(&ann)).await.unwrap().is_allowed());
    }
    let [(name, size)] = &entries(&server)[..] else {
        panic!("more than one key")
    };
    println!(
        "three limits of one client: {size} bytes under {name} ({} bytes)",
        name.len()
    );
    assert_eq!(*name, store.key_of(&ann));
    assert!(name.len() <= 30 && *size <= 72, "{name}: {size} bytes");
}

#[tokio::test]
async fn refusals_and_peeks_write_nothing() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let (ann, bob) = (user("ann"), user("bob"));
    let (one, many) = (Quota::per_hour(1), Quota::per_hour(10));
    let both = [
        Charge::new("ann's", &one, &ann),
        Charge::new("bob's", &many, &bob),
    ];
    assert!(store.check(&both).await.unwrap().is_allowed());
    let sets = calls(&server, "psetex");
    assert!(sets > 0);

    let refused = store.check(&both).await.unwrap();
    assert!(!refused.is_allowed());
    assert_eq!(refused.tightest().unwrap().name, "ann's".into());
    assert_eq!(refused.statuses()[1].remaining(), 9, "all or nothing");
    store
        .check(&[both[0].cost(0), both[1].cost(0)])
        .await
        .unwrap();
    let peeked = store.apply(Operation::Peek, &both).await.unwrap();
    assert!(!peeked.is_allowed());
    assert_eq!(calls(&server, "psetex"), sets);

    store.apply(Operation::Reset, &both).await.unwrap();
    assert_eq!(
        entries(&server),
        [],
        "a client of which nothing is used has no key"
    );
}

#[tokio::test]
async fn decisions_use_server_time() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let ann = user("ann");
    let mut connection = look_at(&server);
    let mut time = move || {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut connection).unwrap();
        Timestamp::from_micros(seconds * 1_000_000 + micros)
    };
    let before = time();
    let decision = store
        .check(&[Charge::new("second", &SECOND, &ann)])
        .await
        .unwrap();
    assert!(before <= decision.at() && decision.at() <= time());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_requests_leave_others_alone() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let quota = Quota::per_hour(1_000);
    let (ann, bob) = (user("ann"), user("bob"));
    for i in 0..300 {
        // Drop the decision before it is sent, in flight, or afterwards.
        let dropped = tokio::spawn(store.check(&[Charge::new("hour", &quota, &ann)]));
        let left = store
            .check(&[Charge::new("hour", &quota, &bob)])
            .await
            .unwrap()
            .statuses()[0]
            .remaining();
        dropped.abort();
        assert_eq!(left, 999 - i, "the answer to another question");
    }
    let left = store
        .check(&[Charge::new("hour", &quota, &ann)])
        .await
        .unwrap()
        .statuses()[0]
        .remaining();
    assert!((699..=999).contains(&left), "{left}");
}

#[tokio::test]
async fn repeated_limit_counts_both_charges() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let (quota, ann) = (Quota::per_minute(2), user("ann"));
    let once = [Charge::new("minute", &quota, &ann)];
    let twice = [once[0], once[0]];
    assert!(store.check(&twice).await.unwrap().is_allowed());
    assert!(!store.check(&twice).await.unwrap().is_allowed());
    // The entry stays readable.
    assert!(!store.check(&once).await.unwrap().is_allowed());
    store.apply(Operation::Reset, &once).await.unwrap();
    assert!(store.check(&once).await.unwrap().is_allowed());
}

#[tokio::test]
async fn difference_of_clocks_is_measured() {
    const HOUR_IN_MICROS: i64 = 3_600_000_000;
    const MINUTE_IN_MICROS: i64 = 60_000_000;
    let server = RedisServer::start();
    let now = MonotonicClock::new().now().as_micros().cast_signed();
    for ahead in [0, HOUR_IN_MICROS, -HOUR_IN_MICROS] {
        let at = Timestamp::from_micros((now + ahead).cast_unsigned());
        let store = options().clock(ManualClock::at(at));
        let store = store.connect(&server.url()).await.unwrap();
        assert_eq!(store.stats().clock_difference_micros, 0);
        check(&store).await.unwrap();
        let found = store.stats().clock_difference_micros;
        assert!((found - ahead).abs() < MINUTE_IN_MICROS, "{ahead}: {found}");
    }
    let store = store_on(&server).await;
    check(&store).await.unwrap();
    let found = store.stats().clock_difference_micros;
    assert!(
        found != 0 && found.abs() < MINUTE_IN_MICROS,
        "one machine has one clock: {found}"
    );
}
