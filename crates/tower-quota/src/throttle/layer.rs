use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tower_quota_core::{Key, Limiter, Store};

use super::gate::{Gate, StoreFailure};
use super::reader::Constant;
use super::retries::{NoCopies, Retries};

/// Makes requests of any tower service wait for their turn, or fail.
///
/// The type parameters are the store, and the [readers](super::Reader) of keys, costs and pushbacks.
#[derive(Clone, Debug)]
#[must_use = "a layer limits nothing before it is put around a service"]
pub struct ThrottleLayer<
    S,
    K,
    C = Constant<u64>,
    H = Constant<Option<Duration>>,
    Q = NoCopies,
    P = Constant<Option<Duration>>,
> {
    pub(super) gate: Gate<S>,
    pub(super) key: K,
    pub(super) cost: C,
    pub(super) pushback: H,
    pub(super) retries: Retries<Q, P>,
}

impl<S: Store + Clone, K> ThrottleLayer<S, K> {
    /// Counts requests by a key that your closure reads.
    ///
    /// Return an owned [`AsKey`](crate::limiter::AsKey) like `String`, and write the argument's type, as in
    /// `|request: &MyRequest| request.tenant.clone()`.
    ///
    /// By default, a request costs one unit, waits at most [`Limiter::max_wait`](crate::Limiter::max_wait), and passes
    /// uncounted if the store fails.
    pub fn new(limiter: Limiter<S>, key: K) -> Self {
        let gate = Gate {
            limiter,
            pushbacks: Arc::default(),
            max_pushback: Self::DEFAULT_MAX_PUSHBACK,
            places: Arc::new(Semaphore::new(Self::DEFAULT_MAX_WAITING)),
            on_store_failure: StoreFailure::default(),
            on_store_error: None,
            last_warning: Arc::default(),
        };
        Self {
            gate,
            key,
            cost: Constant(1),
            pushback: Constant(None),
            retries: Retries::new(NoCopies, Constant(None)),
        }
    }

    /// The default of [`max_waiting`](Self::max_waiting).
    pub const DEFAULT_MAX_WAITING: usize = 10_000;

    /// The default of [`max_pushback`](Self::max_pushback), 5 minutes.
    pub const DEFAULT_MAX_PUSHBACK: Duration = Duration::from_secs(300);
}

impl<S: Store + Clone> ThrottleLayer<S, Constant<Key<'static>>> {
    /// Counts all requests together.
    pub fn global(limiter: Limiter<S>) -> Self {
        Self::new(limiter, Constant(Key::EVERYONE))
    }
}

impl<S: Store + Clone, K, C, H, Q, P> ThrottleLayer<S, K, C, H, Q, P> {
    /// Sets the longest wait of a request. With zero, requests that would wait fail.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.gate.limiter = self.gate.limiter.max_wait(longest);
        self
    }

    /// Sets the maximum number of waiting requests, over all clones.
    ///
    /// Further requests pass at once or fail.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.gate.places = Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Charges the units that your closure reads from the request. The default is 1.
    ///
    /// A cost above the capacity always fails. A cost of 0 never waits.
    pub fn cost_with<N>(self, cost: N) -> ThrottleLayer<S, K, N, H, Q, P> {
        ThrottleLayer {
            gate: self.gate,
            key: self.key,
            cost,
            pushback: self.pushback,
            retries: self.retries,
        }
    }

    /// Holds back a key's next requests if a response demands a wait.
    ///
    /// Pass [`remote_headers()`](super::remote_headers) or a closure that returns `Option<Duration>`. The key's waiting
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
    /// # let _ = (throttle, [Delivery::Done, Delivery::Busy { seconds: 1 }]);
    /// ```
    pub fn pushback<N>(self, pushback: N) -> ThrottleLayer<S, K, C, N, Q, P> {
        ThrottleLayer {
            gate: self.gate,
            key: self.key,
            cost: self.cost,
            pushback,
            retries: self.retries,
        }
    }

    /// Retries requests that the remote refused.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http_body_util::Full;
    /// use tower_quota::throttle::{Retries, remote_headers};
    /// use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer};
    ///
    /// let limiter = Limiter::new(MemoryStore::new(), "remote", Quota::per_second(50));
    /// let throttle = ThrottleLayer::global(limiter)
    ///     .pushback(remote_headers())
    ///     .retries(Retries::http().max_attempts(4));
    /// # let _ = throttle;
    /// ```
    pub fn retries<M, N>(self, retries: Retries<M, N>) -> ThrottleLayer<S, K, C, H, M, N> {
        ThrottleLayer {
            gate: self.gate,
            key: self.key,
            cost: self.cost,
            pushback: self.pushback,
            retries,
        }
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

    /// Calls your closure with every store error. Do not block.
    ///
    /// At most once a minute, the layer also logs a warning through `tracing` with the target `tower_quota`.
    pub fn on_store_error(
        mut self,
        listener: impl Fn(&(dyn Error + 'static)) + Send + Sync + 'static,
    ) -> Self {
        self.gate.on_store_error = Some(Arc::new(listener));
        self
    }
}
