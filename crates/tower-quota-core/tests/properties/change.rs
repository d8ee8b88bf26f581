//! Tests that the remaining units stay when a quota changes.

use std::time::Duration;

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use tower_quota_core::{Charge, ChargeMode, Entry, Operation, Quota, Timestamp};

use super::config;
use super::trace::{KEY, Play, micros, quota, requests};

fn has_same_windows(old: &Quota, new: &Quota) -> bool {
    let is_window = !old.algorithm().is_bucket() && old.algorithm() == new.algorithm();
    is_window
        && old.period() == new.period()
        && old.grain() == new.grain()
        && old.window_offset() == new.window_offset()
}

/// Returns two quotas, often of one algorithm and one period.
fn pair() -> impl Strategy<Value = (Quota, Quota)> {
    (quota(), quota(), any::<bool>(), 1..50_u64).prop_map(|(old, other, is_alike, units)| {
        let raised = Quota::try_new(units, old.period())
            .and_then(|quota| quota.try_algorithm(old.algorithm()));
        (
            old,
            if is_alike {
                raised.unwrap_or(other)
            } else {
                other
            },
        )
    })
}

fn refusing_mode() -> impl Strategy<Value = ChargeMode> {
    select(vec![
        ChargeMode::Checked,
        ChargeMode::Reported,
        ChargeMode::ReportedUntilDebt,
    ])
}

