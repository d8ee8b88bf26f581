use core::future::Future;
use core::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

/// Runs a call in the background, or at once if the store answers without waiting.
///
/// Uses the current runtime, or else the given runtime.
pub(crate) fn detach(call: impl Future<Output = ()> + Send + 'static, runtime: Option<&Handle>) {
    let current = Handle::try_current().ok();
    if let (None, Some(runtime)) = (&current, runtime) {
        // Do not poll here, because timers and sockets belong to the runtime.
        drop(runtime.spawn(call));
        return;
    }
    let mut call = Box::pin(call);
    let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if let (Poll::Pending, Some(runtime)) = (poll, current) {
        drop(runtime.spawn(call));
    }
}
