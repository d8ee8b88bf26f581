//! The rate at which the remote gets requests, across a pause that the remote has demanded.

use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_quota::{Quota, ThrottleLayer};

use crate::fixture::{Order, Printer, SECOND, TICK, limiter, now, pass, pause};

const CALLS: usize = 250;
const RATE: u32 = 50;

/// Returns the times of the calls at the remote, which demands a pause of two seconds at the 50th call.
///
/// All callers begin at once, and a refused caller tries again at the time of the refusal.
async fn arrivals(quota: Quota) -> Vec<Duration> {
    let printer = Printer::default();
    let service = ThrottleLayer::global(limiter(quota))
        .pushback(pause)
        .layer(printer.clone());
    let start = now();
    let mut callers = Vec::new();
    for number in 1..=CALLS {
        let order = match number {
            50 => Order::of("ann").pushes_back(SECOND * 2),
            _ => Order::of("ann"),
        };
        let service = service.clone();
        callers.push(tokio::spawn(async move {
            while let Err(error) = service.clone().oneshot(order).await {
                let retry = error.throttled().unwrap().retry_after().unwrap();
                pass(retry).await;
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let printed = printer.printed();
    assert_eq!(printed.len(), CALLS);
    printed.iter().map(|(_, at)| *at - start).collect()
}

/// Asserts that no span has more calls than the burst, plus the rate times the span.
async fn assert_rate(algorithm: &str, quota: Quota, burst: u32) {
    let arrivals = arrivals(quota).await;
    let resumed = arrivals.windows(2).any(|pair| pair[1] - pair[0] >= SECOND);
    assert!(
        resumed,
        "{algorithm}: the remote got calls during the pause"
    );
    for (first, from) in arrivals.iter().enumerate() {
        for (calls, to) in (1..).zip(&arrivals[first..]) {
            let span = *to - *from;
            assert!(
                SECOND * calls <= SECOND * burst + (span + TICK) * RATE,
                "{algorithm}: {calls} calls within {span:?} after {from:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn token_bucket_keeps_rate_after_pause() {
    assert_rate("burst of 1", Quota::per_second(50).burst(1), 1).await;
    assert_rate("burst of 50", Quota::per_second(50), 50).await;
}

#[tokio::test(start_paused = true)]
async fn gcra_keeps_rate_after_pause() {
    assert_rate("burst of 1", Quota::per_second(50).burst(1).gcra(), 1).await;
    assert_rate("burst of 50", Quota::per_second(50).gcra(), 50).await;
}

#[tokio::test(start_paused = true)]
async fn leaky_bucket_keeps_rate_after_pause() {
    assert_rate("leaky bucket", Quota::per_second(50).leaky_bucket(), 1).await;
}

#[tokio::test(start_paused = true)]
async fn sliding_windows_keep_rate_after_pause() {
    assert_rate("window", Quota::per_second(50).sliding_window(), 50).await;
    assert_rate("log", Quota::per_second(50).sliding_log(), 50).await;
}

/// Two fixed windows may have their calls next to the border between the windows.
#[tokio::test(start_paused = true)]
async fn fixed_window_keeps_rate_after_pause() {
    assert_rate("fixed window", Quota::per_second(50).fixed_window(), 100).await;
}
