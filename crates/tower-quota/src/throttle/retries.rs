use core::fmt;
use core::time::Duration;

use http::{Method, Request, Response};

use super::budget::Budget;
use super::remote::remote_refusals;
use crate::random::random_up_to;

/// Chooses which requests a [`ThrottleLayer`](crate::ThrottleLayer) retries, when, and how often.
///
/// A retry waits as long as the remote demands, plus a random time up to 100 ms, 200 ms, 400 ms and so on (full
/// jitter), at most 10 seconds, and takes a turn.
///
/// Your caller gets the refusal after 3 attempts, if the wait exceeds [`max_wait`](crate::ThrottleLayer::max_wait), or
/// if the budget is spent. All clones share 10 % of the requests plus one retry per second.
#[must_use = "retries do nothing before they are passed to a layer"]
pub struct Retries<R, T> {
    copy: Box<Read<R, Option<R>>>,
    refused: Box<Read<T, Option<Duration>>>,
    max_attempts: u32,
    base: Duration,
    cap: Duration,
    budget: Budget,
}

pub(super) type Read<T, V> = dyn Fn(&T) -> V + Send + Sync;

impl<B: Clone, D: 'static> Retries<Request<B>, Response<D>> {
    /// Retries GET, HEAD, PUT, DELETE and OPTIONS requests with a `Clone` body after a [`refusal`](super::refusal).
    pub fn http() -> Self {
        let copy = |request: &Request<B>| match *request.method() {
            Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS => {
                Some(request.clone())
            }
            _ => None,
        };
        Self::new(copy, remote_refusals)
    }
}

impl<R, T> Retries<R, T> {
    /// Retries copied requests when `refused` reads a refusal.
    ///
    /// * `copy` returns the copy to retry, if any.
    /// * `refused` returns the demanded wait, maybe zero, if the remote refused.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Full;
    /// use tower_quota::throttle::{remote_refusals, Retries};
    ///
    /// // Requests with any method: only if the remote does not mind a second POST.
    /// let retries = Retries::new(|request: &Request<Full<Bytes>>| Some(request.clone()), remote_refusals);
    /// # let _: Retries<_, http::Response<String>> = retries;
    /// ```
    pub fn new(
        copy: impl Fn(&R) -> Option<R> + Send + Sync + 'static,
        refused: impl Fn(&T) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        Self {
            copy: Box::new(copy),
            refused: Box::new(refused),
            max_attempts: 3,
            base: Duration::from_millis(100),
            cap: Duration::from_secs(10),
            budget: Budget::new(10, 1),
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
    /// The budget saves at most 100 retries, or 10 seconds of `per_second` if that is more.
    pub fn budget(mut self, percent: u32, per_second: u32) -> Self {
        self.budget = Budget::new(percent, per_second);
        self
    }

    pub(super) fn copy(&self, request: &R, attempt: u32) -> Option<R> {
        if attempt >= self.max_attempts {
            return None;
        }
        let copy = (self.copy)(request);
        if attempt == 1 && copy.is_some() {
            self.budget.deposit();
        }
        copy
    }

    pub(super) fn wait(&self, response: &T, attempt: u32, longest: Duration) -> Option<Duration> {
        let asked = (self.refused)(response)?;
        // Add jitter, because the remote may give all clients the same time.
        let wait = asked.saturating_add(self.jittered(attempt));
        (wait <= longest && self.budget.withdraw()).then_some(wait)
    }

    fn jittered(&self, attempt: u32) -> Duration {
        let doubled = 1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX);
        let longest = self.base.saturating_mul(doubled).min(self.cap);
        random_up_to(longest)
    }
}

impl<R, T> fmt::Debug for Retries<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retries").finish_non_exhaustive()
    }
}
