//! A turn that is waited for, and given back when the wait is dropped.

use core::pin::Pin;
use core::time::Duration;

use tokio::runtime::Handle;

use super::Limiter;
use super::not_ready::NotReady;
use crate::decision::Decision;
use crate::key::Key;
use crate::store::Store;

/// A turn that a request has asked the store for. Dropped before it has come, it goes back to the store.
pub(super) struct Turn<S: Store + Clone> {
    limiter: Limiter<S>,
    key: Key<'static>,
    runtime: Option<Handle>,
    /// The answer to come: the store may have taken the turn already.
    asked: Option<Pin<Box<S::Future>>>,
    taken: Option<Decision>,
}

impl<S: Store + Clone> Turn<S> {
    pub(super) fn new(limiter: Limiter<S>, key: Key<'static>, answer: S::Future) -> Self {
        let runtime = Handle::try_current().ok();
        Self { limiter, key, runtime, asked: Some(Box::pin(answer)), taken: None }
    }

    /// Waits for the store's answer, and then for the turn.
    pub(super) async fn take(mut self) -> Result<Decision, NotReady<S::Error>> {
        let mut wait = Duration::ZERO;
        if let Some(answer) = &mut self.asked {
            let answer = answer.as_mut().await;
            self.asked = None;
            let decision = answer.map_err(NotReady::Store)?;
            if !decision.is_allowed() {
                return Err(NotReady::Refused(Box::new(decision)));
            }
            wait = decision.wait();
            self.taken = Some(decision);
        }
        if !wait.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "the caller asks to wait")]
            tokio::time::sleep(wait).await;
        }
        Ok(self.taken.take().unwrap_or_default())
    }
}

impl<S: Store + Clone> Drop for Turn<S> {
    fn drop(&mut self) {
        if let Some(decision) = self.taken.take() {
            // A store in memory has refunded when this returns. Others need the runtime to wait for their answer.
            let refund = self.limiter.refund(&self.key, decision);
            if let Some(runtime) = &self.runtime {
                drop(runtime.spawn(refund));
            }
        }
        if let (Some(answer), Some(runtime)) = (self.asked.take(), &self.runtime) {
            let (limiter, key) = (self.limiter.clone(), self.key.clone());
            drop(runtime.spawn(async move {
                if let Ok(decision) = answer.await {
                    // An error has no reader: the turn then comes back with time.
                    let _ = limiter.refund(&key, decision).await;
                }
            }));
        }
    }
}
