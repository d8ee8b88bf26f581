//! A store behind a network.

use core::fmt;
use core::future::Future;
use core::ops::Range;
use core::pin::Pin;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use tower_quota_core::{Charge, Decision, Operation, OwnedCharge, Store};

/// A store behind a network that delays and loses calls. Clones share the network.
#[derive(Clone, Debug)]
pub struct Network<S> {
    store: Arc<S>,
    delays: Range<Duration>,
    loss_percent: u8,
    deadline: Duration,
    state: Arc<State>,
}

/// The state that clones share.
#[derive(Debug)]
struct State {
    random: Mutex<Rng>,
    is_cut: AtomicBool,
    calls: AtomicU64,
}

/// The error of a call whose answer did not arrive within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl<S: Store> Network<S> {
    /// Creates a network without delays that loses nothing. The seed decides what is random about it.
    #[must_use]
    pub fn new(store: Arc<S>, seed: u64) -> Self {
        let state = State {
            random: Mutex::new(Rng::with_seed(seed)),
            is_cut: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        };
        let delays = Duration::ZERO..Duration::from_micros(1);
        Self {
            store,
            delays,
            loss_percent: 0,
            deadline: Duration::from_secs(1),
            state: Arc::new(state),
        }
    }

    /// Delays each call, and each answer, by a random time of this range.
    #[must_use]
    pub const fn delays(mut self, delays: Range<Duration>) -> Self {
        self.delays = delays;
        self
    }

    /// Loses this share of the calls, and of the answers.
    #[must_use]
    pub const fn loss_percent(mut self, percent: u8) -> Self {
        self.loss_percent = percent;
        self
    }

    /// Cuts the network, or mends it. While it is cut, all calls and answers are lost.
    pub fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Returns the calls made so far, lost ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::Relaxed)
    }

    /// Waits while a message travels. Returns whether it arrives.
    async fn travel(&self) -> bool {
        let (delay, arrives) = {
            let mut random = self
                .state
                .random
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
            let delay = random.u64(micros(self.delays.start)..micros(self.delays.end));
            (
                Duration::from_micros(delay),
                random.u8(0..100) >= self.loss_percent,
            )
        };
        super::pass(delay).await;
        arrives && !self.state.is_cut.load(Ordering::Relaxed)
    }
}

impl<S: Store> Store for Network<S> {
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<Decision, Lost>> + Send>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let network = Self {
            store: Arc::clone(&self.store),
            state: Arc::clone(&self.state),
            delays: self.delays.clone(),
            ..*self
        };
        let owned: Vec<OwnedCharge> = charges.iter().map(OwnedCharge::from).collect();
        self.state.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            if network.travel().await {
                let answer = {
                    let charges: Vec<Charge<'_>> =
                        owned.iter().map(OwnedCharge::as_charge).collect();
                    network.store.apply(operation, &charges)
                };
                let answer = answer.await.map_err(|_| Lost)?;
                if network.travel().await {
                    return Ok(answer);
                }
            }
            super::pass(network.deadline).await;
            Err(Lost)
        })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call or its answer was lost in the simulated network")
    }
}

impl core::error::Error for Lost {}
