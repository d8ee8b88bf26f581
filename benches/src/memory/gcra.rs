//! The crate `gcra`: a DashMap of states behind an async function that never waits.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gcra::{RateLimit, RateLimiter};

use super::allowance::Allowance;
use super::contender::{Contender, Each};
use super::keys::Keyed;

pub(crate) struct Gcra<K: Keyed> {
    limiter: RateLimiter<K>,
    limit: RateLimit,
}

pub(crate) fn gcra<K: Keyed>(allowances: &[Allowance]) -> Each<Gcra<K>> {
    Each::new(allowances, |allowance| Gcra {
        limiter: RateLimiter::new(0),
        limit: RateLimit::new(allowance.burst, allowance.unit() * allowance.burst),
    })
}

impl<K: Keyed> Contender<K> for Gcra<K> {
    fn admits(&self, key: &K) -> bool {
        let checked = pin!(self.limiter.check(key.clone(), &self.limit, 1));
        matches!(
            checked.poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(Ok(_))
        )
    }
}
