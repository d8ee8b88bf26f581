//! Decides the requests of a log by a document, in the time of the log.

use core::mem;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response};
use http_body::Body;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tower_layer::Layer;
use tower_quota::response::RefusalBody;
use tower_quota::{MemoryStore, RateLimit, RateLimitLayer};
use tower_quota_rules::{Document, Rules};
use tower_service::Service;

use super::clock::LogClock;
use super::service::LoggedService;
use super::tally::Tally;
use crate::log::LoggedResponse;

/// A document over a log, and the tally of its decisions.
pub(super) struct Replay {
    tally: Arc<Mutex<Tally>>,
    service: RateLimit<LoggedService, MemoryStore>,
    store: MemoryStore,
    clock: LogClock,
    waiting: Waiting,
}

/// The queued requests, on a paused clock that follows the log.
struct Waiting {
    runtime: Runtime,
    requests: JoinSet<()>,
    micros: u64,
}

const ENTRIES: usize = 10_000_000;

const STEP_MICROS: u64 = 1_000;

impl Replay {
    pub(super) fn new(rules: &Rules, tally: Tally) -> io::Result<Self> {
        let tally = Arc::new(Mutex::new(tally));
        let noted = Arc::clone(&tally);
        let clock = LogClock::default();
        let store = MemoryStore::with_clock(ENTRIES, clock.clone());
        let time = clock.clone();
        let layer = RateLimitLayer::new(store.clone(), rules.policy())
            .headers([])
            .on_refused(|_| Response::new(RefusalBody::default()))
            .on_decision(move |decided| lock(&noted).note(decided, time.micros()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        Ok(Self {
            tally,
            service: layer.layer(LoggedService),
            store,
            clock,
            waiting: Waiting {
                runtime,
                requests: JoinSet::new(),
                micros: 0,
            },
        })
    }

    /// Decides a request, and returns whether the request is admitted.
    pub(super) fn decide(&mut self, micros: u64, request: Request<LoggedResponse>) -> bool {
        self.clock.set(micros);
        self.waiting.follow(micros);
        let mut response = Box::pin(self.service.call(request));
        let _timer = self.waiting.runtime.enter();
        match response
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(response)) => drain(response),
            Poll::Pending => {
                self.waiting.requests.spawn(async move {
                    let Ok(response) = response.await;
                    drain(response);
                });
            }
        }
        lock(&self.tally).finish(micros)
    }

    /// Takes the tally, with what the document says about its limits.
    pub(super) fn tally(&self, document: &Document) -> Tally {
        let mut tally = mem::take(&mut *lock(&self.tally));
        tally.describe_limits(document);
        tally
    }

    pub(super) fn evicted(&self) -> u64 {
        self.store.evicted()
    }
}

/// Locks the tally. Only a single thread replays, and a panic ends the command.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiting {
    /// Advances the paused clock to the time of the log, and finishes requests after their wait.
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
        self.runtime.block_on(async {
            tokio::time::advance(Duration::from_micros(passed)).await;
            tokio::task::yield_now().await;
            while requests.try_join_next().is_some() {}
        });
    }
}

/// Reads a response to its end, for limits that settle by its status or length.
fn drain<B: Body>(response: Response<B>) {
    let mut body = pin!(response.into_body());
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(_))) = Pin::as_mut(&mut body).poll_frame(&mut context) {}
}
