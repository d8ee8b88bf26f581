//! Tests refusals that the store counts, for penalties and counted refusals.

use std::time::Duration;

use tower_quota_core::{Charge, Operation, Outcome, Penalty, Quota, Store};
use tower_quota_testkit::block_on;

use crate::{MINUTE, Setting, client};

#[test]
fn counted_refusals_call_store_ten_times_per_second() {
    let penalty = Penalty::after(5).step(Duration::from_secs(60));
    let key = client(1);
    let plain = Charge::new("minute", &MINUTE, &key);
    for charge in [
        plain.count_refusals(),
        plain.penalty(&penalty),
        plain.count_refusals().penalty(&penalty),
    ] {
        let setting = Setting::new();
        setting.check(&[charge.cost(6)]);
        let before = setting.calls();
        for _ in 0..10_000 {
            assert!(!setting.check(&[charge]).is_allowed());
            setting.clock.advance(Duration::from_micros(100));
        }
        // There are ten checks, and nine calls with the refusals in between.
        assert_eq!(setting.calls() - before, 19);
    }
}

#[test]
fn carried_strikes_block_like_counted_ones() {
    let penalty = Penalty::after(5).step(Duration::from_secs(60));
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key).penalty(&penalty);
    let setting = Setting::new();
    let direct = Setting::new();
    for _ in 0..3 {
        for step in 0..9 {
            let known = setting.check(&[charge.cost(3)]);
            let decision = block_on(direct.store.check(&[charge.cost(3)])).unwrap();
            assert_eq!(known.is_allowed(), decision.is_allowed());
            if step == 8 {
                assert_eq!(known.retry_after(), decision.retry_after());
            }
            let pause = Duration::from_millis(if step == 7 { 100 } else { 5 });
            setting.clock.advance(pause);
            direct.clock.advance(pause);
        }
    }
}

/// Checks a limit with a penalty and remaining units, together with a spent limit.
#[test]
fn other_limits_refusal_gives_no_strike() {
    let penalty = Penalty::after(10).step(Duration::from_secs(60));
    let key = client(1);
    let (minute, second) = (Quota::per_minute(100), Quota::per_second(10));
    let charges = [
        Charge::new("minute", &minute, &key).penalty(&penalty),
        Charge::new("second", &second, &key),
    ];
    let setting = Setting::new();
    setting.check(&[charges[0].cost(50), charges[1]]);
    for _ in 0..2_000 {
        let decision = setting.check(&charges);
        assert_eq!(
            decision.statuses()[0].outcome,
            Outcome::Allow,
            "{decision:?}"
        );
        setting.clock.advance(Duration::from_millis(1));
    }
    // Another process spends the limit. The requests before gave no strike, and the next one gives
    // a strike.
    let Ok(peeked) = setting
        .store
        .memory
        .apply(Operation::Peek, &charges[..1])
        .into_inner();
    let left = charges[0].cost(peeked.statuses()[0].remaining());
    let Ok(_) = setting
        .store
        .memory
        .apply(Operation::Charge, &[left])
        .into_inner();
    for (pause, is_allowed) in [(100, false), (700, true)] {
        setting.clock.advance(Duration::from_millis(pause));
        let decision = setting.check(&charges[..1]);
        assert_eq!(decision.is_allowed(), is_allowed, "{decision:?}");
    }
}

#[test]
fn counted_units_with_strikes_are_exact() {
    let penalty = Penalty::after(5).step(Duration::from_secs(60));
    let key = client(1);
    let hour = Quota::per_hour(1_000);
    let charges = [
        Charge::new("minute", &MINUTE, &key),
        Charge::new("hour", &hour, &key)
            .count_refusals()
            .penalty(&penalty),
    ];
    let setting = Setting::new();
    setting.check(&[charges[0].cost(6)]);
    for _ in 0..101 {
        assert!(!setting.check(&charges).is_allowed());
    }
    setting.clock.advance(Duration::from_millis(100));
    setting.check(&charges);
    let Ok(peeked) = setting
        .store
        .memory
        .apply(Operation::Peek, &charges[1..])
        .into_inner();
    assert_eq!(
        (peeked.statuses()[0].remaining(), peeked.is_allowed()),
        (1_000 - 102, true)
    );
}

