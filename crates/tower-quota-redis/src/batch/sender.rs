use std::sync::Arc;

use redis::RedisError;
use tokio::runtime::Handle;

use super::Batcher;
use super::call_span::{CallEnd, CallSpan};
use super::queue::NotSent;
use crate::clock::now;
use crate::lock::locked;

/// A task that sends the waiting decisions. A dropped sender leaves the work to a successor.
pub(super) struct Sender {
    pub(super) batcher: Arc<Batcher>,
    pub(super) call: Option<CallSpan>,
    pub(super) is_pacing: bool,
}

impl Sender {
    pub(super) const fn new(batcher: Arc<Batcher>) -> Self {
        Self {
            batcher,
            call: None,
            is_pacing: false,
        }
    }

    pub(super) fn call_ended(&mut self, end: Option<CallEnd>, failure: Option<RedisError>) {
        let Some(call) = self.call.take() else {
            return;
        };
        let mut queue = self.batcher.lock();
        if let Some(refused) = queue.call_ended(&call, end, now()) {
            // Later failures of other calls do not explain why the breaker is open.
            *locked(&self.batcher.caller.last_failure) = failure;
            drop(queue);
            self.batcher.refuse(refused, NotSent::BreakerOpen);
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.call_ended(None, None);
        let needs_sender = {
            let mut queue = self.batcher.lock();
            queue.sender_ended(self.is_pacing);
            queue.needs_sender(now())
        };
        if !needs_sender {
            return;
        }
        let runtime = self.batcher.caller.settings.runtime.clone();
        let successor = Successor(Some(Arc::clone(&self.batcher)));
        if let Some(runtime) = runtime.or_else(|| Handle::try_current().ok()) {
            runtime.spawn(successor.run());
        }
    }
}

/// A task that takes over the work. A runtime that has ended drops the task at once, and the
/// waiting decisions fail.
struct Successor(Option<Arc<Batcher>>);

impl Successor {
    async fn run(mut self) {
        if let Some(batcher) = self.0.take()
            && batcher.lock().begin_sender(now())
        {
            Batcher::send_waiting(Sender::new(batcher)).await;
        }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(batcher) = self.0.take() {
            // Without a configured runtime, a caller on another runtime can still start a
            // successor.
            let has_successor = batcher.caller.settings.runtime.is_none();
            let stranded = batcher.lock().take_stranded(has_successor, now());
            batcher.refuse(stranded, NotSent::NoRuntime);
        }
    }
}
