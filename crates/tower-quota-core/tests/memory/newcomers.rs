//! Those who have no row in the memory store yet, or none any more.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Entry, Key, MemoryStore, Name, Operation, Quota};

use crate::{CLIENT, LIMIT, check, store};

/// One unit of each of three limits for the client of this number.
fn ask_all(store: &MemoryStore, client: u64) -> Decision {
    const LIMITS: [(Name, Quota); 3] = [
        (Name::new("minute"), Quota::per_minute(2)),
        (Name::new("hour"), Quota::per_hour(3)),
        (Name::new("day"), Quota::per_day(4)),
    ];
    let key = Key::number(CLIENT, client);
    check(store, &LIMITS.each_ref().map(|(name, quota)| Charge::new(*name, quota, &key)))
}

#[test]
fn whoever_was_limited_by_several_limits_is_so_when_he_comes_again() {
    let (store, _) = store(300);
    let limited = 0..300;
    for client in limited.clone() {
        while ask_all(&store, client).is_allowed() {}
    }
    // Others who are limited too, so that all of the first have to go.
    for client in 1_000..1_600 {
        while ask_all(&store, client).is_allowed() {}
    }
    assert!(store.evicted() >= 600);
    let set_free = limited.filter(|&client| ask_all(&store, client).is_allowed()).count();
    assert_eq!(set_free, 0);
}

/// Which nobody should ask for.
#[test]
fn the_same_limit_twice_is_counted_as_the_model_counts_it() {
    let (store, clock) = store(10);
    let quota = Quota::per_minute(10);
    let key = Key::number(CLIENT, 1);
    let twice = [Charge::new(LIMIT, &quota, &key), Charge::new(LIMIT, &quota, &key)];
    let mut model = Entry::default();
    for step in 0..20 {
        assert_eq!(check(&store, &twice), model.decide(Operation::Check, &twice, store.now()), "{step}");
        clock.advance(Duration::from_secs(1));
    }
}
