//! The gate of a throttled service: the limiter, pushbacks, and the places to wait.

use core::convert::Infallible;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tower_quota_core::{Decision, Key, Limiter, NotReady, Store};

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

/// A future that returns the turn, or the error if there is none.
pub(super) type PendingTurn<S> = Pin<Box<dyn Future<Output = Result<Turn<S>, ThrottleError<Infallible>>> + Send>>;

/// A turn that has come. If it is dropped before it is spent, it is refunded.
pub(super) struct Turn<S: Store + Clone> {
    gate: Arc<Gate<S>>,
    key: Key<'static>,
    taken: Option<Decision>,
}

impl<S: Store + Clone> Gate<S> {
    /// Takes a turn, and waits until it comes.
    pub(super) async fn enter(
        self: Arc<Self>,
        key: Key<'static>,
        cost: u64,
    ) -> Result<Turn<S>, ThrottleError<Infallible>> {
        let place = self.places.try_acquire().ok();
        let longest = if place.is_some() { self.limiter.longest_wait() } else { Duration::ZERO };
        let start = now();
        let rest = || longest.saturating_sub(start.elapsed());

        self.pushbacks.wait(&key, longest).await.map_err(ThrottleError::Throttled)?;
        let taken = match self.limiter.until_n_ready(&key, cost, rest()).await {
            Ok(decision) => Some(decision),
            Err(NotReady::Refused(decision)) => return Err(ThrottleError::Throttled(Throttled::by_limiter(decision))),
            Err(NotReady::Store(error)) => {
                if let Some(listener) = &self.on_store_error {
                    listener(&error);
                }
                match self.on_store_failure {
                    StoreFailure::Allow => None,
                    StoreFailure::Fail => return Err(ThrottleError::Store(Box::new(error))),
                }
            }
        };
        let turn = Turn { gate: Arc::clone(&self), key, taken };
        // A response may have pushed the key back while this request waited for its turn.
        self.pushbacks.wait(&turn.key, rest()).await.map_err(ThrottleError::Throttled)?;
        Ok(turn)
    }

    /// Holds back the next requests of a key.
    pub(super) fn push_back(&self, key: Key<'static>, pause: Duration) {
        if !pause.is_zero() {
            self.pushbacks.push(key, pause.min(self.max_pushback));
        }
    }
}

impl<S: Store + Clone> Turn<S> {
    /// Keeps the charge.
    pub(super) fn spend(mut self) {
        self.taken = None;
    }
}

impl<S: Store + Clone> Drop for Turn<S> {
    fn drop(&mut self) {
        if let Some(decision) = self.taken.take() {
            // A store in memory refunds in this call. Others need the runtime to wait for their answer.
            let refund = self.gate.limiter.refund(&self.key, decision);
            if let Ok(runtime) = Handle::try_current() {
                drop(runtime.spawn(refund));
            }
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
        f.debug_struct("Gate").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
