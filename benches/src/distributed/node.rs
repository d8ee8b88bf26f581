//! One instance: sends requests at their planned instants, whether or not earlier requests were answered.

use std::error::Error;
use std::fs;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use clap::Args;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tower_quota_core::{Clock, MonotonicClock};

use super::contenders::connect;
use super::decide::Decide;
use super::tally::Tally;
use crate::timing::now;

/// A request fails if its answer takes longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The arguments of an instance.
#[derive(Args, Debug)]
pub(crate) struct Node {
    url: String,
    contender: String,
    /// The instant of the first request, in microseconds of the machine's clock.
    first: u64,
    /// The microseconds between two requests.
    every: u64,
    requests: u64,
}

/// Connects, sends the requests, and prints the tally as JSON.
pub(crate) fn run(node: &Node) -> Result<(), Box<dyn Error>> {
    // Some systems end a sleep 50 us late to save power, and keep to it where they permit no less.
    let _ = fs::write("/proc/self/timerslack_ns", "1000");
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let decide = runtime.block_on(connect(&node.contender, &node.url))?;
    let tally = offer(&runtime, &decide, node)?;
    println!("{}", serde_json::to_string(&tally)?);
    Ok(())
}

/// Polls each request where it is sent, as a handler does, and spawns a task only if the request has to wait.
fn offer(runtime: &Runtime, decide: &Decide, node: &Node) -> Result<Tally, JoinError> {
    let _entered = runtime.enter();
    let clock = MonotonicClock::new();
    let (mut tally, mut waiting) = (Tally::default(), JoinSet::new());
    let ahead = node.first.saturating_sub(clock.now().as_micros());
    let first = now() + Duration::from_micros(ahead);
    for request in 0..node.requests {
        let planned = first + Duration::from_micros(node.every * request);
        #[expect(clippy::disallowed_methods, reason = "the plan is in real time")]
        thread::sleep(planned.saturating_duration_since(now()));
        let mut decided = decide();
        let mut context = Context::from_waker(Waker::noop());
        match decided.as_mut().poll(&mut context) {
            Poll::Ready(answer) => tally.count(answer, now() - planned),
            Poll::Pending => {
                waiting.spawn(async move {
                    let answer = timeout(PATIENCE, decided).await.unwrap_or(None);
                    (answer, now() - planned)
                });
            }
        }
        while let Some(answered) = waiting.try_join_next() {
            let (answer, latency) = answered?;
            tally.count(answer, latency);
        }
    }
    for (answer, latency) in runtime.block_on(waiting.join_all()) {
        tally.count(answer, latency);
    }
    Ok(tally)
}
