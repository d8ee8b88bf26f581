use super::*;
use crate::charge::Operation;
use crate::key::Key;

static LOG: Quota = Quota::per_hour(10_000).sliding_log();
static BUCKET: Quota = Quota::per_hour(10_000);

fn check(entry: &mut Entry, charge: Charge<'_>, micros: u64) {
    entry.decide(Operation::Check, &[charge], Timestamp::from_micros(micros));
}

#[test]
fn heap_bytes_counts_slots_and_states() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    check(&mut entry, Charge::new("one", &BUCKET, &key), 1);
    check(&mut entry, Charge::new("two", &BUCKET, &key), 1);
    assert_eq!(entry.heap_bytes(), 0);
    check(
        &mut entry,
        Charge::new("two", &BUCKET, &key).refundable(),
        2,
    );
    let marks = entry.heap_bytes();
    assert!(marks >= 16, "{marks} bytes");
    check(&mut entry, Charge::new("three", &BUCKET, &key), 2);
    assert!(entry.heap_bytes() >= marks + 3 * size_of::<Slot>());
}

#[test]
fn other_capacity_of_holds_copies_no_holds() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    let (old, new) = (Quota::concurrent(100), Quota::concurrent(200));
    let charge = Charge::new("streams", &old, &key);
    check(&mut entry, charge, 1);
    let newer = Charge::new("streams", &new, &key);
    let state = entry.state_for(newer.counter(), 2);
    assert!(matches!(state, Cow::Borrowed(_)));
    check(&mut entry, newer, 2);
    assert_eq!(entry.balance(&newer, 3).0, 198);
}

#[test]
fn long_log_holds_sixteen_bytes_a_stamp() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    let charge = Charge::new("log", &LOG, &key);
    for micros in 1..=10_000 {
        check(&mut entry, charge, micros);
    }
    let bytes = entry.heap_bytes();
    assert!((160_000..=180_000).contains(&bytes), "{bytes} bytes");
    assert_eq!(
        Entry::decode(&entry.encode()).unwrap().heap_bytes(),
        160_000
    );
    // All but the last stamp expire.
    check(&mut entry, charge, 3_600_009_999);
    let bytes = entry.heap_bytes();
    assert!(bytes < 200, "{bytes} bytes");
}

#[test]
fn abridged_log_admits_what_log_admits() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    let quota = Quota::per_minute(100).sliding_log();
    let charge = Charge::new("log", &quota, &key);
    for second in 1..=50 {
        check(&mut entry, charge.cost(2), second * 1_000_000);
    }
    let abridged = entry.clone().abridged(entry.at());
    for second in 61..=110 {
        let left = |entry: &Entry| entry.balance(&charge, second * 1_000_000).0;
        // The stamp of second 33 stands for the rest.
        let merged = if second < 93 { left(&entry) } else { 100 };
        assert_eq!(left(&abridged), merged, "second {second}");
    }
}

#[test]
fn spent_client_stays_spent_on_earlier_clock() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    let quota = Quota::per_hour(1);
    let charge = [Charge::new("hour", &quota, &key)];
    let (spent, hour) = (10_000_000_000, 3_600_000_000);
    check(&mut entry, charge[0], spent);
    let admits = |micros| {
        let now = Timestamp::from_micros(micros);
        let decision = entry.clone().decide(Operation::Check, &charge, now);
        decision.is_allowed()
    };
    // The entry is trusted for a minute and its hour.
    assert!(!admits(spent - 2 * TRUSTED_LEAD));
    assert!(!admits(spent - TRUSTED_LEAD - hour));
    assert!(admits(spent - TRUSTED_LEAD - hour - 1));
}

#[test]
fn slot_that_is_full_now_is_dropped() {
    let (key, mut entry) = (Key::EVERYONE, Entry::default());
    let second = Quota::per_second(1);
    check(&mut entry, Charge::new("second", &second, &key), 1);
    check(&mut entry, Charge::new("hour", &BUCKET, &key), 1_000_000);
    assert_eq!(entry.slots.len(), 2);
    check(&mut entry, Charge::new("hour", &BUCKET, &key), 1_000_001);
    assert_eq!(entry.slots.len(), 1);
}
