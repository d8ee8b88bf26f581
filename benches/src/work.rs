//! Fixed amounts of work, so that `scripts/instructions` and `scripts/metrics-overhead` can measure them from outside.

use std::hint::black_box;
use std::time::Duration;

use tokio::runtime::Builder;
use tower_quota_core::{
    Charge, Clock, Decision, Key, MemoryStore, MonotonicClock, Name, Operation, Quota,
    RefusalCache, Store,
};
use tower_quota_lease::Leased;
use tower_quota_testkit::{ManualClock, ModelStore, SharedStore};

use crate::Outcome;
use crate::layer::Limits::{One, Three};
use crate::layer::Treatment::{Headers, Plain, Refused};
use crate::layer::{
    bare, behind_governor, behind_tower_quota, making, over_http, routed, tower_quota,
};
use crate::limiters::{
    Allowance, Check, REFILLED, REFUSED, USED, governor, governor_with_everyone, mixed, quota,
    quotas_in_turn, tower_quota_with_everyone, with_window,
};
use crate::turns::{Step, counted, steps};

type Case = (&'static str, fn() -> Outcome<Step>);

/// The number of keys that take turns. A single key uses its bucket partly.
const ONE: u64 = 1;
/// With this many keys, each finds its bucket full again.
const IN_TURN: u64 = 10_000;
/// With this many keys, none returns.
const NEW: u64 = u64::MAX;

/// Steps that are not counted. They check each key of `IN_TURN` once and exhaust a bucket that is to refuse.
const BEFORE: u32 = 10_000;

/// The cases of tower-quota and, to compare, of its peers.
const CASES: &[Case] = &[
    ("memory/1-limit", || Ok(limits(&USED[..1], ONE))),
    ("memory/1-limit/refilled", || {
        Ok(limits(&REFILLED[..1], IN_TURN))
    }),
    ("memory/1-limit/new", || Ok(limits(&USED[..1], NEW))),
    ("memory/1-limit/refused", || Ok(limits(&REFUSED[..1], ONE))),
    ("memory/3-limits", || Ok(limits(&USED[..3], ONE))),
    ("memory/3-limits/refilled", || {
        Ok(limits(&REFILLED, IN_TURN))
    }),
    ("memory/3-limits/new", || Ok(limits(&USED[..3], NEW))),
    ("memory/3-limits/refused", || Ok(limits(&REFUSED, ONE))),
    ("memory/3-limits/window", || {
        Ok(checking(with_window(), ONE))
    }),
    ("memory/mixed", || Ok(checking(mixed(), ONE))),
    ("memory/quotas-in-turn", || {
        Ok(checking(quotas_in_turn(), ONE))
    }),
    ("memory/client-and-everyone", || {
        Ok(checking(tower_quota_with_everyone(), ONE))
    }),
    ("memory/client-and-everyone/new", || {
        Ok(checking(tower_quota_with_everyone(), NEW))
    }),
    ("memory/hold/1-held", || Ok(hold_and_release(1))),
    ("memory/hold/9999-held", || Ok(hold_and_release(9_999))),
    ("layer/plain", || Ok(behind_tower_quota(Plain, One))),
    ("layer/headers", || Ok(behind_tower_quota(Headers, One))),
    ("layer/headers/3-limits", || {
        Ok(behind_tower_quota(Headers, Three))
    }),
    ("layer/refused", || Ok(behind_tower_quota(Refused, One))),
    ("layer/refused/3-limits", || {
        Ok(behind_tower_quota(Refused, Three))
    }),
    ("layer/route", || Ok(routed(One))),
    ("layer/route/3-limits", || Ok(routed(Three))),
    ("layer/http", || {
        let app = axum::Router::new().route("/", axum::routing::get(async || "hello"));
        over_http(app.layer(tower_quota(Headers, One)))
    }),
    ("refusals/known", refused),
    ("bare/layer", || Ok(bare())),
    ("bare/request", || Ok(making())),
    ("governor/1-limit", || {
        Ok(checking(governor(&USED[..1]), ONE))
    }),
    ("governor/1-limit/new", || {
        Ok(checking(governor(&USED[..1]), NEW))
    }),
    ("governor/1-limit/refused", || {
        Ok(checking(governor(&REFUSED[..1]), ONE))
    }),
    ("governor/3-limits", || {
        Ok(checking(governor(&USED[..3]), ONE))
    }),
    ("governor/client-and-everyone", || {
        Ok(checking(governor_with_everyone(), ONE))
    }),
    ("quota/1-limit", || Ok(checking(quota(&USED[..1]), ONE))),
    ("quota/3-limits", || Ok(checking(quota(&USED[..3]), ONE))),
    ("tower_governor/plain", || behind_governor(Plain, One)),
    ("tower_governor/headers", || behind_governor(Headers, One)),
    ("tower_governor/refused", || behind_governor(Refused, One)),
];

fn limits(allowances: &[Allowance], keys: u64) -> Step {
    let capacity = MemoryStore::DEFAULT_CAPACITY;
    checking(crate::limiters::tower_quota(allowances, capacity), keys)
}

fn checking(check: Check<u64>, keys: u64) -> Step {
    let mut key = 0;
    Box::new(move || {
        key = if key + 1 < keys { key + 1 } else { 0 };
        black_box(check(black_box(&key)));
    })
}

/// Returns requests that take and release a unit, while other requests hold so many.
fn hold_and_release(held: u64) -> Step {
    let store = MemoryStore::new();
    let quota = Quota::concurrent(10_000).ttl(Duration::from_secs(3_600));
    let apply = move |operation| {
        let key = Key::EVERYONE;
        let charges = [Charge::new("streams", &quota, &key)];
        let Ok(decision) = store.apply(operation, &charges).into_inner();
        decision.at()
    };
    for _ in 0..held {
        apply(Operation::Check);
    }
    Box::new(move || {
        let taken_at = apply(Operation::Check);
        black_box(apply(Operation::Refund { taken_at }));
    })
}

/// Returns the requests of one client with this quota a second, which is leased.
pub(crate) fn leased(units: u64) -> Outcome<Step> {
    let store = Leased::new(SharedStore(MemoryStore::new()));
    of_one_client(store, Quota::try_new(units, Duration::from_secs(1))?)
}

/// Returns the requests of one client far beyond its quota.
pub(crate) fn refused() -> Outcome<Step> {
    let hour = Duration::from_secs(3_600);
    let store = SharedStore(ModelStore::with_clock(ManualClock::default()));
    let cache = RefusalCache::new(store).max_age(hour);
    of_one_client(cache, Quota::try_new(1, hour)?)
}

fn of_one_client(store: impl Store, quota: Quota) -> Outcome<Step> {
    // Leases are fetched in a thread of their own.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    Ok(Box::new(move || {
        let _entered = runtime.enter();
        let key = Key::number(Name::new("client"), 7);
        let charges = [Charge::new("requests", &quota, &key)];
        let mut decision = Decision::default();
        if !store.check_at_once(&charges, &mut decision) {
            _ = runtime.block_on(store.check(&charges));
        }
        black_box(decision);
    }))
}

