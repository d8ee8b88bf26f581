//! Tests the memory store under pressure, with its capacity, floods of new keys, and many threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Decision, Key, MemoryStore, Name, Operation, Quota, Store,
};
use tower_quota_testkit::{ManualClock, block_on};

use crate::{CLIENT, LIMIT, ask, check, left, store};

#[test]
fn decision_in_place_equals_returned_decision() {
    let (one, clock) = store(10);
    let other = MemoryStore::with_clock(10, clock.clone());
    let (minute, hour) = (Quota::per_minute(3), Quota::per_hour(5).fixed_window());
    let key = Key::number(CLIENT, 1);
    let charges = [
        Charge::new(LIMIT, &minute, &key),
        Charge::new("hour", &hour, &key),
    ];
    let mut place = Decision::default();
    for step in 0..20 {
        // Vary the charges, because the former content of the decision must not matter.
        let charges = &charges[..1 + step % 2];
        let is_left = match step % 3 {
            0 => one.check_at_once(charges, &mut place),
            1 => Arc::new(one.clone()).check_at_once(charges, &mut place),
            _ => BoxStore::new(one.clone()).check_at_once(charges, &mut place),
        };
        assert!(is_left);
        assert_eq!(place, check(&other, charges), "{step}");
        clock.advance(Duration::from_secs(7));
    }
}

#[test]
fn limited_client_stays_limited_under_flood() {
    for capacity in [1, 10, 1_000, 20_000] {
        let (store, _) = store(capacity);
        let quota = Quota::per_hour(5);
        assert!(ask(&store, &quota, 0, 5).is_allowed());
        for fresh in 1..=1_000_000 / if capacity > 1_000 { 1 } else { 4 } {
            ask(&store, &quota, fresh, 1);
            if fresh % 50_000 == 0 {
                assert!(
                    !ask(&store, &quota, 0, 1).is_allowed(),
                    "released after {fresh} new keys"
                );
            }
            assert!(store.len() <= capacity);
        }
        assert_eq!(left(&store, &quota, 0), 0);
        assert!(capacity == 1 || store.evicted() > 0);
    }
}

#[test]
fn cleared_store_has_room_for_all() {
    for capacity in [1, 10, 20_000] {
        let (store, _) = store(capacity);
        let quota = Quota::per_hour(5);
        let clients = capacity as u64 + 1;
        for _ in 0..2 {
            // The last client finds no room. Clearing the store clears the evicted filter too.
            for client in 0..clients {
                assert!(ask(&store, &quota, client, 5).is_allowed());
            }
            assert_eq!(store.len(), capacity);
            assert_eq!(left(&store, &quota, 0), 0);
            store.clear();
            assert!(store.is_empty());
            assert_eq!(left(&store, &quota, 0), 5);
        }
    }
}

#[test]
fn flood_does_not_refuse_new_clients() {
    let (store, _) = store(1_000);
    let quota = Quota::per_hour(5);
    for fresh in 0..100_000 {
        assert!(ask(&store, &quota, fresh, 2).is_allowed(), "client {fresh}");
    }
    assert_eq!(store.len(), 1_000);
    assert_eq!(store.evicted(), 99_000);
}

/// Returns how many of 500 known clients keep their counters in a flood of new keys.
///
/// Known clients take 8 units each, new keys 1. The store has room for a thousand.
fn known_after_a_flood(come: impl Fn(&dyn Fn(u64), &dyn Fn(u64))) -> usize {
    let (store, _) = store(1_000);
    let quota = Quota::per_hour(10);
    let known = |client| drop(ask(&store, &quota, client, 8));
    let fresh = |number| drop(ask(&store, &quota, 1_000_000 + number, 1));
    come(&known, &fresh);
    (500..100_000).for_each(fresh);
    (0..500)
        .filter(|&client| left(&store, &quota, client) == 2)
        .count()
}

#[test]
fn clients_that_took_more_keep_counters() {
    let kept = known_after_a_flood(|known, fresh| {
        (0..500).for_each(|number| {
            known(number);
            fresh(number);
        });
    });
    assert!(kept >= 490, "{kept} of 500 among new keys");
    let kept = known_after_a_flood(|known, fresh| {
        (0..500).for_each(known);
        (0..500).for_each(fresh);
    });
    assert!(kept >= 490, "{kept} of 500 before new keys");
}

