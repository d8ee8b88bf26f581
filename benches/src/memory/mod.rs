//! `MemoryStore` next to other limiters in memory, on one thread (`memory`) and on several (`threads`).

pub(crate) mod contenders;

use std::cell::RefCell;
use std::error::Error;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tower_quota_core::MemoryStore;

use self::contenders::{
    Contender, GOVERNOR, Keyed, LIMITADOR, Made, QUOTA, TOWER_QUOTA, Visit, governor,
    governor_with_everyone, limitador, limiter, pool, three, with_everyone,
};
use crate::report::{Figure, Report, median_ratio};
use crate::timing::{in_a_process, now, per_item, resident};
use crate::traffic::{Draws, Traffic};

const MILLION: u32 = 1_000_000;
/// Keys of the cases of first requests: half of the default capacity, so that no table is full.
const NEW: u32 = 500_000;
/// Keys that are prepared at a time.
const BATCH: usize = 512;
const THREADS: [u64; 5] = [1, 2, 4, 8, 16];

/// Limiters by name.
type Contenders<K> = Vec<(&'static str, Made<K>)>;

/// The requests of a case.
#[derive(Clone, Copy)]
struct Load {
    limits: usize,
    traffic: Traffic,
    visit: Visit,
}

/// The length and number of rounds.
#[derive(Clone, Copy)]
struct Pace {
    rounds: u32,
    span: Duration,
}

const fn pace(quick: bool) -> Pace {
    let (rounds, millis) = if quick { (5, 10) } else { (15, 50) };
    Pace {
        rounds,
        span: Duration::from_millis(millis),
    }
}

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    let (mut report, pace) = (Report::default(), pace(quick));
    let (some, many) = (Traffic::Uniform(10_000), Traffic::Uniform(MILLION));
    for (limits, group) in [(1, "memory/1-limit"), (3, "memory/3-limits")] {
        for (case, traffic, visit) in [
            ("hot", Traffic::Hot, Visit::Used),
            ("10k", some, Visit::Used),
            ("10k-refilled", some, Visit::Refilled),
            ("1m", many, Visit::Used),
            ("refused", some, Visit::Refused),
        ] {
            let load = Load {
                limits,
                traffic,
                visit,
            };
            one_case::<u64>(&format!("{group}/{case}"), load, pace, &mut report)?;
            if ["10k", "1m"].contains(&case) {
                one_case::<String>(&format!("{group}/{case}/text"), load, pace, &mut report)?;
            }
        }
        let case = format!("{group}/new");
        compare(&case, &first_requests(limits, pace.rounds)?, &mut report);
    }
    for (case, traffic) in [("hot", Traffic::Hot), ("10k", some), ("1m", many)] {
        let load = Load {
            limits: 2,
            traffic,
            visit: Visit::Used,
        };
        let all = client_and_everyone(traffic.keys());
        let case = format!("memory/client-and-everyone/{case}");
        compare(&case, &rounds(&all, load, pace)?, &mut report);
    }
    for (limits, key) in [
        ("1", "number"),
        ("1", "text"),
        ("3", "number"),
        ("3", "text"),
    ] {
        let case = format!("memory/bytes/{limits}-limits/{key}");
        let mut figures = Vec::new();
        for contender in [TOWER_QUOTA, GOVERNOR, QUOTA] {
            let bytes = in_a_process(&["memory-worker", contender, key, limits])?[0];
            report.row(&case, contender, [("bytes", bytes)]);
            figures.push(bytes);
        }
        report.ratio(case, figures[1] / figures[0]);
    }
    Ok(report)
}

/// Measures a case, and compares tower-quota with its peers.
fn one_case<K: Keyed>(
    case: &str,
    load: Load,
    pace: Pace,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let mut names = vec![TOWER_QUOTA, GOVERNOR, QUOTA];
    // With more keys, limitador needs gigabytes and minutes. Its windows are never full again within a run.
    if load.traffic.keys() <= 10_000 && load.visit == Visit::Used {
        names.push(LIMITADOR);
    }
    let mut all = Vec::new();
    // tower-quota is filled last, so that no bucket of it is full again before the rounds are over.
    for name in names.into_iter().rev() {
        all.insert(0, (name, made::<K>(name, load, load.traffic.keys())?));
    }
    compare(case, &rounds(&all, load, pace)?, report);
    Ok(())
}

