//! Calls of the store that no request waits for.

use core::future::Future;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use tokio::runtime::Handle;
use tollgate_core::{Charge, Operation, Store};

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
        let mut call = Box::pin(async move {
            if let Err(error) = answer.await {
                on_store_error(&error);
            }
        });
        let surrounding = Handle::try_current().ok();
        if let (None, Some(runtime)) = (&surrounding, runtime) {
            // Not polled here: its timers and sockets are the runtime's, which may have gone.
            drop(runtime.spawn(call));
            return;
        }
        // A store in memory is done at once, without a task.
        let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let (Poll::Pending, Some(runtime)) = (poll, surrounding) {
            drop(runtime.spawn(call));
        }
    }
}
