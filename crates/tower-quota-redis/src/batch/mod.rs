//! Batches put several decisions into one call.
//!
//! A decision that finds a free sender leaves at once. Decisions that arrive while all senders wait share the next
//! call.
//!
//! 1. The weight of a call is bounded, so that a call occupies the server for less than a millisecond.
//! 2. Decisions leave in the order of arrival. If the oldest has waited for half of the deadline, the newest leave
//!    first, because they still have time. After the whole deadline, a decision fails uncharged.
//! 3. The queue drops decisions whose callers have left, but always sends refunds and settled charges.
//! 4. The weight in flight shrinks while calls are slow, so that an overloaded server still answers in time.

mod answer;
mod call_span;
mod caller;
mod distance;
mod late;
mod pending;
mod queue;
mod sender;
mod window;

use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicI64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use redis::Value;
use tokio::sync::{SemaphorePermit, oneshot};
use tower_quota_core::Decision;

use self::answer::Answer;
use self::call_span::CallSpan;
pub(crate) use self::caller::Caller;
use self::caller::end_of;
use self::pending::Pending;
use self::queue::{Batch, NotSent, Queue, Step, Ticket};
use self::sender::Sender;
use crate::breaker::Breaker;
use crate::clock::{now, wall_clock};
use crate::error::RedisStoreError;
use crate::lock::locked;
use crate::stats::RedisStats;
use crate::store_request::StoreRequest;
use crate::wire::Reply;

pub(crate) struct Batcher {
    caller: Caller,
    queue: Mutex<Queue>,
    /// Counts the tasks for late answers and refunds, by references.
    late: Arc<()>,
    clock_difference: AtomicI64,
}

/// The longest wait for a slot, short because a silent node may hold all slots.
const SHARED_SLOT_WAIT: Duration = Duration::from_millis(1);

/// The time that an error needs to reach a caller, which is more than the precision of timers.
const LAST_MOMENT: Duration = Duration::from_millis(2);

type Outcome = Result<Decision, RedisStoreError>;

impl Batcher {
    pub(crate) fn new(
        caller: Caller,
        senders: usize,
        partitions: usize,
        breaker: Breaker,
    ) -> Arc<Self> {
        let queue = Queue::new(senders, partitions, caller.deadline, breaker);
        let queue = Mutex::new(queue);
        Arc::new(Self {
            caller,
            queue,
            late: Arc::default(),
            clock_difference: AtomicI64::default(),
        })
    }

