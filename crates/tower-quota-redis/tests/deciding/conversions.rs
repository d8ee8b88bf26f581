//! A decision names the charges whose stored states had another quota.

use std::num::NonZeroUsize;
use std::time::Duration;

use tower_quota_core::{Charge, ChargeMode, Clock, Decision, Entry, Key, Operation, Quota, Store};
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_testkit::ManualClock;

const MINUTE: Quota = Quota::per_minute(100);
const HOUR: Quota = Quota::per_hour(1_000);
/// No two have the same numbers. The grains of the third are refilled seven at a time.
const QUOTAS: [Quota; 7] = [
    MINUTE,
    HOUR,
    Quota::per_minute(70),
    MINUTE.fixed_window(),
    HOUR.fixed_window(),
    MINUTE.sliding_window(),
    MINUTE.sliding_log(),
];

fn converted(decision: &Decision) -> Vec<usize> {
    decision.converted().collect()
}

async fn store_with(server: &RedisServer, partitions: usize) -> RedisStore {
    let options = crate::common::options().clock(ManualClock::default());
    let partitions = NonZeroUsize::new(partitions).unwrap();
    options
        .partitions(partitions)
        .connect(&server.url())
        .await
        .unwrap()
}

#[tokio::test]
async fn conversion_of_each_quota_is_reported() {
    let server = RedisServer::start();
    let store = store_with(&server, 1).await;
    for (one, other) in (0..QUOTAS.len()).flat_map(|one| (0..QUOTAS.len()).map(move |o| (one, o))) {
        let ann = crate::common::user(&format!("{one} {other}"));
        let (old, new) = (QUOTAS[one], QUOTAS[other]);
        let turn = if one == other { vec![] } else { vec![0] };
        let (old_charge, new_charge) = (
            Charge::new("limit", &old, &ann),
            Charge::new("limit", &new, &ann),
        );
        let apply = async |operation, charge: Charge<'_>| {
            converted(&store.apply(operation, &[charge]).await.unwrap())
        };
        assert_eq!(apply(Operation::Check, old_charge).await, []);
        assert_eq!(apply(Operation::Peek, new_charge).await, []);
        assert_eq!(apply(Operation::Check, new_charge.cost(0)).await, []);
        // An admission on the fast path, unless the quota is no bucket.
        assert_eq!(apply(Operation::Check, new_charge).await, turn);
        assert_eq!(apply(Operation::Check, new_charge).await, []);
        // The marks of a refundable charge do not make another quota.
        let refundable = old_charge.refundable();
        assert_eq!(apply(Operation::Check, refundable).await, turn);
        assert_eq!(apply(Operation::Check, old_charge.shadow()).await, []);
        // A refusal converts the state of a limit in use.
        let refused = new_charge.cost(new.capacity() + 1);
        assert_eq!(apply(Operation::Check, refused).await, turn);
        assert_eq!(apply(Operation::Check, refused).await, []);
        assert_eq!(apply(Operation::Charge, old_charge).await, turn);
        assert_eq!(apply(Operation::Reset, new_charge).await, []);
        assert_eq!(apply(Operation::Check, new_charge).await, []);
    }
}

#[tokio::test]
async fn changed_units_and_expiry_of_holds_are_reported() {
    let server = RedisServer::start();
    let store = store_with(&server, 1).await;
    let ann = crate::common::user("ann");
    let ten = Quota::concurrent(10);
    let check = async |quota: Quota| {
        let charge = [Charge::new("limit", &quota, &ann)];
        let decision = store.check(&charge).await.unwrap();
        (converted(&decision), decision.statuses()[0].remaining())
    };
    assert_eq!(check(ten).await, (vec![], 9));
    assert_eq!(check(Quota::concurrent(20)).await, (vec![0], 18));
    assert_eq!(check(ten.ttl(Duration::from_secs(30))).await, (vec![0], 7));
    // The limit counts a rate apart from its holds.
    assert_eq!(check(MINUTE).await, (vec![], 99));
    assert_eq!(check(ten).await, (vec![0], 6));
}

#[tokio::test]
async fn expired_state_is_not_converted() {
    let (server, clock) = (RedisServer::start(), ManualClock::default());
    let options = crate::common::options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let ann = crate::common::user("ann");
    for quota in [&MINUTE, &HOUR, &MINUTE] {
        let charges = [Charge::new("limit", quota, &ann)];
        let decision = store.check(&charges).await.unwrap();
        assert_eq!(converted(&decision), []);
        clock.advance(Duration::from_secs(60));
    }
}

