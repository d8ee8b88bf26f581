//! What does not fit into the memory store's rows: it is counted all the same.

use std::time::Duration;

use tower_quota_core::{Charge, Entry, Key, Operation, Quota};

use crate::{CLIENT, LIMIT, ask, check, store};

#[test]
fn more_limits_than_rows_have_numbers_for_are_counted_all_the_same() {
    let (store, _) = store(5_000);
    for round in 1..=3 {
        for limit in 0..2_500 {
            let quota = Quota::per_hour(10 + limit);
            assert_eq!(ask(&store, &quota, limit, 1).statuses()[0].remaining(), 10 + limit - round, "limit {limit}");
        }
    }
    assert_eq!(store.len(), 2_500);
}

#[test]
fn windows_of_millions_are_counted_as_the_model_counts() {
    let (store, clock) = store(10);
    let quota = Quota::per_hour(9_000_000).sliding_window();
    let key = Key::number(CLIENT, 1);
    let mut model = Entry::default();
    for step in 0..20 {
        let charges = [Charge::new(LIMIT, &quota, &key).cost(2_100_000)];
        assert_eq!(check(&store, &charges), model.decide(Operation::Check, &charges, store.now()), "{step}");
        clock.advance(Duration::from_secs(600));
    }
}

#[test]
fn a_clock_that_is_far_ahead_of_all_others_stands_still_and_counts_on() {
    let (store, clock) = store(10);
    let quota = Quota::per_second(3);
    clock.advance(Duration::from_secs(400 * 366 * 86_400));
    for admitted in [true, true, true, false] {
        assert_eq!(ask(&store, &quota, 1, 1).is_allowed(), admitted);
        clock.advance(Duration::from_secs(1));
    }
}
