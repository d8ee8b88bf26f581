//! Random requests to a store that has many kinds of entries, and how they shrink.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{select, subsequence};
use proptest::{bool, option};
use tower_quota_core::{Penalty, Quota};

use crate::{magnitude, trace};

/// Names of limits: more than fit into the widest row.
pub(super) const LIMITS: [&str; 6] = ["second", "minute", "hour", "day", "queue", "log"];
/// Keys, the last of which is that of all requests together.
pub(super) const KEYS: usize = 4;
const QUOTAS: usize = LIMITS.len() + 3;
/// How many of the limits, and so of the quotas, are buckets.
const BUCKETS: usize = 4;
const POLICIES: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The first of them are those of the limits; the others are what a limit may change to.
    pub(super) quotas: Vec<Quota>,
    pub(super) penalty: Penalty,
    /// Whether other limits have taken all the numbers there are.
    pub(super) numbers_are_used_up: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Ask(Passing, Deed, Vec<Wish>),
    /// So many others come, each for so many limits, and stay.
    Crowd(u64, usize),
}

/// How time goes on before a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passing {
    Micros(u64),
    Back(u64),
    /// As long as the last decision said that a client would have to wait, this much sooner or later.
    Retry(i64),
    /// Until its first limit would be full, this much sooner or later.
    Reset(i64),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    Check,
    Charge,
    /// Of what was decided this many decisions ago.
    Refund(usize),
    Reset,
    Refuse,
    Peek,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) limit: usize,
    pub(super) key: usize,
    /// Another quota than its own.
    pub(super) other_quota: Option<usize>,
    pub(super) cost: Cost,
    pub(super) manners: Manners,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cost {
    Units(u64),
    /// A share of the capacity, in parts of 2^15.
    Share(u16),
    Above(u64),
}

/// What makes a charge more than a plain one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manners {
    pub(super) patience: Option<u64>,
    pub(super) counts_refusals: bool,
    pub(super) is_shadow: bool,
    pub(super) is_at_most: bool,
    pub(super) is_penalised: bool,
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let penalty =
        (1..4_u64, magnitude(1_000, 100_000_000), magnitude(1_000, 1 << 40)).prop_map(|(after, step, most)| {
            Penalty::after(after).step(Duration::from_micros(step)).most(Duration::from_micros(most))
        });
    let quotas = (vec(bucket(), BUCKETS), vec(trace::quota(), QUOTAS - BUCKETS))
        .prop_map(|(buckets, any)| [buckets, any].concat());
    // Buckets of one client, buckets of several, and anything: the store decides each in another way.
    let plain = (subsequence((0..BUCKETS).collect::<Vec<usize>>(), 1..=BUCKETS).prop_shuffle(), 0..KEYS)
        .prop_map(|(limits, key)| limits.into_iter().map(|limit| (limit, key)).collect());
    let several = vec((0..BUCKETS, 0..KEYS), 2..6);
    let mixed = vec((0..LIMITS.len(), 0..KEYS), 1..5);
    let policies = vec(prop_oneof![2 => plain, 1 => several, 1 => mixed], POLICIES);
    (quotas, penalty, bool::weighted(0.05), policies).prop_flat_map(
        |(quotas, penalty, numbers_are_used_up, policies)| {
            vec(step(policies), 1..60).prop_map(move |steps| Plan {
                quotas: quotas.clone(),
                penalty,
                numbers_are_used_up,
                steps,
            })
        },
    )
}

/// What plain requests are counted by.
fn bucket() -> impl Strategy<Value = Quota> {
    (1..20_u64, magnitude(1_000, 86_400_000_000), 1..40_u64)
        .prop_map(|(units, period, burst)| Quota::new(units, Duration::from_micros(period)).burst(burst))
}

fn step(policies: Vec<Vec<(usize, usize)>>) -> impl Strategy<Value = Step> {
    let passing = prop_oneof![
        4 => Just(Passing::Micros(0)),
        2 => magnitude(1, 1 << 40).prop_map(Passing::Micros),
        1 => magnitude(1, 1 << 40).prop_map(Passing::Back),
        2 => (-1..=1_i64).prop_map(Passing::Retry),
        1 => (-1..=1_i64).prop_map(Passing::Reset),
    ];
    let deed = prop_oneof![
        12 => Just(Deed::Check),
        1 => Just(Deed::Charge),
        2 => (0..6_usize).prop_map(Deed::Refund),
        1 => Just(Deed::Reset),
        1 => Just(Deed::Refuse),
        1 => Just(Deed::Peek),
    ];
    // Mostly the same limits again, all of them or some, in the same order or another, and asked plainly.
    let some = select(policies).prop_flat_map(|policy| {
        let all = policy.len();
        prop_oneof![2 => Just(policy.clone()), 1 => subsequence(policy, 1..=all).prop_shuffle()]
    });
    let quota = option::weighted(0.1, 0..BUCKETS);
    let again =
        (some, quota, cost(), option::weighted(0.3, any::<u16>())).prop_map(|(policy, other_quota, cost, manners)| {
            let wish = |(limit, key)| Wish {
                limit,
                key,
                other_quota,
                cost,
                manners: Manners::from_bits(manners.unwrap_or_default()),
            };
            policy.into_iter().map(wish).collect()
        });
    let other = (0..LIMITS.len(), 0..KEYS, option::weighted(0.2, 0..QUOTAS), cost(), any::<u16>()).prop_map(
        |(limit, key, other_quota, cost, manners)| Wish {
            limit,
            key,
            other_quota,
            cost,
            manners: Manners::from_bits(manners),
        },
    );
    let wishes = prop_oneof![3 => again, 1 => vec(other, 0..=LIMITS.len())];
    let ask = (passing, deed, wishes).prop_map(|(passing, deed, wishes)| Step::Ask(passing, deed, distinct(wishes)));
    // Many make tables grow.
    let others = prop_oneof![8 => 1..8_u64, 1 => 1..1_500_u64];
    prop_oneof![60 => ask, 10 => (others, 1..4_usize).prop_map(|(others, limits)| Step::Crowd(others, limits))]
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        6 => (0..4_u64).prop_map(Cost::Units),
        3 => (0..1_u16 << 15).prop_map(Cost::Share),
        1 => magnitude(1, 1 << 62).prop_map(Cost::Above),
    ]
}

impl Manners {
    /// Each is seldom; none of them is often.
    fn from_bits(bits: u16) -> Self {
        let is_on = |manner: u32| bits >> (3 * manner) & 7 == 7;
        Self {
            // None at all makes no difference, but is no plain charge.
            patience: is_on(0).then_some(if bits >> 15 == 0 { 0 } else { 90_000_000 }),
            counts_refusals: is_on(1),
            is_shadow: is_on(2),
            is_at_most: is_on(3),
            is_penalised: is_on(4),
        }
    }
}

/// No two charges of one request may name the same limit of the same key.
fn distinct(mut wishes: Vec<Wish>) -> Vec<Wish> {
    let mut seen = Vec::new();
    wishes.retain(|wish| {
        let is_new = !seen.contains(&(wish.limit, wish.key));
        seen.push((wish.limit, wish.key));
        is_new
    });
    wishes
}
