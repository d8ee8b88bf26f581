//! The gate of a throttled service: the limiter, pushbacks, and the places to wait.

use core::convert::Infallible;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tower_quota_core::{Key, Limiter, NotReady, Store, Turn};

use super::error::{ThrottleError, Throttled};
use super::pushbacks::{Pushbacks, now};

/// The choice for requests while the store cannot decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias("fail open", "fail closed"))]
pub enum StoreFailure {
    /// Requests pass uncounted: fail open. It is the default, as for the limits of a server.
    #[default]
    Allow,
    /// Requests fail with [`ThrottleError::Store`]: fail closed.
    Fail,
}

/// The state that the services of a layer share.
pub(super) struct Gate<S> {
    pub(super) limiter: Limiter<S>,
    pub(super) pushbacks: Arc<Pushbacks>,
    pub(super) max_pushback: Duration,
    pub(super) places: Arc<Semaphore>,
    pub(super) on_store_failure: StoreFailure,
    pub(super) on_store_error: Option<Arc<StoreErrorListener>>,
}

pub(super) type StoreErrorListener = dyn Fn(&(dyn Error + 'static)) + Send + Sync;

/// A future that returns the turn, none if the request passes uncounted, or the error.
pub(super) type PendingTurn<S> =
    Pin<Box<dyn Future<Output = Result<Option<Turn<S>>, ThrottleError<Infallible>>> + Send>>;

impl<S: Store + Clone> Gate<S> {
    /// Takes a turn while the key is not pushed back, and waits until it comes.
    pub(super) async fn enter(
        self: Arc<Self>,
        key: Key<'static>,
        cost: u64,
    ) -> Result<Option<Turn<S>>, ThrottleError<Infallible>> {
        let place = self.places.try_acquire().ok();
        let longest = if place.is_some() {
            self.limiter.longest_wait()
        } else {
            Duration::ZERO
        };
        let start = now();
        let rest = || longest.saturating_sub(start.elapsed());

        loop {
            self.pushbacks
                .wait(&key, rest())
                .await
                .map_err(ThrottleError::Throttled)?;
            let turn = self.take_turn(&key, cost, rest()).await?;
            // A response may have pushed the key back meanwhile. Turns that were kept would all be due when that ends.
            if self.pushbacks.pause(&key).is_none() {
                return Ok(turn);
            }
        }
    }

    /// Takes a turn, and waits until it comes. Returns none if the request passes uncounted.
    async fn take_turn(
        &self,
        key: &Key<'static>,
        cost: u64,
        longest: Duration,
    ) -> Result<Option<Turn<S>>, ThrottleError<Infallible>> {
        match self.limiter.turn(key, cost, longest).await {
            Ok(turn) => Ok(Some(turn)),
            Err(NotReady::Refused(decision)) => {
                Err(ThrottleError::Throttled(Throttled::by_limiter(decision)))
            }
            Err(NotReady::Store(error)) => {
                if let Some(listener) = &self.on_store_error {
                    listener(&error);
                }
                match self.on_store_failure {
                    StoreFailure::Allow => Ok(None),
                    StoreFailure::Fail => Err(ThrottleError::Store(Box::new(error))),
                }
            }
        }
    }

    /// Holds back the next requests of a key.
    pub(super) fn push_back(&self, key: Key<'static>, pause: Duration) {
        if !pause.is_zero() {
            self.pushbacks.push(key, pause.min(self.max_pushback));
        }
    }
}

impl<S: Clone> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            pushbacks: Arc::clone(&self.pushbacks),
            max_pushback: self.max_pushback,
            places: Arc::clone(&self.places),
            on_store_failure: self.on_store_failure,
            on_store_error: self.on_store_error.clone(),
        }
    }
}

impl<S> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}