    pub(crate) async fn decide(self: &Arc<Self>, request: StoreRequest) -> Outcome {
        let caller = &self.caller;
        let settles = Pending::settles(&request.template);
        let (ticket, mut answer) = match self.ask(request, now()) {
            Ok(asked) => asked,
            Err(reason) => {
                if reason == NotSent::Overloaded {
                    // Yield, because a caller that retries at once would starve the tasks that read
                    // answers.
                    tokio::task::yield_now().await;
                }
                return Err(caller.not_sent(reason));
            }
        };
        if let Ok(answered) = tokio::time::timeout(caller.deadline, &mut answer).await {
            // The sender is lost if the runtime of the call has ended.
            return answered.unwrap_or_else(|_| Err(caller.cut_short()));
        }
        // Look once more, because timers fire before sockets are read after a pause of the process.
        tokio::task::yield_now().await;
        // The decision of a lone caller is read by this task.
        let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut answer).poll(context))).await;
        if let Poll::Ready(Ok(outcome)) = polled {
            return outcome;
        }
        // Close the channel, so that a later answer finds no caller and is refunded.
        answer.answered.close();
        match answer.answered.try_recv() {
            Ok(outcome) => outcome,
            Err(_) if !settles && self.lock().is_waiting(ticket) => {
                Err(caller.not_sent(NotSent::Overloaded))
            }
            Err(_) => Err(caller.too_late()),
        }
    }

    pub(crate) async fn probe(&self) -> Result<(), RedisStoreError> {
        self.caller.probe().await
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().breaker.is_closed()
    }

    pub(crate) fn refusal(&self) -> Option<RedisStoreError> {
        let is_admitted = self.lock().breaker.would_admit(now());
        (!is_admitted).then(|| self.caller.not_sent(NotSent::BreakerOpen))
    }

    pub(crate) fn is_idle(&self) -> bool {
        // A late answer enters the queue before its task ends, so look at the tasks first.
        Arc::strong_count(&self.late) == 1 && self.lock().is_idle()
    }

    pub(crate) fn add_to(&self, stats: &mut RedisStats) {
        self.lock().add_to(stats);
        let difference = self.clock_difference.load(Ordering::Relaxed);
        if difference.unsigned_abs() > stats.clock_difference_micros.unsigned_abs() {
            stats.clock_difference_micros = difference;
        }
    }

    fn ask(
        self: &Arc<Self>,
        request: StoreRequest,
        now: Instant,
    ) -> Result<(Ticket, Answer), NotSent> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending {
            number: 0,
            request,
            answer,
            arrived: now,
        };
        let (ticket, begins_sender, is_alone) = {
            let mut queue = self.lock();
            queue.admit(&pending.request.template, now)?;
            let is_alone = queue.is_lone();
            (queue.push(pending), queue.begin_sender(now), is_alone)
        };
        let mut sending = None;
        if begins_sender {
            let sender = Self::send_waiting(Sender::new(Arc::clone(self)));
            if is_alone && self.caller.settings.runtime.is_none() {
                sending = Some(Box::pin(sender) as _);
            } else {
                // Send from a task, because other callers must not depend on this one.
                self.caller.settings.spawn(sender);
            }
        }
        Ok((ticket, Answer { answered, sending }))
    }

    async fn send_waiting(mut sender: Sender) {
        let batcher = Arc::clone(&sender.batcher);
        loop {
            // Decisions that arrive during this wait leave in the same call.
            let _shared_slot = batcher.shared_slot().await;
            let (expired, step) = {
                let mut queue = batcher.lock();
                (queue.take_expired(now()), queue.next_step(now()))
            };
            batcher.refuse(expired, NotSent::Overloaded);
            match step {
                Step::Send(batch) => batcher.send(&mut sender, batch).await,
                Step::WaitUntil(due) => {
                    sender.is_pacing = true;
                    tokio::time::sleep_until(due.into()).await;
                    sender.is_pacing = false;
                    batcher.lock().has_paced();
                }
                // A decision may have arrived since. Dropping the sender checks the queue again.
                Step::End => return,
            }
        }
    }

    async fn shared_slot(&self) -> Option<SemaphorePermit<'_>> {
        let slots = self.caller.shared_slots.as_ref()?;
        if let Ok(slot) = slots.try_acquire() {
            return Some(slot);
        }
        tokio::time::timeout(SHARED_SLOT_WAIT, slots.acquire())
            .await
            .ok()?
            .ok()
    }

    async fn send(self: &Arc<Self>, sender: &mut Sender, batch: Batch) {
        if batch.decisions.is_empty() {
            return;
        }
        sender.call = Some(CallSpan {
            began: now(),
            weight: batch.weight,
            under_way: batch.under_way,
        });
        let requests = batch.decisions.iter().map(|pending| &pending.request);
        let call = self.caller.call(requests);
        let connect_by = self.connect_by(&batch);
        let (reply, late) = self.caller.send(batch.number, call, connect_by).await;
        let failure = reply.as_ref().err().and_then(RedisStoreError::failure);
        sender.call_ended(Some(end_of(&reply)), failure);
        match reply {
            Ok(reply) => {
                let mut reply = Reply::new(bytes_of(&reply));
                let received = wall_clock();
                for pending in batch.decisions {
                    let outcome = self.caller.read(&mut reply, &pending.request);
                    if let Ok(decision) = &outcome {
                        let difference = decision.at().as_micros().wrapping_sub(received);
                        self.clock_difference
                            .store(difference.cast_signed(), Ordering::Relaxed);
                    }
                    self.answer(pending, outcome);
                }
            }
            Err(error) => {
                let mut requests = Vec::with_capacity(batch.decisions.len());
                for pending in batch.decisions {
                    let _ = pending.answer.send(Err(error.clone()));
                    requests.push(pending.request);
                }
                if let Some(answer) = late {
                    self.await_late(answer, requests);
                }
            }
        }
    }

    /// Returns the instant at which a batch without a connection fails. This is before the last caller leaves, so that the
    /// caller learns that nothing was sent. Settlements have no such caller.
    fn connect_by(&self, batch: &Batch) -> Option<Instant> {
        let settles = |pending: &Pending| Pending::settles(&pending.request.template);
        if batch.decisions.iter().any(settles) {
            return None;
        }
        let deadline = self.caller.deadline;
        let last_arrived = batch
            .decisions
            .iter()
            .map(|pending| pending.arrived)
            .max()?;
        Some(last_arrived + deadline - LAST_MOMENT.min(deadline / 8))
    }

    fn refuse(&self, decisions: Vec<Pending>, reason: NotSent) {
        decisions
            .into_iter()
            .for_each(|pending| pending.answer(Err(self.caller.not_sent(reason))));
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }
}

fn bytes_of(reply: &Value) -> &[u8] {
    match reply {
        Value::BulkString(bytes) => bytes,
        _ => &[],
    }
}
