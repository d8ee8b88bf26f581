use core::time::Duration;
use std::sync::Arc;

use super::budget::Budget;
use super::reader::Reader;
use super::remote::{IdempotentRequests, RemoteRefusals};

/// Chooses which requests a [`ThrottleLayer`](crate::ThrottleLayer) retries, when, and how often.
///
/// A retry waits as long as the remote demands, plus a random time up to 100 ms, 200 ms, 400 ms and so on (full
/// jitter), at most 10 seconds, and takes a turn.
///
/// Your caller gets the refusal after 3 attempts, if the wait exceeds [`max_wait`](crate::ThrottleLayer::max_wait), or
/// if the budget is spent. All clones share 10 % of the requests plus one retry per second.
#[derive(Clone, Debug)]
#[must_use = "retries do nothing before they are passed to a layer"]
pub struct Retries<Q = IdempotentRequests, P = RemoteRefusals> {
    copy: Q,
    refused: P,
    max_attempts: u32,
    base: Duration,
    cap: Duration,
    budget: Arc<Budget>,
}

/// Copies no request, the default.
#[derive(Clone, Copy, Debug)]
pub struct NoCopies;

impl<R> Reader<R> for NoCopies {
    type Value = Option<R>;

    fn read(&self, _: &R) -> Option<R> {
        None
    }
}

impl Retries {
    /// Retries GET, HEAD, PUT, DELETE and OPTIONS requests with a `Clone` body after a [`refusal`](super::refusal).
    pub fn http() -> Self {
        Self::new(IdempotentRequests, RemoteRefusals)
    }
}

impl<Q, P> Retries<Q, P> {
    /// Retries copied requests when `refused` reads a refusal.
    ///
    /// * `copy` returns the copy to retry, if any.
    /// * `refused` returns the demanded wait, maybe zero, if the remote refused.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Full;
    /// use tower_quota::throttle::{RemoteRefusals, Retries};
    ///
    /// // Requests with any method: only if the remote does not mind a second POST.
    /// let retries = Retries::new(|request: &Request<Full<Bytes>>| Some(request.clone()), RemoteRefusals);
    /// # let _ = retries;
    /// ```
    pub fn new(copy: Q, refused: P) -> Self {
        Self {
            copy,
            refused,
            max_attempts: 3,
            base: Duration::from_millis(100),
            cap: Duration::from_secs(10),
            budget: Arc::new(Budget::new(10, 1)),
        }
    }

    /// Sets the maximum number of attempts, including the first (default 3).
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the longest random wait before the first retry, and before any retry.
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.base = first;
        self.cap = longest;
        self
    }

    /// Sets the budget, in percent of the requests, plus retries per second.
    ///
    /// Saves at most 100 retries, or 10 seconds of `per_second` if more.
    pub fn budget(mut self, percent: u32, per_second: u32) -> Self {
        self.budget = Arc::new(Budget::new(percent, per_second));
        self
    }

    pub(super) fn copy<R>(&self, request: &R, attempt: u32) -> Option<R>
    where
        Q: Reader<R, Value = Option<R>>,
    {
        if attempt >= self.max_attempts {
            return None;
        }
        let copy = self.copy.read(request);
        if attempt == 1 && copy.is_some() {
            self.budget.deposit();
        }
        copy
    }

    pub(super) fn wait<T>(&self, response: &T, attempt: u32, longest: Duration) -> Option<Duration>
    where
        P: Reader<T, Value = Option<Duration>>,
    {
        let asked = self.refused.read(response)?;
        // The remote gives all clients the same time.
        let wait = asked.saturating_add(self.jittered(attempt));
        (wait <= longest && self.budget.withdraw()).then_some(wait)
    }

    fn jittered(&self, attempt: u32) -> Duration {
        let doubled = 1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        let longest = self.base.saturating_mul(doubled).min(self.cap);
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(fastrand::u64(0..=micros))
    }
}