#[tokio::test]
async fn conversions_have_positions_of_charges() {
    let server = RedisServer::start();
    for partitions in [1, 64] {
        let store = store_with(&server, partitions).await;
        for is_shadow in [false, true] {
            let everyone = Key::EVERYONE;
            let ann = crate::common::user(&format!("{partitions} {is_shadow}"));
            let check = async |all: &Quota, hour: &Quota| {
                let minute = Charge::new("minute", &MINUTE, &ann);
                let charges = [
                    if is_shadow { minute.shadow() } else { minute },
                    Charge::new("all", all, &everyone),
                    Charge::new("hour", hour, &ann),
                ];
                converted(&store.check(&charges).await.unwrap())
            };
            check(&MINUTE, &MINUTE).await;
            assert_eq!(check(&HOUR, &HOUR).await, [1, 2]);
            assert_eq!(check(&HOUR, &HOUR).await, []);
            assert_eq!(check(&MINUTE, &MINUTE).await, [1, 2]);
        }
    }
}

#[tokio::test]
async fn refunded_parts_report_their_conversions() {
    let server = RedisServer::start();
    let store = store_with(&server, 64).await;
    let (ann, everyone) = (crate::common::user("ann"), Key::EVERYONE);
    let (minute, hour) = (
        Charge::new("own", &MINUTE, &ann),
        Charge::new("own", &HOUR, &ann),
    );
    let all = Charge::new("all", &MINUTE, &everyone);
    store.check(&[minute, all.cost(98)]).await.unwrap();
    // The first part takes five units, and gives three units back.
    let both = [hour.cost(5).at_most(), all.cost(5).at_most()];
    let decision = store.check(&both).await.unwrap();
    assert!(decision.statuses().iter().all(|status| status.taken == 2));
    assert_eq!(converted(&decision), [0]);
    let refusal = store.check(&[minute, all]).await.unwrap();
    assert!(!refusal.is_allowed());
    assert_eq!(converted(&refusal), [0]);
}

#[tokio::test]
async fn refusal_without_statuses_reports_no_conversions() {
    let server = RedisServer::start();
    let store = store_with(&server, 64).await;
    let (ann, everyone) = (crate::common::user("ann"), Key::EVERYONE);
    let (minute, hour) = (
        Charge::new("first", &MINUTE, &ann),
        Charge::new("first", &HOUR, &ann),
    );
    let second = Charge::new("second", &MINUTE, &ann).cost(100);
    let all = Charge::new("all", &MINUTE, &everyone);
    store.check(&[minute, second]).await.unwrap();
    assert_eq!(
        converted(&store.check(&[all, hour, second]).await.unwrap()),
        [1]
    );
    redis::cmd("SET")
        .arg(store.key_of(&Key::EVERYONE))
        .arg("nonsense")
        .exec(&mut crate::common::look_at(&server))
        .unwrap();
    let refusal = store.check(&[all, minute, second]).await.unwrap();
    assert_eq!(refusal.statuses().len(), 2);
    assert_eq!(converted(&refusal), []);
}

/// Asserts that a report converts a state without taking units, on both sides alike.
#[tokio::test]
async fn reports_convert_states_like_model() {
    let (server, clock) = (RedisServer::start(), ManualClock::default());
    let options = crate::common::options().clock(clock.clone());
    let store = options.connect(&server.url()).await.unwrap();
    let mut connection = crate::common::look_at(&server);
    let years = Quota::new(1, Duration::from_secs(366 * 86_400));
    let quotas = QUOTAS
        .into_iter()
        .chain([years, Quota::per_month(1_000_000)]);
    let quotas: Vec<Quota> = quotas.collect();
    let cases = (0..quotas.len().pow(2)).flat_map(|pair| {
        let modes = [ChargeMode::Reported, ChargeMode::ReportedUntilDebt];
        modes.map(|mode| {
            (
                quotas[pair / quotas.len()],
                quotas[pair % quotas.len()],
                mode,
            )
        })
    });
    for (number, (old, new, mode)) in cases.enumerate() {
        for owed in [3, 1 << 60] {
            let ann = crate::common::user(&format!("{number} {owed}"));
            let spent = Charge::new("limit", &old, &ann).cost(old.capacity() + owed);
            let report = Charge::new("limit", &new, &ann).in_mode(mode);
            let (mut entry, now) = (Entry::default(), clock.now());
            entry.decide(Operation::Charge, &[spent], now);
            store.apply(Operation::Charge, &[spent]).await.unwrap();
            let expected = entry.decide(Operation::Check, &[report], now);
            let reported = store.apply(Operation::Check, &[report]).await.unwrap();
            assert_eq!(reported, expected, "{old:?} to {new:?}");
            assert_eq!(reported.statuses()[0].taken, 0);
            let stored: Vec<u8> = redis::cmd("GET")
                .arg(store.key_of(&ann))
                .query(&mut connection)
                .unwrap();
            assert_eq!(stored, entry.encode(), "{old:?} to {new:?}");
        }
    }
}
