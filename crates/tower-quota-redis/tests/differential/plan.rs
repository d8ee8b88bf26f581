//! Random policies and traces, and how they shrink.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tower_quota_core::{Algorithm, Penalty, Quota};

pub(crate) const NAMES: [&str; 4] = ["burst", "minute", "login", "day"];
pub(crate) const KEYS: [&str; 2] = ["ann", "bob"];
pub(crate) const QUOTAS: usize = 6;
const PENALTIES: usize = 2;
/// Some day in November 2025, in microseconds since the epoch.
pub(crate) const NOW: u64 = 1_763_683_212_345_678;

/// One run: the quotas that may be used, and the steps.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Microseconds since the epoch.
    pub(crate) start: u64,
    pub(crate) quotas: Vec<Quota>,
    pub(crate) penalties: Vec<Penalty>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) passing: Passing,
    /// Says whether it is asked at the same time as the step before.
    pub(crate) joins_last: bool,
    pub(crate) deed: Deed,
    pub(crate) charges: Vec<Wish>,
}

impl Step {
    /// A step with one charge: the first limit of the first key, on the first quota.
    pub(crate) fn on_first(passing: Passing, deed: Deed, units: u64) -> Self {
        let cost = Cost::Units(units);
        let wish = Wish {
            name: 0,
            key: 0,
            quota: 0,
            cost,
            patience: None,
            counts_refusals: false,
            is_shadow: false,
            is_at_most: false,
            is_refundable: false,
            penalty: None,
        };
        Self { passing, joins_last: false, deed, charges: vec![wish] }
    }
}

/// How time goes on before a step.
#[derive(Clone, Debug)]
pub(crate) enum Passing {
    Micros(u64),
    Back(u64),
    /// This many thousandths of the first charge's horizon, and some microseconds.
    Share(u64, i64),
    /// To the end of the last decision's wait or retry time, give or take a microsecond.
    Promise(i64),
    /// To when nothing of the last decision's first limit is used, give or take a microsecond.
    Reset(i64),
    /// Back to where the last decision lies so far ahead that it is no longer trusted, give or take a microsecond, if
    /// its first limit is the only one.
    Distrust(i64),
}

#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Check,
    Charge,
    /// Of what was decided this many decisions ago.
    Refund(usize),
    /// Of an instant long ago or yet to come.
    RefundAt(u64),
    Reset,
    Refuse,
    Peek,
}

#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: usize,
    pub(crate) key: usize,
    pub(crate) quota: usize,
    pub(crate) cost: Cost,
    pub(crate) patience: Option<u64>,
    pub(crate) counts_refusals: bool,
    pub(crate) is_shadow: bool,
    pub(crate) is_at_most: bool,
    pub(crate) is_refundable: bool,
    /// One of the plan's.
    pub(crate) penalty: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Cost {
    Units(u64),
    /// This many thousandths of the capacity.
    Share(u64),
    /// Beyond the capacity by this.
    Above(u64),
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let start = prop_oneof![3 => Just(NOW), 1 => of_any_size(46)];
    let quotas = prop::collection::vec(quota(), QUOTAS);
    let penalties = prop::collection::vec(penalty(), PENALTIES);
    (start, quotas, penalties, prop::collection::vec(step(), 1..40))
        .prop_map(|(start, quotas, penalties, steps)| Plan { start, quotas, penalties, steps })
}

/// A run of mostly plain charges, which the script decides without the model, on entries that also hold other states.
pub(crate) fn plain_plan() -> impl Strategy<Value = Plan> {
    (plan(), prop::bool::weighted(0.8)).prop_map(|(mut plan, only_buckets)| {
        for quota in plan.quotas.iter_mut().filter(|quota| only_buckets && !quota.algorithm().is_bucket()) {
            *quota = Quota::per_minute(7);
        }
        for quota in plan.quotas.iter_mut().filter(|quota| quota.algorithm().is_bucket()) {
            *quota = quota.try_algorithm(Algorithm::TokenBucket).unwrap_or(*quota);
        }
        for step in &mut plan.steps {
            if !matches!(step.deed, Deed::Refund(_) | Deed::Reset) {
                step.deed = Deed::Check;
            }
            for wish in &mut step.charges {
                *wish = Wish {
                    patience: None,
                    counts_refusals: false,
                    is_shadow: false,
                    is_at_most: false,
                    is_refundable: false,
                    penalty: None,
                    ..wish.clone()
                };
            }
        }
        plan
    })
}

/// Numbers of every size.
fn of_any_size(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
}