/// Makes a limiter that has counted every key once.
fn made<K: Keyed>(name: &str, load: Load, keys: u32) -> Result<Made<K>, Box<dyn Error>> {
    let contender = empty(name, load, keys)?;
    fill(&*contender, keys);
    Ok(contender)
}

fn empty<K: Keyed>(name: &str, load: Load, keys: u32) -> Result<Made<K>, Box<dyn Error>> {
    let allowances = load.visit.allowances(load.limits);
    let capacity = MemoryStore::DEFAULT_CAPACITY.max(keys as usize);
    match name {
        TOWER_QUOTA if load.limits == 1 => Ok(limiter(&allowances[0], capacity)),
        TOWER_QUOTA => Ok(three(load.visit, capacity)),
        GOVERNOR => Ok(governor(allowances)),
        QUOTA => Ok(pool(allowances)),
        LIMITADOR => limitador(allowances, keys),
        _ => Err(format!("there is no contender {name}").into()),
    }
}

fn client_and_everyone(keys: u32) -> Contenders<u64> {
    let all = vec![
        (TOWER_QUOTA, with_everyone()),
        (GOVERNOR, governor_with_everyone()),
    ];
    all.iter()
        .for_each(|(_, contender)| fill(&**contender, keys));
    all
}

fn fill<K: Keyed>(contender: &dyn Contender<K>, keys: u32) {
    let mut key = K::default();
    for number in 0..keys {
        key.become_number(number);
        contender.admits(&key);
    }
}

