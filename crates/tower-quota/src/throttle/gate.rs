use core::convert::Infallible;
use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tower_quota_core::{Key, Limiter, NotReady, Store, Turn};

use super::error::{ThrottleError, Throttled};
use super::failures::Failures;
use super::pushbacks::{Pushbacks, now};

/// Decides about requests while the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias("fail open", "fail closed"))]
pub enum StoreFailure {
    /// Lets requests pass uncounted (default).
    #[default]
    Allow,
    /// Fails requests with [`ThrottleError::Store`].
    Fail,
}

#[derive(Clone)]
pub(super) struct Gate<S> {
    pub(super) limiter: Limiter<S>,
    pub(super) pushbacks: Arc<Pushbacks>,
    pub(super) max_pushback: Duration,
    pub(super) places: Arc<Semaphore>,
    pub(super) on_store_failure: StoreFailure,
    pub(super) failures: Failures,
}

impl<S: Store + Clone> Gate<S> {
    /// Takes a turn and waits for it. Requests that pass uncounted have no turn.
    pub(super) async fn enter<E>(
        &self,
        key: &Key<'static>,
        cost: u64,
        longest: Duration,
    ) -> Result<Option<Turn<S>>, ThrottleError<E>> {
        let place = self.places.try_acquire().ok();
        let longest = if place.is_some() {
            longest
        } else {
            Duration::ZERO
        };
        let start = now();
        let rest = || longest.saturating_sub(start.elapsed());
        loop {
            // Look again after each pause, because another response may push the key back
            // meanwhile.
            while let Some(pause) = self.pushbacks.pause(key) {
                if pause > rest() {
                    return Err(ThrottleError::Throttled(Throttled::by_remote(pause)));
                }
                #[expect(clippy::disallowed_methods, reason = "the remote asked for a pause")]
                tokio::time::sleep(pause).await;
            }
            let turn = self.take_turn(key, cost, rest()).await?;
            if self.pushbacks.pause(key).is_none() {
                return Ok(turn);
            }
            // Give up the turn during a pushback, because kept turns would all be due at the end. Spend the turn, because
            // other requests keep later turns, and a refund would make new turns between the later turns. The dropped hold
            // releases the units of concurrency limits.
            drop(turn.map(Turn::hold));
        }
    }

    pub(super) async fn enter_after(
        &self,
        wait: Duration,
        key: &Key<'static>,
        cost: u64,
        longest: Duration,
    ) -> Option<Option<Turn<S>>> {
        let place = self.places.try_acquire().ok()?;
        #[expect(clippy::disallowed_methods, reason = "the remote asked for a pause")]
        tokio::time::sleep(wait).await;
        drop(place);
        let turn = self.enter::<Infallible>(key, cost, longest.saturating_sub(wait));
        turn.await.ok()
    }

    async fn take_turn<E>(
        &self,
        key: &Key<'static>,
        cost: u64,
        longest: Duration,
    ) -> Result<Option<Turn<S>>, ThrottleError<E>> {
        let error = match self.limiter.turn(key, cost, longest).await {
            Ok(turn) => return Ok(Some(turn)),
            Err(NotReady::Refused(decision)) => {
                return Err(ThrottleError::Throttled(Throttled::by_limiter(decision)));
            }
            Err(NotReady::Store(error)) => error,
        };
        self.failures.report(&error);
        match self.on_store_failure {
            StoreFailure::Allow => Ok(None),
            StoreFailure::Fail => Err(ThrottleError::Store(Box::new(error))),
        }
    }

    pub(super) fn push_back(&self, key: Key<'static>, pause: Duration) {
        if !pause.is_zero() {
            self.pushbacks.push(key, pause.min(self.max_pushback));
        }
    }
}