fn quota() -> impl Strategy<Value = Quota> {
    let everyday = (1..=20_u64, select(vec![1_000_u64, 1_000_000, 60_000_000, 90_000_000, 86_400_000_000]), 1..=40_u64);
    let awkward = (of_any_size(48), of_any_size(45), of_any_size(50));
    let numbers = prop_oneof![everyday, awkward];
    (numbers, select(Algorithm::ALL.to_vec()), any::<Index>(), 0..3_u8).prop_map(
        |((units, period, burst), algorithm, offset, anchor)| {
            let period = period.clamp(1_000, 366 * 86_400_000_000);
            let most = if algorithm == Algorithm::SlidingLog { 1_000_000 } else { period * 10 };
            let span = Duration::from_micros(period);
            let quota = Quota::try_new(units.clamp(1, most), span).unwrap_or(Quota::new(1, span));
            let quota = quota.try_algorithm(algorithm).unwrap_or(quota);
            match (algorithm, anchor) {
                (Algorithm::FixedWindow, 0) => quota.from_first_request(),
                (Algorithm::FixedWindow, 1) => {
                    quota.offset(Duration::from_micros(offset.index(usize::try_from(period).unwrap()) as u64))
                }
                // Some bursts cannot be counted exactly enough with some rates.
                _ => quota.try_burst(burst.max(1)).unwrap_or(quota),
            }
        },
    )
}

fn penalty() -> impl Strategy<Value = Penalty> {
    (1..4_u64, of_any_size(45), of_any_size(50)).prop_map(|(refusals, step, most)| {
        let step = Duration::from_micros(step.clamp(1_000, 366 * 86_400_000_000));
        Penalty::try_new(refusals, step, Duration::from_micros(most)).unwrap_or(Penalty::after(refusals))
    })
}

fn step() -> impl Strategy<Value = Step> {
    let passing = prop_oneof![
        3 => Just(Passing::Micros(0)),
        2 => of_any_size(46).prop_map(Passing::Micros),
        1 => of_any_size(46).prop_map(Passing::Back),
        2 => (0..150_000_000_u64).prop_map(Passing::Micros),
        1 => (0..150_000_000_u64).prop_map(Passing::Back),
        4 => (0..2_200_u64, -1..=1_i64).prop_map(|(thousandths, micros)| Passing::Share(thousandths, micros)),
        4 => (-1..=1_i64).prop_map(Passing::Promise),
        2 => (-1..=1_i64).prop_map(Passing::Reset),
        1 => (-1..=1_i64).prop_map(Passing::Distrust),
    ];
    let deed = prop_oneof![
        10 => Just(Deed::Check),
        2 => Just(Deed::Charge),
        3 => (0..6_usize).prop_map(Deed::Refund),
        1 => of_any_size(64 - 1).prop_map(Deed::RefundAt),
        1 => Just(Deed::Reset),
        1 => Just(Deed::Refuse),
        2 => Just(Deed::Peek),
    ];
    let joins_last = prop::bool::weighted(0.6);
    (passing, joins_last, deed, prop::collection::vec(wish(), 0..6)).prop_map(|(passing, joins_last, deed, charges)| {
        Step { passing, joins_last, deed, charges: without_repetitions(charges) }
    })
}

fn wish() -> impl Strategy<Value = Wish> {
    let cost = prop_oneof![
        6 => (0..4_u64).prop_map(Cost::Units),
        3 => (0..=1_000_u64).prop_map(Cost::Share),
        1 => of_any_size(63).prop_map(Cost::Above),
    ];
    let patience = prop_oneof![3 => Just(None), 1 => of_any_size(60).prop_map(Some)];
    let name = 0..NAMES.len();
    let penalty = prop::option::weighted(0.3, 0..PENALTIES);
    let manner = || prop::bool::weighted(0.2);
    let manners = (manner(), manner(), manner(), manner(), penalty);
    (name, 0..KEYS.len(), prop::option::weighted(0.2, 0..QUOTAS), cost, patience, manners).prop_map(
        // A limit mostly keeps its quota.
        |(name, key, other, cost, patience, (counts_refusals, is_shadow, is_at_most, is_refundable, penalty))| Wish {
            name,
            key,
            quota: other.unwrap_or(name),
            cost,
            patience,
            counts_refusals,
            is_shadow,
            is_at_most,
            is_refundable,
            penalty,
        },
    )
}

/// No two charges of one request may name the same limit of the same key.
fn without_repetitions(mut charges: Vec<Wish>) -> Vec<Wish> {
    let mut seen = Vec::new();
    charges.retain(|wish| {
        let is_new = !seen.contains(&(wish.name, wish.key));
        seen.push((wish.name, wish.key));
        is_new
    });
    charges
}
