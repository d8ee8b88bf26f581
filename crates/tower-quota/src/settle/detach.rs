//! Calls of the store in the background.

use core::future::Future;
use core::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

/// Runs a call in the background, or at once if it needs no wait, as with a store in memory.
///
/// A call that must wait becomes a task of the current runtime, or of this one if there is none. Without either, or
/// while it shuts down, the call is dropped.
pub(crate) fn detach(call: impl Future<Output = ()> + Send + 'static, runtime: Option<&Handle>) {
    let current = Handle::try_current().ok();
    if let (None, Some(runtime)) = (&current, runtime) {
        // Do not poll it here: its timers and sockets belong to the runtime, which may have ended.
        drop(runtime.spawn(call));
        return;
    }
    let mut call = Box::pin(call);
    let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if let (Poll::Pending, Some(runtime)) = (poll, current) {
        drop(runtime.spawn(call));
    }
}
