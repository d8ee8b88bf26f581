//! `MemoryStore` next to other limiters in memory, on one thread (`memory`) and on several (`threads`).

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tower_quota_core::MemoryStore;

use crate::Outcome;
use crate::limiters::{
    Allowance, Check, Keyed, REFILLED, REFUSED, USED, governor, governor_with_everyone, limitador,
    quota, tower_quota, tower_quota_with_everyone,
};
use crate::report::{Cell, Report, Table};
use crate::traffic::Draws;
use crate::turns::{Round, in_a_process, in_turns, memory, nanoseconds_of, now, thread_seconds};

const CONTENDERS: [&str; 4] = ["tower-quota", "governor", "quota", "limitador"];
const MILLION: u64 = 1_000_000;
/// Keys of the rows of first requests: half of the default capacity, so that no table is full.
const NEW: u64 = 500_000;
/// Keys that are prepared at a time, outside of the measured time. They fit into the first cache, as the key of a request.
const BATCH: u32 = 512;
/// The measured batches of a round.
const BATCHES: u32 = 12;
/// The batches that fill the caches first.
const WARM_UP: u32 = 20;

/// A row of the table: its name, the limits and the number of clients.
type Case = (&'static str, &'static [Allowance], u64);

const NUMBERS: [Case; 9] = [
    ("one limit, hot client", USED.split_at(1).0, 1),
    ("10,000 clients", USED.split_at(1).0, 10_000),
    ("10,000, full again", REFILLED.split_at(1).0, 10_000),
    ("a million", USED.split_at(1).0, MILLION),
    ("refused clients", REFUSED.split_at(1).0, 10_000),
    ("three limits, hot client", USED.split_at(3).0, 1),
    ("three limits, 10,000 clients", USED.split_at(3).0, 10_000),
    ("three limits, a million", USED.split_at(3).0, MILLION),
    ("three limits, refused clients", &REFUSED, 10_000),
];
const TEXTS: [Case; 4] = [
    ("10,000, text keys", USED.split_at(1).0, 10_000),
    ("a million, text keys", USED.split_at(1).0, MILLION),
    (
        "three limits, 10,000, text keys",
        USED.split_at(3).0,
        10_000,
    ),
    (
        "three limits, a million, text keys",
        USED.split_at(3).0,
        MILLION,
    ),
];

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let rounds = if quick { 20 } else { 100 };
    let mut table = Table::new("ns of a check", &CONTENDERS, rounds).next_to("governor");
    for case in &NUMBERS {
        compare::<u64>(case, rounds, &mut table)?;
    }
    for case in &TEXTS {
        compare::<String>(case, rounds, &mut table)?;
    }
    for (name, keys) in [
        ("client and everyone, hot client", 1),
        ("client and everyone, 10,000 clients", 10_000),
        ("client and everyone, a million", MILLION),
    ] {
        let checks = client_and_everyone(keys);
        let contenders = checks.iter().map(|check| round(check, keys, true));
        let figures = in_turns(rounds, contenders.collect())?;
        table.row(name, figures.iter().map(|rounds| Cell::lowest(rounds)));
    }

    let rounds = if quick { 3 } else { 10 };
    let mut first = Table::new("ns of a first check", &CONTENDERS[..3], rounds).next_to("governor");
    for (name, limits) in [("one limit", 1), ("three limits", 3)] {
        // Each round fills new limiters, so the growth of their tables counts too.
        let contender = |contender| -> Round<'_, f64> {
            Box::new(move || {
                let check = empty::<u64>(contender, &USED[..limits], NEW)?;
                let began = thread_seconds()?;
                fill(&check, NEW);
                Ok((thread_seconds()? - began) * 1e9 / NEW as f64)
            })
        };
        let figures = in_turns(rounds, (0..3).map(contender).collect())?;
        first.row(name, figures.iter().map(|rounds| Cell::lowest(rounds)));
    }

    let mut bytes = Table::new("bytes of a client", &CONTENDERS[..3], 1).next_to("governor");
    for (name, limits, key) in [
        ("one limit, number", "1", "number"),
        ("one limit, 16 bytes of text", "1", "text"),
        ("three limits, number", "3", "number"),
        ("three limits, text", "3", "text"),
    ] {
        let mut cells = Vec::new();
        for contender in ["0", "1", "2"] {
            let bytes = in_a_process(&["memory-worker", contender, key, limits])?[0];
            cells.push(Some(bytes.into()));
        }
        bytes.row(name, cells);
    }
    Ok(Report::of([table, first, bytes]))
}

/// Adds a row that compares all contenders.
fn compare<K: Keyed>(&(name, limits, keys): &Case, rounds: usize, table: &mut Table) -> Outcome {
    let is_admitted = !name.contains("refused");
    let mut checks = Vec::new();
    for contender in 0..CONTENDERS.len() {
        // limitador needs gigabytes and minutes for more keys, and its windows are never full again within a run.
        if contender < 3 || keys <= 10_000 && is_admitted && !name.contains("again") {
            let check = empty::<K>(contender, limits, keys)?;
            fill(&check, keys);
            checks.push(check);
        }
    }
    let contenders = checks.iter().map(|check| round(check, keys, is_admitted));
    let figures = in_turns(rounds, contenders.collect())?;
    table.row(name, figures.iter().map(|rounds| Cell::lowest(rounds)));
    Ok(())
}

