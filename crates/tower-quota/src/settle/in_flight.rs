use core::future::pending;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use tokio::runtime::Handle;
use tower_quota_core::{Decision, Store};

use super::charge_record::{ChargeRecord, Counted, RecordedCharge, Settler};
use super::detach::detach;
use crate::settle::{StoreCallError, within};

/// A call of the store, with the record of the charges.
///
/// If the request is dropped early, a call with recorded charges continues as a task, and refunds the charges.
pub(crate) struct InFlight<S: Store> {
    /// The call, boxed so that it can move to the task.
    call: Option<Pin<Box<S::Future>>>,
    recorded: Vec<RecordedCharge>,
    settler: Arc<dyn Settler>,
    runtime: Option<Handle>,
}

impl<S: Store> InFlight<S> {
    pub(crate) fn new(
        call: S::Future,
        recorded: Vec<RecordedCharge>,
        settler: Arc<dyn Settler>,
    ) -> Self {
        let runtime = if recorded.is_empty() {
            None
        } else {
            Handle::try_current().ok()
        };
        Self {
            call: Some(Box::pin(call)),
            recorded,
            settler,
            runtime,
        }
    }

    /// Returns the answer, and the record of the charges unless the call continues after the timeout.
    pub(crate) async fn answer(
        mut self,
        timeout: Duration,
    ) -> (
        Result<Decision, StoreCallError<S::Error>>,
        Vec<RecordedCharge>,
    ) {
        let answer = match &mut self.call {
            Some(call) => within(timeout, call).await,
            None => pending().await,
        };
        let recorded = match answer {
            Err(StoreCallError::TimedOut(_)) => Vec::new(),
            _ => core::mem::take(&mut self.recorded),
        };
        (answer, recorded)
    }
}

impl<S: Store> Drop for InFlight<S> {
    fn drop(&mut self) {
        let recorded = core::mem::take(&mut self.recorded);
        let (Some(call), false) = (self.call.take(), recorded.is_empty()) else {
            return;
        };
        let settler = Arc::clone(&self.settler);
        let give_back = async move {
            match within(settler.timeout(), call).await {
                Ok(decision) if decision.is_allowed() => {
                    ChargeRecord::new(settler, Counted::Shared, &decision, recorded).give_back();
                }
                Ok(_) => {}
                Err(error) => settler.failed(error.error()),
            }
        };
        detach(give_back, self.runtime.as_ref());
    }
}
