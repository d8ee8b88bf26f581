//! The clock of the benchmarks, and the timing of work that takes nanoseconds.

use std::time::{Duration, Instant};

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
pub(crate) fn per_item<B>(items: usize, span: Duration, mut ready: impl FnMut() -> B, mut work: impl FnMut(B)) -> f64 {
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