/// Returns a round of checks of random keys, which fails if an answer is not the expected one.
fn round<K: Keyed>(check: &Check<K>, keys: u64, is_admitted: bool) -> Round<'_, f64> {
    let (mut draws, mut batch) = (Draws::new(1), vec![K::default(); BATCH as usize]);
    Box::new(move || {
        let warm_up = if keys == 1 { 1 } else { WARM_UP };
        let (mut spent, mut expected) = (Duration::ZERO, true);
        for number in 0..warm_up + BATCHES {
            for key in &mut batch {
                key.become_number(draws.next() % keys);
            }
            let began = now();
            for key in &batch {
                expected &= check(black_box(key)) == is_admitted;
            }
            if number >= warm_up {
                spent += began.elapsed();
            }
        }
        if !expected {
            return Err("an answer that the case excludes".into());
        }
        Ok(nanoseconds_of(spent, BATCH * BATCHES))
    })
}

/// Creates a limiter by the position of its name.
fn empty<K: Keyed>(contender: usize, limits: &[Allowance], keys: u64) -> Outcome<Check<K>> {
    let capacity = MemoryStore::DEFAULT_CAPACITY.max(keys as usize);
    Ok(match contender {
        0 => tower_quota(limits, capacity),
        1 => governor(limits),
        2 => quota(limits),
        _ => limitador(limits, keys)?,
    })
}

fn client_and_everyone(keys: u64) -> [Check<u64>; 2] {
    let checks = [tower_quota_with_everyone(), governor_with_everyone()];
    checks.iter().for_each(|check| fill(check, keys));
    checks
}

/// Counts every key once.
fn fill<K: Keyed>(check: &Check<K>, keys: u64) {
    let mut key = K::default();
    for number in 0..keys {
        key.become_number(number);
        check(&key);
    }
}

/// Prints the bytes of memory that a contender takes for each of a million keys.
pub(crate) fn worker(contender: usize, key: &str, limits: usize) -> Outcome {
    fn grown<K: Keyed>(contender: usize, limits: usize) -> Outcome<f64> {
        let before = memory("VmRSS:");
        let check = empty::<K>(contender, &USED[..limits], MILLION)?;
        fill(&check, MILLION);
        Ok(memory("VmRSS:") - before)
    }
    let grown = match key {
        "text" => grown::<String>(contender, limits)?,
        _ => grown::<u64>(contender, limits)?,
    };
    println!("{}", grown / MILLION as f64);
    Ok(())
}

/// Measures the checks a second of all threads together.
pub(crate) fn threads(quick: bool) -> Outcome<Report> {
    let rounds = if quick { 5 } else { 40 };
    let mut table = Table::new("million checks/s", &CONTENDERS[..2], rounds).next_to("governor");
    for (name, keys, limits) in [
        ("hot client", 1, 1),
        ("10,000 clients", 10_000, 1),
        ("client and everyone", 10_000, 2),
    ] {
        let checks = match limits {
            1 => [
                tower_quota(&USED[..1], MemoryStore::DEFAULT_CAPACITY),
                governor(&USED[..1]),
            ],
            _ => client_and_everyone(keys),
        };
        for (threads, on) in [(1, "1 thread"), (2, "2 threads"), (16, "16 threads")] {
            let contender = |check| -> Round<'_, f64> {
                let mut turn = 0;
                Box::new(move || {
                    // Each turn has a hot key of its own, because no burst lasts for ever.
                    turn += u64::from(keys == 1);
                    Ok(rate_of(check, threads, |draw| turn + draw % keys) / 1e6)
                })
            };
            let figures = in_turns(rounds, checks.iter().map(contender).collect())?;
            let cells = figures.iter().map(|rounds| Cell::highest(rounds));
            table.row(format!("{name}, {on}"), cells);
        }
    }
    Ok(Report::of([table]))
}

/// Returns the checks a second of threads that check at the same time, for a twentieth of a second.
#[expect(clippy::disallowed_methods, reason = "the length of a measurement")]
fn rate_of(check: &Check<u64>, threads: u64, key: impl Fn(u64) -> u64 + Sync) -> f64 {
    let (start, stop) = (Barrier::new(threads as usize + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let (start, stop, key) = (&start, &stop, &key);
        let check = move |thread: u64| {
            let (mut draws, mut checks) = (Draws::new(thread), 0_u64);
            start.wait();
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..BATCH {
                    checks += u64::from(check(black_box(&key(draws.next()))));
                }
            }
            checks
        };
        let threads: Vec<_> = (1..=threads)
            .map(|thread| scope.spawn(move || check(thread)))
            .collect();
        start.wait();
        let began = now();
        thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        let checks = threads.into_iter().filter_map(|thread| thread.join().ok());
        checks.sum::<u64>() as f64 / began.elapsed().as_secs_f64()
    })
}