/// Covers logs with the memory of many entries. Each kilobyte takes a place.
#[test]
fn long_logs_take_several_places() {
    let (store, clock) = store(400);
    let log = Quota::per_day(10_000).sliding_log();
    for client in 0..40 {
        for _ in 0..2_000 {
            ask(&store, &log, client, 1);
            clock.advance(Duration::from_micros(1));
        }
    }
    let stats = store.stats();
    // A log of 2,000 stamps takes 32 kilobytes, and the store has room for 400.
    assert!(stats.entries <= 12, "{stats:?}");
    assert!(
        (32_000 * stats.entries..600_000).contains(&stats.bytes),
        "{stats:?}"
    );
    assert_eq!(stats.evicted, 40 - stats.entries as u64);
    // A single log may exceed the capacity.
    let (store, clock) = self::store(1);
    for stamps in 1..=10_000 {
        assert!(ask(&store, &log, 0, 1).is_allowed(), "{stamps}");
        clock.advance(Duration::from_micros(1));
    }
    assert!(!ask(&store, &log, 0, 1).is_allowed());
    assert_eq!((store.len(), store.evicted()), (1, 0));
}

#[test]
fn shorter_log_returns_its_places() {
    let (store, clock) = store(40);
    let log = Quota::per_hour(10_000).sliding_log();
    for _ in 0..2_000 {
        ask(&store, &log, 0, 1);
        clock.advance(Duration::from_micros(1));
    }
    // All stamps expire. The log of 32 places has one stamp again.
    clock.advance(Duration::from_secs(3_600));
    ask(&store, &log, 0, 1);
    for client in 1..40 {
        ask(&store, &Quota::per_hour(5), client, 1);
    }
    assert_eq!((store.len(), store.evicted()), (40, 0));
}

/// Covers a store that is full of clients who were busy long ago and have units left.
#[test]
fn busy_clients_replace_silent_ones() {
    // The last clients have the highest counted number of uses. Active clients exceed it once the
    // uses are halved.
    for (requests, active, visits) in [
        (1, 500, 20),
        (20, 500, 40),
        (20, 2_000, 40),
        (300, 500, 230),
    ] {
        let (store, clock) = store(5_000);
        let quota = Quota::per_day(1_000);
        for _ in 0..requests {
            for silent in 0..5_000 {
                ask(&store, &quota, silent, 800 / requests);
            }
        }
        clock.advance(Duration::from_secs(3_600));
        let mut taken = vec![0; active];
        for _ in 0..600 {
            for (client, taken) in (1_000_000..).zip(&mut taken) {
                *taken += ask(&store, &quota, client, 3).statuses()[0].taken;
            }
            clock.advance(Duration::from_secs(1));
        }
        // 7 units come back in ten minutes. Until its row stays, an active client starts full at
        // each visit. One in ten may do so for longer.
        taken.sort_unstable();
        let most = taken[active * 9 / 10];
        assert!(
            most <= 1_007 + 3 * visits,
            "{most} with {requests} requests"
        );
        assert!(taken.iter().all(|taken| *taken >= 1_000));
    }
}

/// Covers a flood of new keys, each used twice, with clients who come less often than the store is
/// renewed.
#[test]
fn flood_with_repeated_keys_keeps_busy_clients() {
    let (store, clock) = store(1_000);
    let quota = Quota::per_hour(100);
    let mut taken = vec![0; 500];
    for second in 0..3_600_u64 {
        for fresh in 0..100 {
            let key = 1_000_000 + second * 100 + fresh;
            ask(&store, &quota, key, 1);
            ask(&store, &quota, key, 1);
        }
        // Each client comes every eight seconds, for 450 units.
        for client in (second % 8..500).step_by(8) {
            let decision = ask(&store, &quota, client, 1);
            taken[usize::try_from(client).unwrap()] += decision.statuses()[0].taken;
        }
        clock.advance(Duration::from_secs(1));
    }
    let exact = 200;
    let mean = taken.iter().sum::<u64>() / 500;
    assert!(
        mean <= exact + 20,
        "{mean} units on average, {exact} without a flood"
    );
}

