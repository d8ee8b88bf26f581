//! Tests that encoded entries decode to themselves, and that altered bytes are harmless.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use tower_quota_core::{Charge, Entry, Operation, Quota, Timestamp};

use super::config;
use super::trace::{KEY, Play, quota, requests};

const NAMES: [&str; 3] = ["one", "two", "three"];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn encoded_entry_decodes_to_itself(quotas in vec(quota(), 3), trace in requests(30), debts in any::<bool>()) {
        let mut plays: Vec<Play> = quotas.iter().map(|&quota| Play::new(quota)).collect();
        let mut entry = Entry::default();
        for (step, request) in trace.into_iter().enumerate() {
            let play = &mut plays[step % 3];
            let cost = play.arrive(request);
            let now = Timestamp::from_micros(play.now);
            let operation = if debts { Operation::Charge } else { Operation::Check };
            let charge = Charge::new(NAMES[step % 3], &quotas[step % 3], &KEY).cost(cost);
            let charge = if step % 2 == 0 { charge.refundable() } else { charge };
            entry.decide(operation, &[charge], now);
            let bytes = entry.encode();
            prop_assert_eq!(bytes.is_empty(), entry.is_empty());
            if !bytes.is_empty() {
                let decoded = Entry::decode(&bytes);
                prop_assert_eq!(decoded.as_ref(), Ok(&entry));
            }
        }
    }

    #[test]
    fn altered_bytes_are_error_or_entry(
        quotas in vec(quota(), 2),
        trace in requests(10),
        changes in vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut play = Play::new(quotas[0]);
        for request in trace {
            let cost = play.arrive(request);
            play.check(cost);
        }
        let mut bytes = play.entry.encode();
        if bytes.is_empty() {
            return Ok(());
        }
        for (position, byte) in changes {
            *position.get_mut(&mut bytes[..]) = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let Ok(mut entry) = Entry::decode(&bytes) else { return Ok(()) };
        prop_assert_eq!(&entry.encode(), if entry.is_empty() { &[] } else { &bytes[..] });
        // Any entry that decodes can be decided on, by its own quota and by another.
        for quota in &quotas {
            for operation in [Operation::Peek, Operation::Check, Operation::Charge, Operation::Refund { taken_at: Timestamp::EPOCH }] {
                for now in [0, play.now, 1 << 52] {
                    let charge = Charge::new("limit", quota, &KEY).cost(quota.capacity());
                    let decision = entry.clone().decide(operation, &[charge], Timestamp::from_micros(now));
                    prop_assert!(decision.statuses().len() == 1);
                    entry.decide(operation, &[charge], Timestamp::from_micros(now));
                }
            }
        }
    }
}

#[test]
fn bucket_and_window_encode_byte_by_byte() {
    let (burst, hour) = (
        Quota::per_second(10).burst(20),
        Quota::per_hour(1_000).fixed_window(),
    );
    let now = Timestamp::from_micros(0x01_0203_0405_0607);
    let charges = [
        Charge::new("burst", &burst, &KEY).cost(3),
        Charge::new("hour", &hour, &KEY),
    ];
    let mut entry = Entry::default();
    assert!(entry.decide(Operation::Check, &charges, now).is_allowed());

    let u56 = |number: u64| number.to_le_bytes()[..7].to_vec();
    let start = now.as_micros() - now.as_micros() % 3_600_000_000;
    let mut expected = vec![3, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01];
    // A unit is 100,000 grains, and each microsecond gives one grain back.
    expected.extend([15]);
    expected.extend(charges[0].name().id().to_le_bytes());
    expected.extend([0, 2 << 3 | 1, 1 << 3 | 5, 1 << 3]);
    expected.extend(u56(now.as_micros() + 300_000));
    // 1,000 units in 3,600,000,000 microseconds, aligned to the epoch.
    expected.extend([31]);
    expected.extend(charges[1].name().id().to_le_bytes());
    expected.extend([1, 1 << 3 | 3, 1 << 3, 0xc7, 0x16, 0]);
    expected.extend([u56(start), u56(1), u56(start + 3_600_000_000)].concat());
    assert_eq!(entry.encode(), expected);
}

#[test]
fn unreadable_bytes_name_their_fault() {
    let quota = Quota::per_minute(5);
    let mut entry = Entry::default();
    entry.decide(
        Operation::Check,
        &[Charge::new("limit", &quota, &KEY)],
        Timestamp::from_micros(1 << 50),
    );
    let bytes = entry.encode();
    let text = |bytes: &[u8]| Entry::decode(bytes).unwrap_err().to_string();
    assert!(text(&[]).contains("no bytes"));
    assert!(text(&[1, 0, 0]).contains("version 1"));
    for length in 9..bytes.len() {
        assert!(text(&bytes[..length]).contains("cut off"), "{length} bytes");
    }
    let other = |at: usize, byte| {
        let mut other = bytes.clone();
        other[at] = byte;
        other
    };
    assert!(text(&other(13, 9)).contains("kind of state 9"));
    assert!(text(&other(14, 0)).contains("numbers"));
    assert!(text(&[&bytes[..], &bytes[8..]].concat()).contains("repeats"));
}
