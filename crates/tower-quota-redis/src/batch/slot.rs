//! An in-flight slot.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::Batcher;
use super::call_span::{CallEnd, CallSpan};
use super::caller::now;
use super::queue::NotSent;

/// The right to have a call under way. Dropped, it passes to what waits, or is free for the next decision.
pub(super) struct Slot {
    pub(super) shared: Arc<Batcher>,
    pub(super) number: usize,
    /// Says whether a caller makes the call: one that stops polling must not keep others waiting.
    pub(super) is_direct: bool,
    /// The call under way.
    pub(super) call: Option<CallSpan>,
}

impl Slot {
    pub(super) fn new(shared: &Arc<Batcher>, number: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            number,
            is_direct: false,
            call: None,
        }
    }

    pub(super) fn direct(shared: &Arc<Batcher>, number: usize) -> Self {
        Self {
            shared: Arc::clone(shared),
            number,
            is_direct: true,
            call: None,
        }
    }

    /// Notes that the call is over, and fails what waits if that opens the breaker.
    pub(super) fn call_ended(&mut self, end: Option<CallEnd>) {
        if let Some(call) = self.call.take() {
            let refused = self.shared.lock().call_ended(&call, end, now());
            self.shared.refuse(refused, NotSent::BreakerOpen);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.call_ended(None);
        let has_work = {
            let mut queue = self.shared.lock();
            queue.free_slot(self.number);
            queue.has_work()
        };
        let successor = Successor(has_work.then(|| Arc::clone(&self.shared)));
        let runtime = self
            .shared
            .caller
            .settings
            .runtime
            .clone()
            .or_else(|| Handle::try_current().ok());
        if let (true, Some(runtime)) = (has_work, runtime) {
            runtime.spawn(successor.run());
        }
    }
}

/// The task that a slot passes to.
///
/// It takes the slot only when it runs: a runtime that has ended drops it at once, and with a slot in it that would go on
/// without end. Dropped so, or without a runtime, it fails what waits: nothing would send it within the deadline.
struct Successor(Option<Arc<Batcher>>);

impl Successor {
    async fn run(mut self) {
        let Some(shared) = self.0.take() else { return };
        let slot = shared.lock().take_slot();
        if let Some(number) = slot {
            Batcher::drain(Slot::new(&shared, number)).await;
        }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            // No task will run on a named runtime again.
            let has_successor = shared.caller.settings.runtime.is_none();
            let stranded = shared.lock().take_stranded(has_successor, now());
            shared.refuse(stranded, NotSent::NoRuntime);
        }
    }
}