#[test]
fn full_entries_are_reclaimed_first() {
    let (store, clock) = store(1_000);
    let (quick, slow) = (Quota::per_second(10), Quota::per_hour(10));
    for client in 0..1_000 {
        ask(
            &store,
            if client % 2 == 0 { &quick } else { &slow },
            client,
            5,
        );
    }
    clock.advance(Duration::from_secs(3));
    for fresh in 0..300 {
        ask(&store, &slow, 1_000 + fresh, 5);
    }
    assert_eq!(store.evicted(), 0);
    assert!(store.len() <= 1_000);
    let kept = (0..1_000)
        .filter(|client| client % 2 == 1)
        .filter(|&client| left(&store, &slow, client) == 5)
        .count();
    assert_eq!(kept, 500);
}

#[test]
fn limited_flood_releases_and_refuses_no_other() {
    let (store, clock) = store(10_000);
    let quota = Quota::new(1, Duration::from_secs(900));
    let admitted = |clients: std::ops::Range<u64>| {
        clients
            .filter(|&client| ask(&store, &quota, client, 1).is_allowed())
            .count()
    };
    admitted(0..20_000);
    // The store mistakes a few clients for evicted clients.
    assert_eq!(store.len(), 10_000);
    assert!(
        (9_990..=10_000).contains(&store.evicted()),
        "{}",
        store.evicted()
    );
    assert_eq!(admitted(0..20_000), 0, "of those admitted already");
    // The evicted filter remembers up to 1.2 limits for each place without a loss.
    let new = admitted(50_000..52_000);
    assert!(new >= 1_995, "{new} of 2000 new clients");
    assert_eq!(admitted(50_000..52_000), 0, "of the new clients, once more");
    assert_eq!(admitted(0..20_000), 0, "of the first clients, once more");
    // The store remembers an evicted client only until one unit fits.
    clock.advance(Duration::from_secs(900));
    assert_eq!(admitted(0..10_000), 10_000);
}

/// Covers more limited clients than the store can remember.
///
/// The store releases some of them, and mistakes hardly any new client for a limited client.
#[test]
fn new_clients_are_seldom_mistaken_for_evicted() {
    let (store, clock) = store(10_000);
    let quota = Quota::new(1, Duration::from_secs(900));
    for wave in 0..2 {
        for client in 0..200_000 {
            ask(&store, &quota, wave << 32 | client, 1);
        }
        let new = wave << 32 | 1_000_000..wave << 32 | 1_010_000;
        let refused = new
            .filter(|&client| !ask(&store, &quota, client, 1).is_allowed())
            .count();
        assert!(refused <= 10, "{refused} of 10000 in wave {wave}");
        clock.advance(Duration::from_secs(901));
    }
}

/// Asserts that a client whose entry is evicted takes at most the quota's capacity once more.
#[test]
fn eviction_admits_at_most_one_more_capacity() {
    for (capacity, clients) in [(1, 2), (5, 20), (50, 200), (5_000, 20_000)] {
        let (store, _) = store(capacity);
        let quota = Quota::per_hour(5);
        let mut random = 1_u64;
        let mut admitted = 0;
        for _ in 0..100_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let (client, cost) = ((random >> 33) % clients, 1 + (random >> 20) % 3);
            let decision = if client % 7 == 0 {
                let keys = [
                    Key::number(CLIENT, client),
                    Key::number(CLIENT, (client + 1) % clients),
                ];
                check(
                    &store,
                    &[0, 1].map(|key: usize| Charge::new(LIMIT, &quota, &keys[key]).cost(cost)),
                )
            } else {
                ask(&store, &quota, client, cost)
            };
            admitted += decision
                .statuses()
                .iter()
                .map(|status| status.taken)
                .sum::<u64>();
        }
        let most = 5 * (clients + store.evicted());
        assert!(
            admitted <= most,
            "{admitted} of at most {most} with {capacity} places"
        );
        assert!(store.evicted() > 0);
    }
}

#[test]
fn refused_client_is_evicted_last() {
    let (store, _) = store(1_000);
    let quota = Quota::per_hour(100);
    assert!(ask(&store, &quota, 0, 60).is_allowed());
    for round in 1..20 {
        assert!(
            !ask(&store, &quota, 0, 60).is_allowed(),
            "released in round {round}"
        );
        for fresh in 0..2_000 {
            ask(&store, &quota, round * 10_000 + fresh, 61);
        }
    }
}

#[test]
fn entry_without_place_is_spent() {
    let (store, _) = store(1);
    let quota = Quota::per_hour(5);
    let keys = [Key::number(CLIENT, 1), Key::number(CLIENT, 2)];
    let both = || {
        check(
            &store,
            &[
                Charge::new("one", &quota, &keys[0]),
                Charge::new("two", &quota, &keys[1]),
            ],
        )
    };
    assert!(both().is_allowed());
    assert!(!both().is_allowed(), "one of the two has found no place");
    assert_eq!(store.len(), 1);
}

