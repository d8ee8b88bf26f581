//! Tests that limits inside and outside of rows are counted like the model.

use std::time::Duration;

use tower_quota_core::{Charge, Entry, Key, Operation, Quota, Store, Timestamp};
use tower_quota_testkit::{ModelStore, block_on};

use crate::{CLIENT, LIMIT, ask, check, store};

#[test]
fn windows_of_millions_are_counted() {
    let (store, clock) = store(10);
    let quota = Quota::per_hour(9_000_000).sliding_window();
    let key = Key::number(CLIENT, 1);
    let mut model = Entry::default();
    for step in 0..20 {
        let charges = [Charge::new(LIMIT, &quota, &key).cost(2_100_000)];
        assert_eq!(
            check(&store, &charges),
            model.decide(Operation::Check, &charges, store.now()),
            "{step}"
        );
        clock.advance(Duration::from_secs(600));
    }
}

#[test]
fn limits_of_many_keys_are_counted() {
    let (store, clock) = store(10_000);
    let model = ModelStore::with_clock(clock.clone());
    let quotas = [Quota::per_minute(20), Quota::per_minute(15).fixed_window()];
    let (mut admitted, mut refused) = (0, 0);
    for step in 0..3_000_u64 {
        // Up to six of nine clients, in any order.
        let clients = (0..1 + step % 6).map(|number| (step * 7 / 3 + number * (1 + step % 5)) % 9);
        let keys: Vec<_> = clients
            .map(|client| (client, Key::number(CLIENT, client)))
            .collect();
        let charges: Vec<_> = keys
            .iter()
            .map(|(client, key)| {
                let quota = &quotas[usize::from(client % 2 == 0)];
                Charge::new(LIMIT, quota, key).cost((step + client) % 4)
            })
            .collect();
        let decision = check(&store, &charges);
        let expected = block_on(model.check(&charges)).unwrap();
        assert_eq!(decision, expected, "{step}: {charges:?}");
        match decision.is_allowed() {
            true => admitted += 1,
            false => refused += 1,
        }
        clock.advance(Duration::from_millis(step * 37 % 2_000));
    }
    assert!(admitted > 500 && refused > 500, "{admitted} {refused}");
}

#[test]
fn clock_beyond_end_keeps_counting() {
    let (store, clock) = store(10);
    let quota = Quota::per_second(3);
    clock.advance(Duration::from_secs(400 * 366 * 86_400));
    for admitted in [true, true, true, false] {
        assert_eq!(ask(&store, &quota, 1, 1).is_allowed(), admitted);
        clock.advance(Duration::from_secs(1));
    }
}

/// Uses a million quotas in turn. The store forgets the definitions of unused quotas.
#[test]
fn definitions_of_unused_quotas_are_dropped() {
    let (store, clock) = store(10_000);
    for number in 0..1_000_000 {
        let quota = Quota::new(1 + number, Duration::from_secs(86_400));
        assert_eq!(
            ask(&store, &quota, number % 100, 1).statuses()[0].limit,
            1 + number
        );
        clock.advance(Duration::from_millis(86));
    }
    let stats = store.stats();
    assert_eq!((stats.entries, stats.evicted), (100, 0));
    assert!(stats.definitions <= 1_000, "{stats:?}");
    assert!(stats.bytes <= 100_000, "{stats:?}");
}

/// Uses a quota for each client, as tenants with their own quotas would. All clients fit into rows.
#[test]
fn each_client_may_have_its_own_quota() {
    let (store, _) = store(5_000);
    for round in 1..=3 {
        for client in 0..5_000 {
            let quota = Quota::per_hour(10 + client);
            assert_eq!(
                ask(&store, &quota, client, 1).statuses()[0].remaining(),
                10 + client - round,
                "{client}"
            );
        }
    }
    let stats = store.stats();
    assert_eq!((stats.entries, stats.definitions), (5_000, 5_000));
    // The bytes include the definitions, of which each client has one here.
    assert!(stats.bytes < 5_000 * 165, "{stats:?}");
}

