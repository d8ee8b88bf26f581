use core::error::Error;
use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::ledger::{Call, Step};
use super::{Keeper, now};
use crate::charge::{Charge, OwnedCharge};
use crate::decision::Decision;
use crate::store::Store;

/// The number of answers after which the task yields to other tasks.
const MOST_ANSWERS: usize = 64;

type Answer<E> = Result<Decision, CallError<E>>;

#[derive(Debug)]
enum CallError<E> {
    Store(E),
    TimedOut(NoAnswer),
}

#[derive(Debug)]
struct NoAnswer(Duration);

/// Calls the store until no hold and no release is left.
pub(super) async fn run<S: Store>(mut driver: Driver<S>) {
    let keeper = Arc::clone(&driver.keeper);
    let mut calls = FuturesUnordered::new();
    let mut answers = 0;
    loop {
        // Requests use the ledger too, so call the store without the lock.
        let step = keeper.ledger.lock().step(now(), calls.len());
        match step {
            Step::Call(call) => calls.push(keeper.send(call)),
            Step::Outlived(limit, longest) => keeper.events.outlived(limit, longest),
            Step::Wait(wakes_at) => {
                let Some((call, answer)) = keeper.wait(&mut calls, wakes_at).await else {
                    continue;
                };
                keeper.answered(call, &answer);
                answers += 1;
                if answers % MOST_ANSWERS == 0 {
                    tokio::task::yield_now().await;
                }
            }
            Step::End => {
                driver.has_ended = true;
                return;
            }
        }
    }
}

/// The running task. If the runtime ends first, the next hold starts another task.
///
/// The driver exists before the first poll, because a runtime may end earlier.
pub(super) struct Driver<S: Store> {
    keeper: Arc<Keeper<S>>,
    has_ended: bool,
}

impl<S: Store> Driver<S> {
    pub(super) fn new(keeper: &Arc<Keeper<S>>) -> Self {
        Self {
            keeper: Arc::clone(keeper),
            has_ended: false,
        }
    }
}

impl<S: Store> Drop for Driver<S> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.keeper.ledger.lock().interrupt(now());
        }
    }
}

impl<S: Store> Keeper<S> {
    fn send(&self, call: Call) -> impl Future<Output = (Call, Answer<S::Error>)> + use<S> {
        let answer = {
            let charges = call.charges.iter().map(OwnedCharge::as_charge);
            let charges: SmallVec<[Charge<'_>; 4]> = charges.collect();
            self.store.apply(call.operation, &charges)
        };
        let longest = call.timeout().min(self.events.call_timeout());
        async move {
            let answer = match tokio::time::timeout(longest, answer).await {
                Ok(answer) => answer.map_err(CallError::Store),
                Err(_) => Err(CallError::TimedOut(NoAnswer(longest))),
            };
            (call, answer)
        }
    }

    /// Returns the next answer, or `None` if another call is due.
    async fn wait<F, T>(
        &self,
        calls: &mut FuturesUnordered<F>,
        wakes_at: Option<Instant>,
    ) -> Option<T>
    where
        F: Future<Output = T>,
    {
        let mut sleep = pin!(wakes_at.map(tokio::time::sleep_until));
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.is_woken.swap(false, Ordering::Acquire) {
                return Poll::Ready(None);
            }
            if let Poll::Ready(Some(answer)) = calls.poll_next_unpin(cx) {
                return Poll::Ready(Some(answer));
            }
            match sleep.as_mut().as_pin_mut() {
                Some(sleep) => sleep.poll(cx).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn answered(&self, call: Call, answer: &Answer<S::Error>) {
        if let Err(error) = answer {
            self.events.failed(error.cause());
        }
        let lost = self.ledger.lock().answered(call, answer, now());
        for (hold, limit) in lost {
            if !self.events.lost(limit) {
                let _ = self.ledger.lock().release(hold, now());
            }
        }
    }
}

impl<E: Error + 'static> CallError<E> {
    fn cause(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Store(error) => error,
            Self::TimedOut(error) => error,
        }
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store has not answered within {:?}", self.0)
    }
}

impl Error for NoAnswer {}
