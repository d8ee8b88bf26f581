//! Tests that refunds after a change of quota create no units.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use proptest::test_runner::TestCaseResult;
use tower_quota_core::{Algorithm, Charge, Entry, Operation, Quota, Timestamp};

use super::config;
use super::trace::{KEY, fraction, micros, quota_by};

const START: u64 = 1_763_712_345_678_901;

/// A check under one of the quotas, and the refund of an earlier check.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The pause before the check, in parts of 2^16 of the time in which a quota fills.
    pause: u32,
    quota: usize,
    /// The cost in parts of 2^16 of the quota's capacity.
    cost: u32,
    /// The number of checks since the refunded check.
    refunded: Option<usize>,
    /// Whether the refund has the quota of the charge, and not the active quota.
    is_own: bool,
}

/// An earlier check. The cost is 0 after a refusal or a refund.
#[derive(Clone, Copy)]
struct PastCheck {
    at: u64,
    quota: Quota,
    cost: u64,
}

fn steps(quotas: usize) -> impl Strategy<Value = Vec<Step>> {
    let refunded = proptest::option::weighted(0.5, 0..4_usize);
    let step = (
        0..17_u32,
        0..1_u32 << 16,
        0..quotas,
        0..1_u32 << 16,
        refunded,
        any::<bool>(),
    )
        .prop_map(|(size, pause, quota, cost, refunded, is_own)| Step {
            pause: pause >> size,
            quota,
            cost,
            refunded,
            is_own,
        });
    vec(step, 1..40)
}

fn buckets() -> impl Strategy<Value = Vec<Quota>> {
    let everyday =
        (1..20_u64, 1..20_u64).prop_map(|(units, burst)| Quota::per_minute(units).burst(burst));
    vec(
        proptest::prop_oneof![3 => everyday, 1 => quota_by(Algorithm::TokenBucket)],
        2..4,
    )
}

/// Returns the remaining units under a quota, if only these units had been charged.
fn left_without_refunded(past: &[PastCheck], quota: &Quota, now: u64) -> u64 {
    let mut entry = Entry::default();
    for PastCheck { at, quota, cost } in past {
        let (charge, taken_at) = (
            Charge::new("limit", quota, &KEY),
            Timestamp::from_micros(*at),
        );
        let mut decide = |operation, cost| entry.decide(operation, &[charge.cost(cost)], taken_at);
        if *cost > 0 {
            decide(Operation::Charge, *cost);
        } else {
            // A charge of 0 units converts the bucket too.
            decide(Operation::Charge, 1);
            decide(Operation::Refund { taken_at }, 1);
        }
    }
    left(&entry, quota, now)
}

fn left(entry: &Entry, quota: &Quota, now: u64) -> u64 {
    let peek = [Charge::new("limit", quota, &KEY)];
    entry
        .clone()
        .decide(Operation::Peek, &peek, Timestamp::from_micros(now))
        .statuses()[0]
        .remaining()
}

/// Plays the steps, and fails if more units remain than without the refunded charges.
fn play(quotas: &[Quota], steps: &[Step], is_prepared: bool) -> TestCaseResult {
    let (mut entry, mut past, mut now) = (Entry::default(), Vec::<PastCheck>::new(), START);
    let decide = |entry: &mut Entry, operation, quota: &Quota, cost, now| {
        let charge = Charge::new("limit", quota, &KEY).cost(cost);
        let charge = if is_prepared {
            charge.refundable()
        } else {
            charge
        };
        entry
            .decide(operation, &[charge], Timestamp::from_micros(now))
            .is_allowed()
    };
    for step in steps {
        let quota = quotas[step.quota];
        // Do not let two versions decide in one microsecond.
        let is_changed = past.last().is_some_and(|last| last.quota != quota);
        now += fraction(micros(quota.window()), step.pause).max(u64::from(is_changed));
        let cost = fraction(quota.capacity(), step.cost).max(1);
        let is_allowed = decide(&mut entry, Operation::Check, &quota, cost, now);
        past.push(PastCheck {
            at: now,
            quota,
            cost: if is_allowed { cost } else { 0 },
        });
        if let Some(refunded) = step.refunded.and_then(|ago| past.iter_mut().rev().nth(ago)) {
            let operation = Operation::Refund {
                taken_at: Timestamp::from_micros(refunded.at),
            };
            let by = if step.is_own { &refunded.quota } else { &quota };
            decide(&mut entry, operation, by, refunded.cost, now);
            refunded.cost = 0;
        }
        for quota in quotas {
            let (left, most) = (
                left(&entry, quota, now),
                left_without_refunded(&past, quota, now),
            );
            prop_assert!(left <= most, "{left} left, not {most}, by {quota:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    /// Covers versions of a service that decide in any order, and settle at any time.
    #[test]
    fn prepared_refunds_between_quotas_add_nothing(quotas in buckets(), steps in steps(2)) {
        play(&quotas, &steps, true)?;
    }

    /// Covers a quota that is changed once.
    #[test]
    fn refunds_after_one_change_add_nothing(quotas in buckets(), steps in steps(1), changed_at in 0..40_usize) {
        let mut steps = steps;
        for step in steps.iter_mut().skip(changed_at) {
            step.quota = 1;
        }
        steps.iter_mut().for_each(|step| step.is_own = true);
        play(&quotas[..2], &steps, false)?;
    }
}

/// Asserts that a bucket that was full after the charge gives no units back, even under a lower
/// rate.
#[test]
fn refund_after_cut_rate_gives_nothing() {
    let (fast, slow) = (Quota::per_second(10), Quota::per_minute(10));
    for refunded_by in [&fast, &slow] {
        let mut entry = Entry::default();
        let mut decide = |operation, quota, cost, millis: u64| {
            let charge = Charge::new("limit", quota, &KEY).cost(cost).refundable();
            entry.decide(
                operation,
                &[charge],
                Timestamp::from_micros(START + 1_000 * millis),
            )
        };
        assert!(decide(Operation::Check, &fast, 10, 0).is_allowed());
        // All ten units are back within the second.
        assert!(decide(Operation::Check, &slow, 10, 1_000).is_allowed());
        let refund = Operation::Refund {
            taken_at: Timestamp::from_micros(START),
        };
        assert_eq!(
            decide(refund, refunded_by, 10, 1_000).statuses()[0].remaining(),
            0,
            "{refunded_by:?}"
        );
    }
}
