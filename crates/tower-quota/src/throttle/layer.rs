use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tower_quota_core::{AsKey, Key, Limiter, Store};

use super::failures::Failures;
use super::gate::{Gate, StoreFailure};
use super::retries::{Read, Retries};

/// Makes requests of any tower service wait for their turn, or fail.
///
/// The type parameters are the store, the request and the response.
#[must_use = "a layer limits nothing before it is put around a service"]
pub struct ThrottleLayer<S, R, T> {
    pub(super) gate: Gate<S>,
    pub(super) key: Arc<KeyOf<S, R>>,
    pub(super) cost: Arc<Read<R, u64>>,
    pub(super) pushback: Arc<Read<T, Option<Duration>>>,
    pub(super) retries: Option<Arc<Retries<R, T>>>,
}

type KeyOf<S, R> = dyn Fn(&Limiter<S>, &R) -> Key<'static> + Send + Sync;

impl<S: Store + Clone, R, T> ThrottleLayer<S, R, T> {
    /// Counts requests by a key that your closure reads.
    ///
    /// Return an owned [`AsKey`](crate::limiter::AsKey) like `String`, and write the argument's type, as in
    /// `|request: &MyRequest| request.tenant.clone()`.
    ///
    /// By default, a request costs one unit, waits at most [`Limiter::max_wait`](crate::Limiter::max_wait), and passes
    /// uncounted if the store fails.
    pub fn new<K: AsKey>(
        limiter: Limiter<S>,
        key: impl Fn(&R) -> K + Send + Sync + 'static,
    ) -> Self {
        let gate = Gate {
            limiter,
            pushbacks: Arc::default(),
            max_pushback: Duration::from_secs(300),
            places: Arc::new(Semaphore::new(10_000)),
            on_store_failure: StoreFailure::default(),
            failures: Failures::default(),
        };
        Self {
            gate,
            key: Arc::new(move |limiter, request| limiter.key_of(&key(request))),
            cost: Arc::new(|_| 1),
            pushback: Arc::new(|_| None),
            retries: None,
        }
    }

    /// Counts all requests together.
    pub fn global(limiter: Limiter<S>) -> Self {
        Self::new(limiter, |_| Key::EVERYONE)
    }

    /// Sets the longest wait of a request. With zero, requests that would wait fail.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.gate.limiter = self.gate.limiter.max_wait(longest);
        self
    }

    /// Sets the maximum number of waiting requests, over all clones. Defaults to 10,000.
    ///
    /// Further requests pass at once or fail.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.gate.places = Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Charges the units that your closure reads from the request. The default is 1.
    ///
    /// A cost above the capacity always fails. A cost of 0 never waits.
    pub fn cost_with(mut self, cost: impl Fn(&R) -> u64 + Send + Sync + 'static) -> Self {
        self.cost = Arc::new(cost);
        self
    }

    /// Holds back a key's next requests if a response demands a wait.
    ///
    /// Pass [`remote_headers`](super::remote_headers) or a closure that returns `Option<Duration>`. The key's waiting
    /// requests are held back too, or fail.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
    ///
    /// enum Delivery {
    ///     Done,
    ///     Busy { seconds: u64 },
    /// }
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), "deliveries", Quota::per_second(50));
    /// let throttle = ThrottleLayer::global(limiter).pushback(|delivery: &Delivery| match delivery {
    ///     Delivery::Done => None,
    ///     Delivery::Busy { seconds } => Some(Duration::from_secs(*seconds)),
    /// });
    /// # let _: ThrottleLayer<_, u8, _> = throttle;
    /// # let _ = [Delivery::Done, Delivery::Busy { seconds: 1 }];
    /// ```
    pub fn pushback(
        mut self,
        pushback: impl Fn(&T) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.pushback = Arc::new(pushback);
        self
    }

    /// Retries requests that the remote refused.
    ///
    /// ```
    /// use http::{Request, Response};
    /// use tower_quota::throttle::{Retries, remote_headers};
    /// use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_second(50));
    /// let throttle = ThrottleLayer::global(limiter)
    ///     .pushback(remote_headers)
    ///     .retries(Retries::http().max_attempts(4));
    /// # let _: ThrottleLayer<_, Request<String>, Response<String>> = throttle;
    /// ```
    pub fn retries(mut self, retries: Retries<R, T>) -> Self {
        self.retries = Some(Arc::new(retries));
        self
    }

    /// Sets the longest pushback, up to 366 days (default 5 minutes).
    pub fn max_pushback(mut self, longest: Duration) -> Self {
        self.gate.max_pushback = longest.min(Duration::from_secs(366 * 86_400));
        self
    }

    /// Decides about requests while the store fails.
    pub const fn on_store_failure(mut self, choice: StoreFailure) -> Self {
        self.gate.on_store_failure = choice;
        self
    }

    /// Calls your closure with every store error, failed releases and lost [holds](crate::Quota::concurrent) included. Do
    /// not block.
    ///
    /// At most once a minute, the layer also logs a warning through `tracing` with the target `tower_quota`.
    pub fn on_store_error(
        mut self,
        listener: impl Fn(&(dyn Error + 'static)) + Send + Sync + 'static,
    ) -> Self {
        self.gate.failures.listener = Some(Arc::new(listener));
        self
    }
}

impl<S: Clone, R, T> Clone for ThrottleLayer<S, R, T> {
    fn clone(&self) -> Self {
        Self {
            gate: self.gate.clone(),
            key: Arc::clone(&self.key),
            cost: Arc::clone(&self.cost),
            pushback: Arc::clone(&self.pushback),
            retries: self.retries.clone(),
        }
    }
}

impl<S, R, T> fmt::Debug for ThrottleLayer<S, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottleLayer")
            .field("limiter", &self.gate.limiter)
            .finish_non_exhaustive()
    }
}