/// Sends new clients with a shared limit to a full store, in both orders of the limits.
#[test]
fn entry_of_everyone_is_never_evicted() {
    for (capacity, order) in [
        (1, [0, 1]),
        (4_000, [0, 1]),
        (4_000, [1, 0]),
        (50_000, [0, 1]),
    ] {
        let (store, _) = store(capacity);
        let (own, everyone) = (Quota::per_minute(10), Quota::per_second(5_000));
        for client in 0..capacity as u64 {
            ask(&store, &own, client, 1);
        }
        let admitted = (0..20_000)
            .filter(|fresh| {
                let (key, all) = (Key::number(CLIENT, 1_000_000 + fresh), Key::EVERYONE);
                let charges = [
                    Charge::new("own", &own, &key),
                    Charge::new("everyone", &everyone, &all),
                ];
                check(&store, &order.map(|limit: usize| charges[limit])).is_allowed()
            })
            .count();
        assert_eq!(admitted, 5_000, "{capacity} places, {order:?}");
        assert!(store.len() <= capacity + 1);
    }
}

/// Asserts that a route shared by all new clients keeps its entry, though it is full sooner.
#[test]
fn shared_entry_outlives_flood() {
    let (store, _) = store(4_000);
    let (own, route) = (Quota::per_minute(10), Quota::per_second(5_000));
    let shared = Key::owned(Name::new("route"), "/login");
    let admitted = (0..50_000)
        .filter(|&fresh| {
            let key = Key::number(CLIENT, fresh);
            check(
                &store,
                &[
                    Charge::new("own", &own, &key),
                    Charge::new("route", &route, &shared),
                ],
            )
            .is_allowed()
        })
        .count();
    assert_eq!(admitted, 5_000);
}

#[test]
fn request_that_takes_nothing_leaves_no_entry() {
    let (store, _) = store(100);
    let quota = Quota::per_second(5);
    for client in 0..1_000 {
        ask(&store, &quota, client, 0);
        assert!(!ask(&store, &quota, client, 6).is_allowed());
        let mut taken = ask(&store, &quota, client, 3);
        let key = Key::number(CLIENT, client);
        let refund = taken.refund().unwrap();
        block_on(store.apply(refund, &[Charge::new(LIMIT, &quota, &key).cost(3)])).unwrap();
        ask(&store, &quota, client, 3);
        block_on(store.apply(Operation::Reset, &[Charge::new(LIMIT, &quota, &key)])).unwrap();
    }
    assert!(store.is_empty());
    assert_eq!(store.evicted(), 0);
}

/// Asserts that a client finds the row of its full bucket, and that new clients reuse rows of
/// absent clients.
#[test]
fn full_entries_stay_until_needed() {
    let (store, clock) = store(100_000);
    let quota = Quota::per_second(5);
    for _ in 0..3 {
        (0..1_000).for_each(|client| drop(ask(&store, &quota, client, 5)));
        assert_eq!(store.len(), 1_000);
        clock.advance(Duration::from_secs(3));
    }
    // A wave of other clients comes every two minutes. The store does not grow by every wave.
    for wave in 1..50 {
        clock.advance(Duration::from_secs(120));
        (0..1_000).for_each(|client| drop(ask(&store, &quota, wave * 1_000 + client, 5)));
    }
    assert!(store.len() < 5_000, "{} entries", store.len());
    assert_eq!(store.evicted(), 0);
}

#[test]
fn first_window_of_offset_is_short() {
    let clock = ManualClock::at(tower_quota_core::Timestamp::EPOCH);
    let store = MemoryStore::with_clock(10, clock.clone());
    let quota = Quota::per_minute(5)
        .fixed_window()
        .offset(Duration::from_secs(20));
    clock.advance(Duration::from_secs(5));
    let decision = ask(&store, &quota, 0, 5);
    assert_eq!(
        decision.statuses()[0].reset_after(),
        Duration::from_secs(15)
    );
    assert_eq!(
        ask(&store, &quota, 0, 1).retry_after(),
        Some(Duration::from_secs(15))
    );
    clock.advance(Duration::from_secs(15));
    assert_eq!(
        ask(&store, &quota, 0, 5).statuses()[0].reset_after(),
        Duration::from_secs(60)
    );
}