/// The nanoseconds of a check in each round, by contender.
type Rounds = Vec<(&'static str, Vec<f64>)>;

/// Reports the figures of a case, those of tower-quota first and those of governor second, and their ratio.
fn compare(case: &str, rounds: &Rounds, report: &mut Report) {
    for (name, figures) in rounds {
        report.row(case, name, [("ns", Figure::of(figures))]);
    }
    report.ratio(case, median_ratio(&rounds[1].1, &rounds[0].1));
}

/// Measures contenders in turns. A round that does not count comes first.
///
/// # Errors
/// When a contender gives an answer that the case excludes. It would do less work than the others.
fn rounds<K: Keyed>(
    contenders: &Contenders<K>,
    load: Load,
    pace: Pace,
) -> Result<Rounds, Box<dyn Error>> {
    let mut all: Rounds = contenders.iter().map(|(name, _)| (*name, vec![])).collect();
    let mut trace = load.traffic.trace(1);
    for round in 0..=pace.rounds {
        // Each round has a hot key of its own, because no burst lasts for ever.
        if load.traffic == Traffic::Hot {
            trace = load.traffic.trace(1_000 + u64::from(round));
        }
        for ((name, contender), (_, figures)) in contenders.iter().zip(&mut all) {
            let keys = RefCell::new(vec![K::default(); BATCH]);
            let expected = if load.visit == Visit::Refused {
                0
            } else {
                BATCH
            };
            let mut is_expected = true;
            let prepare = || {
                let mut keys = keys.borrow_mut();
                keys.iter_mut()
                    .for_each(|key| key.become_number(trace.next()));
            };
            let nanoseconds = per_item(BATCH, pace.span, prepare, |()| {
                is_expected &= contender.admitted(&keys.borrow()) == expected;
            });
            if !is_expected {
                return Err(format!("{name}: an answer that the case excludes").into());
            }
            if round > 0 {
                figures.push(nanoseconds);
            }
        }
    }
    Ok(all)
}

/// Measures the first request of each key. Each round fills new limiters, so their growth counts too.
fn first_requests(limits: usize, rounds: u32) -> Result<Rounds, Box<dyn Error>> {
    let load = Load {
        limits,
        traffic: Traffic::Uniform(NEW),
        visit: Visit::Used,
    };
    let mut all: Rounds = [TOWER_QUOTA, GOVERNOR, QUOTA]
        .map(|name| (name, vec![]))
        .into();
    for round in 0..=rounds {
        for (name, figures) in &mut all {
            let contender = empty::<u64>(name, load, NEW)?;
            let began = now();
            fill(&*contender, NEW);
            let spent = now() - began;
            if round > 0 {
                figures.push(spent.as_secs_f64() * 1e9 / f64::from(NEW));
            }
        }
    }
    Ok(all)
}

/// Prints the bytes of memory that a contender takes for each of a million keys.
pub(crate) fn worker(contender: &str, key: &str, limits: usize) -> Result<(), Box<dyn Error>> {
    let load = Load {
        limits,
        traffic: Traffic::Uniform(MILLION),
        visit: Visit::Used,
    };
    let grown = if key == "text" {
        grown::<String>(contender, load)?
    } else {
        grown::<u64>(contender, load)?
    };
    println!("{}", grown / f64::from(MILLION));
    Ok(())
}

fn grown<K: Keyed>(contender: &str, load: Load) -> Result<f64, Box<dyn Error>> {
    let before = resident();
    let _filled = made::<K>(contender, load, MILLION)?;
    Ok(resident() - before)
}

/// Measures the checks a second of all threads together.
pub(crate) fn threads(quick: bool) -> Result<Report, Box<dyn Error>> {
    let turns = if quick { 3 } else { 15 };
    let mut report = Report::default();
    for (group, keys, limits) in [
        ("hot", 1, 1),
        ("10k", 10_000, 1),
        ("client-and-everyone", 10_000, 2),
    ] {
        let load = Load {
            limits,
            traffic: Traffic::Uniform(keys),
            visit: Visit::Used,
        };
        let all = if limits == 1 {
            vec![
                (TOWER_QUOTA, made(TOWER_QUOTA, load, keys)?),
                (GOVERNOR, made(GOVERNOR, load, keys)?),
            ]
        } else {
            client_and_everyone(keys)
        };
        for threads in THREADS {
            let mut rates = vec![vec![]; all.len()];
            for turn in 0..=turns {
                for ((_, contender), rates) in all.iter().zip(&mut rates) {
                    // Each turn has a hot key of its own, because no burst lasts for ever.
                    let first = if keys == 1 { turn * 100 + threads } else { 0 };
                    let key = |draw: u64| first + draw % u64::from(keys);
                    let rate = rate_of(&**contender, threads, key);
                    if turn > 0 {
                        rates.push(rate / 1e6);
                    }
                }
            }
            let case = format!("threads/{group}/{threads}");
            for ((name, _), rates) in all.iter().zip(&rates) {
                report.row(&case, name, [("M checks/s", Figure::of(rates))]);
            }
            report.ratio(case, median_ratio(&rates[0], &rates[1]));
        }
    }
    Ok(report)
}

/// Returns the checks a second of threads that check at the same time, for a tenth of a second.
#[expect(clippy::disallowed_methods, reason = "the length of a measurement")]
fn rate_of(contender: &dyn Contender<u64>, threads: u64, key: impl Fn(u64) -> u64 + Sync) -> f64 {
    let (start, stop) = (Barrier::new(threads as usize + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let (start, stop, key) = (&start, &stop, &key);
        let check = move |thread: u64| {
            let (mut draws, mut checks) = (Draws::new(thread), 0_u64);
            start.wait();
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..BATCH {
                    let key = key(draws.next());
                    checks += u64::from(contender.admits(std::hint::black_box(&key)));
                }
            }
            checks
        };
        let threads: Vec<_> = (1..=threads)
            .map(|thread| scope.spawn(move || check(thread)))
            .collect();
        start.wait();
        let began = now();
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        let checks = threads.into_iter().filter_map(|thread| thread.join().ok());
        checks.sum::<u64>() as f64 / (now() - began).as_secs_f64()
    })
}
