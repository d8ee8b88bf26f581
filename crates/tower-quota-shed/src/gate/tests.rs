use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use proptest::prelude::*;
use tower_quota::key;

use super::mix::{LEVELS, Mix};
use super::{Entry, Gate, Place};
use crate::cause::Cause;
use crate::limit::{Kind, LimitSettings};
use crate::priority::Priority;
use crate::settings::Settings;

fn gate(places: usize) -> Arc<Gate> {
    gate_with(LimitSettings::fixed(places))
}

fn gate_with(limit: LimitSettings) -> Arc<Gate> {
    Arc::new(Gate::new(Settings {
        limit,
        priorities: vec![Arc::new(|_: &_| None)],
        key: Some(Arc::new(key::header("x-tenant"))),
        ..Settings::default()
    }))
}

fn enter(gate: &Arc<Gate>, now: Duration, class: Priority, key: u64) -> Result<Place, Cause> {
    match gate.enter(now, || (class, Some(key))) {
        Entry::Place(place) => Ok(place),
        Entry::Refused(_, cause) => Err(cause),
        Entry::Wait(..) => unreachable!("the gate has no queue"),
    }
}

fn any_class() -> impl Strategy<Value = Priority> {
    (0..Priority::ALL.len()).prop_map(|class| Priority::ALL[class])
}

proptest! {
    #[test]
    fn better_level_never_has_a_lower_bound(
        arrivals in prop::collection::vec((0..LEVELS, any::<bool>()), 0..2_000),
        limit in 1_usize..5_000,
        swing in 0_usize..2_000,
    ) {
        let mut mix = Mix::default();
        for (level, is_admitted) in arrivals {
            mix.arrived(level);
            if is_admitted {
                mix.admitted();
            }
        }
        let bounds: Vec<usize> = (0..LEVELS).map(|level| mix.bound(level, limit, limit + swing)).collect();
        prop_assert!(bounds.is_sorted_by(|better, worse| better >= worse), "{bounds:?}");
        prop_assert!(bounds[LEVELS - 1] >= limit / 2, "{bounds:?}");
    }

    /// Between two moments at which a place became free or the mix was looked at, nothing else changes the order.
    #[test]
    fn no_higher_class_is_refused_while_a_lower_one_enters(
        places in 1_usize..50,
        requests in prop::collection::vec((any_class(), 0_u64..4, any::<[bool; 2]>()), 1..1_000),
    ) {
        let gate = gate(places);
        let mut running = Vec::new();
        let mut refused: Option<Priority> = None;
        for (number, (class, key, [ends_first, has_body])) in requests.into_iter().enumerate() {
            if ends_first && !running.is_empty() {
                running.swap_remove(number % running.len());
                refused = None;
            }
            // Bodies become long, and leave places to others.
            let order = || (looks(&gate), gate.places.count.in_progress() - gate.places.count.used());
            let (before, now) = (order(), Duration::from_millis(number as u64));
            let entry = enter(&gate, now, class, key);
            if before != order() {
                refused = None;
            }
            match entry {
                Ok(mut place) => {
                    if has_body {
                        place.begin_body(now);
                    }
                    let inverted = refused.filter(|refused| (*refused as usize) < class as usize);
                    prop_assert_eq!(inverted, None, "{:?} entered", class);
                    running.push(place);
                }
                Err(_) => {
                    let highest = refused.map_or(class as usize, |it| (it as usize).min(class as usize));
                    refused = Some(Priority::ALL[highest]);
                }
            }
        }
        drop(running);
        prop_assert_eq!(gate.places.count.in_progress(), 0);
    }
}

fn looks(gate: &Gate) -> u32 {
    gate.lock().unwrap().mix.looks
}

