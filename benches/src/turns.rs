//! The harness: contenders run in turns, A, B, C, A, B, C, and of many short rounds the best one counts.
//!
//! Another program can only make a round slower. So the best round comes close to the same figure on a busy machine and
//! on a quiet one, and a machine that slows down slows all contenders.

use std::env;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Outcome;

/// Does one decision.
pub(crate) type Step = Box<dyn FnMut()>;
/// Measures one round of a contender.
pub(crate) type Round<'a, T> = Box<dyn FnMut() -> Outcome<T> + 'a>;

/// Runs each contender this many times, in turns. Returns the rounds of each. A turn that does not count comes first.
pub(crate) fn in_turns<T>(
    rounds: usize,
    mut contenders: Vec<Round<'_, T>>,
) -> Outcome<Vec<Vec<T>>> {
    let mut all: Vec<Vec<T>> = contenders.iter().map(|_| Vec::new()).collect();
    for turn in 0..=rounds {
        for (contender, figures) in contenders.iter_mut().zip(&mut all) {
            let figure = contender()?;
            if turn > 0 {
                figures.push(figure);
            }
        }
    }
    Ok(all)
}

/// Returns a round of this many steps, whose figure is the nanoseconds of a step.
pub(crate) fn steps<'a>(count: u32, mut step: Step) -> Round<'a, f64> {
    Box::new(move || {
        let began = now();
        counted(count, &mut step);
        Ok(nanoseconds_of(began.elapsed(), count))
    })
}

/// Runs a fixed number of steps. `scripts/instructions` counts what happens within the function of this name.
#[inline(never)]
pub(crate) fn counted(count: u32, step: &mut dyn FnMut()) {
    (0..count).for_each(|_| step());
}

pub(crate) fn nanoseconds_of(spent: Duration, count: u32) -> f64 {
    spent.as_secs_f64() * 1e9 / f64::from(count)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the seconds for which this thread has run, as Linux counts them, for rounds that are too long to pass without
/// an interruption. They do not grow while other programs run.
#[expect(
    clippy::disallowed_methods,
    reason = "Linux counts what a thread has run when it waits"
)]
pub(crate) fn thread_seconds() -> Outcome<f64> {
    std::thread::sleep(Duration::from_nanos(1));
    let counts = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = counts.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// Waits for a part of a measurement.
#[expect(clippy::disallowed_methods, reason = "the length of a measurement")]
pub(crate) async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Runs this program with these arguments, and reads the numbers that it prints.
///
/// Memory is measured in a process of its own, because a process rarely gives memory back to the system.
pub(crate) fn in_a_process(arguments: &[&str]) -> Outcome<Vec<f64>> {
    let output = Command::new(env::current_exe()?).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.split_whitespace()
        .map(|figure| Ok(figure.parse()?))
        .collect()
}

/// Returns the bytes of this process in memory: now by `VmRSS:`, at most by `VmHWM:`.
pub(crate) fn memory(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.unwrap_or_default() * 1_024.0
}
