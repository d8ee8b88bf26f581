//! Offers a load to a path: every request has a planned instant, whether or not earlier ones were answered.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tower_quota_core::{Clock, MonotonicClock};

use super::latencies::Latencies;
use super::path::{Answer, Path};
use super::plan::Plan;
use crate::timing::now;

/// An answer that takes longer counts as none.
const PATIENCE: Duration = Duration::from_secs(3);

/// The answers of one process to its plan.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Microseconds of the machine's clock at the first request.
    pub(super) began: u64,
    /// The same at the last answer.
    pub(super) ended: u64,
    /// Requests and admitted ones, for each client.
    pub(super) clients: Vec<(u64, u64)>,
    /// Requests without a decision.
    pub(super) failed: u64,
    /// From the planned instant to the answer.
    pub(super) latencies: Latencies,
    /// From the planned instant to the request: the delay of the process that asks.
    pub(super) delays: Latencies,
    /// Units charged and lost, as far as the path knows.
    pub(super) lost: u64,
    /// Seconds of CPU that the process has used.
    pub(super) cpu: f64,
}

impl Tally {
    /// Creates the tally of a plan that begins now, with this many clients.
    pub(super) fn new(began: u64, clients: u32) -> Self {
        Self {
            began,
            ended: began,
            clients: vec![(0, 0); clients as usize],
            failed: 0,
            latencies: Latencies::new(),
            delays: Latencies::new(),
            lost: 0,
            cpu: 0.0,
        }
    }
}

/// A tally that several tasks write to.
#[derive(Clone)]
struct Shared {
    tally: Arc<Mutex<Tally>>,
    clock: MonotonicClock,
    /// Each admitted request is written out at once: a killed process reports nothing else.
    is_loud: bool,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn count(&self, client: u32, answer: Answer, latency: Duration) {
        if self.is_loud && answer == Answer::Admitted {
            // The parent reads it, or has failed.
            let _ = io::stdout()
                .write_all(b"+")
                .and_then(|()| io::stdout().flush());
        }
        let ended = self.clock.now().as_micros();
        self.change(|tally| {
            tally.ended = tally.ended.max(ended);
            let (asked, admitted) = &mut tally.clients[client as usize];
            *asked += 1;
            *admitted += u64::from(answer == Answer::Admitted);
            tally.failed += u64::from(answer == Answer::Failed);
            tally.latencies.add(latency);
        });
    }
}

/// Sends the requests of a plan at their instants, and counts the answers.
///
/// A request is polled where it is sent, as a handler does it, and becomes a task only if it has to wait.
pub(super) fn offer<P: Path>(runtime: &Runtime, path: &P, plan: &Plan, is_loud: bool) -> Tally {
    let _entered = runtime.enter();
    let clock = MonotonicClock::new();
    let tally = Tally::new(clock.now().as_micros(), plan.traffic.clients());
    let shared = Shared {
        tally: Arc::new(Mutex::new(tally)),
        clock,
        is_loud,
    };
    let (mut clients, mut waiting, began) = (plan.clients(), JoinSet::new(), now());
    for request in 0..plan.requests() {
        let planned = began + plan.at(request);
        wait_until(planned);
        let client = clients.next();
        let delay = now() - planned;
        shared.change(|tally| tally.delays.add(delay));
        let mut decided = Box::pin(path.decide(client));
        match decided
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => shared.count(client, answer, now() - planned),
            Poll::Pending => {
                let shared = shared.clone();
                waiting.spawn_on(
                    async move {
                        let answer = tokio::time::timeout(PATIENCE, decided)
                            .await
                            .unwrap_or(Answer::Failed);
                        shared.count(client, answer, now() - planned);
                    },
                    runtime.handle(),
                );
            }
        }
        while waiting.try_join_next().is_some() {}
    }
    let lost = runtime.block_on(async {
        while waiting.join_next().await.is_some() {}
        path.close().await
    });
    shared.change(|tally| {
        tally.lost = lost;
        tally.cpu = crate::load::client_cpu();
    });
    let tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
    tally.clone()
}

/// Sleeps until an instant: at these rates a process that spins would take a processor.
fn wait_until(instant: Instant) {
    let left = instant.saturating_duration_since(now());
    if !left.is_zero() {
        #[expect(clippy::disallowed_methods, reason = "the plan is in real time")]
        thread::sleep(left);
    }
}