#[test]
fn threads_never_admit_a_lower_class_instead() {
    const THREADS: usize = 8;
    const REQUESTS: usize = 12;
    for round in 0..60 {
        let gate = gate(64);
        // The recent mix leaves room to higher classes. Afterwards half of the places are in use.
        let mut running = Vec::new();
        for number in 0..64 * 8 {
            let class = Priority::ALL[(number + round) % 5];
            running.extend(enter(&gate, Duration::ZERO, class, 0));
            if gate.places.count.used() > 48 {
                running.remove(0);
            }
        }
        running.truncate(32);
        let looks = looks(&gate);
        let (clock, log) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        let tick = || clock.fetch_add(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (gate, log, tick) = (&gate, &log, &tick);
                scope.spawn(move || {
                    for number in 0..REQUESTS {
                        let class = Priority::ALL[(number * 3 + thread) % 5];
                        let begin = tick();
                        let entry = enter(gate, Duration::ZERO, class, 1 + thread as u64);
                        let end = tick();
                        log.lock().unwrap().push((class, begin, end, entry));
                    }
                });
            }
        });
        let log = log.into_inner().unwrap();
        if looks != self::looks(&gate) {
            continue;
        }
        for (refused, _, end, entry) in &log {
            if entry.is_ok() {
                continue;
            }
            // No place became free in between.
            let inverted = log.iter().find(|(class, begin, _, entry)| {
                entry.is_ok() && begin > end && *class as usize > *refused as usize
            });
            assert!(inverted.is_none(), "{refused:?} refused, {inverted:?}");
        }
    }
}

#[test]
fn places_of_all_threads_return() {
    for places in [1, 2, 16] {
        let gate = gate(places);
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let gate = &gate;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    let mut running = Vec::new();
                    for number in 0..2_000 {
                        let class = Priority::ALL[random.usize(..5)];
                        let now = Duration::from_millis(number);
                        let mut entered = enter(gate, now, class, random.u64(..6));
                        assert!(gate.places.count.in_progress() <= places);
                        if random.bool() {
                            let _ = entered.as_mut().map(|place| place.begin_body(now));
                        }
                        running.extend(entered);
                        if random.bool() && !running.is_empty() {
                            running.swap_remove(random.usize(..running.len()));
                        }
                    }
                });
            }
        });
        assert_eq!(
            (gate.places.count.used(), gate.places.count.in_progress()),
            (0, 0)
        );
        assert_eq!(gate.lock().unwrap().shares.held(), 0);
    }
}

#[test]
fn queue_of_all_threads_returns_every_place() {
    let gate = Arc::new(Gate::new(Settings {
        limit: LimitSettings::fixed(2),
        queue: (4, Duration::from_secs(1)),
        ..Settings::default()
    }));
    let (waits, start) = (AtomicU64::new(0), Barrier::new(6));
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (gate, waits, start) = (&gate, &waits, &start);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let mut held = None;
                start.wait();
                for _ in 0..1_000 {
                    std::thread::yield_now();
                    match gate.enter(Duration::ZERO, || (Priority::Normal, None)) {
                        Entry::Place(place) => held = Some(place),
                        Entry::Refused(..) => held = None,
                        Entry::Wait(_, receiver) => {
                            held = None;
                            waits.fetch_add(1, Ordering::Relaxed);
                            // Some clients go at once, and some wait for their place or their refusal.
                            if random.bool() {
                                held = receiver.blocking_recv().ok();
                            }
                        }
                    }
                }
                drop(held);
            });
        }
    });
    assert!(waits.into_inner() > 400, "the threads did not meet");
    assert_eq!(
        (gate.places.count.used(), gate.places.count.waiting()),
        (0, 0)
    );
}

