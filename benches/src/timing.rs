//! The clock of the benchmarks, and the timing of work that takes nanoseconds.

use std::error::Error;
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

/// Runs `work` on batches of `items` until it took `span`, and returns its nanoseconds per item.
///
/// Making batches ready is not counted. They should be small enough to stay in the first cache, as a request's key does,
/// and large enough for two readings of the clock not to weigh.
pub(crate) fn per_item<B>(
    items: usize,
    span: Duration,
    mut ready: impl FnMut() -> B,
    mut work: impl FnMut(B),
) -> f64 {
    let (mut spent, mut batches) = (Duration::ZERO, 0_u32);
    while spent < span {
        let batch = ready();
        let began = now();
        work(batch);
        spent += now() - began;
        batches += 1;
    }
    spent.as_secs_f64() * 1e9 / (f64::from(batches) * items as f64)
}

/// Does what [`per_item`] does, by the median of the batches: those in which another process ran do not weigh.
pub(crate) fn median_per_item<B>(
    items: usize,
    span: Duration,
    mut ready: impl FnMut() -> B,
    mut work: impl FnMut(B),
) -> f64 {
    let (mut spent, mut batches) = (Duration::ZERO, Vec::new());
    while spent < span {
        let batch = ready();
        let began = now();
        work(batch);
        let taken = now() - began;
        spent += taken;
        batches.push(taken.as_secs_f64() * 1e9 / items as f64);
    }
    median(&mut batches)
}

/// Returns the seconds for which this thread has run, as Linux counts them: on a busy machine they stay the same.
#[expect(
    clippy::disallowed_methods,
    reason = "Linux counts what a thread has run when it waits"
)]
pub(crate) fn thread_seconds() -> Result<f64, Box<dyn Error>> {
    std::thread::sleep(Duration::from_nanos(1));
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = counts.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}
