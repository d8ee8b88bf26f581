//! A call made by the caller of a decision.

use core::future::{Future, poll_fn};
use core::pin::Pin;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A call in the hands of its caller. Dropped before it is over, it goes on as a task: so what it finds out about the
/// server is not lost when the caller gives up, and what waits behind it is served when the caller has its answer.
pub(super) struct Direct<'a> {
    call: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    runtime: Option<&'a Handle>,
}

impl<'a> Direct<'a> {
    pub(super) fn new(call: impl Future<Output = ()> + Send + 'static, runtime: Option<&'a Handle>) -> Self {
        Self { call: Some(Box::pin(call)), runtime }
    }

    /// Makes the call until this answer is there.
    pub(super) async fn until<T>(mut self, mut answered: oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
        poll_fn(|context| {
            if self.call.as_mut().is_some_and(|call| call.as_mut().poll(context).is_ready()) {
                self.call = None;
            }
            Pin::new(&mut answered).poll(context)
        })
        .await
    }
}

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        let runtime = self.runtime.cloned().or_else(|| Handle::try_current().ok());
        if let (Some(call), Some(runtime)) = (self.call.take(), runtime) {
            runtime.spawn(call);
        }
    }
}
