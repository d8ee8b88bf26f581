//! Calls of the store that no request waits for.

use core::future::Future;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use tokio::runtime::Handle;
use tower_quota_core::{Charge, Operation, Store};

use super::gate::Gate;
use crate::settle::{Counted, Till};

impl<S: Store> Till for Gate<S> {
    fn apply(&self, counted: Counted, operation: Operation, charges: &[Charge<'_>], runtime: Option<&Handle>) {
        if counted == Counted::Locally {
            self.local.apply(operation, charges);
            return;
        }
        let on_store_error = Arc::clone(&self.on_store_error);
        let answer = self.store.apply(operation, charges);
        let call = async move {
            if let Err(error) = answer.await {
                on_store_error(&error);
            }
        };
        detach(call, runtime);
    }
}

/// Sees to it that something gets done, at once if it can be: as it is with a store in memory. What takes time becomes a
/// task on the runtime that surrounds the call, else on this one. Where there is neither, or it is shutting down, it is
/// left undone.
pub(super) fn detach(call: impl Future<Output = ()> + Send + 'static, runtime: Option<&Handle>) {
    let surrounding = Handle::try_current().ok();
    if let (None, Some(runtime)) = (&surrounding, runtime) {
        // Not polled here: its timers and sockets are the runtime's, which may have gone.
        drop(runtime.spawn(call));
        return;
    }
    let mut call = Box::pin(call);
    let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if let (Poll::Pending, Some(runtime)) = (poll, surrounding) {
        drop(runtime.spawn(call));
    }
}