#[test]
fn carried_units_equal_refused_units() {
    let key = client(1);
    let quota = Quota::per_second(20);
    let charge = Charge::new("second", &quota, &key).count_refusals();
    let setting = Setting::new();
    setting.check(&[charge.cost(20)]);
    // Within the tenth of a second, a unit comes back every 50 ms, and the refused requests take
    // it.
    for _ in 0..8 {
        assert!(!setting.check(&[charge.cost(2)]).is_allowed());
        setting.clock.advance(Duration::from_millis(20));
    }
    let Ok(peeked) = setting
        .store
        .memory
        .apply(Operation::Peek, &[charge])
        .into_inner();
    assert!(peeked.statuses()[0].remaining() <= 2);
}

#[test]
fn counting_limit_is_charged_when_another_refuses() {
    let key = client(1);
    let (refusing, counting) = (Charge::new("minute", &MINUTE, &key), Quota::per_hour(1_000));
    let charges = [
        refusing,
        Charge::new("hour", &counting, &key).count_refusals(),
    ];
    let setting = Setting::new();
    setting.check(&[refusing.cost(6)]);
    for _ in 0..101 {
        assert!(!setting.check(&charges).is_allowed());
    }
    assert_eq!(setting.calls(), 2);
    // A refusal that a caller counts leaves the other refusals to the next check.
    setting.apply(Operation::Refuse, &charges);
    setting.clock.advance(Duration::from_millis(100));
    setting.check(&charges);
    assert_eq!(setting.calls(), 5);
    let Ok(peeked) = setting
        .store
        .memory
        .apply(Operation::Peek, &charges[1..])
        .into_inner();
    assert_eq!(peeked.statuses()[0].remaining(), 1_000 - 103);
}

#[test]
fn client_that_waits_is_admitted_in_time() {
    let key = client(1);
    let penalty = Penalty::after(2).step(Duration::from_secs(5));
    let plain = Charge::new("minute", &MINUTE, &key);
    for charge in [plain.count_refusals(), plain.penalty(&penalty)] {
        let setting = Setting::new();
        setting.check(&[charge.cost(4)]);
        let mut retry = None;
        for _ in 0..5 {
            retry = setting.check(&[charge.cost(3)]).retry_after();
        }
        setting.clock.advance(retry.unwrap());
        assert!(setting.check(&[charge.cost(3)]).is_allowed());
    }
}

/// Asserts that the refusals of an old record give no strikes when the client comes back.
#[test]
fn refusals_from_hours_ago_are_not_carried() {
    let (key, day) = (client(1), Quota::per_day(6).sliding_log());
    let penalty = Penalty::after(10);
    let charge = Charge::new("day", &day, &key).penalty(&penalty);
    let setting = Setting::new();
    setting.check(&[charge.cost(6)]);
    for _ in 0..21 {
        assert!(!setting.check(&[charge]).is_allowed());
        setting.clock.advance(Duration::from_millis(1));
    }
    setting.clock.advance(Duration::from_secs(2 * 3_600));
    assert!(!setting.check(&[charge]).is_allowed());
    setting.clock.advance(Duration::from_millis(100));
    let before = setting.calls();
    let refused = setting.check(&[charge]);
    assert_eq!(setting.calls() - before, 1, "{refused:?}");
    assert!(refused.retry_after() < Some(Duration::from_secs(22 * 3_600)));
}

/// Asserts that a call carries at most 32 charges for the refusals in between.
#[test]
fn call_carries_at_most_32_charges() {
    let key = client(1);
    let plain = Charge::new("minute", &MINUTE, &key);
    // The store itself counts the first refusal and the last. The call carries the counted units and
    // 31 strikes.
    for (free, is_blocked) in [(32, true), (33, false)] {
        let penalty = Penalty::after(free).step(Duration::from_secs(3_600));
        let charge = plain.penalty(&penalty);
        let setting = Setting::new();
        setting.check(&[charge.cost(6)]);
        for _ in 0..50 {
            assert!(!setting.check(&[charge]).is_allowed());
        }
        setting.clock.advance(Duration::from_millis(100));
        let last = setting.check(&[charge]).retry_after().unwrap();
        assert_eq!(last > Duration::from_secs(60), is_blocked, "{last:?}");
    }
}
