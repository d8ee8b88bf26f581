use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Outcome;

/// Waits for the answer to a decision, and sends the decision meanwhile if no task does.
///
/// A task would wake up another thread for each decision of a caller with one request in flight. Dropping the answer
/// continues in a task, because the decision may be in flight, and other decisions may wait.
pub(super) struct Answer {
    pub(super) answered: oneshot::Receiver<Outcome>,
    pub(super) sending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Future for Answer {
    type Output = Result<Outcome, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(sending) = &mut self.sending {
            if sending.as_mut().poll(context).is_pending() {
                // Another sender may answer.
                return Pin::new(&mut self.answered).poll(context);
            }
            self.sending = None;
        }
        Pin::new(&mut self.answered).poll(context)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // Without a runtime, the sender leaves the work to a successor.
        if let Some(sending) = self.sending.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(sending);
        }
    }
}