/// Covers requests that have some limits of a policy, in any order.
#[test]
fn routes_use_any_part_of_policy() {
    let (store, clock) = store(100);
    let key = Key::number(CLIENT, 1);
    let quotas = [
        Quota::per_second(9),
        Quota::per_minute(70),
        Quota::per_hour(500),
        Quota::per_day(3_000),
    ];
    let charge = |limit: usize| Charge::new(["a", "b", "c", "d"][limit], &quotas[limit], &key);
    let routes: [&[usize]; 8] = [
        &[2],
        &[0, 1, 2],
        &[2, 1],
        &[3],
        &[3, 2, 1, 0],
        &[0, 3],
        &[1],
        &[2, 0, 1],
    ];
    let mut model = Entry::default();
    for step in 0..200 {
        let charges: Vec<Charge<'_>> = routes[step * 5 % 8]
            .iter()
            .map(|&limit| charge(limit))
            .collect();
        assert_eq!(
            check(&store, &charges),
            model.decide(Operation::Check, &charges, store.now()),
            "{step}"
        );
        clock.advance(Duration::from_millis(70));
    }
}

/// Covers a refused request under a new quota that would be full. The entry stays unchanged.
#[test]
fn refusal_by_smaller_quota_keeps_entry() {
    let key = Key::number(CLIENT, 1);
    let (long, short) = (Quota::per_minute(10), Quota::per_minute(5));
    for until_refused in [0, 6] {
        let (store, clock) = store(10);
        // Let another client make both quotas known.
        ask(&store, &long, 2, 1);
        ask(&store, &short, 2, 1);
        let mut model = Entry::default();
        let mut agree = |quota, cost| {
            let charges = [Charge::new(LIMIT, quota, &key).cost(cost)];
            let decision = check(&store, &charges);
            assert_eq!(
                decision,
                model.decide(Operation::Check, &charges, store.now()),
                "{until_refused}, {cost}"
            );
            decision.at()
        };
        let changed = agree(&long, 1);
        clock.advance(Duration::from_secs(until_refused));
        let refused = agree(&short, 6);
        let before = Timestamp::from_micros(refused.as_micros() - 1);
        clock.set(before);
        assert_eq!(agree(&short, 1), before.max(changed));
    }
}

#[test]
fn stats_count_entries_and_evictions() {
    let (store, _) = store(1);
    let quota = Quota::per_hour(5);
    assert_eq!(
        (
            store.stats().entries,
            store.stats().capacity,
            store.stats().definitions
        ),
        (0, 1, 0)
    );
    for (client, cost) in [(0, 5), (1, 1), (2, 1)] {
        ask(&store, &quota, client, cost);
    }
    let stats = store.stats();
    assert_eq!(
        (
            stats.entries,
            stats.evicted,
            stats.evicted_limited,
            stats.definitions
        ),
        (1, 2, 1, 1)
    );
    assert!(stats.bytes > 0);
    assert_eq!(stats.filter_hits, 0);
    assert!(
        !ask(&store, &quota, 0, 1).is_allowed(),
        "the evicted filter remembers the limit"
    );
    assert_eq!(store.stats().filter_hits, 1);
}

/// Asserts that a bucket stays spent if a hold moves its row beyond the last instant.
#[test]
fn spent_client_stays_spent_at_last_instant() {
    let (store, clock) = store(10);
    clock.set(Timestamp::from_micros(u64::MAX));
    let (minute, hold, key) = (
        Quota::per_minute(1),
        Quota::concurrent(5),
        Key::number(CLIENT, 1),
    );
    let spent = Charge::new(LIMIT, &minute, &key);
    let held = [Charge::new("held", &hold, &key)];
    for _ in 0..2 {
        check(&store, &held);
    }
    assert!(check(&store, &[spent]).is_allowed());
    let Ok(_) = store.apply(Operation::Reset, &held).into_inner();
    assert!(!check(&store, &[spent]).is_allowed());
}
