//! Whether a server is worth asking.
//!
//! 1. Closed, every call goes out. Enough failures in a row open the breaker; an answer of whatever kind, also one that
//!    refuses, begins the count anew.
//! 2. Open, no call goes out. Each is answered at once, and has certainly charged nothing.
//! 3. While it is open, and only then, somebody probes the server, one at a time. The first good probe closes the
//!    breaker, and nothing else does: an answer that was under way when it opened says nothing of the server now.
//! 4. A prober that is stopped, as by the end of a runtime, or that is not heard of any more, leaves the decision to the
//!    next call: if that fails, the breaker opens again.
//!
//! This file only counts. It knows no server and no time, so that it can be tested without either.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

/// Failures in a row after which a server counts as sick, unless told otherwise. Fewer would open for a hiccup: two
/// calls are usually under way at once, and one pause of the server fails both.
pub(crate) const FAILURES: NonZeroU32 = NonZeroU32::new(5).unwrap();

const OPEN: u32 = u32::MAX;

/// Counts failures of calls, from any number of threads.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// Failures in a row, or `OPEN`.
    failures: AtomicU32,
    most: u32,
}

impl Breaker {
    /// A closed breaker that opens after so many failures in a row.
    pub(crate) fn new(failures: NonZeroU32) -> Self {
        Self { failures: AtomicU32::new(0), most: failures.get().min(OPEN - 1) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.failures.load(Ordering::Relaxed) == OPEN
    }

    /// A call was answered.
    pub(crate) fn succeeded(&self) {
        // Almost always there is nothing to forget, and then nothing is written that other threads would have to read.
        let failures = self.failures.load(Ordering::Relaxed);
        if failures != 0 && failures != OPEN {
            // Lost to a failure at the same time, this success came first.
            let _ = self.failures.compare_exchange(failures, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// A call failed. True for the one failure that opens the breaker: who brought it starts to probe.
    #[must_use]
    pub(crate) fn failed(&self) -> bool {
        let counted = |failures: u32| match failures {
            OPEN => None,
            failures if failures + 1 >= self.most => Some(OPEN),
            failures => Some(failures + 1),
        };
        let before = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        before.is_ok_and(|failures| failures + 1 >= self.most)
    }

    /// A probe was good.
    pub(crate) fn close(&self) {
        self.failures.store(0, Ordering::Relaxed);
    }

    /// Nobody probes any more: the next call does, and one failure is enough.
    pub(crate) fn leave_to_the_next(&self) {
        self.failures.store(self.most - 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn breaker() -> Breaker {
        Breaker::new(NonZeroU32::new(3).unwrap())
    }

    fn opened() -> Breaker {
        let breaker = breaker();
        assert_eq!([breaker.failed(), breaker.failed(), breaker.failed()], [false, false, true]);
        assert!(breaker.is_open());
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_once() {
        let breaker = opened();
        assert!(!breaker.failed(), "a prober is at work already");
        assert!(breaker.is_open());
    }

    #[test]
    fn an_answer_begins_the_count_anew() {
        let breaker = breaker();
        for _ in 0..10 {
            assert!(!breaker.failed());
            assert!(!breaker.failed());
            breaker.succeeded();
        }
        assert!(!breaker.is_open());
    }

    #[test]
    fn only_a_probe_closes_it() {
        let breaker = opened();
        breaker.succeeded();
        assert!(breaker.is_open());
        breaker.close();
        assert!(!breaker.is_open());
        assert_eq!([breaker.failed(), breaker.failed(), breaker.failed()], [false, false, true]);
    }

    #[test]
    fn left_to_the_next_call_one_failure_opens_it_and_an_answer_does_not() {
        let breaker = opened();
        breaker.leave_to_the_next();
        assert!(!breaker.is_open());
        assert!(breaker.failed());
        breaker.leave_to_the_next();
        breaker.succeeded();
        assert!(!breaker.failed());
    }

    #[test]
    fn one_failure_can_be_enough() {
        let breaker = Breaker::new(NonZeroU32::MIN);
        assert!(breaker.failed());
        assert!(breaker.is_open());
    }

    #[test]
    fn of_many_threads_one_starts_to_probe() {
        let breaker = Arc::new(breaker());
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let breaker = Arc::clone(&breaker);
                thread::spawn(move || (0..1_000).filter(|_| breaker.failed()).count())
            })
            .collect();
        let probers: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(probers, 1);
    }
}