#[test]
fn newcomer_comes_after_waiting_requests_of_a_better_class() {
    for queue in [1, 4] {
        let gate = Arc::new(Gate::new(Settings {
            limit: LimitSettings::default().floor(2).start(2),
            queue: (queue, Duration::from_secs(5)),
            ..Settings::default()
        }));
        let enter = |seconds, class| gate.enter(Duration::from_secs(seconds), || (class, None));
        let mut running = Vec::new();
        for _ in 0..2 {
            let Entry::Place(mut place) = enter(0, Priority::Normal) else {
                panic!("no place");
            };
            place.begin_body(Duration::ZERO);
            running.push(place);
        }
        let Entry::Wait(_, mut waits) = enter(0, Priority::High) else {
            panic!("no queue");
        };
        // The bodies are long now, so their places are free, and no request leaves.
        let _newcomer = enter(1, Priority::Background);
        assert!(waits.try_recv().is_ok(), "queue of {queue}");
    }
}

#[test]
fn long_bodies_of_low_classes_leave_room_below_the_ceiling() {
    let gate = gate(40);
    let mut running = Vec::new();
    // Two of three requests are critical, so three eighths of the places are left to them.
    for number in 0..900 {
        let class = [Priority::Low, Priority::Critical, Priority::Critical][number % 3];
        running.extend(enter(&gate, Duration::ZERO, class, 0));
        if gate.places.count.used() > 30 {
            running.remove(0);
        }
    }
    running.clear();
    let mut enter_body = |class| {
        let mut place = enter(&gate, Duration::ZERO, class, 0)?;
        place.begin_body(Duration::ZERO);
        running.push(place);
        Ok::<_, Cause>(())
    };
    while enter_body(Priority::Low).is_ok() {}
    let later = Duration::from_secs(1);
    let in_progress = gate.places.count.in_progress();
    assert!((20..=30).contains(&in_progress), "{in_progress}");
    assert_eq!(
        enter(&gate, later, Priority::Low, 0).err(),
        Some(Cause::Priority)
    );
    assert_eq!(gate.places.count.used(), 0, "all bodies are long");
    let critical: Vec<_> = (in_progress..40)
        .map(|_| enter(&gate, later, Priority::Critical, 0).unwrap())
        .collect();
    assert_eq!(
        enter(&gate, later, Priority::Critical, 0).err(),
        Some(Cause::Limit)
    );
    drop(critical);
}

/// A tenant of a simulation.
struct Tenant {
    /// The requests for each request that the workers can answer.
    load: f64,
    class: Priority,
    /// Returns the key of a request.
    key: fn(&mut fastrand::Rng) -> u64,
}

/// What a tenant of a simulation got.
struct Served {
    /// The share of answered requests.
    answered: f64,
    /// The 99th percentile of the latency, in seconds.
    p99: f64,
}

/// Simulates a minute. Returns the answered share of each tenant.
fn simulate(gate: &Arc<Gate>, tenants: &[Tenant]) -> Vec<f64> {
    let served = serve(gate, tenants, 7);
    served.iter().map(|tenant| tenant.answered).collect()
}