/// Runs `work` on eight threads that start together.
fn on_threads(work: impl Fn(u64) + Sync) {
    const THREADS: u64 = 8;
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(number);
            });
        }
    });
}

#[test]
fn threads_take_no_unit_twice() {
    for algorithm in tower_quota_core::Algorithm::ALL {
        let (store, _) = store(100);
        let quota = Quota::per_hour(100).try_algorithm(algorithm).unwrap();
        let admitted = AtomicUsize::new(0);
        on_threads(|_| {
            for _ in 0..250 {
                admitted.fetch_add(
                    ask(&store, &quota, 0, 1).is_allowed().into(),
                    Ordering::Relaxed,
                );
            }
        });
        assert_eq!(admitted.into_inner(), 100, "{algorithm}");
    }
}

#[test]
fn several_keys_are_charged_together_or_not() {
    // 20,000 places make several shards. The keys of a request are then behind different locks, in
    // either order.
    let (store, _) = store(20_000);
    let (own, shared) = (Quota::per_hour(40), Quota::per_hour(1_000).fixed_window());
    let taken: Vec<AtomicU64> = (0..50).map(|_| AtomicU64::new(0)).collect();
    on_threads(|thread| {
        for round in 0..2_000 {
            let client = (round * 7 + thread * 13) % 50;
            let (key, everyone) = (Key::number(CLIENT, client), Key::EVERYONE);
            let mut charges = [
                Charge::new("own", &own, &key),
                Charge::new("everyone", &shared, &everyone),
            ];
            if thread % 2 == 1 {
                charges.reverse();
            }
            taken[usize::try_from(client).unwrap()].fetch_add(
                check(&store, &charges).is_allowed().into(),
                Ordering::Relaxed,
            );
        }
    });
    let taken: Vec<u64> = taken.into_iter().map(AtomicU64::into_inner).collect();
    assert_eq!(taken.iter().sum::<u64>(), 1_000);
    for (client, taken) in (0_u64..).zip(taken) {
        let key = Key::number(CLIENT, client);
        let peek = check(&store, &[Charge::new("own", &own, &key).cost(0)]);
        assert_eq!(
            peek.statuses()[0].remaining(),
            40 - taken,
            "a refused request charged client {client}"
        );
    }
}

#[test]
fn capacity_holds_between_threads() {
    let (store, _) = store(10_000);
    let quota = Quota::per_hour(5);
    on_threads(|thread| {
        for fresh in 0..20_000 {
            ask(&store, &quota, thread << 32 | fresh, 1);
            assert!(store.len() <= 10_000);
        }
    });
    assert!(store.len() > 9_000);
    assert!(store.evicted() > 0);
}

#[test]
fn huge_capacity_reserves_no_memory() {
    let (store, _) = store(usize::MAX);
    let quota = Quota::per_hour(5);
    for client in 0..100_000 {
        ask(&store, &quota, client, 5);
    }
    assert_eq!((store.len(), store.evicted()), (100_000, 0));
}

/// Asserts that a store keeps as many entries as it has places.
#[test]
fn store_holds_as_many_as_its_capacity() {
    let quota = Quota::per_hour(5);
    for (capacity, limits) in [1, 10, 1_000, 100_000]
        .into_iter()
        .flat_map(|capacity| [(capacity, 1), (capacity, 3)])
    {
        let (store, _) = store(capacity);
        let names = ["one", "two", "three"];
        for (client, cost) in (0..capacity as u64).map(|client| (client, 1 + client % 5)) {
            let key = Key::number(CLIENT, client);
            let charges = names.map(|name| Charge::new(name, &quota, &key).cost(cost));
            assert!(check(&store, &charges[..limits]).is_allowed());
        }
        assert_eq!(
            (store.len(), store.evicted()),
            (capacity, 0),
            "{limits} limits"
        );
        for client in 0..capacity as u64 {
            let key = Key::number(CLIENT, client);
            let peek = check(
                &store,
                &names.map(|name| Charge::new(name, &quota, &key).cost(0))[..limits],
            );
            assert!(
                peek.statuses()
                    .iter()
                    .all(|status| status.remaining() == 4 - client % 5),
                "client {client}"
            );
        }
    }
}

