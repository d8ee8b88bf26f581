//! Draws plans:
//!
//! 1. A plan has a few policies, and most steps use one of them again, so that counts add up and
//!    reach the limits.
//! 2. Most pauses end at a promised instant of the last decision, or a microsecond earlier or
//!    later.
//! 3. Charges are plain, or have some of the options.
//! 4. Quotas are common ones, or the largest and smallest that a store can count. A limit sometimes
//!    changes its quota.
//! 5. A plan ends with a report of every limit of every key.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select, subsequence};
use proptest::{bool, option};
use tower_quota_core::{Algorithm, ChargeMode, Penalty, Quota};

use super::plan::{Action, ChargePlan, Cost, KEYS, LIMITS, Pause, Step, TracePlan};
use crate::conformance::Capability;

const QUOTAS: usize = LIMITS.len() + 3;
/// The number of limits that are token buckets in every second plan, because stores often have a
/// fast path for token buckets.
const BUCKETS: usize = 4;
const PENALTIES: usize = 2;
const POLICIES: usize = 3;
const NOVEMBER: u64 = 1_763_683_212_345_678;
const LONGEST_PERIOD: u64 = 366 * 86_400_000_000;
/// The maximum number of units of a log. A log has a stamp for each unit, so a longer log would
/// only be slow.
const LONGEST_LOG: u64 = 2_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub(super) lacks: &'static [Capability],
    pub(super) is_plain: bool,
}

impl Contents {
    fn has(&self, capability: Capability) -> bool {
        !self.lacks.contains(&capability)
    }

    pub(super) fn plan(self) -> impl Strategy<Value = TracePlan> {
        let start = prop_oneof![3 => Just(NOVEMBER), 1 => of_any_size(46)];
        let buckets = || self.quota(vec![Algorithm::TokenBucket]);
        let with_buckets = (
            vec(buckets(), BUCKETS),
            vec(self.any_quota(), QUOTAS - BUCKETS),
        )
            .prop_map(|(buckets, others)| [buckets, others].concat());
        let quotas = prop_oneof![1 => with_buckets, u32::from(!self.is_plain) => vec(self.any_quota(), QUOTAS)];
        let choices = (
            start,
            quotas,
            vec(penalty(), PENALTIES),
            vec(policy(), POLICIES),
        );
        choices.prop_flat_map(move |(start, quotas, penalties, policies)| {
            vec(self.step(policies), 1..50).prop_map(move |mut steps| {
                let (quotas, penalties) = (quotas.clone(), penalties.clone());
                steps.extend((0..KEYS).map(Step::look));
                TracePlan {
                    start,
                    quotas,
                    penalties,
                    steps,
                }
            })
        })
    }

    fn any_quota(self) -> impl Strategy<Value = Quota> {
        let has = |algorithm: &Algorithm| Capability::allow(self.lacks, *algorithm);
        self.quota(Algorithm::ALL.into_iter().filter(has).collect())
    }

    fn quota(self, algorithms: Vec<Algorithm>) -> impl Strategy<Value = Quota> {
        let everyday = (
            1..=20_u64,
            select(vec![
                1_000_u64,
                1_000_000,
                60_000_000,
                90_000_000,
                86_400_000_000,
            ]),
            1..=40_u64,
        );
        let extreme = (of_any_size(48), of_any_size(45), of_any_size(50));
        (
            prop_oneof![everyday, extreme],
            select(algorithms),
            any::<Index>(),
            0..3_u8,
        )
            .prop_map(|((units, period, burst), algorithm, offset, anchor)| {
                let period = period.clamp(1_000, LONGEST_PERIOD);
                let most = if algorithm == Algorithm::SlidingLog {
                    LONGEST_LOG.min(period * 10)
                } else {
                    period * 10
                };
                let span = Duration::from_micros(period);
                // Fall back to a common quota, because some numbers cannot be counted together.
                let quota =
                    Quota::try_new(units.clamp(1, most), span).unwrap_or(Quota::new(1, span));
                let quota = quota.try_algorithm(algorithm).unwrap_or(quota);
                match (quota.algorithm(), anchor) {
                    (Algorithm::FixedWindow, 0) => quota.from_first_request(),
                    (Algorithm::FixedWindow, 1) => {
                        let offset =
                            offset.index(usize::try_from(period).unwrap_or(usize::MAX)) as u64;
                        quota.offset(Duration::from_micros(offset))
                    }
                    _ => quota.try_burst(burst.max(1)).unwrap_or(quota),
                }
            })
    }

    fn step(self, policies: Vec<Vec<(usize, usize)>>) -> impl Strategy<Value = Step> {
        let pause = prop_oneof![
            4 => Just(Pause::Micros(0)),
            2 => of_any_size(46).prop_map(Pause::Micros),
            1 => of_any_size(46).prop_map(Pause::Back),
            4 => (0..2_200_u64, -1..=1_i64).prop_map(|(thousandths, by)| Pause::Horizon(thousandths, by)),
            4 => (-1..=1_i64).prop_map(Pause::Wait),
            2 => (-1..=1_i64).prop_map(Pause::Full),
            1 => (-1..=1_i64).prop_map(Pause::Distrust),
        ];
        // Mostly use a known policy again, with all limits, or with some in any order.
        let limits = select(policies).prop_flat_map(|policy| {
            let all = policy.len();
            prop_oneof![2 => Just(policy.clone()), 1 => subsequence(policy, 1..=all).prop_shuffle()]
        });
        let other_quota = option::weighted(0.1, 0..QUOTAS);
        let again =
            (limits, other_quota, self.charge()).prop_map(|(limits, other_quota, model)| {
                let charge = |(limit, key)| ChargePlan {
                    limit,
                    key,
                    quota: other_quota.unwrap_or(limit),
                    ..model
                };
                limits.into_iter().map(charge).collect::<Vec<_>>()
            });
        let charges = prop_oneof![3 => again, 1 => vec(self.charge(), 0..=LIMITS.len())];
        (pause, bool::weighted(0.5), self.action(), charges).prop_map(
            move |(pause, joins_last, action, charges)| Step {
                pause,
                joins_last,
                action,
                charges: self.permitted(charges),
            },
        )
    }