/// Simulates a minute of a service with 20 workers and 10 ms a request.
fn serve(gate: &Arc<Gate>, tenants: &[Tenant], seed: u64) -> Vec<Served> {
    const MEAN: f64 = 0.010;
    const WORKERS: usize = 20;
    let mut random = fastrand::Rng::with_seed(seed);
    let exponential = |random: &mut fastrand::Rng, mean: f64| -mean * (1.0 - random.f64()).ln();
    let gap = |tenant: &Tenant| MEAN / WORKERS as f64 / tenant.load;
    let mut arrivals = Vec::new();
    for tenant in tenants {
        arrivals.push(exponential(&mut random, gap(tenant)));
    }
    // The ends of the requests that have a worker, and the requests without a worker, by their numbers.
    let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut running: HashMap<usize, (usize, f64, Place)> = HashMap::new();
    let mut latencies = vec![Vec::new(); tenants.len()];
    let mut sent = vec![0.0; tenants.len()];
    for number in 0.. {
        let next = (0..tenants.len())
            .min_by(|a, b| arrivals[*a].total_cmp(&arrivals[*b]))
            .unwrap();
        let now = arrivals[next];
        if now > 60.0 {
            break;
        }
        while let Some(Reverse((end, done))) = ends.peek().copied()
            && end as f64 <= now * 1e9
        {
            ends.pop();
            let (tenant, since, place) = running.remove(&done).unwrap();
            latencies[tenant].push(end as f64 / 1e9 - since);
            place.answered(Duration::from_nanos(end), Some(Kind::Answered));
            drop(place);
            if let Some(waiting) = queue.pop_front() {
                let end = end + (exponential(&mut random, MEAN) * 1e9) as u64;
                ends.push(Reverse((end, waiting)));
            }
        }
        let tenant = &tenants[next];
        arrivals[next] = now + exponential(&mut random, gap(tenant));
        sent[next] += 1.0;
        let key = (tenant.key)(&mut random);
        if let Ok(place) = enter(gate, Duration::from_secs_f64(now), tenant.class, key) {
            running.insert(number, (next, now, place));
            if ends.len() < WORKERS {
                let end = ((now + exponential(&mut random, MEAN)) * 1e9) as u64;
                ends.push(Reverse((end, number)));
            } else {
                queue.push_back(number);
            }
        }
    }
    for (tenant, _, _) in running.into_values() {
        latencies[tenant].push(0.0);
    }
    let tenants = latencies.into_iter().zip(sent);
    let served = tenants.map(|(mut latencies, sent)| {
        latencies.sort_by(f64::total_cmp);
        Served {
            answered: latencies.len() as f64 / sent,
            p99: latencies[latencies.len() * 99 / 100],
        }
    });
    served.collect()
}

fn tenant(load: f64, key: fn(&mut fastrand::Rng) -> u64) -> Tenant {
    Tenant {
        load,
        class: Priority::Normal,
        key,
    }
}

/// Compares a quiet tenant next to one at ten times the capacity with a quiet tenant that is alone.
fn serve_quiet_tenant(load: f64, limit: &LimitSettings, least: f64) {
    let (mut answered, mut slower, mut goodput) = (0.0, 0.0, 0.0);
    for seed in 1..=3 {
        let gate = || gate_with(limit.clone());
        let alone = serve(&gate(), &[tenant(load, |_| 1)], seed);
        let tenants = [tenant(load, |_| 1), tenant(10.0, |_| 2)];
        let served = serve(&gate(), &tenants, seed);
        answered += served[0].answered / 3.0;
        slower += served[0].p99 / alone[0].p99 / 3.0;
        goodput += (served[0].answered * load + served[1].answered * 10.0) / 3.0;
    }
    assert!(answered >= least, "load {load}: {answered:.5} answered");
    assert!(slower <= 1.2, "load {load}: p99 times {slower:.2}");
    assert!(goodput >= 0.95, "load {load}: goodput {goodput:.2}");
}

#[test]
fn quiet_tenant_is_served_next_to_a_loud_one() {
    for load in [0.02, 0.1, 0.2, 0.3] {
        serve_quiet_tenant(load, &LimitSettings::fixed(32), 0.999);
    }
}

#[test]
fn quiet_tenant_is_served_while_the_limit_moves() {
    for load in [0.02, 0.1, 0.2] {
        serve_quiet_tenant(load, &LimitSettings::default(), 0.999);
    }
    // In the first second, the limit is so low that this load is near a fair share.
    serve_quiet_tenant(0.3, &LimitSettings::default(), 0.998);
}

