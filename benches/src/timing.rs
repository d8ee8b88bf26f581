//! The clock of the benchmarks, the timing of work that takes nanoseconds, and measurements in a process of their own.

use std::env;
use std::error::Error;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::report::median;

/// Does one decision.
pub(crate) type Step = Box<dyn FnMut()>;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits for a part of a measurement.
#[expect(clippy::disallowed_methods, reason = "the length of a measurement")]
pub(crate) async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Runs `work` on batches of `items` until it took `span`, and returns the nanoseconds of an item.
///
/// The time to prepare a batch does not count. A batch should be small enough for the first cache, as the key of a request
/// is, and large enough to outweigh two readings of the clock. The result is the median of the batches, so a batch in
/// which another process ran has no weight.
pub(crate) fn per_item<B>(
    items: usize,
    span: Duration,
    mut prepare: impl FnMut() -> B,
    mut work: impl FnMut(B),
) -> f64 {
    let (mut spent, mut batches) = (Duration::ZERO, Vec::new());
    while spent < span {
        let batch = prepare();
        let began = now();
        work(batch);
        let taken = now() - began;
        spent += taken;
        batches.push(taken.as_secs_f64() * 1e9 / items as f64);
    }
    median(&batches)
}

/// Returns the seconds for which this thread has run, as Linux counts them. They do not grow while other processes run.
#[expect(
    clippy::disallowed_methods,
    reason = "Linux counts what a thread has run when it waits"
)]
pub(crate) fn thread_seconds() -> Result<f64, Box<dyn Error>> {
    std::thread::sleep(Duration::from_nanos(1));
    let counts = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = counts.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// Runs this program with these arguments, and reads the numbers that it prints.
///
/// Memory is measured in a process of its own, because a process rarely gives memory back to the system. The process has a
/// high priority if the system permits it, because a thread that loses its processor finds cold caches.
pub(crate) fn in_a_process(arguments: &[&str]) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut command = Command::new("nice");
    command
        .args(["-n", "-20"])
        .arg(env::current_exe()?)
        .args(arguments);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    text.split_whitespace()
        .map(|figure| Ok(figure.parse()?))
        .collect()
}

/// Returns the bytes of this process that are in memory.
pub(crate) fn resident() -> f64 {
    status("VmRSS:")
}

/// Returns the peak of the bytes of this process in memory.
pub(crate) fn most_resident() -> f64 {
    status("VmHWM:")
}

/// Returns the bytes in a line of `/proc/self/status`, which counts in KiB.
fn status(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or(0.0)
        * 1_024.0
}
