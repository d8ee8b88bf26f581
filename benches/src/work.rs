//! Fixed amounts of work, so that `scripts/instructions` and `scripts/metrics-overhead` can measure them from outside.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tower_quota_core::{
    Charge, Clock, Decision, Key, MemoryStore, MonotonicClock, Name, Quota, RefusalCache, Store,
};
use tower_quota_lease::Leased;
use tower_quota_testkit::{ManualClock, ModelStore, SharedStore};

use crate::layer::contenders::{
    Answers, Treatment, bare, behind_governor, behind_tower_quota, request, routed,
};
use crate::layer::http;
use crate::memory::contenders::{
    Made, Visit, governor, governor_with_everyone, limiter, mixed, pool, quotas_in_turn, three,
    with_everyone, with_window,
};
use crate::timing::Step;

type Case = (&'static str, fn() -> Result<Step, Box<dyn Error>>);

/// The number of keys that take turns. A single key uses its bucket partly.
const ONE: u64 = 1;
/// With this many keys, each finds its bucket full again.
const IN_TURN: u64 = 10_000;
/// With this many keys, none returns.
const NEW: u64 = u64::MAX;

/// Steps that are not counted: they ask each key of `IN_TURN` once and exhaust a bucket that is to refuse.
const BEFORE: u32 = 10_000;

/// The cases of tower-quota and, to compare, of its peers.
const CASES: &[Case] = &[
    ("memory/1-limit", || Ok(asking(one(Visit::Used), ONE))),
    ("memory/1-limit/refilled", || {
        Ok(asking(one(Visit::Refilled), IN_TURN))
    }),
    ("memory/1-limit/new", || Ok(asking(one(Visit::Used), NEW))),
    ("memory/1-limit/refused", || {
        Ok(asking(one(Visit::Refused), ONE))
    }),
    ("memory/3-limits", || {
        Ok(asking(three(Visit::Used, PLACES), ONE))
    }),
    ("memory/3-limits/refilled", || {
        Ok(asking(three(Visit::Refilled, PLACES), IN_TURN))
    }),
    ("memory/3-limits/new", || {
        Ok(asking(three(Visit::Used, PLACES), NEW))
    }),
    ("memory/3-limits/refused", || {
        Ok(asking(three(Visit::Refused, PLACES), ONE))
    }),
    ("memory/3-limits/window", || Ok(asking(with_window(), ONE))),
    ("memory/mixed", || Ok(asking(mixed(), ONE))),
    ("memory/quotas-in-turn", || {
        Ok(asking(quotas_in_turn(), ONE))
    }),
    ("memory/client-and-everyone", || {
        Ok(asking(with_everyone(), ONE))
    }),
    ("memory/client-and-everyone/new", || {
        Ok(asking(with_everyone(), NEW))
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
    ("refusals/known", refused),
    ("bare/layer", || Ok(requesting(bare()))),
    ("bare/request", || Ok(Box::new(|| drop(request())))),
    ("governor/1-limit", || {
        Ok(asking(governor(Visit::Used.allowances(1)), ONE))
    }),
    ("governor/1-limit/new", || {
        Ok(asking(governor(Visit::Used.allowances(1)), NEW))
    }),
    ("governor/1-limit/refused", || {
        Ok(asking(governor(Visit::Refused.allowances(1)), ONE))
    }),
    ("governor/3-limits", || {
        Ok(asking(governor(Visit::Used.allowances(3)), ONE))
    }),
    ("governor/client-and-everyone", || {
        Ok(asking(governor_with_everyone(), ONE))
    }),
    ("quota/1-limit", || {
        Ok(asking(pool(Visit::Used.allowances(1)), ONE))
    }),
    ("quota/3-limits", || {
        Ok(asking(pool(Visit::Used.allowances(3)), ONE))
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

const PLACES: usize = MemoryStore::DEFAULT_CAPACITY;

fn one(visit: Visit) -> Made<u64> {
    limiter(&visit.allowances(1)[0], PLACES)
}

fn asking(contender: Made<u64>, keys: u64) -> Step {
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

/// Returns the requests of one client with this quota a second, which is leased.
pub(crate) fn leased(units: u64) -> Result<Step, Box<dyn Error>> {
    let store = Leased::new(SharedStore(MemoryStore::new()));
    of_one_client(store, Quota::try_new(units, Duration::from_secs(1))?)
}

/// Returns the requests of one client far beyond its quota.
pub(crate) fn refused() -> Result<Step, Box<dyn Error>> {
    let hour = Duration::from_secs(3_600);
    let store = SharedStore(ModelStore::with_clock(ManualClock::default()));
    let cache = RefusalCache::new(store).max_age(hour);
    of_one_client(cache, Quota::try_new(1, hour)?)
}

fn of_one_client(store: impl Store, quota: Quota) -> Result<Step, Box<dyn Error>> {
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
pub(crate) fn run(case: Option<&str>, decisions: u32) -> Result<(), Box<dyn Error>> {
    let Some(case) = case else {
        CASES.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let mut step = prepared(case)?;
    counted(decisions, &mut step);
    Ok(())
}

/// Prints the nanoseconds of a decision in each of these cases: the fastest of many short rounds, in which no other
/// program took the processor or its caches.
pub(crate) fn time(cases: &[String]) -> Result<(), Box<dyn Error>> {
    const ROUNDS: usize = 101;
    const DECISIONS: u32 = 2_000;
    for case in cases {
        let mut step = prepared(case)?;
        let mut round = || {
            #[expect(clippy::disallowed_methods, reason = "a measurement")]
            let start = Instant::now();
            counted(DECISIONS, &mut step);
            start.elapsed().as_nanos() as f64 / f64::from(DECISIONS)
        };
        let fastest = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
        println!("{case} {fastest:.1}");
    }
    Ok(())
}

/// Returns the step of a case, after the steps that are not counted.
fn prepared(case: &str) -> Result<Step, Box<dyn Error>> {
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

/// Runs the measured loop. callgrind collects within the function of this name.
#[inline(never)]
fn counted(decisions: u32, step: &mut dyn FnMut()) {
    (0..decisions).for_each(|_| step());
}

/// Prints the median times to publish and to render the metrics of many limits and routes, and the number of series.
#[cfg(feature = "metrics")]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
pub(crate) fn scrape() -> Result<(), Box<dyn Error>> {
    use axum::Router;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;
    use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
    use tower::Service;
    use tower_quota::metrics::METRICS;
    use tower_quota::{Limit, Policy, RateLimitLayer};

    const LIMITS: usize = 10_000;
    const ROUTES: usize = 100;

    let mut builder = PrometheusBuilder::new();
    for metric in METRICS.iter().filter(|metric| !metric.buckets.is_empty()) {
        builder = builder
            .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets)?;
    }
    let recorder = builder.build_recorder();
    let scrape = recorder.handle();
    metrics::set_global_recorder(recorder)?;

    // A request has a hundredth of the limits. Each of them admits one request and refuses another.
    let policy = (0..LIMITS).fold(Policy::new(), |policy, number| {
        let path = format!("/r{}", number % ROUTES);
        let limit = Limit::new(format!("limit-{number}"), Quota::per_hour(1));
        policy.limit(limit.when(move |head| head.path() == path))
    });
    let layer = RateLimitLayer::new(MemoryStore::new(), policy);
    let handle = layer.handle();
    let app = (0..ROUTES).fold(Router::new(), |app, route| {
        app.route(&format!("/r{route}"), get(async || {}))
    });
    let mut app: Router = app.layer(layer);
    let runtime = Builder::new_current_thread().build()?;
    for _ in 0..2 {
        for route in 0..ROUTES {
            let request = Request::get(format!("/r{route}")).body(Body::empty())?;
            runtime.block_on(app.call(request))?;
        }
    }
    let mut rounds = [Vec::new(), Vec::new()];
    let mut text = String::new();
    for _ in 0..21 {
        let start = Instant::now();
        handle.publish_metrics("api");
        let published = Instant::now();
        text = scrape.render();
        rounds[0].push((published - start).as_secs_f64() * 1e3);
        rounds[1].push(published.elapsed().as_secs_f64() * 1e3);
    }
    let series = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .count();
    let [publish, render] = rounds.map(|figures| crate::report::median(&figures));
    println!(
        "{LIMITS} limits x {ROUTES} routes: {series} series, publish {publish:.1} ms, render {render:.1} ms"
    );
    Ok(())
}
