//! A call made by the caller of a decision.

use core::future::{Future, poll_fn};
use core::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A call that its caller polls. If it is dropped early, a task finishes it: the breaker learns its outcome, and the
/// decisions that wait behind it are sent.
pub(super) struct Direct(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Direct {
    pub(super) fn new(call: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(call)))
    }

    /// Makes the call until this answer is there.
    pub(super) async fn until<T>(
        mut self,
        mut answered: oneshot::Receiver<T>,
    ) -> Result<T, oneshot::error::RecvError> {
        poll_fn(|context| {
            if self
                .0
                .as_mut()
                .is_some_and(|call| call.as_mut().poll(context).is_ready())
            {
                self.0 = None;
            }
            Pin::new(&mut answered).poll(context)
        })
        .await
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if let (Some(call), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(call);
        }
    }
}