fn charged(entry: &Entry, charges: &[Charge<'_>], now: Timestamp) -> Entry {
    let mut charged = entry.clone();
    charged.decide(Operation::Charge, charges, now);
    charged
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn other_quota_keeps_remaining_units((old, new) in pair(), trace in requests(20)) {
        let mut play = Play::new(old);
        for request in trace {
            let cost = play.arrive(request);
            play.check(cost);
            let before = play.peek_at(play.now, play.charge(0)).statuses()[0];
            let after = play.peek_at(play.now, Charge::new("limit", &new, &KEY).cost(0)).statuses()[0];
            if before.reset_after().is_zero() {
                prop_assert_eq!(after.remaining(), new.capacity());
            } else if has_same_windows(&old, &new) {
                // The used units stay used, to within a step of an estimate.
                let left = new.capacity().saturating_sub(old.capacity() - before.remaining());
                prop_assert!(after.remaining().abs_diff(left) <= 1, "{} left, not {}", after.remaining(), left);
            } else {
                prop_assert_eq!(after.remaining(), before.remaining().min(new.capacity()));
            }
            prop_assert_eq!(after.limit, new.capacity());
        }
    }

    #[test]
    fn new_rate_holds_from_first_request(
        (old, new) in pair(),
        trace in requests(20),
        mode in refusing_mode(),
        owed in 0..20_u64,
    ) {
        let mut play = Play::new(old);
        for request in trace {
            let cost = play.arrive(request);
            play.check(cost);
        }
        if owed > 0 {
            // A report that admits debts refuses only a client who owes units.
            let left = play.peek_at(play.now, play.charge(0)).statuses()[0].remaining();
            let debt = [play.charge(left + owed)];
            play.entry = charged(&play.entry, &debt, Timestamp::from_micros(play.now));
        }
        let mut check = |now: u64, cost| {
            let charge = Charge::new("limit", &new, &KEY).cost(cost).max_wait(Duration::ZERO);
            let charges = [charge.in_mode(mode)];
            play.entry.decide(Operation::Check, &charges, Timestamp::from_micros(now))
        };
        let cost = check(play.now, 0).statuses()[0].remaining() + 1;
        if let Some(retry) = check(play.now, cost).retry_after() {
            let then = play.now + micros(retry);
            prop_assert!(!check(then - 1, cost).is_allowed(), "{:?} was longer than needed", retry);
            prop_assert!(check(then, cost).is_allowed(), "{:?} was not long enough", retry);
        }
    }

    #[test]
    fn versions_in_turn_admit_no_more((old, new) in pair(), trace in requests(30)) {
        let mut play = Play::new(old);
        let now = Timestamp::from_micros(play.now);
        let mut admitted = 0;
        for (position, request) in trace.into_iter().enumerate() {
            // Stay at one instant, so that no unit comes back.
            let cost = play.arrive(request).min(new.capacity());
            let quota = if position % 2 == 0 { old } else { new };
            let decision = play.entry.decide(Operation::Check, &[Charge::new("limit", &quota, &KEY).cost(cost)], now);
            let left = decision.statuses()[0].remaining();
            prop_assert!(left <= old.capacity().max(new.capacity()) - admitted);
            if decision.is_allowed() {
                admitted += cost;
            }
        }
        prop_assert!(admitted <= old.capacity().max(new.capacity()));
    }
}

/// Checks one spent client under two quotas in turn, a hundred times a second.
///
/// Services do this during a rolling deployment.
#[test]
fn client_between_versions_is_not_starved() {
    let (one, two) = (Quota::per_hour(3), Quota::per_hour(5));
    // Each pair has the minutes after which the faster version alone would admit a request.
    let pairs = [
        ([Quota::per_hour(1), Quota::per_hour(2)], 40),
        ([Quota::per_hour(7), Quota::per_hour(7).burst(3)], 9),
        ([one.sliding_log(), two.sliding_log()], 60),
        ([one.fixed_window(), two.fixed_window()], 60),
        (
            [
                one.fixed_window().from_first_request(),
                two.fixed_window().from_first_request(),
            ],
            60,
        ),
        // The spent window has to end and fade.
        ([one.sliding_window(), two.sliding_window()], 80),
    ];
    for (versions, minutes) in pairs {
        let mut entry = Entry::default();
        let start = 1_763_683_200_000_000;
        let mut check = |turn: u64, cost| {
            let quota = &versions[usize::try_from(turn % 2).unwrap()];
            let now = Timestamp::from_micros(start + turn * 10_000);
            entry.decide(
                Operation::Check,
                &[Charge::new("limit", quota, &KEY).cost(cost)],
                now,
            )
        };
        // Spend both quotas, because a window keeps the used units.
        let larger = u64::from(!versions[0].algorithm().is_bucket());
        assert!(
            check(
                larger,
                versions[usize::try_from(larger).unwrap()].capacity()
            )
            .is_allowed()
        );
        let admitted = (2..).find(|&turn| check(turn, 1).is_allowed()).unwrap();
        let waited = Duration::from_millis(10 * admitted);
        let expected = Duration::from_secs(60 * minutes);
        assert!(
            waited <= expected + expected / 10,
            "{waited:?} by {versions:?}"
        );
        assert!(waited >= expected / 2, "{waited:?} by {versions:?}");
    }
}

/// Asserts that a debt stays a debt under another quota.
#[test]
fn debt_under_other_quota_stays() {
    let quotas = [
        Quota::per_minute(4),
        Quota::per_minute(4).fixed_window(),
        Quota::per_minute(4).sliding_window(),
        Quota::per_minute(4).sliding_log(),
    ];
    for old in quotas {
        for new in quotas {
            let mut entry = Entry::default();
            let now = Timestamp::from_micros(1_763_683_200_000_000);
            let charge = |quota| Charge::new("limit", quota, &KEY);
            assert!(
                entry
                    .decide(Operation::Charge, &[charge(&old).cost(6)], now)
                    .is_allowed()
            );
            // The debt is 2 units, and 3 with the unit that converts the state. Refunds of 3 of the
            // 7 units leave 0, and another refund leaves 1.
            let owed = entry.decide(Operation::Charge, &[charge(&new)], now);
            assert_eq!(owed.statuses()[0].debt(), 3, "{old:?} to {new:?}");
            for left in [0, 0, 0, 1] {
                let back = entry.decide(Operation::Refund { taken_at: now }, &[charge(&new)], now);
                assert_eq!(back.statuses()[0].remaining(), left, "{old:?} to {new:?}");
            }
        }
    }
}

/// Asserts that a debt beyond the new capacity is not cut.
#[test]
fn long_debt_under_other_quota_stays() {
    let (old, new) = (Quota::per_second(10), Quota::per_second(10).burst(11));
    let mut entry = Entry::default();
    let now = Timestamp::from_micros(1_763_683_200_000_000);
    entry.decide(
        Operation::Charge,
        &[Charge::new("limit", &old, &KEY).cost(1_000)],
        now,
    );
    // The debt is 990 units, and one more unit has to come back.
    let retry = entry
        .decide(Operation::Check, &[Charge::new("limit", &new, &KEY)], now)
        .retry_after();
    assert_eq!(retry, Some(Duration::from_millis(99_100)));
}

/// Asserts that a report promises the wait of a check, and that the wait is long enough.
#[test]
fn reports_keep_promises_under_changed_quota() {
    let (month, day) = (Duration::from_secs(30 * 86_400), Quota::per_day(100_000));
    let changes = [
        (Quota::per_day(1_000), day, 500),
        (
            Quota::new(1_000, month).fixed_window(),
            Quota::per_minute(1_000),
            1,
        ),
        (day, Quota::per_day(1_000), 0),
    ];
    for (old, new, owed) in changes {
        for mode in [ChargeMode::Reported, ChargeMode::ReportedUntilDebt] {
            let now = 1_763_683_200_000_000;
            let debt = [Charge::new("limit", &old, &KEY).cost(old.capacity() + owed)];
            let entry = Entry::default();
            let mut entry = charged(&entry, &debt, Timestamp::from_micros(now));
            let mut report = |now: u64| {
                let charge = Charge::new("limit", &new, &KEY).in_mode(mode);
                entry.decide(Operation::Check, &[charge], Timestamp::from_micros(now))
            };
            let Some(retry) = report(now).retry_after() else {
                assert_eq!(owed, 0, "a client without a debt is reported as refused");
                continue;
            };
            let then = now + micros(retry);
            assert!(!report(then - 1).is_allowed(), "{retry:?} of {mode:?}");
            assert!(report(then).is_allowed(), "{retry:?} of {mode:?}");
        }
    }
}
