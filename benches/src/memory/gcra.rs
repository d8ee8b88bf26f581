//! The crate `gcra`: a DashMap of states behind an async function that never waits.

use std::fmt::Display;
use std::hash::Hash;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gcra::{RateLimit, RateLimiter};

use super::contender::{Allowance, Contender, Each};

pub(crate) struct Gcra<K: Eq + Hash> {
    limiter: RateLimiter<K>,
    limit: RateLimit,
}

pub(crate) fn gcra<K: Send + Clone + Hash + Eq + Display + 'static>(limits: usize) -> Each<Gcra<K>> {
    Each::new(limits, |allowance: &Allowance| Gcra {
        limiter: RateLimiter::new(0),
        limit: RateLimit::new(allowance.burst, allowance.unit * allowance.burst),
    })
}

impl<K: Send + Sync + Clone + Hash + Eq + Display + 'static> Contender<K> for Gcra<K> {
    fn admits(&self, key: &K) -> bool {
        let checked = pin!(self.limiter.check(key.clone(), &self.limit, 1));
        matches!(checked.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_)))
    }
}