    fn action(self) -> impl Strategy<Value = Action> {
        let action = prop_oneof![
            10 => Just(Action::Check),
            1 => Just(Action::Charge),
            1 => (0..6_usize).prop_map(Action::Surcharge),
            3 => (0..6_usize).prop_map(Action::Refund),
            1 => (0..6_usize).prop_map(Action::Renew),
            1 => (0..6_usize).prop_map(Action::TakeAgain),
            1 => of_any_size(63).prop_map(Action::RefundAt),
            2 => Just(Action::Reset),
            1 => Just(Action::Refuse),
            2 => Just(Action::Peek),
        ];
        action.prop_map(move |action| match action {
            Action::Peek if !self.has(Capability::Peeks) => Action::Check,
            Action::Refuse if !self.has(Capability::CountedRefusals) => Action::Check,
            Action::Renew(_) | Action::TakeAgain(_) if !self.has(Capability::Holds) => {
                Action::Check
            }
            Action::Charge | Action::Surcharge(_) if self.is_plain => Action::Check,
            Action::Refuse | Action::Peek if self.is_plain => Action::Check,
            action => action,
        })
    }

    fn charge(self) -> impl Strategy<Value = ChargePlan> {
        let cost = prop_oneof![
            6 => (0..4_u64).prop_map(Cost::Units),
            3 => (0..=1_000_u64).prop_map(Cost::Share),
            1 => of_any_size(63).prop_map(Cost::Above),
        ];
        let max_wait_micros = option::weighted(0.2, of_any_size(60));
        let penalty = option::weighted(0.2, 0..PENALTIES);
        let flag = || bool::weighted(0.2);
        let mode = prop_oneof![
            8 => Just(ChargeMode::Checked),
            1 => Just(ChargeMode::Reported),
            1 => Just(ChargeMode::ReportedUntilDebt),
            1 => Just(ChargeMode::Forced),
        ];
        let options = (
            max_wait_micros,
            penalty,
            flag(),
            flag(),
            flag(),
            flag(),
            mode,
        );
        let other_quota = option::weighted(0.2, 0..QUOTAS);
        (
            0..LIMITS.len(),
            0..KEYS,
            other_quota,
            cost,
            bool::weighted(0.5),
            options,
        )
            .prop_map(move |(limit, key, other_quota, cost, is_plain, options)| {
                let plain = ChargePlan::plain(limit, key, other_quota.unwrap_or(limit), cost);
                let (
                    max_wait_micros,
                    penalty,
                    counts_refusals,
                    is_shadow,
                    is_at_most,
                    is_refundable,
                    mode,
                ) = options;
                if self.is_plain {
                    return ChargePlan {
                        is_refundable,
                        ..plain
                    };
                } else if is_plain {
                    return plain;
                }
                ChargePlan {
                    max_wait_micros: max_wait_micros.filter(|_| self.has(Capability::Waiting)),
                    penalty: penalty.filter(|_| self.has(Capability::Penalties)),
                    counts_refusals: counts_refusals && self.has(Capability::CountedRefusals),
                    is_shadow: is_shadow && self.has(Capability::Shadows),
                    is_at_most: is_at_most && self.has(Capability::PartialGrants),
                    is_refundable,
                    mode: if self.has(Capability::ChargeModes) {
                        mode
                    } else {
                        ChargeMode::Checked
                    },
                    ..plain
                }
            })
    }

    /// Drops charges that a request must not have. These are repeated charges of a limit and key,
    /// and charges of a second key if the store decides one key at a time.
    fn permitted(self, mut charges: Vec<ChargePlan>) -> Vec<ChargePlan> {
        let mut seen = Vec::new();
        let only_key = charges
            .first()
            .map(|first| first.key)
            .filter(|_| !self.has(Capability::SeveralKeys));
        charges.retain(|charge| {
            let is_new = !seen.contains(&(charge.limit, charge.key));
            seen.push((charge.limit, charge.key));
            is_new && only_key.is_none_or(|key| key == charge.key)
        });
        charges
    }
}

/// Draws limits with their keys, either of one key, or of several keys, or of any.
fn policy() -> impl Strategy<Value = Vec<(usize, usize)>> {
    let one_key = (
        subsequence((0..BUCKETS).collect::<Vec<usize>>(), 1..=BUCKETS).prop_shuffle(),
        0..KEYS,
    )
        .prop_map(|(limits, key)| limits.into_iter().map(|limit| (limit, key)).collect());
    let several_keys = vec((0..BUCKETS, 0..KEYS), 2..6);
    let any = vec((0..LIMITS.len(), 0..KEYS), 1..5);
    prop_oneof![2 => one_key, 1 => several_keys, 1 => any]
}

fn penalty() -> impl Strategy<Value = Penalty> {
    (1..4_u64, of_any_size(45), of_any_size(50)).prop_map(|(refusals, step, most)| {
        let step = Duration::from_micros(step.clamp(1_000, LONGEST_PERIOD));
        Penalty::try_new(refusals, step, Duration::from_micros(most))
            .unwrap_or(Penalty::after(refusals))
    })
}

/// Draws numbers below 2^`bits`, of every length in bits.
fn of_any_size(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
}
