//! One document over a log: the layer of a service, on the time of the log.

use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response};
use http_body::Body;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet};
use tower_layer::Layer;
use tower_quota::{MemoryStore, RateLimit, RateLimitLayer, response::RefusalBody};
use tower_quota_rules::Rules;
use tower_service::Service;

use super::clock::LogClock;
use super::outcome::ReplayOutcome;
use super::service::{LoggedResponse, LoggedService};
use super::tally::{KeyNames, Tally};

/// A document that decides the requests of a log, as it would in a service.
pub(crate) struct Replay {
    service: RateLimit<LoggedService, MemoryStore>,
    store: MemoryStore,
    tally: Arc<Mutex<Tally>>,
    clock: LogClock,
    waiting: Waiting,
    /// True if a limit settles, so that the response matters.
    settles: bool,
}

/// The requests that wait for their turn, on a paused clock that follows the log's.
struct Waiting {
    runtime: Runtime,
    local: LocalSet,
    requests: JoinSet<()>,
    /// The time of the paused clock, in microseconds since 1970.
    micros: u64,
}

/// The entries that a replay remembers: far more than clients of most logs.
pub(super) const ENTRIES: usize = 10_000_000;

/// The timer's resolution.
const STEP_MICROS: u64 = 1_000;

impl Replay {
    pub(crate) fn new(rules: &Rules, keys: KeyNames) -> std::io::Result<Self> {
        let clock = LogClock::default();
        let store = MemoryStore::with_clock(ENTRIES, clock.clone());
        let tally = Arc::new(Mutex::new(Tally::new(keys)));
        let (noted, time) = (Arc::clone(&tally), clock.clone());
        let layer = RateLimitLayer::new(store.clone(), rules.policy())
            .headers([])
            .on_refused(|_| Response::new(RefusalBody::default()))
            .on_decision(move |decided| lock(&noted).note(decided, time.micros()));
        let document = rules.document();
        let routed = document.routes.iter().flat_map(|route| &route.limits);
        let settles = document
            .limits
            .iter()
            .chain(routed)
            .any(|limit| limit.settle.is_some());
        Ok(Self {
            service: layer.layer(LoggedService),
            store,
            tally,
            clock,
            waiting: Waiting::new()?,
            settles,
        })
    }

    /// Decides a request at a time in microseconds since 1970. Times that go back count as the latest one.
    pub(crate) fn decide(
        &mut self,
        micros: u64,
        request: Request<LoggedResponse>,
    ) -> ReplayOutcome {
        self.clock.set(micros);
        let micros = self.clock.micros();
        self.waiting.follow(micros);
        // The service behind the layer is always ready.
        let mut response = Box::pin(self.service.call(request));
        let polled = {
            let _timer = self.waiting.runtime.enter();
            response
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        };
        match polled {
            Poll::Ready(Ok(response)) if self.settles => drain(response),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending => {
                let settles = self.settles;
                self.waiting.add(async move {
                    if let Ok(response) = response.await
                        && settles
                    {
                        drain(response);
                    }
                });
            }
        }
        self.tally().finish(micros)
    }

    /// Returns the counts.
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Returns the number of entries that were evicted before they were full.
    pub(crate) fn evicted(&self) -> u64 {
        self.store.evicted()
    }
}

impl Waiting {
    fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        Ok(Self {
            runtime,
            local: LocalSet::new(),
            requests: JoinSet::new(),
            micros: 0,
        })
    }

    fn add(&mut self, request: impl Future<Output = ()> + 'static) {
        self.requests.spawn_local_on(request, &self.local);
    }

    /// Moves the paused clock to the time of the log, so that requests whose turn has come go on.
    fn follow(&mut self, micros: u64) {
        if self.requests.is_empty() {
            self.micros = micros;
            return;
        }
        let passed = micros.saturating_sub(self.micros);
        if passed < STEP_MICROS {
            return;
        }
        self.micros = micros;
        let requests = &mut self.requests;
        self.local.block_on(&self.runtime, async {
            tokio::time::advance(Duration::from_micros(passed)).await;
            tokio::task::yield_now().await;
            while requests.try_join_next().is_some() {}
        });
    }
}

/// Reads a response to its end, for limits that settle by it.
fn drain<B: Body>(response: Response<B>) {
    let mut body = pin!(response.into_body());
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(_))) = Pin::as_mut(&mut body).poll_frame(&mut context) {}
}

/// Locks the counts. One thread replays, and a panic in it ends the command.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