/// Makes this many decisions of a case. Without a case, prints the names of all.
pub(crate) fn run(case: Option<&str>, decisions: u32) -> Outcome {
    match case {
        None => CASES.iter().for_each(|(name, _)| println!("{name}")),
        Some(case) => counted(decisions, &mut prepared(case)?),
    }
    Ok(())
}

/// Prints the nanoseconds of a decision in each of these cases: the fastest of many short rounds.
pub(crate) fn time(cases: &[String]) -> Outcome {
    for case in cases {
        let mut round = steps(2_000, prepared(case)?);
        let mut fastest = f64::INFINITY;
        for _ in 0..101 {
            fastest = fastest.min(round()?);
        }
        println!("{case} {fastest:.1}");
    }
    Ok(())
}

/// Returns the step of a case, after the steps that are not counted.
fn prepared(case: &str) -> Outcome<Step> {
    let found = CASES.iter().find(|(name, _)| *name == case);
    let (_, prepare) = found.ok_or_else(|| format!("there is no case {case}"))?;
    let mut step = prepare()?;
    // The clock reads the system's until it knows the rate of the processor's counter.
    let clock = MonotonicClock::new();
    let begun = clock.now();
    while clock.now().since(begun) < Duration::from_millis(500) {}
    (0..BEFORE).for_each(|_| step());
    Ok(step)
}
