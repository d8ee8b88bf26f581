//! Rounds of checks, on one thread or on several at once.

use std::cell::RefCell;
use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::allowance::Visit;
use super::contender::Contender;
use super::entrants::{Entrant, Setup};
use super::keys::Keyed;
use crate::timing::{now, per_item};
use crate::traffic::{Trace, Traffic};

/// Keys that are made ready at a time.
const BATCH: usize = 512;

/// The length and number of rounds.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) rounds: usize,
    pub(super) span: Duration,
}

/// The requests of a case, and the number of threads that send them.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) traffic: Traffic,
    pub(super) visit: Visit,
    pub(super) threads: u64,
}

/// Limiters by name.
pub(super) type Contenders<K> = Vec<(&'static str, Box<dyn Contender<K>>)>;

/// Returns the nanoseconds per check of each contender in each round. Contenders take turns, and a round that is not
/// counted comes first.
///
/// # Errors
/// When a contender does not answer as the case wants: it would do less work than the others.
pub(super) fn rounds<K: Keyed>(
    contenders: &Contenders<K>,
    load: Load,
    pace: Pace,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let Load {
        traffic,
        visit,
        threads,
    } = load;
    let mut traces: Vec<_> = (1..=threads).map(|seed| traffic.trace(seed)).collect();
    let mut all = vec![Vec::new(); contenders.len()];
    for round in 0..=pace.rounds {
        // A hot key of its own for each round of each case, the same for all threads: no burst lasts for ever.
        if traffic == Traffic::Hot && visit == Visit::Used {
            traces.fill_with(|| traffic.trace(threads * 1_000 + round as u64));
        }
        for ((name, contender), figures) in contenders.iter().zip(&mut all) {
            let checked = together(&mut traces, |trace| {
                one_round(&**contender, trace, pace.span, visit)
            });
            let nanoseconds: Option<Vec<f64>> = checked.into_iter().collect();
            let nanoseconds =
                nanoseconds.ok_or_else(|| format!("{name} does not answer as the case wants"))?;
            let mean = nanoseconds.iter().sum::<f64>() / nanoseconds.len() as f64;
            // A unit takes a microsecond to come back.
            if visit == Visit::Refilled && mean * f64::from(traffic.keys()) < 1_000.0 {
                return Err(format!("{name} is asked again before a bucket is full").into());
            }
            if round > 0 {
                figures.push(mean);
            }
        }
    }
    Ok(all)
}

/// Returns the nanoseconds per first request of a key, in each round. Each round fills limiters anew, so that their
/// growth counts too. There is room for the keys: none is evicted.
pub(super) fn first_requests<K: Keyed>(
    entrants: &[Entrant<K>],
    setup: Setup,
    rounds: usize,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let mut all = vec![Vec::new(); entrants.len()];
    for round in 0..=rounds {
        for (Entrant { name, make }, figures) in entrants.iter().zip(&mut all) {
            let contender = make(setup)?;
            let (mut spent, mut admitted) = (Duration::ZERO, 0);
            let mut keys = vec![K::default(); BATCH];
            let mut numbers = 0..setup.keys.next_multiple_of(BATCH as u32);
            while !numbers.is_empty() {
                keys.iter_mut()
                    .zip(&mut numbers)
                    .for_each(|(key, number)| key.become_number(number));
                let began = now();
                admitted += contender.admitted(&keys);
                spent += now() - began;
            }
            if admitted != numbers.end as usize {
                return Err(format!("{name} refuses a first request").into());
            }
            if round > 0 {
                figures.push(spent.as_secs_f64() * 1e9 / f64::from(numbers.end));
            }
        }
    }
    Ok(all)
}

/// Asks once for each key.
pub(super) fn fill<K: Keyed>(contender: &dyn Contender<K>, keys: u32) {
    let mut key = K::default();
    for number in 0..keys {
        key.become_number(number);
        contender.admits(&key);
    }
}

/// Runs a round on every thread, begun at the same moment.
fn together<T: Send>(traces: &mut [Trace], round: impl Fn(&mut Trace) -> T + Sync) -> Vec<T> {
    if let [alone] = traces {
        return vec![round(alone)];
    }
    let start = Barrier::new(traces.len());
    thread::scope(|scope| {
        let threads: Vec<_> = traces
            .iter_mut()
            .map(|trace| {
                let (start, round) = (&start, &round);
                scope.spawn(move || {
                    start.wait();
                    round(trace)
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    })
}

/// Returns the nanoseconds per check, after a quarter of a round to warm the caches. None if an answer was not the one
/// that the case wants.
fn one_round<K: Keyed>(
    contender: &dyn Contender<K>,
    trace: &mut Trace,
    span: Duration,
    visit: Visit,
) -> Option<f64> {
    let keys = RefCell::new(vec![K::default(); BATCH]);
    let wanted = if visit == Visit::Refused { 0 } else { BATCH };
    let mut is_as_wanted = true;
    let mut run = |span| {
        let ready = || {
            keys.borrow_mut()
                .iter_mut()
                .for_each(|key| key.become_number(trace.next()))
        };
        per_item(BATCH, span, ready, |()| {
            is_as_wanted &= contender.admitted(&keys.borrow()) == wanted
        })
    };
    run(span / 4);
    let nanoseconds = run(span);
    is_as_wanted.then_some(nanoseconds)
}