/// A class leaves at most three eighths of the limit to better requests. A critical tenant and a quiet one with half of the
/// capacity fill those places now and then, and the last of them are for the critical tenant alone. A limit that moves adds
/// the first second and the lower levels.
#[test]
fn quiet_tenant_is_served_next_to_a_better_class() {
    let (fixed, moving) = (LimitSettings::fixed(32), LimitSettings::default());
    for (limit, critical_load, least) in [
        (&fixed, 0.1, 0.999),
        (&fixed, 0.2, 0.998),
        (&fixed, 0.4, 0.994),
        (&moving, 0.1, 0.995),
        (&moving, 0.2, 0.99),
        (&moving, 0.4, 0.985),
    ] {
        for loud in [1.0, 3.0, 10.0] {
            let (mut answered, mut critical_answered) = (0.0, 0.0);
            for seed in 1..=3 {
                let mut critical = tenant(critical_load, |_| 3);
                critical.class = Priority::Critical;
                let tenants = [tenant(0.1, |_| 1), tenant(loud, |_| 2), critical];
                let served = serve(&gate_with(limit.clone()), &tenants, seed);
                answered += served[0].answered / 3.0;
                critical_answered += served[2].answered / 3.0;
            }
            let case = format!("critical {critical_load}, loud {loud}: {answered:.5}");
            assert!(answered >= least, "{case} answered");
            assert!(critical_answered >= 0.999, "{case}, {critical_answered:.5}");
        }
    }
}

#[test]
fn equal_tenants_get_equal_shares() {
    let keys: [fn(&mut fastrand::Rng) -> u64; 3] = [|_| 1, |_| 2, |_| 3];
    let answered = simulate(&gate(32), &keys.map(|key| tenant(2.0, key)));
    for share in &answered {
        assert!((0.12..0.21).contains(share), "{answered:?}");
    }
}

#[test]
fn heavy_tenant_gives_way_to_a_lighter_one() {
    // Half of the capacity is a fair share.
    let answered = simulate(&gate(32), &[tenant(0.4, |_| 1), tenant(5.0, |_| 2)]);
    assert!(answered[0] >= 0.97, "{answered:?}");
}

#[test]
fn made_up_keys_gain_nothing() {
    let gate = gate(32);
    let answered = simulate(
        &gate,
        &[
            tenant(0.1, |_| 1),
            tenant(0.1, |_| 2),
            tenant(10.0, |random| random.u64(3..)),
        ],
    );
    assert!(answered[0] >= 0.999 && answered[1] >= 0.999, "{answered:?}");
    assert!(gate.lock().unwrap().shares.tracked() <= 2);
}

#[test]
fn memory_of_shares_is_bounded() {
    let gate = gate(32);
    simulate(&gate, &[tenant(10.0, |random| random.u64(..5_000))]);
    assert!(gate.lock().unwrap().shares.tracked() <= 1_000);
}

#[test]
fn critical_requests_are_answered_under_overload() {
    let class = |load, class| Tenant {
        load,
        class,
        key: |_| 1,
    };
    let answered = simulate(
        &gate(32),
        &[
            class(0.3, Priority::Critical),
            class(0.3, Priority::High),
            class(2.0, Priority::Normal),
            class(5.0, Priority::Background),
        ],
    );
    assert!(answered[0] >= 0.998, "{answered:?}");
    assert!(answered[1] >= 0.98, "{answered:?}");
    assert!(answered[3] <= 0.01, "{answered:?}");
}

#[test]
fn critical_requests_are_answered_while_the_limit_moves() {
    let class = |load, class| Tenant {
        load,
        class,
        key: |random| random.u64(..50),
    };
    for (load, least) in [(0.1, 0.999), (0.3, 0.999), (0.6, 0.998), (0.7, 0.995)] {
        let (mut answered, mut goodput) = (0.0, 0.0);
        for seed in 1..=3 {
            let gate = gate_with(LimitSettings::default());
            let classes = [
                class(load, Priority::Critical),
                class(5.0, Priority::Normal),
            ];
            let served = serve(&gate, &classes, seed);
            answered += served[0].answered / 3.0;
            goodput += (served[0].answered * load + served[1].answered * 5.0) / 3.0;
        }
        assert!(answered >= least, "load {load}: {answered:.5} answered");
        assert!(goodput >= 0.95, "load {load}: goodput {goodput:.2}");
    }
}
