//! Fixed amounts of work, so that `scripts/instructions` can count their instructions from outside.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tower_quota_core::{Clock, MemoryStore, MonotonicClock};

use crate::beyond;
use crate::layer::contenders::{Treatment, bare, behind_governor, behind_tower_quota, routed};
use crate::layer::one_connection as http;
use crate::layer::service::{Answers, request};
use crate::memory::Visit;
use crate::memory::contender::Contender;
use crate::memory::governor::{self, governor};
use crate::memory::limiter::limiter;
use crate::memory::ours::{TowerQuota, WithEveryone, mixed, quotas_in_turn, with_window};
use crate::memory::quota::quota;
use crate::rules;
use crate::timing::Step;

type Case = (&'static str, fn() -> Result<Step, Box<dyn Error>>);

/// tower-quota's cases and, to compare, its peers'.
const CASES: &[Case] = &[
    ("memory/1-limit", || Ok(asking(ours::<1>(Visit::Used), ONE))),
    ("memory/1-limit/refilled", || {
        Ok(asking(ours::<1>(Visit::Refilled), IN_TURN))
    }),
    ("memory/1-limit/new", || {
        Ok(asking(ours::<1>(Visit::Used), NEW))
    }),
    ("memory/1-limit/refused", || {
        Ok(asking(ours::<1>(Visit::Refused), ONE))
    }),
    ("memory/3-limits", || {
        Ok(asking(ours::<3>(Visit::Used), ONE))
    }),
    ("memory/3-limits/refilled", || {
        Ok(asking(ours::<3>(Visit::Refilled), IN_TURN))
    }),
    ("memory/3-limits/new", || {
        Ok(asking(ours::<3>(Visit::Used), NEW))
    }),
    ("memory/3-limits/refused", || {
        Ok(asking(ours::<3>(Visit::Refused), ONE))
    }),
    ("memory/mixed", || Ok(asking(mixed(), ONE))),
    ("memory/quotas-in-turn", || {
        Ok(asking(quotas_in_turn(), ONE))
    }),
    ("memory/1-limit/window", || {
        Ok(asking(with_window::<1>(), ONE))
    }),
    ("memory/3-limits/window", || {
        Ok(asking(with_window::<3>(), ONE))
    }),
    ("limiter/client-and-everyone", || {
        Ok(asking(WithEveryone::new(), ONE))
    }),
    ("limiter/client-and-everyone/new", || {
        Ok(asking(WithEveryone::new(), NEW))
    }),
    ("limiter/1-limit", || {
        Ok(asking(limiter(Visit::Used.allowances(1)), ONE))
    }),
    ("limiter/1-limit/refilled", || {
        Ok(asking(limiter(Visit::Refilled.allowances(1)), IN_TURN))
    }),
    ("layer/plain", || {
        Ok(requesting(behind_tower_quota(Treatment::Plain, 1)))
    }),
    ("layer/headers", || {
        Ok(requesting(behind_tower_quota(Treatment::Headers, 1)))
    }),
    ("layer/headers/3-limits", || {
        Ok(requesting(behind_tower_quota(Treatment::Headers, 3)))
    }),
    ("layer/refused", || {
        Ok(requesting(behind_tower_quota(Treatment::Refused, 1)))
    }),
    ("layer/refused/3-limits", || {
        Ok(requesting(behind_tower_quota(Treatment::Refused, 3)))
    }),
    ("layer/route", || Ok(requesting(routed(1)))),
    ("layer/route/3-limits", || Ok(requesting(routed(3)))),
    ("layer/http", http::requesting),
    ("refusals/known", beyond::refused),
    ("bare/layer", || Ok(requesting(bare()))),
    ("bare/request", || Ok(Box::new(|| drop(request())))),
    ("governor/1-limit", || {
        Ok(asking(governor::<u64>(Visit::Used.allowances(1)), ONE))
    }),
    ("governor/1-limit/refilled", || {
        Ok(asking(
            governor::<u64>(Visit::Refilled.allowances(1)),
            IN_TURN,
        ))
    }),
    ("governor/1-limit/new", || {
        Ok(asking(governor::<u64>(Visit::Used.allowances(1)), NEW))
    }),
    ("governor/1-limit/refused", || {
        Ok(asking(governor::<u64>(Visit::Refused.allowances(1)), ONE))
    }),
    ("governor/3-limits", || {
        Ok(asking(governor::<u64>(Visit::Used.allowances(3)), ONE))
    }),
    ("governor/3-limits/refilled", || {
        Ok(asking(
            governor::<u64>(Visit::Refilled.allowances(3)),
            IN_TURN,
        ))
    }),
    ("governor/3-limits/new", || {
        Ok(asking(governor::<u64>(Visit::Used.allowances(3)), NEW))
    }),
    ("governor/mixed", || {
        Ok(asking(governor::mixed::<u64>(), ONE))
    }),
    ("governor/with-everyone", || {
        Ok(asking(governor::with_everyone::<u64>(), ONE))
    }),
    ("quota/1-limit", || {
        Ok(asking(quota::<u64>(Visit::Used.allowances(1)), ONE))
    }),
    ("quota/1-limit/refilled", || {
        Ok(asking(quota::<u64>(Visit::Refilled.allowances(1)), IN_TURN))
    }),
    ("quota/1-limit/new", || {
        Ok(asking(quota::<u64>(Visit::Used.allowances(1)), NEW))
    }),
    ("quota/1-limit/refused", || {
        Ok(asking(quota::<u64>(Visit::Refused.allowances(1)), ONE))
    }),
    ("quota/3-limits", || {
        Ok(asking(quota::<u64>(Visit::Used.allowances(3)), ONE))
    }),
    ("quota/3-limits/refilled", || {
        Ok(asking(quota::<u64>(Visit::Refilled.allowances(3)), IN_TURN))
    }),
    ("quota/3-limits/new", || {
        Ok(asking(quota::<u64>(Visit::Used.allowances(3)), NEW))
    }),
    ("tower_governor/plain", || {
        Ok(requesting(behind_governor(Treatment::Plain, 1)?))
    }),
    ("tower_governor/headers", || {
        Ok(requesting(behind_governor(Treatment::Headers, 1)?))
    }),
    ("tower_governor/refused", || {
        Ok(requesting(behind_governor(Treatment::Refused, 1)?))
    }),
];

/// Cases that take a minute in valgrind, need its fair scheduler, or a Redis: to be looked at by name.
const OTHERS: &[Case] = &[
    ("layer/redis", beyond::through_redis),
    ("lease/hot", || beyond::leased(10_000_000)),
    ("lease/refused", || beyond::leased(100_000)),
    ("rules/10-rules", || rules::in_turn("10-rules")),
    ("rules/10k-rules", || rules::in_turn("10k-rules")),
    ("rules/10k-rules-1m-overrides", || {
        rules::in_turn("10k-rules-1m-overrides")
    }),
];

/// The number of keys that take turns. A single key uses its bucket partly.
const ONE: u64 = 1;
/// With this many keys, each finds its bucket full again.
const IN_TURN: u64 = 10_000;
/// With this many keys, none returns.
const NEW: u64 = u64::MAX;

/// Steps that are not counted: they ask each key of `IN_TURN` once and exhaust a bucket that is to refuse.
const BEFORE: u32 = 10_000;

fn case_of(wanted: &str) -> Result<&'static Case, &'static str> {
    CASES
        .iter()
        .chain(OTHERS)
        .find(|(name, _)| *name == wanted)
        .ok_or("no such case")
}

/// Does this many decisions of a case; without a case, prints the names of all.
pub(crate) fn run(case: Option<&str>, decisions: u32) -> Result<(), Box<dyn Error>> {
    let Some(wanted) = case else {
        CASES.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let (_, prepare) = case_of(wanted)?;
    let mut step = prepare()?;
    await_counter();
    (0..BEFORE).for_each(|_| step());
    counted(decisions, &mut step);
    Ok(())
}

/// Prints the nanoseconds of a decision in each of these cases: the fastest of many short rounds, in which no other
/// program took the processor or its caches.
pub(crate) fn time(cases: &[String]) -> Result<(), Box<dyn Error>> {
    const ROUNDS: usize = 101;
    const DECISIONS: u32 = 2_000;
    for wanted in cases {
        let (name, prepare) = case_of(wanted)?;
        let mut step = prepare()?;
        await_counter();
        (0..BEFORE).for_each(|_| step());
        let mut round = || {
            #[expect(clippy::disallowed_methods, reason = "a measurement")]
            let start = Instant::now();
            counted(DECISIONS, &mut step);
            start.elapsed().as_nanos() as f64 / f64::from(DECISIONS)
        };
        let fastest = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
        println!("{name} {fastest:.1}");
    }
    Ok(())
}

/// Waits until the clock reads the processor's counter. It reads the system's until it knows the counter's rate, and a
/// service runs longer than that.
fn await_counter() {
    let clock = MonotonicClock::new();
    let begun = clock.now();
    while clock.now().since(begun) < Duration::from_millis(500) {}
}

/// Runs the measured loop: callgrind collects within the function of this name.
#[inline(never)]
fn counted(decisions: u32, step: &mut dyn FnMut()) {
    (0..decisions).for_each(|_| step());
}

fn ours<const LIMITS: usize>(visit: Visit) -> TowerQuota<LIMITS> {
    TowerQuota::new(MemoryStore::new(), visit.allowances(LIMITS))
}

fn asking(contender: impl Contender<u64> + 'static, keys: u64) -> Step {
    let mut key = 0;
    Box::new(move || {
        key = if key + 1 < keys { key + 1 } else { 0 };
        black_box(contender.admits(black_box(&key)));
    })
}

fn requesting(mut service: Box<dyn Answers>) -> Step {
    Box::new(move || {
        black_box(service.admits(request()));
    })
}