/// Covers a first request, and requests of a client with a row.
#[test]
fn entry_stays_until_slowest_limit_is_full() {
    let (slow, quick) = (Quota::per_hour(10), Quota::per_second(10));
    for (with_everyone, order) in [
        (false, [0, 1]),
        (false, [1, 0]),
        (true, [0, 1]),
        (true, [1, 0]),
    ] {
        let (store, clock) = store(1_000);
        let (key, all) = (Key::number(CLIENT, 0), Key::EVERYONE);
        let own = [
            Charge::new("slow", &slow, &key),
            Charge::new("quick", &quick, &key),
        ];
        let mut charges: Vec<Charge<'_>> = order.iter().map(|&limit: &usize| own[limit]).collect();
        if with_everyone {
            charges.push(Charge::new("everyone", &quick, &all));
        }
        for _ in 0..3 {
            assert!(check(&store, &charges).is_allowed());
        }
        clock.advance(Duration::from_secs(5));
        (1..500).for_each(|fresh| drop(ask(&store, &slow, fresh, 1)));
        let peek = check(&store, &[own[0].cost(0)]);
        assert_eq!(
            peek.statuses()[0].remaining(),
            7,
            "{with_everyone}, {order:?}"
        );
    }
}

/// Asserts that a cost above the capacity does not mark the client as limited.
#[test]
fn cost_above_capacity_limits_no_client() {
    for known in [false, true] {
        let (store, _) = store(1);
        let quota = Quota::per_hour(5);
        assert!(ask(&store, &quota, 0, 1).is_allowed());
        if known {
            assert!(!ask(&store, &quota, 0, 6).is_allowed());
        }
        ask(&store, &quota, 1, 1);
        assert_eq!(
            (store.evicted(), left(&store, &quota, 0)),
            (1, 5),
            "{known}"
        );
    }
}

/// Asserts that a cost above the capacity does not keep a client longer than a client with more requests.
#[test]
fn cost_above_capacity_keeps_no_entry() {
    for is_model in [false, true] {
        let (store, _) = store(2);
        let (quota, key) = (Quota::per_hour(5), Key::number(CLIENT, 0));
        let charge = Charge::new(LIMIT, &quota, &key);
        // The rows do not decide refundable charges.
        let charge = if is_model {
            charge.refundable()
        } else {
            charge
        };
        assert!(check(&store, &[charge]).is_allowed());
        (0..4).for_each(|_| drop(ask(&store, &quota, 1, 1)));
        assert!(!check(&store, &[charge.cost(6)]).is_allowed());
        ask(&store, &quota, 2, 1);
        assert_eq!(
            (left(&store, &quota, 0), left(&store, &quota, 1)),
            (5, 1),
            "{is_model}"
        );
    }
}

/// Covers a first request, requests of a client with a row, and requests with several keys.
#[test]
fn spent_client_stays_limited_after_eviction() {
    let (own, everyone) = (Quota::per_hour(5), Quota::per_hour(100));
    let (key, all) = (Key::number(CLIENT, 0), Key::EVERYONE);
    for (with_everyone, costs) in [
        (false, &[5][..]),
        (false, &[2, 3]),
        (true, &[5]),
        (true, &[2, 3]),
    ] {
        let (store, _) = store(1);
        for &cost in costs {
            let charges = [
                Charge::new(LIMIT, &own, &key).cost(cost),
                Charge::new("everyone", &everyone, &all),
            ];
            assert!(check(&store, &charges[..1 + usize::from(with_everyone)]).is_allowed());
        }
        ask(&store, &own, 1, 1);
        assert_eq!(store.evicted(), 1);
        assert!(
            !ask(&store, &own, 0, 1).is_allowed(),
            "{with_everyone}, {costs:?}"
        );
    }
}

/// Covers a store that logs fill first, so that the tables are small at the first eviction.
#[test]
fn limited_clients_are_remembered_after_logs() {
    let (store, clock) = store(4_000);
    let log = Quota::per_day(1_500).sliding_log();
    for client in 0..200 {
        for _ in 0..1_500 {
            ask(&store, &log, 9_000_000 + client, 1);
            clock.advance(Duration::from_micros(1));
        }
    }
    assert!(store.evicted() > 0);
    clock.advance(Duration::from_secs(2 * 86_400));
    let quota = Quota::new(1, Duration::from_secs(900));
    for client in 0..8_000 {
        ask(&store, &quota, client, 1);
    }
    let released = (0..8_000)
        .filter(|&client| ask(&store, &quota, client, 1).is_allowed())
        .count();
    assert!(released <= 4, "{released} of 8000");
}
