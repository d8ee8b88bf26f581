//! Rounds of checks, on one thread or on several at once.

use std::cell::RefCell;
use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use super::contender::{Contender, Keyed};
use crate::timing::per_item;
use crate::traffic::{Trace, Traffic};

/// Keys that are made ready at a time.
const BATCH: usize = 512;

/// How long and how often.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) rounds: usize,
    pub(super) span: Duration,
}

/// Those who are in it, by name.
pub(super) type Contenders<K> = Vec<Named<K>>;
type Named<K> = (&'static str, Box<dyn Contender<K>>);

/// Nanoseconds per check of each contender, in each round. Contenders take turns, and a round that is not counted comes
/// first.
///
/// # Errors
/// When a contender refuses: it would do less work than the others.
pub(super) fn rounds<K: Keyed>(
    contenders: &[Named<K>],
    traffic: Traffic,
    threads: u64,
    pace: Pace,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let mut traces: Vec<_> = (1..=threads).map(|seed| traffic.trace(seed)).collect();
    let mut all = vec![Vec::new(); contenders.len()];
    for round in 0..=pace.rounds {
        // A hot key of its own for each round of each case, and the same for all threads: no burst lasts for ever.
        if traffic == Traffic::Hot {
            traces.fill_with(|| traffic.trace(threads * 1_000 + round as u64));
        }
        for ((name, contender), figures) in contenders.iter().zip(&mut all) {
            let checked = together(&mut traces, |trace| one_round(&**contender, trace, pace.span));
            let nanoseconds: Option<Vec<f64>> = checked.into_iter().collect();
            let nanoseconds = nanoseconds.ok_or_else(|| format!("{name} refuses, and none should"))?;
            if round > 0 {
                figures.push(nanoseconds.iter().sum::<f64>() / nanoseconds.len() as f64);
            }
        }
    }
    Ok(all)
}

/// Asks once for each key there is.
pub(super) fn fill<K: Keyed>(contender: &dyn Contender<K>, keys: u32) {
    let mut key = K::default();
    for number in 0..keys {
        key.become_number(number);
        contender.admits(&key);
    }
}

/// A round on every thread, begun at the same moment.
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
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// Nanoseconds per check, after a quarter of a round to warm the caches. None if one was refused.
fn one_round<K: Keyed>(contender: &dyn Contender<K>, trace: &mut Trace, span: Duration) -> Option<f64> {
    let keys = RefCell::new(vec![K::default(); BATCH]);
    let mut refused = 0;
    let mut run = |span| {
        let ready = || keys.borrow_mut().iter_mut().for_each(|key| key.become_number(trace.next()));
        per_item(BATCH, span, ready, |()| refused += BATCH - contender.admitted(&keys.borrow()))
    };
    run(span / 4);
    let nanoseconds = run(span);
    (refused == 0).then_some(nanoseconds)
}
